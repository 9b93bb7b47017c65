//! Products with what they become, and why not.

use crate::given::{check, psum, sbuf};
use crate::tiles::{Kernel, Tensor};
use axe_trn::dispatch::{self, Declined, Reason};
use axe_trn::program::Accumulate;
use axe_trn::rules;

/// `[m, k]` transposed by `[k, n]`.
fn gemm(chip: &str, tensors: &[Tensor; 3]) -> String {
    let k = tensors[1].valid.as_ref().unwrap_or(&tensors[1].shape)[0];
    check(
        chip,
        tensors,
        &|b, r| dispatch::gemm(b, &r[0], &r[1], &r[2], [true, false], Accumulate::Auto),
        &|at, of| {
            (0..k)
                .map(|k| of(1, &[k, at[0]]) * of(2, &[k, at[1]]))
                .sum()
        },
    )
}

fn declined(tensors: &[Tensor; 3]) -> Declined {
    let mut kernel = Kernel::new("trn1", tensors);
    let r = kernel.regions.clone();
    let before = kernel.b;
    let mut b = before;
    let why = dispatch::gemm(&mut b, &r[0], &r[1], &r[2], [true, false], Accumulate::Auto);
    kernel.b = b;
    // Nothing is left behind.
    let program = kernel.finish(tensors);
    let mut products = 0;
    program.instructions(&mut |instruction, _| {
        products += usize::from(instruction.op.name() == "nc_matmul");
    });
    assert_eq!((rules::check(&program), products), (vec![], 0));
    why.unwrap_err()
}

#[test]
fn products_take_the_largest_instruction() {
    let d = psum(&[128, 512], "S[(128, 512) : (1@P, 1@F)]", [128, 512]);
    let lhs = sbuf(
        &[256, 128],
        "S[(2, 128, 128) : (128@F, 1@P, 1@F)]",
        [128, 256],
    );
    let rhs = sbuf(
        &[256, 512],
        "S[(2, 128, 512) : (512@F, 1@P, 1@F)]",
        [128, 1024],
    );
    let bound = gemm("trn2", &[d, lhs, rhs]);
    assert_eq!(bound, "lhs stationary: 2 nc_matmul 128x128x512 on tensor");
}

/// An order of partitions that is the same in both is as good as the consecutive one, whatever it is.
#[test]
fn products_take_any_order_of_k_that_both_have() {
    for order in [
        "(4, 32) : (1@P, 4@P)",
        "(2, 4, 16) : (16@P, 32@P, 1@P)",
        "(128) : (-1@P)",
    ] {
        let (extents, strides) = order.split_once(") : (").unwrap();
        let (extents, strides) = (
            extents.trim_start_matches('('),
            strides.trim_end_matches(')'),
        );
        let offset = if strides.starts_with('-') {
            " + 127@P"
        } else {
            ""
        };
        let of = |n: i64| format!("S[({extents}, {n}) : ({strides}, 1@F)]{offset}");
        let d = psum(&[32, 64], "S[(32, 64) : (1@P, 1@F)]", [32, 64]);
        let lhs = sbuf(&[128, 32], &of(32), [128, 32]);
        let rhs = sbuf(&[128, 64], &of(64), [128, 64]);
        let bound = gemm("trn1", &[d, lhs, rhs]);
        assert_eq!(
            bound, "lhs stationary: 1 nc_matmul 128x32x64 on tensor",
            "{order}"
        );
    }
}

/// The counts agree, 128 indices of K on 128 partitions: the indices do not.
#[test]
fn products_of_other_orders_are_declined() {
    for (of_lhs, of_rhs) in [
        (
            "(4, 32, N) : (32@P, 1@P, 1@F)",
            "(4, 32, N) : (1@P, 4@P, 1@F)",
        ),
        ("(128, N) : (1@P, 1@F)", "(2, 64, N) : (1@P, 2@P, 1@F)"),
        (
            "(8, 16, N) : (16@P, 1@P, 1@F)",
            "(8, 16, N) : (1@P, 8@P, 1@F)",
        ),
    ] {
        let of = |text: &str, n: &str| format!("S[{}]", text.replace('N', n));
        let d = psum(&[32, 64], "S[(32, 64) : (1@P, 1@F)]", [32, 64]);
        let lhs = sbuf(&[128, 32], &of(of_lhs, "32"), [128, 32]);
        let rhs = sbuf(&[128, 64], &of(of_rhs, "64"), [128, 64]);
        let why = declined(&[d, lhs, rhs]);
        let [(_, first), _] = why.reasons.as_slice() else {
            panic!("{why}")
        };
        assert!(matches!(first, Reason::PartitionOrder { .. }), "{why}");
    }
}

