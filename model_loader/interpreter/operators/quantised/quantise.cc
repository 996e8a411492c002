// Quantised operators: integers in and out, computed exactly in between.
#include <algorithm>
#include <cmath>

#include "kernels/base/dtype_row.h"
#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/operators/products/products.h"
#include "model_loader/interpreter/operators/windows/convolution.h"
#include "model_loader/interpreter/values/strided.h"

namespace swizzle::interpreter {
namespace {

constexpr int64_t kOpset = 13;  // of operators that others are made of

Status CheckEightBit(const Array& array, const std::string& what) {
  if (array.dtype == DType::kUint8 || array.dtype == DType::kInt8) return {};
  return InvalidArgument(what, " is ", DTypeName(array.dtype), "; it must be UINT8 or INT8");
}

// The range of a whole type of 8 or 16 bits.
std::pair<float, float> RangeOf(DType dtype) {
  const DTypeRow& row = RowOf(dtype);
  const float end = std::ldexp(1.0f, row.digits);
  return {row.kind == DTypeKind::kSigned ? -end : 0.0f, end - 1.0f};
}

// A scale or zero point as FP32: one, or one for each place along `axis` of `shape`, or, in blocks, for each element,
// with the strides to read it by.
struct PerAxis {
  Array values;
  Shape strides;
};

// Scales of blocks along an axis, each as often as its block has elements.
StatusOr<PerAxis> ReadBlocks(Call& call, const Array& given, const Shape& shape, int64_t axis, int64_t block) {
  const auto at = static_cast<size_t>(axis);
  const bool fits = axis >= 0 && at < shape.size() && given.rank() == static_cast<int64_t>(shape.size()) && block > 0;
  Shape blocks = shape;
  if (fits) blocks[at] = (shape[at] + block - 1) / block;
  if (!fits || given.shape != blocks) {
    return InvalidArgument("a scale or zero point has shape ", ShapeText(given.shape), " for blocks of ", block,
                           " along axis ", axis, " of ", ShapeText(shape));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Array values, call.As(given, DType::kFloat32));
  PerAxis per_axis;
  SWIZZLE_ASSIGN_OR_RETURN(per_axis.values, call.New(DType::kFloat32, shape));
  const int64_t inner = ProductOf(shape, axis + 1, given.rank()), outer = ProductOf(shape, 0, axis);
  const float* const from = values.As<float>().data();
  float* to = per_axis.values.Mutable<float>().data();
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < shape[at]; ++i, to += inner) {
      std::copy_n(from + (o * blocks[at] + i / block) * inner, inner, to);
    }
  }
  per_axis.strides = DenseStrides(shape);
  return per_axis;
}

StatusOr<PerAxis> ReadPerAxis(Call& call, const Array& given, const Shape& shape, int64_t axis, int64_t block = 0) {
  if (block != 0) return ReadBlocks(call, given, shape, axis, block);
  PerAxis per_axis;
  SWIZZLE_ASSIGN_OR_RETURN(per_axis.values, call.As(given, DType::kFloat32));
  per_axis.strides.assign(shape.size(), 0);
  if (given.elements() == 1) return per_axis;
  if (given.rank() != 1 || axis < 0 || axis >= static_cast<int64_t>(shape.size()) ||
      given.shape[0] != shape[static_cast<size_t>(axis)]) {
    return InvalidArgument("a scale or zero point has shape ", ShapeText(given.shape), " for axis ", axis, " of ",
                           ShapeText(shape));
  }
  per_axis.strides[static_cast<size_t>(axis)] = 1;
  return per_axis;
}

// `given`, or a zero where it is left out.
StatusOr<Array> ZeroPoint(Call& call, size_t i, DType absent) {
  if (call.Has(i)) return call.In(i);
  SWIZZLE_ASSIGN_OR_RETURN(Array zero, call.New(absent, {}));
  std::fill_n(zero.data.get(), zero.bytes(), std::byte{0});
  return zero;
}

// result = function(x, scale, zero point), FP32 all.
template <typename Function>
StatusOr<Array> MapScaled(Call& call, const Array& x, const PerAxis& scale, const PerAxis& zero,
                          const Function& function) {
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, x.shape));
  const StridedLoop<2> loop(x.shape, {scale.strides, zero.strides});
  loop.ForEachRun([&](int64_t position, const std::array<int64_t, 2>& offsets, int64_t count) {
    const float* s = scale.values.As<float>().data() + offsets[0];
    const float* z = zero.values.As<float>().data() + offsets[1];
    const float* from = x.As<float>().data() + position;
    float* to = y.Mutable<float>().data() + position;
    for (int64_t i = 0; i < count; ++i) to[i] = function(from[i], s[i * loop.Step(0)], z[i * loop.Step(1)]);
  });
  return y;
}

