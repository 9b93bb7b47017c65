//! An operator as digits: the index of each dimension, cut where the layouts of all operands are, and how far each digit
//! moves in each operand.

use super::Region;
use super::reason::Reason;
use super::residue::range;
use crate::facts::memory::PARTITIONS;
use crate::program::{Builder, Expr, Space};
use axe_layout::{Axis, Iter};
use axe_package::DType;

/// How far something moves: partitions, and elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    pub p: i64,
    pub f: i64,
}

/// A digit of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Digit {
    /// The dimension that it is of; `None` for the replicas of what is written.
    pub dim: Option<usize>,
    pub extent: i64,
    /// For each operand, how far it moves.
    pub steps: Vec<Step>,
    /// Whether it counts down the index.
    pub falls: bool,
}

/// An operand, where the index is 0.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    pub name: &'static str,
    pub buffer: usize,
    pub space: Space,
    pub dtype: DType,
    pub partition: Expr,
    pub free: Expr,
}

/// An operator's operands and digits, outermost first in each dimension.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub operands: Vec<Operand>,
    pub digits: Vec<Digit>,
    /// The names of the dimensions, for messages and loops.
    pub names: &'static [&'static str],
}

/// An operand as it is given: its name, its region, the operator's dimension that each of its own is, whether it is
/// written.
pub(super) struct Given<'a> {
    pub name: &'static str,
    pub region: &'a Region,
    pub dims: Vec<usize>,
    pub written: bool,
    /// Whether it is read on the partitions of the first operand, where a replica is there.
    pub follows: bool,
}

/// The names of dimensions of what is done element by element.
pub(super) const PLAIN: &[&str] = &["i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7"];

