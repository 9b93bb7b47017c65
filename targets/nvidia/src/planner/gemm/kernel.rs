//! The kernel of a product, whichever its mainloop is.

use super::grid;
use super::mma::MmaKernel;
use super::product::Gemm;
use super::wgmma::WgmmaKernel;
use crate::facts::chip::Chip;
use crate::planner::config::Config;
use crate::planner::scheduler::persistent;
use axe_passes::PassResult;
use axe_passes::build::{Code, Kernel};
use axe_passes::fuse::frame::{Operand, Out};
use axe_passes::fuse::fusion::Fusion;
use axe_passes::ir::{Builder, Val};
use melior::ir::BlockRef;

/// A kernel that multiplies all tiles: to results, or to the sums of parts where several CTAs share a tile's depth.
pub(super) struct GemmKernel<'a, 'c> {
    pub gemm: &'a Gemm<'c>,
    pub config: Config,
    pub fusion: &'a Fusion<'c>,
    pub chip: &'a Chip,
}

impl<'c> GemmKernel<'_, 'c> {
    /// Emits the kernel, of this name.
    ///
    /// # Errors
    /// When MLIR does not build it.
    pub(super) fn emit(
        &self,
        mut kernel: Kernel<'c>,
        (ins, outs): (&[Operand<'c>], &[Out<'c>]),
        (module, name): (BlockRef<'c, 'c>, &str),
    ) -> PassResult<'c> {
        let Self { gemm, fusion, .. } = *self;
        let threads = match self.config {
            Config::Wgmma(config) => {
                let body = WgmmaKernel {
                    gemm,
                    config,
                    fusion,
                    chip: self.chip,
                    last: None,
                };
                body.emit(&kernel, ins, outs)?;
                kernel.cluster = config.ctas();
                config.threads()
            }
            Config::Mma(config) => {
                let body = MmaKernel::new(gemm, config, fusion, self.chip)?;
                body.emit(&kernel, ins, outs)?;
                config.threads(gemm.unit)
            }
        };
        kernel.finish(module, name, threads)
    }

    /// CTAs along x, y and z: of `wgmma` clusters that go through all tiles, of `mma.sync` one for each tile, and each part of its
    /// depth.
    ///
    /// # Errors
    /// When there are more tiles than a grid has.
    pub(super) fn grid(&self, builder: &Builder<'c>) -> PassResult<'c, [Val<'c>; 3]> {
        let code = Code { builder: *builder };
        let splits = self.config.splits();
        match self.config {
            Config::Wgmma(config) => {
                let [x, y, z] = grid::grid(builder, self.gemm, config.span())?;
                let x = if splits > 1 {
                    code.times(x, splits)?
                } else {
                    x
                };
                persistent(builder, [x, y, z], config.ctas(), self.chip)
            }
            Config::Mma(config) => {
                let [m, n, _] = config.tile;
                let [x, y, z] = grid::grid(builder, self.gemm, [m, n])?;
                // What is shared has no batch.
                let z = if splits > 1 { code.index(splits)? } else { z };
                Ok([x, y, z])
            }
        }
    }
}
