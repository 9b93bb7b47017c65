// The operand that is read once makes room in the L2 cache for the other.
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=scheduled" | FileCheck %s
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=target" | FileCheck %s --check-prefix=TARGET
// RUN: sed "s/, evict_first = \"b\"//" %s | axe-opt --axe-nvidia="target=sm_90a until=scheduled" | FileCheck %s --check-prefix=NONE
// RUN: sed "s/\"b\"/\"c\"/" %s | not axe-opt --axe-nvidia="target=sm_90a until=scheduled" 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: sed "s/tile = [^,]*, [^,]*, [^,]*, //" %s | not axe-opt --axe-nvidia="target=sm_90a until=scheduled" 2>&1 | FileCheck %s --check-prefix=ALONE

// CHECK-LABEL: axe.kernel
// CHECK: axe.copy async %{{.*}} signal %[[SLOT:[^ ]*]] : memref<64x64xf16
// CHECK: axe.copy async %{{.*}} signal %[[SLOT]] options = {l2 = "evict_first"} : memref<128x64xf16
// TARGET: nvvm.cp.async.bulk.tensor.shared.cluster.global
// TARGET-NOT: l2_cache_hint
// TARGET: nvvm.cp.async.bulk.tensor.shared.cluster.global
// TARGET-SAME: l2_cache_hint
// NONE-NOT: evict_first
// WRONG: expected "a" or "b" as 'evict_first' of axe.plan, got "c"
// ALONE: expected 'tile' with 'evict_first' in axe.plan
func.func @f(%a: tensor<64x4096xf16>, %b: tensor<4096x4096xf16>) -> tensor<64x4096xf16> {
  %d = axe.gemm %a, %b {trans_b, axe.plan = {mainloop = "wgmma", tile = array<i64: 64, 128, 64>, evict_first = "b"}} : tensor<64x4096xf16>, tensor<4096x4096xf16> -> tensor<64x4096xf16>
  return %d : tensor<64x4096xf16>
}

// Without a tile of its own the plan is the cost model's, which hints at weights that one row of tiles reads, and at none that several read.
// RUN: sed -e "s/mainloop = .*\"b\"/mainloop = \"wgmma\"/" -e "s/64x4096xf/16x4096xf/g" %s | axe-opt --axe-nvidia="target=sm_90a until=scheduled" | FileCheck %s --check-prefix=MODEL
// RUN: sed -e "s/mainloop = .*\"b\"/mainloop = \"wgmma\"/" -e "s/64x4096xf/1024x4096xf/g" %s | axe-opt --axe-nvidia="target=sm_90a until=scheduled" | FileCheck %s --check-prefix=NONE
// MODEL: axe.copy async %{{.*}} options = {l2 = "evict_first"}
