use super::*;
use crate::units::Bytes;
use crate::units::float::Round;
use crate::units::tensor_memory::TensorMemory;
use crate::units::testing::Flat;
use proptest::prelude::*;

const K_MAJOR: u64 = 1 << 46;

/// A descriptor without swizzle: 8-row groups of 128 bytes, the two units of K `lead` apart.
fn plain(start: u64, lead: u64) -> u64 {
    K_MAJOR | start >> 4 | lead >> 4 << 16 | (128 >> 4) << 32
}

fn value(i: usize, k: usize) -> f64 {
    ((i * 5 + k * 3) % 7) as f64 - 3.0
}

/// Writes rows of K elements in the layout of `plain`; 16 bytes hold `per` elements of `bits` bits.
fn place(m: &mut Flat, start: usize, rows: usize, shift: usize, format: Format, per: usize) {
    let lead = rows * 16;
    for row in 0..rows {
        for unit in 0..2 {
            let mut word = 0u128;
            for i in 0..per {
                let x = format.from_f64(value(shift + row, unit * per + i), Round::Nearest, true);
                word |= u128::from(x & (u64::MAX >> (64 - format.bits())))
                    << (i * format.bits() as usize);
            }
            let at = start + unit * lead + row * 16;
            m.0[at..at + 16].copy_from_slice(&word.to_le_bytes());
        }
    }
}

fn dot(row: usize, column: usize, k: usize, format: Format) -> f64 {
    let r = |x: f64| format.to_f64(format.from_f64(x, Round::Nearest, true));
    (0..k)
        .map(|j| r(value(row, j)) * r(value(1000 + column, j)))
        .sum()
}

fn idesc(m: u32, n: u32, a: u32, b: u32, d: u32) -> u32 {
    d << 4 | a << 7 | b << 10 | (n / 8) << 17 | (m / 16) << 24
}

fn operands(d: u32, a: OperandA, b: u64, accumulate: bool) -> Operands {
    Operands {
        d,
        a,
        b,
        accumulate,
        scale_d: 0,
        scales: None,
        block: 32,
        disabled: [0; 2],
    }
}

#[test]
fn one_cta_products_of_every_kind() {
    for (kind, code, format) in [
        (Kind::F16, 0, Format::F16),
        (Kind::F16, 1, Format::Bf16),
        (Kind::Tf32, 2, Format::Tf32),
        (Kind::F8f6f4, 0, Format::E4m3),
        (Kind::F8f6f4, 4, Format::E3m2),
        (Kind::F8f6f4, 5, Format::E2m1),
    ] {
        for m in [64, 128] {
            let i = Instruction::decode(kind, idesc(m, 32, code, code, 1), 1).unwrap();
            let (mut shared, mut tensor) = (Flat::new(1 << 16), TensorMemory::default());
            tensor.allocate(64).unwrap();
            place(&mut shared, 0, m as usize, 0, format, kind.k() / 2);
            place(&mut shared, 8192, 32, 1000, format, kind.k() / 2);
            let a = OperandA::Shared(plain(0, u64::from(m) * 16));
            let b = plain(8192, 512);
            for pass in 1..=2 {
                let mut ctas = [Cta {
                    tensor: &mut tensor,
                    shared: &mut shared,
                }];
                i.execute(&mut ctas, &operands(16, a, b, pass == 2))
                    .unwrap();
                for row in [0, 17, 63, m as usize - 1] {
                    let lane = if m == 64 {
                        row / 16 * 32 + row % 16
                    } else {
                        row
                    };
                    for column in [0, 5, 31] {
                        let got = f32::from_bits(tensor.get(lane, 16 + column).unwrap());
                        let want = dot(row, column, kind.k(), format) * f64::from(pass);
                        assert_eq!(f64::from(got), want, "{kind:?} {format:?} {row},{column}");
                    }
                }
            }
        }
    }
}

/// Memory in which only the first `used` bytes of each 16 may be read.
struct Padded(Flat, usize);

impl Bytes for Padded {
    fn read(&mut self, addr: u64, out: &mut [u8]) -> Result<(), crate::fault::Fault> {
        assert!(addr as usize % 16 + out.len() <= self.1, "{addr}");
        self.0.read(addr, out)
    }

    fn write(&mut self, addr: u64, data: &[u8]) -> Result<(), crate::fault::Fault> {
        self.0.write(addr, data)
    }
}

#[test]
fn padding_of_narrow_elements_is_not_read() {
    for (code, format, used) in [
        (0, Format::E4m3, 16),
        (4, Format::E3m2, 12),
        (5, Format::E2m1, 8),
    ] {
        let i = Instruction::decode(Kind::F8f6f4, idesc(128, 32, code, code, 1), 1).unwrap();
        let mut tensor = TensorMemory::default();
        tensor.allocate(64).unwrap();
        let mut shared = Padded(Flat::new(1 << 16), used);
        place(&mut shared.0, 0, 128, 0, format, 16);
        place(&mut shared.0, 8192, 32, 1000, format, 16);
        let mut ctas = [Cta {
            tensor: &mut tensor,
            shared: &mut shared,
        }];
        let a = OperandA::Shared(plain(0, 128 * 16));
        i.execute(&mut ctas, &operands(16, a, plain(8192, 512), false))
            .unwrap();
        let got = f32::from_bits(tensor.get(17, 16 + 5).unwrap());
        assert_eq!(f64::from(got), dot(17, 5, Kind::F8f6f4.k(), format));
    }
}

