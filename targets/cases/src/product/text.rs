//! The text of a kernel that multiplies matrices.

use super::{reference, values};
use crate::array::mlir;
use crate::case::{Case, Parameter};
use axe_package::DType;
use std::fmt::Write;

/// How a tile gets into registers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    /// From global memory.
    Registers,
    /// By way of shared memory.
    Shared,
    /// By way of shared memory, copied asynchronously.
    Asynchronous,
}

/// An operand in global memory and its tile in registers, as they are stored.
pub(super) struct Operand {
    dtype: DType,
    pub tile: [i64; 2],
    pub layout: String,
    transposed: bool,
    rows: i64,
    columns: i64,
}

impl Operand {
    /// The operand whose extents and tile are those by the dimension of the result and by K, stored the other way round where
    /// it is transposed.
    pub(super) fn new(
        dtype: DType,
        transposed: bool,
        extents: [i64; 2],
        tile: [i64; 2],
        layout: String,
    ) -> Self {
        let flip = |pair: [i64; 2]| if transposed { [pair[1], pair[0]] } else { pair };
        let [rows, columns] = flip(extents);
        Self {
            dtype,
            tile: flip(tile),
            layout,
            transposed,
            rows,
            columns,
        }
    }

    fn global(&self) -> String {
        format!(
            "memref<{}x{}x{}>",
            self.rows,
            self.columns,
            mlir(self.dtype)
        )
    }

    /// The type of a tile in global memory.
    fn boxed(&self) -> String {
        boxed(self.tile, self.dtype, self.columns)
    }

    /// The type of a tile in registers.
    fn held(&self) -> String {
        let [rows, columns] = self.tile;
        format!(
            "tensor<{rows}x{columns}x{}, {}>",
            mlir(self.dtype),
            self.layout
        )
    }

    /// The type of a tile in shared memory: swizzled where its rows are 64 or 128 bytes.
    fn stage(&self) -> String {
        let [rows, columns] = self.tile;
        let bytes = self.dtype.bytes() as i64;
        let layout = match columns * bytes {
            row @ (64 | 128) => {
                let (bits, base) = ((row / 16).ilog2(), (16 / bytes).ilog2());
                format!(
                    "#axe.layout<Sw<{bits}, {base}, 3> o S[({rows}, {columns}) : ({columns}, 1)]>"
                )
            }
            _ => format!(
                "#axe.layout<S[({rows}, {columns}) : ({}, 1)]>",
                columns + 16 / bytes
            ),
        };
        format!(
            "memref<{rows}x{columns}x{}, {layout}, #axe.space<shared>>",
            mlir(self.dtype)
        )
    }
}

fn boxed(tile: [i64; 2], dtype: DType, stride: i64) -> String {
    let [rows, columns] = tile;
    format!(
        "memref<{rows}x{columns}x{}, strided<[{stride}, 1]>>",
        mlir(dtype)
    )
}

/// A kernel under construction: a CTA for each tile of the result.
pub(super) struct Kernel {
    shape: [i64; 3],
    tile: [i64; 3],
    trans: [bool; 2],
    element: DType,
    operands: [Operand; 2],
    body: String,
}

impl Kernel {
    /// The kernel of `shape` in tiles, up to the origin of its CTA's tile.
    pub(super) fn new(
        shape: [i64; 3],
        tile: [i64; 3],
        trans: [bool; 2],
        element: DType,
        operands: [Operand; 2],
    ) -> Self {
        let [_, _, k] = shape;
        let [bm, bn, bk] = tile;
        let mut kernel = Self {
            shape,
            tile,
            trans,
            element,
            operands,
            body: String::new(),
        };
        kernel.line("%c0 = arith.constant 0 : index");
        kernel.line(format!("%K = arith.constant {k} : index"));
        kernel.line(format!("%bk = arith.constant {bk} : index"));
        kernel.line("%by = gpu.block_id y");
        kernel.line("%bx = gpu.block_id x");
        kernel.line(format!("%bm = arith.constant {bm} : index"));
        kernel.line(format!("%bn = arith.constant {bn} : index"));
        kernel.line("%r = arith.muli %by, %bm : index");
        kernel.line("%c = arith.muli %bx, %bn : index");
        kernel
    }

