// When measuring may go on: who measures beside others' work asks before each few runs.
#ifndef SWIZZLE_KERNELS_MEASURE_MEASURE_GATE_H_
#define SWIZZLE_KERNELS_MEASURE_MEASURE_GATE_H_

#include <cstdint>

#include "absl/time/time.h"
#include "kernels/base/status.h"

namespace swizzle {

// Used by one thread, the one that measures.
class MeasureGate {
 public:
  virtual ~MeasureGate() = default;
  // Whether Await has something to wait for, or to say.
  virtual bool MustWait() = 0;
  // Returns when the machine is there to be measured on. CANCELLED: measure no more.
  virtual Status Await() = 0;
  // Rises with whatever of others began since: what was measured meanwhile is disturbed.
  virtual int64_t disturbances() const = 0;
  // Time spent on measuring, by which budgets are kept: stands still within Await.
  virtual absl::Duration Spent() = 0;

  // Of a thread that measures and has nobody to wait for.
  static MeasureGate& Open();
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_MEASURE_MEASURE_GATE_H_
