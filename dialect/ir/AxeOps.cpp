//===- AxeOps.cpp - Structure of kernels, scopes and storage --------------===//

#include "Axe.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace axe;

//===----------------------------------------------------------------------===//
// Raster orders
//===----------------------------------------------------------------------===//

/// Parses `(rows)`, `(groups 8)`, ...
static ParseResult parseRasterOrder(OpAsmParser &parser,
                                    RasterOrderAttr &raster,
                                    IntegerAttr &swizzle) {
  StringRef keyword;
  if (parser.parseLParen())
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<RasterOrder> known = symbolizeRasterOrder(keyword);
  if (!known)
    return parser.emitError(loc)
           << "expected a raster order (rows, columns, groups, snake, "
              "hilbert), got '"
           << keyword << "'";
  raster = RasterOrderAttr::get(parser.getContext(), *known);
  int64_t rows = 1;
  if (auto given = parser.parseOptionalInteger(rows);
      given.has_value() && failed(*given))
    return failure();
  swizzle = parser.getBuilder().getI64IntegerAttr(rows);
  return parser.parseRParen();
}

static void printRasterOrder(OpAsmPrinter &printer, Operation *,
                             RasterOrderAttr raster, IntegerAttr swizzle) {
  printer << "(" << stringifyRasterOrder(raster.getValue());
  if (swizzle && swizzle.getInt() != 1)
    printer << " " << swizzle.getInt();
  printer << ")";
}

#define GET_OP_CLASSES
#include "AxeOps.cpp.inc"

//===----------------------------------------------------------------------===//
// MeshOp
//===----------------------------------------------------------------------===//

ParseResult MeshOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<Attribute> axes;
  SmallVector<int64_t> sizes;
  auto parseAxis = [&]() -> ParseResult {
    std::string axis;
    if (parser.parseKeywordOrString(&axis) || parser.parseEqual() ||
        parser.parseInteger(sizes.emplace_back()))
      return failure();
    axes.push_back(parser.getBuilder().getStringAttr(axis));
    return success();
  };
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseAxis) ||
      parser.parseOptionalAttrDict(result.attributes))
    return failure();
  Builder &builder = parser.getBuilder();
  result.addAttribute(getAxesAttrName(result.name), builder.getArrayAttr(axes));
  result.addAttribute(getSizesAttrName(result.name),
                      builder.getDenseI64ArrayAttr(sizes));
  return success();
}

void MeshOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << "(";
  llvm::interleaveComma(
      llvm::zip(getAxes(), getSizes()), printer, [&](auto pair) {
        auto [axis, size] = pair;
        printer.printKeywordOrString(cast<StringAttr>(axis).getValue());
        printer << " = " << size;
      });
  printer << ")";
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {"sym_name", "axes", "sizes"});
}

LogicalResult MeshOp::verify() {
  if (getAxes().empty())
    return emitOpError("(M1) expected at least one axis");
  if (getAxes().size() != getSizes().size())
    return emitOpError("(M1) expected as many axis names as sizes, got ")
           << getAxes().size() << " and " << getSizes().size();
  llvm::StringSet<> seen;
  for (auto [axis, size] : llvm::zip(getAxes(), getSizes())) {
    StringRef name = cast<StringAttr>(axis).getValue();
    if (!seen.insert(name).second)
      return emitOpError("(M1) expected distinct axes, got '")
             << name << "' twice";
    if (size < 1)
      return emitOpError("(M1) expected a size of at least 1 on axis '")
             << name << "', got " << size;
  }
  return success();
}

/// Threads in one member of a level inside a CTA.
static int64_t threadsOf(Level level) {
  switch (level) {
  case Level::Warpgroup:
    return 128;
  case Level::Warp:
    return 32;
  default:
    return 1;
  }
}

//===----------------------------------------------------------------------===//
// KernelOp
//===----------------------------------------------------------------------===//

