//! Plans of many layouts, and what declines.

use super::cases::*;
use super::*;
use crate::facts::wgmma::{Accumulator, Element, Major, Swizzle};
use axe_layout::{Axis, Iter};

fn strides(major: Major, swizzle: Swizzle, leading: i64, stride: i64) -> Strides {
    Strides {
        major,
        swizzle,
        leading,
        stride,
    }
}

fn shared(plan: &WgmmaPlan) -> &Shared {
    match &plan.a {
        Source::Shared(shared) => shared,
        Source::Registers => panic!("A is in registers"),
    }
}

#[test]
fn the_tile_of_a_fast_gemm() {
    let a = Memory::swizzled(Major::K, Swizzle::B128, 128, 64, 2);
    let b = Memory::swizzled(Major::K, Swizzle::B128, 256, 64, 2);
    let plan = plan(BF16, &a, &b, &accumulators(128, 256, [2, 1])).unwrap();
    assert_eq!(
        (plan.atom.n, plan.steps, plan.instructions.len()),
        (256, 4, 4)
    );
    super::super::written(&plan);
    assert_eq!(
        shared(&plan).strides,
        strides(Major::K, Swizzle::B128, 16, 1024)
    );
    assert_eq!(shared(&plan).warpgroup(1), 64 * 128);
    assert_eq!(plan.b.strides, strides(Major::K, Swizzle::B128, 16, 1024));
    assert!(plan.b.terms.is_empty());
    for (step, instruction) in (0..).zip(&plan.instructions) {
        assert_eq!(instruction.a, InstructionA::Offset(32 * step));
        assert_eq!(instruction.b, 32 * step);
        assert_eq!(instruction.d, (0..128).collect::<Vec<_>>());
    }
}

#[test]
fn several_blocks_and_spans() {
    let a = Memory::swizzled(Major::K, Swizzle::B128, 256, 128, 2);
    let b = Memory::swizzled(Major::K, Swizzle::B128, 64, 128, 2);
    let plan = plan(F16, &a, &b, &accumulators(256, 64, [2, 1])).unwrap();
    assert_eq!(
        (plan.atom.n, plan.steps, plan.instructions.len()),
        (64, 8, 16)
    );
    assert_eq!(shared(&plan).warpgroup(1), 128 * 128);
    // The second block of 64 rows, and the second span after four steps.
    assert_eq!(plan.instructions[1].a, InstructionA::Offset(64 * 128));
    assert_eq!(plan.instructions[1].d[0], 32);
    assert_eq!(plan.instructions[8].a, InstructionA::Offset(256 * 128));
    assert_eq!(plan.instructions[8].b, 64 * 128);
}

#[test]
fn rows_of_m_and_n() {
    let a = Memory::swizzled(Major::Mn, Swizzle::B128, 128, 32, 2);
    let b = Memory::swizzled(Major::Mn, Swizzle::B64, 96, 32, 2);
    let plan = plan(F16, &a, &b, &accumulators(128, 96, [1, 1])).unwrap();
    assert_eq!((plan.atom.n, plan.instructions.len()), (96, 4));
    // One span is 64 rows: nothing depends on the leading offset of A.
    assert_eq!(
        shared(&plan).strides,
        strides(Major::Mn, Swizzle::B128, 16, 1024)
    );
    assert_eq!(
        plan.b.strides,
        strides(Major::Mn, Swizzle::B64, 32 * 64, 512)
    );
    assert_eq!(plan.instructions[1].a, InstructionA::Offset(32 * 128));
    assert_eq!(plan.instructions[2].b, 2 * 512);
}

#[test]
fn core_matrices_without_a_swizzle() {
    // Core matrices of 8 x 8, by rows of core matrices and by columns.
    let by_rows = Memory::of("S[(8, 8, 4, 8) : (256, 8, 64, 1)]", 64, 32);
    let by_columns = Memory::of("S[(4, 8, 4, 8) : (64, 8, 256, 1)]", 32, 32);
    let k_major = plan(F16, &by_rows, &by_columns, &accumulators(64, 32, [1, 1])).unwrap();
    assert_eq!(
        shared(&k_major).strides,
        strides(Major::K, Swizzle::None, 128, 512)
    );
    assert_eq!(
        k_major.b.strides,
        strides(Major::K, Swizzle::None, 512, 128)
    );
    // Core matrices whose rows are along m.
    let a = Memory::of("S[(8, 8, 4, 8) : (64, 1, 512, 8)]", 64, 32);
    let mn_major = plan(F16, &a, &by_columns, &accumulators(64, 32, [1, 1])).unwrap();
    assert_eq!(
        shared(&mn_major).strides,
        strides(Major::Mn, Swizzle::None, 1024, 128)
    );
}

