#include "kernels/cuda/attention/attention_places.h"

#include <algorithm>
#include <numbers>
#include <vector>

#include "kernels/base/half_bits.h"
#include "kernels/base/integers.h"
#include "kernels/base/real_types.h"
#include "kernels/cuda/runtime/cublas_matmul.h"

namespace swizzle::cuda {
namespace {

// Products of queries and of keys take this many bytes at most, but for one head's, which may take more. On an H200
// DeBERTa-base in FP16 took 2.42, 2.07 and 1.86 ms at batch 16 with 24, 64 and 256 MiB, and 5.48, 3.60 and 3.33 at
// batch 32: few heads leave much of the device without work.
constexpr int64_t kMostProductBytes = int64_t{128} << 20;

int64_t HeadBytes(const Problem& problem) {
  return 2 * problem.input.batch * PlacePitch(problem) * static_cast<int64_t>(sizeof(float));
}

}  // namespace

int64_t PlacePitch(const Problem& problem) {
  constexpr int64_t kUnit = 8;
  return RoundUp(problem.attention().places, kUnit);
}

int HeadsAtOnce(const Problem& problem) {
  const int64_t heads = kMostProductBytes / std::max<int64_t>(HeadBytes(problem), 1);
  return static_cast<int>(std::clamp<int64_t>(heads, 1, problem.attention().heads));
}

// Enough for smaller batches, too, which take more heads at once.
size_t PlaceProductsBytes(const Problem& problem) {
  const int64_t all = HeadBytes(problem) * problem.attention().heads;
  return static_cast<size_t>(std::max(HeadBytes(problem), std::min(all, kMostProductBytes)));
}

StatusOr<std::unique_ptr<PackedWeight>> DeviceAttentionPlaces::Make(const DenseMatrix& vectors,
                                                                    const Problem& problem) {
  const DistancePlaces distances(vectors);
  const int64_t pitch = PlacePitch(problem);
  const float scale = problem.attention().scale * std::numbers::log2e_v<float>;
  std::vector<float> scaled(static_cast<size_t>((vectors.rows - 1) * pitch));
  for (int64_t row = 0; row + 1 < vectors.rows; ++row) {
    const float* const from = vectors.values.data() + row * vectors.cols;
    std::transform(from, from + vectors.cols, scaled.data() + row * pitch, [&](float x) { return x * scale; });
  }
  const DType dtype = problem.to.dtype;
  std::vector<std::byte> bytes(scaled.size() * ElementBytes(dtype));
  if (dtype == DType::kFloat32) {
    std::ranges::copy(std::as_bytes(std::span(scaled)), bytes.begin());
  } else {
    StoreHalves(scaled, dtype, bytes.data());
  }
  auto device = std::make_unique<DeviceAttentionPlaces>();
  device->least_ = static_cast<int>(distances.least());
  SWIZZLE_ASSIGN_OR_RETURN(device->places_, DeviceArray<int32_t>::Upload(distances.all()));
  SWIZZLE_ASSIGN_OR_RETURN(device->vectors_, DeviceArray<std::byte>::Upload(bytes));
  return device;
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareDisentangledAttention(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto vectors, weight.matrix.In<DenseMatrix>());
  return DeviceAttentionPlaces::Make(*vectors, problem);
}

Status QueuePlaceProducts(const KernelArgs& args, const HeadOperand& operand, const void* vectors, int first_head,
                          int heads, void* to, CudaStream& stream) {
  const Problem& problem = *args.problem;
  const int64_t size = KeyChannels(problem) / problem.attention().heads, pitch = PlacePitch(problem);
  const auto element = static_cast<int64_t>(ElementBytes(problem.to.dtype));
  Product product;
  product.dtype = problem.to.dtype;
  product.keeps_sums = IsHalf(problem.to.dtype);
  product.m = pitch;
  product.n = problem.input.batch;
  product.k = size;
  product.a = {static_cast<const std::byte*>(vectors) + first_head * size * pitch * element, pitch, size * pitch, true};
  product.b = {static_cast<const std::byte*>(operand.first) + first_head * operand.head_stride * element,
               operand.stride, operand.head_stride};
  product.transpose_b = operand.tokens_adjacent;
  product.d = to;
  product.ld_d = HeadsAtOnce(problem) * pitch;
  product.batch = heads;
  product.batch_stride_d = pitch;
  product.aligned = false;
  return QueueProduct(product, stream);
}

}  // namespace swizzle::cuda
