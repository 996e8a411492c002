// What packed_writer and packed_reader agree on beside the schema; proto/packed_model.proto shows the whole layout.
#ifndef SWIZZLE_MODEL_LOADER_PACKED_FILE_LAYOUT_H_
#define SWIZZLE_MODEL_LOADER_PACKED_FILE_LAYOUT_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/base/dtype.h"
#include "kernels/base/integers.h"
#include "proto/packed_model.pb.h"

namespace swizzle {

static_assert(std::endian::native == std::endian::little, "packed files are read and written without swapping bytes");

// 8: ends of sequences. 7: tensors of graphs in formats of weights. 6: weights that several layers name. 5: graphs. 4:
// positions that count tokens. 3: values of quantised weights as whole numbers. 2: matrices by their parts. Version 1
// had a message for each format.
inline constexpr uint32_t kPackedVersion = 8;
// What a file is written as, so that older readers take it: of a network, with weights that layers share, sequences
// that have ends, or neither; and of a graph, with tensors in formats of weights or without.
inline constexpr uint32_t kNetworkVersion = 4, kSharedWeightsVersion = 6, kEndsVersion = 8;
inline constexpr uint32_t kGraphVersion = 5, kGraphFormatsVersion = 7;
inline constexpr uint64_t kPackedAlignment = 64;
inline constexpr uint32_t kMaxPackedHeaderBytes = uint32_t{4} << 20;  // some twenty thousand layers

// How a file starts. A byte above 127 and the line ends show transfers that took it for text.
struct PackedPrefix {
  static constexpr std::array<uint8_t, 8> kMagic = {0x89, 'S', 'W', 'Z', 0x0D, 0x0A, 0x1A, 0x0A};

  std::array<uint8_t, 8> magic = kMagic;
  uint32_t version = kPackedVersion;
  uint32_t header_bytes = 0;
  uint64_t header_checksum = 0;
};
static_assert(sizeof(PackedPrefix) == 24);

// XXH3, 64 bits.
uint64_t Checksum(std::span<const std::byte> bytes);

// Of the prefix (without its last field) and the header together.
uint64_t HeaderChecksum(const PackedPrefix& prefix, std::span<const std::byte> header);

constexpr uint64_t AlignedUp(uint64_t offset) { return RoundUp(offset, kPackedAlignment); }

// Of the types that matrices' arrays have (kernels/format/matrix_parts.h).
packed::ElementType PackedType(DType type);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PACKED_FILE_LAYOUT_H_
