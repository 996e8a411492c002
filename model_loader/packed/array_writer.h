// Puts a packed file together: arrays one after another, then the header before them. Internal to model_loader/packed.
#ifndef SWIZZLE_MODEL_LOADER_PACKED_ARRAY_WRITER_H_
#define SWIZZLE_MODEL_LOADER_PACKED_ARRAY_WRITER_H_

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/packed/file_layout.h"

namespace swizzle {

// The pieces of a file, one after another.
using FilePieces = std::vector<std::vector<std::byte>>;

// Collects arrays, each aligned to the beginning of the first, and describes them.
class ArrayWriter {
 public:
  void Add(DType type, std::span<const std::byte> bytes, packed::Array& array) {
    Add(type, std::vector<std::byte>(bytes.begin(), bytes.end()), array);
  }
  void Add(DType type, std::vector<std::byte>&& bytes, packed::Array& array);

 private:
  friend StatusOr<FilePieces> PackedFile(const packed::Header& header, ArrayWriter arrays, uint32_t version);

  FilePieces pieces_;
  uint64_t bytes_ = 0;  // of all
};

// A file of this format version. RESOURCE_EXHAUSTED if the header is too large.
StatusOr<FilePieces> PackedFile(const packed::Header& header, ArrayWriter arrays, uint32_t version);

std::vector<std::byte> Joined(const FilePieces& pieces);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PACKED_ARRAY_WRITER_H_