#[test]
fn a_stage_of_a_ring() {
    let stages: Layout = "Sw<3,3,3> o S[(4, 64, 64) : (4096, 64, 1)]"
        .parse()
        .unwrap();
    let stage = stages
        .with_swizzle(None)
        .slice(&[4, 64, 64], &[2..3, 0..64, 0..64])
        .unwrap();
    let a = Memory {
        layout: stage.with_swizzle(Swizzle::B128.xor(2).unwrap()),
        shape: [64, 64],
        k_first: false,
    };
    let b = Memory::swizzled(Major::K, Swizzle::B128, 8, 64, 2);
    let plan = plan(F16, &a, &b, &accumulators(64, 8, [1, 1])).unwrap();
    assert_eq!(plan.instructions[0].a, InstructionA::Offset(2 * 8192));
    assert_eq!(plan.instructions[3].a, InstructionA::Offset(2 * 8192 + 96));
}

#[test]
fn b_that_changes_its_pitch_takes_narrower_instructions() {
    // Rows 0 to 63 and 64 to 127 are 1 KiB further apart than they would be in one run, and warpgroups split n.
    let b = Memory::of("Sw<3,3,3> o S[(2, 64, 64) : (4608, 64, 1)]", 128, 64);
    let a = Memory::swizzled(Major::K, Swizzle::B128, 64, 64, 2);
    let alone = plan(F16, &a, &b, &accumulators(64, 128, [1, 1])).unwrap();
    assert_eq!((alone.atom.n, alone.instructions.len()), (64, 8));
    assert_eq!(alone.instructions[1].b, 9216);
    let split = plan(F16, &a, &b, &accumulators(64, 128, [1, 2])).unwrap();
    assert_eq!((split.atom.n, split.instructions.len()), (64, 4));
    assert_eq!(
        (split.b.warpgroup(1), shared(&split).warpgroup(1)),
        (9216, 0)
    );
}

#[test]
fn a_grid_of_warpgroups() {
    let a = Memory::swizzled(Major::K, Swizzle::B64, 128, 32, 2);
    let b = Memory::swizzled(Major::K, Swizzle::B64, 64, 32, 2);
    let plan = plan(F16, &a, &b, &accumulators(128, 64, [2, 2])).unwrap();
    let places: Vec<_> = (0..4)
        .map(|g| (shared(&plan).warpgroup(g), plan.b.warpgroup(g)))
        .collect();
    assert_eq!(places, [(0, 0), (0, 2048), (4096, 0), (4096, 2048)]);
    let three = accumulators(192, 64, [3, 1]);
    let a = Memory::swizzled(Major::K, Swizzle::B64, 192, 32, 2);
    let plan = super::cases::plan(F16, &a, &b, &three).unwrap();
    assert_eq!(
        (0..3)
            .map(|g| shared(&plan).warpgroup(g))
            .collect::<Vec<_>>(),
        [0, 4096, 8192]
    );
}

#[test]
fn a_in_registers() {
    for types in [F16, HALF, TF32, E4M3, S8] {
        let k = 4 * types.k();
        let fragment = registers_of_a(types, 128, k, [2, 1]);
        let b = Memory::swizzled(Major::K, Swizzle::B128, 64, k, types.a.bytes());
        let d = accumulators(128, 64, [2, 1]);
        let product = Product {
            types,
            a: Operand::Registers(&fragment),
            b: b.matrix(),
            d: &d,
        };
        let plan = WgmmaPlan::new(&product).unwrap();
        super::super::written(&plan);
        plan.verify(&product).unwrap();
        let per = 16 / types.a.bytes();
        assert_eq!(
            plan.instructions[2].a,
            InstructionA::Registers((2 * per..3 * per).collect())
        );
        let block = plan.block(Start::Zero);
        assert_eq!(block.a_words.len(), 16);
    }
}

/// A product of bytes with A in registers.
fn of_bytes<'a>(a: &'a Fragment, b: &'a Memory, d: &'a Fragment) -> Product<'a> {
    Product {
        types: E4M3,
        a: Operand::Registers(a),
        b: b.matrix(),
        d,
    }
}

