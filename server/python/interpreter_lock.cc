#include "server/python/interpreter_lock.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace swizzle::python {
namespace {

std::atomic<bool> ending = false;
std::atomic<int> returning = 0;  // threads that wait for the lock, having seen that the interpreter did not end

// Calls what waits for the lock.
template <typename Take>
void Return(Take&& take) {
  const auto leave = [] {
    if (returning.fetch_sub(1) == 1) returning.notify_all();
  };
  returning.fetch_add(1);
  if (ending) {
    leave();
    while (true) pause();
  }
  take();
  leave();
}

}  // namespace

UnlockedInterpreter::UnlockedInterpreter() : state_(ending ? nullptr : PyEval_SaveThread()) {}

UnlockedInterpreter::~UnlockedInterpreter() {
  if (state_ != nullptr) Return([this] { PyEval_RestoreThread(state_); });
}

LockedInterpreter::LockedInterpreter() : state_() {
  Return([this] { state_ = PyGILState_Ensure(); });
}

LockedInterpreter::~LockedInterpreter() { PyGILState_Release(state_); }

void WatchForks() {
  pthread_atfork(nullptr, nullptr, [] { returning = 0; });
}

void EndInterpreter() {
  PyThreadState* const state = PyEval_SaveThread();
  ending = true;
  for (int count = returning; count > 0; count = returning) returning.wait(count);
  PyEval_RestoreThread(state);
}

}  // namespace swizzle::python
