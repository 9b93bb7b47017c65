//! Attention in one kernel: what [`axe_passes::fuse::attention`] finds, as a problem of [`axe_trn::plan::Attention`].

use super::explain::{Declines, decision};
use super::read::dtype;
use super::{Launch, Planner, launched};
use axe_dialect::ops;
use axe_package::DType;
use axe_passes::fuse::attention::index::{Var, stride_of};
use axe_passes::fuse::attention::term::{Id, Term, Terms};
use axe_passes::fuse::attention::visible::Visible;
use axe_passes::fuse::attention::{Attention as Found, Read};
use axe_passes::fuse::frame::Frame;
use axe_passes::fuse::group::Group;
use axe_passes::fuse::operators::{is_product, is_reshape};
use axe_passes::ir::value::name;
use axe_passes::ir::{Builder, Op, TensorType, walk};
use axe_passes::{PassError, PassResult};
use axe_trn::plan::{Attention, Digit, Order, Strided, Tensors};
use axe_trn::program::{Program, Role};
use melior::ir::operation::OperationLike;

/// Factors of a result that are 1 but for the rounding of what forms them.
const ONE: f64 = 1e-6;

/// A problem, and how its tensors lie.
struct Problem {
    attention: Attention,
    tensors: Tensors,
}

impl Problem {
    /// # Errors
    /// Why no kernel computes it.
    fn read(found: &Found<'_>) -> Result<Self, String> {
        check(found)?;
        let extents = found.extents;
        let scale = found.weights.slope * slope(found)?;
        let (keys, causal) = seen(&found.visible, [extents.rows, extents.keys])?;
        let of = |what, read, (rows, extent), columns| {
            let columns = (columns, found.depth);
            strided(what, read, (rows, extent), columns)
        };
        let tensors = Tensors {
            q: of(
                "queries",
                &found.queries,
                (Var::Row, extents.rows),
                Var::Depth,
            )?,
            k: of("keys", &found.keys, (Var::Key, extents.keys), Var::Depth)?,
            v: of(
                "values",
                &found.values,
                (Var::Key, extents.keys),
                Var::Column,
            )?,
            result: of(
                "results",
                &found.result,
                (Var::Row, extents.rows),
                Var::Column,
            )?,
        };
        let order = |tensor: &Strided, rows| {
            // What lies in neither order is refused with the others.
            tensor.order([rows, found.depth]).unwrap_or(Order::KMinor)
        };
        let attention = Attention {
            heads: extents.batch,
            queries: extents.rows,
            keys,
            dim: found.depth,
            q: order(&tensors.q, extents.rows),
            k: order(&tensors.k, keys),
            dtype: dtype(found.element).unwrap_or(DType::F32),
            scale,
            causal,
        };
        Ok(Self { attention, tensors })
    }

    fn plan(&self, kernel: &str, chip: &str) -> Result<Program, String> {
        let planned = self.attention.plan_of(kernel, chip, &self.tensors);
        planned.map_err(|declined| declined.to_string())
    }
}

/// Checks that a kernel has the form.
///
/// # Errors
/// What it does not have.
fn check(found: &Found<'_>) -> Result<(), String> {
    let weights = &found.weights;
    if !found.symbols.is_empty() {
        return Err("its extents are dynamic".to_owned());
    }
    if found.sums.is_some() {
        return Err("the logarithms of its sums are read, too".to_owned());
    }
    if found.tables().next().is_some() {
        return Err("its keys or values are in pages".to_owned());
    }
    if !found.lengths.is_empty() {
        return Err("its mask reads the lengths of its sequences".to_owned());
    }
    if found.element != found.rounded {
        return Err(format!(
            "its operands have elements of {}, and its result of {}",
            found.element, found.rounded
        ));
    }
    if !weights.values.is_empty() {
        return Err("its result is multiplied by values of its problems".to_owned());
    }
    if !weights.normalized {
        return Err("its weights are not divided by their sum".to_owned());
    }
    if (weights.scale - 1.0).abs() > ONE {
        return Err(format!("its result is multiplied by {}", weights.scale));
    }
    if found.extents.columns != found.depth {
        return Err(format!(
            "values of {} elements, and keys of {}: expected as many",
            found.extents.columns, found.depth
        ));
    }
    Ok(())
}

