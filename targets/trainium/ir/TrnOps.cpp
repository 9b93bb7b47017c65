//===- TrnOps.cpp - Syntax of kernels and of operands ---------------------===//

#include "Trn.h"
#include "TrnRegister.h"

#include "mlir/CAPI/Registration.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace trn;

#include "TrnDialect.cpp.inc"
#include "TrnEnums.cpp.inc"

//===----------------------------------------------------------------------===//
// Operands that are a number or a tile
//===----------------------------------------------------------------------===//

using OptionalOperand = std::optional<OpAsmParser::UnresolvedOperand>;

/// Parses `2.0` or `%tile : type`.
static ParseResult parseScalar(OpAsmParser &parser, OptionalOperand &operand,
                               Type &type, FloatAttr &value) {
  OpAsmParser::UnresolvedOperand tile;
  OptionalParseResult given = parser.parseOptionalOperand(tile);
  if (given.has_value()) {
    operand = tile;
    return failure(failed(*given) || parser.parseColonType(type));
  }
  double number;
  if (parser.parseFloat(number))
    return failure();
  value = parser.getBuilder().getF64FloatAttr(number);
  return success();
}

static void printScalar(OpAsmPrinter &printer, Operation *, Value operand,
                        Type type, FloatAttr value) {
  if (operand)
    printer << operand << " : " << type;
  else if (value)
    printer << value.getValue();
}

/// Parses `scale(...)`, which is 1 without.
static ParseResult parseScale(OpAsmParser &parser, OptionalOperand &operand,
                              Type &type, FloatAttr &value) {
  if (failed(parser.parseOptionalKeyword("scale")))
    return success();
  return failure(parser.parseLParen() ||
                 parseScalar(parser, operand, type, value) ||
                 parser.parseRParen());
}

static void printScale(OpAsmPrinter &printer, Operation *op, Value operand,
                       Type type, FloatAttr value) {
  if (!operand && !value)
    return;
  printer << "scale(";
  printScalar(printer, op, operand, type, value);
  printer << ") ";
}

/// Parses `multiply(%tile : type) reversed`.
static ParseResult parseStep(OpAsmParser &parser, AluAttr &op,
                             OptionalOperand &operand, Type &type,
                             FloatAttr &value, UnitAttr &reverse) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<Alu> known = symbolizeAlu(keyword);
  if (!known)
    return parser.emitError(loc)
           << "expected a function of two values, got '" << keyword << "'";
  op = AluAttr::get(parser.getContext(), *known);
  if (parser.parseLParen() || parseScalar(parser, operand, type, value) ||
      parser.parseRParen())
    return failure();
  if (succeeded(parser.parseOptionalKeyword("reversed")))
    reverse = parser.getBuilder().getUnitAttr();
  return success();
}

static void printStep(OpAsmPrinter &printer, Operation *op, AluAttr function,
                      Value operand, Type type, FloatAttr value,
                      UnitAttr reverse) {
  printer << stringifyAlu(function.getValue()) << "(";
  printScalar(printer, op, operand, type, value);
  printer << ")" << (reverse ? " reversed" : "");
}

/// Parses `then`, and a step.
static ParseResult parseThen(OpAsmParser &parser, AluAttr &op,
                             OptionalOperand &operand, Type &type,
                             FloatAttr &value, UnitAttr &reverse) {
  if (failed(parser.parseOptionalKeyword("then")))
    return success();
  return parseStep(parser, op, operand, type, value, reverse);
}

static void printThen(OpAsmPrinter &printer, Operation *op, AluAttr function,
                      Value operand, Type type, FloatAttr value,
                      UnitAttr reverse) {
  if (!function)
    return;
  printer << "then ";
  printStep(printer, op, function, operand, type, value, reverse);
}

#define GET_OP_CLASSES
#include "TrnOps.cpp.inc"

