//! A module under construction: one function of linalg on tensors.

use crate::element::Element;
use crate::scalar::{Body, Scalar};
use axe_cases::random::Random;
use axe_package::Tensor;
use std::fmt::Write;

/// A tensor of the function.
#[derive(Clone, Debug)]
pub struct Value {
    /// Its name.
    pub name: String,
    /// Its extents when the function runs.
    pub shape: Vec<i64>,
    /// Whether its first extent is known only then.
    pub open: bool,
    /// Its element type.
    pub element: Element,
    /// The largest magnitude that an element may have.
    pub bound: f64,
    /// How far two right implementations may be apart.
    pub error: f64,
    /// Whether no element is 0.
    pub nonzero: bool,
}

impl Value {
    /// Its type in MLIR.
    pub fn r#type(&self) -> String {
        type_of(&self.shape, self.open, self.element)
    }
}

/// A tensor type in MLIR.
pub fn type_of(shape: &[i64], open: bool, element: Element) -> String {
    let mut text = String::from("tensor<");
    for (dim, extent) in shape.iter().enumerate() {
        match dim == 0 && open {
            true => text += "?x",
            false => {
                let _ = write!(text, "{extent}x");
            }
        }
    }
    text + element.name() + ">"
}

/// A tensor that a structured operation reads: for each of its dimensions, the loop that runs over it; none for one of
/// extent 1.
pub struct Operand {
    /// The tensor.
    pub value: Value,
    /// Loops.
    pub map: Vec<Option<usize>>,
}

impl Operand {
    /// A tensor read at the indices of the first loops.
    pub fn plain(value: &Value) -> Self {
        Self {
            value: value.clone(),
            map: (0..value.shape.len()).map(Some).collect(),
        }
    }
}

/// What a structured operation makes.
pub struct Made {
    /// Loops of its dimensions.
    pub map: Vec<Option<usize>>,
    /// Extents.
    pub shape: Vec<i64>,
    /// Whether the first one is dynamic.
    pub open: bool,
    /// The element type.
    pub element: Element,
    /// What it starts as; nothing for what does not read it.
    pub start: Option<f64>,
}

/// A module under construction.
pub struct Graph<'a> {
    /// The source of choices.
    pub random: &'a mut Random,
    /// Whether first extents are dynamic where they are [`Graph::rows`].
    pub open: bool,
    /// The first extent of dynamic tensors.
    pub rows: i64,
    /// The arguments with what they hold.
    pub inputs: Vec<(Value, Tensor)>,
    body: String,
    next: usize,
    extent: Option<String>,
}

/// A map of so many loops.
pub fn affine(loops: usize, map: &[Option<usize>]) -> String {
    let dims: Vec<_> = (0..loops).map(|dim| format!("d{dim}")).collect();
    let results: Vec<_> = map
        .iter()
        .map(|of| of.map_or_else(|| "0".to_owned(), |dim| format!("d{dim}")))
        .collect();
    format!(
        "affine_map<({}) -> ({})>",
        dims.join(", "),
        results.join(", ")
    )
}

impl<'a> Graph<'a> {
    /// An empty function.
    pub fn new(random: &'a mut Random) -> Self {
        let open = random.once_in(5);
        let rows = random.pick(&[1, 2, 7, 16, 17, 33, 40]);
        Self {
            random,
            open,
            rows,
            inputs: Vec::new(),
            body: String::new(),
            next: 0,
            extent: None,
        }
    }

    /// A name that nothing has.
    pub fn fresh(&mut self) -> String {
        self.next += 1;
        format!("%t{}", self.next)
    }

    /// A line of the function's body.
    pub fn line(&mut self, text: &str) {
        let _ = writeln!(self.body, "  {text}");
    }

    /// An argument with random values: multiples of an eighth up to 2, exact in every type, or small integers.
    pub fn input(&mut self, element: Element, shape: &[i64]) -> Value {
        let open = self.open && shape.first() == Some(&self.rows);
        self.input_of(element, shape, open)
    }

    /// [`Graph::input`], with a first extent that is dynamic or not.
    pub fn input_of(&mut self, element: Element, shape: &[i64], open: bool) -> Value {
        let nonzero = self.random.once_in(3);
        let mut value = Value {
            name: format!("%arg{}", self.inputs.len()),
            shape: shape.to_vec(),
            open,
            element,
            bound: 2.0,
            error: 0.0,
            nonzero,
        };
        let (low, high, scale) = match element {
            Element::I1 => (0, 1, 1.0),
            element if element.is_float() => (-16, 16, 0.125),
            _ => (-9, 9, 1.0),
        };
        value.bound = high as f64 * scale;
        let count: i64 = shape.iter().product();
        let numbers: Vec<_> = (0..count)
            .map(|_| match self.random.range(low, high) {
                0 if nonzero => high as f64 * scale,
                number => number as f64 * scale,
            })
            .collect();
        let extents = shape.iter().map(|extent| extent.unsigned_abs()).collect();
        let tensor = Tensor::from_f64(element.dtype(), extents, numbers);
        let tensor = tensor.expect("as many numbers as elements");
        self.inputs.push((value.clone(), tensor));
        value
    }

