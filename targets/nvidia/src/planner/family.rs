//! Kernel families: what a fusion group can become. Choosing, tuning, searching and explaining are generic over them
//! ([`choose`](super::choose)); a new family implements [`Family`] and gets a line in [`super::Planner`].

use super::choose::search::Candidate;
use super::choose::{self, Choice};
use super::knobs::Plan;
use crate::facts::chip::Chip;
use axe_package::{Key, TunedDb};
use axe_passes::fuse::frame::Frame;
use axe_passes::fuse::group::Group;
use axe_passes::ir::{Builder, Val};
use axe_passes::{PassError, PassResult};
use std::fmt;

/// A family of kernels.
pub(super) trait Family {
    /// A group's operators, read once.
    type Operators<'c>;
    /// What they compute, as data: extents, types.
    type Problem: Copy;
    /// One way to compute it. Its text is a plan's.
    type Config: Copy + PartialEq + fmt::Display;

    /// Whether there are several ways, of which plans, the database and the cost model choose one.
    const HAS_CHOICE: bool;

    /// Reads a group that stores `outputs`.
    ///
    /// # Errors
    /// At an operator that is not supported.
    fn read<'c>(
        group: &Group<'c>,
        outputs: &[Val<'c>],
        builder: &Builder<'c>,
        chip: &Chip,
    ) -> PassResult<'c, Self::Operators<'c>>;

    /// What operators compute.
    fn problem(operators: &Self::Operators<'_>, chip: &Chip) -> Self::Problem;

    /// What their `axe.plan` asks for: nothing, where they have none.
    fn asked(_: &Self::Operators<'_>) -> Plan {
        Plan::default()
    }

    /// The configuration of a plan; what it leaves out is the cost model's choice.
    ///
    /// # Errors
    /// Why there is none.
    fn configure(
        operators: &Self::Operators<'_>,
        plan: &Plan,
        chip: &Chip,
    ) -> Result<Self::Config, String>;

    /// Configurations that are worth timing, the cost model's choice first.
    fn candidates(
        problem: Self::Problem,
        chip: &Chip,
        limit: usize,
    ) -> Vec<Candidate<Self::Config>>;

    /// Clocks that a configuration is predicted to take.
    fn clocks(problem: Self::Problem, config: Self::Config, chip: &Chip) -> f64;

    /// What the database finds operators by; none for what it has no entries for.
    fn key(_: &Self::Operators<'_>, _: &Chip) -> Option<Key> {
        None
    }

    /// What is computed for a key of the database; none for another family's.
    fn of_key(_: &Key) -> Option<Self::Problem> {
        None
    }

    /// Rows, columns and depth of a configuration's tile.
    fn tile(config: Self::Config) -> [i64; 3];

    /// The operators, for people: `4096 x 4096 x 4096 of f16`.
    fn described(operators: &Self::Operators<'_>) -> String;

    /// Why a quicker kind of kernel was not taken.
    fn declined(_: &Self::Operators<'_>, _: Self::Config, _: &Chip) -> Option<String> {
        None
    }

    /// A configuration of the database or of the cost model, which do not know what the kernel computes beside the problem, as
    /// that wants it.
    fn fused(_: &Self::Operators<'_>, config: Self::Config) -> Self::Config {
        config
    }

    /// Adds the kernels of a configuration, and launches them; the name of the one that is explained.
    ///
    /// # Errors
    /// At the operators, when they are too large for a grid, or an operation cannot be built.
    fn emit<'c>(
        operators: &Self::Operators<'c>,
        config: Self::Config,
        launch: &mut Launch<'_, 'c>,
    ) -> PassResult<'c, String>;
}

/// Where kernels are launched.
pub(super) struct Launch<'a, 'c> {
    pub chip: &'static Chip,
    /// The function around them.
    pub frame: &'a mut Frame<'c>,
    /// The place of the launch, and the location of all that is built.
    pub builder: &'a Builder<'c>,
}

/// What a family's configurations are chosen with.
pub(super) struct Choosing<'a> {
    pub chip: &'static Chip,
    /// Plans that were fastest on a device.
    pub plans: &'a TunedDb,
    /// Whether to print where plans come from.
    pub explain: bool,
}

/// Plans the kernels of a group: reads it, chooses a configuration, emits it, and says which it is.
///
/// # Errors
/// At the group's operators, when they cannot be planned.
pub(super) fn plan<'c, F: Family>(
    choosing: &Choosing<'_>,
    frame: &mut Frame<'c>,
    builder: &Builder<'c>,
    group: &Group<'c>,
    outputs: &[Val<'c>],
) -> PassResult<'c> {
    let chip = choosing.chip;
    let operators = F::read(group, outputs, builder, chip)?;
    let choice: Choice<F::Config> = choose::choose::<F>(&operators, choosing)
        .map_err(|reason| PassError::new(builder.location, reason))?;
    let mut launch = Launch {
        chip,
        frame,
        builder,
    };
    let kernel = F::emit(&operators, choice.config, &mut launch)?;
    if F::HAS_CHOICE {
        choose::report::<F>(&operators, &choice, &kernel, builder.location, choosing);
    }
    Ok(())
}
