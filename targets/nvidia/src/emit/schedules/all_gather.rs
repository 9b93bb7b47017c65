//! `axe.all_gather`: each thread group's values reach all thread groups of the cluster.
//!
//! In a cluster a lane of each group stores them to each CTA by `st.async` (PTX ISA 9.7.9.12), which counts its bytes at that CTA's
//! mbarrier: who waits for it needs no barrier of the cluster, and no fence. Rows of one slot are written once in a kernel, so that
//! nothing in them is overwritten, and a CTA that has them all is written to no more and may end. In a CTA alone they are
//! stored, and its barrier says that they are there.
//!
//! In a loop turns take two slots by turns. A thread group gives its row of turn `t + 2`, which overwrites that of turn `t`, once it has all
//! rows of turn `t + 1`; each of these its thread group gave when it had read turn `t`. So nobody waits for readers, and a phase of a
//! slot's mbarrier ends only when all have seen the end of the one before. The leader lets the bytes of the next phase come
//! before it gives its row of the turn between.

use super::reduce_scatter::expect_bytes;
use super::text::expect;
use crate::emit::assembly::Assembly;
use crate::emit::emitter::Emitter;
use crate::emit::pipeline::wait_loop;
use crate::emit::progress::Cursor;
use crate::emit::schedule::Emit;
use crate::emit::value::Memory;
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::state::gathering::Slots;
use crate::state::rings::{RingKey, Side};
use crate::state::site::Site;
use crate::state::threads::{WARP_THREADS, parents};
use crate::state::types;
use axe_dialect::Typed;
use axe_dialect::ops::{self, AllGatherOp};
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::types::bits;
use axe_passes::ir::value::{defining, identity, name};
use axe_passes::ir::walk::{blocks, nested, operations};
use axe_passes::ir::{Int, Op, Val};
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::rc::Rc;

/// Words of a vector.
const VECTOR_WORDS: i64 = 4;

/// From each CTA of a cluster to each.
#[derive(Clone, Copy)]
pub(super) struct Cluster;
/// Within a CTA.
#[derive(Clone, Copy)]
pub(super) struct Cta;

/// Who gives rows, and how long they are.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rows {
    ctas: i64,
    /// Thread groups of a CTA.
    groups: i64,
    /// Slots, which turns of a loop take by turns; one where there is no loop.
    slots: i64,
    /// 32-bit words of a row.
    words: i64,
}

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            ctas,
            groups,
            slots,
            words,
        } = self;
        let of_cta = format!("{words} words of each of {groups} thread groups");
        if *slots > 1 {
            writeln!(f, "{slots} slots, one a turn")?;
        }
        match ctas {
            1 => writeln!(f, "st.shared {of_cta}\nbar.sync\nld.shared")?,
            _ => writeln!(
                f,
                "st.async {of_cta} to each of {ctas} CTAs\nmbarrier.try_wait\nld.shared"
            )?,
        }
        Ok(())
    }
}

/// The cursor of the turns.
fn key(op: &AllGatherOp<'_>) -> RingKey {
    (identity(op.through), Side::Consumer)
}

fn read<'c>(op: Op<'c>) -> Result<AllGatherOp<'c>, Decline> {
    AllGatherOp::of(op).ok_or_else(|| Decline::new("expected axe.all_gather"))
}

/// The fragment of the results, which all of them have.
fn results<'c>(site: Site<'_, 'c>, op: &AllGatherOp<'c>) -> Result<Rc<Fragment>, Decline> {
    let mut all = op.results.iter();
    let fragment = |value: &Val<'c>| site.kernel.fragment(value.r#type(), site.threads());
    let first = all.next().map(fragment);
    let first = first.ok_or_else(|| Decline::new("there is no result"))??;
    for other in all {
        if !first.holds_as(&*fragment(other)?) {
            return Err(Decline::new("expected results of one layout"));
        }
    }
    Ok(first)
}

