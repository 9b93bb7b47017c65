//! Arguments as text.

use axe_package::{DType, Random};
use std::path::PathBuf;
use std::str::FromStr;

/// What an array holds before the launch.
#[derive(Debug, Clone, PartialEq)]
pub enum Fill {
    /// Nothing: reading it before writing it is a finding.
    Unwritten,
    /// The same number everywhere.
    Constant(f64),
    /// 0, 1, 2, ...
    Arange,
    /// Random numbers.
    Random(Random),
}

/// The address of an array, plus bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    /// Which array.
    pub array: String,
    /// Offset in bytes.
    pub offset: u64,
}

/// An argument.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// An array in global memory; the kernel gets its address.
    Array {
        /// Element type.
        dtype: DType,
        /// Extents.
        shape: Vec<u64>,
        /// What it holds.
        fill: Fill,
    },
    /// An array from a `.npy` file.
    File(PathBuf),
    /// A number of a type.
    Scalar(DType, f64),
    /// An integer of a type, where binary64 does not hold it.
    Integer(DType, i128),
    /// A number of the parameter's type.
    Number(f64, Option<i128>),
    /// The address of another argument's array: arguments that share memory.
    Pointer(Pointer),
    /// A table of addresses in global memory.
    Table(Vec<Pointer>),
    /// A structure by value: its members at their natural alignment.
    Struct(Vec<Value>),
    /// Bytes by value.
    Bytes(Vec<u8>),
    /// A file's bytes by value.
    Raw(PathBuf),
    /// A tensor map of an array: box extents, innermost last as the shape's, and bytes of the swizzle.
    Map {
        /// Which array.
        array: String,
        /// Extents of the box.
        extents: Vec<u32>,
        /// 0, 32, 64 or 128.
        swizzle: u32,
    },
}

/// What arguments look like, for messages and help.
pub const GRAMMAR: &str = "FILE.npy; DTYPE[SHAPE] with :zeros, :ones, :arange, :random, :random:SEED or \
:random:SEED:LOW:HIGH (else unwritten); a number, or DTYPE:NUMBER; &NAME+BYTES; &{NAME, NAME+BYTES}; \
{VALUE, VALUE} by value; hex:BYTES or @FILE by value; map:NAME:BOX or map:NAME:BOX:SWIZZLE";

impl FromStr for Value {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(inner) = braces(text.strip_prefix('&').unwrap_or("")) {
            let all = split(inner).into_iter().map(pointer);
            return Ok(Self::Table(all.collect::<Result<_, _>>()?));
        }
        if let Some(rest) = text.strip_prefix('&') {
            return Ok(Self::Pointer(pointer(rest)?));
        }
        if let Some(inner) = braces(text) {
            let all = split(inner).into_iter().map(str::parse);
            return Ok(Self::Struct(all.collect::<Result<_, _>>()?));
        }
        if let Some(path) = text.strip_prefix('@') {
            return Ok(Self::Raw(path.into()));
        }
        if let Some(digits) = text.strip_prefix("hex:") {
            return hex(digits).map(Self::Bytes);
        }
        if let Some(rest) = text.strip_prefix("map:") {
            return map(rest);
        }
        if text.ends_with(".npy") {
            return Ok(Self::File(text.into()));
        }
        if text.contains('[') {
            return array(text);
        }
        number(text)
    }
}

fn braces(text: &str) -> Option<&str> {
    text.strip_prefix('{')?.strip_suffix('}')
}

/// Cuts at commas outside braces and brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start) = (0i32, 0);
    let mut parts = Vec::new();
    for (i, c) in text.char_indices() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

fn pointer(text: &str) -> Result<Pointer, String> {
    let (array, offset) = match text.split_once('+') {
        Some((array, offset)) => {
            let bytes = offset.trim().parse();
            (
                array,
                bytes.map_err(|_| format!("`{text}`: expected NAME+BYTES"))?,
            )
        }
        None => (text, 0),
    };
    let array = array.trim().trim_start_matches('&');
    if array.is_empty() {
        return Err(format!("`{text}`: expected the name of an array"));
    }
    Ok(Pointer {
        array: array.into(),
        offset,
    })
}

fn hex(digits: &str) -> Result<Vec<u8>, String> {
    let bad = || format!("`{digits}`: expected pairs of hexadecimal digits");
    if !digits.len().is_multiple_of(2) || !digits.is_ascii() {
        return Err(bad());
    }
    let pair = |i: usize| {
        digits
            .get(i..i + 2)
            .and_then(|d| u8::from_str_radix(d, 16).ok())
    };
    let all = (0..digits.len())
        .step_by(2)
        .map(|i| pair(i).ok_or_else(bad));
    all.collect()
}

fn map(text: &str) -> Result<Value, String> {
    let bad = || format!("`map:{text}`: expected map:NAME:64,64 or map:NAME:64,64:128");
    let mut parts = text.split(':');
    let array = parts.next().filter(|n| !n.is_empty()).ok_or_else(bad)?;
    let extents = parts.next().ok_or_else(bad)?;
    let extents = extents
        .split(',')
        .map(|e| e.trim().parse().map_err(|_| bad()));
    let swizzle = match parts.next() {
        Some(bytes) => bytes.parse().map_err(|_| bad())?,
        None => 0,
    };
    if parts.next().is_some() || ![0, 32, 64, 128].contains(&swizzle) {
        return Err(bad());
    }
    Ok(Value::Map {
        array: array.into(),
        extents: extents.collect::<Result<_, _>>()?,
        swizzle,
    })
}

