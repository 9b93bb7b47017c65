//===- TMTensor.td - torch-mlir's tm_tensor, to read it --------*- tablegen -*-===//
//
// torch-mlir's linalg-on-tensors has what linalg has no operation for as
// operations of its dialect `tm_tensor` (torch-mlir-dialects,
// "TMTensorOps.td"). These are declarations in the same syntax, so that such
// modules parse and print; what they mean is in passes/src/convert.
//
//===----------------------------------------------------------------------===//
#ifndef AXE_TMTENSOR_TD
#define AXE_TMTENSOR_TD

include "mlir/IR/OpBase.td"

def TMTensor_Dialect : Dialect {
  let name = "tm_tensor";
  let cppNamespace = "::axe::tm_tensor";
  let summary = "Sorts, scans and scatters, as torch-mlir writes them";
}

class TMTensor_Op<string mnemonic> : Op<TMTensor_Dialect, mnemonic, [AttrSizedOperandSegments]> {
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region AnyRegion:$region);
}

def TMTensor_SortOp : TMTensor_Op<"sort"> {
  let summary = "Elements along a dimension in an order, and others beside them";
  let arguments = (ins Variadic<AnyType>:$inputs, Variadic<AnyType>:$outputs, I64Attr:$dimension);
  let assemblyFormat = [{
    attr-dict `dimension` `(` $dimension `)`
    (`ins` `(` $inputs^ `:` type($inputs) `)`)?
    `outs` `(` $outputs `:` type($outputs) `)`
    $region (`->` type($results)^)?
  }];
}

def TMTensor_ScanOp : TMTensor_Op<"scan"> {
  let summary = "What all elements up to each along a dimension are combined to";
  let arguments = (ins Variadic<AnyType>:$inputs, Variadic<AnyType>:$outputs, I64Attr:$dimension,
                       BoolAttr:$inclusive);
  let assemblyFormat = [{
    attr-dict `dimension` `(` $dimension `)` `inclusive` `(` $inclusive `)`
    `ins` `(` $inputs `:` type($inputs) `)`
    `outs` `(` $outputs `:` type($outputs) `)`
    $region (`->` type($results)^)?
  }];
}

def TMTensor_ScatterOp : TMTensor_Op<"scatter"> {
  let summary = "Updates that are combined with elements at indices";
  let arguments = (ins Variadic<AnyType>:$inputs, Variadic<AnyType>:$outputs,
                       DenseI64ArrayAttr:$dimension_map, BoolAttr:$unique_indices);
  let assemblyFormat = [{
    attr-dict `unique_indices` `(` $unique_indices `)`
    (`ins` `(` $inputs^ `:` type($inputs) `)`)?
    (`outs` `(` $outputs^ `:` type($outputs) `)`)?
    $region (`->` type($results)^)?
  }];
}

def TMTensor_YieldOp : Op<TMTensor_Dialect, "yield", [Terminator]> {
  let summary = "What the body of one of these gives";
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}

#endif // AXE_TMTENSOR_TD
