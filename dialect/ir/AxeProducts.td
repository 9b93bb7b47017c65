//===- AxeProducts.td - Products of matrices ---------------*- tablegen -*-===//
//
// Included by AxeOps.td, behind the base classes of operations.
//
//===----------------------------------------------------------------------===//
#ifndef AXE_PRODUCTS_TD
#define AXE_PRODUCTS_TD

def Axe_GemmOp : Axe_Operator<"gemm", [Axe_Logical, Axe_Product, Axe_Tileable,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "A matrix product, accumulated";
  let description = [{
    `D = A * B + C` over the last two dimensions; leading dimensions are a
    batch. `A` is `[..., M, K]` (`[..., K, M]` with `trans_a`), `B` is
    `[..., K, N]` (`[..., N, K]` with `trans_b`), `C` and `D` are `[..., M, N]`.
    Products and sums are formed in the result's element type or wider; without
    `acc` the sum starts at zero. With `async`, the product is complete after
    an `axe.wait` on its result; operands in shared memory must keep until then.

    **Constraints**

    * (E1) operands and result have one rank of at least 2, the same batch
      dimensions, and M, N, K that agree;
    * (E2) `A` and `B` have the same element type, or are both 8-bit floats;
      integers accumulate in integers and floats in floats of at least their width;
    * (E3) the accumulator has the result's type.

    **Example**

    ```mlir
    %d = axe.gemm %a, %b acc %c {trans_b} : tensor<128x64xf16, #fa>, tensor<256x64xf16, #fb> -> tensor<128x256xf32, #acc>
    ```

    **Errors**

    ```mlir
    %0 = axe.gemm %a, %b : tensor<4x8xf16>, tensor<4x8xf16> -> tensor<4x8xf32>   // (E1) expected [M, K] * [K, N] -> [M, N], got [4, 8] * [4, 8] -> [4, 8]
    %0 = axe.gemm %a, %b : tensor<4x8xf16>, tensor<8x4xbf16> -> tensor<4x4xf32>  // (E2) expected A and B of one element type, got 'f16' and 'bf16'
    %0 = axe.gemm %a, %b : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf16>   // (E2) expected an accumulator of the kind of 'f32' and at least its width, got 'f16'
    %0 = axe.gemm %a, %b acc %c : tensor<4x4xf16> : tensor<4x8xf16>, tensor<8x4xf16> -> tensor<4x4xf32>  // (E3) expected an accumulator of type 'tensor<4x4xf32>', got 'tensor<4x4xf16>'
    ```
  }];
  let arguments = !con((ins Axe_TensorOrMemory:$a, Axe_TensorOrMemory:$b,
                            Optional<AnyRankedTensor>:$acc,
                            UnitAttr:$isAsync, UnitAttr:$trans_a, UnitAttr:$trans_b),
                       scheduling);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    (`async` $isAsync^)? $a `,` $b (`acc` $acc^ `:` type($acc))?
    (`schedule` `=` $schedule^)? (`options` `=` $options^)? attr-dict
    `:` type($a) `,` type($b) `->` type($result)
  }];
}

def Axe_ScaledGemmOp : Axe_Operator<"scaled_gemm", [Axe_Logical, Axe_Product,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "A matrix product of 8-bit floats with scales by blocks";
  let description = [{
    `D[m, n] = sum over b of scale_a[m, b] * scale_b[n / block_n, b] * P_b[m, n]`,
    where `P_b[m, n]` is the sum of `A[m, k] * B[n, k]` over the `block_k` values
    of `k` from `b * block_k` on (fewer in a last block that is not whole).
    `A` is `[M, K]` and `B` is `[N, K]`: the instructions for 8-bit elements take
    rows of `k` alone. Each row of `A` has a scale for `block_k` elements, `B` one
    for `block_n` rows by `block_k`. Sums within a block may be rounded as the
    hardware does; those over blocks are in f32.

    **Constraints**

    * (H1) matrices whose M, N and K agree: `[M, K]`, `[N, K]` and `[M, N]`;
    * (H2) 8-bit floats are multiplied, the scales and the result are f32;
    * (H3) with extents rounded up, `scale_a` is `[M, K / block_k]`, with
      `trans_scale_a` `[K / block_k, M]`, and `scale_b` is `[N / block_n, K / block_k]`;
    * (H4) `block_n` is a positive multiple of 16, `block_k` of 32.

    **Example**

    ```mlir
    %d = axe.scaled_gemm %a, %b, %sa, %sb : tensor<64x512xf8E4M3FN>, tensor<256x512xf8E4M3FN>, tensor<64x4xf32>, tensor<2x4xf32> -> tensor<64x256xf32>
    ```

    **Errors**

    ```mlir
    %0 = axe.scaled_gemm %a, %b, %sa, %sb : tensor<8x256xf8E4M3FN>, tensor<256x128xf8E4M3FN>, ...  // (H1) expected [M, K], [N, K] -> [M, N]
    %0 = axe.scaled_gemm %a, %b, %sa, %sb : tensor<8x256xf16>, tensor<128x256xf8E4M3FN>, ...       // (H2) expected 8-bit floats
    %0 = axe.scaled_gemm %a, %b, %sa, %sb : ..., tensor<2x8xf32>, tensor<1x2xf32> -> ...           // (H3) expected scales of shape [8, 2], got 'tensor<2x8xf32>'
    %0 = axe.scaled_gemm %a, %b, %sa, %sb {block_k = 48 : i64} : ...                               // (H4) expected block_n a positive multiple of 16 and block_k of 32, got 128 and 48
    ```
  }];
  let arguments = !con((ins Axe_TensorOrMemory:$a, Axe_TensorOrMemory:$b,
                            Axe_TensorOrMemory:$scale_a,
                            Axe_TensorOrMemory:$scale_b,
                            UnitAttr:$trans_scale_a,
                            DefaultValuedAttr<I64Attr, "128">:$block_n,
                            DefaultValuedAttr<I64Attr, "128">:$block_k),
                       scheduling);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $scale_a `,` $scale_b
    (`schedule` `=` $schedule^)? (`options` `=` $options^)? attr-dict
    `:` type($a) `,` type($b) `,` type($scale_a) `,` type($scale_b) `->` type($result)
  }];
}

