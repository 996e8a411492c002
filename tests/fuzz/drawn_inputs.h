// What the targets that run models share: how large they may be, and inputs that the file itself says.
#ifndef SWIZZLE_TESTS_FUZZ_DRAWN_INPUTS_H_
#define SWIZZLE_TESTS_FUZZ_DRAWN_INPUTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model_loader/interpreter/run/load.h"

namespace swizzle::interpreter {

inline constexpr int64_t kMostElements = 1 << 12;  // of an input
inline const Limits kLimits = {.max_array_bytes = 1 << 15, .max_live_bytes = 1 << 20, .max_body_runs = 32};

inline ReadOptions SmallLimits() {
  ReadOptions options;
  options.max_tensor_bytes = options.max_sparse_bytes = 1 << 15;
  options.max_external_bytes = 0;
  options.max_nodes = 256;
  return options;
}

// Small numbers of either sign for the most part, as `file` says: indices within tensors, and other things.
inline std::vector<std::byte> Elements(std::span<const std::byte> file, DType dtype, int64_t count) {
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
inline std::optional<Shape> ShapeOf(const Port& port) {
  if (!port.dtype || !port.shape) return std::nullopt;
  Shape shape = *port.shape;
  for (int64_t& dim : shape) dim = dim < 0 ? 2 : dim;
  const StatusOr<int64_t> elements = ElementCount(shape);
  return elements.ok() && *elements <= kMostElements ? std::optional(shape) : std::nullopt;
}

// A program's inputs; nothing where one is none of those. Views of what it holds.
class DrawnInputs {
 public:
  static std::optional<DrawnInputs> Of(const Program& program, std::span<const std::byte> file) {
    DrawnInputs drawn;
    for (const Port& port : program.inputs()) {
      const std::optional<Shape> shape = ShapeOf(port);
      if (!shape) return std::nullopt;
      drawn.elements_.push_back(Elements(file, *port.dtype, *ElementCount(*shape)));
      drawn.views_.push_back({*port.dtype, *shape, {}});
    }
    for (size_t i = 0; i < drawn.views_.size(); ++i) drawn.views_[i].bytes = drawn.elements_[i];
    return std::optional(std::move(drawn));
  }

  std::span<const TensorView> views() const { return views_; }

 private:
  std::vector<std::vector<std::byte>> elements_;
  std::vector<TensorView> views_;
};

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_TESTS_FUZZ_DRAWN_INPUTS_H_