#[test]
fn k_is_in_any_order_in_which_registers_and_memory_agree() {
    let d = accumulators(128, 64, [2, 1]);
    let natural = accumulators(128, 128, [2, 1]);
    // Registers of a word follow each other, or not.
    let words = "S[(8, 2, 8, 8, 2, 4, 2) : (1@warp, 4@reg, 4@lane, 8@reg, 2@reg, 1@lane, 1@reg)]";
    let words = Fragment::new(&words.parse().unwrap(), &[128, 128], 256).unwrap();
    for (fragment, first) in [(natural, [0, 1, 4, 5]), (words, [0, 1, 2, 3])] {
        // Of each 16 k, memory has 0, 1, 8, 9, 2, 3, ...
        let b = Memory::of(
            "Sw<3,4,3> o S[(64, 8, 2, 4, 2) : (128, 16, 2, 4, 1)]",
            64,
            128,
        );
        let product = of_bytes(&fragment, &b, &d);
        let plan = WgmmaPlan::new(&product).unwrap();
        plan.verify(&product).unwrap();
        let InstructionA::Registers(registers) = &plan.instructions[0].a else {
            panic!("A is in registers");
        };
        assert_eq!(registers[..4], first);
        // In the order of k itself, or in another one, accumulators are no A.
        for other in ["(128, 16, 8, 2, 1)", "(128, 16, 1, 2, 8)"] {
            let text = format!("Sw<3,4,3> o S[(64, 8, 2, 4, 2) : {other}]");
            let b = Memory::of(&text, 64, 128);
            assert!(
                WgmmaPlan::new(&of_bytes(&fragment, &b, &d)).is_err(),
                "{other}"
            );
        }
    }
}

#[test]
fn every_width_is_used() {
    for types in [F16, S8] {
        for n in types.columns() {
            let k = types.k();
            let a = Memory::swizzled(Major::K, Swizzle::B32, 64, k, types.a.bytes());
            let b = Memory::swizzled(Major::K, Swizzle::B32, n, k, types.a.bytes());
            let plan = plan(types, &a, &b, &accumulators(64, n, [1, 1])).unwrap();
            assert_eq!(plan.atom.n, n);
        }
    }
    // 40 columns of integers take five instructions of 8.
    let a = Memory::swizzled(Major::K, Swizzle::B32, 64, 32, 1);
    let b = Memory::swizzled(Major::K, Swizzle::B32, 40, 32, 1);
    let plan = plan(S8, &a, &b, &accumulators(64, 40, [1, 1])).unwrap();
    assert_eq!((plan.atom.n, plan.instructions.len()), (8, 5));
}

#[test]
fn declines_say_what_is_in_the_way() {
    let good = Memory::swizzled(Major::K, Swizzle::B128, 64, 64, 2);
    let d = accumulators(64, 64, [1, 1]);
    let reason =
        |types, a: &Memory, d: &Fragment| plan(types, a, &good, d).unwrap_err().to_string();
    let a = |text: &str| Memory::of(text, 64, 64);
    let expect = |got: String, part: &str| assert!(got.contains(part), "{got}");
    expect(
        reason(F16, &a("Sw<3,3,3> o S[(64, 64) : (72, 1)]"), &d),
        "A: with rows of k: expected rows 128 bytes apart, got 144",
    );
    expect(
        reason(F16, &a("Sw<3,2,3> o S[(64, 64) : (64, 1)]"), &d),
        "expected no swizzle or Sw<1 to 3, 3, 3>",
    );
    expect(
        reason(F16, &a("S[(64, 64) : (64, 1)]"), &d),
        "expected rows 16 bytes apart, got 128",
    );
    expect(
        reason(F16, &a("Sw<3,3,3> o S[(64, 64) : (64, 1)] + 256"), &d),
        "first row of 128",
    );
    expect(
        reason(F16, &a("Sw<3,3,3> o S[(64, 64) : (64, 1)] + 4"), &d),
        "multiple of 16",
    );
    expect(
        reason(F16, &a("S[(8, 8, 8, 8) : (1048576, 8, 64, 1)]"), &d),
        "below 262144",
    );
    expect(
        reason(F16, &a("S[(64, 64) : (1@lane, 1)]"), &d),
        "axis m alone",
    );
    expect(
        reason(
            BF16,
            &Memory::swizzled(Major::K, Swizzle::B128, 128, 64, 2),
            &d,
        ),
        "expected D[m, n]",
    );
    let wrong = Types {
        a: Element::Bf16,
        b: Element::Bf16,
        d: Accumulator::F16,
    };
    expect(reason(wrong, &good, &d), "no wgmma of types f16.bf16.bf16");
    let rows = Memory::swizzled(Major::Mn, Swizzle::B128, 64, 64, 1);
    let bytes = Memory::swizzled(Major::K, Swizzle::B64, 64, 64, 1);
    expect(
        plan(E4M3, &rows, &bytes, &d).unwrap_err().to_string(),
        "e4m3 allows rows of k alone",
    );
    let of_mma: Layout = "S[(4, 2, 8, 8, 4, 2) : (1@warp, 16@reg, 4@lane, 2@reg, 1@lane, 1@reg)]"
        .parse()
        .unwrap();
    let of_mma = Fragment::new(&of_mma, &[64, 64], 128).unwrap();
    assert!(
        plan(F16, &good, &good, &of_mma).is_ok(),
        "registers in another order"
    );
    let strided: Layout = "S[(2, 8, 4, 8, 4, 2) : (2@reg, 4@lane, 1@warp, 4@reg, 1@lane, 1@reg)]"
        .parse()
        .unwrap();
    let strided = Fragment::new(&strided, &[64, 64], 128).unwrap();
    expect(reason(F16, &good, &strided), "begins no 64 x 8 block");
    let warp = Fragment::new(
        &"S[(64, 64) : (64@reg, 1@reg)]".parse().unwrap(),
        &[64, 64],
        32,
    );
    if let Ok(warp) = warp {
        expect(reason(F16, &good, &warp), "whole warpgroups");
    }
    let half = Memory::of("S[(64, 8) : (8, 1)]", 64, 8);
    expect(
        plan(F16, &half, &half, &d).unwrap_err().to_string(),
        "steps of 16",
    );
}

