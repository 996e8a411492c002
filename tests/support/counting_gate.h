// A gate between steps that has a batch wait when it is asked for the third time.
#ifndef SWIZZLE_TESTS_SUPPORT_COUNTING_GATE_H_
#define SWIZZLE_TESTS_SUPPORT_COUNTING_GATE_H_

#include "model_loader/plan/run/step_gate.h"

namespace swizzle::testing {

class CountingGate final : public StepGate {
 public:
  bool MustWait() override { return ++asked == 3; }
  void Wait() override { ++waited; }
  int asked = 0, waited = 0;
};

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_COUNTING_GATE_H_