#[test]
fn pairs_of_ctas_share_b() {
    for m in [128usize, 256] {
        let i = Instruction::decode(Kind::F16, idesc(m as u32, 64, 0, 0, 1), 2).unwrap();
        let mut shared: Vec<Flat> = (0..2).map(|_| Flat::new(1 << 16)).collect();
        let mut tensor: Vec<TensorMemory> = (0..2).map(|_| TensorMemory::default()).collect();
        for c in 0..2 {
            tensor[c].allocate(64).unwrap();
            place(&mut shared[c], 0, m / 2, c * m / 2, Format::F16, 8);
            place(&mut shared[c], 8192, 32, 1000 + 32 * c, Format::F16, 8);
        }
        let mut ctas: Vec<Cta<'_>> = tensor
            .iter_mut()
            .zip(&mut shared)
            .map(|(tensor, shared)| Cta { tensor, shared })
            .collect();
        let a = OperandA::Shared(plain(0, m as u64 / 2 * 16));
        i.execute(&mut ctas, &operands(0, a, plain(8192, 512), false))
            .unwrap();
        for (c, tensor) in tensor.iter().enumerate() {
            for row in [0, 33, m / 2 - 1] {
                for column in [0, 31, 32, 63] {
                    let (lane, at) = if m == 256 {
                        (row, column)
                    } else {
                        (row + 64 * (column / 32), column % 32)
                    };
                    let got = f32::from_bits(tensor.get(lane, at).unwrap());
                    assert_eq!(
                        f64::from(got),
                        dot(c * m / 2 + row, column, 16, Format::F16)
                    );
                }
            }
        }
    }
}

#[test]
fn a_in_tensor_memory() {
    let i = Instruction::decode(Kind::F16, idesc(128, 16, 0, 0, 1), 1).unwrap();
    let (mut shared, mut tensor) = (Flat::new(1 << 16), TensorMemory::default());
    tensor.allocate(64).unwrap();
    place(&mut shared, 8192, 16, 1000, Format::F16, 8);
    for row in 0..128 {
        for column in 0..8 {
            let x = |k| Format::F16.from_f64(value(row, k), Round::Nearest, false) as u32;
            tensor
                .set(row, 32 + column, x(2 * column) | x(2 * column + 1) << 16)
                .unwrap();
        }
    }
    let mut ctas = [Cta {
        tensor: &mut tensor,
        shared: &mut shared,
    }];
    i.execute(
        &mut ctas,
        &operands(0, OperandA::Tensor(32), plain(8192, 256), false),
    )
    .unwrap();
    for (row, column) in [(0, 0), (77, 9), (127, 15)] {
        let got = f32::from_bits(tensor.get(row, column).unwrap());
        assert_eq!(f64::from(got), dot(row, column, 16, Format::F16));
    }
}

#[test]
fn block_scales_multiply_their_blocks() {
    for (kind, code, format, block) in [
        (Kind::Mxf8f6f4, 0, Format::E4m3, 32),
        (Kind::Mxf4, 1, Format::E2m1, 32),
        (Kind::Mxf4nvf4, 1, Format::E2m1, 16),
    ] {
        let ue8m0 = kind != Kind::Mxf4nvf4;
        let bits = code << 7 | code << 10 | (16 / 8) << 17 | u32::from(ue8m0) << 23 | 1 << 27;
        let i = Instruction::decode(kind, bits, 1).unwrap();
        assert_eq!((i.m, i.n, i.ue8m0), (128, 16, ue8m0));
        let (mut shared, mut tensor) = (Flat::new(1 << 16), TensorMemory::default());
        tensor.allocate(64).unwrap();
        let per = kind.k() / 2;
        place(&mut shared, 0, 128, 0, format, per);
        place(&mut shared, 8192, 16, 1000, format, per);
        // Scale of row r, block j: 2^((r + j) % 3).
        let scale = |r: usize, j: usize| ((r + j) % 3) as i32;
        let code_of = |e: i32| {
            if ue8m0 {
                (127 + e) as u32
            } else {
                (7 + e as u32) << 3
            }
        };
        for r in 0..128 {
            let word = (0..4).fold(0, |w, j| w | code_of(scale(r, j)) << (8 * j));
            tensor.set(r % 32, 32 + r / 32, word).unwrap();
            tensor.set(r % 32, 40 + r / 32, word).unwrap();
        }
        let o = Operands {
            scales: Some([32, 40]),
            block,
            ..operands(0, OperandA::Shared(plain(0, 2048)), plain(8192, 256), false)
        };
        let mut ctas = [Cta {
            tensor: &mut tensor,
            shared: &mut shared,
        }];
        i.execute(&mut ctas, &o).unwrap();
        let r = |x: f64| format.to_f64(format.from_f64(x, Round::Nearest, true));
        for (row, column) in [(0, 0), (50, 7), (127, 15)] {
            let want: f64 = (0..kind.k())
                .map(|k| {
                    let e = scale(row, k / block) + scale(column, k / block);
                    r(value(row, k)) * r(value(1000 + column, k)) * f64::powi(2.0, e)
                })
                .sum();
            let got = f32::from_bits(tensor.get(row, column).unwrap());
            assert_eq!(f64::from(got), want, "{kind:?} {row},{column}");
        }
        let missing = i.execute(
            &mut [Cta {
                tensor: &mut tensor,
                shared: &mut shared,
            }],
            &Operands { scales: None, ..o },
        );
        assert!(missing.is_err());
    }
}

