//! Triton's texts: linear layouts as `LinearLayout::toString` prints them and as `#ttg.linear`, and the other
//! encodings as MLIR attributes, nested ones in place.

use std::fmt::Write as _;

use super::named::LinearLayout;
use super::triton::TritonEncoding;
use crate::axis::Axis;
use crate::error::{Error, Result};

/// Deepest nest of lists and attributes.
const MAX_DEPTH: usize = 16;

/// What stands after `=` in an attribute.
#[derive(Clone, Debug)]
enum Value {
    Int(i64),
    List(Vec<Value>),
    Attribute(TritonEncoding),
    /// A name, `true`, `false`, a string: not needed.
    Other,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl LinearLayout {
    /// As Triton's `LinearLayout::toString`, without its empty first line.
    #[must_use]
    pub fn to_triton(&self) -> String {
        let outs: Vec<String> = self
            .outputs()
            .iter()
            .map(|(axis, bits)| format!("{} (size {})", axis.name(), 1_u64 << bits))
            .collect();
        let mut text = String::new();
        for &(input, bits) in self.inputs() {
            if bits == 0 {
                let _ = writeln!(text, " - {} is a size 1 dimension", input.name());
            }
            for bit in 0..bits {
                let bullet = if bit == 0 { " - " } else { "   " };
                let image = self.apply(&[(input, 1 << bit)]).unwrap_or_default();
                let image: Vec<String> = image.iter().map(|(_, value)| value.to_string()).collect();
                let _ = writeln!(
                    text,
                    "{bullet}{}={} -> ({})",
                    input.name(),
                    1_u64 << bit,
                    image.join(", ")
                );
            }
        }
        let _ = write!(text, "where out dims are: [{}]", outs.join(", "));
        text
    }

    /// As the attribute `#ttg.linear`.
    #[must_use]
    pub fn to_ttg(&self) -> String {
        let inputs: Vec<String> = self
            .inputs()
            .iter()
            .map(|&(input, bits)| {
                let image = |bit: usize| {
                    let image = self.apply(&[(input, 1 << bit)]).unwrap_or_default();
                    let image: Vec<String> =
                        image.iter().map(|(_, value)| value.to_string()).collect();
                    format!("[{}]", image.join(", "))
                };
                let images: Vec<String> = (0..bits).map(image).collect();
                format!("{} = [{}]", input.name(), images.join(", "))
            })
            .collect();
        format!("#ttg.linear<{{{}}}>", inputs.join(", "))
    }

    /// Reads what [`LinearLayout::to_triton`] prints.
    ///
    /// # Errors
    /// `Parse`; as [`LinearLayout::new`].
    pub fn from_triton(text: &str) -> Result<Self> {
        let mut reader = Reader { text, at: 0 };
        let mut inputs: Vec<(Axis, Vec<Vec<u64>>)> = Vec::new();
        while !reader.eat("where") {
            reader.eat("-");
            let input = Axis::new(reader.word()?)?;
            if inputs.last().is_none_or(|(last, _)| *last != input) {
                inputs.push((input, Vec::new()));
            }
            if reader.eat("is") {
                for word in ["a", "size", "1", "dimension"] {
                    reader.expect(word)?;
                }
                continue;
            }
            reader.expect("=")?;
            let weight = reader.integer()?;
            reader.expect("->")?;
            reader.expect("(")?;
            let image = reader.list(")", |reader| reader.natural())?;
            let images = inputs.last_mut().map(|(_, images)| images);
            match images {
                Some(images)
                    if u32::try_from(images.len())
                        .ok()
                        .and_then(|bit| 1_i64.checked_shl(bit))
                        == Some(weight) =>
                {
                    images.push(image)
                }
                _ => return Err(reader.error("the images of 1, 2, 4, ... in order")),
            }
        }
        for word in ["out", "dims", "are", ":", "["] {
            reader.expect(word)?;
        }
        let outputs = reader.list("]", |reader| {
            let output = Axis::new(reader.word()?)?;
            reader.expect("(")?;
            reader.expect("size")?;
            let bits = power(reader.integer()?)?;
            reader.expect(")")?;
            Ok((output, bits))
        })?;
        reader.end()?;
        Self::new(inputs, outputs)
    }
}

fn power(extent: i64) -> Result<usize> {
    if extent < 1 || !extent.unsigned_abs().is_power_of_two() {
        return Err(Error::invalid(format!(
            "a dimension of a linear layout: expected a power of two, got {extent}"
        )));
    }
    Ok(extent.trailing_zeros() as usize)
}

impl TritonEncoding {
    /// Reads an attribute of Triton's GPU dialect (`#ttg.blocked<{...}>`, `nvidia_mma`, `dot_op`, `slice`,
    /// `swizzled_shared`, `padded_shared`, `linear`), its parent in place, or a linear layout as Triton prints
    /// it.
    ///
    /// # Errors
    /// `Parse`; `Unsupported` for other encodings, and for more than one CTA.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        if text.contains("where out dims are") {
            return LinearLayout::from_triton(text).map(Self::Linear);
        }
        let mut reader = Reader { text, at: 0 };
        let found = reader.attribute(0)?;
        reader.end()?;
        Ok(found)
    }
}

