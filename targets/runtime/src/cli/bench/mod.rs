//! `axe-run bench`.

mod measure;
mod rival;
mod select;

use axe_package::DType;
use clap::{Args, Subcommand, ValueEnum};

use super::DeviceArgs;
use crate::bench::problem::Scaling;
use crate::device::Device;
use crate::error::RuntimeError;
pub use measure::MeasureArgs;
use rival::RivalArgs;
pub use select::{Selected, Selection};

/// The arguments.
#[derive(Debug, Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Packages' GEMMs beside cuBLASLt's, taking turns on the same random operands
    Gemm(GemmArgs),
    /// The same of e4m3 operands with scales, bf16 out
    #[command(after_help = FP8_HELP)]
    GemmFp8(Fp8Args),
}

const FP8_HELP: &str = "A package's inputs are, in order, A [m, k] e4m3, A's scales f32, W [n, k] e4m3, W's scales f32; \
its output is C [m, n] bf16. Scales are [] and [] (tensor), [m] and [n] (row), or [m, k/128] (or [k/128, m]) and [n/128, k/128] (block), rounded up.";

#[derive(Debug, Args)]
struct GemmArgs {
    #[command(flatten)]
    selection: Selection,
    /// The element types of suites
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["f16", "bf16"])]
    dtype: Vec<Half>,
    #[command(flatten)]
    rivals: RivalArgs,
    #[command(flatten)]
    measure: MeasureArgs,
}

#[derive(Debug, Args)]
struct Fp8Args {
    #[command(flatten)]
    selection: Selection,
    /// The scalings of suites
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["row"])]
    scaling: Vec<Scaling>,
    #[command(flatten)]
    rivals: RivalArgs,
    #[command(flatten)]
    measure: MeasureArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Half {
    F16,
    Bf16,
}

/// Runs a bench.
///
/// # Errors
/// Cases that make no sense, no GPU, no cuBLASLt. A case that fails is listed.
pub fn main(args: &BenchArgs, device: DeviceArgs) -> Result<u8, RuntimeError> {
    match &args.what {
        What::Gemm(args) => {
            let of = |half: &Half| match half {
                Half::F16 => (DType::F16, Scaling::None),
                Half::Bf16 => (DType::BF16, Scaling::None),
            };
            let types: Vec<_> = args.dtype.iter().map(of).collect();
            let mut selected = args.selection.select(&types)?;
            args.rivals.join(&mut selected, &args.selection)?;
            bench(&args.measure, &selected, &device.open()?)
        }
        What::GemmFp8(args) => {
            let types: Vec<_> = args.scaling.iter().map(|s| (DType::F8E4M3, *s)).collect();
            let mut selected = args.selection.select(&types)?;
            args.rivals.join(&mut selected, &args.selection)?;
            bench(&args.measure, &selected, &device.open()?)
        }
    }
}

fn bench(args: &MeasureArgs, selected: &Selected, device: &Device) -> Result<u8, RuntimeError> {
    let measured = args.run(selected, device, |_| Ok(()))?;
    let code = args.finish(&measured)?;
    end_if_hanging(device, code);
    Ok(code)
}

/// Ends the program at once when the device hangs: everything else would wait for it, also what the driver
/// does when a process exits.
pub(super) fn end_if_hanging(device: &Device, code: u8) {
    if device.hangs() {
        // SAFETY: nothing runs afterwards; files are written and lines of output are flushed one by one.
        unsafe { libc::_exit(i32::from(code)) }
    }
}
