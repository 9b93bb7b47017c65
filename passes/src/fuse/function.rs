//! A function whose operators become kernels.

use super::attention::{Attention, Backward, Found};
use super::beside;
use super::frame::Frame;
use super::group::{ColumnFold, Group};
use super::groups::{Choices, Groups};
use super::nest::is_nest;
use super::operators::{is_operator, is_reshape};
use super::reshape::{check_tensors, extent_of};
use super::space::Pairs;
use super::symbolic::{self, Symbols};
use crate::ir::value::{defined_by, defining, identity, name, operands, replace_all_uses, results};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, attribute, walk};
use crate::remark::{self, Kind};
use crate::{PassError, PassResult, error};
use axe_dialect::ops;
use melior::ir::ValueLike;
use melior::ir::attribute::StringAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, Location, OperationRef};
use mlir_sys as sys;
use std::collections::{HashMap, HashSet};

/// The category of this pass's remarks.
const CATEGORY: &str = "axe-plan";

/// What a target does with a function's operators.
pub trait Kernels<'c> {
    /// Rewrites operators before they are grouped.
    ///
    /// # Errors
    /// At an operator that is not supported.
    fn prepare(&self, ops: &[Op<'c>]) -> PassResult<'c>;

    /// Whether there is a kernel of attention; it is asked for each that is found.
    ///
    /// # Errors
    /// Why there is none, for people.
    fn takes(&self, attention: &Attention<'c>) -> Result<(), String>;

    /// Whether kernels of rows can have loops in them, whose points are their elements.
    fn takes_loops(&self) -> bool {
        false
    }

    /// Whether products read a matrix that all of a batch share where it is, and their epilogues what rows share.
    fn takes_tables(&self) -> bool {
        false
    }

    /// Whether there are kernels of reductions of dimensions that others follow, with what forms their elements.
    fn takes_columns(&self) -> bool {
        false
    }

    /// Whether these store elements that they form on the way, of such rows of tensors whose narrowest elements have so many bytes, where
    /// CTAs share the rows or not.
    fn stores_folded(&self, _fold: ColumnFold, _bytes: i64, _in_parts: bool) -> bool {
        false
    }

    /// Whether what is decided is printed, beside the remarks.
    fn explains(&self) -> bool;

    /// Whether there are kernels of attention's gradients.
    ///
    /// # Errors
    /// Why there are none, for people.
    fn takes_gradients(&self, _: &Backward<'c>) -> Result<(), String> {
        Err("this target has no kernel of attention's gradients".to_owned())
    }

    /// Whether the kernel of a product can reduce blocks of so many neighbouring columns of its result, or of what is formed of that
    /// element by element.
    fn reduces_blocks(&self, _product: Op<'c>, _columns: i64) -> bool {
        false
    }

    /// Whether the kernel of a product can form elements of pairs of its result's columns, and takes less time than two kernels.
    fn forms_pairs(&self, _product: Op<'c>, _pairs: Pairs) -> bool {
        false
    }

    /// Whether one kernel can form two products of the same rows and what follows them, and takes less time than one for each.
    fn forms_two(&self, _first: Op<'c>, _second: Op<'c>) -> bool {
        false
    }

    /// Adds the kernels of a group, and launches them at the builder's place.
    ///
    /// # Errors
    /// At an operator that cannot be planned.
    fn plan(
        &self,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        group: &Group<'c>,
        outputs: &[Val<'c>],
    ) -> PassResult<'c>;
}

/// Operators that no kernel can be planned for.
struct Refused<'c> {
    /// Whether they stay in the function.
    left: bool,
    /// Those that stay.
    operators: HashSet<usize>,
    /// Why the others fail.
    failures: Vec<PassError<'c>>,
}

impl<'c> Refused<'c> {
    /// Takes note of operators, and of why.
    fn refuse(&mut self, operators: &[Op<'c>], why: PassError<'c>) {
        if !self.left {
            self.failures.push(why);
            return;
        }
        let message = format!("left for the host: {}", why.message);
        remark::emit(
            why.location,
            Kind::Missed,
            CATEGORY,
            "unsupported",
            "",
            &message,
        );
        let raw = operators.iter().map(|op| op.to_raw().ptr as usize);
        self.operators.extend(raw);
    }

    fn has(&self, op: Op<'c>) -> bool {
        self.operators.contains(&(op.to_raw().ptr as usize))
    }
}

/// Plans the kernels of a module's functions; how many there are. Where `leave` is set, operators that cannot be planned stay.
///
/// # Errors
/// At each operator that cannot be planned.
pub fn plan<'c>(
    module: OperationRef<'c, 'c>,
    kernels: &impl Kernels<'c>,
    leave: bool,
) -> PassResult<'c, usize> {
    let Some(body) = walk::blocks(module).first().copied() else {
        return Ok(0);
    };
    let mut refused = Refused {
        left: leave,
        operators: HashSet::new(),
        failures: Vec::new(),
    };
    let mut count = 0;
    for func in walk::operations(body) {
        if name(func) == "func.func" {
            count += plan_function(body, func, kernels, &mut refused)?;
        }
    }
    error::all(refused.failures)?;
    Ok(count)
}

/// The start of the names of a function's kernels.
fn prefix(func: Op<'_>) -> String {
    func.attribute("sym_name")
        .ok()
        .and_then(|name| StringAttribute::try_from(name).ok())
        .map_or_else(|| "kernel".to_owned(), |name| name.value().to_owned())
}

fn plan_function<'c>(
    module: BlockRef<'c, 'c>,
    func: Op<'c>,
    kernels: &impl Kernels<'c>,
    refused: &mut Refused<'c>,
) -> PassResult<'c, usize> {
    let mut frame = Frame {
        module,
        prefix: prefix(func),
        kernels: 0,
        stored: HashMap::new(),
        beside: HashMap::new(),
    };
    let blocks = walk::blocks(func);
    let Some(block) = blocks.first() else {
        return Ok(0);
    };
    symbolic::simplify(func)?;
    let ops = walk::operations(*block);
    check(func, &ops, refused);
    let plannable = |op: &Op<'c>, refused: &Refused<'c>| is_planned(*op) && !refused.has(*op);
    if !refused.failures.is_empty() || !ops.iter().any(|op| plannable(op, refused)) {
        return Ok(0);
    }
    let own: Vec<_> = ops.into_iter().filter(|op| !refused.has(*op)).collect();
    let attention = |ops: &[Op<'c>]| {
        let takes = |found: &Attention<'c>| kernels.takes(found);
        let gradients = |found: &Backward<'c>| kernels.takes_gradients(found);
        let mut found = Found::of(ops, &Symbols::default(), &takes, &gradients);
        symbolic::find(func, &mut found, &takes)?;
        Ok::<_, PassError<'c>>(found)
    };
    let found = attention(&own)?;
    let own: Vec<_> = own.into_iter().filter(|op| !found.has(*op)).collect();
    kernels.prepare(&own)?;
    let ops = walk::operations(*block);
    extents(&ops)?;
    // Operators were rewritten, and what read them reads others.
    let found = attention(&ops)?;
    for declined in &found.declined {
        let message = format!("no attention in one kernel: {}", declined.why);
        missed(kernels, declined.location, ("attention", &message));
    }
    launch(&mut frame, &ops, &found, kernels, refused)?;
    if refused.left {
        leave(&mut frame, &ops)?;
    }
    walk::erase_dead(func, &|_| false, &|op| {
        let computes = ["tensor.", "arith.", "math.", "index."];
        is_planned(op)
            || (op.region_count() == 0
                && computes.iter().any(|dialect| name(op).starts_with(dialect)))
    });
    Ok(frame.kernels)
}