impl<'a> Reader<'a> {
    fn rest(&mut self) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or("");
        self.at += rest.len() - rest.trim_start().len();
        rest.trim_start()
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) {
            Ok(())
        } else {
            Err(self.error(&format!("`{token}`")))
        }
    }

    fn error(&mut self, expected: &str) -> Error {
        let got: String = self.rest().chars().take(16).collect();
        Error::Parse {
            at: self.at,
            expected: expected.to_owned().into(),
            got: if got.is_empty() {
                "the end".into()
            } else {
                format!("`{got}`")
            },
        }
    }

    fn end(&mut self) -> Result<()> {
        if self.rest().is_empty() {
            Ok(())
        } else {
            Err(self.error("the end"))
        }
    }

    fn word(&mut self) -> Result<&'a str> {
        let rest = self.rest();
        let length = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        match rest.get(..length) {
            Some(word) if length > 0 => {
                self.at += length;
                Ok(word)
            }
            _ => Err(self.error("a name")),
        }
    }

    fn integer(&mut self) -> Result<i64> {
        let rest = self.rest();
        let length = rest
            .bytes()
            .enumerate()
            .take_while(|(k, b)| b.is_ascii_digit() || *k == 0 && *b == b'-')
            .count();
        let value = rest.get(..length).and_then(|digits| digits.parse().ok());
        let value = value.ok_or_else(|| self.error("an integer"))?;
        self.at += length;
        Ok(value)
    }

    fn natural(&mut self) -> Result<u64> {
        let value = self.integer()?;
        u64::try_from(value).map_err(|_| self.error("an integer of at least 0"))
    }

    fn list<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut items = Vec::new();
        while !self.eat(close) {
            items.push(item(self)?);
            if !self.eat(",") {
                self.expect(close)?;
                break;
            }
        }
        Ok(items)
    }

    fn value(&mut self, depth: usize) -> Result<Value> {
        if depth > MAX_DEPTH {
            return Err(self.error("at most 16 levels"));
        }
        if self.eat("[") {
            return Ok(Value::List(
                self.list("]", |reader| reader.value(depth + 1))?,
            ));
        }
        let rest = self.rest();
        if rest.starts_with('#') {
            return Ok(Value::Attribute(self.attribute(depth + 1)?));
        }
        if rest.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            return Ok(Value::Int(self.integer()?));
        }
        self.word().map(|_| Value::Other)
    }

    fn fields(&mut self, depth: usize) -> Result<Vec<(String, Value)>> {
        self.expect("{")?;
        self.list("}", |reader| {
            let key = reader.word()?.to_owned();
            if !reader.eat("=") {
                return Ok((key, Value::Other));
            }
            Ok((key, reader.value(depth)?))
        })
    }

    fn attribute(&mut self, depth: usize) -> Result<TritonEncoding> {
        self.expect("#")?;
        let _ = self.eat("ttg.") || self.eat("triton_gpu.");
        let kind = self.word()?.to_owned();
        self.expect("<")?;
        let mut paddings = Vec::new();
        if self.eat("[") {
            paddings = self.list("]", |reader| {
                let interval = reader.integer()?;
                reader.expect(":")?;
                reader.expect("+")?;
                Ok((interval, reader.integer()?))
            })?;
        }
        let fields = Fields(self.fields(depth)?);
        self.expect(">")?;
        fields.encoding(&kind, paddings)
    }
}

