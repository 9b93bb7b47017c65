//! Places in shared memory: storage whose lifetimes a barrier separates shares bytes.
//!
//! Time is the order of the operations in the kernel's body. A thread is past an operation's accesses when it
//! arrives at a barrier of the CTA that comes after it, and every other thread is when it leaves the barrier.

use super::Decline;
use std::fmt;

/// Storage that wants a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Bytes.
    pub bytes: i64,
    /// What divides its place.
    pub alignment: i64,
    /// The first operation of the kernel's body that accesses it, and the last one after which it is at rest.
    pub live: (usize, usize),
}

/// The places of a kernel's storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The first byte of each request.
    pub starts: Vec<i64>,
    /// Bytes of them together.
    pub bytes: i64,
    /// The barriers, by their place in the kernel's body, that separate storage which shares bytes.
    pub separators: Vec<usize>,
}

impl Request {
    /// The barrier after which `self` is at rest and before which `other` is, or the other way round.
    fn separator(&self, other: &Self, barriers: &[usize]) -> Option<usize> {
        let between = |first: &Self, second: &Self| {
            let inside = |at: &&usize| first.live.1 < **at && **at < second.live.0;
            barriers.iter().find(inside).copied()
        };
        between(self, other).or_else(|| between(other, self))
    }
}

impl Places {
    /// Gives each request, in order, the lowest place that no earlier one needs at the same time. `barriers` are
    /// the operations of the kernel's body at which all threads of the CTA meet.
    ///
    /// # Errors
    /// Sizes whose sum no number holds.
    pub fn new(requests: &[Request], barriers: &[usize]) -> Result<Self, Decline> {
        let mut starts: Vec<i64> = Vec::new();
        for (at, request) in requests.iter().enumerate() {
            let mut taken: Vec<(i64, i64)> = requests
                .iter()
                .take(at)
                .zip(&starts)
                .filter(|(other, _)| request.separator(other, barriers).is_none())
                .map(|(other, start)| (*start, start.saturating_add(other.bytes)))
                .collect();
            taken.sort_unstable();
            let mut start = 0_i64;
            for (from, to) in taken {
                let free = from >= start && from - start >= request.bytes;
                if !free {
                    start = align(start.max(to), request.alignment)?;
                }
            }
            starts.push(start);
        }
        Self::at(starts, requests, barriers)
    }

    /// The places that someone chose.
    ///
    /// # Errors
    /// As [`Places::check`].
    pub fn at(starts: Vec<i64>, requests: &[Request], barriers: &[usize]) -> Result<Self, Decline> {
        let places = Self {
            bytes: ends(requests, &starts).max().unwrap_or(0),
            separators: separators(requests, &starts, barriers),
            starts,
        };
        places.check(requests, barriers)?;
        Ok(places)
    }

