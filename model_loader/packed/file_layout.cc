#include "model_loader/packed/file_layout.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace swizzle {

uint64_t Checksum(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

uint64_t HeaderChecksum(const PackedPrefix& prefix, std::span<const std::byte> header) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, &prefix, offsetof(PackedPrefix, header_checksum));
  XXH3_64bits_update(&state, header.data(), header.size());
  return XXH3_64bits_digest(&state);
}

packed::LayerKind PackedOp(Op op) {
  switch (op) {
    case Op::kConv:
      return packed::LAYER_KIND_CONV;
    case Op::kDepthwiseConv:
      return packed::LAYER_KIND_DEPTHWISE_CONV;
    case Op::kAdd:
      return packed::LAYER_KIND_ADD;
    case Op::kActivation:
      return packed::LAYER_KIND_ACTIVATION;
    case Op::kMaxPool:
      return packed::LAYER_KIND_MAX_POOL;
    case Op::kAveragePool:
      return packed::LAYER_KIND_AVERAGE_POOL;
    case Op::kSoftmax:
      return packed::LAYER_KIND_SOFTMAX;
    case Op::kReshape:
      return packed::LAYER_KIND_RESHAPE;
    case Op::kMultiply:
      return packed::LAYER_KIND_MULTIPLY;
    case Op::kScale:
      return packed::LAYER_KIND_SCALE;
    case Op::kFunction:
      return packed::LAYER_KIND_FUNCTION;
    case Op::kTranspose:
      return packed::LAYER_KIND_TRANSPOSE;
    case Op::kEmbedding:
      return packed::LAYER_KIND_EMBEDDING;
    case Op::kLayerNorm:
      return packed::LAYER_KIND_LAYER_NORM;
    case Op::kAttention:
      return packed::LAYER_KIND_ATTENTION;
    case Op::kSelectToken:
      return packed::LAYER_KIND_SELECT_TOKEN;
    case Op::kMeanTokens:
      return packed::LAYER_KIND_MEAN_TOKENS;
    case Op::kSparseAttention:
      return packed::LAYER_KIND_SPARSE_ATTENTION;
    case Op::kConvertLayout:
      break;
  }
  return packed::LAYER_KIND_UNSPECIFIED;
}

std::optional<Op> UnpackedOp(packed::LayerKind kind) {
  for (const OpTraits& traits : kOpTraits) {
    if (kind != packed::LAYER_KIND_UNSPECIFIED && PackedOp(traits.op) == kind) return traits.op;
  }
  return std::nullopt;
}

}  // namespace swizzle
