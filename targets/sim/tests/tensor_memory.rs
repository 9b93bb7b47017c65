//! Every kind of `tcgen05.mma`, `tcgen05.cp`, and the shapes of `tcgen05.ld` and `tcgen05.st`, from PTX,
//! against scalar loops over tables of codes.

mod common;

use axe_sim::{Arg, FindingKind, Launch};
use common::Given;
use proptest::prelude::*;

const N: usize = 16;
const A: usize = 0;
const B: usize = 8192;
const SCALES: usize = 12288;
const IMAGE: usize = 16384;

/// Codes of a format and their values.
#[derive(Clone, Copy)]
struct Format {
    bits: usize,
    codes: &'static [(u32, f64)],
}

const F16: Format = Format {
    bits: 16,
    codes: &[
        (0x3c00, 1.0),
        (0x4000, 2.0),
        (0xbc00, -1.0),
        (0x3800, 0.5),
        (0, 0.0),
    ],
};
const BF16: Format = Format {
    bits: 16,
    codes: &[
        (0x3f80, 1.0),
        (0x4000, 2.0),
        (0xbf80, -1.0),
        (0x3f00, 0.5),
        (0, 0.0),
    ],
};
const TF32: Format = Format {
    bits: 32,
    codes: &[
        (0x3f80_0000, 1.0),
        (0x4000_0000, 2.0),
        (0xbf80_0000, -1.0),
        (0x4040_0000, 3.0),
    ],
};
const E4M3: Format = Format {
    bits: 8,
    codes: &[
        (0x38, 1.0),
        (0x40, 2.0),
        (0xb8, -1.0),
        (0x30, 0.5),
        (0x44, 3.0),
    ],
};
const E5M2: Format = Format {
    bits: 8,
    codes: &[
        (0x3c, 1.0),
        (0x40, 2.0),
        (0xbc, -1.0),
        (0x38, 0.5),
        (0x42, 3.0),
    ],
};
const E2M3: Format = Format {
    bits: 6,
    codes: &[
        (0x08, 1.0),
        (0x10, 2.0),
        (0x28, -1.0),
        (0x04, 0.5),
        (0, 0.0),
    ],
};
const E3M2: Format = Format {
    bits: 6,
    codes: &[
        (0x0c, 1.0),
        (0x10, 2.0),
        (0x2c, -1.0),
        (0x08, 0.5),
        (0, 0.0),
    ],
};
const E2M1: Format = Format {
    bits: 4,
    codes: &[(0x2, 1.0), (0x4, 2.0), (0xa, -1.0), (0x1, 0.5), (0x7, 6.0)],
};
const S8: Format = Format {
    bits: 8,
    codes: &[
        (1, 1.0),
        (100, 100.0),
        (0xff, -1.0),
        (0x80, -128.0),
        (7, 7.0),
    ],
};
const U8: Format = Format {
    bits: 8,
    codes: &[
        (1, 1.0),
        (100, 100.0),
        (0xff, 255.0),
        (0x80, 128.0),
        (7, 7.0),
    ],
};
const UE8M0: Format = Format {
    bits: 8,
    codes: &[(127, 1.0), (128, 2.0), (126, 0.5)],
};
const UE4M3: Format = Format {
    bits: 8,
    codes: &[(0x38, 1.0), (0x40, 2.0), (0x30, 0.5)],
};

impl Format {
    fn pick(self, seed: usize) -> (u32, f64) {
        self.codes[(seed * 7 + seed / 5) % self.codes.len()]
    }
}

fn element(f: Format, which: usize, row: usize, k: usize) -> (u32, f64) {
    f.pick(which * 3 + row * 11 + k * 5 + row * k % 13)
}

