// Reads a packed file (.swz) back into a network or a graph. The layout of the file: proto/packed_model.proto.
#ifndef SWIZZLE_MODEL_LOADER_PACKED_PACKED_READER_H_
#define SWIZZLE_MODEL_LOADER_PACKED_PACKED_READER_H_

#include <cstddef>
#include <span>
#include <variant>

#include "model_loader/network/network.h"
#include "model_loader/packed/packed_graph.h"

namespace swizzle {

using PackedModel = std::variant<Network, PackedGraph>;

// What is in `file`, which may hold anything: every count, offset, checksum and sparse index is checked, then the whole
// network (Network::Validate). A graph's model is as it stands there, which its reader checks. The result owns its
// memory, at most twice the size of the file.
// INVALID_ARGUMENT, naming the weight and array, if the file is damaged, truncated or malformed; UNIMPLEMENTED if its
// format version is newer than this program's.
StatusOr<PackedModel> ReadPackedModel(std::span<const std::byte> file);

// The same of a network. UNIMPLEMENTED where the file holds a graph.
StatusOr<Network> ReadPacked(std::span<const std::byte> file);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PACKED_PACKED_READER_H_
