//! Products of tiles (the paper, section 3.4, "Systolic Array GEMM", and appendix H).
//!
//! Digits of K that move along partitions by the same steps in both operands are the contraction of an instruction; digits
//! of the stationary operand's own dimension that are partitions of the result are its columns, digits of the moving
//! operand's own dimension that are elements of all are the moving columns, inside a bank. All others are loops.

use super::Region;
use super::access::{fits, merged};
use super::nest::{Part, Point, Sweep, boxes, sweep, sweep_first};
use super::partition::{may_start, refused, unit_run};
use super::problem::{Digit, Given, Problem, partitions};
use super::reason::Reason;
use super::residue::Residue;
use crate::facts::memory::{BANK_BYTES, MOVING_COLUMNS, STATIONARY_COLUMNS};
use crate::program::{Accumulate, Builder, Op, Space};
use axe_layout::Iter;
use axe_package::DType;

/// Numbers of the operands in the problem.
const D: usize = 0;
/// The dimension that is contracted; M and N are 0 and 1.
const K: usize = 2;
const NAMES: &[&str] = &["m", "n", "k"];
/// f32 elements of a bank.
pub(super) const BANK: i64 = BANK_BYTES / 4;
/// Loops that are written out where starts of the result then are numbers modulo a bank.
const MOST_UNROLLED: i64 = 16;

/// Which operand is which: `lhs` is operand 1, `rhs` operand 2; their own dimensions are 0 and 1.
#[derive(Clone, Copy)]
struct Roles {
    stationary: usize,
    moving: usize,
}

impl Roles {
    const fn columns(self) -> usize {
        self.stationary - 1
    }

    const fn rows(self) -> usize {
        self.moving - 1
    }
}

/// Appends the products of one box of indices.
///
/// # Errors
/// Why the layouts do not allow it.
pub(super) fn products(
    b: &mut Builder,
    [d, lhs, rhs]: [&Region; 3],
    transposed: [bool; 2],
    lhs_is_stationary: bool,
    accumulate: Accumulate,
) -> Result<(), Reason> {
    let given = |name, region, dims: [usize; 2], turned: bool, written| Given {
        name,
        region,
        dims: if turned {
            vec![dims[1], dims[0]]
        } else {
            dims.to_vec()
        },
        written,
        follows: false,
    };
    let given = [
        given("d", d, [0, 1], false, true),
        given("lhs", lhs, [0, K], transposed[0], false),
        given("rhs", rhs, [K, 1], transposed[1], false),
    ];
    let sizes = sizes(&given)?;
    let mut problem = Problem::new(b, &given, &sizes, NAMES)?;
    check(&problem)?;
    let roles = match lhs_is_stationary {
        true => Roles {
            stationary: 1,
            moving: 2,
        },
        false => Roles {
            stationary: 2,
            moving: 1,
        },
    };
    let start = Residue::of(&problem.operands[D].free, BANK, b.bounds());
    if start.is_multiple(BANK) {
        cut_at_banks(&mut problem, roles);
    }
    let plan = Plan::new(problem, roles)?;
    plan.append(b, accumulate)
}

