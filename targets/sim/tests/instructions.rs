//! Families of instructions against plain Rust, on random and extreme operands.

mod common;
use common::eval;
use proptest::prelude::*;

fn operands() -> impl Strategy<Value = Vec<[u32; 3]>> {
    let word = prop_oneof![
        any::<u32>(),
        0u32..70,
        prop_oneof![
            Just(0x8000_0000u32),
            Just(0x7fff_ffff),
            Just(u32::MAX),
            Just(0x3f80_0000),
            Just(0x7f80_0000)
        ],
    ];
    prop::collection::vec([word.clone(), word.clone(), word], 32)
}

fn columns(rows: &[[u32; 3]]) -> [Vec<u32>; 3] {
    [0, 1, 2].map(|i| rows.iter().map(|r| r[i]).collect())
}

fn shl(a: u32, n: u32) -> u32 {
    a.checked_shl(n).unwrap_or(0)
}

fn lop3(a: u32, b: u32, c: u32, table: u32) -> u32 {
    (0..32).fold(0, |out, bit| {
        let index = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | (c >> bit & 1);
        out | (table >> index & 1) << bit
    })
}

/// Canonical NaN, as the hardware writes it.
fn bits(x: f32) -> u32 {
    if x.is_nan() { 0x7fff_ffff } else { x.to_bits() }
}

