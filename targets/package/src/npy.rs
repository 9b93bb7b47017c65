//! NumPy's `.npy` files (numpy/lib/format.py, versions 1 to 3).
//!
//! NumPy has no bfloat16 and no 8-bit floats. As `ml_dtypes` does, bf16 is written as `<V2` and
//! an 8-bit float as `|V1`. Reading takes `V2` as bf16 and `V1` as u8; who knows better (the
//! package does) reinterprets: see [`read_as`].

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::dtype::DType;
use crate::tensor::{Tensor, TensorError, dense_bytes};

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The longest header that is read, in bytes.
const MAX_HEADER_BYTES: usize = 1 << 20;

/// Why a `.npy` file could not be read or written.
#[derive(Debug, Error)]
pub enum NpyError {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The content is not what a `.npy` file holds.
    #[error("{}: {reason}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The elements are not of the type asked for.
    #[error("{}: expected {want}, got {got}", path.display())]
    DType {
        /// The file.
        path: PathBuf,
        /// The type asked for.
        want: DType,
        /// The type in the file.
        got: DType,
    },
}

/// Reads a file with whatever element type it has.
///
/// # Errors
/// A file that cannot be read, is cut off, or holds a type that [`DType`] has no name for.
pub fn read(path: impl AsRef<Path>) -> Result<Tensor, NpyError> {
    let path = path.as_ref();
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|mut f| f.read_to_end(&mut bytes))
        .map_err(|source| NpyError::Io {
            path: path.to_owned(),
            source,
        })?;
    decode(bytes).map_err(|reason| NpyError::Format {
        path: path.to_owned(),
        reason,
    })
}

/// Reads a file as `want`. Types that NumPy cannot name are taken from what it writes instead:
/// an 8-bit float from `V1` or `u8`, bf16 from `V2` or `u16`. A signed integer, which is what a package calls an
/// integer whose operations alone have signs, is also taken from the unsigned one of its width.
///
/// # Errors
/// As [`read`], and elements of another type.
pub fn read_as(path: impl AsRef<Path>, want: DType) -> Result<Tensor, NpyError> {
    let path = path.as_ref();
    let tensor = read(path)?;
    let got = tensor.dtype();
    let stands_in = match want {
        DType::F8E4M3 | DType::F8E5M2 => got == DType::U8,
        DType::BF16 => got == DType::U16,
        // The compiler's integers have no signs: operations do.
        DType::I8 => got == DType::U8,
        DType::I16 => got == DType::U16,
        DType::I32 => got == DType::U32,
        DType::I64 => got == DType::U64,
        _ => false,
    };
    if stands_in {
        let format = |e: TensorError| NpyError::Format {
            path: path.to_owned(),
            reason: e.to_string(),
        };
        return tensor.reinterpret(want).map_err(format);
    }
    if got != want {
        return Err(NpyError::DType {
            path: path.to_owned(),
            want,
            got,
        });
    }
    Ok(tensor)
}

/// Writes a file atomically, in C order, format version 1.0.
///
/// # Errors
/// What the operating system refuses.
pub fn write(path: impl AsRef<Path>, tensor: &Tensor) -> Result<(), NpyError> {
    let path = path.as_ref();
    let dir = path
        .parent()
        .filter(|d| !d.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let save = || -> io::Result<()> {
        let temp = tempfile::Builder::new().prefix(".npy-").tempfile_in(dir)?;
        let mut out = BufWriter::new(temp);
        out.write_all(&encode_header(tensor))?;
        out.write_all(tensor.bytes())?;
        let temp = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        crate::container::set_mode(temp.as_file(), 0o644)?;
        temp.persist(path)?;
        Ok(())
    };
    save().map_err(|source| NpyError::Io {
        path: path.to_owned(),
        source,
    })
}

fn descr(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "<f2",
        DType::BF16 => "<V2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::F8E4M3 | DType::F8E5M2 => "|V1",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::Bool => "|b1",
    }
}

fn encode_header(tensor: &Tensor) -> Vec<u8> {
    let dims: Vec<String> = tensor.shape().iter().map(u64::to_string).collect();
    // A Python tuple of one element needs its comma.
    let shape = if let [one] = dims.as_slice() {
        format!("({one},)")
    } else {
        format!("({})", dims.join(", "))
    };
    let descr = descr(tensor.dtype());
    let mut dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // Magic, version and length take 10 bytes; the data starts at a multiple of 64.
    let total = (10 + dict.len() + 1).next_multiple_of(64);
    dict.push_str(&" ".repeat(total - 10 - dict.len() - 1));
    dict.push('\n');
    let mut header = MAGIC.to_vec();
    header.extend([1, 0]);
    header.extend((dict.len() as u16).to_le_bytes());
    header.extend(dict.into_bytes());
    header
}

