//===- AxeDimensions.td - Operators that drop, add or reorder dimensions --*- tablegen -*-===//
//
// Included by AxeOps.td, behind the base classes of operations.
//
//===----------------------------------------------------------------------===//
#ifndef AXE_DIMENSIONS_TD
#define AXE_DIMENSIONS_TD

def Axe_ReduceOp : Axe_Operator<"reduce", [Axe_Logical, Axe_Reduction, Axe_Tileable, Pure]> {
  let summary = "Combines the elements along dimensions";
  let description = [{
    The result drops the dimensions `dims`. The order of combination is not
    defined: `add` and `mul` on floats are reassociated.

    **Constraints**

    * (R1) `dims` ascend, differ and lie in the source's rank;
    * (R2) the result has the source's shape without `dims`, and its element type;
    * (R3) `and`, `or`, `xor`, and the unsigned `maxui` and `minui` take integers; `max` and `min` of integers are
      signed.

    **Example**: `%s = axe.reduce <add> %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>`

    **Errors**

    ```mlir
    %0 = axe.reduce <add> %x dims [2] : tensor<4x8xf32> -> tensor<4xf32>  // (R1) expected ascending dims below 2, got 2
    %0 = axe.reduce <add> %x dims [1] : tensor<4x8xf32> -> tensor<8xf32>  // (R2) expected 'tensor<4x8xf32>' without the dims, of the same element type, got 'tensor<8xf32>'
    %0 = axe.reduce <and> %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>  // (R3) expected integer elements for 'and', got 'f32'
    ```
  }];
  let arguments = !con((ins Axe_CombinerAttr:$combiner, AnyRankedTensor:$source,
                            DenseI64ArrayAttr:$dims), scheduling);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $combiner $source `dims` $dims
    (`schedule` `=` $schedule^)? (`options` `=` $options^)? attr-dict
    `:` type($source) `->` type($result)
  }];
}

def Axe_AllGatherOp : Axe_Operator<"all_gather", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "The values that all thread groups of a cluster have";
  let description = [{
    Each thread group around it, of every CTA of the cluster, gives an element
    of each source, and has those of all in the results: `result[0, g]` is that of the
    thread group `g`, in the order of the CTAs' ranks and in each CTA of its
    thread groups. So partial states of a row, which warps form without a
    barrier, meet once: what is reduced of the results is the same everywhere.

    It waits for the others' elements and orders no other memory. All thread
    groups of the cluster execute it: once, or, with a `through` of two slots, as
    often as each other.

    **Constraints**

    * (AG1) as many results as sources, at least one;
    * (AG2) sources have the shape `[1]` and elements of at most 64 bits, and results the source's element type and
      the shape `[1, n]`, where `n` is the number of rows of `through`, or of a slot of it;
    * (AG3) rows of `through`, of an `axe.all_gather.create`, have a word for each 32 bits of an element of every
      source, as vectors are stored: 1, 2 or a multiple of 4.

    **Example**

    ```mlir
    %all = axe.all_gather.create : memref<64x2xi32, #axe.space<shared>>
    axe.barrier cluster
    axe.scope warp {
      ...
      %ms, %ss = axe.all_gather %m, %s through %all : tensor<1xf32, #one>, tensor<1xf32, #one>
          through memref<64x2xi32, #axe.space<shared>> -> tensor<1x64xf32, #lanes>, tensor<1x64xf32, #lanes>
    }
    ```

    **Errors**

    ```mlir
    %a = axe.all_gather %m, %s through %all : ... -> tensor<1x64xf32>                      // (AG1) expected a result for each source, got 1 of 2
    %a = axe.all_gather %m through %all : tensor<2xf32> through ... -> tensor<1x64xf32>    // (AG2) expected a source of the shape [1] and elements of at most 64 bits, got 'tensor<2xf32>'
    %a = axe.all_gather %m through %all : tensor<1xf32> through ... -> tensor<1x32xf32>    // (AG2) expected a result of 'tensor<1x64xf32>', got 'tensor<1x32xf32>'
    %a = axe.all_gather %m through %x : tensor<1xf64> through memref<64x1xi32, ...> -> tensor<1x64xf64> // (AG3) expected rows of 2 words, got 'memref<64x1xi32, #axe.space<shared>>'
    ```
  }];
  let arguments = !con((ins Variadic<AnyRankedTensor>:$sources, Axe_Memory:$through), scheduling);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $sources `through` $through
    (`schedule` `=` $schedule^)? (`options` `=` $options^)? attr-dict
    `:` type($sources) `through` type($through) `->` type($results)
  }];
}

