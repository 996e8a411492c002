#include "kernels/cpu/tokens/attention_places.h"

#include "kernels/base/integers.h"
#include "kernels/cpu/tokens/attention_work.h"

namespace swizzle::cpu {
namespace {

// A line and some lines more, so that the rows of a head's channels do not all fall into the same sets of a cache.
int64_t KeyStride(int64_t places) {
  constexpr int64_t kLine = 16;
  const int64_t lines = CeilDiv(places, kLine);
  return (lines % 2 == 0 ? lines + 1 : lines) * kLine;
}

}  // namespace

AttentionPlaces::AttentionPlaces(const DenseMatrix& vectors, int64_t heads)
    : size_((vectors.rows - 1) / 2 / heads),
      count_(vectors.cols),
      key_stride_(KeyStride(vectors.cols)),
      distances_(vectors),
      of_queries_(static_cast<size_t>(heads * size_ * count_)),
      of_keys_(static_cast<size_t>(heads * size_ * key_stride_ + 2 * kQueryBlock)) {
  for (int64_t channel = 0; channel < heads * size_; ++channel) {
    const float* const of_query = vectors.values.data() + channel * count_;
    const float* const of_key = of_query + heads * size_ * count_;
    float* const to = of_queries_.data() + channel / size_ * count_ * size_ + channel % size_;
    for (int64_t place = 0; place < count_; ++place) to[place * size_] = of_query[place];
    std::copy(of_key, of_key + count_, of_keys_.data() + channel * key_stride_);
  }
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareAttentionPlaces(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto vectors, weight.matrix.In<DenseMatrix>());
  return std::make_unique<AttentionPlaces>(*vectors, problem.attention().heads);
}

}  // namespace swizzle::cpu