static ParseResult parseParenthesized(OpAsmParser &parser,
                                      SmallVectorImpl<int64_t> &values) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&] {
    return parser.parseInteger(values.emplace_back());
  });
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Type> resultTypes;
  SmallVector<DictionaryAttr> resultAttrs;
  bool isVariadic = false;
  Builder &builder = parser.getBuilder();
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(),
                             result.attributes) ||
      function_interface_impl::parseFunctionSignatureWithArguments(
          parser, /*allowVariadic=*/false, arguments, isVariadic, resultTypes,
          resultAttrs))
    return failure();
  SmallVector<Type> argumentTypes;
  for (OpAsmParser::Argument &argument : arguments)
    argumentTypes.push_back(argument.type);
  result.addAttribute(
      getFunctionTypeAttrName(result.name),
      TypeAttr::get(builder.getFunctionType(argumentTypes, resultTypes)));
  int64_t threads;
  if (parser.parseKeyword("threads") || parser.parseLParen() ||
      parser.parseInteger(threads) || parser.parseRParen())
    return failure();
  result.addAttribute(getThreadsAttrName(result.name),
                      builder.getI64IntegerAttr(threads));
  if (succeeded(parser.parseOptionalKeyword("cluster"))) {
    SmallVector<int64_t> cluster;
    if (parseParenthesized(parser, cluster))
      return failure();
    result.addAttribute(getClusterAttrName(result.name),
                        builder.getDenseI64ArrayAttr(cluster));
  }
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  call_interface_impl::addArgAndResultAttrs(
      builder, result, arguments, resultAttrs, getArgAttrsAttrName(result.name),
      getResAttrsAttrName(result.name));
  return parser.parseRegion(*result.addRegion(), arguments);
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  call_interface_impl::printFunctionSignature(
      printer, getArgumentTypes(), getArgAttrsAttr(), /*isVariadic=*/false,
      getResultTypes(), getResAttrsAttr(), &getBody(),
      /*printEmptyResult=*/false);
  printer << " threads(" << getThreads() << ")";
  if (auto cluster = getCluster()) {
    printer << " cluster(";
    llvm::interleaveComma(*cluster, printer);
    printer << ")";
  }
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {"sym_name", "function_type", "threads", "cluster",
                            "arg_attrs", "res_attrs"});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult KernelOp::verify() {
  int64_t threads = getThreads();
  if (threads < 1)
    return emitOpError("(K1) expected at least 1 thread, got ") << threads;
  if (!getResultTypes().empty())
    return emitOpError("(K2) expected no results, got ")
           << getResultTypes().size();
  for (auto [index, type] : llvm::enumerate(getArgumentTypes()))
    if (!isa<MemRefType, IntegerType, FloatType, IndexType>(type))
      return emitOpError("(K2) expected a memref or a scalar as argument ")
             << index << ", got " << type;
  if (auto cluster = getCluster())
    if (llvm::any_of(*cluster, [](int64_t extent) { return extent < 1; }))
      return emitOpError("(K3) expected cluster extents of at least 1");
  return success();
}

/// The threads of a range of a level's members, as far as they can be counted.
static std::pair<int64_t, int64_t> threadsOf(ScopeOp scope) {
  int64_t each = threadsOf(scope.getLevel());
  auto at = [&](int64_t member) {
    int64_t thread;
    return llvm::MulOverflow(member, each, thread)
               ? std::numeric_limits<int64_t>::max()
               : thread;
  };
  ArrayRef<int64_t> range = *scope.getRange();
  return {at(range[0]), at(range[1])};
}

