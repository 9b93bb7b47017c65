//! Matrix products: a family whose kernels are a tile scheduler, a mainloop and an epilogue.
//!
//! * [`product`]: a product, read;
//! * [`offered`], [`searched`]: the configurations to choose from, and to time;
//! * [`configure`]: the one that a plan asks for;
//! * [`kernel`]: the kernel of a configuration, by [`wgmma`] or by [`mma`];
//! * [`workspace`]: the two kernels of split-K and of stream-K;
//! * [`blocks`]: reductions of the result's rows, in blocks of columns that its epilogue reduces;
//! * [`halves`]: tiles of two halves: of columns of which the epilogue forms pairs, or of two products;
//! * [`raster`]: the order of tiles where an epilogue reads much;
//! * [`padded`]: copies of operands, before it; [`widen`]: products that no instruction takes, before all of it.

pub(super) mod blocks;
pub(super) mod configure;
mod grid;
pub(super) mod halves;
mod kernel;
mod mma;
pub(super) mod offered;
mod padded;
pub(super) mod product;
mod raster;
mod searched;
mod wgmma;
pub(super) mod widen;
mod workspace;

use super::choose::search::Candidate;
use super::config::Config;
use super::family::{Family, Launch};
use super::knobs::Plan;
use super::model;
use super::problem::Query;
use super::scheduler::stream_k::LastWave;
use crate::facts::chip::Chip;
use axe_package::Key;
use axe_passes::PassResult;
use axe_passes::build::{Kernel, layout_error};
use axe_passes::fuse::arguments::{argument_types, input, launched};
use axe_passes::fuse::frame::{Operand, Out};
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::group::{Group, Root};
use axe_passes::fuse::operators::start_of;
use axe_passes::fuse::space::{Kind, Pairs};
use axe_passes::ir::{Builder, DYNAMIC, Val};
use kernel::GemmKernel;
use product::Gemm;

/// The family.
pub(super) struct Gemms;

/// A group around a product, read.
pub(super) struct Read<'c> {
    gemm: Gemm<'c>,
    fusion: Fusion<'c>,
}

impl Family for Gemms {
    type Operators<'c> = Read<'c>;
    type Problem = Query;
    type Config = Config;

    const HAS_CHOICE: bool = true;

    fn read<'c>(
        group: &Group<'c>,
        outputs: &[Val<'c>],
        builder: &Builder<'c>,
        chip: &Chip,
    ) -> PassResult<'c, Read<'c>> {
        let Root::Gemm(op) = group.root else {
            return Err(layout_error(builder.location, "a group without a product"));
        };
        let fusion = Fusion::read(group, outputs, start_of(op))?;
        let gemm = Gemm::read(op, chip)?;
        let gemm = gemm
            .reducing(blocks::reduced(&fusion))
            .pairing(halves::pairs(&fusion))
            .dual(group.second);
        Ok(Read { gemm, fusion })
    }

    fn problem(operators: &Read<'_>, chip: &Chip) -> Query {
        operators.gemm.query(chip)
    }

    fn asked(operators: &Read<'_>) -> Plan {
        operators.gemm.asked
    }

    fn configure(operators: &Read<'_>, plan: &Plan, chip: &Chip) -> Result<Config, String> {
        operators.gemm.configure(plan, chip)
    }

    fn candidates(query: Query, chip: &Chip, limit: usize) -> Vec<Candidate<Config>> {
        searched::candidates(query, chip, limit)
    }

    fn clocks(query: Query, config: Config, chip: &Chip) -> f64 {
        model::clocks(query, config, chip)
    }

    fn key(operators: &Read<'_>, chip: &Chip) -> Option<Key> {
        operators.gemm.key(chip)
    }

    fn of_key(key: &Key) -> Option<Query> {
        Query::of(key)
    }

    fn tile(config: Config) -> [i64; 3] {
        config.tile()
    }

    fn described(operators: &Read<'_>) -> String {
        let Gemm {
            m, n, k, element, ..
        } = operators.gemm;
        let rows = match m {
            DYNAMIC => "?".to_owned(),
            rows => rows.to_string(),
        };
        let groups = match &operators.gemm.groups {
            None => String::new(),
            Some(groups) if groups.count == DYNAMIC => " in groups".to_owned(),
            Some(groups) => format!(" in {} groups", groups.count),
        };
        let pairs = match operators.gemm.pairs {
            None => "",
            Some(Pairs::Halves) => ", columns of both halves in pairs",
            Some(Pairs::Interleaved) => ", neighbouring columns in pairs",
        };
        let two = match operators.gemm.second {
            None => "",
            Some(_) => ", columns of two products",
        };
        format!("{rows} x {n} x {k} of {element}{groups}{pairs}{two}")
    }

    fn declined(operators: &Read<'_>, config: Config, chip: &Chip) -> Option<String> {
        let gemm = &operators.gemm;
        let admitted = || {
            gemm.admits_wgmma(chip)
                .and_then(|()| gemm.needs_no_copies())
        };
        match config {
            Config::Mma(_) => admitted()
                .err()
                .map(|reason| format!("not by wgmma: {reason}")),
            Config::Wgmma(_) => None,
        }
    }

