//! Brute force, for tests: every device has a buffer of numbers, collectives move them as their
//! definitions say, and nothing here looks at layouts or at the planner's states.

use super::collective::Collective;
use super::mesh::Mesh;
use super::spec::{AxisRef, Reduction, Sharding};

/// A dense row-major tile, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tile {
    pub shape: Vec<i64>,
    pub data: Vec<i64>,
}

/// One tile a device, in row-major mesh order.
pub(crate) type Machine = Vec<Option<Tile>>;

/// Contribution of the part with the given position to the element with the given global index.
fn contribution(element: i64, part: i64) -> i64 {
    (element * 7919 + part * 104_729 + 13) % 10_007
}

fn combine(reduction: Reduction, a: i64, b: i64) -> i64 {
    match reduction {
        Reduction::Max => a.max(b),
        Reduction::Min => a.min(b),
        _ => a + b,
    }
}

fn unflatten(mut linear: i64, shape: &[i64]) -> Vec<i64> {
    let mut at = vec![0; shape.len()];
    for (slot, n) in at.iter_mut().zip(shape).rev() {
        *slot = linear % n;
        linear /= n;
    }
    at
}

fn flatten(at: &[i64], shape: &[i64]) -> i64 {
    at.iter()
        .zip(shape)
        .fold(0, |linear, (c, n)| linear * n + c)
}

fn fill(shape: &[i64], mut value: impl FnMut(&[i64]) -> i64) -> Tile {
    let size: i64 = shape.iter().product();
    let data = (0..size)
        .map(|linear| value(&unflatten(linear, shape)))
        .collect();
    Tile {
        shape: shape.to_vec(),
        data,
    }
}

/// What every device holds under `sharding`. `all` are the digits whose parts sum to an element in
/// the plan's source; those still pending stay apart, the others are already reduced.
pub(crate) fn load(sharding: &Sharding, all: &[(AxisRef, Reduction)]) -> Machine {
    let mesh = sharding.mesh();
    mesh.coordinates()
        .map(|at| {
            let begin = sharding.tile_begin(&at)?;
            Some(fill(&sharding.local_shape(), |inside| {
                let global: Vec<i64> = begin.iter().zip(inside).map(|(b, i)| b + i).collect();
                let element = flatten(&global, sharding.shape());
                reduced(sharding, all, &at, element)
            }))
        })
        .collect()
}

/// The combination of all contributions whose pending digits are this device's own.
fn reduced(sharding: &Sharding, all: &[(AxisRef, Reduction)], at: &[i64], element: i64) -> i64 {
    let mesh = sharding.mesh();
    let pending = |unit: &AxisRef| {
        sharding.partial().iter().any(|(role, _)| {
            role.axis == unit.axis
                && role.pre <= unit.pre
                && unit.pre * unit.size <= role.pre * role.size
        })
    };
    let units: Vec<(AxisRef, Reduction)> = all.to_vec();
    let parts: i64 = units.iter().map(|(unit, _)| unit.size).product();
    let sizes: Vec<i64> = units.iter().map(|(unit, _)| unit.size).collect();
    let mut total: Option<i64> = None;
    for part in 0..parts {
        let digits = unflatten(part, &sizes);
        let mine = units
            .iter()
            .zip(&digits)
            .all(|((unit, _), digit)| !pending(unit) || unit.digit(mesh, at) == *digit);
        if mine {
            let value = contribution(element, part);
            let reduction = units.first().map_or(Reduction::Sum, |(_, r)| *r);
            total = Some(total.map_or(value, |t| combine(reduction, t, value)));
        }
    }
    total.unwrap_or(0)
}

/// Devices with their place in a group.
type Ranked = Vec<(i64, usize)>;

/// Groups of devices that differ in `axes` only, each ordered by those digits.
fn groups(mesh: &Mesh, axes: &[AxisRef]) -> Vec<Vec<usize>> {
    let mut groups: Vec<(Vec<i64>, Ranked)> = Vec::new();
    for (device, at) in mesh.coordinates().enumerate() {
        let rank = axes
            .iter()
            .fold(0, |rank, a| rank * a.size + a.digit(mesh, &at));
        let mut others = at.clone();
        for axis in axes {
            others[axis.axis] -= axis.digit(mesh, &at) * axis.step(mesh);
        }
        match groups.iter_mut().find(|(key, _)| *key == others) {
            Some((_, members)) => members.push((rank, device)),
            None => groups.push((others, vec![(rank, device)])),
        }
    }
    groups
        .into_iter()
        .map(|(_, mut members)| {
            members.sort_unstable();
            members.into_iter().map(|(_, device)| device).collect()
        })
        .collect()
}

