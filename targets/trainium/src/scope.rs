//! What values stand for inside one kernel: tiles and views as views of buffers, indices as expressions of loops.

use crate::abi;
use crate::read::{at, constant, texts};
use axe_package::DType;
use axe_passes::PassResult;
use axe_passes::ir::attribute::{integer, read_i64s};
use axe_passes::ir::value::{argument_number, defining, identity, name, operands, parent};
use axe_passes::ir::{Op, Val};
use axe_trn::program::{Axis, Buffer, Expr, Place, Program, Role, Space, View};
use melior::ir::attribute::StringAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::{Type, TypeLike, ValueLike};
use std::collections::HashMap;

/// Definitions are followed so deep: malformed IR may go in circles.
const MOST_DEPTH: usize = 64;

/// The type of a tile.
pub(crate) struct Tile {
    pub space: Space,
    pub shape: Vec<i64>,
    pub dtype: DType,
}

/// The tile that a type is; `None` for another type.
pub(crate) fn tile_type(r#type: Type<'_>) -> Option<Tile> {
    let raw = r#type.to_raw();
    // SAFETY: the functions take any type, extents below its rank, and the element type of a tile alone is read.
    unsafe {
        let space = match abi::trnTypeSpace(raw) {
            0 => Space::Hbm,
            1 => Space::Sbuf,
            2 => Space::Psum,
            _ => return None,
        };
        let shape = (0..abi::trnTypeRank(raw))
            .map(|index| abi::trnTypeExtent(raw, index))
            .collect();
        let dtype = dtype(Type::from_raw(abi::trnTypeElement(raw)))?;
        Some(Tile {
            space,
            shape,
            dtype,
        })
    }
}

/// The element type; signless integers are signed.
fn dtype(r#type: Type<'_>) -> Option<DType> {
    let raw = r#type.to_raw();
    // SAFETY: each function takes any type; the width and the sign of an integer alone are read.
    unsafe {
        if mlir_sys::mlirTypeIsABF16(raw) {
            return Some(DType::BF16);
        }
        if mlir_sys::mlirTypeIsAF16(raw) {
            return Some(DType::F16);
        }
        if mlir_sys::mlirTypeIsAF32(raw) {
            return Some(DType::F32);
        }
        if mlir_sys::mlirTypeIsAFloat8E4M3FN(raw) {
            return Some(DType::F8E4M3);
        }
        if mlir_sys::mlirTypeIsAFloat8E5M2(raw) {
            return Some(DType::F8E5M2);
        }
        if !mlir_sys::mlirTypeIsAInteger(raw) {
            return None;
        }
        let unsigned = mlir_sys::mlirIntegerTypeIsUnsigned(raw);
        match (mlir_sys::mlirIntegerTypeGetWidth(raw), unsigned) {
            (8, false) => Some(DType::I8),
            (16, false) => Some(DType::I16),
            (32, false) => Some(DType::I32),
            (8, true) => Some(DType::U8),
            (16, true) => Some(DType::U16),
            (32, true) => Some(DType::U32),
            _ => None,
        }
    }
}

/// The buffers and loops of a kernel, as they are met.
pub(crate) struct Scope {
    pub program: Program,
    buffers: HashMap<usize, usize>,
    indices: HashMap<usize, usize>,
}

