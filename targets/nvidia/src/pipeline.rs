//! `--axe-nvidia`: from linalg on tensors to PTX.

use crate::facts::chip::{CHIPS, chip};

/// The passes of a level for a chip.
type Passes = fn(&str) -> String;

/// The levels after which the pipeline can stop, each with the passes that reach it.
const LEVELS: [(&str, Passes); 5] = [
    ("logical", |_| {
        "convert-linalg-to-axe,canonicalize,cse".to_owned()
    }),
    ("scheduled", |chip| {
        format!("axe-plan-kernels{{target={chip}}},axe-canonicalize-layouts")
    }),
    ("target", |chip| {
        format!("axe-dispatch-schedules{{target={chip}}},canonicalize,cse")
    }),
    ("nvvm", |_| to_nvvm()),
    ("ptx", |chip| to_ptx(chip)),
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
        "{lines},nvvm-attach-target{{chip={name} features={feature} O=3}},gpu-module-to-binary{{format=isa}}"
    )
}

/// The passes for the options `chip` and `until`.
///
/// # Errors
/// A message that lists what the option takes.
pub(crate) fn text(options: &[(&str, &str)]) -> Result<String, String> {
    let option = |name| {
        options
            .iter()
            .find(|(key, _)| *key == name)
            .map_or("", |(_, value)| *value)
    };
    let (name, until) = (option("chip"), option("until"));
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
    let passes: Vec<_> = LEVELS
        .iter()
        .take(last + 1)
        .map(|(_, passes)| passes(name))
        .collect();
    Ok(passes.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pipeline_stops_where_it_is_told() {
        let passes = text(&[("chip", "sm_90a"), ("until", "scheduled")]).unwrap();
        assert!(passes.contains("axe-plan-kernels{target=sm_90a}") && !passes.contains("dispatch"));
        assert!(
            text(&[("chip", "sm_90a"), ("until", "ptx")])
                .unwrap()
                .ends_with("{format=isa}")
        );
    }

    #[test]
    fn errors_list_what_there_is() {
        let reason = |chip, until| text(&[("chip", chip), ("until", until)]).unwrap_err();
        assert!(reason("sm_10", "ptx").contains("sm_80, sm_86"));
        assert!(reason("sm_80", "metal").contains("logical, scheduled"));
    }
}
