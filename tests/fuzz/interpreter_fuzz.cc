// ONNX files from the reader to the end of a run by the interpreter, whatever the model is and its inputs hold. What a
// run may take is little, so that time goes into many models; those that want more are refused by the limits on runs,
// which are tried with them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cpu/runtime/cpu_stream.h"
#include "model_loader/fallback/load.h"

namespace swizzle::fallback {
namespace {

constexpr int64_t kMostElements = 1 << 12;  // of an input
const Limits kLimits = {.max_array_bytes = 1 << 15, .max_live_bytes = 1 << 20, .max_body_runs = 32};

ReadOptions SmallLimits() {
  ReadOptions options;
  options.max_tensor_bytes = options.max_sparse_bytes = 1 << 15;
  options.max_external_bytes = 0;
  options.max_nodes = 256;
  return options;
}

// Small numbers of either sign for the most part, as `file` says: indices within tensors, and other things.
std::vector<std::byte> Elements(std::span<const std::byte> file, DType dtype, int64_t count) {
  if (dtype == DType::kString) return std::vector<std::byte>(static_cast<size_t>(count) * sizeof(uint32_t));  // empty
  const size_t width = ElementBytes(dtype);
  const bool real = IsFloating(dtype);
  std::vector<std::byte> bytes(static_cast<size_t>(count) * width);
  for (size_t i = 0; i < bytes.size(); i += width) {
    const auto drawn = static_cast<uint8_t>(file[(i / width * 31 + 7) % file.size()]);
    if (dtype == DType::kBool) {
      bytes[i] = std::byte{static_cast<uint8_t>(drawn & 1)};
    } else if (real) {
      bytes[i + width - 1] = std::byte{drawn};  // sign and exponent
      bytes[i] = std::byte{drawn};
    } else {
      if (drawn > 0xf0) std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(i), width, std::byte{0xff});
      bytes[i] = std::byte{static_cast<uint8_t>(drawn > 0xf0 ? drawn : drawn % 8)};
    }
  }
  return bytes;
}

// Of a port's inputs, with 2 for what is free; nothing where it is declared without one or holds too much.
std::optional<Shape> ShapeOf(const Port& port) {
  if (!port.dtype || !port.shape) return std::nullopt;
  Shape shape = *port.shape;
  for (int64_t& dim : shape) dim = dim < 0 ? 2 : dim;
  const StatusOr<int64_t> elements = ElementCount(shape);
  return elements.ok() && *elements <= kMostElements ? std::optional(shape) : std::nullopt;
}

void Run(std::span<const std::byte> file, const Program& program, Stream& stream) {
  std::vector<std::vector<std::byte>> elements;
  std::vector<TensorView> inputs;
  for (const Port& port : program.inputs()) {
    const std::optional<Shape> shape = ShapeOf(port);
    if (!shape) return;
    elements.push_back(Elements(file, *port.dtype, *ElementCount(*shape)));
    inputs.push_back({*port.dtype, *shape, {}});
  }
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i].bytes = elements[i];
  const StatusOr<std::vector<Array>> outputs = program.Run(inputs, stream, kLimits);
  SWIZZLE_CHECK(stream.Synchronize().ok());
  if (!outputs.ok()) {
    SWIZZLE_CHECK(!outputs.status().message().empty());
    return;
  }
  SWIZZLE_CHECK(outputs->size() == program.outputs().size());
  const bool batched = program.rows_are_independent();
  for (const Array& output : *outputs) {
    SWIZZLE_CHECK(output.bytes() >= 0 && output.bytes() <= kLimits.max_array_bytes);
    SWIZZLE_CHECK(!batched || inputs.empty() || (output.rank() > 0 && output.shape[0] == inputs[0].shape[0]));
  }
}

}  // namespace
}  // namespace swizzle::fallback

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const swizzle::ReadOptions options = swizzle::fallback::SmallLimits();
  static swizzle::cpu::CpuStream stream(1);
  if (size == 0) return 0;
  const auto file = std::as_bytes(std::span(data, size));
  const auto program = swizzle::fallback::ReadProgram(file, options);
  if (program.ok()) swizzle::fallback::Run(file, **program, stream);
  return 0;
}
