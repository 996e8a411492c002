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
#include "model_loader/plan/prepared_weights.h"
#include "model_loader/plan/run/plan.h"

namespace swizzle::regions {

using RowShapes = std::vector<Shape>;  // by input of the region

// Thread-safe: one thread plans, others that need a plan wait for it.
class ShapePlans {
 public:
  // Of rows of these shapes, from weights as another plan holds them.
  using MakePlanFor = std::function<StatusOr<std::shared_ptr<const Plan>>(const RowShapes&, const PreparedWeights&)>;
  // The most that are kept, and the bytes of weights, but for those that they share with a plan before, that all but
  // the last may hold together.
  static constexpr size_t kMostPlans = 128;
  static constexpr int64_t kMostBytes = int64_t{1} << 28;

  // `weights`: not null.
  ShapePlans(MakePlanFor make, std::shared_ptr<const PreparedWeights> weights)
      : make_(std::move(make)), weights_(std::move(weights)) {}

  // Null where rows of these shapes cannot be planned.
  std::shared_ptr<const Plan> Find(const RowShapes& rows);
  // Makes all plans anew from these.
  void Follow(std::shared_ptr<const PreparedWeights> weights);

 private:
  struct Entry {
    RowShapes rows;
    std::shared_ptr<const Plan> plan;  // null: there is none
  };

  void Shrink() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const MakePlanFor make_;
  Mutex mutex_;
  std::shared_ptr<const PreparedWeights> weights_ ABSL_GUARDED_BY(mutex_);
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // what was asked for last comes first
};

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_SHAPE_PLANS_H_
