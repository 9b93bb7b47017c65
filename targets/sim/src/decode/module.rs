//! Decodes a whole module: variables, functions and their names.

use super::lower::{Lower, Scoped, Symbol};
use super::{Program, SharedVar};
use crate::ptx::PtxError;
use crate::ptx::ast::{Module, Space, Variable};
use std::collections::HashMap;

pub(super) fn add_shared(program: &mut Program, v: &Variable) -> usize {
    program.shared.push(SharedVar {
        name: v.name.clone(),
        bytes: v.bytes(),
        align: v.align,
        dynamic: v.count.is_none() || (v.external && v.bytes() == 0),
    });
    program.shared.len() - 1
}

/// Decodes every function of a module.
///
/// # Errors
/// The first instruction that is not supported or not well formed, with its line.
pub fn decode(module: &Module) -> Result<Program, PtxError> {
    let mut program = Program {
        files: module.files.iter().cloned().collect(),
        strings: module.strings.iter().cloned().collect(),
        target: module.target.clone(),
        ..Program::default()
    };
    let mut names = HashMap::new();
    for v in &module.variables {
        let symbol = match v.space {
            Space::Shared => Symbol::Shared(add_shared(&mut program, v)),
            _ => {
                program.globals.push(v.clone());
                Symbol::Global(program.globals.len() - 1)
            }
        };
        names.insert(v.name.clone(), symbol);
    }
    // A body may call what is defined below it, so that indices come first.
    let mut order = Vec::new();
    for function in &module.functions {
        if !program.by_name.contains_key(&function.name) {
            program.by_name.insert(function.name.clone(), order.len());
            names.insert(function.name.clone(), Symbol::Function(order.len()));
            order.push(function);
        }
        if let (Some(&index), true) = (program.by_name.get(&function.name), function.body.is_some())
        {
            order[index] = function;
        }
    }
    for (alias, function) in &module.aliases {
        if let Some(&index) = program.by_name.get(function) {
            names.insert(alias.clone(), Symbol::Function(index));
        }
    }
    for function in order {
        let lower = Lower::new(&mut program, Scoped(names.clone()), function)?;
        let func = match &function.body {
            Some(body) => lower.body(body)?,
            None => lower.func,
        };
        program.functions.push(func);
    }
    Ok(program)
}