/// Quadrants in another order are products of 32, whose starts are legal.
#[test]
fn quadrants_in_other_orders_are_smaller_products() {
    let d = psum(&[32, 64], "S[(32, 64) : (1@P, 1@F)]", [32, 64]);
    let lhs = sbuf(&[128, 32], "S[(4, 32, 32) : (32@P, 1@P, 1@F)]", [128, 32]);
    let rhs = sbuf(
        &[128, 64],
        "S[(4, 32, 64) : (-32@P, 1@P, 1@F)] + 96@P",
        [128, 64],
    );
    let bound = gemm("trn1", &[d, lhs, rhs]);
    assert_eq!(bound, "lhs stationary: 4 nc_matmul 32x32x64 on tensor");
}

#[test]
fn products_stay_in_banks_and_take_tails() {
    for (n, start, expected) in [
        (
            640,
            0,
            "1 nc_matmul 64x32x512 on tensor, 1 nc_matmul 64x32x128 on tensor",
        ),
        (
            768,
            0,
            "1 nc_matmul 64x32x512 on tensor, 1 nc_matmul 64x32x256 on tensor",
        ),
        (
            1000,
            0,
            "1 nc_matmul 64x32x512 on tensor, 1 nc_matmul 64x32x488 on tensor",
        ),
        (1024, 0, "2 nc_matmul 64x32x512 on tensor"),
        (
            1024,
            256,
            "2 nc_matmul 64x32x256 on tensor, 1 nc_matmul 64x32x512 on tensor",
        ),
    ] {
        let text = format!("S[(32, {n}) : (1@P, 1@F)]");
        let mut d = psum(&[32, n], &text, [32, 2048]);
        d.start.1 = start;
        let lhs = sbuf(&[64, 32], "S[(64, 32) : (1@P, 1@F)]", [64, 32]);
        let rhs = sbuf(&[64, n], &format!("S[(64, {n}) : (1@P, 1@F)]"), [64, n]);
        let bound = gemm("trn1", &[d, lhs, rhs]);
        assert_eq!(bound, format!("lhs stationary: {expected}"));
    }
}

/// 1000 rows of 8 x 128, 500 indices of K of 4 x 128.
#[test]
fn what_is_in_use_ends_inside_a_tile() {
    let mut d = psum(
        &[1024, 64],
        "S[(8, 128, 64) : (64@F, 1@P, 1@F)]",
        [128, 512],
    );
    let mut lhs = sbuf(
        &[512, 1024],
        "S[(4, 128, 1024) : (1024@F, 1@P, 1@F)]",
        [128, 4096],
    );
    let mut rhs = sbuf(&[512, 64], "S[(4, 128, 64) : (64@F, 1@P, 1@F)]", [128, 256]);
    d.valid = Some(vec![1000, 64]);
    lhs.valid = Some(vec![500, 1000]);
    rhs.valid = Some(vec![500, 64]);
    let bound = gemm("trn1", &[d, lhs, rhs]);
    assert_eq!(
        bound,
        "lhs stationary: 21 nc_matmul 128x128x64 on tensor, 7 nc_matmul 116x128x64 on tensor, \
         3 nc_matmul 128x104x64 on tensor, 1 nc_matmul 116x104x64 on tensor"
    );
}

/// A vector on one partition, and one across partitions.
#[test]
fn products_give_vectors() {
    let lhs = sbuf(&[128, 1], "S[(128) : (1@P)]", [128, 1]);
    let rhs = sbuf(&[128, 600], "S[(128, 600) : (1@P, 1@F)]", [128, 600]);
    let row = psum(&[1, 600], "S[(600) : (1@F)]", [1, 600]);
    let bound = gemm("trn1", &[row, lhs.clone(), rhs]);
    assert_eq!(
        bound,
        "lhs stationary: 1 nc_matmul 128x1x512 on tensor, 1 nc_matmul 128x1x88 on tensor"
    );
    let rhs = sbuf(&[128, 100], "S[(128, 100) : (1@P, 1@F)]", [128, 100]);
    let column = psum(&[1, 100], "S[(100) : (1@P)]", [100, 1]);
    let bound = gemm("trn1", &[column, lhs, rhs]);
    assert_eq!(bound, "rhs stationary: 1 nc_matmul 128x100x1 on tensor");
}

/// Replicas of the result are columns of the stationary operand that repeat.
#[test]
fn products_write_replicas() {
    let lhs = sbuf(&[64, 1], "S[(64) : (1@P)]", [64, 1]);
    let rhs = sbuf(&[64, 96], "S[(64, 96) : (1@P, 1@F)]", [64, 96]);
    let d = psum(&[1, 96], "S[(96) : (1@F)] + R[128 : 1@P]", [128, 96]);
    let bound = gemm("trn2", &[d, lhs, rhs]);
    assert_eq!(bound, "lhs stationary: 1 nc_matmul 64x128x96 on tensor");
}