def Axe_ReduceScatterOp : Axe_Operator<"reduce_scatter", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Combines tensors of the CTAs of a cluster, of which each has a part";
  let description = [{
    Each CTA of the cluster gives a tensor, which falls into as many parts along `dim` as
    there are CTAs. In the result a CTA has the part of its rank, combined over the tensors of all. The order in which
    elements are combined depends on the rank alone, so that results are the same each time.

    It waits for the others' parts and orders no other memory. The same threads of all CTAs execute it, as often as each other.

    **Constraints**

    * (SR1) `dim` is one of the source's dimensions;
    * (SR2) the result has the source's element type and its shape, but a whole part of it along `dim`;
    * (SR3) `through` is of an `axe.reduce_scatter.create`, for parts like the result of all CTAs but one;
    * (SR4) `and`, `or`, `xor`, and the unsigned `maxui` and `minui` take integers.

    **Example**

    ```mlir
    %parts = axe.reduce_scatter.create : memref<1x128x64xf32, #axe.space<shared>>
    axe.scope warpgroup {
      ...
      %s = axe.reduce_scatter <add> %x dim 1 through %parts : tensor<128x128xf32, #all>
          through memref<1x128x64xf32, #axe.space<shared>> -> tensor<128x64xf32, #part>
    }
    ```

    **Errors**

    ```mlir
    %s = axe.reduce_scatter <add> %x dim 2 through %parts : tensor<128x128xf32> ...                        // (SR1) expected a dim below 2, got 2
    %s = axe.reduce_scatter <add> %x dim 1 through %parts : tensor<128x128xf32> ... -> tensor<128x48xf32>  // (SR2) expected a part of 'tensor<128x128xf32>' along dim 1, got 'tensor<128x48xf32>'
    %s = axe.reduce_scatter <add> %x dim 1 through %parts : ... through memref<3x128x64xf32, ...> -> tensor<128x64xf32> // (SR3) expected storage of an axe.reduce_scatter.create of the shape [1, 128, 64] and elements of 'f32', got 'memref<3x128x64xf32, ...>'
    %s = axe.reduce_scatter <and> %x dim 1 through %parts : tensor<128x128xf32> ...                        // (SR4) expected integer elements for 'and', got 'f32'
    ```
  }];
  let arguments = !con((ins Axe_CombinerAttr:$combiner, AnyRankedTensor:$source, I64Attr:$dim,
                            Axe_Memory:$through), scheduling);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $combiner $source `dim` $dim `through` $through
    (`schedule` `=` $schedule^)? (`options` `=` $options^)? attr-dict
    `:` type($source) `through` type($through) `->` type($result)
  }];
}

def Axe_BroadcastOp : Axe_Operator<"broadcast", [Axe_Logical, Axe_Lazy, Axe_Relayout, Axe_Tileable, Pure]> {
  let summary = "Repeats a tensor along new dimensions";
  let description = [{
    The result's dimensions `dims` are new; the others are the source's in order.

    **Constraints**

    * (B1) `dims` ascend, differ and lie in the result's rank;
    * (B2) the source has the result's shape without `dims`, and its element type;
    * (B3) one size for each dynamic extent among `dims`.

    **Example**: `%b = axe.broadcast %v dims [0] : tensor<8xf32> -> tensor<4x8xf32>`

    **Errors**

    ```mlir
    %0 = axe.broadcast %x dims [2] : tensor<8xf32> -> tensor<4x8xf32>  // (B1) expected ascending dims below 2, got 2
    %0 = axe.broadcast %x dims [1] : tensor<8xf32> -> tensor<4x8xf32>  // (B2) expected 'tensor<4x8xf32>' without the dims, of the same element type, got 'tensor<8xf32>'
    %0 = axe.broadcast %x dims [0] : tensor<8xf32> -> tensor<?x8xf32>  // (B3) expected 1 sizes, got 0
    ```
  }];
  let arguments = !con((ins AnyRankedTensor:$source, DenseI64ArrayAttr:$dims,
                            Variadic<Index>:$sizes), scheduling);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $source `dims` $dims (`sizes` `(` $sizes^ `)`)?
    (`schedule` `=` $schedule^)? (`options` `=` $options^)? attr-dict
    `:` type($source) `->` type($result)
  }];
}

def Axe_TransposeOp : Axe_Operator<"transpose", [Axe_Logical, Axe_Relayout, Axe_Tileable, Pure]> {
  let summary = "Permutes the dimensions";
  let description = [{
    Result dimension `i` is source dimension `permutation[i]`.

    **Constraints**

    * (N1) `permutation` is a permutation of the source's dimensions;
    * (N2) the result has the permuted shape and the source's element type.

    **Example**: `%t = axe.transpose %x [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>`

    **Errors**

    ```mlir
    %0 = axe.transpose %x [0, 0] : tensor<4x8xf32> -> tensor<4x4xf32>  // (N1) expected a permutation of 2 dimensions
    %0 = axe.transpose %x [1, 0] : tensor<4x8xf32> -> tensor<4x8xf32>  // (N2) expected the permuted shape and the source's element type
    ```
  }];
  let arguments = !con((ins AnyRankedTensor:$source, DenseI64ArrayAttr:$permutation), scheduling);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $source $permutation
    (`schedule` `=` $schedule^)? (`options` `=` $options^)? attr-dict
    `:` type($source) `->` type($result)
  }];
}

