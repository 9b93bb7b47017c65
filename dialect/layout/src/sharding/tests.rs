//! Laws of the bridge: layouts say what shardings say, notations round-trip, and plans executed on a
//! brute-force machine arrive where they should.

use proptest::prelude::*;

use super::simulate::{execute, load};
use super::*;
use crate::Axis;

/// A mesh of up to three axes and a sharding of a tensor of up to three dimensions over it, valid by
/// construction: every atom of the mesh draws a role, and dimensions are multiples of their parts.
#[derive(Debug, Clone)]
struct Case {
    mesh: Mesh,
    atoms: Vec<AxisRef>,
    shape: Vec<i64>,
}

fn atoms_of(mesh: &Mesh, cut: bool) -> Vec<AxisRef> {
    let mut atoms = Vec::new();
    for (axis, found) in mesh.axes().iter().enumerate() {
        let size = found.size;
        if cut && size % 2 == 0 && size > 2 {
            atoms.push(AxisRef {
                axis,
                pre: 1,
                size: 2,
            });
            atoms.push(AxisRef {
                axis,
                pre: 2,
                size: size / 2,
            });
        } else {
            atoms.push(AxisRef { axis, pre: 1, size });
        }
    }
    atoms
}

fn case() -> impl Strategy<Value = Case> {
    let sizes = prop::collection::vec(prop::sample::select(vec![1i64, 2, 2, 3, 4, 6]), 1..=3);
    (
        sizes,
        any::<bool>(),
        any::<bool>(),
        prop::collection::vec(1i64..=2, 1..=3),
    )
        .prop_map(|(sizes, cut, named, extra)| {
            let names = ["x", "y", "z"];
            let axes: Vec<(&str, i64)> = names.into_iter().zip(sizes).collect();
            let mesh = if named {
                Mesh::named(&axes)
            } else {
                Mesh::linear("gpu", &axes)
            };
            let mesh = mesh.unwrap();
            let atoms = atoms_of(&mesh, cut);
            let all: i64 = if mesh.devices() > 36 {
                12
            } else {
                mesh.devices()
            };
            let shape = extra.iter().map(|e| e * all).collect();
            Case { mesh, atoms, shape }
        })
}

/// Draws a role for every atom: dimension, copy, partial, held; then an order inside the dimensions.
fn sharding(
    case: &Case,
    roles: &[u8],
    order: &[u8],
    partial: bool,
    held: bool,
) -> Option<Sharding> {
    let rank = case.shape.len();
    let mut dims = vec![Vec::new(); rank];
    let (mut parts, mut single) = (Vec::new(), Vec::new());
    let mut atoms: Vec<(u8, AxisRef, u8)> = case
        .atoms
        .iter()
        .enumerate()
        .map(|(i, a)| (order[i % order.len()], *a, roles[i % roles.len()]))
        .collect();
    atoms.sort_by_key(|(key, ..)| *key);
    for (key, atom, role) in atoms {
        match usize::from(role) % (rank + 3) {
            dim if dim < rank => dims[dim].push(atom),
            r if r == rank && partial => parts.push((atom, Reduction::Sum)),
            r if r == rank + 1 && held => single.push((atom, i64::from(key) % atom.size)),
            _ => {}
        }
    }
    Sharding::new(case.mesh.clone(), case.shape.clone(), dims, parts, single).ok()
}

fn choices() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    (
        prop::collection::vec(any::<u8>(), 6),
        prop::collection::vec(any::<u8>(), 6),
    )
}

