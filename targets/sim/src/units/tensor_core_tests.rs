//! Tests of [`super`].

use super::*;
use proptest::prelude::*;

/// The definition in rational arithmetic over doubles: exact while exponents stay close.
fn reference(model: &Model, a: &[f64], b: &[f64], c: f32) -> f32 {
    let exponent = |x: f64, min: i32| (x.abs().log2().floor() as i32).max(min);
    let mut terms = vec![(f64::from(c), exponent(f64::from(c), -126))];
    for (x, y) in a.iter().zip(b) {
        terms.push((x * y, exponent(*x, -14) + exponent(*y, -14)));
    }
    terms.retain(|t| t.0 != 0.0);
    let Some(top) = terms.iter().map(|t| t.1).max() else {
        return 0.0;
    };
    let unit = f64::powi(2.0, top - model.fraction_bits as i32);
    let sum: f64 = terms.iter().map(|t| (t.0 / unit).trunc()).sum::<f64>() * unit;
    match model.output {
        Output::F16 => half::f16::from_f64(sum).to_f32(),
        output => {
            let bits = if output == Output::F32 { 23 } else { 13 };
            let q = f64::powi(2.0, exponent(sum, -126) - bits);
            if sum == 0.0 {
                0.0
            } else {
                ((sum / q).trunc() * q) as f32
            }
        }
    }
}

fn tile(format: Format, values: &[f64]) -> (Tile, Vec<f64>) {
    let bits: Vec<u32> = values
        .iter()
        .map(|v| format.from_f64(*v, Round::Nearest, true) as u32)
        .collect();
    let rounded = bits.iter().map(|b| format.to_f64(u64::from(*b))).collect();
    (Tile::decode(format, values.len(), &bits), rounded)
}

fn one(model: &Model, format: Format, a: &[f64], b: &[f64], c: f32) -> f32 {
    let mut out = [c];
    multiply_add(model, &tile(format, a).0, &tile(format, b).0, &mut out);
    out[0]
}

#[test]
fn floats_and_integers_agree_on_any_chunk() {
    let mut state = 1_u64;
    let mut random = move || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        state >> 33
    };
    for format in [
        Format::F16,
        Format::Bf16,
        Format::Tf32,
        Format::E4m3,
        Format::E5m2,
        Format::E2m1,
    ] {
        for k in [3, 8, 16, 21, 64] {
            let model = Model {
                chunk: k,
                ..Model::wgmma(Format::F16, false)
            };
            for round in 0..400 {
                // Any codes, or exponents that lie near to one another, zeros among them.
                let mut tile = |spread: u64| {
                    let code = |r: u64| match (spread, r % 7) {
                        (_, 0) => 0,
                        (0, _) => r as u32,
                        _ => format.from_f64((r % 4096) as f64 / 256.0 - 8.0, Round::Nearest, true)
                            as u32,
                    };
                    let bits: Vec<u32> = (0..k).map(|_| code(random())).collect();
                    Tile::decode(format, k, &bits)
                };
                let (a, b) = (tile(round % 2), tile(round % 3));
                if a.special[0] || b.special[0] {
                    continue;
                }
                let (a, b) = (a.row(0), b.row(0));
                let products = a.exponent.iter().zip(b.exponent);
                let most: i32 = products.map(|(x, y)| i32::from(x + y)).max().unwrap();
                let shift = 25 - 2 * format.fraction_bits() as i32;
                for top in [most, most + 1, most + 30, most + 300] {
                    let Some(sum) = reduced_dot(&model, a, b, top) else {
                        continue;
                    };
                    assert_eq!(sum, aligned_dot(shift, a, b, top), "{format:?} {k} {top}");
                }
            }
        }
    }
}

