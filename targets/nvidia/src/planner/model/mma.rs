//! How long a matrix product by `mma.sync` or scalar multiply-adds takes: a small model of the chip.
//!
//! A CTA computes a tile, or a part of its depth, and as many run on a multiprocessor as its registers, threads and shared memory
//! allow. Their steps take as long as what all of them ask of the multiprocessor together, or as one of them waits, whichever is
//! longer; all waves together take no less than memory needs for the operands and the result.

use super::{MEMORY_SHARPNESS, SHARPNESS, together};
use crate::facts::chip::{
    Chip, MULTIPROCESSOR_CTAS, MULTIPROCESSOR_REGISTERS, RESERVED_BYTES, SECTOR_BYTES,
    THREAD_REGISTERS,
};
use crate::facts::rates::MmaRates;
use crate::planner::config::Mma;
use crate::planner::epilogue::by_row::is_by_row;
use crate::planner::problem::{KFirst, Problem, RESULT_BYTES, SUM_BYTES, Unit, count};
use crate::vocabulary::WARP;

/// Registers of a thread beside its accumulators and fragments: addresses and predicates.
const OTHER_REGISTERS: i64 = 48;
/// Elements that a thread loads at once at the least.
const LEAST_AT_ONCE: i64 = 8;
/// Bytes of k that an instruction of the tensor cores contracts.
const CHAINED_BYTES: f64 = 32.0;

/// Clocks that the product takes in this configuration.
#[must_use]
pub fn cost(problem: Problem, k_first: KFirst, config: Mma, chip: &Chip) -> f64 {
    let model = Model {
        config,
        problem,
        alignments: problem.row_alignments(k_first),
        chip,
        rates: &chip.mma,
    };
    let busy = model.tiles();
    let memory = model.memory();
    model.rates.start
        + model.ctas() as f64 * model.rates.start_of_cta
        + model.sums()
        + together([busy, memory], MEMORY_SHARPNESS)
}

/// A product, its configuration and the chip.
struct Model<'a> {
    config: Mma,
    problem: Problem,
    /// Bytes that every row of A, B and the result begins with a multiple of.
    alignments: [i64; 3],
    chip: &'a Chip,
    rates: &'a MmaRates,
}

