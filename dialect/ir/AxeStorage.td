//===- AxeStorage.td - Storage and its views ---------------*- tablegen -*-===//
//
// Included by AxeOps.td, behind the base classes of operations.
//
//===----------------------------------------------------------------------===//
#ifndef AXE_STORAGE_TD
#define AXE_STORAGE_TD

def Axe_AllocOp : Axe_Op<"alloc", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Storage with a layout, for the enclosing scope's lifetime";
  let description = [{
    **Constraints**

    * (A1) the shape is static and the memref has a memory space that is not global;
    * (A2) its layout, when there is one, names only axes of the memory space: `m`, or those that the target
      declares for it, such as `P` and `F` of Trainium's `sbuf`.

    **Examples**

    ```mlir
    %s = axe.alloc : memref<4x128x64xf16, #sa, #axe.space<shared>>
    %t = axe.alloc : memref<128x512xbf16, #axe.layout<S[(128, 512) : (1@P, 1@F)]>, #axe.space<sbuf>>
    ```

    **Errors**

    ```mlir
    %s = axe.alloc : memref<4xf32>                                                      // (A1) expected a memory space of the kernel's own, such as #axe.space<shared>
    %s = axe.alloc : memref<?xf32, #axe.space<shared>>                                  // (A1) expected a static shape
    %s = axe.alloc : memref<4xf32, #axe.layout<S[4 : 1@lane]>, #axe.space<shared>>      // (A2) expected a layout on the axes of 'shared' alone
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

def Axe_AllGatherCreateOp : Axe_Op<"all_gather.create", [MemoryEffects<[MemAlloc, MemWrite]>]> {
  let summary = "Storage through which thread groups of a cluster gather values";
  let description = [{
    A row of 32-bit words for each thread group of the cluster's CTAs that
    executes the `axe.all_gather` through it, and what says that all rows are
    there. Every CTA of the cluster has its own, which the others write:
    an `axe.barrier cluster` behind this says that they may.

    With two such matrices, slots, the `axe.all_gather` may stand in a loop: each
    turn takes the other slot. A thread group gives a row of one turn
    once it has read the turn before, and waits for the rows of all, so that nobody
    writes what another one still reads.

    **Constraints**

    * (AC1) the result is a matrix of `i32` in shared memory, or two of them, without a layout, of static shape;
    * (AC2) it stands in the kernel's body, outside any scope;
    * (AC3) at most one `axe.all_gather` uses it: a second one would overwrite what is still read.

    **Example**: `%all = axe.all_gather.create : memref<64x2xi32, #axe.space<shared>>`, and in a loop
    `%all = axe.all_gather.create : memref<2x64x2xi32, #axe.space<shared>>`

    **Errors**

    ```mlir
    %all = axe.all_gather.create : memref<64xi32, #axe.space<shared>>                             // (AC1) expected a matrix of 'i32', or two, in #axe.space<shared>, without a layout
    axe.scope warp { %all = axe.all_gather.create : memref<64x2xi32, #axe.space<shared>> }        // (AC2) expected to stand in the body of a kernel
    axe.all_gather %a through %all ... axe.all_gather %b through %all ...                         // (AC3) expected one axe.all_gather through it, got 2
    ```
  }];
  let results = (outs Axe_Memory:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Axe_ReduceScatterCreateOp : Axe_Op<"reduce_scatter.create", [MemoryEffects<[MemAlloc, MemWrite]>]> {
  let summary = "Storage through which CTAs of a cluster combine parts of tensors";
  let description = [{
    Room for a part of each other CTA's tensor, and what says that all parts
    are there, and that they were read. Every CTA of the cluster has its own, which the others
    write once they have arrived here.

    **Constraints**

    * (SC1) the result has elements of 32 bits in shared memory, without a layout, of static shape: first the other
      CTAs, then the shape of a part;
    * (SC2) it stands in the kernel's body, outside any scope;
    * (SC3) at most one `axe.reduce_scatter` uses it: a second one would overwrite what is still read.

    **Example**: `%parts = axe.reduce_scatter.create : memref<1x128x64xf32, #axe.space<shared>>`

    **Errors**

    ```mlir
    %parts = axe.reduce_scatter.create : memref<1x128x64xf16, #axe.space<shared>>                  // (SC1) expected elements of 32 bits in #axe.space<shared>, of static shape and without a layout
    axe.scope warp { %parts = axe.reduce_scatter.create : memref<1x8xf32, #axe.space<shared>> }    // (SC2) expected to stand in the body of a kernel
    axe.reduce_scatter <add> %a dim 1 through %parts ... axe.reduce_scatter <add> %b dim 1 through %parts ... // (SC3) expected one axe.reduce_scatter through it, got 2
    ```
  }];
  let results = (outs Axe_Memory:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // AXE_STORAGE_TD
