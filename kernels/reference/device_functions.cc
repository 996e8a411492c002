#include "kernels/reference/device_functions.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

namespace swizzle::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Calls visit(position, index) for every index below `dims`, row-major.
template <typename Visit>
void ForEachIndex(int rank, const StridedDims& dims, const Visit& visit) {
  int64_t count = 1;
  for (int d = 0; d < rank; ++d) count *= dims[d];
  for (int64_t i = 0; i < count; ++i) {
    StridedDims index = {};
    int64_t rest = i;
    for (int d = rank - 1; d >= 0; --d) {
      index[d] = rest % dims[d];
      rest /= dims[d];
    }
    visit(i, index);
  }
}

int64_t OffsetOf(int rank, const StridedDims& index, const StridedDims& strides) {
  int64_t offset = 0;
  for (int d = 0; d < rank; ++d) offset += index[d] * strides[d];
  return offset;
}

template <typename T>
T ElementAt(const void* data, DType dtype, int64_t i) {
  if (dtype == DType::kFloat32) return static_cast<T>(static_cast<const float*>(data)[i]);
  if (dtype == DType::kInt64) return static_cast<T>(static_cast<const int64_t*>(data)[i]);
  if (dtype == DType::kInt32) return static_cast<T>(static_cast<const int32_t*>(data)[i]);
  return static_cast<T>(static_cast<const uint8_t*>(data)[i]);
}

template <typename T>
void PutElement(T value, void* data, DType dtype, int64_t i) {
  if (dtype == DType::kFloat32) {
    static_cast<float*>(data)[i] = static_cast<float>(value);
  } else if (dtype == DType::kInt64) {
    static_cast<int64_t*>(data)[i] = static_cast<int64_t>(value);
  } else if (dtype == DType::kInt32) {
    static_cast<int32_t*>(data)[i] = static_cast<int32_t>(value);
  } else {
    static_cast<uint8_t*>(data)[i] = dtype == DType::kBool ? value != 0 : static_cast<uint8_t>(value);
  }
}

double RealOfOne(const Pointwise& call, double x) {
  switch (call.op) {
    case PointOp::kFloor:
      return std::floor(x);
    case PointOp::kCeil:
      return std::ceil(x);
    case PointOp::kExp:
      return std::exp(x);
    case PointOp::kLog:
      return std::log(x);
    case PointOp::kSqrt:
      return std::sqrt(x);
    case PointOp::kReciprocal:
      return 1 / x;
    case PointOp::kErf:
      return std::erf(x);
    case PointOp::kSin:
      return std::sin(x);
    case PointOp::kCos:
      return std::cos(x);
    case PointOp::kTanh:
      return std::tanh(x);
    case PointOp::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case PointOp::kSoftplus:
      return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
    case PointOp::kGelu:
      return x / 2 * (1 + std::erf(x / std::numbers::sqrt2));
    case PointOp::kGeluTanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case PointOp::kLeakyRelu:
      return x < 0 ? call.alpha * x : x;
    case PointOp::kElu:
      return x < 0 ? call.alpha * std::expm1(x) : x;
    case PointOp::kHardSigmoid:
      return std::clamp<double>(call.alpha * x + call.beta, 0, 1);
    case PointOp::kClip:
      return x > call.beta ? call.beta : std::max<double>(x, std::min(call.alpha, call.beta));
    default:
      return x;
  }
}

template <typename T>
T OfOne(const Pointwise& call, T x) {
  switch (call.op) {
    case PointOp::kAbs:
      return x < 0 ? -x : x;
    case PointOp::kNeg:
      return -x;
    case PointOp::kRelu:
      return x < 0 ? T(0) : x;
    case PointOp::kNot:
      return x == 0;
    default:
      return call.integers ? x : static_cast<T>(RealOfOne(call, static_cast<double>(x)));
  }
}

template <typename T>
T OfTwo(PointOp op, T x, T y) {
  switch (op) {
    case PointOp::kAdd:
      return x + y;
    case PointOp::kSub:
      return x - y;
    case PointOp::kMul:
      return x * y;
    case PointOp::kDiv:
      if constexpr (std::is_integral_v<T>) return y == 0 ? 0 : x / y;
      return x / y;
    case PointOp::kPow:
      return static_cast<T>(std::pow(static_cast<double>(x), static_cast<double>(y)));
    case PointOp::kMax:
      return std::max(x, y);
    case PointOp::kMin:
      return std::min(x, y);
    case PointOp::kPRelu:
      return x < 0 ? x * y : x;
    case PointOp::kEqual:
      return x == y;
    case PointOp::kGreater:
      return x > y;
    case PointOp::kGreaterOrEqual:
      return x >= y;
    case PointOp::kLess:
      return x < y;
    case PointOp::kLessOrEqual:
      return x <= y;
    case PointOp::kAnd:
      return x != 0 && y != 0;
    default:
      return x != 0 || y != 0;
  }
}

