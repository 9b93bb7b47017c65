//! Random questions about layouts, each compared with brute force from the definitions:
//!
//! ```text
//! cargo run --release -p axe-layout --example questions -- [QUESTIONS [SEED]]
//! ```
//!
//! Ends with status 1 and the bytes of the question when an answer is wrong or a panic occurs, with the count
//! of each kind when none is. A declined question (`Unsupported`) counts only where the documented bounds do
//! not apply: there are none among questions of these sizes.

mod algebra;
mod bridges;
mod factors;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use axe_layout::generate::Choices;

/// One kind of question: asks some of it, and says how many. Panics when an answer is wrong.
type Kind = fn(&mut Choices<'_>) -> u64;

const KINDS: [(&str, Kind); 15] = [
    ("canonical form, equality", algebra::canonical),
    ("where indices live, what lives there", algebra::places),
    ("group", algebra::group),
    ("span, size, strides", algebra::sizes),
    ("slice, cover", algebra::slices),
    ("alias, overlap, intersection", algebra::sharing),
    ("permute, split, fuse, pack", algebra::reshapes),
    ("tile, factors of tilings", factors::tilings),
    ("swizzled tilings", factors::swizzled),
    ("direct sum, its parts", factors::sums),
    ("linear maps", bridges::linear),
    ("warp and shared memory relayouts", bridges::relayouts),
    ("CuTe", bridges::cute),
    ("shardings, collectives", bridges::shardings),
    ("banks, sectors", bridges::accesses),
];

/// `xorshift64*` (Vigna): random bytes that are the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn bytes(&mut self) -> [u8; 128] {
        let mut bytes = [0; 128];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes());
        }
        bytes
    }
}

fn main() -> ExitCode {
    let number = |at: usize, otherwise: u64| {
        std::env::args()
            .nth(at)
            .map_or(Ok(otherwise), |text| text.replace('_', "").parse())
    };
    let (Ok(wanted), Ok(seed)) = (number(1, 100_000), number(2, 1)) else {
        eprintln!("usage: questions [QUESTIONS [SEED]]");
        return ExitCode::FAILURE;
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let (asked, wrong) = (AtomicU64::new(0), AtomicBool::new(false));
    let counts = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let random = Random((seed << 8 | thread).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            let (asked, wrong, counts) = (&asked, &wrong, &counts);
            scope.spawn(move || ask(random, wanted, asked, wrong, counts));
        }
    });
    let counts = counts
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    for (name, count) in &counts {
        println!("{count:>12}  {name}");
    }
    println!("{:>12}  questions, seed {seed}", asked.into_inner());
    if wrong.into_inner() {
        return ExitCode::FAILURE;
    }
    println!("{:>12}  wrong", 0);
    ExitCode::SUCCESS
}

fn ask(
    mut random: Random,
    wanted: u64,
    asked: &AtomicU64,
    wrong: &AtomicBool,
    counts: &Mutex<BTreeMap<&'static str, u64>>,
) {
    let mut mine = [0_u64; KINDS.len()];
    while asked.load(Ordering::Relaxed) < wanted && !wrong.load(Ordering::Relaxed) {
        for ((name, kind), count) in KINDS.iter().zip(&mut mine) {
            let bytes = random.bytes();
            match catch_unwind(AssertUnwindSafe(|| kind(&mut Choices::new(&bytes)))) {
                Ok(more) => {
                    *count += more;
                    asked.fetch_add(more, Ordering::Relaxed);
                }
                Err(_) => {
                    eprintln!("wrong: {name}, bytes {bytes:?}");
                    wrong.store(true, Ordering::Relaxed);
                    break;
                }
            }
        }
    }
    let mut counts = counts
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    for ((name, _), count) in KINDS.iter().zip(mine) {
        *counts.entry(*name).or_insert(0) += count;
    }
}
