//! How fast a chip is: what the planner's cost model counts with. They are fitted to timings (docs/performance.md,
//! "Tuning"), where no source is named.

/// Rates of kernels whose warps all copy and multiply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MmaRates {
    /// Products of 16-bit floats that a multiprocessor forms in a clock, as the model's other terms leave them. On sm_90
    /// large tiles reach 1270 of the 2048 that the architecture's white paper gives, whose full rate needs wgmma.
    pub half_products: f64,
    /// The same of tf32.
    pub tf32_products: f64,
    /// The same of 8-bit elements.
    pub byte_products: f64,
    /// Scalar multiply-adds of a multiprocessor in a clock.
    pub scalar_products: f64,
    /// Bytes that a multiprocessor reads from L2 in a clock, as other kernels than products are planned.
    pub l2_bytes: f64,
    /// The same of the tiles of products.
    pub loaded_bytes: f64,
    /// Bytes that a multiprocessor moves to and from shared memory in a clock.
    pub shared_bytes: f64,
    /// Clocks for a CTA to start, fill its pipeline and store its results, as other kernels than products are planned.
    pub overhead: f64,
    /// Clocks of a product's kernel beside its tiles.
    pub start: f64,
    /// Clocks by which each CTA is started.
    pub start_of_cta: f64,
    /// Clocks until a CTA's first stage is there, and its last sum.
    pub fill: f64,
    /// Clocks from the copies of a stage until it is there.
    pub latency: f64,
    /// Clocks of a step beside its products, and of the loads and products of 32 bytes of k that wait for each other.
    pub barrier: f64,
    /// See [`Self::barrier`].
    pub chain: f64,
    /// Clocks in which a thread has elements that it loads by themselves, and clocks of each: alone, and behind the step's products.
    pub element_latency: f64,
    /// See [`Self::element_latency`].
    pub element: f64,
    /// See [`Self::element_latency`].
    pub hidden_element: f64,
    /// Clocks by which a multiprocessor issues copies of a byte: by 16 bytes a thread, by 8, by 4, and by single elements.
    pub copied: [f64; 4],
    /// Clocks in which a multiprocessor stores an element of a result: in pairs of a fragment, and along rows through shared
    /// memory, one by one and in vectors.
    pub stored: [f64; 3],
    /// Bytes that the chip reads from memory, or writes, in a clock.
    pub memory_bytes: f64,
    /// How much longer results take to write whose rows begin inside a sector.
    pub within_sectors: f64,
    /// Clocks by which a second kernel, which adds parts up, is later done than the first.
    pub parts_start: f64,
    /// Bytes of parts' sums that the chip moves in a clock.
    pub sum_bytes: f64,
}

impl MmaRates {
    /// Of an H200: fitted to its timings, where there were none to those of an H100, whose memory is slower (docs/performance.md).
    pub const H200: Self = Self {
        half_products: 936.0,
        tf32_products: 490.0,
        byte_products: 2600.0,
        scalar_products: 100.0,
        l2_bytes: 40.0,
        loaded_bytes: 60.2,
        shared_bytes: 168.0,
        overhead: 3000.0,
        start: 299.0,
        start_of_cta: 6.19,
        fill: 150.0,
        latency: 1080.0,
        barrier: 147.0,
        chain: 39.1,
        element_latency: 28.2,
        element: 9.65,
        hidden_element: 12.2,
        copied: [0.0255, 0.0369, 0.0299, 0.0303],
        stored: [0.235, 0.161, 0.234],
        memory_bytes: 2030.0,
        within_sectors: 1.84,
        parts_start: 2540.0,
        sum_bytes: 3340.0,
    };

    /// Those that chips are planned with which were not measured: of an H200, with what is likely of the 1024 products
    /// of an A100 (its white paper).
    pub const USUAL: Self = Self {
        half_products: 870.0,
        tf32_products: 435.0,
        ..Self::H200
    };
}