/// Every element of every device's tile, by the definition of `f_L`.
fn check_layout(sharding: &Sharding) {
    let layout = sharding.to_layout().unwrap();
    let mesh = sharding.mesh();
    let mut owners = std::collections::BTreeSet::new();
    let local = sharding.local_shape();
    for at in mesh.coordinates() {
        let Some(begin) = sharding.tile_begin(&at) else {
            continue;
        };
        let number = mesh.device_number(&at).unwrap();
        for linear in 0..sharding.local_size() {
            let mut rest = linear;
            let mut inside = vec![0; local.len()];
            for (slot, n) in inside.iter_mut().zip(&local).rev() {
                *slot = rest % n;
                rest /= n;
            }
            let global = begin.iter().zip(&inside).zip(sharding.shape());
            let element = global.fold(0, |e, ((b, i), n)| e * n + b + i);
            owners.insert((element, number.clone(), linear));
        }
    }
    let mut found = std::collections::BTreeSet::new();
    for element in 0..layout.size() {
        for point in brute_force(&layout, element) {
            let number = mesh.device_number(&vec![0; mesh.axes().len()]).unwrap();
            let on = |device: &str| {
                point
                    .iter()
                    .find(|(a, _)| a.name() == device)
                    .map_or(0, |p| p.1)
            };
            let number = number
                .into_keys()
                .chain(mesh.axes().iter().map(|a| a.device.clone()));
            let number = number.map(|device| (device.clone(), on(&device))).collect();
            let m = point.iter().find(|(a, _)| *a == Axis::M).map_or(0, |p| p.1);
            found.insert((element, number, m));
        }
    }
    let normal =
        |set: std::collections::BTreeSet<(i64, std::collections::BTreeMap<String, i64>, i64)>| {
            set.into_iter()
                .map(|(e, n, m)| {
                    (
                        e,
                        n.into_iter().filter(|(_, v)| *v != 0).collect::<Vec<_>>(),
                        m,
                    )
                })
                .collect::<std::collections::BTreeSet<_>>()
        };
    assert_eq!(normal(found), normal(owners), "{layout}");
}

fn without_units(layout: &crate::Layout) -> Vec<crate::Iter> {
    let iters = layout.shard().iter().chain(layout.replica());
    iters.filter(|iter| iter.extent > 1).copied().collect()
}

fn brute_force(layout: &crate::Layout, mut x: i64) -> Vec<Vec<(Axis, i64)>> {
    let mut base = std::collections::BTreeMap::new();
    for iter in layout.shard().iter().rev() {
        *base.entry(iter.axis).or_insert(0) += x % iter.extent * iter.stride;
        x /= iter.extent;
    }
    for (axis, value) in layout.offset().iter() {
        *base.entry(axis).or_insert(0) += value;
    }
    let mut points = vec![base];
    for iter in layout.replica() {
        points = points
            .into_iter()
            .flat_map(|point| {
                (0..iter.extent).map(move |j| {
                    let mut point = point.clone();
                    *point.entry(iter.axis).or_insert(0) += j * iter.stride;
                    point
                })
            })
            .collect();
    }
    points
        .into_iter()
        .map(|p| p.into_iter().collect())
        .collect()
}

fn check_plan(from: &Sharding, to: &Sharding) {
    let found = plan(from, to, 4).unwrap();
    let mesh = from.mesh();
    let parts = from
        .partial()
        .iter()
        .flat_map(|(role, kind)| units(*role).map(|u| (u, *kind)));
    let parts: Vec<(AxisRef, Reduction)> = parts.collect();
    let mut machine = load(from, &parts);
    let mut bytes = 0;
    assert!(found.lower_bound <= found.bytes_per_device());
    for step in &found.steps {
        machine = execute(mesh, &machine, &step.collective);
        assert_eq!(
            machine,
            load(&step.after, &parts),
            "after {step}\n{from:?}\n{to:?}"
        );
        bytes += step.bytes_per_device;
    }
    assert_eq!(machine, load(to, &parts));
    assert_eq!(bytes, found.bytes_per_device());
    assert!(
        found.bytes_per_device() <= gather_everything(from, to),
        "{found:?}"
    );
}

/// The smallest digits of a digit.
fn units(role: AxisRef) -> impl Iterator<Item = AxisRef> {
    let (mut rest, mut pre) = (role.size, role.pre);
    std::iter::from_fn(move || {
        let size = (2..=rest).find(|p| rest % p == 0)?;
        let unit = AxisRef {
            axis: role.axis,
            pre,
            size,
        };
        rest /= size;
        pre *= size;
        Some(unit)
    })
}

