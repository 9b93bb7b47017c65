//===- AxeAttrs.td - Attributes of the axe dialect ----------*- tablegen -*-===//
#ifndef AXE_ATTRS_TD
#define AXE_ATTRS_TD

include "AxeDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/TensorEncoding.td"

class Axe_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Axe_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Axe_LayoutAttr : Axe_Attr<"Layout", "layout", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>,
    DeclareAttrInterfaceMethods<MemRefLayoutAttrInterface,
      ["getAffineMap", "isIdentity", "verifyLayout", "getStridesAndOffset"]>]> {
  let summary = "Where every element of a tensor lives: shard, replica, offset, swizzle";
  let description = [{
    `L(x) = { D(x) + r + O | r in R }`, with `D` the ordered shard iters, `R`
    the replica iters and `O` one offset an axis; a swizzle xors bits of the
    resulting address on the linear memory axis `m`.

    ```
    layout  ::= (swizzle `o`)? shard (`+` replica)? (`+` offset)*
    swizzle ::= `Sw` `<` bits `,` base `,` shift `>`
    shard   ::= `S` `[` extents `:` strides `]`
    replica ::= `R` `[` extents `:` strides `]`
    extents ::= integer | `(` integer-list? `)`
    strides ::= stride  | `(` stride-list? `)`
    stride  ::= integer (`@` axis)?            // no axis: m
    offset  ::= integer (`@` axis)?
    ```

    The outermost shard extent may be dynamic (`?`).

    **Constraints**

    * (L1) as many strides as extents, in `S` and in `R`;
    * (L2) extents are at least 1; only the first of `S` may be `?`;
    * (L3) every axis belongs to the vocabulary that the registered targets
      declare, or is `mesh.axis` of an `axe.mesh` around the operation whose types
      name it, with places from 0 to below the axis's size;
    * (L4) sizes, spans and offsets fit in 64 bits;
    * (L5) swizzle parameters are those of CuTe: `bits`, `base` at least 0,
      `|shift| >= bits`, and the swizzled address fits in 62 bits;
    * (L6) as an encoding or a memref layout: the shape is admitted, its product
      is the product of the shard extents.

    **Examples**

    ```mlir
    #axe.layout<S[(8, 2, 4, 2) : (4@lane, 1@warp, 1@lane, 1@reg)] + R[2 : 4@warp] + 5@warp>
    #axe.layout<Sw<3, 3, 3> o S[(128, 64) : (64, 1)]>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"::axe::IterData">:$shard,
    ArrayRefParameter<"::axe::IterData">:$replica,
    ArrayRefParameter<"::axe::OffsetData">:$offsets,
    "::std::optional<::axe::SwizzleData>":$swizzle);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The same layout as the C ABI passes it to the algebra. The views point
    /// into this attribute's storage.
    ::axe::LayoutView getView() const;
  }];
}

def Axe_SpaceAttr : Axe_Attr<"Space", "space"> {
  let summary = "A memory space that a target declares: global, shared, ...";
  let description = [{
    The memory space of a `memref`. A memref without one is global memory.

    **Constraints**

    * (S1) the name belongs to the vocabulary that the registered targets declare.

    **Example**: `memref<128x64xf16, #axe.layout<S[(128, 64) : (64, 1)]>, #axe.space<shared>>`
  }];
  let parameters = (ins StringRefParameter<"">:$name);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Axe_Combiner : I32EnumAttr<"Combiner", "how a reduction combines two values", [
    I32EnumAttrCase<"Add", 0, "add">,
    I32EnumAttrCase<"Mul", 1, "mul">,
    I32EnumAttrCase<"Max", 2, "max">,
    I32EnumAttrCase<"Min", 3, "min">,
    I32EnumAttrCase<"And", 4, "and">,
    I32EnumAttrCase<"Or", 5, "or">,
    I32EnumAttrCase<"Xor", 6, "xor">,
    I32EnumAttrCase<"MaxUI", 7, "maxui">,
    I32EnumAttrCase<"MinUI", 8, "minui">]> {
  let cppNamespace = "::axe";
  let genSpecializedAttr = 0;
}
def Axe_CombinerAttr : EnumAttr<Axe_Dialect, Axe_Combiner, "combiner"> {
  let assemblyFormat = "`<` $value `>`";
}

// A warp is 32 threads and a warpgroup four warps, as everywhere in CUDA.
def Axe_Level : I32EnumAttr<"Level", "a level of the execution hierarchy", [
    I32EnumAttrCase<"Device", 0, "device">,
    I32EnumAttrCase<"Cluster", 1, "cluster">,
    I32EnumAttrCase<"Cta", 2, "cta">,
    I32EnumAttrCase<"Warpgroup", 3, "warpgroup">,
    I32EnumAttrCase<"Warp", 4, "warp">,
    I32EnumAttrCase<"Thread", 5, "thread">]> {
  let cppNamespace = "::axe";
  let genSpecializedAttr = 0;
}
def Axe_LevelAttr : EnumAttr<Axe_Dialect, Axe_Level, "level">;

def Axe_RasterOrder : I32EnumAttr<"RasterOrder", "the raster order: that in which a grid of tiles is visited", [
    I32EnumAttrCase<"Rows", 0, "rows">,
    I32EnumAttrCase<"Columns", 1, "columns">,
    I32EnumAttrCase<"Groups", 2, "groups">,
    I32EnumAttrCase<"Snake", 3, "snake">,
    I32EnumAttrCase<"Hilbert", 4, "hilbert">]> {
  let cppNamespace = "::axe";
  let genSpecializedAttr = 0;
}
def Axe_RasterOrderAttr : EnumAttr<Axe_Dialect, Axe_RasterOrder, "raster_order">;

#endif // AXE_ATTRS_TD