// Integers less their zero points: one, or one per place along `axis`.
StatusOr<Array> Centred(Call& call, size_t i, size_t zero_point, int64_t axis) {
  const Array& x = call.In(i);
  SWIZZLE_RETURN_IF_ERROR(CheckEightBit(x, Concat("input ", i)));
  SWIZZLE_ASSIGN_OR_RETURN(const Array given, ZeroPoint(call, zero_point, x.dtype));
  SWIZZLE_RETURN_IF_ERROR(CheckSameType(x, given));
  SWIZZLE_ASSIGN_OR_RETURN(const PerAxis zero, ReadPerAxis(call, given, x.shape, axis));
  SWIZZLE_ASSIGN_OR_RETURN(const Array real, call.As(x, DType::kFloat32));
  return MapScaled(call, real, zero, zero, [](float value, float, float z) { return value - z; });
}

float Quantised(float value, float zero, std::pair<float, float> range) {
  const float rounded = std::nearbyint(value) + zero;
  return rounded > range.first ? std::min(rounded, range.second) : range.first;  // not a number: the least
}

// INT32 sums as 8-bit numbers of scale inputs[y_scale] and zero point inputs[y_scale + 1]; the factor of each is
// alpha * a_scale * b_scale / y_scale, where b_scale may vary along `axis`.
StatusOr<Array> Requantised(Call& call, const Array& sums, int64_t axis, size_t y_scale_at = 6, double alpha = 1.0) {
  constexpr size_t kAScale = 1, kBScale = 4;
  SWIZZLE_ASSIGN_OR_RETURN(double a_scale, call.RealScalar(kAScale, 1.0));
  a_scale *= alpha;
  SWIZZLE_ASSIGN_OR_RETURN(const double y_scale, call.RealScalar(y_scale_at, 1.0));
  SWIZZLE_ASSIGN_OR_RETURN(const Array y_zero, ZeroPoint(call, y_scale_at + 1, DType::kUint8));
  SWIZZLE_RETURN_IF_ERROR(CheckEightBit(y_zero, "the result's zero point"));
  SWIZZLE_ASSIGN_OR_RETURN(const PerAxis scale, ReadPerAxis(call, call.In(kBScale), sums.shape, axis));
  SWIZZLE_ASSIGN_OR_RETURN(const PerAxis zero, ReadPerAxis(call, y_zero, sums.shape, axis));
  SWIZZLE_ASSIGN_OR_RETURN(const Array real, call.As(sums, DType::kFloat32));
  const auto range = RangeOf(y_zero.dtype);
  SWIZZLE_ASSIGN_OR_RETURN(const Array y, MapScaled(call, real, scale, zero, [&](float value, float s, float z) {
                             return Quantised(static_cast<float>(value * (a_scale * s / y_scale)), z, range);
                           }));
  return call.As(y, y_zero.dtype);
}

// INT32 sums as real numbers: times `factor` and input `scale`, one or one along the last axis.
StatusOr<Array> RealSums(Call& call, const Array& sums, double factor, size_t scale) {
  SWIZZLE_ASSIGN_OR_RETURN(const PerAxis by, ReadPerAxis(call, call.In(scale), sums.shape, sums.rank() - 1));
  SWIZZLE_ASSIGN_OR_RETURN(const Array real, call.As(sums, DType::kFloat32));
  return MapScaled(call, real, by, by,
                   [factor](float value, float s, float) { return static_cast<float>(value * (factor * s)); });
}

// The matrix, transposed if `transposes`.
StatusOr<Array> Turned(Call& call, const Array& matrix, int64_t transposes) {
  if (matrix.rank() != 2) return InvalidArgument("inputs 0 and 3 must be matrices");
  if (transposes == 0) return matrix;
  return Transposed(call, matrix, {1, 0});
}

// Adds bias [1 or m, 1 or n], [1 or n] or a scalar to sums [m, n].
Status AddBias(const Array& bias, Array& sums) {
  const Shape both[] = {sums.shape, bias.shape};
  const auto shape = BroadcastShape(both);
  if (bias.dtype != DType::kInt32 || !shape.ok() || *shape != sums.shape) {
    return InvalidArgument("the bias is ", DTypeName(bias.dtype), ShapeText(bias.shape),
                           "; it must be INT32 that fits ", ShapeText(sums.shape));
  }
  const StridedLoop<1> loop(sums.shape, {BroadcastStrides(bias.shape, sums.shape)});
  loop.ForEachRun([&](int64_t position, const std::array<int64_t, 1>& offsets, int64_t count) {
    const int32_t* add = bias.As<int32_t>().data() + offsets[0];
    int32_t* to = sums.Mutable<int32_t>().data() + position;
    for (int64_t i = 0; i < count; ++i) {
      to[i] = static_cast<int32_t>(static_cast<uint32_t>(to[i]) + static_cast<uint32_t>(add[i * loop.Step(0)]));
    }
  });
  return {};
}

}  // namespace

