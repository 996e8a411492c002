// Magnitude pruning: the smallest weights of each layer become zero (Han et al., "Learning both Weights and Connections
// for Efficient Neural Networks", 2015). One shot, per layer, without training.
#ifndef SWIZZLE_MODEL_LOADER_PRUNING_MAGNITUDE_H_
#define SWIZZLE_MODEL_LOADER_PRUNING_MAGNITUDE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model_loader/network/network.h"

namespace swizzle {

// Zeros the smallest magnitudes until round(sparsity * size) elements are zero; fewer never become zero, so weights
// that are sparser already stay as they are. Of equal magnitudes the first go first. What is not a number counts as the
// largest. REQUIRES: 0 <= sparsity <= 1.
void PruneSmallest(std::span<float> weights, double sparsity);

struct PruneOptions {
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
};

// Prunes layers one after another and keeps a record of each. Not thread-safe.
class MagnitudePruner {
 public:
  // REQUIRES: 0 <= options.sparsity <= 1.
  explicit MagnitudePruner(PruneOptions options);

  // Prunes a layer's weights, unless a pattern to skip matches one of `names`; the first of them names the record.
  void Prune(std::span<const std::string> names, const Shape& shape, std::span<float> weights);

  const std::vector<PruneRecord>& records() const { return records_; }

  // INVALID_ARGUMENT if there was no layer to prune, or if a pattern to skip matched none: most likely it is misspelt,
  // and what it was to save is pruned.
  Status CheckResult() const;

 private:
  bool Skips(std::span<const std::string> names);

  const PruneOptions options_;
  std::vector<bool> skip_matched_;  // by pattern
  std::vector<PruneRecord> records_;
};

// Prunes the convolutions (linear layers among them) of a network, and gives their weights the format that suits them
// then. Depthwise convolutions are never pruned. REQUIRES: a validated network.
void PruneNetwork(Network& network, MagnitudePruner& pruner);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PRUNING_MAGNITUDE_H_
