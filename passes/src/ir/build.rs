//! Building operations at a place.

use super::value::{only_result, results};
use super::{Ints, Op, Val, attribute, types};
use crate::error::{PassError, PassResult};
use axe_dialect::Operands;
use melior::ir::attribute::{IntegerAttribute, TypeAttribute};
use melior::ir::operation::{OperationBuilder, OperationLike};
use melior::ir::{
    Attribute, AttributeLike, Block, BlockLike, BlockRef, Identifier, Location, Module, Operation,
};
use melior::ir::{Region, RegionLike, Type, TypeLike, ValueLike};
use melior::{Context, ContextRef};
use mlir_sys as sys;

/// Where a builder adds operations.
#[derive(Clone, Copy, Debug)]
enum Place<'c> {
    Before(Op<'c>),
    EndOf(BlockRef<'c, 'c>),
}

/// Adds operations at one place and location.
#[derive(Clone, Copy, Debug)]
pub struct Builder<'c> {
    /// The location of what is built.
    pub location: Location<'c>,
    context: ContextRef<'c>,
    place: Place<'c>,
}

/// Attributes by name.
pub type Attributes<'a, 'c> = &'a [(&'a str, Attribute<'c>)];

impl<'c> Builder<'c> {
    /// A builder in front of `op`, with its location.
    #[must_use]
    pub fn before(op: Op<'c>) -> Self {
        Self {
            context: op.context(),
            location: op.location(),
            place: Place::Before(op),
        }
    }