/// An operand without swizzle: 16-byte units of K apart by `16 rows`, K/2 elements each.
fn place(image: &mut [u8], at: usize, f: Format, which: usize, rows: usize, k: usize) {
    for row in 0..rows {
        for unit in 0..2 {
            let elements = (0..k / 2).map(|i| element(f, which, row, unit * k / 2 + i).0);
            let word = elements
                .enumerate()
                .fold(0u128, |w, (i, code)| w | u128::from(code) << (i * f.bits));
            let to = at + unit * rows * 16 + row * 16;
            image[to..to + 16].copy_from_slice(&word.to_le_bytes());
        }
    }
}

fn scale(f: Format, which: usize, row: usize, block: usize) -> (u32, f64) {
    f.pick(which + row * 2 + block)
}

/// Scales as `tcgen05.cp.32x128b.warpx4` takes them: 32 rows of four words, word j for row r + 32 j.
fn place_scales(image: &mut [u8], at: usize, f: Format, which: usize, rows: usize) {
    for row in 0..rows {
        let word = (0..4).fold(0, |w, j| w | scale(f, which, row, j).0 << (8 * j));
        let to = at + row % 32 * 16 + row / 32 * 4;
        image[to..to + 4].copy_from_slice(&word.to_le_bytes());
    }
}

fn descriptor(at: usize, lead: usize) -> u64 {
    1 << 46 | (at as u64 >> 4) | (lead as u64 >> 4) << 16 | (128 >> 4) << 32
}

/// 128 threads bring the image to shared memory, one multiplies, all read 16 columns.
fn kernel(work: &str, columns: usize, before_load: &str) -> String {
    let regs: Vec<String> = (0..columns).map(|i| format!("%o{i}")).collect();
    let stores: String = (0..columns)
        .map(|i| format!("st.global.b32 [%d9+{}], %o{i};\n", 4 * i))
        .collect();
    format!(
        ".version 8.8\n.target sm_100a\n.address_size 64
.extern .shared .align 128 .b8 image[];
.visible .entry k(.param .u64 in, .param .u64 out, .param .u64 a, .param .u64 b, .param .u32 idesc)
{{
.reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %d<20>; .reg .b32 %o<{columns}>; .reg .b32 %v<9>;
.shared .align 8 .b64 done; .shared .b32 slot;
mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; mov.u32 %r2, image; mov.u32 %r3, done; mov.u32 %r4, slot;
ld.param.u64 %d0, [in]; cvta.to.global.u64 %d0, %d0; shl.b32 %r5, %r0, 4; cvt.u64.u32 %d1, %r5; add.s64 %d0, %d0, %d1;
add.u32 %r6, %r2, %r5; mov.u32 %r7, 0;
copy: ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%d0]; st.shared.v4.b32 [%r6], {{%v0, %v1, %v2, %v3}};
add.s64 %d0, %d0, 2048; add.u32 %r6, %r6, 2048; add.u32 %r7, %r7, 1; setp.lt.u32 %p0, %r7, {}; @%p0 bra copy;
fence.proxy.async.shared::cta; // proxy
setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
setp.eq.u32 %p2, %r1, 0; @!%p2 bra ready;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r4], 64;
ready: bar.sync 0;
ld.shared.u32 %r8, [%r4];
// The image's address in units of 16 bytes.
shr.u32 %r9, %r2, 4; cvt.u64.u32 %d2, %r9; ld.param.u64 %d3, [a]; add.s64 %d3, %d3, %d2; ld.param.u64 %d4, [b]; add.s64 %d4, %d4, %d2;
ld.param.u32 %r10, [idesc]; shl.b32 %r12, %r1, 21; add.u32 %r12, %r12, %r8;
{before_load}
@!%p1 bra wait;
{work}
tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%r3];
wait: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r3], 0; @!%p4 bra wait;
bar.warp.sync -1;
tcgen05.fence::after_thread_sync;
tcgen05.ld.sync.aligned.32x32b.x{columns}.b32 {{{}}}, [%r12];
tcgen05.wait::ld.sync.aligned;
ld.param.u64 %d8, [out]; cvta.to.global.u64 %d8, %d8; mul.wide.u32 %d9, %r0, {}; add.s64 %d9, %d8, %d9;
{stores}
bar.sync 0;
@!%p2 bra over;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r8, 64;
over: ret;
}}\n",
        IMAGE / 2048,
        regs.join(", "),
        4 * columns
    )
}

