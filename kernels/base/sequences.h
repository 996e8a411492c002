// The token sequences of one batch, packed: their tokens stand one after the other, with no padding.
//
// A view; whoever runs a plan keeps what it points to alive. It points to memory of the backend that runs. Every
// sequence has at least one token; on a GPU, where launches are recorded for rounded sizes, spare sequences at the end
// have none, and spare tokens belong to no sequence: kernels write anything for them, but finite numbers where they
// were given such.
#ifndef SWIZZLE_KERNELS_BASE_SEQUENCES_H_
#define SWIZZLE_KERNELS_BASE_SEQUENCES_H_

#include <cstdint>
#include <span>

namespace swizzle {

struct Sequences {
  std::span<const int32_t> begins;       // [count + 1], ascending: sequence i has tokens begins[i] to begins[i + 1]
  std::span<const int32_t> positions;    // [tokens]: of each token in its sequence, for embeddings by position
  std::span<const float> key_bias;       // [tokens], added to a key's scores in attention; empty: zeros
  std::span<const int32_t> owners = {};  // [tokens]: the sequence of each, -1 for spare ones; empty on the CPU

  int64_t count() const { return static_cast<int64_t>(begins.size()) - 1; }
  int64_t tokens() const { return static_cast<int64_t>(positions.size()); }
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BASE_SEQUENCES_H_
