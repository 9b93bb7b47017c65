//! XLA's text of a sharding (`HloSharding::ToString`): `{replicated}`, `{maximal device=3}`, and tile
//! assignments, `{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}`.
//!
//! A tile assignment is an array of devices with one dimension for each of the tensor's, and more for
//! devices that hold the same tile: copies (`replicated`), or parts of a sum (`unreduced`). Devices are
//! numbered by their place in the mesh, row-major. `<=[4,2]T(1,0)` is `0..8` reshaped to 4x2, transposed,
//! and read in that order.

use super::error::{Result, ShardingError, inexpressible, invalid};
use super::mesh::Mesh;
use super::moves::merged;
use super::scan::Scanner;
use super::spec::{AxisRef, Reduction, Sharding};
use crate::{Axis, Iter, Layout};

const HLO: &str = "HloSharding";
/// The axis that numbers devices here.
const DEVICE: &str = "id";

/// What the devices along a dimension beyond the tensor's hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subgroup {
    Replicated,
    Unreduced,
}

impl Sharding {
    /// Reads XLA's text for a tensor of `shape`.
    ///
    /// # Errors
    /// [`ShardingError::Parse`]; [`ShardingError::Invalid`] when the numbers of devices or dimensions
    /// differ; [`ShardingError::Inexpressible`] for manual subgroups, and for devices in an order that
    /// digits of the mesh do not have.
    ///
    /// ```
    /// use axe_layout::sharding::{Mesh, Sharding};
    /// let mesh = Mesh::linear("gpu", &[("x", 2), ("y", 4)])?;
    /// let columns = Sharding::from_hlo(mesh, vec![64, 64], "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}")?;
    /// assert_eq!(columns.to_partition_spec()?, "PartitionSpec(None, 'y')");
    /// # Ok::<(), axe_layout::sharding::ShardingError>(())
    /// ```
    pub fn from_hlo(mesh: Mesh, shape: Vec<i64>, text: &str) -> Result<Self> {
        let mut scan = Scanner::new(text);
        scan.eat("sharding=");
        scan.expect("{")?;
        let found = if scan.eat("replicated") {
            Self::replicated(mesh, shape)
        } else if scan.eat("maximal") {
            scan.expect("device")?;
            scan.expect("=")?;
            let device = scan.integer()?;
            Self::on_one(mesh, shape, device)
        } else if scan.eat("devices") {
            scan.expect("=")?;
            tiled(mesh, shape, &mut scan)
        } else {
            return Err(scan.expected("`replicated`, `maximal device=` or `devices=`"));
        };
        let found = found?;
        scan.expect("}")?;
        scan.finish()?;
        Ok(found)
    }

    /// One device holds the tensor.
    fn on_one(mesh: Mesh, shape: Vec<i64>, device: i64) -> Result<Self> {
        if !(0..mesh.devices()).contains(&device) {
            return invalid(format!(
                "device {device}: the mesh has {} devices",
                mesh.devices()
            ));
        }
        let at = mesh.coordinate_of(device);
        let axes = mesh.axes().iter().zip(at).enumerate();
        let held = axes
            .map(|(axis, (of, at))| {
                (
                    AxisRef {
                        axis,
                        pre: 1,
                        size: of.size,
                    },
                    at,
                )
            })
            .collect();
        let dims = vec![Vec::new(); shape.len()];
        Self::new(mesh, shape, dims, Vec::new(), held)
    }

    /// XLA's text.
    ///
    /// # Errors
    /// [`ShardingError::Inexpressible`] for pending reductions other than sums, and for data at one
    /// position of a part of the mesh.
    pub fn to_hlo(&self) -> Result<String> {
        let mesh = self.mesh();
        if !self.held().is_empty() {
            let parts: i64 = self.held().iter().map(|(role, _)| role.size).product();
            if parts != mesh.devices() {
                return inexpressible(HLO, "data at one position of a part of the mesh");
            }
            let device = self
                .held()
                .iter()
                .map(|(role, at)| at * role.step(mesh) * weight(mesh, role.axis));
            return Ok(format!("{{maximal device={}}}", device.sum::<i64>()));
        }
        if self
            .partial()
            .iter()
            .any(|(_, reduction)| *reduction != Reduction::Sum)
        {
            return inexpressible(HLO, "a pending reduction other than a sum");
        }
        let copies = self.replicated_axes();
        let parts: Vec<AxisRef> = self.partial().iter().map(|(role, _)| *role).collect();
        if parts.is_empty() && self.dims().iter().all(Vec::is_empty) {
            return Ok("{replicated}".into());
        }
        let size = |roles: &[AxisRef]| roles.iter().map(|role| role.size).product::<i64>();
        let mut tiles: Vec<i64> = self.dims().iter().map(|roles| size(roles)).collect();
        let mut groups = Vec::new();
        for (roles, name) in [(&parts, "unreduced"), (&copies, "replicated")] {
            if size(roles) > 1 {
                tiles.push(size(roles));
                groups.push(name);
            }
        }
        let order: Vec<AxisRef> = self
            .dims()
            .iter()
            .flatten()
            .chain(&parts)
            .chain(&copies)
            .copied()
            .collect();
        let suffix = match groups[..] {
            [] => String::new(),
            ["replicated"] => " last_tile_dim_replicate".into(),
            _ => format!(" last_tile_dims={{{}}}", groups.join(", ")),
        };
        Ok(format!(
            "{{devices=[{}]<={}{suffix}}}",
            list(&tiles),
            iota(mesh, &order)
        ))
    }
}

