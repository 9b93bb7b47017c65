// RUN: axe-opt %s -split-input-file -verify-diagnostics

axe.kernel @fewer(%m: memref<1xf32>) threads(64) {
  %all = axe.all_gather.create : memref<2x2xi32, #axe.space<shared>>
  %a = axe.copy %m : memref<1xf32> -> tensor<1xf32>
  // expected-error@+1 {{(AG1) expected a result for each source, got 1 of 2}}
  %as = axe.all_gather %a, %a through %all : tensor<1xf32>, tensor<1xf32> through memref<2x2xi32, #axe.space<shared>> -> tensor<1x2xf32>
  axe.return
}

// -----

axe.kernel @source(%m: memref<2xf32>) threads(64) {
  %all = axe.all_gather.create : memref<2x1xi32, #axe.space<shared>>
  %a = axe.copy %m : memref<2xf32> -> tensor<2xf32>
  // expected-error@+1 {{(AG2) expected a source of the shape [1] and elements of at most 64 bits, got 'tensor<2xf32>'}}
  %as = axe.all_gather %a through %all : tensor<2xf32> through memref<2x1xi32, #axe.space<shared>> -> tensor<1x2xf32>
  axe.return
}

// -----

axe.kernel @result(%m: memref<1xf32>) threads(64) {
  %all = axe.all_gather.create : memref<2x1xi32, #axe.space<shared>>
  %a = axe.copy %m : memref<1xf32> -> tensor<1xf32>
  // expected-error@+1 {{(AG2) expected a result of 'tensor<1x2xf32>', got 'tensor<1x4xf32>'}}
  %as = axe.all_gather %a through %all : tensor<1xf32> through memref<2x1xi32, #axe.space<shared>> -> tensor<1x4xf32>
  axe.return
}

// -----

axe.kernel @words(%m: memref<1xf64>) threads(64) {
  %all = axe.all_gather.create : memref<2x1xi32, #axe.space<shared>>
  %a = axe.copy %m : memref<1xf64> -> tensor<1xf64>
  // expected-error@+1 {{(AG3) expected rows of 2 words, got 'memref<2x1xi32, #axe.space<shared>>'}}
  %as = axe.all_gather %a through %all : tensor<1xf64> through memref<2x1xi32, #axe.space<shared>> -> tensor<1x2xf64>
  axe.return
}

// -----

axe.kernel @storage(%m: memref<1xf32>) threads(64) {
  %all = axe.alloc : memref<2x1xi32, #axe.space<shared>>
  %a = axe.copy %m : memref<1xf32> -> tensor<1xf32>
  // expected-error@+1 {{(AG3) expected storage of an axe.all_gather.create}}
  %as = axe.all_gather %a through %all : tensor<1xf32> through memref<2x1xi32, #axe.space<shared>> -> tensor<1x2xf32>
  axe.return
}

// -----

axe.kernel @slots(%m: memref<1xf32>) threads(64) {
  %all = axe.all_gather.create : memref<2x4x1xi32, #axe.space<shared>>
  %a = axe.copy %m : memref<1xf32> -> tensor<1xf32>
  // expected-error@+1 {{(AG2) expected a result of 'tensor<1x4xf32>', got 'tensor<1x2xf32>'}}
  %as = axe.all_gather %a through %all : tensor<1xf32> through memref<2x4x1xi32, #axe.space<shared>> -> tensor<1x2xf32>
  axe.return
}
