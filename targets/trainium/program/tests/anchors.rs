//! The cost model beside the times that the vendor publishes, and the values of the same kernels at small sizes.

use axe_package::DType;
use axe_trn::kernels::{PUBLISHED, PUBLISHED_SIZES, Tutorial, matmul};
use axe_trn::run::{execute, memory};
use axe_trn::{sync, time};

/// Numbers that every type here holds exactly.
fn numbers(count: i64, seed: i64) -> Vec<f32> {
    (0..count)
        .map(|i| ((i * 7 + seed * 13 + i / 11) % 9 - 4) as f32)
        .collect()
}

#[test]
fn published_times_within_a_tenth() {
    for published in PUBLISHED {
        let program = matmul(published.kernel, PUBLISHED_SIZES, DType::BF16, "trn1").unwrap();
        let timing = time::simulate(&program).unwrap();
        println!(
            "{timing}\n  published {:.2} ms, ratio {:.3}",
            published.seconds * 1e3,
            timing.seconds / published.seconds
        );
        let ratio = timing.seconds / published.seconds;
        assert!(
            (0.9..=1.1).contains(&ratio),
            "{:?}: {ratio:.3}",
            published.kernel
        );
        assert!(timing.bound <= timing.seconds * (1.0 + 1e-9));
    }
    assert!(
        PUBLISHED
            .iter()
            .filter(|published| published.fitted)
            .count()
            <= 3
    );
}

#[test]
fn kernels_compute_products_without_findings() {
    for (kernel, sizes) in [
        (Tutorial::Tiled, [256, 256, 512]),
        (Tutorial::HoistLoad, [128, 384, 1024]),
        (Tutorial::BlockFreeDimension, [256, 256, 1024]),
    ] {
        let [m, k, n] = sizes;
        let program = matmul(kernel, sizes, DType::BF16, "trn1").unwrap();
        let (a, b) = (numbers(k * m, 1), numbers(k * n, 2));
        let inputs = [
            memory::encode(DType::BF16, &a),
            memory::encode(DType::BF16, &b),
        ];
        let outcome = execute(&program, &inputs).unwrap();
        assert!(outcome.findings.is_empty(), "{}", outcome.findings[0]);
        let got = memory::decode(DType::BF16, &outcome.outputs[0]);
        for row in [0, m / 2 + 1, m - 1] {
            for column in (0..n).step_by(37) {
                let sum: f32 = (0..k)
                    .map(|x| a[(x * m + row) as usize] * b[(x * n + column) as usize])
                    .sum();
                let expected = memory::decode(DType::BF16, &memory::encode(DType::BF16, &[sum]))[0];
                assert_eq!(
                    got[(row * n + column) as usize],
                    expected,
                    "{kernel:?} {row} {column}"
                );
            }
        }
        let trace = sync::trace(&program).unwrap();
        assert!(sync::hazards(&trace, &sync::semaphores(&trace)).is_empty());
    }
}

#[test]
fn sizes_that_no_tile_divides_are_none() {
    assert!(matmul(Tutorial::Tiled, [100, 128, 512], DType::BF16, "trn1").is_none());
    assert!(
        matmul(
            Tutorial::FullyOptimized,
            [1024, 1024, 1024],
            DType::BF16,
            "trn1"
        )
        .is_none()
    );
}

#[test]
fn a_picture_has_a_row_for_each_engine() {
    let program = matmul(Tutorial::Tiled, [256, 512, 512], DType::BF16, "trn2").unwrap();
    let svg = time::svg::svg(&time::simulate(&program).unwrap());
    for name in ["tensor", "vector", "scalar", "gpsimd", "dma", "nc_matmul"] {
        assert!(svg.contains(&format!(">{name}")), "{name}");
    }
}
