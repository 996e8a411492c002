#include "kernels/measure/measure_gate.h"

#include <chrono>

namespace swizzle {
namespace {

class OpenGate final : public MeasureGate {
 public:
  bool MustWait() override { return false; }
  Status Await() override { return absl::OkStatus(); }
  int64_t disturbances() const override { return 0; }
  absl::Duration Spent() override { return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()); }
};

}  // namespace

MeasureGate& MeasureGate::Open() {
  static OpenGate open;  // has no state
  return open;
}

}  // namespace swizzle