/// Rates of kernels of one warp that copies and warpgroups that multiply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WgmmaRates {
    /// Products of 8-bit elements that a multiprocessor forms in a clock by wgmma, half as many of twice the bytes: 4096
    /// at best (H100 white paper: 512 FMA of 16-bit floats a clock for each of 4 tensor cores), and less because the chip
    /// runs into its power.
    pub products: f64,
    /// What one warpgroup that is alone with several blocks of 64 rows reaches of that.
    pub alone: f64,
    /// What warpgroups reach that multiply several blocks of 64 rows each together with others.
    pub several: f64,
    /// What warpgroups reach at tiles of their own.
    pub pingpong: f64,
    /// Clocks of a step beside its products.
    pub step: f64,
    /// Clocks in which a multiprocessor takes in a line.
    pub line: f64,
    /// Clocks in which it gets a line from the L2 cache that it asks for, where no other and where all ask as well.
    pub asked_line: [f64; 2],
    /// How much longer that takes for a line of a box that is in two lines of the L2 cache, and for one that begins inside a sector.
    pub crossing: [f64; 2],
    /// Clocks for a line of a box that the tensor has in part: whole sectors of it, and others.
    pub partial_line: [f64; 2],
    /// The same of a narrower box, of what is left in the last step.
    pub narrow_line: [f64; 2],
    /// Clocks for a line of a box that is not in the tensor.
    pub absent_line: f64,
    /// Clocks from the request of a stage until it is free again, beside its reads: what a stage takes at least, shared among all
    /// of the ring.
    pub latency: f64,
    /// How much longer the first stage takes than others.
    pub ramp: f64,
    /// Bytes that the chip reads from memory in a clock.
    pub memory_bytes: f64,
    /// Bytes of results that the chip writes to memory in a clock, in whole sectors.
    pub written_bytes: f64,
    /// How much longer results take to write whose rows begin inside a sector.
    pub within_sectors: f64,
    /// How much longer they take to write where warpgroups have more than 64 rows, which leave in subtiles of 128 bytes a row,
    /// through one slot or two.
    pub high_subtiles: f64,
    /// Bytes of operands and results up to which the L2 cache may have them when a kernel begins, as those of several products
    /// in turn; and their share of the time that memory takes.
    pub cached_bytes: f64,
    /// See [`Self::cached_bytes`].
    pub cached: f64,
    /// Clocks of a tile beside its products, reads and rows of results: of all consumers together, and of one in a ping-pong
    /// schedule.
    pub overhead: [f64; 2],
    /// Clocks in which a row of an epilogue subtile is formed and stored.
    pub subtile_row: f64,
    /// How much longer that takes through one slot, which is written once the subtile before it is read.
    pub slot_waits: f64,
    /// How much longer a tile's rows take than these clocks where consumers of a ping-pong schedule do nothing but store.
    pub pingpong_stores: f64,
    /// Further clocks of a row of a tile that ends inside a pair of sectors, and inside a sector: what is left of a row leaves in
    /// narrower subtiles, and by threads.
    pub uneven: [f64; 2],
    /// Further clocks of a row of a subtile where the result's rows begin inside a line, inside a sector, and where threads store
    /// them.
    pub shifted: [f64; 3],
    /// Clocks for which two, four and eight CTAs that exchange their sums of a tile wait for each other, and bytes that each sends in a
    /// clock.
    pub exchange: [f64; 3],
    /// See [`Self::exchange`].
    pub exchanged_bytes: f64,
    /// Clocks by which a second kernel, which adds parts up, is later done than the first.
    pub parts_start: f64,
    /// Bytes of parts' sums that the chip moves in a clock.
    pub sum_bytes: f64,
    /// Clocks by which clusters of two and of four start later.
    pub cluster_start: [f64; 2],
    /// Clocks by which clusters of four start later still where they take no time otherwise, and the clocks of theirs of which each is
    /// one of those less: what a kernel does hides the start of the next. Of an H100: products of 3 to 5 microseconds.
    pub short_cluster: [f64; 2],
    /// Clocks of a kernel beside all of this, and of each CTA that it starts.
    pub start: f64,
    /// See [`Self::start`].
    pub start_of_cta: f64,
    /// Clocks between two kernels of which the second does not start while the first one runs.
    pub apart: f64,
    /// Clocks by which a copy of an operand is done before the product, and bytes that it moves in a clock.
    pub copy_start: f64,
    /// See [`Self::copy_start`].
    pub copied_bytes: f64,
    /// Clocks of the products of 64 x 128 x 128 in 8 bits, at the rate of the H100 white paper.
    pub block_products: f64,
    /// Clocks between them for a warpgroup whose blocks have scales: to notice that they are done, to add 64 x 128 sums,
    /// and to start the next.
    pub block_added: f64,
}