type Case = (&'static str, fn(u32, u32, u32) -> u32);

const CASES: &[Case] = &[
    ("add.u32 %r9, %r0, %r1;", |a, b, _| a.wrapping_add(b)),
    ("sub.s32 %r9, %r0, %r1;", |a, b, _| a.wrapping_sub(b)),
    ("add.sat.s32 %r9, %r0, %r1;", |a, b, _| {
        (a as i32).saturating_add(b as i32) as u32
    }),
    ("mul.hi.u32 %r9, %r0, %r1;", |a, b, _| {
        ((u64::from(a) * u64::from(b)) >> 32) as u32
    }),
    ("mul.hi.s32 %r9, %r0, %r1;", |a, b, _| {
        ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32
    }),
    ("mad.lo.s32 %r9, %r0, %r1, %r2;", |a, b, c| {
        a.wrapping_mul(b).wrapping_add(c)
    }),
    (
        "mul.wide.s32 %d9, %r0, %r1; mov.b64 {%r8, %r9}, %d9;",
        |a, b, _| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32,
    ),
    ("min.s32 %r9, %r0, %r1;", |a, b, _| {
        (a as i32).min(b as i32) as u32
    }),
    ("max.u32 %r9, %r0, %r1;", |a, b, _| a.max(b)),
    ("abs.s32 %r9, %r0;", |a, _, _| {
        (a as i32).wrapping_abs() as u32
    }),
    ("neg.s32 %r9, %r0;", |a, _, _| a.wrapping_neg()),
    ("popc.b32 %r9, %r0;", |a, _, _| a.count_ones()),
    ("clz.b32 %r9, %r0;", |a, _, _| a.leading_zeros()),
    ("brev.b32 %r9, %r0;", |a, _, _| a.reverse_bits()),
    ("bfind.u32 %r9, %r0;", |a, _, _| {
        a.checked_ilog2().unwrap_or(u32::MAX)
    }),
    ("not.b32 %r9, %r0;", |a, _, _| !a),
    ("cnot.b32 %r9, %r0;", |a, _, _| u32::from(a == 0)),
    ("shl.b32 %r9, %r0, %r1;", |a, b, _| shl(a, b)),
    ("shr.u32 %r9, %r0, %r1;", |a, b, _| {
        a.checked_shr(b).unwrap_or(0)
    }),
    ("shr.s32 %r9, %r0, %r1;", |a, b, _| {
        ((a as i32) >> b.min(31)) as u32
    }),
    ("shf.l.wrap.b32 %r9, %r0, %r1, %r2;", |a, b, c| {
        (((u64::from(b) << 32 | u64::from(a)) << (c & 31)) >> 32) as u32
    }),
    ("shf.r.clamp.b32 %r9, %r0, %r1, %r2;", |a, b, c| {
        ((u64::from(b) << 32 | u64::from(a)) >> c.min(32)) as u32
    }),
    ("lop3.b32 %r9, %r0, %r1, %r2, 0xe2;", |a, b, c| {
        lop3(a, b, c, 0xe2)
    }),
    ("prmt.b32 %r9, %r0, %r1, 0x6420;", |a, b, _| {
        let all = [a.to_le_bytes(), b.to_le_bytes()].concat();
        u32::from_le_bytes([all[0], all[2], all[4], all[6]])
    }),
    ("bfe.u32 %r9, %r0, 5, 9;", |a, _, _| a >> 5 & 0x1ff),
    ("bfe.s32 %r9, %r0, 20, 16;", |a, _, _| {
        ((a as i32) >> 20) as u32
    }),
    ("bfe.s32 %r9, %r0, 3, 8;", |a, _, _| {
        (((a << 21) as i32) >> 24) as u32
    }),
    ("bfi.b32 %r9, %r0, %r1, 4, 12;", |a, b, _| {
        b & !0xfff0 | a << 4 & 0xfff0
    }),
    ("dp4a.s32.u32 %r9, %r0, %r1, %r2;", |a, b, c| {
        let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
        c.wrapping_add(
            pairs
                .map(|(x, y)| i32::from(x as i8) * i32::from(y))
                .sum::<i32>() as u32,
        )
    }),
    (
        "add.cc.u32 %r8, %r0, %r1; addc.u32 %r9, 0, 0;",
        |a, b, _| u32::from(a.checked_add(b).is_none()),
    ),
    (
        "sub.cc.u32 %r8, %r0, %r1; subc.u32 %r9, %r2, 0;",
        |a, b, c| c.wrapping_sub(u32::from(a < b)),
    ),
    (
        "setp.lt.s32 %p0, %r0, %r1; selp.b32 %r9, %r0, %r2, %p0;",
        |a, b, c| if (a as i32) < (b as i32) { a } else { c },
    ),
    (
        "setp.gt.u32 %p1, %r1, %r2; setp.lt.and.u32 %p0|%p2, %r0, %r1, %p1; selp.b32 %r8, 1, 0, %p0; selp.b32 %r9, 2, 0, %p2; or.b32 %r9, %r8, %r9;",
        |a, b, c| {
            if b <= c {
                0
            } else if a < b {
                1
            } else {
                2
            }
        },
    ),
    ("set.ge.u32.u32 %r9, %r0, %r1;", |a, b, _| {
        if a >= b { u32::MAX } else { 0 }
    }),
    ("slct.b32.s32 %r9, %r0, %r1, %r2;", |a, b, c| {
        if c as i32 >= 0 { a } else { b }
    }),
    ("cvt.s32.s8 %r9, %r0;", |a, _, _| a as i8 as u32),
    ("cvt.u16.u32 %h0, %r0; cvt.u32.u16 %r9, %h0;", |a, _, _| {
        a & 0xffff
    }),
    ("cvt.sat.u8.s32 %r9, %r0;", |a, _, _| {
        (a as i32).clamp(0, 255) as u32
    }),
    ("cvt.rn.f32.s32 %f3, %r0; mov.b32 %r9, %f3;", |a, _, _| {
        (a as i32 as f32).to_bits()
    }),
    ("cvt.rzi.s32.f32 %r9, %f0;", |a, _, _| {
        f32::from_bits(a) as i32 as u32
    }),
    (
        "cvt.rn.f16.f32 %h0, %f0; cvt.u32.u16 %r9, %h0;",
        |a, _, _| {
            let x = f32::from_bits(a);
            if x.is_nan() {
                0x7fff
            } else {
                half::f16::from_f32(x).to_bits().into()
            }
        },
    ),
    ("add.f32 %f3, %f0, %f1; mov.b32 %r9, %f3;", |a, b, _| {
        bits(f32::from_bits(a) + f32::from_bits(b))
    }),
    ("mul.rn.f32 %f3, %f0, %f1; mov.b32 %r9, %f3;", |a, b, _| {
        bits(f32::from_bits(a) * f32::from_bits(b))
    }),
    (
        "fma.rn.f32 %f3, %f0, %f1, %f2; mov.b32 %r9, %f3;",
        |a, b, c| bits(f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c))),
    ),
    ("div.rn.f32 %f3, %f0, %f1; mov.b32 %r9, %f3;", |a, b, _| {
        bits(f32::from_bits(a) / f32::from_bits(b))
    }),
    ("sqrt.rn.f32 %f3, %f0; mov.b32 %r9, %f3;", |a, _, _| {
        bits(f32::from_bits(a).sqrt())
    }),
    ("neg.f32 %f3, %f0; mov.b32 %r9, %f3;", |a, _, _| {
        bits(-f32::from_bits(a))
    }),
    (
        "setp.ltu.f32 %p0, %f0, %f1; selp.u32 %r9, 1, 0, %p0;",
        |a, b, _| {
            let (x, y) = (f32::from_bits(a), f32::from_bits(b));
            u32::from(x < y || x.is_nan() || y.is_nan())
        },
    ),
    (
        "cvt.f64.f32 %g0, %f0; cvt.f64.f32 %g1, %f1; add.rn.f64 %g0, %g0, %g1; cvt.rn.f32.f64 %f3, %g0; mov.b32 %r9, %f3; setp.nan.f32 %p0, %f3, %f3; selp.b32 %r9, 0, %r9, %p0;",
        |a, b, _| {
            let sum = (f64::from(f32::from_bits(a)) + f64::from(f32::from_bits(b))) as f32;
            if sum.is_nan() { 0 } else { sum.to_bits() }
        },
    ),
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4) })]
    #[test]
    fn arithmetic_agrees_with_rust(rows in operands()) {
        let [a, b, c] = columns(&rows);
        for (body, f) in CASES {
            let want: Vec<u32> = rows.iter().map(|r| f(r[0], r[1], r[2])).collect();
            prop_assert_eq!(eval(body, &a, &b, &c), want, "{}", body);
        }
    }

    #[test]
    fn warp_wide_instructions_agree(rows in operands()) {
        let [a, b, c] = columns(&rows);
        let get = |i: usize| a[i];
        let all = |f: &dyn Fn(usize) -> u32| (0..32).map(f).collect::<Vec<u32>>();
        let shuffle = |mode: &str| eval(&format!("shfl.sync.{mode}, -1; "), &a, &b, &c);
        prop_assert_eq!(shuffle("bfly.b32 %r9, %r0, 5, 31"), all(&|i| get(i ^ 5)));
        prop_assert_eq!(shuffle("down.b32 %r9, %r0, 4, 31"), all(&|i| get(if i + 4 < 32 { i + 4 } else { i })));
        prop_assert_eq!(shuffle("up.b32 %r9, %r0, 3, 0"), all(&|i| get(i.checked_sub(3).unwrap_or(i))));
        prop_assert_eq!(shuffle("idx.b32 %r9, %r0, 2, 0x181f"), all(&|i| get(i & 24 | 2)));
        let odd = (0..32).fold(0, |m, i| m | (a[i] & 1) << i);
        let vote = "and.b32 %r8, %r0, 1; setp.eq.u32 %p0, %r8, 1; vote.sync.ballot.b32 %r9, %p0, -1;";
        prop_assert_eq!(eval(vote, &a, &b, &c), vec![odd; 32]);
        let sum = a.iter().fold(0u32, |s, x| s.wrapping_add(*x));
        prop_assert_eq!(eval("redux.sync.add.u32 %r9, %r0, -1;", &a, &b, &c), vec![sum; 32]);
        let same = all(&|i| (0..32).fold(0, |m, j| m | u32::from(a[j] & 3 == a[i] & 3) << j));
        prop_assert_eq!(eval("and.b32 %r8, %r0, 3; match.any.sync.b32 %r9, %r8, -1;", &a, &b, &c), same);
    }
}

