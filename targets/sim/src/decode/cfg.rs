//! Where diverged lanes meet again: immediate post-dominators of branches.

use super::{Func, Op};

/// Fills in the reconvergence point of every branch and marks those instructions.
///
/// A branch reconverges at the first instruction of its immediate post-dominator block, computed by
/// the iterative algorithm of Cooper, Harvey and Kennedy on the reversed graph. A branch without one
/// (all ways end in `exit`) has no reconvergence point.
pub(super) fn reconverge(func: &mut Func) {
    let n = func.insts.len();
    let mut leader = vec![false; n + 1];
    if let Some(first) = leader.first_mut() {
        *first = true;
    }
    let mut mark = |pc: usize| {
        if let Some(l) = leader.get_mut(pc) {
            *l = true;
        }
    };
    for (pc, inst) in func.insts.iter().enumerate() {
        match &inst.op {
            Op::Bra { target, .. } => {
                mark(*target as usize);
                mark(pc + 1);
            }
            Op::Brx { targets, .. } => {
                targets.iter().for_each(|&t| mark(t as usize));
                mark(pc + 1);
            }
            Op::Ret | Op::Exit | Op::Trap => mark(pc + 1),
            _ => {}
        }
    }
    let starts: Vec<usize> = (0..n).filter(|&pc| leader[pc]).collect();
    let block_of = |pc: usize| starts.partition_point(|&s| s <= pc).saturating_sub(1);
    let exit = starts.len();
    let mut successors: Vec<Vec<usize>> = Vec::with_capacity(exit);
    for (b, _) in starts.iter().enumerate() {
        let last = starts.get(b + 1).copied().unwrap_or(n) - 1;
        let inst = &func.insts[last];
        let guarded = inst.guard != super::PredSrc(0, false);
        let mut next = Vec::new();
        match &inst.op {
            Op::Bra { target, .. } => next.push(block_of(*target as usize)),
            Op::Brx { targets, .. } => next.extend(targets.iter().map(|&t| block_of(t as usize))),
            Op::Ret | Op::Exit | Op::Trap => next.push(exit),
            _ => {}
        }
        let ends = matches!(
            inst.op,
            Op::Bra { .. } | Op::Brx { .. } | Op::Ret | Op::Exit | Op::Trap
        );
        if !ends || guarded {
            next.push(if b + 1 < exit { b + 1 } else { exit });
        }
        successors.push(next);
    }
    let dominators = post_dominators(&successors, exit);
    let entry = func.entry;
    let ends: Vec<bool> = (0..n).map(|pc| entry && ends_thread(func, pc)).collect();
    let point = |pc: usize| -> Option<u32> {
        let d = dominators[block_of(pc)]?;
        // Lanes whose only way on is to exit do not wait for others to exit with them: those may be
        // at a barrier, which does not count who has exited.
        let at = starts.get(d).filter(|&&s| !ends[s]);
        at.map(|&s| s as u32)
    };
    let mut joins = Vec::new();
    for pc in 0..n {
        let after_call = matches!(func.insts[pc].op, Op::Call { .. });
        let at = point(pc);
        match &mut func.insts[pc].op {
            Op::Bra { reconverge, .. } | Op::Brx { reconverge, .. } => {
                *reconverge = at;
                joins.extend(at);
            }
            _ => {}
        }
        if after_call {
            joins.push(pc as u32 + 1);
        }
    }
    for pc in joins {
        if let Some(inst) = func.insts.get_mut(pc as usize) {
            inst.join = true;
        }
    }
}

/// Whether a kernel does nothing from `pc` on but exit.
fn ends_thread(func: &Func, mut pc: usize) -> bool {
    for _ in 0..func.insts.len() {
        let Some(inst) = func.insts.get(pc) else {
            return true;
        };
        let always = inst.guard == super::PredSrc(0, false);
        match &inst.op {
            Op::Ret | Op::Exit if always => return true,
            Op::Bra { target, .. } if always => pc = *target as usize,
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
