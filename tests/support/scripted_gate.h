// A gate that lets everything through, and whose time is what runs say that they take.
#ifndef SWIZZLE_TESTS_SUPPORT_SCRIPTED_GATE_H_
#define SWIZZLE_TESTS_SUPPORT_SCRIPTED_GATE_H_

#include "kernels/measure/measure_gate.h"

namespace swizzle::testing {

class ScriptedGate final : public MeasureGate {
 public:
  bool MustWait() override { return false; }
  Status Await() override { return absl::OkStatus(); }
  int64_t disturbances() const override { return 0; }
  absl::Duration Spent() override { return now; }
  absl::Duration now;
};

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_SCRIPTED_GATE_H_
