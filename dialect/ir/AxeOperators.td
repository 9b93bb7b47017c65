//===- AxeOperators.td - Operators -------------------------*- tablegen -*-===//
//
// Included by AxeOps.td, behind the base classes of operations.
//
//===----------------------------------------------------------------------===//
#ifndef AXE_OPERATORS_TD
#define AXE_OPERATORS_TD

def Axe_CopyOp : Axe_Operator<"copy", [Axe_Tileable, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Moves a tensor from one layout to another";
  let description = [{
    Two forms. With `to`, writes the source into storage; without, gives the
    source as a tensor with the result's layout: a load from storage, or a
    relayout of a register tensor. Elements that a sliced source does not have
    read as `pad` (zero when absent). With `async` the copy belongs to the
    group that the next `axe.commit` closes, and is complete after the wait for
    that group; with `signal`, it completes the pipeline's stage instead. With
    `multicast`, every CTA of the cluster asks for the same source, and each
    fetches a part of it for all; `multicast among [n, d]` is for the `n` CTAs
    whose ranks in the cluster are `d` apart, of each set of `n d` neighbours.
    With `accumulate`, the source's elements are
    added to the destination's; what several scopes add to an element arrives in
    any order, and nothing of it is lost.

    The option `l2` (`"evict_first"`, `"evict_normal"`, `"evict_last"`) hints at
    how long the L2 cache is to keep what the copy reads or writes in global
    memory; schedules whose instructions take no hint ignore it.

    **Constraints**

    * (C1) source and destination (or result) have the same shape and element type;
    * (C2) exactly one of destination and result;
    * (C3) `async` only between memrefs;
    * (C4) `pad` has the element type and belongs to a source that is a memref;
    * (C5) `signal` and `multicast` belong to asynchronous copies;
    * (C6) `accumulate` belongs to copies into storage that signal nothing;
    * (C7) the option `l2` is one of its three;
    * (C8) `among` belongs to `multicast`, and has two positive numbers.

    **Examples**

    ```mlir
    axe.copy async %tile to %stage signal %slot : memref<...> to memref<..., #axe.space<shared>>
    axe.copy async %tile to %stage : memref<...> to memref<..., #axe.space<shared>>
    %f = axe.copy %stage : memref<..., #axe.space<shared>> -> tensor<128x16xf16, #frag>
    axe.copy %part to %sums accumulate : tensor<128x64xf32, #acc> to memref<128x64xf32, ...>
    axe.copy async %tile to %stage signal %slot multicast among [4, 2] : memref<...> to memref<..., #axe.space<shared>>
    axe.copy async %w to %stage signal %slot options = {l2 = "evict_last"} : memref<...> to memref<..., #axe.space<shared>>
    ```

    **Errors**

    ```mlir
    axe.copy %x to %m : tensor<4xf32> to memref<8xf32>                     // (C1) expected source and destination of one shape and element type
    axe.copy %m : memref<8xf32>                                            // (C2) expected a destination or a result, and not both
    %0 = axe.copy async %m : memref<8xf32> -> tensor<8xf32>                // (C3) expected memrefs on both sides of an asynchronous copy
    %0 = axe.copy %m pad %z : f16 : memref<8xf32> -> tensor<8xf32>         // (C4) expected padding of type 'f32' for a memref source, got 'f16'
    axe.copy %a to %b multicast : memref<8xf16> to memref<8xf16>           // (C5) expected an asynchronous copy with 'multicast'
    %0 = axe.copy %a accumulate : memref<8xf16> -> tensor<8xf16>           // (C6) expected 'accumulate' in a copy into storage that signals nothing
    axe.copy %a to %b options = {l2 = "never"} : memref<8xf16> to memref<8xf16>  // (C7) expected "evict_first", "evict_normal" or "evict_last" for the option 'l2'
    axe.copy async %a to %b multicast among [4] : memref<8xf16> to memref<8xf16>  // (C8) expected 'among' to have a number of CTAs and how far apart they are, of 'multicast'
    ```
  }];
  let arguments = !con((ins Axe_TensorOrMemory:$source,
                            Optional<Axe_Memory>:$dest,
                            Optional<AnyType>:$pad,
                            Optional<Axe_SlotType>:$signal,
                            UnitAttr:$isAsync, UnitAttr:$multicast,
                            OptionalAttr<DenseI64ArrayAttr>:$among,
                            UnitAttr:$accumulate), scheduling);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    (`async` $isAsync^)? $source (`to` $dest^)? (`pad` $pad^ `:` type($pad))?
    (`signal` $signal^)? (`multicast` $multicast^)? (`among` $among^)?
    (`accumulate` $accumulate^)?
    (`schedule` `=` $schedule^)? (`options` `=` $options^)? attr-dict
    `:` type($source) (`to` type($dest)^)? (`->` type($result)^)?
  }];
}

