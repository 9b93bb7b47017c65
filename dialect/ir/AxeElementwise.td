//===- AxeElementwise.td - Operators on each element -------*- tablegen -*-===//
//
// Included by AxeOps.td, behind the base classes of operations.
//
//===----------------------------------------------------------------------===//
#ifndef AXE_ELEMENTWISE_TD
#define AXE_ELEMENTWISE_TD

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

#endif // AXE_ELEMENTWISE_TD
