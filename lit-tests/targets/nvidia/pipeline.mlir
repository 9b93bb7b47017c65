// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=logical" | FileCheck %s --check-prefix=LOGICAL
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=scheduled" | FileCheck %s --check-prefix=SCHEDULED
// RUN: axe-opt %s --axe-nvidia="target=sm_80 until=dispatched" | FileCheck %s --check-prefix=DISPATCHED
// RUN: axe-opt %s --axe-nvidia="target=sm_80 until=target" | FileCheck %s --check-prefix=TARGET
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=nvvm" | FileCheck %s --check-prefix=NVVM
// `chip` is what `target` was called, and is still read.
// RUN: axe-opt %s --axe-nvidia=chip=sm_90a | FileCheck %s --check-prefix=PTX
// RUN: not axe-opt %s --axe-nvidia=target=sm_10 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not axe-opt %s --axe-nvidia="target=sm_80 until=metal" 2>&1 | FileCheck %s --check-prefix=LEVEL

// LOGICAL: axe.gemm
// LOGICAL-NOT: linalg.
// SCHEDULED: axe.launch @[[KERNEL:.*]] grid
// SCHEDULED: axe.kernel @
// DISPATCHED: axe.launch @[[KERNEL:.*]] grid
// DISPATCHED: axe.kernel @{{.*}}plan = {chip = "sm_80", shared_bytes = {{[0-9]+}} : i64}
// DISPATCHED: axe.gemm {{.*}}schedule = "mma.sync"{{.*}}plan = {a = {{.*}}, atom = "m16n8k16", b = {{.*}}, d = {{.*}}}
// TARGET: axe.launch @kernels::@{{.*}} grid({{.*}}) {{.*}}{shared_bytes = {{[0-9]+}} : i64, threads = {{[0-9]+}} : i64}
// TARGET: gpu.func
// TARGET: nvvm.mma.sync
// NVVM: llvm.func @{{.*}} attributes {gpu.kernel, {{.*}}nvvm.kernel, {{.*}}nvvm.reqntid
// PTX: gpu.binary @kernels
// PTX-SAME: .version 9.0
// PTX-SAME: .target sm_90a
// Lines of the source are named.
// PTX-SAME: .loc
// PTX-SAME: wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k16.f32.f16.f16
// CHIP: error: axe-nvidia: unknown chip 'sm_10': expected one of sm_80, sm_86, sm_89, sm_90a
// LEVEL: error: axe-nvidia: unknown level 'metal': expected one of logical, scheduled, dispatched, target, nvvm, ptx

func.func @mm(%a: tensor<1024x512xf16>, %b: tensor<512x1024xf16>) -> tensor<1024x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1024x1024xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %c = linalg.matmul ins(%a, %b : tensor<1024x512xf16>, tensor<512x1024xf16>) outs(%start : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %c : tensor<1024x1024xf32>
}
