//! Rust for the operations of ODS: names, traits, and their parts by name.

use crate::ods::{Arity, Attribute, Group, Kind, Operation, Presence, Trait};
use std::fmt::{Result, Write};

/// The text of the module `ops`.
pub fn text(
    operations: &[Operation],
    traits: &[Trait],
) -> std::result::Result<String, std::fmt::Error> {
    let mut out = String::new();
    for operation in operations {
        writeln!(out, "/// {}.", operation.summary)?;
        writeln!(
            out,
            "pub const {}: &str = {:?};",
            constant(&operation.name),
            operation.name
        )?;
    }
    writeln!(out, "\n/// The names of all operations, sorted.")?;
    writeln!(out, "pub const NAMES: [&str; {}] = [", operations.len())?;
    for operation in operations {
        writeln!(out, "    {},", constant(&operation.name))?;
    }
    writeln!(out, "];\n")?;
    write_traits(&mut out, operations, traits)?;
    for operation in operations {
        write_struct(&mut out, operation)?;
        write_read(&mut out, operation)?;
    }
    Ok(out)
}

fn write_traits(out: &mut String, operations: &[Operation], traits: &[Trait]) -> Result {
    writeln!(out, "/// What an operation of the dialect is.")?;
    writeln!(out, "#[derive(Clone, Copy, Debug, PartialEq, Eq)]")?;
    writeln!(out, "pub enum Trait {{")?;
    for r#trait in traits {
        writeln!(out, "    /// {}\n    {},", r#trait.summary, r#trait.name)?;
    }
    writeln!(out, "}}\n")?;
    writeln!(
        out,
        "/// The traits of the operation of this name; none for those of other dialects."
    )?;
    writeln!(
        out,
        "#[must_use]\npub fn traits(name: &str) -> &'static [Trait] {{\n    match name {{"
    )?;
    for operation in operations {
        if operation.traits.is_empty() {
            continue;
        }
        let list: Vec<_> = operation
            .traits
            .iter()
            .map(|name| format!("Trait::{name}"))
            .collect();
        writeln!(
            out,
            "        {} => &[{}],",
            constant(&operation.name),
            list.join(", ")
        )?;
    }
    writeln!(out, "        _ => &[],\n    }}\n}}\n")
}

fn write_struct(out: &mut String, operation: &Operation) -> Result {
    writeln!(out, "/// `{}` by its parts.", operation.name)?;
    writeln!(
        out,
        "#[derive(Clone, Debug)]\npub struct {}<'c> {{",
        operation.class
    )?;
    writeln!(out, "    /// The operation.\n    pub op: Op<'c>,")?;
    for (what, group) in groups(operation) {
        writeln!(out, "    /// The {what} `{}`.", group.name)?;
        writeln!(
            out,
            "    pub {}: {},",
            field(&group.name),
            value_type(group.arity)
        )?;
    }
    for attribute in &operation.attributes {
        writeln!(out, "    /// The attribute `{}`.", attribute.name)?;
        writeln!(
            out,
            "    pub {}: {},",
            field(&attribute.name),
            attribute_type(attribute)
        )?;
    }
    writeln!(out, "}}\n")
}

fn write_read(out: &mut String, operation: &Operation) -> Result {
    let class = &operation.class;
    writeln!(out, "impl<'c> Typed<'c> for {class}<'c> {{")?;
    writeln!(
        out,
        "    const NAME: &'static str = {};\n",
        constant(&operation.name)
    )?;
    writeln!(out, "    fn of(op: Op<'c>) -> Option<Self> {{")?;
    writeln!(
        out,
        "        if !is_named(op, Self::NAME) {{\n            return None;\n        }}"
    )?;
    if !operation.operands.is_empty() {
        let segmented = if operation.segmented {
            "Groups::by_segments(op)?"
        } else {
            "Groups::by_count(op, &SHAPE)?"
        };
        if !operation.segmented {
            writeln!(
                out,
                "        const SHAPE: [Arity; {}] = [{}];",
                operation.operands.len(),
                shape(&operation.operands)
            )?;
        }
        writeln!(out, "        let mut operands = {segmented};")?;
    }
    if !operation.results.is_empty() {
        writeln!(
            out,
            "        let mut results = Groups::of_results(op, &[{}])?;",
            shape(&operation.results)
        )?;
    }
    writeln!(out, "        Some(Self {{\n            op,")?;
    for (what, group) in groups(operation) {
        let take = match group.arity {
            Arity::One => "one()?",
            Arity::Optional => "optional()?",
            Arity::Variadic => "all()?",
        };
        writeln!(out, "            {}: {what}s.{take},", field(&group.name))?;
    }
    for attribute in &operation.attributes {
        writeln!(
            out,
            "            {}: {},",
            field(&attribute.name),
            read(attribute)
        )?;
    }
    writeln!(out, "        }})\n    }}\n}}\n")?;
    write_operands(out, operation)
}

