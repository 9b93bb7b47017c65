//! `--axe-nvidia`: from linalg on tensors to PTX.

use crate::facts::chip::{CHIPS, chip};
use crate::target::DEFAULT_CHIP;
use axe_passes::pipeline::{Pipeline, PipelineOption, logical};

const DESCRIPTION: &str = "
Takes a module whose functions compute on tensors: linalg, logical operators, or kernels with their launches. Modules inside
the module are refused. What it leaves depends on `until`:

| `until` | the functions | the kernels |
| --- | --- | --- |
| `logical` | operators of axe; `linalg.generic` for what they do not say | |
| `scheduled` | an `axe.launch` a kernel, `tensor.empty` for its results, sizes as `arith` on `index` | `axe.kernel`, operators on storage and registers |
| `dispatched` | the same | the same, with a `schedule` and a `plan` on each operator |
| `target` | launches of `@kernels::@NAME` with what a host needs to know | `gpu.func` in the `gpu.module @kernels`: gpu, nvvm, arith, scf |
| `nvvm` | the same | `llvm.func` with `nvvm` |
| `ptx` | the same | PTX in the `gpu.binary @kernels` |

The function that is left is a list of launches, and [the page on launches](../launch.md) says what a launch asks of the host.
";

/// `--axe-nvidia`.
pub(crate) const PIPELINE: Pipeline = Pipeline {
    name: "axe-nvidia",
    summary: "From linalg on tensors to PTX, through the axe dialect",
    description: DESCRIPTION,
    options: &[
        PipelineOption {
            name: "target",
            help: "The chip to compile for (default: the target's own)",
            value: "",
        },
        PipelineOption {
            name: "chip",
            help: "Another name of target",
            value: "",
        },
        PipelineOption {
            name: "until",
            help: "Stop after this level: logical, scheduled, dispatched, target, nvvm, ptx",
            value: "ptx",
        },
        PipelineOption {
            name: "tuned",
            help: "The database of tuned plans: a file, none, or (default) the compiler's own",
            value: "",
        },
        PipelineOption {
            name: "allow-unsupported",
            help: "Leave what has no kernel on the chip in the function, for the host",
            value: "false",
        },
    ],
    text,
};

/// The passes of a level for a chip.
type Passes = fn(&Options<'_>) -> String;

/// What the passes are told.
struct Options<'a> {
    chip: &'a str,
    /// The database of tuned plans, empty for the compiler's own.
    tuned: &'a str,
    /// Whether what has no kernel is left for the host.
    leave: bool,
}

impl Options<'_> {
    /// The option of each pass that leaves something.
    const fn leaving(&self) -> &'static str {
        if self.leave {
            " allow-unsupported=true"
        } else {
            ""
        }
    }
}

/// The levels after which the pipeline can stop, each with the passes that reach it.
const LEVELS: [(&str, Passes); 6] = [
    ("logical", |options| logical(options.leaving())),
    ("scheduled", |options| {
        let Options { chip, tuned, .. } = options;
        let leave = options.leaving();
        let tuned = match *tuned {
            "" => String::new(),
            tuned => format!(" tuned={tuned}"),
        };
        format!("axe-plan-kernels{{target={chip}{tuned}{leave}}},axe-canonicalize-layouts")
    }),
    ("dispatched", |options| {
        let (chip, leave) = (options.chip, options.leaving());
        format!("axe-dispatch-schedules{{target={chip}{leave}}}")
    }),
    ("target", |options| {
        format!(
            "axe-lower-schedules{{target={} check=false{}}},canonicalize,cse",
            options.chip,
            options.leaving()
        )
    }),
    ("nvvm", |_| to_nvvm()),
    ("ptx", |options| to_ptx(options.chip)),
];

/// The kernels alone: the host function stays as it is.
fn to_nvvm() -> String {
    let in_kernels = [
        "convert-scf-to-cf",
        "convert-gpu-to-nvvm",
        "convert-to-llvm",
        "reconcile-unrealized-casts",
        "canonicalize",
        "cse",
    ];
    format!("gpu.module({})", in_kernels.join(","))
}

/// The code names the lines of the source, so that the simulator and the debugger can.
fn to_ptx(name: &str) -> String {
    let feature = chip(name).map_or("", |chip| chip.ptx_feature);
    let lines = "ensure-debug-info-scope-on-llvm-func{emission-kind=DebugDirectivesOnly}";
    format!(
        "{lines},nvvm-attach-target{{chip={name} features={feature} O=3}},gpu-module-to-binary{{format=isa}},axe-verify-code"
    )
}