#[test]
fn regions_are_what_is_written() {
    for (m, pair) in [(64, false), (128, false), (128, true), (256, true)] {
        let count = if pair { 2 } else { 1 };
        let i = Instruction::decode(Kind::F16, idesc(m, 64, 0, 0, 1), count).unwrap();
        let mut shared: Vec<Flat> = (0..count).map(|_| Flat::new(1 << 16)).collect();
        let mut tensor: Vec<TensorMemory> = (0..count).map(|_| TensorMemory::default()).collect();
        tensor.iter_mut().for_each(|t| {
            t.allocate(128).unwrap();
        });
        let a = OperandA::Shared(plain(0, u64::from(m) / count as u64 * 16));
        let o = operands(32, a, plain(8192, 512), false);
        let mut ctas: Vec<Cta<'_>> = tensor
            .iter_mut()
            .zip(&mut shared)
            .map(|(tensor, shared)| Cta { tensor, shared })
            .collect();
        i.execute(&mut ctas, &o).unwrap();
        let regions = i.regions(count, &o);
        for (c, t) in tensor.iter().enumerate() {
            for lane in 0..128 {
                for column in 0..128 {
                    let named = regions.iter().any(|r| {
                        r.cta == c && r.lanes.contains(&lane) && r.columns.contains(&column)
                    });
                    assert_eq!(
                        named,
                        t.get(lane, column).is_ok(),
                        "{m} {c} {lane} {column}"
                    );
                }
            }
        }
    }
}

#[test]
fn descriptors_are_checked() {
    assert!(matches!(descriptor(2 << 46), Err(Fault::Invalid(_))));
    assert!(descriptor(0).is_ok());
    assert!(matches!(
        descriptor(K_MAJOR | 1 << 61),
        Err(Fault::Unsupported(_))
    ));
    assert!(matches!(
        descriptor(K_MAJOR | 3 << 61),
        Err(Fault::Invalid(_))
    ));
    assert_eq!(
        descriptor(K_MAJOR | 2 << 61).unwrap().swizzle,
        Swizzle::B128
    );
    for bits in [
        idesc(128, 24, 0, 0, 1),
        idesc(96, 16, 0, 0, 1),
        idesc(128, 16, 3, 0, 1),
        idesc(128, 16, 0, 0, 2),
    ] {
        assert!(
            matches!(
                Instruction::decode(Kind::F16, bits, 1),
                Err(Fault::Invalid(_))
            ),
            "{bits:#x}"
        );
    }
    assert!(matches!(
        Instruction::decode(Kind::F16, 4, 1),
        Err(Fault::Unsupported(_))
    ));
}

proptest! {
    #[test]
    fn hostile_operands_never_panic(bits: u32, a: u64, b: u64, d: u32, kind in 0usize..7, pair: bool, scale: u32, block in 0usize..40) {
        let kinds = [Kind::F16, Kind::Tf32, Kind::F8f6f4, Kind::I8, Kind::Mxf8f6f4, Kind::Mxf4, Kind::Mxf4nvf4];
        let count = if pair { 2 } else { 1 };
        let Ok(i) = Instruction::decode(kinds[kind], bits & !4, count) else { return Ok(()) };
        let mut tensors = vec![TensorMemory::default(); count];
        let mut shared: Vec<Flat> = (0..count).map(|_| Flat::new(1 << 18)).collect();
        let fix = |x: u64| (x & !(7 << 46) & !(0x1ff << 52)) | 1 << 46;
        let mut ctas: Vec<Cta<'_>> = tensors.iter_mut().zip(&mut shared).map(|(tensor, shared)| Cta { tensor, shared }).collect();
        let o = Operands { d, a: OperandA::Shared(fix(a)), b: fix(b), accumulate: pair, scale_d: scale, scales: Some([d, scale]), block, disabled: [u128::from(a), 0] };
        let _ = i.execute(&mut ctas, &o);
    }
}