#[test]
fn floats_reduce_over_a_warp() {
    let of = |op: &str, values: [f32; 4]| {
        let a = values.map(f32::to_bits);
        let body = format!("redux.sync.{op} %f3, %f0, 0xf; mov.b32 %r9, %f3;");
        let all = eval(&body, &a, &a, &a);
        assert_eq!(all, vec![all[0]; 4]);
        f32::from_bits(all[0])
    };
    let values = [1.5, f32::NAN, -7.0, 3.0];
    assert_eq!(of("max.f32", values), 3.0);
    assert_eq!(of("min.f32", values), -7.0);
    assert_eq!(of("max.abs.f32", values), 7.0);
    assert!(of("min.NaN.f32", values).is_nan());
    assert!(of("max.f32", [f32::NAN; 4]).is_nan());
    let zeros = [0.0, -0.0, 0.0, -0.0];
    assert!(of("max.f32", zeros).is_sign_positive());
    assert!(of("min.f32", zeros).is_sign_negative());
}

#[test]
fn diverged_lanes_meet_at_a_shuffle() {
    // Both sides of the branch run to the shuffle of all lanes before either goes on.
    let body = "setp.lt.u32 %p0, %r20, 7; @%p0 bra small; add.u32 %r5, %r0, 100; bra both;
small: mov.u32 %r5, %r0; both: shfl.sync.idx.b32 %r9, %r5, 31, 31, -1;";
    let a: Vec<u32> = (0..32).collect();
    assert_eq!(eval(body, &a, &a, &a), vec![131; 32]);
}