impl WgmmaRates {
    /// Of an H200: fitted to its timings (docs/performance.md, "Exchanged bytes, CTAs of `mma.sync`, and narrow boxes").
    pub const H200: Self = Self {
        products: 3260.0,
        alone: 1.03,
        several: 0.92,
        pingpong: 1.04,
        step: 17.6,
        line: 1.75,
        asked_line: [1.21, 1.71],
        crossing: [1.67, 2.37],
        partial_line: [3.13, 3.02],
        narrow_line: [2.0, 5.0],
        absent_line: 3.23,
        latency: 2840.0,
        ramp: 2.22,
        memory_bytes: 2650.0,
        written_bytes: 4050.0,
        within_sectors: 1.67,
        high_subtiles: 1.34,
        cached_bytes: 0.78e6,
        cached: 0.492,
        overhead: [414.0, 579.0],
        subtile_row: 4.6,
        slot_waits: 1.28,
        pingpong_stores: 1.54,
        uneven: [0.93, 6.39],
        shifted: [0.418, 2.48, 5.46],
        exchange: [385.0, 484.0, 1340.0],
        exchanged_bytes: 37.4,
        parts_start: 2100.0,
        sum_bytes: 1940.0,
        cluster_start: [895.0, 474.0],
        short_cluster: [518.0, 5.73],
        copy_start: 1600.0,
        copied_bytes: 2370.0,
        start: 1070.0,
        start_of_cta: 5.24,
        apart: 796.0,
        block_products: 256.0,
        block_added: 130.0,
    };
}

/// Rates of attention in one kernel: a warp that copies, and warpgroups that multiply and form exponentials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionRates {
    /// Products of 16-bit floats that a multiprocessor forms in a clock by wgmma (H100 white paper: 512 for each of 4 tensor
    /// cores), less what it loses to its power.
    pub products: f64,
    /// `ex2` of a multiprocessor in a clock (CUDA C++ Programming Guide, "Arithmetic Instructions": 16).
    pub exponentials: f64,
    /// Lanes of a multiprocessor.
    pub lanes: f64,
    /// Bytes that the chip reads from memory in a clock without tiles waiting for them. Of an H200's 2500 at the clocks of such
    /// kernels; measured: causal kernels that read 1230 are not slower for it, those that read 1850 and more take 1.1 to 1.2
    /// times as long.
    pub memory_bytes: f64,
    /// The part of a block's shorter work that the longer does not hide, with one, two and three warpgroups: one that is alone multiplies
    /// and then forms exponentials; several do so in turns.
    pub exposed: [f64; 3],
    /// How much longer a block takes in a cluster of two CTAs that bring it for each other: that of two warpgroups whose products take by far the
    /// longest, since power that L2 does not take is the tensor cores', and any other, since what keeps one of the CTAs keeps both. Measured
    /// for 8192 places: heads of 128 and 160 0.978 and 0.991, of 112, 144, 192 and 224 0.998 to 1.003; of 48 and 96 1.041 and 1.030, of 64,
    /// by three warpgroups, 1.071.
    pub pairs: [f64; 2],
    /// Clocks that a kernel of such clusters takes longer: 57 us became 61, 67 us 68.
    pub pairs_start: f64,
    /// Clocks in which the tensor memory accelerator asks for a sector of a box's row that begins inside of one, and for a row of it. Measured, of rows
    /// of 32, 64 and 128 bytes, which touch two, three and five sectors: 2.8 to 3.2, 3.8 to 4.0, and 6.
    pub requests: [i64; 2],
    /// Clocks of a block of keys beside its products, exponentials and reads: barriers, and waits for the first scores; of a small
    /// tile its part of them.
    pub block: f64,
    /// How much longer a block takes where a second loop masks the diagonal. Measured, not explained: 1.07 to 1.23 for heads of
    /// 64 and 128, 2048 to 16384 places, blocks of 160 to 224 keys beside 128; spills of up to 60 bytes are part of it.
    pub second_loop: f64,
    /// The same three of operands of 8 bits, whose exponentials take about as long as their products, and more: [`Self::exposed`],
    /// [`Self::block`] and [`Self::second_loop`]. Measured for 8192 places, in TFLOP/s: heads of 64, three warpgroups of 128 keys 636, two
    /// of 192 keys 591; heads of 128, two of 192 keys 785 and of 160 keys 840, three of 96 keys 872; of causal ones 746, 813 and 822.
    pub narrow: ([f64; 3], f64, f64),
    /// Keys of a block of 8 bits at most that leave ptxas registers to work with, and how much longer exponentials of more take:
    /// heads of 64, 256 keys 535 TFLOP/s and 192 keys 591.
    pub narrow_keys: (i64, f64),
    /// Clocks of a tile beside its blocks: the first scores, the last product, the store. Those of any tile, and those of one that is not small,
    /// of which a small one has its part. Measured for 16 to 64 places in 2^23 elements of heads of 32: 765 to 1230 clocks a tile of 64
    /// rows with its one block.
    pub tile: [f64; 2],
    /// Bytes of results that the threads of a multiprocessor store in a clock without shared memory, four beside each other.
    /// Measured for heads of 256: 64 keys are quicker than 80, which need it, for 2048 places, and not for 8192.
    pub stored_bytes: f64,
    /// Clocks of a tile of each of the products that attention is otherwise, beside its products: measured for 16 places.
    pub apart: f64,
    /// Bytes of scores and weights that those kernels move in a clock where the L2 cache has not all of them: 402 MB take 139,000 clocks
    /// beside what else there is of 91 us (2048 problems of 128 places).
    pub scores_bytes: f64,
    /// Clocks between kernels that wait for each other.
    pub kernel_gap: f64,
    /// Bytes of keys and values up to which they may be in the L2 cache when a kernel begins.
    pub cached_bytes: f64,
    /// Bytes of keys and values that come from memory in a clock of 1.755 GHz where a few rows of queries read them (decode): measured at
    /// 4.1 to 4.36 TB/s.
    pub streamed_bytes: f64,
    /// Those that one multiprocessor reads at most: measured with 64 of them at 3.9 TB/s beside what else there is to do.
    pub streamed_by_one: f64,
    /// Part of a block's work that its reads from memory do not hide.
    pub unhidden: f64,
    /// Clocks for a part of a row in the kernel that merges parts.
    pub merged: f64,
}