fn start(a: u64, b: u64, idesc: u32) -> (Launch, Vec<Arg>) {
    let mut launch = Launch::new("k", 1, 128, Vec::new());
    launch.smem = IMAGE as u64;
    (launch, vec![Arg::U64(a), Arg::U64(b), Arg::U32(idesc)])
}

fn given(image: &[u8], words: usize, args: &[Arg]) -> Vec<Given> {
    let mut all = vec![Given::In(image.to_vec()), Given::Out(4 * words)];
    all.extend(args.iter().cloned().map(Given::Value));
    all
}

fn results(text: &str, image: &[u8], words: usize, idesc: u32) -> Vec<u32> {
    let (launch, args) = start(descriptor(A, 2048), descriptor(B, 16 * N), idesc);
    let out = common::clean(text, &launch, || given(image, words, &args));
    common::to_words(&out[1])
}

struct Case {
    kind: &'static str,
    a: (Format, u32),
    b: (Format, u32),
    k: usize,
    /// Code of D's type.
    d: u32,
}

fn idesc(case: &Case) -> u32 {
    case.d << 4 | case.a.1 << 7 | case.b.1 << 10 | (N as u32 / 8) << 17
}

fn dot(case: &Case, row: usize, column: usize, scale: impl Fn(usize) -> f64) -> f64 {
    let product = |k| element(case.a.0, 0, row, k).1 * element(case.b.0, 1, column, k).1 * scale(k);
    (0..case.k).map(product).sum()
}

fn image(case: &Case) -> Vec<u8> {
    let mut image = vec![0; IMAGE];
    place(&mut image, A, case.a.0, 0, 128, case.k);
    place(&mut image, B, case.b.0, 1, N, case.k);
    image
}

#[test]
fn dense_kinds() {
    let case = |kind, a, b, k, d| Case { kind, a, b, k, d };
    for case in [
        case("f16", (F16, 0), (F16, 0), 16, 1),
        case("f16", (BF16, 1), (F16, 0), 16, 1),
        case("f16", (F16, 0), (F16, 0), 16, 0),
        case("tf32", (TF32, 2), (TF32, 2), 8, 1),
        case("f8f6f4", (E4M3, 0), (E5M2, 1), 32, 1),
        case("f8f6f4", (E2M3, 3), (E3M2, 4), 32, 1),
        case("f8f6f4", (E2M1, 5), (E4M3, 0), 32, 1),
        case("i8", (S8, 1), (U8, 0), 32, 2),
    ] {
        let work = format!(
            "tcgen05.mma.cta_group::1.kind::{kind}.collector::a::fill [%r8], %d3, %d4, %r10, 0;
tcgen05.mma.cta_group::1.kind::{kind}.collector::a::lastuse [%r8], %d3, %d4, %r10, 1;",
            kind = case.kind
        );
        let got = results(
            &kernel(&work, N, ""),
            &image(&case),
            128 * N,
            idesc(&case) | 8 << 24,
        );
        for row in 0..128 {
            for column in 0..N {
                let want = 2.0 * dot(&case, row, column, |_| 1.0);
                let word = got[row * N + column];
                let value = match case.d {
                    0 => half::f16::from_bits(word as u16).to_f64(),
                    1 => f64::from(f32::from_bits(word)),
                    _ => f64::from(word as i32),
                };
                assert_eq!(value, want, "{} {row}, {column}", case.kind);
            }
        }
    }
}

