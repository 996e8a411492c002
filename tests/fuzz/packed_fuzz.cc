// Packed files (.swz), as they are and again with every checksum made right: whoever writes a hostile file also writes
// its checksums, and a fuzzer can't.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "model_loader/packed/file_layout.h"
#include "model_loader/packed/packed_reader.h"
#include "proto/packed_model.pb.h"
#include "tests/fuzz/quiet_protobuf.h"

namespace swizzle {
namespace {

using Bytes = std::span<const std::byte>;

void Seal(Bytes arrays, packed::Array& array) {
  if (array.offset() > arrays.size() || array.bytes() > arrays.size() - array.offset()) return;
  array.set_checksum(Checksum(arrays.subspan(array.offset(), array.bytes())));
}

void SealArrays(Bytes arrays, packed::Header& header) {
  if (header.has_graph()) {
    Seal(arrays, *header.mutable_graph()->mutable_model());
    for (packed::Elements& tensor : *header.mutable_graph()->mutable_tensors()) {
      if (tensor.has_occupied()) Seal(arrays, *tensor.mutable_occupied());
      if (tensor.has_values()) Seal(arrays, *tensor.mutable_values());
      if (!tensor.has_matrix()) continue;
      for (packed::NamedArray& part : *tensor.mutable_matrix()->mutable_parts()->mutable_arrays()) {
        Seal(arrays, *part.mutable_array());
      }
    }
  }
  for (packed::Weight& weight : *header.mutable_weights()) {
    if (weight.has_dense()) Seal(arrays, *weight.mutable_dense()->mutable_values());
    if (weight.has_csr()) {
      Seal(arrays, *weight.mutable_csr()->mutable_row_offsets());
      Seal(arrays, *weight.mutable_csr()->mutable_col_indices());
      Seal(arrays, *weight.mutable_csr()->mutable_values());
    }
    if (weight.has_parts()) {
      for (packed::NamedArray& part : *weight.mutable_parts()->mutable_arrays()) Seal(arrays, *part.mutable_array());
    }
    if (weight.has_bias()) Seal(arrays, *weight.mutable_bias());
  }
}

// Empty where the file is not one that checksums alone could mend.
std::vector<std::byte> Sealed(Bytes file) {
  PackedPrefix prefix;
  packed::Header header;
  if (file.size() < sizeof(prefix)) return {};
  std::memcpy(&prefix, file.data(), sizeof(prefix));
  const Bytes rest = file.subspan(sizeof(prefix));
  if (prefix.header_bytes > rest.size() || prefix.header_bytes > kMaxPackedHeaderBytes) return {};
  if (!header.ParseFromArray(rest.data(), static_cast<int>(prefix.header_bytes))) return {};
  const uint64_t arrays_begin = AlignedUp(sizeof(prefix) + prefix.header_bytes);
  const Bytes arrays = file.subspan(std::min<uint64_t>(arrays_begin, file.size()));
  SealArrays(arrays, header);
  const std::string text = header.SerializeAsString();
  prefix.header_bytes = static_cast<uint32_t>(text.size());
  prefix.header_checksum = HeaderChecksum(prefix, std::as_bytes(std::span(text)));
  std::vector<std::byte> sealed(AlignedUp(sizeof(prefix) + text.size()));
  std::memcpy(sealed.data(), &prefix, sizeof(prefix));
  std::memcpy(sealed.data() + sizeof(prefix), text.data(), text.size());
  sealed.insert(sealed.end(), arrays.begin(), arrays.end());
  return sealed;
}

void Read(Bytes file) {
  const auto model = ReadPackedModel(file);
  SWIZZLE_CHECK(model.ok() || !model.status().message().empty());
  if (!model.ok() || !std::holds_alternative<PackedGraph>(*model)) return;
  for (const PackedElements& tensor : std::get<PackedGraph>(*model).tensors) {
    if (DenseBytes(tensor) > (int64_t{1} << 24)) continue;
    SWIZZLE_CHECK(std::ssize(Expanded(tensor)) == DenseBytes(tensor));
  }
}

}  // namespace
}  // namespace swizzle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  swizzle::Read(file);
  swizzle::Read(swizzle::Sealed(file));
  return 0;
}
