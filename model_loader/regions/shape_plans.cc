#include "model_loader/regions/shape_plans.h"

#include <algorithm>
#include <utility>

namespace swizzle::regions {

std::shared_ptr<const Plan> ShapePlans::Find(const RowShapes& rows) {
  MutexLock lock(mutex_);
  const auto found = std::ranges::find(entries_, rows, &Entry::rows);
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
    return entries_.front().plan;
  }
  StatusOr<std::shared_ptr<const Plan>> plan = make_(rows, *weights_);
  entries_.push_front({rows, plan.ok() ? *std::move(plan) : nullptr});
  Shrink();
  return entries_.front().plan;
}

void ShapePlans::Follow(std::shared_ptr<const PreparedWeights> weights) {
  MutexLock lock(mutex_);
  weights_ = std::move(weights);
  entries_.clear();
}

void ShapePlans::Shrink() {
  if (entries_.size() > kMostPlans) entries_.pop_back();
  int64_t bytes = 0;
  for (auto entry = std::next(entries_.begin()); entry != entries_.end(); ++entry) {
    if (entry->plan != nullptr) bytes += entry->plan->report().device_bytes - entry->plan->report().shared_bytes;
    if (bytes <= kMostBytes) continue;
    entries_.erase(entry, entries_.end());
    return;
  }
}

}  // namespace swizzle::regions