/// What an operator gathers.
fn rows(site: Site<'_, '_>) -> Result<Rows, Decline> {
    let op = read(site.op)?;
    let storage = &site.memory(op.sources.len())?.shape;
    let slots = Slots::of(storage).ok_or_else(|| Decline::new("expected rows of words"))?;
    let mut around = parents(site.op).take_while(|parent| name(*parent) != ops::KERNEL);
    let is_once = |parent: &Op<'_>| name(*parent) == ops::SCOPE;
    let is_often = |parent: &Op<'_>| is_once(parent) || name(*parent) == "scf.for";
    match slots.count {
        1 if !around.all(|parent| is_once(&parent)) => Err(Decline::new(
            "expected outside of loops and branches: its rows are written once, or storage of two slots, in a loop",
        )),
        2.. if !around.all(|parent| is_often(&parent)) => Err(Decline::new(
            "expected outside of branches: all thread groups of the cluster give rows equally often",
        )),
        _ => Ok(()),
    }?;
    let (ctas, groups) = (site.kernel.cluster_size(), site.group.count());
    if groups * site.threads() != site.kernel.threads {
        return Err(Decline::new(
            "expected thread groups that are all of the CTA",
        ));
    }
    for at in 0..op.sources.len() {
        let held = site.registers(at)?;
        if held.fragment.registers() != 1 || !held.fragment.is_full() {
            return Err(Decline::new("expected sources that every thread holds"));
        }
        if !matches!(bits(held.element), Some(1 | 8 | 16 | 32 | 64)) {
            return Err(Decline::new(format!(
                "expected elements of 1, 8, 16, 32 or 64 bits, got {}",
                held.element
            )));
        }
    }
    results(site, &op)?;
    match slots.rows == ctas * groups {
        true => Ok(Rows {
            ctas,
            groups,
            slots: slots.count,
            words: slots.words,
        }),
        false => Err(Decline::new(format!(
            "expected rows of {groups} thread groups of {ctas} CTAs, got storage of {storage:?}"
        ))),
    }
}

/// Whether a barrier of the cluster is between the storage and the operator: before it, others may not write.
fn is_open(op: &AllGatherOp<'_>) -> bool {
    let kernel = parents(op.op).find(|parent| name(*parent) == ops::KERNEL);
    let body = kernel.and_then(|kernel| blocks(kernel).first().copied());
    let body = body.map(operations).unwrap_or_default();
    let create = defining(op.through);
    let mut between = body
        .into_iter()
        .skip_while(|own| Some(*own) != create)
        .take_while(|own| *own != op.op && !nested(*own, &|_| true).contains(&op.op));
    between.any(|own| name(own) == ops::BARRIER && own.attribute("acrossCluster").is_ok())
}

impl Schedule for Cluster {
    type Plan = Rows;

    fn name(&self) -> &'static str {
        "st.async"
    }
}

impl<'c> Match<Site<'_, 'c>> for Cluster {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Rows, Decline> {
        let rows = rows(site)?;
        if !(2..=WARP_THREADS).contains(&rows.ctas) {
            return Err(Decline::new("expected a cluster of 2 to 32 CTAs"));
        }
        if rows.slots > 1 && site.group.warps > 1 {
            return Err(Decline::new("expected warps, in a loop"));
        }
        match is_open(&read(site.op)?) {
            true => Ok(rows),
            false => Err(Decline::new(
                "expected an axe.barrier cluster between the axe.all_gather.create and this: other CTAs write its storage",
            )),
        }
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Rows) -> Result<(), Decline> {
        expect(plan, &self.plan(site)?)
    }
}

impl Schedule for Cta {
    type Plan = Rows;

    fn name(&self) -> &'static str {
        "st.shared"
    }
}

impl<'c> Match<Site<'_, 'c>> for Cta {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Rows, Decline> {
        let rows = rows(site)?;
        match rows.ctas {
            1 => Ok(rows),
            ctas => Err(Decline::new(format!("the cluster has {ctas} CTAs"))),
        }
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Rows) -> Result<(), Decline> {
        expect(plan, &self.plan(site)?)
    }
}

