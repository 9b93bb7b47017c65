//===- TrnDialect.td - The trn dialect ----------------------*- tablegen -*-===//
#ifndef TRN_DIALECT_TD
#define TRN_DIALECT_TD

include "mlir/IR/OpBase.td"

def Trn_Dialect : Dialect {
  let name = "trn";
  let cppNamespace = "::trn";
  let summary = "Instructions of AWS Trainium's NeuronCore, one operation each";
  let description = [{
    What a NeuronCore executes (L2), as `nki.isa` documents it: operations on
    tiles in three memories.

    | type | memory | dimension 0 |
    | --- | --- | --- |
    | `!trn.hbm<...>` | the device's memory, row-major | an extent like the others |
    | `!trn.sbuf<PxF...>` | the scratchpad | axis `P`: partitions; the others are row-major on axis `F` |
    | `!trn.psum<PxF...>` | the accumulators | as SBUF; 2 KiB a partition are a bank |

    A `trn.kernel` is for one chip. Its tiles come from `trn.alloc`, parts of
    them from `trn.view`, its loops are `scf.for` with constant bounds, and its
    indices sums, products, quotients and remainders of their variables with
    constants (`arith`). Its meaning is sequential; engines run side by side as
    far as data allow.

    What an operation demands is numbered. The numbers are those of the
    simulator's reports and of docs/trainium.md, and one function checks them for
    all: the verifier builds nothing of its own. These hold for every operand of
    every operation:

    * (O1) 1 to 128 partitions, consecutive ones, counted by its first dimension alone;
    * (O2) it begins at a multiple of 32 (up to 32 partitions), 64 (up to 64) or 128 (more);
    * (O3) up to 4 free dimensions of up to 65535, with steps that fit 16 bits;
    * (O4) up to 65536 elements a partition in SBUF, 16 KiB in PSUM;
    * (O5) it stays inside its tensor;
    * (O6) the tensor engine reads SBUF and writes PSUM, gpsimd reaches SBUF
      alone, DMA reaches HBM and SBUF alone, the others SBUF and PSUM;
    * (O7) the engine executes the operation on the kernel's chip;
    * (O8), (O9) operands that are combined have the same partitions, and the
      same elements a partition;
    * (O10) what is written has no element twice;
    * (O11) a per-partition operand is a tile of one f32 element in each.

    What names no loop is verified with the operation; the rest is checked where
    the program is executed, as are (R1) unwritten elements, (R2) accumulation,
    (R3) semaphores, (R4) ranges of functions.
  }];
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerTypes();
  }];
}

#endif // TRN_DIALECT_TD