template <typename T>
void MapElements(const Pointwise& call) {
  ForEachIndex(call.rank, call.dims, [&](int64_t position, const StridedDims& index) {
    T x[3] = {};
    for (int k = 0; k < InputsOf(call.op); ++k) {
      const Pointwise::Input& input = call.inputs[k];
      x[k] = ElementAt<T>(input.data, input.dtype, OffsetOf(call.rank, index, input.strides));
    }
    const int inputs = InputsOf(call.op);
    const T y = inputs == 1 ? OfOne(call, x[0]) : inputs == 2 ? OfTwo(call.op, x[0], x[1]) : x[0] != 0 ? x[1] : x[2];
    PutElement(y, call.output, call.output_dtype, position);
  });
}

template <typename T>
void SumAlong(const RowsSummed& call) {
  for (int64_t row = 0; row < call.rows; ++row) {
    T total = 0;
    for (int64_t step = 0; step < call.length; ++step) {
      const int64_t i = row * call.length + (call.reverse ? call.length - 1 - step : step);
      const T before = total;
      total += static_cast<const T*>(call.from)[i];
      static_cast<T*>(call.to)[i] = call.exclusive ? before : total;
    }
  }
}

}  // namespace

void HostFunctions::Copy(const StridedCopy& call, Stream&) const {
  const auto bytes = static_cast<int64_t>(call.element_bytes);
  ForEachIndex(call.rank, call.dims, [&](int64_t, const StridedDims& index) {
    const auto* from = static_cast<const std::byte*>(call.from) + OffsetOf(call.rank, index, call.from_strides) * bytes;
    auto* to = static_cast<std::byte*>(call.to) + OffsetOf(call.rank, index, call.to_strides) * bytes;
    std::memcpy(to, from, call.element_bytes);
  });
}

void HostFunctions::Map(const Pointwise& call, Stream&) const {
  if (call.integers) {
    MapElements<int64_t>(call);
  } else {
    MapElements<float>(call);
  }
}

void HostFunctions::Reduce(const RowsReduced& call, Stream&) const {
  for (int64_t row = 0; row < call.rows; ++row) {
    const float* from = call.from + row * call.length;
    double sum = 0, squares = 0, largest = -kInfinity, smallest = kInfinity;
    for (int64_t i = 0; i < call.length; ++i) {
      sum += from[i];
      squares += static_cast<double>(from[i]) * from[i];
      largest = std::max<double>(largest, from[i]);
      smallest = std::min<double>(smallest, from[i]);
    }
    const double results[] = {sum, sum / static_cast<double>(call.length), largest, smallest, squares};
    call.to[row] = static_cast<float>(results[static_cast<size_t>(call.reduction)]);
  }
}

void HostFunctions::Sum(const RowsSummed& call, Stream&) const {
  if (call.dtype == DType::kInt64) {
    SumAlong<int64_t>(call);
  } else {
    SumAlong<float>(call);
  }
}

void HostFunctions::Softmax(const RowsSoftmax& call, Stream&) const {
  for (int64_t row = 0; row < call.outer * call.middle * call.inner; ++row) {
    const int64_t bias = row % call.inner * call.bias_strides[2] +
                         row / call.inner % call.middle * call.bias_strides[1] +
                         row / call.inner / call.middle * call.bias_strides[0];
    const auto score = [&](int64_t i) {
      return static_cast<double>(call.scale) * call.from[row * call.length + i] +
             (call.bias == nullptr ? 0.0 : static_cast<double>(call.bias[bias + i]));
    };
    double largest = -kInfinity, total = 0;
    for (int64_t i = 0; i < call.length; ++i) largest = std::max(largest, score(i));
    for (int64_t i = 0; i < call.length; ++i) total += std::exp(score(i) - largest);
    for (int64_t i = 0; i < call.length; ++i) {
      const double power = largest == -kInfinity ? 0.0 : std::exp(score(i) - largest) / total;
      call.to[row * call.length + i] = static_cast<float>(power);
    }
  }
}

void HostFunctions::Attend(const HeadsAttended& call, Stream& stream) const {
  std::vector<float> scores(static_cast<size_t>(call.keys));
  const auto line = [](const HeadView& view, int64_t sequence, int64_t head, int64_t token) {
    return view.data + sequence * view.sequence_stride + head * view.head_stride + token * view.token_stride;
  };
  for (int64_t i = 0; i < call.sequences * call.heads * call.queries; ++i) {
    const int64_t token = i % call.queries, head = i / call.queries % call.heads,
                  sequence = i / call.queries / call.heads;
    const float* const query = line(call.query, sequence, head, token);
    for (int64_t k = 0; k < call.keys; ++k) {
      const float* const key = line(call.key, sequence, head, k);
      scores[k] = static_cast<float>(std::inner_product(query, query + call.channels, key, 0.0));
    }
    const int64_t turn = call.bias_turns > 0 ? sequence % call.bias_turns : sequence;
    const float* const bias = call.bias.data == nullptr ? nullptr : line(call.bias, turn, head, token);
    Softmax({.length = call.keys, .scale = call.scale, .from = scores.data(), .bias = bias, .to = scores.data()},
            stream);
    float* const to =
        call.to + sequence * call.to_sequence_stride + head * call.to_head_stride + token * call.to_token_stride;
    for (int64_t c = 0; c < call.value_channels; ++c) {
      double sum = 0;
      for (int64_t k = 0; k < call.keys; ++k)
        sum += static_cast<double>(scores[k]) * line(call.value, sequence, head, k)[c];
      to[c] = static_cast<float>(sum);
    }
  }
}

