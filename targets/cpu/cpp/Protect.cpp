//===- Protect.cpp - Failures of LLVM's code generator as errors ----------===//
//
// A backend that has no instruction for something ends the process
// (`report_fatal_error`), unless a handler of LLVM's never returns: this one
// jumps back to where the work began. What crashes is survived as libclang
// does, by a crash recovery context, whose signal handlers are the process's:
// only where the program asked for them.
//
//===----------------------------------------------------------------------===//

#include "mlir/CAPI/Support.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

#include <csetjmp>
#include <mutex>
#include <string>

using namespace llvm;

/// As `Recovery` of src/recovery.rs.
enum Recovery { None = 0, Errors = 1, Crashes = 2 };

/// What LLVM said last on this thread.
static thread_local std::string reason;
/// Where this thread goes on when LLVM gives up; null outside of work.
static thread_local jmp_buf *landing = nullptr;

/// Keeps the message and leaves the work; of a thread that does none here, LLVM
/// ends the process as it would have.
static void fail(void *, const char *message, bool) {
  if (landing) {
    reason = message;
    longjmp(*landing, 1);
  }
  errs() << "LLVM ERROR: " << message << "\n";
}

namespace {

/// What the whole process has to turn on while anyone needs it.
class Shared {
public:
  constexpr Shared(void (*on)(), void (*off)()) : on(on), off(off) {}
  void enter() {
    std::lock_guard<std::mutex> guard(lock);
    if (users++ == 0)
      on();
  }
  void leave() {
    std::lock_guard<std::mutex> guard(lock);
    if (--users == 0)
      off();
  }

private:
  void (*on)();
  void (*off)();
  std::mutex lock;
  int users = 0;
};

/// Needs it, if anything, while it lives.
class Use {
public:
  explicit Use(Shared *shared) : shared(shared) {
    if (shared)
      shared->enter();
  }
  ~Use() {
    if (shared)
      shared->leave();
  }

private:
  Shared *shared;
};

} // namespace

static Shared handler([] { install_fatal_error_handler(fail); },
                      [] { remove_fatal_error_handler(); });
static Shared signals([] { CrashRecoveryContext::Enable(); },
                      [] { CrashRecoveryContext::Disable(); });

/// Does `work`; false where LLVM gives up.
static bool untilError(void (*work)(void *), void *data) {
  jmp_buf place;
  landing = &place;
  if (setjmp(place) != 0)
    return false;
  work(data);
  return true;
}

/// Does `work`. Where LLVM would end the process, and as far as `recovery`
/// says, false, with its message given to `tell`: what `work` made is then
/// lost, and must not be touched.
extern "C" bool axeProtected(int recovery, void (*work)(void *), void *data,
                             MlirStringCallback tell, void *user) {
  if (recovery == None) {
    work(data);
    return true;
  }
  Use needsHandler(&handler);
  Use needsSignals(recovery == Crashes ? &signals : nullptr);
  reason.clear();
  jmp_buf *outer = landing;
  bool done = false;
  // Where signals are not asked for, this is a plain call.
  CrashRecoveryContext context;
  bool survived = context.RunSafely([&] { done = untilError(work, data); });
  landing = outer;
  if (survived && done)
    return true;
  tell(wrap(StringRef(reason)), user);
  return false;
}
