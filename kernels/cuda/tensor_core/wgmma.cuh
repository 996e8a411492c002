// Hopper's matrix products by a warpgroup (128 threads, from a multiple of 128 on): asynchronous, the left operand in
// registers, the right one in shared memory. Device code, for sm_90a; elsewhere it compiles and traps.
//
// Warp w of the group has rows 16w to 16w + 15 of the left operand and the product; a lane's places in them are those
// of mma.m16n8k16 (attention_mma.cuh). PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions".
#ifndef SWIZZLE_KERNELS_CUDA_TENSOR_CORE_WGMMA_CUH_
#define SWIZZLE_KERNELS_CUDA_TENSOR_CORE_WGMMA_CUH_

#include <cstdint>

namespace swizzle::cuda {

// A right operand of 16 rows by 64 columns of FP16: rows of 128 bytes one after the other, the 16-byte piece p of row r
// at p ^ (r % 8), the first row's address a multiple of 1024 but for whole groups of 16 rows.
__device__ inline uint64_t RightOperand(uint32_t address) {
  constexpr uint64_t kRowGroupBytes = 1024, kSwizzle128 = 1;
  return (address & 0x3FFFF) >> 4 | kRowGroupBytes >> 4 << 16 | kRowGroupBytes >> 4 << 32 | kSwizzle128 << 62;
}

// What `left` is made of is computed before what follows: else the compiler puts fences between products.
__device__ inline void FinishOperand(uint32_t (&left)[4]) {
  asm volatile("" : "+r"(left[0]), "+r"(left[1]), "+r"(left[2]), "+r"(left[3])::"memory");
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// Before the first product, and after registers of one were written.
__device__ inline void FenceProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void CommitProducts() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until all are done. `sums` may be read after it.
template <int kCount>
__device__ inline void WaitForProducts(float (&sums)[kCount]) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}
// What this thread wrote to shared memory becomes visible to products that follow a barrier.
__device__ inline void PublishToProducts() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// sums (+)= left * right; [64, 16] * [16, 64]. Neither `left` nor `sums` may be touched until WaitForProducts.
template <bool kAdds>
__device__ inline void QueueProduct64(float (&sums)[32], const uint32_t (&left)[4], uint64_t right) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, %37, 1, 1, 1;"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]), "+f"(sums[6]),
        "+f"(sums[7]), "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]), "+f"(sums[12]), "+f"(sums[13]),
        "+f"(sums[14]), "+f"(sums[15]), "+f"(sums[16]), "+f"(sums[17]), "+f"(sums[18]), "+f"(sums[19]), "+f"(sums[20]),
        "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23]), "+f"(sums[24]), "+f"(sums[25]), "+f"(sums[26]), "+f"(sums[27]),
        "+f"(sums[28]), "+f"(sums[29]), "+f"(sums[30]), "+f"(sums[31])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "n"(kAdds ? 1 : 0));
}
#else
__device__ inline void FenceProducts() { __trap(); }
__device__ inline void CommitProducts() { __trap(); }
template <int kCount>
__device__ inline void WaitForProducts(float (&)[kCount]) {
  __trap();
}
__device__ inline void PublishToProducts() { __trap(); }
template <bool kAdds>
__device__ inline void QueueProduct64(float (&)[32], const uint32_t (&)[4], uint64_t) {
  __trap();
}
#endif

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_TENSOR_CORE_WGMMA_CUH_
