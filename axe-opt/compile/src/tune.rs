//! Candidates for a tuner: packages that compute one matrix product by different plans.
//!
//! A candidate's manifest names its plan (`Manifest::candidate`), as `axe.plan` and the database of plans take it,
//! so that whoever times the packages needs no compiler.

use crate::{CompileError, Compiled, Options, Source, compile_with};
use axe_context::{context, parse, run_passes};
use axe_package::{DType, Key, OperandOrder, TunedOp};
use axe_passes::ir::Op;

/// A package to compile.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The product.
    pub key: Key,
    /// How to compute it: an `axe.plan`, and its place among the product's candidates, the cost model's choice first;
    /// `None`: as the compiler chooses, from the database or by the cost model.
    pub plan: Option<(String, usize)>,
}

/// At most `limit` candidates for each product, and what there is to say of products without any.
#[must_use]
pub fn jobs(keys: &[Key], limit: usize) -> (Vec<Job>, Vec<String>) {
    let (mut jobs, mut notes) = (Vec::new(), Vec::new());
    for key in keys {
        let toolchain = axe_targets::toolchain(&key.chip);
        let found = toolchain.map_or_else(Vec::new, |of| of.candidates(key, limit));
        if found.is_empty() {
            notes.push(format!(
                "{}: there are no kernels to choose from",
                product(key)
            ));
        }
        jobs.extend(found.into_iter().enumerate().map(|(number, plan)| Job {
            key: key.clone(),
            plan: Some((plan, number)),
        }));
    }
    (jobs, notes)
}

/// A job for each product, computed as the compiler chooses.
#[must_use]
pub fn chosen(keys: &[Key]) -> Vec<Job> {
    let job = |key: &Key| Job {
        key: key.clone(),
        plan: None,
    };
    keys.iter().map(job).collect()
}

/// `8192x4096x4096-bf16-nt`.
fn product(key: &Key) -> String {
    let Key { m, n, k, .. } = key;
    let scaling = match key.op {
        TunedOp::Gemm => "",
        TunedOp::GemmTensorScaled => "-tensor",
        TunedOp::GemmRowScaled => "-row",
        TunedOp::GemmBlockScaled => "-block",
        TunedOp::GroupedGemm => "-grouped",
    };
    let groups = match key.groups {
        1 => String::new(),
        groups => format!("x{groups}"),
    };
    format!(
        "{m}x{n}x{k}{groups}-{}{scaling}-{}",
        key.dtype.name(),
        order(key.layout)
    )
}

fn order(layout: OperandOrder) -> &'static str {
    match layout {
        OperandOrder::Nn => "nn",
        OperandOrder::Nt => "nt",
        OperandOrder::Tn => "tn",
        OperandOrder::Tt => "tt",
    }
}

/// The products of a module, as keys of the database, and why others have none.
///
/// # Errors
/// An unknown target, and the diagnostics of MLIR.
pub fn products<'s>(
    source: impl Into<Source<'s>>,
    target: &str,
) -> Result<(Vec<Key>, Vec<String>), CompileError> {
    let Some(toolchain) = axe_targets::toolchain(target) else {
        return Err(CompileError::unknown_target(target));
    };
    let context = context();
    let mut module = parse(&context, source)?;
    run_passes(
        &context,
        &mut module,
        "convert-linalg-to-axe{for-kernels=true},canonicalize,cse",
    )?;
    // SAFETY: the operation lives as long as the module.
    let op = unsafe { Op::from_raw(module.as_operation().to_raw()) };
    Ok(toolchain.tunable(op, target))
}

impl Job {
    /// The name of its package.
    #[must_use]
    pub fn name(&self) -> String {
        let product = product(&self.key);
        match &self.plan {
            Some((_, number)) => format!("{product}-{number:02}.axe"),
            None => format!("{product}.axe"),
        }
    }

    /// Its plan.
    #[must_use]
    pub fn plan(&self) -> Option<&str> {
        self.plan.as_ref().map(|(plan, _)| plan.as_str())
    }

    /// The attributes of its product.
    fn attributes(&self, flags: &[&str]) -> String {
        let plan = self.plan().map(|plan| format!("axe.plan = {plan}"));
        let flags = flags.iter().map(|flag| (*flag).to_owned());
        flags.chain(plan).collect::<Vec<_>>().join(", ")
    }

