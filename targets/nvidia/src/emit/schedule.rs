//! Schedules: how an operator is bound to instructions, and how one is chosen.

use super::kernel::Emitter;
use crate::plan::Decline;
use axe_passes::ir::value::{only_result, operands, results};
use axe_passes::ir::{DYNAMIC, Op, Val, attribute};
use axe_passes::{PassError, PassResult};
use melior::ir::attribute::StringAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::{Location, ValueLike};

use super::schedules;
use super::value::{Bound, Memory, Registers};

/// An operator of a kernel as a schedule reads it.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a, 'c> {
    /// What its operands are.
    pub emitter: &'a Emitter<'c>,
    /// The operator.
    pub op: Op<'c>,
}

impl<'a, 'c> Site<'a, 'c> {
    /// What an operand is.
    pub(crate) fn operand(&self, at: usize) -> Result<&'a Bound<'c>, Decline> {
        let operand = operands(self.op).get(at).copied();
        operand
            .and_then(|operand| self.emitter.bound(operand).ok())
            .ok_or_else(|| Decline::new(format!("operand {at} is not there")))
    }

    /// An operand in memory: a box of a known shape.
    pub(crate) fn memory(&self, at: usize) -> Result<&'a Memory<'c>, Decline> {
        let Bound::Memory(memory) = self.operand(at)? else {
            return Err(Decline::new(format!("operand {at} is not in memory")));
        };
        if memory.shape.contains(&DYNAMIC) {
            return Err(Decline::new(format!(
                "operand {at} has a dynamic extent: expected a box of a known shape, as axe.slice makes"
            )));
        }
        Ok(memory)
    }

    /// An operand in registers.
    pub(crate) fn registers(&self, at: usize) -> Result<&'a Registers<'c>, Decline> {
        match self.operand(at)? {
            Bound::Registers(registers) => Ok(registers),
            _ => Err(Decline::new(format!("operand {at} is not in registers"))),
        }
    }

    /// The fragment of the result.
    pub(crate) fn result(&self) -> Result<std::rc::Rc<crate::fragment::Fragment>, Decline> {
        let result = only_result(self.op).ok_or_else(|| Decline::new("there is no result"))?;
        self.emitter.fragment(result.r#type())
    }

    /// The number of operands.
    pub(crate) fn operand_count(&self) -> usize {
        operands(self.op).len()
    }

    /// Whether a flag is set.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.op.attribute(name).is_ok()
    }

    /// An integer array attribute, such as `dims`.
    pub(crate) fn dims(&self, name: &str) -> Vec<usize> {
        let values = self
            .op
            .attribute(name)
            .ok()
            .and_then(attribute::read_i64s)
            .unwrap_or_default();
        values
            .into_iter()
            .filter_map(|dim| usize::try_from(dim).ok())
            .collect()
    }
}

/// What a schedule decided for an operator.
pub(crate) trait Plan<'c> {
    /// The plan for people: its loop nest over instructions.
    fn describe(&self) -> String;

    /// Emits it; gives the result's registers, if it has a result.
    ///
    /// # Errors
    /// When MLIR refuses an operation.
    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>>;
}

/// A way to execute an operator.
pub(crate) trait Schedule<'c> {
    /// The name that `schedule = "..."` takes.
    fn name(&self) -> &'static str;

    /// The plan for an operator.
    ///
    /// # Errors
    /// A decline with its reason.
    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline>;
}

/// What was decided for an operator.
#[derive(Clone, Debug)]
pub(crate) struct Decision<'c> {
    /// Where the operator is.
    pub location: Location<'c>,
    /// Its name.
    pub operator: String,
    /// The schedule that was chosen.
    pub schedule: &'static str,
    /// Its plan, for people.
    pub plan: String,
    /// The schedules before it and their reasons.
    pub declines: Vec<(&'static str, Decline)>,
}

impl<'c> Emitter<'c> {
    /// Chooses a schedule for an operator of axe and emits its plan.
    pub(crate) fn operator(&mut self, op: Op<'c>, name: &str) -> PassResult<'c> {
        let mut candidates = schedules::of(Site { emitter: self, op });
        if candidates.is_empty() {
            return Err(self.error(format!(
                "no schedule of {} executes '{name}'",
                self.chip.name
            )));
        }
        let forced = op.attribute("schedule").ok().and_then(|attribute| {
            StringAttribute::try_from(attribute)
                .ok()
                .map(|name| name.value().to_owned())
        });
        if let Some(forced) = &forced {
            let known: Vec<_> = candidates.iter().map(|schedule| schedule.name()).collect();
            candidates.retain(|schedule| schedule.name() == forced);
            if candidates.is_empty() {
                return Err(self.error(format!(
                    "'{name}' has no schedule \"{forced}\" on {}: expected one of {}",
                    self.chip.name,
                    known.join(", ")
                )));
            }
        }
        let mut declines = Vec::new();
        for schedule in candidates {
            match schedule.plan(Site { emitter: self, op }) {
                Err(decline) => declines.push((schedule.name(), decline)),
                Ok(plan) => {
                    self.decisions.push(Decision {
                        location: op.location(),
                        operator: name.to_owned(),
                        schedule: schedule.name(),
                        plan: plan.describe(),
                        declines,
                    });
                    return self.emit_plan(op, plan.as_ref());
                }
            }
        }
        Err(self.declined(name, &declines))
    }

    fn emit_plan(&mut self, op: Op<'c>, plan: &dyn Plan<'c>) -> PassResult<'c> {
        let values = plan.emit(self, op)?;
        self.bind_expanded(&results(op), &values)
    }

    fn declined(&self, name: &str, declines: &[(&'static str, Decline)]) -> PassError<'c> {
        let error = self.error(format!(
            "no schedule of {} takes this '{name}'",
            self.chip.name
        ));
        declines.iter().fold(error, |error, (schedule, decline)| {
            error.note(format!("{schedule}: {decline}"))
        })
    }
}
