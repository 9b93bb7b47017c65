//! One matrix product, read: its extents, what forms it, and whether `wgmma` takes it.

use super::offered;
use crate::facts::chip::Chip;
use crate::planner::knobs::{Plan, Precision};
use crate::planner::problem::{BLOCKS, Blocks, KFirst, Problem, Query, Unit, count, takes_rows};
use crate::planner::scheduler::Extents;
use axe_dialect::ops::{GroupedGemmOp, ScaledGemmOp};
use axe_dialect::{Typed, element_type};
use axe_package::{DType, Key, OperandOrder, TunedOp};
use axe_passes::fuse::operators::{shared_operand, start_of};
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::fuse::space::Pairs;
use axe_passes::ir::value::{name, operands, results};
use axe_passes::ir::{Builder, DYNAMIC, Op, Val, attribute, types};
use axe_passes::{PassError, PassResult};
use melior::ir::attribute::DictionaryAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, TypeLike, ValueLike};

/// What a dynamic extent is expected to be when tiles are chosen.
const EXPECTED: i64 = 2048;
/// The same for a number of products.
const EXPECTED_BATCH: i64 = 8;

/// A matrix product, read.
#[derive(Clone, Debug)]
pub(in crate::planner) struct Gemm<'c> {
    pub op: Op<'c>,
    pub a: Val<'c>,
    pub b: Val<'c>,
    /// Whether all products of a batch have the same matrix A, and B.
    pub shared: [bool; 2],
    pub start: Option<Val<'c>>,
    pub result: Val<'c>,
    /// Products, when there is a batch.
    pub batch: Option<i64>,
    pub m: i64,
    pub n: i64,
    pub k: i64,
    pub trans_a: bool,
    pub trans_b: bool,
    pub element: Type<'c>,
    /// The type of the accumulators.
    pub accumulator: Type<'c>,
    pub unit: Unit,
    /// The scales of its blocks, where they have some.
    pub scales: Option<Scales<'c>>,
    /// The groups of its rows, each of which has a matrix of B, where it has some.
    pub groups: Option<Groups<'c>>,
    /// Columns of the blocks that its epilogue reduces, where it does: tiles are made of whole ones.
    pub reduced: Option<i64>,
    /// Another matrix of B, where the kernel multiplies two: columns are then those of both, a tile's first ones this one's.
    pub second: Option<Second<'c>>,
    /// Which of its columns are pairs, where its epilogue forms elements of two: a tile has both.
    pub pairs: Option<Pairs>,
    /// What its `axe.plan` asks for.
    pub asked: Plan,
    /// Why integers of 8 bits are not multiplied by wgmma.
    declined: Option<String>,
}

/// A second product of the same rows.
#[derive(Clone, Copy, Debug)]
pub(in crate::planner) struct Second<'c> {
    pub b: Val<'c>,
    pub result: Val<'c>,
}

/// The scales of a product's blocks.
#[derive(Clone, Copy, Debug)]
pub(in crate::planner) struct Scales<'c> {
    /// Of A: `[m, k / block_k]`, or `[k / block_k, m]` when `transposed`.
    pub a: Val<'c>,
    /// Of B: `[n / block_n, k / block_k]`.
    pub b: Val<'c>,
    pub transposed: bool,
    pub blocks: Blocks,
}

impl<'c> Scales<'c> {
    /// The scales of an operator that has some.
    fn of(op: Op<'c>) -> Option<Self> {
        let &[_, _, a, b] = operands(op).as_slice() else {
            return None;
        };
        let block = |name| op.attribute(name).ok().and_then(attribute::integer);
        (name(op) == ScaledGemmOp::NAME).then_some(Self {
            a,
            b,
            transposed: op.has_attribute("trans_scale_a"),
            blocks: Blocks {
                n: block("block_n").unwrap_or(128),
                k: block("block_k").unwrap_or(128),
            },
        })
    }
}

/// The groups of rows of a product.
#[derive(Clone, Copy, Debug)]
pub(in crate::planner) struct Groups<'c> {
    /// Where they begin, and where the last one ends: one more than there are groups.
    pub offsets: Val<'c>,
    /// How many there are.
    pub count: i64,
}

