#include "kernels/cuda/conv/bitmap/conv_bitmap.h"

#include <algorithm>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cuda/conv/bitmap/bitmap_planes.h"
#include "kernels/cuda/conv/bitmap/bitmap_product.h"
#include "kernels/cuda/conv/operands/im2col.h"
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

constexpr size_t kMostWorkspace = size_t{128} << 20;

// Of as many images as the problem has.
size_t OperandBytes(const Problem& problem) {
  if (!problem.window().IsPointwise()) return BitmapPlanes::Bytes(problem);
  return BitmapActivations::Bytes(problem.input.channels, CeilDiv(problem.input.positions(), int64_t{kStripLanes}));
}

Problem WithImages(Problem problem, int64_t images) {
  problem.input.batch = problem.output.batch = images;
  return problem;
}

int64_t ImagesAtOnce(const Problem& problem) {
  constexpr int64_t kSeveral = 64;  // of which one takes less than it does alone: numbers of strips are rounded up
  const size_t bytes = CeilDiv(OperandBytes(WithImages(problem, kSeveral)), size_t{kSeveral});
  return std::clamp<int64_t>(static_cast<int64_t>(kMostWorkspace / bytes), 1, problem.input.batch);
}

// Images of an operand in kRows from `first` on.
const uint16_t* FromImage(const void* data, int64_t first, const Extent& extent) {
  return data == nullptr ? nullptr : static_cast<const uint16_t*>(data) + first * extent.plane();
}

// Encodes and unfolds what images from `first` on hold, and multiplies it.
void QueueImages(const KernelArgs& args, int64_t first, int64_t images, Stream& stream) {
  const Problem& problem = *args.problem;
  const Problem part = WithImages(problem, images);
  const BitmapStrips& strips = static_cast<const BitmapWeight&>(*args.weight).strips();
  const cudaStream_t queue = QueueOf(stream);
  const int64_t columns = part.output.positions(), stride = RowStride(problem.input.positions());
  const uint16_t* const input = FromImage(args.inputs[0].data, first, problem.input);
  BitmapView view;
  if (problem.window().IsPointwise()) {
    BitmapActivations x(args.workspace.data(), problem.input.channels, CeilDiv(columns, int64_t{kStripLanes}));
    QueueEncode(input, problem.input.channels, columns, stride, x, queue);
    view = x.view();
  } else {
    BitmapPlanes planes(args.workspace.data(), part, stride);
    planes.QueueEncode(input, queue);
    planes.QueueUnfold(queue);
    view = planes.columns();
  }
  const void* const residual = problem.epilogue.residual ? args.inputs[1].data : nullptr;
  const BitmapProduct product = {
      .weight = &strips,
      .dtype = problem.to.dtype,
      .sparse = &view,
      .x = nullptr,
      .residual = FromImage(residual, first, problem.output),
      .y = static_cast<uint16_t*>(args.output.data) + first * problem.output.plane(),
      .stride = RowStride(problem.output.positions()),
      .columns = columns,
      .epilogue = problem.epilogue,
  };
  QueueBitmapProduct(product, BitmapTileFor(strips.rows(), columns, MultiprocessorsOf(stream)), queue);
}

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

bool FitsBitmaps(const Problem& problem) {
  constexpr size_t kMostOfOne = size_t{1} << 30;
  return OperandBytes(WithImages(problem, 1)) <= kMostOfOne;
}

bool AcceptsConvBitmaps(const Problem& problem) {
  constexpr double kLeastEmpty = 0.5;
  return problem.input_zeros && problem.input_zeros->runs >= kLeastEmpty && FitsBitmaps(problem);
}

size_t ConvBitmapsWorkspaceBytes(const Problem& problem) {
  return OperandBytes(WithImages(problem, ImagesAtOnce(problem)));
}

void RunConvBitmaps(const KernelArgs& args, Stream& stream) {
  const int64_t images = args.problem->input.batch, at_once = ImagesAtOnce(*args.problem);
  for (int64_t first = 0; first < images; first += at_once) {
    QueueImages(args, first, std::min(at_once, images - first), stream);
  }
}

}  // namespace swizzle::cuda
