//! The closed vocabulary of axes and memory spaces: what registered targets declare.
//!
//! The dialect itself knows the memory axis `m` and the space `global`. A target declares its own when
//! it registers, before any IR is parsed; a layout that names another axis does not verify. Axes with a
//! dot belong to a mesh (`axe.mesh @pod(tp = 8)` declares `pod.tp`) and are checked where they are used.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

/// What an axis counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisKind {
    /// Execution units: lanes, warps, CTAs.
    Thread,
    /// Places within one unit's storage: memory addresses, registers, partitions.
    Memory,
}

/// One axis of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisDeclaration {
    /// What it counts.
    pub kind: AxisKind,
    /// The axis of the scope around it, with the number of units that nest in one of it
    /// (`lane` nests in `warp`, 32 to one).
    pub parent: Option<(&'static str, i64)>,
}

struct Tables {
    axes: BTreeMap<&'static str, AxisDeclaration>,
    /// The axes that count places of each memory space.
    spaces: BTreeMap<&'static str, &'static [&'static str]>,
}

/// The axis of memory that is a line of addresses.
const LINEAR: &[&str] = &["m"];

static TABLES: RwLock<Option<Tables>> = RwLock::new(None);

impl Tables {
    fn core() -> Self {
        let memory = AxisDeclaration {
            kind: AxisKind::Memory,
            parent: None,
        };
        Self {
            axes: BTreeMap::from([("m", memory)]),
            spaces: BTreeMap::from([("global", LINEAR)]),
        }
    }
}

/// Declares a target's axis; a second declaration of the same name replaces the first.
pub fn declare_axis(name: &'static str, declaration: AxisDeclaration) {
    let mut tables = TABLES.write().unwrap_or_else(PoisonError::into_inner);
    tables
        .get_or_insert_with(Tables::core)
        .axes
        .insert(name, declaration);
}

/// Declares a target's memory space, a line of addresses on `m`.
pub fn declare_space(name: &'static str) {
    declare_space_of(name, LINEAR);
}

/// Declares a target's memory space whose places these axes count; a second declaration replaces the first.
pub fn declare_space_of(name: &'static str, axes: &'static [&'static str]) {
    let mut tables = TABLES.write().unwrap_or_else(PoisonError::into_inner);
    let spaces = &mut tables.get_or_insert_with(Tables::core).spaces;
    spaces.insert(name, axes);
}

/// The axes that count places of a memory space; none for one that nobody declared.
#[must_use]
pub fn axes_of_space(name: &str) -> &'static [&'static str] {
    read(|tables| tables.spaces.get(name).copied().unwrap_or_default())
}

fn read<T>(look: impl FnOnce(&Tables) -> T) -> T {
    let tables = TABLES.read().unwrap_or_else(PoisonError::into_inner);
    match tables.as_ref() {
        Some(tables) => look(tables),
        None => look(&Tables::core()),
    }
}

/// The declaration of an axis.
#[must_use]
pub fn axis(name: &str) -> Option<AxisDeclaration> {
    read(|tables| tables.axes.get(name).copied())
}

/// The names of all declared axes, sorted.
#[must_use]
pub fn axes() -> Vec<&'static str> {
    read(|tables| tables.axes.keys().copied().collect())
}

/// Whether `name` is the axis of a mesh, `mesh.axis`.
#[must_use]
pub fn is_mesh_axis(name: &str) -> bool {
    name.split_once('.')
        .is_some_and(|(mesh, axis)| !mesh.is_empty() && !axis.is_empty())
}

/// Whether a target declared the memory space.
#[must_use]
pub fn has_space(name: &str) -> bool {
    read(|tables| tables.spaces.contains_key(name))
}
