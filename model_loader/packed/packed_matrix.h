// How a packed file holds a matrix of weights: its scalars and arrays by their names. Internal to model_loader/packed.
#ifndef SWIZZLE_MODEL_LOADER_PACKED_PACKED_MATRIX_H_
#define SWIZZLE_MODEL_LOADER_PACKED_PACKED_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/base/quantisation.h"
#include "kernels/format/weight_matrix.h"
#include "model_loader/packed/array_writer.h"

namespace swizzle {

// Writes the parts of one matrix. Used once.
class MatrixWriter final : public PartSink {
 public:
  // `values`: the type that values get in the file, FP32 or a half. `wholes`: in place of them, whole numbers of the
  // type `whole_type`; nothing: values are real.
  MatrixWriter(ArrayWriter& arrays, packed::Matrix& proto, DType values = DType::kFloat32,
               std::optional<std::vector<std::byte>> wholes = std::nullopt, DType whole_type = DType::kInt8)
      : arrays_(arrays), proto_(proto), values_(values), wholes_(std::move(wholes)), whole_type_(whole_type) {}

  void Scalar(std::string_view name, int64_t value) override;
  void Array(const MatrixArray& array, std::span<const std::byte> elements) override;

 private:
  ArrayWriter& arrays_;
  packed::Matrix& proto_;
  const DType values_;
  const std::optional<std::vector<std::byte>> wholes_;
  const DType whole_type_;
};

// The parts of one matrix, whose arrays have been checked to lie in the file. Values that are whole numbers it gives
// less their zero point, and halves as FP32.
class MatrixParts final : public PartSource {
 public:
  // All but `values`, the type that real values have in the file, outlives it.
  MatrixParts(const packed::Matrix& matrix, const std::optional<Quantisation>& quantisation,
              std::span<const std::byte> file, uint64_t arrays_begin, DType values = DType::kFloat32)
      : matrix_(matrix), quantisation_(quantisation), file_(file), arrays_begin_(arrays_begin), values_(values) {}

  StatusOr<int64_t> Scalar(std::string_view name) override;
  StatusOr<std::span<const std::byte>> Array(const MatrixArray& array) override;

  StatusOr<std::span<const std::byte>> Elements(const packed::Array& array, std::string_view name, DType type) const;
  // Whether it gave values that are to be scaled.
  bool gave_wholes() const { return gave_wholes_; }
  // Nothing stands in the file twice, or without a reader.
  Status CheckAllRead() const;

 private:
  bool IsWhole(const packed::Array& array) const;
  StatusOr<std::span<const std::byte>> WholeElements(const packed::Array& array, std::string_view name);
  StatusOr<std::span<const std::byte>> HalfElements(const packed::Array& array, std::string_view name);

  const packed::Matrix& matrix_;
  const std::optional<Quantisation>& quantisation_;
  const std::span<const std::byte> file_;
  const uint64_t arrays_begin_;
  const DType values_;
  std::vector<float> reals_;  // what it gave that is not so in the file
  bool gave_wholes_ = false;
  int read_ = 0;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PACKED_PACKED_MATRIX_H_
