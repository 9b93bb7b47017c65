//! Reductions along the rows of a product's result, such as the sum of squares that an RMSNorm wants or the largest magnitude
//! that 8-bit floats are scaled by: the epilogue reduces blocks of neighbouring columns, and a small kernel what is left of a row.
//!
//! That saves reading the result again, and storing it where nothing else reads it. Where the reduction's result is repeated along
//! the rows, as in a softmax, the kernel of rows that reads the result for that forms the reduction too.

use super::product::Gemm;
use crate::facts::chip::Chip;
use crate::planner::choose::tuned;
use crate::planner::config::Config;
use crate::planner::single::is_repeated;
use axe_dialect::ops::{self, Trait};
use axe_package::TunedDb;
use axe_passes::PassResult;
use axe_passes::build::layout_error;
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::operators::{has, is_product, is_reshape};
use axe_passes::fuse::reshape::{leading_of, reshape};
use axe_passes::fuse::space::{Kind, Place, Size, place_of, source};
use axe_passes::ir::value::{defining, only_result, operands, replace_all_uses, users};
use axe_passes::ir::{Builder, DYNAMIC, Op, TensorType, Val, walk};
use melior::ir::operation::OperationLike;
use mlir_sys as sys;

/// Columns of the blocks that an epilogue reduces: tiles are made of them.
const BLOCKS: [i64; 4] = [16, 32, 64, 128];
/// Columns of those that rows are cut into: with f32 states and results of 16 bits, the epilogue stores a sixteenth more.
const COLUMNS: i64 = 32;
/// The same for a tile that is not made of these: another tile costs more than twice the states.
const NARROW_COLUMNS: i64 = 16;
/// Rows below which a pass over the result takes no time that counts.
const LEAST_ROWS: i64 = 128;
/// Operators that are followed from a reduction to a product.
const MOST_FOLLOWED: usize = 64;

/// Columns of the blocks that a kernel reduces: the widest, of which the others are parts.
pub(super) fn reduced(fusion: &Fusion<'_>) -> Option<i64> {
    let blocks = fusion.outputs.iter().filter_map(|(_, kind)| match kind {
        Kind::Blocks(of) => Some(*of),
        Kind::Full | Kind::Row | Kind::Column | Kind::Pairs(_) => None,
    });
    blocks.max()
}

/// Whether the epilogue of a product can reduce blocks of so many columns.
pub(in crate::planner) fn takes_blocks(product: Op<'_>, of: i64, chip: &Chip) -> bool {
    let Some(gemm) = Gemm::read(product, chip)
        .ok()
        .filter(|_| BLOCKS.contains(&of))
    else {
        return false;
    };
    let gemm = gemm.reducing(Some(of));
    matches!(gemm.configure(&gemm.asked, chip), Ok(Config::Wgmma(_)))
}

/// Cuts reductions of a product's rows into those of blocks, which join the product's kernel, and those of what they leave. The
/// latter, and the reductions that stay.
///
/// # Errors
/// When an operation cannot be built.
pub(in crate::planner) fn reduce_in_blocks<'c>(
    ops: &[Op<'c>],
    chip: &Chip,
    plans: &TunedDb,
) -> PassResult<'c, Vec<Op<'c>>> {
    ops.iter().map(|op| cut(*op, chip, plans)).collect()
}

/// Columns of the blocks of a product's rows: those that divide the tile of its plan, where one is known. None where its epilogue
/// reduces none, or rows are not made of them or too few.
fn columns_of(product: Op<'_>, row: i64, chip: &Chip, plans: &TunedDb) -> Option<i64> {
    let gemm = Gemm::read(product, chip).ok()?;
    let plan = match gemm.asked.chooses() {
        true => Some(gemm.asked),
        false => gemm.key(chip).and_then(|key| tuned::plan(plans, &key)),
    };
    let tile = plan.and_then(|plan| plan.tile);
    let columns = match tile {
        Some([_, n, _]) if n % COLUMNS != 0 && n % NARROW_COLUMNS == 0 => NARROW_COLUMNS,
        _ => COLUMNS,
    };
    let rows = rows_of(only_result(product)?, row, columns)?;
    let enough = rows == DYNAMIC || rows >= LEAST_ROWS;
    (enough && takes_blocks(product, columns, chip)).then_some(columns)
}

