//! Engines that execute their instructions in order, each as early as it may.
//!
//! An instruction starts when its engine is free, what it depends on is there, and, on trn1, no other engine holds the
//! port to the memory. Transfers wait in a queue for each `dma_copy` of the program's text; those that are ready share the
//! DMA engines first come, first served, in the program's order.

use super::cost::{self, Cost};
use super::regions::{Conflict, Regions};
use super::report::{Segment, Timing};
use crate::facts::chip::{Chip, Engine, Generation};
use crate::facts::dma;
use crate::program::{Op, Program, Space};
use crate::walk::{Event, Execution, Ready, Refused};
use smallvec::SmallVec;

/// One execution, waiting.
struct Node {
    /// The number of its instruction in the program's text.
    instruction: u32,
    /// What it waits for.
    waits: SmallVec<[u32; 4]>,
}

/// What is known of an instruction.
struct Kind {
    name: &'static str,
    engine: Engine,
    cost: Cost,
    /// Whether it holds the port of SBUF that the vector engine and gpsimd share, and the one of PSUM that the vector and
    /// the scalar engine share.
    ports: [bool; 2],
    queue: usize,
}

/// Times a program.
///
/// # Errors
/// A program that breaks a rule before it is executed, or whose indices leave its buffers.
pub fn simulate(program: &Program) -> Result<Timing, Refused> {
    let ready = Ready::new(program)?;
    let mut collected = Collected::new(&ready);
    ready.walk(&mut |event| collected.event(event));
    match collected.invalid {
        None => Ok(collected.run()),
        Some(why) => Err(Refused::Arguments(why)),
    }
}

struct Collected<'a> {
    program: &'a Program,
    chip: &'static Chip,
    regions: Regions,
    nodes: Vec<Node>,
    /// By the number of the instruction in the text.
    kinds: Vec<Option<Kind>>,
    /// The executions of each queue, in order: the four engines, then one for each transfer in the text.
    queues: Vec<Vec<u32>>,
    invalid: Option<String>,
}

impl<'a> Collected<'a> {
    fn new(ready: &Ready<'a>) -> Self {
        Self {
            program: ready.program,
            chip: ready.chip,
            regions: Regions::new(ready.program),
            nodes: Vec::new(),
            kinds: Vec::new(),
            queues: vec![Vec::new(); 4],
            invalid: None,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Alloc(..) => {}
            Event::Invalid(execution, why) => {
                let (rule, message) = &why[0];
                self.invalid.get_or_insert_with(|| {
                    format!("{}: ({rule}) {message}", execution.instruction.op.name())
                });
            }
            Event::Execution(execution) => self.execution(&execution),
        }
    }

    fn execution(&mut self, execution: &Execution<'_>) {
        let who = self.nodes.len() as u32;
        let queue = self.kind(execution);
        let mut waits: SmallVec<[u32; 4]> = SmallVec::new();
        for operand in &execution.operands {
            let bytes = self.program.buffers[operand.access.buffer].dtype.bytes() as i64;
            self.regions.touch(
                operand,
                bytes,
                who,
                queue as u32,
                &mut |earlier, _: Conflict| {
                    if !waits.contains(&earlier) {
                        waits.push(earlier);
                    }
                },
            );
        }
        self.queues[queue].push(who);
        self.nodes.push(Node {
            instruction: execution.instruction_number as u32,
            waits,
        });
    }

    /// The queue of an execution, after its instruction is known.
    fn kind(&mut self, execution: &Execution<'_>) -> usize {
        let number = execution.instruction_number;
        if self.kinds.len() <= number {
            self.kinds.resize_with(number + 1, || None);
        }
        if let Some(kind) = &self.kinds[number] {
            return kind.queue;
        }
        let (op, engine) = (&execution.instruction.op, execution.instruction.engine);
        let accesses: Vec<_> = execution
            .operands
            .iter()
            .map(|operand| &operand.access)
            .collect();
        let queue = match Engine::ALL.iter().position(|known| *known == engine) {
            Some(index) if index < 4 => index,
            _ => {
                self.queues.push(Vec::new());
                self.queues.len() - 1
            }
        };
        self.kinds[number] = Some(Kind {
            name: op.name(),
            engine,
            cost: cost::cost(op, engine, self.program, self.chip, &accesses),
            ports: ports(op, engine, self.program, self.chip),
            queue,
        });
        queue
    }

    fn run(self) -> Timing {
        let kinds: Vec<Kind> = self.kinds.into_iter().flatten().collect();
        Run {
            chip: self.chip,
            nodes: &self.nodes,
            kinds: &kinds,
            queues: &self.queues,
            finish: vec![f64::NAN; self.nodes.len()],
            next: vec![0; self.queues.len()],
            free: vec![0.0; self.queues.len()],
            port_free: [0.0; 2],
            dma_free: vec![0.0; dma::ENGINES as usize],
            segments: Vec::with_capacity(self.nodes.len()),
        }
        .all(self.program)
    }
}

