// Plans of regions for rows of several shapes: of models whose height, width or length is free. A shape is planned when
// it first comes, and of all regions of a program those plans are kept that were asked for last.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_SHAPE_PLANS_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_SHAPE_PLANS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/base/lru_cache.h"
#include "kernels/base/mutex.h"
#include "kernels/base/tensor.h"
#include "model_loader/plan/run/plan.h"

namespace swizzle {
class Blueprint;
}

namespace swizzle::regions {

using RowShapes = std::vector<Shape>;  // by input of the region

// What the regions of one program keep. Thread-safe.
class PlanStore {
 public:
  // Of plans, and of their weights but for those that they share with a plan before.
  static constexpr int64_t kMostBytes = int64_t{1} << 26;

  // Plans are of whoever makes them.
  uint64_t NewOwner();
  // Null where it is known that there is none; nothing where it isn't known.
  std::optional<std::shared_ptr<const Plan>> Find(uint64_t owner, const RowShapes& rows, int64_t batch);
  void Keep(uint64_t owner, const RowShapes& rows, int64_t batch, std::shared_ptr<const Plan> plan);
  void Forget(uint64_t owner);

 private:
  using Key = std::tuple<uint64_t, int64_t, RowShapes>;

  Mutex mutex_;
  uint64_t owners_ ABSL_GUARDED_BY(mutex_) = 0;
  LruCache<Key, std::shared_ptr<const Plan>> plans_ ABSL_GUARDED_BY(mutex_){kMostBytes};
};

// Thread-safe: one thread plans, others that need a plan for a shape that is not known wait for it.
class ShapePlans {
 public:
  // Of rows of these shapes, in batches of up to so many, from what another plan leaves.
  using MakePlanFor =
      std::function<StatusOr<std::shared_ptr<const Plan>>(const RowShapes&, int64_t batch, const Blueprint&)>;

  // `blueprint` and `store`: not null.
  ShapePlans(MakePlanFor make, std::shared_ptr<const Blueprint> blueprint, std::shared_ptr<PlanStore> store)
      : make_(std::move(make)),
        store_(std::move(store)),
        owner_(store_->NewOwner()),
        blueprint_(std::move(blueprint)) {}

  // Of batches of so many rows, which may be too many for one; each number has a plan of its own. Null where rows of
  // these shapes cannot be planned.
  std::shared_ptr<const Plan> Find(const RowShapes& rows, int64_t batch);
  // Makes all plans anew from this.
  void Follow(std::shared_ptr<const Blueprint> blueprint);

 private:
  const MakePlanFor make_;
  const std::shared_ptr<PlanStore> store_;
  const uint64_t owner_;
  Mutex mutex_;
  std::shared_ptr<const Blueprint> blueprint_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_SHAPE_PLANS_H_
