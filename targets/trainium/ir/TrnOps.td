//===- TrnOps.td - Instructions of a NeuronCore -------------*- tablegen -*-===//
#ifndef TRN_OPS_TD
#define TRN_OPS_TD

include "TrnEnums.td"
include "TrnTypes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// The rules of targets/trainium/program, which number what they demand.
def Trn_VerifiedByRules : NativeOpTrait<"VerifiedByRules"> {
  let cppNamespace = "::trn";
}

class Trn_Op<string mnemonic, list<Trait> traits = []>
    : Op<Trn_Dialect, mnemonic, traits>;

// An instruction. `engine` is what NKI picks when it is not given.
class Trn_Instruction<string mnemonic, list<Trait> traits = []>
    : Trn_Op<mnemonic, !listconcat(traits, [
        MemoryEffects<[MemRead, MemWrite]>, Trn_VerifiedByRules])> {
  dag on = (ins OptionalAttr<Trn_Engine>:$engine);
}

//===----------------------------------------------------------------------===//
// Kernels, tiles, views
//===----------------------------------------------------------------------===//

def Trn_KernelOp : Trn_Op<"kernel", [
    IsolatedFromAbove, Symbol, NoTerminator, SingleBlock,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "A kernel of one core";
  let description = [{
    Arguments are tensors in HBM: the inputs, then, after `outs`, the results,
    which are unwritten at the start. Their names are kept.

    **Constraints**

    * (K1) `chip` is trn1 or trn2;
    * (K2) arguments are in HBM; no two have the same name.

    **Example**

    ```mlir
    trn.kernel @copy(%x: !trn.hbm<128x512xf32>) outs(%y: !trn.hbm<128x512xf32>) chip("trn1") {
      %t = trn.alloc : !trn.sbuf<128x512xf32>
      trn.dma_copy %t, %x : !trn.sbuf<128x512xf32>, !trn.hbm<128x512xf32>
      trn.dma_copy %y, %t : !trn.hbm<128x512xf32>, !trn.sbuf<128x512xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$chip,
                       I64Attr:$inputs, StrArrayAttr:$arg_names);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Trn_AllocOp : Trn_Op<"alloc", [Trn_VerifiedByRules,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "Makes a tile: each time anew, with nothing written in it";
  let description = [{
    `copies` of it take turns, one for each execution, so that what uses one can
    overlap with what fills the next. `at(partition, byte)` says where the first
    begins; the compiler chooses otherwise. The tile's name is kept.

    **Constraints**

    * (B1) it begins and ends inside the 128 partitions;
    * (B2) in SBUF: all copies fit the bytes of a partition that the chip has;
    * (B3) in PSUM: it begins at a bank, a multiple of 2048 bytes;
    * (B4) in PSUM: all copies fit the 16 KiB of a partition;
    * (B5) elements are 8, 16 or 32 bits wide.

    **Examples**

    ```mlir
    %tile = trn.alloc : !trn.sbuf<128x512xbf16>
    %sums = trn.alloc copies(2) at(0, 4096) : !trn.psum<128x512xf32>
    ```
  }];
  let arguments = (ins DefaultValuedAttr<I64Attr, "1">:$copies,
                       OptionalAttr<I64Attr>:$partition, OptionalAttr<I64Attr>:$byte,
                       OptionalAttr<StrAttr>:$name);
  let results = (outs Res<Trn_OnChip, "", [MemAlloc]>:$tile);
  let hasCustomAssemblyFormat = 1;
}

def Trn_ViewOp : Trn_Op<"view", [Pure, Trn_VerifiedByRules]> {
  let summary = "A part of a tensor or tile, as an access pattern reaches it";
  let description = [{
    Dimension `v` of the result moves along dimension `dims[v]` of the source by
    `steps[v]`, from `origin`. Without `dims` it is the slice of that shape; with
    them dimensions may be left out (they stay at the origin), exchanged, split
    (`dims [0, 1, 1] steps [1, 128, 1]` takes 512 columns as 4 x 128), or, with
    -1, repeated.

    **Constraints**

    * (V1) one origin for each dimension of the source;
    * (V2) as many sizes, dims and steps as the result has dimensions, or, without
      `dims`, as the source has;
    * (V3) every dim is one of the source's, or -1;
    * (V4) the result is in the source's memory, with its elements and these sizes;
    * (V5) origins are constants, variables of `scf.for`, and their sums,
      differences, products, quotients and remainders by constants.

    **Examples**

    ```mlir
    %rows = trn.view %x[%i, 0] sizes [128, 512] : !trn.hbm<4096x512xbf16> to !trn.hbm<128x512xbf16>
    %k    = trn.view %t[0, %k, 0] sizes [128, 512] dims [0, 2]
            : !trn.sbuf<128x64x512xbf16> to !trn.sbuf<128x512xbf16>
    ```
  }];
  let arguments = (ins Trn_Tile:$source, Variadic<Index>:$origin,
                       DenseI64ArrayAttr:$static_origin, DenseI64ArrayAttr:$sizes,
                       OptionalAttr<DenseI64ArrayAttr>:$dims,
                       OptionalAttr<DenseI64ArrayAttr>:$steps);
  let results = (outs Trn_Tile:$result);
  let assemblyFormat = [{
    $source `` custom<DynamicIndexList>($origin, $static_origin) `sizes` $sizes
    (`dims` $dims^)? (`steps` $steps^)? attr-dict `:` type($source) `to` type($result)
  }];
}

//===----------------------------------------------------------------------===//
// The tensor engine, and transposes
//===----------------------------------------------------------------------===//

def Trn_NcMatmulOp : Trn_Instruction<"nc_matmul"> {
  let summary = "dst[M, N] (+)= stationary[K, M]^T moving[K, N] on the tensor engine";
  let description = [{
    With `accumulate(auto)`, the default, the first product into an element since
    its tile was made overwrites, later ones add; `always` adds, `never`
    overwrites. Sums are in f32.

    **Constraints**

    * (MM1) stationary and moving have the same K on their partitions;
    * (MM2) stationary has at most 128 columns;
    * (MM3) moving has at most 512 columns;
    * (MM4) the destination is [M, N];
    * (MM5) the destination stays inside one bank;
    * (MM6) operands are floats; f32 goes with f32 alone;
    * (MM7) the destination is f32.

    **Example**

    ```mlir
    trn.nc_matmul %sums, %a, %b
        : !trn.psum<128x512xf32>, !trn.sbuf<128x128xbf16>, !trn.sbuf<128x512xbf16>
    ```
  }];
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$stationary, Trn_Tile:$moving,
      DefaultValuedAttr<Trn_Accumulate, "::trn::Accumulate::Auto">:$accumulate), on);
  let assemblyFormat = [{
    $dst `,` $stationary `,` $moving (`accumulate` `(` $accumulate^ `)`)? (`on` $engine^)? attr-dict
    `:` type($dst) `,` type($stationary) `,` type($moving)
  }];
}

def Trn_NcTransposeOp : Trn_Instruction<"nc_transpose"> {
  let summary = "dst[F, P] = data[P, F], on the tensor or the vector engine";
  let description = [{
    **Constraints**

    * (TR1) a transpose of [P, F] is [F, P];
    * (TR2) the vector engine transposes at most 32 x 32, the tensor engine 128 x 128;
    * (TR3) it keeps the type; the tensor engine of trn1 writes f32, as its products do;
    * (MM6) the tensor engine takes floats.
  }];
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$data), on);
  let assemblyFormat = "$dst `,` $data (`on` $engine^)? attr-dict `:` type($dst) `,` type($data)";
}

def Trn_DmaTransposeOp : Trn_Instruction<"dma_transpose"> {
  let summary = "dst[F, P] = src[P, F], by DMA (trn2)";
  let description = "**Constraints**: (TR1), (TR2), (TR3) of `trn.nc_transpose`.";
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$src), on);
  let assemblyFormat = "$dst `,` $src (`on` $engine^)? attr-dict `:` type($dst) `,` type($src)";
}

//===----------------------------------------------------------------------===//
// Movement
//===----------------------------------------------------------------------===//

def Trn_DmaCopyOp : Trn_Instruction<"dma_copy"> {
  let summary = "dst = src, element by element in row-major order, by DMA";
  let description = [{
    Between HBM and SBUF in any combination. Types may differ: values go through f32.

    **Constraints**: (CP1) as many elements on both sides.
  }];
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$src), on);
  let assemblyFormat = "$dst `,` $src (`on` $engine^)? attr-dict `:` type($dst) `,` type($src)";
}

def Trn_TensorCopyOp : Trn_Instruction<"tensor_copy"> {
  let summary = "dst = src, on the vector engine, gpsimd, or (trn2) the scalar engine";
  let description = "Bit by bit where types are equal, through f32 otherwise. **Constraints**: (O8), (O9).";
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$src), on);
  let assemblyFormat = "$dst `,` $src (`on` $engine^)? attr-dict `:` type($dst) `,` type($src)";
}

def Trn_MemsetOp : Trn_Instruction<"memset"> {
  let summary = "dst = value, on the vector engine or gpsimd";
  let description = "**Constraints**: (CP5) a value that fills integers is an integer of the type.";
  let arguments = !con((ins Trn_Tile:$dst, F64Attr:$value), on);
  let assemblyFormat = "$dst `,` $value (`on` $engine^)? attr-dict `:` type($dst)";
}

def Trn_TensorCopyPredicatedOp : Trn_Instruction<"tensor_copy_predicated"> {
  let summary = "dst = src where the predicate is not 0 (is 0, when reversed)";
  let description = [{
    **Constraints**

    * (CP2) the predicate is ui8, ui16 or ui32;
    * (CP3) it keeps the type;
    * (CP4) source and predicate are not both in PSUM.
  }];
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$src, Trn_Tile:$predicate,
                            UnitAttr:$reverse), on);
  let assemblyFormat = [{
    $dst `,` $src `where` $predicate (`reversed` $reverse^)? (`on` $engine^)? attr-dict
    `:` type($dst) `,` type($src) `,` type($predicate)
  }];
}

def Trn_NcStreamShuffleOp : Trn_Instruction<"nc_stream_shuffle"> {
  let summary = "Within each 32 partitions, partition i of dst is partition mask[i] of src";
  let description = [{
    An entry of 255 leaves its partition as it is.

    **Constraints**

    * (SH1) the mask has 32 entries: 0 to 31, or 255;
    * (SH2) a multiple of 32 partitions, one type.
  }];
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$src, DenseI64ArrayAttr:$mask), on);
  let assemblyFormat = "$dst `,` $src `mask` $mask (`on` $engine^)? attr-dict `:` type($dst) `,` type($src)";
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

def Trn_ActivationOp : Trn_Instruction<"activation", [AttrSizedOperandSegments]> {
  let summary = "dst = function(data * scale + bias) on the scalar engine, with sums";
  let description = [{
    `registers(reset_reduce)` puts the sums of the results over the free
    dimensions into the engine's registers, `registers(reduce)` adds them to what
    is there; `into` reads the registers out.

    **Constraints**

    * (AC1) a bias is a tile of one float element in each partition;
    * (AC2) sums are read out only by an instruction that adds to them;
    * (O11) for a scale that is a tile, and for the sums.

    **Example**

    ```mlir
    trn.activation %p, exp(%s) scale(0.125) bias(%m : !trn.sbuf<128x1xf32>)
        registers(reset_reduce) into(%sum : !trn.sbuf<128x1xf32>)
        : !trn.sbuf<128x512xbf16>, !trn.psum<128x512xf32>
    ```
  }];
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$data, Optional<Trn_Tile>:$bias,
      Optional<Trn_Tile>:$scale, Optional<Trn_Tile>:$reduce_res,
      Trn_Function:$function, OptionalAttr<F64Attr>:$scale_value,
      OptionalAttr<Trn_Reduction>:$command), on);
  let assemblyFormat = [{
    $dst `,` $function `(` $data `)` custom<Scale>($scale, type($scale), $scale_value)
    (`bias` `(` $bias^ `:` type($bias) `)`)? (`registers` `(` $command^ `)`)?
    (`into` `(` $reduce_res^ `:` type($reduce_res) `)`)? (`on` $engine^)? attr-dict
    `:` type($dst) `,` type($data)
  }];
}

def Trn_TensorTensorOp : Trn_Instruction<"tensor_tensor"> {
  let summary = "dst = data1 op data2, on the vector engine or gpsimd";
  let description = [{
    **Constraints**

    * (EW1) data1 and data2 are not both in PSUM;
    * (EW3) bitwise functions take integers of one type throughout.

    **Example**: `trn.tensor_tensor %c, add(%a, %b) : !trn.sbuf<128x64xf32>, !trn.sbuf<128x64xf32>, !trn.psum<128x64xf32>`
  }];
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$data1, Trn_Tile:$data2, Trn_Alu:$op), on);
  let assemblyFormat = [{
    $dst `,` $op `(` $data1 `,` $data2 `)` (`on` $engine^)? attr-dict
    `:` type($dst) `,` type($data1) `,` type($data2)
  }];
}

def Trn_TensorScalarOp : Trn_Instruction<"tensor_scalar", [AttrSizedOperandSegments]> {
  let summary = "dst = (data op0 operand0) op1 operand1, with one value for each partition";
  let description = [{
    An operand is a number, or a tile of one f32 element in each partition;
    `reversed` makes it the left one.

    **Constraints**

    * (EW2) both functions are arithmetic, or both bitwise;
    * (EW3) bitwise functions take integers of one type throughout.

    **Example**: `trn.tensor_scalar %y, %x multiply(%s : !trn.sbuf<128x1xf32>) then add(1.0) : !trn.sbuf<128x64xf32>, !trn.sbuf<128x64xf32>`
  }];
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$data, Optional<Trn_Tile>:$operand0,
      Optional<Trn_Tile>:$operand1, Trn_Alu:$op0, OptionalAttr<F64Attr>:$value0,
      UnitAttr:$reverse0, OptionalAttr<Trn_Alu>:$op1, OptionalAttr<F64Attr>:$value1,
      UnitAttr:$reverse1), on);
  let assemblyFormat = [{
    $dst `,` $data custom<Step>($op0, $operand0, type($operand0), $value0, $reverse0)
    custom<Then>($op1, $operand1, type($operand1), $value1, $reverse1)
    (`on` $engine^)? attr-dict `:` type($dst) `,` type($data)
  }];
}

def Trn_ScalarTensorTensorOp : Trn_Instruction<"scalar_tensor_tensor"> {
  let summary = "dst = (data op0 operand0) op1 operand1, where operand1 is a tile of data's shape";
  let description = "**Constraints**: (EW1) for data and operand1, (EW2), (EW3).";
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$data, Trn_Tile:$operand1,
      Optional<Trn_Tile>:$operand0, Trn_Alu:$op0, OptionalAttr<F64Attr>:$value0,
      UnitAttr:$reverse0, Trn_Alu:$op1, UnitAttr:$reverse1), on);
  let assemblyFormat = [{
    $dst `,` $data custom<Step>($op0, $operand0, type($operand0), $value0, $reverse0)
    `then` $op1 `(` $operand1 `)` (`reversed` $reverse1^)? (`on` $engine^)? attr-dict
    `:` type($dst) `,` type($data) `,` type($operand1)
  }];
}

def Trn_ReciprocalOp : Trn_Instruction<"reciprocal"> {
  let summary = "dst = 1 / data on the vector engine";
  let description = "**Constraints**: (O8), (O9).";
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$data), on);
  let assemblyFormat = "$dst `,` $data (`on` $engine^)? attr-dict `:` type($dst) `,` type($data)";
}

def Trn_TensorTensorScanOp : Trn_Instruction<"tensor_tensor_scan"> {
  let summary = "dst[i] = (dst[i - 1] op0 data0[i]) op1 data1[i], from an initial value";
  let description = "**Constraints**: (EW1) for data0 and data1, (EW2), (EW3), (O11).";
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$data0, Trn_Tile:$data1,
      Optional<Trn_Tile>:$initial, OptionalAttr<F64Attr>:$initial_value,
      Trn_Alu:$op0, Trn_Alu:$op1), on);
  let assemblyFormat = [{
    $dst `,` $op0 `(` $data0 `)` `then` $op1 `(` $data1 `)` `from` `(`
    custom<Scalar>($initial, type($initial), $initial_value) `)` (`on` $engine^)? attr-dict
    `:` type($dst) `,` type($data0) `,` type($data1)
  }];
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

def Trn_TensorReduceOp : Trn_Instruction<"tensor_reduce"> {
  let summary = "Reduces the last dimensions of data, on the vector engine";
  let description = [{
    **Constraints**

    * (RD1) the last `axes` free dimensions are reduced, at least one;
    * (RD2) dst has the dimensions that are left;
    * (RD3) by add, multiply, maximum, minimum, a logical or a bitwise function.

    **Example**: `trn.tensor_reduce %m, maximum(%x) axes 1 negated : !trn.sbuf<128x1xf32>, !trn.psum<128x512xf32>`
  }];
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$data, Trn_Alu:$op, I64Attr:$axes,
                            UnitAttr:$negate), on);
  let assemblyFormat = [{
    $dst `,` $op `(` $data `)` `axes` $axes (`negated` $negate^)? (`on` $engine^)? attr-dict
    `:` type($dst) `,` type($data)
  }];
}

def Trn_TensorScalarReduceOp : Trn_Instruction<"tensor_scalar_reduce"> {
  let summary = "dst = data op0 operand0, and the reduction of it over the free dimensions";
  let description = "**Constraints**: (RD3) by add, multiply, maximum or minimum; (O11).";
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$data, Trn_Tile:$reduce_res,
      Optional<Trn_Tile>:$operand0, Trn_Alu:$op0, OptionalAttr<F64Attr>:$value0,
      UnitAttr:$reverse0, Trn_Alu:$reduce_op), on);
  let assemblyFormat = [{
    $dst `,` $data custom<Step>($op0, $operand0, type($operand0), $value0, $reverse0)
    `reduce` $reduce_op `into` $reduce_res (`on` $engine^)? attr-dict
    `:` type($dst) `,` type($data) `,` type($reduce_res)
  }];
}

def Trn_TensorPartitionReduceOp : Trn_Instruction<"tensor_partition_reduce"> {
  let summary = "dst[0] is the reduction of data over its partitions, on gpsimd";
  let description = "**Constraints**: (RD2) dst is one partition; (RD3) by add, maximum, bitwise and, bitwise or.";
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$data, Trn_Alu:$op), on);
  let assemblyFormat = "$dst `,` $op `(` $data `)` (`on` $engine^)? attr-dict `:` type($dst) `,` type($data)";
}

//===----------------------------------------------------------------------===//
// By index; statistics; the eight largest
//===----------------------------------------------------------------------===//

def Trn_AffineSelectOp : Trn_Instruction<"affine_select"> {
  let summary = "on_true where offset + p * channel_multiplier + sum of i_d * pattern_d compares with 0";
  let description = [{
    **Constraints**

    * (SE1) `pattern` has a step for each free dimension of dst;
    * (SE2) the selection is by a comparison.

    **Example**: a causal mask of scores, `p >= i`:
    `trn.affine_select %d, %s else -1.0e+30 pattern [-1] offset 0 channel 1 greater_equal : !trn.sbuf<128x512xf32>, !trn.sbuf<128x512xf32>`
  }];
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$on_true_tile, F64Attr:$on_false_value,
      DenseI64ArrayAttr:$pattern, I64Attr:$offset, I64Attr:$channel_multiplier,
      Trn_Alu:$cmp_op), on);
  let assemblyFormat = [{
    $dst `,` $on_true_tile `else` $on_false_value `pattern` $pattern `offset` $offset
    `channel` $channel_multiplier $cmp_op (`on` $engine^)? attr-dict `:` type($dst) `,` type($on_true_tile)
  }];
}

def Trn_RangeSelectOp : Trn_Instruction<"range_select"> {
  let summary = "on_true where the index compares with two bounds of its partition (trn2)";
  let description = [{
    The index counts the free elements from `range_start`; `into` gets the maximum of each partition.

    **Constraints**: (SE2) for both; (O11) for the bounds and the maxima.
  }];
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$on_true_tile, Trn_Tile:$bound0,
      Trn_Tile:$bound1, Optional<Trn_Tile>:$reduce_res, F64Attr:$on_false_value,
      Trn_Alu:$comp_op0, Trn_Alu:$comp_op1,
      DefaultValuedAttr<I64Attr, "0">:$range_start), on);
  let assemblyFormat = [{
    $dst `,` $on_true_tile `else` $on_false_value $comp_op0 `(` $bound0 `)` `and` $comp_op1 `(` $bound1 `)`
    (`start` $range_start^)? (`into` `(` $reduce_res^ `:` type($reduce_res) `)`)? (`on` $engine^)?
    attr-dict `:` type($dst) `,` type($on_true_tile) `,` type($bound0) `,` type($bound1)
  }];
}

def Trn_IotaOp : Trn_Instruction<"iota"> {
  let summary = "dst = offset + p * channel_multiplier + sum of i_d * pattern_d, on gpsimd";
  let description = "**Constraints**: (SE1).";
  let arguments = !con((ins Trn_Tile:$dst, DenseI64ArrayAttr:$pattern, I64Attr:$offset,
                            I64Attr:$channel_multiplier), on);
  let assemblyFormat = [{
    $dst `pattern` $pattern `offset` $offset `channel` $channel_multiplier (`on` $engine^)? attr-dict `:` type($dst)
  }];
}

def Trn_BnStatsOp : Trn_Instruction<"bn_stats"> {
  let summary = "Count, mean, and variance times count of the even, then of the odd elements";
  let description = "**Constraints**: (BN1) up to 512 elements give 6.";
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$data), on);
  let assemblyFormat = "$dst `,` $data (`on` $engine^)? attr-dict `:` type($dst) `,` type($data)";
}

def Trn_BnAggrOp : Trn_Instruction<"bn_aggr"> {
  let summary = "Mean and variance of triples as `trn.bn_stats` writes them";
  let description = "**Constraints**: (BN1) triples give 2.";
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$data), on);
  let assemblyFormat = "$dst `,` $data (`on` $engine^)? attr-dict `:` type($dst) `,` type($data)";
}

def Trn_Max8Op : Trn_Instruction<"max8"> {
  let summary = "The eight largest elements of each partition, in falling order";
  let description = "**Constraints**: (MX1) of 8 to 16384 elements; (MX2) dst has 8.";
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$src), on);
  let assemblyFormat = "$dst `,` $src (`on` $engine^)? attr-dict `:` type($dst) `,` type($src)";
}

def Trn_NcFindIndex8Op : Trn_Instruction<"nc_find_index8"> {
  let summary = "Where each of eight values is in data";
  let description = "**Constraints**: (MX1), (MX2) dst and vals have 8 elements; the indices are ui32.";
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$data, Trn_Tile:$vals), on);
  let assemblyFormat = [{
    $dst `,` $data `,` $vals (`on` $engine^)? attr-dict `:` type($dst) `,` type($data) `,` type($vals)
  }];
}

def Trn_NcMatchReplace8Op : Trn_Instruction<"nc_match_replace8"> {
  let summary = "Replaces the first element that equals each of eight values";
  let description = "**Constraints**: (MX1), (MX2) vals has 8 elements.";
  let arguments = !con((ins Trn_Tile:$dst, Trn_Tile:$data, Trn_Tile:$vals, F64Attr:$imm), on);
  let assemblyFormat = [{
    $dst `,` $data `,` $vals `by` $imm (`on` $engine^)? attr-dict `:` type($dst) `,` type($data) `,` type($vals)
  }];
}

#endif // TRN_OPS_TD
