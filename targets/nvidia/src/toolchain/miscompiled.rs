//! Code that ptxas is known to compile wrongly.
//!
//! ptxas 13.3 forms the difference of a quotient by a constant, which is the upper half of a product, and a number, both of 32
//! bits that were widened to 64, by a product that adds the negative number, and takes its carry for the sign. There is none
//! where the number is 0: the difference comes out 2^64 too small (seen in SASS as `UIMAD.WIDE.U32` and `UIADD3.X ..., -0x1`,
//! and on an H200 as a kernel that waits for ever).

use std::collections::{HashMap, HashSet};

/// The first instruction that would come out wrong.
pub(crate) fn miscompiled(ptx: &str) -> Option<&str> {
    let (mut halves, mut widened) = (HashSet::new(), HashMap::new());
    for line in ptx.lines() {
        let mut words = line
            .split([' ', '\t', ',', ';'])
            .filter(|word| !word.is_empty());
        let Some(name) = words.next() else { continue };
        let operands: Vec<_> = words.collect();
        match (name, operands.as_slice()) {
            // Registers are numbered anew in each function.
            (".visible" | ".func" | ".entry", _) => {
                halves.clear();
                widened.clear();
            }
            ("mul.hi.u32", [result, ..]) => {
                halves.insert(*result);
            }
            ("cvt.u64.u32", [result, source]) => {
                widened.insert(*result, *source);
            }
            ("sub.s64" | "sub.u64", [_, from, what])
                if widened.get(from).is_some_and(|from| halves.contains(from))
                    && widened.contains_key(what) =>
            {
                return Some(line.trim());
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRONG: &str = ".visible .entry k(\n)\n{\n\tmul.hi.u32 \t%r5, %r24, 1431655766;\n\tcvt.u64.u32 \t%rd13, %r5;\n\
                         \tmul.hi.u32 \t%r26, %r25, 1431655766;\n\tcvt.u64.u32 \t%rd14, %r26;\n\tsub.s64 \t%rd3, %rd14, %rd13;\n";

    #[test]
    fn a_difference_of_a_quotient_is_found() {
        assert_eq!(miscompiled(WRONG), Some("sub.s64 \t%rd3, %rd14, %rd13;"));
    }

    #[test]
    fn other_differences_are_not() {
        // Quotients by powers of two are shifts, and what was computed in 64 bits stays there.
        assert_eq!(miscompiled(&WRONG.replace("mul.hi.u32", "shr.u32")), None);
        assert_eq!(
            miscompiled(&WRONG.replace("cvt.u64.u32 \t%rd13, %r5", "mul.wide.u32 %rd13, %r5, 2")),
            None
        );
        let apart = WRONG.replace("\tsub.s64", ".visible .entry l(\n)\n\tsub.s64");
        assert_eq!(miscompiled(&apart), None);
        assert_eq!(miscompiled("sub.s64\n,;\n\tmul.hi.u32\n"), None);
    }
}
