//! Semaphores between engines.
//!
//! Engines run side by side; where data go from one to another, a semaphore makes the later wait (A1; NKI's compiler sets
//! them). An engine's own instructions stay in order, and so need none; a transfer is in order with nothing, once started.
//! [`semaphores`] finds the fewest that keep a program's meaning, [`hazards`] what may go wrong with given ones.

use crate::facts::chip::Engine;
use crate::program::{Location, Program};
use crate::rules::Violation;
use crate::run::Finding;
use crate::time::regions::{Conflict, Regions};
use crate::walk::{Event, Execution, Ready, Refused};

/// Executions of a program that can be checked: the order of all pairs is kept.
const MOST_EXECUTIONS: usize = 20_000;

/// One execution.
#[derive(Clone, Debug)]
pub struct Executed {
    /// The engine.
    pub engine: Engine,
    /// The operation's name.
    pub name: &'static str,
    /// Where it is in the source.
    pub location: Option<Location>,
    /// Where the loops stood.
    pub iteration: Vec<(String, i64)>,
}

/// Two executions that name the same bytes, at least one of them writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// The earlier execution.
    pub earlier: usize,
    /// The later one.
    pub later: usize,
    /// How they conflict.
    pub conflict: Conflict,
    /// The buffer through which the later one names them.
    pub buffer: String,
}

/// What a program executes, and which executions meet.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Every execution, in the program's order.
    pub executions: Vec<Executed>,
    /// Who meets whom; a pair follows from others when it is not here.
    pub meetings: Vec<Meeting>,
}

/// A semaphore: the second execution waits for the first.
pub type Semaphore = (usize, usize);

/// Traces a program.
///
/// # Errors
/// A program that breaks a rule before it is executed, or that executes more than 20,000 instructions.
pub fn trace(program: &Program) -> Result<Trace, Refused> {
    let ready = Ready::new(program)?;
    let mut regions = Regions::new(program);
    let mut trace = Trace::default();
    let mut fault = None;
    ready.walk(&mut |event| match event {
        Event::Execution(execution) if trace.executions.len() < MOST_EXECUTIONS => {
            add(&mut trace, &mut regions, program, &execution);
        }
        Event::Execution(_) => {
            fault.get_or_insert_with(|| format!("more than {MOST_EXECUTIONS} executions"));
        }
        Event::Invalid(execution, why) => {
            fault.get_or_insert_with(|| {
                format!("{}: {}", execution.instruction.op.name(), why[0].1)
            });
        }
        Event::Alloc(..) => {}
    });
    match fault {
        None => Ok(trace),
        Some(why) => Err(Refused::Arguments(why)),
    }
}

fn add(trace: &mut Trace, regions: &mut Regions, program: &Program, execution: &Execution<'_>) {
    let later = trace.executions.len();
    let engine = execution.instruction.engine;
    // A transfer is in order with nothing: each is a queue of its own.
    let queue = match engine {
        Engine::Dma => 8 + later as u32,
        _ => engine as u32,
    };
    for operand in &execution.operands {
        let buffer = &program.buffers[operand.access.buffer];
        regions.touch(
            operand,
            buffer.dtype.bytes() as i64,
            later as u32,
            queue,
            &mut |earlier, conflict| {
                trace.meetings.push(Meeting {
                    earlier: earlier as usize,
                    later,
                    conflict,
                    buffer: buffer.name.clone(),
                });
            },
        );
    }
    trace.executions.push(Executed {
        engine,
        name: execution.instruction.op.name(),
        location: execution.instruction.location.clone(),
        iteration: execution.iteration(program),
    });
}

/// For each execution, which earlier ones are over before it starts.
struct Order {
    words: usize,
    before: Vec<u64>,
    /// The last execution of each engine that keeps its order.
    last: [Option<usize>; 4],
}

impl Order {
    fn new(executions: usize) -> Self {
        let words = executions.div_ceil(64);
        Self {
            words,
            before: vec![0; words * executions],
            last: [None; 4],
        }
    }

