#include "server/threading/task_threads.h"

#include <cstddef>
#include <system_error>
#include <utility>

namespace swizzle {

TaskThreads::TaskThreads(int threads) {
  threads_.reserve(static_cast<size_t>(threads));
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
  } catch (const std::system_error&) {  // there are no more
    if (threads_.empty()) throw;
  }
}

TaskThreads::~TaskThreads() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    added_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void TaskThreads::Add(Task task) {
  const MutexLock lock(mutex_);
  tasks_.push_back(std::move(task));
  added_.Signal();
}

void TaskThreads::Run() {
  while (true) {
    Task task;
    {
      const MutexLock lock(mutex_);
      while (tasks_.empty() && !stopping_) added_.Wait(mutex_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    try {
      std::move(task)();
    } catch (...) {  // no memory: whoever gave the task has to say so by what the task destroys
    }
  }
}

}  // namespace swizzle