    /// The first extent of open tensors.
    pub fn extent(&mut self) -> String {
        if let Some(name) = &self.extent {
            return name.clone();
        }
        let found = self.inputs.iter().find(|(value, _)| value.open);
        let source = found.map(|(value, _)| value.clone());
        let source = source.unwrap_or_else(|| {
            let rows = self.rows;
            self.input(Element::F32, &[rows])
        });
        let (zero, name) = (self.fresh(), self.fresh());
        // In front of everything: what is empty may be needed anywhere.
        let lines = format!(
            "  {zero} = arith.constant 0 : index\n  {name} = tensor.dim {}, {zero} : {}\n",
            source.name,
            source.r#type()
        );
        self.body.insert_str(0, &lines);
        self.extent = Some(name.clone());
        name
    }

    /// A `tensor.empty`, filled where it starts as something.
    pub fn start(&mut self, made: &Made) -> String {
        let size = if made.open {
            self.extent()
        } else {
            String::new()
        };
        let r#type = type_of(&made.shape, made.open, made.element);
        let empty = self.fresh();
        self.line(&format!("{empty} = tensor.empty({size}) : {type}"));
        let Some(value) = made.start else {
            return empty;
        };
        let mut body = Body::default();
        let constant = body.constant(value, made.element);
        let line = body
            .text
            .trim()
            .replacen(&constant.name, &format!("{empty}_start"), 1);
        self.line(&line);
        let filled = self.fresh();
        self.line(&format!(
            "{filled} = linalg.fill ins({empty}_start : {}) outs({empty} : {type}) -> {type}",
            made.element.name()
        ));
        filled
    }

    /// A `linalg.generic` over loops of these extents; loops that the result does not have are reductions. `work`
    /// gives what is yielded from the operands' elements and the accumulator.
    pub fn generic(
        &mut self,
        loops: usize,
        operands: &[Operand],
        made: &Made,
        work: impl FnOnce(&mut Body, &[Scalar], &Scalar, &mut Random) -> Scalar,
    ) -> Value {
        let start = self.start(made);
        let mut maps: Vec<_> = operands.iter().map(|one| affine(loops, &one.map)).collect();
        maps.push(affine(loops, &made.map));
        let kind = |dim| match made.map.contains(&Some(dim)) {
            true => "\"parallel\"",
            false => "\"reduction\"",
        };
        let kinds: Vec<_> = (0..loops).map(kind).collect();
        let mut body = Body::default();
        let scalars: Vec<_> = operands
            .iter()
            .enumerate()
            .map(|(at, one)| Scalar {
                name: format!("%in{at}"),
                element: one.value.element,
                bound: one.value.bound,
                error: one.value.error,
                nonzero: one.value.nonzero,
            })
            .collect();
        let accumulator = Scalar {
            name: "%out".into(),
            element: made.element,
            bound: made.start.unwrap_or(0.0).abs(),
            error: 0.0,
            nonzero: false,
        };
        let yielded = work(&mut body, &scalars, &accumulator, self.random);
        let arguments: Vec<_> = scalars
            .iter()
            .chain([&accumulator])
            .map(|scalar| format!("{}: {}", scalar.name, scalar.element.name()))
            .collect();
        let names: Vec<_> = operands.iter().map(|one| one.value.name.clone()).collect();
        let types: Vec<_> = operands.iter().map(|one| one.value.r#type()).collect();
        let inputs = match names.is_empty() {
            true => String::new(),
            false => format!("ins({} : {}) ", names.join(", "), types.join(", ")),
        };
        let (name, r#type) = (self.fresh(), type_of(&made.shape, made.open, made.element));
        self.line(&format!(
            "{name} = linalg.generic {{indexing_maps = [{}], iterator_types = [{}]}} {inputs}outs({start} : {type}) {{\n  \
             ^bb0({}):\n{}    linalg.yield {} : {}\n  }} -> {type}",
            maps.join(", "),
            kinds.join(", "),
            arguments.join(", "),
            body.text,
            yielded.name,
            made.element.name()
        ));
        self.value(name, made, yielded.bound, yielded.error)
    }

    /// The value that an operation made.
    pub fn value(&self, name: String, made: &Made, bound: f64, error: f64) -> Value {
        Value {
            name,
            shape: made.shape.clone(),
            open: made.open,
            element: made.element,
            bound: bound.max(made.start.unwrap_or(0.0).abs()),
            error,
            nonzero: false,
        }
    }

    /// The module, with these results.
    pub fn module(&self, results: &[Value]) -> String {
        let arguments: Vec<_> = self
            .inputs
            .iter()
            .map(|(value, _)| format!("{}: {}", value.name, value.r#type()))
            .collect();
        let types: Vec<_> = results.iter().map(Value::r#type).collect();
        let names: Vec<_> = results.iter().map(|value| value.name.clone()).collect();
        format!(
            "func.func @main({}) -> ({}) {{\n{}  return {} : {}\n}}\n",
            arguments.join(", "),
            types.join(", "),
            self.body,
            names.join(", "),
            types.join(", ")
        )
    }
}
