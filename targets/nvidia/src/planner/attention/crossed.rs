//! Rows that see no key, as far as edges say it.

use super::lengths::{OfTile, with_length};
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::attention::visible::{Edge, Visible};
use axe_passes::ir::{Int, Val};
use melior::ir::r#type::IntegerType;

/// Whether some row from the first to the last of two sees none of so many keys. Edges are straight lines: where they do not cross at both
/// ends, they do not between.
///
/// # Errors
/// When MLIR does not build it.
pub(super) fn some_see_none<'c>(
    code: Code<'c>,
    visible: &Visible,
    (rows, keys): ([Val<'c>; 2], Val<'c>),
    lengths: &OfTile<'c>,
) -> PassResult<'c, Val<'c>> {
    let builder = code.builder;
    let (ints, zero) = (builder.ints(), code.index(0)?);
    let bit = builder.r#type(|context| IntegerType::new(context, 1).into());
    let mut found = None;
    for row in rows {
        let at = |edge: &Edge| {
            let own = code.add(code.times(row, edge.per_row)?, code.index(edge.start)?)?;
            with_length(code, own, edge.length, lengths)
        };
        let of = |edges: &[Edge], bound| {
            let own = edges.iter().map(at);
            own.chain([Ok(bound)]).collect::<PassResult<'c, Vec<_>>>()
        };
        let (from, to) = (of(&visible.from, zero)?, of(&visible.to, keys)?);
        let mut pairs = Vec::new();
        for first in from {
            pairs.extend(to.iter().map(|end| (first, *end)));
        }
        for edge in &visible.rows {
            pairs.push((zero, code.add(at(edge)?, code.index(1)?)?));
        }
        for (first, end) in pairs {
            // first < end, or else end < first + 1
            let above = code.add(first, code.index(1)?)?;
            let none = ints.less(Int::Value(end), Int::Value(above))?;
            found = Some(match found {
                None => none,
                Some(found) => builder.value("arith.ori", &[found, none], bit, &[])?,
            });
        }
    }
    found.ok_or_else(|| layout_error(builder.location, "rows have edges"))
}