/// What one step along a mesh axis is worth in the device's number.
fn weight(mesh: &Mesh, axis: usize) -> i64 {
    mesh.axes()
        .iter()
        .skip(axis + 1)
        .map(|axis| axis.size)
        .product()
}

fn list(numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
    numbers.join(",")
}

/// `[4,2]T(1,0)`: the devices in the order of the digits, the last the fastest.
fn iota(mesh: &Mesh, order: &[AxisRef]) -> String {
    // Runs of digits that follow each other in the device's number too are one.
    let step = |role: &AxisRef| role.step(mesh) * weight(mesh, role.axis);
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for role in merged(order.iter().copied())
        .iter()
        .filter(|role| role.size > 1)
    {
        match runs.last_mut() {
            Some((size, last)) if *last == step(role) * role.size => {
                (*size, *last) = (*size * role.size, step(role));
            }
            _ => runs.push((role.size, step(role))),
        }
    }
    let mut by_step: Vec<usize> = (0..runs.len()).collect();
    by_step.sort_by_key(|&run| std::cmp::Reverse(runs.get(run).map(|run| run.1)));
    let sizes: Vec<i64> = by_step
        .iter()
        .filter_map(|&run| runs.get(run))
        .map(|run| run.0)
        .collect();
    let places = (0..runs.len()).filter_map(|run| by_step.iter().position(|&at| at == run));
    let places: Vec<i64> = places
        .filter_map(|place| i64::try_from(place).ok())
        .collect();
    let sizes = if sizes.is_empty() { vec![1] } else { sizes };
    if places.is_sorted() {
        return format!("[{}]", list(&sizes));
    }
    format!("[{}]T({})", list(&sizes), list(&places))
}

fn tiled(mesh: Mesh, shape: Vec<i64>, scan: &mut Scanner<'_>) -> Result<Sharding> {
    scan.expect("[")?;
    let tiles = scan.list("]", Scanner::integer)?;
    let count = tiles
        .iter()
        .try_fold(1_i64, |count, &tile| count.checked_mul(tile));
    if tiles.iter().any(|&tile| tile < 1) || count != Some(mesh.devices()) {
        return invalid(format!(
            "devices=[{}]: the mesh has {} devices",
            list(&tiles),
            mesh.devices()
        ));
    }
    let devices = if scan.eat("<=") {
        transposed(&mesh, scan)?
    } else {
        listed(&mesh, scan)?
    };
    let groups = subgroups(scan)?;
    if tiles.len() != shape.len() + groups.len() {
        return invalid(format!(
            "devices=[{}]: expected {} dimensions of the tensor and {} more, got {}",
            list(&tiles),
            shape.len(),
            groups.len(),
            tiles.len()
        ));
    }
    let numbered: Vec<(&str, i64)> = mesh
        .axes()
        .iter()
        .map(|axis| (axis.name.as_str(), axis.size))
        .collect();
    let numbered = Mesh::linear(DEVICE, &numbered)?;
    let grouped = devices.group(&tiles)?;
    let mut roles = Vec::new();
    for block in grouped.blocks() {
        let mut digits = Vec::new();
        for iter in block.iter().filter(|iter| iter.extent > 1) {
            digits.extend(numbered.digits(iter)?);
        }
        roles.push(digits);
    }
    let beyond = roles.split_off(shape.len());
    let unreduced = beyond
        .into_iter()
        .zip(groups)
        .filter(|(_, group)| *group == Subgroup::Unreduced);
    let partial = unreduced
        .flat_map(|(roles, _)| roles)
        .map(|role| (role, Reduction::Sum))
        .collect();
    Sharding::new(mesh, shape, roles, partial, Vec::new())
}

