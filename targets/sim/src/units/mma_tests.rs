//! Tests of [`super`].

use super::*;

fn lcg(state: &mut u64) -> u32 {
    *state = state
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    (*state >> 33) as u32
}

/// Fragment positions as PTX ISA's figures give them, one formula per shape, written out.
fn isa_a(m: &Mma, lane: usize, i: usize) -> (usize, usize) {
    let (g, t) = (lane >> 2, lane % 4);
    match (m.m, m.k, m.a.bits()) {
        (16, 16, 16) => (
            if i < 2 || (4..6).contains(&i) {
                g
            } else {
                g + 8
            },
            if i < 4 {
                t * 2 + (i & 1)
            } else {
                t * 2 + (i & 1) + 8
            },
        ),
        (16, 8, 16) => (if i < 2 { g } else { g + 8 }, t * 2 + (i & 1)),
        (16, 4, 32) => (if i == 0 { g } else { g + 8 }, t),
        (16, 8, 32) => (g + 8 * (i & 1), if i < 2 { t } else { t + 4 }),
        (16, 32, 8) => (
            if i < 4 || (8..12).contains(&i) {
                g
            } else {
                g + 8
            },
            if i < 8 {
                t * 4 + (i & 3)
            } else {
                t * 4 + (i & 3) + 16
            },
        ),
        (16, 16, 8) => (if i < 4 { g } else { g + 8 }, t * 4 + (i & 3)),
        (16, 64, 4) => (
            if i < 8 || (16..24).contains(&i) {
                g
            } else {
                g + 8
            },
            if i < 16 {
                t * 8 + (i & 7)
            } else {
                t * 8 + (i & 7) + 32
            },
        ),
        (16, 32, 4) => (if i < 8 { g } else { g + 8 }, t * 8 + (i & 7)),
        (8, 16, 8) => (g, t * 4 + i),
        (8, 32, 4) => (g, t * 8 + i),
        other => panic!("no formula for {other:?}"),
    }
}

fn isa_b(m: &Mma, lane: usize, i: usize) -> (usize, usize) {
    let (g, t) = (lane >> 2, lane % 4);
    let row = match (m.k, m.b.bits()) {
        (16, 16) => {
            if i < 2 {
                t * 2 + (i & 1)
            } else {
                t * 2 + (i & 1) + 8
            }
        }
        (8, 16) => t * 2 + i,
        (4, 32) => t,
        (8, 32) => {
            if i == 0 {
                t
            } else {
                t + 4
            }
        }
        (32, 8) => {
            if i < 4 {
                t * 4 + (i & 3)
            } else {
                t * 4 + (i & 3) + 16
            }
        }
        (16, 8) => t * 4 + (i & 3),
        (64, 4) => {
            if i < 8 {
                t * 8 + (i & 7)
            } else {
                t * 8 + (i & 7) + 32
            }
        }
        (32, 4) => t * 8 + (i & 7),
        other => panic!("no formula for {other:?}"),
    };
    (row, g)
}

fn element(regs: &[Warp<u32>], bits: u32, lane: usize, i: usize) -> u32 {
    let per = (32 / bits) as usize;
    let word = regs[i / per][lane];
    if bits == 32 {
        word
    } else {
        word >> ((i % per) as u32 * bits) & ((1 << bits) - 1)
    }
}

fn shapes() -> Vec<Mma> {
    let f = |f| Element::Float(f);
    let int = |bits| Element::Int { signed: true, bits };
    let mut all = Vec::new();
    let mut add = |m, k, a, b, acc| {
        all.push(Mma {
            m,
            n: 8,
            k,
            a,
            b,
            c: acc,
            d: acc,
            satfinite: false,
            bit_op: None,
        })
    };
    for k in [8, 16] {
        add(16, k, f(Format::F16), f(Format::F16), Accumulator::F32);
        add(16, k, f(Format::Bf16), f(Format::Bf16), Accumulator::F32);
    }
    add(16, 16, f(Format::F16), f(Format::F16), Accumulator::F16);
    for k in [4, 8] {
        add(16, k, f(Format::Tf32), f(Format::Tf32), Accumulator::F32);
    }
    for k in [16, 32] {
        add(16, k, f(Format::E4m3), f(Format::E5m2), Accumulator::F32);
        add(
            16,
            k,
            int(8),
            Element::Int {
                signed: false,
                bits: 8,
            },
            Accumulator::S32,
        );
    }
    for k in [32, 64] {
        add(16, k, int(4), int(4), Accumulator::S32);
    }
    add(8, 16, int(8), int(8), Accumulator::S32);
    add(8, 32, int(4), int(4), Accumulator::S32);
    all
}

