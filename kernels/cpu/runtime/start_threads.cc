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
namespace {

// None where there is no limit.
struct Limits {
  std::optional<int64_t> processes, pids, address_kib;
};

std::optional<int64_t> LimitOf(int resource) {
  rlimit limit = {};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return static_cast<int64_t>(limit.rlim_cur);
}

Limits LimitsOfThreads() {
  Limits limits = {.processes = LimitOf(RLIMIT_NPROC), .pids = std::nullopt, .address_kib = LimitOf(RLIMIT_AS)};
  if (limits.address_kib) *limits.address_kib >>= 10;
  for (const auto& group : ControlGroups(ReadKernelFile("/proc/self/cgroup"), "/sys/fs/cgroup", "pids")) {
    const std::string most = ReadKernelFile(group / "pids.max");
    int64_t number = 0;
    if (std::from_chars(most.data(), most.data() + most.size(), number).ec != std::errc()) continue;  // "max"
    limits.pids = Smaller(limits.pids, std::optional<int64_t>(number));
  }
  return limits;
}

}  // namespace

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
  const Limits limits = LimitsOfThreads();
  std::string text;
  const auto add = [&](const char* name, std::optional<int64_t> value) {
    if (value) text += Concat(text.empty() ? "" : ", ", name, " is ", *value);
  };
  add("ulimit -u", limits.processes);
  add("pids.max of its control group", limits.pids);
  add("ulimit -v", limits.address_kib);
  return text.empty() ? "the system's" : text;
}

bool MayThreadsRunOut() {
  constexpr int64_t kFewThreads = 512, kLittleKib = int64_t{4} << 20;
  const Limits limits = LimitsOfThreads();
  return limits.processes.value_or(kFewThreads) < kFewThreads || limits.pids.value_or(kFewThreads) < kFewThreads ||
         limits.address_kib.value_or(kLittleKib) < kLittleKib;
}

Status CheckThreads(int count) {
  if (CanStartThreads(count)) return absl::OkStatus();
  return MakeError(StatusCode::kResourceExhausted, "this process may not start ", count,
                   " threads more; raise its limits (", ThreadLimits(), ")");
}

}  // namespace swizzle::cpu
