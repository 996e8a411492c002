// Hopper's matrix products by a warpgroup (128 threads, from a multiple of 128 on): asynchronous, 64 rows by N columns,
// the left operand in registers or in shared memory, the right one in shared memory. Device code, for sm_90a; elsewhere
// it compiles and traps.
//
// Warp w of the group has rows 16w to 16w + 15 of the left operand and the product; a lane's places in them are those
// of mma.cuh, its sums of columns 8j to 8j + 7 being sums[4j] to sums[4j + 3]. N is a multiple of 8 up to 256, and of
// 16 from 32 on where the operands are bytes. PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions".
#ifndef SWIZZLE_KERNELS_CUDA_TENSOR_CORE_WGMMA_CUH_
#define SWIZZLE_KERNELS_CUDA_TENSOR_CORE_WGMMA_CUH_

#include "kernels/cuda/tensor_core/operand.cuh"
#include "kernels/cuda/tensor_core/wgmma_shapes.h"

namespace swizzle::cuda {

// Which of an operand's dimensions lies contiguously in shared memory: its depth, or, of 16-bit types alone, its rows
// (of the right operand, columns).
enum Order : int { kDepthInner = 0, kDepthOuter = 1 };

// An operand in shared memory whose rows of 128 bytes lie one after the other, the 16-byte piece p of row r at
// p ^ (r % 8); every eight rows start at a multiple of 1024. kDepthInner: a row of the operand is the first 32 bytes of
// one of memory (of a sparse product's right operand, 64), or those that many further. kDepthOuter: rows of memory are
// the depth, and have 64 elements each; of a wider operand those of the next 64 begin `next` bytes on.
__device__ inline uint64_t SharedOperand(uint32_t address, uint32_t next = 1024) {
  constexpr uint64_t kEightRows = 1024, kSwizzle128 = 1;
  return (address & 0x3FFFF) >> 4 | uint64_t{next >> 4} << 16 | kEightRows >> 4 << 32 | kSwizzle128 << 62;
}

// A kDepthInner operand in shared memory as matrices of 8 rows by 16 bytes, each 128 bytes one after the other. Those
// further along the depth begin `next_depth` bytes on, those of the next eight rows `next_rows`.
__device__ inline uint64_t SharedMatrices(uint32_t address, uint32_t next_depth, uint32_t next_rows) {
  return (address & 0x3FFFF) >> 4 | uint64_t{next_depth >> 4} << 16 | uint64_t{next_rows >> 4} << 32;
}

// What `left` is made of is computed before what follows: else the compiler puts fences between products.
__device__ inline void FinishOperand(uint32_t (&left)[4]) {
  asm volatile("" : "+r"(left[0]), "+r"(left[1]), "+r"(left[2]), "+r"(left[3])::"memory");
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define SWIZZLE_WGMMA_ASM(...) asm volatile(__VA_ARGS__)
#else
#define SWIZZLE_WGMMA_ASM(...) __trap()
#endif

// Before the first product, and after registers of one were written.
__device__ inline void FenceProducts() { SWIZZLE_WGMMA_ASM("wgmma.fence.sync.aligned;" ::: "memory"); }
// Those queued since the last commit become a group.
__device__ inline void CommitProducts() { SWIZZLE_WGMMA_ASM("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until all groups but the latest kPending are done. `sums` may be read after it, if they belong to one of these.
template <int kPending = 0, typename Sum, int kCount>
__device__ void WaitForProducts(Sum (&sums)[kCount]) {
  SWIZZLE_WGMMA_ASM("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
#pragma unroll
  for (Sum& sum : sums) {
    if constexpr (std::is_same_v<Sum, float>) {
      asm volatile("" : "+f"(sum)::"memory");
    } else {
      asm volatile("" : "+r"(sum)::"memory");
    }
  }
}
// The same where no sums are read: stages that the earlier groups read may be filled again.
template <int kPending>
__device__ void WaitForEarlierProducts() {
  SWIZZLE_WGMMA_ASM("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// What this thread wrote to shared memory becomes visible to products that follow a barrier.
__device__ inline void PublishToProducts() { SWIZZLE_WGMMA_ASM("fence.proxy.async.shared::cta;" ::: "memory"); }

// Products of N columns, one specialisation each.
template <int kColumns>
struct WgmmaShape;

#define SWIZZLE_WGMMA_TEXT(n, sparse, k, sum, left, right)                                                           \
  "wgmma.mma_async" sparse ".sync.aligned.m64n" #n "k" k "." sum "." left "." right " {" SWIZZLE_WGMMA_REGISTERS_##n \
      "}, "
// Neither operand is negated, and 16-bit ones may be transposed.
#define SWIZZLE_WGMMA_FLAGS_HALF(orders) ", 1, 1, " orders
#define SWIZZLE_WGMMA_FLAGS_TF32(orders) ", 1, 1"
#define SWIZZLE_WGMMA_FLAGS_INTEGER(orders) ""

#define SWIZZLE_WGMMA_SHARED(k, sparse_k, sum, left, right, c, kind, n, p0, p1, p2, p3, p4) \
  SWIZZLE_WGMMA_ASM(SWIZZLE_WGMMA_TEXT(n, "", k, sum, left, right) p0                       \
                    ", " p1 ", " p2 SWIZZLE_WGMMA_FLAGS_##kind(p3 ", " p4) ";"              \
                    : SWIZZLE_WGMMA_SUMS_##n(c)                                             \
                    : "l"(a), "l"(b), "n"(kAdds ? 1 : 0), "n"(static_cast<int>(kLeft)), "n"(static_cast<int>(kRight)))
#define SWIZZLE_WGMMA_REGISTERS(k, sparse_k, sum, left, right, c, kind, n, p0, p1, p2, p3, p4, p5, p6)        \
  SWIZZLE_WGMMA_ASM(SWIZZLE_WGMMA_TEXT(n, "", k, sum, left, right) "{" p0 ", " p1 ", " p2 ", " p3 "}, " p4    \
                                                                   ", " p5 SWIZZLE_WGMMA_FLAGS_##kind(p6) ";" \
                    : SWIZZLE_WGMMA_SUMS_##n(c)                                                               \
                    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kAdds ? 1 : 0),                 \
                      "n"(static_cast<int>(kRight)))
#define SWIZZLE_WGMMA_SPARSE_SHARED(k, sparse_k, sum, left, right, c, kind, n, p0, p1, p2, p3, p4, p5) \
  SWIZZLE_WGMMA_ASM(SWIZZLE_WGMMA_TEXT(n, ".sp", sparse_k, sum, left, right) p0                        \
                    ", " p1 ", " p2 ", 0, " p3 SWIZZLE_WGMMA_FLAGS_##kind(p4 ", " p5) ";"              \
                    : SWIZZLE_WGMMA_SUMS_##n(c)                                                        \
                    : "l"(a), "l"(b), "r"(metadata), "n"(kAdds ? 1 : 0), "n"(static_cast<int>(kLeft)), \
                      "n"(static_cast<int>(kRight)))
#define SWIZZLE_WGMMA_SPARSE_REGISTERS(k, sparse_k, sum, left, right, c, kind, n, p0, p1, p2, p3, p4, p5, p6, p7) \
  SWIZZLE_WGMMA_ASM(                                                                                              \
      SWIZZLE_WGMMA_TEXT(n, ".sp", sparse_k, sum, left, right) "{" p0 ", " p1 ", " p2 ", " p3 "}, " p4 ", " p5    \
                                                               ", 0, " p6 SWIZZLE_WGMMA_FLAGS_##kind(p7) ";"      \
      : SWIZZLE_WGMMA_SUMS_##n(c)                                                                                 \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(metadata), "n"(kAdds ? 1 : 0),                    \
        "n"(static_cast<int>(kRight)))

#define SWIZZLE_WGMMA_SHAPE(n, p0, p1, p2, p3, p4, p5, p6, p7, p8)                                           \
  template <>                                                                                                \
  struct WgmmaShape<n> {                                                                                     \
    template <typename A, typename B, bool kAdds, Order kLeft, Order kRight>                                 \
    static __device__ void Queue(SumOf<A> (&sums)[n / 2], uint64_t a, uint64_t b) {                          \
      SWIZZLE_EACH_OPERAND_TYPE(SWIZZLE_WGMMA_SHARED, n, p0, p1, p2, p3, p4)                                 \
    }                                                                                                        \
    template <typename A, typename B, bool kAdds, Order, Order kRight>                                       \
    static __device__ void Queue(SumOf<A> (&sums)[n / 2], const uint32_t (&a)[4], uint64_t b) {              \
      SWIZZLE_EACH_OPERAND_TYPE(SWIZZLE_WGMMA_REGISTERS, n, p0, p1, p2, p3, p4, p5, p6)                      \
    }                                                                                                        \
    template <typename A, typename B, bool kAdds, Order kLeft, Order kRight>                                 \
    static __device__ void QueueSparse(SumOf<A> (&sums)[n / 2], uint64_t a, uint64_t b, uint32_t metadata) { \
      SWIZZLE_EACH_OPERAND_TYPE(SWIZZLE_WGMMA_SPARSE_SHARED, n, p0, p1, p2, p3, p4, p5)                      \
    }                                                                                                        \
    template <typename A, typename B, bool kAdds, Order, Order kRight>                                       \
    static __device__ void QueueSparse(SumOf<A> (&sums)[n / 2], const uint32_t (&a)[4], uint64_t b,          \
                                       uint32_t metadata) {                                                  \
      SWIZZLE_EACH_OPERAND_TYPE(SWIZZLE_WGMMA_SPARSE_REGISTERS, n, p0, p1, p2, p3, p4, p5, p6, p7)           \
    }                                                                                                        \
  };
SWIZZLE_WGMMA_EACH_SHAPE(SWIZZLE_WGMMA_SHAPE)
#undef SWIZZLE_WGMMA_SHAPE
#undef SWIZZLE_WGMMA_ASM

// sums (+)= left * right; [64, 32 bytes] * [32 bytes, N], N being twice the sums. `left` are a lane's registers, or as
// `right` is, SharedOperand. Neither registers nor sums may be touched until WaitForProducts.
template <bool kAdds, typename A, typename B = A, Order kRight = kDepthInner, Order kLeft = kDepthInner, typename Left,
          int kCount>
__device__ void QueueProduct(SumOf<A> (&sums)[kCount], const Left& left, uint64_t right) {
  WgmmaShape<2 * kCount>::template Queue<A, B, kAdds, kLeft, kRight>(sums, left, right);
}

// The same where `left` is what is left of a sparse operand of twice the depth, and `metadata` says where.
template <bool kAdds, typename A, typename B = A, Order kRight = kDepthInner, Order kLeft = kDepthInner, typename Left,
          int kCount>
__device__ void QueueSparseProduct(SumOf<A> (&sums)[kCount], const Left& left, uint64_t right, uint32_t metadata) {
  WgmmaShape<2 * kCount>::template QueueSparse<A, B, kAdds, kLeft, kRight>(sums, left, right, metadata);
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_TENSOR_CORE_WGMMA_CUH_
