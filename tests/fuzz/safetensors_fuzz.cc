// safetensors files, and the conversion of their tensors.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "model_loader/safetensors/safetensors_file.h"

namespace swizzle {
namespace {

void Parse(std::span<const std::byte> bytes) {
  const auto file = ParseSafetensors(bytes);
  if (!file.ok()) {
    SWIZZLE_CHECK(!file.status().message().empty());
    return;
  }
  // Nothing is left out and nothing is there twice: header and tensors make up the file.
  size_t total = 0;
  for (const auto& [name, view] : file->tensors) {
    SWIZZLE_CHECK(view.bytes.empty() || (view.bytes.data() >= bytes.data() + sizeof(uint64_t) &&
                                         view.bytes.data() + view.bytes.size() <= bytes.data() + bytes.size()));
    total += view.bytes.size();
    const Tensor tensor = CopyOf(view);
    SWIZZLE_CHECK(static_cast<size_t>(tensor.elements()) * ElementBytes(tensor.dtype) == tensor.bytes.size());
    const auto floats = ToFloat32(tensor, name);
    if (floats.ok()) SWIZZLE_CHECK(floats->elements() == tensor.elements());
  }
  SWIZZLE_CHECK(total <= bytes.size() - sizeof(uint64_t));
}

}  // namespace
}  // namespace swizzle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  swizzle::Parse(std::as_bytes(std::span(data, size)));
  return 0;
}
