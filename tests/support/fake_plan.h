// A plan without sequences that a test scripts: what most tests do not care about is there.
#ifndef SWIZZLE_TESTS_SUPPORT_FAKE_PLAN_H_
#define SWIZZLE_TESTS_SUPPORT_FAKE_PLAN_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "model_loader/plan/run/plan.h"

namespace swizzle::testing {

class FakePlan : public Plan {
 public:
  FakePlan(Network network, int64_t max_batch) : network_(std::move(network)), max_batch_(max_batch) {}

  const Network& network() const override { return network_; }
  const PlanReport& report() const override { return report_; }
  int64_t max_batch() const override { return max_batch_; }
  int64_t max_tokens() const override { return 0; }
  int64_t IdLimit(int) const override { return 0; }
  int64_t PositionLimit() const override { return 0; }
  size_t arena_bytes() const override { return 0; }
  bool has_tail() const override { return false; }
  size_t ArenaBytes(BatchSize) const override { return 0; }
  Status RunOn(Stream&, const BorrowedMemory&, BatchSize) const override { return absl::OkStatus(); }
  StatusOr<std::unique_ptr<Buffer>> AllocateSource(size_t) const override { return nullptr; }

 protected:
  Network network_;
  PlanReport report_;
  const int64_t max_batch_;
};

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_FAKE_PLAN_H_
