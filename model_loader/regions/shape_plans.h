// Plans of one region for rows of several shapes: of models whose height, width or length is free. A shape is planned
// when it first comes, by estimates; those that came last are kept.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_SHAPE_PLANS_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_SHAPE_PLANS_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "kernels/base/tensor.h"
#include "model_loader/plan/run/plan.h"

namespace swizzle::regions {

using RowShapes = std::vector<Shape>;  // by input of the region

// Thread-safe: one thread plans, others that need a plan wait for it.
class ShapePlans {
 public:
  using MakePlanFor = std::function<StatusOr<std::shared_ptr<const Plan>>(const RowShapes&)>;
  // The most that are kept, and the bytes of weights that all but the last may hold together.
  static constexpr size_t kMostPlans = 32;
  static constexpr int64_t kMostBytes = int64_t{1} << 28;

  explicit ShapePlans(MakePlanFor make) : make_(std::move(make)) {}

  // Null where rows of these shapes cannot be planned.
  std::shared_ptr<const Plan> Find(const RowShapes& rows);

 private:
  struct Entry {
    RowShapes rows;
    std::shared_ptr<const Plan> plan;  // null: there is none
  };

  void Shrink() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const MakePlanFor make_;
  Mutex mutex_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // what was asked for last comes first
};

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_SHAPE_PLANS_H_
