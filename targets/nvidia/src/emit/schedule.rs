//! Schedules as this target lowers them: a plan is chosen or read, then emitted.

use super::emitter::Emitter;
use crate::plan::Decline;
use crate::state::cursor::Taken;
use crate::state::site::Site;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule, plan};
use axe_passes::ir::{Op, Val};
use melior::ir::Attribute;
use std::rc::Rc;

/// How a schedule's plans are emitted.
pub(crate) trait Emit<'c>: Schedule + for<'a> Match<Site<'a, 'c>> {
    /// What a plan takes of shared memory.
    fn taken(&self, _plan: &Self::Plan) -> Taken {
        Taken::Nothing
    }

    /// Emits a plan; gives the result's registers, if the operator has a result.
    ///
    /// # Errors
    /// When MLIR refuses an operation.
    fn emit(
        &self,
        plan: &Self::Plan,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>>;
}

/// A schedule whose kind of plan is its own business.
pub(crate) trait Candidate<'c> {
    /// The name that `schedule = "..."` takes.
    fn name(&self) -> &'static str;

    /// The plan for an operator.
    ///
    /// # Errors
    /// A decline with its reason.
    fn choose(&self, site: Site<'_, 'c>) -> Result<Rc<dyn Planned<'c> + 'c>, Decline>;

    /// The plan that stands in the IR, checked where `check` is set.
    ///
    /// # Errors
    /// What is wrong with it.
    fn read(
        &self,
        site: Site<'_, 'c>,
        plan: Attribute<'c>,
        check: bool,
    ) -> Result<Rc<dyn Planned<'c> + 'c>, String>;
}

/// A plan with its schedule.
pub(crate) trait Planned<'c> {
    /// The schedule's name.
    fn schedule(&self) -> &'static str;

    /// The plan as an attribute.
    ///
    /// # Errors
    /// A message, for a plan that no attribute says.
    fn attribute(&self, op: Op<'c>) -> Result<Attribute<'c>, String>;

    /// The plan for people: its loop nest over instructions.
    fn text(&self) -> String;

    /// As [`Emit::taken`].
    fn taken(&self) -> Taken;

    /// As [`Emit::emit`].
    ///
    /// # Errors
    /// As [`Emit::emit`].
    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>>;
}

struct Both<S: Schedule> {
    schedule: S,
    plan: S::Plan,
}

impl<'c, S: Emit<'c> + Copy + 'c> Candidate<'c> for S
where
    S::Plan: 'c,
{
    fn name(&self) -> &'static str {
        Schedule::name(self)
    }

    fn choose(&self, site: Site<'_, 'c>) -> Result<Rc<dyn Planned<'c> + 'c>, Decline> {
        Ok(Rc::new(Both {
            schedule: *self,
            plan: Match::plan(self, site)?,
        }))
    }

    fn read(
        &self,
        site: Site<'_, 'c>,
        plan: Attribute<'c>,
        check: bool,
    ) -> Result<Rc<dyn Planned<'c> + 'c>, String> {
        let plan = plan::read::<S::Plan>(plan)?;
        if check {
            self.check(site, &plan)
                .map_err(|decline| decline.to_string())?;
        }
        Ok(Rc::new(Both {
            schedule: *self,
            plan,
        }))
    }
}

impl<'c, S: Emit<'c>> Planned<'c> for Both<S> {
    fn schedule(&self) -> &'static str {
        self.schedule.name()
    }

    fn attribute(&self, op: Op<'c>) -> Result<Attribute<'c>, String> {
        plan::write(op, &self.plan)
    }

    fn text(&self) -> String {
        self.plan.to_string()
    }

    fn taken(&self) -> Taken {
        self.schedule.taken(&self.plan)
    }

    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        self.schedule.emit(&self.plan, emitter, op)
    }
}
