// RUN: axe-opt %s --axe-dispatch-schedules="target=sm_90a explain" --axe-lower-schedules 2>&1 | FileCheck %s

// Storage that a barrier of the CTA separates shares bytes: two phases that need more than a CTA has together.
#a = #axe.layout<S[(192, 256) : (256, 1)]>
#b = #axe.layout<S[(256, 160) : (160, 1)]>
#row = #axe.layout<S[256 : 1]>
#held = #axe.layout<S[(128, 2) : (1@thread, 1@reg)]>

// CHECK-LABEL: kernel @phases
// CHECK-NEXT: axe.alloc -> shared.lifetimes
// CHECK-NEXT: | 197632 bytes for 361472
// CHECK-NEXT: | [0, 196608) memref<192x256xf32, {{.*}}>, in use from operation 4 of the kernel to 5
// CHECK-NEXT: | [196608, 197632) memref<256xf32, {{.*}}>, in use from operation 5 of the kernel to 9
// CHECK-NEXT: | [0, 163840) memref<256x160xf32, {{.*}}>, in use from operation 7 of the kernel to 9
// Copies that are not waited for keep their memory; so does what is in use on both sides of every barrier, or where warps meet alone.
// CHECK-LABEL: kernel @apart
// CHECK-NOT: shared.lifetimes
// The barrier shows the stores before it to what comes after it.
// CHECK: gpu.func @phases
// CHECK: nvvm.fence.proxy
// CHECK-NEXT: nvvm.barrier0
axe.kernel @phases(%x: memref<192x256xf32>, %y: memref<256x160xf32>, %z: memref<256xf32>) threads(128) {
  %c0 = arith.constant 0 : index
  %a = axe.alloc : memref<192x256xf32, #a, #axe.space<shared>>
  %r = axe.alloc : memref<256xf32, #row, #axe.space<shared>>
  %b = axe.alloc : memref<256x160xf32, #b, #axe.space<shared>>
  axe.copy %x to %a : memref<192x256xf32> to memref<192x256xf32, #a, #axe.space<shared>>
  axe.scope warp [0, 4) {
    %part = axe.slice %a[%c0, %c0] : memref<192x256xf32, #a, #axe.space<shared>> to memref<256xf32, #row, #axe.space<shared>>
    %v = axe.copy %part : memref<256xf32, #row, #axe.space<shared>> -> tensor<256xf32, #held>
    axe.copy %v to %r : tensor<256xf32, #held> to memref<256xf32, #row, #axe.space<shared>>
  }
  axe.barrier
  axe.copy %y to %b : memref<256x160xf32> to memref<256x160xf32, #b, #axe.space<shared>>
  axe.barrier
  axe.scope warp [0, 4) {
    %v = axe.copy %r : memref<256xf32, #row, #axe.space<shared>> -> tensor<256xf32, #held>
    axe.copy %v to %z : tensor<256xf32, #held> to memref<256xf32>
    axe.copy %b to %y : memref<256x160xf32, #b, #axe.space<shared>> to memref<256x160xf32>
  }
  axe.return
}

axe.kernel @apart(%z: memref<256xf32>) threads(128) {
  %a = axe.alloc : memref<256xf32, #row, #axe.space<shared>>
  %b = axe.alloc : memref<256xf32, #row, #axe.space<shared>>
  %c = axe.alloc : memref<256xf32, #row, #axe.space<shared>>
  axe.copy async %z to %a : memref<256xf32> to memref<256xf32, #row, #axe.space<shared>>
  %first = axe.commit : !axe.token
  axe.wait {pending = 1 : i64}
  axe.barrier
  axe.copy %z to %b : memref<256xf32> to memref<256xf32, #row, #axe.space<shared>>
  axe.scope warp [0, 4) {
    axe.barrier
    axe.copy %b to %z : memref<256xf32, #row, #axe.space<shared>> to memref<256xf32>
  }
  axe.copy %z to %c : memref<256xf32> to memref<256xf32, #row, #axe.space<shared>>
  axe.return
}