    /// The module that it is compiled from: `C = A W` with sums in f32, rounded once; 8-bit operands have scales,
    /// `f(A, A's scales, W, W's scales)`.
    #[must_use]
    pub fn source(&self) -> String {
        match self.key.op {
            TunedOp::GemmRowScaled => return self.row_scaled(),
            TunedOp::GemmBlockScaled => return self.block_scaled(),
            TunedOp::GroupedGemm => return self.grouped(),
            TunedOp::Gemm | TunedOp::GemmTensorScaled => {}
        }
        let Key { m, n, k, .. } = self.key;
        let element = match self.key.dtype {
            DType::BF16 => "bf16",
            _ => "f16",
        };
        let (ta, tb) = match self.key.layout {
            OperandOrder::Nn => (false, false),
            OperandOrder::Nt => (false, true),
            OperandOrder::Tn => (true, false),
            OperandOrder::Tt => (true, true),
        };
        let tensor =
            |rows: u64, columns: u64, element: &str| format!("tensor<{rows}x{columns}x{element}>");
        let stored = |swap: bool, rows, columns| match swap {
            true => tensor(columns, rows, element),
            false => tensor(rows, columns, element),
        };
        let (a, w) = (stored(ta, m, k), stored(tb, k, n));
        let (sums, c) = (tensor(m, n, "f32"), tensor(m, n, element));
        let flags = [(ta, "trans_a"), (tb, "trans_b")];
        let flags: Vec<_> = flags
            .iter()
            .filter(|(set, _)| *set)
            .map(|(_, name)| *name)
            .collect();
        format!(
            "func.func @gemm(%a: {a}, %w: {w}) -> {c} {{\n  \
             %sums = axe.gemm %a, %w {{{attributes}}} : {a}, {w} -> {sums}\n  \
             %c = axe.cast %sums : {sums} -> {c}\n  \
             return %c : {c}\n}}\n",
            attributes = self.attributes(&flags)
        )
    }

    /// A scale for each row of A, and one for each row of W.
    fn row_scaled(&self) -> String {
        let Key { m, n, k, .. } = self.key;
        let operand = |rows: u64| format!("tensor<{rows}x{k}xf8E4M3FN>");
        let (a, w) = (operand(m), operand(n));
        let (sums, c) = (
            format!("tensor<{m}x{n}xf32>"),
            format!("tensor<{m}x{n}xbf16>"),
        );
        format!(
            "func.func @gemm(%a: {a}, %sa: tensor<{m}xf32>, %w: {w}, %sw: tensor<{n}xf32>) -> {c} {{\n  \
             %sums = axe.gemm %a, %w {{{attributes}}} : {a}, {w} -> {sums}\n  \
             %rows = axe.broadcast %sa dims [1] : tensor<{m}xf32> -> {sums}\n  \
             %columns = axe.broadcast %sw dims [0] : tensor<{n}xf32> -> {sums}\n  \
             %c = axe.map ins(%sums, %rows, %columns : {sums}, {sums}, {sums}) -> {c} {{\n  \
             ^bb0(%sum: f32, %row: f32, %column: f32):\n    \
             %once = arith.mulf %sum, %row : f32\n    \
             %twice = arith.mulf %once, %column : f32\n    \
             %rounded = arith.truncf %twice : f32 to bf16\n    \
             axe.yield %rounded : bf16\n  \
             }}\n  \
             return %c : {c}\n}}\n",
            attributes = self.attributes(&["trans_b"])
        )
    }

    /// A scale for each 1 x 128 of A, rows innermost, and for each 128 x 128 of W.
    fn block_scaled(&self) -> String {
        let Key { m, n, k, .. } = self.key;
        let operand = |rows: u64| format!("tensor<{rows}x{k}xf8E4M3FN>");
        let (a, w) = (operand(m), operand(n));
        let (nb, kb) = (n.div_ceil(128), k.div_ceil(128));
        let (sa, sw) = (
            format!("tensor<{kb}x{m}xf32>"),
            format!("tensor<{nb}x{kb}xf32>"),
        );
        let (sums, c) = (
            format!("tensor<{m}x{n}xf32>"),
            format!("tensor<{m}x{n}xbf16>"),
        );
        format!(
            "func.func @gemm(%a: {a}, %sa: {sa}, %w: {w}, %sw: {sw}) -> {c} {{\n  \
             %sums = axe.scaled_gemm %a, %w, %sa, %sw {{{attributes}}} : {a}, {w}, {sa}, {sw} -> {sums}\n  \
             %c = axe.cast %sums : {sums} -> {c}\n  \
             return %c : {c}\n}}\n",
            attributes = self.attributes(&["trans_scale_a"])
        )
    }

