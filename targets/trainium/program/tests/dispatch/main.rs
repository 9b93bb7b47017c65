//! Operators on tiles: a sweep of random layouts, and cases with what they become. Each is right, breaks no rule and writes
//! nothing else, or is declined with a reason that the definitions of its layouts confirm.

mod cases;
mod copies;
mod given;
mod maps;
mod operators;
mod products;
mod random;
mod reductions;
mod tiles;

/// Cases of each family.
const CASES: u64 = 400;
