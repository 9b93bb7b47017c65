//! `wmma`, `mma.sp` and block-scaled `mma.sync` from PTX, against scalar loops.

mod common;

use axe_sim::{FindingKind, Launch};
use common::Given;

struct Case {
    shape: [usize; 3],
    /// Element type of A and B, its bytes, and how a small integer is encoded.
    ty: &'static str,
    bytes: usize,
    encode: fn(i32) -> u64,
    /// Types of D, A, B and C as `wmma.mma` names them, and the accumulator.
    types: &'static str,
    acc: &'static str,
    acc_bytes: usize,
    decode: fn(u64) -> i32,
    /// Registers of A, B and C.
    registers: [usize; 3],
}

fn half(x: i32) -> u64 {
    half::f16::from_f32(x as f32).to_bits().into()
}

fn cases() -> Vec<Case> {
    let float = |bits: u64| f32::from_bits(bits as u32) as i32;
    vec![
        Case {
            shape: [16, 16, 16],
            ty: "f16",
            bytes: 2,
            encode: half,
            types: "f32.f32",
            acc: "f32",
            acc_bytes: 4,
            decode: float,
            registers: [8, 8, 8],
        },
        Case {
            shape: [32, 8, 16],
            ty: "f16",
            bytes: 2,
            encode: half,
            types: "f16.f16",
            acc: "f16",
            acc_bytes: 2,
            decode: |bits| half::f16::from_bits(bits as u16).to_f32() as i32,
            registers: [8, 8, 4],
        },
        Case {
            shape: [8, 32, 16],
            ty: "bf16",
            bytes: 2,
            encode: |x| half::bf16::from_f32(x as f32).to_bits().into(),
            types: "f32.bf16.bf16.f32",
            acc: "f32",
            acc_bytes: 4,
            decode: float,
            registers: [2, 8, 8],
        },
        Case {
            shape: [16, 16, 8],
            ty: "tf32",
            bytes: 4,
            encode: |x| (x as f32).to_bits().into(),
            types: "f32.tf32.tf32.f32",
            acc: "f32",
            acc_bytes: 4,
            decode: float,
            registers: [4, 4, 8],
        },
        Case {
            shape: [16, 16, 16],
            ty: "s8",
            bytes: 1,
            encode: |x| x as u8 as u64,
            types: "s32.s8.s8.s32",
            acc: "s32",
            acc_bytes: 4,
            decode: |bits| bits as i32,
            registers: [2, 2, 8],
        },
        Case {
            shape: [8, 8, 4],
            ty: "f64",
            bytes: 8,
            encode: |x| f64::from(x).to_bits(),
            types: "f64.f64.f64.f64",
            acc: "f64",
            acc_bytes: 8,
            decode: |bits| f64::from_bits(bits) as i32,
            registers: [1, 1, 2],
        },
    ]
}

fn value(which: usize, i: usize, j: usize) -> i32 {
    ((which * 5 + i * 3 + j * 7 + i * j % 3) % 5) as i32 - 2
}

/// A matrix in lines of `stride` elements, by rows or by columns.
fn memory(
    case: &Case,
    which: usize,
    [rows, columns]: [usize; 2],
    by_column: bool,
    stride: usize,
) -> Vec<u8> {
    let lines = if by_column { columns } else { rows };
    let mut out = vec![0; (lines * stride) * case.bytes];
    for i in 0..rows {
        for j in 0..columns {
            let at = if by_column {
                j * stride + i
            } else {
                i * stride + j
            } * case.bytes;
            out[at..at + case.bytes]
                .copy_from_slice(&(case.encode)(value(which, i, j)).to_le_bytes()[..case.bytes]);
        }
    }
    out
}

