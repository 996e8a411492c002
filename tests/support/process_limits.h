// Processes without memory or threads to be had, for tests of what then happens.
#ifndef SWIZZLE_TESTS_SUPPORT_PROCESS_LIMITS_H_
#define SWIZZLE_TESTS_SUPPORT_PROCESS_LIMITS_H_

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace swizzle {

// For a process of its own: it may map so many bytes more than it has mapped.
inline void LimitAddresses(size_t more) {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + more;
  const rlimit limit = {most, most};
  setrlimit(RLIMIT_AS, &limit);
}

// What the stacks of threads have that are started from now on.
inline void SetStackBytes(size_t bytes) {
  pthread_attr_t stack;
  pthread_attr_init(&stack);
  pthread_attr_setstacksize(&stack, bytes);
  pthread_setattr_default_np(&stack);
  pthread_attr_destroy(&stack);
}

// For a process of its own: some threads start, some dozens or a hundred, and then no more, for want of addresses.
// Sanitizers take addresses themselves.
inline void LimitThreads() {
  SetStackBytes(size_t{8} << 20);  // else they are as large as `ulimit -s` says
  const rlimit limit = {rlim_t{1} << 30, rlim_t{1} << 30};
  setrlimit(RLIMIT_AS, &limit);
}

// While it lives, no thread starts: no process has room for such a stack.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    pthread_attr_t stack;
    pthread_getattr_default_np(&stack);
    pthread_attr_getstacksize(&stack, &before_);
    pthread_attr_destroy(&stack);
    SetStackBytes(size_t{1} << 47);
  }
  ~NoMoreThreads() { SetStackBytes(before_); }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  size_t before_ = 0;
};

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_SUPPORT_PROCESS_LIMITS_H_
