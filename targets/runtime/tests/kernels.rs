//! The bench's own kernels in the simulator: random numbers, and comparison.

use axe_package::{DType, POISON, Tensor, Tolerance, compare};
use axe_sim::{Arg, Device, Launch, Module, Simulator};

fn module(parts: &[&str]) -> Module {
    let head = ".version 8.1\n.target sm_89\n.address_size 64\n";
    Module::parse(&format!("{head}{}", parts.concat())).unwrap()
}

/// What a fill kernel writes into `words` words.
fn filled(entry: &str, words: u64, seed: u32) -> Vec<u8> {
    let fill = include_str!("../src/bench/fill.ptx");
    let module = module(&[fill, include_str!("../src/bench/fill_f8.ptx")]);
    let mut device = Device::new();
    let buffer = device.alloc("out", words * 4).unwrap();
    device
        .copy_in(buffer, &vec![POISON; words as usize * 4])
        .unwrap();
    let args = vec![Arg::Ptr(buffer), Arg::U64(words), Arg::U32(seed)];
    let report = Simulator::default()
        .run(&mut device, &module, &Launch::new(entry, 4, 256, args))
        .unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let mut out = vec![0; words as usize * 4];
    device.copy_out(buffer, &mut out).unwrap();
    out
}

fn moments(values: &[f64]) -> [f64; 4] {
    [1, 2, 3, 4].map(|p| values.iter().map(|v| v.powi(p)).sum::<f64>() / values.len() as f64)
}

#[test]
fn operands_are_standard_normal() {
    for (entry, dtype) in [
        ("fill_f16", DType::F16),
        ("fill_bf16", DType::BF16),
        ("fill_f8e4m3", DType::F8E4M3),
        ("fill_f8e5m2", DType::F8E5M2),
    ] {
        let bytes = filled(entry, 20_000, 7);
        let elements = bytes.chunks_exact(dtype.bytes());
        let values: Vec<f64> = elements.map(|e| dtype.to_f64(e).unwrap()).collect();
        let [mean, square, cube, fourth] = moments(&values);
        // Four standard errors of 40000 samples, and what rounding to 2 or 3 bits adds.
        assert!(mean.abs() < 0.02, "{entry} {mean}");
        assert!((square - 1.0).abs() < 0.04, "{entry} {square}");
        assert!(cube.abs() < 0.08, "{entry} {cube}");
        assert!((fourth - 3.0).abs() < 0.35, "{entry} {fourth}");
        assert!(values.iter().all(|v| v.abs() < 5.5), "{entry}");
        assert_ne!(bytes, filled(entry, 20_000, 8), "{entry}");
    }
}

#[test]
fn scales_are_uniform() {
    let bytes = filled("fill_scale", 4000, 3);
    let values: Vec<f64> = bytes
        .chunks_exact(4)
        .map(|e| DType::F32.to_f64(e).unwrap())
        .collect();
    assert!(values.iter().all(|v| (0.5..1.5).contains(v)));
    assert!((moments(&values)[0] - 1.0).abs() < 0.02);
}

/// The eight words that the comparison writes.
fn compared(got: &[u8], want: &[u8], absolute: f32, relative: f32, bf16: bool) -> [u64; 8] {
    let module = module(&[include_str!("../src/bench/compare.ptx")]);
    let mut device = Device::new();
    let mut buffer = |name: &str, bytes: &[u8]| {
        let at = device.alloc(name, bytes.len() as u64).unwrap();
        device.copy_in(at, bytes).unwrap();
        at
    };
    let (g, w) = (buffer("got", got), buffer("want", want));
    let out = buffer("out", &[0; 64]);
    let args = vec![
        Arg::Ptr(g),
        Arg::Ptr(w),
        Arg::U64(got.len() as u64 / 2),
        Arg::Ptr(out),
        Arg::F32(relative),
        Arg::F32(absolute),
        Arg::U32(u32::from(bf16)),
    ];
    let report = Simulator::default()
        .run(&mut device, &module, &Launch::new("compare16", 3, 64, args))
        .unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let mut bytes = [0; 64];
    device.copy_out(out, &mut bytes).unwrap();
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|i| u64::from_le_bytes(words[i]))
}

#[test]
fn the_device_compares_as_the_host_does() {
    let entry = [(DType::F16, "fill_f16"), (DType::BF16, "fill_bf16")];
    for (dtype, entry) in entry {
        let want = filled(entry, 1500, 1);
        let mut got = want.clone();
        let mut set = |i: usize, v: [u8; 2]| got[2 * i..2 * i + 2].copy_from_slice(&v);
        let code = |v: f64| {
            let mut out = Vec::new();
            dtype.push_f64(v, &mut out);
            [out[0], out[1]]
        };
        set(5, [POISON; 2]);
        set(6, code(f64::INFINITY));
        set(7, code(f64::NAN));
        set(8, code(100.0));
        for i in 20..40 {
            let value = dtype.to_f64(&want[2 * i..2 * i + 2]).unwrap();
            set(
                i,
                code(value * (1.0 + dtype.unit_roundoff().unwrap() * 2.0)),
            );
        }
        let tensor = |b: &[u8]| Tensor::new(dtype, vec![3000], b.to_vec()).unwrap();
        let tolerance = Tolerance::for_dtype(dtype);
        let host = compare(&tensor(&got), &tensor(&want), tolerance).unwrap();
        let bf16 = dtype == DType::BF16;
        let element = tolerance.element as f32;
        let first = compared(&got, &want, f32::INFINITY, element, bf16);
        let rms = (f64::from_bits(first[1]) / 3000.0).sqrt();
        let words = compared(&got, &want, (tolerance.element * rms) as f32, element, bf16);
        let norm = (f64::from_bits(words[0]) / f64::from_bits(words[1])).sqrt();
        assert!(
            (norm / host.norm_rel - 1.0).abs() < 1e-6,
            "{norm} {}",
            host.norm_rel
        );
        let differing = got.chunks_exact(2).zip(want.chunks_exact(2));
        let differing = differing.filter(|(g, w)| g != w).count();
        assert_eq!(words[2] as usize, differing);
        assert!(differing > 20);
        assert_eq!(words[3] as usize, host.mismatches);
        assert_eq!((words[4], words[5]), (1, host.unexpected_nans as u64));
        assert_eq!(host.mismatches, 4);
        let float = |w: u64| f64::from(f32::from_bits(w as u32));
        assert!((float(words[6]) / host.max_abs - 1.0).abs() < 1e-6);
        assert!((float(words[7]) / host.max_rel - 1.0).abs() < 1e-6);
        assert_eq!(compared(&want, &want, 0.0, element, bf16)[2..4], [0, 0]);
    }
}
