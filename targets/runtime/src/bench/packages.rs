//! The packages that compute a GEMM: what they look like, and finding them in a folder.
//!
//! A package computes a GEMM if
//! * its inputs of the operands' type are, in order, A \[m, k\] and W, \[n, k\] (`nt`) or \[k, n\]
//!   (`nn`); m may be a symbol, n and k of 16-bit operands too;
//! * with 8-bit operands there are two f32 inputs as well, in order the scales of A and of W: \[\]
//!   or \[1\] each; or \[m\] and \[n\] (a dimension of 1 may stand beside); or \[m, k/128\] and
//!   \[n/128, k/128\], rounded up, A's also transposed, \[k/128, m\]. The order that is meant is
//!   A, A's scales, W, W's scales; A, W and then both scales is the same to the bench;
//! * its one output is C \[m, n\], of the operands' type, bf16 for 8-bit operands.
//!
//! A square W is that of the word `nn` or `nt` in the package's name; without one it fits cases of either, and is `nt` by itself.

use std::path::{Path, PathBuf};

use axe_package::{DType, Expr, Manifest, Package, TensorSpec};

use super::problem::{BLOCK, Gemm, Scaling};
use crate::error::RuntimeError;

/// A package that computes a GEMM.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Where it lies.
    pub path: PathBuf,
    /// Its plan: the manifest's `candidate`, else the file's name without its ending.
    pub plan: String,
    /// Its chip.
    pub chip: String,
    /// What it computes.
    pub interface: Interface,
}

impl Candidate {
    /// True if it computes `gemm`; a square W that no word in the name tells the layout of fits both.
    #[must_use]
    pub fn fits(&self, gemm: &Gemm) -> bool {
        let mut interface = self.interface.clone();
        if interface.square {
            interface.gemm.transposed = gemm.transposed;
        }
        interface.computes(gemm)
    }
}

/// What a package computes, and with which inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Interface {
    /// The GEMM; m, n and k are 0 where they are known at run time only.
    pub gemm: Gemm,
    /// W fits both layouts.
    pub square: bool,
    /// The inputs' roles, in the manifest's order.
    pub roles: Vec<Role>,
}

/// What an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A.
    A,
    /// W.
    W,
    /// A's scales, row-major as [`Gemm::scale_shapes`] says.
    ScalesOfA,
    /// A's block scales with m innermost.
    ScalesOfATransposed,
    /// W's scales.
    ScalesOfW,
}

impl Interface {
    /// Reads a manifest.
    ///
    /// # Errors
    /// Why it computes no GEMM.
    pub fn of(manifest: &Manifest) -> Result<Self, String> {
        let [c] = manifest.outputs.as_slice() else {
            return Err(format!("{} outputs, not one", manifest.outputs.len()));
        };
        let inputs = &manifest.inputs;
        let scales: Vec<&TensorSpec> = inputs.iter().filter(|i| i.dtype == DType::F32).collect();
        let others: Vec<&TensorSpec> = inputs.iter().filter(|i| i.dtype != DType::F32).collect();
        let [a, w] = others.as_slice() else {
            return Err(format!("{} inputs that are no f32, not two", others.len()));
        };
        let (Some([m, k]), Some([n0, n1])) = (two(&a.shape), two(&w.shape)) else {
            return Err("A and W are matrices".into());
        };
        let known = |e: &Expr| match e {
            Expr::Sym(_) => Some(0),
            e => e.as_const().and_then(|v| u64::try_from(v).ok()),
        };
        let transposed = n1 == k;
        let n = if transposed { n0 } else { n1 };
        if !transposed && n0 != k {
            return Err(format!("A has {k} columns, W is [{n0}, {n1}]"));
        }
        let (Some(of_m), Some(of_n), Some(of_k)) = (known(m), known(n), known(k)) else {
            return Err("sizes that are neither constants nor symbols".into());
        };
        let mut gemm = Gemm {
            m: of_m,
            n: of_n,
            k: of_k,
            dtype: a.dtype,
            transposed,
            scaling: Scaling::None,
        };
        let dtypes = [DType::F16, DType::BF16, DType::F8E4M3];
        if a.dtype != w.dtype || !dtypes.contains(&a.dtype) {
            return Err(format!("operands of {} and {}", a.dtype, w.dtype));
        }
        if c.dtype != gemm.out() || c.shape != [m.clone(), n.clone()] {
            return Err(format!("C is not {} [m, n]", gemm.out()));
        }
        let of_a = scaling(&mut gemm, m, &scales)?;
        let mut first = [true, true];
        let role = |input: &TensorSpec| {
            let scale = usize::from(input.dtype == DType::F32);
            let is_first = std::mem::take(&mut first[scale]);
            match (scale == 1, is_first) {
                (false, true) => Role::A,
                (false, false) => Role::W,
                (true, true) => of_a,
                (true, false) => Role::ScalesOfW,
            }
        };
        Ok(Interface {
            square: n0 == n1,
            roles: inputs.iter().map(role).collect(),
            gemm,
        })
    }

