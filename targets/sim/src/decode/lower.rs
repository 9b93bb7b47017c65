//! Lowers the syntax tree of one function: scopes, registers, labels and operands.

mod operands;

use super::{Func, Inst, Param, Pred, PredSrc, Preload, Program, Slot, Special};
use crate::ptx::PtxError;
use crate::ptx::ast::{self, Operand, Space, Stmt, Variable};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub(super) type Decoded<T> = Result<T, PtxError>;

/// What a name means.
#[derive(Debug, Clone, Copy)]
pub(super) enum Symbol {
    Reg(Slot, u8),
    Pred(Pred),
    Shared(usize),
    Global(usize),
    /// In the local frame; the flag says that it was declared `.param`.
    Local(u64, u64, bool),
    KernelParam(u64),
    Function(usize),
}

#[derive(Default)]
struct Scope {
    names: HashMap<String, Symbol>,
    /// `%r<n>`: prefix, count, first slot, bytes (0: predicates).
    ranges: Vec<(String, u32, u32, u8)>,
    labels: HashMap<String, u32>,
    targets: HashMap<String, Vec<String>>,
}

/// Lowers one function.
pub(super) struct Lower<'p> {
    pub(super) program: &'p mut Program,
    pub(super) func: Func,
    scopes: Vec<Scope>,
    preload: HashMap<Preload, Slot>,
    label_pc: Vec<Option<u32>>,
    loc: Option<u32>,
    /// Index in [`Program::locs`] of the last `.loc` of a place.
    locs: HashMap<ast::SourcePlace, u32>,
    names: HashMap<String, Arc<str>>,
    /// Names that stand in one instruction, once.
    pub(super) written_once: HashSet<String>,
    /// Operations that an instruction of several starts with.
    pub(super) before: Vec<super::Op>,
    line: u32,
    column: u32,
}

/// Bytes between the variables of a local frame.
const LOCAL_GAP: u64 = 16;

fn align_up(n: u64, align: u64) -> u64 {
    n.next_multiple_of(align.max(1))
}

/// The function with what its directives require (PTX ISA 11.4).
fn with_directives(function: &ast::Function) -> Func {
    let mut func = Func {
        name: function.name.clone(),
        entry: function.entry,
        preds: 1,
        ..Func::default()
    };
    for (name, values) in &function.directives {
        let dims = || {
            let at = |i: usize| values.get(i).copied().unwrap_or(1) as u32;
            [at(0), at(1), at(2)]
        };
        match name.as_str() {
            "reqntid" => func.required_threads = Some(dims()),
            "maxntid" => func.max_threads = Some(dims().iter().map(|&d| u64::from(d)).product()),
            "maxnreg" => func.max_registers = values.first().map(|&n| n as u32),
            "minnctapersm" => func.min_ctas = values.first().map(|&n| n as u32),
            "reqnctapercluster" => func.required_cluster = Some(dims()),
            _ => {}
        }
    }
    func
}

impl<'p> Lower<'p> {
    pub(super) fn new(
        program: &'p mut Program,
        module: Scoped,
        function: &ast::Function,
    ) -> Decoded<Self> {
        let func = with_directives(function);
        let globals = Scope {
            names: module.0,
            ..Scope::default()
        };
        let mut this = Self {
            program,
            func,
            scopes: vec![globals, Scope::default()],
            preload: HashMap::new(),
            label_pc: Vec::new(),
            loc: None,
            locs: HashMap::new(),
            names: HashMap::new(),
            written_once: ast::mentions(function.body.as_deref().unwrap_or_default())
                .into_iter()
                .filter(|(_, count)| *count == 1)
                .map(|(name, _)| name.to_owned())
                .collect(),
            before: Vec::new(),
            line: function.line,
            column: 1,
        };
        let zero = this.constant(0);
        debug_assert_eq!(zero, 0);
        for param in &function.params {
            let param = this.parameter(param, function.entry);
            this.func.params.push(param);
        }
        for param in &function.returns {
            let param = this.parameter(param, false);
            this.func.returns.push(param);
        }
        Ok(this)
    }