    /// Index arithmetic built here.
    #[must_use]
    pub fn ints(&self) -> Ints<'c> {
        Ints::index(*self)
    }

    /// A builder at the end of `block`.
    #[must_use]
    pub fn at_end(block: BlockRef<'c, 'c>, location: Location<'c>) -> Self {
        Self {
            context: location.context(),
            location,
            place: Place::EndOf(block),
        }
    }

    /// Adds a detached operation at the builder's place.
    pub fn add(&self, operation: Operation<'c>) -> Op<'c> {
        let raw = match self.place {
            Place::EndOf(block) => block.append_operation(operation).to_raw(),
            Place::Before(op) => match op.block() {
                Some(block) => block.insert_operation_before(op, operation).to_raw(),
                // An operation without a block is the module itself: there is nowhere to add to.
                None => operation.into_raw(),
            },
        };
        // SAFETY: the operation was just added, and belongs to its block.
        unsafe { Op::from_raw(raw) }
    }

    /// Moves an operation, regions included, to the builder's place.
    pub fn take(&self, op: Op<'c>) {
        // SAFETY: the operation is live, and owned here while it has no block.
        unsafe {
            sys::mlirOperationRemoveFromParent(op.to_raw());
            self.add(Operation::from_raw(op.to_raw()));
        }
    }

    /// Builds an operation.
    ///
    /// # Errors
    /// When MLIR does not build it.
    pub fn operation(
        &self,
        name: &str,
        operands: &[Val<'c>],
        results: &[Type<'c>],
        attributes: Attributes<'_, 'c>,
        regions: Vec<Region<'c>>,
    ) -> PassResult<'c, Op<'c>> {
        // SAFETY: identifiers live as long as the context.
        let key = |name| unsafe {
            Identifier::from_raw(Identifier::new(self.context.to_ref(), name).to_raw())
        };
        let attributes: Vec<_> = attributes
            .iter()
            .map(|(name, value)| (key(name), *value))
            .collect();
        OperationBuilder::new(name, self.location)
            .add_operands(operands)
            .add_results(results)
            .add_attributes(&attributes)
            .add_regions_vec(regions)
            .build()
            .map(|operation| self.add(operation))
            .map_err(|error| {
                PassError::new(self.location, format!("cannot build '{name}': {error}"))
            })
    }

    /// Builds an operation with one result and no region.
    ///
    /// # Errors
    /// As for [`Self::operation`].
    pub fn value(
        &self,
        name: &str,
        operands: &[Val<'c>],
        result: Type<'c>,
        attributes: Attributes<'_, 'c>,
    ) -> PassResult<'c, Val<'c>> {
        let op = self.operation(name, operands, &[result], attributes, Vec::new())?;
        self.result_of(op)
    }

    /// Builds an operation of axe on its operands, by group.
    ///
    /// # Errors
    /// As for [`Self::operation`].
    pub fn operator(
        &self,
        operands: &Operands<'c>,
        results: &[Type<'c>],
        attributes: Attributes<'_, 'c>,
    ) -> PassResult<'c, Op<'c>> {
        let mut attributes = attributes.to_vec();
        if let Some(segments) = &operands.segments {
            attributes.push(self.segments(segments));
        }
        let Operands { name, values, .. } = operands;
        self.operation(name, values, results, &attributes, Vec::new())
    }

    /// Builds an operation of axe with one result.
    ///
    /// # Errors
    /// As for [`Self::operation`].
    pub fn operator_value(
        &self,
        operands: &Operands<'c>,
        result: Type<'c>,
        attributes: Attributes<'_, 'c>,
    ) -> PassResult<'c, Val<'c>> {
        let op = self.operator(operands, &[result], attributes)?;
        self.result_of(op)
    }

    /// The only result of an operation that was built.
    ///
    /// # Errors
    /// When it has none or several.
    pub fn result_of(&self, op: Op<'c>) -> PassResult<'c, Val<'c>> {
        only_result(op)
            .ok_or_else(|| PassError::new(self.location, format!("expected one result of '{op}'")))
    }

    /// A copy of `op`, regions included, at the builder's place.
    pub fn clone_of(&self, op: Op<'c>) -> Op<'c> {
        // SAFETY: the copy is detached and owned here.
        self.add(unsafe { Operation::from_raw(sys::mlirOperationClone(op.to_raw())) })
    }

    /// `arith.constant` of a typed attribute.
    ///
    /// # Errors
    /// As for [`Self::operation`].
    pub fn constant(&self, value: Attribute<'c>) -> PassResult<'c, Val<'c>> {
        self.value("arith.constant", &[], value.r#type(), &[("value", value)])
    }

    /// `arith.constant` of type index.
    ///
    /// # Errors
    /// As for [`Self::operation`].
    pub fn index(&self, value: i64) -> PassResult<'c, Val<'c>> {
        self.constant(IntegerAttribute::new(self.index_type(), value).into())
    }

    /// `tensor<shape x element>`.
    ///
    /// # Errors
    /// When the element type is not a tensor's.
    pub fn tensor(&self, shape: &[i64], element: Type<'c>) -> PassResult<'c, Type<'c>> {
        super::types::tensor(self.location, shape, element).ok_or_else(|| {
            PassError::new(
                self.location,
                format!("no tensor has elements of type {element}"),
            )
        })
    }

    /// Zero of an element type, float or integer.
    ///
    /// # Errors
    /// When building fails.
    pub fn zero(&self, element: Type<'c>) -> PassResult<'c, Val<'c>> {
        let value = match types::is_float(element) {
            true => self.float(element, 0.0),
            false => IntegerAttribute::new(element, 0).into(),
        };
        self.constant(value)
    }

    /// `scf.if` that gives one value.
    ///
    /// # Errors
    /// When building fails, or those of either side.
    pub fn choose(
        &self,
        condition: Val<'c>,
        then: impl FnOnce(&Self) -> PassResult<'c, Val<'c>>,
        otherwise: impl FnOnce(&Self) -> PassResult<'c, Val<'c>>,
    ) -> PassResult<'c, Val<'c>> {
        let values = self.choose_all(
            condition,
            |inner| then(inner).map(|value| vec![value]),
            |inner| otherwise(inner).map(|value| vec![value]),
        )?;
        let only = values.first().copied();
        only.ok_or_else(|| PassError::new(self.location, "expected one value of each side"))
    }

    /// `scf.if` that gives values, of the same types on both sides.
    ///
    /// # Errors
    /// When building fails, or those of either side.
    pub fn choose_all(
        &self,
        condition: Val<'c>,
        then: impl FnOnce(&Self) -> PassResult<'c, Vec<Val<'c>>>,
        otherwise: impl FnOnce(&Self) -> PassResult<'c, Vec<Val<'c>>>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let (first, _, inner) = self.region(&[]);
        let values = then(&inner)?;
        inner.operation("scf.yield", &values, &[], &[], Vec::new())?;
        let (second, _, inner) = self.region(&[]);
        let values = otherwise(&inner)?;
        inner.operation("scf.yield", &values, &[], &[], Vec::new())?;
        let types: Vec<_> = values.iter().map(ValueLike::r#type).collect();
        self.operation("scf.if", &[condition], &types, &[], vec![first, second])
            .map(results)
    }

    /// A region of one block with arguments of these types, and a builder at the block's end.
    #[must_use]
    pub fn region(&self, arguments: &[Type<'c>]) -> (Region<'c>, Vec<Val<'c>>, Self) {
        let region = Region::new();
        let typed: Vec<_> = arguments
            .iter()
            .map(|r#type| (*r#type, self.location))
            .collect();
        // SAFETY: the block lives in the region, and the region in the operation that it is given to.
        let block: BlockRef<'c, 'c> =
            unsafe { BlockRef::from_raw(region.append_block(Block::new(&typed)).to_raw()) };
        let values = (0..arguments.len())
            // SAFETY: the block has an argument for each type.
            .map(|index| unsafe {
                Val::from_raw(sys::mlirBlockGetArgument(block.to_raw(), index as isize))
            })
            .collect();
        (region, values, Self::at_end(block, self.location))
    }

    /// The segment sizes of an operation with several variadic operands.
    #[must_use]
    pub fn segments(&self, sizes: &[i32]) -> (&'static str, Attribute<'c>) {
        (
            "operandSegmentSizes",
            self.attribute(|context| attribute::i32s(context, sizes)),
        )
    }

    /// An attribute built in the builder's context.
    pub fn attribute(
        &self,
        build: impl for<'x> FnOnce(&'x Context) -> Attribute<'x>,
    ) -> Attribute<'c> {
        // SAFETY: attributes live as long as the context, which outlives the handle that `build` borrows.
        unsafe { Attribute::from_raw(build(self.context.to_ref()).to_raw()) }
    }

    /// A type built in the builder's context.
    pub fn r#type(&self, build: impl for<'x> FnOnce(&'x Context) -> Type<'x>) -> Type<'c> {
        // SAFETY: types live as long as the context, which outlives the handle that `build` borrows.
        unsafe { Type::from_raw(build(self.context.to_ref()).to_raw()) }
    }

    /// The type index.
    #[must_use]
    pub fn index_type(&self) -> Type<'c> {
        self.r#type(|context| Type::index(context))
    }

    /// An attribute from its text.
    ///
    /// # Errors
    /// When MLIR does not parse it.
    pub fn parsed(&self, text: &str) -> PassResult<'c, Attribute<'c>> {
        // SAFETY: attributes live as long as the context.
        let attribute = Attribute::parse(unsafe { self.context.to_ref() }, text);
        let attribute =
            attribute.map(|attribute| unsafe { Attribute::from_raw(attribute.to_raw()) });
        attribute.ok_or_else(|| PassError::new(self.location, format!("cannot parse '{text}'")))
    }

    /// A module from its text.
    pub(super) fn parsed_module(&self, text: &str) -> Option<Module<'c>> {
        // SAFETY: the context outlives the handle that is borrowed of it.
        Module::parse(unsafe { self.context.to_ref() }, text)
    }

    /// The attribute of a type.
    #[must_use]
    pub fn of_type(&self, r#type: Type<'c>) -> Attribute<'c> {
        TypeAttribute::new(r#type).into()
    }

    /// A float attribute of this type.
    #[must_use]
    pub fn float(&self, r#type: Type<'c>, value: f64) -> Attribute<'c> {
        // SAFETY: the type is a float's, and the attribute lives as long as the context.
        unsafe {
            Attribute::from_raw(sys::mlirFloatAttrDoubleGet(
                self.context.to_ref().to_raw(),
                r#type.to_raw(),
                value,
            ))
        }
    }

    /// `(inputs) -> (results)`.
    #[must_use]
    pub fn function_type(&self, inputs: &[Type<'c>], results: &[Type<'c>]) -> Type<'c> {
        let raw = |types: &[Type<'c>]| types.iter().map(TypeLike::to_raw).collect::<Vec<_>>();
        let (inputs, results) = (raw(inputs), raw(results));
        // SAFETY: pointers and lengths agree, and all types are of the location's context.
        unsafe {
            Type::from_raw(sys::mlirFunctionTypeGet(
                sys::mlirLocationGetContext(self.location.to_raw()),
                inputs.len() as isize,
                inputs.as_ptr(),
                results.len() as isize,
                results.as_ptr(),
            ))
        }
    }

    /// `array<i64: ...>`.
    #[must_use]
    pub fn i64s(&self, values: &[i64]) -> Attribute<'c> {
        self.attribute(|context| attribute::i64s(context, values))
    }

    /// `[[0, 1], [2]]`: groups of dimensions, as reshapes keep them.
    #[must_use]
    pub fn groups(&self, groups: &[Vec<i64>]) -> Attribute<'c> {
        self.attribute(|context| attribute::groups(context, groups))
    }

    /// The attribute of a flag that is set.
    #[must_use]
    pub fn unit(&self) -> Attribute<'c> {
        self.attribute(|context| Attribute::unit(context))
    }
}