/// Decodes the content of a `.npy` file; the error is the reason.
pub fn decode(bytes: Vec<u8>) -> Result<Tensor, String> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("not a .npy file")?;
    let (length, length_bytes) = match rest {
        [1, _, a, b, ..] => (u32::from(u16::from_le_bytes([*a, *b])), 2),
        [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([*a, *b, *c, *d]), 4),
        [version, _, ..] => return Err(format!("unknown .npy format version {version}")),
        _ => return Err("cut off in its header".into()),
    };
    let start = MAGIC.len() + 2 + length_bytes;
    let length = usize::try_from(length).map_err(|e| e.to_string())?;
    if length > MAX_HEADER_BYTES {
        return Err(format!("a header of {length} bytes is too long"));
    }
    let header = bytes
        .get(start..start + length)
        .ok_or("cut off in its header")?;
    let header = std::str::from_utf8(header).map_err(|_| "its header is not text")?;
    let header = Header::parse(header)?;
    let want = dense_bytes(header.dtype, &header.shape).ok_or("its shape is too large")?;
    let data = bytes.get(start + length..).unwrap_or_default();
    if data.len() != want {
        let shape = &header.shape;
        return Err(format!(
            "{} {shape:?} needs {want} bytes, the file has {}",
            header.dtype,
            data.len()
        ));
    }
    let mut data = data.to_vec();
    if header.big_endian {
        data.chunks_exact_mut(header.dtype.bytes())
            .for_each(<[u8]>::reverse);
    }
    if header.fortran_order {
        data = to_row_major(&data, header.dtype.bytes(), &header.shape);
    }
    Tensor::new(header.dtype, header.shape, data).map_err(|e| e.to_string())
}

/// Column-major data in row-major order.
fn to_row_major(data: &[u8], size: usize, shape: &[u64]) -> Vec<u8> {
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = 1u64;
    for extent in shape {
        strides.push(stride);
        stride = stride.saturating_mul(*extent);
    }
    let mut out = Vec::with_capacity(data.len());
    let mut index = vec![0u64; shape.len()];
    while out.len() < data.len() {
        let element: u64 = index.iter().zip(&strides).map(|(i, s)| i * s).sum();
        let at = element as usize * size;
        out.extend_from_slice(data.get(at..at + size).unwrap_or_default());
        for (i, extent) in index.iter_mut().zip(shape).rev() {
            *i += 1;
            if *i < *extent {
                break;
            }
            *i = 0;
        }
    }
    out
}

struct Header {
    dtype: DType,
    big_endian: bool,
    fortran_order: bool,
    shape: Vec<u64>,
}

impl Header {
    /// Parses the Python dictionary literal of a header.
    fn parse(text: &str) -> Result<Self, String> {
        let mut p = Parser { rest: text };
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        p.expect('{')?;
        while !p.take('}') {
            let key = p.string()?;
            p.expect(':')?;
            match key.as_str() {
                "descr" => {
                    descr = Some(
                        p.string()
                            .map_err(|_| "structured element types are not supported")?,
                    )
                }
                "fortran_order" => fortran = Some(p.boolean()?),
                "shape" => shape = Some(p.tuple()?),
                other => {
                    return Err(format!(
                        "unknown key `{}` in its header",
                        other.escape_debug()
                    ));
                }
            }
            if !p.take(',') {
                p.expect('}')?;
                break;
            }
        }
        let missing = "its header lacks descr, fortran_order or shape";
        let (dtype, big_endian) = parse_descr(&descr.ok_or(missing)?)?;
        Ok(Header {
            dtype,
            big_endian,
            fortran_order: fortran.ok_or(missing)?,
            shape: shape.ok_or(missing)?,
        })
    }
}

