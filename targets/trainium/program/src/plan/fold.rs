//! What is the scale or the bias of an activation, rather than formed by an instruction of its own.

use super::graph::{Form, Graph, Id, Kind};
use super::values::stored;
use crate::program::Alu;
use axe_package::DType;

/// A function's argument, `data * scale + bias`.
pub(super) struct Argument {
    pub data: Id,
    pub scale: Option<Id>,
    /// What is added, and whether it is subtracted instead.
    pub bias: Option<(Id, bool)>,
    /// The values that are no instruction's: the sum, the product.
    pub folded: Vec<Id>,
}

impl Graph {
    /// How the argument of a function of a kind is formed, where `private` says which values nothing else reads.
    pub(super) fn argument(&self, x: Id, kind: Kind, private: &dyn Fn(Id) -> bool) -> Argument {
        let mut argument = Argument {
            data: x,
            scale: None,
            bias: None,
            folded: Vec::new(),
        };
        if let Some((of, added, negative)) = self.shifted(argument.data, kind, private) {
            argument.bias = Some((added, negative));
            argument.folded.push(argument.data);
            argument.data = of;
        }
        if let Some((of, by)) = self.scaled(argument.data, kind, private) {
            argument.scale = Some(by);
            argument.folded.push(argument.data);
            argument.data = of;
        }
        argument
    }

    /// Whether a value is the scale or the bias of the one function that reads it.
    #[must_use]
    pub fn is_folded(&self, id: Id) -> bool {
        let uses = self.uses();
        let private = |id: Id| uses[id] == 1;
        self.needed().into_iter().any(|reader| {
            let node = self.node(reader);
            match node.form {
                Form::Apply(_, x) => {
                    let argument = self.argument(x, node.kind, &private);
                    argument.folded.contains(&id)
                }
                _ => false,
            }
        })
    }

    /// Whether an operand gives one value to each partition of what has a kind.
    pub(super) fn is_beside(&self, id: Id, kind: Kind) -> bool {
        let own = self.kind(id);
        own == Kind::Number || (own == Kind::Row && kind != Kind::Row)
    }

    /// A sum in f32 that nothing else reads, as a value, what is added, and whether that is subtracted.
    fn shifted(&self, id: Id, kind: Kind, private: &dyn Fn(Id) -> bool) -> Option<(Id, Id, bool)> {
        let (op, a, b) = self.private_step(id, kind, private)?;
        match op {
            Alu::Add if self.is_beside(b, kind) => Some((a, b, false)),
            Alu::Add if self.is_beside(a, kind) => Some((b, a, false)),
            Alu::Subtract if self.is_beside(b, kind) => Some((a, b, true)),
            _ => None,
        }
    }

    /// A product in f32 that nothing else reads, as a value and its factor.
    fn scaled(&self, id: Id, kind: Kind, private: &dyn Fn(Id) -> bool) -> Option<(Id, Id)> {
        let (op, a, b) = self.private_step(id, kind, private)?;
        match op {
            Alu::Multiply if self.is_beside(b, kind) => Some((a, b)),
            Alu::Multiply if self.is_beside(a, kind) => Some((b, a)),
            _ => None,
        }
    }

    /// An operation of two values in f32, of a kind, that nothing else reads.
    pub(super) fn private_step(
        &self,
        id: Id,
        kind: Kind,
        private: &dyn Fn(Id) -> bool,
    ) -> Option<(Alu, Id, Id)> {
        let node = self.node(id);
        let alone = private(id) && stored(node.dtype) == DType::F32 && node.kind == kind;
        match node.form {
            Form::Binary(op, a, b) if alone => Some((op, a, b)),
            _ => None,
        }
    }
}
