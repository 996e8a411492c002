// Writes a network as a packed file (.swz). The layout of the file: proto/packed_model.proto. Pure functions.
#ifndef SWIZZLE_MODEL_LOADER_PACKED_PACKED_WRITER_H_
#define SWIZZLE_MODEL_LOADER_PACKED_PACKED_WRITER_H_

#include <cstddef>
#include <filesystem>
#include <vector>

#include "model_loader/network/network.h"

namespace swizzle {

// The bytes of the file; equal networks give equal bytes. Writes what it is given: see WritePacked for the checks.
// RESOURCE_EXHAUSTED if the network has too many layers for one header.
StatusOr<std::vector<std::byte>> EncodePacked(const Network& network);

// Validates `network` and writes it; `file` is replaced as a whole or, on an error, left alone.
Status WritePacked(const Network& network, const std::filesystem::path& file);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PACKED_PACKED_WRITER_H_
