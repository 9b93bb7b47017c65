//! Distributions as Axe layouts, and back.

use crate::{Axis, Coord, Iter, Layout};

use super::error::{Result, ShardingError, inexpressible, invalid};
use super::mesh::Mesh;
use super::spec::{AxisRef, Reduction, Sharding};

/// A layout read as a distribution: who holds which tile, and how a tile lies on its device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Which device holds which tile.
    pub sharding: Sharding,
    /// The layout of one tile on the axes that are not device axes.
    pub local: Layout,
}

const TILES: &str = "a sharding (equal contiguous tiles over a mesh)";

impl Sharding {
    /// The D/R/O layout: device iters before each dimension's memory iter, copies (and parts of
    /// pending reductions, which [`Sharding::partial`] marks) in R, positions in O; tiles are dense
    /// row-major on `m`.
    ///
    /// # Errors
    /// [`ShardingError::Layout`] when a stride does not fit 64 bits.
    pub fn to_layout(&self) -> Result<Layout> {
        let local = Layout::row_major(&self.local_shape())?;
        self.to_layout_with(&local)
    }

    /// As [`Sharding::to_layout`], with tiles laid out by `local`, which admits the tile's shape. Its
    /// swizzle, replicas and offset become the layout's.
    ///
    /// # Errors
    /// As [`Sharding::to_layout`]; `local` of another size, not groupable by the tile's shape, or on a
    /// device axis.
    pub fn to_layout_with(&self, local: &Layout) -> Result<Layout> {
        if let Some(axis) = local
            .axes()
            .iter()
            .find(|axis| self.mesh().has_device_axis(axis.name()))
        {
            return invalid(format!("the tile's own layout uses the device axis {axis}"));
        }
        let blocks = blocks(local, &self.local_shape())?;
        let mut shard = Vec::new();
        for (refs, block) in self.dims().iter().zip(blocks) {
            for role in refs {
                shard.push(self.device_iter(role)?);
            }
            shard.extend(block);
        }
        let mut replica = local.replica().to_vec();
        let copies = self.replicated_axes();
        let parts = self.partial().iter().map(|(role, _)| role);
        for role in copies.iter().chain(parts) {
            replica.push(self.device_iter(role)?);
        }
        let mut offset = local.offset().clone();
        for (device, value) in self.mesh().offset() {
            offset.add(Axis::new(device)?, *value)?;
        }
        for (role, at) in self.held() {
            let iter = self.device_iter(role)?;
            let moved = iter.stride.checked_mul(*at);
            offset.add(
                iter.axis,
                moved.ok_or(ShardingError::Overflow("a device number"))?,
            )?;
        }
        Ok(Layout::new(shard, replica, offset, local.swizzle())?)
    }

    fn device_iter(&self, role: &AxisRef) -> Result<Iter> {
        let Some(axis) = self.mesh().axes().get(role.axis) else {
            return invalid(format!("the mesh has no axis number {}", role.axis));
        };
        let stride = axis.stride.checked_mul(role.step(self.mesh()));
        let stride = stride.ok_or(ShardingError::Overflow("a device stride"))?;
        Ok(Iter::new(role.size, stride, Axis::new(&axis.device)?))
    }

    /// Reads a layout as a distribution of a tensor of `shape` over `mesh`. `partial` names the mesh
    /// axes whose copies are parts of a pending reduction, as D/R/O itself cannot say it.
    ///
    /// # Errors
    /// [`ShardingError::Inexpressible`] with the reason: tiles that are not contiguous (block-cyclic),
    /// device iters that are no digits of the mesh, devices that appear twice; or the errors of
    /// grouping by `shape`.
    pub fn from_layout(
        mesh: Mesh,
        shape: Vec<i64>,
        layout: &Layout,
        partial: &[(AxisRef, Reduction)],
    ) -> Result<Placed> {
        let mut dims = Vec::with_capacity(shape.len());
        let mut local = Vec::new();
        for (dim, block) in blocks(layout, &shape)?.into_iter().enumerate() {
            let mut refs = Vec::new();
            let mut inside = false;
            for iter in block.into_iter().filter(|iter| iter.extent > 1) {
                if !mesh.has_device_axis(iter.axis.name()) {
                    inside = true;
                    local.push(iter);
                } else if inside {
                    return inexpressible(
                        TILES,
                        format!(
                            "dimension {dim} is dealt out in rounds: {iter} follows a memory iter"
                        ),
                    );
                } else {
                    refs.extend(mesh.digits(&iter)?);
                }
            }
            dims.push(refs);
        }
        let mut free = Vec::new();
        let mut local_replica = Vec::new();
        for iter in layout.replica().iter().filter(|iter| iter.extent > 1) {
            if mesh.has_device_axis(iter.axis.name()) {
                free.extend(mesh.digits(iter)?);
            } else {
                local_replica.push(*iter);
            }
        }
        let (held, local_offset) = positions(&mesh, &dims, &free, layout.offset())?;
        let sharding = Self::new(mesh, shape, dims, partial.to_vec(), held)?;
        sharding.check_copies(&free)?;
        let local = Layout::new(local, local_replica, local_offset, layout.swizzle())?;
        Ok(Placed { sharding, local })
    }

