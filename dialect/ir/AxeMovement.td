//===- AxeMovement.td - Operators that move elements -------*- tablegen -*-===//
//
// Included by AxeOps.td, behind the base classes of operations.
//
//===----------------------------------------------------------------------===//
#ifndef AXE_MOVEMENT_TD
#define AXE_MOVEMENT_TD

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
    With `wrap`, a negative number counts from the last row on, as in NumPy. With
    `clamp`, a number that names no row stands for the nearest one, as in
    StableHLO's gather, and where a sliced `rows` has none, for some row.
    Nothing is read outside the table, whatever the numbers are. Numbers that a
    kernel forms itself are in registers, and each thread has those of the rows
    that it has elements of.

    **Constraints**

    * (GA1) `rows` has one dimension, of 32-bit or 64-bit integers;
    * (GA2) the result has the table's element type and its shape, with as many
      rows as there are numbers;
    * (GA3) `pad` has the element type;
    * (GA4) with `clamp` there is no `pad`, and the table is known to have a row.

    **Example**

    ```mlir
    %x = axe.gather %table at %tokens : memref<32000x64xf16>, memref<128xi32> -> tensor<128x64xf16, #frag>
    %y = axe.gather %table at %tokens wrap clamp : memref<32000x64xf16>, memref<128xi32> -> tensor<128x64xf16, #frag>
    ```

    **Errors**

    ```mlir
    %0 = axe.gather %t at %r : memref<9x8xf16>, memref<4xf32> -> tensor<4x8xf16>          // (GA1) expected numbers of rows in one dimension of 'i32' or 'i64', got 'memref<4xf32>'
    %0 = axe.gather %t at %r : memref<9x8xf16>, memref<4xi32> -> tensor<9x8xf16>          // (GA2) expected a result of 4 rows of 'memref<9x8xf16>', got 'tensor<9x8xf16>'
    %0 = axe.gather %t at %r pad %z : f32 : memref<9x8xf16>, memref<4xi32> -> tensor<4x8xf16>  // (GA3) expected padding of type 'f16', got 'f32'
    %0 = axe.gather %t at %r clamp : memref<?x8xf16>, memref<4xi32> -> tensor<4x8xf16>    // (GA4) expected no padding, and a table with rows, got 'memref<?x8xf16>'
    ```
  }];
  let arguments = !con((ins Axe_Memory:$table, Axe_TensorOrMemory:$rows,
                            Optional<AnyType>:$pad, UnitAttr:$wrap,
                            UnitAttr:$clamp), scheduling);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $table `at` $rows (`pad` $pad^ `:` type($pad))? (`wrap` $wrap^)?
    (`clamp` $clamp^)?
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

#endif // AXE_MOVEMENT_TD
