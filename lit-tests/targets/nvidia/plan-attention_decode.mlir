// One query of each head: heads that share keys and values are packed, keys are split, and a second kernel merges the parts; the
// logarithms of the sums are a second result of whichever kernel stores the first.
// RUN: split-file %s %t
// RUN: axe-opt %t/decode.mlir --axe-plan-kernels=target=sm_90a | FileCheck %s --check-prefix=DECODE
// RUN: axe-opt %t/decode.mlir --axe-plan-kernels="target=sm_90a explain" -o /dev/null 2>&1 | FileCheck %s --check-prefix=EXPLAIN
// RUN: axe-opt %t/masked.mlir --axe-plan-kernels="target=sm_90a explain" 2>&1 | FileCheck %s --check-prefix=MASKED
// RUN: axe-opt %t/sums.mlir --axe-plan-kernels=target=sm_90a | FileCheck %s --check-prefix=SUMS
// RUN: axe-opt %t/early.mlir --axe-plan-kernels=target=sm_90a | FileCheck %s --check-prefix=EARLY
// RUN: not axe-opt %t/wrong.mlir --axe-plan-kernels=target=sm_90a 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not axe-opt %t/many.mlir --axe-plan-kernels=target=sm_90a 2>&1 | FileCheck %s --check-prefix=MANY

// Four rows of each of four problems, in five parts: 20 CTAs, then one for each of 16 rows.
// DECODE-LABEL: func.func @decode
// DECODE: %[[PARTS:.*]]:2 = axe.launch @decode_0_attention grid(%c20{{.*}}) ins(%arg0, %arg1, %arg2 : tensor<2x8x1x64xf16>, tensor<2x2x5000x64xf16>, tensor<2x2x5000x64xf16>) outs({{.*}} : tensor<20x4x64xf32>, tensor<40x4xf32>)
// DECODE: axe.launch @decode_1_merge grid(%c16{{.*}}) ins(%[[PARTS]]#0, %[[PARTS]]#1 : {{.*}}) outs({{.*}} : tensor<16x1x64xf16>, tensor<16x1xf32>)
// DECODE-NOT: axe.launch
// DECODE: axe.kernel @decode_0_attention
// DECODE: axe.view %arg0 : memref<2x8x1x64xf16> to memref<4x4x64xf16, #axe.layout<S[(4, 4, 64) : (256, 64, 1)]>>
// DECODE: axe.for_tiles {{.*}} in (%c4{{.*}}, %c5{{.*}})
// DECODE: axe.kernel @decode_1_merge
// DECODE: axe.reduce <max>
// DECODE: math.exp2
// DECODE: axe.reduce <add>
// DECODE: math.log
// DECODE-NOT: axe.kernel

// EXPLAIN: plan @decode_0_attention: attention of 16 x 1 queries to 5000 keys of 64, values of 64, of f16, with logarithms of sums, 4 problems packed
// EXPLAIN-NEXT: from: axe.plan
// EXPLAIN-NEXT: clocks predicted {tile = array<i64: 64, 128, 64>, consumers = 1 : i64, stages = 3 : i64, decomposition = "split_k", splits = 5 : i64}

// Heads that are packed have the mask in common: its four rows, for each of them.
// MASKED: attention of 16 x 4 queries to 5000 keys of 64, values of 64, of f16, masked by a tensor, 4 problems packed
// MASKED: axe.view %{{.*}} : memref<2x1x4x5000xf16> to memref<{{.*}}16x5000xf16, #axe.layout<S[{{.*}}4, 4, 5000) : ({{.*}}0, 5000, 1)]>>

// SUMS-LABEL: func.func @sums
// SUMS: %[[BOTH:.*]]:2 = axe.launch @sums_0_attention {{.*}} outs({{.*}} : tensor<4x300x64xf16>, tensor<4x300xf32>)
// SUMS-NOT: axe.launch
// SUMS: return %[[BOTH]]#0, %[[BOTH]]#1
// SUMS: axe.kernel @sums_0_attention
// SUMS: math.log
// SUMS-NOT: axe.kernel

