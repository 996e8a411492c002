// What a plan leaves to those of the same network for values of other planes: images of another height and width, or
// activations of another length. The forms of its weights are theirs, too, and kernels are chosen once for each class
// of extents; what is left for each plan is arithmetic.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_BLUEPRINT_H_
#define SWIZZLE_MODEL_LOADER_PLAN_BLUEPRINT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/backend/backend.h"
#include "kernels/base/mutex.h"
#include "model_loader/network/network.h"
#include "model_loader/plan/assemble.h"
#include "model_loader/plan/choose/candidates.h"
#include "model_loader/plan/choose/kernel_choice.h"
#include "model_loader/plan/choose/plan_options.h"
#include "model_loader/plan/prepared_weights.h"
#include "model_loader/plan/run/plan.h"

namespace swizzle {

// Thread-safe. The backend outlives it.
class Blueprint {
 public:
  // Of a plan: `network` as it runs, its weights among them or gone by now; `rows`, the layers' candidates; `weights`,
  // those of the plan.
  Blueprint(Backend& backend, RunSettings settings, Network network, std::vector<WeightShape> shapes,
            const LayerCandidates& rows, PreparedWeights weights);

  const PreparedWeights& weights() const { return weights_; }
  const Network& network() const { return network_; }  // without weights

  // A plan of `network`, whose layers are this one's but for what extents say; of the options, the largest batch, which
  // kernels are chosen for, and the batches that count for that. It only runs on streams of others (Plan::RunOn).
  // UNIMPLEMENTED where no kernel that reads the weights as they are held accepts a layer; also on a device.
  StatusOr<std::shared_ptr<const Plan>> MakePlan(Network network, const PlanOptions& options) const;

 private:
  // The kernels of each range of batch sizes, for extents of one class.
  using Decision = std::vector<BucketChoice>;
  // Extents of one class have sums of elements between two powers of two, and so have their largest batches.
  using ExtentClass = std::pair<int, int>;

  StatusOr<Decision> Decide(const Network& network, int64_t max_batch, const PlanOptions& options) const;
  // Those of the layer that accept its extents.
  std::vector<Candidate> Accepting(const Network& network, size_t layer) const;
  // The decision for a network of extents that it was not made for: whether kernels accept these, perhaps others in the
  // places of those that were chosen which read and write the same layouts.
  bool Follow(const Network& network, int64_t max_batch, Decision& decision) const;
  StatusOr<PreparedWeights> WeightsFor(const Network& network, const Decision& decision) const;

  Backend& backend_;
  const RunSettings settings_;
  const PlanThroughput throughput_;
  const Network network_;
  const std::vector<WeightShape> shapes_;  // by layer; zeros for those without
  LayerCandidates rows_;                   // that read the weights as they are held, or take none; without times
  const PreparedWeights weights_;
  mutable Mutex mutex_;
  mutable std::map<ExtentClass, std::shared_ptr<const Decision>> decisions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_BLUEPRINT_H_
