// How sums of layers end whose input is quantised by positions: as real numbers (whole_numbers/position_weight.h),
// with what an epilogue says. Device code.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_POSITION_ENDS_CUH_
#define SWIZZLE_KERNELS_CUDA_INT8_POSITION_ENDS_CUH_

#include "kernels/cuda/conv/operands/tile_ending.cuh"
#include "kernels/cuda/int8/position_ends.h"

namespace swizzle::cuda {

// T: the type of Y and the residual.
template <typename T, typename Function>
struct StorePositions {
  static constexpr bool kBytes = false, kDirect = true;
  static constexpr int kPack = 8;

  T* y;
  const T* residual;
  const float *scale, *bias, *sums;
  const float2* steps;
  int64_t stride;  // kRows: from one row of Y to the next
  bool packs;      // kNhwc: rows are a multiple of kPack
  Ending<Function> ending;

  // Of kPack neighbouring rows, the first of which is a multiple of kPack.
  struct Ends {
    float scale[kPack], bias[kPack], sums[kPack];
  };
  __device__ Ends EndsOf(int row) const {
    Ends ends;
    Load(scale + row, ends.scale), Load(bias + row, ends.bias), Load(sums + row, ends.sums);
    return ends;
  }

  // kNhwc: `count` of these at one position; the first is element `at`.
  __device__ void StoreChannels(const Ends& ends, int position, int64_t at, int count,
                                const int32_t (&whole)[kPack]) const {
    const float2 step = steps[position];
    float values[kPack], added[kPack] = {};
    if (residual != nullptr) {
      if (packs) {
        LoadPack(residual + at, added);
      } else {
        for (int i = 0; i < count; ++i) added[i] = ToFloat(residual[at + i]);
      }
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      values[i] = ValueOf(whole[i], ends.scale[i], ends.bias[i], ends.sums[i], step) + added[i];
    }
    ending.template Apply<T>(values);
    if (packs) return StorePack(values, y + at);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      if (i < count) y[at + i] = FromFloat<T>(values[i]);
    }
  }

  // kRows: of neighbouring positions of a row.
  template <int kCount>
  __device__ void Store(int row, int64_t at, const int32_t (&whole)[kCount]) const {
    const float scale_of_row = __ldg(scale + row), bias_of_row = __ldg(bias + row), sum_of_row = __ldg(sums + row);
    const int64_t position = at - row * stride;
    float values[kCount], added[kCount] = {};
    if (residual != nullptr) LoadPack(residual + at, added);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      values[i] = ValueOf(whole[i], scale_of_row, bias_of_row, sum_of_row, steps[position + i]) + added[i];
    }
    ending.template Apply<T>(values);
    StorePack(values, y + at);
  }

 private:
  static __device__ void Load(const float* from, float (&to)[kPack]) {
    const auto pack = *reinterpret_cast<const Pack<float, kPack>*>(from);
#pragma unroll
    for (int i = 0; i < kPack; ++i) to[i] = pack.values[i];
  }
  static __device__ float ValueOf(int32_t whole, float scale, float bias, float sum, float2 step) {
    return fmaf(__fmul_rn(static_cast<float>(whole), scale), step.x, fmaf(-sum, step.y, bias));
  }
};

// queue(store) for the problem's type and function. stride: of Y in kRows.
template <typename Queue>
void WithPositionStore(const KernelArgs& args, const PositionEnds& ends, const float2* steps, int64_t stride,
                       const Queue& queue) {
  VisitReal(args.output.dtype, [&]<DType kType>() {
    using T = Element<kType>;
    WithTileEnding(args.problem->epilogue, [&]<typename Function>(const Ending<Function>& ending) {
      using Store = StorePositions<T, Function>;
      queue(Store{static_cast<T*>(args.output.data),
                  static_cast<const T*>(args.problem->epilogue.residual ? args.inputs[1].data : nullptr), ends.scale(),
                  ends.bias(), ends.sums(), steps, stride, args.problem->output.channels % Store::kPack == 0, ending});
    });
  });
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_POSITION_ENDS_CUH_