    /// True if the package computes `gemm`.
    #[must_use]
    pub fn computes(&self, gemm: &Gemm) -> bool {
        let size = |mine: u64, its: u64| if mine == 0 { its } else { mine };
        let mine = Gemm {
            m: size(self.gemm.m, gemm.m),
            n: size(self.gemm.n, gemm.n),
            k: size(self.gemm.k, gemm.k),
            ..self.gemm
        };
        mine == *gemm
    }
}

fn two(shape: &[Expr]) -> Option<[&Expr; 2]> {
    match shape {
        [a, b] => Some([a, b]),
        _ => None,
    }
}

/// Sets the GEMM's scaling from the shapes of scales and returns the role of A's.
fn scaling(gemm: &mut Gemm, m: &Expr, scales: &[&TensorSpec]) -> Result<Role, String> {
    let (a, w) = match (gemm.dtype.bytes(), scales) {
        (2, []) => return Ok(Role::ScalesOfA),
        (1, [a, w]) if gemm.n > 0 && gemm.k > 0 => (a, w),
        (1, [_, _]) => return Err("n and k of scaled operands are constants".into()),
        (_, s) => {
            return Err(format!(
                "{} scales with operands of {}",
                s.len(),
                gemm.dtype
            ));
        }
    };
    let one = Expr::Const(1);
    let blocks = |v: u64| Expr::Const(v.div_ceil(BLOCK) as i64);
    // Dimensions of 1 say nothing, unless the extent in question is 1.
    let is = |spec: &TensorSpec, dims: &[&Expr]| {
        let strip = |d: &&Expr| **d != one;
        let got = spec.shape.iter().filter(|d| strip(d));
        got.eq(dims.iter().copied().filter(strip))
    };
    let (n, kb, nb) = (Expr::Const(gemm.n as i64), blocks(gemm.k), blocks(gemm.n));
    if is(a, &[]) && is(w, &[]) && gemm.n != 1 {
        gemm.scaling = Scaling::Tensor;
        return Ok(Role::ScalesOfA);
    }
    // Two dimensions of W's are blocks; [n] with one block along k could be either, and is rows.
    if is(w, &[&n]) && is(a, &[m]) {
        gemm.scaling = Scaling::Row;
        return Ok(Role::ScalesOfA);
    }
    if is(w, &[&nb, &kb]) {
        gemm.scaling = Scaling::Block;
        if is(a, &[m, &kb]) {
            return Ok(Role::ScalesOfA);
        }
        if is(a, &[&kb, m]) {
            return Ok(Role::ScalesOfATransposed);
        }
    }
    Err("the scales are those of no scaling".into())
}

/// Reads a package's interface; `None` for one that computes no GEMM.
///
/// # Errors
/// A package that cannot be read.
pub fn candidate(path: &Path) -> Result<Result<Candidate, String>, RuntimeError> {
    let package = Package::open(path)?;
    let manifest = package.manifest();
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
    let stem = name.unwrap_or_default();
    let stem = stem.strip_suffix(".axe").unwrap_or(&stem);
    Ok(Interface::of(manifest).map(|mut interface| {
        let mut words = stem.split(|c: char| !c.is_ascii_alphanumeric());
        if let Some(word) = words.find(|w| interface.square && ["nn", "nt"].contains(w)) {
            interface.gemm.transposed = word == "nt";
            interface.square = false;
        }
        Candidate {
            path: path.to_owned(),
            plan: manifest.candidate.clone().unwrap_or_else(|| stem.into()),
            chip: manifest.target.chip.clone(),
            interface,
        }
    }))
}

