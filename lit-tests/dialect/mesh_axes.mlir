// RUN: axe-opt %s | axe-opt | FileCheck %s

// Places 0 to 3 and 0 to 7; every other device of an axis; an offset.
// CHECK: axe.mesh @pod(dp = 4, tp = 8)
axe.mesh @pod(dp = 4, tp = 8)
axe.mesh @rack(x = 2)
// CHECK: func.func private @whole
func.func private @whole(tensor<64x32xf32, #axe.layout<S[(8, 8, 32) : (1@pod.tp, 32, 1)] + R[4 : 1@pod.dp]>>)
func.func private @others(tensor<4x32xf32, #axe.layout<S[(4, 32) : (2@pod.tp, 1)] + R[2 : 1@rack.x] + 1@pod.tp>>)
func.func private @back(tensor<8x32xf32, #axe.layout<S[(8, 32) : (-1@pod.tp, 1)] + 7@pod.tp>>)

// A module inside has the meshes around it and its own.
module @inner {
  axe.mesh @node(gpu = 8)
  func.func private @both(tensor<8x2xf32, #axe.layout<S[(8, 2) : (1@node.gpu, 1@rack.x)]>>)
  func.func @used(%x: tensor<8x2xf32, #axe.layout<S[(8, 2) : (1@node.gpu, 1@rack.x)]>>) {
    %y = axe.cast %x : tensor<8x2xf32, #axe.layout<S[(8, 2) : (1@node.gpu, 1@rack.x)]>> -> tensor<8x2xf16, #axe.layout<S[(8, 2) : (1@node.gpu, 1@rack.x)]>>
    return
  }
}
