//===- AxeTraits.td - What operations of axe are ------------*- tablegen -*-===//
//
// Passes and planners ask for these rather than for lists of names: in C++
// `op->hasTrait<axe::Elementwise>()`, in Rust `ops::has(name, Trait::Elementwise)`.
//
//===----------------------------------------------------------------------===//
#ifndef AXE_TRAITS_TD
#define AXE_TRAITS_TD

include "mlir/IR/OpBase.td"

class Axe_Trait<string name, string text> : NativeOpTrait<name> {
  let cppNamespace = "::axe";
  // For the documentation of Rust's `Trait`.
  string summary = text;
}

def Axe_OperatorTrait : Axe_Trait<"Operator",
    "An operator that `--axe-dispatch-schedules` binds to a hardware schedule.">;
def Axe_Logical : Axe_Trait<"Logical",
    "An operator of the logical level: `--axe-plan-kernels` makes kernels of them.">;
def Axe_Elementwise : Axe_Trait<"Elementwise",
    "Each element of the result comes from its sources' elements at the same place.">;
def Axe_Lazy : Axe_Trait<"Lazy",
    "Costs so little that each reader forms the result for itself.">;
def Axe_Product : Axe_Trait<"Product", "A matrix product.">;
def Axe_Reduction : Axe_Trait<"Reduction", "Combines elements along dimensions.">;
def Axe_Relayout : Axe_Trait<"Relayout",
    "Puts elements of a tensor in other places, and changes none.">;
def Axe_Tileable : Axe_Trait<"Tileable", "An operator that `--axe-tile` splits.">;
def Axe_StorageView : Axe_Trait<"StorageView",
    "Another name for storage, or for a part of it: reads and writes nothing.">;
def Axe_TakesStage : Axe_Trait<"TakesStage",
    "Takes the next stage of a pipeline, to fill or to use it.">;
def Axe_GivesStage : Axe_Trait<"GivesStage",
    "Gives a stage of a pipeline on, full or empty.">;

#endif // AXE_TRAITS_TD