def Axe_GatherOp : Axe_Operator<"gather", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Rows of a table in memory, chosen by data";
  let description = [{
    `D[i, ...] = table[rows[i], ...]`: row `i` of the result is the row of the
    table that `rows[i]` names. The rows of an embedding, of the pages of a
    cache of keys and values, or of the tokens that an expert takes are read so.
    Numbers are signed; where one names no row of the table, and where a sliced
    `rows` or table has no element, the result is `pad` (zero when absent).
    Nothing is read outside the table, whatever the numbers are.

    **Constraints**

    * (GA1) `rows` has one dimension, of 32-bit or 64-bit integers;
    * (GA2) the result has the table's element type and its shape, with as many
      rows as there are numbers;
    * (GA3) `pad` has the element type.

    **Example**

    ```mlir
    %x = axe.gather %table at %tokens : memref<32000x64xf16>, memref<128xi32> -> tensor<128x64xf16, #frag>
    ```

    **Errors**

    ```mlir
    %0 = axe.gather %t at %r : memref<9x8xf16>, memref<4xf32> -> tensor<4x8xf16>          // (GA1) expected numbers of rows in one dimension of 'i32' or 'i64', got 'memref<4xf32>'
    %0 = axe.gather %t at %r : memref<9x8xf16>, memref<4xi32> -> tensor<9x8xf16>          // (GA2) expected a result of 4 rows of 'memref<9x8xf16>', got 'tensor<9x8xf16>'
    %0 = axe.gather %t at %r pad %z : f32 : memref<9x8xf16>, memref<4xi32> -> tensor<4x8xf16>  // (GA3) expected padding of type 'f16', got 'f32'
    ```
  }];
  let arguments = !con((ins Axe_Memory:$table, Axe_Memory:$rows,
                            Optional<AnyType>:$pad), scheduling);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $table `at` $rows (`pad` $pad^ `:` type($pad))?
    (`schedule` `=` $schedule^)? (`options` `=` $options^)? attr-dict
    `:` type($table) `,` type($rows) `->` type($result)
  }];
}

def Axe_CommitOp : Axe_Op<"commit", [MemoryEffects<[MemWrite]>]> {
  let summary = "Closes a group of asynchronous copies";
  let description = [{
    All asynchronous copies that the scope issued since its last `axe.commit`
    form the group of the token.

    **Errors**

    ```mlir
    %token = axe.commit : index  // invalid kind of type specified: expected axe.token, but found 'index'
    ```
  }];
  let results = (outs Axe_TokenType:$token);
  let assemblyFormat = "attr-dict `:` type($token)";
}

