//! Fills, and the values of a graph, element by element.

use super::problem::{Given, PLAIN, Problem};
use super::reason::Reason;
use super::tiles::Tiles;
use super::{Region, engine};
use crate::plan::graph::{Form, Graph, Id, Kind};
use crate::plan::values::{Area, Values};
use crate::program::{Builder, View};

/// The dimensions in which a region has more than one index, or the operator has one.
pub(super) fn dims_of(region: &Region, extents: &[i64]) -> Result<Vec<usize>, Reason> {
    let fits = region.shape.len() == extents.len()
        && (region.shape.iter().zip(extents)).all(|(own, all)| own == all || *own == 1);
    match fits {
        true => Ok((0..extents.len()).collect()),
        false => Err(Reason::Malformed(format!(
            "expected extents {extents:?}, or 1, got {:?}",
            region.shape
        ))),
    }
}

/// Refuses what engines do not reach.
pub(super) fn on_chip(problem: &Problem) -> Result<(), Reason> {
    let outside = problem.operands.iter().find(|o| !o.space.has_partitions());
    outside.map_or(Ok(()), |operand| {
        Err(Reason::Memory {
            operand: operand.name,
            expected: "sbuf or psum",
            got: operand.space,
        })
    })
}

/// `d = number`.
pub(super) fn fill(b: &mut Builder, d: &Region, number: f64) -> Result<(), Reason> {
    let given = [Given {
        name: "d",
        region: d,
        dims: dims_of(d, &d.shape)?,
        written: true,
        follows: false,
    }];
    let problem = Problem::new(b, &given, &d.shape, PLAIN)?;
    on_chip(&problem)?;
    Tiles::new(&problem).append(b, &mut |b, _, views| {
        for view in views {
            engine::fill(b, view, number);
        }
        Ok(())
    })
}

/// The outputs of a graph.
pub(super) fn map(
    b: &mut Builder,
    outputs: &[Region],
    graph: &Graph,
    sources: &[Region],
) -> Result<(), Reason> {
    check_counts(outputs, graph, sources)?;
    let extents = extents_of(outputs, sources);
    let last = extents.len().saturating_sub(1);
    let folds = !graph.folds().is_empty();
    let mut given = Vec::new();
    for (at, region) in outputs.iter().chain(sources).enumerate() {
        let written = at < outputs.len();
        let mut dims = dims_of(region, &extents)?;
        let reduced = written && folds && region.shape.get(last) != extents.get(last);
        if written && !reduced && region.shape != extents {
            return Err(Reason::Malformed(format!(
                "output {at}: expected extents {extents:?}, got {:?}",
                region.shape
            )));
        }
        if reduced {
            dims.pop();
        }
        given.push(Given {
            name: if written { "d" } else { "source" },
            region,
            dims,
            written,
            follows: !written,
        });
    }
    // The region of a reduction has one index where it has no dimension.
    let shortened: Vec<Region> = given.iter().map(|g| without_last(g, last)).collect();
    let given: Vec<Given<'_>> = (given.into_iter().zip(&shortened))
        .map(|(given, region)| Given { region, ..given })
        .collect();
    let problem = Problem::new(b, &given, &extents, PLAIN)?;
    on_chip(&problem)?;
    let own = |at: usize| !folds || problem.digits[at].dim == Some(last);
    let tiles = Tiles::with_free(&problem, own);
    if folds {
        check_rows(&problem, &tiles, last)?;
    }
    let count: i64 = tiles
        .free
        .iter()
        .map(|at| problem.digits[*at].extent)
        .product();
    tiles.append(b, &mut |b, _, views| {
        let free = views.iter().map(View::free).max().unwrap_or(1);
        if folds && views.iter().all(|view| view.free() != count) {
            return Err(Reason::Malformed(
                "a row is cut in pieces, and is reduced".into(),
            ));
        }
        values(b, graph, &views, outputs.len(), free);
        Ok(())
    })
}

/// A reduced region without its last dimension.
fn without_last(given: &Given<'_>, last: usize) -> Region {
    let mut region = given.region.clone();
    if given.dims.len() == last && region.shape.len() == last + 1 {
        region.shape.pop();
    }
    region
}

fn check_counts(outputs: &[Region], graph: &Graph, sources: &[Region]) -> Result<(), Reason> {
    let counts = (graph.outputs.len(), graph.inputs.len());
    if counts != (outputs.len(), sources.len()) || outputs.is_empty() {
        return Err(Reason::Malformed(format!(
            "expected {} outputs and {} sources, got {} and {}",
            counts.0,
            counts.1,
            outputs.len(),
            sources.len()
        )));
    }
    Ok(())
}

/// The largest extent in each dimension.
fn extents_of(outputs: &[Region], sources: &[Region]) -> Vec<i64> {
    let rank = outputs.first().map_or(0, |region| region.shape.len());
    let extent = |dim: usize| {
        let all = outputs.iter().chain(sources);
        all.filter_map(|region| region.shape.get(dim))
            .max()
            .copied()
    };
    (0..rank).map(|dim| extent(dim).unwrap_or(1)).collect()
}

