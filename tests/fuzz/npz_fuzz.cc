// Archives of arrays (.npz), as they are and again with every checksum made right, which a fuzzer can't, and single
// arrays (.npy).
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "model_loader/files/npy.h"
#include "model_loader/files/npz.h"

namespace swizzle {
namespace {

using Bytes = std::span<const std::byte>;

// What is read is as large as its shape says, no larger than the file, and the same when written and read again.
size_t CheckArray(const NpyArray& array) {
  const auto elements = ElementCount(array.shape);
  SWIZZLE_CHECK(elements.ok());
  SWIZZLE_CHECK(static_cast<size_t>(*elements) * ElementBytes(array.dtype) == array.bytes.size());
  const auto file = FormatNpy(array.view());
  SWIZZLE_CHECK(file.ok());
  const auto again = ParseNpy(*file);
  SWIZZLE_CHECK(again.ok() && again->dtype == array.dtype && again->shape == array.shape &&
                again->bytes == array.bytes);
  return array.bytes.size();
}

void ReadArray(Bytes file) {
  const auto array = ParseNpy(file);
  SWIZZLE_CHECK(array.ok() || !array.status().message().empty());
  if (array.ok()) SWIZZLE_CHECK(CheckArray(*array) <= file.size());
}

void ReadArchive(Bytes file) {
  const auto arrays = ParseNpz(file);
  SWIZZLE_CHECK(arrays.ok() || !arrays.status().message().empty());
  if (!arrays.ok()) return;
  size_t total = 0;
  for (const auto& [name, array] : *arrays) total += CheckArray(array);
  SWIZZLE_CHECK(total <= file.size());
}

uint32_t Crc32(Bytes bytes) {
  uint32_t crc = ~0u;
  for (const std::byte byte : bytes) {
    crc ^= static_cast<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

template <typename Integer>
size_t Load(Bytes bytes, size_t at) {
  Integer value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

// With the checksum of each entry of the directory that lies within the file.
std::vector<std::byte> Sealed(Bytes file) {
  constexpr std::string_view kEntry = "PK\x01\x02";
  constexpr size_t kEntryBytes = 46, kLocalBytes = 30;
  std::vector<std::byte> sealed(file.begin(), file.end());
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  for (size_t at = text.find(kEntry); at != std::string_view::npos; at = text.find(kEntry, at + 1)) {
    if (file.size() - at < kEntryBytes) break;
    const size_t bytes = Load<uint32_t>(file, at + 24), header = Load<uint32_t>(file, at + 42);
    if (header > file.size() || file.size() - header < kLocalBytes) continue;
    const size_t begin = header + kLocalBytes + Load<uint16_t>(file, header + 26) + Load<uint16_t>(file, header + 28);
    if (begin > file.size() || file.size() - begin < bytes) continue;
    const uint32_t crc = Crc32(file.subspan(begin, bytes));
    std::memcpy(sealed.data() + at + 16, &crc, sizeof(crc));
  }
  return sealed;
}

}  // namespace
}  // namespace swizzle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  swizzle::ReadArray(file);
  swizzle::ReadArchive(file);
  swizzle::ReadArchive(swizzle::Sealed(file));
  return 0;
}