impl<'c> Groups<'c> {
    /// The groups of an operator that has some.
    fn of(op: Op<'c>) -> Option<Self> {
        let GroupedGemmOp { b, offsets, .. } = GroupedGemmOp::of(op)?;
        let count = *types::shape(b.r#type())?.first()?;
        Some(Self { offsets, count })
    }
}

/// Types of 8 bits that wgmma multiplies.
const BYTES: [&str; 3] = ["f8E4M3FN", "f8E5M2", "i8"];

impl<'c> Gemm<'c> {
    /// A product as the chip would form it.
    ///
    /// # Errors
    /// At the operator, when its extents or types are not supported.
    pub(in crate::planner) fn read(op: Op<'c>, chip: &Chip) -> PassResult<'c, Self> {
        let builder = Builder::before(op);
        let unreadable = || PassError::new(op.location(), "expected a matrix product of tensors");
        let values = operands(op);
        let (&[a, b], &[result]) = (values.get(..2).unwrap_or_default(), &results(op)[..]) else {
            return Err(unreadable());
        };
        let (ta, tr) = (builder.tensor_of(a)?, builder.tensor_of(result)?);
        let [.., a0, a1] = ta.shape[..] else {
            return Err(unreadable());
        };
        let [ref batch @ .., m, n] = tr.shape[..] else {
            return Err(unreadable());
        };
        let scales = Scales::of(op);
        let shared = [0, 1].map(|number| shared_operand(op, number));
        let trans_a = op.has_attribute("trans_a");
        let batch = match batch {
            [] => None,
            [DYNAMIC, ..] => Some(DYNAMIC),
            extents => Some(extents.iter().product()),
        };
        let mut gemm = Self {
            op,
            a: shared[0].unwrap_or(a),
            b: shared[1].unwrap_or(b),
            shared: shared.map(|own| own.is_some()),
            start: start_of(op),
            result,
            batch,
            m,
            n,
            k: if trans_a { a0 } else { a1 },
            trans_a,
            trans_b: op.has_attribute("trans_b") || scales.is_some(),
            element: ta.element,
            accumulator: tr.element,
            unit: Unit::Scalar,
            scales,
            groups: Groups::of(op),
            reduced: None,
            second: None,
            pairs: None,
            declined: None,
            asked: asked(op)?,
        };
        gemm.check_extents()?;
        gemm.choose_unit(builder)?;
        // Integers of 8 bits are multiplied one by one where wgmma does not take them.
        if gemm.unit == Unit::Byte && !gemm.is_float8() {
            gemm.declined = gemm.admits_wgmma(chip).err();
        }
        if gemm.declined.is_some() {
            gemm.unit = Unit::Scalar;
            gemm.accumulator = tr.element;
        }
        Ok(gemm)
    }

    /// The same where its epilogue reduces blocks of so many columns.
    pub(in crate::planner) fn reducing(self, columns: Option<i64>) -> Self {
        Self {
            reduced: columns,
            ..self
        }
    }

    /// The same where its epilogue forms elements of pairs of columns.
    pub(in crate::planner) fn pairing(self, pairs: Option<Pairs>) -> Self {
        Self { pairs, ..self }
    }

    /// The same with another product of its rows, where there is one.
    pub(in crate::planner) fn dual(self, second: Option<Op<'c>>) -> Self {
        let second = second.and_then(|op| {
            let (b, result) = (*operands(op).get(1)?, *results(op).first()?);
            Some(Second { b, result })
        });
        let n = match second {
            None => self.n,
            Some(_) => self.n * 2,
        };
        Self { n, second, ..self }
    }

    /// The columns of a result.
    pub(in crate::planner) const fn columns(&self) -> i64 {
        match self.second {
            None => self.n,
            Some(_) => self.n / 2,
        }
    }

    /// Whether a tile's sums are of two halves of columns.
    pub(in crate::planner) const fn has_halves(&self) -> bool {
        self.pairs.is_some() || self.second.is_some()
    }

    fn check_extents(&self) -> PassResult<'c> {
        let dynamic = [self.n, self.k].contains(&DYNAMIC) || (self.m == DYNAMIC && self.trans_a);
        if dynamic {
            return Err(PassError::new(
                self.op.location(),
                "expected a matrix product whose only dynamic extent is the leading one of A and the result",
            ));
        }
        Ok(())
    }

