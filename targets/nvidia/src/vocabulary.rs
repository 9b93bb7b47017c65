//! The axes and memory spaces of NVIDIA GPUs (PTX ISA, "Programming Model" and "State Spaces").

use axe_dialect::vocabulary::{AxisDeclaration, AxisKind, declare_axis, declare_space};

/// Threads in a warp.
pub const WARP: i64 = axe_layout::WARP as i64;
/// Warps in a warpgroup (PTX ISA 9.7.15, wgmma).
pub const WARPGROUP_WARPS: i64 = 4;
/// Threads in a warpgroup.
pub const WARPGROUP: i64 = WARPGROUP_WARPS * WARP;

const _: () = assert!(matches!(axe_dialect::Level::Warp.threads(), Some(WARP)));
const _: () = assert!(matches!(
    axe_dialect::Level::Warpgroup.threads(),
    Some(WARPGROUP)
));

/// Declares the vocabulary to the dialect.
pub(crate) fn declare() {
    let thread = |parent| AxisDeclaration {
        kind: AxisKind::Thread,
        parent,
    };
    let memory = |parent| AxisDeclaration {
        kind: AxisKind::Memory,
        parent,
    };
    declare_axis("lane", thread(Some(("warp", WARP))));
    declare_axis("warp", thread(Some(("warpgroup", WARPGROUP_WARPS))));
    declare_axis("warpgroup", thread(Some(("cta", 8))));
    declare_axis("thread", thread(Some(("cta", 1024))));
    declare_axis("cta", thread(Some(("cluster", 16))));
    declare_axis("cluster", thread(None));
    declare_axis("reg", memory(None));
    declare_axis("tlane", memory(None));
    declare_axis("tcol", memory(None));
    for space in ["shared", "cluster_shared", "local", "tensor"] {
        declare_space(space);
    }
}

/// The schedule of a map that multiplies by factors which are nearly always 1: `axe.map` has it only where it is asked for.
pub(crate) const RESCALE: &str = "rescale";
