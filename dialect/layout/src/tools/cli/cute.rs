//! `cute`: operations on CuTe layouts in CuTe's own notation.

use clap::{Args, ValueEnum};

use super::{CliError, parse_numbers};
use crate as axe;
use crate::cute::{self, ComposedLayout, CuteLayout, Tiler};

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CuteOp {
    /// A layout, its size, cosize and Axe form.
    Print,
    /// A: the fewest modes of the same function.
    Coalesce,
    /// A: without modes of stride 0.
    Filter,
    /// A after B, a layout or a tiler.
    Composition,
    /// What repeats A up to a number B.
    Complement,
    /// The coordinates of 0, 1, 2, ...
    RightInverse,
    /// The coordinate of each image.
    LeftInverse,
    /// A in tiles of B, mode by mode: ((tile, rest), ...).
    LogicalDivide,
    /// A in tiles of B: (tiles, rests).
    ZippedDivide,
    /// A in tiles of B: (tiles, rest, rest, ...).
    TiledDivide,
    /// A in tiles of B: (tile, tile, ..., rest, rest, ...).
    FlatDivide,
    /// A repeated as B says, mode by mode: ((block, copies), ...).
    LogicalProduct,
    /// A repeated as B says: (blocks, copies).
    ZippedProduct,
    /// A repeated as B says: (blocks, copies, copies, ...).
    TiledProduct,
    /// A repeated as B says: (block, block, ..., copies, copies, ...).
    FlatProduct,
    /// A repeated as B says, blocks side by side.
    BlockedProduct,
    /// A repeated as B says, interleaved.
    RakedProduct,
    /// A repeated to the shape B, such as 64,128.
    TileToShape,
    /// A in units of B elements.
    Upcast,
    /// A in B-th parts of elements.
    Downcast,
    /// A of elements of so many bits as elements of others; B such as 16,8.
    Recast,
    /// Tile and thread-value layout of the threads A with the values B each.
    LayoutTv,
}

#[derive(Debug, Args)]
pub(super) struct CuteArgs {
    /// The operation.
    op: CuteOp,
    /// A: a layout such as '(4,(2,3)):(2,(1,8))', or a swizzled one, 'Sw<3,3,3> o 0 o (8,64):(64,1)', for
    /// operations that leave the swizzle as it is, and recast.
    a: ComposedLayout,
    /// B: the other layout, a tiler '<3:1; 8>' (`_` keeps a mode), or what the operation says.
    b: Option<String>,
}

/// Deepest tiler that is read; real ones have two or three levels.
const MAX_DEPTH: usize = 64;

fn tiler(text: &str, depth: usize) -> Result<Tiler, CliError> {
    let text = text.trim();
    if depth > MAX_DEPTH {
        return Err(format!("a tiler has at most {MAX_DEPTH} levels").into());
    }
    if let Some(modes) = text
        .strip_prefix('<')
        .and_then(|rest| rest.strip_suffix('>'))
    {
        return Ok(Tiler::Tuple(
            split(modes)
                .into_iter()
                .map(|mode| tiler(mode, depth + 1))
                .collect::<Result<_, _>>()?,
        ));
    }
    if text == "_" {
        return Ok(Tiler::Keep);
    }
    if let Ok(extent) = text.parse() {
        return Ok(Tiler::Extent(extent));
    }
    Ok(Tiler::Layout(text.parse::<CuteLayout>()?))
}

/// The parts between semicolons that are in no brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0_i64, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' => depth -= 1,
            b';' if depth == 0 => {
                parts.extend(text.get(from..at));
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(from..));
    parts
}

pub(super) fn run(args: &CuteArgs) -> Result<String, CliError> {
    let second = || args.b.as_deref().ok_or("this operation takes two operands");
    let by = || tiler(second()?, 0);
    let numbers = || -> Result<Vec<i64>, CliError> { Ok(parse_numbers(second()?)?.0) };
    let carried = |found: axe::Result<ComposedLayout>| -> Result<String, CliError> {
        let found = found?;
        Ok(match plain(&found) {
            Ok(layout) => format!("{layout}\n"),
            Err(_) => format!("{found}\n"),
        })
    };
    // What permutes, restricts or repeats coordinates leaves the swizzle around the layout as it is.
    match args.op {
        CuteOp::Coalesce => return carried(args.a.map(|a| Ok(cute::coalesce(a)))),
        CuteOp::Filter => return carried(args.a.map(|a| Ok(cute::filter(a)))),
        CuteOp::Composition => {
            let by = by()?;
            return carried(args.a.map(|a| cute::composition_by_mode(a, &by)));
        }
        CuteOp::LogicalDivide | CuteOp::ZippedDivide | CuteOp::TiledDivide | CuteOp::FlatDivide => {
            let by = by()?;
            let divide = match args.op {
                CuteOp::LogicalDivide => cute::logical_divide,
                CuteOp::ZippedDivide => cute::zipped_divide,
                CuteOp::TiledDivide => cute::tiled_divide,
                _ => cute::flat_divide,
            };
            return carried(args.a.map(|a| divide(a, &by)));
        }
        CuteOp::TileToShape => {
            let shape = numbers()?;
            return carried(args.a.map(|a| cute::tile_to_shape(a, &shape, None)));
        }
        CuteOp::Recast => {
            let [from, to] = numbers()?[..] else {
                return Err("recast: expected two numbers of bits, such as 16,8".into());
            };
            return carried(args.a.recast(from, to));
        }
        _ => {}
    }
    of_plain(args.op, plain(&args.a)?, args.b.as_deref())
}