    fn parameter(&mut self, v: &Variable, kernel: bool) -> Param {
        let bytes = v.bytes();
        let mut param = Param {
            name: v.name.clone(),
            ty: v.ty.clone(),
            align: v.align,
            offset: 0,
            bytes,
            slot: None,
        };
        if v.space == Space::Reg {
            let slot = self.new_slot();
            param.slot = Some(slot);
            self.define(&v.name, Symbol::Reg(slot, v.element as u8));
        } else if kernel {
            param.offset = align_up(self.func.param_bytes, v.align);
            self.func.param_bytes = param.offset + bytes;
            self.define(&v.name, Symbol::KernelParam(param.offset));
        } else {
            param.offset = self.frame(v, true);
            self.define(&v.name, Symbol::Local(param.offset, bytes, true));
        }
        param
    }

    /// Gives a variable its place in the local frame; what lies between two belongs to neither.
    fn frame(&mut self, v: &Variable, param: bool) -> u64 {
        let offset = align_up(self.func.frame_bytes, v.align);
        self.func.frame_bytes = offset.saturating_add(v.bytes()).saturating_add(LOCAL_GAP);
        self.func.locals.push(super::LocalVar {
            name: v.name.clone(),
            offset,
            bytes: v.bytes(),
            param,
        });
        offset
    }