/// What is reduced is a row of each partition, in one piece.
fn check_rows(problem: &Problem, tiles: &Tiles, last: usize) -> Result<(), Reason> {
    let outside = (problem.digits.iter().enumerate())
        .find(|(at, digit)| digit.dim == Some(last) && !tiles.free.contains(at));
    match outside {
        None => Ok(()),
        Some((_, digit)) => Err(Reason::Access {
            operand: "source",
            message: format!(
                "a digit of {} of the dimension that is reduced is not along elements of one instruction",
                digit.extent
            ),
        }),
    }
}

/// The values of a graph on a tile: what does not move along its elements is one element a partition.
fn values(b: &mut Builder, graph: &Graph, views: &[View], outputs: usize, free: i64) {
    let partitions = views.first().map_or(1, View::partitions);
    let kind = |view: &View| match view.axes.iter().skip(1).all(|axis| axis.of.is_none()) {
        true => Kind::Row,
        false => Kind::Full,
    };
    let kinds: Vec<Kind> = views[outputs..].iter().map(kind).collect();
    let (read, ids) = with_kinds(graph, &kinds, [partitions, free]);
    let area = Area {
        rows: (0.into(), partitions),
        columns: (0.into(), free),
    };
    let mut values = Values::new(&read, &[], area, 1);
    for (index, view) in views[outputs..].iter().enumerate() {
        values.know(ids[index], one_a_partition(view, kinds[index]));
    }
    // A row's reduction is one element.
    let written = (views.iter().take(outputs)).map(|view| one_a_partition(view, kind(view)));
    let stored: Vec<(Id, View)> = (read.outputs.iter().map(|(_, id)| *id))
        .zip(written)
        .collect();
    store(b, &read, &mut values, &stored, &views[outputs..]);
}

/// Stores the outputs of a graph.
fn store(
    b: &mut Builder,
    graph: &Graph,
    values: &mut Values<'_>,
    outputs: &[(Id, View)],
    sources: &[View],
) {
    let selects = |id: &Id| matches!(graph.node(*id).form, Form::Select(..));
    let several = outputs.len() > 1 || graph.needed().iter().any(selects);
    let in_place = |view: &View| {
        let same = |source: &View| source.buffer == view.buffer;
        several && sources.iter().any(same)
    };
    let apart: Vec<&(Id, View)> = outputs.iter().filter(|o| !in_place(&o.1)).collect();
    for sums in &apart {
        let mut others = apart.iter();
        others.any(|value| values.converted_with_sums(b, value, sums));
    }
    for (id, view) in outputs {
        if graph.node(*id).dtype == b.dtype(view) && !in_place(view) {
            values.store(*id, view.clone());
        }
    }
    // Reductions form what they are of, and store it.
    let reduces = |id: &Id| matches!(graph.node(*id).form, Form::Reduce(..));
    let (first, then): (Vec<_>, Vec<_>) = outputs.iter().partition(|(id, _)| reduces(id));
    let ordered: Vec<&(Id, View)> = first.into_iter().chain(then).collect();
    // What is stored before all is read is no source, and what has one element a row is repeated by a copy.
    for (id, view) in &ordered {
        let repeats = graph.kind(*id) <= Kind::Row && view.free() > 1;
        if repeats || in_place(view) {
            values.value(b, *id);
        }
    }
    for (id, view) in ordered {
        values.value_in(b, *id, Some(view.clone()));
    }
}

/// A view without repetitions, where its kind is a row.
fn one_a_partition(view: &View, kind: Kind) -> View {
    let mut view = view.clone();
    if kind == Kind::Row {
        view.axes.truncate(1);
        view.axes.push(crate::program::Axis {
            of: None,
            size: 1,
            step: 0,
        });
    }
    view
}

/// The graph with other kinds of inputs, and its inputs.
fn with_kinds(graph: &Graph, kinds: &[Kind], [rows, columns]: [i64; 2]) -> (Graph, Vec<Id>) {
    let mut read = Graph::new(rows, columns);
    let mut ids: Vec<Id> = Vec::new();
    for (tensor, kind) in graph.inputs.iter().zip(kinds) {
        ids.push(read.input(&tensor.name, *kind, tensor.dtype));
    }
    let mut known = std::collections::HashMap::new();
    for id in graph.needed() {
        let node = graph.node(id);
        let of = |id: &Id| known.get(id).copied().unwrap_or(0);
        let new = match &node.form {
            Form::Input(at) => ids.get(*at).copied().unwrap_or(0),
            Form::Product => read.product(),
            Form::Number(value) => read.number(*value),
            Form::Apply(function, x) => read.apply(*function, of(x), node.dtype),
            Form::Reciprocal(x) => {
                let one = read.number(1.0);
                read.divide(one, of(x), node.dtype)
            }
            Form::Binary(op, x, y) => read.binary(*op, of(x), of(y), node.dtype),
            Form::Select(c, x, y) => read.select(of(c), of(x), of(y), node.dtype),
            Form::Cast(x) => read.cast(of(x), node.dtype),
            Form::Reduce(op, x) => read.reduce(*op, of(x), node.dtype),
        };
        known.insert(id, new);
    }
    for (tensor, id) in &graph.outputs {
        let value = known.get(id).copied().unwrap_or(0);
        read.output(&tensor.name, tensor.kind, tensor.dtype, value);
    }
    (read, ids)
}
