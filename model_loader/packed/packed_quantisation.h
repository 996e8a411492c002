// How a packed file holds the whole numbers that a value or a weight may be stored as.
#ifndef SWIZZLE_MODEL_LOADER_PACKED_PACKED_QUANTISATION_H_
#define SWIZZLE_MODEL_LOADER_PACKED_PACKED_QUANTISATION_H_

#include <optional>

#include "kernels/base/quantisation.h"
#include "proto/packed_model.pb.h"

namespace swizzle {

// Nothing where the value or weight has no such field.
template <typename Proto>
void PackQuantisation(const std::optional<Quantisation>& quantisation, Proto& proto) {
  if (!quantisation) return;
  const auto& [dtype, scales, zero_points] = *quantisation;
  packed::Quantisation& packed = *proto.mutable_quantisation();
  packed.set_datatype(std::string(DTypeName(dtype)));
  packed.mutable_scales()->Add(scales.begin(), scales.end());
  packed.mutable_zero_points()->Add(zero_points.begin(), zero_points.end());
}

// What is no type, or doesn't fit its tensor, is left to Network::Validate.
template <typename Proto>
std::optional<Quantisation> UnpackedQuantisation(const Proto& proto) {
  if (!proto.has_quantisation()) return std::nullopt;
  const packed::Quantisation& packed = proto.quantisation();
  return Quantisation{DTypeFromName(packed.datatype()).value_or(DType::kString),
                      {packed.scales().begin(), packed.scales().end()},
                      {packed.zero_points().begin(), packed.zero_points().end()}};
}

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PACKED_PACKED_QUANTISATION_H_
