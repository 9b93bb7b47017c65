//! `C = A W^T` for A: 8192 x 4096, W: 4096 x 4096 in f16 with sums in f32, written with the builders: the kernel of
//! `examples/kernels/gemm_roles.mlir`, but for its warpgroups, which take turns at tiles of 128 x 128.
//!
//!     cargo run -p axe-nvidia --example gemm_roles > gemm.mlir
//!     axe compile gemm.mlir --target sm_90a -o gemm.axe

use axe_dialect::{Level, RasterOrder};
use axe_layout::Layout;
use axe_passes::PassResult;
use axe_passes::build::{Code, Kernel, launch, layout_error};
use axe_passes::ir::{Builder, Val};
use melior::Context;
use melior::dialect::{DialectRegistry, func};
use melior::ir::attribute::{StringAttribute, TypeAttribute};
use melior::ir::operation::OperationLike;
use melior::ir::r#type::{FunctionType, MemRefType, RankedTensorType};
use melior::ir::{BlockLike, BlockRef, Location, Module, Type};
use melior::utility::register_all_dialects;
use std::process::ExitCode;

const M: i64 = 8192;
const N: i64 = 4096;
const K: i64 = 4096;
/// Rows and columns of a tile.
const TILE: i64 = 128;
/// Elements along k of a stage: rows of 128 bytes.
const DEPTH: i64 = 64;
const STAGES: i64 = 6;

/// A stage of an operand, and the ring of them: dense, in rows of 128 bytes whose chunks of 16 bytes are exchanged by the row.
const STAGE: &str = "Sw<3, 3, 3> o S[8192 : 1]";
const RING: &str = "Sw<3, 3, 3> o S[49152 : 1]";
/// The sums of a tile in the registers of one warpgroup: two blocks of 64 rows, each as `wgmma.m64n128` has it.
const SUMS: &str =
    "S[(2, 4, 2, 8, 16, 4, 2) : (64@reg, 1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]";

/// What the roles work on.
struct Gemm<'c> {
    /// A, W and C.
    operands: [Val<'c>; 3],
    /// The rings of A and W in shared memory.
    rings: [Val<'c>; 2],
    /// Which of their stages are full and which empty.
    pipeline: Val<'c>,
    /// Tiles of C.
    tiles: [Val<'c>; 2],
    element: Type<'c>,
    sums: Type<'c>,
}

fn layout<'c>(code: Code<'c>, text: &'static str) -> PassResult<'c, Layout> {
    text.parse()
        .map_err(|error| layout_error(code.builder.location, error))
}

fn kernel<'c>(context: &'c Context, module: BlockRef<'c, 'c>) -> PassResult<'c> {
    let location = Location::unknown(context);
    let element = Type::float16(context);
    let matrix = |rows, columns| MemRefType::new(element, &[rows, columns], None, None).into();
    let kernel = Kernel::new(
        location,
        module,
        &[matrix(M, K), matrix(N, K), matrix(M, N)],
    );
    let code = kernel.code;
    let &[a, w, c] = kernel.arguments.as_slice() else {
        return Err(layout_error(location, "a kernel without its arguments"));
    };
    let ring = || code.alloc(&[STAGES, TILE, DEPTH], element, &layout(code, RING)?);
    let gemm = Gemm {
        operands: [a, w, c],
        rings: [ring()?, ring()?],
        pipeline: code.pipeline(STAGES)?,
        tiles: [code.index(M / TILE)?, code.index(N / TILE)?],
        element,
        sums: code.fragment(&[TILE, TILE], Type::float32(context), &layout(code, SUMS)?)?,
    };
    // One warp copies; two warpgroups multiply, each its own tile.
    code.scope(Level::Warpgroup, [0, 1], Some(40), |code| {
        code.scope(Level::Warp, [0, 1], None, |code| gemm.produce(code))
    })?;
    code.scope(Level::Warpgroup, [1, 3], Some(232), |code| {
        code.thread_groups(Level::Warpgroup, |code| gemm.consume(code))
    })?;
    kernel.finish(module, "gemm", 384)
}

