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

}  // namespace swizzle
