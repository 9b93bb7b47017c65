// RUN: not axe-opt %s --axe-plan-kernels='target=sm_90a tuned=%S/Inputs/no-such-file.json' 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not axe-opt %s --axe-plan-kernels='target=sm_90a tuned=%S/Inputs/plans_broken.json' 2>&1 | FileCheck %s --check-prefix=BROKEN
// RUN: not axe-opt %s --axe-plan-kernels='target=sm_90a tuned=%S/Inputs/plans_wrong.json' 2>&1 | FileCheck %s --check-prefix=WRONG

// MISSING: plan-tuned_errors.mlir:8:1: error: cannot read the plans of tuned={{.*}}no-such-file.json: No such file
// BROKEN: plan-tuned_errors.mlir:8:1: error: cannot read the plans of tuned={{.*}}plans_broken.json: line 1: missing field
// WRONG: plan-tuned_errors.mlir:10:10: error: the plan tuned for 64 x 64 x 512, 5 us: expected a dictionary
module {
func.func @product(%a: tensor<64x512xf16>, %w: tensor<64x512xf16>) -> tensor<64x64xf32> {
    %p = axe.gemm %a, %w {trans_b} : tensor<64x512xf16>, tensor<64x512xf16> -> tensor<64x64xf32>
  return %p : tensor<64x64xf32>
}
}