def Axe_WaitOp : Axe_Op<"wait", [MemoryEffects<[MemWrite]>,
    DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "Waits for groups of asynchronous copies or products";
  let description = [{
    Waits until at most `pending` groups are not complete, as seen by the
    waiting threads; a barrier makes them visible to the others.

    With `values`, waits for asynchronous products: each `axe.gemm async` is a
    group, `values` are the accumulators that wait for theirs, and the results
    are these accumulators once at most `pending` groups are not complete. An
    accumulator of a product that is not complete may only go on to the next
    product, around a loop, or to a wait.

    **Constraints**

    * (G1) `pending` is at least 0.

    **Examples**

    ```mlir
    axe.wait {pending = 2 : i64}
    %e = axe.wait %d {pending = 1 : i64} : tensor<128x256xf32, #acc>
    ```

    **Errors**

    ```mlir
    axe.wait {pending = -1 : i64}  // (G1) expected at least 0 pending groups, got -1
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values,
                       DefaultValuedAttr<I64Attr, "0">:$pending);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "($values^)? attr-dict (`:` type($values)^)?";
  let hasVerifier = 1;
}

def Axe_FillOp : Axe_Operator<"fill", [Axe_Logical, Axe_Lazy, Axe_Tileable, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "A tensor, or storage, of one value";
  let description = [{
    **Constraints**

    * (F1) exactly one of destination and result; its element type is the value's;
    * (F2) one size for each dynamic dimension of the result.

    **Example**: `%z = axe.fill %c0 : f32 -> tensor<128x256xf32, #acc>`

    **Errors**

    ```mlir
    %0 = axe.fill %z : f16                       // (F1) expected a destination or a result, and not both
    %0 = axe.fill %z : f16 -> tensor<8xf32>      // (F1) expected element type 'f16', got 'f32'
    %0 = axe.fill %z : f16 -> tensor<?xf16>      // (F2) expected 1 sizes, got 0
    ```
  }];
  let arguments = !con((ins AnyType:$value, Optional<Axe_Memory>:$dest,
                            Variadic<Index>:$sizes), scheduling);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    $value (`to` $dest^)? (`sizes` `(` $sizes^ `)`)?
    (`schedule` `=` $schedule^)? (`options` `=` $options^)? attr-dict
    `:` type($value) (`to` type($dest)^)? (`->` type($result)^)?
  }];
}

def Axe_CastOp : Axe_Operator<"cast", [Axe_Logical, Axe_Elementwise, Axe_Tileable, Pure]> {
  let summary = "Converts the element type";
  let description = [{
    Floats round to nearest even; float to integer rounds towards zero and
    saturates; integers are signed.

    **Constraints**

    * (T1) same shape and equal layouts; element types are floats or integers.

    **Example**: `%h = axe.cast %x : tensor<128x256xf32, #acc> -> tensor<128x256xf16, #acc>`

    **Errors**

    ```mlir
    %0 = axe.cast %x : tensor<8xf32> -> tensor<4xf16>           // (T1) expected the source's shape
    %0 = axe.cast %x : tensor<8xf32, #a> -> tensor<8xf16, #b>   // (T1) expected equal layouts
    %0 = axe.cast %x : tensor<8xindex> -> tensor<8xf16>         // (T1) expected float or integer elements, got 'index'
    ```
  }];
  let arguments = !con((ins AnyRankedTensor:$source), scheduling);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $source (`schedule` `=` $schedule^)? (`options` `=` $options^)? attr-dict
    `:` type($source) `->` type($result)
  }];
}

def Axe_MapOp : Axe_Operator<"map", [Axe_Logical, Axe_Elementwise, Axe_Tileable, Pure,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Applies a scalar body to every element";
  let description = [{
    Result element `x` is the body's value on element `x` of each input. The body may run on elements that no
    tensor has, beyond a ragged edge, and what it gives there is stored nowhere. So what an operation of `arith` leaves
    undefined is a value here that no program may rely on, on every target: a division or remainder by zero, the least
    integer divided by -1, a negative power of zero.

    **Constraints**

    * (P1) at least one input; inputs and result have the same shape and equal layouts;
    * (P2) the body has one argument an input, of its element type, and yields
      one value of the result's element type.

    **Example**

    ```mlir
    %y = axe.map ins(%x, %b : tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32> {
    ^bb0(%u: f32, %v: f32):
      %w = arith.addf %u, %v : f32
      axe.yield %w : f32
    }
    ```

    **Errors**

    ```mlir
    %0 = axe.map ins(%x, %y : tensor<4xf32>, tensor<8xf32>) -> tensor<4xf32> { ... }
    // (P1) expected input 1 to have the shape of 'tensor<4xf32>', got 'tensor<8xf32>'
    %0 = axe.map ins(%x : tensor<4xf32>) -> tensor<4xf32> { ^bb0(%u: f32): axe.yield }
    // (P2) expected the body to yield one 'f32'
    ```
  }];
  let arguments = !con((ins Variadic<AnyRankedTensor>:$inputs), scheduling);
  let results = (outs AnyRankedTensor:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `ins` `(` $inputs `:` type($inputs) `)` `->` type($result)
    (`schedule` `=` $schedule^)? (`options` `=` $options^)?
    attr-dict-with-keyword $body
  }];
}