#[test]
fn elects_one_lane() {
    let body = "elect.sync %r8|%p0, -1; selp.u32 %r9, 1, 0, %p0;";
    let a = vec![0; 32];
    assert_eq!(eval(body, &a, &a, &a).iter().sum::<u32>(), 1);
}

#[test]
fn errors_name_line_and_instruction() {
    let text = ".version 8.0\n.target sm_90a\n.address_size 64\n.entry k()\n{\n.reg .b32 %r<3>;\nfrobnicate.b32 %r0, %r1;\n}";
    let module = axe_sim::Module::parse(text).unwrap();
    let error = module.unsupported().next().unwrap().to_string();
    assert!(
        error.contains("line 7") && error.contains("frobnicate.b32"),
        "{error}"
    );
}

/// Runs `body` with one thread and gives `%d9` and `%d10`; the module may hold more than the kernel.
fn pair_of(before: &str, body: &str) -> [u64; 2] {
    let text = format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n{before}
.visible .entry k(.param .u64 out)
{{
.reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %d<30>; .reg .f32 %f<9>; .reg .f64 %g<9>; .reg .b128 %w<4>; .shared .align 16 .b8 s[64];
ld.param.u64 %d0, [out]; mov.u64 %d9, 0; mov.u64 %d10, 0;
{body}
st.global.v2.u64 [%d0], {{%d9, %d10}};
ret;
}}"
    );
    let out = common::clean(&text, &axe_sim::Launch::new("k", 1, 1, vec![]), || {
        vec![common::Given::Out(16)]
    });
    [0, 8].map(|i| u64::from_le_bytes(out[0][i..i + 8].try_into().unwrap()))
}

#[test]
fn registers_of_128_bits() {
    let body = "mov.b64 %d1, 11; mov.b64 %d2, 22; mov.b64 %d3, 33; mov.b64 %d4, 44;
mov.b128 %w0, {%d1, %d2}; mov.b128 %w1, {%d3, %d4}; st.global.b128 [%d0], %w0;
atom.relaxed.gpu.global.cas.b128 %w2, [%d0], %w1, %w1; atom.relaxed.gpu.global.cas.b128 %w2, [%d0], WITH, %w1;
ld.global.b128 %w3, [%d0]; mov.b128 {%d9, %d10}, FROM;";
    let of =
        |with: &str, from: &str| pair_of("", &body.replace("WITH", with).replace("FROM", from));
    assert_eq!(of("%w0", "%w3"), [33, 44]);
    assert_eq!(of("%w0", "%w2"), [11, 22]);
    // One half differs: nothing is swapped.
    let other = "mov.b128 %w2, {%d1, %d4}; ";
    let text = body.replace(
        "atom.relaxed.gpu.global.cas.b128 %w2, [%d0], WITH",
        &format!("{other} atom.relaxed.gpu.global.cas.b128 %w2, [%d0], %w2"),
    );
    assert_eq!(pair_of("", &text.replace("FROM", "%w3")), [11, 22]);
}

