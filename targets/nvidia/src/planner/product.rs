//! One matrix product: its extents, what forms it, and its tile.

use super::cost::{Problem, Tile, Unit, choose};
use super::entries;
use super::layouts::{Grid, Product, matrix_product, scalar_product};
use super::padded;
use super::scaled::Blocks;
use super::search::Query;
use super::variant::Variant;
use super::wide::{KFirst, MOST_PARTS, WideTile};
use crate::emit::MOST_GROUPED;
use crate::facts::chip::Chip;
use axe_dialect::{RasterOrder, element_type};
use axe_passes::build::layout_error;
use axe_passes::fuse::operators::{SCALED_PRODUCT, start_of};
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::ir::value::{name, operands, results};
use axe_passes::ir::{Builder, DYNAMIC, Op, Val, attribute, types};
use axe_passes::{PassError, PassResult};
use melior::ir::attribute::{BoolAttribute, DictionaryAttribute, StringAttribute};
use melior::ir::operation::OperationLike;
use melior::ir::r#type::IntegerType;
use melior::ir::{Attribute, AttributeLike, Type, ValueLike};
use mlir_sys as sys;

/// What a dynamic extent is expected to be when tiles are chosen.
const EXPECTED: i64 = 2048;

/// A matrix product, read.
#[derive(Clone, Debug)]
pub(super) struct Gemm<'c> {
    pub op: Op<'c>,
    pub a: Val<'c>,
    pub b: Val<'c>,
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
    /// Why integers of 8 bits are not multiplied by wgmma.
    declined: Option<String>,
    /// What overrides the cost model: the operator's `axe.plan`, or an entry of the database.
    pub plan: Option<DictionaryAttribute<'c>>,
}

/// The scales of a product's blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scales<'c> {
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
        (name(op) == SCALED_PRODUCT).then_some(Self {
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

/// Types of 8 bits that wgmma multiplies.
const BYTES: [&str; 3] = ["f8E4M3FN", "f8E5M2", "i8"];

/// The entry `key` of a plan.
fn entry<'c>(plan: DictionaryAttribute<'c>, key: &str) -> Option<Attribute<'c>> {
    let key = melior::StringRef::new(key).to_raw();
    // SAFETY: the attribute is a dictionary; a key that it lacks gives the null attribute.
    unsafe {
        let found = sys::mlirDictionaryAttrGetElementByName(plan.to_raw(), key);
        Attribute::from_option_raw(found)
    }
}

impl<'c> Gemm<'c> {
    /// A product as the chip would form it.
    ///
    /// # Errors
    /// At the operator, when its extents or types are not supported.
    pub(super) fn read(op: Op<'c>, chip: &Chip) -> PassResult<'c, Self> {
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
        let trans_a = op.has_attribute("trans_a");
        let batch = match batch {
            [] => None,
            [DYNAMIC, ..] => Some(DYNAMIC),
            extents => Some(extents.iter().product()),
        };
        let mut gemm = Self {
            op,
            a,
            b,
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
            declined: None,
            plan: entries::of(op)?,
        };
        gemm.check_extents()?;
        gemm.choose_unit(builder)?;
        // Integers of 8 bits are multiplied one by one where wgmma does not take them.
        if gemm.unit == Unit::Byte && !gemm.is_float8() {
            gemm.declined = gemm.admits_wide(chip).err();
        }
        if gemm.declined.is_some() {
            gemm.unit = Unit::Scalar;
            gemm.accumulator = tr.element;
        }
        Ok(gemm)
    }

    /// Whether the plan has `key = true`.
    fn flag(&self, key: &str) -> bool {
        self.option(key)
            .and_then(|flag| BoolAttribute::try_from(flag).ok())
            .is_some_and(|flag| flag.value())
    }

    fn option(&self, key: &str) -> Option<Attribute<'c>> {
        entry(self.plan?, key)
    }

    /// Whether the plan says how the product is computed, rather than what it may round.
    pub(super) fn is_planned(&self) -> bool {
        self.plan.is_some_and(entries::choose)
    }