namespace {

// What both ways to and from whole numbers are given.
struct Scaling {
  int64_t axis = 1, block = 0;
  PerAxis scale, zero;
};

StatusOr<Scaling> ReadScaling(Call& call, const Shape& shape, const Array& zero_point) {
  Scaling scaling;
  SWIZZLE_ASSIGN_OR_RETURN(scaling.axis, call.Int("axis", 1));
  SWIZZLE_ASSIGN_OR_RETURN(scaling.block, call.Int("block_size", 0));
  if (scaling.axis < 0) scaling.axis += static_cast<int64_t>(shape.size());
  SWIZZLE_ASSIGN_OR_RETURN(scaling.scale, ReadPerAxis(call, call.In(1), shape, scaling.axis, scaling.block));
  const int64_t block = zero_point.rank() == 0 ? 0 : scaling.block;  // a zero that is left out
  SWIZZLE_ASSIGN_OR_RETURN(scaling.zero, ReadPerAxis(call, zero_point, shape, scaling.axis, block));
  return scaling;
}

}  // namespace

StatusOr<Array> QuantizeLinear(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.Floats(0));
  SWIZZLE_ASSIGN_OR_RETURN(const Array zero_point, ZeroPoint(call, 2, DType::kUint8));
  const DType dtype = zero_point.dtype;
  if (dtype != DType::kUint16 && dtype != DType::kInt16) {
    SWIZZLE_RETURN_IF_ERROR(CheckEightBit(zero_point, "the zero point"));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Scaling scaling, ReadScaling(call, x.shape, zero_point));
  const auto range = RangeOf(dtype);
  const auto quantised = [range](float value, float s, float z) { return Quantised(value / s, z, range); };
  SWIZZLE_ASSIGN_OR_RETURN(const Array y, MapScaled(call, x, scaling.scale, scaling.zero, quantised));
  return call.As(y, dtype);
}

// FP16 stands for FP8 here, which the reader made of it: the standard has no other reals.
StatusOr<Array> DequantizeLinear(Call& call) {
  const Array& x = call.In(0);
  if (IsFloating(x.dtype) && x.dtype != DType::kFloat16) {
    return InvalidArgument("input 0 is ", DTypeName(x.dtype), "; it must be an integer");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Array zero_point, ZeroPoint(call, 2, x.dtype));
  SWIZZLE_ASSIGN_OR_RETURN(const Scaling scaling, ReadScaling(call, x.shape, zero_point));
  SWIZZLE_ASSIGN_OR_RETURN(const Array real, call.As(x, DType::kFloat32));
  const auto dequantised = [](float value, float s, float z) { return (value - z) * s; };
  SWIZZLE_ASSIGN_OR_RETURN(const Array y, MapScaled(call, real, scaling.scale, scaling.zero, dequantised));
  return call.As(y, call.In(1).dtype);
}

StatusOr<Results> DynamicQuantizeLinear(Call& call) {
  const Array& x = call.In(0);
  if (x.dtype != DType::kFloat32) return InvalidArgument("input 0 must be FP32");
  float low = 0.0f, high = 0.0f;
  for (const float value : x.As<float>()) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const float scale = (high - low) / 255.0f;
  const float zero = scale > 0.0f ? std::nearbyint(std::clamp(-low / scale, 0.0f, 255.0f)) : 0.0f;
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kUint8, x.shape));
  SWIZZLE_ASSIGN_OR_RETURN(Array scale_out, call.New(DType::kFloat32, {}));
  SWIZZLE_ASSIGN_OR_RETURN(Array zero_out, call.New(DType::kUint8, {}));
  const auto from = x.As<float>();
  const auto to = y.Mutable<uint8_t>();
  for (size_t i = 0; i < from.size(); ++i) {
    to[i] = static_cast<uint8_t>(Quantised(scale > 0.0f ? from[i] / scale : 0.0f, zero, {0.0f, 255.0f}));
  }
  scale_out.Mutable<float>()[0] = scale;
  zero_out.Mutable<uint8_t>()[0] = static_cast<uint8_t>(zero);
  return Results{y, scale_out, zero_out};
}

StatusOr<Array> MatMulInteger(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array a, Centred(call, 0, 2, call.In(0).rank() - 2));
  SWIZZLE_ASSIGN_OR_RETURN(const Array b, Centred(call, 1, 3, call.In(1).rank() - 1));
  return IntegerMatMul(call, a, b);
}

StatusOr<Array> ConvInteger(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, Centred(call, 0, 2, 1));
  SWIZZLE_ASSIGN_OR_RETURN(const Array w, Centred(call, 1, 3, 0));
  return IntegerConvolution(call, x, w);
}

