// Lets measurements through while no request is there, in short slices where requests come now and then.
#ifndef SWIZZLE_SERVER_TUNING_IDLE_GATE_H_
#define SWIZZLE_SERVER_TUNING_IDLE_GATE_H_

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "kernels/base/instant.h"
#include "kernels/base/mutex.h"
#include "kernels/measure/measure_gate.h"
#include "server/telemetry/activity.h"
#include "server/threading/clock.h"

namespace swizzle {

struct IdleRules {
  absl::Duration quiet = absl::Milliseconds(10);  // without a request, before anything is measured
  // Where there was a request within `recent`, measuring stops after `slice` until `rest` is over: a request meets it
  // one time in ten at most. Else it goes on.
  absl::Duration recent = absl::Seconds(1);
  absl::Duration slice = absl::Milliseconds(5), rest = absl::Milliseconds(45);
  absl::Duration look = absl::Milliseconds(5);  // between two looks, while there is something to wait for
};

// Used by the thread that measures, but for Stop and Skip. A run that is under way when a request comes ends first.
class IdleGate final : public MeasureGate {
 public:
  // Both outlive this.
  IdleGate(const Activity& activity, Clock& clock, const IdleRules& rules = {});

  bool MustWait() override;
  Status Await() override;
  int64_t disturbances() const override { return activity_.begun(); }
  absl::Duration Spent() override { return clock_.Now() - start_ - waited_; }

  // From any thread: nothing is let through any more.
  void Stop();
  // From any thread: nothing is let through until Resume.
  void Skip();
  void Resume() { skipped_ = false; }

 private:
  // Notes requests that have come.
  void Look(Instant now);
  bool closed() const { return stopped_ || skipped_; }
  bool IsRecent(Instant now) const { return now - last_request_ < rules_.recent; }

  const Activity& activity_;
  Clock& clock_;
  const IdleRules rules_;
  const Instant start_;
  absl::Duration waited_;
  int64_t seen_ = 0;      // requests
  Instant last_request_;  // that was seen, or was there
  Instant slice_start_;
  std::atomic<bool> stopped_ = false, skipped_ = false;
  Mutex mutex_;
  CondVar stop_;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TUNING_IDLE_GATE_H_
