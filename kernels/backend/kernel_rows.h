// Rows of a kernel table, made at compile time from what they have in common and what they differ in: a type, a target.
//
// A row is named <stem>_<type>_<target>, like "conv_nchw_csr" + "bf16" + "avx512". Such names are public: they stand in
// metrics, reports and tuning caches.
#ifndef SWIZZLE_KERNELS_BACKEND_KERNEL_ROWS_H_
#define SWIZZLE_KERNELS_BACKEND_KERNEL_ROWS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/backend/kernel_table.h"

namespace swizzle {

// A name, or a part of one, that a template takes.
struct RowText {
  char characters[64] = {};
  size_t size = 0;

  constexpr RowText(const char* text) { Append(text); }  // NOLINT(google-explicit-constructor): as a literal
  constexpr explicit RowText(std::string_view text) { Append(text); }
  constexpr std::string_view view() const { return {characters, size}; }
  constexpr RowText operator+(RowText next) const {
    RowText both = *this;
    both.Append(next.view());
    return both;
  }

 private:
  constexpr void Append(std::string_view text) {
    std::copy_n(text.data(), text.size(), characters + size);
    size += text.size();
  }
};

// How rows' names spell a type.
constexpr RowText TypeTag(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "f32";
    case DType::kFloat16:
      return "f16";
    case DType::kBFloat16:
      return "bf16";
    case DType::kInt8:
      return "s8";
    case DType::kUint8:
      return "u8";
    default:
      return "";  // no type that kernels compute with
  }
}

// The name's characters stand for as long as the program runs.
template <RowText kName>
constexpr std::string_view RowName() {
  return kName.view();
}

// A key whose activations are of `dtype` where their layout has it (StorageIn).
constexpr KernelKey Key(Op op, Format weights, DType weight_dtype, DType dtype, Layout input, Layout output) {
  return {op, weights, weight_dtype, StorageIn(input, dtype), StorageIn(output, dtype)};
}

using RunFunctionPointer = void (*)(const KernelArgs&, Stream&);

// One table of several pieces of it, each an array of rows.
template <size_t... kSizes>
constexpr auto Join(const std::array<Kernel, kSizes>&... pieces) {
  std::array<Kernel, (kSizes + ...)> rows = {};
  size_t next = 0;
  const auto append = [&](const auto& piece) {
    for (const Kernel& row : piece) rows[next++] = row;
  };
  (append(pieces), ...);
  return rows;
}

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BACKEND_KERNEL_ROWS_H_