// What is read before the result is formed is left to kernels of its own.
// EARLY-LABEL: func.func @early
// EARLY: axe.launch @early_{{[0-9]}}_attention {{.*}} outs({{.*}} : tensor<4x300x64xf16>)
// EARLY: axe.kernel

// WRONG: expected decomposition = "data_parallel", or "split_k" with splits, in axe.plan of attention
// MANY: expected 1 to 128 as 'splits' of axe.plan, got 300

//--- decode.mlir
func.func @decode(%q: tensor<2x8x1x64xf16>, %k: tensor<2x2x5000x64xf16>, %v: tensor<2x2x5000x64xf16>) -> (tensor<2x8x1x64xf16>, tensor<2x8x1xf32>) {
  %kb = axe.broadcast %k dims [2] : tensor<2x2x5000x64xf16> -> tensor<2x2x4x5000x64xf16>
  %vb = axe.broadcast %v dims [2] : tensor<2x2x5000x64xf16> -> tensor<2x2x4x5000x64xf16>
  %q3 = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x8x1x64xf16> into tensor<16x1x64xf16>
  %k3 = tensor.collapse_shape %kb [[0, 1, 2], [3], [4]] : tensor<2x2x4x5000x64xf16> into tensor<16x5000x64xf16>
  %v3 = tensor.collapse_shape %vb [[0, 1, 2], [3], [4]] : tensor<2x2x4x5000x64xf16> into tensor<16x5000x64xf16>
  %s = axe.gemm %q3, %k3 {trans_b} : tensor<16x1x64xf16>, tensor<16x5000x64xf16> -> tensor<16x1x5000xf32>
  %m = axe.reduce <max> %s dims [2] : tensor<16x1x5000xf32> -> tensor<16x1xf32>
  %mb = axe.broadcast %m dims [2] : tensor<16x1xf32> -> tensor<16x1x5000xf32>
  %e = axe.map ins(%s, %mb : tensor<16x1x5000xf32>, tensor<16x1x5000xf32>) -> tensor<16x1x5000xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    axe.yield %1 : f32
  }
  %l = axe.reduce <add> %e dims [2] : tensor<16x1x5000xf32> -> tensor<16x1xf32>
  %lse = axe.map ins(%m, %l : tensor<16x1xf32>, tensor<16x1xf32>) -> tensor<16x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = math.log %b : f32
    %1 = arith.addf %a, %0 : f32
    axe.yield %1 : f32
  }
  %sums = tensor.expand_shape %lse [[0, 1], [2]] output_shape [2, 8, 1] : tensor<16x1xf32> into tensor<2x8x1xf32>
  %lb = axe.broadcast %l dims [2] : tensor<16x1xf32> -> tensor<16x1x5000xf32>
  %p = axe.map ins(%e, %lb : tensor<16x1x5000xf32>, tensor<16x1x5000xf32>) -> tensor<16x1x5000xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.divf %a, %b : f32
    axe.yield %0 : f32
  }
  %w = axe.cast %p : tensor<16x1x5000xf32> -> tensor<16x1x5000xf16>
  %o = axe.gemm %w, %v3 {axe.plan = {tile = array<i64: 64, 128, 64>, stages = 3 : i64, decomposition = "split_k", splits = 5 : i64}} : tensor<16x1x5000xf16>, tensor<16x5000x64xf16> -> tensor<16x1x64xf32>
  %n = axe.cast %o : tensor<16x1x64xf32> -> tensor<16x1x64xf16>
  %r = tensor.expand_shape %n [[0, 1], [2], [3]] output_shape [2, 8, 1, 64] : tensor<16x1x64xf16> into tensor<2x8x1x64xf16>
  return %r, %sums : tensor<2x8x1x64xf16>, tensor<2x8x1xf32>
}