/// M, N and K.
fn sizes(given: &[Given<'_>; 3]) -> Result<[i64; 3], Reason> {
    let mut sizes = [None; 3];
    for given in given {
        if given.region.shape.len() != 2 {
            return Err(Reason::Malformed(format!(
                "{}: expected a matrix, got {:?}",
                given.name, given.region.shape
            )));
        }
        for (dim, extent) in given.dims.iter().zip(&given.region.shape) {
            let known = sizes[*dim].get_or_insert(*extent);
            if known != extent {
                return Err(Reason::Malformed(format!(
                    "{}: expected {known} indices of {}, got {extent}",
                    given.name, NAMES[*dim]
                )));
            }
        }
    }
    Ok(sizes.map(|size| size.unwrap_or(1)))
}

/// What the tensor engine reaches and takes.
fn check(problem: &Problem) -> Result<(), Reason> {
    for (at, operand) in problem.operands.iter().enumerate() {
        let (space, name) = match at {
            D => (Space::Psum, "psum"),
            _ => (Space::Sbuf, "sbuf"),
        };
        if operand.space != space {
            return Err(Reason::Memory {
                operand: operand.name,
                expected: name,
                got: operand.space,
            });
        }
    }
    let [d, lhs, rhs] = [0, 1, 2].map(|at| &problem.operands[at]);
    let wrong = |operand: &super::problem::Operand, expected: &str| {
        Err(Reason::Type {
            operand: operand.name,
            expected: expected.into(),
            got: operand.dtype,
        })
    };
    if d.dtype != DType::F32 {
        return wrong(d, "f32");
    }
    if !lhs.dtype.is_float() || lhs.dtype == DType::F64 {
        return wrong(lhs, "a float of at most 32 bits");
    }
    if !rhs.dtype.is_float() || (lhs.dtype == DType::F32) != (rhs.dtype == DType::F32) {
        return wrong(
            rhs,
            if lhs.dtype == DType::F32 {
                "f32"
            } else {
                "a 16-bit or 8-bit float"
            },
        );
    }
    Ok(())
}

/// Cuts digits of the moving columns where banks are, so that whole banks are a loop.
fn cut_at_banks(problem: &mut Problem, roles: Roles) {
    let mut cut = Vec::new();
    for digit in problem.digits.drain(..) {
        let step = digit.steps[D].f.abs();
        let bank = if step > 0 && BANK % step == 0 {
            BANK / step
        } else {
            0
        };
        let whole = digit.dim == Some(roles.rows())
            && bank > 0
            && digit.extent > bank
            && digit.extent % bank == 0;
        if !whole {
            cut.push(digit);
            continue;
        }
        let mut outer = Digit {
            extent: digit.extent / bank,
            ..digit.clone()
        };
        for step in &mut outer.steps {
            (step.p, step.f) = (step.p * bank, step.f * bank);
        }
        cut.push(outer);
        cut.push(Digit {
            extent: bank,
            ..digit
        });
    }
    problem.digits = cut;
}

/// What each digit is.
struct Plan {
    problem: Problem,
    roles: Roles,
    /// Digits inside an instruction, outermost first: of K, of the stationary, and of the moving columns.
    k: Vec<usize>,
    columns: Vec<usize>,
    rows: Vec<usize>,
    /// Loops over parts of the result, and over K.
    outer: Vec<Sweep>,
    inner: Vec<Sweep>,
}

impl Plan {
    fn new(mut problem: Problem, roles: Roles) -> Result<Self, Reason> {
        let k = contraction(&problem)?;
        let k = problem.fuse(&k);
        let of = |dim: usize| {
            let digits = problem.digits.iter().enumerate();
            digits
                .filter(move |(_, digit)| digit.dim.is_none_or(|own| own == dim))
                .map(|(at, _)| at)
        };
        let step = |at: usize, operand: usize| problem.digits[at].steps[operand];
        let columns = of(roles.columns()).filter(|at| step(*at, roles.stationary).p == 0);
        let columns = unit_run(&problem, D, columns);
        let mut rows: Vec<usize> = of(roles.rows())
            .filter(|at| !columns.contains(at))
            .filter(|at| step(*at, roles.moving).p == 0 && step(*at, D).p == 0)
            .filter(|at| step(*at, D).f % BANK != 0)
            .collect();
        rows.sort_by_key(|at| std::cmp::Reverse(step(*at, D).f));
        let (mut outer, mut inner, mut unrolled) = (Vec::new(), Vec::new(), 1i64);
        for (at, digit) in problem.digits.iter().enumerate() {
            if k.contains(&at) || columns.contains(&at) || rows.contains(&at) {
                continue;
            }
            let crosses = step(at, D).f % BANK != 0;
            let times = unrolled.saturating_mul(digit.extent);
            let unroll = crosses && times <= MOST_UNROLLED;
            if unroll {
                unrolled = times;
            }
            let loops = if digit.dim == Some(K) {
                &mut inner
            } else {
                &mut outer
            };
            loops.push(Sweep {
                digit: at,
                unrolled: unroll,
            });
        }
        let columns = problem.fuse(&columns);
        let rows = problem.fuse(&rows);
        Ok(Self {
            problem,
            roles,
            k,
            columns,
            rows,
            outer,
            inner,
        })
    }

    fn append(&self, b: &mut Builder, accumulate: Accumulate) -> Result<(), Reason> {
        let problem = &self.problem;
        let start = Point::new(problem);
        sweep(b, problem, &self.outer, &start, &mut |b, point| {
            for columns in self.column_parts(b, point)? {
                let point = point.with(&self.columns, &columns);
                for rows in self.row_parts(b, &point)? {
                    self.one(b, &point.with(&self.rows, &rows), accumulate)?;
                }
            }
            Ok(())
        })
    }

    /// One part of the result: all of K. The first product is told apart where it does not accumulate as the others do.
    fn one(&self, b: &mut Builder, point: &Point, first: Accumulate) -> Result<(), Reason> {
        let (problem, then) = (&self.problem, later(first));
        if first == then {
            let all = &mut |b: &mut Builder, point: &Point| self.sums(b, point, then);
            return sweep(b, problem, &self.inner, point, all);
        }
        sweep_first(b, problem, &self.inner, point, &mut |b, point, is_first| {
            self.sums(b, point, if is_first { first } else { then })
        })
    }

    /// The products of the parts of K that are inside.
    fn sums(&self, b: &mut Builder, point: &Point, first: Accumulate) -> Result<(), Reason> {
        let (problem, roles) = (&self.problem, self.roles);
        let operands = [roles.stationary, roles.moving];
        let parts = boxes(&self.extents(&self.k), &|part| {
            let point = point.with(&self.k, part);
            let starts = |operand| may_start(b, problem, operand, &point, &self.k);
            operands.into_iter().all(starts)
        });
        let parts = parts.ok_or_else(|| refused(b, problem, &operands, point, &self.k, &[K]))?;
        for (index, part) in parts.iter().enumerate() {
            let point = point.with(&self.k, part);
            let stationary = point.view(b, problem, roles.stationary, &self.k, &self.columns)?;
            let moving = point.view(b, problem, roles.moving, &self.k, &self.rows)?;
            let dst = point.view(b, problem, D, &self.columns, &self.rows)?;
            let accumulate = if index == 0 { first } else { later(first) };
            b.op(Op::NcMatmul {
                dst,
                stationary,
                moving,
                accumulate,
            });
        }
        Ok(())
    }

    fn extents(&self, digits: &[usize]) -> Vec<i64> {
        let extent = |at: &usize| self.problem.digits[*at].extent;
        digits.iter().map(extent).collect()
    }

    fn column_parts(&self, b: &Builder, point: &Point) -> Result<Vec<Part>, Reason> {
        let (problem, stationary) = (&self.problem, self.roles.stationary);
        let parts = boxes(&self.extents(&self.columns), &|part| {
            let point = point.with(&self.columns, part);
            let free = point.free(problem, stationary, &self.columns);
            point.count(&self.columns) <= STATIONARY_COLUMNS
                && fits(&problem.operands[stationary], &free)
                && may_start(b, problem, D, &point, &self.columns)
        });
        parts.ok_or_else(|| refused(b, problem, &[D, stationary], point, &self.columns, &[0, 1]))
    }

    fn row_parts(&self, b: &Builder, point: &Point) -> Result<Vec<Part>, Reason> {
        let (problem, moving) = (&self.problem, self.roles.moving);
        let parts = boxes(&self.extents(&self.rows), &|part| {
            let point = point.with(&self.rows, part);
            let all = point.free(problem, D, &self.rows);
            let from = point.free(problem, moving, &self.rows);
            point.count(&self.rows) <= MOVING_COLUMNS
                && fits(&problem.operands[moving], &from)
                && fits(&problem.operands[D], &all)
                && in_one_bank(b, &point.start(problem, D).1, &all)
        });
        parts.ok_or_else(|| Reason::Access {
            operand: "d",
            message: format!(
                "elements by (size, step) {:?} from {:?} on are not cut at banks of {BANK}",
                merged(&point.free(problem, D, &self.rows)),
                Residue::of(&point.start(problem, D).1, BANK, b.bounds())
            ),
        })
    }
}

/// How the products after the first one accumulate.
pub(super) const fn later(first: Accumulate) -> Accumulate {
    match first {
        Accumulate::Auto => Accumulate::Auto,
        Accumulate::Always | Accumulate::Never => Accumulate::Always,
    }
}

/// Whether an access stays in a bank, whatever a start is that has this residue.
fn in_one_bank(b: &Builder, start: &crate::program::Expr, free: &[(i64, i64)]) -> bool {
    let residue = Residue::of(start, BANK, b.bounds());
    let (mut low, mut high) = (0i64, 0i64);
    for (size, step) in free {
        let far = step.saturating_mul(size - 1);
        low = low.saturating_add(far.min(0));
        high = high.saturating_add(far.max(0));
    }
    residue.rest + low >= 0 && residue.rest.saturating_add(high) < residue.unit
}

/// The digits of K that both operands have on the same partitions: what the intersection of their iters leaves whole
/// ("K Intersection"), and of it the largest run of partitions that follow each other.
fn contraction(problem: &Problem) -> Result<Vec<usize>, Reason> {
    let all: Vec<usize> = (problem.digits.iter().enumerate())
        .filter(|(_, digit)| digit.dim == Some(K))
        .map(|(at, _)| at)
        .collect();
    let iters = |operand: usize| -> Vec<Iter> {
        let iter = |at: &usize| {
            let digit = &problem.digits[*at];
            Iter::new(digit.extent, digit.steps[operand].p, partitions())
        };
        all.iter().map(iter).collect()
    };
    let (lhs, rhs) = (iters(1), iters(2));
    let shared = Iter::intersect_each(&lhs, &rhs, partitions())
        .map_err(|error| Reason::Malformed(error.to_string()))?;
    let same = shared
        .into_iter()
        .filter(|(at, both)| *both == lhs[*at] && *both == rhs[*at])
        .map(|(at, _)| all[at]);
    Ok(unit_run(problem, 1, same))
}
