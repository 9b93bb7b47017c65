// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=target" | FileCheck %s

// CTAs of a cluster show each other their barriers, and nothing else: no fence of all memory. Roles wait for each other's, and for the
// kernels before, once they know their first tile. The warp that copies stays until its stages are empty, and nobody else does.

// CHECK-LABEL: llvm.func @pairs
// CHECK: nvvm.fence.mbarrier.init
// CHECK: nvvm.cluster.arrive.relaxed
// CHECK-NOT: nvvm.cluster.wait
// CHECK: scf.if
// CHECK: nvvm.cluster.wait
// CHECK: nvvm.griddepcontrol {{ *}}wait
// CHECK: scf.for
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}multicast
// CHECK: nvvm.bar.warp.sync
// CHECK: scf.for
// CHECK-NOT: nvvm.cp.async
// CHECK: mbarrier.try_wait
// CHECK: scf.yield
// CHECK: nvvm.cluster.wait
// CHECK: nvvm.griddepcontrol {{ *}}wait
// CHECK: wgmma.mma_async
// CHECK-NOT: nvvm.cluster
// CHECK: llvm.return
func.func @pairs(%a: tensor<512x1024xf16>, %b: tensor<512x1024xf16>) -> tensor<512x512xf16> {
  %sums = axe.gemm %a, %b {trans_b, axe.plan = {mainloop = "wgmma", tile = array<i64: 128, 128, 64>, consumers = 2 : i64, cluster = array<i64: 2, 1>}}
    : tensor<512x1024xf16>, tensor<512x1024xf16> -> tensor<512x512xf32>
  %c = axe.cast %sums : tensor<512x512xf32> -> tensor<512x512xf16>
  return %c : tensor<512x512xf16>
}
