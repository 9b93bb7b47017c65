//! One bit a byte: whether anything wrote it.

/// Bits of a memory that one thread owns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Written(Vec<u64>);

/// The 64-byte words that a range touches, each with the bits of the bytes inside.
fn words(at: usize, n: usize) -> impl Iterator<Item = (usize, u64)> {
    let end = at + n;
    let range = if n == 0 {
        0..0
    } else {
        at / 64..end.div_ceil(64)
    };
    range.map(move |word| {
        let (from, to) = (
            at.max(word * 64) - word * 64,
            end.min(word * 64 + 64) - word * 64,
        );
        (word, (u64::MAX >> (64 - (to - from))) << from)
    })
}

impl Written {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(vec![0; bytes.div_ceil(64)])
    }

    pub(crate) fn set(&mut self, at: usize, n: usize) {
        for (word, bits) in words(at, n) {
            if let Some(word) = self.0.get_mut(word) {
                *word |= bits;
            }
        }
    }

    /// Sets bits, and makes room for them.
    pub(crate) fn grow_and_set(&mut self, at: usize, n: usize) {
        let needed = (at + n).div_ceil(64);
        if self.0.len() < needed {
            self.0.resize(needed, 0);
        }
        self.set(at, n);
    }

    pub(crate) fn clear(&mut self, at: usize, n: usize) {
        for (word, bits) in words(at, n) {
            if let Some(word) = self.0.get_mut(word) {
                *word &= !bits;
            }
        }
    }

    /// The first byte of the range that nothing wrote.
    #[inline]
    pub(crate) fn first_unwritten(&self, at: usize, n: usize) -> Option<usize> {
        let missing = |(word, bits): (usize, u64)| {
            let missing = bits & !self.0.get(word).copied().unwrap_or(0);
            (missing != 0).then(|| word * 64 + missing.trailing_zeros() as usize)
        };
        let first = at % 64;
        // What a thread accesses lies in one word, but for a few.
        if n > 0 && first + n <= 64 {
            return missing((at / 64, (u64::MAX >> (64 - n)) << first));
        }
        words(at, n).find_map(missing)
    }

    /// Whether something wrote any byte of the range.
    pub(crate) fn any(&self, at: usize, n: usize) -> bool {
        words(at, n).any(|(word, bits)| self.0.get(word).is_some_and(|w| w & bits != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_list_of_bytes(ranges in prop::collection::vec((0usize..300, 0usize..90, any::<bool>()), 0..12)) {
            let mut written = Written::new(400);
            let mut bytes = vec![false; 400];
            for (at, n, set) in ranges {
                prop_assert_eq!(written.first_unwritten(at, n), (at..at + n).find(|&i| !bytes[i]));
                prop_assert_eq!(written.any(at, n), bytes[at..at + n].contains(&true));
                bytes[at..at + n].fill(set);
                if set { written.set(at, n) } else { written.clear(at, n) }
            }
        }
    }
}