    fn fused(operators: &Read<'_>, config: Config) -> Config {
        let full = |(_, kind): &(_, Kind)| *kind == Kind::Full;
        let reads = operators.fusion.inputs.iter().any(full);
        match config {
            Config::Wgmma(own) if reads => {
                Config::Wgmma(raster::among_reads(own, operators.gemm.k))
            }
            other => other,
        }
    }

    fn emit<'c>(
        operators: &Read<'c>,
        config: Config,
        launch: &mut Launch<'_, 'c>,
    ) -> PassResult<'c, String> {
        let Read { gemm, fusion } = operators;
        let product = Product { gemm, fusion };
        let mut ins = product.factors(config, launch)?;
        if config.splits() > 1 {
            return workspace::split_k(&product, config, launch, &ins);
        }
        let outs = product.others(launch, &mut ins)?;
        if let Config::Wgmma(config) = config
            && let Some(last) = LastWave::of(config, [gemm.m, gemm.n, gemm.k], launch.chip)
        {
            return workspace::stream_k(&product, config, last, launch, (ins, outs));
        }
        product.alone(config, launch, &ins, &outs)
    }
}

/// A product and what follows it.
struct Product<'a, 'c> {
    gemm: &'a Gemm<'c>,
    fusion: &'a Fusion<'c>,
}

impl<'c> Product<'_, 'c> {
    /// A and B, or copies of them, and another B where there are two.
    fn factors(
        &self,
        config: Config,
        launch: &mut Launch<'_, 'c>,
    ) -> PassResult<'c, Vec<Operand<'c>>> {
        let gemm = self.gemm;
        let mut ins = Vec::new();
        let second = gemm.second.map(|second| second.b);
        let of_b = [Some(gemm.b), second].into_iter().flatten();
        let of_b = of_b.map(|b| (b, gemm.extents_of_b()));
        for (value, extents) in [(gemm.a, gemm.extents_of_a())].into_iter().chain(of_b) {
            ins.push(match config {
                Config::Wgmma(_) if !gemm.takes_rows(&extents) => {
                    padded::padded(launch, value, &extents)?
                }
                _ => launch.frame.operand(launch.builder, value, &extents)?,
            });
        }
        Ok(ins)
    }

    /// What a kernel reads beside A and B: scales or offsets, and what the epilogue reads; and what it writes.
    fn others(
        &self,
        launch: &mut Launch<'_, 'c>,
        ins: &mut Vec<Operand<'c>>,
    ) -> PassResult<'c, Vec<Out<'c>>> {
        let (frame, builder) = (&mut launch.frame, launch.builder);
        if let Some(scales) = &self.gemm.scales {
            for scale in [scales.a, scales.b] {
                let shape = builder.tensor_of(scale)?.shape;
                ins.push(frame.operand(builder, scale, &shape)?);
            }
        }
        if let Some(groups) = &self.gemm.groups {
            let shape = builder.tensor_of(groups.offsets)?.shape;
            ins.push(frame.operand(builder, groups.offsets, &shape)?);
        }
        self.epilogue(launch, ins)
    }

    /// What the epilogue reads, its tables in front of all else, and writes.
    fn epilogue(
        &self,
        launch: &mut Launch<'_, 'c>,
        ins: &mut Vec<Operand<'c>>,
    ) -> PassResult<'c, Vec<Out<'c>>> {
        let (frame, builder, gemm) = (&mut launch.frame, launch.builder, self.gemm);
        let batch = gemm.batch.map(|batch| [batch, gemm.m]);
        let shape = |kind| self.fusion.shape(gemm.columns(), batch, kind);
        let mut tables = Vec::new();
        for table in &self.fusion.tables {
            let shape = builder.tensor_of(*table)?.shape;
            tables.push(frame.operand(builder, *table, &shape)?);
        }
        ins.splice(0..0, tables);
        for (value, kind) in &self.fusion.inputs {
            let own = (*value, *kind);
            ins.push(input(frame, builder, self.fusion, own, shape(*kind))?);
        }
        let mut outs = Vec::new();
        for (value, kind) in &self.fusion.outputs {
            outs.push((*value, frame.out(builder, *value, &shape(*kind))?));
        }
        Ok(outs)
    }

    /// One kernel: of `wgmma`, whose clusters go through the tiles, or of `mma.sync`, a CTA for each tile.
    fn alone(
        &self,
        config: Config,
        launch: &mut Launch<'_, 'c>,
        ins: &[Operand<'c>],
        outs: &[Out<'c>],
    ) -> PassResult<'c, String> {
        let Self { gemm, fusion } = *self;
        let (frame, builder) = (&mut *launch.frame, launch.builder);
        let name = frame.name(match gemm.groups {
            None => "gemm",
            Some(_) => "grouped_gemm",
        });
        let types = argument_types(ins, &fusion.scalars, outs);
        let kernel = Kernel::new(builder.location, frame.module, &types);
        let body = GemmKernel {
            gemm,
            config,
            fusion,
            chip: launch.chip,
        };
        body.emit(kernel, (ins, outs), (frame.module, &name))?;
        let grid = body.grid(builder)?;
        let ins = launched(ins, &fusion.scalars);
        frame.launch(builder, &name, grid, &ins, outs)?;
        Ok(name)
    }
}