#[test]
fn block_scaled_kinds() {
    for (case, suffix, scales, block, ue8m0) in [
        (
            Case {
                kind: "mxf8f6f4",
                a: (E4M3, 0),
                b: (E2M1, 5),
                k: 32,
                d: 0,
            },
            ".scale_vec::1X",
            UE8M0,
            32,
            1,
        ),
        (
            Case {
                kind: "mxf8f6f4",
                a: (E3M2, 4),
                b: (E5M2, 1),
                k: 32,
                d: 0,
            },
            "",
            UE8M0,
            32,
            1,
        ),
        (
            Case {
                kind: "mxf4",
                a: (E2M1, 1),
                b: (E2M1, 1),
                k: 64,
                d: 0,
            },
            ".block32",
            UE8M0,
            32,
            1,
        ),
        (
            Case {
                kind: "mxf4nvf4",
                a: (E2M1, 1),
                b: (E2M1, 1),
                k: 64,
                d: 0,
            },
            ".block16",
            UE4M3,
            16,
            0,
        ),
        (
            Case {
                kind: "mxf4nvf4",
                a: (E2M1, 1),
                b: (E2M1, 1),
                k: 64,
                d: 0,
            },
            ".scale_vec::2X",
            UE8M0,
            32,
            1,
        ),
    ] {
        let work = format!(
            "mov.b64 %d5, {}; add.s64 %d5, %d5, %d2; add.s64 %d6, %d5, 32; add.u32 %r20, %r8, 32; add.u32 %r21, %r8, 36;
tcgen05.cp.cta_group::1.32x128b.warpx4 [%r20], %d5;
tcgen05.cp.cta_group::1.32x128b.warpx4 [%r21], %d6;
tcgen05.mma.cta_group::1.kind::{}.block_scale{suffix} [%r8], %d3, %d4, %r10, [%r20], [%r20+4], 0;",
            descriptor(SCALES, 512),
            case.kind
        );
        let mut image = image(&case);
        place_scales(&mut image, SCALES, scales, 2, 128);
        place_scales(&mut image, SCALES + 512, scales, 3, N);
        let bits = idesc(&case) | ue8m0 << 23 | 1 << 27;
        let got = results(&kernel(&work, N, ""), &image, 128 * N, bits);
        for row in 0..128 {
            for column in 0..N {
                let factor = |k: usize| {
                    scale(scales, 2, row, k / block).1 * scale(scales, 3, column, k / block).1
                };
                let want = dot(&case, row, column, factor);
                let value = f64::from(f32::from_bits(got[row * N + column]));
                assert_eq!(value, want, "{}{suffix} {row}, {column}", case.kind);
            }
        }
    }
}

#[test]
fn disabled_lanes_keep_and_scaled_input_halves() {
    let case = Case {
        kind: "f16",
        a: (F16, 0),
        b: (F16, 0),
        k: 16,
        d: 1,
    };
    let work = "tcgen05.mma.cta_group::1.kind::f16 [%r8], %d3, %d4, %r10, 0;
mov.u32 %v4, 0xffff0000; mov.u32 %v5, 0; mov.u32 %v6, 0; mov.u32 %v7, 1;
tcgen05.mma.cta_group::1.kind::f16 [%r8], %d3, %d4, %r10, {%v4, %v5, %v6, %v7}, 1, 2;";
    let got = results(
        &kernel(work, N, ""),
        &image(&case),
        128 * N,
        idesc(&case) | 8 << 24,
    );
    for (i, word) in got.iter().enumerate() {
        let (row, column) = (i / N, i % N);
        let once = dot(&case, row, column, |_| 1.0);
        let kept = (16..32).contains(&row) || row == 96;
        let want = if kept { once } else { once * 1.25 };
        assert_eq!(f64::from(f32::from_bits(*word)), want, "{row}, {column}");
    }
}

