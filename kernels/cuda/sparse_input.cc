#include "kernels/cuda/sparse_input.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/base/half.h"
#include "kernels/cuda/conv/bitmap_planes.h"
#include "kernels/cuda/conv/bitmap_product.h"
#include "kernels/cuda/runtime/queue.h"

namespace swizzle {
namespace {

constexpr int kRuns = 7;

std::vector<uint16_t> HalvesInRows(const Extent& extent, std::span<const float> nchw) {
  const int64_t stride = RowStride(extent.positions()), plane = extent.plane();
  std::vector<uint16_t> halves(static_cast<size_t>(extent.channels * stride));
  for (int64_t i = 0; i < std::ssize(nchw); ++i) {
    const int64_t at = i % plane, channel = i / plane % extent.channels, image = i / plane / extent.channels;
    halves[channel * stride + image * plane + at] = HalfOfFloat(nchw[i]);
  }
  return halves;
}

StatusOr<double> LeastOf(Stream& stream, Stream::Work work, Stream::Operands recent) {
  stream.Run(work);
  SWIZZLE_RETURN_IF_ERROR(stream.Synchronize());
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kRuns; ++run) {
    SWIZZLE_ASSIGN_OR_RETURN(const absl::Duration time, stream.Time(work, recent));
    least = std::min(least, absl::ToDoubleMicroseconds(time));
  }
  return least;
}

}  // namespace

StatusOr<double> TimeSparseInput(Backend& gpu, const Problem& asked, const Weight& weight,
                                 std::span<const float> input) {
  constexpr DType kType = DType::kFloat16;
  Problem problem = asked;
  if (asked.window().IsPointwise()) {  // a row of the output then is all positions
    problem.input = {1, asked.input.channels, 1, asked.input.positions()};
    problem.output = {1, asked.output.channels, 1, asked.output.positions()};
  }
  problem.from = problem.to = {Layout::kRows, kType};
  const int64_t stride = RowStride(problem.output.positions());
  // Allocating makes the device the thread's current one, too.
  const std::vector<uint16_t> halves = HalvesInRows(asked.input, input);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(halves));
  SWIZZLE_ASSIGN_OR_RETURN(const auto x, gpu.Allocate(bytes.size()));
  SWIZZLE_ASSIGN_OR_RETURN(const auto y, gpu.Allocate(problem.output.channels * stride * sizeof(uint16_t)));
  SWIZZLE_ASSIGN_OR_RETURN(const auto matrix, weight.matrix.In<BitmapMatrix>());
  SWIZZLE_ASSIGN_OR_RETURN(const auto strips, cuda::BitmapStrips::Make(*matrix, weight.bias, kType));
  SWIZZLE_ASSIGN_OR_RETURN(const auto planes, cuda::BitmapPlanes::Make(problem));
  SWIZZLE_ASSIGN_OR_RETURN(const auto stream, gpu.NewStream(0));
  stream->Copy(x->data(), bytes.data(), bytes.size());
  SWIZZLE_RETURN_IF_ERROR(stream->Synchronize());
  const cuda::BitmapView columns = planes->columns();
  const std::span<const std::byte> recent[] = {{x->data(), bytes.size()}};
  double least = std::numeric_limits<double>::infinity();
  for (const cuda::BitmapTile tile : {cuda::BitmapTile::k64, cuda::BitmapTile::k128}) {
    const auto work = [&] {
      planes->QueueEncode(x->data(), cuda::QueueOf(*stream));
      planes->QueueUnfold(cuda::QueueOf(*stream));
      cuda::QueueBitmapProduct({.weight = strips.get(),
                                .dtype = kType,
                                .sparse = &columns,
                                .x = nullptr,
                                .residual = nullptr,
                                .y = y->data(),
                                .stride = stride,
                                .columns = problem.output.positions(),
                                .epilogue = {.low = problem.epilogue.low, .high = problem.epilogue.high}},
                               tile, cuda::QueueOf(*stream));
    };
    SWIZZLE_ASSIGN_OR_RETURN(const double time, LeastOf(*stream, work, recent));
    least = std::min(least, time);
  }
  return least;
}

}  // namespace swizzle
