#include "kernels/cuda/conv/conv_bitmap.h"

#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cuda/conv/bitmap_product.h"
#include "kernels/cuda/conv/im2col.h"
#include "kernels/cuda/runtime/queue.h"

namespace swizzle::cuda {
namespace {

class BitmapWeight final : public PackedWeight {
 public:
  explicit BitmapWeight(std::unique_ptr<BitmapStrips> strips) : strips_(std::move(strips)) {}
  size_t bytes() const override { return strips_->bytes(); }
  const BitmapStrips& strips() const { return *strips_; }

 private:
  const std::unique_ptr<BitmapStrips> strips_;
};

}  // namespace

bool HoldsEmptyColumns(const Weight& weight, const Problem&) {
  constexpr int64_t kRows = 64;
  constexpr double kMostAlive = 0.3;  // about as long as dense kernels take (bitmap_product.h)
  const MatrixSize size = weight.matrix.size();
  std::vector<int64_t> last_group(size.cols, -1);
  int64_t alive = 0;
  weight.matrix.ForEachRow([&](int64_t row, std::span<const uint32_t> cols) {
    for (const uint32_t col : cols) {
      alive += last_group[col] != row / kRows;
      last_group[col] = row / kRows;
    }
  });
  return static_cast<double>(alive) <= kMostAlive * static_cast<double>(CeilDiv(size.rows, kRows) * size.cols);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvBitmap(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto matrix, weight.matrix.In<BitmapMatrix>());
  SWIZZLE_ASSIGN_OR_RETURN(auto strips, BitmapStrips::Make(*matrix, weight.bias, problem.to.dtype));
  return std::make_unique<BitmapWeight>(std::move(strips));
}

void RunConvBitmap(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const BitmapStrips& strips = static_cast<const BitmapWeight&>(*args.weight).strips();
  const int64_t columns = problem.output.positions();
  const BitmapProduct product = {
      .weight = &strips,
      .dtype = problem.to.dtype,
      .sparse = nullptr,
      .x = AllColumns(args, stream),
      .residual = problem.epilogue.residual ? args.inputs[1].data : nullptr,
      .y = args.output.data,
      .stride = RowStride(columns),
      .columns = columns,
      .epilogue = problem.epilogue,
  };
  QueueBitmapProduct(product, BitmapTileFor(strips.rows(), columns, MultiprocessorsOf(stream)), QueueOf(stream));
}

}  // namespace swizzle::cuda
