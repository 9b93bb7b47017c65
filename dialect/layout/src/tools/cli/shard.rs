//! `shard`: one distribution in every notation, and the collectives between two.

use std::fmt::Write as _;

use clap::Args;

use serde_json::json;

use super::{CliError, Numbers, parse_numbers};
use crate::sharding::{Collective, Mesh, Sharding, ShardingError, plan};
use crate::tools::eval;

#[derive(Debug, Args)]
pub(super) struct ShardArgs {
    /// The mesh: x=2,y=4, or 2x4, Mesh('x': 2), sdy.mesh @m = <["x"=2]>, shard.grid @g(shape = 2x4).
    #[arg(long, short)]
    mesh: String,
    /// Global shape of the tensor.
    #[arg(long, short, value_parser = parse_numbers)]
    shape: Numbers,
    /// The sharding: '[Shard(0), Replicate()]', '(S(0), B)', 'P("x", None)', 'S0R', '<@m, [{"x"}, {}]>',
    /// '{devices=[2,1,4]<=[8] last_tile_dim_replicate}', 'split_axes = [[0], []]', or an Axe layout.
    sharding: String,
    /// Plan the collectives to this sharding.
    #[arg(long)]
    to: Option<String>,
    /// Bytes of an element.
    #[arg(long, default_value_t = 2)]
    elem_bytes: u64,
    /// The answer of `eval` (operations shard and reshard), as JSON.
    #[arg(long)]
    json: bool,
    /// The layout axis that numbers devices.
    #[arg(long, default_value = "gpu")]
    device: String,
}

/// Pairs of a permutation that are printed; JSON has all.
const MAX_PAIRS: usize = 64;

pub(super) fn run(args: &ShardArgs) -> Result<String, CliError> {
    if args.json {
        return as_json(args);
    }
    let mesh = Mesh::parse(&args.device, &args.mesh)?;
    let mut texts = vec![args.sharding.as_str()];
    texts.extend(args.to.as_deref());
    let (shape, read) = Sharding::parse_padded(&mesh, &args.shape.0, &texts)?;
    let mut out = String::new();
    if shape != args.shape.0 {
        writeln!(
            out,
            "uneven shards: padded from {:?} to {shape:?}",
            args.shape.0
        )?;
    }
    match &read[..] {
        [from, to] => reshard(&mut out, from, to, args.elem_bytes)?,
        [one] => describe(&mut out, one)?,
        _ => {}
    }
    Ok(out)
}

fn as_json(args: &ShardArgs) -> Result<String, CliError> {
    let mut inputs = json!({
        "mesh": args.mesh, "shape": args.shape, "sharding": args.sharding, "device": args.device,
    });
    let op = match &args.to {
        Some(to) => {
            inputs["to"] = json!(to);
            inputs["elem_bytes"] = json!(args.elem_bytes);
            "reshard"
        }
        None => "shard",
    };
    let result = eval::evaluate(op, inputs).map_err(|failure| failure.to_string())?;
    Ok(format!("{result}\n"))
}

fn reshard(
    out: &mut String,
    from: &Sharding,
    to: &Sharding,
    elem_bytes: u64,
) -> Result<(), CliError> {
    let found = plan(from, to, elem_bytes)?;
    writeln!(out, "from {}\nto   {}", from.to_layout()?, to.to_layout()?)?;
    if found.steps.is_empty() {
        writeln!(out, "nothing to do: both hold the same")?;
    }
    for (index, step) in found.steps.iter().enumerate() {
        writeln!(out, "{}. {step}", index + 1)?;
        if let Collective::Permute { pairs } = &step.collective {
            let shown = pairs.iter().take(MAX_PAIRS);
            let shown: Vec<String> = shown.map(|(from, to)| format!("{from}->{to}")).collect();
            let more = pairs.len().saturating_sub(MAX_PAIRS);
            let more = if more > 0 {
                format!(" and {more} more (--json has all)")
            } else {
                String::new()
            };
            writeln!(out, "   {}{more}", shown.join(" "))?;
        }
        writeln!(out, "   -> {}", step.after.to_layout()?)?;
    }
    let bytes = found.bytes_per_device();
    let proof = if bytes == found.lower_bound {
        "fewest possible".to_owned()
    } else if found.minimal {
        format!(
            "fewest of these collectives; a device lacks {}",
            found.lower_bound
        )
    } else {
        format!(
            "mesh too large to search; a device lacks {}",
            found.lower_bound
        )
    };
    writeln!(out, "total: {bytes} bytes per device ({proof})")?;
    Ok(())
}

fn describe(out: &mut String, sharding: &Sharding) -> Result<(), CliError> {
    let line = |text: Result<String, ShardingError>| match text {
        Ok(text) => text,
        Err(reason) => format!("- {reason}"),
    };
    writeln!(out, "axe            {}", sharding.to_layout()?)?;
    for (role, reduction) in sharding.partial() {
        let axis = role.name(sharding.mesh());
        writeln!(
            out,
            "partial        {} over {axis} ({} parts)",
            reduction.name(),
            role.size
        )?;
    }
    writeln!(out, "tile           {:?}", sharding.local_shape())?;
    for (name, text) in sharding.notations() {
        writeln!(out, "{name:<14} {}", line(text))?;
    }
    Ok(())
}
