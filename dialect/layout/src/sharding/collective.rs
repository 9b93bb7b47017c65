//! The steps that take one distribution to another, and what each moves.

use std::fmt;

use super::mesh::Mesh;
use super::spec::{AxisRef, Reduction, Sharding};

/// One collective over groups of devices that differ in the named mesh digits only. Groups are ordered
/// by those digits, the first the major one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Collective {
    /// Every device keeps its part of dimension `dim`; nothing moves.
    Slice {
        /// Tensor dimension that is cut.
        dim: usize,
        /// Digits that number the parts.
        axes: Vec<AxisRef>,
    },
    /// Every device drops its copy unless its digit is `at`; nothing moves.
    Drop {
        /// The digit along which one position stays.
        axis: AxisRef,
        /// That position.
        at: i64,
    },
    /// Tiles of a group are concatenated along `dim` on all its devices.
    AllGather {
        /// Tensor dimension that becomes whole.
        dim: usize,
        /// Digits that numbered the tiles.
        axes: Vec<AxisRef>,
    },
    /// The parts of a group are reduced, and each device keeps one tile of the result along `dim`.
    ReduceScatter {
        /// Tensor dimension that is cut.
        dim: usize,
        /// Digits of the group.
        axes: Vec<AxisRef>,
        /// How the parts combine.
        reduction: Reduction,
    },
    /// The parts of a group are reduced on all its devices.
    AllReduce {
        /// Digits of the group.
        axes: Vec<AxisRef>,
        /// How the parts combine.
        reduction: Reduction,
    },
    /// Each device cuts its tile along `split`, sends part `j` to device `j` of its group, and
    /// concatenates what it receives along `concat`.
    AllToAll {
        /// Tensor dimension that is cut.
        split: usize,
        /// Tensor dimension that becomes whole.
        concat: usize,
        /// Digits of the group.
        axes: Vec<AxisRef>,
    },
    /// Whole tiles move: device `target` receives the tile of device `source` (row-major mesh
    /// positions; devices that keep their tile are left out).
    Permute {
        /// Pairs (source, target).
        pairs: Vec<(i64, i64)>,
    },
    /// The device whose place in its group is `root` sends its tile to the group.
    Broadcast {
        /// Digits of the group.
        axes: Vec<AxisRef>,
        /// Place that holds the data.
        root: i64,
    },
    /// Values become parts of a pending reduction whose result they are; nothing moves. Of copies, the
    /// first device of the group keeps its tile and the others hold the reduction's identity (all keep
    /// theirs where a mean, a largest or a smallest of copies is taken). With `dim`, the devices of a
    /// group hold one tile along it each: every device takes the tile of the whole group, with identities
    /// where its own is not (its own times the size of the group for a mean).
    Part {
        /// Tensor dimension that becomes whole, where the digits split one.
        dim: Option<usize>,
        /// Digits of the group.
        axes: Vec<AxisRef>,
        /// How the parts combine.
        reduction: Reduction,
    },
}

/// A collective, what it costs and what it leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What is done.
    pub collective: Collective,
    /// Bytes that the busiest device receives: `(p-1)/p` of the gathered result for gathers,
    /// scatters and all-to-alls of `p` devices, twice that for an all-reduce, the tile for a permute
    /// or a broadcast. Rings attain these bounds.
    pub bytes_per_device: u64,
    /// The distribution afterwards.
    pub after: Sharding,
}

impl Collective {
    /// The name that compilers use: `all-gather`, `reduce-scatter`, ...
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Slice { .. } => "slice",
            Self::Drop { .. } => "drop",
            Self::AllGather { .. } => "all-gather",
            Self::ReduceScatter { .. } => "reduce-scatter",
            Self::AllReduce { .. } => "all-reduce",
            Self::AllToAll { .. } => "all-to-all",
            Self::Permute { .. } => "permute",
            Self::Broadcast { .. } => "broadcast",
            Self::Part { .. } => "to-partial",
        }
    }

    /// The step in words, mesh axes by their names.
    #[must_use]
    pub fn describe(&self, mesh: &Mesh) -> String {
        let axes = |axes: &[AxisRef]| {
            let names: Vec<String> = axes.iter().map(|axis| axis_name(mesh, axis)).collect();
            names.join(",")
        };
        let name = self.name();
        match self {
            Self::Slice { dim, axes: over } | Self::AllGather { dim, axes: over } => {
                format!("{name} dim {dim} over {}", axes(over))
            }
            Self::ReduceScatter {
                dim,
                axes: over,
                reduction,
            } => {
                format!(
                    "{name} ({}) dim {dim} over {}",
                    reduction.name(),
                    axes(over)
                )
            }
            Self::AllReduce {
                axes: over,
                reduction,
            } => {
                format!("{name} ({}) over {}", reduction.name(), axes(over))
            }
            Self::AllToAll {
                split,
                concat,
                axes: over,
            } => {
                format!(
                    "{name} split dim {split}, concat dim {concat} over {}",
                    axes(over)
                )
            }
            Self::Drop { axis, at } => format!("{name} all but {}={at}", axis_name(mesh, axis)),
            Self::Broadcast { axes: over, root } => {
                format!("{name} from {}={root}", axes(over))
            }
            Self::Part {
                dim,
                axes: over,
                reduction,
            } => {
                let dim = dim.map_or(String::new(), |dim| format!(" dim {dim}"));
                format!("{name} ({}){dim} over {}", reduction.name(), axes(over))
            }
            Self::Permute { pairs } => {
                format!("{name} {} of {} tiles", pairs.len(), mesh.devices())
            }
        }
    }
}

impl AxisRef {
    /// `x`, or `x:(2)2` for a part of it, as Shardy writes it.
    #[must_use]
    pub fn name(&self, mesh: &Mesh) -> String {
        axis_name(mesh, self)
    }
}

/// `x`, or `x:(2)2` for a part of it.
pub(crate) fn axis_name(mesh: &Mesh, role: &AxisRef) -> String {
    match mesh.axes().get(role.axis) {
        Some(axis) if axis.size == role.size => axis.name.clone(),
        Some(axis) => format!("{}:({}){}", axis.name, role.pre, role.size),
        None => format!("#{}", role.axis),
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.collective.describe(self.after.mesh());
        write!(f, "{words}: {} bytes per device", self.bytes_per_device)
    }
}
