#include "tests/support/npz_writer.h"

#include <cstdint>

#include "kernels/base/check.h"
#include "model_loader/files/npy.h"

namespace swizzle::testing {
namespace {

uint32_t Crc32(const std::string& bytes) {
  uint32_t crc = ~0u;
  for (const unsigned char byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

void Append(std::string& to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i));
}

// What a local header and an entry of the directory have in common, from the version needed to the lengths.
void AppendDescription(std::string& to, const std::string& name, const std::string& contents) {
  Append(to, 20, 2);
  Append(to, 0, 2 + 2 + 4);  // flags, method, time and date
  Append(to, Crc32(contents), 4);
  Append(to, contents.size(), 4);
  Append(to, contents.size(), 4);
  Append(to, name.size(), 2);
  Append(to, 0, 2);
}

}  // namespace

std::string MakeNpz(const std::map<std::string, TensorView>& arrays) {
  std::string file, directory;
  for (const auto& [array_name, array] : arrays) {
    const auto bytes = FormatNpy(array);
    SWIZZLE_CHECK(bytes.ok());
    const std::string name = array_name + ".npy", contents(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    directory += "PK\x01\x02";
    Append(directory, 20, 2);
    AppendDescription(directory, name, contents);
    Append(directory, 0, 2 + 2 + 2);  // comment, disk, attributes
    Append(directory, 0, 4);
    Append(directory, file.size(), 4);
    directory += name;
    file += "PK\x03\x04";
    AppendDescription(file, name, contents);
    file += name + contents;
  }
  const size_t begin = file.size();
  file += directory + "PK\x05\x06";
  Append(file, 0, 4);
  Append(file, arrays.size(), 2);
  Append(file, arrays.size(), 2);
  Append(file, directory.size(), 4);
  Append(file, begin, 4);
  Append(file, 0, 2);
  return file;
}

}  // namespace swizzle::testing
