//! Where a CTA's shared variables lie. Between two variables are bytes that belong to neither, so that an
//! access past the end of one is not taken for an access to the next.

use crate::decode::{Program, SHARED_BASE};
use crate::fault::Fault;
use std::collections::VecDeque;

/// Matrix descriptors address 18 bits of shared memory (PTX ISA 9.7.15.5.1.2.2).
const ADDRESSABLE: u64 = 1 << 18;
/// Bytes between two variables, where there is room for them.
const GAPS: [u64; 4] = [1024, 256, 64, 0];

/// Shared variables of a launch.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedLayout {
    /// Address by variable of the program; those that the kernel does not reach share the first one.
    pub(crate) offsets: Vec<u64>,
    /// Start, size and index of the variables, by address.
    placed: Vec<(u64, u64, usize)>,
    /// Bytes of the variables and the padding that their alignment needs.
    pub(crate) used: u64,
    /// End of the last variable.
    pub(crate) end: u64,
}

/// Shared variables that a kernel and what it calls name.
fn reached_variables(program: &Program, kernel: usize) -> Vec<usize> {
    let mut reached = vec![false; program.functions.len()];
    let mut queue = VecDeque::from([kernel]);
    while let Some(index) = queue.pop_front() {
        let Some(func) = program.functions.get(index) else {
            continue;
        };
        if std::mem::replace(&mut reached[index], true) {
            continue;
        }
        queue.extend(func.calls.iter().copied());
        if func.calls_indirect {
            queue.extend((0..program.functions.len()).filter(|&i| !program.functions[i].entry));
        }
    }
    let functions = program.functions.iter().zip(&reached);
    let mut used: Vec<usize> = functions
        .filter(|(_, r)| **r)
        .flat_map(|(f, _)| f.shared.iter().copied())
        .collect();
    used.sort_unstable();
    used.dedup();
    used
}

impl SharedLayout {
    /// Lays out what a kernel reaches, with `dynamic` bytes for the array without a size.
    pub(crate) fn new(program: &Program, kernel: usize, dynamic: u64) -> Self {
        let all = reached_variables(program, kernel);
        let tight = Self::with_gap(program, &all, dynamic, 0);
        let fits = |gap: &u64| Self::with_gap(program, &all, dynamic, *gap);
        let mut layouts = GAPS.iter().map(fits);
        let mut chosen = layouts
            .find(|l| l.end <= ADDRESSABLE)
            .unwrap_or_else(|| tight.clone());
        chosen.used = tight.end - SHARED_BASE;
        chosen
    }

    fn with_gap(program: &Program, all: &[usize], dynamic: u64, gap: u64) -> Self {
        let mut layout = Self {
            offsets: vec![SHARED_BASE; program.shared.len()],
            end: SHARED_BASE,
            ..Self::default()
        };
        let (arrays, fixed): (Vec<usize>, Vec<usize>) =
            all.iter().partition(|&&i| program.shared[i].dynamic);
        let mut at = SHARED_BASE;
        for i in fixed {
            let var = &program.shared[i];
            at = at.next_multiple_of(var.align.max(1));
            layout.offsets[i] = at;
            layout.placed.push((at, var.bytes, i));
            layout.end = at.saturating_add(var.bytes);
            at = layout.end.saturating_add(gap);
        }
        // All arrays without a size are one; a launch may give it bytes that the kernel does not name.
        for &i in &arrays {
            at = at.next_multiple_of(program.shared[i].align.max(16));
        }
        if let Some(&first) = arrays.first() {
            layout.placed.push((at, dynamic, first));
        } else {
            at = layout.end;
        }
        for i in arrays {
            layout.offsets[i] = at;
        }
        layout.end = at.saturating_add(dynamic);
        layout
    }

    /// Checks that an access of shared memory lies within one variable.
    pub(crate) fn check(&self, program: &Program, offset: u64, bytes: u64) -> Result<(), Fault> {
        if self.placed.len() < 2 {
            return Ok(());
        }
        let next = self.placed.partition_point(|p| p.0 <= offset);
        let Some(&(start, size, index)) = next.checked_sub(1).and_then(|i| self.placed.get(i))
        else {
            return Ok(());
        };
        if offset + bytes <= start + size {
            return Ok(());
        }
        let name = &program.shared[index].name;
        let mut detail = format!(
            "byte {} of shared variable `{name}`, which has {size}",
            offset - start
        );
        if let Some(&(at, _, next)) = self.placed.get(next) {
            let name = &program.shared[next].name;
            detail += &format!("; {} bytes before `{name}`", at - offset);
        }
        Err(Fault::OutOfBounds {
            addr: offset,
            bytes,
            detail,
        })
    }

    /// What lies at an address of shared memory, for reports.
    pub(crate) fn describe(&self, program: &Program, offset: u64) -> String {
        let next = self.placed.partition_point(|p| p.0 <= offset);
        match next.checked_sub(1).and_then(|i| self.placed.get(i)) {
            Some(&(start, size, index)) if offset < start + size => {
                format!("`{}` + {}", program.shared[index].name, offset - start)
            }
            _ => format!("shared address {offset}"),
        }
    }
}
