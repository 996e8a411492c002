// What becomes of 32-bit sums of a layer of whole numbers: they are stored as such, as bytes (the steps of
// whole_numbers/steps.h), or as real numbers. Each has Store(row, at, sums) of neighbouring elements of a row of Y, the
// first of which is element `at`. Device code.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_SUM_ENDS_CUH_
#define SWIZZLE_KERNELS_CUDA_INT8_SUM_ENDS_CUH_

#include "kernels/cuda/int8/sum_ends.h"
#include "kernels/cuda/runtime/epilogue.cuh"

namespace swizzle::cuda {

struct StoreSums {
  int32_t* y;

  template <int kCount>
  __device__ void Store(int, int64_t at, const int32_t (&sums)[kCount]) const {
    Pack<int32_t, kCount> pack;
#pragma unroll
    for (int i = 0; i < kCount; ++i) pack.values[i] = sums[i];
    *reinterpret_cast<Pack<int32_t, kCount>*>(y + at) = pack;
  }
};

// The nearest whole number, ties to even, of what is held far beyond any byte's range. By adding 1.5 * 2^23, whose last
// place is 1: conversions take eight times as long.
__device__ inline int32_t NearestStep(float value) {
  constexpr float kOnes = 12582912.0f, kFar = 65536.0f;
  return __float_as_int(fminf(fmaxf(value, -kFar), kFar) + kOnes) - __float_as_int(kOnes);
}

// Starts and scales of four neighbouring rows, the first of which is a multiple of four.
struct FourEnds {
  int4 start;
  float4 scale;
  __device__ FourEnds(const int32_t* starts, const float* scales, int row)
      : start(*reinterpret_cast<const int4*>(starts + row)), scale(*reinterpret_cast<const float4*>(scales + row)) {}
};

struct StoreBytes {
  static constexpr bool kBytes = true, kDirect = false;
  uint8_t* y;
  const uint8_t* residual;
  const int32_t* start;
  const float* scale;
  OutputSteps steps;

  template <int kCount>
  __device__ void Store(int row, int64_t at, const int32_t (&sums)[kCount]) const {
    const int32_t start_of_row = __ldg(start + row);
    const float scale_of_row = __ldg(scale + row);
    Pack<uint8_t, kCount> added = {}, pack;
    if (residual != nullptr) added = *reinterpret_cast<const Pack<uint8_t, kCount>*>(residual + at);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      pack.values[i] = static_cast<uint8_t>(ByteOf(sums[i] + start_of_row, scale_of_row, added.values[i]));
    }
    *reinterpret_cast<Pack<uint8_t, kCount>*>(y + at) = pack;
  }

  // Of four rows at one position, a word; `added` is the residual's.
  __device__ uint32_t WordOf(const FourEnds& ends, const int32_t (&sums)[4], uint32_t added) const {
    const auto byte = [&](int i) { return added >> 8 * i & 0xFF; };
    return ByteOf(sums[0] + ends.start.x, ends.scale.x, byte(0)) |
           ByteOf(sums[1] + ends.start.y, ends.scale.y, byte(1)) << 8 |
           ByteOf(sums[2] + ends.start.z, ends.scale.z, byte(2)) << 16 |
           ByteOf(sums[3] + ends.start.w, ends.scale.w, byte(3)) << 24;
  }

  __device__ uint32_t ByteOf(int32_t whole, float scale_of_row, uint32_t added) const {
    const auto sum = static_cast<float>(whole);
    const float value = residual == nullptr ? sum * scale_of_row
                                            : fmaf(static_cast<float>(added), steps.residual_scale,
                                                   fmaf(sum, scale_of_row, steps.residual_offset));
    return static_cast<uint32_t>(min(max(NearestStep(value) + steps.zero_point, steps.low), steps.high));
  }
};

// Of any real type.
template <typename Function>
struct StoreReals {
  static constexpr bool kBytes = false, kDirect = false;
  void* y;
  const void* residual;
  const int32_t* start;
  const float* scale;
  DType dtype;
  Ending<Function> ending;

  template <int kCount>
  __device__ void Store(int row, int64_t at, const int32_t (&sums)[kCount]) const {
    VisitReal(dtype, [&]<DType kType>() { StoreAs<Element<kType>>(row, at, sums); });
  }

 private:
  template <typename T, int kCount>
  __device__ void StoreAs(int row, int64_t at, const int32_t (&sums)[kCount]) const {
    const int32_t start_of_row = __ldg(start + row);
    const float scale_of_row = __ldg(scale + row);
    float values[kCount], added[kCount] = {};
    if (residual != nullptr) LoadPack(static_cast<const T*>(residual) + at, added);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = static_cast<float>(sums[i] + start_of_row) * scale_of_row + added[i];
    ending.template Apply<T>(values);
    StorePack(values, static_cast<T*>(y) + at);
  }
};

// queue(store) for what the ends ask for.
template <typename Queue>
void WithStore(const SumEnds& ends, void* y, const Queue& queue) {
  if (ends.dtype == DType::kUint8) {
    return queue(StoreBytes{static_cast<uint8_t*>(y), static_cast<const uint8_t*>(ends.residual), ends.start,
                            ends.scale, ends.steps});
  }
  WithEnding(ends.epilogue, [&]<typename Function>(const Ending<Function>& ending) {
    queue(StoreReals<Function>{y, ends.residual, ends.start, ends.scale, ends.dtype, ending});
  });
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_SUM_ENDS_CUH_
