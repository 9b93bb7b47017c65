//! A kernel's operators in order, each with what of shared memory is taken before it.

use super::cursor::{Cursor, Taken};
use super::kernel::{Kernel, is_operator};
use super::places::KernelPlaces;
use super::site::Site;
use super::threads::{Selection, ThreadGroup};
use axe_dialect::ops;
use axe_passes::PassResult;
use axe_passes::ir::Op;
use axe_passes::ir::value::name;
use axe_passes::ir::walk::{blocks, operations};

/// Visits a kernel's operators in order; `each` says what of shared memory an operator takes behind the kernel's storage. Gives
/// the bytes in all.
///
/// # Errors
/// The visitor's.
pub(crate) fn visit<'c>(
    kernel: &Kernel<'c>,
    places: &KernelPlaces<'c>,
    each: &mut dyn FnMut(Site<'_, 'c>) -> PassResult<'c, Taken>,
) -> PassResult<'c, i64> {
    let mut visitor = Visitor {
        kernel,
        group: ThreadGroup::cta(kernel.threads),
        cursor: Cursor::new(places.end),
        places,
        each,
    };
    visitor.blocks(kernel.op)?;
    Ok(visitor.cursor.bytes())
}

struct Visitor<'a, 'c> {
    kernel: &'a Kernel<'c>,
    group: ThreadGroup,
    cursor: Cursor,
    places: &'a KernelPlaces<'c>,
    each: &'a mut dyn FnMut(Site<'_, 'c>) -> PassResult<'c, Taken>,
}

impl<'c> Visitor<'_, 'c> {
    fn blocks(&mut self, op: Op<'c>) -> PassResult<'c> {
        for block in blocks(op) {
            let mut operations = operations(block);
            operations.pop();
            operations
                .into_iter()
                .try_for_each(|op| self.operation(op))?;
        }
        Ok(())
    }

    fn operation(&mut self, op: Op<'c>) -> PassResult<'c> {
        let name = name(op);
        if is_operator(&name) {
            let taken = (self.each)(Site {
                kernel: self.kernel,
                group: &self.group,
                cursor: &self.cursor,
                places: self.places,
                op,
            })?;
            self.cursor.take(taken, self.group.count());
            return Ok(());
        }
        match name.as_str() {
            "scf.for" | "scf.if" | ops::FOR_TILES => self.blocks(op),
            ops::SCOPE => match Selection::of(op) {
                None => Ok(()),
                Some(selection) => {
                    let inner = self.group.select(&selection);
                    let group = std::mem::replace(&mut self.group, inner);
                    let rings = self.cursor.enter();
                    self.blocks(op)?;
                    self.cursor.leave(rings);
                    self.group = group;
                    Ok(())
                }
            },
            _ => Ok(()),
        }
    }
}