    /// The tile that the plan and the cost model give.
    ///
    /// # Errors
    /// A plan that asks for what there is not, or nothing that fits.
    pub(super) fn variant(&self, chip: &'static Chip) -> PassResult<'c, Variant> {
        Ok(match self.wide(chip)? {
            Some(tile) => Variant::Roles(tile),
            None => Variant::Warps(self.tile(chip)?),
        })
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
        let reduced = self
            .option("precision")
            .and_then(|value| StringAttribute::try_from(value).ok())
            .is_some_and(|value| value.value() == "tf32");
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
    pub(super) fn is_float8(&self) -> bool {
        types::is_float(self.element) && types::bits(self.element) == Some(8)
    }

    /// The extents as the cost model takes them.
    pub(super) fn problem(&self) -> Problem {
        let expected = |extent| if extent == DYNAMIC { EXPECTED } else { extent };
        Problem {
            batch: self
                .batch
                .map_or(1, |batch| if batch == DYNAMIC { 8 } else { batch }),
            m: expected(self.m),
            n: self.n,
            k: self.k,
            element_bytes: element_bytes(self.element),
            unit: self.unit,
        }
    }

    /// The kernel that the plan asks for: `wgmma`, or `mma`, which alone shares a tile out among warps.
    pub(super) fn kernel(&self) -> Option<String> {
        let kernel = self
            .option("kernel")
            .and_then(|value| StringAttribute::try_from(value).ok())
            .map(|kernel| kernel.value().to_owned());
        kernel.or_else(|| self.option("warps").map(|_| "mma".to_owned()))
    }

    /// The tile of a kernel with roles, where the chip and the operands allow one.
    ///
    /// # Errors
    /// An `axe.plan` that asks for what there is not.
    fn wide(&self, chip: &'static Chip) -> PassResult<'c, Option<WideTile>> {
        let kernel = self.kernel();
        let possible = self.admits_wide(chip);
        match (kernel.as_deref(), possible) {
            (None, Err(_)) | (Some("mma"), _) => return Ok(None),
            (None, _) if self.plan.is_none() && self.is_short() => return Ok(None),
            (Some("wgmma"), Err(reason)) => return Err(PassError::new(self.op.location(), reason)),
            (None | Some("wgmma"), Ok(())) => {}
            (Some(other), _) => {
                return Err(PassError::new(
                    self.op.location(),
                    format!("expected kernel = \"wgmma\" or \"mma\" in axe.plan, got \"{other}\""),
                ));
            }
        }
        let problem = self.problem();
        let chosen = match &self.scales {
            Some(scales) => super::scaled::choose_of(problem, scales.blocks, chip, |tile| {
                tile.tail == 1 || self.not_shared().is_none()
            }),
            None => super::offered::choose_of(problem, self.k_first(), chip, |tile| {
                tile.parts == 1 && tile.tail == 1 || self.not_in_parts().is_none()
            }),
        };
        let mut tile = chosen
            .ok_or_else(|| PassError::new(self.op.location(), "no tile fits in shared memory"))?;
        let shape = self.option("tile").and_then(attribute::read_i64s);
        if let Some(&[m, n, k]) = shape.as_deref() {
            let consumers = self.option("consumers").and_then(attribute::integer);
            let (swap, turns) = (self.flag("swap"), self.flag("turns"));
            let rows = if swap { n } else { m };
            let usual = if turns { 2 } else { (rows / 64).clamp(1, 2) };
            let consumers = consumers.unwrap_or(usual);
            let bytes = problem.element_bytes;
            let tile_of = |consumers| WideTile::with_depth((m, n, consumers), k, swap, bytes, chip);
            let with_scales = |tile| match self.scales {
                Some(_) => super::scaled::with_scales(tile, bytes, chip),
                None => Some(tile),
            };
            let asked = match turns {
                true => tile_of(1).and_then(|tile| tile.in_turns(consumers, bytes, chip)),
                false => tile_of(consumers),
            };
            tile = asked
                .and_then(with_scales)
                .filter(|tile| tile.reads(self.k_first(), problem.element_bytes))
                .ok_or_else(|| {
                    PassError::new(
                        self.op.location(),
                        format!(
                            "expected tile = [rows, columns, depth] in axe.plan with 64 rows or a multiple for each of 1 to 3 consumers (or for each tile of 2 or 3 with turns = true), up to 256 columns in 8 (in 64 with B stored [k, n]), or the other way round with swap = true (and A not stored [k, m]), a depth in 128 bytes up to 1024, sums that fit in registers, and two stages in shared memory, got [{m}, {n}, {k}] and {} consumers",
                            consumers
                        ),
                    )
                })?;
        }
        let tile = self.wide_options(self.split_tile(tile, chip)?)?;
        let fits = |scales: &Scales<'_>| super::scaled::fits(tile, scales.blocks);
        match self.scales.as_ref().is_none_or(fits) {
            true => Ok(Some(tile)),
            false => Err(PassError::new(
                self.op.location(),
                format!(
                    "expected tile = [rows, columns, depth] in axe.plan for blocks with scales 64 rows for each consumer, columns that divide a block's, and its depth, not swapped or split, got {tile}"
                ),
            )),
        }
    }

    /// Whether warps alone are quicker.
    fn is_short(&self) -> bool {
        let known = self.m != DYNAMIC && self.scales.is_none();
        known && super::offered::is_short(self.problem())
    }

    /// What a tuner would ask.
    pub(super) fn query(&self, chip: &Chip) -> Query {
        Query {
            problem: self.problem(),
            roles: self.admits_wide(chip).is_ok(),
            k_first: self.k_first(),
            blocks: self.scales.map(|scales| scales.blocks),
        }
    }

    /// Which operands are stored with k first.
    pub(super) const fn k_first(&self) -> KFirst {
        KFirst {
            a: self.trans_a,
            b: !self.trans_b,
        }
    }

    /// The tile with what `axe.plan` says of `split`.
    fn split_tile(&self, tile: WideTile, chip: &Chip) -> PassResult<'c, WideTile> {
        let Some(split) = self.option("split").and_then(attribute::integer) else {
            return Ok(tile);
        };
        let whole = WideTile { split: 1, ..tile };
        whole
            .split_by(split, element_bytes(self.element), chip)
            .filter(|tile| tile.can_split(self.k))
            .ok_or_else(|| {
                PassError::new(
                    self.op.location(),
                    format!(
                        "expected a split of 1, 2, 4 or 8 in axe.plan, with a step along k and columns for the threads of each part, got {split} of the tile {:?}",
                        tile.shape
                    ),
                )
            })
    }

    /// The rest of `axe.plan`: `stages`, `order` and `group`.
    fn wide_options(&self, mut tile: WideTile) -> PassResult<'c, WideTile> {
        let error = |what: String| PassError::new(self.op.location(), what);
        if let Some(stages) = self.option("stages").and_then(attribute::integer) {
            if !(2..=tile.stages.max(2)).contains(&stages) {
                return Err(error(format!(
                    "expected 2 to {} stages in axe.plan, got {stages}",
                    tile.stages
                )));
            }
            tile.stages = stages;
        }
        if let Some(cluster) = self.option("cluster").and_then(attribute::integer) {
            if ![1, 2, 4].contains(&cluster) {
                return Err(error(format!(
                    "expected a cluster of 1, 2 or 4 in axe.plan, got {cluster}"
                )));
            }
            if tile.split > 1 && cluster > 1 {
                return Err(error(format!(
                    "expected one of cluster and split in axe.plan, got {cluster} and {}",
                    tile.split
                )));
            }
            let [m, n, k] = tile.shape;
            let beside = self.flag("beside");
            tile = tile.in_clusters(cluster, beside, self.k_first()).ok_or_else(|| {
                let shared = if beside { "A" } else { "B" };
                error(format!(
                    "expected a tile in axe.plan whose part of {shared} falls into {cluster} parts of whole periods of 8 rows for a cluster of {cluster}, got [{m}, {n}, {k}]"
                ))
            })?;
        }
        if let Some(parts) = self.option("parts").and_then(attribute::integer) {
            tile = match (parts, self.not_in_parts()) {
                (2.., Some(reason)) => {
                    return Err(error(format!("expected no parts in axe.plan for {reason}")));
                }
                _ => tile.in_parts(parts, self.k).ok_or_else(|| {
                    error(format!(
                        "expected parts between 1 and {MOST_PARTS} in axe.plan, with a step along k each, and neither split nor turns with them, got {parts} of {tile}"
                    ))
                })?,
            };
        }
        if let Some(tail) = self.option("tail").and_then(attribute::integer) {
            let alone = tile.split == 1 && tile.parts == 1 && !tile.swap;
            tile.tail = match (tail, self.not_shared()) {
                (2.., Some(reason)) => {
                    return Err(error(format!("expected no tail in axe.plan for {reason}")));
                }
                (1, _) => 1,
                (2..=MOST_PARTS, None) if alone => tail,
                _ => {
                    return Err(error(format!(
                        "expected a tail of 1 to {MOST_PARTS} parts in axe.plan, and none of split, parts and swap with it, got {tail} of {tile}"
                    )));
                }
            };
        }
        let order = self
            .option("order")
            .and_then(|order| StringAttribute::try_from(order).ok());
        if let Some(order) = order {
            tile.order = super::wide::order(order.value()).ok_or_else(|| {
                error(format!(
                    "expected an order (rows, columns, groups, snake, hilbert) in axe.plan, got {}",
                    order.value()
                ))
            })?;
        }
        if let Some(group) = self.option("group").and_then(attribute::integer) {
            if !(1..=MOST_GROUPED).contains(&group) {
                return Err(error(format!(
                    "expected a group of 1 to {MOST_GROUPED} rows of tiles in axe.plan, got {group}"
                )));
            }
            tile.group = group;
        }
        if !matches!(tile.order, RasterOrder::Groups | RasterOrder::Snake) {
            tile.group = 1;
        }
        Ok(tile)
    }

    /// Why all tiles' depth cannot be shared through memory, where it cannot.
    fn not_in_parts(&self) -> Option<&'static str> {
        match self.scales {
            Some(_) => Some("blocks with scales"),
            None => self.not_shared(),
        }
    }

