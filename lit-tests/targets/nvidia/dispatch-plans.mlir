// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a | FileCheck %s
// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a | axe-opt --axe-verify-schedules | FileCheck %s
// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a | axe-opt --axe-dispatch-schedules=target=sm_90a | FileCheck %s
// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a --axe-lower-schedules > %t.at-once
// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_90a | axe-opt --axe-lower-schedules=target=sm_90a | diff - %t.at-once
// RUN: FileCheck %s --check-prefix=LOWERED < %t.at-once

// What is decided stands in the IR, and is lowered as it stands: dispatch changes nothing else, and what it has decided it leaves alone.
#row = #axe.layout<S[(128, 4) : (1@thread, 1@reg)]>
#tile = #axe.layout<Sw<3, 3, 3> o S[(64, 64) : (64, 1)]>
#sums = #axe.layout<S[(4, 2, 8, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>

// CHECK-LABEL: axe.kernel @vectors
// CHECK-SAME: plan = {chip = "sm_90a", shared_bytes = 0 : i64}
// CHECK: axe.copy {{.*}} schedule = "ld.vector" {plan = {offsets = [0], thread = ["(t / 1 mod 128) * 4"], width = 4 : i64}}
// CHECK: axe.map {{.*}} schedule = "registers"
// CHECK-SAME: {plan = {registers = 4 : i64}}
// CHECK: axe.copy {{.*}} schedule = "st.vector" {plan = {offsets = [0], thread = ["(t / 1 mod 128) * 4"], width = 4 : i64}}
// CHECK-NOT: gpu.func
// LOWERED-NOT: axe.kernel
// LOWERED: gpu.func @vectors
axe.kernel @vectors(%x: memref<512xf32>, %y: memref<512xf32>) threads(128) {
  %v = axe.copy %x : memref<512xf32> -> tensor<512xf32, #row>
  %w = axe.map ins(%v : tensor<512xf32, #row>) -> tensor<512xf32, #row> {
  ^bb0(%e: f32):
    %s = arith.addf %e, %e : f32
    axe.yield %s : f32
  }
  axe.copy %w to %y : tensor<512xf32, #row> to memref<512xf32>
  axe.return
}

// The chip's products and boxes. The descriptors' strides and the boxes' coordinates are what a plan is made of.
// CHECK-LABEL: axe.kernel @product
// CHECK-SAME: plan = {chip = "sm_90a", shared_bytes = 49152 : i64}
// CHECK: axe.alloc {plan = {bytes = 8192 : i64, first = 0 : i64}}
// CHECK: axe.alloc {plan = {bytes = 8192 : i64, first = 8192 : i64}}
// CHECK: axe.gemm async {{.*}} schedule = "wgmma"
// CHECK-SAME: plan = {a = {shared = {strides = {leading = 16 : i64, major = "k", stride = 1024 : i64, swizzle = "128B"}}}
// CHECK-SAME: atom = {n = 64 : i64, types = {a = "f16", b = "f16", d = "f32"}}
// CHECK-SAME: instructions = [{a = {offset = 0 : i64}, b = 0 : i64, d = "S[32 : 1]", k = 0 : i64}
// CHECK: axe.wait {{.*}}plan = {}, schedule = "wgmma.wait_group"
// CHECK: axe.copy {{.*}} schedule = "tma.store.staged"
// CHECK-SAME: plan = {subtiles = {columns = 64 : i64, count = 1 : i64, rows = 64 : i64, slots = {bytes = 8192 : i64, count = 4 : i64, first = 16384 : i64, parts = 1 : i64}
// CHECK-SAME: tma = {boxes = [{at = ["x1", "x0"], shared = 0 : i64}], map = {box = [64, 64], element = "f16", extents = [64, 64], strides = [128], swizzle = "128B"}}
axe.kernel @product(%c: memref<64x64xf16>) threads(128) {
  %a = axe.alloc : memref<64x64xf16, #tile, #axe.space<shared>>
  %b = axe.alloc : memref<64x64xf16, #tile, #axe.space<shared>>
  %p = axe.gemm async %a, %b {trans_b} : memref<64x64xf16, #tile, #axe.space<shared>>, memref<64x64xf16, #tile, #axe.space<shared>> -> tensor<64x64xf32, #sums>
  %d = axe.wait %p : tensor<64x64xf32, #sums>
  %h = axe.cast %d : tensor<64x64xf32, #sums> -> tensor<64x64xf16, #sums>
  axe.copy %h to %c : tensor<64x64xf16, #sums> to memref<64x64xf16>
  axe.return
}
