#include "kernels/cpu/runtime/start_threads.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <future>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "kernels/base/control_groups.h"

namespace swizzle::cpu {

bool CanStartThreads(int count) {
  std::promise<void> all;
  const std::shared_future<void> over = all.get_future().share();
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(std::max(count, 0)));
  bool started = true;
  try {
    for (int i = 0; i < count; ++i) threads.emplace_back([over] { over.wait(); });
  } catch (const std::system_error&) {
    started = false;
  }
  all.set_value();
  for (std::thread& thread : threads) thread.join();
  return started;
}

std::string ThreadLimits() {
  std::string text;
  const auto add = [&](const char* name, auto value) { text += Concat(text.empty() ? "" : ", ", name, " is ", value); };
  rlimit limit = {};
  if (getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) add("ulimit -u", limit.rlim_cur);
  std::optional<int64_t> pids;
  for (const auto& group : ControlGroups(ReadKernelFile("/proc/self/cgroup"), "/sys/fs/cgroup", "pids")) {
    const std::string most = ReadKernelFile(group / "pids.max");
    int64_t number = 0;
    if (std::from_chars(most.data(), most.data() + most.size(), number).ec != std::errc()) continue;  // "max"
    pids = Smaller(pids, std::optional<int64_t>(number));
  }
  if (pids) add("pids.max of its control group", *pids);
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) add("ulimit -v", limit.rlim_cur >> 10);
  return text.empty() ? "the system's" : text;
}

Status CheckThreads(int count) {
  if (CanStartThreads(count)) return absl::OkStatus();
  return MakeError(StatusCode::kResourceExhausted, "this process may not start ", count,
                   " threads more; raise its limits (", ThreadLimits(), ")");
}

}  // namespace swizzle::cpu