StatusOr<Array> QLinearMatMul(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array a, Centred(call, 0, 2, call.In(0).rank() - 2));
  SWIZZLE_ASSIGN_OR_RETURN(const Array b, Centred(call, 3, 5, call.In(3).rank() - 1));
  SWIZZLE_ASSIGN_OR_RETURN(const Array sums, IntegerMatMul(call, a, b));
  return Requantised(call, sums, sums.rank() - 1);
}

StatusOr<Array> QLinearConv(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, Centred(call, 0, 2, 1));
  SWIZZLE_ASSIGN_OR_RETURN(const Array w, Centred(call, 3, 5, 0));
  SWIZZLE_ASSIGN_OR_RETURN(Array sums, IntegerConvolution(call, x, w));
  if (call.Has(8)) {
    const Array& bias = call.In(8);
    const int64_t channels = sums.shape[1], plane = ProductOf(sums.shape, 2, sums.rank());
    if (bias.dtype != DType::kInt32 || bias.shape != Shape{channels}) {
      return InvalidArgument("the bias must be INT32 [", channels, "]");
    }
    const auto values = sums.Mutable<int32_t>();
    for (size_t i = 0; i < values.size(); ++i) {
      const int32_t add = bias.As<int32_t>()[i / static_cast<size_t>(plane) % static_cast<size_t>(channels)];
      values[i] = static_cast<int32_t>(static_cast<uint32_t>(values[i]) + static_cast<uint32_t>(add));
    }
  }
  return Requantised(call, sums, 1);
}

StatusOr<Array> QGemm(Call& call) {
  constexpr size_t kA = 0, kAZero = 2, kB = 3, kBScale = 4, kBZero = 5, kC = 6, kYScale = 7;
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t transpose_a, call.Int("transA", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t transpose_b, call.Int("transB", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const float alpha, call.Float("alpha", 1.0f));
  SWIZZLE_ASSIGN_OR_RETURN(Array a, Centred(call, kA, kAZero, 0));
  SWIZZLE_ASSIGN_OR_RETURN(Array b, Centred(call, kB, kBZero, transpose_b != 0 ? 0 : 1));
  SWIZZLE_ASSIGN_OR_RETURN(a, Turned(call, a, transpose_a));
  SWIZZLE_ASSIGN_OR_RETURN(b, Turned(call, b, transpose_b));
  SWIZZLE_ASSIGN_OR_RETURN(Array sums, IntegerMatMul(call, a, b));
  if (call.Has(kC)) SWIZZLE_RETURN_IF_ERROR(AddBias(call.In(kC), sums));
  if (call.Has(kYScale)) return Requantised(call, sums, 1, kYScale, alpha);
  SWIZZLE_ASSIGN_OR_RETURN(const double a_scale, call.RealScalar(1, 1.0));
  return RealSums(call, sums, alpha * a_scale, kBScale);
}

StatusOr<Array> MatMulIntegerToFloat(Call& call) {
  constexpr size_t kA = 0, kB = 1, kAScale = 2, kBScale = 3, kAZero = 4, kBZero = 5, kBias = 6;
  SWIZZLE_ASSIGN_OR_RETURN(const Array a, Centred(call, kA, kAZero, call.In(kA).rank() - 2));
  SWIZZLE_ASSIGN_OR_RETURN(const Array b, Centred(call, kB, kBZero, call.In(kB).rank() - 1));
  SWIZZLE_ASSIGN_OR_RETURN(const Array sums, IntegerMatMul(call, a, b));
  SWIZZLE_ASSIGN_OR_RETURN(const double a_scale, call.RealScalar(kAScale, 1.0));
  SWIZZLE_ASSIGN_OR_RETURN(const Array product, RealSums(call, sums, a_scale, kBScale));
  if (!call.Has(kBias)) return product;
  const Array operands[] = {product, call.In(kBias)};
  Call add(call.node(), kOpset, operands, call.memory(), call.stream());
  return Add(add);
}

StatusOr<Array> DynamicQuantizeMatMul(Call& call) {
  constexpr size_t kB = 1, kBScale = 2, kBZero = 3, kBias = 4;
  SWIZZLE_ASSIGN_OR_RETURN(const Results a, DynamicQuantizeLinear(call));  // of input 0
  const auto given = [&](size_t i) { return call.Has(i) ? call.In(i) : Array(); };
  const Array operands[] = {a[0], call.In(kB), a[1], call.In(kBScale), a[2], given(kBZero), given(kBias)};
  Call product(call.node(), call.opset(), operands, call.memory(), call.stream());
  return MatMulIntegerToFloat(product);
}

}  // namespace swizzle::interpreter
