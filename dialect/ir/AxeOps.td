//===- AxeOps.td - Operators of the axe dialect -------------*- tablegen -*-===//
#ifndef AXE_OPS_TD
#define AXE_OPS_TD

include "AxeAttrs.td"
include "AxeTraits.td"
include "AxeTypes.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// Layouts of its types may name axes of meshes, which are symbols (L3).
def Axe_UsesMeshAxes : NativeOpTrait<"UsesMeshAxes"> {
  let cppNamespace = "::axe";
}

class Axe_Op<string mnemonic, list<Trait> traits = []>
    : Op<Axe_Dialect, mnemonic,
         !listconcat(traits, [SymbolUserOpInterface, Axe_UsesMeshAxes])>;

// An operator that `--axe-dispatch-schedules` binds to a hardware schedule.
// `schedule` forces a variant by name; `options` are that variant's own.
class Axe_Operator<string mnemonic, list<Trait> traits = []>
    : Axe_Op<mnemonic, !listconcat(traits, [Axe_OperatorTrait])> {
  dag scheduling = (ins OptionalAttr<StrAttr>:$schedule,
                        OptionalAttr<DictionaryAttr>:$options);
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Kernels, scopes, meshes
//===----------------------------------------------------------------------===//

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
    global memory and scalars; the leading extent of a memref may be dynamic.

    **Constraints**

    * (K1) `threads` is a multiple of 32 between 32 and 1024;
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
    axe.kernel @k() threads(48) { ... }                  // (K1) expected threads to be a multiple of 32 from 32 to 1024, got 48
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
    * (X3) `registers` belongs to a range of warpgroups and is a multiple of 8
      between 24 and 256; the budgets of a kernel's roles, which are disjoint,
      fit the 64 K registers of a multiprocessor together.

    `registers(n)` is the role's budget of registers a thread: producers give
    theirs up for consumers.

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
    axe.scope warp [0, 1) registers(40) { ... }     // (X3) expected a range of warpgroups with a budget of registers
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

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

def Axe_PipelineCreateOp : Axe_Op<"pipeline.create", [
    MemoryEffects<[MemAlloc, MemWrite]>]> {
  let summary = "A ring of stages between producers and consumers";
  let description = [{
    The roles that acquire its stages are the producers, those that wait for
    them the consumers; how many arrivals complete a stage follows from the
    scopes in which they commit and release. Every role goes around the ring on
    its own: which stage comes next, and which of its phases, is the ring's
    business.

    **Constraints**

    * (PL1) `stages` is at least 1;
    * (PL2) it stands in the kernel's body, outside any scope.

    **Example**: `%ring = axe.pipeline.create stages(4) : !axe.pipeline`

    **Errors**

    ```mlir
    %ring = axe.pipeline.create stages(0) : !axe.pipeline                             // (PL1) expected at least 1 stage, got 0
    axe.scope warp [0, 1) { %ring = axe.pipeline.create stages(2) : !axe.pipeline }   // (PL2) expected to stand in the body of a kernel
    ```
  }];
  let arguments = (ins I64Attr:$stages);
  let results = (outs Axe_PipelineType:$pipeline);
  let assemblyFormat = "`stages` `(` $stages `)` attr-dict `:` type($pipeline)";
  let hasVerifier = 1;
}

class Axe_TakeOp<string mnemonic> : Axe_Op<mnemonic, [Axe_TakesStage, MemoryEffects<[MemRead, MemWrite]>]> {
  let arguments = (ins Axe_PipelineType:$pipeline);
  let results = (outs Axe_SlotType:$slot, Index:$stage);
  let assemblyFormat = "$pipeline attr-dict `:` type($slot)";
  let hasVerifier = 1;
}

def Axe_AcquireOp : Axe_TakeOp<"pipeline.acquire"> {
  let summary = "The next stage to fill, once every consumer has released it";
  let description = [{
    **Constraints**

    * (PL3) each slot is given back once: it has one commit.

    **Example**: `%slot, %stage = axe.pipeline.acquire %ring : !axe.slot`

    **Errors**

    ```mlir
    %slot, %stage = axe.pipeline.acquire %ring : !axe.slot  // (PL3) expected one commit of the slot, got 0
    ```
  }];
}

def Axe_PipelineWaitOp : Axe_TakeOp<"pipeline.wait"> {
  let summary = "The next stage to use, once it is full";
  let description = [{
    **Constraints**

    * (PL4) each slot is given back once: it has one release, or a loop carries it.

    **Example**: `%slot, %stage = axe.pipeline.wait %ring : !axe.slot`

    **Errors**

    ```mlir
    %slot, %stage = axe.pipeline.wait %ring : !axe.slot  // (PL4) expected the slot to be released once, or carried by a loop, got 0 such uses
    ```
  }];
}

class Axe_GiveOp<string mnemonic> : Axe_Op<mnemonic, [Axe_GivesStage, MemoryEffects<[MemRead, MemWrite]>]> {
  let arguments = (ins Axe_PipelineType:$pipeline, Axe_SlotType:$slot);
  let assemblyFormat = "$pipeline `,` $slot attr-dict";
}

def Axe_PipelineCommitOp : Axe_GiveOp<"pipeline.commit"> {
  let summary = "Says that a stage is, or will be, full";
  let description = [{
    A stage is filled either by the copies that signal its slot, and is full
    when they are complete, or by the scope's own stores, which this orders
    before the consumers' reads.

    **Example**: `axe.pipeline.commit %ring, %slot`

    **Errors**

    ```mlir
    axe.pipeline.commit %ring, %stage  // use of value '%stage' expects different type than prior uses: '!axe.slot' vs 'index'
    ```
  }];
}

def Axe_ReleaseOp : Axe_GiveOp<"pipeline.release"> {
  let summary = "Gives a stage back to the producers";
  let description = [{
    The scope has no read of the stage to come or under way.

    **Example**: `axe.pipeline.release %ring, %slot`

    **Errors**

    ```mlir
    axe.pipeline.release %ring, %stage  // use of value '%stage' expects different type than prior uses: '!axe.slot' vs 'index'
    ```
  }];
}

//===----------------------------------------------------------------------===//
// Storage
//===----------------------------------------------------------------------===//

def Axe_AllocOp : Axe_Op<"alloc", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Storage with a layout, for the enclosing scope's lifetime";
  let description = [{
    **Constraints**

    * (A1) the shape is static and the memref has a memory space that is not global;
    * (A2) its layout, when there is one, names only the axis `m`.

    **Example**: `%s = axe.alloc : memref<4x128x64xf16, #sa, #axe.space<shared>>`

    **Errors**

    ```mlir
    %s = axe.alloc : memref<4xf32>                                                      // (A1) expected a memory space of the kernel's own, such as #axe.space<shared>
    %s = axe.alloc : memref<?xf32, #axe.space<shared>>                                  // (A1) expected a static shape
    %s = axe.alloc : memref<4xf32, #axe.layout<S[4 : 1@lane]>, #axe.space<shared>>      // (A2) expected a layout on the memory axis m alone
    ```
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$alignment);
  let results = (outs Axe_Memory:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Axe_SliceOp : Axe_Op<"slice", [Axe_StorageView, Pure]> {
  let summary = "A static box of a memref, at a run-time origin";
  let description = [{
    The result is the box of the result's shape that starts at `origin`. Where
    the box reaches outside the source, reads give the reader's padding and
    writes are dropped: a slice carries its source's bounds with it, so that
    sizes that no tile divides need no other code.

    A unit dimension of the box may be dropped: trailing result dimensions
    match the last source dimensions.

    The result's layout counts addresses from the box's first element. A swizzle
    moves the storage's addresses: the result names it too, and counts before it.

    **Constraints**

    * (V1) one origin for each source dimension;
    * (V2) same element type and memory space; result shape static, of rank at most the source's;
    * (V3) the result's layout, when written, is that of the source's box.

    **Example**: `%t = axe.slice %a[%m, %k] : memref<?x4096xf16> to memref<128x64xf16, strided<[4096, 1]>>`

    **Errors**

    ```mlir
    axe.slice %x[%i] : memref<8x8xf32> to memref<4x4xf32, strided<[8, 1]>>     // (V1) expected 2 origins, got 1
    axe.slice %x[%i, %i] : memref<8x8xf32> to memref<4x4xf16, strided<[8, 1]>> // (V2) expected element type 'f32', got 'f16'
    axe.slice %x[%i, %i] : memref<8x8xf32> to memref<4x4xf32>                  // (V3) expected stride 8 in dimension 0 of the box, got 4
    ```
  }];
  let arguments = (ins Axe_Memory:$source, Variadic<Index>:$origin);
  let results = (outs Axe_Memory:$result);
  let assemblyFormat = "$source `[` $origin `]` attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

def Axe_ViewOp : Axe_Op<"view", [Axe_StorageView, Pure]> {
  let summary = "The same storage under another layout";
  let description = [{
    Reads the source's memory through the result's layout: a transpose, a
    broadcast (stride 0), a reshape.

    **Constraints**

    * (W1) same element type and memory space;
    * (W2) the result's span on `m` does not exceed the source's.

    **Example**: a bias row as a matrix
    ```mlir
    %b = axe.view %bias : memref<256xf16> to memref<128x256xf16, #axe.layout<S[(128, 256) : (0, 1)]>>
    ```

    **Errors**

    ```mlir
    axe.view %x : memref<8x8xf32> to memref<8x8xf16>  // (W1) expected element type 'f32', got 'f16'
    axe.view %x : memref<8x8xf32> to memref<8x9xf32>  // (W2) expected a view of at most 64 elements of storage, got one that spans 72
    ```
  }];
  let arguments = (ins Axe_Memory:$source);
  let results = (outs Axe_Memory:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

def Axe_PeerOp : Axe_Op<"peer", [Axe_StorageView, Pure]> {
  let summary = "The same storage of another CTA of the cluster";
  let description = [{
    Every CTA of a cluster has the kernel's shared storage at the same address:
    the result is that of the CTA `rank` (`gpu.cluster_block_id`), which this one
    may read and write while both run, ordered by `axe.barrier cluster`.

    **Constraints**

    * (Y1) the source is in shared memory, and the result, of the same type but for it, in `cluster_shared`.

    **Example**: `%there = axe.peer %s at %rank : memref<64xf32, #axe.space<shared>> to memref<64xf32, #axe.space<cluster_shared>>`

    **Errors**

    ```mlir
    axe.peer %x at %rank : memref<8xf16> to memref<8xf16, #axe.space<cluster_shared>>  // (Y1) expected shared memory, and the same type in #axe.space<cluster_shared>
    ```
  }];
  let arguments = (ins Axe_Memory:$source, Index:$rank);
  let results = (outs Axe_Memory:$result);
  let assemblyFormat = "$source `at` $rank attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

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
    fetches a part of it for all. With `accumulate`, the source's elements are
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
    * (C7) the option `l2` is one of its three.

    **Examples**

    ```mlir
    axe.copy async %tile to %stage signal %slot : memref<...> to memref<..., #axe.space<shared>>
    axe.copy async %tile to %stage : memref<...> to memref<..., #axe.space<shared>>
    %f = axe.copy %stage : memref<..., #axe.space<shared>> -> tensor<128x16xf16, #frag>
    axe.copy %part to %sums accumulate : tensor<128x64xf32, #acc> to memref<128x64xf32, ...>
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
    ```
  }];
  let arguments = !con((ins Axe_TensorOrMemory:$source,
                            Optional<Axe_Memory>:$dest,
                            Optional<AnyType>:$pad,
                            Optional<Axe_SlotType>:$signal,
                            UnitAttr:$isAsync, UnitAttr:$multicast,
                            UnitAttr:$accumulate), scheduling);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    (`async` $isAsync^)? $source (`to` $dest^)? (`pad` $pad^ `:` type($pad))?
    (`signal` $signal^)? (`multicast` $multicast^)? (`accumulate` $accumulate^)?
    (`schedule` `=` $schedule^)? (`options` `=` $options^)? attr-dict
    `:` type($source) (`to` type($dest)^)? (`->` type($result)^)?
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
    Result element `x` is the body's value on element `x` of each input.

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
    * (R3) `and` and `or` take integers.

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
    %p = axe.extract_slice %sum [0, 64] : tensor<128x192xf32, #acc> -> tensor<128x64xf32, #panel>
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

#endif // AXE_OPS_TD
