//! The swizzle that makes given accesses of a tile free of bank conflicts.

use super::access::TileAccess;
use super::banks::{BANKS, BankCost, WORD_BYTES};
use crate::address::AddressMap;
use crate::axis::Axis;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::swizzle::Swizzle;

/// Elements of a tile whose swizzled storage is measured.
const MAX_TILE: i64 = 1 << 18;

/// What [`choose_swizzle`] finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The swizzle, none when the plain tile is as good.
    pub swizzle: Option<Swizzle>,
    /// What each access costs with it.
    pub costs: Vec<BankCost>,
    /// Elements of storage that the tile needs with it, counted from address 0.
    pub cosize: i64,
    /// How many swizzles there were to choose from, the plain tile included.
    pub candidates: usize,
}

impl Choice {
    /// True when every access is free of conflicts. Otherwise no swizzle of CuTe's form makes them so, and
    /// this one has the fewest conflicts: [`Choice::costs`] says which accesses keep how many.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.costs.iter().all(|cost| cost.conflicts() == 0)
    }

    /// Conflicts over all accesses.
    #[must_use]
    pub fn conflicts(&self) -> u64 {
        self.costs.iter().map(BankCost::conflicts).sum()
    }
}

/// A swizzle `Sw<B,M,S>` of `tile` without bank conflicts in any of `accesses`, or the proof that CuTe's
/// form has none together with the best that it has.
///
/// Vectors stay whole: `2^M` is at least the longest vector. Of several swizzles the one with the fewest
/// bits is taken, then one that needs no more storage than the plain tile, then the one that xors into
/// lower bits (CuTe's positive `S`), with the lowest `M`, then the lowest `S`. The tile's own swizzle is
/// replaced.
///
/// The search is complete although CuTe's parameters are unbounded. An xor of a bit that selects a word
/// into bits of 128 bytes and above moves whole words between rows of the same banks, which costs and
/// saves nothing; an xor of a bit inside a word may bring halves of two words together and counts. Bits
/// above the largest address of the tile are all 0, and writing them parts what was together. So a
/// swizzle whose highest bit does such things has no fewer conflicts than the one without it, which has
/// fewer bits and is a candidate itself.
///
/// # Errors
/// `Invalid` without accesses, when their element sizes differ, or for a tile that reaches below address
/// 0; `Unsupported` for a dynamic extent, replicas on `m`, or more than 2^18 elements.
pub fn choose_swizzle(tile: &Layout, accesses: &[TileAccess]) -> Result<Choice> {
    let tile = tile.clone().with_swizzle(None);
    let space = Space::new(&tile, accesses)?;
    let candidates = space.candidates();
    let mut best: Option<Choice> = None;
    for swizzle in &candidates {
        let bits = |s: Option<Swizzle>| s.map_or(0, |s| s.bits());
        let more_bits = |best: &Choice| bits(*swizzle) > bits(best.swizzle);
        if best.as_ref().is_some_and(|b| b.is_free() && more_bits(b)) {
            break;
        }
        let costs = accesses
            .iter()
            .map(|access| Ok(access.warp(*swizzle)?.banks()))
            .collect::<Result<Vec<_>>>()?;
        let conflicts: u64 = costs.iter().map(BankCost::conflicts).sum();
        if best.as_ref().is_some_and(|b| conflicts > b.conflicts()) {
            continue;
        }
        let choice = Choice {
            swizzle: *swizzle,
            costs,
            cosize: space.cosize(*swizzle),
            candidates: candidates.len(),
        };
        let better = best.as_ref().is_none_or(|best| {
            (conflicts, bits(*swizzle), choice.cosize)
                < (best.conflicts(), bits(best.swizzle), best.cosize)
        });
        if better {
            best = Some(choice);
        }
    }
    best.ok_or_else(|| Error::invalid("the choice of a swizzle: expected a candidate"))
}

/// The candidates for one tile.
struct Space {
    /// Log of the elements that must stay together.
    vector: u32,
    /// Bits below which an address selects a bank.
    bank_bits: u32,
    /// Bits below which an address selects an element inside a word.
    word_bits: u32,
    /// Bits of the largest address.
    bits: u32,
    addresses: Vec<i64>,
}

impl Space {
    fn new(tile: &Layout, accesses: &[TileAccess]) -> Result<Self> {
        let Some(first) = accesses.first() else {
            return Err(Error::invalid(
                "the choice of a swizzle: expected an access",
            ));
        };
        if accesses
            .iter()
            .any(|a| a.elem_bytes() != first.elem_bytes())
        {
            return Err(Error::invalid(
                "the choice of a swizzle: expected accesses of one element size",
            ));
        }
        let cosize = tile.cosize(Axis::M)?;
        let map = AddressMap::new(tile, Axis::M)?;
        if map.size() > MAX_TILE {
            return Err(Error::unsupported(format!(
                "the choice of a swizzle for a tile of {} elements: at most {MAX_TILE}",
                map.size()
            )));
        }
        let mut addresses: Vec<i64> = map.iter().collect();
        addresses.sort_unstable();
        addresses.dedup();
        let own = |a: &TileAccess| {
            let mut all = a.addresses().iter().flatten();
            all.all(|at| (0..cosize).contains(at))
        };
        if !accesses.iter().all(own) {
            return Err(Error::invalid(
                "the choice of a swizzle: an access lies outside of the tile",
            ));
        }
        let log = |v: i64| v.trailing_zeros();
        Ok(Self {
            vector: accesses.iter().map(|a| log(a.vector())).max().unwrap_or(0),
            bank_bits: log(BANKS * WORD_BYTES).saturating_sub(log(first.elem_bytes())),
            word_bits: log(WORD_BYTES).saturating_sub(log(first.elem_bytes())),
            bits: 64 - (cosize - 1).leading_zeros(),
            addresses,
        })
    }