def Axe_GroupedGemmOp : Axe_Operator<"grouped_gemm", [Axe_Logical, Axe_Product, Pure]> {
  let summary = "Matrix products of groups of rows, each with a matrix of its own";
  let description = [{
    `D[m, n] = sum over k of A[m, k] * B[g, k, n]` for the rows `m` of group `g`:
    those from `offsets[g]` to before `offsets[g + 1]`. `A` is `[M, K]`, `B` is
    `[G, K, N]` (`[G, N, K]` with `trans_b`), `D` is `[M, N]`, and `offsets` has
    `G + 1` numbers, which are data: the products of a mixture of experts,
    whose rows are sorted by expert. A group may be empty. Rows of no group,
    before `offsets[0]` or from `offsets[G]` on, are zero. Products and sums are
    formed in the result's element type or wider.

    Offsets that are no ascending row numbers are read as such: the end of a
    group is the largest of its own offset and of those before it, at least 0
    and at most `M`. No row is read or written that is not there.

    **Constraints**

    * (GP1) `A` and the result are matrices, `B` has a dimension of groups in front,
      and M, N, K agree;
    * (GP2) `A` and `B` have the same element type; integers accumulate in
      integers and floats in floats of at least their width;
    * (GP3) `offsets` are 32-bit integers, one more than there are groups.

    **Example**

    ```mlir
    %d = axe.grouped_gemm %x, %w, %offsets {trans_b} : tensor<8192x2048xbf16>, tensor<64x768x2048xbf16>, tensor<65xi32> -> tensor<8192x768xbf16>
    ```

    **Errors**

    ```mlir
    %0 = axe.grouped_gemm %a, %b, %o : tensor<8x16xf16>, tensor<2x8x4xf16>, tensor<3xi32> -> tensor<8x4xf32>   // (GP1) expected [M, K] * [G, K, N] -> [M, N], got [8, 16] * [2, 8, 4] -> [8, 4]
    %0 = axe.grouped_gemm %a, %b, %o : tensor<8x16xf16>, tensor<2x16x4xbf16>, tensor<3xi32> -> tensor<8x4xf32> // (GP2) expected A and B of one element type, got 'f16' and 'bf16'
    %0 = axe.grouped_gemm %a, %b, %o : tensor<8x16xf32>, tensor<2x16x4xf32>, tensor<3xi32> -> tensor<8x4xf16>  // (GP2) expected an accumulator of the kind of 'f32' and at least its width, got 'f16'
    %0 = axe.grouped_gemm %a, %b, %o : tensor<8x16xf16>, tensor<2x16x4xf16>, tensor<2xi32> -> tensor<8x4xf32>  // (GP3) expected offsets of type 'tensor<3xi32>', got 'tensor<2xi32>'
    ```
  }];
  let arguments = !con((ins AnyRankedTensor:$a, AnyRankedTensor:$b,
                            AnyRankedTensor:$offsets, UnitAttr:$trans_b),
                       scheduling);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $offsets
    (`schedule` `=` $schedule^)? (`options` `=` $options^)? attr-dict
    `:` type($a) `,` type($b) `,` type($offsets) `->` type($result)
  }];
}

#endif // AXE_PRODUCTS_TD
