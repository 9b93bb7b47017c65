//! Instructions as calls of `nki.isa`.

use super::Generation;
use super::printer::{Printer, dtype, tuple};
use crate::facts::chip::Engine;
use crate::program::{Accumulate, Alu, Instruction, Op, Reduction, Scalar, Space, Step, View};
use crate::rules::engine::default_engine;

/// One call that is being put together.
pub(super) struct Call<'p, 'a> {
    printer: &'p Printer<'a>,
    instruction: &'p Instruction,
    arguments: Vec<String>,
}

/// A function of two values in `nki.language`.
fn alu(op: Alu) -> String {
    format!("nl.{op}")
}

/// The same as a reduction, which has names of its own for the largest and the smallest.
fn reduction(op: Alu) -> String {
    match op {
        Alu::Maximum => "nl.max".into(),
        Alu::Minimum => "nl.min".into(),
        other => alu(other),
    }
}

/// A comparison as an operator of Python.
const fn comparison(op: Alu) -> Option<&'static str> {
    Some(match op {
        Alu::Equal => "==",
        Alu::NotEqual => "!=",
        Alu::Greater => ">",
        Alu::GreaterEqual => ">=",
        Alu::Less => "<",
        Alu::LessEqual => "<=",
        _ => return None,
    })
}

/// A number as Python reads it back exactly.
fn number(value: f64) -> String {
    match value {
        v if v.is_nan() => "float(\"nan\")".into(),
        v if v == f64::INFINITY => "float(\"inf\")".into(),
        v if v == f64::NEG_INFINITY => "float(\"-inf\")".into(),
        v => format!("{v:?}"),
    }
}

