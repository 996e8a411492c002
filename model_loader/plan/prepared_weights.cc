#include "model_loader/plan/prepared_weights.h"

#include <algorithm>
#include <set>
#include <utility>

namespace swizzle {

Status PreparedWeights::Prepare(size_t layer, const Candidate& candidate, const Weight& weight,
                                const Problem& problem) {
  if (!TakesWeight(candidate) || Find(layer, candidate) != nullptr) return absl::OkStatus();
  const Problem blocked = FormProblem(candidate, problem);
  Form form{candidate, nullptr};
  SWIZZLE_ASSIGN_OR_RETURN(form.weight, FromOthers(layer, candidate, blocked));
  if (form.weight != nullptr) {
    form.shared = form.weight == others_.of->Find(layer, candidate);
  } else {
    SWIZZLE_ASSIGN_OR_RETURN(form.weight, backend_->Prepare(*candidate.kernel, weight, blocked));
  }
  layers_[layer].push_back(std::move(form));
  return absl::OkStatus();
}

StatusOr<bool> PreparedWeights::PrepareFromOthers(size_t layer, const Candidate& candidate, const Problem& problem) {
  if (!TakesWeight(candidate) || Find(layer, candidate) != nullptr) return true;
  Form form{candidate, nullptr};
  SWIZZLE_ASSIGN_OR_RETURN(form.weight, FromOthers(layer, candidate, FormProblem(candidate, problem)));
  if (form.weight == nullptr) return false;
  form.shared = form.weight == others_.of->Find(layer, candidate);
  layers_[layer].push_back(std::move(form));
  return true;
}

Problem PreparedWeights::FormProblem(const Candidate& candidate, const Problem& problem) {
  Problem blocked = AsRowSolves(*candidate.kernel, problem);
  blocked.blocking = candidate.blocking;
  return blocked;
}

StatusOr<SharedWeight> PreparedWeights::FromOthers(size_t layer, const Candidate& candidate,
                                                   const Problem& problem) const {
  SharedWeight form = others_.of == nullptr ? nullptr : others_.of->Find(layer, candidate);
  if (form == nullptr || !others_.other_planes) return form;
  if (candidate.kernel->for_plane == nullptr) return nullptr;
  return candidate.kernel->for_plane(form, problem);
}

bool PreparedWeights::Share(size_t layer, const Candidate& candidate, size_t with) {
  if (Holds(layer, candidate)) return true;
  SharedWeight form = Find(with, candidate);
  if (form == nullptr) return false;
  layers_[layer].push_back({candidate, std::move(form)});
  return true;
}

bool PreparedWeights::FollowOthers(size_t layer, Candidate& candidate) const {
  return others_.of != nullptr && others_.other_planes && others_.of->FollowHeld(layer, candidate);
}

bool PreparedWeights::FollowHeld(size_t layer, Candidate& candidate) const {
  if (!TakesWeight(candidate) || candidate.kernel->for_plane == nullptr) return false;
  for (const Form& form : layers_[layer]) {
    candidate.blocking = form.reader.blocking;
    if (ReadSameForm(form.reader, candidate)) return true;
  }
  candidate.blocking = 0;
  return false;
}

void PreparedWeights::Drop(size_t layer, const Candidate& candidate) {
  std::erase_if(layers_[layer], [&](const Form& form) { return ReadSameForm(form.reader, candidate); });
}

void PreparedWeights::KeepOnly(size_t layer, absl::FunctionRef<bool(const Candidate& reader)> is_kept) {
  std::erase_if(layers_[layer], [&](const Form& form) { return !is_kept(form.reader); });
}

SharedWeight PreparedWeights::Find(size_t layer, const Candidate& candidate) const {
  if (!TakesWeight(candidate)) return nullptr;
  const auto found =
      std::ranges::find_if(layers_[layer], [&](const Form& form) { return ReadSameForm(form.reader, candidate); });
  return found == layers_[layer].end() ? nullptr : found->weight;
}

bool PreparedWeights::Holds(size_t layer, const Candidate& candidate) const {
  return !TakesWeight(candidate) || Find(layer, candidate) != nullptr;
}

int64_t PreparedWeights::bytes(size_t layer) const {
  int64_t bytes = 0;
  for (const Form& form : layers_[layer]) bytes += static_cast<int64_t>(form.weight->bytes());
  return bytes;
}

int64_t PreparedWeights::shared_bytes() const {
  int64_t bytes = 0;
  for (const std::vector<Form>& forms : layers_) {
    for (const Form& form : forms) bytes += form.shared ? static_cast<int64_t>(form.weight->bytes()) : 0;
  }
  return bytes;
}

int64_t PreparedWeights::bytes() const {
  std::set<const PackedWeight*> seen;
  int64_t all = 0;
  for (const std::vector<Form>& forms : layers_) {
    for (const Form& form : forms) {
      if (seen.insert(form.weight.get()).second) all += static_cast<int64_t>(form.weight->bytes());
    }
  }
  return all;
}

}  // namespace swizzle
