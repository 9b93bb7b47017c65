// RUN: axe-opt %s --axe-dispatch-schedules="target=sm_80 explain" --axe-lower-schedules 2>&1 | FileCheck %s
// RUN: axe-opt %s --axe-dispatch-schedules=target=sm_80 --axe-verify-schedules

// Boxes of register tensors: no instruction where the elements stay, through shared memory where they move.
#sum = #axe.layout<S[(8, 4, 4, 2) : (4@lane, 2@reg, 1@lane, 1@reg)]>
#part = #axe.layout<S[(8, 2, 4, 2) : (4@lane, 2@reg, 1@lane, 1@reg)]>
#moved = #axe.layout<S[(8, 4, 4) : (4@lane, 1@reg, 1@lane)]>
#spread = #axe.layout<S[(2, 4, 4, 3) : (4@lane, 3@reg, 1@lane, 1@reg)]>

// CHECK-LABEL: kernel @boxes
// CHECK: axe.extract_slice -> registers
// CHECK-NEXT: | r[0] = s[4]
// CHECK-NEXT: | r[1] = s[5]
// CHECK-NEXT: | r[2] = s[6]
// CHECK-NEXT: | r[3] = s[7]
// CHECK: axe.extract_slice -> shared
// CHECK-NEXT: not registers: no register holds, in every thread
// CHECK: | ld.shared [8, 16]
// CHECK: axe.extract_slice -> shared
// CHECK: | ld.shared [8, 12]
axe.kernel @boxes(%x: memref<8x32xf32>, %y: memref<8x16xf32>, %z: memref<8x16xf32>, %w: memref<8x12xf32>) threads(32) {
  %s = axe.copy %x : memref<8x32xf32> -> tensor<8x32xf32, #sum>
  %a = axe.extract_slice %s [0, 16] : tensor<8x32xf32, #sum> -> tensor<8x16xf32, #part>
  axe.copy %a to %y : tensor<8x16xf32, #part> to memref<8x16xf32>
  %b = axe.extract_slice %s [0, 16] : tensor<8x32xf32, #sum> -> tensor<8x16xf32, #moved>
  axe.copy %b to %z : tensor<8x16xf32, #moved> to memref<8x16xf32>
  %c = axe.extract_slice %s [0, 7] schedule = "shared" : tensor<8x32xf32, #sum> -> tensor<8x12xf32, #spread>
  axe.copy %c to %w : tensor<8x12xf32, #spread> to memref<8x12xf32>
  axe.return
}
