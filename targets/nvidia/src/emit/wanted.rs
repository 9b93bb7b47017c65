//! Which registers of a load are wanted: where all that reads them is a `select` whose condition is known before the load, elements that
//! it does not take are not loaded. A triangle of a matrix reads half of it.

use super::emitter::Emitter;
use crate::fragment::Fragment;
use crate::state::types;
use axe_dialect::ops;
use axe_passes::PassResult;
use axe_passes::ir::value::{defining, name, only_result, operands, users};
use axe_passes::ir::walk::{block_arguments, blocks};
use axe_passes::ir::{Op, Val};
use melior::ir::attribute::IntegerAttribute;

/// Operators that are looked at for what a condition is formed of.
const MOST_FOLLOWED: usize = 64;

/// The arm of a `select` that a value is, and its condition.
struct Chosen<'c> {
    condition: Val<'c>,
    where_true: bool,
}

impl<'c> Chosen<'c> {
    /// Of what a load gives, where all that reads it is such an arm of elements in the body of a map.
    fn of(load: Op<'c>) -> Option<Self> {
        let result = only_result(load)?;
        let &[map] = &users(result)[..] else {
            return None;
        };
        let block = blocks(map)
            .first()
            .copied()
            .filter(|_| name(map) == ops::MAP)?;
        let (read, arguments) = (operands(map), block_arguments(block));
        let own = |value: &Val<'c>| read.iter().position(|operand| operand == value);
        let argument = *arguments.get(own(&result)?)?;
        let &[select] = &users(argument)[..] else {
            return None;
        };
        let &[condition, yes, no] = &operands(select)[..] else {
            return None;
        };
        let at = arguments.iter().position(|own| *own == condition)?;
        let once = read.iter().filter(|operand| **operand == result).count() == 1;
        let is_arm = (yes == argument) != (no == argument);
        (once && is_arm && name(select) == "arith.select").then_some(Self {
            condition: *read.get(at)?,
            where_true: yes == argument,
        })
    }
}

/// Whether what a load gives is such an arm, so that some of it may not be wanted.
pub(super) fn is_chosen(load: Op<'_>) -> bool {
    Chosen::of(load).is_some_and(|chosen| is_computed(chosen.condition))
}

/// Whether a tensor is computed without a load.
fn is_computed(value: Val<'_>) -> bool {
    let (mut next, mut followed) = (vec![value], 0);
    while let Some(value) = next.pop() {
        followed += 1;
        let Some(op) = defining(value).filter(|_| followed <= MOST_FOLLOWED) else {
            return false;
        };
        match name(op).as_str() {
            ops::MAP | ops::BROADCAST | ops::CAST => next.extend(operands(op)),
            ops::FILL => {}
            _ => return false,
        }
    }
    true
}

impl<'c> Emitter<'c> {
    /// Whether each register of a load is wanted; nothing where all are, or that is known behind the load only.
    pub(super) fn wanted(
        &self,
        load: Op<'c>,
        fragment: &Fragment,
    ) -> PassResult<'c, Option<Vec<Val<'c>>>> {
        let known = Chosen::of(load).filter(|chosen| is_computed(chosen.condition));
        let Some(chosen) = known else {
            return Ok(None);
        };
        let registers = self.registers(chosen.condition).ok();
        let same = registers.filter(|own| *own.fragment == *fragment);
        let Some(conditions) = same else {
            return Ok(None);
        };
        let conditions = conditions.values.into_iter();
        match chosen.where_true {
            true => Ok(Some(conditions.collect())),
            false => conditions
                .map(|own| self.not(own))
                .collect::<PassResult<'c, _>>()
                .map(Some),
        }
    }

    /// Whether a condition does not hold.
    pub(super) fn not(&self, bit: Val<'c>) -> PassResult<'c, Val<'c>> {
        let bool = types::integer(self.builder, 1);
        let all = self
            .builder
            .constant(IntegerAttribute::new(bool, 1).into())?;
        self.builder.value("arith.xori", &[bit, all], bool, &[])
    }

    /// Whether any of some bits is set.
    pub(super) fn any(&self, bits: &[Val<'c>]) -> PassResult<'c, Option<Val<'c>>> {
        let bool = types::integer(self.builder, 1);
        let Some((&first, rest)) = bits.split_first() else {
            return Ok(None);
        };
        let all = rest.iter().try_fold(first, |any, bit| {
            self.builder.value("arith.ori", &[any, *bit], bool, &[])
        });
        all.map(Some)
    }
}
