// Computing without the interpreter's lock, so that other Python threads run meanwhile.
//
// A thread that wants the lock back while the interpreter ends is ended by it in the midst of C++ code, which C++ does
// not survive: such threads, which only daemons can be, wait for the end of the process instead. A child of a fork
// begins without the threads of its parent.
//
// The functions of this folder are the ones of Swizzle that throw: an exception of nanobind's is how a function that
// Python calls raises one of Python's.
#ifndef SWIZZLE_SERVER_PYTHON_INTERPRETER_LOCK_H_
#define SWIZZLE_SERVER_PYTHON_INTERPRETER_LOCK_H_

#include <nanobind/nanobind.h>

#include <utility>

namespace swizzle::python {

// Gives the lock up for as long as it lives. The calling thread has it before and after. Single-owner.
class UnlockedInterpreter {
 public:
  UnlockedInterpreter();
  ~UnlockedInterpreter();
  UnlockedInterpreter(const UnlockedInterpreter&) = delete;
  UnlockedInterpreter& operator=(const UnlockedInterpreter&) = delete;

 private:
  PyThreadState* state_;  // null: the interpreter ends, and the lock is kept
};

// Has the lock for as long as it lives, in the midst of work without it. Single-owner.
class LockedInterpreter {
 public:
  LockedInterpreter();
  ~LockedInterpreter();
  LockedInterpreter(const LockedInterpreter&) = delete;
  LockedInterpreter& operator=(const LockedInterpreter&) = delete;

 private:
  PyGILState_STATE state_;
};

// What the function returns, called without the lock.
template <typename Function>
auto Unlocked(Function&& function) {
  const UnlockedInterpreter unlocked;
  return std::forward<Function>(function)();
}

// Once, when the module is imported.
void WatchForks();

// Before the interpreter ends: returns when no thread is on its way back to the lock, and from then on none is let
// back.
void EndInterpreter();

}  // namespace swizzle::python

#endif  // SWIZZLE_SERVER_PYTHON_INTERPRETER_LOCK_H_
