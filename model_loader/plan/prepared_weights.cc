#include "model_loader/plan/prepared_weights.h"

#include <algorithm>
#include <utility>

namespace swizzle {

Status PreparedWeights::Prepare(size_t layer, const Candidate& candidate, const Weight& weight,
                                const Problem& problem) {
  if (!TakesWeight(candidate) || Find(layer, candidate) != nullptr) return absl::OkStatus();
  if (others_ != nullptr) {
    if (auto shared = others_->Find(layer, candidate)) {
      layers_[layer].push_back({candidate, std::move(shared)});
      return absl::OkStatus();
    }
  }
  Problem blocked = AsRowSolves(*candidate.kernel, problem);
  blocked.blocking = candidate.blocking;
  SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<const PackedWeight> packed,
                           backend_->Prepare(*candidate.kernel, weight, blocked));
  layers_[layer].push_back({candidate, std::move(packed)});
  return absl::OkStatus();
}

void PreparedWeights::Drop(size_t layer, const Candidate& candidate) {
  std::erase_if(layers_[layer], [&](const Form& form) { return ReadSameForm(form.reader, candidate); });
}

std::shared_ptr<const PackedWeight> PreparedWeights::Find(size_t layer, const Candidate& candidate) const {
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

int64_t PreparedWeights::bytes() const {
  int64_t all = 0;
  for (size_t layer = 0; layer < layers_.size(); ++layer) all += bytes(layer);
  return all;
}

}  // namespace swizzle
