//===- Passes.td - Passes of axe ----------------------------*- tablegen -*-===//
#ifndef AXE_PASSES_TD
#define AXE_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertLinalgToAxePass : Pass<"convert-linalg-to-axe", "::mlir::ModuleOp"> {
  let summary = "Convert linalg on tensors to logical axe operators";
  let description = [{
    Matrix products (named or generic, any transposition, batched), elementwise
    generics, reductions, broadcasts, transposes and fills become axe operators
    on tensors. Conversions of whole operands to f32 and transposes in front of
    a matrix product fold into it, so that all usual idioms of a linear layer
    become one f16 x f16 -> f32 `axe.gemm` with its epilogue. A product that
    accumulates in f16 or bf16 is one that accumulates in f32 and is rounded once.

    Named operations are taken by their maps; `softmax`, `pack` and `unpack` are
    taken apart as upstream does. A product is a sum of products of two terms, each
    of tensors that the other does not read: what a body computes of one side is
    computed first, by itself. Terms that are bytes, with or without a sign, less a
    scalar (`quantized_matmul`), are a product of signed bytes and sums beside it.

    Every operation of linalg that has no form in axe is an error at its location.

    With `for-kernels`, what operators of axe do not say, or what kernels of them
    cannot take (dimensions but the first that are dynamic, tensors without
    elements), stays as it is: `--axe-generalize` makes `linalg.generic` of it, and
    `--axe-plan-kernels` kernels of loops. Loops around tensors whose bounds are
    known are unrolled, both sides of a branch are computed and chosen from, and
    assertions in bodies are left out. A convolution becomes a product where that
    is less work: of its operands as they are where its windows have one element,
    else of a copy in which each element of a window has a place of its own. A
    remark says for each which it is, and `explain` prints it.
  }];
  let options = [
    Option<"allowUnsupported", "allow-unsupported", "bool", "false",
           "Leave operations that have no form in axe as they are">,
    Option<"forKernels", "for-kernels", "bool", "false",
           "Leave what kernels of axe operators cannot take to kernels of loops">,
    Option<"explain", "explain", "bool", "false", "Print what becomes of each convolution">];
  let statistics = [
    Statistic<"gemms", "num-gemms", "Number of axe.gemm created">,
    Statistic<"maps", "num-maps", "Number of axe.map created">,
    Statistic<"reductions", "num-reductions", "Number of axe.reduce created">];
  let dependentDialects = ["::axe::AxeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def AxeGeneralizePass : Pass<"axe-generalize", "::mlir::ModuleOp"> {
  let summary = "Make linalg.generic of what moves elements of tensors";
  let description = [{
    `tensor.extract_slice`, `insert_slice`, `insert`, `pad`, `concat`, `generate`,
    `splat` and `from_elements` become `linalg.generic` over their result. The body
    computes from `linalg.index` which element is wanted, and takes it by
    `tensor.extract`. Reshapes stay, and so does what is on tensors with an encoding.

    **Example**

    ```mlir
    %s = tensor.extract_slice %x[0, 3] [4, 5] [1, 2] : tensor<4x16xf32> to tensor<4x5xf32>
    // becomes
    %e = tensor.empty() : tensor<4x5xf32>
    %s = linalg.generic {...} outs(%e : tensor<4x5xf32>) {
    ^bb0(%o: f32):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %k = arith.muli %j, %c2 : index
      %l = arith.addi %k, %c3 : index
      %v = tensor.extract %x[%i, %l] : tensor<4x16xf32>
      linalg.yield %v : f32
    } -> tensor<4x5xf32>
    ```
  }];
  let statistics = [
    Statistic<"generalized", "num-generalized", "Number of operations that became linalg.generic">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def AxeSimplifyPowersPass : Pass<"axe-simplify-powers", "::mlir::ModuleOp"> {
  let summary = "Make products, quotients and roots of powers with constant exponents";
  let description = [{
    `math.powf` and `math.fpowi` of scalars, in bodies of operators too, with an
    exponent of 0, 1, 2, 3, 4, -1, -2, 1/2, 3/2, -1/2 or -3/2. Results of f32 and f64
    are at most two units in the last place off, those of 16-bit floats half a unit;
    special cases stay those of C's `pow`: `x^0.5` is `sqrt(x + 0.0)`, and infinity
    for minus infinity, which is left out where no element is below zero. Other
    powers stay.

    **Example**

    ```mlir
    %y = math.powf %x, %two : f32
    // becomes
    %y = arith.mulf %x, %x : f32
    ```
  }];
  let statistics = [
    Statistic<"simplified", "num-simplified", "Number of powers that became something else">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def AxeSimplifyGathersPass : Pass<"axe-simplify-gathers", "::mlir::ModuleOp"> {
  let summary = "Give gathers by constants and by floats of loops' indices their indices as digits";
  let description = [{
    A `linalg.generic` of parallel loops of known extents whose body takes one element
    of a tensor (`tensor.extract`), at indices that are computed of the loops' indices
    and of constants alone: by floats, as nearest upsampling is exported, or by tensors
    of integers, as group normalisation is. Each index is evaluated at all of its points
    (2^16 at most), each operation in its type. Where it is a sum of digits
    `stride * (i / block mod extent)` of the loops' indices, which is the shard of a
    layout, the gather has that in its place; where elements are taken in the order in
    which they lie, it is a reshape. Indices that are something else, may be outside of
    the tensor, or depend on anything that is not known stay.

    **Example**

    ```mlir
    %f = arith.sitofp %i : i64 to f32
    %h = arith.divf %f, %two : f32
    %w = math.floor %h : f32
    %n = arith.fptosi %w : f32 to i64
    %j = arith.index_cast %n : i64 to index
    %e = tensor.extract %x[%j] : tensor<64xf16>
    // becomes
    %j = arith.divui %i, %c2 : index
    %e = tensor.extract %x[%j] : tensor<64xf16>
    ```
  }];
  let statistics = [
    Statistic<"simplified", "num-simplified", "Number of gathers that became something else">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def AxeCanonicalizeLayoutsPass : Pass<"axe-canonicalize-layouts"> {
  let summary = "Replace every layout by its canonical representative";
  let description = [{
    Layouts that induce the same map become the same attribute, in the types of
    all values and in all attributes.
  }];
  let statistics = [
    Statistic<"changed", "num-changed", "Number of distinct layouts changed">];
}

def AxeSlicePass : Pass<"axe-slice", "::mlir::ModuleOp"> {
  let summary = "Resolve slices and views of storage as far as they are known";
  let description = [{
    * A slice of a slice becomes one slice of the storage, with the origins added.
      A slice carries its source's bounds, so the fold needs the outer box to stay
      inside the inner one, as constants, loops and arithmetic tell it.
    * A view of a view becomes one view of the storage.
    * A slice of an `axe.alloc` at a constant origin becomes a view with the exact
      layout of the box, by the algebra's slice, origin included; so do views of it.
    * A slice of storage with digits or a swizzle whose type lacks a layout gets the
      one of its box, where that is the same at every origin.
    * Slices and views that nothing uses any more are erased.

    What stays as it is has a remark of category `axe-slice` that says why.
  }];
  let statistics = [
    Statistic<"folded", "num-folded", "Number of slices and views folded">,
    Statistic<"resolved", "num-resolved", "Number of slices that became views">,
    Statistic<"completed", "num-completed", "Number of boxes that got a layout">];
  let dependentDialects = ["::axe::AxeDialect", "::mlir::arith::ArithDialect"];
}

def AxeTilePass : Pass<"axe-tile", "::mlir::ModuleOp"> {
  let summary = "Split operators into loops over tiles";
  let description = [{
    An operator larger than a tile becomes an `scf.for` nest over tiles. `sizes`
    counts the dimensions of what the operator writes, outermost first, and then,
    for `axe.gemm`, `K`; a dimension without a size, or of size 0, stays whole.

    * Copies and fills of memrefs work on slices of them; a slice carries its
      source's bounds, so that ragged ends are right. A dynamic extent needs a size.
    * The store of a register tensor takes all that computes the stored value into
      the loop, down to the loads: the layout of a tile is the algebra's slice, and
      must be the same for every tile, up to the registers, which are numbered
      densely. Nothing between a load and the store may write what is loaded;
      memrefs of different arguments do not overlap.
    * `axe.gemm` into registers sums over tiles of `K` of operands in storage.
    * Operators on tensors without layouts work on `tensor.extract_slice`s and give
      their tiles by `tensor.insert_slice`; a ragged end has a dynamic extent.

    What stays as it is has a remark of category `axe-tile` that says why.
  }];
  let options = [
    ListOption<"sizes", "sizes", "int64_t", "Tile extents, outermost first; 0 keeps a dimension whole">,
    ListOption<"operators", "operators", "std::string", "Operators to tile, such as copy,gemm (default: all)">];
  let statistics = [
    Statistic<"tiled", "num-tiled", "Number of operators split">];
  let dependentDialects = ["::axe::AxeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
                           "::mlir::memref::MemRefDialect"];
}

def AxePlanKernelsPass : Pass<"axe-plan-kernels", "::mlir::ModuleOp"> {
  let summary = "Group logical operators into kernels and choose their tiles";
  let description = [{
    Elementwise operators join the matrix product or reduction that feeds them;
    each group becomes one `axe.kernel`, scheduled for the target: tiles,
    layouts, pipeline. The function keeps one `axe.launch` a group.

    A discardable dictionary `axe.plan` on a product overrides what the planner
    would choose. Its keys are the target's, each of which has a page of the
    reference; another entry, or one with another kind of value, is an error.

    docs/planning.md says how plans are chosen.

    All operators that no kernel can be planned for are listed. With
    `allow-unsupported` they stay in the function, for the host
    (`--axe-lower-to-host`), and a remark says why.

    Without one that settles a product's kernel, the plan is that of the database of
    tuned plans for its sizes, as near as the target takes them, else the cost model's.
    The database in the compiler is replaced by the file `tuned`; `tuned=none` leaves
    the cost model alone. Remarks of category `axe-plan` say where a plan comes from,
    and `explain` prints it with the model's predictions.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"\"", "The chip to plan for (default: the first target's own)">,
    Option<"tuned", "tuned", "std::string", "\"\"", "The database of tuned plans: a file, none, or (default) the compiler's own">,
    Option<"explain", "explain", "bool", "false", "Print where the plan of each product comes from">,
    Option<"allowUnsupported", "allow-unsupported", "bool", "false",
           "Leave operators that no kernel can be planned for as they are, with a remark">];
  let statistics = [
    Statistic<"kernels", "num-kernels", "Number of kernels planned">];
  let dependentDialects = ["::axe::AxeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::linalg::LinalgDialect"];
}

def AxeDispatchSchedulesPass : Pass<"axe-dispatch-schedules", "::mlir::ModuleOp"> {
  let summary = "Decide for every operator of a kernel which schedule executes it, and how";
  let description = [{
    For each operator the target's schedules are tried in order of priority,
    reading operand layouts, scope and chip. The first that applies gives a plan:
    its name stays on the operator as `schedule`, and the plan as a dictionary
    `plan`, which the reference of schedules describes. Storage and pipelines get
    their places in shared memory, and the kernel a `plan` that names the chip.
    An operator that names a `schedule` has no other, and one that has a `plan`
    already keeps it, when it is right.

    With `explain`, the chosen schedules, their plans and all declines are
    printed. Decisions and declines are also MLIR remarks of category
    `axe-dispatch`.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"\"", "The chip to decide for (default: the first target's own)">,
    Option<"explain", "explain", "bool", "false", "Print each decision, plan and decline">,
    Option<"allowUnsupported", "allow-unsupported", "bool", "false",
           "Leave kernels with an operator that no schedule takes as they are, with a remark">];
  let statistics = [
    Statistic<"dispatched", "num-dispatched", "Number of operators bound to a schedule">];
  let dependentDialects = ["::axe::AxeDialect"];
}

def AxeLowerSchedulesPass : Pass<"axe-lower-schedules", "::mlir::ModuleOp"> {
  let summary = "Lower kernels as their plans say";
  let description = [{
    Reads the `schedule` and the `plan` of every operator, checks them as
    `--axe-verify-schedules` does, and emits the kernel in the dialects of the
    target that its plans are for. Nothing is decided here. Everything that has no
    form on the target is listed, each at its own place.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"\"", "The chip to lower for; by default, and at most, the one that the kernels name">,
    Option<"check", "check", "bool", "true", "Check the plans first; pipelines, in which dispatch has just done so, do not">,
    Option<"allowUnsupported", "allow-unsupported", "bool", "false",
           "Leave kernels without plans, and their launches, as they are">];
  let statistics = [
    Statistic<"lowered", "num-lowered", "Number of operators lowered">];
  let dependentDialects = ["::axe::AxeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect", "::mlir::math::MathDialect"];
}

def AxeVerifySchedulesPass : Pass<"axe-verify-schedules", "::mlir::ModuleOp"> {
  let summary = "Check the plans that stand in the IR against the layouts by enumeration";
  let description = [{
    Enumerates the plan of each operator of each kernel, and checks that every
    element is read from and written to exactly where the layouts say, once, and
    that the limits of the instructions are kept; a plan that moves no elements is
    compared with what its schedule would plan. Changes nothing. A kernel that
    `--axe-dispatch-schedules` has not been through has no plans, which is an
    error. Dispatch and lowering make the same checks; the page on kernels lists
    them.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"\"", "The chip to check for; by default, and at most, the one that the kernels name">];
  let statistics = [
    Statistic<"verified", "num-verified", "Number of plans checked">];
  let dependentDialects = ["::axe::AxeDialect"];
}

def AxeVerifyCodePass : Pass<"axe-verify-code", "::mlir::ModuleOp"> {
  let summary = "Check that generated code is complete";
  let description = [{
    Reads the code of every binary for a chip of a registered target: every
    function that it calls must be defined, and a kernel whose launches have
    results must write memory. LLVM deletes what follows undefined behaviour, and
    leaves a kernel without stores where that is on every path. Changes nothing.
  }];
}

def AxePrintLayoutsPass : Pass<"axe-print-layouts"> {
  let summary = "Print a picture of every layout to standard error";
  let description = [{
    Each distinct layout of a type below the operation, with the first location
    that has it, as a table of owners.
  }];
}

def AxeLowerToHostPass : Pass<"axe-lower-to-host", "::mlir::ModuleOp"> {
  let summary = "Lower axe operators and kernels to host loops";
  let description = [{
    The CPU target: storage and register tensors become host buffers, addressed
    through the maps of their layouts; kernels become functions that a launch
    calls once a block; operators become loops in logical order.
  }];
  let dependentDialects = ["::axe::AxeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::bufferization::BufferizationDialect",
                           "::mlir::tensor::TensorDialect", "::mlir::LLVM::LLVMDialect"];
}

#endif // AXE_PASSES_TD
