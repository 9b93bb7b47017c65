//===- AxeKernels.td - Kernels, scopes, meshes -------------*- tablegen -*-===//
//
// Included by AxeOps.td, behind the base classes of operations.
//
//===----------------------------------------------------------------------===//
#ifndef AXE_KERNELS_TD
#define AXE_KERNELS_TD

def Axe_MeshOp : Axe_Op<"mesh", [Symbol]> {
  let summary = "Declares a device mesh, whose axes layouts may name";
  let description = [{
    `axe.mesh @pod(dp = 4, tp = 8)` declares the axes `pod.dp` and `pod.tp`.
    A device's rank is row-major in the order of the axes.

    **Constraints**

    * (M1) at least one axis; as many names as sizes; names differ; sizes are at least 1.

    **Example**

    ```mlir
    axe.mesh @pod(dp = 4, tp = 8)
    func.func @f(%x: tensor<64x32xf32, #axe.layout<S[(8, 8, 32) : (1@pod.tp, 32, 1)]>>)
    ```

    **Errors**

    ```mlir
    axe.mesh @pod()              // (M1) expected at least one axis
    axe.mesh @pod(a = 4, a = 8)  // (M1) expected distinct axes, got 'a' twice
    axe.mesh @pod(a = 0)         // (M1) expected a size of at least 1 on axis 'a', got 0
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$axes,
                       DenseI64ArrayAttr:$sizes);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::LogicalResult
    verifySymbolUses(::mlir::SymbolTableCollection &symbolTable);
  }];
}

def Axe_KernelOp : Axe_Op<"kernel", [
    IsolatedFromAbove, FunctionOpInterface, AutomaticAllocationScope]> {
  let summary = "A kernel: the program of one CTA (or one CPU task)";
  let description = [{
    The body runs once for every block of the launch grid, by `threads` threads
    together: an operator in it is executed by all threads of the enclosing
    scope, the whole CTA outside any `axe.scope`. Arguments are memrefs in
    global memory and scalars. Extents of a memref may be dynamic; operators on
    registers take storage whose leading extent alone is.

    **Constraints**

    * (K1) `threads` is at least 1; a target has limits of its own;
    * (K2) arguments are memrefs, integers, floats or indices; no results;
    * (K3) every `cluster` extent is at least 1.

    **Example**

    ```mlir
    axe.kernel @scale(%x: memref<?x128xf32>, %y: memref<?x128xf32>) threads(128) {
      ...
      axe.return
    }
    ```

    **Errors**

    ```mlir
    axe.kernel @k() threads(0) { ... }                   // (K1) expected at least 1 thread, got 0
    axe.kernel @k(%x: tensor<4xf32>) threads(32) { ... } // (K2) expected a memref or a scalar as argument 0, got 'tensor<4xf32>'
    axe.kernel @k() threads(32) cluster(0) { ... }       // (K3) expected cluster extents of at least 1
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       I64Attr:$threads,
                       OptionalAttr<DenseI64ArrayAttr>:$cluster,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region MinSizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::ArrayRef<::mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    ::mlir::ArrayRef<::mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
}

def Axe_ReturnOp : Axe_Op<"return", [Terminator, HasParent<"KernelOp">]> {
  let summary = "Ends a kernel";
  let description = [{
    The terminator of a kernel, which has no results.

    **Example**: `axe.return`

    **Errors**

    ```mlir
    func.func @f() { axe.return }  // expects parent op 'axe.kernel'
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Axe_LaunchOp : Axe_Op<"launch", [
    AttrSizedOperandSegments]> {
  let summary = "Launches a kernel on a grid, in destination-passing style";
  let description = [{
    Runs `kernel` on a grid of `x * y * z` blocks. The kernel's arguments are
    `ins` followed by `outs`; a tensor stands for the memref of the same shape
    and element type. Each result is the value of the matching `outs` after the
    launch.

    **Constraints**

    * (U1) `kernel` names an `axe.kernel` whose argument types match, or, as
      `@module::@kernel`, one that is bound to a target already: a function of a
      `gpu.module`, or any name in a `gpu.binary`, whose contents are opaque;
    * (U2) one result for every tensor among `outs`, of the same type.

    **Examples**

    ```mlir
    %r = axe.launch @scale grid(%g, %c1, %c1)
        ins(%x : tensor<?x128xf32>) outs(%e : tensor<?x128xf32>) -> tensor<?x128xf32>
    %s = axe.launch @kernels::@scale grid(%g, %c1, %c1)
        ins(%x : tensor<?x128xf32>) outs(%e : tensor<?x128xf32>)
        {threads = 128 : i64, shared_bytes = 0 : i64} -> tensor<?x128xf32>
    ```

    **Errors**

    ```mlir
    axe.launch @missing grid(%n, %n, %n)                          // (U1) '@missing' is not an axe.kernel
    axe.launch @k grid(%n, %n, %n) ins(%x : tensor<8xf32>)        // (U1) expected argument 0 to fit 'memref<4xf32>', got 'tensor<8xf32>'
    axe.launch @module::@k grid(%n, %n, %n)                       // (U1) expected '@module' to be a gpu.module or a gpu.binary
    axe.launch @k grid(%n, %n, %n) outs(%x : tensor<4xf32>)       // (U2) expected one result for every tensor among outs, of the same type
    ```
  }];
  let arguments = (ins SymbolRefAttr:$kernel,
                       Index:$gridX, Index:$gridY, Index:$gridZ,
                       Variadic<AnyType>:$inputs, Variadic<AnyType>:$outputs);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $kernel `grid` `(` $gridX `,` $gridY `,` $gridZ `)`
    (`ins` `(` $inputs^ `:` type($inputs) `)`)?
    (`outs` `(` $outputs^ `:` type($outputs) `)`)?
    attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::llvm::LogicalResult
    verifySymbolUses(::mlir::SymbolTableCollection &symbolTable);
  }];
}

def Axe_ScopeOp : Axe_Op<"scope", [
    SingleBlockImplicitTerminator<"EndOp">, RecursiveMemoryEffects]> {
  let summary = "Executes its body by a range of the enclosing scope's members";
  let description = [{
    `axe.scope warpgroup [1, 3)` selects warpgroups 1 and 2 of the enclosing
    scope; operators in the body are executed by those threads together, and
    layouts count from the first selected thread. Without a range every member
    executes the body for itself: `axe.scope warp { ... }` makes each warp a
    scope of its own.

    **Constraints**

    * (X1) the level is inside the enclosing level (device, cluster, cta,
      warpgroup, warp, thread);
    * (X2) a range is not empty and lies in the enclosing scope;
    * (X3) `registers` belongs to a range and is at least 1; the ranges of a
      kernel's roles, which have such budgets, are disjoint.

    `registers(n)` is the role's budget of registers a thread: producers give
    theirs up for consumers. Which budgets there are is the target's.

    **Example**

    ```mlir
    axe.scope warpgroup [0, 1) registers(40) { ... }
    axe.scope warpgroup [1, 3) registers(232) { ... }
    ```

    **Errors**

    ```mlir
    axe.scope warp { axe.scope warpgroup { ... } }  // (X1) expected a level inside 'warp', got 'warpgroup'
    axe.scope warp [2, 2) { ... }                   // (X2) expected a range [begin, end) with begin < end
    axe.scope warp [3, 5) { ... }                   // (X2) expected a range inside the 4 warps of the enclosing scope, got [3, 5)
    axe.scope warpgroup registers(40) { ... }       // (X3) expected a range with a budget of registers
    ```
  }];
  let arguments = (ins Axe_LevelAttr:$level,
                       OptionalAttr<DenseI64ArrayAttr>:$range,
                       OptionalAttr<I64Attr>:$registers);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Axe_EndOp : Axe_Op<"end", [Terminator, ParentOneOf<["ScopeOp", "ForTilesOp"]>, Pure]> {
  let summary = "Ends a scope or a loop over tiles";
  let description = [{
    The terminator of an `axe.scope` and of an `axe.for_tiles`, which is not written.

    **Errors**

    ```mlir
    axe.kernel @k() threads(32) { axe.end }  // expects parent op to be one of 'axe.scope, axe.for_tiles'
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Axe_BarrierOp : Axe_Op<"barrier", [MemoryEffects<[MemWrite]>]> {
  let summary = "Waits for every thread of the enclosing scope";
  let description = [{
    Orders all earlier accesses of the scope's threads to shared and global
    memory before all later ones. With `async`, the later ones include
    asynchronous copies out of shared memory and asynchronous products on it,
    which read through another proxy than the threads' own stores. With
    `cluster`, it waits for every thread of all CTAs of the cluster and orders
    their accesses to each other's shared memory.

    **Constraints**

    * (BA1) `cluster` outside of all scopes: every thread of the CTA arrives.

    **Errors**

    ```mlir
    axe.scope warp [0, 1) { axe.barrier cluster }  // (BA1) expected 'cluster' outside of all scopes: every thread of the CTA arrives
    ```
  }];
  let arguments = (ins UnitAttr:$isAsync, UnitAttr:$acrossCluster);
  let assemblyFormat = "(`async` $isAsync^)? (`cluster` $acrossCluster^)? attr-dict";
  let hasVerifier = 1;
}

def Axe_OrderedBeginOp : Axe_Op<"ordered.begin", [MemoryEffects<[MemWrite]>]> {
  let summary = "Waits until it is this member's turn";
  let description = [{
    The members of the scope around it, at the level `level`, go on one after
    another: the first one, the second one, ..., the last one, and the first one
    again. A turn lasts until the `axe.ordered.end` of the token. Other members
    execute meanwhile what is outside of their turns: of two warpgroups that
    issue their products in turns, one multiplies while the other forms the
    exponentials of its softmax ("ping-pong", FlashAttention-3; CUTLASS's
    `OrderedSequenceBarrier`). It orders the members' execution, and no memory.

    All `axe.ordered.begin` of a scope share one order, in loops and branches
    too: every member takes as many turns as the others.

    **Constraints**

    * (OB1) the scope around it has several members of the level, which are warps or warpgroups;
    * (OB2) the token has one use, an `axe.ordered.end` behind it in the same block;
    * (OB3) no other turn lies between the two.

    **Example**

    ```mlir
    axe.scope warpgroup [1, 3) {
      scf.for ... {
        %turn = axe.ordered.begin warpgroup : !axe.token
        %s = axe.gemm async ...
        axe.ordered.end %turn
        ...
      }
    }
    ```

    **Errors**

    ```mlir
    axe.scope warpgroup [1, 2) { %t = axe.ordered.begin warpgroup : !axe.token ... }  // (OB1) expected a scope of several warpgroups around it
    %t = axe.ordered.begin warpgroup : !axe.token                                     // (OB2) expected one axe.ordered.end of the token, in the same block, got 0
    %t = axe.ordered.begin ... %u = axe.ordered.begin ... axe.ordered.end %t          // (OB3) expected no other turn within a turn
    ```
  }];
  let arguments = (ins Axe_LevelAttr:$level);
  let results = (outs Axe_TokenType:$turn);
  let assemblyFormat = "$level attr-dict `:` type($turn)";
  let hasVerifier = 1;
}

def Axe_OrderedEndOp : Axe_Op<"ordered.end", [MemoryEffects<[MemWrite]>]> {
  let summary = "Hands the turn on to the next member";
  let description = [{
    Ends the turn that `axe.ordered.begin` gave, and goes on: the next member
    may begin its turn.

    **Constraints**

    * (OE1) the token is that of an `axe.ordered.begin`.

    **Example**: `axe.ordered.end %turn`

    **Errors**

    ```mlir
    %t = axe.commit : !axe.token
    axe.ordered.end %t  // (OE1) expected the token of an axe.ordered.begin
    ```
  }];
  let arguments = (ins Axe_TokenType:$turn);
  let assemblyFormat = "$turn attr-dict";
  let hasVerifier = 1;
}

def Axe_ForTilesOp : Axe_Op<"for_tiles", [
    SingleBlockImplicitTerminator<"EndOp">, RecursiveMemoryEffects]> {
  let summary = "Visits a grid of tiles, shared out among the blocks of the launch";
  let description = [{
    The tiles of the grid `counts` are numbered in `raster` order, and the block `b` of
    `g` visits the tiles `b, b + g, b + 2 g, ...`: with fewer blocks than tiles
    the kernel is persistent, and every grid is right. In a kernel with clusters
    the clusters share the tiles out, and all CTAs of one visit the same. All roles of a kernel
    that loop over the same tiles visit them in the same order.

    `raster` concerns the last two dimensions; those before are outermost.
    `rows` and `columns` number along rows and columns; `groups` takes `swizzle`
    rows of tiles at a time and goes down their columns, so that blocks that run
    together share operands in the cache; `snake` is `groups` with every other
    group from right to left; `hilbert` follows Hilbert's curve.

    With `pingpong`, thread groups that run side by side take turns at the block's
    tiles: of `t` groups the first has its tiles 0, `t`, `2 t`, ... While
    one stores its tile the next multiplies. A ring's stages go to the team whose
    tile they belong to; each tile takes as many of them, and after the loop the
    thread groups leave the ring alone.

    **Constraints**

    * (I1) at least two counts, and one index argument for each;
    * (I2) `swizzle` is at least 1, and belongs to `groups` and `snake`;
    * (I3) `pingpong` in a scope of several thread groups: of warps or warpgroups, without a range.

    **Example**

    ```mlir
    axe.for_tiles (%i, %j) in (%rows, %columns) raster(groups 8) { ... }
    axe.scope warpgroup {
      axe.for_tiles (%i, %j) in (%rows, %columns) raster(rows) pingpong { ... }
    }
    ```

    **Errors**

    ```mlir
    axe.for_tiles (%i) in (%n) raster(rows) { ... }                  // (I1) expected at least two counts, and one index argument for each, got 1 and 1
    axe.for_tiles (%i, %j) in (%n, %n) raster(rows 4) { ... }        // (I2) expected a swizzle of at least 1, and only for 'groups' and 'snake', got 4
    axe.for_tiles (%i, %j) in (%n, %n) raster(rows) pingpong { ... } // (I3) expected 'pingpong' in a scope of several thread groups
    axe.for_tiles (%i, %j) in (%n, %n) raster(spiral) { ... }        // expected a raster order (rows, columns, groups, snake, hilbert), got 'spiral'
    ```
  }];
  let arguments = (ins Variadic<Index>:$counts, Axe_RasterOrderAttr:$raster,
                       DefaultValuedAttr<I64Attr, "1">:$swizzle,
                       UnitAttr:$pingpong);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

// It divides by counts, which may be zero where it is not reached: it stays there.
def Axe_TileAtOp : Axe_Op<"tile_at", [NoMemoryEffect]> {
  let summary = "The place of a tile by its number";
  let description = [{
    The row and the column of the tile `number` of a grid of `rows` by `columns`
    tiles in `raster` order, which is what `axe.for_tiles` numbers them by. A kernel that
    shares some tiles out in another way than the rest has their numbers from a
    loop of its own. There is no place for a number that no tile has: it is less
    than `rows * columns`.

    **Constraints**

    * (TA1) `swizzle` is at least 1, and belongs to `groups` and `snake`.

    **Example**

    ```mlir
    %i, %j = axe.tile_at %number in (%rows, %columns) raster(groups 8)
    ```

    **Errors**

    ```mlir
    %i, %j = axe.tile_at %number in (%n, %n) raster(groups 0)  // (TA1) expected a swizzle of at least 1, and only for 'groups' and 'snake', got 0
    %i, %j = axe.tile_at %number in (%n, %n) raster(spiral)    // expected a raster order (rows, columns, groups, snake, hilbert), got 'spiral'
    ```
  }];
  let arguments = (ins Index:$number, Index:$rows, Index:$columns,
                       Axe_RasterOrderAttr:$raster,
                       DefaultValuedAttr<I64Attr, "1">:$swizzle);
  let results = (outs Index:$row, Index:$column);
  let assemblyFormat = [{
    $number `in` ` ` `(` $rows `,` $columns `)` `raster` ``
    custom<RasterOrder>($raster, $swizzle) attr-dict
  }];
  let hasVerifier = 1;
}

#endif // AXE_KERNELS_TD
