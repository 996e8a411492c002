#include "kernels/cpu/int8/linear_bytes.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cpu/runtime/cpu_stream.h"

namespace swizzle::cpu {
namespace {

// Rows as they are, one after another.
class ByteRows final : public PackedWeight {
 public:
  explicit ByteRows(const ByteWeight& weight)
      : cols_(weight.cols), weights_(weight.rows * weight.cols), start_(weight.start), scale_(weight.scale) {
    for (int64_t row = 0; row < weight.rows; ++row) {
      for (const ByteWeight::Entry& entry : weight.entries[row]) weights_[row * cols_ + entry.column] = entry.value;
    }
  }

  size_t bytes() const override {
    return weights_.size() + start_.size() * sizeof(int32_t) + scale_.size() * sizeof(float);
  }
  int64_t rows() const { return std::ssize(start_); }
  int64_t cols() const { return cols_; }
  const int8_t* Row(int64_t row) const { return weights_.data() + row * cols_; }
  const int32_t* starts() const { return start_.data(); }
  const float* scales() const { return scale_.data(); }

 private:
  int64_t cols_;
  std::vector<int8_t> weights_;
  std::vector<int32_t> start_;
  std::vector<float> scale_;
};

// Of a vector with neighbouring rows.
struct RowSums {
  const int32_t* sums;
  const int32_t* start;
  const float* scale;
  int64_t rows;

  float Value(int64_t i) const { return static_cast<float>(sums[i] + start[i]) * scale[i]; }
};

void EndRows(const RowSums& of, const OutputSteps& steps, float* to) {
  const float low = steps.real_low, high = steps.real_high;
  for (int64_t i = 0; i < of.rows; ++i) to[i] = std::clamp(of.Value(i), low, high);
}

void EndRows(const RowSums& of, const OutputSteps& steps, uint8_t* to) {
  for (int64_t i = 0; i < of.rows; ++i) {
    const float rounded = std::clamp(std::nearbyint(of.Value(i)), -1024.0f, 1024.0f);
    to[i] = static_cast<uint8_t>(std::clamp(static_cast<int32_t>(rounded) + steps.zero_point, steps.low, steps.high));
  }
}

}  // namespace

bool AcceptsLinearBytes(const Problem& problem) {
  if (!ReadsBytes(problem, Layout::kNchw) || !problem.window().IsPointwise() || problem.input.plane() != 1)
    return false;
  if (problem.epilogue.function || problem.epilogue.residual) return false;
  return problem.to == Storage{Layout::kNchw, DType::kFloat32} || WritesBytes(problem, Layout::kNchw);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareLinearBytes(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const ByteWeight bytes, MakeByteWeight(weight, problem));
  return std::make_unique<ByteRows>(bytes);
}

template <const ByteCells& kCells>
void LinearBytes(const KernelArgs& args, Stream& stream) {
  constexpr int64_t kRows = 32, kVectors = 8;  // at once
  const auto& weight = static_cast<const ByteRows&>(*args.weight);
  const OutputSteps steps = StepsOf(*args.problem);
  const int64_t batch = args.problem->output.batch;
  const bool real = args.problem->to.dtype == DType::kFloat32;
  const auto run = [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row += kRows) {
      const int64_t rows = std::min(kRows, end - row);
      for (int64_t first = 0; first < batch; first += kVectors) {
        const int64_t count = std::min(kVectors, batch - first);
        int32_t sums[kRows * kVectors];
        kCells.products(args.Input<uint8_t>(0) + first * weight.cols(), count, weight.Row(row), rows, weight.cols(),
                        sums);
        for (int64_t i = 0; i < count; ++i) {
          const int64_t at = (first + i) * weight.rows() + row;
          const RowSums of = {sums + i * rows, weight.starts() + row, weight.scales() + row, rows};
          real ? EndRows(of, steps, args.Output<float>() + at) : EndRows(of, steps, args.Output<uint8_t>() + at);
        }
      }
    }
  };
  CpuStream::From(stream).ParallelRanges(weight.rows(), run, kRows);
}

template void LinearBytes<vnni::kByteCells>(const KernelArgs&, Stream&);
template void LinearBytes<N_AVX3::kByteCells>(const KernelArgs&, Stream&);
template void LinearBytes<N_AVX2::kByteCells>(const KernelArgs&, Stream&);
template void LinearBytes<N_EMU128::kByteCells>(const KernelArgs&, Stream&);

}  // namespace swizzle::cpu