def Axe_IndexOp : Axe_Op<"index", [Pure]> {
  let summary = "The index of the element that a map's body computes";
  let description = [{
    In the body of an `axe.map`: the index of the element along the dimension
    `dim` of the map's result, as `linalg.index` is for `linalg.generic`. Of a
    tile it counts from the tile's first element: the body adds the tile's
    origin to compare places in the whole tensor.

    **Constraints**

    * (IX1) it is in the body of an `axe.map`, and `dim` is below the rank of
      the map's result.

    **Example**: a causal mask of the tile at (%m, %n)

    ```mlir
    %y = axe.map ins(%s : tensor<128x64xf32, #acc>) -> tensor<128x64xf32, #acc> {
    ^bb0(%u: f32):
      %i = axe.index 0
      %j = axe.index 1
      %row = arith.addi %m, %i : index
      %column = arith.addi %n, %j : index
      %seen = arith.cmpi sle, %column, %row : index
      %v = arith.select %seen, %u, %lowest : f32
      axe.yield %v : f32
    }
    ```

    **Errors**

    ```mlir
    func.func @f() { %i = axe.index 0 }                          // (IX1) expected to be in the body of an axe.map
    %0 = axe.map ins(%x : tensor<4xf32>) -> tensor<4xf32> { ... %i = axe.index 1 ... }  // (IX1) expected a dimension below 1, got 1
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$dim);
  let results = (outs Index:$result);
  let assemblyFormat = "$dim attr-dict";
  let hasVerifier = 1;
}

def Axe_YieldOp : Axe_Op<"yield", [Terminator, HasParent<"MapOp">, Pure, ReturnLike]> {
  let summary = "The value of a map's body";
  let description = [{
    The terminator of an `axe.map`, with the element that the body computes.

    **Example**: `axe.yield %w : f32`

    **Errors**

    ```mlir
    func.func @f() { axe.yield }  // expects parent op 'axe.map'
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{ (void)$_state; }]>];
}

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
    groups of the cluster execute it, once.

    **Constraints**

    * (AG1) as many results as sources, at least one;
    * (AG2) sources have the shape `[1]` and elements of at most 64 bits, and results the source's element type and
      the shape `[1, n]`, where `n` is the number of rows of `through`;
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

def Axe_MaskOp : Axe_Operator<"mask", [Axe_Tileable, Pure, AttrSizedOperandSegments]> {
  let summary = "Keeps the elements inside bounds and replaces the others";
  let description = [{
    Element `x` of the result is that of the source where
    `origin + x < limit` in every dimension, and `value` elsewhere: what a
    reduction over a ragged tile needs.

    **Constraints**

    * (Q1) one origin and one limit for each dimension;
    * (Q2) the value has the element type; the result has the source's type.

    **Example**: `%y = axe.mask %x at (%m, %n) in (%M, %N) else %ninf : f32, tensor<4x1024xf32, #row>`

    **Errors**

    ```mlir
    %0 = axe.mask %x at(%i) in(%i) else %z : f32, tensor<4x8xf32> -> tensor<4x8xf32>         // (Q1) expected 2 origins and limits, got 1 and 1
    %0 = axe.mask %x at(%i, %i) in(%i, %i) else %z : f16, tensor<4x8xf32> -> tensor<4x8xf32> // (Q2) expected a value of the element type and a result of type 'tensor<4x8xf32>'
    ```
  }];
  let arguments = !con((ins AnyRankedTensor:$source, Variadic<Index>:$origin,
                            Variadic<Index>:$limit, AnyType:$value), scheduling);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $source `at` `(` $origin `)` `in` `(` $limit `)` `else` $value
    (`schedule` `=` $schedule^)? (`options` `=` $options^)? attr-dict
    `:` type($value) `,` type($source) `->` type($result)
  }];
}

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

#endif // AXE_OPERATORS_TD
