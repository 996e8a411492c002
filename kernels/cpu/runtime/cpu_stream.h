// The CPU's stream: work runs at once, on the caller and its pool of threads. Single-owner.
#ifndef SWIZZLE_KERNELS_CPU_RUNTIME_CPU_STREAM_H_
#define SWIZZLE_KERNELS_CPU_RUNTIME_CPU_STREAM_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "kernels/backend/backend.h"
#include "kernels/base/integers.h"
#include "kernels/cpu/runtime/cache_domains.h"
#include "kernels/cpu/runtime/thread_pool.h"

namespace swizzle::cpu {

class CpuStream final : public HostStream {
 public:
  // cpus: those that its threads keep to, which are one cache domain's (cache_domains.h); null: all that there are.
  explicit CpuStream(int threads, std::shared_ptr<const CpuList> cpus = nullptr)
      : cpus_(std::move(cpus)), pool_(threads) {
    if (cpus_ != nullptr) pool_.KeepTo(*cpus_);
  }

  // REQUIRES: the stream comes from the CPU backend, as every stream does that a CPU kernel is given.
  static CpuStream& From(Stream& stream) { return static_cast<CpuStream&>(stream); }

  int threads() const override { return pool_.threads(); }
  // A stream that has a cache domain pins from the domain's first processor on, which no other stream was given.
  void PinThreads(int executor) override { pool_.Pin(executor * threads()); }
  void RunSerially(bool serial) override { serial_ = serial; }
  // By all threads where it is long: they are then awake, and spin, when the work comes that reads it.
  void Copy(void* to, const void* from, size_t bytes) override {
    constexpr int64_t kGrain = int64_t{64} << 10;
    const auto copy = [=](int64_t, int64_t begin, int64_t end) {
      std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin, end - begin);
    };
    ParallelRanges(static_cast<int64_t>(bytes), copy, kGrain);
  }
  void Run(Work work) override { work(); }
  StatusOr<absl::Duration> Time(Work work, Operands) override {
    const auto start = std::chrono::steady_clock::now();
    work();
    const absl::Duration time = absl::FromChrono(std::chrono::steady_clock::now() - start);
    SWIZZLE_RETURN_IF_ERROR(TakeError());
    return time;
  }
  Status Synchronize() override {
    pool_.Rest();
    return TakeError();
  }

  // Keeps the first error of the work until Synchronize, or Time, returns it; OK is none. From any thread of the work.
  void Keep(const Status& status) {
    if (!status.ok() && !failed_.exchange(true)) error_ = status;
  }

  // Calls task(i) once for each i in [0, tasks) and returns when all are done. No two calls of one i overlap, so with
  // at most threads() tasks, i may index a part of the workspace.
  template <typename Task>
  void ParallelFor(int64_t tasks, const Task& task) {
    RunTasks(tasks, [&](int64_t, int64_t i) { task(i); });
  }

  // Cuts [0, items) into runs of nearly equal length, multiples of `grain` long save the last, and calls
  // task(slot, begin, end) for each. No two calls with one slot overlap; slots are below threads(). There are
  // several runs for each thread, if more than one take part, so that no thread has to wait for a slow one: a run
  // should not cost much to begin.
  template <typename Task>
  void ParallelRanges(int64_t items, const Task& task, int64_t grain = 1) {
    const int64_t grains = CeilDiv(items, grain);
    const int64_t tasks = std::min(grains, serial_ ? 1 : pool_.BestTasks());
    RunTasks(tasks, [&](int64_t slot, int64_t i) {
      task(slot, grains * i / tasks * grain, std::min(grains * (i + 1) / tasks * grain, items));
    });
  }

 private:
  template <typename Task>
  void RunTasks(int64_t tasks, const Task& task) {
    if (!serial_) return RunOnPool(tasks, task);
    RunOnPool(std::min<int64_t>(tasks, 1), [&](int64_t slot, int64_t) {
      for (int64_t i = 0; i < tasks; ++i) task(slot, i);
    });
  }

  template <typename Task>
  void RunOnPool(int64_t tasks, const Task& task) {
    const auto call = [](void* context, int64_t slot, int64_t index) {
      (*static_cast<const Task*>(context))(slot, index);
    };
    pool_.Run(tasks, call, const_cast<Task*>(&task));
  }

  Status TakeError() {
    if (!failed_.exchange(false)) return absl::OkStatus();
    return std::exchange(error_, absl::OkStatus());
  }

  const std::shared_ptr<const CpuList> cpus_;  // held as long as the threads are there
  ThreadPool pool_;
  bool serial_ = false;
  std::atomic<bool> failed_ = false;
  Status error_;  // where failed_; written by one thread of the work, read after all of it
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_RUNTIME_CPU_STREAM_H_
