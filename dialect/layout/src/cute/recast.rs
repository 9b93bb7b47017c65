//! Layouts in units of wider or narrower elements.

use super::composed::ComposedLayout;
use super::layout::{CuteLayout, Mode, Tree};
use crate::error::{Error, Result};

/// CuTe's `shape_div`: exact in one direction or the other.
fn shape_div(a: i64, b: i64) -> Option<i64> {
    match (a.checked_rem(b)?, b.checked_rem(a)?) {
        (0, _) => Some(a / b),
        (_, 0) => Some(a.signum() * b.signum()),
        _ => None,
    }
}

/// `layout` in units of `n` elements: the image of a coordinate is the unit that holds the element, and
/// coordinates inside of one unit are left out (CuTe's `upcast`).
///
/// # Errors
/// `Invalid` for `n < 1`; `None` where a stride is neither a multiple of `n` nor divides it, a mode of
/// consecutive elements ends inside of a unit, or several modes run through one unit and leave it together,
/// as those of `(8,2):(1,1)` by 2 do.
///
/// ```
/// use axe_layout::cute::{CuteLayout, upcast};
/// let halves: CuteLayout = "(8,(4,2)):(4,(1,32))".parse()?;
/// assert_eq!(upcast(&halves, 2)?.to_string(), "(8,(2,2)):(2,(1,16))");
/// # Ok::<(), axe_layout::Error>(())
/// ```
pub fn upcast(layout: &CuteLayout, n: i64) -> Result<CuteLayout> {
    check_units(n)?;
    let unit = |(extent, stride): Mode| -> Option<Mode> {
        if stride == 0 {
            return Some((extent, 0));
        }
        let inside = shape_div(n, stride.checked_abs()?)?;
        Some((shape_div(extent, inside)?, shape_div(stride, n)?))
    };
    let units = each(&layout.tree, &|mode| {
        unit(mode).ok_or_else(|| {
            let (extent, stride) = mode;
            Error::none(format!(
                "CuTe upcast by {n}: the mode {extent}:{stride} does not consist of whole units"
            ))
        })
    })?;
    // Inside of a unit the steps of all modes add up; a carry would be lost.
    let steps = |(extent, stride): Mode| {
        let stride = stride.saturating_abs();
        (extent.min(n / stride.max(1)) - 1)
            .max(0)
            .saturating_mul(stride)
    };
    let reach = layout
        .leaves()
        .into_iter()
        .map(steps)
        .fold(0, i64::saturating_add);
    if reach >= n {
        return Err(Error::none(format!(
            "CuTe upcast by {n}: modes of {layout} leave a unit together"
        )));
    }
    CuteLayout::from_tree(units)
}

/// `layout` in units of the `n`-th part of an element: each element becomes `n` consecutive ones, in the
/// modes of stride 1 (CuTe's `downcast`).
///
/// # Errors
/// `Invalid` for `n < 1`; `Overflow`.
pub fn downcast(layout: &CuteLayout, n: i64) -> Result<CuteLayout> {
    check_units(n)?;
    let overflow = || Error::overflow("a mode of a CuTe downcast");
    CuteLayout::from_tree(each(&layout.tree, &|(extent, stride)| {
        let scaled = if stride.unsigned_abs() == 1 {
            extent.checked_mul(n).map(|extent| (extent, stride))
        } else {
            stride.checked_mul(n).map(|stride| (extent, stride))
        };
        scaled.ok_or_else(overflow)
    })?)
}

/// `layout` of elements of `from_bits` as one of elements of `to_bits`: [`upcast`], [`downcast`], or the one
/// after the other.
///
/// # Errors
/// As both.
pub fn recast(layout: &CuteLayout, from_bits: i64, to_bits: i64) -> Result<CuteLayout> {
    let (narrow, wide) = ratio(from_bits, to_bits)?;
    let parts = if narrow == 1 {
        layout.clone()
    } else {
        downcast(layout, narrow)?
    };
    if wide == 1 {
        Ok(parts)
    } else {
        upcast(&parts, wide)
    }
}

/// By how much elements are cut, and how many of the parts make up a new element.
fn ratio(from_bits: i64, to_bits: i64) -> Result<(i64, i64)> {
    if from_bits < 1 || to_bits < 1 {
        return Err(Error::invalid(format!(
            "CuTe recast: expected bits of at least 1, got {from_bits} and {to_bits}"
        )));
    }
    let common = crate::sumset::gcd(from_bits, to_bits);
    Ok((from_bits / common, to_bits / common))
}

fn check_units(n: i64) -> Result<()> {
    if n < 1 {
        return Err(Error::invalid(format!(
            "CuTe units of elements: expected at least 1, got {n}"
        )));
    }
    Ok(())
}

fn each(tree: &Tree, f: &impl Fn(Mode) -> Result<Mode>) -> Result<Tree> {
    match tree {
        Tree::Leaf(mode) => f(*mode).map(Tree::Leaf),
        Tree::Modes(modes) => modes
            .iter()
            .map(|mode| each(mode, f))
            .collect::<Result<_>>()
            .map(Tree::Modes),
    }
}

impl ComposedLayout {
    /// [`recast`] of a swizzled layout: swizzle and offset are in the new units too.
    ///
    /// # Errors
    /// As [`recast`]; `Unsupported` when the swizzle moves parts of the new elements; `None` when the offset
    /// is inside of one.
    pub fn recast(&self, from_bits: i64, to_bits: i64) -> Result<Self> {
        let (narrow, wide) = ratio(from_bits, to_bits)?;
        let layout = recast(&self.layout, from_bits, to_bits)?;
        let offset = self
            .offset
            .checked_mul(narrow)
            .ok_or_else(|| Error::overflow("the offset of a CuTe layout"))?;
        if offset % wide != 0 {
            return Err(Error::none(format!(
                "CuTe recast: the offset {} is inside of an element",
                self.offset
            )));
        }
        let swizzle = if self.swizzle.is_identity() {
            self.swizzle
        } else {
            self.swizzle.in_parts_of(narrow)?.in_units_of(wide)?
        };
        Ok(Self {
            swizzle,
            offset: offset / wide,
            layout,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn modes_that_leave_a_unit_together_have_no_upcast() {
        let up = |text: &str, n| upcast(&text.parse().unwrap(), n);
        for (text, n) in [
            ("(8,2):(1,1)", 2),
            ("(4,4):(1,2)", 4),
            ("(2,2,2):(2,2,1)", 4),
        ] {
            assert_eq!(up(text, n).unwrap_err().kind(), Kind::None, "{text} by {n}");
        }
        assert_eq!(
            up("(2,2,8):(1,2,4)", 4).unwrap().to_string(),
            "(1,1,8):(1,1,1)"
        );
        assert_eq!(up("(4,2):(0,1)", 2).unwrap().to_string(), "(4,1):(0,1)");
    }
}