#[test]
fn directed_fused_multiply_add_of_doubles() {
    // 1 + 2^-60, and the square of 1 + 2^-30 less 1: Python's fractions say what lies below and above.
    let of = |round: &str, a: f64, b: f64, c: f64| {
        let set = format!(
            "mov.b64 %d1, {}; mov.b64 %d2, {}; mov.b64 %d3, {}; mov.b64 %g0, %d1; mov.b64 %g1, %d2; mov.b64 %g2, %d3;",
            a.to_bits(),
            b.to_bits(),
            c.to_bits()
        );
        f64::from_bits(
            pair_of(
                "",
                &format!("{set} fma.{round}.f64 %g3, %g0, %g1, %g2; mov.b64 %d9, %g3;"),
            )[0],
        )
    };
    let tiny = 2f64.powi(-60);
    assert_eq!(of("rz", tiny, 1.0, 1.0), 1.0);
    assert_eq!(of("rp", tiny, 1.0, 1.0), 1.0f64.next_up());
    assert_eq!(of("rm", -tiny, 1.0, 1.0), 1.0f64.next_down());
    assert_eq!(of("rz", -tiny, 1.0, 1.0), 1.0f64.next_down());
    assert_eq!(of("rz", tiny, 1.0, -1.0), (-1.0f64).next_up());
    let x = 1.0 + 2f64.powi(-30);
    // x * x = 1 + 2^-29 + 2^-60 exactly.
    assert_eq!(of("rz", x, x, 0.0), 1.0 + 2f64.powi(-29));
    assert_eq!(of("rp", x, x, 0.0), (1.0 + 2f64.powi(-29)).next_up());
    assert_eq!(of("rz", x, x, -1.0), 2f64.powi(-29) + 2f64.powi(-60));
    assert_eq!(of("rm", 1.0, 1.0, -1.0).to_bits(), (-0.0f64).to_bits());
}

