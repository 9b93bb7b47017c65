//===- TrnEnums.td - Functions, engines, commands -----------*- tablegen -*-===//
//
// The cases are those of targets/trainium/program (program/alu.rs, program/op.rs,
// facts/chip.rs), in their order: a unit test compares them.
//
//===----------------------------------------------------------------------===//
#ifndef TRN_ENUMS_TD
#define TRN_ENUMS_TD

include "mlir/IR/EnumAttr.td"

class Trn_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::trn";
}

def Trn_Alu : Trn_Enum<"Alu", "a function of two values", [
    I32EnumAttrCase<"Add", 0, "add">,
    I32EnumAttrCase<"Subtract", 1, "subtract">,
    I32EnumAttrCase<"Multiply", 2, "multiply">,
    I32EnumAttrCase<"Maximum", 3, "maximum">,
    I32EnumAttrCase<"Minimum", 4, "minimum">,
    I32EnumAttrCase<"Equal", 5, "equal">,
    I32EnumAttrCase<"NotEqual", 6, "not_equal">,
    I32EnumAttrCase<"Greater", 7, "greater">,
    I32EnumAttrCase<"GreaterEqual", 8, "greater_equal">,
    I32EnumAttrCase<"Less", 9, "less">,
    I32EnumAttrCase<"LessEqual", 10, "less_equal">,
    I32EnumAttrCase<"LogicalAnd", 11, "logical_and">,
    I32EnumAttrCase<"LogicalOr", 12, "logical_or">,
    I32EnumAttrCase<"LogicalXor", 13, "logical_xor">,
    I32EnumAttrCase<"Power", 14, "power">,
    I32EnumAttrCase<"BitwiseAnd", 15, "bitwise_and">,
    I32EnumAttrCase<"BitwiseOr", 16, "bitwise_or">,
    I32EnumAttrCase<"BitwiseXor", 17, "bitwise_xor">,
    I32EnumAttrCase<"LeftShift", 18, "left_shift">,
    I32EnumAttrCase<"RightShift", 19, "right_shift">]>;

def Trn_Function : Trn_Enum<"Function", "a function of one value", [
    I32EnumAttrCase<"Copy", 0, "copy">,
    I32EnumAttrCase<"Square", 1, "square">,
    I32EnumAttrCase<"Sigmoid", 2, "sigmoid">,
    I32EnumAttrCase<"Relu", 3, "relu">,
    I32EnumAttrCase<"Gelu", 4, "gelu">,
    I32EnumAttrCase<"GeluTanh", 5, "gelu_apprx_tanh">,
    I32EnumAttrCase<"GeluSigmoid", 6, "gelu_apprx_sigmoid">,
    I32EnumAttrCase<"Silu", 7, "silu">,
    I32EnumAttrCase<"Tanh", 8, "tanh">,
    I32EnumAttrCase<"Softplus", 9, "softplus">,
    I32EnumAttrCase<"Mish", 10, "mish">,
    I32EnumAttrCase<"Erf", 11, "erf">,
    I32EnumAttrCase<"Exp", 12, "exp">,
    I32EnumAttrCase<"Log", 13, "log">,
    I32EnumAttrCase<"Sin", 14, "sin">,
    I32EnumAttrCase<"Arctan", 15, "arctan">,
    I32EnumAttrCase<"Sqrt", 16, "sqrt">,
    I32EnumAttrCase<"Rsqrt", 17, "rsqrt">,
    I32EnumAttrCase<"Reciprocal", 18, "reciprocal">,
    I32EnumAttrCase<"Sign", 19, "sign">,
    I32EnumAttrCase<"Abs", 20, "abs">]>;

def Trn_Engine : Trn_Enum<"Engine", "an engine of a core", [
    I32EnumAttrCase<"Tensor", 0, "tensor">,
    I32EnumAttrCase<"Vector", 1, "vector">,
    I32EnumAttrCase<"Scalar", 2, "scalar">,
    I32EnumAttrCase<"Gpsimd", 3, "gpsimd">,
    I32EnumAttrCase<"Dma", 4, "dma">]>;

def Trn_Accumulate : Trn_Enum<"Accumulate", "whether a product adds to its destination", [
    I32EnumAttrCase<"Auto", 0, "auto">,
    I32EnumAttrCase<"Always", 1, "always">,
    I32EnumAttrCase<"Never", 2, "never">]>;

def Trn_Reduction : Trn_Enum<"Reduction", "what is done with the accumulation registers", [
    I32EnumAttrCase<"Reduce", 0, "reduce">,
    I32EnumAttrCase<"ResetReduce", 1, "reset_reduce">]>;

#endif // TRN_ENUMS_TD
