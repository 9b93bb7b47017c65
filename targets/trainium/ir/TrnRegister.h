//===- TrnRegister.h - Registration of the trn dialect ----------*- C++ -*-===//
#ifndef TRN_IR_TRNREGISTER_H
#define TRN_IR_TRNREGISTER_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace trn {

/// Adds the trn dialect. Needs no generated header, so that drivers and the
/// plugin can call it.
void registerDialect(mlir::DialectRegistry &registry);

} // namespace trn

#endif // TRN_IR_TRNREGISTER_H
