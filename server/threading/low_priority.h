// Work that gives way to threads that answer requests. Thread-safe.
#ifndef SWIZZLE_SERVER_THREADING_LOW_PRIORITY_H_
#define SWIZZLE_SERVER_THREADING_LOW_PRIORITY_H_

#include "absl/functional/function_ref.h"

namespace swizzle {

// Runs `work`, which throws nothing, on a thread whose niceness is `niceness` above the caller's, and waits for it.
// Threads that it starts inherit that, and a process without privileges cannot take it back: none of them may serve
// later on. What it locks, others may wait for until it goes on: a tenth of a second on busy processors.
// std::system_error if there is no thread. Where the system refuses the priority, the work is done all the same.
void RunAside(int niceness, absl::FunctionRef<void()> work);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_THREADING_LOW_PRIORITY_H_
