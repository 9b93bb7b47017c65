// Kernels of sm_90a wait for the launches before them themselves: behind what sets up shared memory, before what reads global
// memory. Launches say so, and packages with them.
// RUN: axe-opt %s --axe-nvidia="target=sm_90a until=target" | FileCheck %s --check-prefix=SM90
// RUN: axe-opt %s --axe-nvidia="target=sm_80 until=target" | FileCheck %s --check-prefix=SM80
// RUN: axe-opt %s --axe-nvidia=target=sm_90a | FileCheck %s --check-prefix=PTX

// SM90-COUNT-2: axe.launch @kernels::{{.*}}{overlaps_previous, shared_bytes
// SM90: llvm.func @mm_0_gemm
// SM90: nvvm.mbarrier.init
// SM90: nvvm.griddepcontrol wait
// SM90-NEXT: nvvm.griddepcontrol launch_dependents
// SM90: nvvm.cp.async.bulk.tensor
// SM90: gpu.func @widen_0
// SM90: nvvm.griddepcontrol wait
// SM90-NEXT: nvvm.griddepcontrol launch_dependents
// SM90: llvm.load

// SM80-NOT: overlaps_previous
// SM80-NOT: griddepcontrol

// PTX: mbarrier.init
// PTX-SAME: bar.sync
// PTX-SAME: griddepcontrol.wait
// PTX-SAME: griddepcontrol.launch_dependents
// PTX-SAME: cp.async.bulk.tensor

func.func @mm(%a: tensor<256x1024xf16>, %b: tensor<1024x256xf16>) -> tensor<256x256xf16> {
  %0 = axe.gemm %a, %b : tensor<256x1024xf16>, tensor<1024x256xf16> -> tensor<256x256xf32>
  %1 = axe.cast %0 : tensor<256x256xf32> -> tensor<256x256xf16>
  return %1 : tensor<256x256xf16>
}

func.func @widen(%a: tensor<256x256xf16>) -> tensor<256x256xf32> {
  %0 = axe.cast %a : tensor<256x256xf16> -> tensor<256x256xf32>
  return %0 : tensor<256x256xf32>
}

// More CTAs than half of the chip's multiprocessors do not let the next kernel start: its CTAs would find those first that are
// free first.
// SM90: llvm.func @many_0_gemm
// SM90: nvvm.griddepcontrol wait
// SM90-NOT: nvvm.griddepcontrol launch_dependents
func.func @many(%a: tensor<2048x128xf16>, %b: tensor<128x1024xf16>) -> tensor<2048x1024xf32> {
  %0 = axe.gemm %a, %b : tensor<2048x128xf16>, tensor<128x1024xf16> -> tensor<2048x1024xf32>
  return %0 : tensor<2048x1024xf32>
}
