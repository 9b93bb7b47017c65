//! The threads that execute operators together: the CTA, or what an `axe.scope` selects of it.

use super::int::{Int, Ints, Predicate};
use super::kernel::{Emitter, SCRATCH_ALIGNMENT};
use super::staging::Staging;
use super::types;
use axe_dialect::Level;
use axe_passes::PassResult;
use axe_passes::ir::value::name;
use axe_passes::ir::walk::blocks;
use axe_passes::ir::{Op, Val, attribute};
use melior::ir::attribute::IntegerAttribute;
use melior::ir::operation::OperationLike;

/// Threads of a warp.
pub(crate) const WARP_THREADS: i64 = crate::vocabulary::WARP;
/// Barriers of a CTA (PTX ISA 9.7.13.1, `barrier`); number 0 is the CTA's own.
const BARRIERS: i64 = 16;

/// Those who meet at a named barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Meeting {
    /// A team.
    Team {
        /// Its first warp.
        first: i64,
        /// How many warps it has.
        warps: i64,
    },
    /// A team that waits for its turn, and the one before it.
    Turn {
        /// The first warp of the one that waits.
        first: i64,
    },
}

/// Consecutive warps of a CTA. A scope without a range makes several teams of one size, of which a thread
/// knows at run time to which it belongs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Team {
    /// The first warp of each team, ascending and evenly apart.
    pub firsts: Vec<i64>,
    /// Warps of a team.
    pub warps: i64,
}

/// `axe.scope`'s level and range.
struct Selection {
    /// Warps of a member of the level.
    unit: i64,
    /// Members from and to.
    range: Option<(i64, i64)>,
}

impl Selection {
    /// What a scope selects; `None` for a level that holds no whole warps.
    fn of(scope: Op<'_>) -> Option<Self> {
        let unit = match scope.attribute("level").ok().and_then(Level::cast)? {
            Level::Device | Level::Cluster | Level::Cta => 0,
            Level::Warpgroup => 4,
            Level::Warp => 1,
            Level::Thread => return None,
        };
        let range = scope.attribute("range").ok().and_then(attribute::read_i64s);
        let range = range.and_then(|range| Some((*range.first()?, *range.get(1)?)));
        Some(Self { unit, range })
    }
}

/// The operations around one, from inside out.
pub(crate) fn parents<'c>(op: Op<'c>) -> impl Iterator<Item = Op<'c>> {
    let parent = |op: &Op<'c>| {
        let parent = op.parent_operation()?;
        // SAFETY: the parent lives as long as the operation.
        Some(unsafe { Op::from_raw(parent.to_raw()) })
    };
    std::iter::successors(parent(&op), parent)
}

impl Team {
    /// All warps of a CTA.
    pub(crate) fn cta(threads: i64) -> Self {
        Self {
            firsts: vec![0],
            warps: threads / WARP_THREADS,
        }
    }

    /// Threads of a team.
    pub(crate) fn threads(&self) -> i64 {
        self.warps * WARP_THREADS
    }

    /// Warps from the first of one team to the first of the next.
    fn spacing(&self) -> i64 {
        match self.firsts[..] {
            [first, second, ..] => second - first,
            _ => self.warps,
        }
    }

    /// How many teams there are.
    pub(crate) fn count(&self) -> i64 {
        i64::try_from(self.firsts.len()).unwrap_or(1)
    }

    fn select(&self, selection: &Selection) -> Self {
        match (selection.unit, selection.range) {
            (0, _) => self.clone(),
            (unit, Some((begin, end))) => Self {
                firsts: self
                    .firsts
                    .iter()
                    .map(|first| first + begin * unit)
                    .collect(),
                warps: (end - begin) * unit,
            },
            (unit, None) => Self {
                firsts: self
                    .firsts
                    .iter()
                    .flat_map(|first| (0..self.warps / unit).map(move |at| first + at * unit))
                    .collect(),
                warps: unit,
            },
        }
    }

