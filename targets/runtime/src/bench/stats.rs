//! Summaries of ratios.

use serde::Serialize;

/// A set of ratios, library's time over ours: above 1 is faster than the library.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// How many.
    pub count: usize,
    /// Their geometric mean.
    pub geomean: f64,
    /// The smallest.
    pub worst: f64,
    /// The largest.
    pub best: f64,
}

/// The summary; `None` without ratios, or when one is no positive number.
#[must_use]
pub fn summary(ratios: &[f64]) -> Option<Summary> {
    let positive = ratios.iter().all(|r| r.is_finite() && *r > 0.0);
    if ratios.is_empty() || !positive {
        return None;
    }
    let mean = ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64;
    Some(Summary {
        count: ratios.len(),
        geomean: mean.exp(),
        worst: ratios.iter().copied().fold(f64::INFINITY, f64::min),
        best: ratios.iter().copied().fold(0.0, f64::max),
    })
}

/// The median of the last third of `samples` over that of the first third, in the order in which
/// they were taken: above 1, a chip that became slower (warm, or at its power limit). `None` for
/// fewer than six.
#[must_use]
pub fn drift(samples: &[f64]) -> Option<f64> {
    let third = samples.len() / 3;
    let first = samples.get(..third).filter(|_| third >= 2)?;
    let last = samples.get(samples.len() - third..)?;
    Some(crate::timing::median(last)? / crate::timing::median(first)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries() {
        let got = summary(&[0.5, 2.0, 1.0]).unwrap();
        assert!((got.geomean - 1.0).abs() < 1e-12);
        assert_eq!((got.count, got.worst, got.best), (3, 0.5, 2.0));
        assert_eq!(summary(&[]), None);
        assert_eq!(summary(&[1.0, 0.0]), None);
        assert_eq!(summary(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn drift_compares_the_ends() {
        assert_eq!(drift(&[1.0, 1.0, 5.0, 5.0, 2.0, 2.0]), Some(2.0));
        assert_eq!(drift(&[1.0; 5]), None);
    }
}
