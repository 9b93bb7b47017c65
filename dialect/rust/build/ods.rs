//! The operations of ODS, as `llvm-tblgen --dump-json` prints its records.

use serde_json::Value;
use std::error::Error;

/// How many values an operand or result stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    One,
    Optional,
    Variadic,
}

/// What an attribute holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Flag,
    Integer,
    Integers,
    Text,
    /// An enum of the dialect, by its name in Rust.
    Enum(String),
    /// Anything else: the attribute as it is.
    Other,
}

/// Whether an attribute may be absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    Required,
    Optional,
    /// The value that an absent one stands for.
    Default(String),
}

/// An operand or a result.
pub struct Group {
    pub name: String,
    pub arity: Arity,
}

/// An attribute.
pub struct Attribute {
    pub name: String,
    pub kind: Kind,
    pub presence: Presence,
}

/// A trait of the dialect's own (`Axe_Trait`).
pub struct Trait {
    pub name: String,
    pub summary: String,
}

/// An operation.
pub struct Operation {
    /// `GemmOp`.
    pub class: String,
    /// `axe.gemm`.
    pub name: String,
    pub summary: String,
    pub operands: Vec<Group>,
    pub attributes: Vec<Attribute>,
    pub results: Vec<Group>,
    /// Whether an attribute says how many operands each group has.
    pub segmented: bool,
    /// Names of the dialect's own traits.
    pub traits: Vec<String>,
}

type Found<T> = Result<T, Box<dyn Error>>;

/// The records of a TableGen file.
pub struct Records(Value);

impl Records {
    /// Reads the JSON that `llvm-tblgen --dump-json` prints.
    pub fn parse(text: &[u8]) -> Found<Self> {
        Ok(Self(serde_json::from_slice(text)?))
    }

    /// The operations, by name.
    pub fn operations(&self) -> Found<Vec<Operation>> {
        let mut found = Vec::new();
        for record in self.instances("Op")? {
            found.push(self.operation(record)?);
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// The dialect's own traits, by name.
    pub fn traits(&self) -> Found<Vec<Trait>> {
        let mut found = Vec::new();
        for record in self.instances("Axe_Trait")? {
            found.push(Trait {
                name: text(self.record(record)?, "trait")?,
                summary: text(self.record(record)?, "summary")?,
            });
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    fn instances(&self, class: &str) -> Found<impl Iterator<Item = &str>> {
        let names = self.0["!instanceof"][class]
            .as_array()
            .ok_or_else(|| format!("no records of class {class}"))?;
        Ok(names.iter().filter_map(Value::as_str))
    }

    fn record(&self, name: &str) -> Found<&Value> {
        self.0
            .get(name)
            .ok_or_else(|| format!("no record {name}").into())
    }

    fn operation(&self, name: &str) -> Found<Operation> {
        let record = self.record(name)?;
        let dialect = self.record(reference(&record["opDialect"])?)?;
        let (mut operands, mut attributes) = (Vec::new(), Vec::new());
        for (name, constraint) in self.arguments(record, "arguments")? {
            if is_a(constraint, "AttrConstraint") {
                attributes.push(self.attribute(name, constraint)?);
            } else {
                operands.push(Group::new(name, constraint));
            }
        }
        let results = self.arguments(record, "results")?;
        let names = references(&record["traits"])?;
        let mut traits = Vec::new();
        for name in &names {
            let record = self.record(name)?;
            if is_a(record, "Axe_Trait") {
                traits.push(text(record, "trait")?);
            }
        }
        Ok(Operation {
            class: name.trim_start_matches("Axe_").to_owned(),
            name: format!("{}.{}", text(dialect, "name")?, text(record, "opName")?),
            summary: text(record, "summary")?,
            operands,
            attributes,
            results: results
                .into_iter()
                .map(|(name, constraint)| Group::new(name, constraint))
                .collect(),
            segmented: names.contains(&"AttrSizedOperandSegments"),
            traits,
        })
    }

    /// The names of a dag's arguments, with the records that constrain them.
    fn arguments<'a>(&'a self, record: &'a Value, key: &str) -> Found<Vec<(&'a str, &'a Value)>> {
        let arguments = record[key]["args"].as_array();
        arguments
            .ok_or_else(|| format!("no {key}"))?
            .iter()
            .map(|argument| {
                let name = argument[1].as_str().ok_or("an argument without a name")?;
                Ok((name, self.record(reference(&argument[0])?)?))
            })
            .collect()
    }

    fn attribute(&self, name: &str, constraint: &Value) -> Found<Attribute> {
        let presence = match (&constraint["defaultValue"], &constraint["isOptional"]) {
            (Value::String(value), _) if !value.is_empty() => Presence::Default(value.clone()),
            (_, optional) if *optional == 1 => Presence::Optional,
            _ => Presence::Required,
        };
        // Optional, confined and defaulted attributes name what they are about.
        let mut base = constraint;
        while let Ok(inner) = reference(&base["baseAttr"]) {
            base = self.record(inner)?;
        }
        let kind = match text(base, "!name")?.as_str() {
            "UnitAttr" => Kind::Flag,
            "I64Attr" => Kind::Integer,
            "DenseI64ArrayAttr" => Kind::Integers,
            "StrAttr" | "SymbolNameAttr" => Kind::Text,
            _ if is_a(base, "EnumAttr") => {
                let of = self.record(reference(&base["enum"])?)?;
                Kind::Enum(text(of, "className")?)
            }
            _ => Kind::Other,
        };
        Ok(Attribute {
            name: name.to_owned(),
            kind,
            presence,
        })
    }
}

impl Group {
    fn new(name: &str, constraint: &Value) -> Self {
        let arity = match constraint {
            constraint if is_a(constraint, "Optional") => Arity::Optional,
            constraint if is_a(constraint, "Variadic") => Arity::Variadic,
            _ => Arity::One,
        };
        Self {
            name: name.to_owned(),
            arity,
        }
    }
}

fn is_a(record: &Value, class: &str) -> bool {
    record["!superclasses"]
        .as_array()
        .is_some_and(|classes| classes.iter().any(|of| of == class))
}

/// The name of the record that a value refers to.
fn reference(value: &Value) -> Found<&str> {
    value["def"].as_str().ok_or_else(|| "no record".into())
}

fn references(value: &Value) -> Found<Vec<&str>> {
    let list = value.as_array().ok_or("expected a list of records")?;
    list.iter().map(reference).collect()
}

fn text(record: &Value, key: &str) -> Found<String> {
    record[key]
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("no text '{key}' in {}", record["!name"]).into())
}