//===----------------------------------------------------------------------===//
// KernelOp
//===----------------------------------------------------------------------===//

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringAttr name, chip;
  SmallVector<OpAsmParser::Argument> arguments, outputs;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true))
    return failure();
  int64_t inputs = arguments.size();
  if (succeeded(parser.parseOptionalKeyword("outs")) &&
      parser.parseArgumentList(outputs, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true))
    return failure();
  llvm::append_range(arguments, outputs);
  if (parser.parseKeyword("chip") || parser.parseLParen() ||
      parser.parseAttribute(chip, getChipAttrName(result.name),
                            result.attributes) ||
      parser.parseRParen() ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  SmallVector<StringRef> names;
  for (const OpAsmParser::Argument &argument : arguments)
    names.push_back(argument.ssaName.name.drop_front());
  result.addAttribute(getInputsAttrName(result.name),
                      builder.getI64IntegerAttr(inputs));
  result.addAttribute(getArgNamesAttrName(result.name),
                      builder.getStrArrayAttr(names));
  Region *body = result.addRegion();
  if (parser.parseRegion(*body, arguments))
    return failure();
  // `{}` without arguments is parsed as no block.
  if (body->empty())
    body->emplaceBlock();
  return success();
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  auto list = [&](ArrayRef<BlockArgument> arguments) {
    printer << "(";
    llvm::interleaveComma(arguments, printer, [&](BlockArgument argument) {
      printer.printRegionArgument(argument);
    });
    printer << ")";
  };
  SmallVector<BlockArgument> arguments(getBody().getArguments());
  size_t inputs = std::min<size_t>(getInputs(), arguments.size());
  list(ArrayRef(arguments).take_front(inputs));
  if (inputs < arguments.size()) {
    printer << " outs";
    list(ArrayRef(arguments).drop_front(inputs));
  }
  printer << " chip(";
  printer.printAttribute(getChipAttr());
  printer << ")";
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getSymNameAttrName(), getChipAttrName(),
                            getInputsAttrName(), getArgNamesAttrName()});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

void KernelOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setName) {
  for (auto [argument, name] : llvm::zip(region.getArguments(), getArgNames()))
    setName(argument, cast<StringAttr>(name).getValue());
}

LogicalResult KernelOp::verify() {
  if (getChip() != "trn1" && getChip() != "trn2")
    return emitOpError("(K1) expected chip trn1 or trn2, got ")
           << getChipAttr();
  Block &body = getBody().front();
  size_t count = body.getNumArguments();
  if (getInputs() > count || getArgNames().size() != count)
    return emitOpError("(K2) expected a name for each of ")
           << count << " arguments, and at most as many inputs, got "
           << getArgNames().size() << " names and " << getInputs() << " inputs";
  llvm::StringSet<> names;
  for (auto [argument, name] : llvm::zip(body.getArguments(), getArgNames())) {
    if (!isa<HbmType>(argument.getType()))
      return emitOpError("(K2) expected arguments in HBM, got ")
             << argument.getType();
    if (!names.insert(cast<StringAttr>(name).getValue()).second)
      return emitOpError("(K2) expected different names, got ")
             << name << " twice";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// AllocOp
//===----------------------------------------------------------------------===//

ParseResult AllocOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringRef name = parser.getResultName(0).first;
  if (!name.empty() && !llvm::isDigit(name.front()))
    result.addAttribute(getNameAttrName(result.name),
                        builder.getStringAttr(name));
  int64_t copies = 1, partition, byte;
  if (succeeded(parser.parseOptionalKeyword("copies")) &&
      (parser.parseLParen() || parser.parseInteger(copies) ||
       parser.parseRParen()))
    return failure();
  result.addAttribute(getCopiesAttrName(result.name),
                      builder.getI64IntegerAttr(copies));
  if (succeeded(parser.parseOptionalKeyword("at"))) {
    if (parser.parseLParen() || parser.parseInteger(partition) ||
        parser.parseComma() || parser.parseInteger(byte) ||
        parser.parseRParen())
      return failure();
    result.addAttribute(getPartitionAttrName(result.name),
                        builder.getI64IntegerAttr(partition));
    result.addAttribute(getByteAttrName(result.name),
                        builder.getI64IntegerAttr(byte));
  }
  Type type;
  if (parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(type))
    return failure();
  result.addTypes(type);
  return success();
}

void AllocOp::print(OpAsmPrinter &printer) {
  if (getCopies() != 1)
    printer << " copies(" << getCopies() << ")";
  if (getPartition() || getByte())
    printer << " at(" << getPartition().value_or(0) << ", "
            << getByte().value_or(0) << ")";
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {getNameAttrName(), getCopiesAttrName(),
                                 getPartitionAttrName(), getByteAttrName()});
  printer << " : " << getTile().getType();
}

void AllocOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (std::optional<StringRef> name = getName())
    setName(getTile(), *name);
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

void TrnDialect::initialize() {
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "TrnOps.cpp.inc"
      >();
}

void trn::registerDialect(DialectRegistry &registry) {
  registry.insert<TrnDialect>();
}

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(Trn, trn, ::trn::TrnDialect)