#[test]
fn three_operands_packed_and_video_integers() {
    let r = |body: &str| {
        pair_of(
            "",
            &format!(
                "mov.b32 %r1, 0xFFFFFFF0; mov.b32 %r2, 300; mov.b32 %r3, 0x01020304; mov.b32 %r4, 0x04030201; {body} cvt.u64.u32 %d9, %r9;"
            ),
        )[0] as u32
    };
    assert_eq!(r("max.s32 %r9, %r1, %r2, %r3;"), 0x0102_0304);
    assert_eq!(r("min.s32 %r9, %r2, %r3, %r1;"), 0xffff_fff0);
    let f = |op: &str| {
        f32::from_bits(r(&format!(
            "mov.f32 %f0, 0f7FC00000; mov.f32 %f1, 0f40000000; mov.f32 %f2, 0fC0800000; {op} %f3, %f0, %f1, %f2; mov.b32 %r9, %f3;"
        )))
    };
    assert_eq!(f("max.f32"), 2.0);
    assert_eq!(f("min.f32"), -4.0);
    assert!(f("max.NaN.f32").is_nan());
    assert_eq!(
        r("cvt.pack.sat.u8.s32.b32 %r9, %r1, %r2, %r3;"),
        0x0304_00ff
    );
    assert_eq!(r("cvt.pack.sat.s16.s32 %r9, %r1, %r2;"), 0xfff0_012c);
    assert_eq!(
        r("vabsdiff4.u32.u32.u32.add %r9, %r3, %r4, %r2;"),
        300 + 3 + 1 + 1 + 3
    );
    assert_eq!(r("vadd.u32.u32.u32 %r9, %r3.b1, %r4.h1;"), 3 + 0x0403);
    assert_eq!(r("vadd.s32.s32.s32.add %r9, %r1, %r2, %r2;"), 584);
    assert_eq!(r("vshl.u32.u32.u32.clamp.add %r9, %r2, 2, %r2;"), 1500);
    assert_eq!(r("vmin2.s32.s32.s32 %r9, %r1, %r2, %r4;"), 0xffff_fff0);
    // What a part of d gets is saturated to it, the rest is c's.
    assert_eq!(r("vadd.u32.u32.u32.sat %r9.b1, %r1, 0, %r4;"), 0x0403_ff01);
    assert_eq!(r("vset.s32.s32.gt %r9, %r2, %r1;"), 1);
    assert_eq!(r("vset.u32.u32.gt.add %r9, %r1, %r2, %r2;"), 301);
    assert_eq!(r("vset4.u32.u32.lt %r9, %r3, %r4, 0;"), 0x0101_0000);
    // Numbers of both registers, from the highest; what the mask leaves out is c's, or is not summed up.
    assert_eq!(
        r("vadd2.u32.u32.u32 %r9.h1, %r3.h02, %r4.h31, %r2;"),
        (0x0304 + 0x0403) << 16 | 300
    );
    assert_eq!(
        r("vadd2.u32.u32.u32.add %r9.h1, %r3.h02, %r4.h31, %r2;"),
        0x0304 + 0x0403 + 300
    );
    assert_eq!(
        r("vset4.u32.u32.le %r9.b20, %r3, %r4.b4567, %r4;"),
        0x0401_0201
    );
    assert_eq!(
        r("vsub2.s32.s32.s32.sat %r9, %r1.h00, %r3, %r2;"),
        0xfeee_fcec
    );
    assert_eq!(
        r("vmax4.s32.s32.s32.add %r9.b3, %r1.b0000, %r3.b3333, %r2;"),
        299
    );
    assert_eq!(r("vmad.s32.s32.s32 %r9, %r1, %r2, 7;") as i32, -4793);
    // 300's low byte is 44.
    assert_eq!(
        r("vmad.s32.s32.s32.po.shr7 %r9, %r2.b0, 4, %r2;"),
        (44 * 4 + 300 + 1) >> 7
    );
    assert_eq!(r("vmad.u32.u32.u32.sat %r9, %r1, %r1, 0;"), u32::MAX);
    // Of 32-bit unsigned factors too the sum is signed where something is negated.
    assert_eq!(
        r("vmad.u32.u32.u32 %r9, -%r2, %r2, %r2;") as i32,
        300 - 90_000
    );
    assert_eq!(
        r("vmad.u32.u32.u32 %r9, -%r2.b0, -%r2, -%r2;"),
        44 * 300 - 300
    );
    assert_eq!(
        r("vmad.u32.u32.u32.sat %r9, %r2, -%r1, %r2;"),
        i32::MIN as u32
    );
}

#[test]
fn lanes_may_call_different_functions() {
    let functions = ".func (.reg .b32 r) twice(.reg .b32 a) { add.u32 r, a, a; ret; }
.func (.reg .b32 r) square(.reg .b32 a) { mul.lo.u32 r, a, a; ret; }
.global .align 8 .u64 table[2] = {twice, square};";
    let text = format!(
        ".version 8.8\n.target sm_90a\n.address_size 64\n{functions}
.visible .entry k(.param .u64 out) {{ .reg .b32 %r<9>; .reg .b64 %d<9>;
mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 1; mul.wide.u32 %d1, %r1, 8; mov.u64 %d2, table; add.s64 %d2, %d2, %d1; ld.global.u64 %d3, [%d2];
call (%r2), %d3, (%r0); mul.wide.u32 %d4, %r0, 4; ld.param.u64 %d0, [out]; add.s64 %d0, %d0, %d4; bar.sync 0; st.global.u32 [%d0], %r2; ret; }}"
    );
    let out = common::clean(&text, &axe_sim::Launch::new("k", 1, 48, vec![]), || {
        vec![common::Given::Out(192)]
    });
    let want: Vec<u32> = (0..48)
        .map(|i| if i % 2 == 0 { 2 * i } else { i * i })
        .collect();
    assert_eq!(common::to_words(&out[0]), want);
}
