//===- AxeDialect.td - The axe dialect ----------------------*- tablegen -*-===//
#ifndef AXE_DIALECT_TD
#define AXE_DIALECT_TD

include "mlir/IR/OpBase.td"

def Axe_Dialect : Dialect {
  let name = "axe";
  let cppNamespace = "::axe";
  let summary = "Layouts over named hardware axes and the operators that they dispatch";
  let description = [{
    A layout `#axe.layout<D + R + O>` maps a logical index to a *set* of
    coordinates on named axes: `L(x) = { D(x) + r + O | r in R }` (arXiv
    2601.19092, section 2). It is the encoding of a `tensor` (values: register
    fragments, distributed tensors) and the layout of a `memref` (storage).

    One set of operators serves two levels:

    * **logical** (L0): operators on tensors without a layout, or whose layout
      names device axes only, in a `func.func`;
    * **scheduled** (L1): operators inside an `axe.kernel`, on storage and
      register tensors that carry layouts, under execution scopes.

    `--axe-dispatch-schedules` takes L1 to a target's own dialects (L2).
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = ["::mlir::func::FuncDialect"];
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerSignatureChecks();
  }];
}

#endif // AXE_DIALECT_TD