/// Small integers are exact in every format and every order, so a plain sum is the reference.
#[test]
fn fragments_follow_the_isa_and_products_are_right() {
    let mut seed = 7;
    for mma in shapes() {
        let [na, nb, nc, nd] = mma.registers();
        let random = |count: usize, e: Element, seed: &mut u64| -> Vec<Warp<u32>> {
            let bits = e.bits();
            let mut regs = vec![[0; 32]; count];
            for reg in &mut regs {
                for word in reg.iter_mut() {
                    for i in 0..32 / bits {
                        let raw = match e {
                            Element::Float(f) => {
                                let v = f64::from(lcg(seed) % 5) - 2.0;
                                f.from_f64(v, Round::Nearest, true) as u32
                            }
                            _ => lcg(seed) & ((1 << bits) - 1),
                        };
                        *word |= raw << (i * bits);
                    }
                }
            }
            regs
        };
        let a = random(na, mma.a, &mut seed);
        let b = random(nb, mma.b, &mut seed);
        let c = match mma.c {
            Accumulator::F16 => random(nc, Element::Float(Format::F16), &mut seed),
            Accumulator::F32 => random(nc, Element::Float(Format::F32), &mut seed),
            _ => random(
                nc,
                Element::Int {
                    signed: true,
                    bits: 8,
                },
                &mut seed,
            ),
        };
        let d = mma.execute(Generation::Hopper, &a, &b, &c).unwrap();
        assert_eq!(d.len(), nd);
        let number = |e: Element, raw: u32| match e {
            Element::Float(f) => f.to_f64(u64::from(raw)),
            e => f64::from(signed(e, raw)),
        };
        let mut ma = vec![vec![0.0; mma.k]; mma.m];
        let mut mb = vec![vec![0.0; 8]; mma.k];
        for lane in 0..32 {
            for i in 0..na * 32 / mma.a.bits() as usize {
                let (r, k) = isa_a(&mma, lane, i);
                ma[r][k] = number(mma.a, element(&a, mma.a.bits(), lane, i));
            }
            for i in 0..nb * 32 / mma.b.bits() as usize {
                let (k, n) = isa_b(&mma, lane, i);
                mb[k][n] = number(mma.b, element(&b, mma.b.bits(), lane, i));
            }
        }
        for lane in 0..32 {
            for i in 0..mma.m * 8 / 32 {
                let row = (lane >> 2) + if i < 2 { 0 } else { 8 };
                let col = (lane % 4) * 2 + (i & 1);
                let acc = |regs: &[Warp<u32>], t| match t {
                    Accumulator::F16 => {
                        number(Element::Float(Format::F16), element(regs, 16, lane, i))
                    }
                    Accumulator::F32 => f64::from(f32::from_bits(regs[i][lane])),
                    _ => f64::from(regs[i][lane] as i32),
                };
                let dot: f64 = (0..mma.k).map(|k| ma[row][k] * mb[k][col]).sum();
                assert_eq!(acc(&d, mma.d), acc(&c, mma.c) + dot, "{mma:?}");
            }
        }
    }
}

#[test]
fn bits_and_doubles() {
    let mma = Mma {
        m: 16,
        n: 8,
        k: 256,
        a: Element::Bit,
        b: Element::Bit,
        c: Accumulator::S32,
        d: Accumulator::S32,
        satfinite: false,
        bit_op: Some(BitOp::Xor),
    };
    let a = vec![[u32::MAX; 32]; 4];
    let b = vec![[0x0f0f_0f0f; 32]; 2];
    let c = vec![[1; 32]; 4];
    let d = mma.execute(Generation::Hopper, &a, &b, &c).unwrap();
    assert!(d.iter().flatten().all(|x| *x == 129));
    let f64 = Element::Float(Format::F64);
    for (m, k) in [(8, 4), (16, 4), (16, 8), (16, 16)] {
        let mma = Mma {
            m,
            n: 8,
            k,
            a: f64,
            b: f64,
            c: Accumulator::F64,
            d: Accumulator::F64,
            satfinite: false,
            bit_op: None,
        };
        let [na, nb, nc, _] = mma.registers();
        assert_eq!((na, nb, nc), (m * k / 32, k / 4, m / 4));
        // A(row, k) = row + k / 32, B(k, col) = 1 if k == 3 else 0, so D(row, col) = C + A(row, 3).
        let a: Vec<_> = (0..na)
            .map(|r| {
                std::array::from_fn(|lane| {
                    let row = lane / 4 + 8 * (r % (m / 8));
                    let k = (r / (m / 8)) * 4 + lane % 4;
                    (row as f64 + k as f64 / 32.0).to_bits()
                })
            })
            .collect();
        let b: Vec<_> = (0..nb)
            .map(|r| {
                std::array::from_fn(|lane| f64::from(u8::from(r * 4 + lane % 4 == 3)).to_bits())
            })
            .collect();
        let c = vec![[1.0f64.to_bits(); 32]; nc];
        let d = mma.execute_f64(&a, &b, &c).unwrap();
        for (i, reg) in d.iter().enumerate() {
            for (lane, x) in reg.iter().enumerate() {
                let row = accumulator_position(lane, i).0 as f64;
                assert_eq!(f64::from_bits(*x), 1.0 + row + 3.0 / 32.0);
            }
        }
    }
}

#[test]
fn undefined_shapes_and_counts_are_refused() {
    let f = Element::Float(Format::F16);
    let mut mma = Mma {
        m: 8,
        n: 8,
        k: 4,
        a: f,
        b: f,
        c: Accumulator::F32,
        d: Accumulator::F32,
        satfinite: false,
        bit_op: None,
    };
    assert!(matches!(
        mma.execute(Generation::Hopper, &[], &[], &[]),
        Err(Fault::Unsupported(_))
    ));
    (mma.m, mma.k) = (16, 16);
    assert!(matches!(
        mma.execute(Generation::Hopper, &[], &[], &[]),
        Err(Fault::Invalid(_))
    ));
}
