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
    let error = axe_sim::Module::parse(text).unwrap_err().to_string();
    assert!(
        error.contains("line 7") && error.contains("frobnicate.b32"),
        "{error}"
    );
}
