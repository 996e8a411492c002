// Writes safetensors files, right and wrong ones.
#ifndef SWIZZLE_TESTS_SUPPORT_SAFETENSORS_BUILDER_H_
#define SWIZZLE_TESTS_SUPPORT_SAFETENSORS_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/safetensors/safetensors_file.h"

namespace swizzle::testing {

// A file of this header and data, with `length` in place of the header's, if one is given.
inline std::vector<std::byte> SafetensorsBytes(std::string_view header, std::string_view data,
                                               std::optional<uint64_t> length = std::nullopt) {
  const uint64_t stated = length.value_or(header.size());
  std::vector<std::byte> file(sizeof(stated) + header.size() + data.size());
  std::memcpy(file.data(), &stated, sizeof(stated));
  if (!header.empty()) std::memcpy(file.data() + sizeof(stated), header.data(), header.size());
  if (!data.empty()) std::memcpy(file.data() + sizeof(stated) + header.size(), data.data(), data.size());
  return file;
}

// The file of these tensors. REQUIRES: names that JSON needs no escapes for; types among those below.
inline std::vector<std::byte> FormatSafetensors(const TensorMap& tensors) {
  const auto dtype_name = [](DType dtype) {
    switch (dtype) {
      case DType::kFloat32:
        return "F32";
      case DType::kFloat16:
        return "F16";
      case DType::kBFloat16:
        return "BF16";
      case DType::kFloat64:
        return "F64";
      case DType::kInt64:
        return "I64";
      case DType::kInt8:
        return "I8";
      default:
        SWIZZLE_CHECK(dtype == DType::kUint8);
        return "U8";
    }
  };
  std::string header = "{", data;
  for (const auto& [name, tensor] : tensors) {
    const size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    header += Concat(header.size() > 1 ? "," : "", "\"", name, "\":{\"dtype\":\"", dtype_name(tensor.dtype),
                     "\",\"shape\":", ShapeText(tensor.shape), ",\"data_offsets\":[", begin, ",", data.size(), "]}");
  }
  return SafetensorsBytes(header + "}", data);
}

inline void WriteBytes(const std::filesystem::path& file, std::span<const std::byte> bytes) {
  std::ofstream stream(file, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  SWIZZLE_CHECK(stream.good());
}

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_SAFETENSORS_BUILDER_H_
