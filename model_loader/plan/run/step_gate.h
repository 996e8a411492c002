// Asked between two steps of a batch, or two nodes of a program, whether others go first.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_RUN_STEP_GATE_H_
#define SWIZZLE_MODEL_LOADER_PLAN_RUN_STEP_GATE_H_

#include "kernels/backend/backend.h"
#include "kernels/base/status.h"

namespace swizzle {

// Used by one thread at a time.
class StepGate {
 public:
  virtual ~StepGate() = default;
  virtual bool MustWait() = 0;
  virtual void Wait() = 0;  // returns when the next step may run
};

// Where the gate, which may be null, has it wait, the stream's threads sleep meanwhile. An error is of work before.
inline Status PassGate(StepGate* gate, HostStream& stream) {
  if (gate == nullptr || !gate->MustWait()) return absl::OkStatus();
  stream.RunSerially(false);
  SWIZZLE_RETURN_IF_ERROR(stream.Synchronize());
  gate->Wait();
  return absl::OkStatus();
}

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_RUN_STEP_GATE_H_
