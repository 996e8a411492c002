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
  int32_t start(int64_t row) const { return start_[row]; }
  float scale(int64_t row) const { return scale_[row]; }

 private:
  int64_t cols_;
  std::vector<int8_t> weights_;
  std::vector<int32_t> start_;
  std::vector<float> scale_;
};

uint8_t ByteOf(float value, const OutputSteps& steps) {
  const float rounded = std::clamp(std::nearbyint(value), -1024.0f, 1024.0f);
  return static_cast<uint8_t>(std::clamp(static_cast<int32_t>(rounded) + steps.zero_point, steps.low, steps.high));
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
  constexpr int64_t kMostAtOnce = 8;
  const auto& weight = static_cast<const ByteRows&>(*args.weight);
  const OutputSteps steps = StepsOf(*args.problem);
  const int64_t batch = args.problem->output.batch;
  const bool real = args.problem->to.dtype == DType::kFloat32;
  const auto* const input = args.Input<uint8_t>(0);
  float* const reals = real ? args.Output<float>() : nullptr;
  uint8_t* const bytes = real ? nullptr : args.Output<uint8_t>();
  const auto run = [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t first = 0; first < batch; first += kMostAtOnce) {
        const int64_t count = std::min(kMostAtOnce, batch - first);
        int32_t sums[kMostAtOnce];
        kCells.products(input + first * weight.cols(), count, weight.Row(row), weight.cols(), sums);
        for (int64_t i = 0; i < count; ++i) {
          const float value = static_cast<float>(sums[i] + weight.start(row)) * weight.scale(row);
          const int64_t at = (first + i) * weight.rows() + row;
          if (real) {
            reals[at] = std::clamp(value, steps.real_low, steps.real_high);
          } else {
            bytes[at] = ByteOf(value, steps);
          }
        }
      }
    }
  };
  CpuStream::From(stream).ParallelRanges(weight.rows(), run, 16);
}

template void LinearBytes<vnni::kByteCells>(const KernelArgs&, Stream&);
template void LinearBytes<N_AVX3::kByteCells>(const KernelArgs&, Stream&);
template void LinearBytes<N_AVX2::kByteCells>(const KernelArgs&, Stream&);
template void LinearBytes<N_EMU128::kByteCells>(const KernelArgs&, Stream&);

}  // namespace swizzle::cpu
