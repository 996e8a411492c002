// Puts a packed file together: arrays one after another, then the header before them. Internal to model_loader/packed.
#ifndef SWIZZLE_MODEL_LOADER_PACKED_ARRAY_WRITER_H_
#define SWIZZLE_MODEL_LOADER_PACKED_ARRAY_WRITER_H_

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/packed/file_layout.h"

namespace swizzle {

// Appends arrays to one run of bytes, each aligned to its start, and describes them.
class ArrayWriter {
 public:
  void Add(DType type, std::span<const std::byte> bytes, packed::Array& array);
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// The bytes of a file of this format version. RESOURCE_EXHAUSTED if the header is too large.
StatusOr<std::vector<std::byte>> PackedFile(const packed::Header& header, const ArrayWriter& arrays, uint32_t version);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PACKED_ARRAY_WRITER_H_
