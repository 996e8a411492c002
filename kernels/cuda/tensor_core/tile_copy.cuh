// Slabs of a matrix by Hopper's tensor memory accelerator: one thread asks for one, it comes swizzled, and what lies
// past the matrix's edges comes as zeros. A matrix is described on the host, and the description is a kernel's
// argument (__grid_constant__). For sm_90 and later; elsewhere device code compiles and traps.
#ifndef SWIZZLE_KERNELS_CUDA_TENSOR_CORE_TILE_COPY_CUH_
#define SWIZZLE_KERNELS_CUDA_TENSOR_CORE_TILE_COPY_CUH_

#include <cuda.h>
#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/base/check.h"
#include "kernels/cuda/tensor_core/pipeline.cuh"

namespace swizzle::cuda {

namespace internal {

// Sizes from the innermost dimension on, and how far in elements from one to the next of the outer ones.
template <size_t kRank>
CUtensorMap EncodeSlabs(const void* data, const std::array<int64_t, kRank>& sizes,
                        const std::array<int64_t, kRank - 1>& strides, uint32_t slab_rows) {
  using Encode = decltype(&cuTensorMapEncodeTiled);
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    SWIZZLE_CHECK(error == cudaSuccess && found == cudaDriverEntryPointSuccess);
    return reinterpret_cast<Encode>(function);
  }();
  CUtensorMap map;
  cuuint64_t extents[kRank], pitches[kRank - 1];
  cuuint32_t slab[kRank], steps[kRank];
  for (size_t i = 0; i < kRank; ++i) extents[i] = static_cast<cuuint64_t>(sizes[i]), slab[i] = steps[i] = 1;
  for (size_t i = 0; i < kRank - 1; ++i) pitches[i] = static_cast<cuuint64_t>(strides[i]) * 2;
  slab[0] = 64, slab[1] = slab_rows;
  const CUresult result = encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT16, kRank, const_cast<void*>(data), extents, pitches,
                                 slab, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  SWIZZLE_CHECK(result == CUDA_SUCCESS);
  return map;
}

}  // namespace internal

// A row-major matrix of 16-bit elements, rows `stride` apart, as slabs of `slab_rows` rows by 64 columns: 128 bytes a
// row, the 16-byte piece p of row r at p ^ (r % 8). REQUIRES: `data` and the stride's bytes are multiples of 16, rows
// and columns are positive.
inline CUtensorMap DescribeSlabs(const void* data, int64_t rows, int64_t columns, int64_t stride, uint32_t slab_rows) {
  return internal::EncodeSlabs<2>(data, {columns, rows}, {stride}, slab_rows);
}

// `count` things, each `stride` elements behind the one before.
struct Stack {
  int64_t count, stride;
};

// Likewise matrices that lie in stacks of stacks; what lies past an edge of each comes as zeros. REQUIRES: strides'
// bytes are multiples of 16.
inline CUtensorMap DescribeStackedSlabs(const void* data, int64_t rows, int64_t columns, int64_t stride, Stack inner,
                                        Stack outer, uint32_t slab_rows) {
  return internal::EncodeSlabs<4>(data, {columns, rows, inner.count, outer.count}, {stride, inner.stride, outer.stride},
                                  slab_rows);
}

// Brings a kernel's description of a matrix near, where the first copy by it would wait for it.
__device__ inline void PrefetchMap(const CUtensorMap& map) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
#endif
}

// The slab whose first element is (row, column), the column a multiple of 8. Its bytes, all of them whatever lies past
// the edges, count for the barrier. `to` is a multiple of 1024.
__device__ inline void CopySlab(uint32_t to, const CUtensorMap& map, int32_t row, int32_t column, Barrier& barrier) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
          "r"(to),
      "l"(&map), "r"(column), "r"(row), "r"(SharedAddress(&barrier))
      : "memory");
#else
  __trap();
#endif
}

// Likewise of the matrix that is number `inner` of stack `outer`.
__device__ inline void CopyStackedSlab(uint32_t to, const CUtensorMap& map, int32_t row, int32_t column, int32_t inner,
                                       int32_t outer, Barrier& barrier) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
      "[%6];" ::"r"(to),
      "l"(&map), "r"(column), "r"(row), "r"(inner), "r"(outer), "r"(SharedAddress(&barrier))
      : "memory");
#else
  __trap();
#endif
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_TENSOR_CORE_TILE_COPY_CUH_