/// The layout inside, unless something is around it.
fn plain(a: &ComposedLayout) -> Result<&CuteLayout, CliError> {
    if a.swizzle.is_identity() && a.offset == 0 {
        return Ok(&a.layout);
    }
    Err(format!("{a}: this operation takes a layout without swizzle and offset").into())
}

fn of_plain(op: CuteOp, a: &CuteLayout, b: Option<&str>) -> Result<String, CliError> {
    let second = || b.ok_or("this operation takes two operands");
    let other = || -> Result<CuteLayout, CliError> { Ok(second()?.parse::<CuteLayout>()?) };
    let number = || -> Result<i64, CliError> { Ok(second()?.trim().parse()?) };
    let by = || tiler(second()?, 0);
    let found = match op {
        CuteOp::Complement => cute::complement(a, number()?)?,
        CuteOp::RightInverse => cute::right_inverse(a)?,
        CuteOp::LeftInverse => cute::left_inverse(a)?,
        CuteOp::LogicalProduct => cute::logical_product(a, &by()?)?,
        CuteOp::ZippedProduct => cute::zipped_product(a, &by()?)?,
        CuteOp::TiledProduct => cute::tiled_product(a, &by()?)?,
        CuteOp::FlatProduct => cute::flat_product(a, &by()?)?,
        CuteOp::BlockedProduct => cute::blocked_product(a, &other()?)?,
        CuteOp::RakedProduct => cute::raked_product(a, &other()?)?,
        CuteOp::Upcast => cute::upcast(a, number()?)?,
        CuteOp::Downcast => cute::downcast(a, number()?)?,
        CuteOp::LayoutTv => {
            let (tile, tv) = cute::make_layout_tv(a, &other()?)?;
            return Ok(format!("tile {tile:?}\n{tv}\n"));
        }
        _ => return print(a),
    };
    Ok(format!("{found}\n"))
}

fn print(a: &CuteLayout) -> Result<String, CliError> {
    let plain = cute::ComposedLayout::plain(a.clone())?;
    let (axe, shape) = cute::to_axe(&plain, crate::Axis::M)?;
    Ok(format!(
        "{a}\nsize {}, cosize {}\n{axe} on shape {shape:?}\n",
        a.size(),
        a.cosize()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(op: CuteOp, a: &str, b: &str) -> Result<String, String> {
        let b = (!b.is_empty()).then(|| b.to_owned());
        let a = a.parse().map_err(|e: crate::Error| e.to_string())?;
        run(&CuteArgs { op, a, b }).map_err(|e| e.to_string())
    }

    #[test]
    fn swizzles_are_carried_and_nests_bounded() {
        let tile = "Sw<3,3,3> o 0 o (8,64):(64,1)";
        assert_eq!(
            ask(CuteOp::TileToShape, tile, "16,128").unwrap(),
            "Sw<3,3,3> o 0 o ((8,2),(64,2)):((64,512),(1,1024))\n"
        );
        assert_eq!(
            ask(CuteOp::Recast, tile, "16,8").unwrap(),
            "Sw<3,4,3> o 0 o (8,128):(128,1)\n"
        );
        assert_eq!(
            ask(CuteOp::ZippedDivide, "(8,8):(8,1)", "<4; <2>>").unwrap(),
            "((4,(2)),(2,(4))):((8,(1)),(32,(2)))\n"
        );
        assert!(
            ask(CuteOp::RightInverse, tile, "")
                .unwrap_err()
                .contains("without swizzle")
        );
        let deep = ["<".repeat(30_000), ">".repeat(30_000)].concat();
        assert!(
            ask(CuteOp::LogicalDivide, "8:1", &deep)
                .unwrap_err()
                .contains("64 levels")
        );
        assert_eq!(
            ask(CuteOp::LayoutTv, "(4,8):(8,1)", "(1,4):(4,1)").unwrap(),
            "tile [4, 32]\n((8,4),4):((16,1),4)\n"
        );
    }
}
