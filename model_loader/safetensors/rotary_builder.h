// What graphs are written with whose attention rotates queries and keys by angles of their positions (Su et al., 2021),
// spelled as PyTorch's exporters spell transformers' models. Thread-compatible.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_ROTARY_BUILDER_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_ROTARY_BUILDER_H_

#include <cstdint>
#include <string>

#include "kernels/base/status.h"
#include "model_loader/safetensors/encoder_builder.h"

namespace swizzle {

class RotaryBuilder : public EncoderBuilder {
 protected:
  using EncoderBuilder::EncoderBuilder;
  ~RotaryBuilder() = default;

  // Cosines and sines of each position's angles, [1, 1, sequence, size].
  struct Angles {
    int cosines, sines;
    int64_t size;
  };
  // Of `positions`, INT64 [sequence]. Number i of the first half of `size` angles is position / theta^(2i / size), and
  // the second half is as the first.
  Angles AddAngles(const std::string& place, int positions, float theta, int64_t size);
  // x [batch, heads, sequence, size], of which the numbers i and size/2 + i are turned by angle i.
  int AddRotation(const std::string& name, int x, const Angles& angles);

  // The mask with the lowest float, too, where keys are more than `reach` away: [batch, 1, sequence, sequence].
  int AddWindow(const std::string& place, int positions, int64_t reach, int mask);

  // [batch, heads, sequence, size] each.
  struct PackedHeads {
    int query, key, value;
  };
  // Of one product that makes all queries, then all keys, then all values. INVALID_ARGUMENT, naming the tensor, if they
  // are no whole heads.
  StatusOr<PackedHeads> AddPackedHeads(const std::string& name, const Linear& all, int64_t head_size);

  // What each query makes of the values.
  int AddScaledAttention(const std::string& name, const PackedHeads& heads, int mask, int64_t head_size);
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_ROTARY_BUILDER_H_
