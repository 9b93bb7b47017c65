//! Builds programs in Rust, as one would write the kernel.
//!
//! ```
//! use axe_package::DType;
//! use axe_trn::program::{Builder, Space};
//! let mut b = Builder::new("copy", "trn1");
//! let (x, y) = (b.input("x", &[256, 512], DType::F32), b.output("y", &[256, 512], DType::F32));
//! b.repeat("i", 0, 2, 1, |b, i| {
//!     let rows = i.times(128);
//!     let t = b.tile("t", Space::Sbuf, &[128, 512], DType::F32, 2);
//!     b.dma_copy(t.all(), x.part([(rows.clone(), 128), (0.into(), 512)]));
//!     b.dma_copy(y.part([(rows, 128), (0.into(), 512)]), t.all());
//! });
//! assert!(axe_trn::rules::check(&b.finish()).is_empty());
//! ```

use super::{
    Accumulate, Alu, Axis, Buffer, Expr, Function, Instruction, Location, Loop, Op, Program,
    Reduction, Role, Scalar, Space, Statement, Step, View,
};
use crate::facts::chip::Engine;
use axe_package::DType;

/// A buffer of a program that is being built.
#[derive(Clone, Debug)]
pub struct Tile {
    buffer: usize,
    shape: Vec<i64>,
}

impl Tile {
    /// Its number among the program's buffers.
    #[must_use]
    pub const fn buffer(&self) -> usize {
        self.buffer
    }

    /// All of it.
    #[must_use]
    pub fn all(&self) -> View {
        self.part(self.shape.iter().map(|extent| (0.into(), *extent)))
    }

    /// Where each dimension begins, and how many elements it takes. Dimensions of one element are dropped, except the
    /// first.
    #[must_use]
    pub fn part(&self, ranges: impl IntoIterator<Item = (Expr, i64)>) -> View {
        let (mut origin, mut axes) = (Vec::new(), Vec::new());
        for (dimension, (begin, size)) in ranges.into_iter().enumerate() {
            origin.push(begin);
            if size != 1 || dimension == 0 {
                axes.push(Axis {
                    of: Some(dimension),
                    size,
                    step: 1,
                });
            }
        }
        if axes.len() == 1 {
            axes.push(Axis {
                of: None,
                size: 1,
                step: 0,
            });
        }
        View {
            buffer: self.buffer,
            origin,
            axes,
        }
    }
}

/// A program that is being built.
#[derive(Debug)]
pub struct Builder {
    program: Program,
    open: Vec<Vec<Statement>>,
    /// The bounds and the step of each index.
    bounds: Vec<[i64; 3]>,
    location: Option<Location>,
}

/// A state of a builder, to return to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    statements: usize,
    buffers: usize,
    indices: usize,
}

impl Builder {
    /// An empty kernel for a chip.
    #[must_use]
    pub fn new(name: &str, chip: &str) -> Self {
        let program = Program {
            name: name.into(),
            chip: chip.into(),
            buffers: Vec::new(),
            indices: Vec::new(),
            body: Vec::new(),
        };
        Self {
            program,
            open: vec![Vec::new()],
            bounds: Vec::new(),
            location: None,
        }
    }

    /// The program so far: statements of loops that are open are not in it.
    #[must_use]
    pub(crate) const fn program(&self) -> &Program {
        &self.program
    }

    /// Lower bound, upper bound and step of the loop of each index.
    pub(crate) fn bounds(&self) -> &[[i64; 3]] {
        &self.bounds
    }

