//! The arguments of a kernel: what it reads, scalars, what it writes.

use super::frame::{Frame, Operand, Out};
use super::fusion::Fusion;
use super::row_numbers::{Named, RowNumbers};
use super::space::Kind;
use crate::PassResult;
use crate::build::{Code, Kernel};
use crate::ir::value::identity;
use crate::ir::{Builder, Int, Ints, Val};
use indexmap::IndexMap;
use melior::ir::{Type, ValueLike};
use std::collections::HashMap;

/// A memref of the kernel in the space's own shape.
#[derive(Clone, Debug)]
pub struct Argument<'c> {
    /// The memref.
    pub memref: Val<'c>,
    /// Its extents.
    pub extents: Vec<i64>,
    /// The column of it that is the space's first one, where its rows are longer.
    pub first: i64,
    /// Which of its rows the space's are, where these are others.
    pub numbers: Option<Box<RowNumbers<'c>>>,
    /// The row and column of the space at which it begins, where it is the CTA's part in shared memory.
    pub staged_at: Option<[Val<'c>; 2]>,
}

impl<'c> Argument<'c> {
    /// A memref in global memory.
    #[must_use]
    pub const fn global(memref: Val<'c>, extents: Vec<i64>) -> Self {
        Self {
            memref,
            extents,
            first: 0,
            numbers: None,
            staged_at: None,
        }
    }

    /// The CTA's part in shared memory, which begins at a row and column of the space.
    #[must_use]
    pub const fn staged(memref: Val<'c>, extents: Vec<i64>, at: [Val<'c>; 2]) -> Self {
        Self {
            memref,
            extents,
            first: 0,
            numbers: None,
            staged_at: Some(at),
        }
    }

    /// Where a row and a column of the space are in it.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub fn place(
        &self,
        code: Code<'c>,
        [row, column]: [Val<'c>; 2],
    ) -> PassResult<'c, [Val<'c>; 2]> {
        let row = match &self.numbers {
            Some(numbers) => {
                let ints = Ints::index(code.builder);
                ints.value(numbers.of_row(code.builder, Int::of(row))?)?
            }
            None => row,
        };
        Ok(match self.first {
            0 => [row, column],
            first => [row, code.add(column, code.index(first)?)?],
        })
    }
}

/// The inputs of a kernel, by value and kind, in an order that is always the same: so is the code that goes through them.
pub type Inputs<'c> = IndexMap<(usize, Kind), Argument<'c>>;

/// A kernel's arguments, in the order of [`argument_types`].
pub struct Arguments<'c> {
    /// What the kernel reads beside the group's inputs, before them: first its tables.
    pub operands: Vec<Argument<'c>>,
    /// The group's inputs.
    pub inputs: Inputs<'c>,
    /// What bodies read from outside: scalars of the function, and tables.
    pub scalars: HashMap<usize, Val<'c>>,
    /// What the kernel writes.
    pub outputs: Vec<Argument<'c>>,
}

