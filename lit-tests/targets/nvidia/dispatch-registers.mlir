// RUN: axe-opt %s --axe-dispatch-schedules="target=sm_80 explain" --axe-lower-schedules 2>&1 | FileCheck %s
// RUN: axe-opt %s --axe-dispatch-schedules="target=sm_80" --axe-lower-schedules --remarks-filter-passed=axe-dispatch --remarks-filter-missed=axe-dispatch --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: remark: [Missed] shfl.sync
// REMARK-DAG: remark: [Passed] shfl.bfly

#rows = #axe.layout<S[(4, 32, 4) : (1@warp, 1@lane, 1@reg)]>
#other = #axe.layout<S[(4, 4, 32) : (1@warp, 1@reg, 1@lane)]>
#columns = #axe.layout<S[(4, 128) : (1@reg, 1@thread)]>
#sums = #axe.layout<S[4 : 1@warp] + R[32 : 1@lane]>

// CHECK-LABEL: kernel @registers
// CHECK: axe.fill -> registers
// CHECK: axe.map -> registers
// CHECK: axe.reduce -> shfl.bfly
// CHECK: | s = combine(s, shfl.bfly(s, 16))
// CHECK: axe.broadcast -> registers
// CHECK: axe.copy -> shfl.sync
// CHECK-NEXT: not registers: no register holds, in every thread
// CHECK: | r[1] = shfl.idx(r[1], l[0] * 8 ^ l[1] * 16 ^ l[2] * 1 ^ l[3] * 2 ^ l[4] * 4 ^ 8)
// CHECK: axe.copy -> shared
// CHECK: not shfl.sync: a warp relayout: the destination holds element 128, the source does not
// CHECK: axe.cast -> cvt
// CHECK: nvvm.shfl.sync bfly
// CHECK: nvvm.barrier0
axe.kernel @registers(%y: memref<4x128xf16>) threads(128) {
  %one = arith.constant 1.0 : f32
  %x = axe.fill %one : f32 -> tensor<4x128xf32, #rows>
  %m = axe.map ins(%x : tensor<4x128xf32, #rows>) -> tensor<4x128xf32, #rows> {
  ^bb0(%e: f32):
    %t = math.tanh %e : f32
    axe.yield %t : f32
  }
  %s = axe.reduce <add> %m dims [1] : tensor<4x128xf32, #rows> -> tensor<4xf32, #sums>
  %b = axe.broadcast %s dims [1] : tensor<4xf32, #sums> -> tensor<4x128xf32, #rows>
  %o = axe.copy %b : tensor<4x128xf32, #rows> -> tensor<4x128xf32, #other>
  %c = axe.copy %o : tensor<4x128xf32, #other> -> tensor<4x128xf32, #columns>
  %h = axe.cast %c : tensor<4x128xf32, #columns> -> tensor<4x128xf16, #columns>
  axe.copy %h to %y : tensor<4x128xf16, #columns> to memref<4x128xf16>
  axe.return
}