//--- masked.mlir
func.func @masked(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x5000x64xf16>, %v: tensor<2x2x5000x64xf16>, %mask: tensor<2x1x4x5000xf16>) -> tensor<2x8x4x64xf16> {
  %kb = axe.broadcast %k dims [2] : tensor<2x2x5000x64xf16> -> tensor<2x2x4x5000x64xf16>
  %vb = axe.broadcast %v dims [2] : tensor<2x2x5000x64xf16> -> tensor<2x2x4x5000x64xf16>
  %q3 = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x8x4x64xf16> into tensor<16x4x64xf16>
  %k3 = tensor.collapse_shape %kb [[0, 1, 2], [3], [4]] : tensor<2x2x4x5000x64xf16> into tensor<16x5000x64xf16>
  %v3 = tensor.collapse_shape %vb [[0, 1, 2], [3], [4]] : tensor<2x2x4x5000x64xf16> into tensor<16x5000x64xf16>
  %t = tensor.collapse_shape %mask [[0, 1], [2], [3]] : tensor<2x1x4x5000xf16> into tensor<2x4x5000xf16>
  %b = axe.broadcast %t dims [1] : tensor<2x4x5000xf16> -> tensor<2x8x4x5000xf16>
  %b3 = tensor.collapse_shape %b [[0, 1], [2], [3]] : tensor<2x8x4x5000xf16> into tensor<16x4x5000xf16>
  %x = axe.gemm %q3, %k3 {trans_b} : tensor<16x4x64xf16>, tensor<16x5000x64xf16> -> tensor<16x4x5000xf32>
  %s = axe.map ins(%x, %b3 : tensor<16x4x5000xf32>, tensor<16x4x5000xf16>) -> tensor<16x4x5000xf32> {
  ^bb0(%a: f32, %c: f16):
    %0 = arith.extf %c : f16 to f32
    %1 = arith.addf %a, %0 : f32
    axe.yield %1 : f32
  }
  %m = axe.reduce <max> %s dims [2] : tensor<16x4x5000xf32> -> tensor<16x4xf32>
  %mb = axe.broadcast %m dims [2] : tensor<16x4xf32> -> tensor<16x4x5000xf32>
  %e = axe.map ins(%s, %mb : tensor<16x4x5000xf32>, tensor<16x4x5000xf32>) -> tensor<16x4x5000xf32> {
  ^bb0(%a: f32, %c: f32):
    %0 = arith.subf %a, %c : f32
    %1 = math.exp %0 : f32
    axe.yield %1 : f32
  }
  %l = axe.reduce <add> %e dims [2] : tensor<16x4x5000xf32> -> tensor<16x4xf32>
  %lb = axe.broadcast %l dims [2] : tensor<16x4xf32> -> tensor<16x4x5000xf32>
  %p = axe.map ins(%e, %lb : tensor<16x4x5000xf32>, tensor<16x4x5000xf32>) -> tensor<16x4x5000xf32> {
  ^bb0(%a: f32, %c: f32):
    %0 = arith.divf %a, %c : f32
    axe.yield %0 : f32
  }
  %w = axe.cast %p : tensor<16x4x5000xf32> -> tensor<16x4x5000xf16>
  %o = axe.gemm %w, %v3 : tensor<16x4x5000xf16>, tensor<16x5000x64xf16> -> tensor<16x4x64xf32>
  %n = axe.cast %o : tensor<16x4x64xf32> -> tensor<16x4x64xf16>
  %r = tensor.expand_shape %n [[0, 1], [2], [3]] output_shape [2, 8, 4, 64] : tensor<16x4x64xf16> into tensor<2x8x4x64xf16>
  return %r : tensor<2x8x4x64xf16>
}

