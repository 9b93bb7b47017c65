//! Extents and reshapes of tensors.

use super::value::{defined_by, operands};
use super::{Builder, DYNAMIC, TensorType, Val};
use crate::error::{PassError, PassResult};
use axe_dialect::Typed;
use axe_dialect::ops::{self, FillOp};
use melior::ir::{Type, ValueLike};

impl<'c> Builder<'c> {
    /// The parts of a tensor value's type.
    ///
    /// # Errors
    /// When the value is not a ranked tensor.
    pub fn tensor_of(&self, value: Val<'c>) -> PassResult<'c, TensorType<'c>> {
        TensorType::of_value(value).ok_or_else(|| {
            PassError::new(
                self.location,
                format!("expected a ranked tensor, got {}", value.r#type()),
            )
        })
    }

    /// The extent of dimension `dim` of a tensor as an index value, found where the tensor's producer has it.
    ///
    /// # Errors
    /// When the value is not a tensor of that rank.
    pub fn extent(&self, tensor: Val<'c>, dim: usize) -> PassResult<'c, Val<'c>> {
        let shape = self.tensor_of(tensor)?.shape;
        match shape.get(dim) {
            Some(&DYNAMIC) => match size_operand(tensor, &shape, dim) {
                Some(size) => Ok(size),
                None => {
                    let dim = self.index(i64::try_from(dim).unwrap_or(i64::MAX))?;
                    self.value("tensor.dim", &[tensor, dim], self.index_type(), &[])
                }
            },
            Some(extent) => self.index(*extent),
            None => Err(PassError::new(
                self.location,
                format!("dimension {dim} is outside rank {}", shape.len()),
            )),
        }
    }

    /// `tensor.collapse_shape` by groups of dimensions; the value itself when each is a group.
    ///
    /// # Errors
    /// When the value is not a tensor, or an extent overflows.
    pub fn collapse(&self, tensor: Val<'c>, groups: &[Vec<i64>]) -> PassResult<'c, Val<'c>> {
        let source = self.tensor_of(tensor)?;
        if groups.len() == source.shape.len() {
            return Ok(tensor);
        }
        let product = |group: &Vec<i64>| {
            group.iter().try_fold(1i64, |product, dim| {
                match usize::try_from(*dim)
                    .ok()
                    .and_then(|dim| source.shape.get(dim))?
                {
                    &DYNAMIC => Some(DYNAMIC),
                    _ if product == DYNAMIC => Some(DYNAMIC),
                    extent => product.checked_mul(*extent),
                }
            })
        };
        let shape: Option<Vec<_>> = groups.iter().map(product).collect();
        let shape =
            shape.ok_or_else(|| PassError::new(self.location, "the collapsed extent overflows"))?;
        let result = self.tensor(&shape, source.element)?;
        // Undoing an expansion by dimensions of extent 1 gives back what was expanded.
        for reshape in ["tensor.expand_shape", ops::BROADCAST] {
            let origin = defined_by(tensor, reshape).and_then(|op| operands(op).first().copied());
            if let Some(origin) = origin.filter(|origin| origin.r#type() == result)
                && source
                    .shape
                    .iter()
                    .filter(|extent| **extent != 1)
                    .eq(shape.iter().filter(|extent| **extent != 1))
            {
                return Ok(origin);
            }
        }
        let groups = self.groups(groups);
        self.value(
            "tensor.collapse_shape",
            &[tensor],
            result,
            &[("reassociation", groups)],
        )
    }

    /// `tensor.expand_shape` to `shape` by groups of its dimensions; `sizes` has each dynamic extent. A dynamic dimension
    /// that becomes static ones is cast to their product first: the operation admits no other type.
    ///
    /// # Errors
    /// When the value is not a tensor.
    pub fn expand(
        &self,
        tensor: Val<'c>,
        shape: &[i64],
        groups: &[Vec<i64>],
        sizes: &[Val<'c>],
    ) -> PassResult<'c, Val<'c>> {
        let source = self.tensor_of(tensor)?;
        if groups.len() == shape.len() && groups.len() == source.shape.len() {
            return Ok(tensor);
        }
        let result = self.tensor(shape, source.element)?;
        let agreed: Vec<i64> = match groups.len() == source.shape.len() {
            true => groups.iter().map(|group| product(shape, group)).collect(),
            false => source.shape.clone(),
        };
        let tensor = self.with_type(tensor, self.tensor(&agreed, source.element)?)?;
        let operands: Vec<_> = std::iter::once(tensor)
            .chain(sizes.iter().copied())
            .collect();
        let attributes = [
            ("reassociation", self.groups(groups)),
            ("static_output_shape", self.i64s(shape)),
        ];
        self.value("tensor.expand_shape", &operands, result, &attributes)
    }

    /// `tensor.cast` to a type of the same rank; the value itself when it has the type.
    ///
    /// # Errors
    /// As for [`Self::operation`].
    pub fn with_type(&self, tensor: Val<'c>, wanted: Type<'c>) -> PassResult<'c, Val<'c>> {
        match tensor.r#type() == wanted {
            true => Ok(tensor),
            false => self.value("tensor.cast", &[tensor], wanted, &[]),
        }
    }
}

/// The product of the extents of a group of dimensions; dynamic where one is.
fn product(shape: &[i64], group: &[i64]) -> i64 {
    let extents = group
        .iter()
        .filter_map(|dim| shape.get(usize::try_from(*dim).ok()?));
    extents.fold(1i64, |product, extent| match (product, *extent) {
        (DYNAMIC, _) | (_, DYNAMIC) => DYNAMIC,
        // MLIR refuses tensors whose extents overflow before they come here.
        (product, extent) => product.saturating_mul(extent),
    })
}

/// The operand that gives a dynamic extent of a tensor, when its producer takes sizes.
fn size_operand<'c>(tensor: Val<'c>, shape: &[i64], dim: usize) -> Option<Val<'c>> {
    let empty = || defined_by(tensor, "tensor.empty").map(operands);
    let filled = FillOp::defining(tensor).map(|fill| fill.sizes);
    let sizes = filled.or_else(empty)?;
    let dynamic = shape
        .iter()
        .take(dim)
        .filter(|extent| **extent == DYNAMIC)
        .count();
    sizes.get(dynamic).copied()
}

/// Groups that put each dimension which `unit` marks together with a neighbour that it does not mark; one
/// group for every other dimension, none when all are marked.
#[must_use]
pub fn groups_without(unit: &[bool]) -> Vec<Vec<i64>> {
    let mut groups: Vec<Vec<i64>> = Vec::new();
    let mut leading = Vec::new();
    for (dim, unit) in (0..).zip(unit) {
        match (unit, groups.last_mut()) {
            (true, Some(group)) => group.push(dim),
            (true, None) => leading.push(dim),
            (false, _) => {
                leading.push(dim);
                groups.push(std::mem::take(&mut leading));
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::groups_without;

    #[test]
    fn unit_dimensions_join_a_neighbour() {
        assert_eq!(groups_without(&[false, true]), [vec![0, 1]]);
        assert_eq!(
            groups_without(&[true, false, true, false]),
            [vec![0, 1, 2], vec![3]]
        );
        assert_eq!(groups_without(&[true, true]), Vec::<Vec<i64>>::new());
        assert_eq!(groups_without(&[false, false]), [vec![0], vec![1]]);
    }
}