impl<'c> Arguments<'c> {
    /// The arguments of a kernel that was made for these operands.
    #[must_use]
    pub fn of(
        kernel: &Kernel<'c>,
        ins: &[Operand<'c>],
        fusion: &Fusion<'c>,
        outs: &[Out<'c>],
    ) -> Self {
        let mut memrefs = kernel.arguments.iter().copied();
        let of = |(operand, memref): (&Operand<'c>, Val<'c>)| {
            Argument::global(memref, operand.shape.clone())
        };
        let mut operands: Vec<_> = ins.iter().zip(memrefs.by_ref()).map(of).collect();
        let own = operands.len().saturating_sub(fusion.inputs.len());
        let inputs = operands.split_off(own);
        let inputs = fusion.inputs.iter().zip(inputs);
        let inputs = inputs.map(|((value, kind), argument)| {
            let sliced = fusion.sliced(*value, *kind);
            let blocks = sliced.and_then(|own| own.blocks);
            let own = Argument {
                first: sliced.map_or(0, |own| own.first),
                numbers: blocks.map(|own| {
                    Box::new(RowNumbers {
                        named: None,
                        blocks: Some(own),
                    })
                }),
                ..argument
            };
            ((identity(*value), *kind), own)
        });
        let mut inputs: Inputs<'c> = inputs.collect();
        for (value, lookup) in &fusion.lookups {
            let numbers = inputs.get(&(identity(lookup.numbers), Kind::Row));
            let named = numbers.map(|own| Named {
                memref: own.memref,
                wraps: lookup.wraps,
                rows: lookup.rows,
            });
            let blocks = lookup.blocks;
            if let Some(argument) = inputs.get_mut(&(identity(*value), Kind::Full)) {
                argument.numbers = named.map(|_| Box::new(RowNumbers { named, blocks }));
            }
        }
        let scalars = fusion.scalars.iter().map(|value| identity(*value));
        let tables = fusion.tables.iter().map(|value| identity(*value));
        let tables = tables.zip(operands.iter().map(|table| table.memref));
        let scalars = tables.chain(scalars.zip(memrefs.by_ref())).collect();
        Self {
            operands,
            inputs,
            scalars,
            outputs: outs
                .iter()
                .map(|(_, out)| out)
                .zip(memrefs)
                .map(of)
                .collect(),
        }
    }
}

/// The tensors of a kernel: its tables and inputs, and new ones for its outputs, of the shapes that their kinds have.
///
/// # Errors
/// As for [`Frame::operand`].
pub fn tensors<'c>(
    frame: &mut Frame<'c>,
    builder: &Builder<'c>,
    fusion: &Fusion<'c>,
    shape: impl Fn(Val<'c>, Kind) -> Vec<i64>,
) -> PassResult<'c, (Vec<Operand<'c>>, Vec<Out<'c>>)> {
    let ins = inputs(frame, builder, fusion, &shape)?;
    Ok((ins, outputs(frame, builder, fusion, shape)?))
}

/// The tensors that a kernel reads: its tables and inputs, of the shapes that their kinds have.
///
/// # Errors
/// As for [`Frame::operand`].
pub fn inputs<'c>(
    frame: &mut Frame<'c>,
    builder: &Builder<'c>,
    fusion: &Fusion<'c>,
    shape: impl Fn(Val<'c>, Kind) -> Vec<i64>,
) -> PassResult<'c, Vec<Operand<'c>>> {
    let mut ins = Vec::new();
    for table in &fusion.tables {
        let shape = builder.tensor_of(*table)?.shape;
        ins.push(frame.operand(builder, *table, &shape)?);
    }
    for (value, kind) in &fusion.inputs {
        let shape = shape(*value, *kind);
        ins.push(input(frame, builder, fusion, (*value, *kind), shape)?);
    }
    Ok(ins)
}

/// A tensor that a kernel reads, of this shape in the space; all of the rows that it has parts of.
///
/// # Errors
/// As for [`Frame::operand`].
pub fn input<'c>(
    frame: &mut Frame<'c>,
    builder: &Builder<'c>,
    fusion: &Fusion<'c>,
    (value, kind): (Val<'c>, Kind),
    mut shape: Vec<i64>,
) -> PassResult<'c, Operand<'c>> {
    if let Some(lookup) = fusion.lookup(value, kind) {
        return frame.operand(builder, lookup.table, &[lookup.all, lookup.columns]);
    }
    let sliced = fusion.sliced(value, kind);
    if let (Some(sliced), Some(columns)) = (sliced, shape.last_mut()) {
        *columns = sliced.whole;
    }
    if let (Some(all), Some(rows)) = (sliced.and_then(|own| own.all), shape.first_mut()) {
        *rows = all;
    }
    frame.operand(builder, sliced.map_or(value, |own| own.from), &shape)
}

/// New tensors for a kernel's outputs, of the shapes that their kinds have.
///
/// # Errors
/// As for [`Frame::operand`].
pub fn outputs<'c>(
    frame: &mut Frame<'c>,
    builder: &Builder<'c>,
    fusion: &Fusion<'c>,
    shape: impl Fn(Val<'c>, Kind) -> Vec<i64>,
) -> PassResult<'c, Vec<Out<'c>>> {
    let mut outs = Vec::new();
    for (value, kind) in &fusion.outputs {
        outs.push((*value, frame.out(builder, *value, &shape(*value, *kind))?));
    }
    Ok(outs)
}

/// The types of a kernel's arguments: tensors read, scalars, tensors written.
#[must_use]
pub fn argument_types<'c>(
    ins: &[Operand<'c>],
    scalars: &[Val<'c>],
    outs: &[Out<'c>],
) -> Vec<Type<'c>> {
    let scalars = scalars.iter().map(|value| value.r#type());
    ins.iter()
        .map(|operand| operand.memref)
        .chain(scalars)
        .chain(outs.iter().map(|(_, out)| out.memref))
        .collect()
}

/// What a launch of a kernel with such arguments reads: tensors, then scalars.
#[must_use]
pub fn launched<'c>(ins: &[Operand<'c>], scalars: &[Val<'c>]) -> Vec<Val<'c>> {
    let tensors = ins.iter().map(|operand| operand.tensor);
    tensors.chain(scalars.iter().copied()).collect()
}