/// Each thread stores its row of A, which lies in shared memory too, to tensor memory.
const STORE_A: &str = "shl.b32 %r30, %r0, 4; add.u32 %r30, %r30, %r2; add.u32 %r31, %r12, 32;
ld.shared.v4.b32 {%v0, %v1, %v2, %v3}, [%r30]; ld.shared.v4.b32 {%v4, %v5, %v6, %v7}, [%r30+2048];
tcgen05.st.sync.aligned.32x32b.x8.b32 [%r31], {%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7};
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;";

#[test]
fn a_in_tensor_memory() {
    let case = Case {
        kind: "f16",
        a: (BF16, 1),
        b: (BF16, 1),
        k: 16,
        d: 1,
    };
    let work = "tcgen05.mma.cta_group::1.kind::f16 [%r8], [%r8+32], %d4, %r10, 0;";
    let bits = idesc(&case) | 8 << 24;
    let text = kernel(work, N, STORE_A);
    let got = results(&text, &image(&case), 128 * N, bits);
    for (i, word) in got.iter().enumerate() {
        let want = dot(&case, i / N, i % N, |_| 1.0);
        assert_eq!(f64::from(f32::from_bits(*word)), want, "{i}");
    }
    let (launch, args) = start(0, descriptor(B, 16 * N), bits);
    let broken = |from: &str, kind: FindingKind| {
        let changed = text.replace(from, "");
        assert_ne!(changed, text);
        let found = common::findings(&changed, &launch, given(&image(&case), 128 * N, &args), 0);
        assert!(
            common::kinds(&found).contains(&kind),
            "without `{from}`: {found:?}"
        );
    };
    broken("tcgen05.wait::st.sync.aligned;", FindingKind::Race);
    broken(
        "fence.proxy.async.shared::cta;",
        FindingKind::MissingProxyFence,
    );
}

/// Lane and column that register `r` of thread `t` of a warp holds, from the figures of the PTX ISA
/// (9.7.16.2.3.1): found by walking the cells, not by the formula of the unit.
fn fragments(shape: &str) -> Vec<Vec<(usize, usize)>> {
    let mut all = vec![vec![(usize::MAX, 0); 32]; 32];
    for lane in 0..32 {
        for column in 0..32 {
            let (thread, register) = match shape {
                "32x32b" => (lane, column),
                // Quads of threads hold pairs of lanes l and l + 8, two columns.
                "16x64b" => (4 * (lane % 8) + 2 * (column % 2) + lane / 8, column / 2),
                // 8 x 4 matrices of words, the lower lanes first.
                "16x128b" => (4 * (lane % 8) + column % 4, column / 4 * 2 + lane / 8),
                // The accumulator fragment of m16n8.
                "16x256b" => (
                    4 * (lane % 8) + column % 8 / 2,
                    column / 8 * 4 + lane / 8 * 2 + column % 2,
                ),
                _ => (lane + column / 16 * 16, column % 16),
            };
            if shape == "32x32b" || lane < 16 {
                all[thread][register] = (lane, column);
            }
        }
    }
    all
}