def Axe_ExtractSliceOp : Axe_Operator<"extract_slice", [Axe_Relayout, Pure]> {
  let summary = "A static box of a tensor, at an origin known when compiling";
  let description = [{
    Element `x` of the result is element `origin + x` of the source. Of a
    register tensor it is a part: where the result's layout leaves the elements
    in their threads, as that of the source's box does, no instruction is
    needed. What follows then works on the part alone, so that the registers it
    takes beside the source's are those of the part.

    **Constraints**

    * (J1) one origin for each dimension of the source, which is not negative;
    * (J2) the result is static, and has the source's rank and element type;
    * (J3) the box lies in the source, whose extents it cuts are static.

    **Example**: the second 64 columns of an accumulator
    ```mlir
    %p = axe.extract_slice %sum [0, 64] : tensor<128x192xf32, #acc> -> tensor<128x64xf32, #subtile>
    ```

    **Errors**

    ```mlir
    %0 = axe.extract_slice %x [0] : tensor<4x8xf32> -> tensor<4x4xf32>     // (J1) expected 2 origins of at least 0, got [0]
    %0 = axe.extract_slice %x [0, 4] : tensor<4x8xf32> -> tensor<4x4xf16>  // (J2) expected a static result of the source's rank and element type
    %0 = axe.extract_slice %x [0, 5] : tensor<4x8xf32> -> tensor<4x4xf32>  // (J3) expected dimension 1 of the box to lie in the source's 'tensor<4x8xf32>', got 4 elements from 5 on
    ```
  }];
  let arguments = !con((ins AnyRankedTensor:$source, DenseI64ArrayAttr:$origin), scheduling);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $source $origin
    (`schedule` `=` $schedule^)? (`options` `=` $options^)? attr-dict
    `:` type($source) `->` type($result)
  }];
}

def Axe_TopKOp : Axe_Operator<"top_k", [Axe_Logical,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "The largest elements of each row, and where they are";
  let description = [{
    Of each row, along the last dimension, the `k` elements that come first in
    descending order, and their indices in the row; `k` is the last extent of
    what is written. With `smallest`, those that come first in ascending order.
    Equal elements are in the order of their indices, and so are NaNs, which are
    larger than any number, whatever their signs; -0.0 and 0.0 are equal. So have
    `torch.topk(sorted=True)` and `jax.lax.top_k` it, but that torch promises no
    order of equal elements, and that XLA's targets differ in that of zeros.
    Elements are copied bit by bit. Routers of a mixture of experts choose so,
    and samplers of tokens.

    Two forms: with `to`, a kernel's, which reads storage and writes storage, and
    whose rows the whole grid shares out; without, values and indices are
    results.

    **Constraints**

    * (TK1) a tensor gives values and indices; storage is written `to` values
      and indices;
    * (TK2) both have the source's shape but for the last extent, which is at
      least 1 and at most the source's; the last extents are static;
    * (TK3) values have the source's element type, a float or an integer, which
      is signed; indices are 32-bit or 64-bit integers.

    **Examples**

    ```mlir
    %v, %i = axe.top_k %scores : tensor<?x128xf32> -> tensor<?x8xf32>, tensor<?x8xi32>
    %v, %i = axe.top_k %distances {smallest} : tensor<64x1000xf32> -> tensor<64x10xf32>, tensor<64x10xi64>
    axe.top_k %x to %v, %i : memref<?x128xf32> to memref<?x8xf32>, memref<?x8xi32>
    ```

    **Errors**

    ```mlir
    %v = axe.top_k %x : tensor<4x8xf32> -> tensor<4x2xf32>                        // (TK1) expected values and indices, got 0 destinations and 1 results of 'tensor<4x8xf32>'
    %v, %i = axe.top_k %x : tensor<4x8xf32> -> tensor<4x9xf32>, tensor<4x9xi32>   // (TK2) expected the shape of 'tensor<4x8xf32>' with a last extent of 1 to 8, got 'tensor<4x9xf32>'
    %v, %i = axe.top_k %x : tensor<4x8xf32> -> tensor<4x2xf16>, tensor<4x2xi32>   // (TK3) expected values of type 'f32', got 'f16'
    %v, %i = axe.top_k %x : tensor<4x8xf32> -> tensor<4x2xf32>, tensor<4x2xf32>   // (TK3) expected indices of 'i32' or 'i64', got 'f32'
    ```
  }];
  let arguments = !con((ins Axe_TensorOrMemory:$source,
                            Variadic<Axe_Memory>:$dests, UnitAttr:$smallest),
                       scheduling);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $source (`to` $dests^)?
    (`schedule` `=` $schedule^)? (`options` `=` $options^)? attr-dict
    `:` type($source) (`to` type($dests)^)? (`->` type($results)^)?
  }];
}

#endif // AXE_DIMENSIONS_TD
