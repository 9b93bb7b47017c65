// RUN: axe-opt %s --axe-verify-code -split-input-file -verify-diagnostics

// expected-error @below {{kernel `k` writes nothing: it has results, and its code has no store}}
gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_90a">, ".version 8.0\n.visible .entry k(\n\t.param .u64 p\n)\n{\n\tret;\n}\n">]
func.func @silent(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c1 = arith.constant 1 : index
  %0 = axe.launch @kernels::@k grid(%c1, %c1, %c1) outs(%x : tensor<8xf32>) {threads = 32 : i64, shared_bytes = 0 : i64} -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// expected-error @below {{the kernels call `__nv_sinf`, which nothing defines}}
gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_90a">, ".version 8.0\n.extern .func  (.param .b32 r) __nv_sinf\n(\n\t.param .b32 a\n)\n;\n">]

// -----

// Nothing is wrong where a launch has nothing to write.
gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_90a">, ".version 8.0\n.visible .entry k(\n\t.param .u64 p\n)\n{\n\tret;\n}\n">]
func.func @empty(%x: tensor<0xf32>) -> tensor<0xf32> {
  %c1 = arith.constant 1 : index
  %0 = axe.launch @kernels::@k grid(%c1, %c1, %c1) outs(%x : tensor<0xf32>) {threads = 32 : i64, shared_bytes = 0 : i64} -> tensor<0xf32>
  return %0 : tensor<0xf32>
}
