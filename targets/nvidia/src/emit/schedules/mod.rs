//! The schedules of each operator, by priority: one file a kind.

mod accumulate;
mod all_gather;
mod asynchronous;
mod bulk;
mod call;
mod elementwise;
mod exchange;
mod fill;
mod fma;
mod funnel;
mod gather;
mod groups;
mod load;
mod matrix;
mod mma;
mod mma_async;
mod neighbours;
mod nest;
mod packed;
mod reduce;
mod reduce_scatter;
mod rescale;
mod rings;
mod rows;
mod scalar;
mod share;
mod shuffle;
mod staged;
mod store;
mod subtiles;
mod text;
mod tma;
pub(crate) mod top_k;
mod traffic;
mod transfer;
mod wgmma;

use axe_dialect::ops;
pub(super) use elementwise::convert;
use scalar::Write;
pub(super) use scalar::load_at;
pub(crate) use subtiles::SUBTILE_ROW_BYTES;

use super::schedule::Candidate;
use crate::state::form::Space;
use crate::state::nest::NEST;
use crate::state::site::Site;
use axe_passes::ir::value::name;

type Candidates<'c> = Vec<Box<dyn Candidate<'c> + 'c>>;

/// The schedules that may execute an operator, best first.
pub(super) fn of<'c>(site: Site<'_, 'c>) -> Candidates<'c> {
    match name(site.op).as_str() {
        ops::COPY => of_copy(site),
        ops::BROADCAST | ops::TRANSPOSE | ops::EXTRACT_SLICE => between_registers(),
        ops::FILL if site.result().is_ok() => vec![Box::new(fill::Registers)],
        ops::FILL => vec![Box::new(fill::Memory)],
        ops::GATHER => vec![Box::new(gather::Load)],
        ops::CAST => vec![Box::new(elementwise::Cast)],
        ops::MAP => vec![
            Box::new(call::Call),
            Box::new(elementwise::Map),
            Box::new(rescale::Rescale),
        ],
        ops::MASK => vec![Box::new(elementwise::Mask)],
        ops::REDUCE => vec![Box::new(reduce::Shuffle), Box::new(reduce::Shared)],
        ops::ALL_GATHER => vec![Box::new(all_gather::Cluster), Box::new(all_gather::Cta)],
        ops::REDUCE_SCATTER => vec![Box::new(reduce_scatter::Cluster)],
        ops::GEMM => vec![
            Box::new(wgmma::Wgmma),
            Box::new(mma::MmaSync),
            Box::new(fma::Fma),
        ],
        ops::TOP_K => vec![Box::new(top_k::Warp), Box::new(top_k::Cta)],
        NEST => vec![Box::new(nest::Threads)],
        ops::COMMIT => vec![Box::new(groups::Commit)],
        ops::WAIT => vec![Box::new(groups::Wait), Box::new(wgmma::Wait)],
        ops::BARRIER => vec![Box::new(groups::Barrier)],
        _ => Vec::new(),
    }
}

fn between_registers<'c>() -> Candidates<'c> {
    vec![
        Box::new(exchange::Move),
        Box::new(exchange::Shuffle),
        Box::new(exchange::Shared),
    ]
}

fn of_copy<'c>(site: Site<'_, 'c>) -> Candidates<'c> {
    if traffic::accumulates(site.op) {
        return of_sum(site);
    }
    match (site.registers(0).is_ok(), site.segment(1) > 0) {
        (true, false) => between_registers(),
        (false, false) => vec![
            Box::new(matrix::LoadMatrix),
            Box::new(funnel::FunnelLoad),
            Box::new(load::VectorLoad),
            Box::new(scalar::ScalarLoad),
        ],
        (true, true) => vec![
            Box::new(staged::Staged),
            Box::new(rows::Rows),
            Box::new(matrix::StoreMatrix),
            Box::new(store::VectorStore),
            Box::new(scalar::ScalarStore(Write::Store)),
        ],
        // No other copies complete a stage: its barrier waits for bytes.
        (false, true) if site.segment(3) > 0 => match is_vector(site) {
            true => vec![Box::new(bulk::Load), Box::new(tma::Load)],
            false => vec![Box::new(tma::Load), Box::new(bulk::Load)],
        },
        (false, true) if is_vector(site) && leaves_shared(site) => vec![
            Box::new(bulk::Store),
            Box::new(tma::Store),
            Box::new(transfer::Through),
            Box::new(scalar::ScalarTransfer(Write::Store)),
        ],
        (false, true) => vec![
            Box::new(tma::Load),
            Box::new(tma::Store),
            Box::new(bulk::Store),
            Box::new(asynchronous::CpAsync),
            Box::new(transfer::Through),
            Box::new(scalar::ScalarTransfer(Write::Store)),
        ],
    }
}

/// Whether a copy between pieces of memory moves a vector, which takes no tensor map.
fn is_vector(site: Site<'_, '_>) -> bool {
    let memory = site.memory(0);
    memory.is_ok_and(|memory| memory.shape.iter().filter(|extent| **extent > 1).count() < 2)
}

/// Whether a copy between pieces of memory is asynchronous and out of shared memory.
fn leaves_shared(site: Site<'_, '_>) -> bool {
    let is_shared = |at| {
        site.memory(at)
            .is_ok_and(|memory| memory.space == Space::Shared)
    };
    site.flag("isAsync") && is_shared(0) && !is_shared(1)
}

/// Copies that add: a store would lose what others add.
fn of_sum<'c>(site: Site<'_, 'c>) -> Candidates<'c> {
    if site.registers(0).is_ok() {
        return vec![
            Box::new(staged::Staged),
            Box::new(scalar::ScalarStore(Write::Add)),
        ];
    }
    vec![
        Box::new(tma::Store),
        Box::new(scalar::ScalarTransfer(Write::Add)),
    ]
}
