//! The exchange format: one JSON request a line in, one JSON answer a line out.
//!
//! ```text
//! {"id": "1", "op": "size", "inputs": {"layout": {"shard": [[8, 1, "m"]]}}}
//! {"id":"1","result":{"value":8}}
//! ```
//!
//! A request that cannot be read is answered too, with its id when that can be read; the stream goes on.

mod analysis;
mod compose;
mod core;
mod cute;
mod linear;
mod reshape;
mod shard;
mod tile_of;

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::{Error, Kind};

/// What an operation answers: the fields of `result`.
pub(crate) type Answer = Result<Value, Failure>;

/// Why an operation has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Which of the four failures.
    pub kind: Kind,
    /// What was expected and what was found.
    pub message: String,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            kind: error.kind(),
            message: error.to_string(),
        }
    }
}

impl Failure {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self {
            kind: Kind::Invalid,
            message: message.into(),
        }
    }
}

/// Reads the inputs of an operation into its own struct.
pub(crate) fn inputs<T: DeserializeOwned>(inputs: Value) -> Result<T, Failure> {
    serde_json::from_value(inputs).map_err(|error| {
        let message = error.to_string();
        // Numbers beyond 64 bits are read by serde as floats or refused with these words.
        let overflow = message.contains("does not fit a 64-bit integer")
            || message.contains("out of range")
            || message.contains("number too large");
        Failure {
            kind: if overflow {
                Kind::Overflow
            } else {
                Kind::Invalid
            },
            message,
        }
    })
}

/// `{"value": v}`.
pub(crate) fn value(v: impl Serialize) -> Answer {
    named("value", v)
}

/// `{name: v}`.
pub(crate) fn named(name: &str, v: impl Serialize) -> Answer {
    let v = serde_json::to_value(v).map_err(|e| Failure::invalid(e.to_string()))?;
    Ok(Value::Object(Map::from_iter([(name.to_owned(), v)])))
}

/// Answers one line. Blank lines have no answer.
#[must_use]
pub fn answer(line: &str) -> Option<String> {
    if line.trim().is_empty() {
        return None;
    }
    let (id, outcome) = match serde_json::from_str::<Value>(line) {
        Ok(Value::Object(mut request)) => {
            let id = request.remove("id").unwrap_or(Value::Null);
            (id, dispatch(&mut request))
        }
        Ok(_) => (
            Value::Null,
            Err(Failure::invalid("a request is a JSON object")),
        ),
        Err(error) => {
            let message = format!("not JSON: {error}");
            (salvage_id(line), Err(Failure::invalid(message)))
        }
    };
    let reply = match outcome {
        Ok(result) => json!({"id": id, "result": result}),
        Err(Failure { kind, message }) => {
            json!({"id": id, "error": {"kind": kind.name(), "message": message}})
        }
    };
    Some(reply.to_string())
}

fn dispatch(request: &mut Map<String, Value>) -> Answer {
    let op = match request.remove("op") {
        Some(Value::String(op)) => op,
        Some(_) => return Err(Failure::invalid("\"op\": expected a string")),
        None => return Err(Failure::invalid("the request has no \"op\"")),
    };
    let inputs = match request.remove("inputs") {
        Some(inputs @ Value::Object(_)) => inputs,
        Some(_) => return Err(Failure::invalid("\"inputs\": expected an object")),
        None => return Err(Failure::invalid("the request has no \"inputs\"")),
    };
    evaluate(&op, inputs)
}

/// The operations with their inputs and results, as a table.
pub const OPERATIONS: &str = include_str!("operations.md");

/// Answers one question: the fields of `result`.
///
/// # Errors
/// A kind and a message, as in the exchange format.
pub fn evaluate(op: &str, inputs: Value) -> Result<Value, Failure> {
    if op.starts_with("cute_") {
        return cute::run(op, inputs);
    }
    if op.starts_with("linear_")
        || matches!(
            op,
            "warp_shuffle" | "relayout" | "triton" | "triton_from_layout"
        )
    {
        return linear::run(op, inputs);
    }
    if matches!(op, "shard" | "reshard") {
        return shard::run(op, inputs);
    }
    core::run(op, inputs)
}

/// `{"layout": ..}`.
fn layout(found: crate::Layout) -> Answer {
    named("layout", found)
}

pub(crate) fn unknown(op: &str) -> Answer {
    Err(Failure {
        kind: Kind::Unsupported,
        message: format!("no operation is called {op:?}"),
    })
}

/// The id of a line that is not JSON: the string or number after the first `"id":`.
fn salvage_id(line: &str) -> Value {
    let Some((_, after)) = line.split_once("\"id\"") else {
        return Value::Null;
    };
    let Some(after) = after.trim_start().strip_prefix(':') else {
        return Value::Null;
    };
    serde_json::Deserializer::from_str(after)
        .into_iter::<Value>()
        .next()
        .and_then(Result::ok)
        .filter(|id| id.is_string() || id.is_number())
        .unwrap_or(Value::Null)
}

/// Answers requests until the input ends. Answers are flushed whenever no further request is waiting,
/// so that a program may wait for each one.
///
/// # Errors
/// Those of reading and writing. Lines that are not UTF-8 are answered, not failed on.
pub fn serve(input: impl Read, output: impl Write) -> io::Result<()> {
    let mut input = BufReader::with_capacity(1 << 20, input);
    let mut output = BufWriter::with_capacity(1 << 20, output);
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return output.flush();
        }
        if let Some(reply) = answer(&String::from_utf8_lossy(&line)) {
            output.write_all(reply.as_bytes())?;
            output.write_all(b"\n")?;
        }
        if !input.buffer().contains(&b'\n') {
            output.flush()?;
        }
    }
}