    /// Checks every pair of requests: their bytes are apart, or a barrier is between their lifetimes that is one of
    /// the separators.
    ///
    /// # Errors
    /// The first pair for which that is not so.
    pub fn check(&self, requests: &[Request], barriers: &[usize]) -> Result<(), Decline> {
        if self.starts.len() != requests.len() {
            return Err(Decline::new("storage without a place"));
        }
        for (at, (request, &start)) in requests.iter().zip(&self.starts).enumerate() {
            let end = start.saturating_add(request.bytes);
            if start < 0 || start % request.alignment.max(1) != 0 || end > self.bytes {
                return Err(Decline::new(format!(
                    "storage {at} at [{start}, {end}) is not at a multiple of {} within {} bytes",
                    request.alignment, self.bytes
                )));
            }
            for (to, (other, &first)) in requests.iter().zip(&self.starts).enumerate().skip(at + 1)
            {
                let apart = end <= first || first.saturating_add(other.bytes) <= start;
                let separator = request.separator(other, barriers);
                if !apart && !separator.is_some_and(|at| self.separators.contains(&at)) {
                    return Err(Decline::new(format!(
                        "storage {at} and {to} share bytes, and no barrier separates their lifetimes"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Whether any bytes are shared.
    #[must_use]
    pub fn shares(&self) -> bool {
        !self.separators.is_empty()
    }
}

fn ends<'a>(requests: &'a [Request], starts: &'a [i64]) -> impl Iterator<Item = i64> + 'a {
    requests
        .iter()
        .zip(starts)
        .map(|(request, start)| start.saturating_add(request.bytes))
}

/// The barriers between storage that shares bytes.
fn separators(requests: &[Request], starts: &[i64], barriers: &[usize]) -> Vec<usize> {
    let mut found = Vec::new();
    let all: Vec<_> = requests.iter().zip(starts).collect();
    for (at, (request, start)) in all.iter().enumerate() {
        for (other, first) in all.iter().skip(at + 1) {
            let together = **start < first.saturating_add(other.bytes)
                && **first < start.saturating_add(request.bytes);
            if together {
                found.extend(request.separator(other, barriers));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn align(at: i64, alignment: i64) -> Result<i64, Decline> {
    let alignment = alignment.max(1);
    at.checked_add(alignment - 1)
        .map(|end| end / alignment * alignment)
        .ok_or_else(|| Decline::new("more bytes of storage than a number holds"))
}

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separators: Vec<_> = self.separators.iter().map(ToString::to_string).collect();
        write!(
            f,
            "{} bytes, shared across the barriers at operations {}",
            self.bytes,
            separators.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request(bytes: i64, first: usize, last: usize) -> Request {
        Request {
            bytes,
            alignment: 1024,
            live: (first, last),
        }
    }

    #[test]
    fn phases_share_and_neighbours_do_not() {
        let requests = [
            request(4096, 0, 2),
            request(1000, 1, 2),
            request(5000, 4, 6),
            request(100, 0, 6),
        ];
        let places = Places::new(&requests, &[3]).unwrap();
        assert_eq!(places.starts, [0, 4096, 0, 5120]);
        assert_eq!((places.bytes, places.separators.clone()), (5220, vec![3]));
        assert!(places.shares());
        // Without a barrier, or with one at an operation that accesses, all are apart, one after the other.
        for barriers in [vec![], vec![2], vec![4]] {
            let places = Places::new(&requests, &barriers).unwrap();
            assert_eq!(places.starts, [0, 4096, 5120, 10240], "{barriers:?}");
            assert!(!places.shares());
        }
    }

    #[test]
    fn gaps_are_filled() {
        let requests = [
            request(8192, 0, 1),
            request(2048, 0, 9),
            request(1024, 3, 9),
            request(4096, 3, 9),
            request(4096, 3, 9),
        ];
        let places = Places::new(&requests, &[2]).unwrap();
        assert_eq!(places.starts, [0, 8192, 0, 1024, 10240]);
    }

    #[test]
    fn broken_places_are_caught() {
        let requests = [request(4096, 0, 2), request(2048, 4, 6)];
        let right = Places::new(&requests, &[3]).unwrap();
        assert_eq!(right.check(&requests, &[3]), Ok(()));
        let broken = |places: &Places, barriers: &[usize]| {
            places.check(&requests, barriers).unwrap_err().to_string()
        };
        assert!(broken(&right, &[]).contains("share bytes"));
        assert!(broken(&right, &[4]).contains("share bytes"));
        let mut wrong = right.clone();
        wrong.separators.clear();
        assert!(broken(&wrong, &[3]).contains("share bytes"));
        let mut wrong = right.clone();
        wrong.starts[1] = 512;
        assert!(broken(&wrong, &[3]).contains("multiple of 1024"));
        let mut wrong = right.clone();
        wrong.bytes = 4000;
        assert!(broken(&wrong, &[3]).contains("within 4000"));
        let mut wrong = right;
        wrong.starts.pop();
        assert!(broken(&wrong, &[3]).contains("without a place"));
    }

    #[test]
    fn sizes_do_not_overflow() {
        let requests = [request(i64::MAX - 1, 0, 1), request(i64::MAX - 1, 0, 1)];
        assert!(Places::new(&requests, &[]).is_err());
    }

    proptest! {
        /// Byte by byte and operation by operation: no byte has two owners between two barriers.
        #[test]
        fn no_byte_has_two_owners(
            sizes in proptest::collection::vec((1..40_i64, 0..12_usize, 0..12_usize), 1..8),
            barriers in proptest::collection::btree_set(0..12_usize, 0..4),
        ) {
            let barriers: Vec<_> = barriers.into_iter().collect();
            let requests: Vec<_> = sizes
                .iter()
                .map(|&(bytes, a, b)| Request { bytes, alignment: 4, live: (a.min(b), a.max(b)) })
                .collect();
            let places = Places::new(&requests, &barriers).unwrap();
            prop_assert!(places.bytes <= requests.iter().map(|request| (request.bytes + 3) / 4 * 4).sum());
            // A barrier that stands among an interval's operations does not end it.
            let phase = |at: usize| barriers.iter().filter(|barrier| **barrier <= at).count();
            for (at, a) in requests.iter().enumerate() {
                for (to, b) in requests.iter().enumerate().skip(at + 1) {
                    let together = (places.starts[at]..places.starts[at] + a.bytes)
                        .any(|byte| (places.starts[to]..places.starts[to] + b.bytes).contains(&byte));
                    let apart = phase(a.live.1) < phase(b.live.0) || phase(b.live.1) < phase(a.live.0);
                    prop_assert!(!together || apart, "{at} and {to} of {requests:?} at {:?}", places.starts);
                }
            }
        }
    }
}