/// Plans the kernels of a function's groups, each where its last operator stands, and gives what is no operator their results.
fn launch<'c>(
    frame: &mut Frame<'c>,
    ops: &[Op<'c>],
    found: &Found<'c>,
    kernels: &impl Kernels<'c>,
    refused: &mut Refused<'c>,
) -> PassResult<'c> {
    let choices = Choices {
        left: &|op| refused.has(op),
        loops: kernels.takes_loops(),
        tables: kernels.takes_tables(),
        columns: kernels.takes_columns(),
        stores_folded: &|fold, bytes, in_parts| kernels.stores_folded(fold, bytes, in_parts),
        reduces_blocks: &|product, columns| kernels.reduces_blocks(product, columns),
        forms_pairs: &|product, pairs| kernels.forms_pairs(product, pairs),
        forms_two: &|first, second| kernels.forms_two(first, second),
    };
    let launches = Groups::of(ops, found, &choices).launches();
    let mut launches = beside::join(launches, ops).into_iter().peekable();
    for (number, &op) in ops.iter().enumerate() {
        while let Some((group, outputs)) = launches.next_if(|(group, _)| group.position.0 <= number)
        {
            let mut builder = Builder::before(op);
            let Some(first) = group.owned.first() else {
                continue;
            };
            builder.location = first.location();
            for apart in &group.apart {
                missed(kernels, apart.location, ("fusion", &apart.why));
            }
            if let Err(why) = kernels.plan(frame, &builder, &group, &outputs) {
                refused.refuse(&group.owned, why);
            }
        }
        if !is_planned(op) && !is_reshape(op) {
            read_stored(frame, op)?;
        }
    }
    Ok(())
}

