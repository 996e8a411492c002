// What `swizzle-pack pack --format` does to sparse weights.
#ifndef SWIZZLE_MODEL_LOADER_PACK_FORMAT_CHANGE_H_
#define SWIZZLE_MODEL_LOADER_PACK_FORMAT_CHANGE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "model_loader/pack/format_costs.h"

namespace swizzle::pack {

// What kept its format although another was asked for.
struct FormatRefusals {
  int64_t layers = 0, of = 0;
  Status first = {};
};

// The weight's matrix in the format that `asked`, as --format takes it, names, or, where that is "auto", in the one of
// the fewest bytes among those that suit its zeros. Nothing where it stays as it is, which is counted.
std::optional<WeightMatrix> InFormat(const SparseWeight& weight, const std::string& asked, BytesOf bytes_of,
                                     FormatRefusals& refusals);

// Of all sparse weights with values.
FormatRefusals ChangeFormats(Network& network, const std::string& asked);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_FORMAT_CHANGE_H_
