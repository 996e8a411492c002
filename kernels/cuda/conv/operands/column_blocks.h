// How a product over gathered columns (im2col.h) goes through a layer's positions: in blocks, so that it reads their
// columns from a second cache. Where the window is pointwise the input is its columns, and all positions are one block.
// A value.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_COLUMN_BLOCKS_H_
#define SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_COLUMN_BLOCKS_H_

#include <algorithm>
#include <cstdint>

#include "kernels/base/status.h"
#include "kernels/cuda/conv/operands/im2col.h"

namespace swizzle::cuda {

class ColumnBlocks {
 public:
  // Of `positions`, in blocks whose columns take `most_bytes` at most, or are kUnit.
  ColumnBlocks(const Problem& problem, int64_t positions, int64_t most_bytes)
      : gathers_(!problem.window().IsPointwise()),
        position_bytes_(problem.input.channels * problem.window().taps() *
                        static_cast<int64_t>(ElementBytes(problem.to.dtype))),
        positions_(positions),
        step_(positions) {
    if (gathers_) step_ = std::min(std::max(most_bytes / position_bytes_ / kUnit * kUnit, kUnit), positions);
  }

  int64_t step() const { return step_; }  // positions of a block; the last one may have fewer
  // What ForEach gathers into.
  int64_t workspace_bytes() const { return gathers_ ? step_ * position_bytes_ : 0; }

  // Calls multiply(columns, begin, count), which gives a Status, for each block in turn, its columns gathered by one of
  // im2col.h's functions. Ends with the first error.
  template <typename Gather, typename Multiply>
  Status ForEach(const KernelArgs& args, Stream& stream, Gather gather, Multiply multiply) const {
    const void* columns = gathers_ ? args.workspace.data() : args.inputs[0].data;
    for (int64_t begin = 0; begin < positions_; begin += step_) {
      const int64_t count = std::min(step_, positions_ - begin);
      if (gathers_) gather(*args.problem, args.inputs[0], {begin, count, args.workspace.data()}, stream);
      SWIZZLE_RETURN_IF_ERROR(multiply(columns, begin, count));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kUnit = 128;  // positions; keeps blocks aligned to 256 bytes

  bool gathers_;
  int64_t position_bytes_, positions_, step_;
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_COLUMN_BLOCKS_H_
