// Which formats `swizzle-pack pack` can give a model's sparse weights, and what these would take in each. Pure.
#ifndef SWIZZLE_MODEL_LOADER_PACK_FORMAT_COSTS_H_
#define SWIZZLE_MODEL_LOADER_PACK_FORMAT_COSTS_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "model_loader/network/network.h"

namespace swizzle::pack {

// A sparse weight, as it is now.
struct SparseWeight {
  WeightMatrix matrix;
  int64_t taps = 1;   // of its window
  int64_t bytes = 0;  // as it is stored
  // Whether it may stay as it is where --format=auto is asked for: it is in none of the formats.
  bool may_stay = false;
};
// What it takes with its matrix in another format.
using BytesOf = absl::FunctionRef<int64_t(const WeightMatrix&)>;

// Those that hold the weight, by its structure or since its rows are alike.
std::vector<Format> FormatsToPackIn(const SparseWeight& weight);

// The weight in the format of the fewest bytes among these; why the last cannot where none holds it.
StatusOr<WeightMatrix> Smallest(const SparseWeight& weight, std::span<const Format> formats, BytesOf bytes_of);

struct FormatCost {
  std::string name;    // as --format takes it
  int64_t layers = 0;  // that it holds; the others keep their format
  int64_t bytes = 0;   // of all weights
};

struct FormatCosts {
  int64_t sparse_layers = 0;
  // Of formats that hold at least one layer, in the order of the list; then "auto", if there are any.
  std::vector<FormatCost> formats;
};

// Sums them up, weight by weight.
class FormatCostSum {
 public:
  void Add(const SparseWeight& weight, BytesOf bytes_of);
  // Of a model whose weights take so many bytes as they are.
  FormatCosts Costs(int64_t now) const;

 private:
  FormatCost least_{"auto", 0, 0};  // bytes are more than now, as of all these
  int64_t sparse_ = 0;
  std::map<Format, FormatCost> by_format_;
};

// What the weight takes with another matrix.
inline auto StoredAs(const Weight& weight) {
  return [&weight](const WeightMatrix& matrix) {
    Weight changed = weight;
    changed.matrix = matrix;
    return static_cast<int64_t>(changed.StoredBytes());  // values take one byte where they are whole numbers
  };
}

// Calls visit(weight, taps) with each weight that has a sparse format and values, once.
void ForEachSparseWeight(const Network& network, absl::FunctionRef<void(int weight, int64_t taps)> visit);

// Of a network as it is packed, whose layers no plan has fused yet.
FormatCosts CostsOfFormats(const Network& network);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_FORMAT_COSTS_H_