    fn define(&mut self, name: &str, symbol: Symbol) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.insert(name.to_string(), symbol);
        }
    }

    pub(super) fn new_slot(&mut self) -> Slot {
        self.func.slots += 1;
        self.func.slots - 1
    }

    pub(super) fn new_pred(&mut self) -> Pred {
        self.func.preds += 1;
        self.func.preds - 1
    }

    pub(super) fn error(&self, message: impl Into<String>) -> PtxError {
        PtxError {
            line: self.line,
            column: self.column,
            message: message.into(),
            unsupported: true,
        }
    }

    /// An error that no simulator would accept: a name that means nothing here.
    fn undefined(&self, message: impl Into<String>) -> PtxError {
        PtxError {
            unsupported: false,
            ..self.error(message)
        }
    }

    pub(super) fn preloaded(&mut self, value: Preload) -> Slot {
        if let Some(&slot) = self.preload.get(&value) {
            return slot;
        }
        let slot = self.new_slot();
        self.preload.insert(value, slot);
        self.func.preload.push((slot, value));
        slot
    }

    pub(super) fn constant(&mut self, bits: u64) -> Slot {
        self.preloaded(Preload::Bits(bits))
    }

    pub(super) fn lookup(&self, name: &str) -> Option<Symbol> {
        let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (prefix, number) = name.split_at(digits);
        let number: Option<u32> = number.parse().ok();
        for scope in self.scopes.iter().rev() {
            if let Some(&symbol) = scope.names.get(name) {
                return Some(symbol);
            }
            for (start, count, first, bytes) in &scope.ranges {
                if let Some(n) = number.filter(|&n| n < *count && start == prefix) {
                    return Some(if *bytes == 0 {
                        Symbol::Pred(first + n)
                    } else if *bytes > 8 {
                        Symbol::Reg(first + 2 * n, *bytes)
                    } else {
                        Symbol::Reg(first + n, *bytes)
                    });
                }
            }
        }
        None
    }

    /// Lowers all statements of a body and resolves labels.
    pub(super) fn body(mut self, stmts: &[Stmt]) -> Decoded<Func> {
        self.block(stmts)?;
        self.emit("ret", super::Op::Ret, PredSrc(0, false));
        self.resolve()?;
        self.program.communicates |= self.func.insts.iter().any(|i| communicates(&i.op));
        strengthen_guesses(&mut self.func);
        super::cfg::reconverge(&mut self.func);
        self.func.fixed = vec![false; self.func.slots as usize];
        for (slot, _) in &self.func.preload {
            self.func.fixed[*slot as usize] = true;
        }
        Ok(self.func)
    }

    fn block(&mut self, stmts: &[Stmt]) -> Decoded<()> {
        for stmt in stmts {
            if let Stmt::Label(name, line) = stmt {
                let id = self.label_pc.len() as u32;
                self.label_pc.push(None);
                let scope = self
                    .scopes
                    .last_mut()
                    .map(|scope| scope.labels.insert(name.clone(), id));
                if scope.flatten().is_some() {
                    self.line = *line;
                    return Err(self.undefined(format!("label `{name}` is defined twice")));
                }
            }
            if let (Stmt::Targets(name, names), Some(scope)) = (stmt, self.scopes.last_mut()) {
                scope.targets.insert(name.clone(), names.clone());
            }
        }
        for stmt in stmts {
            self.statement(stmt)?;
        }
        Ok(())
    }

    fn statement(&mut self, stmt: &Stmt) -> Decoded<()> {
        match stmt {
            Stmt::Reg { ty, name, count } => self.registers(ty, name, *count),
            Stmt::Variable(v) => self.variable(v)?,
            Stmt::Label(name, _) => {
                let pc = self.func.insts.len() as u32;
                let id = self
                    .scopes
                    .last()
                    .and_then(|scope| scope.labels.get(name))
                    .copied();
                if let Some(at) = id.and_then(|id| self.label_pc.get_mut(id as usize)) {
                    *at = Some(pc);
                }
            }
            Stmt::Targets(..) | Stmt::Prototype => {}
            Stmt::Block(stmts) => {
                self.scopes.push(Scope::default());
                self.block(stmts)?;
                self.scopes.pop();
            }
            Stmt::Loc(loc) => {
                // Line 0 is the compiler's word for "no line of its own".
                if loc.place.1 != 0 {
                    self.loc = Some(self.located(loc));
                }
            }
            Stmt::Inst(inst) => {
                (self.line, self.column) = (inst.line, inst.column);
                self.instruction(inst)?;
            }
        }
        Ok(())
    }

    /// The index of a place in the source. What it was inlined at has a `.loc` of its own before
    /// (PTX ISA 11.5.3), or stands for itself.
    fn located(&mut self, loc: &ast::Loc) -> u32 {
        let inlined = loc.inlined.as_ref().map(|(function, at)| {
            let outer = self.locs.get(at).copied();
            let outer = outer.unwrap_or_else(|| self.new_loc(*at, None));
            (function.clone(), outer)
        });
        let known = self.locs.get(&loc.place).copied();
        let same = |&id: &u32| self.program.locs[id as usize].inlined == inlined;
        known
            .filter(same)
            .unwrap_or_else(|| self.new_loc(loc.place, inlined))
    }

    fn new_loc(&mut self, place: ast::SourcePlace, inlined: Option<(String, u32)>) -> u32 {
        let id = self.program.locs.len() as u32;
        self.program.locs.push(super::Loc { place, inlined });
        self.locs.insert(place, id);
        id
    }

    fn registers(&mut self, ty: &str, name: &str, count: Option<u32>) {
        let n = count.unwrap_or(1);
        let pred = ty == "pred";
        let bytes = if pred {
            0
        } else {
            crate::ptx::type_bytes(ty).unwrap_or(8) as u8
        };
        let next = if pred {
            &mut self.func.preds
        } else {
            &mut self.func.slots
        };
        let first = *next;
        // A register of 128 bits is two of 64.
        *next += if bytes > 8 { 2 * n } else { n };
        if count.is_some() {
            if let Some(scope) = self.scopes.last_mut() {
                scope.ranges.push((name.to_string(), n, first, bytes));
            }
        } else {
            self.define(
                name,
                if pred {
                    Symbol::Pred(first)
                } else {
                    Symbol::Reg(first, bytes)
                },
            );
        }
    }

    fn variable(&mut self, v: &Variable) -> Decoded<()> {
        let symbol = match v.space {
            Space::Shared => Symbol::Shared(super::module::add_shared(self.program, v)),
            Space::Global | Space::Const => {
                self.program.globals.push(v.clone());
                Symbol::Global(self.program.globals.len() - 1)
            }
            Space::Local => Symbol::Local(self.frame(v, false), v.bytes(), false),
            Space::Param => Symbol::Local(self.frame(v, true), v.bytes(), true),
            Space::Generic | Space::Reg => {
                return Err(self.undefined(format!("variable `{}` has no state space", v.name)));
            }
        };
        self.define(&v.name, symbol);
        Ok(())
    }

    pub(super) fn emit(&mut self, name: &str, op: super::Op, guard: PredSrc) {
        // `bar` stands for `barrier.aligned` (PTX ISA 9.7.13.1).
        let bar = name.starts_with("bar.") && !name.starts_with("bar.warp");
        let aligned = bar || name.split('.').any(|part| part == "aligned");
        let name = self
            .names
            .entry(name.to_string())
            .or_insert_with(|| Arc::from(name))
            .clone();
        self.func.insts.push(Inst {
            op,
            guard,
            join: false,
            aligned,
            line: self.line,
            loc: self.loc,
            name,
        });
    }

    fn instruction(&mut self, inst: &ast::Inst) -> Decoded<()> {
        let guard = match &inst.guard {
            None => PredSrc(0, false),
            Some((name, negated)) => PredSrc(self.pred_named(name)?, *negated),
        };
        let parts: Vec<&str> = inst.op.iter().map(String::as_str).collect();
        // What this simulator does not execute stops the kernel that reaches it, not the module.
        let op = match self.operation(&parts, &inst.operands) {
            Err(error) if error.unsupported => {
                self.before.clear();
                self.program.unsupported.push(error.clone());
                super::Op::Unsupported(error.message.into())
            }
            other => other?,
        };
        for first in std::mem::take(&mut self.before) {
            self.emit(&inst.mnemonic(), first, guard);
        }
        self.emit(&inst.mnemonic(), op, guard);
        Ok(())
    }

    fn operation(&mut self, parts: &[&str], operands: &[Operand]) -> Decoded<super::Op> {
        if let Some(op) = self.control(parts, operands)? {
            return Ok(op);
        }
        if let Some(op) = self.sync(parts, operands)? {
            return Ok(op);
        }
        if let Some(op) = self.tensor(parts, operands)? {
            return Ok(op);
        }
        if let Some(op) = self.memory(parts, operands)? {
            return Ok(op);
        }
        if let Some(op) = self.alu(parts, operands)? {
            return Ok(op);
        }
        Err(self.error(format!("unsupported instruction `{}`", parts.join("."))))
    }

    fn resolve(&mut self) -> Decoded<()> {
        let end = self.func.insts.len() as u32 - 1;
        let labels = &self.label_pc;
        let pc = |id: u32| labels.get(id as usize).copied().flatten().unwrap_or(end);
        for inst in &mut self.func.insts {
            match &mut inst.op {
                super::Op::Bra { target, .. } => *target = pc(*target),
                super::Op::Brx { targets, .. } => targets.iter_mut().for_each(|t| *t = pc(*t)),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether an operation is a strong access of memory that other threads see.
fn communicates(op: &super::Op) -> bool {
    let seen = |space: Space| matches!(space, Space::Global | Space::Shared | Space::Generic);
    match op {
        super::Op::Ld(a) | super::Op::St(a) => seen(a.space) && a.order != super::Order::Weak,
        super::Op::Atom(atom) => seen(atom.space),
        _ => false,
    }
}

/// A plain load whose value is only the first guess of a compare-and-swap loop is no race: the
/// swap checks it (CUDA C++ Programming Guide, "Atomic Functions", writes such loops this way).
fn strengthen_guesses(func: &mut Func) {
    let mut guesses = HashSet::new();
    for inst in &func.insts {
        if let super::Op::Atom(atom) = &inst.op
            && atom.op == super::AtomOp::Cas
        {
            guesses.extend(atom.b.iter().copied());
        }
    }
    let mut known = 0;
    while known != guesses.len() {
        known = guesses.len();
        for inst in &func.insts {
            if let super::Op::Mov { d, a } = inst.op
                && guesses.contains(&d)
            {
                guesses.insert(a);
            }
        }
    }
    for inst in &mut func.insts {
        if let super::Op::Ld(access) = &mut inst.op
            && access.order == super::Order::Weak
            && access.regs.iter().all(|r| guesses.contains(r))
        {
            access.order = super::Order::Relaxed;
        }
    }
}

/// Names visible in the whole module.
pub(super) struct Scoped(pub(super) HashMap<String, Symbol>);

/// The special registers whose value never changes within a thread (PTX ISA 10).
fn special(name: &str) -> Option<Preload> {
    use Special as S;
    let (base, axis) = match name.rsplit_once('.') {
        Some((base, "x")) => (base, 0),
        Some((base, "y")) => (base, 1),
        Some((base, "z")) => (base, 2),
        Some((base, "w")) => (base, 3),
        _ => (name, 4),
    };
    let constant = Preload::Bits;
    Some(match (base, axis) {
        ("%tid" | "%ctaid", 3) => constant(0),
        ("%ntid" | "%nctaid", 3) => constant(1),
        ("%tid", 0..=2) => Preload::Special(S::Tid(axis)),
        ("%ntid", 0..=2) => Preload::Special(S::Ntid(axis)),
        ("%ctaid", 0..=2) => Preload::Special(S::Ctaid(axis)),
        ("%nctaid", 0..=2) => Preload::Special(S::Nctaid(axis)),
        ("%clusterid", 0..=2) => Preload::Special(S::Clusterid(axis)),
        ("%nclusterid", 0..=2) => Preload::Special(S::Nclusterid(axis)),
        ("%cluster_ctaid", 0..=2) => Preload::Special(S::ClusterCtaid(axis)),
        ("%cluster_nctaid", 0..=2) => Preload::Special(S::ClusterNctaid(axis)),
        ("%cluster_ctarank", 4) => Preload::Special(S::ClusterCtarank),
        ("%cluster_nctarank", 4) => Preload::Special(S::ClusterNctarank),
        ("%laneid", 4) => Preload::Special(S::Laneid),
        ("%warpid", 4) => Preload::Special(S::Warpid),
        ("%nwarpid", 4) => Preload::Special(S::Nwarpid),
        ("%smid", 4) => Preload::Special(S::Smid),
        ("%nsmid", 4) => Preload::Special(S::Nsmid),
        ("%gridid", 4) => constant(0),
        ("%lanemask_eq", 4) => Preload::Special(S::LanemaskEq),
        ("%lanemask_le", 4) => Preload::Special(S::LanemaskLe),
        ("%lanemask_lt", 4) => Preload::Special(S::LanemaskLt),
        ("%lanemask_ge", 4) => Preload::Special(S::LanemaskGe),
        ("%lanemask_gt", 4) => Preload::Special(S::LanemaskGt),
        ("%dynamic_smem_size", 4) => Preload::Special(S::DynamicSmemSize),
        ("%total_smem_size" | "%aggr_smem_size", 4) => Preload::Special(S::TotalSmemSize),
        ("%reserved_smem_offset_begin", 4) => constant(0),
        ("%reserved_smem_offset_end" | "%reserved_smem_offset_cap", 4) => {
            constant(super::SHARED_BASE)
        }
        // The driver sets two: the address of the workspace of cooperative groups' grid barrier.
        (name, 4)
            if name
                .strip_prefix("%envreg")
                .is_some_and(|n| n.parse::<u8>().is_ok_and(|n| n < 32)) =>
        {
            Preload::Special(S::Envreg(
                name.trim_start_matches("%envreg").parse().unwrap_or(0),
            ))
        }
        ("WARP_SZ", 4) => constant(32),
        _ => return None,
    })
}
