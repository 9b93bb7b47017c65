//! Storage and operators that move elements: alloc, slice, view, copy, fill, broadcast, transpose, extract_slice.

use super::lowering::{Lowering, Value, failed};
use super::storage::{self, Storage, Tensor, same_places};
use axe_dialect::ops::{
    AllocOp, BroadcastOp, CopyOp, ExtractSliceOp, FillOp, SliceOp, TransposeOp, ViewOp,
};
use axe_passes::PassResult;
use axe_passes::ir::Op;
use axe_passes::ir::Val;
use axe_passes::ir::value::parts;
use axe_trn::dispatch::{self, Region};
use axe_trn::program::{Expr, Space};
use melior::ir::ValueLike;

/// The schedule of what is another name for a tensor.
const VIEW: &str = "view";

impl<'c> Lowering<'c> {
    pub(super) fn alloc(&mut self, op: Op<'c>) -> PassResult<'c> {
        let AllocOp { result, .. } = parts(op)?;
        let form = Self::found(op, storage::storage_form(result.r#type()))?;
        if form.space == Space::Hbm {
            return Err(failed(op, "expected storage on chip, in sbuf or psum"));
        }
        let tensor = self.tile(op, "storage", &form)?;
        let rest = vec![Vec::new(); form.shape.len()];
        let lost = false;
        self.know(result, Value::Storage(Storage { tensor, rest, lost }));
        Ok(())
    }

    pub(super) fn slice(&mut self, op: Op<'c>) -> PassResult<'c> {
        let SliceOp {
            source,
            origin,
            result,
            ..
        } = parts(op)?;
        let from = self.storage(source, op)?;
        let form = Self::found(op, storage::storage_form(result.r#type()))?;
        let origin: Vec<Expr> = origin
            .into_iter()
            .map(|value| self.indices.expr(value, op))
            .collect::<PassResult<_>>()?;
        let dropped = origin.len().saturating_sub(form.shape.len());
        let mut sizes = vec![1; dropped];
        sizes.extend(&form.shape);
        if origin.len() != sizes.len() || from.tensor.region.shape.len() != sizes.len() {
            return Err(failed(
                op,
                "expected an origin for each dimension of the source",
            ));
        }
        let region = storage::slice(&self.indices, &from.tensor.region, &origin, &sizes);
        let mut region = Self::found(op, region)?;
        region.shape = form.shape.clone();
        if !same_places(&region.layout, &form.layout) {
            let why = format!(
                "the box lies at {}, and its type says {}",
                region.layout.canonicalize(),
                form.layout
            );
            return Err(failed(op, why));
        }
        let mut rest = Vec::new();
        for (dim, begin) in origin.iter().enumerate() {
            let all = from.rest[dim].iter().cloned();
            let all = all.chain([from.tensor.region.shape[dim].into()]);
            rest.push(
                all.map(|all: Expr| all.plus(begin.clone().times(-1)))
                    .collect(),
            );
        }
        let tensor = Tensor {
            region,
            ..from.tensor
        };
        let mut made = Storage {
            tensor,
            rest,
            lost: from.lost,
        };
        self.on_chip_inside(&made, &origin, &sizes, op)?;
        for dim in 0..dropped {
            made.lost |= self.used(&made.rest[dim], 1, op)? == 0;
        }
        made.rest.drain(..dropped);
        self.know(result, Value::Storage(made));
        Ok(())
    }

    /// Boxes of storage on chip lie inside it, and none begins before its source.
    fn on_chip_inside(
        &self,
        made: &Storage,
        origin: &[Expr],
        sizes: &[i64],
        op: Op<'c>,
    ) -> PassResult<'c> {
        for (dim, (begin, size)) in origin.iter().zip(sizes).enumerate() {
            let range = self.indices.range(begin);
            let (low, high) = range.ok_or_else(|| failed(op, "an origin does not fit 64 bits"))?;
            if low < 0 {
                let why = format!("dimension {dim} of the box begins at {low}, before its source");
                return Err(failed(op, why));
            }
            let least = made.rest[dim].iter().map(|rest| self.indices.range(rest));
            let least = least.map(|range| range.map_or(0, |range| range.0));
            let there = least.min().unwrap_or(*size);
            if made.tensor.space != Space::Hbm && there < *size {
                let why = format!(
                    "dimension {dim} of the box reaches {} elements behind its source in {}: it begins at up to {high}",
                    size - there,
                    made.tensor.space
                );
                return Err(failed(op, why));
            }
        }
        Ok(())
    }

    pub(super) fn view(&mut self, op: Op<'c>) -> PassResult<'c> {
        let ViewOp { source, result, .. } = parts(op)?;
        let from = self.storage(source, op)?;
        self.inside(&from, op)?;
        let form = Self::found(op, storage::storage_form(result.r#type()))?;
        if form.space != Space::Hbm {
            let spans = [&form.layout, &from.tensor.region.layout].map(storage::buffer_shape);
            let [own, there] = spans.map(|span| Self::found(op, span));
            let (own, there) = (own?, there?);
            if own.iter().zip(&there).any(|(own, there)| own > there) {
                let why = format!(
                    "expected a view of at most {} partitions of {} elements, got {} of {}",
                    there[0], there[1], own[0], own[1]
                );
                return Err(failed(op, why));
            }
        }
        let own = Self::found(op, storage::region(from.tensor.region.buffer, &form))?;
        let base = from.tensor.region;
        let region = Region {
            partition: base.partition.plus(own.partition),
            free: base.free.plus(own.free),
            ..own
        };
        let rest = vec![Vec::new(); form.shape.len()];
        let tensor = Tensor {
            region,
            ..from.tensor
        };
        let lost = false;
        self.know(result, Value::Storage(Storage { tensor, rest, lost }));
        Ok(())
    }

    /// How many elements of a dimension of a box its source has.
    fn used(&self, rest: &[Expr], size: i64, op: Op<'c>) -> PassResult<'c, i64> {
        let mut used = [size; 2];
        for rest in rest {
            let range = self.indices.range(rest);
            let (low, high) = range.ok_or_else(|| failed(op, "a box does not fit 64 bits"))?;
            used = [used[0].min(low.max(0)), used[1].min(high.max(0))];
        }
        match used[0] == used[1] {
            true => Ok(used[0]),
            false => Err(failed(
                op,
                format!(
                    "a box of {size} has from {} to {} elements inside its source: expected a number that loops around do not change",
                    used[0], used[1]
                ),
            )),
        }
    }

    /// How many elements of each dimension of a box its source has; `None` where it has none of it.
    pub(super) fn valid(&self, of: &Storage, op: Op<'c>) -> PassResult<'c, Option<Vec<i64>>> {
        let mut valid = Vec::new();
        for (rest, size) in of.rest.iter().zip(&of.tensor.region.shape) {
            valid.push(self.used(rest, *size, op)?);
        }
        Ok((!of.lost && !valid.contains(&0)).then_some(valid))
    }

    /// Expects a box that lies inside its source.
    pub(super) fn inside(&self, of: &Storage, op: Op<'c>) -> PassResult<'c> {
        match self.valid(of, op)? {
            Some(valid) if valid == of.tensor.region.shape => Ok(()),
            _ => Err(failed(
                op,
                "the box reaches outside its source: expected axe.copy, which fills up what is not there",
            )),
        }
    }

    pub(super) fn copy(&mut self, op: Op<'c>) -> PassResult<'c> {
        let copy: CopyOp = parts(op)?;
        refuse_options(op, &copy)?;
        let pad = match copy.pad {
            Some(pad) => self.number(pad, op)?,
            None => 0.0,
        };
        match (copy.dest, copy.result) {
            (Some(dest), _) => self.store(op, copy.source, dest, pad),
            (None, Some(result)) => self.load(op, copy.source, result, pad),
            (None, None) => Err(failed(op, "expected a destination or a result")),
        }
    }

    /// A copy to a tensor: from storage, or of a tensor in another layout.
    fn load(&mut self, op: Op<'c>, source: Val<'c>, result: Val<'c>, pad: f64) -> PassResult<'c> {
        let known = self.known(source, op)?;
        if let Value::Tensor(tensor) = &known {
            let form = self.form(result, op, Space::Sbuf)?;
            if same_places(&tensor.region.layout, &form.layout) {
                self.know(result, known);
                self.note(op, VIEW, String::new());
                return Ok(());
            }
        }
        let tile = self.tile_of(result, op, "copy", Space::Sbuf)?;
        match known {
            Value::Storage(storage) => self.move_in(op, &tile, &storage, pad)?,
            Value::Number(number) => {
                self.bind(op, |code| dispatch::fill(code, &tile.region, number))?;
            }
            Value::Tensor(from) => {
                self.bind(op, |code| dispatch::copy(code, &tile.region, &from.region))?;
            }
        }
        self.know(result, Value::Tensor(tile));
        Ok(())
    }

    /// Writes a box of storage to a tile, and the padding to where the box's source has nothing.
    fn move_in(&mut self, op: Op<'c>, to: &Tensor, from: &Storage, pad: f64) -> PassResult<'c> {
        let valid = self.valid(from, op)?;
        let Some(valid) = valid else {
            return self.bind(op, |code| dispatch::fill(code, &to.region, pad));
        };
        let mut pair = [to.region.clone(), from.tensor.region.clone()];
        if valid != from.tensor.region.shape {
            self.beside(op, |code| dispatch::fill(code, &to.region, pad))?;
            for region in &mut pair {
                region.valid = Some(valid.clone());
            }
        }
        let [to, from] = pair;
        self.bind(op, |code| dispatch::copy(code, &to, &from))
    }

    /// A copy to storage.
    fn store(&mut self, op: Op<'c>, source: Val<'c>, dest: Val<'c>, pad: f64) -> PassResult<'c> {
        let to = self.storage(dest, op)?;
        let Some(valid) = self.valid(&to, op)? else {
            self.note(op, VIEW, "nothing: all of it is outside".into());
            return Ok(());
        };
        let whole = valid == to.tensor.region.shape;
        let from = match self.known(source, op)? {
            Value::Number(number) => {
                let mut region = to.tensor.region;
                region.valid = (!whole).then_some(valid);
                return self.bind(op, |code| dispatch::fill(code, &region, number));
            }
            Value::Storage(from) if whole => return self.move_in(op, &to.tensor, &from, pad),
            Value::Storage(from) => {
                self.inside(&from, op)?;
                from.tensor
            }
            Value::Tensor(from) => from,
        };
        let (mut from, mut to) = (from, to.tensor.region);
        if !whole {
            to.valid = Some(valid.clone());
            from.region.valid = Some(valid);
        }
        self.bind(op, |code| dispatch::copy(code, &to, &from.region))
    }

    pub(super) fn fill(&mut self, op: Op<'c>) -> PassResult<'c> {
        let FillOp {
            value,
            dest,
            result,
            ..
        } = parts(op)?;
        let number = self.number(value, op)?;
        if let Some(result) = result {
            self.know(result, Value::Number(number));
            self.note(op, "number", String::new());
            return Ok(());
        }
        let dest = dest.ok_or_else(|| failed(op, "expected a destination or a result"))?;
        let to = self.storage(dest, op)?;
        let Some(valid) = self.valid(&to, op)? else {
            return Ok(());
        };
        let mut region = to.tensor.region;
        region.valid = (valid != region.shape).then_some(valid);
        self.bind(op, |code| dispatch::fill(code, &region, number))
    }

    pub(super) fn broadcast(&mut self, op: Op<'c>) -> PassResult<'c> {
        let BroadcastOp {
            source,
            result,
            dims,
            ..
        } = parts(op)?;
        let known = match self.known(source, op)? {
            Value::Tensor(from) => {
                let shape = Self::found(op, storage::extents(result.r#type()))?;
                let added: Vec<Option<i64>> = shape
                    .iter()
                    .enumerate()
                    .map(|(dim, extent)| dims.contains(&(dim as i64)).then_some(*extent))
                    .collect();
                let region = Self::found(op, storage::repeated(&from.region, &added))?;
                Value::Tensor(Tensor { region, ..from })
            }
            other => other,
        };
        self.know(result, known);
        self.note(op, VIEW, String::new());
        Ok(())
    }

    pub(super) fn transpose(&mut self, op: Op<'c>) -> PassResult<'c> {
        let TransposeOp {
            source,
            result,
            permutation,
            ..
        } = parts(op)?;
        let dims: Option<Vec<usize>> = permutation
            .iter()
            .map(|dim| usize::try_from(*dim).ok())
            .collect();
        let dims = dims.ok_or_else(|| failed(op, "expected dimensions"))?;
        if let Value::Number(number) = self.known(source, op)? {
            self.know(result, Value::Number(number));
            return Ok(());
        }
        let from = self.tensor(source, op)?;
        let turned = Self::found(op, storage::permuted(&from.region, &dims))?;
        let form = self.form(result, op, Space::Sbuf)?;
        if same_places(&turned.layout, &form.layout) {
            let region = turned;
            self.know(result, Value::Tensor(Tensor { region, ..from }));
            self.note(op, VIEW, String::new());
            return Ok(());
        }
        let tile = self.tile_of(result, op, "transposed", Space::Sbuf)?;
        self.bind(op, |code| {
            dispatch::transpose(code, &tile.region, &from.region, &dims)
        })?;
        self.know(result, Value::Tensor(tile));
        Ok(())
    }

    pub(super) fn extract_slice(&mut self, op: Op<'c>) -> PassResult<'c> {
        let ExtractSliceOp {
            source,
            result,
            origin,
            ..
        } = parts(op)?;
        if let Value::Number(number) = self.known(source, op)? {
            self.know(result, Value::Number(number));
            return Ok(());
        }
        let from = self.tensor(source, op)?;
        let form = self.form(result, op, from.space)?;
        let origin: Vec<Expr> = origin.into_iter().map(Expr::Const).collect();
        let part = storage::slice(&self.indices, &from.region, &origin, &form.shape);
        let region = Self::found(op, part)?;
        if same_places(&region.layout, &form.layout) {
            self.know(result, Value::Tensor(Tensor { region, ..from }));
            self.note(op, VIEW, String::new());
            return Ok(());
        }
        let tile = self.tile_of(result, op, "part", Space::Sbuf)?;
        self.bind(op, |code| dispatch::copy(code, &tile.region, &region))?;
        self.know(result, Value::Tensor(tile));
        Ok(())
    }
}

/// Copies are those of transfers and engines, each waited for by what reads it.
fn refuse_options<'c>(op: Op<'c>, copy: &CopyOp<'c>) -> PassResult<'c> {
    let refused = |why: &str| Err(failed(op, why));
    if copy.signal.is_some() {
        return refused("there is no pipeline to signal: what reads a copy waits for it");
    }
    if copy.is_async {
        return refused(
            "expected no 'async': transfers run beside the engines anyway, and what reads a copy waits for it",
        );
    }
    if copy.multicast {
        return refused("expected no 'multicast': a NeuronCore has no cluster around it");
    }
    if copy.accumulate {
        return refused("expected no 'accumulate': no transfer adds; read, add and write");
    }
    Ok(())
}
