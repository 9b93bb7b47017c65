//! Tests of [`super`].

use super::*;
use crate::units::float::Round;
use crate::units::testing::Flat;
use proptest::prelude::*;

fn f16(n: usize) -> Wgmma {
    let f = Element::Float(Format::F16);
    Wgmma {
        n,
        k: 16,
        a: f,
        b: f,
        d: Accumulator::F32,
        trans_a: false,
        trans_b: false,
        negate_a: false,
        negate_b: false,
        satfinite: false,
    }
}

/// Writes a rows x k operand of 2-byte elements as TMA would lay it out: rows of one swizzle span.
fn place(
    m: &mut Flat,
    start: u64,
    swizzle: Swizzle,
    lines: usize,
    line_bytes: usize,
    at: impl Fn(usize, usize) -> u16,
) {
    let w = swizzle.span() as usize;
    for line in 0..lines {
        for e in 0..line_bytes / 2 {
            let (span, byte) = (e * 2 / w, e * 2 % w);
            let linear = start + (span * lines * w + line * w + byte) as u64;
            let to = swizzle.apply(linear, 0) as usize;
            m.0[to..to + 2].copy_from_slice(&at(line, e).to_le_bytes());
        }
    }
}

fn value(i: usize, j: usize) -> f64 {
    ((i * 7 + j * 13) % 17) as f64 - 8.0
}

fn code(i: usize, j: usize) -> u16 {
    Format::F16.from_f64(value(i, j), Round::Nearest, false) as u16
}

fn check_product(w: &Wgmma, d: &[Warpgroup], c: f64, sign: f64) {
    for (i, register) in d.iter().enumerate() {
        for (t, x) in register.iter().enumerate() {
            let row = 16 * (t / 32) + (t % 32) / 4 + if i % 4 < 2 { 0 } else { 8 };
            let col = 8 * (i / 4) + 2 * (t % 4) + i % 2;
            let dot: f64 = (0..16).map(|k| value(row, k) * value(100 + col, k)).sum();
            assert_eq!(
                f64::from(f32::from_bits(*x)),
                c + sign * dot,
                "{w:?} at {row},{col}"
            );
        }
    }
}

#[test]
fn k_major_operands_under_every_swizzle() {
    for swizzle in [Swizzle::B128, Swizzle::B64, Swizzle::B32] {
        for n in [8, 24, 64, 256] {
            let span = swizzle.span();
            let mut m = Flat::new(1 << 18);
            let steps = span as usize / 32;
            place(&mut m, 0, swizzle, 64, span as usize, |i, k| {
                code(i, k % 16)
            });
            place(&mut m, 65536, swizzle, n, span as usize, |j, k| {
                code(100 + j, k % 16)
            });
            let w = f16(n);
            for step in 0..steps {
                let descriptor = |start: u64| {
                    Descriptor {
                        start: start + step as u64 * 32,
                        leading: 16,
                        stride: 8 * span,
                        base_offset: 0,
                        swizzle,
                    }
                    .encode()
                };
                let mut d = vec![[1.0f32.to_bits(); 128]; n / 2];
                w.execute(
                    &mut m,
                    OperandA::Shared(descriptor(0)),
                    descriptor(65536),
                    true,
                    &mut d,
                )
                .unwrap();
                check_product(&w, &d, 1.0, 1.0);
            }
        }
    }
}

#[test]
fn k_major_without_swizzle_uses_both_offsets() {
    let mut m = Flat::new(1 << 18);
    let put = |m: &mut Flat, base: u64, lead: u64, stride: u64, rows: usize, shift: usize| {
        for i in 0..rows {
            for k in 0..16 {
                let at = base
                    + (i as u64 / 8) * stride
                    + (i as u64 % 8) * 16
                    + (k as u64 / 8) * lead
                    + (k as u64 % 8) * 2;
                m.0[at as usize..at as usize + 2]
                    .copy_from_slice(&code(shift + i, k).to_le_bytes());
            }
        }
    };
    put(&mut m, 0, 128, 256, 64, 0);
    put(&mut m, 32768, 2048, 128, 128, 100);
    let w = f16(128);
    let a = Descriptor {
        start: 0,
        leading: 128,
        stride: 256,
        base_offset: 0,
        swizzle: Swizzle::None,
    };
    let b = Descriptor {
        start: 32768,
        leading: 2048,
        stride: 128,
        base_offset: 0,
        swizzle: Swizzle::None,
    };
    let mut d = vec![[0; 128]; 64];
    w.execute(
        &mut m,
        OperandA::Shared(a.encode()),
        b.encode(),
        false,
        &mut d,
    )
    .unwrap();
    check_product(&w, &d, 0.0, 1.0);
}

#[test]
fn mn_major_operands_under_every_swizzle() {
    for swizzle in [Swizzle::B128, Swizzle::B64, Swizzle::B32] {
        let span = swizzle.span();
        let n = 128;
        let mut m = Flat::new(1 << 18);
        // Lines are the 16 rows of K; each span of M or N follows the other after 16 lines.
        place(&mut m, 0, swizzle, 16, 64 * 2, |k, i| code(i, k));
        place(&mut m, 65536, swizzle, 16, n * 2, |k, j| code(100 + j, k));
        let w = Wgmma {
            trans_a: true,
            trans_b: true,
            negate_a: true,
            ..f16(n)
        };
        let descriptor = |start| {
            Descriptor {
                start,
                leading: 16 * span,
                stride: 8 * span,
                base_offset: 0,
                swizzle,
            }
            .encode()
        };
        let mut d = vec![[0; 128]; n / 2];
        w.execute(
            &mut m,
            OperandA::Shared(descriptor(0)),
            descriptor(65536),
            false,
            &mut d,
        )
        .unwrap();
        check_product(&w, &d, 0.0, -1.0);
    }
}

