//! What a run of a part of the CTAs ([`crate::Options::max_ctas`]) makes of a package's memory.

use axe_package::{Access, ConcreteArg, Kernel, ParamKind};
use std::collections::BTreeSet;

/// Memory by its place in the instance.
#[derive(Debug, Default)]
pub(crate) struct Partial {
    /// What CTAs write that were not run.
    incomplete: BTreeSet<usize>,
    /// What was computed from such memory.
    tainted: BTreeSet<usize>,
}

impl Partial {
    /// Notes a launch, `stopped` before its last CTA or not; true if it reads what is not complete.
    pub(crate) fn launched(
        &mut self,
        kernel: &Kernel,
        args: &[ConcreteArg],
        stopped: bool,
    ) -> bool {
        let (mut read, mut written) = (Vec::new(), Vec::new());
        for (param, arg) in kernel.params.iter().zip(args) {
            let (ParamKind::Pointer { access, .. } | ParamKind::TensorMap { access, .. }) =
                &param.kind
            else {
                continue;
            };
            let (ConcreteArg::Address(place) | ConcreteArg::Tensor { at: place, .. }) = arg else {
                continue;
            };
            if *access != Access::Write {
                read.push(place.memory);
            }
            if *access != Access::Read {
                written.push(place.memory);
            }
        }
        let unknown =
            |memory: &usize| self.incomplete.contains(memory) || self.tainted.contains(memory);
        let lacks = read.iter().any(unknown);
        if lacks {
            self.tainted.extend(&written);
        }
        if stopped {
            self.incomplete.extend(&written);
        }
        lacks
    }

    /// Notes a copy of one piece of memory to another.
    pub(crate) fn copied(&mut self, from: usize, to: usize) {
        for set in [&mut self.incomplete, &mut self.tainted] {
            if set.contains(&from) {
                set.insert(to);
            }
        }
    }

    /// Whether memory holds what was computed from memory that is not complete.
    pub(crate) fn lacks_input(&self, memory: usize) -> bool {
        self.tainted.contains(&memory)
    }
}
