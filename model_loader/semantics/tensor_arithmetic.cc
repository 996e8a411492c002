#include "model_loader/semantics/tensor_arithmetic.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/strides.h"

namespace swizzle {
namespace {

struct BroadcastOperand {
  const Tensor* tensor;
  Shape strides;  // by dimension of the result
};

// Elements from `first` on, `step` apart.
void Read(const Tensor& tensor, int64_t first, int64_t step, std::span<double> to) {
  VisitElementType(tensor.dtype, [&]<typename T>(T) {
    const std::byte* from = tensor.bytes.data() + static_cast<size_t>(first) * sizeof(T);
    for (double& number : to) {
      T element;
      std::memcpy(&element, from, sizeof(T));
      number = static_cast<double>(Widened(element));
      from += static_cast<size_t>(step) * sizeof(T);
    }
  });
}

void Write(std::span<const double> numbers, int64_t first, Tensor& tensor) {
  VisitElementType(tensor.dtype, [&]<typename T>(T) {
    std::byte* to = tensor.bytes.data() + static_cast<size_t>(first) * sizeof(T);
    for (const double number : numbers) {
      const T element = Narrowed<T>(number);
      std::memcpy(to, &element, sizeof(T));
      to += sizeof(T);
    }
  });
}

// result[i] = function(operands' elements there), which are as many as the function takes. A row of the last dimension
// at a time.
template <size_t kOperands, typename Function>
Tensor Computed(DType dtype, Shape shape, const std::array<BroadcastOperand, kOperands>& operands,
                const Function& function) {
  if (shape.empty()) shape = {1};
  const int64_t elements = ProductOf(shape, 0, std::ssize(shape)), row = shape.back();
  Tensor result{dtype, shape, std::vector<std::byte>(static_cast<size_t>(elements) * ElementBytes(dtype))};
  std::array<std::vector<double>, kOperands> rows;
  for (std::vector<double>& numbers : rows) numbers.resize(static_cast<size_t>(row));
  std::vector<double> made(static_cast<size_t>(row));
  Shape place(shape.size(), 0);
  for (int64_t first = 0; first < elements; first += row) {
    for (size_t k = 0; k < kOperands; ++k) {
      int64_t offset = 0;
      for (size_t d = 0; d + 1 < shape.size(); ++d) offset += place[d] * operands[k].strides[d];
      Read(*operands[k].tensor, offset, operands[k].strides.empty() ? 0 : operands[k].strides.back(), rows[k]);
    }
    for (size_t i = 0; i < made.size(); ++i) made[i] = function(rows, i);
    Write(made, first, result);
    for (size_t d = shape.size() - 1; d-- > 0 && ++place[d] == shape[d];) place[d] = 0;
  }
  return result;
}

double Identity(const std::array<std::vector<double>, 1>& rows, size_t i) { return rows[0][i]; }

}  // namespace

bool IsExactInDouble(DType dtype) {
  return dtype != DType::kString && dtype != DType::kInt64 && dtype != DType::kUint64 && dtype != DType::kBool;
}

Tensor CastTensor(const Tensor& tensor, DType to) {
  const Shape flat = {tensor.elements()};
  constexpr int64_t kRow = 4096;
  const int64_t row = flat[0] % kRow == 0 && flat[0] > 0 ? kRow : std::max<int64_t>(flat[0], 1);
  Tensor cast =
      flat[0] == 0 ? Tensor{to, {}, {}} : Computed<1>(to, {flat[0] / row, row}, {{{&tensor, Shape{row, 1}}}}, Identity);
  cast.shape = tensor.shape;
  return cast;
}

std::optional<Tensor> CombinedTensors(std::string_view op, const Tensor& a, const Tensor& b) {
  const bool computes = a.dtype == b.dtype && (IsFloating(a.dtype) || (a.dtype == DType::kInt32 && op != "Div"));
  const Shape shapes[] = {a.shape, b.shape};
  const StatusOr<Shape> shape = BroadcastShape(shapes);
  if (!computes || !shape.ok() || a.elements() == 0 || b.elements() == 0) return std::nullopt;
  if (ProductOf(*shape, 0, std::ssize(*shape)) != std::max(a.elements(), b.elements())) return std::nullopt;
  const std::array<BroadcastOperand, 2> operands = {
      {{&a, BroadcastStrides(a.shape, *shape)}, {&b, BroadcastStrides(b.shape, *shape)}}};
  const auto combined = [&](const auto& function) {
    Tensor tensor = Computed<2>(a.dtype, *shape, operands,
                                [&](const auto& rows, size_t i) { return function(rows[0][i], rows[1][i]); });
    tensor.shape = *shape;
    return std::optional(std::move(tensor));
  };
  if (op == "Add") return combined([](double x, double y) { return x + y; });
  if (op == "Sub") return combined([](double x, double y) { return x - y; });
  if (op == "Mul") return combined([](double x, double y) { return x * y; });
  if (op == "Div") return combined([](double x, double y) { return x / y; });
  return std::nullopt;
}

std::optional<Tensor> ScaledTensor(const Tensor& wholes, const Tensor& scales, const Tensor* zero_points,
                                   int64_t axis) {
  const int64_t rank = std::ssize(wholes.shape);
  if (axis < 0) axis += rank;
  if (!IsFloating(scales.dtype) || wholes.elements() == 0) return std::nullopt;
  const auto strides_of = [&](const Tensor& tensor) -> std::optional<Shape> {
    Shape strides(static_cast<size_t>(rank), 0);
    if (tensor.elements() == 1) return strides;
    if (tensor.shape.size() != 1 || axis < 0 || axis >= rank) return std::nullopt;
    if (tensor.shape[0] != wholes.shape[static_cast<size_t>(axis)]) return std::nullopt;
    strides[static_cast<size_t>(axis)] = 1;
    return strides;
  };
  const Tensor zero{DType::kUint8, {}, {std::byte{0}}};
  if (zero_points == nullptr) zero_points = &zero;
  const auto of_scales = strides_of(scales), of_zeros = strides_of(*zero_points);
  if (!of_scales || !of_zeros) return std::nullopt;
  const std::array<BroadcastOperand, 3> operands = {
      {{&wholes, DenseStrides(wholes.shape)}, {&scales, *of_scales}, {zero_points, *of_zeros}}};
  Tensor scaled = Computed<3>(scales.dtype, wholes.shape, operands,
                              [](const auto& rows, size_t i) { return (rows[0][i] - rows[2][i]) * rows[1][i]; });
  scaled.shape = wholes.shape;
  return scaled;
}

Tensor TransposedTensor(const Tensor& tensor, const std::vector<int64_t>& permutation) {
  const Shape dense = DenseStrides(tensor.shape);
  Shape shape, strides;
  for (const int64_t d : permutation) {
    shape.push_back(tensor.shape[static_cast<size_t>(d)]);
    strides.push_back(dense[static_cast<size_t>(d)]);
  }
  if (tensor.elements() == 0) return Tensor{tensor.dtype, std::move(shape), {}};
  Tensor transposed = Computed<1>(tensor.dtype, shape, {{{&tensor, std::move(strides)}}}, Identity);
  transposed.shape = std::move(shape);
  return transposed;
}

}  // namespace swizzle