struct Fields(Vec<(String, Value)>);

impl Fields {
    fn get(&self, key: &str) -> Result<&Value> {
        let found = self.0.iter().find(|(name, _)| name == key);
        found
            .map(|(_, value)| value)
            .ok_or_else(|| Error::invalid(format!("a Triton encoding without {key}")))
    }

    fn int(&self, key: &str) -> Result<i64> {
        match self.get(key)? {
            Value::Int(value) => Ok(*value),
            _ => Err(Error::invalid(format!("{key}: expected an integer"))),
        }
    }

    fn ints(&self, key: &str) -> Result<Vec<i64>> {
        let wrong = || Error::invalid(format!("{key}: expected a list of integers"));
        let Value::List(items) = self.get(key)? else {
            return Err(wrong());
        };
        let int = |item: &Value| match item {
            Value::Int(value) => Ok(*value),
            _ => Err(wrong()),
        };
        items.iter().map(int).collect()
    }

    fn order(&self) -> Result<Vec<usize>> {
        let dim = |dim: i64| {
            usize::try_from(dim).map_err(|_| Error::invalid("order: expected dimensions"))
        };
        self.ints("order")?.into_iter().map(dim).collect()
    }

    fn parent(&self) -> Result<Box<TritonEncoding>> {
        match self.get("parent")? {
            Value::Attribute(parent) => Ok(Box::new(parent.clone())),
            _ => Err(Error::invalid("parent: expected an encoding, in place")),
        }
    }

    fn encoding(&self, kind: &str, paddings: Vec<(i64, i64)>) -> Result<TritonEncoding> {
        if let Ok(ctas) = self.ints("CTAsPerCGA")
            && ctas.iter().any(|ctas| *ctas != 1)
        {
            return Err(Error::unsupported("a Triton encoding of more than one CTA"));
        }
        Ok(match kind {
            "blocked" => TritonEncoding::Blocked {
                size_per_thread: self.ints("sizePerThread")?,
                threads_per_warp: self.ints("threadsPerWarp")?,
                warps_per_cta: self.ints("warpsPerCTA")?,
                order: self.order()?,
            },
            "nvidia_mma" => TritonEncoding::NvidiaMma {
                version: self.int("versionMajor")?,
                warps_per_cta: self.ints("warpsPerCTA")?,
                instr_shape: self.ints("instrShape")?,
            },
            "dot_op" => TritonEncoding::DotOperand {
                index: self.int("opIdx")?,
                k_width: self.int("kWidth")?,
                parent: self.parent()?,
            },
            "slice" => TritonEncoding::Slice {
                dim: usize::try_from(self.int("dim")?)
                    .map_err(|_| Error::invalid("dim: expected a dimension"))?,
                parent: self.parent()?,
            },
            "swizzled_shared" | "shared" => TritonEncoding::SwizzledShared {
                vec: self.int("vec")?,
                per_phase: self.int("perPhase")?,
                max_phase: self.int("maxPhase")?,
                order: self.order()?,
            },
            "padded_shared" => TritonEncoding::PaddedShared {
                paddings,
                order: self.order()?,
            },
            "linear" => TritonEncoding::Linear(self.linear()?),
            _ => return Err(Error::unsupported(format!("Triton's encoding {kind}"))),
        })
    }