#[test]
fn a_in_registers_and_half_accumulators() {
    let mut m = Flat::new(1 << 18);
    place(&mut m, 0, Swizzle::B128, 16, 128, |j, k| {
        code(100 + j, k % 16)
    });
    let b = Descriptor {
        start: 0,
        leading: 16,
        stride: 1024,
        base_offset: 0,
        swizzle: Swizzle::B128,
    };
    let a: Vec<Warpgroup> = (0..4)
        .map(|r| {
            std::array::from_fn(|t| {
                let row = 16 * (t / 32) + (t % 32) / 4 + if r % 2 == 0 { 0 } else { 8 };
                let k = 2 * (t % 4) + if r < 2 { 0 } else { 8 };
                u32::from(code(row, k)) | u32::from(code(row, k + 1)) << 16
            })
        })
        .collect();
    let w = f16(16);
    let mut d = vec![[0; 128]; 8];
    w.execute(&mut m, OperandA::Registers(&a), b.encode(), false, &mut d)
        .unwrap();
    check_product(&w, &d, 0.0, 1.0);
    let w = Wgmma {
        d: Accumulator::F16,
        ..w
    };
    let mut h = vec![[0; 128]; 4];
    w.execute(&mut m, OperandA::Registers(&a), b.encode(), false, &mut h)
        .unwrap();
    for i in 0..8 {
        for t in 0..128 {
            let single = f32::from_bits(d[i][t]);
            let half = (h[i / 2][t] >> (16 * (i % 2))) as u16;
            assert_eq!(half::f16::from_bits(half).to_f32(), single);
        }
    }
}

#[test]
fn bytes_and_integers() {
    let int = |signed| Element::Int { signed, bits: 8 };
    let w = Wgmma {
        k: 32,
        a: int(true),
        b: int(false),
        d: Accumulator::S32,
        ..f16(48)
    };
    let mut m = Flat::new(1 << 18);
    for row in 0..64 {
        for k in 0..32 {
            m.0[Swizzle::B32.apply(row * 32 + k, 0) as usize] =
                (row as u8).wrapping_mul(5).wrapping_add(k as u8);
            m.0[Swizzle::B32.apply(8192 + row * 32 + k, 0) as usize] =
                (row as u8).wrapping_mul(11) ^ (k as u8);
        }
    }
    let descriptor = |start| {
        Descriptor {
            start,
            leading: 16,
            stride: 256,
            base_offset: 0,
            swizzle: Swizzle::B32,
        }
        .encode()
    };
    let mut d = vec![[7; 128]; 24];
    w.execute(
        &mut m,
        OperandA::Shared(descriptor(0)),
        descriptor(8192),
        true,
        &mut d,
    )
    .unwrap();
    for (i, register) in d.iter().enumerate() {
        for (t, x) in register.iter().enumerate() {
            let row = 16 * (t / 32) + (t % 32) / 4 + if i % 4 < 2 { 0 } else { 8 };
            let col = 8 * (i / 4) + 2 * (t % 4) + i % 2;
            let dot: i32 = (0..32u8)
                .map(|k| {
                    let a = (row as u8).wrapping_mul(5).wrapping_add(k) as i8;
                    let b = (col as u8).wrapping_mul(11) ^ k;
                    i32::from(a) * i32::from(b)
                })
                .sum();
            assert_eq!(*x as i32, dot + 7);
        }
    }
}

#[test]
fn undefined_forms_are_refused() {
    for w in [
        Wgmma { n: 12, ..f16(8) },
        Wgmma { n: 264, ..f16(8) },
        Wgmma { k: 8, ..f16(8) },
        Wgmma {
            d: Accumulator::F64,
            ..f16(8)
        },
        Wgmma {
            a: Element::Float(Format::Bf16),
            ..f16(8)
        },
    ] {
        let mut d = vec![[0; 128]; w.n / 2];
        let got = w.execute(&mut Flat::new(16), OperandA::Shared(0), 0, false, &mut d);
        assert!(matches!(got, Err(Fault::Unsupported(_))), "{w:?}");
    }
    let got = f16(8).execute(&mut Flat::new(16), OperandA::Shared(0), 0, false, &mut []);
    assert!(matches!(got, Err(Fault::Invalid(_))));
    let got = f16(8).execute(
        &mut Flat::new(16),
        OperandA::Registers(&[]),
        0,
        false,
        &mut [[0; 128]; 4],
    );
    assert!(matches!(got, Err(Fault::Invalid(_))));
}

proptest! {
    #[test]
    fn descriptors_keep_every_field(bits: u64) {
        let used = 0x3fff | 0x3fff << 16 | 0x3fff << 32 | 7 << 49 | 3 << 62;
        prop_assert_eq!(Descriptor::decode(bits).encode(), bits & used);
    }

    #[test]
    fn hostile_descriptors_never_panic(a: u64, b: u64, trans: bool, n in 1usize..40) {
        let w = Wgmma { trans_a: trans, trans_b: trans, ..f16(n * 8) };
        let mut d = vec![[0; 128]; w.d_registers()];
        let _ = w.execute(&mut Flat::new(4096), OperandA::Shared(a), b, true, &mut d);
    }
}