#[test]
fn a_wrong_plan_does_not_pass_the_check() {
    let a = Memory::swizzled(Major::K, Swizzle::B128, 128, 64, 2);
    let b = Memory::swizzled(Major::Mn, Swizzle::B128, 128, 64, 2);
    let d = accumulators(128, 128, [2, 1]);
    let product = Product {
        types: F16,
        a: Operand::Shared(a.matrix()),
        b: b.matrix(),
        d: &d,
    };
    let plan = WgmmaPlan::new(&product).unwrap();
    let broken: [fn(&mut WgmmaPlan); 8] = [
        |plan| plan.b.strides.stride += 1024,
        |plan| plan.b.strides.leading += 1024,
        |plan| plan.b.strides.swizzle = Swizzle::B64,
        |plan| plan.b.strides.major = Major::K,
        |plan| plan.instructions[1].b += 16,
        |plan| plan.instructions[1].a = InstructionA::Offset(0),
        |plan| plan.instructions[1].d.swap(0, 1),
        |plan| {
            plan.instructions.pop();
        },
    ];
    for (at, breaks) in broken.iter().enumerate() {
        let mut wrong = plan.clone();
        breaks(&mut wrong);
        assert!(wrong.check(&product).is_err(), "{at}");
    }
    let mut wrong = plan.clone();
    if let Source::Shared(shared) = &mut wrong.a {
        shared.terms.clear();
    }
    assert!(wrong.check(&product).is_err());
}

#[test]
fn blocks_name_their_operands() {
    let a = Memory::swizzled(Major::K, Swizzle::B32, 64, 32, 2);
    let b = Memory::swizzled(Major::Mn, Swizzle::None, 8, 32, 2);
    let plan = plan(F16, &a, &b, &accumulators(64, 8, [1, 1])).unwrap();
    let block = plan.block(Start::Keep);
    assert_eq!(block.constraints, "=f,=f,=f,=f,0,1,2,3,l,l,~{memory}");
    let expected = "{
.reg .pred first, more;
setp.ne.b32 first, 1, 0;
setp.ne.b32 more, 1, 0;
.reg .b64 da0;
add.s64 da0, $8, 128;
.reg .b64 db0;
add.s64 db0, $9, 16;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, $8, $9, more, 1, 1, 0, 1;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, da0, db0, more, 1, 1, 0, 1;
wgmma.commit_group.sync.aligned;
}";
    assert_eq!(block.text, expected);
    let zero = plan.block(Start::Zero);
    assert_eq!(zero.constraints, "=&f,=&f,=&f,=&f,l,l,~{memory}");
    assert!(zero.text.contains("setp.ne.b32 first, 0, 0;"));
    assert!(zero.text.contains("$4, $5, first, 1, 1, 0, 1;"));
}

