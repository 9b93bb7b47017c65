//===- TrnTypes.td - Tiles in the memories of a core --------*- tablegen -*-===//
#ifndef TRN_TYPES_TD
#define TRN_TYPES_TD

include "TrnDialect.td"
include "mlir/IR/AttrTypeBase.td"

class Trn_TileType<string name, string typeMnemonic> : TypeDef<Trn_Dialect, name> {
  let mnemonic = typeMnemonic;
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape,
                        "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Trn_HbmType : Trn_TileType<"Hbm", "hbm"> {
  let summary = "A tensor in the device's memory";
  let description = [{
    `!trn.hbm<4096x8192xbf16>`, row-major.

    **Constraints**

    * (T1) 1 to 8 extents (2 to 8 on chip), each from 1 to 2^40;
    * (T2) elements are bf16, f16, f32, f8E4M3FN, f8E5M2, or integers of 8, 16 or 32 bits.
  }];
}

def Trn_SbufType : Trn_TileType<"Sbuf", "sbuf"> {
  let summary = "A tile in the scratchpad: partitions, then elements of each";
  let description = [{
    `!trn.sbuf<128x4x512xbf16>`: 128 partitions of 4 x 512 elements, row-major.
    (T1), (T2) as for `!trn.hbm`.
  }];
}

def Trn_PsumType : Trn_TileType<"Psum", "psum"> {
  let summary = "A tile in the accumulators: partitions, then elements of each";
  let description = [{
    `!trn.psum<128x512xf32>`: one bank of 128 partitions. (T1), (T2) as for `!trn.hbm`.
  }];
}

def Trn_Tile : AnyTypeOf<[Trn_HbmType, Trn_SbufType, Trn_PsumType],
    "a tensor or tile in HBM, SBUF or PSUM">;
def Trn_OnChip : AnyTypeOf<[Trn_SbufType, Trn_PsumType], "a tile in SBUF or PSUM">;

#endif // TRN_TYPES_TD