    fn choose_unit(&mut self, builder: Builder<'c>) -> PassResult<'c> {
        let f32 = builder.r#type(|context| Type::float32(context));
        let bits = types::bits(self.element);
        let reduced = self.asked.precision == Some(Precision::Tf32);
        let half = [
            builder.r#type(|context| Type::float16(context)),
            builder.r#type(|context| Type::bfloat16(context)),
        ]
        .contains(&self.element);
        self.unit = match bits {
            Some(16) if half => Unit::Half,
            Some(32) if reduced && self.element == f32 => Unit::Tf32,
            Some(32 | 64) => Unit::Scalar,
            Some(8) => Unit::Byte,
            Some(16) if types::is_integer(self.element) => Unit::Scalar,
            _ => {
                return Err(PassError::new(
                    self.op.location(),
                    format!(
                        "expected floats of 8 to 64 bits or integers in a matrix product, got {}",
                        self.element
                    ),
                ));
            }
        };
        let wide = types::bits(self.accumulator) > Some(32);
        if self.unit != Unit::Scalar && !wide {
            self.accumulator = match types::is_integer(self.element) {
                true => builder.r#type(|context| IntegerType::new(context, 32).into()),
                false => f32,
            };
        } else if self.unit != Unit::Scalar {
            self.unit = Unit::Scalar;
        }
        Ok(())
    }

    /// Whether the operands are floats of 8 bits.
    pub(in crate::planner) fn is_float8(&self) -> bool {
        types::is_float(self.element) && types::bits(self.element) == Some(8)
    }

    /// The extents as the cost model takes them.
    pub(in crate::planner) fn problem(&self) -> Problem {
        let or = |extent, expected| if extent == DYNAMIC { expected } else { extent };
        let m = or(self.m, EXPECTED);
        // Groups are expected to be as long as each other.
        let (batch, m) = match &self.groups {
            None => (self.batch.map_or(1, |batch| or(batch, EXPECTED_BATCH)), m),
            Some(groups) => {
                let groups = or(groups.count, EXPECTED_BATCH).max(1);
                (groups, count(m, groups))
            }
        };
        Problem {
            batch,
            m,
            n: self.n,
            k: self.k,
            element_bytes: element_bytes(self.element),
            unit: self.unit,
        }
    }

    /// The product as data.
    pub(in crate::planner) fn query(&self, chip: &Chip) -> Query {
        self.query_where(self.admits_wgmma(chip).is_ok())
    }

    /// The same where it is known whether `wgmma` takes it.
    pub(in crate::planner) fn query_where(&self, wgmma: bool) -> Query {
        Query {
            problem: self.problem(),
            wgmma,
            k_first: self.k_first(),
            blocks: self.scales.map(|scales| scales.blocks),
            grouped: self.groups.is_some(),
        }
    }

    /// Which operands are stored with k first.
    pub(in crate::planner) const fn k_first(&self) -> KFirst {
        KFirst {
            a: self.trans_a,
            b: !self.trans_b,
        }
    }

    /// What the database finds a product by; `None` for a kind of product that it has no entries for.
    pub(in crate::planner) fn key(&self, chip: &Chip) -> Option<Key> {
        let element = self.element;
        let float8 = |value: Val<'_>| element_type(value.r#type()).to_string() == "f8E4M3FN";
        let plain = match self.groups {
            None => TunedOp::Gemm,
            Some(_) => TunedOp::GroupedGemm,
        };
        let (op, dtype) = if element.is_f16() {
            (plain, DType::F16)
        } else if element.is_bf16() {
            (plain, DType::BF16)
        } else if self.groups.is_none() && float8(self.a) && float8(self.b) {
            // What a product is multiplied by afterwards changes little.
            let op = match self.scales {
                None => TunedOp::GemmRowScaled,
                Some(scales) if scales.blocks == BLOCKS => TunedOp::GemmBlockScaled,
                Some(_) => return None,
            };
            (op, DType::F8E4M3)
        } else {
            return None;
        };
        let layout = match (self.trans_a, self.trans_b) {
            (false, false) => OperandOrder::Nn,
            (false, true) => OperandOrder::Nt,
            (true, false) => OperandOrder::Tn,
            (true, true) => OperandOrder::Tt,
        };
        let extent = |extent: i64| u64::try_from(extent).ok();
        // Entries are of products whose tiles are stored as they are.
        let single = self.batch.is_none_or(|batch| batch == 1) && !self.has_halves();
        single.then_some(())?;
        Some(Key {
            chip: chip.name.to_owned(),
            op,
            dtype,
            layout,
            m: extent(self.m)?,
            n: extent(self.n)?,
            k: extent(self.k)?,
            groups: extent(self.groups.map_or(1, |groups| groups.count))?,
        })
    }

    /// Whether the tensor memory accelerator and wgmma take the product; the reason, where they do not.
    pub(in crate::planner) fn admits_wgmma(&self, chip: &Chip) -> Result<(), String> {
        if let Some(reason) = &self.declined {
            return Err(reason.clone());
        }
        if !(chip.has_wgmma && chip.has_tma) {
            return Err(format!("{} has no wgmma", chip.name));
        }
        if self.unit == Unit::Scalar {
            return Err(
                "expected elements of 8 bits, f16, bf16, or f32 with precision = \"tf32\" for wgmma"
                    .to_owned(),
            );
        }
        let taken = |value: &Val<'c>| {
            let element = element_type(value.r#type());
            BYTES
                .contains(&element.to_string().as_str())
                .then_some(())
                .ok_or(element)
        };
        if self.unit == Unit::Byte {
            [self.a, self.b]
                .iter()
                .try_for_each(taken)
                .map_err(|element| format!("wgmma takes no {element}"))?;
        }
        // PTX ISA 9.7.15.5.2: imm-trans-a and imm-trans-b exist for 16-bit types alone.
        if self.unit != Unit::Half && (self.trans_a || !self.trans_b) {
            let operands = match self.unit {
                Unit::Byte => "8-bit",
                _ => "tf32",
            };
            return Err(format!(
                "wgmma takes {operands} operands as A [M, K] and B [N, K] alone"
            ));
        }
        if let Some(scales) = &self.scales {
            offered::admits_blocks(self.problem(), scales.blocks, chip)?;
        }
        // Those of 16-bit floats are copied where the cost model says so.
        let copied = self.groups.is_some() || self.unit == Unit::Half;
        match copied || self.problem().pays_for_copies() {
            true => Ok(()),
            false => self.needs_no_copies(),
        }
    }

    /// Whether a tensor map takes the rows of A and B; the reason not to multiply copies of them, where it does not.
    pub(in crate::planner) fn needs_no_copies(&self) -> Result<(), String> {
        let operands = [self.extents_of_a(), self.extents_of_b()];
        let other = operands.iter().find(|extents| !self.takes_rows(extents));
        match other.and_then(|extents| extents.last()) {
            None => Ok(()),
            Some(row) => Err(format!(
                "an operand's rows of {row} elements are no multiple of 16 bytes, which its descriptor needs, and a copy would take longer than it saves"
            )),
        }
    }

    /// Whether a tensor map takes the rows of an operand of these extents.
    pub(in crate::planner) fn takes_rows(&self, extents: &[i64]) -> bool {
        let row = extents.last().copied().unwrap_or(1);
        takes_rows(row, element_bytes(self.element))
    }

    /// What is scheduled.
    pub(in crate::planner) const fn extents(&self) -> Extents {
        Extents {
            batch: self.batch,
            m: self.m,
            n: self.n,
            k: self.k,
        }
    }

    /// `[batch, rows, columns]` of an operand, or of one matrix for the whole batch.
    fn shape(&self, [rows, columns]: [i64; 2], is_shared: bool) -> Vec<i64> {
        let batch = self.batch.filter(|_| !is_shared);
        batch.into_iter().chain([rows, columns]).collect()
    }

    pub(in crate::planner) fn extents_of_a(&self) -> Vec<i64> {
        let shape = match self.trans_a {
            true => [self.k, self.m],
            false => [self.m, self.k],
        };
        self.shape(shape, self.shared[0])
    }

    pub(in crate::planner) fn extents_of_b(&self) -> Vec<i64> {
        let shape = if self.trans_b && self.pairs == Some(Pairs::Interleaved) {
            // A row for each pair, one column behind the other.
            [self.n / 2, self.k * 2]
        } else if self.trans_b {
            [self.columns(), self.k]
        } else {
            [self.k, self.columns()]
        };
        let matrix = self.shape(shape, self.shared[1]);
        let groups = self.groups.iter().map(|groups| groups.count);
        groups.chain(matrix).collect()
    }
}

/// What the `axe.plan` of an operator asks for: nothing, where it has none.
///
/// # Errors
/// At a plan that cannot be read.
pub(in crate::planner) fn asked(op: Op<'_>) -> PassResult<'_, Plan> {
    let Ok(plan) = op.attribute("axe.plan") else {
        return Ok(Plan::default());
    };
    let error = |what: String| PassError::new(op.location(), what);
    let plan = DictionaryAttribute::try_from(plan)
        .map_err(|_| error(format!("expected a dictionary as axe.plan, got {plan}")))?;
    Plan::of(plan).map_err(|wrong| error(wrong.0))
}