//--- sums.mlir
func.func @sums(%q: tensor<4x300x64xf16>, %k: tensor<4x200x64xf16>, %v: tensor<4x200x64xf16>) -> (tensor<4x300x64xf16>, tensor<4x300xf32>) {
  %s = axe.gemm %q, %k {trans_b} : tensor<4x300x64xf16>, tensor<4x200x64xf16> -> tensor<4x300x200xf32>
  %m = axe.reduce <max> %s dims [2] : tensor<4x300x200xf32> -> tensor<4x300xf32>
  %mb = axe.broadcast %m dims [2] : tensor<4x300xf32> -> tensor<4x300x200xf32>
  %e = axe.map ins(%s, %mb : tensor<4x300x200xf32>, tensor<4x300x200xf32>) -> tensor<4x300x200xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    axe.yield %1 : f32
  }
  %l = axe.reduce <add> %e dims [2] : tensor<4x300x200xf32> -> tensor<4x300xf32>
  %lse = axe.map ins(%m, %l : tensor<4x300xf32>, tensor<4x300xf32>) -> tensor<4x300xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = math.log %b : f32
    %1 = arith.addf %a, %0 : f32
    axe.yield %1 : f32
  }
  %w = axe.cast %e : tensor<4x300x200xf32> -> tensor<4x300x200xf16>
  %o = axe.gemm %w, %v : tensor<4x300x200xf16>, tensor<4x200x64xf16> -> tensor<4x300x64xf32>
  %lb = axe.broadcast %l dims [2] : tensor<4x300xf32> -> tensor<4x300x64xf32>
  %p = axe.map ins(%o, %lb : tensor<4x300x64xf32>, tensor<4x300x64xf32>) -> tensor<4x300x64xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.divf %a, %b : f32
    axe.yield %0 : f32
  }
  %n = axe.cast %p : tensor<4x300x64xf32> -> tensor<4x300x64xf16>
  return %n, %lse : tensor<4x300x64xf16>, tensor<4x300xf32>
}

//--- early.mlir
func.func @early(%q: tensor<4x300x64xf16>, %k: tensor<4x200x64xf16>, %v: tensor<4x200x64xf16>) -> (tensor<4x300x64xf16>, tensor<4x300xf32>) {
  %s = axe.gemm %q, %k {trans_b} : tensor<4x300x64xf16>, tensor<4x200x64xf16> -> tensor<4x300x200xf32>
  %m = axe.reduce <max> %s dims [2] : tensor<4x300x200xf32> -> tensor<4x300xf32>
  %mb = axe.broadcast %m dims [2] : tensor<4x300xf32> -> tensor<4x300x200xf32>
  %e = axe.map ins(%s, %mb : tensor<4x300x200xf32>, tensor<4x300x200xf32>) -> tensor<4x300x200xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    axe.yield %1 : f32
  }
  %l = axe.reduce <add> %e dims [2] : tensor<4x300x200xf32> -> tensor<4x300xf32>
  %lse = axe.map ins(%m, %l : tensor<4x300xf32>, tensor<4x300xf32>) -> tensor<4x300xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = math.log %b : f32
    %1 = arith.addf %a, %0 : f32
    axe.yield %1 : f32
  }
  %lv = axe.broadcast %lse dims [2] : tensor<4x300xf32> -> tensor<4x300x64xf32>
  %lh = axe.cast %lv : tensor<4x300x64xf32> -> tensor<4x300x64xf16>
  %vv = tensor.extract_slice %lh[0, 0, 0] [4, 200, 64] [1, 1, 1] : tensor<4x300x64xf16> to tensor<4x200x64xf16>
  %w = axe.cast %e : tensor<4x300x200xf32> -> tensor<4x300x200xf16>
  %o = axe.gemm %w, %vv : tensor<4x300x200xf16>, tensor<4x200x64xf16> -> tensor<4x300x64xf32>
  %lb = axe.broadcast %l dims [2] : tensor<4x300xf32> -> tensor<4x300x64xf32>
  %p = axe.map ins(%o, %lb : tensor<4x300x64xf32>, tensor<4x300x64xf32>) -> tensor<4x300x64xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.divf %a, %b : f32
    axe.yield %0 : f32
  }
  %n = axe.cast %p : tensor<4x300x64xf32> -> tensor<4x300x64xf16>
  return %n, %lse : tensor<4x300x64xf16>, tensor<4x300xf32>
}