#[test]
fn shapes_of_loads_and_stores() {
    let case = Case {
        kind: "f16",
        a: (F16, 0),
        b: (F16, 0),
        k: 16,
        d: 1,
    };
    for (shape, count) in [
        ("32x32b.x32", 32),
        ("16x64b.x16", 16),
        ("16x128b.x8", 16),
        ("16x256b.x4", 16),
        ("16x32bx2.x16", 16),
    ] {
        // A store in the shape, thread * 100 + register + 1; the rest is filled in before.
        let half = if shape.starts_with("16x32bx2") {
            ", 16"
        } else {
            ""
        };
        let zeros = vec!["%v8"; 32].join(", ");
        let values: String = (0..count)
            .map(|i| format!("add.u32 %o{i}, %r33, {};\n", i + 1))
            .collect();
        let regs: Vec<String> = (0..count).map(|i| format!("%o{i}")).collect();
        let before = format!(
            "mov.u32 %v8, 0; tcgen05.st.sync.aligned.32x32b.x32.b32 [%r12], {{{zeros}}}; tcgen05.wait::st.sync.aligned;
mul.lo.u32 %r33, %r0, 100;\n{values}
tcgen05.st.sync.aligned.{shape}.b32 [%r12]{half}, {{{}}}; tcgen05.wait::st.sync.aligned;
{}
tcgen05.ld.sync.aligned.{shape}.b32 {{{}}}, [%r12]{half}; tcgen05.wait::ld.sync.aligned;\n{}
tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;",
            regs.join(", "),
            (0..count).map(|i| format!("mov.u32 %o{i}, 0;")).collect::<String>(),
            regs.join(", "),
            // Loading in the same shape gives the values back, or the thread traps.
            (0..count).map(|i| format!("add.u32 %r34, %r33, {}; setp.ne.u32 %p5, %r34, %o{i}; @%p5 trap;\n", i + 1)).collect::<String>(),
        );
        let got = results(&kernel("", 32, &before), &image(&case), 128 * 32, 0);
        let name = shape.split('.').next().unwrap();
        let mut want = vec![0; 128 * 32];
        for warp in 0..4 {
            for (t, registers) in fragments(name).into_iter().enumerate() {
                for (r, (lane, column)) in registers
                    .into_iter()
                    .enumerate()
                    .filter(|(_, c)| c.0 != usize::MAX)
                {
                    want[(warp * 32 + lane) * 32 + column] = ((warp * 32 + t) * 100 + r + 1) as u32;
                }
            }
        }
        assert_eq!(got, want, "{shape}");
    }
}

#[test]
fn halves_are_packed() {
    let case = Case {
        kind: "f16",
        a: (F16, 0),
        b: (F16, 0),
        k: 16,
        d: 1,
    };
    let before = "mul.lo.u32 %r33, %r0, 3; add.u32 %v0, %r33, 0x10000; add.u32 %v1, %r33, 0x70000;
tcgen05.st.sync.aligned.32x32b.x2.unpack::16b.b32 [%r12], {%v0, %v1}; tcgen05.wait::st.sync.aligned;
tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 {%v2, %v3}, [%r12]; tcgen05.wait::ld.sync.aligned;
setp.ne.u32 %p5, %v0, %v2; @%p5 trap; setp.ne.u32 %p5, %v1, %v3; @%p5 trap;
tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;";
    let got = results(&kernel("", 4, before), &image(&case), 128 * 4, 0);
    for (thread, row) in got.chunks(4).enumerate() {
        assert_eq!(row, [3 * thread as u32, 1, 3 * thread as u32, 7]);
    }
}

#[test]
fn two_allocations_share_the_columns() {
    // Two warps take 512 columns each: the second waits for the first to free them.
    let text = ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{
.reg .b32 %r<9>; .reg .pred %p<3>; .shared .b32 slots[2];
mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; mov.u32 %r2, slots; mad.lo.u32 %r2, %r1, 4, %r2;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 512;
bar.warp.sync -1; ld.shared.u32 %r3, [%r2]; shl.b32 %r4, %r1, 21; add.u32 %r4, %r4, %r3;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r4], {%r0}; tcgen05.wait::st.sync.aligned;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 512;
ret;\n}\n";
    let launch = Launch::new("k", 1, 64, Vec::new());
    common::clean(text, &launch, Vec::new);
    let stuck = text.replace(
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 512;",
        "",
    );
    let found = common::findings(&stuck, &launch, Vec::new(), 0);
    assert!(
        found
            .iter()
            .any(|f| f.kind == FindingKind::Deadlock && f.message.contains("free columns")),
        "{found:?}"
    );
}