const fn truth(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

impl<'p, 'a> Call<'p, 'a> {
    pub fn new(printer: &'p Printer<'a>, instruction: &'p Instruction) -> Self {
        Self {
            printer,
            instruction,
            arguments: Vec::new(),
        }
    }

    fn old(&self) -> bool {
        self.printer.generation == Generation::Old
    }

    fn put(&mut self, key: &str, value: impl AsRef<str>) {
        self.arguments.push(format!("{key}={}", value.as_ref()));
    }

    fn view(&mut self, key: &str, view: &View) {
        let text = self.printer.view(view);
        self.put(key, text);
    }

    fn scalar(&mut self, key: &str, scalar: &Scalar) {
        match scalar {
            Scalar::Number(value) => self.put(key, number(*value)),
            Scalar::Tile(view) => self.view(key, view),
        }
    }

    fn step(&mut self, index: u8, step: &Step) {
        self.put(&format!("op{index}"), alu(step.op));
        self.scalar(&format!("operand{index}"), &step.operand);
        if step.reverse {
            self.put(&format!("reverse{index}"), "True");
        }
    }

    /// `engine=`, where it is not the one that NKI picks.
    fn engine(&mut self) {
        let program = self.printer.program;
        let picked = program
            .chip()
            .and_then(|chip| default_engine(&self.instruction.op, program, chip));
        let engine = self.instruction.engine;
        if picked == Some(engine) || engine == Engine::Dma {
            return;
        }
        match self.old() {
            true => self.put("engine", format!("nisa.{engine}_engine")),
            false => self.put("engine", format!("nisa.engine.{engine}")),
        }
    }

    /// The call: into `dst` in the new generation, assigned to it in the old one.
    fn call(mut self, name: &str) -> String {
        let dst = self.instruction.op.dst();
        let target = self.printer.view(dst);
        self.engine();
        match self.printer.generation {
            Generation::New => {
                self.arguments.insert(0, format!("dst={target}"));
                format!("nisa.{name}({})", self.arguments.join(", "))
            }
            Generation::Old => {
                let kind = dtype(self.printer.program.buffers[dst.buffer].dtype);
                self.put("dtype", kind);
                format!("{target} = nisa.{name}({})", self.arguments.join(", "))
            }
        }
    }

    /// The call, with `dst` among its arguments in both generations.
    fn in_place(mut self, name: &str) -> String {
        let target = self.printer.view(self.instruction.op.dst());
        self.arguments.insert(0, format!("dst={target}"));
        format!("nisa.{name}({})", self.arguments.join(", "))
    }

    /// The instruction as a statement of Python.
    ///
    /// # Errors
    /// What the generation has no form for.
    pub fn text(mut self) -> Result<String, String> {
        let instruction = self.instruction;
        let op = &instruction.op;
        let name = op.name();
        match op {
            Op::NcMatmul {
                stationary,
                moving,
                accumulate,
                ..
            } => return Ok(self.product(stationary, moving, *accumulate)),
            Op::DmaCopy { dst, src } => return Ok(self.transfer(dst, src)),
            Op::DmaTranspose { src, .. } => self.view("src", src),
            Op::NcTranspose { data, .. }
            | Op::Reciprocal { data, .. }
            | Op::BnStats { data, .. }
            | Op::BnAggr { data, .. } => self.view("data", data),
            Op::TensorCopy { src, .. } | Op::Max8 { src, .. } => self.view("src", src),
            Op::Memset { dst, value } => return Ok(self.fill(dst, *value)),
            Op::TensorCopyPredicated {
                src,
                predicate,
                reverse,
                ..
            } => {
                self.view("src", src);
                self.view("predicate", predicate);
                if *reverse {
                    self.put("reverse_pred", "True");
                }
                return Ok(self.in_place(name));
            }
            Op::NcStreamShuffle { src, mask, .. } => {
                self.view("src", src);
                self.put("shuffle_mask", format!("{mask:?}"));
                return Ok(self.in_place(name));
            }
            Op::Activation { .. } => self.activation(),
            Op::TensorTensor {
                data1, data2, op, ..
            } => {
                self.view("data1", data1);
                self.view("data2", data2);
                self.put("op", alu(*op));
            }
            Op::TensorScalar {
                data,
                first,
                second,
                ..
            } => {
                self.view("data", data);
                self.step(0, first);
                if let Some(second) = second {
                    self.step(1, second);
                }
            }
            Op::ScalarTensorTensor {
                data,
                first,
                op1,
                operand1,
                reverse1,
                ..
            } => {
                self.view("data", data);
                self.step(0, first);
                self.put("op1", alu(*op1));
                self.view("operand1", operand1);
                if *reverse1 {
                    self.put("reverse1", "True");
                }
            }
            _ => self.reducing()?,
        }
        Ok(self.call(name))
    }

    /// The arguments of the operations that reduce, select and count.
    fn reducing(&mut self) -> Result<(), String> {
        let instruction = self.instruction;
        match &instruction.op {
            Op::TensorReduce {
                data,
                op,
                axes,
                negate,
                ..
            } => {
                let rank = data.axes.len();
                let last: Vec<i64> = (rank - axes..rank).map(|axis| axis as i64).collect();
                self.put("op", reduction(*op));
                self.view("data", data);
                self.put("axis", tuple(&last));
                if *negate {
                    self.put("negate", "True");
                }
            }
            Op::TensorScalarReduce {
                data,
                first,
                reduce_op,
                reduce,
                ..
            } => {
                self.view("data", data);
                self.step(0, first);
                self.put("reduce_op", reduction(*reduce_op));
                self.view("reduce_res", reduce);
            }
            Op::TensorPartitionReduce { data, op, .. } => {
                self.put("op", reduction(*op));
                self.view("data", data);
            }
            Op::TensorTensorScan {
                data0,
                data1,
                initial,
                op0,
                op1,
                ..
            } => {
                self.view("data0", data0);
                self.view("data1", data1);
                self.scalar("initial", initial);
                self.put("op0", alu(*op0));
                self.put("op1", alu(*op1));
            }
            Op::AffineSelect {
                dst,
                on_true,
                on_false,
                pattern,
                offset,
                channel_multiplier,
                compare,
            } => {
                let sign =
                    comparison(*compare).ok_or_else(|| format!("{compare} is no comparison"))?;
                match self.old() {
                    true => {
                        let value = affine(dst, pattern, *offset, *channel_multiplier);
                        self.put("pred", format!("({value} {sign} 0)"));
                    }
                    false => self.pattern(dst, pattern, *offset, *channel_multiplier),
                }
                self.view("on_true_tile", on_true);
                self.put("on_false_value", number(*on_false));
                if !self.old() {
                    self.put("cmp_op", alu(*compare));
                }
            }
            Op::Iota {
                dst,
                pattern,
                offset,
                channel_multiplier,
            } => match self.old() {
                true => self
                    .arguments
                    .push(affine(dst, pattern, *offset, *channel_multiplier)),
                false => self.pattern(dst, pattern, *offset, *channel_multiplier),
            },
            Op::RangeSelect {
                on_true,
                on_false,
                compare0,
                bound0,
                compare1,
                bound1,
                start,
                reduce,
                ..
            } => {
                self.view("on_true_tile", on_true);
                self.put("comp_op0", alu(*compare0));
                self.put("comp_op1", alu(*compare1));
                self.view("bound0", bound0);
                self.view("bound1", bound1);
                if let Some(reduce) = reduce {
                    self.put("reduce_cmd", "nisa.reduce_cmd.reset_reduce");
                    self.view("reduce_res", reduce);
                    self.put("reduce_op", "nl.max");
                }
                self.put("range_start", number(*start as f64));
                self.put("on_false_value", number(*on_false));
            }
            Op::NcFindIndex8 { data, vals, .. } => {
                self.view("data", data);
                self.view("vals", vals);
            }
            Op::NcMatchReplace8 {
                data, vals, imm, ..
            } => {
                self.view("data", data);
                self.view("vals", vals);
                self.put("imm", number(*imm));
            }
            other => return Err(format!("{} has no form in NKI", other.name())),
        }
        Ok(())
    }

    fn pattern(&mut self, dst: &View, pattern: &[i64], offset: i64, channel_multiplier: i64) {
        let sizes = dst.axes.iter().skip(1).map(|axis| axis.size);
        let steps: Vec<String> = pattern
            .iter()
            .zip(sizes)
            .map(|(step, size)| format!("[{step}, {size}]"))
            .collect();
        self.put("pattern", format!("[{}]", steps.join(", ")));
        self.put("offset", offset.to_string());
        self.put("channel_multiplier", channel_multiplier.to_string());
    }

    fn product(self, stationary: &View, moving: &View, accumulate: Accumulate) -> String {
        let [dst, stationary, moving] =
            [self.instruction.op.dst(), stationary, moving].map(|view| self.printer.view(view));
        if self.old() {
            let sign = if accumulate == Accumulate::Never {
                "="
            } else {
                "+="
            };
            return format!("{dst} {sign} nisa.nc_matmul({stationary}, {moving})");
        }
        let flag = match accumulate {
            Accumulate::Auto => String::new(),
            Accumulate::Always => format!(", accumulate={}", truth(true)),
            Accumulate::Never => format!(", accumulate={}", truth(false)),
        };
        format!("nisa.nc_matmul(dst={dst}, stationary={stationary}, moving={moving}{flag})")
    }

    fn transfer(mut self, dst: &View, src: &View) -> String {
        let program = self.printer.program;
        let extents = |view: &View| -> Vec<i64> {
            view.shape()
                .into_iter()
                .enumerate()
                .filter(|(at, n)| *at == 0 || *n != 1)
                .map(|(_, n)| n)
                .collect()
        };
        let (to, from) = (self.printer.view(dst), self.printer.view(src));
        let spaces = (dst.space(program), src.space(program));
        let same = extents(dst) == extents(src);
        let kind = |view: &View| program.buffers[view.buffer].dtype;
        match (self.old() && same, spaces) {
            (true, (Space::Sbuf, Space::Hbm)) if kind(dst) == kind(src) => {
                format!("{to} = nl.load({from})")
            }
            (true, (Space::Sbuf, Space::Hbm)) => {
                format!("{to} = nl.load({from}, dtype={})", dtype(kind(dst)))
            }
            (true, (Space::Hbm, Space::Sbuf)) => format!("nl.store({to}, value={from})"),
            _ => {
                self.put("src", from);
                self.in_place("dma_copy")
            }
        }
    }

    fn fill(mut self, dst: &View, value: f64) -> String {
        let kind = self.printer.program.buffers[dst.buffer].dtype;
        if self.old() {
            self.put("shape", tuple(&dst.shape()));
        }
        let value = if kind.is_float() {
            number(value)
        } else {
            format!("{value:.0}")
        };
        self.put("value", value);
        self.call("memset")
    }

    fn activation(&mut self) {
        let instruction = self.instruction;
        let Op::Activation {
            data,
            function,
            bias,
            scale,
            command,
            reduce,
            ..
        } = &instruction.op
        else {
            return;
        };
        self.put("op", format!("nl.{function}"));
        self.view("data", data);
        if let Some(bias) = bias {
            self.view("bias", bias);
        }
        if *scale != Scalar::Number(1.0) {
            self.scalar("scale", scale);
        }
        let Some(command) = command else {
            return;
        };
        self.put("reduce_op", "nl.add");
        if let Some(reduce) = reduce {
            self.view("reduce_res", reduce);
        }
        let command = match command {
            Reduction::Reduce => "reduce",
            Reduction::ResetReduce => "reset_reduce",
        };
        self.put("reduce_cmd", format!("nisa.reduce_cmd.{command}"));
    }
}

/// `offset + p * multiplier + ...` over index arrays, as the old generation has it.
fn affine(dst: &View, pattern: &[i64], offset: i64, channel_multiplier: i64) -> String {
    let rank = dst.axes.len();
    let steps = std::iter::once(channel_multiplier).chain(pattern.iter().copied());
    let mut terms = vec![offset.to_string()];
    for (number, (axis, step)) in dst.axes.iter().zip(steps).enumerate() {
        let picks: Vec<&str> = (0..rank)
            .map(|at| if at == number { ":" } else { "None" })
            .collect();
        terms.push(format!(
            "{step} * nl.arange({})[{}]",
            axis.size,
            picks.join(", ")
        ));
    }
    terms.join(" + ")
}
