//! What a target gives to those who make kernel packages of modules: its pipeline, the parameters of its launches, its
//! assembler. `axe compile` knows targets by this trait alone; `axe-targets` lists them.

use axe_package::{Access, Arg, Expr, Kernel, Key, Param};
use axe_passes::PassResult;
use axe_passes::ir::Op;
use melior::ir::Module;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::time::Duration;

/// How a target's kernels come into a package.
pub trait Toolchain: Sync {
    /// The package's kind of target: `nvidia`.
    fn kind(&self) -> &'static str;

    /// The chips to compile for.
    fn chips(&self) -> Vec<&'static str>;

    /// The passes from linalg on tensors to the target's code, as `--pass-pipeline` takes them.
    fn pipeline(&self, chip: &str) -> String;

    /// The first of them: from linalg on tensors to logical operators, printing what is decided.
    fn explained_to_logical(&self, chip: &str) -> String;

    /// The code that the pipeline left in the module; `None` when it has no kernels.
    ///
    /// # Errors
    /// What is missing.
    fn code(&self, module: &Module<'_>) -> Result<Option<String>, String>;

    /// Checks that the code does what its kernels are for; those of the symbols `writing` have results to write.
    ///
    /// # Errors
    /// What is missing.
    fn complete(&self, code: &str, writing: &[&str]) -> Result<(), Box<dyn Error + Send + Sync>>;

    /// The file of a package that holds the code.
    fn code_file(&self) -> &'static str;

    /// Whether kernels are programs as data, each launched once, rather than grids of threads.
    fn has_programs(&self) -> bool {
        false
    }

    /// The parameters that a kernel has beyond its launch's operands, such as tensor maps, in order. `memory` and `scalars` are
    /// the operands that are tensors and integers, by their place.
    ///
    /// # Errors
    /// At a launch that the pipeline did not write.
    fn parameters<'c>(
        &self,
        launch: Op<'c>,
        memory: &BTreeMap<usize, Memory>,
        scalars: &BTreeMap<usize, Expr>,
    ) -> PassResult<'c, Vec<(Param, Arg)>>;

    /// Machine code for the kernels: tells each where its code is and what it uses. `assembler` is the program to ask;
    /// without one the target looks for its own.
    ///
    /// # Errors
    /// What the assembler says, or that the one that is asked for is not there.
    fn assemble(
        &self,
        code: &str,
        chip: &str,
        kernels: &mut [Kernel],
        assembler: Option<&Path>,
    ) -> Result<Assembled, Box<dyn Error + Send + Sync>>;

    /// At most `limit` plans that are worth timing for a key of the database of plans, as `axe.plan` takes them, the cost
    /// model's own choice first; none where the target is not tuned.
    fn candidates(&self, key: &Key, limit: usize) -> Vec<String> {
        let _ = (key, limit);
        Vec::new()
    }

    /// The operators of a logical module that the chip's database can have entries for, each once, in order; and why it
    /// cannot for the others.
    fn tunable(&self, module: Op<'_>, chip: &str) -> (Vec<Key>, Vec<String>) {
        let _ = (module, chip);
        (Vec::new(), Vec::new())
    }
}

/// An operand of a launch in memory, by its place among the kernel's arguments.
#[derive(Clone, Debug)]
pub struct Memory {
    /// The memory's name.
    pub name: String,
    /// How the kernel uses it.
    pub access: Access,
    /// The leading extent, which may be known at run time.
    pub leading: Expr,
}

/// What an assembler made.
#[derive(Clone, Debug, Default)]
pub struct Assembled {
    /// Files of the package, by name.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Its warnings, or that there is no assembler.
    pub warnings: Vec<String>,
    /// How long it took; zero without one.
    pub elapsed: Duration,
}
