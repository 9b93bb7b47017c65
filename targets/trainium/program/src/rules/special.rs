//! Rules of selections by index, of iota, of statistics and of the eight largest.

use super::Checker;
use crate::program::{Alu, Op, View};
use axe_package::DType;

/// Elements that `bn_stats` takes at most (ISA).
const STATISTICS_ELEMENTS: i64 = 512;
/// Elements among which the eight largest are found (ISA).
const TOP_ELEMENTS: std::ops::RangeInclusive<i64> = 8..=16384;

pub(super) fn check(checker: &mut Checker<'_>) {
    match &checker.instruction.op {
        Op::AffineSelect {
            dst,
            pattern,
            compare,
            ..
        } => {
            checker.same_shape();
            checker.pattern(dst, pattern);
            checker.comparison(*compare);
        }
        Op::RangeSelect {
            compare0, compare1, ..
        } => {
            checker.same_shape();
            checker.comparison(*compare0);
            checker.comparison(*compare1);
        }
        Op::Iota { dst, pattern, .. } => checker.pattern(dst, pattern),
        Op::BnStats { dst, data } => {
            let n = data.free();
            checker.expect(n <= STATISTICS_ELEMENTS, "BN1", || {
                format!("expected at most {STATISTICS_ELEMENTS} elements a partition, got {n}")
            });
            checker.columns(dst, data, 6, "BN1");
        }
        Op::BnAggr { dst, data } => {
            let n = data.free();
            checker.expect(n % 3 == 0, "BN1", || {
                format!("expected triples, got {n} elements a partition")
            });
            checker.columns(dst, data, 2, "BN1");
        }
        Op::Max8 { dst, src } => {
            checker.among(src);
            checker.columns(dst, src, 8, "MX2");
        }
        Op::NcFindIndex8 { dst, data, vals } => {
            checker.among(data);
            checker.columns(vals, data, 8, "MX2");
            checker.columns(dst, data, 8, "MX2");
            let dtype = checker.dtype(dst);
            checker.expect(dtype == DType::U32, "MX2", || {
                format!("expected indices of u32, got {dtype}")
            });
        }
        Op::NcMatchReplace8 {
            dst, data, vals, ..
        } => {
            checker.among(data);
            checker.columns(vals, data, 8, "MX2");
            let n = data.free();
            checker.columns(dst, data, n, "O9");
        }
        _ => {}
    }
}

impl Checker<'_> {
    /// (SE1).
    fn pattern(&mut self, dst: &View, pattern: &[i64]) {
        let free = dst.axes.len().saturating_sub(1);
        self.expect(pattern.len() == free, "SE1", || {
            format!(
                "expected {free} steps, one for each free dimension of dst, got {}",
                pattern.len()
            )
        });
    }

    /// (SE2).
    fn comparison(&mut self, op: Alu) {
        self.expect(op.is_comparison(), "SE2", || {
            format!("expected a comparison, got {op}")
        });
    }

    /// (MX1).
    fn among(&mut self, data: &View) {
        let n = data.free();
        self.expect(TOP_ELEMENTS.contains(&n), "MX1", || {
            format!("expected 8 to 16384 elements a partition, got {n}")
        });
    }

    /// That `tile` has the partitions of `data` and so many columns.
    fn columns(&mut self, tile: &View, data: &View, columns: i64, rule: &'static str) {
        let (p, f, partitions) = (tile.partitions(), tile.free(), data.partitions());
        self.expect(p == partitions, "O8", || {
            format!("expected {partitions} partitions in both tiles, got {p}")
        });
        self.expect(f == columns, rule, || {
            format!("expected {columns} elements a partition, got {f}")
        });
    }
}
