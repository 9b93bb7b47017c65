//===- AxeTypes.td - Types of the axe dialect ---------------*- tablegen -*-===//
#ifndef AXE_TYPES_TD
#define AXE_TYPES_TD

include "AxeDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"

def Axe_TokenType : TypeDef<Axe_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "The order of operations";
  let description = [{
    Stands for a group of asynchronous copies that `axe.commit` closed, or for
    the turn that `axe.ordered.begin` gave: order alone, no value.
  }];
}

def Axe_PipelineType : TypeDef<Axe_Dialect, "Pipeline"> {
  let mnemonic = "pipeline";
  let summary = "A ring of stages between producers and consumers";
  let description = [{
    What `axe.pipeline.create` makes: for each stage, whether it is full and
    whether it is empty, and for each role how far it has come.
  }];
}

def Axe_SlotType : TypeDef<Axe_Dialect, "Slot"> {
  let mnemonic = "slot";
  let summary = "A stage of a pipeline that a role holds";
  let description = [{
    A producer holds a slot from `axe.pipeline.acquire` to
    `axe.pipeline.commit`, a consumer from `axe.pipeline.wait` to
    `axe.pipeline.release`. A loop may carry it.
  }];
}

def Axe_Tensor : TensorOf<[AnyType]>;
def Axe_Memory : MemRefOf<[AnyType]>;
def Axe_TensorOrMemory : AnyTypeOf<[AnyRankedTensor, AnyMemRef],
    "a ranked tensor or a memref", "::mlir::ShapedType">;

#endif // AXE_TYPES_TD
