// How a packed file holds what share of an activation is zero. Internal to model_loader/packed.
#ifndef SWIZZLE_MODEL_LOADER_PACKED_PACKED_ZEROS_H_
#define SWIZZLE_MODEL_LOADER_PACKED_PACKED_ZEROS_H_

#include "kernels/operator/input_zeros.h"
#include "proto/packed_model.pb.h"

namespace swizzle {

inline void PackZeros(const InputZeros& zeros, packed::Zeros& proto) {
  const auto& [channels, planes, runs, elements] = zeros;
  proto.set_channels(channels);
  proto.set_planes(planes);
  proto.set_runs(runs);
  proto.set_elements(elements);
}

// What are no shares is left to Validate (kernels/operator/count_zeros.h).
inline InputZeros UnpackedZeros(const packed::Zeros& proto) {
  return {proto.channels(), proto.planes(), proto.runs(), proto.elements()};
}

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PACKED_PACKED_ZEROS_H_