/// Says why something was not done.
fn missed<'c>(kernels: &impl Kernels<'c>, location: Location<'c>, (name, message): (&str, &str)) {
    remark::emit(location, Kind::Missed, CATEGORY, name, "", message);
    if kernels.explains() {
        eprintln!("plan {location}: {message}");
    }
}

/// Whether an operation becomes part of a kernel, or a kernel of its own.
fn is_planned(op: Op<'_>) -> bool {
    is_operator(op) || is_nest(op)
}

/// Gives the operators that stay what launches stored. What launches read of them stands in front of those.
fn leave<'c>(frame: &mut Frame<'c>, ops: &[Op<'c>]) -> PassResult<'c> {
    for &op in ops.iter().filter(|op| is_planned(**op)) {
        let formed = results(op)
            .into_iter()
            .any(|result| frame.stored.contains_key(&identity(result)));
        if !formed {
            read_stored(frame, op)?;
        }
    }
    Ok(())
}

/// Refuses operators that are not in the function's only block, or have tensors that no kernel can take.
fn check<'c>(func: Op<'c>, ops: &[Op<'c>], refused: &mut Refused<'c>) {
    for op in walk::nested(func, &|op| !name(op).starts_with("axe.") && !is_nest(op)) {
        if is_planned(op) && !ops.contains(&op) {
            let what = "expected operators in the function's first block, and not in regions of it";
            refused.refuse(&[op], PassError::new(op.location(), what));
        } else if is_operator(op)
            && let Err(why) = check_tensors(op).and_then(|()| check_places(op))
        {
            refused.refuse(&[op], why);
        }
    }
}

/// Refuses a map whose body asks for places.
fn check_places<'c>(op: Op<'c>) -> PassResult<'c> {
    let mut inner = walk::nested(op, &|_| true).into_iter();
    match inner.find(|op| name(*op) == ops::INDEX) {
        None => Ok(()),
        Some(index) => Err(PassError::new(
            index.location(),
            "'axe.index' is for the maps of kernels: a planned kernel's tiles have other places than the tensor",
        )),
    }
}

/// Gives every `tensor.dim` the extent that its tensor's producers have, so that extents do not wait for
/// kernels.
fn extents<'c>(ops: &[Op<'c>]) -> PassResult<'c> {
    for &op in ops.iter().filter(|op| name(**op) == "tensor.dim") {
        let (&[tensor, dim], &[result]) = (&operands(op)[..], &results(op)[..]) else {
            continue;
        };
        let at = defined_by(dim, "arith.constant")
            .and_then(|op| op.attribute("value").ok())
            .and_then(attribute::integer)
            .and_then(|dim| usize::try_from(dim).ok());
        let shape = TensorType::of_value(tensor).map(|tensor| tensor.shape);
        let dynamic =
            |at: &usize| shape.as_ref().and_then(|shape| shape.get(*at)) == Some(&DYNAMIC);
        let made = defining(tensor).is_some_and(|op| is_planned(op) || is_reshape(op));
        if let Some(at) = at.filter(|at| made && dynamic(at)) {
            replace_all_uses(result, extent_of(&Builder::before(op), tensor, at)?);
        }
    }
    Ok(())
}

/// Gives an operation outside the kernels what launches stored.
fn read_stored<'c>(frame: &mut Frame<'c>, op: Op<'c>) -> PassResult<'c> {
    let builder = Builder::before(op);
    for (at, value) in (0..).zip(operands(op)) {
        let stored = frame.resolve(&builder, value)?;
        if identity(stored) != identity(value) {
            // SAFETY: the position is that of an operand, and the types agree.
            unsafe { sys::mlirOperationSetOperand(op.to_raw(), at, stored.to_raw()) };
        }
    }
    Ok(())
}
