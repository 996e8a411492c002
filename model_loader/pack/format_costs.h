// Which formats `swizzle-pack pack` can give a model's sparse weights, and what these would take in each. Pure.
#ifndef SWIZZLE_MODEL_LOADER_PACK_FORMAT_COSTS_H_
#define SWIZZLE_MODEL_LOADER_PACK_FORMAT_COSTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "model_loader/network/network.h"

namespace swizzle::pack {

// Those that hold the layer's weight, by its structure or since its rows are alike. REQUIRES: it is sparse.
std::vector<Format> FormatsToPackIn(const Layer& layer, const WeightMatrix& matrix);

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

// Of a network as it is packed, whose layers no plan has fused yet.
FormatCosts CostsOfFormats(const Network& network);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_FORMAT_COSTS_H_