fn list(name: &str, count: usize) -> String {
    (0..count)
        .map(|i| format!("%{name}{i}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A comes through shared memory, B from global memory; D = A B + A B.
fn kernel(case: &Case, columns: [bool; 3], strides: [usize; 3], sync: &str) -> String {
    let [m, n, k] = case.shape;
    let shape = format!("m{m}n{n}k{k}");
    let [la, lb, ld] = columns.map(|c| if c { "col" } else { "row" });
    let bytes = memory(case, 0, [m, k], columns[0], strides[0]).len();
    let wide = if case.bytes == 8 { "b64" } else { "b32" };
    let mul = format!("wmma.mma.sync.aligned.{la}.{lb}.{shape}.{}", case.types);
    let [ra, rb, rc] = case.registers;
    let (a, b, c) = (list("a", ra), list("b", rb), list("c", rc));
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 d)
{{
.reg .{wide} %a<{ra}>; .reg .{wide} %b<{rb}>; .reg .{wide} %c<{rc}>; .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %d<9>;
.shared .align 128 .b8 s[{bytes}];
ld.param.u64 %d0, [a]; cvta.to.global.u64 %d0, %d0; ld.param.u64 %d1, [b]; cvta.to.global.u64 %d1, %d1;
ld.param.u64 %d2, [d]; cvta.to.global.u64 %d2, %d2;
mov.u32 %r0, %tid.x; shl.b32 %r0, %r0, 2; mov.u32 %r1, s;
copy: setp.ge.u32 %p0, %r0, {bytes}; @%p0 bra copied; cvt.u64.u32 %d3, %r0; add.s64 %d3, %d3, %d0; ld.global.b32 %r2, [%d3];
add.u32 %r3, %r1, %r0; st.shared.b32 [%r3], %r2; add.u32 %r0, %r0, 128; bra copy;
copied: {sync}
wmma.load.a.sync.aligned.{la}.{shape}.shared.{ty} {{{a}}}, [%r1], {};
wmma.load.b.sync.aligned.{lb}.{shape}.global.{ty} {{{b}}}, [%d1], {};
{}
{mul} {{{c}}}, {{{a}}}, {{{b}}}, {{{c}}};
{mul} {{{c}}}, {{{a}}}, {{{b}}}, {{{c}}};
wmma.store.d.sync.aligned.{ld}.{shape}.global.{} [%d2], {{{c}}}, {};
ret;
}}\n",
        strides[0],
        strides[1],
        (0..rc).map(|i| format!("mov.{wide} %c{i}, 0;")).collect::<String>(),
        case.acc,
        strides[2],
        ty = case.ty,
    )
}

#[test]
fn every_type_in_every_layout() {
    for case in cases() {
        let [m, n, k] = case.shape;
        for layout in 0..8 {
            let columns = [layout & 1 == 1, layout & 2 == 2, layout & 4 == 4];
            let line = |by: bool, rows: usize, cols: usize| if by { rows } else { cols };
            // Lines further apart than they are long.
            let pad = 16 / case.bytes;
            let strides = [
                line(columns[0], m, k) + pad,
                line(columns[1], k, n) + pad,
                line(columns[2], m, n) + 16 / case.acc_bytes,
            ];
            let a = memory(&case, 0, [m, k], columns[0], strides[0]);
            let b = memory(&case, 1, [k, n], columns[1], strides[1]);
            let lines = if columns[2] { n } else { m };
            let text = kernel(&case, columns, strides, "bar.sync 0;");
            let given = || {
                vec![
                    Given::In(a.clone()),
                    Given::In(b.clone()),
                    Given::Out(lines * strides[2] * case.acc_bytes),
                ]
            };
            let out = common::clean(&text, &Launch::new("k", 1, 32, Vec::new()), given);
            for i in 0..m {
                for j in 0..n {
                    let at = if columns[2] {
                        j * strides[2] + i
                    } else {
                        i * strides[2] + j
                    } * case.acc_bytes;
                    let mut word = [0; 8];
                    word[..case.acc_bytes].copy_from_slice(&out[2][at..at + case.acc_bytes]);
                    let want: i32 = (0..k).map(|x| 2 * value(0, i, x) * value(1, x, j)).sum();
                    assert_eq!(
                        (case.decode)(u64::from_le_bytes(word)),
                        want,
                        "{} {layout}: {i}, {j}",
                        case.ty
                    );
                }
            }
        }
    }
}

#[test]
fn a_missing_barrier_and_a_short_buffer_are_found() {
    let case = &cases()[0];
    let text = |sync| kernel(case, [false; 3], [16; 3], sync);
    let given = |n| {
        vec![
            Given::In(vec![0; 512]),
            Given::In(vec![0; n]),
            Given::Out(1024),
        ]
    };
    let start = Launch::new("k", 1, 32, Vec::new());
    let kinds = |text: &str, n| common::kinds(&common::findings(text, &start, given(n), 0));
    assert_eq!(kinds(&text("bar.sync 0;"), 512), []);
    assert!(kinds(&text(""), 512).contains(&FindingKind::Race));
    assert!(kinds(&text("bar.sync 0;"), 480).contains(&FindingKind::OutOfBounds));
    let part = text("bar.sync 0;").replace("wmma.load.b", "@%p1 wmma.load.b");
    assert!(
        !kinds(
            &part.replace(
                "copied:",
                "copied: mov.u32 %r5, %tid.x; setp.lt.u32 %p1, %r5, 16;"
            ),
            512
        )
        .is_empty()
    );
}

/// `mma.sp` from PTX: every third of its operands comes from memory, the metadata keeps columns 0 and 2
/// of every four.
#[test]
fn a_sparse_product() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64
.visible .entry k(.param .u64 b, .param .u64 d)
{
.reg .b32 %a<4>; .reg .b32 %b<4>; .reg .f32 %c<4>; .reg .b32 %r<6>; .reg .b64 %d<5>;
ld.param.u64 %d0, [b]; cvta.to.global.u64 %d0, %d0; ld.param.u64 %d1, [d]; cvta.to.global.u64 %d1, %d1;
mov.u32 %r0, %laneid; mul.wide.u32 %d2, %r0, 16; add.s64 %d0, %d0, %d2; add.s64 %d1, %d1, %d2;
ld.global.v4.b32 {%b0, %b1, %b2, %b3}, [%d0];
mov.b32 %a0, 0x3c003c00; mov.b32 %a1, 0x40004000; mov.b32 %a2, 0x3c003c00; mov.b32 %a3, 0x40004000;
mov.f32 %c0, 0f00000000; mov.f32 %c1, 0f00000000; mov.f32 %c2, 0f3F800000; mov.f32 %c3, 0f3F800000;
mov.b32 %r1, 0x88888888;
mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%c0, %c1, %c2, %c3}, {%a0, %a1, %a2, %a3}, {%b0, %b1, %b2, %b3}, {%c0, %c1, %c2, %c3}, %r1, 1;
st.global.v4.f32 [%d1], {%c0, %c1, %c2, %c3};
ret;\n}\n";
    // B(k, n) = k + 32 n in the fragment of the ISA: row 8 r + 2 t + e, column g.
    let b: Vec<u32> = (0..128)
        .map(|i| {
            let (lane, r) = (i / 4, i % 4);
            let half =
                |e: usize| half((8 * r + 2 * (lane % 4) + e + 32 * (lane / 4)) as i32) as u32;
            half(0) | half(1) << 16
        })
        .collect();
    let given = || vec![Given::In(common::words(&b)), Given::Out(512)];
    let out = common::clean(text, &Launch::new("k", 1, 32, Vec::new()), given);
    let got = common::to_floats(&out[1]);
    for (i, value) in got.iter().enumerate() {
        let (lane, c) = (i / 4, i % 4);
        let column = 2 * (lane % 4) + c % 2;
        // Even k of 0..32: their sum is 240.
        let sum = 240.0 + 16.0 * 32.0 * column as f32;
        let want = if c < 2 { sum } else { 2.0 * sum + 1.0 };
        assert_eq!(*value, want, "{i}");
    }
    let wrong = text.replace("0x88888888", "0x22222222");
    let found = common::findings(&wrong, &Launch::new("k", 1, 32, Vec::new()), given(), 0);
    assert!(
        found
            .iter()
            .any(|f| f.kind == FindingKind::Invalid && f.message.contains("metadata")),
        "{found:?}"
    );
}

