//! A sharding in whatever notation it is written, and shapes that shardings do not divide.

use super::dtensor::parse_placements;
use super::error::{Result, ShardingError};
use super::mesh::Mesh;
use super::spec::Sharding;
use crate::Layout;

impl Sharding {
    /// Reads a sharding of a tensor of `shape` in any notation: Shardy (`<@mesh, [{"x"}, {}]>`),
    /// PartitionSpec (`P("x", None)`), `shard` (`split_axes = [[0], []]`), XLA (`{devices=[2,1]<=[2]}`),
    /// an Axe layout as text or JSON, Alpa (`S0R`), DTensor and SBP (`[Shard(0)]`, `(S(0), B)`).
    ///
    /// # Errors
    /// Those of the notation that the text begins like.
    pub fn parse(mesh: Mesh, shape: Vec<i64>, text: &str) -> Result<Self> {
        let text = text.trim();
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| text.starts_with(prefix));
        let alpa = |c: char| matches!(c, 'R' | 'S' | ',' | ' ') || c.is_ascii_digit();
        if starts(&["#sdy", "<"]) {
            return Ok(Self::from_sdy(mesh, shape, text)?.0);
        }
        if starts(&[
            "P(\"",
            "P('",
            "P(N",
            "P((",
            "P()",
            "PartitionSpec",
            "NamedSharding",
        ]) {
            return Self::from_partition_spec(mesh, shape, text);
        }
        if starts(&["shard.sharding", "split_axes", "%"]) {
            return Self::from_shard_dialect(mesh, shape, text);
        }
        if starts(&["{devices", "{replicated", "{maximal", "sharding="]) {
            return Self::from_hlo(mesh, shape, text);
        }
        if starts(&["S[", "Sw<", "#axe", "{"]) {
            return Ok(Self::from_layout(mesh, shape, &layout(text)?, &[])?.sharding);
        }
        if text.chars().all(alpa) && !text.contains(", ") && text.len() >= shape.len() {
            return Self::from_alpa(mesh, shape, text);
        }
        Self::from_placements(mesh, shape, &parse_placements(text)?)
    }

    /// Reads shardings of one tensor, whose shape is enlarged to the smallest multiples that all of them
    /// divide, as GSPMD and DTensor pad uneven shards: the shape that they are of, and the shardings.
    ///
    /// # Errors
    /// As [`Sharding::parse`], but for dimensions that do not divide.
    pub fn parse_padded(
        mesh: &Mesh,
        shape: &[i64],
        texts: &[&str],
    ) -> Result<(Vec<i64>, Vec<Self>)> {
        let overflow = || ShardingError::Overflow("the padded size");
        let mut multiples = vec![1_i64; shape.len()];
        loop {
            let padded: Option<Vec<i64>> = shape
                .iter()
                .zip(&multiples)
                .map(|(size, multiple)| {
                    let short = (multiple - size % multiple) % multiple;
                    size.checked_add(short)
                })
                .collect();
            let padded = padded.ok_or_else(overflow)?;
            let read = |text: &&str| Self::parse(mesh.clone(), padded.clone(), text);
            match texts.iter().map(read).collect::<Result<Vec<Self>>>() {
                Err(ShardingError::Uneven { dim, parts, .. }) => {
                    let multiple = multiples.get_mut(dim).ok_or_else(overflow)?;
                    let common = crate::sumset::gcd(*multiple, parts);
                    *multiple = multiple.checked_mul(parts / common).ok_or_else(overflow)?;
                }
                other => return other.map(|all| (padded, all)),
            }
        }
    }
}

impl Sharding {
    /// The sharding in each notation, with the notation's name; or why it has no words for it.
    pub fn notations(&self) -> [(&'static str, Result<String>); 7] {
        [
            ("DTensor", self.to_dtensor()),
            ("SBP", self.to_sbp()),
            ("PartitionSpec", self.to_partition_spec()),
            ("Alpa", self.to_alpa()),
            ("Shardy", self.to_sdy()),
            ("HloSharding", self.to_hlo()),
            ("shard", self.to_shard_dialect()),
        ]
    }
}

/// A layout as text, in its attribute, or as JSON.
fn layout(text: &str) -> Result<Layout> {
    if text.starts_with('{') {
        let read = serde_json::from_str(text);
        return read.map_err(|error| ShardingError::Invalid(error.to_string()));
    }
    let inner = text
        .strip_prefix("#axe.layout<")
        .and_then(|rest| rest.strip_suffix('>'));
    Ok(inner.unwrap_or(text).parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notations_are_told_apart_and_shapes_padded() {
        let mesh = Mesh::linear("gpu", &[("x", 2), ("y", 4)]).unwrap();
        let read = |text: &str| Sharding::parse(mesh.clone(), vec![64, 64], text).unwrap();
        let want = read("P('x', None)");
        for text in [
            "S0R",
            "[Shard(0), Replicate()]",
            "(S(0), B)",
            "<@mesh, [{\"x\"}, {}]>",
            "split_axes = [[0], []]",
            "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
            "S[(2, 32, 64) : (4@gpu, 64, 1)] + R[4 : 1@gpu]",
        ] {
            assert_eq!(read(text), want, "{text}");
        }
        let (shape, read) =
            Sharding::parse_padded(&mesh, &[10, 3], &["P('y', None)", "P('x', None)"]).unwrap();
        assert_eq!((shape, read.len()), (vec![12, 3], 2));
        let most = Sharding::parse_padded(&mesh, &[i64::MAX - 1, 1], &["P('y', None)"]);
        assert!(most.is_err());
    }
}
