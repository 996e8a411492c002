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

packed::ElementType PackedType(DType type) {
  switch (type) {
    case DType::kFloat32:
      return packed::ELEMENT_TYPE_FLOAT32;
    case DType::kFloat16:
      return packed::ELEMENT_TYPE_FLOAT16;
    case DType::kBFloat16:
      return packed::ELEMENT_TYPE_BFLOAT16;
    case DType::kUint8:
      return packed::ELEMENT_TYPE_UINT8;
    case DType::kUint16:
      return packed::ELEMENT_TYPE_UINT16;
    case DType::kUint32:
      return packed::ELEMENT_TYPE_UINT32;
    case DType::kUint64:
      return packed::ELEMENT_TYPE_UINT64;
    case DType::kInt8:
      return packed::ELEMENT_TYPE_INT8;
    case DType::kInt32:
      return packed::ELEMENT_TYPE_INT32;
    case DType::kBool:  // arrays of matrices have none of these
    case DType::kInt16:
    case DType::kInt64:
    case DType::kFloat64:
    case DType::kString:
      break;
  }
  return packed::ELEMENT_TYPE_UNSPECIFIED;
}

}  // namespace swizzle