/// How a tensor lies.
fn strided(
    what: &str,
    read: &Read<'_>,
    rows: (Var, i64),
    columns: (Var, i64),
) -> Result<Strided, String> {
    let stride = |(var, extent), along: &str| match stride_of(&read.steps, var, extent) {
        Some(0) if extent > 1 => Err(format!("{what} repeat their {along}")),
        Some(stride) => Ok(stride),
        None => Err(format!(
            "no one stride leads from one of the {along} of {what} to the next"
        )),
    };
    let (row, column) = (stride(rows, "rows")?, stride(columns, "columns")?);
    let others = read.steps.iter().map(|step| step.digit);
    let mut heads = others.filter(|digit| ![rows.0, columns.0].contains(&digit.var));
    if heads.any(|digit| digit.var != Var::Batch) {
        return Err(format!(
            "{what} depend on more than heads, rows and columns"
        ));
    }
    let of_batch = read
        .steps
        .iter()
        .filter(|step| step.digit.var == Var::Batch);
    let shape = TensorType::of_value(read.tensor).map(|tensor| tensor.shape);
    Ok(Strided {
        elements: shape.unwrap_or_default().iter().product(),
        heads: of_batch
            .map(|step| Digit {
                every: step.digit.stride,
                extent: step.digit.extent,
                stride: step.elements,
            })
            .collect(),
        row,
        column,
    })
}

/// What products of queries and keys are multiplied by where that alone forms the scores that are seen.
fn slope(found: &Found<'_>) -> Result<f64, String> {
    let (terms, bare) = (&found.terms, found.bare);
    if let Some(slope) = factor(terms, bare) {
        return Ok(slope);
    }
    if !found.inputs.is_empty() {
        return Err(
            "its scores read a mask or a bias in memory, and masks are of indices alone".to_owned(),
        );
    }
    if terms.any(bare, true, &|term| matches!(term, Term::Index(_))) {
        return Err("its mask is no comparison of a query's index with a key's".to_owned());
    }
    let what = match terms.get(bare) {
        Term::Apply(name, ..) => format!("'{name}' forms its scores"),
        _ => "its scores are no product of queries and keys".to_owned(),
    };
    Err(format!("{what}, and they are scaled alone"))
}

/// The number that scores are multiplied by.
fn factor(terms: &Terms, id: Id) -> Option<f64> {
    let Term::Apply(name, _, operands) = terms.get(id) else {
        return matches!(terms.get(id), Term::Score).then_some(1.0);
    };
    match (name.as_str(), operands.as_slice()) {
        ("arith.mulf", &[a, b]) => match (terms.as_float(a), terms.as_float(b)) {
            (_, Some(by)) => Some(factor(terms, a)? * by),
            (Some(by), _) => Some(factor(terms, b)? * by),
            _ => None,
        },
        ("arith.divf", &[a, b]) => Some(factor(terms, a)? / terms.as_float(b)?),
        _ => None,
    }
}

/// The keys that some query sees, and whether each query sees those up to its own alone.
fn seen(visible: &Visible, [rows, keys]: [i64; 2]) -> Result<(i64, bool), String> {
    if visible.from.iter().any(|edge| edge.over(0, rows)[1] > 0) {
        return Err("its queries do not see the first keys: expected all keys, or those up to the query's own".to_owned());
    }
    let mut end = keys;
    let mut causal = false;
    for edge in &visible.to {
        match edge.per_row {
            _ if edge.over(0, rows)[0] >= keys => {}
            0 => end = end.min(edge.start),
            1 if edge.start == 1 => causal = true,
            _ => {
                return Err(format!(
                    "query i sees keys below {} i + {}: expected all keys, or those up to the query's own",
                    edge.per_row, edge.start
                ));
            }
        }
    }
    if end < 1 {
        return Err("its queries see no key".to_owned());
    }
    // Keys after the last query's are hidden from all.
    let end = if causal { end.min(rows) } else { end };
    Ok((end, causal))
}