impl<'c> Emit<'c> for Cluster {
    fn emit(
        &self,
        plan: &Rows,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let op = read(op).map_err(|decline| emitter.error(decline.to_string()))?;
        let through = emitter.memory(op.through)?;
        let words = plan.row(emitter, &op)?;
        let turn = plan.turn(emitter, &op);
        let full = emitter.gathered_barrier(&through, turn.stage)?;
        let ints = emitter.ints();
        let row = ints.mul(emitter.rank_in_cluster()?, plan.groups)?;
        let row = ints.add(row, emitter.group_number()?)?;
        let to = plan.row_pointer(emitter, &through, (turn.stage, row))?;
        if plan.slots > 1 {
            // All lanes have read the turn before.
            emitter.warp_barrier()?;
        }
        let lane = ints.rem(Int::Value(emitter.thread), WARP_THREADS)?;
        let first = ints.less(Int::Value(emitter.thread), Int::Known(plan.ctas))?;
        for (at, vector) in (0..).step_by(4).zip(words.chunks(4)) {
            let to = emitter.offset_pointer(&through, to, Int::Known(at))?;
            let mut operands = vec![to, full, ints.value(lane)?, first];
            operands.extend(vector);
            emitter.assembly(&store_async(vector.len()), &operands, &[])?;
        }
        let parity = ints.value(turn.phase)?;
        emitter.assembly(&wait_loop(), &[full, parity], &[])?;
        if plan.slots > 1 {
            let bytes = emitter.gathered_slots(&through)?.bytes_of_slot();
            let bytes = ints.value(Int::Known(bytes))?;
            let leads = leads_cta(emitter)?;
            emitter.assembly(&expect_bytes(), &[full, bytes, leads], &[])?;
        }
        plan.advance(emitter, &op, turn)?;
        plan.load(emitter, (&op, turn), &through)
    }
}

impl<'c> Emit<'c> for Cta {
    fn emit(
        &self,
        plan: &Rows,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let op = read(op).map_err(|decline| emitter.error(decline.to_string()))?;
        let through = emitter.memory(op.through)?;
        let words = plan.row(emitter, &op)?;
        let turn = plan.turn(emitter, &op);
        let to = plan.row_pointer(emitter, &through, (turn.stage, emitter.group_number()?))?;
        let ints = emitter.ints();
        let leads = ints.less(Int::Value(emitter.thread), Int::Known(1))?;
        emitter.when(leads, &[], |emitter| {
            for (at, vector) in (0..).step_by(4).zip(words.chunks(4)) {
                let to = emitter.offset_pointer(&through, to, Int::Known(at))?;
                emitter.store(&through, to, vector)?;
            }
            Ok(Vec::new())
        })?;
        emitter.effect("nvvm.barrier0", &[])?;
        plan.advance(emitter, &op, turn)?;
        plan.load(emitter, (&op, turn), &through)
    }
}

impl Rows {
    /// The slot of this turn, and the parity of its phase.
    fn turn<'c>(&self, emitter: &Emitter<'c>, op: &AllGatherOp<'c>) -> Cursor<'c> {
        match self.slots {
            1 => Cursor::START,
            _ => emitter.cursor(key(op)),
        }
    }

    /// Goes on to the next turn.
    fn advance<'c>(
        &self,
        emitter: &mut Emitter<'c>,
        op: &AllGatherOp<'c>,
        turn: Cursor<'c>,
    ) -> PassResult<'c> {
        if self.slots > 1 {
            let ints = emitter.ints();
            let next = Cursor {
                stage: ints.xor(turn.stage, Int::Known(1))?,
                phase: ints.xor(turn.phase, turn.stage)?,
            };
            emitter.cursors.insert(key(op), next);
        }
        Ok(())
    }

    /// The words of this thread group's row.
    fn row<'c>(&self, emitter: &Emitter<'c>, op: &AllGatherOp<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let mut row = Vec::new();
        for source in &op.sources {
            let held = emitter.registers(*source)?;
            let value = held.values.first().copied();
            let value = value.ok_or_else(|| emitter.error("a source without a register"))?;
            row.extend(words(emitter, value)?);
        }
        let zero = emitter.ints().value(Int::ZERO)?;
        row.resize(usize::try_from(self.words).unwrap_or(0), zero);
        Ok(row)
    }

    fn row_pointer<'c>(
        &self,
        emitter: &Emitter<'c>,
        through: &Memory<'c>,
        (slot, row): (Int<'c>, Int<'c>),
    ) -> PassResult<'c, Val<'c>> {
        let ints = emitter.ints();
        let slot = ints.mul(slot, emitter.gathered_slots(through)?.words_of_slot())?;
        let at = ints.add(slot, ints.mul(row, self.words)?)?;
        emitter.offset_pointer(through, through.base, at)
    }

    /// The elements of the results that this thread holds: all registers of the first, then of the second, ...
    fn load<'c>(
        &self,
        emitter: &Emitter<'c>,
        (op, turn): (&AllGatherOp<'c>, Cursor<'c>),
        through: &Memory<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let first = op.results.first().map(ValueLike::r#type);
        let first = first.ok_or_else(|| emitter.error("expected a result"))?;
        let fragment = emitter
            .fragment(first)
            .map_err(|decline| emitter.error(decline.to_string()))?;
        let mut all = vec![Vec::new(); op.results.len()];
        for register in 0..fragment.registers() {
            let index = emitter.index_of(&fragment, register)?;
            let row = index.last().copied().unwrap_or(Int::ZERO);
            let from = self.row_pointer(emitter, through, (turn.stage, row))?;
            let mut row = Vec::new();
            for at in (0..self.words).step_by(VECTOR_WORDS as usize) {
                let from = emitter.offset_pointer(through, from, Int::Known(at))?;
                row.extend(emitter.load(through, from, self.words.min(VECTOR_WORDS))?);
            }
            let mut words = row.into_iter();
            for (values, result) in all.iter_mut().zip(&op.results) {
                let element = axe_dialect::element_type(result.r#type());
                values.push(of_words(emitter, &mut words, element)?);
            }
        }
        Ok(all.concat())
    }
}

