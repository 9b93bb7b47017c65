//===- AxePipelines.td - Pipelines -------------------------*- tablegen -*-===//
//
// Included by AxeOps.td, behind the base classes of operations.
//
//===----------------------------------------------------------------------===//
#ifndef AXE_PIPELINES_TD
#define AXE_PIPELINES_TD

def Axe_PipelineCreateOp : Axe_Op<"pipeline.create", [
    MemoryEffects<[MemAlloc, MemWrite]>]> {
  let summary = "A ring of stages between producers and consumers";
  let description = [{
    The roles that acquire its stages are the producers, those that wait for
    them the consumers; how many arrivals complete a stage follows from the
    scopes in which they commit and release. Every role goes around the ring on
    its own: which stage comes next, and which of its phases, is the ring's
    business.

    **Constraints**

    * (PL1) `stages` is at least 1;
    * (PL2) it stands in the kernel's body, outside any scope.

    **Example**: `%ring = axe.pipeline.create stages(4) : !axe.pipeline`

    **Errors**

    ```mlir
    %ring = axe.pipeline.create stages(0) : !axe.pipeline                             // (PL1) expected at least 1 stage, got 0
    axe.scope warp [0, 1) { %ring = axe.pipeline.create stages(2) : !axe.pipeline }   // (PL2) expected to stand in the body of a kernel
    ```
  }];
  let arguments = (ins I64Attr:$stages);
  let results = (outs Axe_PipelineType:$pipeline);
  let assemblyFormat = "`stages` `(` $stages `)` attr-dict `:` type($pipeline)";
  let hasVerifier = 1;
}

class Axe_TakeOp<string mnemonic> : Axe_Op<mnemonic, [Axe_TakesStage, MemoryEffects<[MemRead, MemWrite]>]> {
  let arguments = (ins Axe_PipelineType:$pipeline);
  let results = (outs Axe_SlotType:$slot, Index:$stage);
  let assemblyFormat = "$pipeline attr-dict `:` type($slot)";
  let hasVerifier = 1;
}

def Axe_AcquireOp : Axe_TakeOp<"pipeline.acquire"> {
  let summary = "The next stage to fill, once every consumer has released it";
  let description = [{
    **Constraints**

    * (PL3) each slot is given back once: it has one commit.

    **Example**: `%slot, %stage = axe.pipeline.acquire %ring : !axe.slot`

    **Errors**

    ```mlir
    %slot, %stage = axe.pipeline.acquire %ring : !axe.slot  // (PL3) expected one commit of the slot, got 0
    ```
  }];
}

def Axe_PipelineWaitOp : Axe_TakeOp<"pipeline.wait"> {
  let summary = "The next stage to use, once it is full";
  let description = [{
    **Constraints**

    * (PL4) each slot is given back once: it has one release, or a loop carries it.

    **Example**: `%slot, %stage = axe.pipeline.wait %ring : !axe.slot`

    **Errors**

    ```mlir
    %slot, %stage = axe.pipeline.wait %ring : !axe.slot  // (PL4) expected the slot to be released once, or carried by a loop, got 0 such uses
    ```
  }];
}

class Axe_GiveOp<string mnemonic> : Axe_Op<mnemonic, [Axe_GivesStage, MemoryEffects<[MemRead, MemWrite]>]> {
  let arguments = (ins Axe_PipelineType:$pipeline, Axe_SlotType:$slot);
  let assemblyFormat = "$pipeline `,` $slot attr-dict";
}

def Axe_PipelineCommitOp : Axe_GiveOp<"pipeline.commit"> {
  let summary = "Says that a stage is, or will be, full";
  let description = [{
    A stage is filled either by the copies that signal its slot, and is full
    when they are complete, or by the scope's own stores, which this orders
    before the consumers' reads.

    **Example**: `axe.pipeline.commit %ring, %slot`

    **Errors**

    ```mlir
    axe.pipeline.commit %ring, %stage  // use of value '%stage' expects different type than prior uses: '!axe.slot' vs 'index'
    ```
  }];
}

def Axe_ReleaseOp : Axe_GiveOp<"pipeline.release"> {
  let summary = "Gives a stage back to the producers";
  let description = [{
    The scope has no read of the stage to come or under way.

    **Example**: `axe.pipeline.release %ring, %slot`

    **Errors**

    ```mlir
    axe.pipeline.release %ring, %stage  // use of value '%stage' expects different type than prior uses: '!axe.slot' vs 'index'
    ```
  }];
}

#endif // AXE_PIPELINES_TD