    /// Why no tile's depth can be shared through memory, where it cannot.
    const fn not_shared(&self) -> Option<&'static str> {
        match self.batch {
            Some(_) => Some("a batch"),
            None if self.m == DYNAMIC => Some("rows that are counted at run time"),
            None => None,
        }
    }

    /// Whether the tensor memory accelerator and wgmma take the product; the reason, where they do not.
    pub(super) fn admits_wide(&self, chip: &Chip) -> Result<(), String> {
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
            super::scaled::admits(self.problem(), scales.blocks, chip)?;
        }
        let operands = [self.extents_of_a(), self.extents_of_b()];
        let other = operands.iter().find(|extents| !self.takes_rows(extents));
        match other.and_then(|extents| extents.last()) {
            Some(row) if !padded::pays(self.problem()) => Err(format!(
                "an operand's rows of {row} elements are no multiple of 16 bytes, which its descriptor needs, and the product is too small for a copy to pay"
            )),
            _ => Ok(()),
        }
    }

    /// Whether a tensor map takes the rows of an operand of these extents.
    pub(super) fn takes_rows(&self, extents: &[i64]) -> bool {
        let row = extents.last().copied().unwrap_or(1);
        super::wide::takes_rows(row, element_bytes(self.element))
    }

    fn tile(&self, chip: &'static crate::facts::chip::Chip) -> PassResult<'c, Tile> {
        if let Some(scales) = &self.scales {
            return Ok(super::plain::tile(scales));
        }
        let mut tile = choose(self.problem(), chip)
            .ok_or_else(|| PassError::new(self.op.location(), "no tile fits in shared memory"))?;
        if let Some(&[m, n, k]) = self
            .option("tile")
            .and_then(attribute::read_i64s)
            .as_deref()
        {
            tile.shape = [m, n, k];
        }
        if let Some(&[rows, columns]) = self
            .option("warps")
            .and_then(attribute::read_i64s)
            .as_deref()
        {
            tile.grid = Grid { rows, columns };
        }
        if let Some(stages) = self.option("stages").and_then(attribute::integer) {
            tile.stages = stages;
        }
        self.check_tile(tile, chip)
    }

    fn check_tile(&self, tile: Tile, chip: &crate::facts::chip::Chip) -> PassResult<'c, Tile> {
        let error = |what: String| Err(PassError::new(self.op.location(), what));
        let sizes = [
            &tile.shape[..],
            &[tile.grid.rows, tile.grid.columns, tile.stages],
        ]
        .concat();
        if sizes.iter().any(|size| !(1..=4096).contains(size)) {
            return error(
                "expected tile, warps and stages of axe.plan between 1 and 4096".to_owned(),
            );
        }
        let threads = tile.threads(self.unit);
        if threads % 32 != 0 || !(32..=1024).contains(&threads) || tile.stages < 2 {
            return error(format!(
                "expected at least 2 stages and a multiple of 32 threads up to 1024, got {} stages and {threads} threads",
                tile.stages
            ));
        }
        let bytes = tile.shared_bytes(element_bytes(self.element));
        if bytes > chip.shared_bytes {
            return error(format!(
                "a ring of {} stages takes {bytes} bytes of shared memory, and a CTA of {} has {}",
                tile.stages, chip.name, chip.shared_bytes
            ));
        }
        Ok(tile)
    }

    /// How deep the fragments in registers are: what one instruction of the tensor cores contracts, or the tile.
    pub(super) fn step(&self, tile: Tile) -> i64 {
        self.unit.atom().map_or(tile.shape[2], |atom| atom.k)
    }

    /// The register tensors of one step.
    pub(super) fn product(&self, tile: Tile) -> PassResult<'c, Product> {
        let [m, n, _] = tile.shape;
        // Floats of 8 bits are widened in registers.
        let atom = match self.scales {
            Some(_) => Unit::Half.atom(),
            None => self.unit.atom(),
        };
        match atom {
            Some(atom) => matrix_product(tile.shape, tile.grid, atom)
                .and_then(|_| matrix_product([m, n, atom.k], tile.grid, atom)),
            None => scalar_product(tile.shape, tile.grid),
        }
        .map_err(|error| layout_error(self.op.location(), error))
    }

    /// `[batch, rows, columns]` of an operand.
    fn shape(&self, rows: i64, columns: i64) -> Vec<i64> {
        self.batch.into_iter().chain([rows, columns]).collect()
    }

    pub(super) fn extents_of_a(&self) -> Vec<i64> {
        if self.trans_a {
            self.shape(self.k, self.m)
        } else {
            self.shape(self.m, self.k)
        }
    }

    pub(super) fn extents_of_b(&self) -> Vec<i64> {
        if self.trans_b {
            self.shape(self.n, self.k)
        } else {
            self.shape(self.k, self.n)
        }
    }
}
