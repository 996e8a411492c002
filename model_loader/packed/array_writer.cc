#include "model_loader/packed/array_writer.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

namespace swizzle {

void ArrayWriter::Add(DType type, std::vector<std::byte>&& bytes, packed::Array& array) {
  if (const uint64_t begin = AlignedUp(bytes_); begin > bytes_) {
    pieces_.emplace_back(begin - bytes_);
    bytes_ = begin;
  }
  array.set_type(PackedType(type));
  array.set_offset(bytes_);
  array.set_bytes(bytes.size());
  array.set_checksum(Checksum(bytes));
  bytes_ += bytes.size();
  pieces_.push_back(std::move(bytes));
}

StatusOr<FilePieces> PackedFile(const packed::Header& header, ArrayWriter arrays, uint32_t version) {
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
  std::vector<std::byte> beginning(arrays.bytes_ == 0 ? header_end : AlignedUp(header_end));
  std::memcpy(beginning.data(), &prefix, sizeof(prefix));
  std::memcpy(beginning.data() + sizeof(prefix), text.data(), text.size());
  FilePieces pieces = {std::move(beginning)};
  std::ranges::move(arrays.pieces_, std::back_inserter(pieces));
  return pieces;
}

std::vector<std::byte> Joined(const FilePieces& pieces) {
  std::vector<std::byte> bytes;
  for (const std::vector<std::byte>& piece : pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
  return bytes;
}

}  // namespace swizzle