    /// The plain tile, then by bits, direction, base, shift.
    fn candidates(&self) -> Vec<Option<Swizzle>> {
        let mut all = vec![None];
        for bits in 1..=self.bits {
            for inner in [true, false] {
                for base in self.vector..self.bits {
                    for shift in bits..self.bits {
                        // Above the highest bits of both groups.
                        let (low, high) = (base + bits, base + shift + bits);
                        let (reads, writes) = if inner { (high, low) } else { (low, high) };
                        let counts = writes <= self.bank_bits || reads <= self.word_bits;
                        if counts && high <= self.bits {
                            all.extend(Swizzle::new(bits, base, shift, inner).ok().map(Some));
                        }
                    }
                }
            }
        }
        all
    }

    fn cosize(&self, swizzle: Option<Swizzle>) -> i64 {
        let moved = |&a: &i64| swizzle.map_or(a, |s| s.apply(a));
        let last = self.addresses.iter().map(moved).max();
        // Below 2^bits, which is at most twice the cosize of a layout.
        last.map_or(0, |last| last.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::tests::{check, parse};

    fn rows(tile: &Layout, shape: [i64; 2], lanes: i64, vector: i64, bytes: i64) -> TileAccess {
        let coords: Vec<_> = (0..lanes).map(|lane| vec![lane, 0]).collect();
        TileAccess::at(tile, &shape, &coords, 1, vector, bytes).unwrap()
    }

    fn text(choice: &Choice) -> String {
        choice.swizzle.map_or("none".into(), |s| s.to_string())
    }

    /// Eight rows of 16 bytes, as `ldmatrix` reads an 8x8 matrix of halves (PTX ISA, "ldmatrix"), from
    /// the tiles that TMA writes with 128, 64 and 32 bytes a row, and the swizzle of TMA for each.
    #[test]
    fn ldmatrix_wants_the_swizzles_of_tma() {
        for (width, want) in [
            (64, "Sw<3,3,3>"),
            (32, "Sw<2,3,3>"),
            (16, "Sw<1,3,3>"),
            (8, "none"),
        ] {
            let tile = Layout::row_major(&[128, width]).unwrap();
            let choice = choose_swizzle(&tile, &[rows(&tile, [128, width], 8, 8, 2)]).unwrap();
            assert_eq!(text(&choice), want, "{width} halves a row");
            assert!(choice.is_free() && choice.cosize == 128 * width);
        }
        // 128 halves a row: the row is one bit higher.
        let tile = Layout::row_major(&[64, 128]).unwrap();
        let choice = choose_swizzle(&tile, &[rows(&tile, [64, 128], 8, 8, 2)]).unwrap();
        assert_eq!(text(&choice), "Sw<3,3,4>");
        // Bytes (fp8): 128 bytes a row.
        let tile = Layout::row_major(&[64, 128]).unwrap();
        let choice = choose_swizzle(&tile, &[rows(&tile, [64, 128], 8, 16, 1)]).unwrap();
        assert_eq!(text(&choice), "Sw<3,4,3>");
    }

    /// A 32x32 transpose: written by rows, read by columns; by single words, and by 16 bytes.
    #[test]
    fn transposes_of_floats() {
        let tile = Layout::row_major(&[32, 32]).unwrap();
        let row: Vec<_> = (0..32).map(|lane| vec![5, lane]).collect();
        let row = TileAccess::at(&tile, &[32, 32], &row, 1, 1, 4).unwrap();
        let column = rows(&tile, [32, 32], 32, 1, 4);
        let choice = choose_swizzle(&tile, &[row.clone(), column.clone()]).unwrap();
        assert_eq!(text(&choice), "Sw<5,0,5>");
        assert!(choice.is_free());
        // Vectors of 4 along the row leave 3 bits to swizzle: single words of a column meet 4 to a bank.
        let wide: Vec<_> = (0..32).map(|lane| vec![lane / 8, lane % 8 * 4]).collect();
        let wide = TileAccess::at(&tile, &[32, 32], &wide, 1, 4, 4).unwrap();
        let choice = choose_swizzle(&tile, &[wide, column.clone()]).unwrap();
        assert!(!choice.is_free());
        let passes: Vec<u64> = choice.costs.iter().map(|c| c.passes).collect();
        assert_eq!(passes, [4, 4]);
        assert_eq!(text(&choice), "Sw<3,2,3>");
        // A row of 16 bytes by each lane of a quarter warp.
        let quarter = rows(&tile, [32, 32], 32, 4, 4);
        assert_eq!(quarter.warp(None).unwrap().banks().passes, 32);
        let choice = choose_swizzle(&tile, &[quarter]).unwrap();
        assert_eq!(text(&choice), "Sw<3,2,3>");
    }

    #[test]
    fn nothing_is_chosen_where_nothing_is_needed() {
        let padded = Layout::strided(&[32, 32], &[33, 1]).unwrap();
        let choice = choose_swizzle(&padded, &[rows(&padded, [32, 32], 32, 1, 4)]).unwrap();
        assert!(choice.swizzle.is_none() && choice.is_free() && choice.cosize == 31 * 33 + 32);
        let swizzled = parse("Sw<3,3,3> o S[(8, 8) : (8, 1)]");
        let choice = choose_swizzle(&swizzled, &[rows(&swizzled, [8, 8], 8, 8, 2)]).unwrap();
        assert!(choice.swizzle.is_none());
    }

    /// Bit 0 selects a half of a word of two halves: an xor of it into a bit above the banks brings
    /// halves of two words of one bank together.
    #[test]
    fn halves_of_words_meet_across_rows() {
        let tile = Layout::row_major(&[256]).unwrap();
        let access = TileAccess::at(&tile, &[256], &[vec![0], vec![129]], 0, 1, 2).unwrap();
        assert_eq!(access.warp(None).unwrap().banks().conflicts(), 1);
        let choice = choose_swizzle(&tile, &[access]).unwrap();
        assert!(choice.is_free());
        assert_eq!(choice.swizzle.map_or(0, |s| s.bits()), 1);
    }

    /// All of CuTe's parameters far beyond the candidates, both directions: none does better, and the
    /// choice has the fewest bits.
    #[test]
    fn the_candidates_are_all_there_are() {
        check(120, |choices| {
            let strides = [1, 2, 4, 8, 16, 32, 64, 3, 5, 24];
            let first = choices.pick(64, &strides);
            let second = choices.pick(1, &strides);
            let tile = Layout::strided(&[16, 16], &[first, second]).unwrap();
            let vector = i64::from(choices.pick(1_u8, &[1, 2, 4]));
            let bytes = i64::from(choices.pick(2_u8, &[1, 4]));
            let mut accesses = Vec::new();
            for _ in 0..=choices.below(2) {
                let (by, to) = (i64::from(choices.below(16)), i64::from(choices.below(16)));
                let coords: Vec<_> = (0..32)
                    .map(|l: i64| vec![(l * by) % 16, (l / 2 * to) % 16 / vector * vector])
                    .collect();
                let Ok(access) = TileAccess::at(&tile, &[16, 16], &coords, 1, vector, bytes) else {
                    return;
                };
                accesses.push(access);
            }
            let choice = choose_swizzle(&tile, &accesses).unwrap();
            let conflicts = |s: Option<Swizzle>| -> Option<u64> {
                let cost = |a: &TileAccess| Some(a.warp(s).ok()?.banks().conflicts());
                accesses.iter().map(cost).sum()
            };
            assert_eq!(conflicts(choice.swizzle), Some(choice.conflicts()));
            for bits in 0..8 {
                for base in 0..10 {
                    for shift in bits..14 {
                        for inner in [true, false] {
                            let other = Swizzle::new(bits, base, shift, inner).unwrap();
                            let Some(found) = conflicts(Some(other)) else {
                                continue;
                            };
                            assert!(found >= choice.conflicts(), "{tile}: {other}");
                            let chosen = choice.swizzle.map_or(0, |s| s.bits());
                            assert!(
                                found > choice.conflicts() || bits >= chosen,
                                "{tile}: {other}"
                            );
                        }
                    }
                }
            }
        });
    }

    #[test]
    fn bad_questions_are_errors() {
        let tile = Layout::row_major(&[8, 64]).unwrap();
        let access = rows(&tile, [8, 64], 8, 8, 2);
        let kind = |tile: &Layout, accesses: &[TileAccess]| {
            choose_swizzle(tile, accesses).unwrap_err().kind()
        };
        assert_eq!(kind(&tile, &[]), Kind::Invalid);
        let bytes = TileAccess::new(1, 8, vec![Some(0)]).unwrap();
        assert_eq!(kind(&tile, &[access.clone(), bytes]), Kind::Invalid);
        let outside = TileAccess::new(2, 8, vec![Some(512)]).unwrap();
        assert_eq!(kind(&tile, &[outside]), Kind::Invalid);
        assert_eq!(
            kind(&parse("S[8 : -1]"), std::slice::from_ref(&access)),
            Kind::Invalid
        );
        let copies = tile.replicate(2, 512, Axis::M).unwrap();
        assert_eq!(kind(&copies, &[access]), Kind::Unsupported);
    }
}
