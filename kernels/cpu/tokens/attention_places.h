// Vectors of places (Op::kDisentangledAttention) as blocks of queries read them. Immutable after it is made.
#ifndef SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_PLACES_H_
#define SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_PLACES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backend/kernel_table.h"
#include "kernels/operator/place_vectors.h"

namespace swizzle::cpu {

class AttentionPlaces final : public PackedWeight {
 public:
  // `vectors` is a valid weight of a layer of so many heads.
  AttentionPlaces(const DenseMatrix& vectors, int64_t heads);

  // What queries meet at a place: the head's channels, neighbours; those of the next place follow.
  const float* OfQueries(int64_t head, int64_t place) const {
    return of_queries_.data() + (head * count_ + place) * size_;
  }
  // What keys meet at places from this one on, for the head's first channel; those of the next are key_stride() behind.
  // As many floats as a block has queries may be read, however many places there are.
  const float* OfKeys(int64_t head, int64_t place) const {
    return of_keys_.data() + head * size_ * key_stride_ + place;
  }
  int64_t key_stride() const { return key_stride_; }
  const DistancePlaces& distances() const { return distances_; }
  size_t bytes() const override {
    return (of_queries_.size() + of_keys_.size()) * sizeof(float) + distances_.all().size() * sizeof(int32_t);
  }

 private:
  int64_t size_, count_;  // channels of a head; places
  int64_t key_stride_;
  DistancePlaces distances_;
  std::vector<float> of_queries_, of_keys_;
};

StatusOr<std::unique_ptr<PackedWeight>> PrepareAttentionPlaces(const Weight& weight, const Problem& problem);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_PLACES_H_
