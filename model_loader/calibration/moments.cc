#include "model_loader/calibration/moments.h"

#include <algorithm>

#include "kernels/cpu/conv/sgemm.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "model_loader/interpreter/operators/windows/window.h"

namespace swizzle {
namespace {

using interpreter::Array;
using interpreter::Call;

constexpr int64_t kBlock = 4096;  // vectors of one product

// Adds products of FP32 blocks up in double precision.
class Accumulator {
 public:
  Accumulator(Call& call, int64_t inputs)
      : stream_(cpu::CpuStream::From(call.stream())), moments_{inputs, std::vector<double>(inputs * inputs)} {
    product_.resize(inputs * inputs);
  }

  // `vectors` columns of x, [inputs, vectors].
  void Add(const cpu::SgemmOperand& x, int64_t vectors) {
    const int64_t n = moments_.inputs;
    stream_.ParallelRanges(n, [&](int64_t, int64_t begin, int64_t end) {
      cpu::SgemmOperand rows = x, turned = x;
      rows.data += x.transposed ? begin : begin * x.stride;
      turned.transposed = !x.transposed;
      float* const product = product_.data() + begin * n;
      stream_.Keep(cpu::Sgemm(end - begin, n, vectors, rows, turned, product, n));
      for (int64_t i = begin * n; i < end * n; ++i) moments_.sums[i] += product_[i];
    });
  }

  InputMoments Take() { return std::move(moments_); }

 private:
  cpu::CpuStream& stream_;
  InputMoments moments_;
  std::vector<float> product_;
};

// x [vectors, inputs], or its transpose.
StatusOr<InputMoments> OfRows(Call& call, const Array& x, int64_t inputs, bool transposed) {
  Accumulator accumulator(call, inputs);
  const int64_t vectors = inputs == 0 ? 0 : x.elements() / inputs;
  const float* const data = x.As<float>().data();
  for (int64_t begin = 0; begin < vectors; begin += kBlock) {
    const int64_t count = std::min(kBlock, vectors - begin);
    if (transposed) {
      accumulator.Add({data + begin, vectors}, count);
    } else {
      accumulator.Add({data + begin * inputs, inputs, true}, count);
    }
  }
  return accumulator.Take();
}

// [depth, count] of patches from `begin` on, counted over all images.
void GatherPatches(const interpreter::Window& window, const Array& x, std::span<const int32_t> taps, int64_t begin,
                   int64_t count, float* patches) {
  const int64_t positions = window.positions(), plane = window.plane(), channels = x.shape[1];
  const float* const data = x.As<float>().data();
  for (int64_t channel = 0; channel < channels; ++channel) {
    for (int64_t tap = 0; tap < window.taps(); ++tap, patches += count) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t image = (begin + i) / positions;
        const int32_t source = taps[tap * positions + (begin + i) % positions];
        patches[i] = source < 0 ? 0.0f : data[(image * channels + channel) * plane + source];
      }
    }
  }
}

StatusOr<InputMoments> OfPatches(Call& call, const Array& x) {
  const Shape& weight = call.In(1).shape;
  if (x.rank() < 3 || weight.size() != x.shape.size() || weight[1] != x.shape[1]) {
    return InvalidArgument("a weight of shape ", ShapeText(weight), " does not fit an input of ", ShapeText(x.shape));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const interpreter::Window window,
                           interpreter::ReadWindow(call, x.shape, Shape(weight.begin() + 2, weight.end())));
  SWIZZLE_ASSIGN_OR_RETURN(const Array taps, interpreter::Taps(call, window));
  const int64_t depth = x.shape[1] * window.taps(), patches = x.shape[0] * window.positions();
  Accumulator accumulator(call, depth);
  std::vector<float> block(depth * std::min(kBlock, patches));
  for (int64_t begin = 0; begin < patches; begin += kBlock) {
    const int64_t count = std::min(kBlock, patches - begin);
    GatherPatches(window, x, taps.As<int32_t>(), begin, count, block.data());
    accumulator.Add({block.data(), count}, count);
  }
  return accumulator.Take();
}

}  // namespace

StatusOr<InputMoments> MomentsOf(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.Floats(0));
  const Shape& weight = call.In(1).shape;
  const std::string& op = call.node().op;
  if (op == "Conv") return OfPatches(call, x);
  if (weight.size() != 2) return Unimplemented("a stack of weights cannot be calibrated; skip it");
  if (op == "MatMul" && x.rank() >= 1 && x.shape.back() == weight[0]) return OfRows(call, x, weight[0], false);
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t transpose_a, call.Int("transA", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t transpose_b, call.Int("transB", 0));
  const int64_t inputs = weight[transpose_b != 0];
  if (op == "Gemm" && x.rank() == 2 && x.shape[transpose_a == 0] == inputs) {
    return OfRows(call, x, inputs, transpose_a != 0);
  }
  return Unimplemented("the inputs of this weight cannot be calibrated; skip it");
}

}  // namespace swizzle