impl<'c> Gemm<'c> {
    /// Fills a stage for each step along k of each tile.
    fn produce(&self, code: Code<'c>) -> PassResult<'c> {
        code.for_tiles(&self.tiles, (RasterOrder::Groups, 8), false, |code, at| {
            let end = code.index(K)?;
            code.for_each(end, DEPTH, &[], |code, k, _| {
                let (slot, stage) = code.acquire(self.pipeline)?;
                let [a, w, _] = self.operands;
                let rows = [M, N].into_iter().zip([a, w]).zip(self.rings).zip(at);
                for (((rows, from), ring), at) in rows {
                    let origin = [code.times(*at, TILE)?, k];
                    let from = code.global_box(from, &[rows, K], &origin, &[TILE, DEPTH])?;
                    code.copy_signal(from, self.stage(code, ring, stage)?, slot, false)?;
                }
                code.commit_slot(self.pipeline, slot)?;
                Ok(Vec::new())
            })?;
            Ok(())
        })
    }

    /// Multiplies and stores every other tile of the CTA.
    fn consume(&self, code: Code<'c>) -> PassResult<'c> {
        code.for_tiles(&self.tiles, (RasterOrder::Groups, 8), true, |code, at| {
            let first = self.multiply(code, None)?;
            let more = code.index(K / DEPTH - 1)?;
            // While one product is under way the stage of the one before is given back.
            let last = code.for_each(more, 1, &first, |code, _, carried| {
                let [sum, slot] = self.multiply(code, Some(carried[0]))?;
                let sum = code.wait_products(sum, 1)?;
                code.release_slot(self.pipeline, carried[1])?;
                Ok(vec![sum, slot])
            })?;
            let sum = code.wait_products(last[0], 0)?;
            code.release_slot(self.pipeline, last[1])?;
            self.store(code, sum, at)
        })
    }

    /// The product of the next stage: the sums, and the stage's slot.
    fn multiply(&self, code: Code<'c>, acc: Option<Val<'c>>) -> PassResult<'c, [Val<'c>; 2]> {
        let (slot, stage) = code.wait_slot(self.pipeline)?;
        let [a, w] = self.rings;
        let operands = [self.stage(code, a, stage)?, self.stage(code, w, stage)?];
        let sum = code.gemm_async(operands, acc, self.sums, [false, true])?;
        Ok([sum, slot])
    }

    fn store(&self, code: Code<'c>, sum: Val<'c>, at: &[Val<'c>]) -> PassResult<'c> {
        let half = code.fragment(&[TILE, TILE], self.element, &layout(code, SUMS)?)?;
        let half = code.builder.value("axe.cast", &[sum], half, &[])?;
        let origin = [code.times(at[0], TILE)?, code.times(at[1], TILE)?];
        let to = code.global_box(self.operands[2], &[M, N], &origin, &[TILE, TILE])?;
        code.store(half, to)
    }

    fn stage(&self, code: Code<'c>, ring: Val<'c>, stage: Val<'c>) -> PassResult<'c, Val<'c>> {
        let zero = code.index(0)?;
        let layout = layout(code, STAGE)?;
        let r#type = code.memref(&[TILE, DEPTH], self.element, &layout, Some("shared"))?;
        code.slice(ring, &[stage, zero, zero], r#type)
    }
}

/// The function that launches the kernel, with a CTA for each multiprocessor of an H100 or H200.
fn host<'c>(context: &'c Context, module: BlockRef<'c, 'c>) -> PassResult<'c> {
    let location = Location::unknown(context);
    let matrix = |rows, columns| {
        RankedTensorType::new(&[rows, columns], Type::float16(context), None).into()
    };
    let [a, w, c]: [Type<'c>; 3] = [
        matrix(M as u64, K as u64),
        matrix(N as u64, K as u64),
        matrix(M as u64, N as u64),
    ];
    let (region, arguments, builder) = Builder::at_end(module, location).region(&[a, w]);
    let empty = builder.value("tensor.empty", &[], c, &[])?;
    let [ctas, one] = [builder.index(132)?, builder.index(1)?];
    let results = launch(&builder, "gemm", [ctas, one, one], &arguments, &[empty])?;
    builder.operation("func.return", &results, &[], &[], Vec::new())?;
    module.append_operation(func::func(
        context,
        StringAttribute::new(context, "main"),
        TypeAttribute::new(FunctionType::new(context, &[a, w], &[c]).into()),
        region,
        &[],
        location,
    ));
    Ok(())
}

fn main() -> ExitCode {
    axe_nvidia::register();
    let registry = DialectRegistry::new();
    register_all_dialects(&registry);
    axe_dialect::register(&registry);
    let context = Context::new();
    context.append_dialect_registry(&registry);
    context.load_all_available_dialects();
    let module = Module::new(Location::unknown(&context));
    if let Err(error) = kernel(&context, module.body()).and_then(|()| host(&context, module.body()))
    {
        eprintln!("error: {}", error.message);
        return ExitCode::FAILURE;
    }
    if !module.as_operation().verify() {
        return ExitCode::FAILURE;
    }
    println!("{}", module.as_operation());
    ExitCode::SUCCESS
}
