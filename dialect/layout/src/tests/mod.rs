//! Laws: every operation against brute force on generated layouts.

mod core;
mod factor;
mod laws;
mod slice;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::generate::Choices;
use crate::{Axis, Coord, Layout, oracle};

/// Runs `law` on choices read from random bytes.
pub(crate) fn check(cases: u32, law: impl Fn(&mut Choices<'_>)) {
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(bytes in vec(any::<u8>(), 0..80))| law(&mut Choices::new(&bytes)));
}

pub(crate) fn parse(text: &str) -> Layout {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

pub(crate) fn coord(point: &oracle::Point) -> Coord {
    Coord::from_terms(point.iter().map(|(&a, &v)| (a, i64::try_from(v).unwrap()))).unwrap()
}

pub(crate) fn axis(name: &str) -> Axis {
    Axis::new(name).unwrap()
}
