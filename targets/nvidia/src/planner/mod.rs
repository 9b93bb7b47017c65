//! Kernels from logical operators: `--axe-plan-kernels`. docs/planning.md follows one product through it.
//!
//! What enters: functions of logical axe operators on tensors. What remains: the same functions with one
//! `axe.launch` a group of operators, reshapes of its operands and results, and one `axe.kernel` a group.
//! Groups, their evaluation on a tile and the function around the kernels are [`axe_passes::fuse`].
//!
//! From the ground up:
//!
//! * [`problem`]: a matrix product as data;
//! * [`knobs`]: what a plan can ask for, in one table; [`config`]: one way to compute a product;
//! * [`layouts`], [`row_tile`], `strided_tile`, `long_rows`: register tensors, shared memory, tiles, without any IR;
//! * [`model`]: how long a configuration takes on a chip;
//! * [`scheduler`], [`mainloop`], [`epilogue`]: the three parts of a product's kernel;
//! * [`family`]: what a kind of kernel gives; [`choose`]: plans, the database, the search and explanations, for all of them;
//! * [`attention`], [`gemm`], [`rows`], [`strided_rows`], [`column_folds`], [`single`], [`top_k`], [`loops`]: the families.

mod attention;
mod choose;
mod column_folds;
mod columns;
pub mod config;
mod epilogue;
mod family;
mod flat;
mod gemm;
mod held_rows;
mod joined_rows;
pub mod knobs;
pub mod layouts;
mod long_rows;
mod loops;
mod mainloop;
mod model;
mod packed_rows;
mod packed_tile;
pub mod problem;
mod row;
mod row_holds;
mod row_kernel;
mod row_shares;
pub mod row_states;
mod row_tile;
mod row_turns;
mod row_walk;
mod row_window;
mod rows;
mod scheduler;
mod single;
mod staged_rows;
mod staying_rows;
mod strided_rows;
mod strided_tile;
mod top_k;
mod turns_kernel;
mod uneven_shares;

use crate::facts::chip::Chip;
use attention::Attentions;
use attention::backward::{self, Gradients};
use axe_dialect::ops;
use axe_package::{Key, TunedDb};
use axe_passes::PassResult;
use axe_passes::fuse::attention::{Attention, Backward};
use axe_passes::fuse::frame::Frame;
use axe_passes::fuse::function::{self, Kernels};
use axe_passes::fuse::group::{ColumnFold, Group, Root};
use axe_passes::fuse::nest::{self, is_nest};
use axe_passes::fuse::operators::is_product;
use axe_passes::fuse::parts::Reduced;
use axe_passes::fuse::space::{Cut, Pairs};
use axe_passes::fuse::{
    narrowed, part_exponentials, part_moments, peaks, rematerialize, siblings, softplus, strided,
    sunk, tables, transposed, wide_sums,
};
use axe_passes::ir::value::name;
use axe_passes::ir::{Builder, Op, Val, walk};
use axe_passes::registry::PassContext;
use choose::tuned;
use column_folds::ColumnFolds;
use family::{Choosing, Family, plan};
use gemm::Gemms;
use gemm::product::Gemm;
use loops::Loops;
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, OperationRef};
use rows::Rows;
use single::Singles;
use std::sync::Arc;
use strided_rows::StridedRows;
use top_k::TopKs;

/// What kernels are planned for.
struct Planner {
    chip: &'static Chip,
    plans: Arc<TunedDb>,
    explain: bool,
}

impl Planner {
    /// Marks the reductions of a block whose rows CTAs hold though other dimensions follow them.
    fn mark_strided<'c>(&self, block: Option<BlockRef<'c, 'c>>) {
        let all = block.map_or_else(Vec::new, walk::operations);
        strided::mark(&all, |value, cut| {
            strided_rows::holds(value, cut, self.chip)
        });
    }
}

/// Plans the kernels of a module.
///
/// # Errors
/// At the operator that cannot be planned.
pub(crate) fn run<'c>(
    module: OperationRef<'c, 'c>,
    chip: &'static Chip,
    pass: &mut PassContext,
) -> PassResult<'c> {
    let planner = Planner {
        chip,
        plans: tuned::plans(module, pass.option("tuned"))?,
        explain: pass.flag("explain"),
    };
    let kernels = function::plan(module, &planner, pass.flag("allow-unsupported"))?;
    pass.count("num-kernels", kernels);
    Ok(())
}