/// What the naive route costs: all-reduce, all-gather every dimension, then cut.
fn gather_everything(from: &Sharding, to: &Sharding) -> u64 {
    if from == to {
        return 0;
    }
    let total: i64 = from.shape().iter().product();
    let pending: i64 = from.partial().iter().map(|(a, _)| a.size).product();
    let held = u64::from(!from.held().is_empty()) * 8;
    let reduce = if pending > 1 {
        2 * from.local_size() as u64
    } else {
        0
    };
    4 * (total as u64 * (1 + held) + reduce)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn layouts_hold_the_tiles((case, a) in (case(), choices())) {
        if let Some(sharding) = sharding(&case, &a.0, &a.1, true, true)
            .filter(|s| s.shape().iter().product::<i64>() <= 2_000)
        {
            check_layout(&sharding);
        }
    }

    #[test]
    fn layouts_read_back((case, a) in (case(), choices())) {
        if let Some(sharding) = sharding(&case, &a.0, &a.1, true, true) {
            let layout = sharding.to_layout().unwrap();
            let shape = sharding.shape().to_vec();
            let placed =
                Sharding::from_layout(case.mesh.clone(), shape, &layout, sharding.partial()).unwrap();
            prop_assert_eq!(&placed.sharding, &sharding);
            let again = placed.sharding.to_layout_with(&placed.local).unwrap();
            prop_assert_eq!(without_units(&again), without_units(&layout));
        }
    }

    #[test]
    fn notations_round_trip((case, a) in (case(), choices())) {
        let Some(want) = sharding(&case, &a.0, &a.1, true, false) else { return Ok(()) };
        let (mesh, shape) = (|| case.mesh.clone(), || case.shape.clone());
        if let Ok(text) = want.to_dtensor() {
            let got = Sharding::from_placements(mesh(), shape(), &parse_placements(&text).unwrap());
            prop_assert_eq!(got.unwrap(), want.clone());
        }
        if let Ok(text) = want.to_sbp() {
            let got = Sharding::from_placements(mesh(), shape(), &parse_placements(&text).unwrap());
            prop_assert_eq!(got.unwrap(), want.clone());
        }
        if let Ok(text) = want.to_partition_spec() {
            prop_assert_eq!(Sharding::from_partition_spec(mesh(), shape(), &text).unwrap(), want.clone());
        }
        if let Ok(text) = want.to_alpa() {
            prop_assert_eq!(Sharding::from_alpa(mesh(), shape(), &text).unwrap(), want.clone());
        }
        if let Ok(text) = want.to_shard_dialect() {
            prop_assert_eq!(Sharding::from_shard_dialect(mesh(), shape(), &text).unwrap(), want.clone());
        }
        if let Ok(text) = want.to_hlo() {
            prop_assert_eq!(Sharding::from_hlo(mesh(), shape(), &text).unwrap(), want.clone(), "{}", text);
        }
        let text = want.to_sdy().unwrap();
        prop_assert_eq!(Sharding::from_sdy(mesh(), shape(), &text).unwrap().0, want);
    }

    #[test]
    fn plans_arrive((case, a, b) in (case(), choices(), choices())) {
        let small = case.shape.iter().product::<i64>() * case.mesh.devices() <= 40_000;
        let from = sharding(&case, &a.0, &a.1, true, true).filter(|_| small);
        let to = sharding(&case, &b.0, &b.1, false, true);
        if let (Some(from), Some(to)) = (from, to) {
            check_plan(&from, &to);
        }
    }

    /// A pending target holds parts whose sum is the tensor.
    #[test]
    fn plans_to_pending_sums_arrive((case, a, b) in (case(), choices(), choices())) {
        let small = case.shape.iter().product::<i64>() * case.mesh.devices() <= 20_000;
        let from = sharding(&case, &a.0, &a.1, false, true).filter(|_| small);
        let to = sharding(&case, &b.0, &b.1, true, false);
        if let (Some(from), Some(to)) = (from, to) {
            let found = plan(&from, &to, 4).unwrap();
            let mut machine = load(&from, &[]);
            for step in &found.steps {
                machine = execute(from.mesh(), &machine, &step.collective);
            }
            for (axis, reduction) in to.partial() {
                let reduce = Collective::AllReduce { axes: vec![*axis], reduction: *reduction };
                machine = execute(from.mesh(), &machine, &reduce);
            }
            let (mesh, shape) = (to.mesh().clone(), to.shape().to_vec());
            let whole = Sharding::new(mesh, shape, to.dims().to_vec(), vec![], to.held().to_vec()).unwrap();
            prop_assert_eq!(machine, load(&whole, &[]));
        }
    }

    #[test]
    fn readers_survive_any_text(text in "[#<>@{}()\\[\\]:=,?\"'a-zA-Z0-9 _.x-]{0,40}") {
        let mesh = || Mesh::linear("gpu", &[("x", 2), ("y", 4)]).unwrap();
        let _ = Mesh::parse("gpu", &text);
        let _ = parse_placements(&text).map(|p| Sharding::from_placements(mesh(), vec![8, 8], &p));
        let _ = Sharding::from_partition_spec(mesh(), vec![8, 8], &text);
        let _ = Sharding::from_alpa(mesh(), vec![8, 8], &text);
        let _ = Sharding::from_sdy(mesh(), vec![8, 8], &text);
        let _ = Sharding::from_hlo(mesh(), vec![8, 8], &format!("{{devices={text}}}"));
        let _ = Sharding::from_shard_dialect(mesh(), vec![8, 8], &text);
    }
}

