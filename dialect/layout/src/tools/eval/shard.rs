//! The operations on shardings: one in every notation, and the collectives between two.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Answer, Failure, inputs, unknown};
use crate::json::Extents;
use crate::sharding::{Collective, Mesh, Sharding, ShardingError, Step, plan};
use crate::{Error, Kind};

#[derive(Deserialize)]
struct Shard {
    mesh: String,
    shape: Extents,
    sharding: String,
    #[serde(default)]
    device: Option<String>,
    #[serde(default)]
    to: Option<String>,
    #[serde(default)]
    elem_bytes: Option<u64>,
}

impl From<ShardingError> for Failure {
    fn from(error: ShardingError) -> Self {
        let kind = match &error {
            ShardingError::Parse { .. }
            | ShardingError::Invalid(_)
            | ShardingError::Uneven { .. } => Kind::Invalid,
            ShardingError::Inexpressible { .. } => Kind::None,
            ShardingError::Overflow(_) => Kind::Overflow,
            ShardingError::Layout(error) => Error::kind(error),
        };
        Self {
            kind,
            message: error.to_string(),
        }
    }
}

pub(super) fn run(op: &str, given: Value) -> Answer {
    let given: Shard = inputs(given)?;
    let mesh = Mesh::parse(given.device.as_deref().unwrap_or("gpu"), &given.mesh)?;
    match (op, &given.to) {
        ("shard", None) => {
            let (shape, read) = Sharding::parse_padded(&mesh, &given.shape, &[&given.sharding])?;
            let sharding = read
                .first()
                .ok_or_else(|| Failure::invalid("shard: no sharding"))?;
            Ok(with_shape(described(sharding)?, &given.shape, &shape))
        }
        ("reshard", Some(to)) => {
            let texts = [given.sharding.as_str(), to.as_str()];
            let (shape, read) = Sharding::parse_padded(&mesh, &given.shape, &texts)?;
            let [from, to] = &read[..] else {
                return Err(Failure::invalid("reshard: expected two shardings"));
            };
            let found = planned(from, to, given.elem_bytes.unwrap_or(2))?;
            Ok(with_shape(found, &given.shape, &shape))
        }
        ("shard", Some(_)) => Err(Failure::invalid("shard: \"to\" is an input of reshard")),
        ("reshard", None) => Err(Failure::invalid("reshard: missing field `to`")),
        _ => unknown(op),
    }
}

/// Says that a shape was padded.
fn with_shape(mut result: Map<String, Value>, given: &[i64], padded: &[i64]) -> Value {
    if given != padded {
        result.insert("padded_shape".into(), json!(padded));
    }
    result.into()
}

/// A sharding in every notation; null where one has no words for it.
fn described(sharding: &Sharding) -> Result<Map<String, Value>, Failure> {
    let partial: Vec<Value> = sharding
        .partial()
        .iter()
        .map(|(role, reduction)| {
            let axis = role.name(sharding.mesh());
            json!({"axis": axis, "reduction": reduction.name()})
        })
        .collect();
    let mut result = Map::from_iter([
        ("layout".to_owned(), json!(sharding.to_layout()?)),
        ("tile".to_owned(), json!(sharding.local_shape())),
        ("partial".to_owned(), json!(partial)),
    ]);
    for (name, text) in sharding.notations() {
        result.insert(name.into(), json!(text.ok()));
    }
    Ok(result)
}

fn planned(from: &Sharding, to: &Sharding, elem_bytes: u64) -> Result<Map<String, Value>, Failure> {
    let found = plan(from, to, elem_bytes)?;
    let steps: Result<Vec<Value>, Failure> = found.steps.iter().map(step).collect();
    Ok(Map::from_iter([
        ("from".to_owned(), json!(from.to_layout()?)),
        ("to".to_owned(), json!(to.to_layout()?)),
        ("steps".to_owned(), json!(steps?)),
        (
            "bytes_per_device".to_owned(),
            json!(found.bytes_per_device()),
        ),
        ("lower_bound".to_owned(), json!(found.lower_bound)),
        ("minimal".to_owned(), json!(found.minimal)),
    ]))
}

fn step(step: &Step) -> Result<Value, Failure> {
    let mut fields = Map::from_iter([
        ("collective".to_owned(), json!(step.collective.name())),
        (
            "text".to_owned(),
            json!(step.collective.describe(step.after.mesh())),
        ),
        ("bytes_per_device".to_owned(), json!(step.bytes_per_device)),
        ("layout".to_owned(), json!(step.after.to_layout()?)),
    ]);
    if let Collective::Permute { pairs } = &step.collective {
        fields.insert("pairs".into(), json!(pairs));
    }
    Ok(fields.into())
}
