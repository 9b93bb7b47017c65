//! Static checks of one kernel of a manifest.

use std::collections::BTreeSet;

use crate::manifest::{Kernel, ParamKind};
use crate::validate::{Check, check_align, check_file_name, check_name, fail};

/// The largest parameter list in bytes (CUDA C++ programming guide, "Compute capabilities",
/// since CUDA 12.1 on compute capability 7.0 and up).
pub const MAX_PARAM_BYTES: usize = 32_764;

/// Checks one kernel: its code, launch shape and parameter list.
pub(crate) fn check_kernel(at: &str, kernel: &Kernel) -> Check {
    let at = format!("{at} `{}`", kernel.name);
    if kernel.symbol.is_empty()
        || kernel
            .symbol
            .chars()
            .any(|c| c.is_control() || c.is_whitespace())
    {
        return fail(at, "the entry symbol is empty or has blanks");
    }
    let files = [&kernel.cubin, &kernel.ptx, &kernel.program];
    if files.iter().all(|file| file.is_none()) {
        return fail(at, "a kernel has a cubin, PTX, or both");
    }
    for file in files.into_iter().flatten().chain(&kernel.sources) {
        check_file_name(&at, file)?;
    }
    check_block(&at, kernel.block)?;
    if let Some(cluster) = kernel.cluster {
        let blocks = cluster.iter().try_fold(1u32, |n, d| n.checked_mul(*d));
        if !blocks.is_some_and(|n| (1..=16).contains(&n)) {
            return fail(at, format!("a cluster has 1 to 16 blocks, got {cluster:?}"));
        }
    }
    let mut names = BTreeSet::new();
    let mut offset = 0usize;
    for param in &kernel.params {
        check_name(&format!("{at}.params"), &param.name)?;
        if !names.insert(&param.name) {
            return fail(at, format!("parameter `{}` is declared twice", param.name));
        }
        let at = format!("{at}.params `{}`", param.name);
        let (bytes, align) = match &param.kind {
            ParamKind::Pointer { align, .. } => {
                check_align(&at, *align)?;
                (8, 8)
            }
            ParamKind::Scalar { ty } => (ty.bytes(), ty.bytes()),
            ParamKind::TensorMap { map, .. } => {
                map.check().or_else(|e| fail(at.as_str(), e.0))?;
                (128, 64)
            }
        };
        offset = offset.next_multiple_of(align) + bytes;
        if offset > MAX_PARAM_BYTES {
            return fail(
                format!("{at}.params"),
                format!("parameters take over {MAX_PARAM_BYTES} bytes"),
            );
        }
    }
    Ok(())
}

/// Block limits of every compute capability (CUDA C++ programming guide, "Technical
/// specifications per compute capability").
fn check_block(at: &str, [x, y, z]: [u32; 3]) -> Check {
    let threads = x.checked_mul(y).and_then(|n| n.checked_mul(z));
    if z > 64 || !threads.is_some_and(|n| (1..=1024).contains(&n)) {
        return fail(
            at,
            format!("a block has 1 to 1024 threads, at most 64 in z, got [{x}, {y}, {z}]"),
        );
    }
    Ok(())
}
