// Counts the layers of a model's plans: one where it is planned whole, several where it runs in regions.
#ifndef SWIZZLE_SERVER_MODEL_LAYER_TALLY_H_
#define SWIZZLE_SERVER_MODEL_LAYER_TALLY_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "model_loader/plan/run/plan_report.h"
#include "server/model/model.h"

namespace swizzle {

// Value type.
class LayerTally {
 public:
  void Add(const PlanReport& report);
  // Adds bytes and times to the facts; sets sparsity, kernels, dense layers, and the properties that say so.
  void Describe(ModelFacts& facts) const;

 private:
  int64_t weights_ = 0, nonzeros_ = 0, dense_bytes_ = 0, stored_bytes_ = 0;
  int timed_now_ = 0, timed_before_ = 0, dense_fallback_layers_ = 0;
  std::map<std::string, int> formats_, kernels_;             // layers
  std::map<std::pair<std::string, std::string>, int> uses_;  // by operation and kernel
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_LAYER_TALLY_H_
