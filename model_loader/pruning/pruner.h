// Prunes the layers of a model by one method and keeps a record of what that did. One shot, without training.
#ifndef SWIZZLE_MODEL_LOADER_PRUNING_PRUNER_H_
#define SWIZZLE_MODEL_LOADER_PRUNING_PRUNER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model_loader/network/network.h"
#include "model_loader/pruning/vectors.h"

namespace swizzle {

enum class PruneMethod : uint8_t {
  kMagnitude,   // magnitude.h
  kVectorWise,  // vectors of neighbouring rows (vectors.h)
  kShflBw,      // the same in the order of rows that the search finds
  kBlock,
};

std::string_view PruneMethodName(PruneMethod method);  // "shfl-bw"
std::optional<PruneMethod> PruneMethodFromName(std::string_view name);

struct PruneOptions {
  PruneMethod method = PruneMethod::kMagnitude;
  int64_t vector_rows = 64;       // of vectors; of blocks rows and columns
  double sparsity = 0.0;          // of each layer, 0 to 1
  std::vector<std::string> skip;  // patterns of names, with * ? and [ ] as in a shell; * also matches a slash
};

// What pruning did to one layer.
struct PruneRecord {
  std::string name;
  Shape shape;  // of its weight
  int64_t elements = 0;
  int64_t zeros_before = 0;
  int64_t zeros_after = 0;
  bool skipped = false;
  // Share of the magnitudes that is left, and, except by magnitude alone, what other methods would have left.
  double kept = 1.0;
  double kept_by_magnitude = 1.0, kept_by_vectors = 1.0, kept_by_blocks = 1.0;
};

// Prunes layers one after another and keeps a record of each. Not thread-safe.
class Pruner {
 public:
  // REQUIRES: 0 <= options.sparsity <= 1.
  explicit Pruner(PruneOptions options);

  // Prunes a layer's weights, unless a pattern to skip matches one of `names`; the first of them names the record.
  // Rows of the matrix are its first dimension's, or its last's where that is the outputs'.
  void Prune(std::span<const std::string> names, const Shape& shape, std::span<float> weights,
             bool outputs_last = false);

  const std::vector<PruneRecord>& records() const { return records_; }

  // INVALID_ARGUMENT if there was no layer to prune, or if a pattern to skip matched none: most likely it is misspelt,
  // and what it was to save is pruned.
  Status CheckResult() const;

 private:
  bool Skips(std::span<const std::string> names);
  void PruneMatrix(const WeightView& weights, PruneRecord& record) const;

  const PruneOptions options_;
  std::vector<bool> skip_matched_;  // by pattern
  std::vector<PruneRecord> records_;
};

// Prunes the convolutions (linear layers among them) of a network, and gives their weights the format that suits them
// then. Depthwise convolutions are never pruned. REQUIRES: a validated network.
void PruneNetwork(Network& network, Pruner& pruner);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PRUNING_PRUNER_H_