    /// The team that executes an operator of a kernel of so many threads.
    pub(crate) fn around(op: Op<'_>, threads: i64) -> Self {
        let scopes = parents(op).filter(|parent| name(*parent) == "axe.scope");
        let scopes: Vec<_> = scopes.filter_map(Selection::of).collect();
        scopes
            .iter()
            .rev()
            .fold(Self::cta(threads), |team, scope| team.select(scope))
    }
}

impl<'c> Emitter<'c> {
    /// `axe.scope`.
    pub(crate) fn scope(&mut self, op: Op<'c>) -> PassResult<'c> {
        let selection = Selection::of(op).ok_or_else(|| {
            self.error("a scope of threads has no operators on this target: expected warps or more")
        })?;
        let Some(body) = blocks(op).first().copied() else {
            return Err(self.error("expected the body of a scope"));
        };
        let keys = self.rings_below(op);
        let before = self.cursor_values(&keys)?;
        let condition = self.selects(&selection)?;
        let inner = self.team.select(&selection);
        let registers = op.attribute("registers").ok().and_then(attribute::integer);
        let role = |emitter: &mut Self| {
            let outside = emitter.enter(&selection, inner)?;
            if let Some(registers) = registers {
                emitter.budget(registers)?;
            }
            emitter.block(body)?;
            emitter.drain()?;
            emitter.leave(outside);
            emitter.cursor_values(&keys)
        };
        let after = match condition {
            None => role(self)?,
            Some(condition) => self.when(condition, &before, role)?,
        };
        self.set_cursors(&keys, &after);
        Ok(())
    }

    /// Whether this thread is in the selected range of its team; `None` when every thread is.
    fn selects(&self, selection: &Selection) -> PassResult<'c, Option<Val<'c>>> {
        let Some((begin, end)) = selection.range.filter(|_| selection.unit > 0) else {
            return Ok(None);
        };
        let (begin, end) = (begin * selection.unit, end * selection.unit);
        let (ints, warp) = (self.ints(), self.warp_in_team()?);
        let mut condition = None;
        if begin > 0 {
            let after = ints.less(Int::Known(begin - 1), warp)?;
            condition = Some(self.both(condition, after)?);
        }
        if end < self.team.warps {
            let before = ints.less(warp, Int::Known(end))?;
            condition = Some(self.both(condition, before)?);
        }
        Ok(condition)
    }

    /// Makes a part of the team the one that executes; gives what [`Self::leave`] restores.
    fn enter(&mut self, selection: &Selection, inner: Team) -> PassResult<'c, Outside<'c>> {
        let outside = Outside {
            team: self.team.clone(),
            thread: self.thread,
            threads: self.threads,
            leader: self.leader,
            staging: std::mem::replace(&mut self.staging, Staging::new(self.loops > 0)),
        };
        let ints = self.ints();
        let thread = Int::Value(self.thread);
        let thread = match selection.range {
            Some((begin, _)) => {
                ints.sub(thread, Int::Known(begin * selection.unit * WARP_THREADS))?
            }
            None if inner.warps < self.team.warps => ints.rem(thread, inner.threads())?,
            None => thread,
        };
        self.thread = ints.value(thread)?;
        self.threads = inner.threads();
        self.team = inner;
        self.leader = None;
        self.keep_scratch();
        self.leader = Some(self.leads()?);
        Ok(outside)
    }

    /// Scopes run side by side, also with what comes after them: each has its own scratch memory.
    fn keep_scratch(&mut self) {
        let used = self.scratch + self.scratch_used;
        self.scratch = (used + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
        self.scratch_used = 0;
    }

    fn leave(&mut self, outside: Outside<'c>) {
        self.team = outside.team;
        self.thread = outside.thread;
        self.threads = outside.threads;
        self.leader = outside.leader;
        self.staging = outside.staging;
        self.keep_scratch();
    }

    /// Finds the number of this thread's warp, in a form that ptxas knows to be uniform, and the leader.
    pub(crate) fn find_warp(&mut self) -> PassResult<'c> {
        let ints = self.ints();
        let i32 = types::integer(self.builder, 32);
        let own = ints.div(Int::Value(self.thread), WARP_THREADS)?;
        let operands = [
            ints.value(Int::Known(-1))?,
            ints.value(own)?,
            ints.value(Int::ZERO)?,
            ints.value(Int::Known(31))?,
        ];
        let kind = self.builder.parsed("#nvvm<shfl_kind idx>")?;
        let warp = self
            .builder
            .value("nvvm.shfl.sync", &operands, i32, &[("kind", kind)])?;
        self.warp = Some(warp);
        self.leader = Some(self.leads()?);
        Ok(())
    }

    /// The number of this thread's warp in the CTA, known to be the same in all its lanes.
    fn warp(&self) -> PassResult<'c, Int<'c>> {
        match self.warp {
            Some(warp) => Ok(Int::Value(warp)),
            None => Err(self.error("a kernel without roles has no warp number")),
        }
    }

    /// The number of this thread's warp in its team, known to be uniform.
    pub(crate) fn warp_in_team(&self) -> PassResult<'c, Int<'c>> {
        let (ints, warp) = (self.ints(), self.warp()?);
        let first = self.team.firsts.first().copied().unwrap_or(0);
        let within = ints.sub(warp, Int::Known(first))?;
        match self.team.firsts.len() {
            0 | 1 => Ok(within),
            _ => ints.rem(within, self.team.spacing()),
        }
    }

    /// The number of this thread's team among those that run side by side.
    pub(crate) fn team_number(&self) -> PassResult<'c, Int<'c>> {
        if self.team.count() == 1 {
            return Ok(Int::ZERO);
        }
        let ints = self.ints();
        let first = self.team.firsts.first().copied().unwrap_or(0);
        let within = ints.sub(self.warp()?, Int::Known(first))?;
        ints.div(within, self.team.spacing())
    }

    /// Whether this thread is the one of its team that issues what one thread issues.
    pub(crate) fn leads(&mut self) -> PassResult<'c, Val<'c>> {
        if let Some(leader) = self.leader {
            return Ok(leader);
        }
        let elected = self.elect()?;
        if self.team.warps == 1 {
            return Ok(elected);
        }
        let first = self
            .ints()
            .compare(Predicate::Equal, self.warp_in_team()?, Int::ZERO)?;
        self.both(Some(first), elected)
    }

    /// Whether this thread is the one of its warp that issues (PTX ISA 9.7.13.17, `elect.sync`: sm_90 and up).
    pub(crate) fn elect(&self) -> PassResult<'c, Val<'c>> {
        if self.chip.has_tma {
            let bool = types::integer(self.builder, 1);
            return self.builder.value("nvvm.elect.sync", &[], bool, &[]);
        }
        let ints = self.ints();
        let lane = ints.rem(Int::Value(self.thread), WARP_THREADS)?;
        ints.compare(Predicate::Equal, lane, Int::ZERO)
    }

    /// `setmaxnreg`: gives registers back to the multiprocessor, or takes more (PTX ISA 9.7.20.5).
    fn budget(&self, registers: i64) -> PassResult<'c> {
        let at_launch = crate::facts::chip::MULTIPROCESSOR_REGISTERS / self.cta_threads / 8 * 8;
        let action = match registers > at_launch {
            true => "increase",
            false => "decrease",
        };
        let i32 = types::integer(self.builder, 32);
        let attributes = [
            ("regCount", IntegerAttribute::new(i32, registers).into()),
            (
                "action",
                self.builder.parsed(&format!("#nvvm<action {action}>"))?,
            ),
        ];
        self.builder
            .operation("nvvm.setmaxregister", &[], &[], &attributes, Vec::new())?;
        Ok(())
    }

