//! `axe.map`, `axe.cast` and `axe.reduce`. A map, its conversion and its sum along rows are one set of instructions where
//! nothing lies between them: engines convert what they write, and the scalar engine adds up what it computes.

use super::lowering::{Lowering, Value, failed, key};
use super::storage::{self, Tensor};
use crate::planner::{Body, combined};
use axe_dialect::ops::{self, CastOp, MapOp, ReduceOp};
use axe_dialect::{Combiner, Typed};
use axe_package::DType;
use axe_passes::PassResult;
use axe_passes::ir::value::{name, only_result, parts, users};
use axe_passes::ir::{Op, Val, types};
use axe_trn::dispatch::{self, Region};
use axe_trn::plan::graph::{Graph, Id, Kind};
use axe_trn::program::{Alu, Space};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;

/// What joins a map: conversions of its result, and its sum along the last dimension.
#[derive(Default)]
struct Joined<'c> {
    casts: Vec<Op<'c>>,
    sums: Vec<Op<'c>>,
    /// Whether something else reads the result itself.
    kept: bool,
}

/// The type of a tensor's elements to the functions of a body: bits are bytes on chip alone.
fn computed(value: Val<'_>) -> storage::Found<DType> {
    let element = axe_dialect::element_type(value.r#type());
    match types::bits(element) {
        Some(1) => Ok(DType::Bool),
        _ => storage::stored(value.r#type()),
    }
}

/// How a tensor's elements lie along rows.
fn kind(region: &Region) -> Kind {
    match region.shape.split_last() {
        Some((1, rest)) if rest.iter().all(|extent| *extent == 1) => Kind::Number,
        Some((1, _)) => Kind::Row,
        Some((_, rest)) if !rest.is_empty() && rest.iter().all(|extent| *extent == 1) => {
            Kind::Column
        }
        _ => Kind::Full,
    }
}

impl<'c> Lowering<'c> {
    pub(super) fn map(&mut self, op: Op<'c>) -> PassResult<'c> {
        let MapOp { inputs, result, .. } = parts(op)?;
        let mut graph = Graph::new(1, 1);
        let (mut ids, mut sources) = (Vec::new(), Vec::new());
        for input in inputs {
            ids.push(self.input(op, input, &mut graph, &mut sources)?);
        }
        let id = Body { graph: &mut graph }.map(op, &ids)?;
        let id = graph.cast(id, Self::found(op, computed(result))?);
        if let Some(number) = graph.as_number(id) {
            self.know(result, Value::Number(number));
            self.note(op, "number", String::new());
            return Ok(());
        }
        self.emit_map(op, result, graph, id, &sources)
    }

    /// An operand as an input of a graph.
    fn input(
        &mut self,
        op: Op<'c>,
        value: Val<'c>,
        graph: &mut Graph,
        sources: &mut Vec<Region>,
    ) -> PassResult<'c, Id> {
        if let Value::Number(number) = self.known(value, op)? {
            return Ok(graph.number(number));
        }
        let tensor = self.tensor(value, op)?;
        let region = Self::found(op, storage::without_repeats(&tensor.region))?;
        let name = format!("in{}", sources.len());
        let dtype = Self::found(op, computed(value))?;
        let id = graph.input(&name, kind(&region), dtype);
        sources.push(region);
        Ok(id)
    }

    fn emit_map(
        &mut self,
        op: Op<'c>,
        result: Val<'c>,
        graph: Graph,
        id: Id,
        sources: &[Region],
    ) -> PassResult<'c> {
        let joined = joined(op, result);
        let mut made = Outputs {
            graph,
            regions: Vec::new(),
            values: Vec::new(),
        };
        if joined.kept {
            let to = self.tile_of(result, op, "mapped", Space::Sbuf)?;
            made.push(result, to, id);
        }
        for cast in &joined.casts {
            let value = Self::result(*cast)?;
            let to = self.tile_of(value, *cast, "cast", Space::Sbuf)?;
            let converted = made.graph.cast(id, to.dtype);
            made.push(value, to, converted);
        }
        for sum in &joined.sums {
            let value = Self::result(*sum)?;
            let mut to = self.tile_of(value, *sum, "summed", Space::Sbuf)?;
            let own = to.clone();
            let mut wide = vec![None; to.region.shape.len()];
            wide.push(Some(1));
            to.region = Self::found(op, storage::repeated(&to.region, &wide))?;
            let added = made.graph.reduce(Alu::Add, id, to.dtype);
            made.push(value, to, added);
            made.values.pop();
            made.values.push((value, own));
        }
        let Outputs {
            graph,
            regions,
            values,
        } = made;
        self.bind(op, |code| dispatch::map(code, &regions, &graph, sources))?;
        for (value, tensor) in values {
            self.know(value, Value::Tensor(tensor));
        }
        for other in joined.casts.iter().chain(&joined.sums) {
            self.joined.insert(key(*other));
            self.note(*other, "map", "formed with the map that it reads".into());
        }
        Ok(())
    }

    pub(super) fn cast(&mut self, op: Op<'c>) -> PassResult<'c> {
        let CastOp { source, result, .. } = parts(op)?;
        let known = self.known(source, op)?;
        if let Value::Number(_) = known {
            self.know(result, known);
            return Ok(());
        }
        let from = self.tensor(source, op)?;
        let form = self.form(result, op, Space::Sbuf)?;
        if !from.dtype.is_float() || !form.dtype.is_float() {
            let why = format!(
                "a conversion from {} to {}: values are floats",
                from.dtype, form.dtype
            );
            return Err(failed(op, why));
        }
        let to = self.tile_of(result, op, "cast", Space::Sbuf)?;
        self.bind(op, |code| dispatch::copy(code, &to.region, &from.region))?;
        self.know(result, Value::Tensor(to));
        Ok(())
    }

    pub(super) fn reduce(&mut self, op: Op<'c>) -> PassResult<'c> {
        let ReduceOp {
            source,
            result,
            combiner,
            dims,
            ..
        } = parts(op)?;
        let from = self.tensor(source, op)?;
        let alu = combined(op, combiner, from.dtype)?;
        let dims: Option<Vec<usize>> = dims.iter().map(|dim| usize::try_from(*dim).ok()).collect();
        let dims = dims.ok_or_else(|| failed(op, "expected dimensions"))?;
        let to = self.tile_of(result, op, "reduced", Space::Sbuf)?;
        self.bind(op, |code| {
            dispatch::reduce(code, &to.region, &from.region, &dims, alu)
        })?;
        self.know(result, Value::Tensor(to));
        Ok(())
    }
}

/// What a map forms.
struct Outputs<'c> {
    graph: Graph,
    regions: Vec<Region>,
    values: Vec<(Val<'c>, Tensor)>,
}

impl<'c> Outputs<'c> {
    fn push(&mut self, value: Val<'c>, to: Tensor, id: Id) {
        let name = format!("out{}", self.regions.len());
        self.graph.output(&name, kind(&to.region), to.dtype, id);
        self.regions.push(to.region.clone());
        self.values.push((value, to));
    }
}

/// The users of a map that are formed with it: those of its block that convert its result, or add up its last dimension.
fn joined<'c>(op: Op<'c>, result: Val<'c>) -> Joined<'c> {
    let mut joined = Joined::default();
    let here = op.block();
    let float = types::is_float(axe_dialect::element_type(result.r#type()));
    for user in users(result) {
        let near = float && user.block() == here;
        match name(user).as_str() {
            ops::CAST if near && is_float_result(user) => joined.casts.push(user),
            ops::REDUCE if near && is_sum_of_rows(user) => joined.sums.push(user),
            _ => joined.kept = true,
        }
    }
    joined.kept |= joined.casts.is_empty() && joined.sums.is_empty();
    joined
}

fn is_float_result(op: Op<'_>) -> bool {
    only_result(op)
        .is_some_and(|result| types::is_float(axe_dialect::element_type(result.r#type())))
}

fn is_sum_of_rows(op: Op<'_>) -> bool {
    let Some(ReduceOp {
        source,
        combiner,
        dims,
        ..
    }) = ReduceOp::of(op)
    else {
        return false;
    };
    let rank = types::shape(source.r#type()).map_or(0, |shape| shape.len() as i64);
    combiner == Combiner::Add && dims == [rank - 1]
}
