//! MLIR as text, operation by operation, and what both kernels do with an element.
//!
//! A *key* is an element as 32 bits whose order without a sign is the wanted one: the first in the order is the largest. A *pair* is a key
//! above the inverse of the element's index, in 64 bits: of equal elements the first has the largest. No two pairs of a row are equal,
//! and none is zero.

use super::shape::{Element, Shape};
use std::fmt::Write;

/// Constants that the text of a kernel begins with.
const CONSTANTS: &str = "
%c0 = arith.constant 0 : i32
%c1 = arith.constant 1 : i32
%c16 = arith.constant 16 : i32
%c31 = arith.constant 31 : i32
%c32 = arith.constant 32 : i32
%ones = arith.constant -1 : i32
%top = arith.constant -2147483648 : i32
%high = arith.constant -65536 : i32
%d0 = arith.constant 0 : i64
%d1 = arith.constant 1 : i64
%d32 = arith.constant 32 : i64
%dtop = arith.constant -9223372036854775808 : i64
%zero = arith.constant 0.0 : f32
";

/// The text of a function.
pub(super) struct Code {
    /// What is computed.
    pub shape: Shape,
    text: String,
    next: usize,
}

impl Code {
    /// A function that both kernels are: memory, this thread, the rows.
    pub(super) fn new(shape: Shape) -> Self {
        let mut code = Self {
            shape,
            text: String::new(),
            next: 0,
        };
        code.line("func.func private @top_k(%x: !llvm.ptr<1>, %values: !llvm.ptr<1>, %indices: !llvm.ptr<1>, %shared: !llvm.ptr<3>, %thread: i32, %rows: i64) {");
        code.text.push_str(CONSTANTS);
        code
    }

    /// The function, ended.
    pub(super) fn finish(mut self) -> String {
        self.line("return\n}");
        self.text
    }

    /// Adds a line.
    pub(super) fn line(&mut self, line: impl AsRef<str>) {
        let _ = writeln!(self.text, "{}", line.as_ref());
    }