    /// Where it stands.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            statements: self.open.last().map_or(0, Vec::len),
            buffers: self.program.buffers.len(),
            indices: self.program.indices.len(),
        }
    }

    /// What was appended since, in the loop that is open.
    pub(crate) fn since(&self, mark: Mark) -> &[Statement] {
        let open = self.open.last().map_or(&[][..], Vec::as_slice);
        open.get(mark.statements..).unwrap_or(&[])
    }

    /// The buffers that were made since.
    pub(crate) fn buffers_since(&self, mark: Mark) -> &[Buffer] {
        self.program.buffers.get(mark.buffers..).unwrap_or(&[])
    }

    /// Forgets what was appended since, with its buffers and loops.
    pub(crate) fn rewind(&mut self, mark: Mark) {
        if let Some(open) = self.open.last_mut() {
            open.truncate(mark.statements);
        }
        self.program.buffers.truncate(mark.buffers);
        self.program.indices.truncate(mark.indices);
        self.bounds.truncate(mark.indices);
    }

    /// Where in the source all that follows comes from.
    pub fn locate(&mut self, location: Option<Location>) {
        self.location = location;
    }

    /// The program.
    #[must_use]
    pub fn finish(mut self) -> Program {
        self.program.body = self.open.pop().unwrap_or_default();
        self.program
    }

    fn buffer(
        &mut self,
        name: &str,
        space: Space,
        shape: &[i64],
        dtype: DType,
        role: Role,
    ) -> Tile {
        let taken = |name: &str| self.program.buffers.iter().any(|known| known.name == name);
        let name = match taken(name) {
            false => name.to_owned(),
            true => (1..)
                .map(|number| format!("{name}_{number}"))
                .find(|candidate| !taken(candidate))
                .unwrap_or_default(),
        };
        self.program.buffers.push(Buffer {
            name,
            space,
            shape: shape.to_vec(),
            dtype,
            role,
            copies: 1,
            place: None,
            location: self.location.clone(),
        });
        Tile {
            buffer: self.program.buffers.len() - 1,
            shape: shape.to_vec(),
        }
    }

    /// An argument in HBM.
    pub fn input(&mut self, name: &str, shape: &[i64], dtype: DType) -> Tile {
        self.buffer(name, Space::Hbm, shape, dtype, Role::Input)
    }

    /// A result in HBM.
    pub fn output(&mut self, name: &str, shape: &[i64], dtype: DType) -> Tile {
        self.buffer(name, Space::Hbm, shape, dtype, Role::Output)
    }

    /// A buffer on chip, made here each time; `copies` of it take turns.
    pub fn tile(
        &mut self,
        name: &str,
        space: Space,
        shape: &[i64],
        dtype: DType,
        copies: i64,
    ) -> Tile {
        let tile = self.buffer(name, space, shape, dtype, Role::Local);
        if let Some(buffer) = self.program.buffers.last_mut() {
            buffer.copies = copies;
        }
        self.push(Statement::Alloc(tile.buffer));
        tile
    }

    /// The type of a view's elements.
    #[must_use]
    pub fn dtype(&self, view: &View) -> DType {
        let buffer = self.program.buffers.get(view.buffer);
        buffer.map_or(DType::F32, |buffer| buffer.dtype)
    }

    /// The memory that a view is in.
    #[must_use]
    pub fn space(&self, view: &View) -> Space {
        view.space(&self.program)
    }

    /// Appends a statement.
    pub fn push(&mut self, statement: Statement) {
        if let Some(body) = self.open.last_mut() {
            body.push(statement);
        }
    }

    /// A remark.
    pub fn comment(&mut self, text: &str) {
        self.push(Statement::Comment(text.into()));
    }

    /// How many statements there are where it stands.
    #[must_use]
    pub fn position(&self) -> usize {
        self.open.last().map_or(0, Vec::len)
    }

    /// A remark on the statements from `position` on, which are there already; none where there are none.
    pub fn comment_at(&mut self, position: usize, text: &str) {
        if let Some(body) = self.open.last_mut().filter(|body| position < body.len()) {
            body.insert(position, Statement::Comment(text.into()));
        }
    }

    /// A loop; the closure gets its index.
    pub fn repeat(
        &mut self,
        name: &str,
        lower: i64,
        upper: i64,
        step: i64,
        fill: impl FnOnce(&mut Self, Expr),
    ) {
        self.program.indices.push(name.into());
        self.bounds.push([lower, upper, step]);
        let index = self.program.indices.len() - 1;
        self.open.push(Vec::new());
        fill(self, Expr::Index(index));
        let body = self.open.pop().unwrap_or_default();
        self.push(Statement::Loop(Loop {
            index,
            lower,
            upper,
            step,
            body,
        }));
    }

    /// An instruction on the first engine that may execute it.
    pub fn op(&mut self, op: Op) {
        let engine = self
            .program
            .chip()
            .and_then(|chip| crate::rules::engine::default_engine(&op, &self.program, chip))
            .unwrap_or(Engine::Vector);
        self.op_on(engine, op);
    }

    /// An instruction on this engine.
    pub fn op_on(&mut self, engine: Engine, op: Op) {
        self.push(Statement::Instruction(Box::new(Instruction {
            op,
            engine,
            location: self.location.clone(),
        })));
    }

    /// [`Op::DmaCopy`].
    pub fn dma_copy(&mut self, dst: View, src: View) {
        self.op(Op::DmaCopy { dst, src });
    }

    /// [`Op::NcMatmul`] that overwrites first and adds later.
    pub fn matmul(&mut self, dst: View, stationary: View, moving: View) {
        self.op(Op::NcMatmul {
            dst,
            stationary,
            moving,
            accumulate: Accumulate::Auto,
        });
    }

    /// [`Op::TensorCopy`].
    pub fn copy(&mut self, dst: View, src: View) {
        self.op(Op::TensorCopy { dst, src });
    }

    /// [`Op::Memset`].
    pub fn memset(&mut self, dst: View, value: f64) {
        self.op(Op::Memset { dst, value });
    }

    /// [`Op::TensorTensor`].
    pub fn tensor_tensor(&mut self, dst: View, data1: View, data2: View, op: Alu) {
        self.op(Op::TensorTensor {
            dst,
            data1,
            data2,
            op,
        });
    }

    /// [`Op::TensorScalar`] of one function.
    pub fn tensor_scalar(&mut self, dst: View, data: View, op: Alu, operand: impl Into<Scalar>) {
        self.op(Op::TensorScalar {
            dst,
            data,
            first: Step {
                op,
                operand: operand.into(),
                reverse: false,
            },
            second: None,
        });
    }

    /// [`Op::TensorReduce`] over the last dimension.
    pub fn reduce(&mut self, dst: View, data: View, op: Alu, negate: bool) {
        self.op(Op::TensorReduce {
            dst,
            data,
            op,
            axes: 1,
            negate,
        });
    }

    /// [`Op::Activation`] with a bias, a scale, and sums into `reduce` where there is one.
    pub fn activation(
        &mut self,
        dst: View,
        data: View,
        function: Function,
        bias: Option<View>,
        scale: f64,
        reduce: Option<View>,
    ) {
        self.op(Op::Activation {
            dst,
            data,
            function,
            bias,
            scale: scale.into(),
            command: reduce.is_some().then_some(Reduction::ResetReduce),
            reduce,
        });
    }
}
