// RUN: axe-opt %s --axe-plan-kernels=target=sm_90a -split-input-file -verify-diagnostics
// RUN: not axe-opt %s --axe-plan-kernels=target=sm_80 -split-input-file 2>&1 | FileCheck %s

// CHECK: error: the tile scheduler of groups is for mainloop = "wgmma" alone: sm_80 has no wgmma

func.func @f(%a: tensor<300x128xf16>, %b: tensor<4x128x96xf16>, %o: tensor<5xi32>) -> tensor<300x96xf16> {
  // expected-error @+1 {{the tile scheduler of groups is for mainloop = "wgmma" alone: axe.plan asks for mainloop = "mma"}}
  %0 = axe.grouped_gemm %a, %b, %o {axe.plan = {mainloop = "mma"}} : tensor<300x128xf16>, tensor<4x128x96xf16>, tensor<5xi32> -> tensor<300x96xf16>
  return %0 : tensor<300x96xf16>
}

// -----

func.func @f(%a: tensor<300x128xf16>, %b: tensor<4x128x96xf16>, %o: tensor<5xi32>) -> tensor<300x96xf16> {
  // expected-error @+1 {{expected decomposition = "grouped" in axe.plan of axe.grouped_gemm, got "split_k"}}
  %0 = axe.grouped_gemm %a, %b, %o {axe.plan = {decomposition = "split_k", splits = 2 : i64}} : tensor<300x128xf16>, tensor<4x128x96xf16>, tensor<5xi32> -> tensor<300x96xf16>
  return %0 : tensor<300x96xf16>
}

// -----

func.func @f(%a: tensor<300x128xf16>, %b: tensor<4x128x96xf16>, %o: tensor<5xi32>) -> tensor<300x96xf16> {
  // expected-error @+1 {{expected no cluster with decomposition = "grouped" in axe.plan, got [2, 1]}}
  %0 = axe.grouped_gemm %a, %b, %o {axe.plan = {cluster = array<i64: 2, 1>}} : tensor<300x128xf16>, tensor<4x128x96xf16>, tensor<5xi32> -> tensor<300x96xf16>
  return %0 : tensor<300x96xf16>
}

// -----

func.func @f(%a: tensor<300x128xf16>, %b: tensor<4x128x96xf16>, %o: tensor<5xi32>) -> tensor<300x96xf16> {
  // expected-error @+1 {{expected another raster than "hilbert" with decomposition = "grouped" in axe.plan: it needs counts of tiles that are known}}
  %0 = axe.grouped_gemm %a, %b, %o {axe.plan = {raster = "hilbert"}} : tensor<300x128xf16>, tensor<4x128x96xf16>, tensor<5xi32> -> tensor<300x96xf16>
  return %0 : tensor<300x96xf16>
}

// -----

func.func @f(%a: tensor<300x128xf16>, %b: tensor<4x128x96xf16>, %o: tensor<5xi32>) -> tensor<300x96xf16> {
  // expected-error @+1 {{expected no swap_ab and schedule = "cooperative" with decomposition = "grouped" in axe.plan, got {}}
  %0 = axe.grouped_gemm %a, %b, %o {axe.plan = {tile = array<i64: 64, 64, 64>, schedule = "pingpong"}} : tensor<300x128xf16>, tensor<4x128x96xf16>, tensor<5xi32> -> tensor<300x96xf16>
  return %0 : tensor<300x96xf16>
}

// -----

func.func @f(%a: tensor<300x128xf16>, %b: tensor<4x128x96xf16>, %o: tensor<5xi32>) -> tensor<300x96xf16> {
  // expected-error @+1 {{expected no swap_ab and schedule = "cooperative" with decomposition = "grouped" in axe.plan, got {}}
  %0 = axe.grouped_gemm %a, %b, %o {axe.plan = {tile = array<i64: 64, 64, 64>, swap_ab = true}} : tensor<300x128xf16>, tensor<4x128x96xf16>, tensor<5xi32> -> tensor<300x96xf16>
  return %0 : tensor<300x96xf16>
}

// -----

func.func @f(%a: tensor<300x128xf64>, %b: tensor<4x128x96xf64>, %o: tensor<5xi32>) -> tensor<300x96xf64> {
  // expected-error @+1 {{the tile scheduler of groups is for mainloop = "wgmma" alone: expected elements of 8 bits, f16, bf16, or f32 with precision = "tf32" for wgmma}}
  %0 = axe.grouped_gemm %a, %b, %o : tensor<300x128xf64>, tensor<4x128x96xf64>, tensor<5xi32> -> tensor<300x96xf64>
  return %0 : tensor<300x96xf64>
}

// -----

func.func @f(%a: tensor<300x128xf16>, %b: tensor<0x128x96xf16>, %o: tensor<1xi32>) -> tensor<300x96xf16> {
  // expected-error @+1 {{expected a tensor with elements, got tensor<0x128x96xf16>}}
  %0 = axe.grouped_gemm %a, %b, %o : tensor<300x128xf16>, tensor<0x128x96xf16>, tensor<1xi32> -> tensor<300x96xf16>
  return %0 : tensor<300x96xf16>
}

// -----

func.func @f(%a: tensor<300x128xf16>, %b: tensor<4x128x?xf16>, %o: tensor<5xi32>) -> tensor<300x?xf16> {
  // expected-error @+1 {{expected every extent but the leading one to be static, got tensor<4x128x?xf16>}}
  %0 = axe.grouped_gemm %a, %b, %o : tensor<300x128xf16>, tensor<4x128x?xf16>, tensor<5xi32> -> tensor<300x?xf16>
  return %0 : tensor<300x?xf16>
}

// -----

func.func @f(%a: tensor<300x128xf16>, %b: tensor<128x96xf16>) -> tensor<300x96xf16> {
  // expected-error @+1 {{expected another decomposition than "grouped" in axe.plan of a product without groups of rows, got "grouped"}}
  %0 = axe.gemm %a, %b {axe.plan = {decomposition = "grouped"}} : tensor<300x128xf16>, tensor<128x96xf16> -> tensor<300x96xf16>
  return %0 : tensor<300x96xf16>
}