/// `f32[4,8]:random:7`.
fn array(text: &str) -> Result<Value, String> {
    let bad = || format!("`{text}`: expected DTYPE[SHAPE], such as f32[64,32]:random");
    let (dtype, rest) = text.split_once('[').ok_or_else(bad)?;
    let (shape, fill) = rest.split_once(']').ok_or_else(bad)?;
    let dtype: DType = dtype.trim().parse()?;
    let extents = shape.split(',').filter(|e| !e.trim().is_empty());
    let shape: Result<Vec<u64>, String> = extents
        .map(|e| e.trim().parse().map_err(|_| bad()))
        .collect();
    let fill = match fill.strip_prefix(':') {
        None if fill.is_empty() => Fill::Unwritten,
        None => return Err(bad()),
        Some(name) => fill_of(name, dtype).ok_or_else(|| {
            format!("`{name}`: expected zeros, ones, arange, a number, random, random:SEED or random:SEED:LOW:HIGH")
        })?,
    };
    Ok(Value::Array {
        dtype,
        shape: shape?,
        fill,
    })
}

fn fill_of(name: &str, dtype: DType) -> Option<Fill> {
    let mut parts = name.split(':');
    let fill = match parts.next()? {
        "zeros" => Fill::Constant(0.0),
        "ones" => Fill::Constant(1.0),
        "arange" => Fill::Arange,
        "random" => {
            let seed = parts.next().map_or(Some(0), |s| s.parse().ok())?;
            let mut random = Random::for_dtype(dtype, seed);
            if let Some(low) = parts.next() {
                random.low = low.parse().ok().filter(|v: &f64| v.is_finite())?;
                let high = parts.next()?.parse();
                random.high = high.ok().filter(|v: &f64| v.is_finite())?;
            }
            Fill::Random(random)
        }
        number => Fill::Constant(number.parse().ok()?),
    };
    parts.next().is_none().then_some(fill)
}

fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { -value } else { value })
}

fn number(text: &str) -> Result<Value, String> {
    let bad = || format!("`{text}` is no argument; expected one of: {GRAMMAR}");
    let Some((dtype, digits)) = text.split_once(':') else {
        let whole = integer(text);
        let value = whole.map(|v| v as f64).or_else(|| text.parse().ok());
        return Ok(Value::Number(value.ok_or_else(bad)?, whole));
    };
    let dtype: DType = dtype.parse()?;
    if !dtype.is_float()
        && let Some(whole) = integer(digits)
    {
        return Ok(Value::Integer(dtype, whole));
    }
    let value = integer(digits)
        .map(|v| v as f64)
        .or_else(|| digits.parse().ok());
    match value {
        Some(value) if dtype.is_float() => Ok(Value::Scalar(dtype, value)),
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_grammar() {
        let of = |text: &str| text.parse::<Value>().unwrap();
        assert_eq!(of("a/b.npy"), Value::File("a/b.npy".into()));
        let array = |fill| Value::Array {
            dtype: DType::F32,
            shape: vec![4, 8],
            fill,
        };
        assert_eq!(of("f32[4, 8]"), array(Fill::Unwritten));
        assert_eq!(of("f32[4,8]:ones"), array(Fill::Constant(1.0)));
        assert_eq!(of("f32[4,8]:-2.5"), array(Fill::Constant(-2.5)));
        let seed = Random::for_dtype(DType::F32, 7);
        assert_eq!(of("f32[4,8]:random:7"), array(Fill::Random(seed)));
        let (low, high) = (-3.0, 5.0);
        assert_eq!(
            of("f32[4,8]:random:7:-3:5"),
            array(Fill::Random(Random { low, high, ..seed }))
        );
        assert_eq!(of("1024"), Value::Number(1024.0, Some(1024)));
        assert_eq!(of("0.5"), Value::Number(0.5, None));
        assert_eq!(
            of("u64:0xFFFFFFFFFFFFFFFF"),
            Value::Integer(DType::U64, u64::MAX.into())
        );
        assert_eq!(of("f16:-1.5"), Value::Scalar(DType::F16, -1.5));
        let pointer = |array: &str, offset| Pointer {
            array: array.into(),
            offset,
        };
        assert_eq!(of("&x+64"), Value::Pointer(pointer("x", 64)));
        assert_eq!(
            of("&{x, y+8}"),
            Value::Table(vec![pointer("x", 0), pointer("y", 8)])
        );
        assert_eq!(
            of("{i32:1, {f32:2, &x}}"),
            Value::Struct(vec![
                Value::Integer(DType::I32, 1),
                Value::Struct(vec![
                    Value::Scalar(DType::F32, 2.0),
                    Value::Pointer(pointer("x", 0))
                ]),
            ])
        );
        assert_eq!(of("hex:00fF"), Value::Bytes(vec![0, 255]));
        assert_eq!(of("@s.bin"), Value::Raw("s.bin".into()));
        let extents = vec![64, 32];
        let array = "x".to_string();
        assert_eq!(
            of("map:x:64,32:128"),
            Value::Map {
                array,
                extents,
                swizzle: 128
            }
        );
        for bad in [
            "",
            "f32[",
            "f32[a]",
            "f33[1]",
            "f32[1]:some",
            "i32:1.5",
            "&",
            "hex:0",
            "map:x",
            "map:x:1:7",
            "x",
        ] {
            assert!(bad.parse::<Value>().is_err(), "{bad}");
        }
    }
}