impl AttentionRates {
    /// Of an H200.
    pub const H200: Self = Self {
        products: 1850.0,
        exponentials: 16.0,
        lanes: 128.0,
        memory_bytes: 1500.0,
        exposed: [0.6, 0.12, 0.08],
        pairs: [0.98, 1.05],
        pairs_start: 5000.0,
        requests: [1, 1],
        block: 700.0,
        second_loop: 1.12,
        narrow: ([0.6, 0.3, 0.15], 250.0, 1.07),
        narrow_keys: (192, 1.1),
        tile: [200.0, 2300.0],
        stored_bytes: 8.0,
        apart: 300.0,
        scores_bytes: 2900.0,
        kernel_gap: 2500.0,
        cached_bytes: 32e6,
        streamed_bytes: 2450.0,
        streamed_by_one: 36.0,
        unhidden: 0.03,
        merged: 40.0,
    };
}

/// Rates of kernels of rows whose columns have a stride, in operations of lanes: fitted to 210 kernels of softmax of ten shapes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StridedRates {
    /// Bytes that a multiprocessor moves from and to memory in a clock.
    pub moved_bytes: f64,
    /// Operations of lanes that it does in a clock (four schedulers of a warp each).
    pub operations: f64,
    /// Bytes that take as long as beginning to access memory elsewhere, at the boundary of a sector and inside of one.
    pub beginning_bytes: [f64; 2],
    /// Operations of an access.
    pub access: f64,
    /// Operations on an element of another lane's or warp's state.
    pub exchange: f64,
    /// Operations of an element's way through shared memory.
    pub staged: f64,
    /// What part of the shorter of both, moving and computing, does not overlap with the longer.
    pub apart: f64,
    /// Threads that keep a multiprocessor busy.
    pub busy_threads: f64,
}

impl StridedRates {
    /// Of an H100, for all chips.
    pub const H100: Self = Self {
        moved_bytes: 15.0,
        operations: 128.0,
        beginning_bytes: [6.0, 13.0],
        access: 6.0,
        exchange: 9.0,
        staged: 4.0,
        apart: 0.4,
        busy_threads: 1024.0,
    };
}
