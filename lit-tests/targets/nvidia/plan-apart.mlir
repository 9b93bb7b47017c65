// Why operators are in different kernels, naming the operator that stopped a fusion; on Trainium alike.
// RUN: axe-opt %s --axe-plan-kernels="target=sm_90a explain" -o /dev/null 2>&1 | FileCheck %s
// RUN: axe-opt %s --axe-plan-kernels="target=trn1 explain" -o /dev/null 2>&1 | FileCheck %s --check-prefix=TRN
// RUN: axe-opt %s --axe-plan-kernels="target=sm_90a" --remarks-filter="axe-plan" -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// A product's tiles hold no whole rows, nor whole blocks of these; what follows the reduction's operand is apart because the reduction reads it.
// CHECK: plan loc({{.*}}:[[#@LINE+13]]:{{.*}}): 'axe.reduce' is a kernel apart from 'axe.map' at loc({{.*}}): the tiles of a product hold no whole rows to reduce
// CHECK: plan loc({{.*}}): 'axe.cast' is a kernel apart from 'axe.map' at loc({{.*}}): 'axe.reduce' at loc({{.*}}) reads what that one stores
// CHECK: plan loc({{.*}}): 'axe.gemm' is a kernel apart from 'axe.cast' at loc({{.*}}): a product reads its operands from memory
// CHECK-NOT: 'axe.map' is a kernel apart
// TRN: 'axe.reduce' is a kernel apart from 'axe.map' at loc({{.*}}): the tiles of a product hold no whole rows to reduce
// REMARK: {{.*}}'axe.reduce' is a kernel apart from 'axe.map'
func.func @products(%a: tensor<256x64xf16>, %b: tensor<64x120xf16>, %c: tensor<120x96xf16>) -> (tensor<256xf32>, tensor<256x96xf32>) {
  %p = axe.gemm %a, %b : tensor<256x64xf16>, tensor<64x120xf16> -> tensor<256x120xf32>
  %m = axe.map ins(%p : tensor<256x120xf32>) -> tensor<256x120xf32> {
  ^bb0(%x: f32):
    %y = arith.mulf %x, %x : f32
    axe.yield %y : f32
  }
  %s = axe.reduce <add> %m dims [1] : tensor<256x120xf32> -> tensor<256xf32>
  %h = axe.cast %m : tensor<256x120xf32> -> tensor<256x120xf16>
  %q = axe.gemm %h, %c : tensor<256x120xf16>, tensor<120x96xf16> -> tensor<256x96xf32>
  %e = axe.map ins(%q : tensor<256x96xf32>) -> tensor<256x96xf32> {
  ^bb0(%x: f32):
    %y = math.exp %x : f32
    axe.yield %y : f32
  }
  return %s, %e : tensor<256xf32>, tensor<256x96xf32>
}

// CHECK: 'axe.reduce' is a kernel apart from 'axe.{{map|reduce}}' at loc({{.*}}): it reduces other dimensions than the last
func.func @columns(%x: tensor<64x128xf32>) -> (tensor<128xf32>, tensor<64xf32>) {
  %m = axe.map ins(%x : tensor<64x128xf32>) -> tensor<64x128xf32> {
  ^bb0(%a: f32):
    %y = math.exp %a : f32
    axe.yield %y : f32
  }
  %r = axe.reduce <add> %m dims [1] : tensor<64x128xf32> -> tensor<64xf32>
  %s = axe.reduce <add> %m dims [0] : tensor<64x128xf32> -> tensor<128xf32>
  return %s, %r : tensor<128xf32>, tensor<64xf32>
}

// CHECK: 'axe.transpose' is a kernel apart from 'axe.map' at loc({{.*}}): it moves elements from one tile to another
func.func @turned(%x: tensor<64x128xf32>) -> tensor<128x64xf32> {
  %m = axe.map ins(%x : tensor<64x128xf32>) -> tensor<64x128xf32> {
  ^bb0(%a: f32):
    %y = math.exp %a : f32
    axe.yield %y : f32
  }
  %t = axe.transpose %m [1, 0] : tensor<64x128xf32> -> tensor<128x64xf32>
  return %t : tensor<128x64xf32>
}

// CHECK: 'axe.reduce' is a kernel apart from 'axe.map' at loc({{.*}}): it reduces rows of 32, the rows of that one have 128
func.func @rows(%x: tensor<64x128xf32>) -> (tensor<64xf32>, tensor<256xf32>) {
  %s = axe.reduce <add> %x dims [1] : tensor<64x128xf32> -> tensor<64xf32>
  %b = axe.broadcast %s dims [1] : tensor<64xf32> -> tensor<64x128xf32>
  %m = axe.map ins(%x, %b : tensor<64x128xf32>, tensor<64x128xf32>) -> tensor<64x128xf32> {
  ^bb0(%a: f32, %c: f32):
    %y = arith.subf %a, %c : f32
    axe.yield %y : f32
  }
  %r = tensor.expand_shape %m [[0], [1, 2]] output_shape [64, 4, 32] : tensor<64x128xf32> into tensor<64x4x32xf32>
  %c = tensor.collapse_shape %r [[0, 1], [2]] : tensor<64x4x32xf32> into tensor<256x32xf32>
  %t = axe.reduce <add> %c dims [1] : tensor<256x32xf32> -> tensor<256xf32>
  return %s, %t : tensor<64xf32>, tensor<256xf32>
}
