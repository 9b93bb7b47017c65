//! Combiners of reductions as operations of arith.

use super::types::is_float;
use axe_dialect::Combiner;
use melior::ir::Type;

/// The operation of arith that combines two values of an element type: maxima and minima propagate NaN, integers
/// are signed in `Max` and `Min`.
#[must_use]
pub fn operation(combiner: Combiner, element: Type) -> &'static str {
    match (combiner, is_float(element)) {
        (Combiner::Add, true) => "arith.addf",
        (Combiner::Add, false) => "arith.addi",
        (Combiner::Mul, true) => "arith.mulf",
        (Combiner::Mul, false) => "arith.muli",
        (Combiner::Max, true) => "arith.maximumf",
        (Combiner::Max, false) => "arith.maxsi",
        (Combiner::Min, true) => "arith.minimumf",
        (Combiner::Min, false) => "arith.minsi",
        (Combiner::And, _) => "arith.andi",
        (Combiner::Or, _) => "arith.ori",
        (Combiner::Xor, _) => "arith.xori",
        (Combiner::MaxUI, _) => "arith.maxui",
        (Combiner::MinUI, _) => "arith.minui",
    }
}

/// The combiner of an operation of arith, by its name.
#[must_use]
pub fn of_operation(name: &str) -> Option<Combiner> {
    Some(match name {
        "arith.addf" | "arith.addi" => Combiner::Add,
        "arith.mulf" | "arith.muli" => Combiner::Mul,
        "arith.maximumf" | "arith.maxsi" => Combiner::Max,
        "arith.minimumf" | "arith.minsi" => Combiner::Min,
        "arith.andi" => Combiner::And,
        "arith.ori" => Combiner::Or,
        "arith.xori" => Combiner::Xor,
        "arith.maxui" => Combiner::MaxUI,
        "arith.minui" => Combiner::MinUI,
        _ => return None,
    })
}
