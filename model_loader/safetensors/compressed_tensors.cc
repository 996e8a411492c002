#include "model_loader/safetensors/compressed_tensors.h"

#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/integers.h"

namespace swizzle {
namespace {

constexpr char kBitmask[] = ".bitmask", kCompressed[] = ".compressed", kShape[] = ".shape", kOffsets[] = ".row_offsets";

// Calls visit(row, column) for each stored element in row-major order. REQUIRES: a bitmask that CheckBitmask took.
template <typename Visit>
void VisitStored(std::span<const uint8_t> bitmask, int64_t rows, int64_t columns, const Visit& visit) {
  const int64_t stride = CeilDiv(columns, 8);
  for (int64_t byte = 0; byte < rows * stride; ++byte) {
    for (uint32_t bits = bitmask[static_cast<size_t>(byte)]; bits != 0; bits &= bits - 1) {
      visit(byte / stride, byte % stride * 8 + std::countr_zero(bits));
    }
  }
}

// Makes the weight `name` of its parts.
class WeightDecompressor {
 public:
  WeightDecompressor(SparsityFormat format, std::string prefix, int64_t max_bytes, TensorMap& tensors)
      : format_(format), prefix_(std::move(prefix)), max_bytes_(max_bytes), tensors_(tensors) {}

  // Takes the parts away.
  StatusOr<Tensor> Run() {
    SWIZZLE_RETURN_IF_ERROR(TakeShape());
    SWIZZLE_RETURN_IF_ERROR(TakeBitmask());
    SWIZZLE_RETURN_IF_ERROR(format_ == SparsityFormat::kBitmask ? CheckRowOffsets() : CheckTwoOfFour());
    return Fill();
  }

 private:
  std::string what() const { return Concat("compressed weight '", prefix_, ".weight'"); }

  StatusOr<Tensor> Take(const char* ending) {
    const auto found = tensors_.find(prefix_ + ending);
    if (found == tensors_.end()) return InvalidArgument(what(), " lacks its tensor '", prefix_, ending, "'");
    return std::move(tensors_.extract(found).mapped());
  }

  StatusOr<Tensor> Take(const char* ending, DType dtype, const Shape& shape) {
    SWIZZLE_ASSIGN_OR_RETURN(Tensor tensor, Take(ending));
    if (tensor.dtype != dtype || tensor.shape != shape) {
      return InvalidArgument(what(), ": its '", ending, "' is ", DTypeName(tensor.dtype), ShapeText(tensor.shape),
                             "; it must be ", DTypeName(dtype), ShapeText(shape));
    }
    return tensor;
  }

  static std::vector<int64_t> Int64sOf(const Tensor& tensor) {
    std::vector<int64_t> values(tensor.bytes.size() / sizeof(int64_t));
    if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }

  Status TakeShape() {
    SWIZZLE_ASSIGN_OR_RETURN(const Tensor tensor, Take(kShape));
    const bool two_four = format_ == SparsityFormat::kTwoFourBitmask;
    const bool column = tensor.shape.size() == 2 && tensor.shape[1] == 1;
    if (tensor.dtype != DType::kInt64 || !(two_four ? column : tensor.shape.size() == 1)) {
      return InvalidArgument(what(), ": its '", kShape, "' is ", DTypeName(tensor.dtype), ShapeText(tensor.shape),
                             "; it must be INT64", two_four ? "[2,1]" : "[rank]");
    }
    shape_ = Int64sOf(tensor);
    if (shape_.empty() || (two_four && shape_.size() != 2)) {
      return InvalidArgument(what(), " has the shape ", ShapeText(shape_), "; ",
                             two_four ? "only matrices have this format" : "it needs a dimension");
    }
    for (const int64_t dimension : shape_) {
      if (dimension < 1) {
        return InvalidArgument(what(), " has the shape ", ShapeText(shape_), "; dimensions are at least 1");
      }
    }
    const auto elements = ElementCount(shape_);
    if (!elements.ok()) return Annotate(elements.status(), what());
    if (*elements > max_bytes_ / static_cast<int64_t>(sizeof(float))) {
      return InvalidArgument(what(), " has ", *elements, " elements when dense, which takes the checkpoint above its ",
                             "limit; ", max_bytes_, " bytes are left");
    }
    columns_ = shape_.back();
    rows_ = *elements / columns_;
    return {};
  }

  // Padding bits are zero, so that no stored element lies outside of its row.
  Status TakeBitmask() {
    Shape shape = shape_;
    shape.back() = CeilDiv(columns_, 8);
    SWIZZLE_ASSIGN_OR_RETURN(const Tensor tensor, Take(kBitmask, DType::kUint8, shape));
    bitmask_.resize(tensor.bytes.size());
    std::memcpy(bitmask_.data(), tensor.bytes.data(), tensor.bytes.size());
    const auto stride = static_cast<size_t>(shape.back());
    for (size_t row = 0; row * stride < bitmask_.size(); ++row) {
      if (columns_ % 8 != 0 && bitmask_[row * stride + stride - 1] >> (columns_ % 8) != 0) {
        return InvalidArgument(what(), ": the bitmask of row ", row, " has bits beyond its ", columns_, " columns");
      }
    }
    return {};
  }

