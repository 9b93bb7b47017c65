//! Counters of a launch.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// How often one kind of instruction ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Executed {
    /// Warp instructions.
    pub warps: u64,
    /// Thread instructions.
    pub threads: u64,
}

/// What a launch did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Instructions by mnemonic.
    pub instructions: BTreeMap<String, Executed>,
    /// Requests of global loads (warp instructions).
    pub global_load_requests: u64,
    /// 32-byte sectors that they touched.
    pub global_load_sectors: u64,
    /// Requests of global stores and atomics.
    pub global_store_requests: u64,
    /// 32-byte sectors that they touched.
    pub global_store_sectors: u64,
    /// Bytes loaded from global memory by threads.
    pub global_load_bytes: u64,
    /// Bytes stored to global memory by threads.
    pub global_store_bytes: u64,
    /// Shared-memory requests.
    pub shared_requests: u64,
    /// Wavefronts that they took.
    pub shared_wavefronts: u64,
    /// Wavefronts beyond the least possible: bank conflicts.
    pub shared_conflicts: u64,
    /// Bytes that threads moved to or from shared memory.
    pub shared_bytes: u64,
    /// How often each of the 32 banks was used.
    pub banks: Vec<u64>,
    /// Bytes copied by `cp.async`.
    pub cp_async_bytes: u64,
    /// Bytes copied by bulk and tensor copies.
    pub bulk_bytes: u64,
    /// Multiply-adds of `mma.sync`.
    pub mma_macs: u64,
    /// Multiply-adds of `wgmma`.
    pub wgmma_macs: u64,
    /// Multiply-adds of `tcgen05.mma`.
    pub tcgen05_macs: u64,
    /// CTAs run.
    pub ctas: u64,
}

impl Counters {
    pub(crate) fn add(&mut self, other: &Self) {
        for (name, n) in &other.instructions {
            let to = self.instructions.entry(name.clone()).or_default();
            to.warps += n.warps;
            to.threads += n.threads;
        }
        self.banks.resize(32, 0);
        for (to, from) in self.banks.iter_mut().zip(&other.banks) {
            *to += from;
        }
        macro_rules! sum {
            ($($field:ident),*) => { $(self.$field += other.$field;)* };
        }
        sum!(
            global_load_requests,
            global_load_sectors,
            global_store_requests,
            global_store_sectors,
            global_load_bytes,
            global_store_bytes,
            shared_requests,
            shared_wavefronts,
            shared_conflicts,
            shared_bytes,
            cp_async_bytes,
            bulk_bytes,
            mma_macs,
            wgmma_macs,
            tcgen05_macs,
            ctas
        );
    }

    /// All thread instructions.
    #[must_use]
    pub fn thread_instructions(&self) -> u64 {
        self.instructions.values().map(|e| e.threads).sum()
    }

    /// A warp's access to shared memory: `bytes` a lane, addresses of the active lanes.
    ///
    /// Accesses of 4 bytes and fewer take one wavefront of 32 lanes, 8 bytes two of 16, 16 bytes four
    /// of 8; within a wavefront, different words of one bank take one cycle each, and lanes that
    /// read the same word share it (CUDA C++ Programming Guide, "Shared Memory" of compute capability 5.x ff.).
    pub(crate) fn shared_access(&mut self, addresses: &[Option<u64>; 32], bytes: u64) {
        self.banks.resize(32, 0);
        self.shared_requests += 1;
        let words = bytes.div_ceil(4).max(1);
        let lanes = (32 / words).max(1) as usize;
        for group in addresses.chunks(lanes) {
            if group.iter().all(Option::is_none) {
                continue;
            }
            let mut rows: [Vec<u64>; 32] = std::array::from_fn(|_| Vec::new());
            for address in group.iter().flatten() {
                self.shared_bytes += bytes;
                for word in address / 4..address / 4 + words {
                    let bank = (word % 32) as usize;
                    if !rows[bank].contains(&word) {
                        rows[bank].push(word);
                        self.banks[bank] += 1;
                    }
                }
            }
            let waves = rows.iter().map(Vec::len).max().unwrap_or(0).max(1) as u64;
            self.shared_wavefronts += waves;
            self.shared_conflicts += waves - 1;
        }
    }

    /// A warp's access to global memory: `bytes` a lane.
    pub(crate) fn global_access(&mut self, addresses: &[Option<u64>; 32], bytes: u64, store: bool) {
        let mut sectors: Vec<u64> = Vec::with_capacity(64);
        let mut lanes = 0;
        for address in addresses.iter().flatten() {
            lanes += 1;
            for sector in address / 32..=(address + bytes.max(1) - 1) / 32 {
                sectors.push(sector);
            }
        }
        sectors.sort_unstable();
        sectors.dedup();
        let n = sectors.len() as u64;
        if store {
            self.global_store_requests += 1;
            self.global_store_sectors += n;
            self.global_store_bytes += lanes * bytes;
        } else {
            self.global_load_requests += 1;
            self.global_load_sectors += n;
            self.global_load_bytes += lanes * bytes;
        }
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per = |n: u64, d: u64| n as f64 / (d.max(1)) as f64;
        writeln!(f, "CTAs run                     {:>14}", self.ctas)?;
        writeln!(
            f,
            "thread instructions          {:>14}",
            self.thread_instructions()
        )?;
        writeln!(
            f,
            "global loads                 {:>14} requests, {:.2} sectors each, {} bytes",
            self.global_load_requests,
            per(self.global_load_sectors, self.global_load_requests),
            self.global_load_bytes
        )?;
        writeln!(
            f,
            "global stores                {:>14} requests, {:.2} sectors each, {} bytes",
            self.global_store_requests,
            per(self.global_store_sectors, self.global_store_requests),
            self.global_store_bytes
        )?;
        writeln!(
            f,
            "shared accesses              {:>14} requests, {} wavefronts, {} by bank conflicts",
            self.shared_requests, self.shared_wavefronts, self.shared_conflicts
        )?;
        writeln!(
            f,
            "cp.async bytes               {:>14}",
            self.cp_async_bytes
        )?;
        writeln!(f, "bulk and tensor copy bytes   {:>14}", self.bulk_bytes)?;
        writeln!(f, "mma.sync multiply-adds       {:>14}", self.mma_macs)?;
        writeln!(f, "wgmma multiply-adds          {:>14}", self.wgmma_macs)?;
        writeln!(f, "tcgen05.mma multiply-adds    {:>14}", self.tcgen05_macs)?;
        writeln!(
            f,
            "\n{:<56} {:>14} {:>16}",
            "instruction", "warps", "threads"
        )?;
        let mut all: Vec<_> = self.instructions.iter().collect();
        all.sort_by_key(|(name, n)| (std::cmp::Reverse(n.threads), (*name).clone()));
        for (name, n) in all {
            writeln!(f, "{name:<56} {:>14} {:>16}", n.warps, n.threads)?;
        }
        Ok(())
    }
}