    /// Groups of as many rows each, or of one more, as constants: times of data are those of such groups.
    fn grouped(&self) -> String {
        let Key {
            m, n, k, groups, ..
        } = self.key;
        let element = match self.key.dtype {
            DType::BF16 => "bf16",
            _ => "f16",
        };
        let (transposed, [rows, columns]) = match self.key.layout {
            OperandOrder::Nt | OperandOrder::Tt => (true, [n, k]),
            OperandOrder::Nn | OperandOrder::Tn => (false, [k, n]),
        };
        let flags: &[_] = if transposed { &["trans_b"] } else { &[] };
        let (a, c) = (
            format!("tensor<{m}x{k}x{element}>"),
            format!("tensor<{m}x{n}x{element}>"),
        );
        let w = format!("tensor<{groups}x{rows}x{columns}x{element}>");
        let offsets = format!("tensor<{}xi32>", groups + 1);
        let even: Vec<_> = (0..=groups)
            .map(|group| {
                (u128::from(m) * u128::from(group) / u128::from(groups.max(1))).to_string()
            })
            .collect();
        format!(
            "func.func @gemm(%a: {a}, %w: {w}) -> {c} {{\n  \
             %offsets = arith.constant dense<[{even}]> : {offsets}\n  \
             %c = axe.grouped_gemm %a, %w, %offsets {{{attributes}}} : {a}, {w}, {offsets} -> {c}\n  \
             return %c : {c}\n}}\n",
            even = even.join(", "),
            attributes = self.attributes(flags)
        )
    }

