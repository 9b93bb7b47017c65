//! Where diverged lanes meet again: immediate post-dominators of branches.

use super::{Func, Inst, Op, PredSrc};

/// Fills in the reconvergence point of every branch and marks those instructions.
///
/// A branch reconverges at the first instruction of its immediate post-dominator block, computed by
/// the iterative algorithm of Cooper, Harvey and Kennedy on the reversed graph. A branch without one
/// (all ways end in `exit`) has no reconvergence point.
pub(super) fn reconverge(func: &mut Func) {
    let blocks = Blocks::of(func);
    let dominators = post_dominators(&blocks.successors(func), blocks.exit());
    // Lanes whose only way on is to exit do not wait for others to exit with them: those may be
    // at a barrier, which does not count who has exited.
    let waits: Vec<Option<u32>> = dominators
        .iter()
        .map(|dominator| {
            let start = *blocks.starts.get((*dominator)?)?;
            let ends = func.entry && ends_thread(func, start);
            (!ends).then_some(start as u32)
        })
        .collect();
    let mut joins = Vec::new();
    for (pc, inst) in func.insts.iter_mut().enumerate() {
        match &mut inst.op {
            Op::Bra { reconverge, .. } | Op::Brx { reconverge, .. } => {
                *reconverge = waits[blocks.at(pc)];
                joins.extend(*reconverge);
            }
            Op::Call { .. } => joins.push(pc as u32 + 1),
            _ => {}
        }
    }
    for pc in joins {
        if let Some(inst) = func.insts.get_mut(pc as usize) {
            inst.join = true;
        }
    }
}

/// Where control goes from an instruction besides the next one.
enum Leaves<'a> {
    /// Nowhere.
    No,
    /// To one of these places.
    To(&'a [u32]),
    /// Out of the function.
    Out,
}

impl Inst {
    fn leaves(&self) -> Leaves<'_> {
        match &self.op {
            Op::Bra { target, .. } => Leaves::To(std::slice::from_ref(target)),
            Op::Brx { targets, .. } => Leaves::To(targets),
            Op::Ret | Op::Exit | Op::Trap => Leaves::Out,
            _ => Leaves::No,
        }
    }

    /// Whether no predicate guards it.
    fn always(&self) -> bool {
        self.guard == PredSrc(0, false)
    }
}

/// The basic blocks of a function.
struct Blocks {
    /// First instruction of each, ascending.
    starts: Vec<usize>,
}

impl Blocks {
    fn of(func: &Func) -> Self {
        let n = func.insts.len();
        // One more, for places behind the last instruction.
        let mut leader = vec![false; n + 1];
        leader[0] = true;
        for (pc, inst) in func.insts.iter().enumerate() {
            let targets = match inst.leaves() {
                Leaves::No => continue,
                Leaves::To(targets) => targets,
                Leaves::Out => &[],
            };
            leader[pc + 1] = true;
            for &target in targets {
                if let Some(first) = leader.get_mut(target as usize) {
                    *first = true;
                }
            }
        }
        let starts = (0..n).filter(|&pc| leader[pc]).collect();
        Self { starts }
    }

    /// The block that an instruction lies in.
    fn at(&self, pc: usize) -> usize {
        self.starts.partition_point(|&s| s <= pc).saturating_sub(1)
    }

    /// The block that stands for leaving the function.
    const fn exit(&self) -> usize {
        self.starts.len()
    }

    /// The blocks that control may go to from the end of each.
    fn successors(&self, func: &Func) -> Vec<Vec<usize>> {
        (0..self.exit())
            .map(|block| {
                let end = self.starts.get(block + 1).copied();
                let inst = &func.insts[end.unwrap_or(func.insts.len()) - 1];
                let leaves = inst.leaves();
                let mut next = match leaves {
                    Leaves::No => Vec::new(),
                    Leaves::To(targets) => targets.iter().map(|&t| self.at(t as usize)).collect(),
                    Leaves::Out => vec![self.exit()],
                };
                if !inst.always() || matches!(leaves, Leaves::No) {
                    // Behind the last block lies the exit.
                    next.push(block + 1);
                }
                next
            })
            .collect()
    }
}

/// Whether a kernel does nothing from `pc` on but exit.
fn ends_thread(func: &Func, mut pc: usize) -> bool {
    for _ in 0..func.insts.len() {
        let Some(inst) = func.insts.get(pc) else {
            return true;
        };
        match &inst.op {
            Op::Ret | Op::Exit if inst.always() => return true,
            Op::Bra { target, .. } if inst.always() => pc = *target as usize,
            Op::Nop => pc += 1,
            _ => return false,
        }
    }
    false
}

/// Immediate post-dominator of each block; `None` where only the exit post-dominates.
fn post_dominators(successors: &[Vec<usize>], exit: usize) -> Vec<Option<usize>> {
    let n = exit + 1;
    let mut predecessors = vec![Vec::new(); n];
    for (b, next) in successors.iter().enumerate() {
        for &s in next {
            predecessors[s].push(b);
        }
    }
    // Postorder of the reversed graph from the exit.
    let mut order = Vec::with_capacity(n);
    let mut number = vec![usize::MAX; n];
    let mut seen = vec![false; n];
    let mut stack = vec![(exit, 0)];
    seen[exit] = true;
    while let Some((b, i)) = stack.pop() {
        if let Some(&p) = predecessors[b].get(i) {
            stack.push((b, i + 1));
            if !seen[p] {
                seen[p] = true;
                stack.push((p, 0));
            }
        } else {
            number[b] = order.len();
            order.push(b);
        }
    }
    let mut idom = vec![usize::MAX; n];
    idom[exit] = exit;
    let mut changed = true;
    while changed {
        changed = false;
        for &b in order.iter().rev().filter(|&&b| b != exit) {
            let mut new = usize::MAX;
            for &s in &successors[b] {
                if idom[s] == usize::MAX {
                    continue;
                }
                new = if new == usize::MAX {
                    s
                } else {
                    intersect(new, s, &idom, &number)
                };
            }
            if new != idom[b] {
                idom[b] = new;
                changed = true;
            }
        }
    }
    (0..exit)
        .map(|b| Some(idom[b]).filter(|&d| d < exit))
        .collect()
}

fn intersect(mut a: usize, mut b: usize, idom: &[usize], number: &[usize]) -> usize {
    while a != b {
        while number[a] < number[b] {
            a = idom[a];
        }
        while number[b] < number[a] {
            b = idom[b];
        }
    }
    a
}
