#include "kernels/cuda/conv/n_m/conv_n_m.h"

#include <limits>

#include "kernels/cuda/conv/operands/im2col.h"
#include "kernels/cuda/runtime/queue.h"

namespace swizzle::cuda {
namespace {

class TwoOfFourWeight final : public PackedWeight {
 public:
  explicit TwoOfFourWeight(std::unique_ptr<TwoOfFour> packed) : packed_(std::move(packed)) {}
  size_t bytes() const override { return packed_->bytes(); }
  const TwoOfFour& packed() const { return *packed_; }

 private:
  const std::unique_ptr<TwoOfFour> packed_;
};

TwoOfFourOperands OperandsOf(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  return {.weight = &static_cast<const TwoOfFourWeight&>(*args.weight).packed(),
          .dtype = problem.to.dtype,
          .x = AllColumns(args, stream),
          .residual = problem.epilogue.residual ? args.inputs[1].data : nullptr,
          .y = args.output.data,
          .stride = RowStride(problem.output.positions()),
          .columns = problem.output.positions(),
          .epilogue = problem.epilogue};
}

}  // namespace

bool AcceptsConvTwoOfFour(const Problem& problem) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const int64_t cols = problem.input.channels * problem.window().taps();
  return cols >= 1 && cols <= kMost && RowStride(problem.output.positions()) <= kMost;
}

bool HoldsTwoOfFour(const Weight& weight, const Problem&) { return KeepsLimits(weight.matrix, 2, 4); }

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvTwoOfFour(const Weight& weight, const Problem& problem) {
  const NOfMMatrix* held = weight.matrix.As<NOfMMatrix>();
  const bool fits = held != nullptr && held->n == 2 && held->m == 4 && held->taps == 1;
  NOfMMatrix made;
  if (!fits) {
    SWIZZLE_ASSIGN_OR_RETURN(made, NOfMMatrix::FromDense(weight.ToDense(), {.n = 2, .m = 4, .taps = 1}));
    held = &made;
  }
  SWIZZLE_ASSIGN_OR_RETURN(auto packed, TwoOfFour::Make(*held, weight.bias, problem.to.dtype));
  return std::make_unique<TwoOfFourWeight>(std::move(packed));
}

template <int kWidth>
void RunConvTwoOfFour(const KernelArgs& args, Stream& stream) {
  QueueTwoOfFour<kWidth>(OperandsOf(args, stream), MultiprocessorsOf(stream), QueueOf(stream));
}

template <int kWidth>
void RunConvTwoOfFourByWarps(const KernelArgs& args, Stream& stream) {
  QueueTwoOfFourByWarps<kWidth>(OperandsOf(args, stream), QueueOf(stream));
}

template void RunConvTwoOfFour<128>(const KernelArgs&, Stream&);
template void RunConvTwoOfFour<256>(const KernelArgs&, Stream&);
template void RunConvTwoOfFourByWarps<64>(const KernelArgs&, Stream&);
template void RunConvTwoOfFourByWarps<128>(const KernelArgs&, Stream&);

}  // namespace swizzle::cuda
