// Checkpoints, compressed or not, as far as their graph. An input is the text of config.json, a zero byte, and a
// safetensors file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "model_loader/safetensors/checkpoint.h"
#include "model_loader/safetensors/compressed_tensors.h"

namespace swizzle {
namespace {

// Small, so that time goes into many inputs instead of few large tensors.
constexpr int64_t kMaxDenseBytes = 1 << 20;

// The graph's own operators are not what is tested.
const OperatorSpec* AnyOperator(std::string_view, std::string_view) {
  static constexpr OperatorSpec kSpec = {"", "Any", 0, 8, 1, ""};
  return &kSpec;
}

void Check(const Status& status) { SWIZZLE_CHECK(status.ok() || !status.message().empty()); }

void Read(std::string_view config, std::span<const std::byte> bytes) {
  const auto file = ParseSafetensors(bytes);
  if (!file.ok()) return;
  TensorMap tensors;
  for (const auto& [name, view] : file->tensors) tensors.emplace(name, CopyOf(view));
  // Whatever the configuration says, each format is tried.
  for (const auto format : {SparsityFormat::kDense, SparsityFormat::kBitmask, SparsityFormat::kTwoFourBitmask}) {
    TensorMap copy = tensors;
    Check(Decompress(format, kMaxDenseBytes, copy));
  }
  const CheckpointOptions options{.max_dense_bytes = kMaxDenseBytes, .find_operator = AnyOperator};
  Check(MakeCheckpointGraph(config, std::move(tensors), options).status());
}

}  // namespace
}  // namespace swizzle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const uint8_t* const end = data + size;
  const uint8_t* const separator = std::find(data, end, uint8_t{0});
  if (separator == end) return 0;
  swizzle::Read({reinterpret_cast<const char*>(data), static_cast<size_t>(separator - data)},
                std::as_bytes(std::span(separator + 1, end)));
  return 0;
}
