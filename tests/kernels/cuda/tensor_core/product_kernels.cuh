// The kernels of product_variants.h: one product each, of operands that are brought to where it reads them.
#ifndef SWIZZLE_TESTS_KERNELS_CUDA_TENSOR_CORE_PRODUCT_KERNELS_CUH_
#define SWIZZLE_TESTS_KERNELS_CUDA_TENSOR_CORE_PRODUCT_KERNELS_CUH_

#include <string>
#include <vector>

#include "kernels/cuda/tensor_core/mma.cuh"
#include "kernels/cuda/tensor_core/pipeline.cuh"
#include "kernels/cuda/tensor_core/wgmma.cuh"
#include "tests/kernels/cuda/tensor_core/product_variants.h"

namespace swizzle::cuda {

template <typename Sum>
__device__ uint32_t BitsOf(Sum sum) {
  if constexpr (std::is_same_v<Sum, float>) return __float_as_uint(sum);
  return static_cast<uint32_t>(sum);
}

// A lane's words of 16 rows on the left.
__device__ inline void LoadLeft(const uint32_t* rows, uint32_t (&a)[4]) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  for (int i = 0; i < 4; ++i) a[i] = rows[(g + i % 2 * 8) * 8 + t + i / 2 * 4];
}

template <typename A, typename B, bool kSparse>
__global__ void MultiplyByWarp(const uint32_t* left, const uint32_t* right, uint32_t metadata, uint32_t* sums) {
  constexpr int kWords = kSparse ? 16 : 8;
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  uint32_t a[4], b[kWords / 4];
  LoadLeft(left, a);
  for (int i = 0; i < kWords / 4; ++i) b[i] = right[g * kWords + t + 4 * i];
  SumOf<A> c[4] = {};
  for (int i = 0; i < 2; ++i) {
    if constexpr (kSparse) {
      SparseMma<A, B>(c, a, b, metadata);
    } else {
      Mma<A, B>(c, a, b[0], b[1]);
    }
  }
  for (int i = 0; i < 4; ++i) sums[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = BitsOf(c[i]);
}

// An operand as SharedOperand has it, of kRows rows of kWords words.
template <int kRows, int kWords>
struct alignas(1024) InnerTile {
  uint32_t words[kRows][32];
  __device__ void Fill(const uint32_t* from) {
    for (int i = threadIdx.x; i < kRows * kWords; i += blockDim.x) {
      const int row = i / kWords, word = i % kWords;
      words[row][(word / 4 ^ row % 8) * 4 + word % 4] = from[i];
    }
  }
  __device__ uint64_t operand() const { return SharedOperand(SharedAddress(this)); }
};

// The same with the depth as rows: 64 of the operand's rows beside each other, the next 64 after them.
template <int kRows, int kWords>
struct alignas(1024) OuterTile {
  static constexpr int kDepth = 2 * kWords;
  uint16_t elements[(kRows + 63) / 64][kDepth][64];
  __device__ void Fill(const uint32_t* from) {
    const auto* const halves = reinterpret_cast<const uint16_t*>(from);
    for (int i = threadIdx.x; i < kRows * kDepth; i += blockDim.x) {
      const int row = i / kDepth, depth = i % kDepth, piece = row % 64 / 8;
      elements[row / 64][depth][(piece ^ depth % 8) * 8 + row % 8] = halves[i];
    }
  }
  __device__ uint64_t operand() const { return SharedOperand(SharedAddress(this), sizeof(elements[0])); }
};

template <bool kSparse, bool kAdds, typename A, typename B, Order kOrder, typename Left, int kCount>
__device__ void QueueEither(SumOf<A> (&sums)[kCount], const Left& left, uint64_t right, uint32_t metadata) {
  if constexpr (kSparse) {
    QueueSparseProduct<kAdds, A, B, kOrder, kOrder>(sums, left, right, metadata);
  } else {
    QueueProduct<kAdds, A, B, kOrder, kOrder>(sums, left, right);
  }
}

template <int kColumns, typename A, typename B, Place kPlace, bool kSparse>
__global__ void MultiplyByGroup(const uint32_t* left, const uint32_t* right, uint32_t metadata, uint32_t* sums) {
  constexpr bool kOuter = kPlace == Place::kRegistersOuter || kPlace == Place::kSharedOuter;
  constexpr int kWords = kSparse ? 16 : 8;
  using LeftTile = std::conditional_t<kOuter, OuterTile<64, 8>, InnerTile<64, 8>>;
  using RightTile = std::conditional_t<kOuter, OuterTile<kColumns, kWords>, InnerTile<kColumns, kWords>>;
  constexpr Order kOrder = kOuter ? kDepthOuter : kDepthInner;
  __shared__ LeftTile left_tile;
  __shared__ RightTile right_tile;
  left_tile.Fill(left);
  right_tile.Fill(right);
  PublishToProducts();
  __syncthreads();
  SumOf<A> c[kColumns / 2];
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  if constexpr (kPlace == Place::kShared || kPlace == Place::kSharedOuter) {
    FenceProducts();
    QueueEither<kSparse, false, A, B, kOrder>(c, left_tile.operand(), right_tile.operand(), metadata);
    QueueEither<kSparse, true, A, B, kOrder>(c, left_tile.operand(), right_tile.operand(), metadata);
  } else {
    uint32_t a[4];
    LoadLeft(left + warp * 16 * 8, a);
    FinishOperand(a);
    FenceProducts();
    QueueEither<kSparse, false, A, B, kOrder>(c, a, right_tile.operand(), metadata);
    QueueEither<kSparse, true, A, B, kOrder>(c, a, right_tile.operand(), metadata);
  }
  CommitProducts();
  WaitForProducts(c);
  for (int i = 0; i < kColumns / 2; ++i) {
    const int row = warp * 16 + g + i / 2 % 2 * 8, column = i / 4 * 8 + 2 * t + i % 2;
    sums[row * kColumns + column] = BitsOf(c[i]);
  }
}

// Collects variants of one pair of types.
template <typename A, typename B>
class VariantsOf {
 public:
  VariantsOf(std::string types, Factor left, Factor right, std::vector<ProductVariant>& to)
      : types_(std::move(types)), left_(left), right_(right), to_(to) {}

  void AddWarps() {
    AddWarp<false>();
    AddWarp<true>();
  }
  template <int kColumns>
  void AddGroups() {
    AddGroup<kColumns, Place::kRegisters, false>();
    AddGroup<kColumns, Place::kShared, false>();
    AddGroup<kColumns, Place::kRegisters, true>();
    AddGroup<kColumns, Place::kShared, true>();
  }
  template <int kColumns>
  void AddOuterGroups() {
    AddGroup<kColumns, Place::kRegistersOuter, false>();
    AddGroup<kColumns, Place::kSharedOuter, false>();
  }

 private:
  template <bool kSparse>
  void AddWarp() {
    to_.push_back({"mma " + types_ + (kSparse ? " sparse" : ""), left_, right_, 16, 8, kSparse, false,
                   [](const uint32_t* left, const uint32_t* right, uint32_t metadata, uint32_t* sums) {
                     MultiplyByWarp<A, B, kSparse><<<1, 32>>>(left, right, metadata, sums);
                   }});
  }
  template <int kColumns, Place kPlace, bool kSparse>
  void AddGroup() {
    constexpr const char* kPlaces[] = {"", " from registers", " from shared memory", " from registers, depth outer",
                                       " from shared memory, depth outer"};
    std::string name = "wgmma n" + std::to_string(kColumns) + " " + types_ + kPlaces[static_cast<int>(kPlace)];
    to_.push_back({name + (kSparse ? " sparse" : ""), left_, right_, 64, kColumns, kSparse, true,
                   [](const uint32_t* left, const uint32_t* right, uint32_t metadata, uint32_t* sums) {
                     MultiplyByGroup<kColumns, A, B, kPlace, kSparse><<<1, 128>>>(left, right, metadata, sums);
                   }});
  }

  const std::string types_;
  const Factor left_, right_;
  std::vector<ProductVariant>& to_;
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_TESTS_KERNELS_CUDA_TENSOR_CORE_PRODUCT_KERNELS_CUH_
