//! Elements of tensors as they are computed, through the bodies of maps.

use super::operators::is_reshape;
use super::space::source;
use crate::ir::value::{defining, name, operands};
use crate::ir::walk::{block_arguments, blocks, operations};
use crate::ir::{Op, Val, types};
use axe_dialect::{element_type, ops};
use melior::ir::ValueLike;

/// A value of a tensor's element: of a tensor, or in the body of a map.
#[derive(Clone, Copy)]
pub(super) struct Element<'c> {
    /// The tensor, or the scalar in a map's body.
    pub value: Val<'c>,
    map: Option<Op<'c>>,
}

impl<'c> Element<'c> {
    /// The element of a tensor.
    pub(super) const fn of(value: Val<'c>) -> Self {
        Self { value, map: None }
    }

    /// A value in the body of a map.
    pub(super) const fn inside(value: Val<'c>, map: Op<'c>) -> Self {
        Self {
            value,
            map: Some(map),
        }
    }

    /// Whether it is one in this map's body.
    pub(super) fn is_inside(self, map: Op<'c>) -> bool {
        self.map == Some(map)
    }

    /// What is computed, past the maps and reshapes around it.
    pub(super) fn resolved(mut self) -> Self {
        loop {
            let next = match self.map {
                Some(map) => self.argument(map).map(Self::of),
                None => self.yielded(),
            };
            match next {
                Some(next) => self = next,
                None => return self,
            }
        }
    }

    /// The tensor of which an argument of the map's body is an element.
    fn argument(self, map: Op<'c>) -> Option<Val<'c>> {
        let block = blocks(map).first().copied()?;
        let at = block_arguments(block)
            .into_iter()
            .position(|argument| argument == self.value)?;
        operands(map).get(at).copied()
    }

    fn yielded(self) -> Option<Self> {
        let op = defining(self.value)?;
        if is_reshape(op) {
            return source(op).map(Self::of);
        }
        let block = blocks(op).first().copied();
        let last = block.filter(|_| name(op) == ops::MAP).map(operations)?;
        let value = operands(*last.last()?).first().copied()?;
        Some(Self {
            value,
            map: Some(op),
        })
    }

    /// The operands of what computes it, where that has this name.
    pub(super) fn operands_of(self, wanted: &str) -> Option<Vec<Self>> {
        let op = defining(self.value).filter(|op| name(*op) == wanted)?;
        let map = self.map;
        let all = operands(op).into_iter();
        Some(all.map(|value| Self { value, map }.resolved()).collect())
    }

    /// What it is the exact conversion of to a wider float, or itself.
    pub(super) fn narrow(self) -> Self {
        let own = self.resolved();
        let of = own.operands_of("arith.extf").or_else(|| {
            let from = own.operands_of(ops::CAST)?;
            let width = |of: &Self| {
                let element = element_type(of.value.r#type());
                types::is_float(element).then(|| types::bits(element))
            };
            let widens = width(from.first()?)? < width(&own)?;
            widens.then_some(from)
        });
        match of.as_deref() {
            Some(&[from]) => from.narrow(),
            _ => own,
        }
    }

    /// Whether two are computed alike of the same tensors.
    pub(super) fn is(self, other: Self) -> bool {
        const PURE: [&str; 5] = [
            "arith.addf",
            "arith.subf",
            "arith.mulf",
            "arith.divf",
            "arith.negf",
        ];
        let (a, b) = (self.narrow(), other.narrow());
        if a.value == b.value {
            return true;
        }
        let both = |name: &str| a.operands_of(name).zip(b.operands_of(name));
        let alike = |(a, b): (Vec<Self>, Vec<Self>)| {
            a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.is(*b))
        };
        PURE.into_iter().any(|name| both(name).is_some_and(alike))
    }
}