fn parse_descr(text: &str) -> Result<(DType, bool), String> {
    let unknown = || format!("element type `{}` is not supported", text.escape_debug());
    let (big_endian, code) = match text.split_at_checked(1).ok_or_else(unknown)? {
        ("<" | "|" | "=", code) => (false, code),
        (">", code) => (true, code),
        _ => return Err(unknown()),
    };
    let dtype = match code {
        "V1" => DType::U8,
        "b1" => DType::Bool,
        _ => DType::ALL
            .into_iter()
            .find(|d| descr(*d).get(1..) == Some(code))
            .ok_or_else(unknown)?,
    };
    Ok((dtype, big_endian))
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn take(&mut self, c: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, c: char) -> Result<(), String> {
        if self.take(c) {
            Ok(())
        } else {
            Err(format!("its header lacks a `{c}`"))
        }
    }

    fn string(&mut self) -> Result<String, String> {
        let quote = if self.take('\'') {
            '\''
        } else {
            self.expect('"')?;
            '"'
        };
        let (text, rest) = self
            .rest
            .split_once(quote)
            .ok_or("a string in its header does not end")?;
        self.rest = rest;
        Ok(text.to_owned())
    }

    fn boolean(&mut self) -> Result<bool, String> {
        self.rest = self.rest.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err("fortran_order is not True or False".into())
    }

    fn tuple(&mut self) -> Result<Vec<u64>, String> {
        let mut values = Vec::new();
        self.expect('(')?;
        while !self.take(')') {
            self.rest = self.rest.trim_start();
            let end = self
                .rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(self.rest.len());
            let (digits, rest) = self.rest.split_at_checked(end).unwrap_or_default();
            values.push(
                digits
                    .parse()
                    .map_err(|_| "its shape is not a tuple of integers")?,
            );
            // Python 2 wrote long integers with an L.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        if values.len() > 32 {
            return Err("its shape has over 32 dimensions".into());
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Random;
    use proptest::prelude::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend([1, 0]);
        out.extend((header.len() as u16).to_le_bytes());
        out.extend(header.as_bytes());
        out.extend(data);
        out
    }

    #[test]
    fn header_is_byte_for_byte_numpys() {
        // numpy.save of numpy.arange(3, dtype='<f4').
        let t = Tensor::from_f64(DType::F32, vec![3], [0.0, 1.0, 2.0]).unwrap();
        let mut want =
            b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"
                .to_vec();
        want.resize(127, b' ');
        want.push(b'\n');
        assert_eq!(encode_header(&t), want);
    }

    #[test]
    fn every_type_round_trips() {
        let dir = tempfile::tempdir().unwrap();
        for dtype in DType::ALL {
            for shape in [vec![], vec![0], vec![5], vec![2, 3, 4]] {
                let t = Tensor::random(dtype, shape, Random::for_dtype(dtype, 3)).unwrap();
                let path = dir.path().join("t.npy");
                write(&path, &t).unwrap();
                assert_eq!(read_as(&path, dtype).unwrap(), t);
            }
        }
    }

    #[test]
    fn big_endian_and_fortran_order() {
        let header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n";
        // Columns of [[1, 2, 3], [4, 5, 6]].
        let t = decode(file(header, &[0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6])).unwrap();
        assert_eq!(
            t.iter_f64().collect::<Vec<_>>(),
            [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
        );
    }

    #[test]
    fn damaged_files_say_why() {
        let good = file(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n",
            &[0; 8],
        );
        assert!(decode(good.clone()).is_ok());
        for n in 0..good.len() {
            assert!(decode(good[..n].to_vec()).is_err(), "cut at {n}");
        }
        let reason = |h: &str| decode(file(h, &[])).unwrap_err();
        assert!(reason("{'descr': '<c8', 'fortran_order': False, 'shape': ()}").contains("<c8"));
        assert!(
            reason("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}")
                .contains("structured")
        );
        assert!(reason("{'fortran_order': False, 'shape': ()}").contains("lacks descr"));
        assert!(
            reason("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}").contains("tuple")
        );
        assert!(
            reason("{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999999999999,)}")
                .contains("large")
        );
        assert!(
            reason("{'descr': '<f8', 'fortran_order': True, 'shape': (4294967296, 4294967296)}")
                .contains("large")
        );
    }

    #[test]
    fn reading_as_another_type_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.npy");
        write(
            &path,
            &Tensor::from_f64(DType::F32, vec![1], [1.0]).unwrap(),
        )
        .unwrap();
        let error = read_as(&path, DType::F16).unwrap_err().to_string();
        assert!(error.contains("expected f16, got f32"), "{error}");
        assert!(matches!(
            read(dir.path().join("none.npy")),
            Err(NpyError::Io { .. })
        ));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_fail(header in "\\{?[ -~]{0,80}", data in prop::collection::vec(any::<u8>(), 0..32)) {
            let _ = decode(file(&header, &data));
            let _ = decode(data);
        }
    }
}
