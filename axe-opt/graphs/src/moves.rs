//! Stages that move elements: slices, paddings, concatenations, insertions, gathers, windows, and the place of a maximum.

use crate::element::Element;
use crate::graph::{Graph, Made, Value, affine, type_of};

/// A list as MLIR writes it.
fn list(numbers: &[i64]) -> String {
    let numbers: Vec<_> = numbers.iter().map(i64::to_string).collect();
    format!("[{}]", numbers.join(", "))
}

impl Graph<'_> {
    /// A stage of this kind on a value.
    pub fn moved(&mut self, value: &Value) -> Value {
        let rank = value.shape.len();
        if value.open {
            return match rank {
                1 => self.elementwise(value),
                _ => self.gathered(value),
            };
        }
        match self.random.below(7) {
            0 => self.sliced(value),
            1 => self.padded(value),
            2 => self.joined(value),
            3 => self.inserted(value),
            4 => self.windowed(value),
            5 if value.error == 0.0 && value.element != Element::I1 => self.place_of_most(value),
            _ => self.gathered(value),
        }
    }

    fn made(&self, value: &Value, shape: &[i64]) -> Made {
        Made {
            map: Vec::new(),
            shape: shape.to_vec(),
            open: value.open,
            element: value.element,
            start: None,
        }
    }

    /// Whether a shape's first extent would run with a dynamic one of the same size.
    fn would_be_open(&self, shape: &[i64]) -> bool {
        self.open && shape.first() == Some(&self.rows)
    }

    /// A line that makes a value of this shape, or an elementwise step where the shape cannot be.
    pub fn moving(&mut self, value: &Value, shape: &[i64], text: &str) -> Value {
        let name = self.fresh();
        let text = text.replace("NAME", &name);
        self.line(&text);
        let made = self.made(value, shape);
        self.value(name, &made, value.bound, value.error)
    }

    /// So many columns of each row, from one on.
    pub fn columns(&mut self, value: &Value, first: i64, count: i64) -> Value {
        self.part(value, value.shape.len() - 1, (first, count))
    }

    /// So many of a value's indices along a dimension, from one on.
    pub fn part(&mut self, value: &Value, dim: usize, (first, count): (i64, i64)) -> Value {
        let mut shape = value.shape.clone();
        shape[dim] = count;
        let mut offsets = vec![0; shape.len()];
        offsets[dim] = first;
        let text = format!(
            "NAME = tensor.extract_slice {}{}{}{} : {} to {}",
            value.name,
            list(&offsets),
            list(&shape),
            list(&vec![1; shape.len()]),
            value.r#type(),
            type_of(&shape, false, value.element)
        );
        self.moving(value, &shape, &text)
    }

    fn sliced(&mut self, value: &Value) -> Value {
        let (mut offsets, mut sizes, mut strides) = (Vec::new(), Vec::new(), Vec::new());
        for &extent in &value.shape {
            let stride = self.random.pick(&[1, 1, 1, 2, 3]);
            let offset = self.random.range(0, (extent - 1).min(5));
            let most = (extent - offset - 1) / stride + 1;
            offsets.push(offset);
            strides.push(stride);
            sizes.push(match self.random.once_in(2) {
                true => most,
                false => self.random.range(1, most),
            });
        }
        if self.would_be_open(&sizes) {
            return self.elementwise(value);
        }
        let text = format!(
            "NAME = tensor.extract_slice {} {} {} {} : {} to {}",
            value.name,
            list(&offsets),
            list(&sizes),
            list(&strides),
            value.r#type(),
            type_of(&sizes, false, value.element)
        );
        self.moving(value, &sizes, &text)
    }

    /// A constant of the value's element type, for its name.
    fn number(&mut self, element: Element) -> String {
        let name = self.fresh();
        let number = match element {
            element if element.is_float() => "1.500000e+00",
            Element::I1 => "true",
            _ => "1",
        };
        match element {
            Element::I1 => self.line(&format!("{name} = arith.constant {number}")),
            _ => self.line(&format!(
                "{name} = arith.constant {number} : {}",
                element.name()
            )),
        }
        name
    }

    fn padded(&mut self, value: &Value) -> Value {
        let rank = value.shape.len();
        let widths = |graph: &mut Self| {
            (0..rank)
                .map(|_| graph.random.pick(&[0, 0, 1, 3]))
                .collect::<Vec<i64>>()
        };
        let (low, high) = (widths(self), widths(self));
        let sides = low.iter().zip(&high);
        let shape: Vec<_> = value
            .shape
            .iter()
            .zip(sides)
            .map(|(extent, (low, high))| extent + low + high)
            .collect();
        if self.would_be_open(&shape) {
            return self.elementwise(value);
        }
        let pad = self.number(value.element);
        let arguments: Vec<_> = (0..rank).map(|dim| format!("%pad{dim}: index")).collect();
        let text = format!(
            "NAME = tensor.pad {} low{} high{} {{\n  ^bb0({}):\n    tensor.yield {pad} : {}\n  }} : {} to {}",
            value.name,
            list(&low),
            list(&high),
            arguments.join(", "),
            value.element.name(),
            value.r#type(),
            type_of(&shape, false, value.element)
        );
        let mut moved = self.moving(value, &shape, &text);
        moved.bound = moved.bound.max(1.5);
        moved
    }

    fn joined(&mut self, value: &Value) -> Value {
        let dim = self.random.below(value.shape.len());
        let mut other = value.shape.clone();
        other[dim] = self.random.pick(&[1, 2, 5, 16]);
        let mut shape = value.shape.clone();
        shape[dim] += other[dim];
        if self.would_be_open(&shape) || self.would_be_open(&other) {
            return self.elementwise(value);
        }
        let input = self.input(value.element, &other);
        let (first, second) = match self.random.once_in(2) {
            true => (value, &input),
            false => (&input, value),
        };
        let text = format!(
            "NAME = tensor.concat dim({dim}) {}, {} : ({}, {}) -> {}",
            first.name,
            second.name,
            first.r#type(),
            second.r#type(),
            type_of(&shape, false, value.element)
        );
        let mut moved = self.moving(value, &shape, &text);
        moved.bound = moved.bound.max(input.bound);
        moved
    }

    fn inserted(&mut self, value: &Value) -> Value {
        let (mut offsets, mut strides, mut shape) = (Vec::new(), Vec::new(), Vec::new());
        for &extent in &value.shape {
            let (offset, stride) = (self.random.range(0, 3), self.random.pick(&[1, 1, 2]));
            offsets.push(offset);
            strides.push(stride);
            shape.push(offset + (extent - 1) * stride + 1 + self.random.range(0, 2));
        }
        if self.would_be_open(&shape) {
            return self.elementwise(value);
        }
        let into = self.input(value.element, &shape);
        let text = format!(
            "NAME = tensor.insert_slice {} into {} {} {} {} : {} into {}",
            value.name,
            into.name,
            list(&offsets),
            list(&value.shape),
            list(&strides),
            value.r#type(),
            into.r#type()
        );
        let mut moved = self.moving(value, &shape, &text);
        moved.bound = moved.bound.max(into.bound);
        moved
    }

    /// Elements at computed places: flips, rolls, and every so many of them.
    fn gathered(&mut self, value: &Value) -> Value {
        let rank = value.shape.len();
        let first = usize::from(value.open);
        let dim = first + self.random.below(rank - first);
        let (factor, shift) = (self.random.range(1, 5), self.random.range(0, 9));
        let made = self.made(value, &value.shape.clone());
        let start = self.start(&made);
        let dims: Vec<_> = (0..rank).map(Some).collect();
        let mut body = format!("  ^bb0(%out: {}):\n", value.element.name());
        for dim in 0..rank {
            body += &format!("    %i{dim} = linalg.index {dim} : index\n");
        }
        for (name, number) in [
            ("factor", factor),
            ("shift", shift),
            ("extent", value.shape[dim]),
        ] {
            body += &format!("    %{name} = arith.constant {number} : index\n");
        }
        body += &format!("    %scaled = arith.muli %i{dim}, %factor : index\n");
        body += "    %shifted = arith.addi %scaled, %shift : index\n";
        body += "    %place = arith.remui %shifted, %extent : index\n";
        let indices: Vec<_> = (0..rank)
            .map(|at| {
                if at == dim {
                    "%place".to_owned()
                } else {
                    format!("%i{at}")
                }
            })
            .collect();
        body += &format!(
            "    %element = tensor.extract {}[{}] : {}\n    linalg.yield %element : {}",
            value.name,
            indices.join(", "),
            value.r#type(),
            value.element.name()
        );
        let parallel = vec!["\"parallel\""; rank].join(", ");
        let r#type = value.r#type();
        let text = format!(
            "NAME = linalg.generic {{indexing_maps = [{}], iterator_types = [{parallel}]}} outs({start} : {type}) {{\n{body}\n  }} -> {type}",
            affine(rank, &dims)
        );
        self.moving(value, &value.shape.clone(), &text)
    }

    /// An element of each row of a matrix, by an index that is data: a loss by the index of a class.
    pub fn picked(&mut self, value: &Value) -> Value {
        let [rows, columns] = value.shape[..] else {
            return self.gathered(value);
        };
        let places = self.input_of(Element::I32, &[rows], false);
        let made = Made {
            open: false,
            ..self.made(value, &[rows])
        };
        let start = self.start(&made);
        let (element, map) = (value.element.name(), affine(1, &[Some(0)]));
        let name = self.fresh();
        self.line(&format!(
            "{name} = linalg.generic {{indexing_maps = [{map}, {map}], iterator_types = [\"parallel\"]}} ins({} : {}) outs({start} : {}) {{\n  \
             ^bb0(%at: i32, %out: {element}):\n    %i = linalg.index 0 : index\n    %columns = arith.constant {columns} : index\n    \
             %wide = arith.index_castui %at : i32 to index\n    %place = arith.remui %wide, %columns : index\n    \
             %own = tensor.extract {}[%i, %place] : {}\n    linalg.yield %own : {element}\n  }} -> {}",
            places.name,
            places.r#type(),
            type_of(&made.shape, false, made.element),
            value.name,
            value.r#type(),
            type_of(&made.shape, false, made.element),
        ));
        self.value(name, &made, value.bound, value.error)
    }

    /// The maximum, or the sum, of windows along the last dimension.
    fn windowed(&mut self, value: &Value) -> Value {
        let rank = value.shape.len();
        let extent = value.shape[rank - 1];
        let window = self.random.range(1, extent.min(4));
        let dilation = if (window - 1) * 2 < extent {
            self.random.range(1, 2)
        } else {
            1
        };
        let stride = self.random.range(1, 3);
        let mut shape = value.shape.clone();
        shape[rank - 1] = (extent - (window - 1) * dilation - 1) / stride + 1;
        if self.would_be_open(&shape) || value.element == Element::I1 {
            return self.gathered(value);
        }
        let float = value.element.is_float();
        let (op, start) = match (float, self.random.once_in(2)) {
            (true, true) => ("arith.maximumf", -value.element.limit()),
            (true, false) => ("arith.minimumf", value.element.limit()),
            (false, true) => ("arith.maxsi", -value.element.limit()),
            (false, false) => ("arith.addi", 0.0),
        };
        let mut made = self.made(value, &shape);
        made.start = Some(start);
        let start = self.start(&made);
        let size = self.fresh();
        self.line(&format!("{size} = tensor.empty() : tensor<{window}xf32>"));
        let dims: Vec<_> = (0..=rank).map(|dim| format!("d{dim}")).collect();
        let outer: Vec<_> = (0..rank - 1).map(|dim| format!("d{dim}, ")).collect();
        let (dims, outer) = (dims.join(", "), outer.concat());
        let place = format!("d{} * {stride} + d{rank} * {dilation}", rank - 1);
        let parallel = vec!["\"parallel\""; rank].join(", ");
        let (r#type, element) = (type_of(&shape, false, value.element), value.element.name());
        let name = self.fresh();
        self.line(&format!(
            "{name} = linalg.generic {{indexing_maps = [affine_map<({dims}) -> ({outer}{place})>, affine_map<({dims}) -> (d{rank})>, affine_map<({dims}) -> ({outer}d{})>], \
             iterator_types = [{parallel}, \"reduction\"]}} ins({}, {size} : {}, tensor<{window}xf32>) outs({start} : {type}) {{\n  \
             ^bb0(%in: {element}, %size: f32, %out: {element}):\n    %best = {op} %in, %out : {element}\n    linalg.yield %best : {element}\n  }} -> {type}",
            rank - 1,
            value.name,
            value.r#type()
        ));
        let made = self.made(value, &shape);
        let bound = match op {
            "arith.addi" | "arith.maxsi" => value.element.limit(),
            _ => value.bound,
        };
        self.value(name, &made, bound, value.error)
    }

    /// The place of the first maximum along the last dimension: a second result of the reduction.
    fn place_of_most(&mut self, value: &Value) -> Value {
        let rank = value.shape.len();
        let shape = value.shape[..rank - 1].to_vec();
        if self.would_be_open(&shape) {
            return self.gathered(value);
        }
        let mut most = self.made(value, &shape);
        most.start = Some(match value.element.is_float() && self.random.once_in(2) {
            true => f64::NEG_INFINITY,
            false => -value.element.limit(),
        });
        let mut place = self.made(value, &shape);
        (place.element, place.start) = (Element::I32, Some(0.0));
        let starts = [self.start(&most), self.start(&place)];
        let kept: Vec<_> = (0..rank - 1).map(Some).collect();
        let all: Vec<_> = (0..rank).map(Some).collect();
        let [in_map, out_map] = [affine(rank, &all), affine(rank, &kept)];
        let kinds = [
            "\"parallel\", ".repeat(rank - 1),
            "\"reduction\"".to_owned(),
        ]
        .concat();
        let (element, types) = (
            value.element.name(),
            [value.element, Element::I32]
                .map(|element| type_of(&shape, false, element))
                .join(", "),
        );
        let (compare, keep) = match value.element.is_float() {
            true => ("arith.cmpf ogt", "arith.maximumf"),
            false => ("arith.cmpi sgt", "arith.maxsi"),
        };
        let name = self.fresh();
        self.line(&format!(
            "{name}:2 = linalg.generic {{indexing_maps = [{in_map}, {out_map}, {out_map}], iterator_types = [{kinds}]}} \
             ins({} : {}) outs({} : {types}) {{\n  ^bb0(%in: {element}, %most: {element}, %place: i32):\n    \
             %i = linalg.index {} : index\n    %here = arith.index_cast %i : index to i32\n    %more = {compare}, %in, %most : {element}\n    \
             %next = {keep} %in, %most : {element}\n    %at = arith.select %more, %here, %place : i32\n    linalg.yield %next, %at : {element}, i32\n  }} -> ({types})",
            value.name,
            value.r#type(),
            starts.join(", "),
            rank - 1
        ));
        let made = self.made(value, &shape);
        let made = Made {
            element: Element::I32,
            ..made
        };
        self.value(
            format!("{name}#1"),
            &made,
            value.shape[rank - 1] as f64,
            0.0,
        )
    }
}