/// Whether this is the first lane of a CTA's first warp.
fn leads_cta<'c>(emitter: &Emitter<'c>) -> PassResult<'c, Val<'c>> {
    let ints = emitter.ints();
    let thread = ints.mul(emitter.group_number()?, WARP_THREADS)?;
    ints.less(ints.add(thread, Int::Value(emitter.thread))?, Int::Known(1))
}

/// The 32-bit words of a value.
fn words<'c>(emitter: &Emitter<'c>, value: Val<'c>) -> PassResult<'c, Vec<Val<'c>>> {
    let builder = emitter.builder;
    let i32 = types::integer(builder, 32);
    match bits(value.r#type()) {
        Some(64) => {
            let pair = emitter.bitcast(value, types::vector(2, i32))?;
            emitter.unpack(pair, 2, i32)
        }
        Some(32) => Ok(vec![emitter.bitcast(value, i32)?]),
        narrow => {
            let own = types::integer(builder, narrow.unwrap_or(8));
            let own = emitter.bitcast(value, own)?;
            Ok(vec![builder.value("arith.extui", &[own], i32, &[])?])
        }
    }
}

/// A value of its words.
fn of_words<'c>(
    emitter: &Emitter<'c>,
    words: &mut impl Iterator<Item = Val<'c>>,
    element: Type<'c>,
) -> PassResult<'c, Val<'c>> {
    let builder = emitter.builder;
    let mut next = || {
        words
            .next()
            .ok_or_else(|| emitter.error("a row without a word of a result"))
    };
    let word = next()?;
    match bits(element) {
        Some(64) => {
            let pair = emitter.pack(&[word, next()?], types::integer(builder, 32))?;
            emitter.bitcast(pair, element)
        }
        Some(32) => emitter.bitcast(word, element),
        narrow => {
            let own = types::integer(builder, narrow.unwrap_or(8));
            let own = builder.value("arith.trunci", &[word], own, &[])?;
            emitter.bitcast(own, element)
        }
    }
}

/// A lane's store of so many words to the CTA of its number, whose mbarrier counts the bytes.
fn store_async(words: usize) -> Assembly {
    let names: Vec<_> = (4..4 + words).map(|at| format!("${at}")).collect();
    let (vector, value) = match names.as_slice() {
        [one] => ("", one.clone()),
        many => (
            if many.len() == 2 { ".v2" } else { ".v4" },
            format!("{{{}}}", many.join(", ")),
        ),
    };
    let text = format!(
        "{{\n.reg .b32 there;\n.reg .b32 full;\n@$3 mapa.shared::cluster.u32 there, $0, $2;\n@$3 mapa.shared::cluster.u32 full, $1, $2;\n\
         @$3 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes{vector}.b32 [there], {value}, [full];\n}}"
    );
    Assembly {
        text,
        constraints: format!("r,r,r,b{},~{{memory}}", ",r".repeat(words)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_stored_as_vectors() {
        let one = store_async(1);
        assert!(one.text.contains("bytes.b32 [there], $4, [full];"));
        assert_eq!(one.constraints, "r,r,r,b,r,~{memory}");
        let two = store_async(2);
        assert!(two.text.contains("bytes.v2.b32 [there], {$4, $5}, [full];"));
        let four = store_async(4);
        assert!(
            four.text
                .contains("bytes.v4.b32 [there], {$4, $5, $6, $7}, [full];")
        );
    }
}