    /// A new name of a value.
    pub(super) fn name(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next)
    }

    /// An operation with one result; its name.
    pub(super) fn let_(&mut self, operation: impl AsRef<str>) -> String {
        let name = self.name();
        self.line(format!("{name} = {}", operation.as_ref()));
        name
    }

    /// A number of 32 bits.
    pub(super) fn i32(&mut self, number: i64) -> String {
        self.let_(format!("arith.constant {number} : i32"))
    }

    /// A number of 64 bits.
    pub(super) fn i64(&mut self, number: i64) -> String {
        self.let_(format!("arith.constant {number} : i64"))
    }

    /// `scf.if` without results.
    pub(super) fn when(&mut self, condition: &str, body: impl FnOnce(&mut Self)) {
        self.line(format!("scf.if {condition} {{"));
        body(self);
        self.line("}");
    }

    /// The larger of two values without a sign, and of more.
    pub(super) fn largest(&mut self, values: &[String], r#type: &str) -> String {
        let mut values = values.to_vec();
        while values.len() > 1 {
            let pairs = values.chunks(2).map(<[String]>::to_vec).collect::<Vec<_>>();
            values = pairs
                .into_iter()
                .map(|pair| match &pair[..] {
                    [a, b] => self.let_(format!("arith.maxui {a}, {b} : {type}")),
                    other => other.concat(),
                })
                .collect();
        }
        values.concat()
    }

    /// A pointer `index` (64 bits) elements behind another.
    pub(super) fn at(&mut self, base: &str, space: i64, index: &str, element: &str) -> String {
        self.let_(format!(
            "llvm.getelementptr {base}[{index}] : (!llvm.ptr<{space}>, i64) -> !llvm.ptr<{space}>, {element}"
        ))
    }

    /// The words of an access: how many, and of which type.
    fn words(&self) -> (i64, &'static str) {
        match self.shape.vector * self.shape.element.bytes() {
            2 => (1, "i16"),
            bytes => (bytes / 4, "i32"),
        }
    }

    /// The type of what an access loads.
    pub(super) fn access_type(&self) -> String {
        let (count, unit) = self.words();
        format!("vector<{count}x{unit}>")
    }

    /// Loads the elements from `column` (32 bits) on by one access; where none are there, those that come last in the order.
    pub(super) fn load(&mut self, row: &str, column: &str, guarded: bool) -> String {
        let Shape {
            element,
            columns,
            vector,
            smallest,
            ..
        } = self.shape;
        let (bytes, r#type) = (vector * element.bytes(), self.access_type());
        let wide = self.let_(format!("arith.extui {column} : i32 to i64"));
        let pointer = self.at(row, 1, &wide, element.storage());
        let load =
            format!("llvm.load {pointer} {{alignment = {bytes} : i64}} : !llvm.ptr<1> -> {type}");
        if !guarded {
            return self.let_(load);
        }
        let columns = self.i32(columns);
        let inside = self.let_(format!("arith.cmpi ult, {column}, {columns} : i32"));
        let name = self.name();
        self.line(format!("{name} = scf.if {inside} -> ({type}) {{"));
        let there = self.let_(load);
        self.line(format!("scf.yield {there} : {type}\n}} else {{"));
        let last = element.last_bits(smallest, bytes != 2);
        let none = self.let_(format!("arith.constant dense<{last}> : {type}"));
        self.line(format!("scf.yield {none} : {type}\n}}"));
        name
    }

    /// The elements that an access loaded, floats in f32.
    pub(super) fn unpacked(&mut self, loaded: &str) -> Vec<String> {
        let ((count, unit), r#type) = (self.words(), self.access_type());
        let mut elements = Vec::new();
        for at in 0..count {
            let at = self.i64(at);
            let word = self.let_(format!("llvm.extractelement {loaded}[{at} : i64] : {type}"));
            elements.extend(self.elements(&word, unit));
        }
        elements
    }

    /// The elements of a word.
    fn elements(&mut self, word: &str, unit: &str) -> Vec<String> {
        let narrow = |code: &mut Self, bits: &str| {
            let half = code.let_(format!("arith.bitcast {bits} : i16 to f16"));
            code.let_(format!("arith.extf {half} : f16 to f32"))
        };
        match (self.shape.element, unit) {
            (Element::I32, _) => vec![word.to_owned()],
            (Element::F32, _) => vec![self.let_(format!("arith.bitcast {word} : i32 to f32"))],
            (Element::F16, "i16") => vec![narrow(self, word)],
            (Element::F16, _) => {
                let low = self.let_(format!("arith.trunci {word} : i32 to i16"));
                let shifted = self.let_(format!("arith.shrui {word}, %c16 : i32"));
                let high = self.let_(format!("arith.trunci {shifted} : i32 to i16"));
                vec![narrow(self, &low), narrow(self, &high)]
            }
            // The upper half of an f32 is a bf16.
            (Element::BF16, unit) => {
                let word = match unit {
                    "i16" => self.let_(format!("arith.extui {word} : i16 to i32")),
                    _ => word.to_owned(),
                };
                let mut all = vec![self.let_(format!("arith.shli {word}, %c16 : i32"))];
                if unit == "i32" {
                    all.push(self.let_(format!("arith.andi {word}, %high : i32")));
                }
                let float = |bits| self.let_(format!("arith.bitcast {bits} : i32 to f32"));
                all.into_iter().map(float).collect()
            }
        }
    }

    /// The key of an element.
    fn key(&mut self, element: &str) -> String {
        let key = if self.shape.element == Element::I32 {
            self.let_(format!("arith.xori {element}, %top : i32"))
        } else {
            // -0.0 + 0.0 is 0.0.
            let sum = self.let_(format!("arith.addf {element}, %zero : f32"));
            let bits = self.let_(format!("arith.bitcast {sum} : f32 to i32"));
            let sign = self.let_(format!("arith.shrsi {bits}, %c31 : i32"));
            let mask = self.let_(format!("arith.ori {sign}, %top : i32"));
            let key = self.let_(format!("arith.xori {bits}, {mask} : i32"));
            let nan = self.let_(format!("arith.cmpf uno, {element}, {element} : f32"));
            self.let_(format!("arith.select {nan}, %ones, {key} : i32"))
        };
        match self.shape.smallest {
            true => self.let_(format!("arith.xori {key}, %ones : i32")),
            false => key,
        }
    }

    /// The element of a pair's key; of NaNs one NaN.
    pub(super) fn element_of(&mut self, pair: &str) -> String {
        let high = self.let_(format!("arith.shrui {pair}, %d32 : i64"));
        let mut key = self.let_(format!("arith.trunci {high} : i64 to i32"));
        if self.shape.smallest {
            key = self.let_(format!("arith.xori {key}, %ones : i32"));
        }
        if self.shape.element == Element::I32 {
            return self.let_(format!("arith.xori {key}, %top : i32"));
        }
        let sign = self.let_(format!("arith.shrsi {key}, %c31 : i32"));
        let inverse = self.let_(format!("arith.xori {sign}, %ones : i32"));
        let mask = self.let_(format!("arith.ori {inverse}, %top : i32"));
        let bits = self.let_(format!("arith.xori {key}, {mask} : i32"));
        self.let_(format!("arith.bitcast {bits} : i32 to f32"))
    }

    /// Whether an element may come before another in the order. Where it does, this holds.
    pub(super) fn before(&mut self, element: &str, other: &str) -> String {
        let (predicate, of) = match (self.shape.element, self.shape.smallest) {
            (Element::I32, false) => ("cmpi sgt", "i32"),
            (Element::I32, true) => ("cmpi slt", "i32"),
            (_, false) => ("cmpf ugt", "f32"),
            (_, true) => ("cmpf ult", "f32"),
        };
        self.let_(format!("arith.{predicate}, {element}, {other} : {of}"))
    }

    /// The pair of an element at a column.
    pub(super) fn pair(&mut self, element: &str, column: &str) -> String {
        let key = self.key(element);
        let key = self.let_(format!("arith.extui {key} : i32 to i64"));
        let high = self.let_(format!("arith.shli {key}, %d32 : i64"));
        let inverse = self.let_(format!("arith.xori {column}, %ones : i32"));
        let low = self.let_(format!("arith.extui {inverse} : i32 to i64"));
        self.let_(format!("arith.ori {high}, {low} : i64"))
    }

    /// The start of a row of so many elements.
    pub(super) fn row(&mut self, base: &str, row: &str, columns: i64, element: &str) -> String {
        let columns = self.i64(columns);
        let first = self.let_(format!("arith.muli {row}, {columns} : i64"));
        self.at(base, 1, &first, element)
    }

    /// Writes the index in the low half of a pair, and its element, which is read again, at a place (32 bits) of a row.
    pub(super) fn write(&mut self, pair: &str, (from, row): (&str, &str), place: &str) {
        let Shape {
            element,
            k,
            index_bits,
            ..
        } = self.shape;
        let (values, indices) = (
            self.row("%values", row, k, element.storage()),
            self.row("%indices", row, k, &format!("i{index_bits}")),
        );
        let low = self.let_(format!("arith.trunci {pair} : i64 to i32"));
        let column = self.let_(format!("arith.xori {low}, %ones : i32"));
        let wide = self.let_(format!("arith.extui {column} : i32 to i64"));
        let place = self.let_(format!("arith.extui {place} : i32 to i64"));
        let bits = 8 * element.bytes();
        let source = self.at(from, 1, &wide, element.storage());
        let value = self.let_(format!("llvm.load {source} : !llvm.ptr<1> -> i{bits}"));
        let to = self.at(&values, 1, &place, element.storage());
        self.line(format!("llvm.store {value}, {to} : i{bits}, !llvm.ptr<1>"));
        let to = self.at(&indices, 1, &place, &format!("i{index_bits}"));
        let number = if index_bits == 64 { wide } else { column };
        self.line(format!(
            "llvm.store {number}, {to} : i{index_bits}, !llvm.ptr<1>"
        ));
    }

    /// `redux.sync` of all lanes.
    pub(super) fn of_warp(&mut self, kind: &str, value: &str) -> String {
        self.let_(format!(
            "nvvm.redux.sync {kind} {value}, %ones : i32 -> i32"
        ))
    }

    /// A loop over rows, from `first` by `step` (64 bits).
    pub(super) fn for_rows(
        &mut self,
        (first, step): (&str, &str),
        body: impl FnOnce(&mut Self, &str),
    ) {
        let row = self.name();
        self.line(format!(
            "scf.for {row} = {first} to %rows step {step} : i64 {{"
        ));
        body(self, &row);
        self.line("}");
    }

    /// `gpu.block_id` or `gpu.grid_dim` along x.
    pub(super) fn along_x(&mut self, what: &str) -> String {
        let index = self.let_(format!("gpu.{what} x"));
        self.let_(format!("arith.index_cast {index} : index to i64"))
    }
}