impl<'c> Kernels<'c> for Planner {
    fn prepare(&self, ops: &[Op<'c>]) -> PassResult<'c> {
        let moments = |of: &Reduced<'c>| single::parts_of_moments(of, self.chip);
        let exponentials = |of: &Reduced<'c>| single::parts_of_exponentials(of, self.chip);
        let block = ops.first().and_then(|op| op.block());
        let ops = transposed::remove(ops)?;
        let ops = sunk::sink(&ops)?;
        let ops = narrowed::rewrite(&ops)?;
        let ops = softplus::rewrite(&ops)?;
        let ops = rematerialize::rewrite(&ops)?;
        let ops = tables::rewrite(&ops)?;
        let ops = part_moments::split(&ops, moments)?;
        let ops = part_exponentials::split(&ops, exponentials)?;
        self.mark_strided(block);
        wide_sums::narrow(&ops)?;
        peaks::mark(&ops);
        let ops = nest::read_repeated(&ops)?;
        let ops = nest::to_rows(&ops, row_shares::enough(self.chip))?;
        let ops = nest::unroll_windows(&ops)?;
        let ops = nest::repeats_to_loops(&ops)?;
        // Each of these erases operators of its own.
        let of = |wanted: fn(Op<'c>) -> bool| -> Vec<_> {
            ops.iter().copied().filter(|op| wanted(*op)).collect()
        };
        let mut reductions = of(|op| name(op) == ops::REDUCE);
        let products = of(is_product);
        let nests = of(|op| is_nest(op) && op.result_count() > 1);
        let inlined = of(nest::is_inlined);
        nest::inline_loops(&inlined, &mut reductions, loops::share_rows)?;
        let loops = block.map_or_else(Vec::new, walk::operations);
        let loops = nest::read_through(&loops)?;
        nest::join_sides(&loops)?;
        nest::fold_bodies(&loops)?;
        let reductions = single::split_reductions(&reductions)?;
        // Those that are new since.
        self.mark_strided(block);
        let reductions = gemm::blocks::reduce_in_blocks(&reductions, self.chip, &self.plans)?;
        siblings::gather(&reductions);
        single::reduce_in_parts(&reductions, self.chip)?;
        block.into_iter().for_each(siblings::gather_columns);
        gemm::widen::widen(&products, self.chip)?;
        nest::split_long(&nests, loops::lanes(self.chip))
    }

    fn reduces_blocks(&self, product: Op<'c>, columns: i64) -> bool {
        gemm::blocks::takes_blocks(product, columns, self.chip)
    }

    fn forms_pairs(&self, product: Op<'c>, pairs: Pairs) -> bool {
        gemm::halves::takes_pairs(product, pairs, (self.chip, &self.plans))
    }

    fn forms_two(&self, first: Op<'c>, second: Op<'c>) -> bool {
        gemm::halves::takes_two([first, second], (self.chip, &self.plans))
    }

    fn takes(&self, attention: &Attention<'c>) -> Result<(), String> {
        attention::takes(attention, self.chip)
    }

    fn takes_loops(&self) -> bool {
        true
    }

    fn takes_tables(&self) -> bool {
        true
    }

    fn takes_columns(&self) -> bool {
        true
    }

    fn stores_folded(&self, fold: ColumnFold, bytes: i64, in_parts: bool) -> bool {
        column_folds::stores(fold, bytes, in_parts)
    }

    fn explains(&self) -> bool {
        self.explain
    }

    fn takes_gradients(&self, gradients: &Backward<'c>) -> Result<(), String> {
        backward::takes(gradients, self.chip)
    }

    fn plan(
        &self,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        group: &Group<'c>,
        outputs: &[Val<'c>],
    ) -> PassResult<'c> {
        let choosing = Choosing {
            chip: self.chip,
            plans: &self.plans,
            explain: self.explain,
        };
        match group.root {
            Root::Gemm(_) => plan::<Gemms>(&choosing, frame, builder, group, outputs),
            Root::Attention(_) => plan::<Attentions>(&choosing, frame, builder, group, outputs),
            Root::Gradients(_) => plan::<Gradients>(&choosing, frame, builder, group, outputs),
            Root::Tiles if group.cut.is_some_and(Cut::is_strided) => {
                plan::<StridedRows>(&choosing, frame, builder, group, outputs)
            }
            Root::Tiles => plan::<Rows>(&choosing, frame, builder, group, outputs),
            Root::Columns(_) => plan::<ColumnFolds>(&choosing, frame, builder, group, outputs),
            Root::Single(op) if is_nest(op) => {
                plan::<Loops>(&choosing, frame, builder, group, outputs)
            }
            Root::Single(op) if name(op) == ops::TOP_K => {
                plan::<TopKs>(&choosing, frame, builder, group, outputs)
            }
            Root::Single(_) => plan::<Singles>(&choosing, frame, builder, group, outputs),
        }
    }
}

/// At most `limit` plans that are worth timing for a key of the database, the cost model's own choice first.
pub(crate) fn candidates(key: &Key, chip: &Chip, limit: usize) -> Vec<String> {
    fn of<F: Family>(key: &Key, chip: &Chip, limit: usize) -> Option<Vec<String>> {
        let found = F::candidates(F::of_key(key)?, chip, limit);
        Some(found.iter().map(|found| found.config.to_string()).collect())
    }
    of::<Gemms>(key, chip, limit)
        .or_else(|| of::<Rows>(key, chip, limit))
        .or_else(|| of::<Singles>(key, chip, limit))
        .unwrap_or_default()
}

/// The products of a module of logical operators that the database can have entries for, each once, in order;
/// and why it cannot for the others.
pub(crate) fn products(module: OperationRef<'_, '_>, chip: &Chip) -> (Vec<Key>, Vec<String>) {
    let (mut keys, mut others) = (Vec::new(), Vec::new());
    let all = walk::nested(module, &|_| true).into_iter();
    for op in all.filter(|op| is_product(*op)) {
        let found = Gemm::read(op, chip).map_err(|error| error.message);
        let found = found.and_then(|gemm| {
            gemm.key(chip).ok_or_else(|| {
                "a database of plans has single products of f16, bf16 or f8E4M3FN, in blocks of 128 x 128 where those have scales, and static sizes".to_owned()
            })
        });
        match found {
            Ok(key) if keys.contains(&key) => {}
            Ok(key) => keys.push(key),
            Err(reason) => others.push(format!("{}: {reason}", op.location())),
        }
    }
    (keys, others)
}