/// The name of a dimension.
pub(super) fn name_of(names: &[&'static str], dim: Option<usize>) -> &'static str {
    dim.map_or("r", |dim| names.get(dim).copied().unwrap_or("i"))
}

impl Problem {
    /// Reads the layouts.
    ///
    /// # Errors
    /// A layout that says nothing about its buffer, digits without a common refinement, a region that leaves its buffer.
    pub fn new(
        b: &Builder,
        given: &[Given<'_>],
        extents: &[i64],
        names: &'static [&'static str],
    ) -> Result<Self, Reason> {
        let mut operands = Vec::new();
        let mut blocks: Vec<Vec<Vec<Iter>>> = Vec::new();
        for given in given {
            let (operand, own) = read(b, given)?;
            operands.push(operand);
            let mut all = vec![Vec::new(); extents.len()];
            for (dim, block) in given.dims.iter().zip(own) {
                all[*dim] = block;
            }
            blocks.push(all);
        }
        let mut problem = Self {
            operands,
            digits: Vec::new(),
            names,
        };
        for (dim, extent) in extents.iter().enumerate() {
            let of_dim: Vec<&[Iter]> = blocks.iter().map(|all| all[dim].as_slice()).collect();
            problem.refine(dim, *extent, &of_dim)?;
        }
        for (at, given) in given.iter().enumerate() {
            if given.written {
                problem.check_stands_still(at, &given.dims)?;
                problem.write_replicas(at, given.region);
            } else if given.follows {
                problem.choose_replicas(at, given.region);
            }
        }
        problem.point_upwards();
        for (at, given) in given.iter().enumerate() {
            problem.check_bounds(b, at)?;
            if given.written {
                problem.check_written_once(at)?;
                problem.check_apart(b, at)?;
            }
        }
        Ok(problem)
    }

    /// Adds the digits of a dimension: the coarsest that all operands' iters are made of.
    fn refine(&mut self, dim: usize, extent: i64, blocks: &[&[Iter]]) -> Result<(), Reason> {
        let mut left: Vec<Vec<Iter>> = blocks.iter().map(|block| block.to_vec()).collect();
        let mut found = Vec::new();
        let mut rest = extent;
        while rest > 1 {
            // What ends first, from the fastest digit on; operands that do not have the dimension do not move.
            let ends = left.iter().filter_map(|block| block.last());
            let size = ends.map(|iter| iter.extent).min().unwrap_or(rest);
            let mut steps = Vec::new();
            for block in &mut left {
                let Some(last) = block.last_mut() else {
                    steps.push(Step::default());
                    continue;
                };
                if last.extent % size != 0 {
                    return Err(Reason::Straddles {
                        dimension: name_of(self.names, Some(dim)).into(),
                        message: format!(
                            "digits of {} and {size} have no common refinement",
                            last.extent
                        ),
                    });
                }
                steps.push(step_of(last));
                last.extent /= size;
                last.stride = last.stride.wrapping_mul(size);
                if last.extent == 1 {
                    block.pop();
                }
            }
            found.push(Digit {
                dim: Some(dim),
                extent: size,
                steps,
                falls: false,
            });
            rest /= size;
        }
        found.reverse();
        self.digits.extend(found);
        Ok(())
    }

    /// What is written is written everywhere: replicas are digits of their own.
    fn write_replicas(&mut self, at: usize, region: &Region) {
        let layout = region.layout.canonicalize();
        for iter in layout.replica().iter().filter(|iter| iter.stride != 0) {
            let mut steps = vec![Step::default(); self.operands.len()];
            steps[at] = step_of(iter);
            self.digits.push(Digit {
                dim: None,
                extent: iter.extent,
                steps,
                falls: false,
            });
        }
    }

    /// What is read is read where the partitions of what is written are, if a replica is there.
    fn choose_replicas(&mut self, at: usize, region: &Region) {
        let replicas = region.layout.replica();
        let Ok(Some((_, run))) = Iter::largest_run(replicas, partitions()) else {
            return;
        };
        let mut reach = (run.extent - 1).saturating_mul(run.stride);
        for digit in &mut self.digits {
            let to = digit.steps[0].p;
            let free = digit.steps[at] == Step::default() && digit.extent > 1;
            let wanted = to.saturating_mul(digit.extent - 1);
            if at > 0 && free && to > 0 && to % run.stride == 0 && wanted <= reach {
                digit.steps[at].p = to;
                reach -= wanted;
            }
        }
    }

    /// Turns digits that fall round, so that the first operand that moves goes up: partitions before elements.
    fn point_upwards(&mut self) {
        for digit in &mut self.digits {
            let by_partition = digit.steps.iter().map(|step| step.p).find(|p| *p != 0);
            let by_element = digit.steps.iter().map(|step| step.f).find(|f| *f != 0);
            if by_partition.or(by_element).is_none_or(|step| step > 0) {
                continue;
            }
            for (step, operand) in digit.steps.iter_mut().zip(&mut self.operands) {
                let last = digit.extent - 1;
                operand.partition = operand.partition.clone().plus(step.p * last);
                operand.free = operand.free.clone().plus(step.f * last);
                (step.p, step.f) = (-step.p, -step.f);
            }
            digit.falls = true;
        }
    }

    /// Digits, outermost first, in the fewest: neighbours that continue each other in all operands are one, as an
    /// instruction asks where elements are and not which index they are of.
    pub fn fuse(&mut self, order: &[usize]) -> Vec<usize> {
        let mut fused: Vec<usize> = Vec::new();
        for at in order {
            let inner = self.digits[*at].clone();
            let continues = |outer: &Digit| {
                let scaled = |step: &Step| Step {
                    p: step.p.saturating_mul(inner.extent),
                    f: step.f.saturating_mul(inner.extent),
                };
                outer
                    .steps
                    .iter()
                    .zip(&inner.steps)
                    .all(|(outer, step)| *outer == scaled(step))
            };
            let outer = fused
                .last()
                .filter(|outer| continues(&self.digits[**outer]))
                .copied();
            match outer {
                None => fused.push(*at),
                Some(outer) => {
                    let extent = std::mem::replace(&mut self.digits[outer].extent, 1);
                    self.digits[*at].extent *= extent;
                    fused.pop();
                    fused.push(*at);
                }
            }
        }
        fused
    }

    /// The least and the largest partition and element that an operand touches, relative to where it begins.
    pub fn reach(&self, at: usize) -> [(i64, i64); 2] {
        let mut reach = [(0i64, 0i64); 2];
        for digit in &self.digits {
            let step = digit.steps[at];
            for (reach, step) in reach.iter_mut().zip([step.p, step.f]) {
                let far = step.saturating_mul(digit.extent - 1);
                reach.0 = reach.0.saturating_add(far.min(0));
                reach.1 = reach.1.saturating_add(far.max(0));
            }
        }
        reach
    }

    fn check_bounds(&self, b: &Builder, at: usize) -> Result<(), Reason> {
        let operand = &self.operands[at];
        let buffer = &b.program().buffers[operand.buffer];
        let [p, f] = self.reach(at);
        let sides = [
            (
                &operand.partition,
                p,
                buffer.partitions().min(PARTITIONS),
                "partitions",
            ),
            (&operand.free, f, buffer.elements(), "elements"),
        ];
        for (start, (low, high), most, what) in sides {
            let Some((least, largest)) = range(start, b.bounds()) else {
                continue;
            };
            let (first, last) = (least.saturating_add(low), largest.saturating_add(high));
            if first < 0 || last >= most {
                return Err(Reason::Access {
                    operand: operand.name,
                    message: format!(
                        "expected {what} 0 to {} of '{}', got {first} to {last}",
                        most - 1,
                        buffer.name
                    ),
                });
            }
        }
        Ok(())
    }

    /// What is written has each element once: digits that do not overlap, as O10 asks of one instruction.
    fn check_written_once(&self, at: usize) -> Result<(), Reason> {
        let twice = |message: String| Reason::Layout {
            operand: self.operands[at].name,
            message,
        };
        let moving = |pick: fn(&Step) -> i64| {
            let mut all: Vec<(i64, i64)> = (self.digits.iter())
                .map(|digit| (pick(&digit.steps[at]).abs(), digit.extent))
                .filter(|(step, _)| *step > 0)
                .collect();
            all.sort_unstable();
            all
        };
        for all in [moving(|step| step.p), moving(|step| step.f)] {
            let mut reach = 0i64;
            for (step, extent) in all {
                if step <= reach {
                    return Err(twice(format!(
                        "a digit of {extent} by {step} overlaps with faster ones, which reach {reach}"
                    )));
                }
                reach = reach.saturating_add(step.saturating_mul(extent - 1));
            }
        }
        Ok(())
    }

    /// What is written is no other operand's, or index by index the same.
    fn check_apart(&self, b: &Builder, at: usize) -> Result<(), Reason> {
        let own = &self.operands[at];
        let place = |at: usize| {
            let operand = &self.operands[at];
            let range = |start: &Expr, reach: (i64, i64)| {
                let (low, high) = range(start, b.bounds())?;
                Some((low.saturating_add(reach.0), high.saturating_add(reach.1)))
            };
            let [p, f] = self.reach(at);
            [range(&operand.partition, p), range(&operand.free, f)]
        };
        for (index, other) in self.operands.iter().enumerate() {
            if index == at || other.buffer != own.buffer {
                continue;
            }
            let same = own.partition == other.partition
                && own.free == other.free
                && self
                    .digits
                    .iter()
                    .all(|digit| digit.steps[at] == digit.steps[index]);
            let apart =
                |(a, b): (&Bounds, &Bounds)| a.zip(*b).is_some_and(|(a, b)| a.1 < b.0 || b.1 < a.0);
            if !same && !place(at).iter().zip(&place(index)).any(apart) {
                return Err(Reason::Layout {
                    operand: own.name,
                    message: format!("it may overlap with {}, which lies otherwise", other.name),
                });
            }
        }
        Ok(())
    }

    /// What is written moves in each of its dimensions.
    fn check_stands_still(&self, at: usize, dims: &[usize]) -> Result<(), Reason> {
        let own = |digit: &&Digit| digit.dim.is_some_and(|dim| dims.contains(&dim));
        let still = |digit: &&Digit| digit.steps[at] == Step::default();
        match self.digits.iter().filter(own).find(still) {
            None => Ok(()),
            Some(digit) => Err(Reason::Layout {
                operand: self.operands[at].name,
                message: format!(
                    "{} indices of {} are written to one element",
                    digit.extent,
                    name_of(self.names, digit.dim)
                ),
            }),
        }
    }
}

/// The least and the largest of what an operand touches, where it is known.
type Bounds = Option<(i64, i64)>;

/// The axis of partitions.
pub(super) fn partitions() -> Axis {
    Axis::new("P").unwrap_or(Axis::M)
}

/// The axis of elements of a partition.
pub(super) fn elements() -> Axis {
    Axis::new("F").unwrap_or(Axis::M)
}

fn step_of(iter: &Iter) -> Step {
    match iter.axis == partitions() {
        true => Step {
            p: iter.stride,
            f: 0,
        },
        false => Step {
            p: 0,
            f: iter.stride,
        },
    }
}

/// An operand and the iters of each of its dimensions.
fn read(b: &Builder, given: &Given<'_>) -> Result<(Operand, Vec<Vec<Iter>>), Reason> {
    let (operand, region) = (given.name, given.region);
    let layout = &region.layout;
    let refuse = |message: String| Reason::Layout { operand, message };
    let buffer = b.program().buffers.get(region.buffer);
    let buffer = buffer.ok_or_else(|| refuse(format!("no buffer {}", region.buffer)))?;
    let on_chip = buffer.space.has_partitions();
    let (p, f) = match on_chip {
        true => (partitions(), elements()),
        false => (Axis::M, Axis::M),
    };
    if layout.is_dynamic() || layout.swizzle().is_some() {
        return Err(refuse(
            "expected neither a dynamic extent nor a swizzle".into(),
        ));
    }
    let iters = layout.shard().iter().chain(layout.replica());
    let moving = iters.filter(|iter| iter.stride != 0 && iter.extent > 1);
    let named = moving.map(|iter| iter.axis);
    if let Some(other) = named
        .chain(layout.offset().iter().map(|(axis, _)| axis))
        .find(|axis| *axis != p && *axis != f)
    {
        let expected = if on_chip { "P and F" } else { "m" };
        let space = buffer.space;
        return Err(refuse(format!(
            "expected axes {expected} in {space}, got {other}"
        )));
    }
    let grouped = layout
        .group(&region.shape)
        .map_err(|error| refuse(error.to_string()))?;
    let blocks = grouped.blocks().map(<[Iter]>::to_vec).collect();
    let offset = |axis| layout.offset().get(axis);
    let operand = Operand {
        name: given.name,
        buffer: region.buffer,
        space: buffer.space,
        dtype: buffer.dtype,
        partition: match on_chip {
            true => region.partition.clone().plus(offset(p)),
            false => 0.into(),
        },
        free: region.free.clone().plus(offset(f)),
    };
    Ok((operand, blocks))
}