/// (X3) for all roles of a kernel: they are disjoint.
LogicalResult KernelOp::verifyRegions() {
  SmallVector<ScopeOp> roles;
  auto visited = getBody().walk([&](ScopeOp scope) -> WalkResult {
    auto range = scope.getRange();
    if (!scope.getRegisters() || !range || range->size() != 2)
      return WalkResult::advance();
    auto [begin, end] = threadsOf(scope);
    for (ScopeOp other : roles) {
      auto [otherBegin, otherEnd] = threadsOf(other);
      if (otherBegin < end && begin < otherEnd)
        return scope.emitOpError("(X3) expected roles of disjoint threads, "
                                 "got [")
               << begin << ", " << end << ") and [" << otherBegin << ", "
               << otherEnd << ")";
    }
    roles.push_back(scope);
    return WalkResult::advance();
  });
  return failure(visited.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// LaunchOp
//===----------------------------------------------------------------------===//

/// Whether a launch operand may be passed for a kernel argument.
static bool isPassable(Type operand, Type argument) {
  if (operand == argument)
    return true;
  auto tensor = dyn_cast<RankedTensorType>(operand);
  auto memref = dyn_cast<MemRefType>(argument);
  return tensor && memref && tensor.getShape() == memref.getShape() &&
         tensor.getElementType() == memref.getElementType();
}

/// (U1) for an `axe.kernel`: the operands fit its arguments.
static LogicalResult verifyOperands(LaunchOp launch, KernelOp kernel) {
  SmallVector<Value> operands(launch.getInputs());
  llvm::append_range(operands, launch.getOutputs());
  if (operands.size() != kernel.getNumArguments())
    return launch.emitOpError("(U1) expected ")
           << kernel.getNumArguments() << " operands for '"
           << kernel.getSymName() << "', got " << operands.size();
  for (auto [index, operand] : llvm::enumerate(operands))
    if (!isPassable(operand.getType(), kernel.getArgumentTypes()[index]))
      return launch.emitOpError("(U1) expected argument ")
             << index << " to fit " << kernel.getArgumentTypes()[index]
             << ", got " << operand.getType();
  return success();
}

/// (U1) for a kernel that is bound to a target: `@module::@kernel`.
static LogicalResult verifyBound(LaunchOp launch,
                                 SymbolTableCollection &symbols) {
  SymbolRefAttr kernel = launch.getKernelAttr();
  Operation *holder =
      symbols.lookupNearestSymbolFrom(launch, kernel.getRootReference());
  // The contents of a binary are opaque, as they are to gpu.launch_func.
  if (isa_and_nonnull<gpu::BinaryOp>(holder))
    return success();
  if (!isa_and_nonnull<gpu::GPUModuleOp>(holder))
    return launch.emitOpError("(U1) expected '@")
           << kernel.getRootReference().getValue()
           << "' to be a gpu.module or a gpu.binary";
  Operation *function = symbols.lookupNearestSymbolFrom(launch, kernel);
  if (!isa_and_nonnull<gpu::GPUFuncOp, LLVM::LLVMFuncOp>(function))
    return launch.emitOpError("(U1) expected '")
           << kernel << "' to be a gpu.func or an llvm.func";
  return success();
}

/// Whether an operation is a kernel in the dialect of a target: an isolated
/// symbol that is neither a function nor holds symbols itself. The target knows
/// what its operands are.
static bool isKernelOfTarget(Operation *op) {
  return op && op->hasTrait<OpTrait::IsIsolatedFromAbove>() &&
         !op->hasTrait<OpTrait::SymbolTable>() &&
         !isa<FunctionOpInterface>(op) && !isa<KernelOp>(op) &&
         !isa<AxeDialect>(op->getDialect());
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  if (failed(verifyMeshAxes(*this, symbolTable)))
    return failure();
  if (!getKernelAttr().getNestedReferences().empty()) {
    if (failed(verifyBound(*this, symbolTable)))
      return failure();
  } else {
    Operation *callee =
        symbolTable.lookupNearestSymbolFrom(*this, getKernelAttr());
    auto kernel = dyn_cast_or_null<KernelOp>(callee);
    if (!kernel && !isKernelOfTarget(callee))
      return emitOpError("(U1) '") << getKernel() << "' is not an axe.kernel";
    if (kernel && failed(verifyOperands(*this, kernel)))
      return failure();
  }
  SmallVector<Type> tensors;
  for (Value output : getOutputs())
    if (isa<RankedTensorType>(output.getType()))
      tensors.push_back(output.getType());
  if (!llvm::equal(tensors, getResultTypes()))
    return emitOpError("(U2) expected one result for every tensor among outs, "
                       "of the same type");
  return success();
}

//===----------------------------------------------------------------------===//
// ScopeOp
//===----------------------------------------------------------------------===//

ParseResult ScopeOp::parse(OpAsmParser &parser, OperationState &result) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<Level> level = symbolizeLevel(keyword);
  if (!level)
    return parser.emitError(loc)
           << "expected an execution scope (device, cluster, cta, warpgroup, "
              "warp, thread), got '"
           << keyword << "'";
  result.addAttribute(getLevelAttrName(result.name),
                      LevelAttr::get(parser.getContext(), *level));
  if (succeeded(parser.parseOptionalLSquare())) {
    int64_t begin, end;
    if (parser.parseInteger(begin) || parser.parseComma() ||
        parser.parseInteger(end) || parser.parseRParen())
      return failure();
    result.addAttribute(getRangeAttrName(result.name),
                        parser.getBuilder().getDenseI64ArrayAttr({begin, end}));
  }
  if (succeeded(parser.parseOptionalKeyword("registers"))) {
    int64_t registers;
    if (parser.parseLParen() || parser.parseInteger(registers) ||
        parser.parseRParen())
      return failure();
    result.addAttribute(getRegistersAttrName(result.name),
                        parser.getBuilder().getI64IntegerAttr(registers));
  }
  Region *body = result.addRegion();
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*body))
    return failure();
  ensureTerminator(*body, parser.getBuilder(), result.location);
  return success();
}

void ScopeOp::print(OpAsmPrinter &printer) {
  printer << " " << stringifyLevel(getLevel());
  if (auto range = getRange())
    printer << " [" << (*range)[0] << ", " << (*range)[1] << ")";
  if (auto registers = getRegisters())
    printer << " registers(" << *registers << ")";
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {"level", "range", "registers"});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/true,
                      /*printBlockTerminators=*/false);
}

