#include "kernels/cuda/sparse_input.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/base/half.h"
#include "kernels/cuda/conv/bitmap/conv_bitmap.h"

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
  constexpr Storage kStorage = {Layout::kRows, DType::kFloat16};
  Problem problem = asked;
  problem.from = problem.to = kStorage;
  if (!cuda::FitsBitmaps(problem)) return Unimplemented("one row is too large");
  const std::vector<uint16_t> halves = HalvesInRows(asked.input, input);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(halves));
  // Allocating makes the device the thread's current one, too.
  SWIZZLE_ASSIGN_OR_RETURN(const auto x, gpu.Allocate(bytes.size()));
  SWIZZLE_ASSIGN_OR_RETURN(const auto y, gpu.Allocate(StorageBytes(problem.output, kStorage)));
  SWIZZLE_ASSIGN_OR_RETURN(const auto residual, gpu.Allocate(StorageBytes(problem.output, kStorage)));
  const size_t workspace_bytes = cuda::ConvBitmapsWorkspaceBytes(problem);
  SWIZZLE_ASSIGN_OR_RETURN(const auto workspace, gpu.Allocate(workspace_bytes));
  SWIZZLE_ASSIGN_OR_RETURN(const auto packed, cuda::PrepareConvBitmap(weight, problem));
  SWIZZLE_ASSIGN_OR_RETURN(const auto stream, gpu.NewStream(0));
  stream->Copy(x->data(), bytes.data(), bytes.size());
  SWIZZLE_RETURN_IF_ERROR(stream->Synchronize());
  const Operand inputs[] = {{x->data(), kStorage.dtype}, {residual->data(), kStorage.dtype}};
  const KernelArgs args = {.problem = &problem,
                           .weight = packed.get(),
                           .inputs = inputs,
                           .output = {y->data(), kStorage.dtype},
                           .workspace = {workspace->data(), workspace_bytes}};
  const std::span<const std::byte> recent[] = {{x->data(), bytes.size()}};
  return LeastOf(
      *stream, [&] { cuda::RunConvBitmaps(args, *stream); }, recent);
}

}  // namespace swizzle
