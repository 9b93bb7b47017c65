//! How warp-specialised warpgroups share out a multiprocessor's registers.
//!
//! A kernel is launched with an even share for every thread; `setmaxnreg` then moves registers from the role that
//! copies, whose threads hold little more than addresses and phases, to those that multiply, whose threads hold
//! accumulators (PTX ISA 9.7.20.5).

use crate::facts::chip::MULTIPROCESSOR_REGISTERS;
use crate::vocabulary::WARPGROUP;

/// What `setmaxnreg` counts in (PTX ISA 9.7.20.5).
const STEP: i64 = 8;

/// The registers of a thread that copies and of one that multiplies, beside so many consumers; none where a share is
/// not worth moving, or is not known to leave the copies what they need.
pub(in crate::planner) const fn shared_out(consumers: i64) -> (Option<i64>, Option<i64>) {
    // What CUTLASS 3 leaves its producers (sm90_gemm_tma_warpspecialized_cooperative.hpp: 40 beside two consumers,
    // 32 beside three, flash_fwd_kernel_sm90.h), and enough for the copies of these kernels.
    let copies = match consumers {
        2 => 40,
        3 => 32,
        _ => return (None, None),
    };
    let threads = (1 + consumers) * WARPGROUP;
    let even = MULTIPROCESSOR_REGISTERS / threads / STEP * STEP;
    let gained = (even - copies) / consumers / STEP * STEP;
    (Some(copies), Some(even + gained))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_multiprocessor_has_what_is_shared_out() {
        assert_eq!(shared_out(2), (Some(40), Some(232)));
        assert_eq!(shared_out(3), (Some(32), Some(160)));
        for consumers in 0..=8 {
            let (Some(copies), Some(multiplies)) = shared_out(consumers) else {
                continue;
            };
            let all = (copies + consumers * multiplies) * WARPGROUP;
            assert!(all <= MULTIPROCESSOR_REGISTERS, "{consumers}: {all}");
            for budget in [copies, multiplies] {
                assert!(budget % STEP == 0 && (24..=256).contains(&budget));
            }
        }
    }
}
