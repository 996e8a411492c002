#include "server/threading/low_priority.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

namespace swizzle {
namespace {

// Linux keeps a priority for each thread.
id_t ThisThread() { return static_cast<id_t>(syscall(SYS_gettid)); }

}  // namespace

void RunAside(int niceness, absl::FunctionRef<void()> work) {
  std::thread([&] {
    setpriority(PRIO_PROCESS, ThisThread(), getpriority(PRIO_PROCESS, ThisThread()) + niceness);
    work();
  }).join();
}

}  // namespace swizzle
