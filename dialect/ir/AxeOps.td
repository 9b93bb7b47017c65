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
// `schedule` forces a variant by name; `options` are that variant's own; `plan` is what it decided.
class Axe_Operator<string mnemonic, list<Trait> traits = []>
    : Axe_Op<mnemonic, !listconcat(traits, [Axe_OperatorTrait])> {
  dag scheduling = (ins OptionalAttr<StrAttr>:$schedule,
                        OptionalAttr<DictionaryAttr>:$options,
                        OptionalAttr<DictionaryAttr>:$plan);
  let hasVerifier = 1;
}

include "AxeKernels.td"
include "AxePipelines.td"
include "AxeStorage.td"
include "AxeMovement.td"
include "AxeElementwise.td"
include "AxeDimensions.td"
include "AxeProducts.td"

#endif // AXE_OPS_TD
