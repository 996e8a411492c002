#include "model_loader/packed/array_writer.h"

#include <cstring>
#include <string>

namespace swizzle {

void ArrayWriter::Add(DType type, std::span<const std::byte> bytes, packed::Array& array) {
  bytes_.resize(AlignedUp(bytes_.size()));
  array.set_type(PackedType(type));
  array.set_offset(bytes_.size());
  array.set_bytes(bytes.size());
  array.set_checksum(Checksum(bytes));
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

StatusOr<std::vector<std::byte>> PackedFile(const packed::Header& header, const ArrayWriter& arrays, uint32_t version) {
  const std::string text = header.SerializeAsString();
  if (text.size() > kMaxPackedHeaderBytes) {
    return MakeError(StatusCode::kResourceExhausted, "the description of the network takes ", text.size(),
                     " bytes; a packed file holds at most ", kMaxPackedHeaderBytes);
  }
  PackedPrefix prefix;
  prefix.version = version;
  prefix.header_bytes = static_cast<uint32_t>(text.size());
  prefix.header_checksum = HeaderChecksum(prefix, std::as_bytes(std::span(text)));

  const size_t header_end = sizeof(prefix) + text.size();
  const size_t arrays_begin = arrays.bytes().empty() ? header_end : AlignedUp(header_end);
  std::vector<std::byte> file(arrays_begin + arrays.bytes().size());
  std::memcpy(file.data(), &prefix, sizeof(prefix));
  std::memcpy(file.data() + sizeof(prefix), text.data(), text.size());
  if (!arrays.bytes().empty()) std::memcpy(file.data() + arrays_begin, arrays.bytes().data(), arrays.bytes().size());
  return file;
}

}  // namespace swizzle
