// A machine where every run waits for a processor, and which tells what its work was beside that. For tests of one
// thread.
#ifndef SWIZZLE_TESTS_SUPPORT_BUSY_MACHINE_H_
#define SWIZZLE_TESTS_SUPPORT_BUSY_MACHINE_H_

#include <memory>
#include <optional>
#include <set>

#include "absl/time/time.h"
#include "kernels/measure/machine_watch.h"

namespace swizzle::testing {

class BusyMachine final : public MachineWatch {
 public:
  // What runs add their work to.
  static inline absl::Duration work;

  // PlanOptions::make_watch.
  static std::unique_ptr<MachineWatch> Make(const std::set<int>&) { return std::make_unique<BusyMachine>(); }

  ThreadReading ReadThreads() override { return {.waited = absl::Milliseconds(++readings_)}; }
  MachineReading ReadMachine() override { return {}; }
  void StartWork() override { work = absl::ZeroDuration(); }
  std::optional<absl::Duration> StopWork() override { return work; }

 private:
  int readings_ = 0;
};

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_BUSY_MACHINE_H_