#[test]
fn small_terms_are_cut_not_rounded() {
    let hopper = Model::wgmma(Format::F16, false);
    let tiny = f64::powi(2.0, -13);
    // 1 + 15 * 2^-26: each term lies below the 25 fraction bits that Hopper keeps.
    let mut a = vec![tiny; 16];
    a[0] = 1.0;
    let mut b = a.clone();
    b[0] = 1.0;
    assert_eq!(one(&hopper, Format::F16, &a, &b, 0.0), 1.0);
    // 1 + 4 * 2^-25 = 1 + 2^-23 is kept by the 25 bits of Hopper and lost by Ampere's 24.
    let mut a = vec![0.0; 16];
    let mut b = vec![0.0; 16];
    (a[0], b[0]) = (1.0, 1.0);
    for k in 1..5 {
        a[k] = f64::powi(2.0, -13);
        b[k] = f64::powi(2.0, -12);
    }
    assert_eq!(one(&hopper, Format::F16, &a, &b, 0.0), 1.0 + f32::EPSILON);
    let ampere = Model::mma(Generation::Ampere, Format::F16, false);
    assert_eq!(one(&ampere, Format::F16, &a, &b, 0.0), 1.0);
}

#[test]
fn fp8_wgmma_keeps_thirteen_bits() {
    let m = Model::wgmma(Format::E4m3, false);
    let mut a = vec![0.0; 32];
    a[0] = 1.0;
    let b = a.clone();
    assert_eq!(one(&m, Format::E4m3, &a, &b, f32::powi(2.0, -14)), 1.0);
    let kept = 1.0 + f32::powi(2.0, -13);
    assert_eq!(one(&m, Format::E4m3, &a, &b, f32::powi(2.0, -13)), kept);
}

#[test]
fn infinities_and_nans() {
    let m = Model::wgmma(Format::F16, false);
    let f = |a: f64, b: f64, c: f32| {
        let bits = |x: f64| vec![Format::F16.from_f64(x, Round::Nearest, false) as u32];
        let mut out = [c];
        let tile = |x| Tile::decode(Format::F16, 1, &bits(x));
        multiply_add(&m, &tile(a), &tile(b), &mut out);
        out[0]
    };
    assert_eq!(f(f64::INFINITY, 1.0, 0.0), f32::INFINITY);
    assert_eq!(f(f64::INFINITY, 0.0, 0.0).to_bits(), 0x7fff_ffff);
    assert_eq!(f(1.0, 1.0, f32::NEG_INFINITY), f32::NEG_INFINITY);
    assert!(f(f64::INFINITY, 1.0, f32::NEG_INFINITY).is_nan());
    assert!(f(f64::NAN, 1.0, 0.0).is_nan());
}

#[test]
fn integer_saturation() {
    let mut c = [i32::MAX];
    multiply_add_int(2, &[127, 127], &[127, 127], &mut c, true);
    assert_eq!(c[0], i32::MAX);
    multiply_add_int(2, &[1, 0], &[1, 0], &mut c, false);
    assert_eq!(c[0], i32::MIN);
}

proptest! {
    #[test]
    fn agrees_with_the_definition(
        a in prop::collection::vec((-2.0f64..2.0, -12i32..4), 16),
        b in prop::collection::vec((-2.0f64..2.0, -12i32..4), 16),
        c in -4.0f32..4.0,
        half: bool,
    ) {
        let scale = |v: &Vec<(f64, i32)>| v.iter().map(|(m, e)| m * f64::powi(2.0, *e)).collect::<Vec<_>>();
        for (format, model) in [
            (Format::F16, Model::wgmma(Format::F16, half)),
            (Format::E5m2, Model::wgmma(Format::E5m2, half)),
        ] {
            let (a, av) = tile(format, &scale(&a));
            let (b, bv) = tile(format, &scale(&b));
            let c = if half { half::f16::from_f32(c).to_f32() } else { c };
            let mut out = [c];
            multiply_add(&model, &a, &b, &mut out);
            prop_assert_eq!(out[0], reference(&model, &av, &bv, c));
        }
    }
}
