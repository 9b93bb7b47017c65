//! The values of a package's symbols, from a caller's arguments.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::dtype::DType;
use crate::expr::{Env, Expr};
use crate::manifest::{Manifest, Symbol, TensorSpec};

/// Why a manifest and a caller's arguments do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BindError {
    /// No input has that name.
    #[error("there is no input `{name}`; the inputs are {known}")]
    UnknownInput {
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// No symbol has that name.
    #[error("there is no dimension `{name}`; the dimensions are {known}")]
    UnknownSymbol {
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// An input of the wrong type.
    #[error("input `{input}`: expected {want}, got {got}")]
    DType {
        /// The input.
        input: String,
        /// The type it has in the package.
        want: DType,
        /// The type given.
        got: DType,
    },
    /// An input of the wrong shape.
    #[error("input `{input}`: expected shape {want}, got {got:?}")]
    Shape {
        /// The input.
        input: String,
        /// The shape in the package.
        want: String,
        /// The shape given.
        got: Vec<u64>,
    },
    /// Two values for one symbol.
    #[error("`{symbol}` is {first} by {first_source} and {second} by {second_source}")]
    Conflict {
        /// The symbol.
        symbol: String,
        /// One value.
        first: i64,
        /// Who says so.
        first_source: String,
        /// The other value.
        second: i64,
        /// Who says so.
        second_source: String,
    },
    /// A symbol that nothing defines.
    #[error("`{0}` has no value; give the dimension or an input that has it")]
    Unset(String),
    /// A value outside what the package was compiled for.
    #[error("`{symbol}` is {value}; the package was compiled for {allowed}")]
    OutOfRange {
        /// The symbol.
        symbol: String,
        /// Its value.
        value: i64,
        /// What is allowed.
        allowed: String,
    },
}

/// The type and shape of a tensor that a caller gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorType {
    /// Its element type.
    pub dtype: DType,
    /// Its shape, outermost first.
    pub shape: Vec<u64>,
}

impl Manifest {
    /// The values of the symbols, from the inputs that are given and from `dims` by name.
    /// Inputs that are not given take their shapes from the symbols afterwards.
    ///
    /// # Errors
    /// A name, type or shape that does not fit; two values for one symbol, none, or one outside
    /// its range.
    pub fn bind(
        &self,
        given: &BTreeMap<String, TensorType>,
        dims: &BTreeMap<String, i64>,
        sm_count: u32,
    ) -> Result<Env, BindError> {
        let mut values = Values::default();
        for (name, value) in dims {
            if !self.symbols.iter().any(|s| s.name == *name) {
                let known = list(self.symbols.iter().map(|s| s.name.as_str()));
                return Err(BindError::UnknownSymbol {
                    name: name.clone(),
                    known,
                });
            }
            values.set(name, *value, "its own value")?;
        }
        for (name, ty) in given {
            values.set_from_input(&self.inputs, name, ty)?;
        }
        let mut env = Env::with_sm_count(sm_count);
        for symbol in &self.symbols {
            let (value, _) = values
                .0
                .get(&symbol.name)
                .ok_or_else(|| BindError::Unset(symbol.name.clone()))?;
            symbol.check(*value)?;
            env.set(&symbol.name, *value);
        }
        Ok(env)
    }
}

impl Symbol {
    /// Whether the package was compiled for this value.
    fn check(&self, value: i64) -> Result<(), BindError> {
        let in_range = value >= self.min && self.max.is_none_or(|max| value <= max);
        if in_range && value.checked_rem_euclid(self.multiple_of) == Some(0) {
            return Ok(());
        }
        let max = self.max.map_or("any number".to_owned(), |m| m.to_string());
        let allowed = format!("{} to {max}, multiples of {}", self.min, self.multiple_of);
        Err(BindError::OutOfRange {
            symbol: self.name.clone(),
            value,
            allowed,
        })
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        "none".into()
    } else {
        names.join(", ")
    }
}

/// Values of symbols and where each comes from.
#[derive(Default)]
struct Values(BTreeMap<String, (i64, String)>);

impl Values {
    fn set(&mut self, symbol: &str, value: i64, source: &str) -> Result<(), BindError> {
        match self.0.get(symbol) {
            Some((first, first_source)) if *first != value => Err(BindError::Conflict {
                symbol: symbol.to_owned(),
                first: *first,
                first_source: first_source.clone(),
                second: value,
                second_source: source.to_owned(),
            }),
            _ => {
                self.0.insert(symbol.to_owned(), (value, source.to_owned()));
                Ok(())
            }
        }
    }

    /// The symbols in the shape of an input that is given.
    fn set_from_input(
        &mut self,
        inputs: &[TensorSpec],
        name: &str,
        given: &TensorType,
    ) -> Result<(), BindError> {
        let Some(spec) = inputs.iter().find(|t| t.name == *name) else {
            let known = list(inputs.iter().map(|t| t.name.as_str()));
            return Err(BindError::UnknownInput {
                name: name.to_owned(),
                known,
            });
        };
        if spec.dtype != given.dtype {
            return Err(BindError::DType {
                input: name.to_owned(),
                want: spec.dtype,
                got: given.dtype,
            });
        }
        self.set_from_shape(name, &spec.shape, &given.shape)
    }

    fn set_from_shape(&mut self, input: &str, want: &[Expr], got: &[u64]) -> Result<(), BindError> {
        let wrong = || BindError::Shape {
            input: input.to_owned(),
            want: format!("[{}]", list_exprs(want)),
            got: got.to_vec(),
        };
        if want.len() != got.len() {
            return Err(wrong());
        }
        for (i, (dim, extent)) in want.iter().zip(got).enumerate() {
            let extent = i64::try_from(*extent).map_err(|_| wrong())?;
            match dim {
                Expr::Sym(name) => {
                    self.set(name, extent, &format!("dimension {i} of `{input}`"))?
                }
                other if other.as_const() == Some(extent) => {}
                _ => return Err(wrong()),
            }
        }
        Ok(())
    }
}

fn list_exprs(exprs: &[Expr]) -> String {
    exprs
        .iter()
        .map(Expr::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