/// Members of `level` that the scope around `op` holds; nothing where that is
/// not known (outside a kernel, or above a CTA).
static std::optional<int64_t> membersAround(Operation *op, Level level) {
  if (level < Level::Warpgroup)
    return std::nullopt;
  for (Operation *parent = op->getParentOp(); parent;
       parent = parent->getParentOp()) {
    if (auto kernel = dyn_cast<KernelOp>(parent))
      return static_cast<int64_t>(kernel.getThreads()) / threadsOf(level);
    auto scope = dyn_cast<ScopeOp>(parent);
    if (!scope || scope.getLevel() < Level::Warpgroup)
      continue;
    int64_t count = 1;
    if (auto range = scope.getRange(); range && range->size() == 2)
      count = (*range)[1] - (*range)[0];
    int64_t threads;
    if (llvm::MulOverflow(count, threadsOf(scope.getLevel()), threads))
      return std::nullopt;
    return threads / threadsOf(level);
  }
  return std::nullopt;
}

/// (X3) for one scope; that roles are disjoint is the kernel's.
static LogicalResult verifyRegisters(ScopeOp scope) {
  auto registers = scope.getRegisters();
  if (!registers)
    return success();
  if (!scope.getRange())
    return scope.emitOpError("(X3) expected a range with a budget of "
                             "registers");
  int64_t budget = *registers;
  if (budget < 1)
    return scope.emitOpError("(X3) expected at least 1 register, got ")
           << budget;
  return success();
}

LogicalResult BarrierOp::verify() {
  if (getAcrossCluster() && (*this)->getParentOfType<ScopeOp>())
    return emitOpError("(BA1) expected 'cluster' outside of all scopes: every "
                       "thread of the CTA arrives");
  return success();
}

LogicalResult ScopeOp::verify() {
  Level level = getLevel();
  if (auto parent = (*this)->getParentOfType<ScopeOp>();
      parent && level < parent.getLevel())
    return emitOpError("(X1) expected a level inside '")
           << stringifyLevel(parent.getLevel()) << "', got '"
           << stringifyLevel(level) << "'";
  auto range = getRange();
  if (failed(verifyRegisters(*this)))
    return failure();
  if (!range)
    return success();
  if (range->size() != 2 || (*range)[0] < 0 || (*range)[0] >= (*range)[1])
    return emitOpError("(X2) expected a range [begin, end) with begin < end");
  std::optional<int64_t> members = membersAround(*this, level);
  if (members && (*range)[1] > *members)
    return emitOpError("(X2) expected a range inside the ")
           << *members << " " << stringifyLevel(level)
           << "s of the enclosing scope, got [" << (*range)[0] << ", "
           << (*range)[1] << ")";
  return success();
}

//===----------------------------------------------------------------------===//
// OrderedBeginOp, OrderedEndOp
//===----------------------------------------------------------------------===//

/// (OB1)
static LogicalResult verifyMembers(OrderedBeginOp op) {
  Level level = op.getLevel();
  bool ordered = level == Level::Warpgroup || level == Level::Warp;
  std::optional<int64_t> members = ordered && op->getParentOfType<ScopeOp>()
                                       ? membersAround(op, level)
                                       : std::nullopt;
  if (members && *members > 1)
    return success();
  return op.emitOpError("(OB1) expected a scope of several ")
         << (ordered ? stringifyLevel(level) : "warp") << "s around it";
}

LogicalResult OrderedBeginOp::verify() {
  if (failed(verifyMembers(*this)))
    return failure();
  auto users = getTurn().getUsers();
  int64_t ends = llvm::count_if(users, [&](Operation *user) {
    return isa<OrderedEndOp>(user) && user->getBlock() == (*this)->getBlock();
  });
  if (ends != 1 || !getTurn().hasOneUse())
    return emitOpError("(OB2) expected one axe.ordered.end of the token, in "
                       "the same block, got ")
           << ends;
  Operation *end = *users.begin();
  for (Operation *op = (*this)->getNextNode(); op && op != end;
       op = op->getNextNode()) {
    auto other = [](Operation *inner) {
      return isa<OrderedBeginOp>(inner) ? WalkResult::interrupt()
                                        : WalkResult::advance();
    };
    if (op->walk(other).wasInterrupted())
      return emitOpError("(OB3) expected no other turn within a turn");
  }
  return success();
}

LogicalResult OrderedEndOp::verify() {
  if (!getTurn().getDefiningOp<OrderedBeginOp>())
    return emitOpError("(OE1) expected the token of an axe.ordered.begin");
  return success();
}

//===----------------------------------------------------------------------===//
// TileAtOp
//===----------------------------------------------------------------------===//