fn chunk(tile: &Tile, dim: usize, parts: i64, index: i64) -> Tile {
    let mut shape = tile.shape.clone();
    assert_eq!(shape[dim] % parts, 0, "a chunk must be even");
    shape[dim] /= parts;
    let begin = shape[dim] * index;
    fill(&shape, |at| {
        let mut from = at.to_vec();
        from[dim] += begin;
        tile.data[flatten(&from, &tile.shape) as usize]
    })
}

fn concat(tiles: &[&Tile], dim: usize) -> Tile {
    let mut shape = tiles[0].shape.clone();
    let each = shape[dim];
    shape[dim] *= tiles.len() as i64;
    fill(&shape, |at| {
        let tile = tiles[(at[dim] / each) as usize];
        let mut from = at.to_vec();
        from[dim] %= each;
        tile.data[flatten(&from, &tile.shape) as usize]
    })
}

fn reduce(tiles: &[&Tile], reduction: Reduction) -> Tile {
    let mut sum = tiles[0].clone();
    for tile in &tiles[1..] {
        assert_eq!(tile.shape, sum.shape);
        for (a, b) in sum.data.iter_mut().zip(&tile.data) {
            *a = combine(reduction, *a, *b);
        }
    }
    sum
}

/// Executes one collective.
pub(crate) fn execute(mesh: &Mesh, machine: &Machine, step: &Collective) -> Machine {
    let per_group = |axes: &[AxisRef], f: &dyn Fn(&[&Tile], usize) -> Tile| {
        let mut next = machine.clone();
        for group in groups(mesh, axes) {
            let tiles: Option<Vec<&Tile>> = group.iter().map(|d| machine[*d].as_ref()).collect();
            for (index, device) in group.iter().enumerate() {
                next[*device] = tiles.as_ref().map(|tiles| f(tiles, index));
            }
        }
        next
    };
    match step {
        Collective::Slice { dim, axes } => per_group(axes, &|tiles, index| {
            chunk(tiles[index], *dim, tiles.len() as i64, index as i64)
        }),
        Collective::AllGather { dim, axes } => per_group(axes, &|tiles, _| concat(tiles, *dim)),
        Collective::AllReduce { axes, reduction } => {
            per_group(axes, &|tiles, _| reduce(tiles, *reduction))
        }
        Collective::ReduceScatter {
            dim,
            axes,
            reduction,
        } => per_group(axes, &|tiles, index| {
            chunk(
                &reduce(tiles, *reduction),
                *dim,
                tiles.len() as i64,
                index as i64,
            )
        }),
        Collective::AllToAll {
            split,
            concat: into,
            axes,
        } => per_group(axes, &|tiles, index| {
            let parts = tiles.len() as i64;
            let mine: Vec<Tile> = tiles
                .iter()
                .map(|tile| chunk(tile, *split, parts, index as i64))
                .collect();
            concat(&mine.iter().collect::<Vec<_>>(), *into)
        }),
        Collective::Drop { axis, at } => mesh
            .coordinates()
            .zip(machine)
            .map(|(c, tile)| tile.clone().filter(|_| axis.digit(mesh, &c) == *at))
            .collect(),
        Collective::Broadcast { axes, root } => broadcast(mesh, machine, axes, *root),
        Collective::Part {
            dim,
            axes,
            reduction,
        } => per_group(axes, &|tiles, index| part(tiles, index, *dim, *reduction)),
        Collective::Permute { pairs } => permute(machine, pairs),
    }
}

fn broadcast(mesh: &Mesh, machine: &Machine, axes: &[AxisRef], root: i64) -> Machine {
    let mut next = machine.clone();
    for group in groups(mesh, axes) {
        for device in &group {
            next[*device] = machine[group[root as usize]].clone();
        }
    }
    next
}

/// Values become a pending reduction: each is kept by one device, the others hold the identity.
fn part(tiles: &[&Tile], index: usize, dim: Option<usize>, reduction: Reduction) -> Tile {
    let identity = match reduction {
        Reduction::Max => i64::MIN,
        Reduction::Min => i64::MAX,
        _ => 0,
    };
    let keep = |tile: &Tile, kept: bool| match kept {
        true => tile.clone(),
        false => Tile {
            shape: tile.shape.clone(),
            data: vec![identity; tile.data.len()],
        },
    };
    let Some(dim) = dim else {
        return keep(tiles[index], index == 0);
    };
    let all: Vec<Tile> = (0..tiles.len())
        .map(|k| keep(tiles[k], k == index))
        .collect();
    concat(&all.iter().collect::<Vec<_>>(), dim)
}

fn permute(machine: &Machine, pairs: &[(i64, i64)]) -> Machine {
    let mut next = machine.clone();
    for (source, _) in pairs {
        next[*source as usize] = None;
    }
    for (source, target) in pairs {
        assert!(next[*target as usize].is_none() || pairs.iter().any(|p| p.0 == *target));
        next[*target as usize] = machine[*source as usize].clone();
    }
    next
}