fn alpa(shape: &[i64], text: &str) -> Sharding {
    let mesh = Mesh::linear("gpu", &[("x", 2), ("y", 4)]).unwrap();
    Sharding::from_alpa(mesh, shape.to_vec(), text).unwrap()
}

fn names(found: &Plan) -> Vec<&'static str> {
    found
        .steps
        .iter()
        .map(|step| step.collective.name())
        .collect()
}

#[test]
fn the_textbook_collectives() {
    let shape = [64, 64];
    let tile = 64 * 64 * 2;
    let cases: [(&str, &str, &[&str], u64); 7] = [
        ("RR", "RR", &[], 0),
        ("RR", "S0R", &["slice"], 0),
        ("S1R", "RR", &["all-gather"], tile * 3 / 4),
        ("S1R", "RS1", &["all-to-all"], tile / 4 * 3 / 4),
        ("S01R", "S10R", &["permute"], tile / 8),
        (
            "S0S1",
            "S1S0",
            &["all-to-all", "permute"],
            tile / 8 / 2 + tile / 8,
        ),
        ("S01R", "S0R", &["all-gather"], tile / 2 * 3 / 4),
    ];
    for (from, to, want, bytes) in cases {
        let found = plan(&alpa(&shape, from), &alpa(&shape, to), 2).unwrap();
        assert!(found.minimal);
        assert_eq!(names(&found), want, "{from} -> {to}");
        assert_eq!(found.bytes_per_device(), bytes, "{from} -> {to}");
        check_plan(&alpa(&shape, from), &alpa(&shape, to));
    }
}

#[test]
fn pending_sums_are_scattered_when_the_target_is_split() {
    let mesh = Mesh::linear("gpu", &[("x", 4)]).unwrap();
    let read = |text: &str| {
        let placements = parse_placements(text).unwrap();
        Sharding::from_placements(mesh.clone(), vec![64, 64], &placements).unwrap()
    };
    let tile = 64 * 64 * 4;
    let scatter = plan(&read("P"), &read("S(0)"), 4).unwrap();
    assert_eq!(
        (names(&scatter), scatter.bytes_per_device()),
        (vec!["reduce-scatter"], tile * 3 / 4)
    );
    let reduce = plan(&read("P"), &read("R"), 4).unwrap();
    assert_eq!(reduce.bytes_per_device(), 2 * tile * 3 / 4);
    // Copies and shards are parts of their sum, where the others hold zeros.
    for from in ["R", "S(0)"] {
        let found = plan(&read(from), &read("P"), 4).unwrap();
        assert_eq!(
            (names(&found), found.bytes_per_device()),
            (vec!["to-partial"], 0)
        );
    }
}

