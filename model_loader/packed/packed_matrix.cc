#include "model_loader/packed/packed_matrix.h"

#include <cstring>
#include <string>

#include "kernels/base/half_bits.h"
#include "kernels/base/real_types.h"

namespace swizzle {
namespace {

std::vector<uint16_t> Narrowed(std::span<const std::byte> elements) {
  std::vector<uint16_t> narrow(elements.size() / sizeof(uint32_t));
  for (size_t i = 0; i < narrow.size(); ++i) {
    uint32_t element;
    std::memcpy(&element, elements.data() + i * sizeof(element), sizeof(element));
    narrow[i] = static_cast<uint16_t>(element);
  }
  return narrow;
}

std::vector<std::byte> HalvesOf(std::span<const std::byte> elements, DType dtype) {
  std::vector<float> reals(elements.size() / sizeof(float));
  if (!reals.empty()) std::memcpy(reals.data(), elements.data(), elements.size());
  std::vector<std::byte> halves(reals.size() * sizeof(uint16_t));
  StoreHalves(reals, dtype, halves.data());
  return halves;
}

bool HoldsReals(const MatrixArray& array) {
  return array.role == MatrixArray::Role::kValues && array.stored == DType::kFloat32;
}

}  // namespace

void MatrixWriter::Scalar(std::string_view name, int64_t value) {
  packed::Scalar& scalar = *proto_.add_scalars();
  scalar.set_name(std::string(name));
  scalar.set_value(value);
}

void MatrixWriter::Array(const MatrixArray& array, std::span<const std::byte> elements) {
  packed::NamedArray& named = *proto_.add_arrays();
  named.set_name(std::string(array.name));
  if (wholes_ && array.role == MatrixArray::Role::kValues) {
    arrays_.Add(whole_type_, *wholes_, *named.mutable_array());
  } else if (values_ != DType::kFloat32 && HoldsReals(array)) {
    arrays_.Add(values_, HalvesOf(elements, values_), *named.mutable_array());
  } else if (array.stored == array.type) {
    arrays_.Add(array.type, elements, *named.mutable_array());
  } else {
    const std::vector<uint16_t> narrow = Narrowed(elements);
    arrays_.Add(array.stored, std::as_bytes(std::span(narrow)), *named.mutable_array());
  }
}

StatusOr<int64_t> MatrixParts::Scalar(std::string_view name) {
  for (const packed::Scalar& scalar : matrix_.scalars()) {
    if (scalar.name() != name) continue;
    ++read_;
    return scalar.value();
  }
  return InvalidArgument("its ", name, " are missing");
}

StatusOr<std::span<const std::byte>> MatrixParts::Array(const MatrixArray& array) {
  for (const packed::NamedArray& named : matrix_.arrays()) {
    if (named.name() != array.name) continue;
    ++read_;
    if (HoldsReals(array) && IsWhole(named.array())) return WholeElements(named.array(), array.name);
    if (HoldsReals(array) && values_ != DType::kFloat32) return HalfElements(named.array(), array.name);
    return Elements(named.array(), array.name, array.stored);
  }
  return InvalidArgument("its ", array.name, " are missing");
}

StatusOr<std::span<const std::byte>> MatrixParts::Elements(const packed::Array& array, std::string_view name,
                                                           DType type) const {
  if (array.type() != PackedType(type)) {
    return InvalidArgument("its ", name, " have element type ", static_cast<int>(array.type()), " instead of ",
                           packed::ElementType_Name(PackedType(type)));
  }
  if (array.bytes() % ElementBytes(type) != 0) {
    return InvalidArgument("its ", name, " take ", array.bytes(), " bytes, not a multiple of ", ElementBytes(type));
  }
  return file_.subspan(arrays_begin_ + array.offset(), array.bytes());
}

Status MatrixParts::CheckAllRead() const {
  if (read_ == matrix_.scalars_size() + matrix_.arrays_size()) return {};
  return InvalidArgument("it has parts that no matrix of its format has");
}

bool MatrixParts::IsWhole(const packed::Array& array) const {
  if (!quantisation_) return false;
  return (quantisation_->dtype == DType::kInt8 && array.type() == packed::ELEMENT_TYPE_INT8) ||
         (quantisation_->dtype == DType::kUint8 && array.type() == packed::ELEMENT_TYPE_UINT8);
}

StatusOr<std::span<const std::byte>> MatrixParts::WholeElements(const packed::Array& array, std::string_view name) {
  const std::optional<int32_t> zero_point = quantisation_->common_zero_point();
  if (!zero_point) return InvalidArgument("its ", name, " are whole numbers, with a zero point for each row");
  SWIZZLE_ASSIGN_OR_RETURN(const auto bytes, Elements(array, name, quantisation_->dtype));
  const bool is_signed = quantisation_->dtype == DType::kInt8;
  reals_.reserve(bytes.size());
  for (const std::byte byte : bytes) {
    const int32_t whole = is_signed ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
    reals_.push_back(static_cast<float>(whole - *zero_point));
  }
  gave_wholes_ = !reals_.empty();
  return std::as_bytes(std::span(reals_));
}

StatusOr<std::span<const std::byte>> MatrixParts::HalfElements(const packed::Array& array, std::string_view name) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto bytes, Elements(array, name, values_));
  reals_.resize(bytes.size() / sizeof(uint16_t));
  for (size_t i = 0; i < reals_.size(); ++i) {
    uint16_t half;
    std::memcpy(&half, bytes.data() + i * sizeof(half), sizeof(half));
    reals_[i] = FloatOfHalfBits(half, values_);
  }
  return std::as_bytes(std::span(reals_));
}

}  // namespace swizzle
