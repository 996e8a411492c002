#include "kernels/cpu/runtime/start_threads.h"

#include <algorithm>
#include <cstddef>
#include <future>
#include <system_error>
#include <thread>
#include <vector>

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

}  // namespace swizzle::cpu