/// Which of the shared ports an instruction holds (A1).
fn ports(op: &Op, engine: Engine, program: &Program, chip: &Chip) -> [bool; 2] {
    if !chip.shares_ports {
        return [false; 2];
    }
    let touches = |space| {
        op.operands()
            .iter()
            .any(|operand| operand.view.space(program) == space)
    };
    let sbuf = matches!(engine, Engine::Vector | Engine::Gpsimd) && touches(Space::Sbuf);
    let psum = matches!(engine, Engine::Vector | Engine::Scalar) && touches(Space::Psum);
    [sbuf, psum]
}

struct Run<'a> {
    chip: &'static Chip,
    nodes: &'a [Node],
    kinds: &'a [Kind],
    queues: &'a [Vec<u32>],
    finish: Vec<f64>,
    /// The first execution of each queue that has not started.
    next: Vec<usize>,
    /// When each queue may start its next execution.
    free: Vec<f64>,
    port_free: [f64; 2],
    dma_free: Vec<f64>,
    segments: Vec<Segment>,
}

impl Run<'_> {
    fn all(mut self, program: &Program) -> Timing {
        // The executions at the heads of the queues whose data have a time; the earliest of them is next in time.
        let mut ready: Vec<Option<f64>> = vec![None; self.queues.len()];
        for _ in 0..self.nodes.len() {
            let mut first: Option<(f64, u32, usize)> = None;
            for (queue, ready) in ready.iter_mut().enumerate() {
                if ready.is_none() {
                    *ready = self.data_ready(queue);
                }
                let Some(data) = *ready else {
                    continue;
                };
                // What may start at the same time does so in the program's order.
                let start = self.start(queue, data);
                let node = self.queues[queue][self.next[queue]];
                if first
                    .is_none_or(|(best, other, _)| start < best || (start == best && node < other))
                {
                    first = Some((start, node, queue));
                }
            }
            let Some((start, _, queue)) = first else {
                break;
            };
            ready[queue] = None;
            self.begin(queue, start);
        }
        Timing::new(
            program,
            self.chip,
            self.segments,
            self.kinds
                .iter()
                .map(|kind| (kind.name, kind.cost))
                .collect(),
        )
    }

    fn kind(&self, node: u32) -> &Kind {
        &self.kinds[self.nodes[node as usize].instruction as usize]
    }

    /// When the data of the queue's next execution are there; `None` while that is not known, or when there is none.
    fn data_ready(&self, queue: usize) -> Option<f64> {
        let node = *self.queues[queue].get(self.next[queue])?;
        let mut ready = 0f64;
        for earlier in &self.nodes[node as usize].waits {
            let finish = self.finish[*earlier as usize];
            if finish.is_nan() {
                return None;
            }
            ready = ready.max(finish + self.latency(*earlier, node));
        }
        Some(ready)
    }

    /// From the end of one execution to the start of another that depends on it.
    fn latency(&self, earlier: u32, later: u32) -> f64 {
        let (from, to) = (self.kind(earlier), self.kind(later));
        match self.chip.clock(from.engine) {
            // Products into the same elements follow each other in the array.
            Some(_) if from.engine == Engine::Tensor && to.engine == Engine::Tensor => 0.0,
            Some(clock) => self.chip.access_cycles / clock,
            None => 0.0,
        }
    }

    /// When the queue's next execution may start, its data being there at `data`.
    fn start(&self, queue: usize, data: f64) -> f64 {
        let Some(node) = self.queues[queue].get(self.next[queue]) else {
            return f64::INFINITY;
        };
        let kind = self.kind(*node);
        let mut start = data.max(self.free[queue]);
        for (held, free) in kind.ports.iter().zip(self.port_free) {
            if *held {
                start = start.max(free);
            }
        }
        if kind.engine == Engine::Dma {
            let mut free = self.dma_free.clone();
            free.sort_by(f64::total_cmp);
            start = start.max(
                free.get(kind.cost.dma_engines.saturating_sub(1))
                    .copied()
                    .unwrap_or(0.0),
            );
        }
        start
    }

    fn begin(&mut self, queue: usize, start: f64) {
        let node = self.queues[queue][self.next[queue]];
        let kind = &self.kinds[self.nodes[node as usize].instruction as usize];
        let end = start + kind.cost.seconds;
        self.next[queue] += 1;
        self.free[queue] = end;
        self.finish[node as usize] = end;
        for (held, free) in kind.ports.iter().zip(&mut self.port_free) {
            if *held {
                *free = end;
            }
        }
        if kind.engine == Engine::Dma {
            let mut order: Vec<usize> = (0..self.dma_free.len()).collect();
            order.sort_by(|a, b| self.dma_free[*a].total_cmp(&self.dma_free[*b]));
            for engine in order.into_iter().take(kind.cost.dma_engines) {
                self.dma_free[engine] = end;
            }
            // Descriptors of the next transfer of the queue are made while this one moves.
            let descriptors = match self.chip.is_at_least(Generation::Gen3) {
                true => dma::DESCRIPTOR_SECONDS,
                false => 0.0,
            };
            self.free[queue] = start + descriptors;
            self.finish[node as usize] = end + dma::START_LATENCY;
        }
        self.segments.push(Segment {
            engine: kind.engine,
            instruction: self.nodes[node as usize].instruction,
            start,
            end,
        });
    }
}
