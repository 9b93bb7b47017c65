//! Folders of Triton's cache: a kernel's PTX beside a JSON file with its launch.

use super::{Bare, BareError, Fill, Value};
use crate::Module;
use axe_package::DType;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// What Triton writes about a compiled kernel, as far as a launch needs it (`triton/compiler/compiler.py`,
/// the metadata of `CompiledKernel`). Versions differ in what they write: all of it may lack.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Triton {
    /// Kernel's name.
    pub name: Option<String>,
    /// Warps of a CTA, those of warp specialisation apart.
    pub num_warps: Option<u32>,
    /// CTAs of a cluster.
    pub num_ctas: Option<u32>,
    /// Extents of the cluster.
    pub cluster_dims: Option<Vec<u32>>,
    /// Dynamic shared memory in bytes.
    pub shared: u64,
    /// Scratch memory in bytes: of each CTA.
    pub global_scratch_size: u64,
    /// Scratch memory of the profiler in bytes: of each CTA.
    pub profile_scratch_size: u64,
}

impl Triton {
    /// The kernel of a folder: its PTX file and what the JSON file beside it says.
    ///
    /// # Errors
    /// [`BareError::Kernel`] if there is not exactly one PTX file (with `name`: of that name),
    /// [`BareError::File`] for what cannot be read.
    pub fn open(folder: &Path, name: Option<&str>) -> Result<(PathBuf, Self), BareError> {
        let file = |path: &Path, error| BareError::File {
            path: path.into(),
            error,
        };
        let entries = std::fs::read_dir(folder).map_err(|e| file(folder, e))?;
        let mut found: Vec<PathBuf> = entries
            .filter_map(|e| Some(e.ok()?.path()))
            .filter(|p| p.extension().is_some_and(|e| e == "ptx"))
            .filter(|p| name.is_none_or(|n| p.file_stem().is_some_and(|s| s == n)))
            .collect();
        found.sort();
        let [ptx] = found.as_slice() else {
            return Err(BareError::Kernel(format!(
                "{} holds {} PTX files{}: name one with --kernel",
                folder.display(),
                found.len(),
                name.map_or(String::new(), |n| format!(" named {n}"))
            )));
        };
        let json = ptx.with_extension("json");
        let text = std::fs::read_to_string(&json).map_err(|e| file(&json, e))?;
        let invalid = |e: serde_json::Error| file(&json, std::io::Error::other(e));
        Ok((ptx.clone(), serde_json::from_str(&text).map_err(invalid)?))
    }

    /// The launch of a module's kernel.
    ///
    /// # Errors
    /// As [`Bare::of`].
    pub fn kernel(&self, module: Module, grid: [u32; 3]) -> Result<Bare, BareError> {
        let block = self.num_warps.map(|w| [w.saturating_mul(32), 1, 1]);
        let name = self.name.as_deref();
        let required = name.and_then(|n| module.required_threads(n));
        let mut bare = Bare::of(module, name, grid, required.or(block))?;
        bare.smem = self.shared;
        bare.cluster = match (self.cluster_dims.as_deref(), self.num_ctas) {
            (Some(&[x, y, z]), _) => [x, y, z],
            (_, Some(n)) => [n.max(1), 1, 1],
            _ => [1, 1, 1],
        };
        Ok(bare)
    }

    /// The arguments that Triton's launcher adds behind the program's own: two scratch buffers.
    pub fn scratch(&self, bare: &mut Bare) {
        let ctas = bare.grid.iter().map(|&g| u64::from(g)).product::<u64>();
        let sizes = [self.global_scratch_size, self.profile_scratch_size];
        let names = ["global_scratch", "profile_scratch"];
        let missing = bare.params().len().saturating_sub(bare.args.len());
        for (name, size) in names.iter().zip(sizes).take(missing.min(2)) {
            let value = if size == 0 {
                Value::Integer(DType::U64, 0)
            } else {
                Value::Array {
                    dtype: DType::U8,
                    shape: vec![size.saturating_mul(ctas)],
                    fill: Fill::Unwritten,
                }
            };
            bare.arg(name, value);
        }
    }
}