impl Planner {
    /// Whether there is a kernel.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn takes_attention(&self, found: &Found<'_>) -> Result<(), String> {
        Problem::read(found)?
            .plan("attention", self.chip.name)
            .map(drop)
    }

    /// Attention, in one kernel.
    pub(super) fn attention<'c>(
        &self,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        group: &Group<'c>,
    ) -> PassResult<'c> {
        let error = |why: String| PassError::new(builder.location, why);
        let found = group.attention.clone();
        let found = found.ok_or_else(|| error("a group without attention".to_owned()))?;
        let problem = Problem::read(&found).map_err(error)?;
        let program = problem
            .plan(&frame.name("attention"), self.chip.name)
            .map_err(error)?;
        self.report_attention(&program, &found);
        let shapes = |role| {
            program
                .with_role(role)
                .map(|(_, buffer)| buffer.shape.clone())
        };
        let values = [&found.queries, &found.keys, &found.values];
        let mut inputs = Vec::new();
        for (read, shape) in values.into_iter().zip(shapes(Role::Input)) {
            inputs.push(frame.operand(builder, read.tensor, &shape)?.tensor);
        }
        let mut outputs = Vec::new();
        for shape in shapes(Role::Output) {
            let result = found.result.tensor;
            outputs.push((result, frame.out(builder, result, &shape)?));
        }
        let launch = Launch {
            program,
            inputs,
            outputs,
        };
        launched(frame, builder, launch)
    }

    /// Says what the operators became.
    fn report_attention(&self, program: &Program, found: &Found<'_>) {
        let Some(block) = found.op.block() else {
            return;
        };
        let all = walk::operations(block).into_iter();
        let inner = all.filter(|op| found.inner.contains(&(op.to_raw().ptr as usize)));
        let decisions: Vec<_> = inner
            .filter(|op| !is_reshape(*op))
            .map(|op| {
                let (schedule, declines) = became(op, op == found.op);
                decision(op, schedule, declines, program)
            })
            .collect();
        self.say(program, &decisions);
    }
}

/// The instruction that an operator of attention became.
fn became(op: Op<'_>, is_second: bool) -> (&'static str, Declines) {
    let body = walk::nested(op, &|_| true);
    let has = |what: &str| body.iter().any(|op| name(*op).starts_with(what));
    let not = |schedule, why: &str| vec![(schedule, why.to_owned())];
    match name(op).as_str() {
        _ if is_product(op) && is_second => (
            "nc_matmul",
            not(
                "nc_transpose",
                "scores are formed with keys on the partitions, as the values have them",
            ),
        ),
        _ if is_product(op) => ("nc_matmul", Vec::new()),
        ops::REDUCE
            if op
                .attribute("combiner")
                .is_ok_and(|own| own.to_string().contains("max")) =>
        {
            (
                "tensor_reduce",
                not("activation", "its registers add, and this is maximum"),
            )
        }
        ops::REDUCE => (
            "nc_matmul",
            not(
                "activation",
                "weights have keys on the partitions; a column of ones beside the values sums them up",
            ),
        ),
        ops::CAST => ("converted by its reader", Vec::new()),
        ops::TRANSPOSE | ops::BROADCAST | ops::FILL => ("read", Vec::new()),
        _ if has("arith.cmpi") => (
            "nc_matmul",
            not(
                "affine_select",
                "blocks that no query sees are left out; on the diagonal a triangle is added to the scores in PSUM, which gpsimd does not reach",
            ),
        ),
        _ if has("arith.subf") => (
            "nc_matmul",
            not(
                "tensor_scalar",
                "the largest score is a row of what is contracted, so that no engine sees scores twice",
            ),
        ),
        _ => ("activation", Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axe_passes::fuse::attention::visible::Edge;

    #[test]
    fn masks_are_all_keys_or_those_up_to_the_query() {
        let to = |per_row, start| Visible {
            to: vec![Edge::of(per_row, start)],
            ..Visible::default()
        };
        let all = Visible::default();
        assert_eq!(seen(&all, [10, 20]), Ok((20, false)));
        assert_eq!(seen(&to(1, 1), [10, 10]), Ok((10, true)));
        assert_eq!(seen(&to(1, 1), [10, 20]), Ok((10, true)));
        assert_eq!(seen(&to(0, 7), [10, 20]), Ok((7, false)));
        // Query 0 sees 20 keys already.
        assert_eq!(seen(&to(1, 20), [10, 20]), Ok((20, false)));
        assert!(seen(&to(0, 0), [10, 20]).is_err());
        assert!(seen(&to(1, 11), [10, 20]).is_err());
        assert!(seen(&to(-1, 11), [10, 20]).is_err());
        let window = Visible {
            from: vec![Edge::of(1, -5)],
            ..Visible::default()
        };
        assert!(seen(&window, [10, 20]).is_err());
        assert_eq!(seen(&window, [5, 20]), Ok((20, false)));
    }
}
