// Reads a packed file (.swz) back into a network. The layout of the file: proto/packed_model.proto.
#ifndef SWIZZLE_MODEL_LOADER_PACKED_PACKED_READER_H_
#define SWIZZLE_MODEL_LOADER_PACKED_PACKED_READER_H_

#include <cstddef>
#include <span>

#include "model_loader/network/network.h"

namespace swizzle {

// The network in `file`, which may hold anything: every count, offset, checksum and sparse index is checked, then the
// whole network (Network::Validate). The result owns its memory, at most twice the size of the file.
// INVALID_ARGUMENT, naming the weight and array, if the file is damaged, truncated or malformed; UNIMPLEMENTED if its
// format version is newer than this program's.
StatusOr<Network> ReadPacked(std::span<const std::byte> file);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PACKED_PACKED_READER_H_
