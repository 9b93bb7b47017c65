//! What a fragment waits for, in words.

use crate::exec::cluster::Cluster;
use crate::exec::launch::LaunchState;
use crate::exec::warp::Wait;
use crate::units::mbarrier::Mbarrier;

impl Cluster {
    /// What an mbarrier waits for, in words.
    fn mbarrier_state(&self, rank: usize, offset: usize) -> String {
        let shared = self.ctas.get(rank).map(|cta| &cta.shared);
        let bits = shared.and_then(|shared| shared.get(offset..offset + 8));
        let object = bits
            .and_then(|bits| bits.try_into().ok())
            .map(u64::from_le_bytes)
            .map(Mbarrier::decode);
        match object {
            Some(Ok(m)) => format!(
                "its phase {} waits for {} of {} arrivals and {} bytes",
                u32::from(m.phase),
                m.pending,
                m.expected,
                m.tx
            ),
            _ => "which is not initialised".into(),
        }
    }

    /// What a wait is for, in words.
    pub(in crate::exec) fn describe_wait(
        &self,
        launch: &LaunchState<'_>,
        cta: usize,
        wait: Option<&Wait>,
    ) -> String {
        match wait {
            None => "runs (it may be polling)".into(),
            Some(Wait::Barrier { id, .. }) => {
                let barrier = &self.ctas[cta].barriers[*id as usize];
                let arrived: Vec<usize> = barrier.arrivals.iter().map(|(w, _)| *w).collect();
                let expected = barrier
                    .expected
                    .map_or("all threads".into(), |n| format!("{n} threads"));
                format!("waits at barrier {id} for {expected}; warps {arrived:?} have arrived")
            }
            Some(Wait::Cluster { .. }) => {
                format!(
                    "waits at the cluster barrier; {} threads have arrived",
                    self.arrived
                )
            }
            Some(Wait::Lanes { mask }) => format!("waits for lanes {mask:#010x} of its warp"),
            Some(Wait::Converge) => "waits for the other lanes of its warp".into(),
            Some(Wait::Mbarrier {
                rank,
                offset,
                parity,
                ..
            }) => {
                let state = self.mbarrier_state(*rank as usize, *offset as usize);
                let wanted = parity.map_or(String::new(), |p| format!(" phase parity {p} of"));
                format!(
                    "waits for{wanted} the mbarrier {} of CTA rank {rank}; {state}",
                    launch.describe_shared(*offset)
                )
            }
            Some(Wait::Registers { wanted }) => format!(
                "waits for {wanted} registers; the CTA's pool has {}",
                self.ctas[cta].free_registers
            ),
            Some(Wait::Async(what)) => format!("waits for {what}"),
        }
    }
}
