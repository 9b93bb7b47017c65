// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --split-input-file | FileCheck %s
// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a --axe-dispatch-schedules=target=sm_90a --axe-verify-schedules --split-input-file | FileCheck %s --check-prefix=PLAN
// RUN: axe-opt %s --axe-plan-kernels="target=sm_90a explain" --axe-dispatch-schedules="target=sm_90a explain" --split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=EXPLAIN

// Eight rows a CTA, counted at the launch; what is computed of a row before is a kernel apart.
// CHECK-LABEL: func.func @experts
// CHECK: axe.launch @experts_0_map
// CHECK: %[[N:.*]] = arith.ceildivui %{{.*}}, %c8{{.*}} : index
// CHECK: %[[CTAS:.*]] = arith.minui %[[N]]
// CHECK: axe.launch @experts_1_top_k grid(%[[CTAS]], %{{.*}}, %{{.*}}) {{.*}} -> tensor<?x8xbf16>, tensor<?x8xi32>
// CHECK: axe.kernel @experts_1_top_k(%[[X:.*]]: memref<?x128xbf16>, %[[V:.*]]: memref<?x8xbf16>, %[[I:.*]]: memref<?x8xi32>) threads(256) {
// CHECK-NEXT: axe.top_k %[[X]] to %[[V]], %[[I]] : memref<?x128xbf16> to memref<?x8xbf16>, memref<?x8xi32>
// PLAN: axe.top_k {{.*}} schedule = "top_k.warp" {plan = {held = 4 : i64, vector = 4 : i64}}
// EXPLAIN: 'axe.top_k' is a kernel apart from 'axe.map' at {{.*}}: it reads whole rows from memory
// EXPLAIN: axe.top_k -> top_k.warp
// EXPLAIN: | for rows of the warp: 1 loads of 4 elements a lane, sorted; k times redux.sync
func.func @experts(%x: tensor<?x128xbf16>) -> (tensor<?x8xbf16>, tensor<?x8xi32>) {
  %y = axe.map ins(%x : tensor<?x128xbf16>) -> tensor<?x128xbf16> {
  ^bb0(%a: bf16):
    %0 = arith.addf %a, %a : bf16
    axe.yield %0 : bf16
  }
  %v, %i = axe.top_k %y : tensor<?x128xbf16> -> tensor<?x8xbf16>, tensor<?x8xi32>
  return %v, %i : tensor<?x8xbf16>, tensor<?x8xi32>
}

// -----

// A CTA a row; leading dimensions are one.
// CHECK-LABEL: func.func @vocabulary
// CHECK: axe.launch @vocabulary_0_top_k grid(%c6{{.*}},
// CHECK: axe.top_k {{.*}} {smallest} : memref<6x32000xf32> to memref<6x50xf32>, memref<6x50xi64>
// PLAN: axe.top_k {{.*}} schedule = "top_k.cta" {plan = {held = 16 : i64, scratch = {bytes = 14352 : i64, first = 0 : i64}, vector = 4 : i64}, smallest}
// EXPLAIN: axe.top_k -> top_k.cta
// EXPLAIN: | for rows of the CTA, for chunks: 4 loads of 4 elements a thread, kept in shared memory where not below the bound
func.func @vocabulary(%x: tensor<2x3x32000xf32>) -> (tensor<2x3x50xf32>, tensor<2x3x50xi64>) {
  %v, %i = axe.top_k %x {smallest} : tensor<2x3x32000xf32> -> tensor<2x3x50xf32>, tensor<2x3x50xi64>
  return %v, %i : tensor<2x3x50xf32>, tensor<2x3x50xi64>
}
