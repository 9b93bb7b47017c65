//===- Protect.cpp - Failures of LLVM's code generator as errors ----------===//
//
// A backend that has no instruction for something ends the process
// (`report_fatal_error`). LLVM's own way to survive that, which libclang
// takes, is a crash recovery context; it has no C interface.
//
//===----------------------------------------------------------------------===//

#include "mlir/CAPI/Support.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>
#include <string>

using namespace llvm;

/// What LLVM said last on this thread.
static thread_local std::string reason;

/// Keeps the message and leaves the work; without a context around it, LLVM
/// ends the process as it would have.
static void fail(void *, const char *message, bool) {
  if (CrashRecoveryContext *context = CrashRecoveryContext::GetCurrent()) {
    reason = message;
    context->HandleExit(1);
  }
  errs() << "LLVM ERROR: " << message << "\n";
}

namespace {

/// Recovery is on while anyone works; its signal handlers are the process's.
struct Enabled {
  Enabled() {
    std::lock_guard<std::mutex> guard(lock);
    if (users++ == 0) {
      remove_fatal_error_handler();
      install_fatal_error_handler(fail);
      CrashRecoveryContext::Enable();
    }
  }
  ~Enabled() {
    std::lock_guard<std::mutex> guard(lock);
    if (--users == 0) {
      CrashRecoveryContext::Disable();
      remove_fatal_error_handler();
    }
  }
  static std::mutex lock;
  static int users;
};

std::mutex Enabled::lock;
int Enabled::users = 0;

} // namespace

/// Does `work`. Where LLVM would end the process, false, with its message
/// given to `tell`: what `work` made is then lost, and must not be touched.
extern "C" bool axeProtected(void (*work)(void *), void *data,
                             MlirStringCallback tell, void *user) {
  Enabled enabled;
  reason.clear();
  CrashRecoveryContext context;
  if (context.RunSafely([&] { work(data); }))
    return true;
  tell(wrap(StringRef(reason)), user);
  return false;
}