    /// `later` starts after `earlier` is over.
    fn add(&mut self, earlier: usize, later: usize) {
        let (head, tail) = self.before.split_at_mut(later * self.words);
        let from = &head[earlier * self.words..(earlier + 1) * self.words];
        for (to, from) in tail.iter_mut().zip(from) {
            *to |= from;
        }
        tail[earlier / 64] |= 1 << (earlier % 64);
    }

    fn holds(&self, earlier: usize, later: usize) -> bool {
        self.before[later * self.words + earlier / 64] >> (earlier % 64) & 1 == 1
    }

    /// An engine's instructions follow each other.
    fn enter(&mut self, later: usize, engine: Engine) {
        let Some(last) = self.last.get_mut(engine as usize) else {
            return;
        };
        if let Some(earlier) = last.replace(later) {
            self.add(earlier, later);
        }
    }
}

/// The fewest semaphores with which nothing goes wrong.
#[must_use]
pub fn semaphores(trace: &Trace) -> Vec<Semaphore> {
    let mut order = Order::new(trace.executions.len());
    let mut semaphores = Vec::new();
    let mut meetings = trace.meetings.iter().peekable();
    for (later, executed) in trace.executions.iter().enumerate() {
        order.enter(later, executed.engine);
        let mut earlier = Vec::new();
        while let Some(meeting) = meetings.next_if(|meeting| meeting.later == later) {
            earlier.push(meeting.earlier);
        }
        // The latest first: what it waited for needs no semaphore of its own.
        earlier.sort_unstable_by(|a, b| b.cmp(a));
        for earlier in earlier {
            if !order.holds(earlier, later) {
                order.add(earlier, later);
                semaphores.push((earlier, later));
            }
        }
    }
    semaphores
}

/// What may go wrong with these semaphores: pairs that meet, and that nothing keeps in order.
#[must_use]
pub fn hazards(trace: &Trace, semaphores: &[Semaphore]) -> Vec<Finding> {
    let mut waits: Vec<Vec<usize>> = vec![Vec::new(); trace.executions.len()];
    for (earlier, later) in semaphores {
        if earlier < later
            && let Some(waits) = waits.get_mut(*later)
        {
            waits.push(*earlier);
        }
    }
    let mut order = Order::new(trace.executions.len());
    let mut found: Vec<Finding> = Vec::new();
    let mut meetings = trace.meetings.iter().peekable();
    for (later, executed) in trace.executions.iter().enumerate() {
        order.enter(later, executed.engine);
        for earlier in &waits[later] {
            order.add(*earlier, later);
        }
        while let Some(meeting) = meetings.next_if(|meeting| meeting.later == later) {
            if !order.holds(meeting.earlier, later) {
                found.push(hazard(trace, meeting));
            }
        }
    }
    found
}

fn hazard(trace: &Trace, meeting: &Meeting) -> Finding {
    let (earlier, later) = (
        &trace.executions[meeting.earlier],
        &trace.executions[meeting.later],
    );
    let verb = match meeting.conflict {
        Conflict::ReadAfterWrite => "reads what",
        Conflict::WriteAfterRead => "overwrites what",
        Conflict::WriteAfterWrite => "overwrites what",
    };
    let does = match meeting.conflict {
        Conflict::WriteAfterRead => "reads",
        Conflict::ReadAfterWrite | Conflict::WriteAfterWrite => "writes",
    };
    let place = earlier
        .location
        .as_ref()
        .map(|place| format!(" at {place}"))
        .unwrap_or_default();
    let message = format!(
        "{} {verb} {}{place} on {} {does} in '{}', without a semaphore between them",
        later.engine, earlier.name, earlier.engine, meeting.buffer
    );
    Finding {
        violation: Violation {
            rule: "R3",
            message,
            subject: later.name.into(),
            location: later.location.clone(),
        },
        iteration: later.iteration.clone(),
        times: 1,
    }
}
