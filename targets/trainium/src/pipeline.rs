//! `--axe-trainium`: from linalg on tensors to kernels of the trn dialect.

use axe_passes::pipeline::{Pipeline, PipelineOption, logical};
use axe_trn::facts::chip::{CHIPS, chip};

const DESCRIPTION: &str = "
Takes a module whose functions compute on tensors: linalg, or logical operators. What it leaves depends on `until`:

| `until` | the functions | the kernels |
| --- | --- | --- |
| `logical` | operators of axe; `linalg.generic` for what they do not say | |
| `trn` | an `axe.launch` a kernel, `tensor.empty` for its results | `trn.kernel`, instructions of the engines |

Planning binds each operator to instructions, and remarks of category `axe-dispatch` say to which.
";

/// `--axe-trainium`.
pub(crate) const PIPELINE: Pipeline = Pipeline {
    name: "axe-trainium",
    summary: "From linalg on tensors to kernels of Trainium, through the axe dialect",
    description: DESCRIPTION,
    options: &[
        PipelineOption {
            name: "target",
            help: "The chip to compile for: trn1 (default) or trn2",
            value: "",
        },
        PipelineOption {
            name: "chip",
            help: "Another name of target",
            value: "",
        },
        PipelineOption {
            name: "until",
            help: "Stop after this level: logical, trn",
            value: "trn",
        },
        PipelineOption {
            name: "allow-unsupported",
            help: "Leave what has no kernel on the chip in the function, for the host",
            value: "false",
        },
    ],
    text,
};

/// The passes for a chip.
pub(crate) fn passes(chip: &str, options: &str) -> String {
    format!(
        "{},axe-plan-kernels{{target={chip}{options}}},canonicalize,cse",
        logical(options)
    )
}

fn text(options: &[(&str, &str)]) -> Result<String, String> {
    let option = |name| {
        let found = options.iter().find(|(key, _)| *key == name);
        found.map_or("", |(_, value)| *value)
    };
    let name = match (option("target"), option("chip")) {
        ("", "") => "trn1",
        ("", one) | (one, "") => one,
        (one, other) if one == other => one,
        (one, other) => {
            return Err(format!(
                "expected one chip, got target={one} and chip={other}"
            ));
        }
    };
    if chip(name).is_none() {
        let known: Vec<_> = CHIPS.iter().map(|chip| chip.name).collect();
        return Err(format!(
            "unknown chip '{name}': expected one of {}",
            known.join(", ")
        ));
    }
    let leave = match option("allow-unsupported") {
        "true" => " allow-unsupported=true",
        "" | "false" => "",
        other => {
            return Err(format!(
                "expected true or false, got allow-unsupported={other}"
            ));
        }
    };
    match option("until") {
        "logical" => Ok(logical(leave)),
        "" | "trn" => Ok(passes(name, leave)),
        other => Err(format!(
            "unknown level '{other}': expected one of logical, trn"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_list_what_there_is() {
        let reason = |chip, until| text(&[("chip", chip), ("until", until)]).unwrap_err();
        assert!(reason("sm_80", "trn").contains("trn1, trn2"));
        assert!(reason("trn1", "ptx").contains("logical, trn"));
        let passes = text(&[("target", "trn2"), ("allow-unsupported", "true")]).unwrap();
        assert!(passes.contains("axe-plan-kernels{target=trn2 allow-unsupported=true}"));
    }
}
