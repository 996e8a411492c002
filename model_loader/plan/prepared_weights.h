// The weights of a network as the kernels of a plan hold them: each packed form of a layer's weight once, however many
// kernels read it, and as far as can be once for several plans.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_PREPARED_WEIGHTS_H_
#define SWIZZLE_MODEL_LOADER_PLAN_PREPARED_WEIGHTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/backend/backend.h"
#include "model_loader/plan/choose/candidates.h"

namespace swizzle {

// Weights of another plan whose forms are shared.
struct OtherWeights {
  const class PreparedWeights* of = nullptr;  // null: there is no such plan
  bool other_planes = false;                  // its values have other planes: as far as Kernel::for_plane allows
};

// What it returns is immutable. Calls may overlap where each is of another layer, and none is of all.
class PreparedWeights {
 public:
  // `others` outlive this, or are detached.
  PreparedWeights(Backend& backend, size_t layers, OtherWeights others = {})
      : backend_(&backend), layers_(layers), others_(others) {}

  // Makes the form that `candidate`, of this layer, reads, unless it is there, or the kernel takes none.
  Status Prepare(size_t layer, const Candidate& candidate, const Weight& weight, const Problem& problem);
  // The same of a form that the others hold, which are of other planes; false where they hold none that does.
  StatusOr<bool> PrepareFromOthers(size_t layer, const Candidate& candidate, const Problem& problem);
  // The form of another layer, which reads the same weight for the same problem, becomes this layer's; whether it holds
  // one for this kernel.
  bool Share(size_t layer, const Candidate& candidate, size_t with);
  // Whether the others, of other planes, hold a form for this kernel, whatever its blocking, which is then the
  // candidate's.
  bool FollowOthers(size_t layer, Candidate& candidate) const;
  // The same of what this holds, for plans of other planes.
  bool FollowHeld(size_t layer, Candidate& candidate) const;
  // Others are not asked any more.
  void Detach() { others_ = {}; }
  // Forgets that form.
  void Drop(size_t layer, const Candidate& candidate);
  // Forgets the layer's forms but those for which this is true of a kernel that reads it.
  void KeepOnly(size_t layer, absl::FunctionRef<bool(const Candidate& reader)> is_kept);

  // Null where there is none.
  SharedWeight Find(size_t layer, const Candidate& candidate) const;
  bool Holds(size_t layer, const Candidate& candidate) const;

  int64_t bytes(size_t layer) const;  // of all forms of its weight
  int64_t bytes() const;              // of all layers; what they share counts once
  int64_t shared_bytes() const;       // of these, what the others held already

 private:
  struct Form {
    Candidate reader;  // the first that asked for it
    SharedWeight weight;
    bool shared = false;
  };

  // The problem of the form that a candidate reads.
  static Problem FormProblem(const Candidate& candidate, const Problem& problem);
  // Of the others' form, which may not do. Null where it doesn't.
  StatusOr<SharedWeight> FromOthers(size_t layer, const Candidate& candidate, const Problem& problem) const;

  Backend* backend_;
  std::vector<std::vector<Form>> layers_;
  OtherWeights others_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_PREPARED_WEIGHTS_H_
