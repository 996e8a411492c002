// What becomes of tuning a model, for whoever shows it.
#ifndef SWIZZLE_SERVER_TELEMETRY_TUNING_RECORD_H_
#define SWIZZLE_SERVER_TELEMETRY_TUNING_RECORD_H_

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "server/model/model.h"
#include "server/telemetry/labels.h"

namespace swizzle {

// What became of tuning since it was recorded last.
struct TuningRecord {
  TuningState state = TuningState::kOff;
  absl::Duration spent = absl::ZeroDuration();
  int64_t suspect = 0;                                   // measurements, in all
  std::shared_ptr<const ModelFacts> replaced = nullptr;  // of the plan that runs from now on; null: the same
};

// Is told by what tunes one version of one model. Thread-safe.
class TuningRecorder {
 public:
  virtual ~TuningRecorder() = default;
  virtual void RecordTuning(const TuningRecord& record) = 0;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_TUNING_RECORD_H_
