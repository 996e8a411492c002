// The weights of a network as the kernels of a plan hold them: each packed form of a layer's weight once, however many
// kernels read it.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_PREPARED_WEIGHTS_H_
#define SWIZZLE_MODEL_LOADER_PLAN_PREPARED_WEIGHTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backend/backend.h"
#include "model_loader/plan/choose/candidates.h"

namespace swizzle {

// What it returns is immutable. Calls may overlap where each is of another layer, and none is of all.
class PreparedWeights {
 public:
  // `others`, of another plan of the network: forms that it holds are shared. May be null; outlives this.
  PreparedWeights(Backend& backend, size_t layers, const PreparedWeights* others = nullptr)
      : backend_(&backend), layers_(layers), others_(others) {}

  // Makes the form that `candidate`, of this layer, reads, unless it is there, or the kernel takes none.
  Status Prepare(size_t layer, const Candidate& candidate, const Weight& weight, const Problem& problem);
  // Others are not asked any more.
  void Detach() { others_ = nullptr; }
  // Forgets that form.
  void Drop(size_t layer, const Candidate& candidate);

  // Null where there is none.
  std::shared_ptr<const PackedWeight> Find(size_t layer, const Candidate& candidate) const;
  bool Holds(size_t layer, const Candidate& candidate) const;

  int64_t bytes(size_t layer) const;  // of all forms of its weight
  int64_t bytes() const;

 private:
  struct Form {
    Candidate reader;  // the first that asked for it
    std::shared_ptr<const PackedWeight> weight;
  };

  Backend* backend_;
  std::vector<std::vector<Form>> layers_;
  const PreparedWeights* others_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_PREPARED_WEIGHTS_H_
