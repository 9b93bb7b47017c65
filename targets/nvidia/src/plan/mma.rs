//! Matrix products by `mma.sync`: which instructions each warp issues on which registers.

use super::Decline;
use crate::facts::matrix::Mma;
use crate::fragment::Fragment;
use crate::vocabulary::WARP;
use axe_passes::dispatch::sequence;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// One instruction of every warp: the first register (element) of each operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Of A.
    pub a: i64,
    /// Of B.
    pub b: i64,
    /// Of C and D.
    pub d: i64,
}

/// The instructions of each warp, in order; the k-loop is outermost, so that neighbours are independent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub struct MmaPlan {
    /// The instruction.
    pub atom: Mma,
    /// One after the other.
    pub instructions: Vec<Instruction>,
}

/// As the plan stands in the IR: the first register of each operand, instruction by instruction.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename = "MmaPlan")]
struct Written {
    atom: Mma,
    #[serde(with = "sequence")]
    a: Vec<i64>,
    #[serde(with = "sequence")]
    b: Vec<i64>,
    #[serde(with = "sequence")]
    d: Vec<i64>,
}

impl From<MmaPlan> for Written {
    fn from(plan: MmaPlan) -> Self {
        let each = |of: fn(&Instruction) -> i64| plan.instructions.iter().map(of).collect();
        Self {
            atom: plan.atom,
            a: each(|instruction| instruction.a),
            b: each(|instruction| instruction.b),
            d: each(|instruction| instruction.d),
        }
    }
}

impl TryFrom<Written> for MmaPlan {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        if written.a.len() != written.d.len() || written.b.len() != written.d.len() {
            return Err("expected as many registers of a, b and d".to_owned());
        }
        let operands = written.a.into_iter().zip(written.b).zip(written.d);
        Ok(Self {
            atom: written.atom,
            instructions: operands
                .map(|((a, b), d)| Instruction { a, b, d })
                .collect(),
        })
    }
}

/// A register tensor as blocks of an instruction's operand: for each warp, the first register of the
/// block at `(row, column)`, in units of blocks.
struct Blocks {
    registers: i64,
    of_warp: Vec<HashMap<(i64, i64), i64>>,
}

impl MmaPlan {
    /// The plan of `D[m, n] += A[m, k] * B[n, k]`, all operands in registers of one scope.
    ///
    /// # Errors
    /// An operand whose layout is not made of the instruction's fragments, a block of A or B that a warp needs
    /// and does not hold, or registers that differ from warp to warp.
    pub fn new(atom: Mma, a: &Fragment, b: &Fragment, d: &Fragment) -> Result<Self, Decline> {
        let [a, b, blocks_of_d] = Blocks::all(atom, a, b, d)?;
        let k_blocks = a.columns().max(1);
        let first = blocks_of_d.plan_warp(0, &a, &b, k_blocks)?;
        for warp in 1..blocks_of_d.of_warp.len() {
            if blocks_of_d.plan_warp(warp, &a, &b, k_blocks)? != first {
                return Err(Decline::new(format!(
                    "warp {warp} would use other registers than warp 0"
                )));
            }
        }
        Ok(Self {
            atom,
            instructions: first,
        })
    }

    /// Checks by enumeration, in every warp: each instruction multiplies a block of A and one of B that belong together into
    /// their block of D, and each block that the warp holds of D gets each product once.
    ///
    /// # Errors
    /// The first instruction for which that is not so.
    pub fn check(&self, a: &Fragment, b: &Fragment, d: &Fragment) -> Result<(), Decline> {
        let blocks = Blocks::all(self.atom, a, b, d)?;
        let depth = blocks[0].columns().max(1);
        for warp in 0..blocks[2].of_warp.len() {
            let [a, b, d] = [&blocks[0], &blocks[1], &blocks[2]].map(|of| of.places(warp));
            let mut missing: HashSet<(i64, i64, i64)> = (0..depth)
                .flat_map(|k| d.values().map(move |&(m, n)| (m, n, k)))
                .collect();
            for (number, instruction) in self.instructions.iter().enumerate() {
                let found = (
                    a.get(&instruction.a),
                    b.get(&instruction.b),
                    d.get(&instruction.d),
                );
                let (Some(&(m, k)), Some(&(n, depth)), Some(&of)) = found else {
                    return Err(Decline::new(format!(
                        "instruction {number} of warp {warp} names registers that begin no block"
                    )));
                };
                if of != (m, n) || k != depth || !missing.remove(&(m, n, k)) {
                    return Err(Decline::new(format!(
                        "instruction {number} of warp {warp} adds A({m}, {k}) B({n}, {depth}) to D{of:?}, or does so again"
                    )));
                }
            }
            if let Some((m, n, k)) = missing.iter().min() {
                return Err(Decline::new(format!(
                    "no instruction of warp {warp} adds A({m}, {k}) B({n}, {k})"
                )));
            }
        }
        Ok(())
    }
}