/// The packages of a folder that compute a GEMM, in the order of their names, and why others do
/// not. Files whose names do not end with `.axe` are not looked at, folders are when they hold a
/// manifest.
///
/// # Errors
/// A folder that cannot be read, a package that is damaged.
pub fn scan(folder: &Path) -> Result<(Vec<Candidate>, Vec<String>), RuntimeError> {
    let failed = |error| RuntimeError::File {
        path: folder.display().to_string(),
        error,
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let file = path.extension().is_some_and(|e| e == "axe");
        if file || path.join(axe_package::MANIFEST_FILE).is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    let (mut found, mut others) = (Vec::new(), Vec::new());
    for path in paths {
        match candidate(&path)? {
            Ok(candidate) => found.push(candidate),
            Err(why) => others.push(format!("{}: {why}", path.display())),
        }
    }
    Ok((found, others))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axe_package::{Symbol, Target};
    use std::collections::BTreeMap;

    fn manifest(inputs: &[(DType, &[Expr])], output: (DType, &[Expr])) -> Manifest {
        let spec = |(i, (dtype, shape)): (usize, &(DType, &[Expr]))| {
            TensorSpec::new(format!("x{i}"), *dtype, shape.iter().cloned())
        };
        Manifest {
            version: axe_package::MANIFEST_VERSION,
            name: "main".into(),
            target: Target {
                kind: "nvidia".into(),
                chip: "sm_90a".into(),
            },
            tools: BTreeMap::new(),
            candidate: None,
            source_sha256: "0".repeat(64),
            source: None,
            symbols: vec![Symbol::of_dim("M", "x0", 0)],
            inputs: inputs.iter().enumerate().map(spec).collect(),
            outputs: vec![spec((9, &output))],
            buffers: vec![],
            kernels: vec![],
            steps: vec![],
            files: BTreeMap::new(),
        }
    }

    fn c(v: i64) -> Expr {
        Expr::Const(v)
    }

    #[test]
    fn layouts_and_dynamic_rows() {
        use DType::{BF16, F16};
        let nt = manifest(
            &[(F16, &[c(64), c(256)]), (F16, &[c(128), c(256)])],
            (F16, &[c(64), c(128)]),
        );
        let got = Interface::of(&nt).unwrap();
        assert_eq!(got.gemm.to_string(), "64x128x256 f16 nt");
        assert_eq!(got.roles, [Role::A, Role::W]);
        let m = Expr::sym("M");
        let nn = manifest(
            &[(BF16, &[m.clone(), c(256)]), (BF16, &[c(256), c(128)])],
            (BF16, &[m.clone(), c(128)]),
        );
        let got = Interface::of(&nn).unwrap();
        assert_eq!(got.gemm.to_string(), "0x128x256 bf16 nn");
        let mut gemm = got.gemm;
        gemm.m = 77;
        assert!(got.computes(&gemm));
        gemm.n = 129;
        assert!(!got.computes(&gemm));
        let (n, k) = (Expr::sym("N"), Expr::sym("K"));
        let all = manifest(
            &[(F16, &[m.clone(), k.clone()]), (F16, &[n.clone(), k])],
            (F16, &[m, n]),
        );
        let got = Interface::of(&all).unwrap();
        assert_eq!(got.gemm.to_string(), "0x0x0 f16 nt");
        assert!(!got.square);
        let case = |text: &str| text.parse::<super::super::case::Case>().unwrap().gemm;
        assert!(got.computes(&case("3,5,7,f16")) && got.computes(&case("3,7,7,f16")));
        assert!(!got.computes(&case("3,5,7,f16,nn")) && !got.computes(&case("3,5,7,bf16")));
    }

    #[test]
    fn scales_tell_the_scaling() {
        use DType::{BF16, F8E4M3 as E, F32};
        let m = Expr::sym("M");
        let a: &[Expr] = &[m.clone(), c(512)];
        let w: &[Expr] = &[c(256), c(512)];
        let out: (DType, &[Expr]) = (BF16, &[m.clone(), c(256)]);
        let of = |sa: &[Expr], sw: &[Expr]| {
            Interface::of(&manifest(&[(E, a), (F32, sa), (E, w), (F32, sw)], out))
        };
        let got = of(&[], &[]).unwrap();
        assert_eq!(got.gemm.scaling, Scaling::Tensor);
        assert_eq!(
            got.roles,
            [Role::A, Role::ScalesOfA, Role::W, Role::ScalesOfW]
        );
        let got = of(std::slice::from_ref(&m), &[c(256)]).unwrap();
        assert_eq!(got.gemm.scaling, Scaling::Row);
        assert_eq!(
            of(&[m.clone(), c(1)], &[c(1), c(256)])
                .unwrap()
                .gemm
                .scaling,
            Scaling::Row
        );
        let got = of(&[m.clone(), c(4)], &[c(2), c(4)]).unwrap();
        assert_eq!(
            (got.gemm.scaling, got.roles[1]),
            (Scaling::Block, Role::ScalesOfA)
        );
        let got = of(&[c(4), m.clone()], &[c(2), c(4)]).unwrap();
        assert_eq!(got.roles[1], Role::ScalesOfATransposed);
        assert!(of(&[m.clone(), c(4)], &[c(2), c(3)]).is_err());
        assert!(of(&[c(3)], &[c(2), c(4)]).is_err());
        let last = manifest(&[(E, a), (E, w), (F32, &[]), (F32, &[])], out);
        assert_eq!(Interface::of(&last).unwrap().roles[2], Role::ScalesOfA);
    }

    #[test]
    fn other_packages_say_why_not() {
        use DType::{F16, F32};
        let a: (DType, &[Expr]) = (F16, &[c(64), c(256)]);
        let w: (DType, &[Expr]) = (F16, &[c(128), c(256)]);
        let out: (DType, &[Expr]) = (F16, &[c(64), c(128)]);
        let why =
            |inputs: &[(DType, &[Expr])], out| Interface::of(&manifest(inputs, out)).unwrap_err();
        assert!(why(&[a], out).contains("1 inputs"));
        assert!(why(&[a, (F16, &[c(128), c(255)])], out).contains("256 columns"));
        assert!(why(&[a, w], (F32, out.1)).contains("C is not f16"));
        assert!(why(&[a, w, (F32, &[])], out).contains("1 scales"));
        assert!(why(&[a, (F16, &[c(128)])], out).contains("matrices"));
    }
}
