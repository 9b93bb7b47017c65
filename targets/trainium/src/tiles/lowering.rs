//! The state of a kernel that is lowered, and its statements one after another.

use super::index::Indices;
use super::refuse;
use super::storage::{self, Form, Found, Storage, Tensor};
use crate::planner::Body;
use crate::read;
use axe_dialect::ops;
use axe_passes::dispatch::schedule::Refused;
use axe_passes::dispatch::{Decision, Decline, record};
use axe_passes::ir::attribute::text;
use axe_passes::ir::value::{identity, name, only_result};
use axe_passes::ir::{Op, Val, walk};
use axe_passes::{PassError, PassResult};
use axe_trn::dispatch::{Bound, Declined};
use axe_trn::facts::chip::Chip;
use axe_trn::plan::graph::Graph;
use axe_trn::program::{Buffer, Builder as Code, Role, Space};
use axe_trn::rules;
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, ValueLike};
use std::collections::{HashMap, HashSet};

/// What a value of the kernel is.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A tensor in a buffer.
    Tensor(Tensor),
    /// A tensor of one number, which is written where something reads it.
    Number(f64),
    /// Storage.
    Storage(Storage),
}

/// How many copies of a tile in a loop take turns, in each memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copies {
    pub sbuf: i64,
    pub psum: i64,
}

impl Copies {
    /// One copy less in a memory; `None` where there is one alone.
    pub fn fewer(self, space: Space) -> Option<Self> {
        let less = match space {
            Space::Psum => Self {
                psum: self.psum - 1,
                ..self
            },
            _ => Self {
                sbuf: self.sbuf - 1,
                ..self
            },
        };
        (less.psum > 0 && less.sbuf > 0).then_some(less)
    }
}

/// A kernel that is being lowered.
pub(super) struct Lowering<'c> {
    pub code: Code,
    pub chip: &'static Chip,
    pub indices: Indices,
    copies: Copies,
    /// Loops that are open.
    pub open: usize,
    pub values: HashMap<usize, Value>,
    /// Buffers that results of operations are to be written to: those of what loops carry.
    pub targets: HashMap<usize, Tensor>,
    /// Sums in PSUM that the next product adds to.
    pub sums: HashSet<usize>,
    /// Operations that were executed together with another.
    pub joined: HashSet<usize>,
    /// What was decided, in the order of the text.
    pub decisions: Vec<Decision<'c>>,
    decided: HashSet<usize>,
    /// Instructions beside those of the operator's schedule.
    beside: Vec<String>,
}

/// What tells operations apart.
pub(super) fn key(op: Op<'_>) -> usize {
    op.to_raw().ptr as usize
}

/// An error at an operation.
pub(super) fn failed<'c>(op: Op<'c>, why: impl AsRef<str>) -> PassError<'c> {
    PassError::new(op.location(), format!("'{}': {}", name(op), why.as_ref()))
}

impl<'c> Lowering<'c> {
    /// A kernel without statements.
    pub fn new(code: Code, chip: &'static Chip, copies: Copies) -> Self {
        Self {
            code,
            chip,
            indices: Indices::default(),
            copies,
            open: 0,
            values: HashMap::new(),
            targets: HashMap::new(),
            sums: HashSet::new(),
            joined: HashSet::new(),
            decisions: Vec::new(),
            decided: HashSet::new(),
            beside: Vec::new(),
        }
    }