    /// The copies and parts that the sharding has are those of R.
    fn check_copies(&self, free: &[AxisRef]) -> Result<()> {
        let parts = self.partial().iter().map(|(role, _)| *role);
        let want: i64 = self
            .replicated_axes()
            .iter()
            .copied()
            .chain(parts)
            .map(|r| r.size)
            .product();
        let have: i64 = free.iter().map(|role| role.size).product();
        if want != have {
            return inexpressible(
                TILES,
                format!("each element has {have} copies, the roles of the mesh axes leave {want}"),
            );
        }
        Ok(())
    }
}

impl Mesh {
    /// The mesh digits, major first, that an iter on a device axis runs over.
    pub(super) fn digits(&self, iter: &Iter) -> Result<Vec<AxisRef>> {
        let mut found = Vec::new();
        let (mut extent, mut stride) = (iter.extent, iter.stride);
        while extent > 1 {
            let Some((digit, step)) = self.digit_at(iter.axis, extent, stride) else {
                return inexpressible(
                    TILES,
                    format!(
                        "{iter} does not run over whole digits of the mesh {}",
                        self.describe()
                    ),
                );
            };
            extent /= digit.size;
            stride = step;
            found.push(digit);
        }
        found.reverse();
        Ok(found)
    }

    /// The digit whose neighbours are `stride` apart, and the stride that would continue it.
    fn digit_at(&self, device: Axis, extent: i64, stride: i64) -> Option<(AxisRef, i64)> {
        self.axes().iter().enumerate().find_map(|(index, axis)| {
            if axis.device != device.name() || axis.size == 1 || axis.stride == 0 {
                return None;
            }
            let below = stride.checked_div(axis.stride)?;
            let steps = stride % axis.stride == 0 && below >= 1 && axis.size % below == 0;
            let room = axis.size / below.max(1);
            if !steps || room == 1 {
                return None;
            }
            let size = if extent <= room { extent } else { room };
            if room % size != 0 || extent % size != 0 {
                return None;
            }
            let continued = stride.checked_mul(size)?;
            Some((
                AxisRef {
                    axis: index,
                    pre: room / size,
                    size,
                },
                continued,
            ))
        })
    }

    /// `x=2, y=4`.
    #[must_use]
    pub fn describe(&self) -> String {
        let axes: Vec<String> = self
            .axes()
            .iter()
            .map(|axis| format!("{}={}", axis.name, axis.size))
            .collect();
        axes.join(", ")
    }
}

type Held = Vec<(AxisRef, i64)>;

/// Splits the offset into positions along the digits that no iter uses, and the rest.
fn positions(
    mesh: &Mesh,
    dims: &[Vec<AxisRef>],
    free: &[AxisRef],
    offset: &Coord,
) -> Result<(Held, Coord)> {
    let used: Vec<AxisRef> = dims.iter().flatten().chain(free).copied().collect();
    // Give every digit a role for a moment; what is left over are the digits that nobody runs over.
    let roles = used.iter().map(|role| (*role, Reduction::Sum)).collect();
    let unused =
        Sharding::new(mesh.clone(), Vec::new(), Vec::new(), roles, Vec::new())?.replicated_axes();
    let mut rest = offset.clone();
    for (device, value) in mesh.offset() {
        let moved = value
            .checked_neg()
            .ok_or(ShardingError::Overflow("a device number"))?;
        rest.add(Axis::new(device)?, moved)?;
    }
    let mut held = Vec::new();
    let stride = |role: &AxisRef| {
        mesh.axes()
            .get(role.axis)
            .map_or(1, |a| a.stride.saturating_mul(role.step(mesh)))
    };
    let mut order = unused;
    order.sort_by_key(|role| std::cmp::Reverse(stride(role)));
    for role in order {
        let Some(mesh_axis) = mesh.axes().get(role.axis) else {
            continue;
        };
        let device = Axis::new(&mesh_axis.device)?;
        let step = stride(&role);
        if step <= 0 {
            return inexpressible(TILES, "a mesh axis with a stride below 1");
        }
        let at = (rest.get(device) / step).clamp(0, role.size - 1);
        rest.add(device, -(at * step))?;
        held.push((role, at));
    }
    if let Some((axis, value)) = rest
        .iter()
        .find(|(axis, _)| mesh.has_device_axis(axis.name()))
    {
        return inexpressible(TILES, format!("offset {value}@{axis} leaves the mesh"));
    }
    Ok((held, rest))
}

/// The shard iters of each dimension.
fn blocks(layout: &Layout, shape: &[i64]) -> Result<Vec<Vec<Iter>>> {
    let grouped = layout.group(shape)?;
    Ok(grouped.blocks().map(<[Iter]>::to_vec).collect())
}