#[test]
fn loads_reduce() {
    let case = Case {
        kind: "f16",
        a: (F16, 0),
        b: (F16, 0),
        k: 16,
        d: 1,
    };
    // -2, 1, NaN, -0 as floats; thread 7 holds NaNs alone.
    let before = |form: &str| {
        format!(
            "setp.eq.u32 %p5, %r0, 7; mov.b32 %v3, 0x7fc00000; selp.b32 %v0, %v3, 0xc0000000, %p5; selp.b32 %v1, %v3, 0x3f800000, %p5;
selp.b32 %v2, %v3, 0x80000000, %p5;
tcgen05.st.sync.aligned.32x32b.x4.b32 [%r12], {{%v0, %v1, %v2, %v3}}; tcgen05.wait::st.sync.aligned;
tcgen05.ld.red.sync.aligned.32x32b.x4.{form} {{%v4, %v5, %v6, %v7}}, %v8, [%r12]; tcgen05.wait::ld.sync.aligned;
setp.ne.u32 %p5, %v4, %v0; @%p5 trap; setp.ne.u32 %p5, %v7, %v3; @%p5 trap;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r12], {{%v8}}; tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;"
        )
    };
    for (form, want, nan) in [
        ("min.f32", 0xc000_0000, 0x7fff_ffff),
        ("max.f32", 0x3f80_0000, 0x7fff_ffff),
        ("min.abs.f32", 0, 0x7fff_ffff),
        ("max.abs.f32", 0x4000_0000, 0x7fff_ffff),
        ("max.NaN.f32", 0x7fff_ffff, 0x7fff_ffff),
        ("max.u32", 0xc000_0000, 0x7fc0_0000),
        ("min.s32", 0x8000_0000, 0x7fc0_0000),
    ] {
        let got = results(&kernel("", 1, &before(form)), &image(&case), 128, 0);
        for (thread, word) in got.iter().enumerate() {
            let want = if thread == 7 { nan } else { want };
            assert_eq!(*word, want, "{form} of thread {thread}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whatever the operands are, a run ends with a report or an error.
    #[test]
    fn hostile_operands_end_in_reports(at in 0usize..9, x: u32, y: u32, d: u64, columns in 0u32..600) {
        let line = [
            "tcgen05.mma.cta_group::1.kind::f16 [%r20], %d10, %d10, %r21, 1;",
            "tcgen05.mma.cta_group::1.kind::i8 [%r20], [%r21], %d10, %r21, 0;",
            "tcgen05.mma.cta_group::2.kind::tf32 [%r20], %d10, %d10, %r21, 1;",
            "tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%r20], %d10, %d10, %r21, [%r20], [%r21], 1;",
            "tcgen05.cp.cta_group::1.128x256b [%r20], %d10;",
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r20], %h0;",
            "tcgen05.ld.sync.aligned.16x256b.x2.b32 {%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}, [%r20];",
            "tcgen05.st.sync.aligned.16x32bx2.x2.b32 [%r20], 60000, {%v0, %v1};",
            "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, %r21;",
        ][at];
        // Half of the descriptors are nearly right.
        let d = if d % 2 == 0 { d & !(7 << 46 | 0x1ff << 52) | 1 << 46 } else { d };
        let x = if x % 3 == 0 { x & 0x7f_01ff } else { x };
        let text = format!(
            ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{{
.reg .b32 %r<30>; .reg .b64 %d<12>; .reg .b16 %h<2>; .reg .b32 %v<9>; .shared .align 8 .b8 s[4096];
mov.u32 %r20, {x}; mov.u32 %r21, {y}; mov.b64 %d10, {d}; mov.u16 %h0, {h}; mov.u32 %r1, s;
tcgen05.alloc{group}.sync.aligned.shared::cta.b32 [%r1], {columns};
{line}
ret;\n}}\n",
            h = y & 0xffff,
            group = if line.contains("group::2") { ".cta_group::2" } else { ".cta_group::1" },
        );
        let launch = Launch::new("k", 1, 32, Vec::new());
        let _ = common::findings(&text, &launch, Vec::new(), 0);
    }
}
