//! What ptxas says when it gives up the overlap that asynchronous products and roles are for.
//!
//! It says so in passing (`ptxas info : (C7510) Potential Performance Loss: ...`) and assembles a kernel that is right and slow. For
//! code that we generated this is an error: each message below names what the kernel has to do differently.

use std::fmt;

/// An optimisation that ptxas gave up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// The number of the message, as in C7508.
    code: u32,
    /// What ptxas says.
    message: String,
}

impl Loss {
    /// What to do about it.
    fn advice(&self) -> &'static str {
        match self.code {
            7508 => {
                "registers(n) of a scope has no effect: the kernel must state its threads (.reqntid), and each \
                 budget must hold what its role needs"
            }
            7509 | 7510 => "a call near asynchronous products waits for each of them: inline it",
            7511 => {
                "the accumulators, operands and addresses of the products do not fit the registers: take a smaller \
                 tile, more warpgroups or a larger registers(n)"
            }
            7513 => {
                "registers of A are written while products read them: fill other registers, or axe.wait before"
            }
            7514 | 7517 => {
                "accumulators are read before their products are complete: use the results of an axe.wait that takes \
                 them"
            }
            7515 => {
                "accumulators are written while products are under way: begin with a product without acc instead of \
                 an axe.fill, and change sums only after their axe.wait"
            }
            7519 => {
                "registers of a product are written without a wgmma.fence before it: the product must follow what \
                 writes its operands in the same role"
            }
            _ => {
                "products wait for each other: keep them, their loop and their axe.wait together, in no divergent branch"
            }
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "(C{}) {}\n  {}", self.code, self.message, self.advice())
    }
}

/// Messages that are losses whatever their text.
const LOSSES: [u32; 8] = [7508, 7509, 7511, 7513, 7514, 7515, 7517, 7519];
/// How the text of any other begins.
const LOSS: &str = "Potential Performance Loss";

/// The losses among what ptxas says, each once.
pub(crate) fn losses(text: &str) -> Vec<Loss> {
    let mut found: Vec<Loss> = Vec::new();
    for loss in text.lines().filter_map(loss) {
        if !found.contains(&loss) {
            found.push(loss);
        }
    }
    found
}

/// `ptxas info : (C7508) text`.
fn loss(line: &str) -> Option<Loss> {
    let (_, rest) = line.split_once("(C")?;
    let (code, message) = rest.split_once(')')?;
    let code = code.parse().ok()?;
    let message = message.trim();
    let counts = LOSSES.contains(&code) || message.starts_with(LOSS);
    counts.then(|| Loss {
        code,
        message: message.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What ptxas 13 said of kernels without `.reqntid`, and without their waits.
    const SAMPLE: &str = "\
ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.
ptxas info    : (C7517) wgmma.wait_group is injected in around line 343 by compiler to allow use of registers defined by GMMA in function 'gemm'
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'gemm' for 'sm_90a'
ptxas info    : Function properties for gemm
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 154 registers, used 3 barriers
ptxas info    : Compile time = 219.608 ms
";

    #[test]
    fn losses_are_found_with_their_advice() {
        let found = losses(SAMPLE);
        let codes: Vec<_> = found.iter().map(|loss| loss.code).collect();
        assert_eq!(codes, [7508, 7517]);
        let text = found[0].to_string();
        assert!(text.starts_with(
            "(C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine"
        ));
        assert!(text.contains("\n  registers(n) of a scope has no effect"));
        assert!(found[1].to_string().contains("results of an axe.wait"));
    }

    #[test]
    fn every_known_loss_has_advice_of_its_own() {
        let advice = |code| {
            Loss {
                code,
                message: String::new(),
            }
            .advice()
        };
        let other = advice(0);
        for code in LOSSES {
            assert_ne!(advice(code), other, "C{code}");
        }
    }

    #[test]
    fn losses_of_other_numbers_count_by_their_text() {
        let line = "ptxas info    : (C7599) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ill formed pipeline stage in the function 'k'";
        assert_eq!(losses(line).len(), 1);
        let twice = format!("{line}\n{line}\n");
        assert_eq!(losses(&twice).len(), 1);
    }

    #[test]
    fn what_is_no_loss_does_not_count() {
        let lines = "ptxas info    : (C7600) something else\nptxas warning : (C\nptxas info : (C75x8) Potential\n\
                     ptxas info    : Used 168 registers, used 3 barriers\nfunction 'f(C)' in line 3\n";
        assert_eq!(losses(lines), []);
    }
}
