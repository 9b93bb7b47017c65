//===- handlers.cpp - What is the process's stays so ----------------------===//
//
// LLVM holds one handler of fatal errors, and has no function that gives it.
// Compilations for chips leave it and the handlers of signals alone; those for
// the host do after axe_set_recovery(AXE_RECOVERY_NONE).
//
//===----------------------------------------------------------------------===//

#include "axe-c/Register.h"
#include "axe.h"
#include "llvm/Support/ErrorHandling.h"

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstring>

static const char twice[] =
    "func.func @twice(%x: tensor<64xf32>) -> tensor<64xf32> {\n"
    "  %e = tensor.empty() : tensor<64xf32>\n"
    "  %y = linalg.add ins(%x, %x : tensor<64xf32>, tensor<64xf32>)\n"
    "                  outs(%e : tensor<64xf32>) -> tensor<64xf32>\n"
    "  return %y : tensor<64xf32>\n"
    "}\n";

static jmp_buf back;
static volatile int calls = 0;

static void mine(void *, const char *, bool) {
  calls = calls + 1;
  longjmp(back, 1);
}

/// Whether a fatal error of LLVM comes to the program; else it ends here.
static bool isMine() {
  int before = calls;
  if (setjmp(back) == 0)
    llvm::report_fatal_error("the program's handler is lost", false);
  return calls == before + 1;
}

static bool compiles(const char *target) {
  axe_compile_options options = AXE_COMPILE_OPTIONS_INIT;
  options.target = target;
  options.no_assembler = true;
  axe_package *package = nullptr;
  axe_error *error = nullptr;
  axe_status status =
      axe_compile(twice, sizeof twice - 1, &options, &package, &error);
  if (status != AXE_OK)
    fprintf(stderr, "%s: %s\n", target, axe_error_message(error));
  axe_package_free(package);
  axe_error_free(error);
  return status == AXE_OK;
}

static bool sameHandlers(bool remember) {
  static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE};
  static struct sigaction before[5];
  bool same = true;
  for (int i = 0; i < 5; i++) {
    struct sigaction now;
    sigaction(signals[i], nullptr, &now);
    if (remember)
      before[i] = now;
    same = same && now.sa_handler == before[i].sa_handler;
  }
  return same;
}

int main() {
  int failures = 0;
  auto check = [&](bool good, const char *what) {
    if (!good)
      fprintf(stderr, "failed: %s\n", what);
    failures += !good;
  };
  sameHandlers(/*remember=*/true);
  llvm::install_fatal_error_handler(mine);
  axeRegisterTargets();
  axeRegisterPasses();
  check(isMine(), "registration leaves LLVM's handler");
  check(compiles("sm_90a") && isMine(), "a chip leaves LLVM's handler");
  check(axe_set_recovery(AXE_RECOVERY_NONE) == AXE_OK, "recovery is chosen");
  check(compiles("cpu") && isMine(), "the host leaves it where it is told to");
  check(axe_set_recovery(AXE_RECOVERY_ERRORS) == AXE_OK, "recovery is chosen");
  check(compiles("cpu"), "the host compiles");
  check(sameHandlers(/*remember=*/false), "no signal handler is touched");
  if (failures == 0)
    printf("handlers: as they were\n");
  return failures != 0;
}