/// Block-scaled FP4: all elements 1, scales by row and column from the lanes that the selectors name.
#[test]
fn a_block_scaled_product() {
    let text = ".version 8.8\n.target sm_120a\n.address_size 64
.visible .entry k(.param .u64 s, .param .u64 d)
{
.reg .b32 %a<4>; .reg .b32 %b<2>; .reg .f32 %c<4>; .reg .b32 %r<6>; .reg .b64 %d<5>; .reg .b16 %h<2>;
ld.param.u64 %d0, [s]; cvta.to.global.u64 %d0, %d0; ld.param.u64 %d1, [d]; cvta.to.global.u64 %d1, %d1;
mov.u32 %r0, %laneid; mul.wide.u32 %d2, %r0, 8; add.s64 %d0, %d0, %d2; mul.wide.u32 %d2, %r0, 16; add.s64 %d1, %d1, %d2;
ld.global.v2.b32 {%r1, %r2}, [%d0]; mov.u16 %h0, 0; mov.u16 %h1, 1;
mov.b32 %a0, 0x22222222; mov.b32 %a1, %a0; mov.b32 %a2, %a0; mov.b32 %a3, %a0; mov.b32 %b0, %a0; mov.b32 %b1, %a0;
mov.f32 %c0, 0f00000000; mov.f32 %c1, %c0; mov.f32 %c2, %c0; mov.f32 %c3, %c0;
mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 {%c0, %c1, %c2, %c3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%c0, %c1, %c2, %c3}, %r1, {%h0, %h1}, %r2, {0, 0};
st.global.v4.f32 [%d1], {%c0, %c1, %c2, %c3};
ret;\n}\n";
    // UE4M3: 0x38 is 1, 0x40 is 2, 0x48 is 4, 0x30 is 1/2.
    let codes = [(0x38u32, 1.0f32), (0x40, 2.0), (0x48, 4.0), (0x30, 0.5)];
    let scale = |which: usize, i: usize, j: usize| codes[(which + i * 3 + j) % 4];
    let word = |which, i| (0..4).fold(0, |w, j| w | scale(which, i, j).0 << (8 * j));
    let mut lanes = vec![0x7777_7777u32; 64];
    for row in 0..16 {
        // thread-id 1: the upper pair of each group of four.
        lanes[2 * (4 * (row % 8) + 2 + row / 8)] = word(0, row);
    }
    for column in 0..8 {
        lanes[2 * (4 * column) + 1] = word(1, column);
    }
    let given = || vec![Given::In(common::words(&lanes)), Given::Out(512)];
    let out = common::clean(text, &Launch::new("k", 1, 32, Vec::new()), given);
    for (i, got) in common::to_floats(&out[1]).iter().enumerate() {
        let (row, column) = (i / 16 + i % 4 / 2 * 8, i / 4 % 4 * 2 + i % 2);
        let want: f32 = (0..4)
            .map(|j| 16.0 * scale(0, row, j).1 * scale(1, column, j).1)
            .sum();
        assert_eq!(*got, want, "{row}, {column}");
    }
}