void HostFunctions::Normalise(const RowsNormalised& call, Stream&) const {
  for (int64_t row = 0; row < call.rows; ++row) {
    const float* from = call.from + row * call.length;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < call.length; ++i) sum += from[i];
    const double mean = sum / static_cast<double>(call.length);
    for (int64_t i = 0; i < call.length; ++i) squares += (from[i] - mean) * (from[i] - mean);
    const double deviation = std::sqrt(squares / static_cast<double>(call.length) + call.epsilon);
    for (int64_t i = 0; i < call.length; ++i) {
      const double scale = call.scale == nullptr ? 1.0 : call.scale[i],
                   shift = call.shift == nullptr ? 0.0 : call.shift[i];
      call.to[row * call.length + i] = static_cast<float>((from[i] - mean) / deviation * scale + shift);
    }
  }
}

void HostFunctions::Pick(const Picks& call, Stream&) const {
  auto* to = static_cast<std::byte*>(call.to);
  for (int64_t i = 0; i < call.outer; ++i) {
    for (int64_t j = 0; j < call.count; ++j, to += call.piece_bytes) {
      auto index = ElementAt<int64_t>(call.indices, call.index_dtype, j);
      if (index < 0) index += call.size;
      if (index < 0 || index >= call.size) {
        *call.bad = call.mark;
        index = 0;
      }
      const auto* from = static_cast<const std::byte*>(call.from) + (i * call.size + index) * call.piece_bytes;
      std::memcpy(to, from, static_cast<size_t>(call.piece_bytes));
    }
  }
}

void HostFunctions::Multiply(const StackedProduct& call, Stream&) const {
  for (int64_t b = 0; b < call.batch; ++b) {
    for (int64_t i = 0; i < call.m; ++i) {
      for (int64_t j = 0; j < call.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < call.k; ++k) {
          const float left = call.a.data[b * call.a.batch_stride + i * call.a.row_stride + k * call.a.column_stride];
          const float right = call.b.data[b * call.b.batch_stride + k * call.b.row_stride + j * call.b.column_stride];
          sum += static_cast<double>(left) * right;
        }
        call.to[b * call.to_batch_stride + i * call.to_row_stride + j] = static_cast<float>(sum);
      }
    }
  }
}

void HostFunctions::Gather(const ColumnsGathered& call, Stream&) const {
  const int64_t column = call.taps * call.positions;
  for (int64_t i = 0; i < call.planes * column; ++i) {
    const int32_t source = call.sources[i % column];
    call.to[i] = source < 0 ? 0.0f : call.from[i / column * call.plane + source];
  }
}

void HostFunctions::Sum(const ColumnsSummed& call, Stream&) const {
  for (int64_t i = 0; i < call.planes * call.plane; ++i) {
    double sum = 0;
    for (int32_t e = call.offsets[i % call.plane]; e < call.offsets[i % call.plane + 1]; ++e) {
      sum += call.from[i / call.plane * call.columns + call.entries[e]];
    }
    call.to[i] = static_cast<float>(sum);
  }
}

void HostFunctions::Resize(const Resized& call, Stream&) const {
  for (int64_t i = 0; i < call.outer * call.to_size * call.inner; ++i) {
    const WeightedTaps& taps = call.taps[i / call.inner % call.to_size];
    const int64_t first = i / call.inner / call.to_size * call.from_size * call.inner + i % call.inner;
    double sum = taps.start;
    for (int k = 0; k < taps.count; ++k) {
      sum += static_cast<double>(taps.weights[k]) * call.from[first + taps.at[k] * call.inner];
    }
    call.to[i] = static_cast<float>(sum);
  }
}

void HostFunctions::Pool(const Pooled& call, Stream&) const {
  for (int64_t i = 0; i < call.planes * call.positions; ++i) {
    const int64_t position = i % call.positions;
    double sum = 0, largest = -kInfinity;
    for (int64_t tap = 0; tap < call.taps; ++tap) {
      const int32_t source = call.sources[tap * call.positions + position];
      if (source < 0) continue;
      const double x = call.from[i / call.positions * call.plane + source];
      sum += x;
      largest = std::max(largest, x);
    }
    call.to[i] = static_cast<float>(call.divisors == nullptr ? largest : sum / call.divisors[position]);
  }
}

}  // namespace swizzle::reference