/// The operands of an operation to build, in order and with their segments.
fn write_operands(out: &mut String, operation: &Operation) -> Result {
    if operation.operands.is_empty() {
        return Ok(());
    }
    let parameters: Vec<_> = operation
        .operands
        .iter()
        .map(|group| {
            let r#type = match group.arity {
                Arity::One => "Val<'c>",
                Arity::Optional => "Option<Val<'c>>",
                Arity::Variadic => "&[Val<'c>]",
            };
            format!("{}: {type}", field(&group.name))
        })
        .collect();
    let class = &operation.class;
    writeln!(out, "impl<'c> {class}<'c> {{")?;
    writeln!(
        out,
        "    /// The operands of an `{}` to build.",
        operation.name
    )?;
    writeln!(
        out,
        "    #[must_use]\n    pub fn operands({}) -> Operands<'c> {{",
        parameters.join(", ")
    )?;
    writeln!(
        out,
        "        let mut operands = Operands::new({}, {});",
        constant(&operation.name),
        operation.segmented
    )?;
    for group in &operation.operands {
        let name = field(&group.name);
        let values = match group.arity {
            Arity::One => format!("&[{name}]"),
            Arity::Optional => format!("{name}.as_slice()"),
            Arity::Variadic => name,
        };
        writeln!(out, "        operands.push({values});")?;
    }
    writeln!(out, "        operands\n    }}\n}}\n")
}

fn groups(operation: &Operation) -> impl Iterator<Item = (&'static str, &Group)> {
    let operands = operation.operands.iter().map(|group| ("operand", group));
    operands.chain(operation.results.iter().map(|group| ("result", group)))
}

fn shape(groups: &[Group]) -> String {
    let arities: Vec<_> = groups
        .iter()
        .map(|group| format!("Arity::{:?}", group.arity))
        .collect();
    arities.join(", ")
}

fn value_type(arity: Arity) -> &'static str {
    match arity {
        Arity::One => "Val<'c>",
        Arity::Optional => "Option<Val<'c>>",
        Arity::Variadic => "Vec<Val<'c>>",
    }
}

fn attribute_type(attribute: &Attribute) -> String {
    let r#type = match &attribute.kind {
        Kind::Flag => return "bool".to_owned(),
        Kind::Integer => "i64",
        Kind::Integers => "Vec<i64>",
        Kind::Text => "&'c str",
        Kind::Enum(name) => name,
        Kind::Other => "Attribute<'c>",
    };
    match attribute.presence {
        Presence::Optional => format!("Option<{type}>"),
        Presence::Required | Presence::Default(_) => r#type.to_owned(),
    }
}

/// The expression that reads an attribute of `op`.
fn read(attribute: &Attribute) -> String {
    let name = &attribute.name;
    let value = match &attribute.kind {
        Kind::Flag => return format!("op.has_attribute({name:?})"),
        Kind::Integer => format!("integer(op, {name:?})"),
        Kind::Integers => format!("integers(op, {name:?})"),
        Kind::Text => format!("text(op, {name:?})"),
        Kind::Enum(of) => format!("op.attribute({name:?}).ok().and_then({of}::cast)"),
        Kind::Other => format!("op.attribute({name:?}).ok()"),
    };
    match &attribute.presence {
        Presence::Optional => value,
        Presence::Required => format!("{value}?"),
        Presence::Default(default) => format!("{value}.unwrap_or({default})"),
    }
}

/// `PIPELINE_ACQUIRE` of `axe.pipeline.acquire`.
fn constant(name: &str) -> String {
    let short = name.split_once('.').map_or(name, |(_, short)| short);
    short.replace('.', "_").to_uppercase()
}

/// `grid_x` of `gridX`, `is_async` of `isAsync`.
fn field(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}
