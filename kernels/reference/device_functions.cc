#include "kernels/reference/device_functions.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/backend/point_functions.h"

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

// Computed in Wide, with results of T.
template <typename T, typename Wide, int kInputs>
void MapInputs(const Pointwise& call) {
  ForEachIndex(call.rank, call.dims, [&](int64_t position, const StridedDims& index) {
    Wide x[kInputs];
    for (int k = 0; k < kInputs; ++k) {
      const Pointwise::Input& input = call.inputs[k];
      x[k] = PointAt<Wide>(input.data, input.dtype, OffsetOf(call.rank, index, input.strides));
    }
    const auto y = static_cast<T>(PointOf(call.op, call.alpha, call.beta, x));
    PutPoint(y, call.output, call.output_dtype, position);
  });
}
template <typename T, typename Wide>
void MapElements(const Pointwise& call) {
  const int inputs = InputsOf(call.op);
  if (inputs == 1) return MapInputs<T, Wide, 1>(call);
  inputs == 2 ? MapInputs<T, Wide, 2>(call) : MapInputs<T, Wide, 3>(call);
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
    MapElements<int64_t, int64_t>(call);
  } else {
    MapElements<float, double>(call);
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
      auto index = PointAt<int64_t>(call.indices, call.index_dtype, j);
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