impl Blocks {
    /// Those of A, B and D.
    fn all(atom: Mma, a: &Fragment, b: &Fragment, d: &Fragment) -> Result<[Self; 3], Decline> {
        let fact = |error: axe_layout::Error| Decline::new(error.to_string());
        let all = [
            Self::new("A", a, &atom.a().map_err(fact)?, [atom.m, atom.k])?,
            Self::new("B", b, &atom.b().map_err(fact)?, [atom.n, atom.k])?,
            Self::new("D", d, &atom.d().map_err(fact)?, [atom.m, atom.n])?,
        ];
        match (all[0].columns().max(1), all[1].columns()) {
            (a, b) if a != b => Err(Decline::new(format!("A has {a} blocks of k, and B {b}"))),
            _ => Ok(all),
        }
    }

    /// The block that begins at each register of a warp.
    fn places(&self, warp: usize) -> HashMap<i64, (i64, i64)> {
        let held = self.of_warp.get(warp).into_iter().flatten();
        held.map(|(at, register)| (*register, *at)).collect()
    }

    /// Reads the blocks off a fragment by comparing it with the instruction's, thread by thread.
    fn new(
        operand: &str,
        fragment: &Fragment,
        atom: &axe_layout::Layout,
        block: [i64; 2],
    ) -> Result<Self, Decline> {
        let atom = Fragment::new(atom, &block, WARP)?;
        let &[rows, columns] = fragment.shape() else {
            return Err(Decline::new(format!(
                "{operand}: expected a matrix, got rank {}",
                fragment.shape().len()
            )));
        };
        if rows % block[0] != 0
            || columns % block[1] != 0
            || fragment.registers() % atom.registers() != 0
        {
            return Err(Decline::new(format!(
                "{operand}: expected a multiple of {} x {}, got {rows} x {columns}",
                block[0], block[1]
            )));
        }
        let mut of_warp = Vec::new();
        for warp in 0..fragment.threads() / WARP {
            let mut held = HashMap::new();
            for register in
                (0..fragment.registers()).step_by(usize::try_from(atom.registers()).unwrap_or(1))
            {
                if let Some(at) = block_at(fragment, &atom, warp, register, block) {
                    held.entry(at).or_insert(register);
                } else if fragment.linear(warp * WARP, register).is_some() {
                    return Err(Decline::new(format!(
                        "{operand}: registers {register} to {} of warp {warp} are not a fragment of the instruction",
                        register + atom.registers() - 1
                    )));
                }
            }
            of_warp.push(held);
        }
        Ok(Self {
            registers: fragment.registers(),
            of_warp,
        })
    }

    /// Blocks along the second dimension that any warp holds.
    fn columns(&self) -> i64 {
        self.of_warp
            .iter()
            .flat_map(HashMap::keys)
            .map(|&(_, column)| column + 1)
            .max()
            .unwrap_or(0)
    }

    /// The instructions of one warp for the blocks of D that it holds, in the order of its registers.
    fn plan_warp(
        &self,
        warp: usize,
        a: &Self,
        b: &Self,
        k_blocks: i64,
    ) -> Result<Vec<Instruction>, Decline> {
        let missing = |operand: &str, row: i64, k: i64| {
            Decline::new(format!(
                "warp {warp} needs block ({row}, {k}) of {operand} and does not hold it"
            ))
        };
        let of = |blocks: &Self, at: (i64, i64)| {
            blocks
                .of_warp
                .get(warp)
                .and_then(|held| held.get(&at).copied())
        };
        let mut outputs: Vec<_> = self
            .of_warp
            .get(warp)
            .into_iter()
            .flatten()
            .map(|(&at, &register)| (register, at))
            .collect();
        outputs.sort_unstable();
        let mut instructions = Vec::with_capacity(usize::try_from(self.registers).unwrap_or(0));
        for k in 0..k_blocks {
            for &(d, (m, n)) in &outputs {
                instructions.push(Instruction {
                    a: of(a, (m, k)).ok_or_else(|| missing("A", m, k))?,
                    b: of(b, (n, k)).ok_or_else(|| missing("B", n, k))?,
                    d,
                });
            }
        }
        Ok(instructions)
    }
}

/// The block that a warp's registers hold from `register` on, when they hold one as the instruction has it.
fn block_at(
    fragment: &Fragment,
    atom: &Fragment,
    warp: i64,
    register: i64,
    block: [i64; 2],
) -> Option<(i64, i64)> {
    let first = fragment.index(warp * WARP, register)?;
    let origin = [first.first()? / block[0], first.get(1)? / block[1]];
    for lane in 0..WARP {
        for k in 0..atom.registers() {
            let held = fragment.index(warp * WARP + lane, register + k)?;
            let within = atom.index(lane, k)?;
            let expected = [
                origin[0] * block[0] + within.first()?,
                origin[1] * block[1] + within.get(1)?,
            ];
            if held != expected {
                return None;
            }
        }
    }
    Some((origin[0], origin[1]))
}

