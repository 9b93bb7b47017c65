//! What a NeuronCore has not: operations of threads and their memories, and why.

use axe_dialect::ops;

/// Why an operation has no instructions.
pub(super) fn reason(operation: &str) -> &'static str {
    match operation {
        ops::SCOPE => {
            "each engine has one stream of instructions, and no threads to give roles to: expected its body without the scope"
        }
        ops::BARRIER | ops::ORDERED_BEGIN | ops::ORDERED_END => {
            "engines wait for each other by what they read and write: expected none"
        }
        ops::PIPELINE_CREATE
        | ops::PIPELINE_ACQUIRE
        | ops::PIPELINE_COMMIT
        | ops::PIPELINE_WAIT
        | ops::PIPELINE_RELEASE => {
            "tiles in a loop take turns by themselves: expected copies and products without a pipeline"
        }
        ops::COMMIT | ops::WAIT => {
            "copies and products are waited for by what reads them: expected none"
        }
        ops::PEER
        | ops::ALL_GATHER
        | ops::ALL_GATHER_CREATE
        | ops::REDUCE_SCATTER
        | ops::REDUCE_SCATTER_CREATE => "a NeuronCore has no cluster around it",
        ops::GATHER => "rows that data names have no instruction here",
        ops::SCALED_GEMM => {
            "the tensor engine takes no scales: expected axe.gemm, and axe.map for the scales"
        }
        ops::TOP_K => "trn.max8 finds eight at a time: expected that, and trn.nc_match_replace8",
        ops::GROUPED_GEMM => "groups of rows are data, and loops have constant bounds here",
        ops::TILE_AT => "expected axe.for_tiles or scf.for: the place of a tile is that of a loop",
        ops::MASK => "expected axe.map with a constant, or boxes of the sizes that are there",
        "scf.if" | "scf.while" | "scf.index_switch" => {
            "branches on data have no instruction: engines execute all of the text"
        }
        _ if operation.starts_with("gpu.") => "a NeuronCore has no threads to number",
        _ => "no operation of a kernel of tiles on Trainium",
    }
}