  int64_t StoredIn(int64_t row) const {
    const int64_t stride = CeilDiv(columns_, 8);
    int64_t stored = 0;
    for (int64_t byte = row * stride; byte < (row + 1) * stride; ++byte) {
      stored += std::popcount(bitmask_[static_cast<size_t>(byte)]);
    }
    return stored;
  }

  // The package sums along dimension 0, so that of a tensor of more than two dimensions the rows at one place of the
  // dimensions between are counted together.
  Status CheckRowOffsets() {
    const Shape leading(shape_.begin(), shape_.end() - 1);
    SWIZZLE_ASSIGN_OR_RETURN(const Tensor tensor, Take(kOffsets, DType::kInt64, leading));
    const std::vector<int64_t> offsets = Int64sOf(tensor);
    std::vector<int64_t> before(static_cast<size_t>(leading.empty() ? 1 : rows_ / leading[0]));
    for (int64_t row = 0; row < rows_; ++row) {
      int64_t& expected = before[static_cast<size_t>(row) % before.size()];
      if (offsets[static_cast<size_t>(row)] != expected) {
        return InvalidArgument(what(), ": the row offset of row ", row, " is ", offsets[static_cast<size_t>(row)],
                               ", but the bitmask says ", expected);
      }
      const int64_t in_row = StoredIn(row);
      expected += in_row;
      stored_ += in_row;
    }
    compressed_shape_ = {stored_};
    return {};
  }

  Status CheckTwoOfFour() {
    if (columns_ % 4 != 0) return InvalidArgument(what(), " has ", columns_, " columns, which is no multiple of 4");
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t column = 0; column < columns_; column += 4) {
        const uint8_t byte = bitmask_[static_cast<size_t>(row * CeilDiv(columns_, 8) + column / 8)];
        if (const int stored = std::popcount((uint32_t{byte} >> (column % 8)) & 0xFu); stored != 2) {
          return InvalidArgument(what(), ": the bitmask of row ", row, " has ", stored,
                                 " bits of the four columns from ", column, " on; it must have 2");
        }
      }
    }
    compressed_shape_ = {rows_, columns_ / 2};
    return {};
  }

  StatusOr<Tensor> Fill() {
    SWIZZLE_ASSIGN_OR_RETURN(Tensor compressed, Take(kCompressed));
    if (compressed.shape != compressed_shape_) {
      return InvalidArgument(what(), ": its '", kCompressed, "' is ", ShapeText(compressed.shape),
                             ", but by its bitmask it must be ", ShapeText(compressed_shape_));
    }
    const auto elements = static_cast<size_t>(rows_ * columns_);
    if (compressed.dtype == DType::kInt8) {
      Tensor dense{DType::kInt8, shape_, std::vector<std::byte>(elements)};
      Scatter<std::byte>(compressed.bytes, dense.bytes);
      return dense;
    }
    SWIZZLE_ASSIGN_OR_RETURN(const Tensor values, ToFloat32(std::move(compressed), what()));
    Tensor dense{DType::kFloat32, shape_, std::vector<std::byte>(elements * sizeof(float))};
    Scatter(values.floats(), dense.floats());
    return dense;
  }

  template <typename T>
  void Scatter(std::span<const T> stored, std::span<T> dense) const {
    size_t next = 0;
    VisitStored(bitmask_, rows_, columns_, [&](int64_t row, int64_t column) {
      dense[static_cast<size_t>(row * columns_ + column)] = stored[next++];
    });
  }

  const SparsityFormat format_;
  const std::string prefix_;
  const int64_t max_bytes_;
  TensorMap& tensors_;
  Shape shape_;
  int64_t rows_ = 0, columns_ = 0;
  std::vector<uint8_t> bitmask_;
  int64_t stored_ = 0;
  Shape compressed_shape_;
};

}  // namespace

Status Decompress(SparsityFormat format, int64_t max_dense_bytes, TensorMap& tensors) {
  std::vector<std::string> prefixes;
  for (const auto& [name, tensor] : tensors) {
    if (name.ends_with(kBitmask)) prefixes.push_back(name.substr(0, name.size() - std::strlen(kBitmask)));
  }
  if (format != SparsityFormat::kDense) {
    for (const std::string& prefix : prefixes) {
      SWIZZLE_ASSIGN_OR_RETURN(Tensor weight, WeightDecompressor(format, prefix, max_dense_bytes, tensors).Run());
      max_dense_bytes -= static_cast<int64_t>(weight.bytes.size());
      if (!tensors.emplace(prefix + ".weight", std::move(weight)).second) {
        return InvalidArgument("the checkpoint has '", prefix, ".weight' both compressed and dense");
      }
    }
  }
  for (const auto& [name, tensor] : tensors) {
    for (const char* ending : {kBitmask, kCompressed, kOffsets}) {
      if (!name.ends_with(ending)) continue;
      return InvalidArgument("the checkpoint has the tensor '", name, "', a part of a compressed weight, ",
                             format == SparsityFormat::kDense ? "but config.json has no sparsity_config that says so"
                                                              : "without the other parts");
    }
  }
  return {};
}

}  // namespace swizzle