//--- wrong.mlir
func.func @wrong(%q: tensor<4x300x64xf16>, %k: tensor<4x200x64xf16>, %v: tensor<4x200x64xf16>) -> (tensor<4x300x64xf16>, tensor<4x300xf32>) {
  %s = axe.gemm %q, %k {trans_b} : tensor<4x300x64xf16>, tensor<4x200x64xf16> -> tensor<4x300x200xf32>
  %m = axe.reduce <max> %s dims [2] : tensor<4x300x200xf32> -> tensor<4x300xf32>
  %mb = axe.broadcast %m dims [2] : tensor<4x300xf32> -> tensor<4x300x200xf32>
  %e = axe.map ins(%s, %mb : tensor<4x300x200xf32>, tensor<4x300x200xf32>) -> tensor<4x300x200xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    axe.yield %1 : f32
  }
  %l = axe.reduce <add> %e dims [2] : tensor<4x300x200xf32> -> tensor<4x300xf32>
  %lse = axe.map ins(%m, %l : tensor<4x300xf32>, tensor<4x300xf32>) -> tensor<4x300xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = math.log %b : f32
    %1 = arith.addf %a, %0 : f32
    axe.yield %1 : f32
  }
  %w = axe.cast %e : tensor<4x300x200xf32> -> tensor<4x300x200xf16>
  %o = axe.gemm %w, %v {axe.plan = {decomposition = "stream_k", splits = 2 : i64}} : tensor<4x300x200xf16>, tensor<4x200x64xf16> -> tensor<4x300x64xf32>
  %lb = axe.broadcast %l dims [2] : tensor<4x300xf32> -> tensor<4x300x64xf32>
  %p = axe.map ins(%o, %lb : tensor<4x300x64xf32>, tensor<4x300x64xf32>) -> tensor<4x300x64xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.divf %a, %b : f32
    axe.yield %0 : f32
  }
  %n = axe.cast %p : tensor<4x300x64xf32> -> tensor<4x300x64xf16>
  return %n, %lse : tensor<4x300x64xf16>, tensor<4x300xf32>
}

//--- many.mlir
func.func @many(%q: tensor<4x300x64xf16>, %k: tensor<4x200x64xf16>, %v: tensor<4x200x64xf16>) -> (tensor<4x300x64xf16>, tensor<4x300xf32>) {
  %s = axe.gemm %q, %k {trans_b} : tensor<4x300x64xf16>, tensor<4x200x64xf16> -> tensor<4x300x200xf32>
  %m = axe.reduce <max> %s dims [2] : tensor<4x300x200xf32> -> tensor<4x300xf32>
  %mb = axe.broadcast %m dims [2] : tensor<4x300xf32> -> tensor<4x300x200xf32>
  %e = axe.map ins(%s, %mb : tensor<4x300x200xf32>, tensor<4x300x200xf32>) -> tensor<4x300x200xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    axe.yield %1 : f32
  }
  %l = axe.reduce <add> %e dims [2] : tensor<4x300x200xf32> -> tensor<4x300xf32>
  %lse = axe.map ins(%m, %l : tensor<4x300xf32>, tensor<4x300xf32>) -> tensor<4x300xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = math.log %b : f32
    %1 = arith.addf %a, %0 : f32
    axe.yield %1 : f32
  }
  %w = axe.cast %e : tensor<4x300x200xf32> -> tensor<4x300x200xf16>
  %o = axe.gemm %w, %v {axe.plan = {decomposition = "split_k", splits = 300 : i64}} : tensor<4x300x200xf16>, tensor<4x200x64xf16> -> tensor<4x300x64xf32>
  %lb = axe.broadcast %l dims [2] : tensor<4x300xf32> -> tensor<4x300x64xf32>
  %p = axe.map ins(%o, %lb : tensor<4x300x64xf32>, tensor<4x300x64xf32>) -> tensor<4x300x64xf32> {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.divf %a, %b : f32
    axe.yield %0 : f32
  }
  %n = axe.cast %p : tensor<4x300x64xf32> -> tensor<4x300x64xf16>
  return %n, %lse : tensor<4x300x64xf16>, tensor<4x300xf32>
}