/// Checks the rows of tiles that are visited together.
static LogicalResult verifyRasterOrder(Operation *op, StringRef constraint,
                                       RasterOrder raster, int64_t swizzle) {
  bool grouped = raster == RasterOrder::Groups || raster == RasterOrder::Snake;
  if (swizzle < 1 || (swizzle != 1 && !grouped))
    return op->emitOpError("(")
           << constraint
           << ") expected a swizzle of at least 1, and only for 'groups' and "
              "'snake', got "
           << swizzle;
  return success();
}

LogicalResult TileAtOp::verify() {
  return verifyRasterOrder(getOperation(), "TA1", getRaster(), getSwizzle());
}

//===----------------------------------------------------------------------===//
// ForTilesOp
//===----------------------------------------------------------------------===//

ParseResult ForTilesOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  Type index = builder.getIndexType();
  SmallVector<OpAsmParser::Argument> tiles;
  SmallVector<OpAsmParser::UnresolvedOperand> counts;
  if (parser.parseArgumentList(tiles, OpAsmParser::Delimiter::Paren) ||
      parser.parseKeyword("in") ||
      parser.parseOperandList(counts, OpAsmParser::Delimiter::Paren) ||
      parser.resolveOperands(counts, index, result.operands) ||
      parser.parseKeyword("raster"))
    return failure();
  for (OpAsmParser::Argument &tile : tiles)
    tile.type = index;
  RasterOrderAttr raster;
  IntegerAttr swizzle;
  if (parseRasterOrder(parser, raster, swizzle))
    return failure();
  result.addAttribute(getRasterAttrName(result.name), raster);
  result.addAttribute(getSwizzleAttrName(result.name), swizzle);
  if (succeeded(parser.parseOptionalKeyword("pingpong")))
    result.addAttribute(getPingpongAttrName(result.name),
                        builder.getUnitAttr());
  Region *body = result.addRegion();
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*body, tiles))
    return failure();
  ensureTerminator(*body, builder, result.location);
  return success();
}

void ForTilesOp::print(OpAsmPrinter &printer) {
  printer << " (";
  llvm::interleaveComma(getBody().getArguments(), printer);
  printer << ") in (";
  llvm::interleaveComma(getCounts(), printer);
  printer << ") raster";
  printRasterOrder(printer, *this, getRasterAttr(), getSwizzleAttr());
  if (getPingpong())
    printer << " pingpong";
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {"raster", "swizzle", "pingpong"});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/false);
}

/// Whether a scope makes several thread groups of its threads.
static bool hasThreadGroups(ScopeOp scope) {
  return scope && !scope.getRange() &&
         (scope.getLevel() == Level::Warp ||
          scope.getLevel() == Level::Warpgroup);
}

LogicalResult ForTilesOp::verify() {
  Block &body = getBody().front();
  if (getCounts().size() < 2 || body.getNumArguments() != getCounts().size() ||
      !llvm::all_of(body.getArgumentTypes(),
                    [](Type type) { return type.isIndex(); }))
    return emitOpError("(I1) expected at least two counts, and one index "
                       "argument for each, got ")
           << getCounts().size() << " and " << body.getNumArguments();
  if (failed(
          verifyRasterOrder(getOperation(), "I2", getRaster(), getSwizzle())))
    return failure();
  if (getPingpong() && !hasThreadGroups((*this)->getParentOfType<ScopeOp>()))
    return emitOpError("(I3) expected 'pingpong' in a scope of several thread "
                       "groups: of warps or warpgroups, without a range");
  return success();
}

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

LogicalResult PipelineCreateOp::verify() {
  if (static_cast<int64_t>(getStages()) < 1)
    return emitOpError("(PL1) expected at least 1 stage, got ")
           << static_cast<int64_t>(getStages());
  if (!isa_and_nonnull<KernelOp>((*this)->getParentOp()))
    return emitOpError("(PL2) expected to stand in the body of a kernel");
  return success();
}

LogicalResult AcquireOp::verify() {
  auto commits = llvm::count_if(getSlot().getUsers(), [](Operation *user) {
    return isa<PipelineCommitOp>(user);
  });
  if (commits != 1)
    return emitOpError("(PL3) expected one commit of the slot, got ")
           << commits;
  return success();
}

LogicalResult PipelineWaitOp::verify() {
  auto ends = llvm::count_if(
      getSlot().getUsers(), [](Operation *user) { return !isa<CopyOp>(user); });
  if (ends != 1)
    return emitOpError(
               "(PL4) expected the slot to be released once, or carried "
               "by a loop, got ")
           << ends << " such uses";
  return success();
}