    /// Compiles it.
    ///
    /// # Errors
    /// As [`crate::compile`]; a plan may ask for more than the assembler can give.
    pub fn compile(&self) -> Result<Compiled, CompileError> {
        let options = Options {
            candidate: self.plan(),
            ..Options::for_target(&self.key.chip)
        };
        compile_with(&self.source(), options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Elapsed;

    fn key(m: u64, n: u64, k: u64, layout: OperandOrder) -> Key {
        Key {
            chip: "sm_90a".to_owned(),
            op: TunedOp::Gemm,
            dtype: DType::BF16,
            layout,
            m,
            n,
            k,
            groups: 1,
        }
    }

    #[test]
    fn every_candidate_of_small_products_compiles() {
        for (layout, limit) in [(OperandOrder::Nt, 6), (OperandOrder::Nn, 3)] {
            let (jobs, notes) = jobs(&[key(256, 384, 128, layout)], limit);
            assert!(
                notes.is_empty() && jobs.len() == limit,
                "{notes:?} {jobs:?}"
            );
            for job in jobs {
                let compiled = job
                    .compile()
                    .unwrap_or_else(|error| panic!("{job:?}: {error}"));
                let manifest = compiled.package.manifest();
                assert_eq!(manifest.candidate.as_deref(), job.plan());
                assert_eq!(manifest.kernels.len(), 1);
                let assembled = manifest.kernels.iter().any(|k| k.cubin.is_some());
                let Elapsed {
                    compiler,
                    assembler,
                } = compiled.elapsed;
                assert!(!compiler.is_zero() && assembler.is_zero() != assembled);
            }
        }
    }

    #[test]
    fn scaled_products_compile() {
        for (op, name) in [
            (TunedOp::GemmRowScaled, "row"),
            (TunedOp::GemmBlockScaled, "block"),
        ] {
            let scaled = Key {
                op,
                dtype: DType::F8E4M3,
                ..key(300, 400, 272, OperandOrder::Nt)
            };
            let (jobs, notes) = jobs(std::slice::from_ref(&scaled), 3);
            assert!(notes.is_empty() && jobs.len() == 3, "{notes:?} {jobs:?}");
            for job in jobs {
                assert!(
                    job.name().contains(name) && job.plan().unwrap().contains("wgmma"),
                    "{job:?}"
                );
                let compiled = job.compile().unwrap();
                assert_eq!(compiled.package.manifest().inputs.len(), 4);
                let (keys, _) = products(&job.source(), "sm_90a").unwrap();
                assert_eq!(keys, std::slice::from_ref(&scaled));
            }
        }
    }

    #[test]
    fn products_of_groups_compile() {
        let grouped = Key {
            op: TunedOp::GroupedGemm,
            groups: 3,
            ..key(200, 136, 72, OperandOrder::Nn)
        };
        let (jobs, notes) = jobs(std::slice::from_ref(&grouped), 3);
        assert!(notes.is_empty() && jobs.len() == 3, "{notes:?} {jobs:?}");
        for job in jobs {
            assert!(job.name().starts_with("200x136x72x3-bf16-grouped-nn"));
            assert!(job.plan().unwrap().contains("\"grouped\""), "{job:?}");
            job.compile().unwrap();
            let (keys, _) = products(&job.source(), "sm_90a").unwrap();
            assert_eq!(keys, std::slice::from_ref(&grouped));
        }
    }

    #[test]
    fn plans_come_out_as_they_went_in() {
        // The planner, asked to explain nothing, uses a candidate's own plan or refuses the module.
        let (jobs, _) = jobs(&[key(16, 512, 256, OperandOrder::Nt)], 40);
        assert!(
            jobs.iter()
                .any(|job| job.plan().unwrap().contains("\"mma\"")),
            "{jobs:?}"
        );
        assert!(
            jobs.iter()
                .any(|job| job.plan().unwrap().contains("\"wgmma\"")),
            "{jobs:?}"
        );
        for job in &jobs {
            let planned = axe_cpu_transform(&job.source());
            assert!(planned.contains("axe.kernel"), "{planned}");
        }
    }

    fn axe_cpu_transform(text: &str) -> String {
        axe_context::transform(text, "axe-plan-kernels{target=sm_90a tuned=none}").unwrap()
    }

    #[test]
    fn the_compilers_own_choice_has_no_plan() {
        let keys = [key(256, 384, 128, OperandOrder::Tn)];
        let chosen = chosen(&keys);
        assert_eq!(chosen.len(), 1);
        assert!(!chosen[0].source().contains("axe.plan"));
        assert_eq!(chosen[0].name(), "256x384x128-bf16-tn.axe");
        let compiled = chosen[0].compile().unwrap();
        assert_eq!(compiled.package.manifest().candidate, None);
    }

    #[test]
    fn products_of_a_module_are_keys() {
        let text = "func.func @f(%a: tensor<64x32xf16>, %w: tensor<32x48xf16>, %x: tensor<4x8xf32>, %y: tensor<8x8xf32>)
            -> (tensor<64x48xf32>, tensor<64x48xf32>, tensor<4x8xf32>) {
          %p = axe.gemm %a, %w : tensor<64x32xf16>, tensor<32x48xf16> -> tensor<64x48xf32>
          %q = axe.gemm %a, %w acc %p : tensor<64x48xf32> : tensor<64x32xf16>, tensor<32x48xf16> -> tensor<64x48xf32>
          %r = axe.gemm %x, %y : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
          return %p, %q, %r : tensor<64x48xf32>, tensor<64x48xf32>, tensor<4x8xf32>
        }";
        let (keys, notes) = products(text, "sm_90a").unwrap();
        let expected = Key {
            dtype: DType::F16,
            ..key(64, 48, 32, OperandOrder::Nn)
        };
        assert_eq!(keys, [expected]);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(products(text, "cpu").is_err());
        assert!(products("func.func", "sm_90a").is_err());
    }

    #[test]
    fn products_without_kernels_are_named() {
        let scaled = Key {
            op: TunedOp::GemmTensorScaled,
            dtype: DType::F8E4M3,
            ..key(64, 64, 64, OperandOrder::Nt)
        };
        let (jobs, notes) = jobs(&[scaled], 4);
        assert!(jobs.is_empty());
        assert!(notes[0].contains("64x64x64"), "{notes:?}");
    }
}