    /// The sizes of a linear encoding's outputs are what its bases reach.
    fn linear(&self) -> Result<LinearLayout> {
        let wrong = || Error::invalid("linear: expected lists of bases");
        let mut inputs = Vec::new();
        for (name, bases) in &self.0 {
            let Value::List(bases) = bases else {
                return Err(wrong());
            };
            let base = |base: &Value| -> Result<Vec<u64>> {
                let Value::List(values) = base else {
                    return Err(wrong());
                };
                let value = |value: &Value| match value {
                    Value::Int(value) => u64::try_from(*value).map_err(|_| wrong()),
                    _ => Err(wrong()),
                };
                values.iter().map(value).collect()
            };
            inputs.push((
                Axis::new(name)?,
                bases.iter().map(base).collect::<Result<Vec<_>>>()?,
            ));
        }
        let all = || inputs.iter().flat_map(|(_, bases)| bases);
        let rank = all().map(Vec::len).max().unwrap_or(0);
        let outputs = (0..rank).map(|dim| {
            let reached = all()
                .filter_map(|base| base.get(dim))
                .fold(0, |reached, value| reached | value);
            Ok((
                Axis::new(&format!("dim{dim}"))?,
                (u64::BITS - reached.leading_zeros()) as usize,
            ))
        });
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        LinearLayout::new(inputs, outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{layout_of_linear, linear_of_layout};
    use super::*;

    const BLOCKED: &str = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [2, 2], order = [1, 0]}>";
    const MMA: &str = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>";

    fn read(text: &str, shape: &[i64]) -> LinearLayout {
        TritonEncoding::parse(text)
            .unwrap()
            .to_linear(shape)
            .unwrap()
    }

    /// The definition of a blocked encoding: coordinates by division.
    #[test]
    fn blocked_is_what_threads_hold() {
        let found = read(BLOCKED, &[16, 128]);
        let at = |name: &str, value| (Axis::new(name).unwrap(), value);
        for register in 0..16_u64 {
            for lane in 0..32 {
                for warp in 0..4 {
                    // Four in a row, then 64 columns on, then 8 rows down.
                    let row = lane / 8 + 4 * (warp / 2) + 8 * (register / 8);
                    let column =
                        register % 4 + 4 * (lane % 8) + 32 * (warp % 2) + 64 * (register / 4 % 2);
                    let got = found
                        .apply(&[at("register", register), at("lane", lane), at("warp", warp)])
                        .unwrap();
                    assert_eq!(got, [at("dim0", row), at("dim1", column)]);
                }
            }
        }
        // Too small a tensor is held several times.
        let small = read(BLOCKED, &[4, 32]);
        assert_eq!(
            layout_of_linear(&small).unwrap().to_string(),
            "S[(32, 4) : (1@lane, 1@reg)] + R[4 : 1@warp]"
        );
    }

    #[test]
    fn mma_fragments_are_those_of_ptx() {
        let c = TritonEncoding::parse(MMA)
            .unwrap()
            .to_layout(&[32, 16])
            .unwrap();
        let want: crate::Layout =
            "S[(2, 2, 8, 2, 4, 2) : (2@warp, 2@reg, 4@lane, 1@warp, 1@lane, 1@reg)]"
                .parse()
                .unwrap();
        assert!(c.equivalent(&want).unwrap(), "{c}");
        let a = format!("#ttg.dot_op<{{opIdx = 0, parent = {MMA}, kWidth = 2}}>");
        let a = TritonEncoding::parse(&a)
            .unwrap()
            .to_layout(&[32, 16])
            .unwrap();
        let want: crate::Layout =
            "S[(2, 2, 8, 2, 4, 2) : (2@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)] + R[2 : 1@warp]"
                .parse()
                .unwrap();
        assert!(a.equivalent(&want).unwrap(), "{a}");
        let b = format!("#ttg.dot_op<{{opIdx = 1, parent = {MMA}, kWidth = 2}}>");
        let b = TritonEncoding::parse(&b)
            .unwrap()
            .to_layout(&[16, 16])
            .unwrap();
        let want: crate::Layout =
            "S[(2, 4, 2, 2, 8) : (2@reg, 1@lane, 1@reg, 1@warp, 4@lane)] + R[2 : 2@warp]"
                .parse()
                .unwrap();
        assert!(b.equivalent(&want).unwrap(), "{b}");
        let rows = format!("#ttg.slice<{{dim = 1, parent = {MMA}}}>");
        let rows = TritonEncoding::parse(&rows)
            .unwrap()
            .to_layout(&[32])
            .unwrap();
        let want: crate::Layout =
            "S[(2, 2, 8) : (2@warp, 1@reg, 4@lane)] + R[(4, 2) : (1@lane, 1@warp)]"
                .parse()
                .unwrap();
        assert!(rows.equivalent(&want).unwrap(), "{rows}");
        let wgmma = "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>";
        let c = TritonEncoding::parse(wgmma)
            .unwrap()
            .to_layout(&[64, 64])
            .unwrap();
        let want: crate::Layout =
            "S[(4, 2, 8, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]"
                .parse()
                .unwrap();
        assert!(c.equivalent(&want).unwrap(), "{c}");
    }

    /// Shared memory by Triton's formula: vectors of a row are xored by its phase.
    #[test]
    fn shared_memory_is_swizzled_and_padded_by_the_formula() {
        let text = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>";
        let layout = TritonEncoding::parse(text)
            .unwrap()
            .to_layout(&[16, 64])
            .unwrap();
        assert_eq!(layout.to_string(), "Sw<3,3,3> o S[1024 : 1]");
        let text = "#ttg.swizzled_shared<{vec = 4, perPhase = 2, maxPhase = 4, order = [0, 1]}>";
        let layout = TritonEncoding::parse(text)
            .unwrap()
            .to_layout(&[32, 16])
            .unwrap();
        for (row, column) in (0..16).flat_map(|row| (0..32).map(move |column| (row, column))) {
            let want = row * 32 + ((column / 4) ^ (row / 2 % 4)) * 4 + column % 4;
            let at = layout.apply(&[32, 16], &[column, row]).unwrap();
            assert_eq!(at[0].get(Axis::M), want);
        }
        let text = "#ttg.padded_shared<[64:+8, 256:+4] {order = [1, 0], shape = [16, 32]}>";
        let layout = TritonEncoding::parse(text)
            .unwrap()
            .to_layout(&[16, 32])
            .unwrap();
        for x in 0..512 {
            let at = layout.apply(&[512], &[x]).unwrap();
            assert_eq!(at[0].get(Axis::M), x + x / 64 * 8 + x / 256 * 4);
        }
    }

    #[test]
    fn texts_go_both_ways() {
        let found = read(BLOCKED, &[16, 64]);
        let text = found.to_triton();
        assert!(text.starts_with(" - register=1 -> (0, 1)\n   register=2 -> (0, 2)\n   register=4 -> (8, 0)\n - lane=1 -> (0, 4)\n"), "{text}");
        assert!(text.ends_with(" - block is a size 1 dimension\nwhere out dims are: [dim0 (size 16), dim1 (size 64)]"), "{text}");
        assert_eq!(LinearLayout::from_triton(&text).unwrap(), found);
        assert_eq!(read(&found.to_ttg(), &[16, 64]), found);
        let layout = layout_of_linear(&found).unwrap();
        let again = linear_of_layout(&layout, &[16, 64]).unwrap();
        assert!(
            layout_of_linear(&again)
                .unwrap()
                .equivalent(&layout)
                .unwrap()
        );
        for wrong in [
            "",
            "#ttg.blocked<{}>",
            "#ttg.what<{a = 1}>",
            "#ttg.linear<{register = [[1], [[2]]]}>",
            "register=2 -> (1)\nwhere out dims are: []",
        ] {
            assert!(TritonEncoding::parse(wrong).is_err(), "{wrong}");
        }
        let deep = format!("#ttg.linear<{{a = {}", "[".repeat(30_000));
        assert!(TritonEncoding::parse(&deep).is_err());
        let parents = "#ttg.slice<{dim = 0, parent = ".repeat(30_000);
        assert!(TritonEncoding::parse(&parents).is_err());
    }
}
