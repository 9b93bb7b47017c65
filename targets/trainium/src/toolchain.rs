//! Kernel packages for Trainium: kernels as data, which the simulator executes, and their NKI source.

use crate::{pipeline, read};
use axe_package::{Arg, Expr, Kernel, Param};
use axe_passes::PassResult;
use axe_passes::ir::Op;
use axe_toolchain::{Assembled, Memory, Toolchain};
use axe_trn::facts::chip::CHIPS;
use axe_trn::nki::{self, Generation};
use axe_trn::program::Program;
use melior::ir::Module;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

/// The package's file of kernels as data.
pub const PROGRAMS: &str = "kernels.json";

/// Trainium's toolchain.
pub(crate) struct Trainium;

impl Toolchain for Trainium {
    fn kind(&self) -> &'static str {
        "trainium"
    }

    fn chips(&self) -> Vec<&'static str> {
        CHIPS.iter().map(|chip| chip.name).collect()
    }

    fn pipeline(&self, chip: &str) -> String {
        pipeline::passes(chip, "")
    }

    fn explained_to_logical(&self, _: &str) -> String {
        axe_passes::pipeline::logical(" explain=true")
    }

    fn code(&self, module: &Module<'_>) -> Result<Option<String>, String> {
        let programs = read::kernels(module).map_err(|error| error.message)?;
        if programs.is_empty() {
            return Ok(None);
        }
        serde_json::to_string_pretty(&programs)
            .map(Some)
            .map_err(|error| error.to_string())
    }

    fn complete(&self, _: &str, _: &[&str]) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }

    fn code_file(&self) -> &'static str {
        PROGRAMS
    }

    fn has_programs(&self) -> bool {
        true
    }

    fn parameters<'c>(
        &self,
        _: Op<'c>,
        _: &BTreeMap<usize, Memory>,
        _: &BTreeMap<usize, Expr>,
    ) -> PassResult<'c, Vec<(Param, Arg)>> {
        Ok(Vec::new())
    }

    /// NKI source of both generations.
    fn assemble(
        &self,
        code: &str,
        _: &str,
        kernels: &mut [Kernel],
        _: Option<&Path>,
    ) -> Result<Assembled, Box<dyn Error + Send + Sync>> {
        let programs: Vec<Program> = serde_json::from_str(code)?;
        let mut made = Assembled::default();
        for (generation, file) in [(Generation::New, "nki.py"), (Generation::Old, "nki-old.py")] {
            let sources: Result<Vec<_>, _> =
                programs.iter().map(|p| nki::print(p, generation)).collect();
            made.files
                .insert(file.to_owned(), sources?.join("\n\n").into_bytes());
            kernels
                .iter_mut()
                .for_each(|kernel| kernel.sources.push(file.to_owned()));
        }
        Ok(made)
    }
}