    /// Orders the memory accesses of the team's threads.
    pub(crate) fn barrier(&mut self) -> PassResult<'c> {
        if self.team.threads() == self.cta_threads {
            self.builder
                .operation("nvvm.barrier0", &[], &[], &[], Vec::new())?;
            return Ok(());
        }
        if self.team.warps == 1 {
            return self.warp_barrier();
        }
        let team = self.team.clone();
        if let [first] = team.firsts[..] {
            return self.named_barrier(first, team.warps);
        }
        // A number that is known at run time would reserve all barriers (PTX ISA, `barrier`).
        for (at, &first) in (0..).zip(&team.firsts) {
            let number = self.team_number()?;
            let own = self
                .ints()
                .compare(Predicate::Equal, number, Int::Known(at))?;
            self.when(own, &[], |emitter| {
                emitter.named_barrier(first, team.warps)?;
                Ok(Vec::new())
            })?;
        }
        Ok(())
    }

    /// `bar.warp.sync`.
    pub(crate) fn warp_barrier(&self) -> PassResult<'c> {
        let mask = Ints::new(self.builder, 32).value(Int::Known(-1))?;
        self.builder
            .operation("nvvm.bar.warp.sync", &[mask], &[], &[], Vec::new())?;
        Ok(())
    }

    /// The barrier of these warps, whose number is known when compiling.
    pub(crate) fn named_barrier(&mut self, first: i64, warps: i64) -> PassResult<'c> {
        self.meet(Meeting::Team { first, warps }, warps)
    }

    /// The number of a meeting's barrier.
    pub(crate) fn barrier_of(&mut self, meeting: Meeting) -> PassResult<'c, i64> {
        let next = i64::try_from(self.barriers.len()).unwrap_or(BARRIERS) + 1;
        let number = *self.barriers.entry(meeting).or_insert(next);
        match number < BARRIERS {
            true => Ok(number),
            false => Err(self.error(format!(
                "the kernel's scopes need more than the {BARRIERS} barriers of a CTA"
            ))),
        }
    }

    /// Waits at a meeting's barrier for so many warps.
    pub(crate) fn meet(&mut self, meeting: Meeting, warps: i64) -> PassResult<'c> {
        let number = self.barrier_of(meeting)?;
        let ints = self.ints();
        let operands = [
            ints.value(Int::Known(number))?,
            ints.value(Int::Known(warps * WARP_THREADS))?,
        ];
        let segments = self.builder.segments(&[1, 1, 0]);
        self.builder
            .operation("nvvm.barrier", &operands, &[], &[segments], Vec::new())?;
        Ok(())
    }

    /// Waits for the bulk stores that the team's leader issued: shared memory must outlive them.
    pub(crate) fn drain(&mut self) -> PassResult<'c> {
        if !std::mem::take(&mut self.bulk_stores) {
            return Ok(());
        }
        self.bulk_wait(0, true)
    }

    /// `cp.async.bulk.wait_group`, of this thread's groups.
    pub(crate) fn bulk_wait(&self, pending: i64, read: bool) -> PassResult<'c> {
        let i32 = types::integer(self.builder, 32);
        let mut attributes = vec![("group", IntegerAttribute::new(i32, pending).into())];
        if read {
            attributes.push(("read", self.builder.unit()));
        }
        self.builder.operation(
            "nvvm.cp.async.bulk.wait_group",
            &[],
            &[],
            &attributes,
            Vec::new(),
        )?;
        Ok(())
    }
}

/// What a scope hides while its body is emitted.
pub(crate) struct Outside<'c> {
    team: Team,
    thread: Val<'c>,
    threads: i64,
    leader: Option<Val<'c>>,
    staging: Staging<'c>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(unit: i64, range: Option<(i64, i64)>) -> Selection {
        Selection { unit, range }
    }

    #[test]
    fn scopes_select_warps() {
        let cta = Team::cta(384);
        let consumers = cta.select(&selection(4, Some((1, 3))));
        assert_eq!((consumers.firsts.clone(), consumers.warps), (vec![4], 8));
        let each = consumers.select(&selection(4, None));
        assert_eq!((each.firsts.clone(), each.warps), (vec![4, 8], 4));
        let second = each.select(&selection(1, Some((1, 2))));
        assert_eq!((second.firsts, second.warps), (vec![5, 9], 1));
    }

    #[test]
    fn teams_with_gaps_keep_their_distance() {
        let each = Team::cta(256).select(&selection(4, None));
        let three = each.select(&selection(1, Some((1, 4))));
        assert_eq!((three.firsts.clone(), three.warps), (vec![1, 5], 3));
        assert_eq!((three.spacing(), three.count()), (4, 2));
        assert_eq!(Team::cta(256).spacing(), 8);
    }
}