    /// Adds a line.
    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.body, "  {}", text.as_ref());
    }

    /// The type of the sums.
    pub(super) fn sums(&self, dtype: DType, layout: &str) -> String {
        format!(
            "tensor<{}x{}x{}, {layout}>",
            self.tile[0],
            self.tile[1],
            mlir(dtype)
        )
    }

    /// The types of the operands' tiles in registers.
    pub(super) fn types(&self) -> [String; 2] {
        self.operands.each_ref().map(Operand::held)
    }

    /// The types of the operands' tiles in global memory.
    pub(super) fn boxes(&self) -> [String; 2] {
        self.operands.each_ref().map(Operand::boxed)
    }

    /// Shared memory for the operands' tiles, where their path wants it.
    pub(super) fn allocate(&mut self, path: Path) {
        if path == Path::Registers {
            return;
        }
        for (name, stage) in ["a", "b"]
            .into_iter()
            .zip(self.operands.each_ref().map(Operand::stage))
        {
            self.line(format!("%s{name} = axe.alloc : {stage}"));
        }
    }

    /// The loop over K, up to its body.
    pub(super) fn begin(&mut self, sum: DType, d_type: &str) {
        let zero = if sum.unit_roundoff().is_some() {
            "0.0"
        } else {
            "0"
        };
        let sum = mlir(sum);
        self.line(format!("%zero = arith.constant {zero} : {sum}"));
        self.line(format!("%start = axe.fill %zero : {sum} -> {d_type}"));
        self.line(format!(
            "%sum = scf.for %k = %c0 to %K step %bk iter_args(%acc = %start) -> ({d_type}) {{"
        ));
    }

    /// Loads both operands' tiles.
    pub(super) fn load(&mut self, path: Path) {
        for (name, at, origin) in [("a", 0, "%r"), ("b", 1, "%c")] {
            let operand = &self.operands[at];
            let place = match operand.transposed {
                true => format!("%k, {origin}"),
                false => format!("{origin}, %k"),
            };
            let (global, boxed, held, stage) = (
                operand.global(),
                operand.boxed(),
                operand.held(),
                operand.stage(),
            );
            self.line(format!(
                "  %t{name} = axe.slice %{name}[{place}] : {global} to {boxed}"
            ));
            self.line(match path {
                Path::Registers => format!("  %f{name} = axe.copy %t{name} : {boxed} -> {held}"),
                Path::Shared => format!("  axe.copy %t{name} to %s{name} : {boxed} to {stage}"),
                Path::Asynchronous => {
                    format!("  axe.copy async %t{name} to %s{name} : {boxed} to {stage}")
                }
            });
        }
        if path == Path::Registers {
            return;
        }
        if path == Path::Asynchronous {
            self.line("  %group = axe.commit : !axe.token");
            self.line("  axe.wait");
        }
        self.line("  axe.barrier");
        for (name, at) in [("a", 0), ("b", 1)] {
            let (stage, held) = (self.operands[at].stage(), self.operands[at].held());
            self.line(format!(
                "  %f{name} = axe.copy %s{name} : {stage} -> {held}"
            ));
        }
        self.line("  axe.barrier");
    }

    /// The product, which ends the loop.
    pub(super) fn multiply(
        &mut self,
        operands: &str,
        types: &[String; 2],
        options: &str,
        d_type: &str,
    ) {
        let flags = [("trans_a", self.trans[0]), ("trans_b", self.trans[1])];
        let flags: Vec<_> = flags
            .iter()
            .filter(|flag| flag.1)
            .map(|flag| flag.0)
            .collect();
        let flags = match flags.as_slice() {
            [] => String::new(),
            flags => format!(" {{{}}}", flags.join(", ")),
        };
        let [a, b] = types;
        self.line(format!(
            "  %next = axe.gemm {operands} acc %acc : {d_type}{options}{flags} : {a}, {b} -> {d_type}"
        ));
        self.line(format!("  scf.yield %next : {d_type}"));
        self.line("}");
    }

    /// Stores the tile by way of shared memory, so that global memory is written by rows.
    pub(super) fn store_through_shared(&mut self, out: DType, value: &str, r#type: &str) {
        let [rows, columns, _] = self.tile;
        let stage = format!(
            "memref<{rows}x{columns}x{}, #axe.layout<S[({rows}, {columns}) : ({}, 1)]>, #axe.space<shared>>",
            mlir(out),
            columns + 8
        );
        self.line(format!("%sy = axe.alloc : {stage}"));
        self.line(format!("axe.copy {value} to %sy : {type} to {stage}"));
        self.line("axe.barrier");
        self.store(out, "%sy", &stage);
    }

    /// Stores the tile.
    pub(super) fn store(&mut self, out: DType, value: &str, r#type: &str) {
        let boxed = boxed([self.tile[0], self.tile[1]], out, self.shape[1]);
        let global = self.result(out);
        self.line(format!("%out = axe.slice %y[%r, %c] : {global} to {boxed}"));
        self.line(format!("axe.copy {value} to %out : {type} to {boxed}"));
    }

    fn result(&self, out: DType) -> String {
        format!("memref<{}x{}x{}>", self.shape[0], self.shape[1], mlir(out))
    }

    /// The kernel with random inputs and what it has to compute of them.
    pub(super) fn case(self, name: String, seed: u64, out: DType, threads: i64) -> Case {
        let [a, b] = &self.operands;
        let mlir = format!(
            "axe.kernel @k(%a: {}, %b: {}, %y: {}) threads({threads}) {{\n{}  axe.return\n}}\n",
            a.global(),
            b.global(),
            self.result(out),
            self.body
        );
        let a = values(&[a.rows, a.columns], self.element, seed ^ 1);
        let b = values(&[b.rows, b.columns], self.element, seed ^ 2);
        let expected = reference(&a, &b, self.trans, self.shape, out);
        let count = |extent: i64, tile: i64| (extent + tile - 1) / tile;
        Case {
            name,
            mlir,
            host: None,
            threads,
            grid: [
                count(self.shape[1], self.tile[1]),
                count(self.shape[0], self.tile[0]),
                1,
            ],
            parameters: vec![
                Parameter::Input(0, false),
                Parameter::Input(1, false),
                Parameter::Output(false),
            ],
            inputs: vec![a, b],
            expected,
        }
    }
}