/// `[4,2]T(1,0)` as a layout from places in the tile assignment to devices.
fn transposed(mesh: &Mesh, scan: &mut Scanner<'_>) -> Result<Layout> {
    scan.expect("[")?;
    let sizes = scan.list("]", Scanner::integer)?;
    let count = sizes
        .iter()
        .try_fold(1_i64, |count, &size| count.checked_mul(size));
    if sizes.iter().any(|&size| size < 1) || count != Some(mesh.devices()) {
        return invalid(format!(
            "<=[{}]: the mesh has {} devices",
            list(&sizes),
            mesh.devices()
        ));
    }
    let order = if scan.eat("T(") {
        scan.list(")", Scanner::integer)?
    } else {
        (0..).take(sizes.len()).collect()
    };
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq((0..).take(sizes.len())) {
        return invalid(format!(
            "T({}): expected a permutation of {} dimensions",
            list(&order),
            sizes.len()
        ));
    }
    let axis = Axis::new(DEVICE)?;
    let iter = |&dim: &i64| {
        let dim = usize::try_from(dim).unwrap_or(0);
        let stride = sizes.iter().skip(dim + 1).product();
        Iter::new(sizes.get(dim).copied().unwrap_or(1), stride, axis)
    };
    Ok(Layout::from_shard(order.iter().map(iter))?)
}

/// `0,2,1,3` as a layout, where digits describe it.
fn listed(mesh: &Mesh, scan: &mut Scanner<'_>) -> Result<Layout> {
    let mut devices = vec![scan.integer()?];
    while scan.eat(",") {
        devices.push(scan.integer()?);
    }
    let mut sorted = devices.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..mesh.devices()) {
        return invalid(format!(
            "devices: expected each of 0 to {} once",
            mesh.devices() - 1
        ));
    }
    let axis = Axis::new(DEVICE)?;
    let found = crate::layout::layout_of(axis, &devices).filter(|layout| layout.offset().is_zero());
    found.ok_or_else(|| ShardingError::Inexpressible {
        notation: "a sharding (digits of mesh axes)",
        reason: "the devices are in no order of digits from device 0 on".into(),
    })
}

fn subgroups(scan: &mut Scanner<'_>) -> Result<Vec<Subgroup>> {
    if scan.eat("last_tile_dim_replicate") {
        return Ok(vec![Subgroup::Replicated]);
    }
    if !scan.eat("last_tile_dims") {
        return Ok(Vec::new());
    }
    scan.expect("=")?;
    scan.expect("{")?;
    scan.list("}", |scan| {
        if scan.eat("replicated") {
            Ok(Subgroup::Replicated)
        } else if scan.eat("unreduced") {
            Ok(Subgroup::Unreduced)
        } else if scan.eat("manual") {
            inexpressible("a sharding (roles of mesh axes)", "a manual subgroup")
        } else {
            Err(scan.expected("`replicated` or `unreduced`"))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Sharding> {
        let mesh = Mesh::linear("gpu", &[("x", 2), ("y", 4)]).unwrap();
        Sharding::from_hlo(mesh, vec![64, 64], text)
    }

    #[test]
    fn texts_are_those_of_xla() {
        let cases = [
            ("{replicated}", "P(None, None)"),
            ("{devices=[2,4]<=[8]}", "P('x', 'y')"),
            ("{devices=[4,2]<=[2,4]T(1,0)}", "P('y', 'x')"),
            ("{devices=[8,1]<=[8]}", "P(('x', 'y'), None)"),
            ("{devices=[8,1]<=[2,4]T(1,0)}", "P(('y', 'x'), None)"),
            (
                "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
                "P('x', None)",
            ),
            (
                "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}",
                "P(None, 'y')",
            ),
        ];
        for (text, spec) in cases {
            let found = read(text).unwrap();
            let want =
                Sharding::from_partition_spec(found.mesh().clone(), vec![64, 64], spec).unwrap();
            assert_eq!(found, want, "{text}");
            assert_eq!(found.to_hlo().unwrap(), text);
        }
        let listed = read("{devices=[4,2]0,4,1,5,2,6,3,7}").unwrap();
        assert_eq!(listed.to_hlo().unwrap(), "{devices=[4,2]<=[2,4]T(1,0)}");
        let one = read("{maximal device=5}").unwrap();
        assert_eq!(one.tile_begin(&[1, 1]), Some(vec![0, 0]));
        assert_eq!(one.to_hlo().unwrap(), "{maximal device=5}");
        let parts = read("{devices=[1,2,4]<=[8] last_tile_dims={unreduced}}").unwrap();
        assert_eq!(
            parts.to_hlo().unwrap(),
            "{devices=[1,2,4]<=[8] last_tile_dims={unreduced}}"
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, reason) in [
            ("{devices=[2,2]<=[4]}", "8 devices"),
            ("{devices=[2,4]<=[2,4]T(0,0)}", "a permutation"),
            ("{devices=[2,4,1]<=[8]}", "expected 2 dimensions"),
            ("{devices=[2,4]0,1,2,3,4,5,6,6}", "each of 0 to 7 once"),
            ("{devices=[2,4]0,3,1,2,4,5,6,7}", "no order of digits"),
            ("{devices=[2,1,4]<=[8] last_tile_dims={manual}}", "manual"),
            ("{maximal device=8}", "8 devices"),
            ("{devices", "expected `=`"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