/// The chip that the options name, by `target` or by its other name.
fn named<'a>(target: &'a str, chip: &'a str) -> Result<&'a str, String> {
    match (target, chip) {
        ("", "") => Ok(DEFAULT_CHIP),
        ("", one) | (one, "") => Ok(one),
        (one, other) if one == other => Ok(one),
        _ => Err(format!(
            "expected one chip, got target={target} and chip={chip}"
        )),
    }
}

/// The passes for the options `target` (or `chip`), `until`, `tuned` and `allow-unsupported`.
///
/// # Errors
/// A message that lists what the option takes.
fn text(options: &[(&str, &str)]) -> Result<String, String> {
    let option = |name| {
        options
            .iter()
            .find(|(key, _)| *key == name)
            .map_or("", |(_, value)| *value)
    };
    let name = named(option("target"), option("chip"))?;
    let until = match option("until") {
        "" => "ptx",
        until => until,
    };
    if chip(name).is_none() {
        let known: Vec<_> = CHIPS.iter().map(|chip| chip.name).collect();
        return Err(format!(
            "unknown chip '{name}': expected one of {}",
            known.join(", ")
        ));
    }
    let Some(last) = LEVELS.iter().position(|(level, _)| *level == until) else {
        let known: Vec<_> = LEVELS.iter().map(|(level, _)| *level).collect();
        return Err(format!(
            "unknown level '{until}': expected one of {}",
            known.join(", ")
        ));
    };
    let options = Options {
        chip: name,
        tuned: option("tuned"),
        leave: match option("allow-unsupported") {
            "true" => true,
            "" | "false" => false,
            other => {
                return Err(format!(
                    "expected true or false, got allow-unsupported={other}"
                ));
            }
        },
    };
    // The passes are text, in which braces and commas separate.
    if options.tuned.contains(['{', '}', ',', ' ', '"', '\'']) {
        return Err(format!(
            "expected a path without blanks, commas, quotes and braces, got tuned={}",
            options.tuned
        ));
    }
    let passes: Vec<_> = LEVELS
        .iter()
        .take(last + 1)
        .map(|(_, passes)| passes(&options))
        .collect();
    Ok(passes.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pipeline_stops_where_it_is_told() {
        let passes = text(&[("target", "sm_90a"), ("until", "scheduled")]).unwrap();
        assert!(passes.contains("axe-plan-kernels{target=sm_90a}") && !passes.contains("dispatch"));
        let passes = text(&[("chip", "sm_90a"), ("until", "dispatched")]).unwrap();
        assert!(passes.ends_with("axe-dispatch-schedules{target=sm_90a}"));
        assert!(
            text(&[("chip", "sm_90a"), ("until", "ptx")])
                .unwrap()
                .ends_with("{format=isa},axe-verify-code")
        );
    }

    #[test]
    fn every_pass_leaves_what_it_cannot_take() {
        let passes = |leave| {
            text(&[
                ("chip", "sm_90a"),
                ("until", "target"),
                ("allow-unsupported", leave),
            ])
        };
        assert_eq!(
            passes("true").unwrap().matches("unsupported=true").count(),
            4
        );
        assert!(!passes("false").unwrap().contains("unsupported"));
        assert!(passes("yes").unwrap_err().contains("true or false"));
    }

    #[test]
    fn plans_come_from_the_file_that_is_named() {
        let passes = |tuned| text(&[("chip", "sm_90a"), ("until", "scheduled"), ("tuned", tuned)]);
        let passed = passes("my/plans.json").unwrap();
        assert!(passed.contains("axe-plan-kernels{target=sm_90a tuned=my/plans.json}"));
        assert!(!passes("").unwrap().contains("tuned"));
        assert!(passes("a} b").unwrap_err().contains("without blanks"));
    }

    #[test]
    fn the_chip_has_two_names() {
        let passes = |target, chip| text(&[("target", target), ("chip", chip), ("until", "ptx")]);
        assert!(passes("sm_80", "").unwrap().contains("chip=sm_80"));
        assert_eq!(passes("", "sm_80"), passes("sm_80", ""));
        assert_eq!(passes("sm_80", "sm_80"), passes("sm_80", ""));
        assert_eq!(passes("", ""), passes(DEFAULT_CHIP, ""));
        assert!(
            passes("sm_80", "sm_90a")
                .unwrap_err()
                .contains("chip=sm_90a")
        );
    }

    #[test]
    fn errors_list_what_there_is() {
        let reason = |chip, until| text(&[("chip", chip), ("until", until)]).unwrap_err();
        assert!(reason("sm_10", "ptx").contains("sm_80, sm_86"));
        assert!(reason("sm_80", "metal").contains("logical, scheduled"));
    }
}
