// Vectors of places (Op::kDisentangledAttention) in device memory, and the products of queries and keys with them,
// which cuBLASLt makes before attention adds them to its scores: of so many heads at a time that the second cache holds
// them. All places have products, also those that lie farther than the sequences are long.
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_PLACES_H_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_PLACES_H_

#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cuda/runtime/cuda_stream.h"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/operator/place_vectors.h"

namespace swizzle::cuda {

// Immutable. Lives on the device that was current when it was made.
class DeviceAttentionPlaces final : public PackedWeight {
 public:
  // `vectors` is a valid weight of a layer with this problem, whose type and scale they take, in units of log(2).
  static StatusOr<std::unique_ptr<PackedWeight>> Make(const DenseMatrix& vectors, const Problem& problem);
  static const DeviceAttentionPlaces& From(const KernelArgs& args) {
    return static_cast<const DeviceAttentionPlaces&>(*args.weight);
  }

  // The place of distance d is places()[clamp(d - least(), 0, last())].
  const int32_t* places() const { return places_.data(); }
  int least() const { return least_; }
  int last() const { return static_cast<int>(places_.size()) - 1; }
  // What queries and what keys meet, [head][channel][pitch].
  const void* of_queries() const { return vectors_.data(); }
  const void* of_keys() const { return vectors_.data() + vectors_.size() / 2; }
  size_t bytes() const override { return vectors_.bytes() + places_.bytes(); }

 private:
  int least_ = 0;
  DeviceArray<int32_t> places_;
  DeviceArray<std::byte> vectors_;
};

// Places of a row of products: whole vectors of elements.
int64_t PlacePitch(const Problem& problem);
int HeadsAtOnce(const Problem& problem);
size_t PlaceProductsBytes(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareDisentangledAttention(const Weight& weight, const Problem& problem);

// Queries or keys of some heads, as they lie.
struct HeadOperand {
  const void* first;     // of the first head and token
  int64_t head_stride;   // elements
  int64_t stride;        // of tokens, whose channels are neighbours; of channels, whose tokens are
  bool tokens_adjacent;  // which of the two
};

// Queues to[token][head][pitch], FP32 and of HeadsAtOnce rows a token, for `heads` heads from `first_head` on.
Status QueuePlaceProducts(const KernelArgs& args, const HeadOperand& operand, const void* vectors, int first_head,
                          int heads, void* to, CudaStream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_PLACES_H_