    /// The statements of a block.
    ///
    /// # Errors
    /// At the operation that has no instructions.
    pub fn statements(&mut self, block: BlockRef<'c, 'c>) -> PassResult<'c> {
        for op in walk::operations(block) {
            if self.joined.remove(&key(op)) {
                continue;
            }
            self.code.locate(read::location(op));
            self.statement(op)?;
        }
        Ok(())
    }

    fn statement(&mut self, op: Op<'c>) -> PassResult<'c> {
        match name(op).as_str() {
            ops::RETURN | ops::END | "scf.yield" => Ok(()),
            ops::ALLOC => self.alloc(op),
            ops::SLICE => self.slice(op),
            ops::VIEW => self.view(op),
            ops::COPY => self.copy(op),
            ops::FILL => self.fill(op),
            ops::CAST => self.cast(op),
            ops::MAP => self.map(op),
            ops::REDUCE => self.reduce(op),
            ops::BROADCAST => self.broadcast(op),
            ops::TRANSPOSE => self.transpose(op),
            ops::EXTRACT_SLICE => self.extract_slice(op),
            ops::GEMM => self.gemm(op),
            ops::FOR_TILES => self.for_tiles(op),
            "scf.for" => self.for_loop(op),
            "gpu.block_id" | "gpu.grid_dim" => Ok(()),
            // What they give is read where it is used.
            kind if kind.starts_with("arith.") || kind.starts_with("math.") => Ok(()),
            kind => Err(failed(op, refuse::reason(kind))),
        }
    }

    /// Keeps what a value is.
    pub fn know(&mut self, value: Val<'_>, is: Value) {
        self.values.insert(identity(value), is);
    }

    /// What a value is.
    pub fn known(&self, value: Val<'c>, user: Op<'c>) -> PassResult<'c, Value> {
        let known = self.values.get(&identity(value)).cloned();
        known.ok_or_else(|| failed(user, "an operand has no place on the chip"))
    }

    /// Storage, or a box of it.
    pub fn storage(&self, value: Val<'c>, user: Op<'c>) -> PassResult<'c, Storage> {
        match self.known(value, user)? {
            Value::Storage(storage) => Ok(storage),
            _ => Err(failed(user, "expected storage")),
        }
    }

    /// A tensor; one of a number is written to a tile of its own.
    pub fn tensor(&mut self, value: Val<'c>, user: Op<'c>) -> PassResult<'c, Tensor> {
        match self.known(value, user)? {
            Value::Tensor(tensor) => Ok(tensor),
            Value::Storage(storage) => {
                self.inside(&storage, user)?;
                Ok(storage.tensor)
            }
            Value::Number(number) => {
                let tile = self.tile_of(value, user, "number", Space::Sbuf)?;
                let region = tile.region.clone();
                self.beside(user, |code| axe_trn::dispatch::fill(code, &region, number))?;
                Ok(tile)
            }
        }
    }

    /// The type of a value, in a memory.
    pub fn form(&self, value: Val<'c>, user: Op<'c>, space: Space) -> PassResult<'c, Form> {
        storage::tensor_form(value.r#type(), space).map_err(|why| failed(user, why))
    }

    /// A new tile for a value; that of what a loop carries where the value is yielded to it.
    pub fn tile_of(
        &mut self,
        value: Val<'c>,
        user: Op<'c>,
        called: &str,
        space: Space,
    ) -> PassResult<'c, Tensor> {
        if let Some(target) = self.targets.get(&identity(value)) {
            return Ok(target.clone());
        }
        let form = self.form(value, user, space)?;
        self.tile(user, called, &form)
    }

    /// A new tile.
    pub fn tile(&mut self, op: Op<'c>, called: &str, form: &Form) -> PassResult<'c, Tensor> {
        let error = |why: String| failed(op, why);
        let shape = storage::buffer_shape(&form.layout).map_err(error)?;
        let called = named(op).unwrap_or(called);
        let buffer = Buffer {
            name: called.to_owned(),
            space: form.space,
            shape: shape.to_vec(),
            dtype: form.dtype,
            role: Role::Local,
            copies: 1,
            place: None,
            location: read::location(op),
        };
        if let Some(broken) = rules::buffer::check_buffer(&buffer, self.chip).first() {
            let message = format!("a tile: ({}) {}", broken.rule, broken.message);
            return Err(failed(op, message));
        }
        let copies = match (self.open, form.space) {
            (0, _) => 1,
            (_, Space::Psum) => self.copies.psum,
            _ => self.copies.sbuf,
        };
        let tile = self
            .code
            .tile(called, form.space, &shape, form.dtype, copies);
        Ok(Tensor {
            region: storage::region(tile.buffer(), form).map_err(error)?,
            dtype: form.dtype,
            space: form.space,
        })
    }

    /// Appends instructions that an operator needs beside its own.
    pub fn beside(
        &mut self,
        op: Op<'c>,
        append: impl FnOnce(&mut Code) -> Result<Bound, Declined>,
    ) -> PassResult<'c> {
        let bound = append(&mut self.code).map_err(|declined| self.declined(op, &declined))?;
        self.beside.extend(lines(&bound));
        Ok(())
    }

    /// Appends the instructions of an operator, and keeps what was decided.
    pub fn bind(
        &mut self,
        op: Op<'c>,
        append: impl FnOnce(&mut Code) -> Result<Bound, Declined>,
    ) -> PassResult<'c> {
        let at = self.code.position();
        let bound = append(&mut self.code).map_err(|declined| self.declined(op, &declined))?;
        self.decide(op, at, &bound)
    }

    /// Keeps what an operator became, whose instructions begin at a place of the text.
    pub fn decide(&mut self, op: Op<'c>, at: usize, bound: &Bound) -> PassResult<'c> {
        if let Some(forced) = record::schedule(op).filter(|forced| *forced != bound.schedule) {
            let known = vec![bound.schedule];
            let refused = Refused::Unknown { forced, known };
            return Err(refused.error(op.location(), &name(op), self.chip.name));
        }
        let own = op.attribute("trn.comment").ok().and_then(text);
        let mut remark = format!("{}: {}", name(op), bound.schedule);
        if let Some(own) = own {
            remark = format!("{own} ({remark})");
        }
        self.code.comment_at(at, &remark);
        let mut plan = std::mem::take(&mut self.beside);
        plan.extend(lines(bound));
        self.note(op, bound.schedule, plan.join("\n"));
        if let Some(decision) = self
            .decisions
            .last_mut()
            .filter(|d| d.location == op.location())
        {
            let declined = bound.declined.iter();
            decision.declines = declined
                .map(|(schedule, why)| (*schedule, Decline::new(why.to_string())))
                .collect();
        }
        Ok(())
    }

    /// Gives a loop the instructions that what it carries needs.
    pub fn charge(&mut self, op: Op<'c>) {
        let lines = std::mem::take(&mut self.beside);
        if lines.is_empty() {
            return;
        }
        self.note(op, "carried", String::new());
        let location = op.location();
        let own =
            |known: &&mut Decision<'c>| known.location == location && known.schedule == "carried";
        let Some(decision) = self.decisions.iter_mut().find(own) else {
            return;
        };
        for line in lines {
            if !decision.plan.lines().any(|known| known == line) {
                let gap = if decision.plan.is_empty() { "" } else { "\n" };
                decision.plan.push_str(gap);
                decision.plan.push_str(&line);
            }
        }
    }

    /// Keeps what an operator became that has no instructions of its own.
    pub fn note(&mut self, op: Op<'c>, schedule: &'static str, plan: String) {
        if self.decided.insert(key(op)) {
            self.decisions.push(Decision {
                location: op.location(),
                operator: name(op),
                schedule,
                plan,
                declines: Vec::new(),
            });
        }
    }

    /// The error of an operator that no schedule takes.
    pub fn declined(&self, op: Op<'c>, declined: &Declined) -> PassError<'c> {
        let reasons = declined.reasons.iter();
        let reasons = reasons.map(|(schedule, why)| (*schedule, Decline::new(why.to_string())));
        Refused::Declined(reasons.collect()).error(op.location(), &name(op), self.chip.name)
    }

    /// A number that is known when compiling.
    pub fn number(&self, value: Val<'c>, user: Op<'c>) -> PassResult<'c, f64> {
        let mut graph = Graph::new(1, 1);
        let id = Body { graph: &mut graph }.captured(user, value)?;
        let number = graph.as_number(id);
        number.ok_or_else(|| failed(user, "expected a number known when compiling"))
    }

    /// The only result of an operation.
    pub fn result(op: Op<'c>) -> PassResult<'c, Val<'c>> {
        only_result(op).ok_or_else(|| failed(op, "expected one result"))
    }

    /// What is found, or the error at an operation.
    pub fn found<T>(op: Op<'c>, found: Found<T>) -> PassResult<'c, T> {
        found.map_err(|why| failed(op, why))
    }
}

/// The name that an operation gives its tile.
fn named<'c>(op: Op<'c>) -> Option<&'c str> {
    op.attribute("trn.name").ok().and_then(text)
}

/// The instructions of a schedule, a line each.
fn lines(bound: &Bound) -> Vec<String> {
    let line =
        |count: &axe_trn::dispatch::Count| format!("{} x {}", count.times, count.instruction);
    bound.counts.iter().map(line).collect()
}