/// A layout that the descriptor expresses: spans or core matrices with gaps between them and an offset.
fn expressible(major: Major, swizzle: Swizzle, rows: i64, k: i64, bytes: i64, gap: i64) -> Memory {
    let pattern = swizzle.alignment() / bytes;
    let span = swizzle.span() / bytes;
    // Groups of 8 lines, `pattern + gap` apart; spans along the lines after all groups of a span.
    let (lines, along) = match major {
        Major::K => (rows, k),
        Major::Mn => (k, rows),
    };
    let group = pattern.max(8 * span) * (1 + gap);
    let text = format!(
        "S[({}, 8, {}, {span}) : ({group}, {span}, {}, 1)] + {}",
        lines / 8,
        along / span,
        lines / 8 * group + gap * pattern,
        gap * pattern
    );
    let layout: Layout = text.parse().unwrap();
    Memory {
        layout: layout.with_swizzle(swizzle.xor(bytes).unwrap()),
        shape: [lines, along],
        k_first: major == Major::Mn,
    }
}

/// Every combination of types, major orders, swizzles, grids and gaps, thinned out: `new` checks each.
#[test]
fn what_a_descriptor_expresses_is_planned() {
    let all = [F16, BF16, HALF, TF32, E4M3, S8];
    let grids = [[1, 1], [2, 1], [1, 2], [2, 2]];
    let majors = [Major::K, Major::Mn];
    let mut planned = 0;
    for number in (0..6 * 4 * 16 * 4 * 2 * 9).step_by(211) {
        let mut rest = number;
        let mut digit = |extent: usize| {
            let digit = rest % extent;
            rest /= extent;
            digit
        };
        let (types, grid) = (all[digit(6)], grids[digit(4)]);
        let (swizzle_a, swizzle_b) = (Swizzle::ALL[digit(4)], Swizzle::ALL[digit(4)]);
        let (mut major_a, mut major_b) = (majors[digit(2)], majors[digit(2)]);
        let [blocks, gap_a, gap_b] = [digit(2), digit(3), digit(3)].map(|x| x as i64);
        let bytes = types.a.bytes();
        if !types.may_transpose() {
            (major_a, major_b) = (Major::K, Major::K);
        }
        let (m, n, k) = (64 * (blocks + 1) * grid[0], 64 * grid[1], 128 / bytes);
        let a = expressible(major_a, swizzle_a, m, k, bytes, gap_a);
        let b = expressible(major_b, swizzle_b, n, k, bytes, gap_b);
        let plan = plan(types, &a, &b, &accumulators(m, n, grid))
            .unwrap_or_else(|reason| panic!("{types} {a:?} {b:?}: {reason}"));
        assert_eq!(plan.steps, 4);
        assert_eq!(shared(&plan).strides.major, major_a);
        assert_eq!(
            (plan.b.strides.major, plan.b.strides.swizzle),
            (major_b, swizzle_b)
        );
        planned += 1;
    }
    assert_eq!(planned, 132);
}

/// Digits of 8 rows, 8 groups, and 8 by 4 of k in every order in memory, with and without gaps: a plan, or a
/// reason before the check; never a plan that the check finds wrong.
#[test]
fn other_memory_declines() {
    let extents = [8i64, 8, 4, 8];
    let b = Memory::swizzled(Major::K, Swizzle::B32, 8, 32, 2);
    let d = accumulators(64, 8, [1, 1]);
    let (mut planned, mut declined) = (0, 0);
    for number in 0..24 * 4 * 8 {
        let (mut order, mut left) = (number / 32, vec![0usize, 1, 2, 3]);
        let mut strides = [0; 4];
        let mut stride = 1;
        for place in 0..4 {
            let digit = left.remove(order % left.len());
            order /= left.len() + 1;
            strides[digit] = stride;
            stride *= extents[digit] << (number >> place & usize::from(place > 0));
        }
        let iters = (0..4).map(|digit| Iter::new(extents[digit], strides[digit], Axis::M));
        let swizzle = Swizzle::ALL[number / 8 % 4];
        let layout = Layout::from_shard(iters).unwrap();
        let a = Memory {
            layout: layout.with_swizzle(swizzle.xor(2).unwrap()),
            shape: [64, 32],
            k_first: false,
        };
        match plan(F16, &a, &b, &d) {
            Ok(_) => planned += 1,
            Err(reason) => {
                assert!(!reason.to_string().contains("reads byte"), "{reason}");
                declined += 1;
            }
        }
    }
    assert!(planned > 20 && declined > 20, "{planned}, {declined}");
}