impl Scope {
    /// Nothing yet, in the kernel around an operation.
    pub fn around<'c>(op: Op<'c>) -> PassResult<'c, Self> {
        let mut next = Some(op);
        let mut depth = 0;
        while let Some(around) = next {
            if name(around) == "trn.kernel" {
                return Ok(Self::of(around));
            }
            next = around.parent_operation();
            depth += 1;
            if depth > MOST_DEPTH {
                break;
            }
        }
        Err(at(
            op,
            "expected a trn.kernel around it, which names the chip",
        ))
    }

    fn of(kernel: Op<'_>) -> Self {
        let text = |key: &str| {
            let attribute = kernel.attribute(key).ok()?;
            Some(
                StringAttribute::try_from(attribute)
                    .ok()?
                    .value()
                    .to_owned(),
            )
        };
        let program = Program {
            name: text("sym_name").unwrap_or_default(),
            chip: text("chip").unwrap_or_default(),
            buffers: Vec::new(),
            indices: Vec::new(),
            body: Vec::new(),
        };
        Self {
            program,
            buffers: HashMap::new(),
            indices: HashMap::new(),
        }
    }

    fn add(&mut self, value: Val<'_>, mut buffer: Buffer) -> usize {
        let taken = |name: &str| self.program.buffers.iter().any(|known| known.name == name);
        if taken(&buffer.name) {
            let name = buffer.name.clone();
            let free = (1..)
                .map(|number| format!("{name}_{number}"))
                .find(|name| !taken(name));
            buffer.name = free.unwrap_or(name);
        }
        self.program.buffers.push(buffer);
        let number = self.program.buffers.len() - 1;
        self.buffers.insert(identity(value), number);
        number
    }

    /// The buffer of an argument of the kernel.
    pub fn argument<'c>(&mut self, value: Val<'c>) -> Option<usize> {
        if let Some(known) = self.buffers.get(&identity(value)) {
            return Some(*known);
        }
        let (kernel, number) = (parent(value)?, argument_number(value)?);
        if name(kernel) != "trn.kernel" {
            return None;
        }
        let tile = tile_type(value.r#type())?;
        let inputs = usize::try_from(integer(kernel.attribute("inputs").ok()?)?).ok()?;
        let names = texts(kernel.attribute("arg_names").ok()?)?;
        Some(
            self.add(
                value,
                Buffer {
                    name: names
                        .get(number)
                        .cloned()
                        .unwrap_or_else(|| format!("arg{number}")),
                    space: tile.space,
                    shape: tile.shape,
                    dtype: tile.dtype,
                    role: if number < inputs {
                        Role::Input
                    } else {
                        Role::Output
                    },
                    copies: 1,
                    place: None,
                    location: crate::read::location(kernel),
                },
            ),
        )
    }

    /// The buffer that a `trn.alloc` makes.
    pub fn alloc<'c>(&mut self, op: Op<'c>) -> PassResult<'c, usize> {
        let value =
            axe_passes::ir::value::only_result(op).ok_or_else(|| at(op, "expected one result"))?;
        if let Some(known) = self.buffers.get(&identity(value)) {
            return Ok(*known);
        }
        let tile = tile_type(value.r#type()).ok_or_else(|| at(op, "expected a tile"))?;
        let number = |key: &str| op.attribute(key).ok().and_then(integer);
        let text = op
            .attribute("name")
            .ok()
            .and_then(|name| StringAttribute::try_from(name).ok());
        let place = match (number("partition"), number("byte")) {
            (None, None) => None,
            (partition, byte) => Some(Place {
                partition: partition.unwrap_or(0),
                byte: byte.unwrap_or(0),
            }),
        };
        let buffer = Buffer {
            name: text.map_or_else(|| "tile".to_owned(), |name| name.value().to_owned()),
            space: tile.space,
            shape: tile.shape,
            dtype: tile.dtype,
            role: Role::Local,
            copies: number("copies").unwrap_or(1),
            place,
            location: crate::read::location(op),
        };
        Ok(self.add(value, buffer))
    }

    /// The view that a value of a tile type is; `user` is where that is asked.
    pub fn view<'c>(&mut self, value: Val<'c>, user: Op<'c>) -> PassResult<'c, View> {
        self.view_within(value, user, 0)
    }

    fn view_within<'c>(
        &mut self,
        value: Val<'c>,
        user: Op<'c>,
        depth: usize,
    ) -> PassResult<'c, View> {
        if depth > MOST_DEPTH {
            return Err(at(
                user,
                "expected operands that come from trn.alloc or the kernel's arguments",
            ));
        }
        let buffer = match defining(value) {
            None => self.argument(value),
            Some(op) if name(op) == "trn.alloc" => Some(self.alloc(op)?),
            Some(op) if name(op) == "trn.view" => return self.part(op, depth),
            Some(_) => None,
        };
        let Some(buffer) = buffer else {
            return Err(at(
                user,
                "expected operands that come from trn.alloc, trn.view or the kernel's arguments",
            ));
        };
        let shape = &self.program.buffers[buffer].shape;
        Ok(View {
            buffer,
            origin: shape.iter().map(|_| 0.into()).collect(),
            axes: shape
                .iter()
                .enumerate()
                .map(|(dimension, size)| Axis {
                    of: Some(dimension),
                    size: *size,
                    step: 1,
                })
                .collect(),
        })
    }

    /// The view that a `trn.view` makes.
    fn part<'c>(&mut self, op: Op<'c>, depth: usize) -> PassResult<'c, View> {
        let shape = ViewShape::read(op)?;
        let source = self.view_within(shape.source, op, depth + 1)?;
        if source.axes.len() != shape.rank {
            return Err(at(op, "expected a source of its type's rank"));
        }
        let mut origin = source.origin;
        for (axis, begin) in source.axes.iter().zip(&shape.origin) {
            let begin = match begin {
                Begin::Number(number) => Expr::Const(*number),
                Begin::Value(value) => self.index(*value, op, 0)?,
            };
            if let Some(of) = axis.of {
                origin[of] = origin[of].clone().plus(begin.times(axis.step));
            }
        }
        let axes = shape
            .axes
            .iter()
            .map(|(dim, size, step)| match usize::try_from(*dim) {
                Err(_) => Axis {
                    of: None,
                    size: *size,
                    step: 0,
                },
                Ok(dim) => Axis {
                    of: source.axes[dim].of,
                    size: *size,
                    step: source.axes[dim].step.saturating_mul(*step),
                },
            });
        Ok(View {
            buffer: source.buffer,
            origin,
            axes: axes.collect(),
        })
    }

    /// The number of a loop's index.
    pub fn enter(&mut self, index: Val<'_>, label: Option<String>) -> usize {
        let number = self.program.indices.len();
        let names = ["i", "j", "k", "l", "m", "n"];
        let mut name = label.unwrap_or_else(|| {
            names
                .get(number)
                .map_or_else(|| format!("i{number}"), |n| (*n).to_owned())
        });
        let taken = |name: &str| {
            self.program.indices.iter().any(|known| known == name)
                || self
                    .program
                    .buffers
                    .iter()
                    .any(|buffer| buffer.name == name)
        };
        if taken(&name) {
            let free = (1..)
                .map(|number| format!("{name}_{number}"))
                .find(|name| !taken(name));
            name = free.unwrap_or(name);
        }
        self.program.indices.push(name);
        self.indices.insert(identity(index), number);
        number
    }

    /// The expression that a value of type index is.
    fn index<'c>(&mut self, value: Val<'c>, user: Op<'c>, depth: usize) -> PassResult<'c, Expr> {
        const WANTED: &str = "(V5) expected an index of constants, variables of scf.for, and their sums, differences, \
                              products, quotients and remainders by constants";
        if depth > MOST_DEPTH {
            return Err(at(user, WANTED));
        }
        if let Some(number) = constant(value) {
            return Ok(number.into());
        }
        let Some(op) = defining(value) else {
            let known = self.indices.get(&identity(value)).copied();
            let in_loop = parent(value).is_some_and(|op| name(op) == "scf.for")
                && argument_number(value) == Some(0);
            return match known {
                Some(number) => Ok(Expr::Index(number)),
                // An operation that is verified alone is not entered from its loops.
                None if in_loop => Ok(Expr::Index(self.enter(value, None))),
                None => Err(at(user, WANTED)),
            };
        };
        let [a, b] = operands(op)[..] else {
            return Err(at(user, WANTED));
        };
        let (left, right) = (constant(a), constant(b));
        let kind = name(op);
        let (of, by) = match (kind.as_str(), left, right) {
            ("arith.addi", ..) => {
                let first = self.index(a, user, depth + 1)?;
                return Ok(first.plus(self.index(b, user, depth + 1)?));
            }
            ("arith.subi", ..) => {
                let first = self.index(a, user, depth + 1)?;
                return Ok(first.plus(self.index(b, user, depth + 1)?.times(-1)));
            }
            ("arith.muli", Some(by), _) => (b, by),
            (_, _, Some(by)) => (a, by),
            _ => return Err(at(user, WANTED)),
        };
        let of = self.index(of, user, depth + 1)?;
        match kind.as_str() {
            "arith.muli" => Ok(of.times(by)),
            "arith.divui" | "arith.divsi" if by > 0 => Ok(Expr::Div(Box::new(of), by)),
            "arith.remui" | "arith.remsi" if by > 0 => Ok(Expr::Mod(Box::new(of), by)),
            _ => Err(at(user, WANTED)),
        }
    }
}

