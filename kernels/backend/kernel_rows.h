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
    case DType::kBool:
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kFloat64:
    case DType::kString:
      break;  // no type that kernels compute with
  }
  return "";
}

// The name's characters stand for as long as the program runs.
template <RowText kName>
constexpr std::string_view RowName() {
  return kName.view();
}

using RunFunctionPointer = void (*)(const KernelArgs&, Stream&);

// What is the same of a row in every type and target.
struct RowShape {
  Op op;
  Format weights;
  Layout input;
  Layout output;
};

// The key of such a row whose activations are of `dtype`, where their layout has it (StorageIn).
constexpr KernelKey KeyOf(const RowShape& shape, DType weight_dtype, DType dtype) {
  const Storage input = shape.op == Op::kEmbedding ? kIdStorage : StorageIn(shape.input, dtype);
  return {shape.op, shape.weights, weight_dtype, input, StorageIn(shape.output, dtype)};
}

// A row like `common`, which has no name, key, features or function.
template <RowText kName>
constexpr Kernel MakeRow(const Kernel& common, const KernelKey& key, uint32_t features, RunFunctionPointer run) {
  Kernel row = common;
  row.name = RowName<kName>();
  row.key = key;
  row.required_features = features;
  row.run = run;
  return row;
}

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
