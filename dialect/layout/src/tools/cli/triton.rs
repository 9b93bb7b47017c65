//! `triton`: Triton's encodings as linear layouts and Axe layouts, and back.

use std::fmt::Write as _;

use clap::Args;

use super::{CliError, Numbers, parse_layout, parse_numbers};
use crate::linear::{LinearLayout, TritonEncoding, linear_of_layout};

#[derive(Debug, Args)]
pub(super) struct TritonArgs {
    /// An encoding: '#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1],
    /// order = [1, 0]}>', nvidia_mma, dot_op and slice with their parent in place, swizzled_shared,
    /// padded_shared, linear; a linear layout as Triton prints it; or an Axe layout over reg, lane, warp.
    encoding: String,
    /// Shape of the tensor, powers of two.
    #[arg(long, short, value_parser = parse_numbers)]
    shape: Numbers,
}

pub(super) fn run(args: &TritonArgs) -> Result<String, CliError> {
    let shape = &args.shape.0;
    let mut out = String::new();
    if ["S[", "Sw<", "#axe", "{"]
        .iter()
        .any(|start| args.encoding.trim().starts_with(start))
    {
        let layout = parse_layout(&args.encoding)?;
        linear(&mut out, &linear_of_layout(&layout, shape)?)?;
        return Ok(out);
    }
    let encoding = TritonEncoding::parse(&args.encoding)?;
    if !matches!(encoding, TritonEncoding::PaddedShared { .. }) {
        linear(&mut out, &encoding.to_linear(shape)?)?;
    }
    match encoding.to_layout(shape) {
        Ok(layout) => writeln!(out, "{layout}")?,
        Err(reason) => writeln!(out, "- {reason}")?,
    }
    Ok(out)
}

fn linear(out: &mut String, layout: &LinearLayout) -> Result<(), CliError> {
    writeln!(out, "{}\n{}", layout.to_triton(), layout.to_ttg())?;
    Ok(())
}
