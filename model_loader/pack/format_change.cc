#include "model_loader/pack/format_change.h"

#include <utility>
#include <vector>

namespace swizzle::pack {

std::optional<WeightMatrix> InFormat(const SparseWeight& weight, const std::string& asked, BytesOf bytes_of,
                                     FormatRefusals& refusals) {
  const std::optional<Format> named = FormatFromName(asked);
  const std::vector<Format> formats = named ? std::vector{*named} : FormatsToPackIn(weight);
  ++refusals.of;
  StatusOr<WeightMatrix> made = Smallest(weight, formats, bytes_of);
  if (made.ok()) {
    if (!named && weight.may_stay && bytes_of(*made) >= weight.bytes) return std::nullopt;
    return *std::move(made);
  }
  if (named && refusals.layers++ == 0) refusals.first = made.status();
  return std::nullopt;
}

FormatRefusals ChangeFormats(Network& network, const std::string& asked) {
  FormatRefusals refusals;
  ForEachSparseWeight(network, [&](int index, int64_t taps) {
    Weight& weight = network.weights[static_cast<size_t>(index)];
    const SparseWeight sparse{weight.matrix, taps, static_cast<int64_t>(weight.StoredBytes())};
    if (auto made = InFormat(sparse, asked, StoredAs(weight), refusals)) weight.matrix = *std::move(made);
  });
  return refusals;
}

}  // namespace swizzle::pack
