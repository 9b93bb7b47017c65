//! The GEMMs to measure, as people write them.

use std::path::PathBuf;

use axe_package::DType;

use super::problem::{Gemm, Scaling};

/// One GEMM to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The GEMM.
    pub gemm: Gemm,
    /// Where the shape comes from, for tables; may be empty.
    pub label: String,
    /// The packages that compute it; none to measure cuBLASLt alone. `packages` says what they
    /// look like.
    pub candidates: Vec<PathBuf>,
    /// Packages of others that compute it.
    pub rivals: Vec<Rival>,
}

/// Somebody else's packages for a GEMM.
#[derive(Debug, Clone, PartialEq)]
pub struct Rival {
    /// Whose.
    pub name: String,
    /// The packages; the fastest counts.
    pub candidates: Vec<PathBuf>,
}

/// The element type and scaling that a word names: `f16`, `bf16`, `e4m3` (rows are scaled),
/// `e4m3-tensor`, `e4m3-row`, `e4m3-block`; `fp8` and `f8e4m3` also mean e4m3.
///
/// # Errors
/// What is wrong with another word.
pub fn element(word: &str) -> Result<(DType, Scaling), String> {
    let (name, scaling) = match word.split_once('-') {
        Some((name, "tensor")) => (name, Scaling::Tensor),
        Some((name, "row")) => (name, Scaling::Row),
        Some((name, "block")) => (name, Scaling::Block),
        Some((_, other)) => return Err(format!("no scaling `{other}`; tensor, row or block")),
        None => (word, Scaling::None),
    };
    let dtype = match name {
        "e4m3" | "fp8" => DType::F8E4M3,
        other => other.parse().map_err(|e: String| e)?,
    };
    match (dtype, scaling) {
        (DType::F16 | DType::BF16, Scaling::None) => Ok((dtype, scaling)),
        (DType::F8E4M3, Scaling::None) => Ok((dtype, Scaling::Row)),
        (DType::F8E4M3, _) => Ok((dtype, scaling)),
        _ => Err("the type is f16, bf16 or e4m3, and only e4m3 is scaled".into()),
    }
}

impl std::str::FromStr for Case {
    type Err = String;

    /// Parses `M,N,K,DTYPE[,nt|nn[,PACKAGE...]]`, separated by commas or blanks.
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = |why: &str| format!("`{text}`: {why}; expected M,N,K,DTYPE[,nt|nn[,PACKAGE...]]");
        let parts: Vec<&str> = text
            .split([',', ' ', '\t'])
            .filter(|p| !p.is_empty())
            .collect();
        let (Some(sizes), Some(dtype)) = (parts.get(..3), parts.get(3)) else {
            return Err(bad("too short"));
        };
        let size = |s: &&str| s.parse::<u64>().ok().filter(|v| (1..=1 << 20).contains(v));
        let sizes: Option<Vec<u64>> = sizes.iter().map(size).collect();
        let Some([m, n, k]) = sizes.as_deref() else {
            return Err(bad("a size is 1 to 2^20"));
        };
        let (dtype, scaling) = element(dtype).map_err(|e| bad(&e))?;
        let transposed = match parts.get(4) {
            None | Some(&"nt") => true,
            Some(&"nn") if dtype.bytes() == 1 => return Err(bad("8-bit operands are nt")),
            Some(&"nn") => false,
            Some(_) => return Err(bad("the layout is nt or nn")),
        };
        let gemm = Gemm {
            m: *m,
            n: *n,
            k: *k,
            dtype,
            transposed,
            scaling,
        };
        let packages = parts.get(5..).unwrap_or_default();
        Ok(Case {
            gemm,
            label: String::new(),
            candidates: packages.iter().map(PathBuf::from).collect(),
            rivals: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_parse() {
        let case: Case = "8192,4096,1024,f16".parse().unwrap();
        assert_eq!(
            (case.gemm.m, case.gemm.n, case.gemm.k, case.gemm.transposed),
            (8192, 4096, 1024, true)
        );
        let case: Case = "16 32 64  bf16 nn p.axe q.axe".parse().unwrap();
        assert_eq!(
            (case.gemm.transposed, case.candidates),
            (false, vec!["p.axe".into(), "q.axe".into()])
        );
        let case: Case = "16,32,64,e4m3".parse().unwrap();
        assert_eq!(
            (case.gemm.dtype, case.gemm.out(), case.gemm.scaling),
            (DType::F8E4M3, DType::BF16, Scaling::Row)
        );
        let case: Case = "16,32,64,e4m3-block".parse().unwrap();
        assert_eq!(case.gemm.scaling, Scaling::Block);
        for bad in [
            "",
            "1,2,3",
            "0,1,1,f16",
            "1,1,1,i8",
            "1,1,1,f16,tt",
            "1,1,1,f16-row",
            "1,1,1,e4m3-column",
            "1,1,1,e4m3,nn",
            "1,1,1048577,f16",
        ] {
            assert!(bad.parse::<Case>().is_err(), "{bad}");
        }
    }
}
