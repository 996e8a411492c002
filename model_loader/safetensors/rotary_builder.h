// What graphs are written with whose attention rotates queries and keys by angles of their positions (Su et al., 2021),
// spelled as PyTorch's exporters spell transformers' models. Thread-compatible.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_ROTARY_BUILDER_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_ROTARY_BUILDER_H_

#include <cstdint>
#include <string>

#include "kernels/base/status.h"
#include "model_loader/safetensors/encoder_builder.h"

namespace swizzle {

// Which numbers of a head angle i turns: i and half a head behind it, or 2i and 2i + 1.
enum class RotaryOrder { kHalves, kInterleaved };

// Dynamic scaling, after NTK, as transformers defines its rope_type "dynamic" and Nomic's code its
// rotary_scaling_factor: where sequences, with their padding, are longer than `trained`, theta grows by
// r^(size / (size - 2)), r = factor * length / trained - (factor - 1).
struct RotaryStretch {
  float factor = 0.0f;  // 0: theta stays
  int64_t trained = 0;
};

class RotaryBuilder : public EncoderBuilder {
 protected:
  using EncoderBuilder::EncoderBuilder;
  ~RotaryBuilder() = default;

  // Cosines and sines of each position's angles, [1, 1, sequence, size].
  struct Angles {
    int cosines, sines;
    int64_t size;
    RotaryOrder order;
  };
  // Of `positions`, INT64 [sequence]: the angles position / theta^(2i / size), i below size / 2, twice each, where the
  // numbers are that they turn.
  Angles AddAngles(const std::string& place, int positions, float theta, int64_t size,
                   RotaryOrder order = RotaryOrder::kHalves, const RotaryStretch& stretch = {});
  // x [batch, heads, sequence, size], turned.
  int AddRotation(const std::string& name, int x, const Angles& angles);

  // The mask with the lowest float, too, where keys are more than `reach` away: [batch, 1, sequence, sequence].
  int AddWindow(const std::string& place, int positions, int64_t reach, int mask);

  // Likewise where keys come after the query.
  int AddCausal(const std::string& place, int positions, int mask);

  // [batch, heads, sequence, size] each.
  struct PackedHeads {
    int query, key, value;
  };
  // Of one product that makes all queries, then all keys, then all values. INVALID_ARGUMENT, naming the tensor, if they
  // are no whole heads.
  StatusOr<PackedHeads> AddPackedHeads(const std::string& name, const Linear& all, int64_t head_size);

  // What each query makes of the values.
  int AddScaledAttention(const std::string& name, const PackedHeads& heads, int mask, int64_t head_size);

 private:
  int AddStretched(const std::string& place, int frequencies, int positions, int64_t size,
                   const RotaryStretch& stretch);
  // The positions of keys, INT64 [1, sequence], and of queries, [sequence, 1].
  struct Pairs {
    int keys, queries;
  };
  Pairs AddPairs(const std::string& place, int positions);
  // The mask with the lowest float where `visible`, BOOL [sequence, sequence], says no.
  int AddHidden(const std::string& place, int visible, int mask);
  int AddTurnedHalves(const std::string& name, int x, int64_t size);
  int AddTurnedPairs(const std::string& name, int x, int64_t size);
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_ROTARY_BUILDER_H_