impl fmt::Display for MmaPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mma { m, n, k, .. } = self.atom;
        writeln!(
            f,
            "{} x mma.sync.m{m}n{n}k{k} a warp",
            self.instructions.len()
        )?;
        for instruction in &self.instructions {
            writeln!(
                f,
                "d[{}] += a[{}] * b[{}]",
                instruction.d, instruction.a, instruction.b
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::matrix::M16N8K16;
    use axe_layout::Layout;

    /// An operand of 2 x 2 warps: `rows` and `columns` blocks in each warp's registers, spread over the warps along
    /// the rows by `warp_stride`, and copied to the others.
    fn operand(
        atom: &Layout,
        block: [i64; 2],
        rows: i64,
        columns: i64,
        warp_stride: i64,
        copies: i64,
    ) -> Fragment {
        let per = Fragment::new(atom, &block, 32).unwrap().registers();
        let outer = format!(
            "S[(2, {rows}, {columns}) : ({warp_stride}@warp, {}@reg, 1@reg)] + R[2 : {copies}@warp]",
            columns
        );
        let outer: Layout = outer.parse().unwrap();
        let outer_shape = [2 * rows, columns];
        let layout = Layout::tile(&outer, &outer_shape, atom, &block).unwrap();
        let fragment = Fragment::new(
            &layout,
            &[outer_shape[0] * block[0], columns * block[1]],
            128,
        )
        .unwrap();
        assert_eq!(fragment.registers(), per * rows * columns);
        fragment
    }

    fn operands() -> (Fragment, Fragment, Fragment) {
        let atom = M16N8K16;
        let a = operand(&atom.a().unwrap(), [16, 16], 2, 2, 2, 1);
        let b = operand(&atom.b().unwrap(), [8, 16], 4, 2, 1, 2);
        let d: Layout = "S[(2, 2, 2, 4) : (2@warp, 4@reg, 1@warp, 1@reg)]"
            .parse()
            .unwrap();
        let d = Layout::tile(&d, &[4, 8], &atom.d().unwrap(), &[16, 8]).unwrap();
        (a, b, Fragment::new(&d, &[64, 64], 128).unwrap())
    }

    #[test]
    fn warps_multiply_what_they_hold() {
        let (a, b, d) = operands();
        let plan = MmaPlan::new(M16N8K16, &a, &b, &d).unwrap();
        assert_eq!(plan.instructions.len(), 2 * 2 * 4);
        super::super::written(&plan);
        plan.check(&a, &b, &d).unwrap();
        for warp in 0..4 {
            for instruction in &plan.instructions {
                let at =
                    |fragment: &Fragment, register| fragment.index(warp * 32, register).unwrap();
                let (a, b, d) = (
                    at(&a, instruction.a),
                    at(&b, instruction.b),
                    at(&d, instruction.d),
                );
                assert_eq!(
                    (a[0], b[0], a[1]),
                    (d[0], d[1], b[1]),
                    "warp {warp}: {instruction:?}"
                );
            }
        }
    }

    #[test]
    fn wrong_instructions_are_found() {
        let (a, b, d) = operands();
        let plan = MmaPlan::new(M16N8K16, &a, &b, &d).unwrap();
        let wrong = |change: &dyn Fn(&mut Vec<Instruction>)| {
            let mut plan = plan.clone();
            change(&mut plan.instructions);
            plan.check(&a, &b, &d).unwrap_err().to_string()
        };
        assert!(wrong(&|all| all.truncate(3)).starts_with("no instruction of warp 0"));
        assert!(wrong(&|all| all[1] = all[0]).contains("does so again"));
        assert!(wrong(&|all| all[0].a += 1).contains("begin no block"));
        assert!(wrong(&|all| all[0].b = all[1].b).contains("of warp 0 adds"));
    }

    #[test]
    fn declines_name_the_operand() {
        let (a, b, d) = operands();
        let reason = MmaPlan::new(M16N8K16, &b, &a, &d).unwrap_err().to_string();
        assert!(reason.starts_with("A: "), "{reason}");
        let alone: Layout = "S[(2, 2, 2) : (2@warp, 2@reg, 1@reg)]".parse().unwrap();
        let alone = Layout::tile(&alone, &[4, 2], &M16N8K16.a().unwrap(), &[16, 16]).unwrap();
        let alone = Fragment::new(&alone, &[64, 32], 128).unwrap();
        let reason = MmaPlan::new(M16N8K16, &alone, &b, &d)
            .unwrap_err()
            .to_string();
        assert!(
            reason.contains("needs block") || reason.contains("does not hold"),
            "{reason}"
        );
    }
}