impl Model<'_> {
    /// Clocks in which memory gives a product's operands and takes its result.
    fn memory(&self) -> f64 {
        let Problem {
            batch,
            m,
            n,
            k,
            element_bytes,
            ..
        } = self.problem;
        let [batch, m, n, k] = [batch, m, n, k].map(|extent| extent as f64);
        let read = batch * (m + n) * k * element_bytes as f64;
        let written = batch * m * n * RESULT_BYTES as f64;
        let within = match self.problem.n.wrapping_mul(RESULT_BYTES) % SECTOR_BYTES {
            0 => 1.0,
            _ => self.rates.within_sectors,
        };
        (read + written * within) / self.rates.memory_bytes
    }

    /// Elements of A and of B that each thread loads and stores of a stage, where it copies single ones.
    fn staged(&self) -> [i64; 2] {
        self.config.staged(self.problem, self.alignments)
    }

    /// CTAs that a multiprocessor has at once, at most.
    fn resident(&self) -> i64 {
        let (config, problem) = (self.config, self.problem);
        let threads = config.threads(problem.unit).max(1);
        let staged = self.staged().into_iter().max().unwrap_or(0);
        let registers = config.registers(problem.unit) + staged + OTHER_REGISTERS;
        let registers = count(registers.min(THREAD_REGISTERS), 8) * 8 * threads;
        let shared = config.shared_bytes(problem.element_bytes) + RESERVED_BYTES;
        let of = |all: i64, one: i64| all / one.max(1);
        of(MULTIPROCESSOR_REGISTERS, registers)
            .min(of(self.chip.multiprocessor_threads, threads))
            .min(of(self.chip.shared_bytes + RESERVED_BYTES, shared))
            .clamp(1, MULTIPROCESSOR_CTAS)
    }

    /// CTAs of the kernel.
    fn ctas(&self) -> i64 {
        let [m, n, _] = self.config.tile;
        let tiles = count(self.problem.m, m).saturating_mul(count(self.problem.n, n));
        tiles
            .saturating_mul(self.problem.batch)
            .saturating_mul(self.config.splits)
    }

    /// Clocks of the multiprocessor that has most CTAs.
    fn tiles(&self) -> f64 {
        let of_one = count(self.ctas(), self.chip.multiprocessors);
        let resident = self.resident();
        let waves = of_one / resident;
        let whole = match waves {
            0 => 0.0,
            _ => waves as f64 * self.wave(resident),
        };
        match of_one % resident {
            0 => whole,
            rest => whole + self.wave(rest),
        }
    }

    /// Clocks of so many CTAs that run at once on a multiprocessor.
    fn wave(&self, resident: i64) -> f64 {
        let [m, n, _] = self.config.tile;
        let steps = self.config.steps(self.problem.k) as f64;
        let resident = resident as f64;
        let stored = resident * (m * n) as f64 * self.store();
        // Stages that are copied before the first step.
        let first = (self.config.stages - 1) as f64 * self.waits().max(resident * self.issued());
        let step = self.step(resident);
        self.rates.fill + first + steps * step + self.late(steps, step) + stored
    }

    /// Clocks in which steps of this length wait for single elements, which are loaded one step before they are stored: those behind
    /// the stages that are copied before the first step.
    fn late(&self, steps: f64, step: f64) -> f64 {
        let elements: i64 = self.staged().into_iter().sum();
        let behind = match self.config.stages {
            3.. if elements > 0 => (steps - (self.config.stages - 1) as f64).max(0.0),
            _ => 0.0,
        };
        behind * (self.rates.latency - step).max(0.0)
    }

    /// Clocks of an element of a result: in pairs from fragments, as parts' sums are, or along rows, one by one or in vectors.
    fn store(&self) -> f64 {
        let [m, n, _] = self.config.tile;
        let row = self.problem.n;
        match self.config.splits == 1 && is_by_row([m, n], row) {
            false => self.rates.stored[0],
            true if row % 2 != 0 => self.rates.stored[1],
            true => self.rates.stored[2],
        }
    }

    /// Clocks of a step of so many CTAs: of all that they ask of the multiprocessor, or of one, which waits for what it asks for.
    fn step(&self, resident: f64) -> f64 {
        let (config, problem, rates) = (self.config, self.problem, self.rates);
        let [m, n, k] = config.tile;
        let bytes = (k * problem.element_bytes) as f64;
        let warps = config.threads(problem.unit) as f64 / WARP as f64;
        // A warp issues alone on its quarter of the multiprocessor.
        let share = (resident * warps / 4.0).min(1.0);
        let products = (m * n * k) as f64 / (self.products() * share);
        let (wm, wn) = (m / config.warps.rows, n / config.warps.columns);
        let moved = (config.warps.count() * (wm + wn) + m + n) as f64 * bytes;
        let asked = [
            products,
            moved / rates.shared_bytes,
            (m + n) as f64 * bytes / rates.loaded_bytes,
            self.issued(),
        ];
        // A step waits for its copies, which are as far ahead as there are stages, and for its own loads and products.
        let ahead = (config.stages - 1).max(1) as f64;
        let chain = rates.barrier + bytes / CHAINED_BYTES * rates.chain;
        let [products, moved, loaded, issued] = asked;
        let alone = [
            products,
            moved,
            loaded,
            issued,
            rates.latency / ahead,
            chain,
        ];
        let alone = self.with_elements(together(alone, SHARPNESS));
        let [products, moved, loaded, issued] = asked.map(|clocks| clocks * resident);
        together([products, moved, loaded, issued, alone], SHARPNESS)
    }

    /// Clocks of a CTA's step with the single elements that it loads: before the step's products, or, where there are stages
    /// enough, while they are formed.
    fn with_elements(&self, step: f64) -> f64 {
        match self.config.stages {
            ..=2 => step + self.waits(),
            _ => {
                let elements: i64 = self.staged().into_iter().sum();
                let moved = elements as f64 * self.rates.hidden_element;
                together([step, self.batches()], SHARPNESS) + moved
            }
        }
    }

    /// Clocks in which a CTA loads and stores the single elements of a stage, where nothing else goes on.
    fn waits(&self) -> f64 {
        let elements: i64 = self.staged().into_iter().sum();
        self.batches() + elements as f64 * self.rates.element
    }

    /// Clocks in which those elements come, as many at once as threads have registers for.
    fn batches(&self) -> f64 {
        let registers = self.config.registers(self.problem.unit) + OTHER_REGISTERS;
        let spare = (THREAD_REGISTERS - registers).max(LEAST_AT_ONCE);
        let of = |elements: i64| count(elements, spare) as f64 * self.rates.element_latency;
        self.staged().into_iter().map(of).sum()
    }

    /// Clocks in which a CTA's copies of a stage are issued.
    fn issued(&self) -> f64 {
        let [m, n, k] = self.config.tile;
        let bytes = (k * self.problem.element_bytes) as f64;
        (self.copies(m, 0) + self.copies(n, 1)) * bytes
    }

    /// Clocks by which copies of a byte of an operand's rows are issued: of 16 bytes each, of 8, of 4, and of single elements.
    fn copies(&self, rows: i64, operand: usize) -> f64 {
        let alignment = self.alignments.get(operand).copied().unwrap_or(1);
        let of = match alignment {
            16.. => self.rates.copied[0],
            8.. => self.rates.copied[1],
            4.. => self.rates.copied[2],
            _ => self.rates.copied[3],
        };
        rows as f64 * of
    }

    /// Products that a multiprocessor forms in a clock.
    const fn products(&self) -> f64 {
        match self.problem.unit {
            Unit::Half => self.rates.half_products,
            Unit::Tf32 => self.rates.tf32_products,
            Unit::Byte => self.rates.byte_products,
            Unit::Scalar => self.rates.scalar_products,
        }
    }

    /// Clocks of the kernel that adds parts up.
    fn sums(&self) -> f64 {
        let splits = self.config.splits;
        if splits == 1 {
            return 0.0;
        }
        let sums = self.problem.m as f64 * self.problem.n as f64;
        let moved = sums * ((splits + 1) * SUM_BYTES) as f64;
        self.rates.parts_start + moved / self.rates.sum_bytes
    }
}