fn cut<'c>(op: Op<'c>, chip: &Chip, plans: &TunedDb) -> PassResult<'c, Op<'c>> {
    let (Some(from), Some(result)) = (source(op), only_result(op)) else {
        return Ok(op);
    };
    let Place::Inner(row) = place_of(op, from) else {
        return Ok(op);
    };
    let cut = product_of(from).and_then(|product| columns_of(product, row, chip, plans));
    let Some(columns) = cut.filter(|_| !is_repeated(result)) else {
        return Ok(op);
    };
    let builder = Builder::before(op);
    let tensor = builder.tensor_of(from)?;
    let combiner = op
        .attribute("combiner")
        .map_err(|_| layout_error(op.location(), "a reduction has no combiner"))?;
    let outer = match Size::of(result) {
        Some(Size { dynamic: true, .. }) => DYNAMIC,
        Some(Size { known, .. }) => known,
        None => return Ok(op),
    };
    let leading = match outer {
        DYNAMIC => Some(leading_of(&builder, result, &[DYNAMIC])?),
        _ => None,
    };
    let step = |from: Val<'c>, dim: i64, kept: &[i64]| {
        let attributes = [("combiner", combiner), ("dims", builder.i64s(&[dim]))];
        let kept = builder.tensor(kept, tensor.element)?;
        builder.value(ops::REDUCE, &[from], kept, &attributes)
    };
    let blocks = reshape(&builder, from, &[outer, row / columns, columns], leading)?;
    let states = step(blocks, 2, &[outer, row / columns])?;
    let last = step(states, 1, &[outer])?;
    let wanted = builder.tensor_of(result)?.shape;
    let leading = leading.filter(|_| wanted.first() == Some(&DYNAMIC));
    replace_all_uses(result, reshape(&builder, last, &wanted, leading)?);
    walk::erase(op);
    let last = defining(last)
        .ok_or_else(|| layout_error(builder.location, "a reduction has no operator"))?;
    sink(last);
    Ok(last)
}

/// Moves a reduction of what blocks leave, and reshapes of its result, to what reads them first: what reads a product's kernel
/// closes it, and what stands before that can join it still.
fn sink(op: Op<'_>) {
    let mut moved = vec![op];
    let mut at = 0;
    while let Some(result) = moved.get(at).and_then(|op| only_result(*op)) {
        let reshapes = users(result).into_iter().filter(|user| is_reshape(*user));
        moved.extend(reshapes);
        at += 1;
    }
    let results = moved.iter().filter_map(|moved| only_result(*moved));
    let readers: Vec<_> = results
        .flat_map(users)
        .filter(|user| !moved.contains(user))
        .collect();
    // One in a region would not be met on the way.
    if readers.iter().any(|reader| reader.block() != op.block()) {
        return;
    }
    let mut next = op.next_in_block();
    while let Some(reader) = next {
        if readers.contains(&reader) {
            for op in &moved {
                // SAFETY: both stand in one block, and what is moved stays behind its operands and before its users.
                unsafe { sys::mlirOperationMoveBefore(op.to_raw(), reader.to_raw()) };
            }
            return;
        }
        next = reader.next_in_block();
    }
}

/// Rows of so many elements that a product's result has: the dynamic extent where it is counted at run time, none where rows are not
/// made of blocks of its columns.
fn rows_of(result: Val<'_>, row: i64, block: i64) -> Option<i64> {
    let columns = *TensorType::of_value(result)?.shape.last()?;
    let blocks = columns > block && columns % block == 0 && row % columns == 0;
    let rows = Size::of(result)?.rows(row).filter(|_| blocks)?;
    Some(if rows.dynamic { DYNAMIC } else { rows.known })
}

/// The product of whose elements, one by one, a value is formed, and of nothing that they are reduced to.
fn product_of(value: Val<'_>) -> Option<Op<'_>> {
    let size = Size::of(value)?;
    let (mut next, mut found) = (vec![value], None);
    let mut others = Vec::new();
    for _ in 0..MOST_FOLLOWED {
        let Some(value) = next.pop() else {
            break;
        };
        match defining(value) {
            Some(op) if is_product(op) => found = found.or(Some(op)),
            Some(op) if has(op, Trait::Elementwise) || is_reshape(op) => {
                let same = operands(op).into_iter();
                next.extend(same.filter(|operand| Size::of(*operand) == Some(size)));
            }
            Some(op) => others.push(op),
            None => {}
        }
    }
    found.filter(|product| !depend_on(others, *product))
}

/// Whether one of these operations is computed of another's result, or of much.
fn depend_on<'c>(mut next: Vec<Op<'c>>, other: Op<'c>) -> bool {
    let mut seen = Vec::new();
    while let Some(op) = next.pop() {
        if op == other || seen.len() > MOST_FOLLOWED {
            return true;
        }
        if !seen.contains(&op) {
            seen.push(op);
            next.extend(operands(op).into_iter().filter_map(defining));
        }
    }
    false
}