/// Where a dimension begins.
enum Begin<'c> {
    Number(i64),
    Value(Val<'c>),
}

/// What a `trn.view` says, with all of its numbers matched to each other.
struct ViewShape<'c> {
    source: Val<'c>,
    rank: usize,
    origin: Vec<Begin<'c>>,
    /// For each dimension of the result: the source's, or -1; extent; step.
    axes: Vec<(i64, i64, i64)>,
}

/// An origin that is a value, among the static ones (`ShapedType::kDynamic`).
const DYNAMIC: i64 = i64::MIN;

impl<'c> ViewShape<'c> {
    fn read(op: Op<'c>) -> PassResult<'c, Self> {
        let list = |key: &str| op.attribute(key).ok().and_then(read_i64s);
        let mut values = operands(op).into_iter();
        let source = values.next().ok_or_else(|| at(op, "expected a source"))?;
        let (from, to) = (tile_type(source.r#type()), result_type(op));
        let (Some(from), Some(to)) = (from, to) else {
            return Err(at(op, "expected tiles"));
        };
        let rank = from.shape.len();
        let fixed = list("static_origin").unwrap_or_default();
        let origin = origins(op, rank, &fixed, values.collect())?;
        let sizes = list("sizes").unwrap_or_default();
        let given = list("dims");
        let expected = given.as_ref().map_or(rank, Vec::len);
        let dims = given.unwrap_or_else(|| (0..rank as i64).collect());
        let steps = list("steps").unwrap_or_else(|| vec![1; sizes.len()]);
        if sizes.len() != expected || steps.len() != expected {
            let message = format!(
                "(V2) expected {expected} sizes and steps, got {} and {}",
                sizes.len(),
                steps.len()
            );
            return Err(at(op, message));
        }
        if let Some(dim) = dims.iter().find(|dim| **dim < -1 || **dim >= rank as i64) {
            return Err(at(
                op,
                format!("(V3) expected dims of 0 to {} or -1, got {dim}", rank - 1),
            ));
        }
        if sizes != to.shape || from.space != to.space || from.dtype != to.dtype {
            let wanted: Vec<_> = sizes.iter().map(ToString::to_string).collect();
            let message = format!(
                "(V4) expected a result of {} {} in {}",
                wanted.join("x"),
                from.dtype,
                from.space
            );
            return Err(at(op, message));
        }
        let axes = dims
            .into_iter()
            .zip(sizes)
            .zip(steps)
            .map(|((dim, size), step)| (dim, size, step));
        Ok(Self {
            source,
            rank,
            origin,
            axes: axes.collect(),
        })
    }
}

/// Where a view begins in each dimension of its source: numbers, and values where they are marked.
fn origins<'c>(
    op: Op<'c>,
    rank: usize,
    fixed: &[i64],
    values: Vec<Val<'c>>,
) -> PassResult<'c, Vec<Begin<'c>>> {
    let dynamic = fixed.iter().filter(|begin| **begin == DYNAMIC).count();
    if fixed.len() != rank || dynamic != values.len() {
        return Err(at(
            op,
            format!("(V1) expected {rank} origins, got {}", fixed.len()),
        ));
    }
    let mut values = values.into_iter();
    let origin = fixed.iter().filter_map(|&begin| match begin {
        DYNAMIC => values.next().map(Begin::Value),
        number => Some(Begin::Number(number)),
    });
    Ok(origin.collect())
}

fn result_type(op: Op<'_>) -> Option<Tile> {
    tile_type(axe_passes::ir::value::only_result(op)?.r#type())
}