/// The device that holds none of its new tile needs all of it, and prime digits give no more.
#[test]
fn mesh_axes_are_cut_into_primes() {
    let mesh = Mesh::linear("gpu", &[("x", 2), ("y", 4)]).unwrap();
    let read =
        |text: &str| Sharding::from_partition_spec(mesh.clone(), vec![64, 64], text).unwrap();
    let (from, to) = (read("P(\"x\", None)"), read("P(\"y\", \"x\")"));
    let found = plan(&from, &to, 2).unwrap();
    assert_eq!(
        (found.bytes_per_device(), found.lower_bound, found.minimal),
        (1024, 1024, true)
    );
    check_plan(&from, &to);
    // A digit of 6 is cut as 2 by 3 or as 3 by 2, whichever is cheaper.
    let mesh = Mesh::linear("gpu", &[("x", 6), ("y", 2)]).unwrap();
    let read =
        |text: &str| Sharding::from_partition_spec(mesh.clone(), vec![36, 36], text).unwrap();
    for (from, to) in [
        ("P('x', None)", "P('y', 'x')"),
        ("P(None, 'x')", "P(('y', 'x'), None)"),
    ] {
        let found = plan(&read(from), &read(to), 1).unwrap();
        assert!(found.minimal && found.lower_bound <= found.bytes_per_device());
        check_plan(&read(from), &read(to));
    }
}

#[test]
fn one_position_is_broadcast() {
    let mesh = Mesh::linear("gpu", &[("x", 4)]).unwrap();
    let whole = AxisRef {
        axis: 0,
        pre: 1,
        size: 4,
    };
    let held = Sharding::new(
        mesh.clone(),
        vec![8],
        vec![vec![]],
        vec![],
        vec![(whole, 2)],
    )
    .unwrap();
    assert_eq!(held.to_layout().unwrap().to_string(), "S[8 : 1] + 2@gpu");
    let everywhere = Sharding::replicated(mesh, vec![8]).unwrap();
    let found = plan(&held, &everywhere, 4).unwrap();
    assert_eq!(
        (names(&found), found.bytes_per_device()),
        (vec!["broadcast"], 32)
    );
    assert_eq!(names(&plan(&everywhere, &held, 4).unwrap()), ["drop"]);
}

#[test]
fn layouts_that_are_no_shardings_say_why() {
    let read = |layout: &str, shape: &[i64]| {
        let mesh = Mesh::linear("gpu", &[("x", 2), ("y", 4)]).unwrap();
        Sharding::from_layout(mesh, shape.to_vec(), &layout.parse().unwrap(), &[])
    };
    let cases = [
        ("S[(4, 8) : (1, 1@gpu)]", vec![32], "dealt out in rounds"),
        (
            "S[(8, 4) : (3@gpu, 1)]",
            vec![32],
            "does not run over whole digits",
        ),
        (
            "S[(8, 4) : (1@gpu, 1)] + 5@gpu",
            vec![32],
            "leaves the mesh",
        ),
        (
            "S[(2, 4) : (1@gpu, 1)] + R[2 : 1@gpu]",
            vec![8],
            "used twice",
        ),
        (
            "S[(8, 4) : (-1@gpu, 1)] + 7@gpu",
            vec![32],
            "does not run over whole digits",
        ),
    ];
    for (layout, shape, reason) in cases {
        let error = read(layout, &shape).unwrap_err().to_string();
        assert!(error.contains(reason), "{layout}: {error}");
    }
    let half = read("S[(4, 8) : (1@gpu, 1)] + 4@gpu", &[32]).unwrap();
    assert_eq!(half.sharding.held().len(), 1);
    assert!(
        half.sharding
            .to_sdy()
            .unwrap_err()
            .to_string()
            .contains("part of the mesh")
    );
}
