// How warps read a weight that fragment_csr.h packed into the registers that tensor cores take. Device code.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_CSR_FRAGMENT_READER_CUH_
#define SWIZZLE_KERNELS_CUDA_CONV_CSR_FRAGMENT_READER_CUH_

#include <cuda_runtime.h>

#include <cstdint>

namespace swizzle::cuda {

// The operands of a block of W: of a warp, a lane's places of four matrices.
struct BlockEntries {
  uint32_t places[4][2];

  __device__ void Load(const uint4 (&halves)[2], const uint32_t* entries) {
    const uint32_t bit = threadIdx.x % 16 * 2, below = (1u << bit) - 1;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t mask = i % 2 == 0 ? halves[i / 2].x : halves[i / 2].z;
      const uint32_t begin = i % 2 == 0 ? halves[i / 2].y : halves[i / 2].w;
      const uint32_t first = mask >> bit & 1, second = mask >> bit & 2;
      const uint32_t* const at = entries + (begin + __popc(mask & below));
      places[i][0] = first != 0 ? __ldg(at) : 0;
      places[i][1] = second != 0 ? __ldg(at + first) : 0;
    }
  }
  __device__ void Split(uint32_t (&upper)[4], uint32_t (&rest)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      upper[i] = __byte_perm(places[i][0], places[i][1], 0x5410);
      rest[i] = __byte_perm(places[i][0], places[i][1], 0x7632);
    }
  }
};

// A warp's 16 rows of W, read ahead: entries of the next kSteps blocks, and where those kStride blocks further lie.
// Args are the kernel's, and have what a FragmentCsr has: `halves`, two to an element, `entries` and `steps`.
template <typename Args, int kSteps, int kStride>
class FragmentReader {
  static constexpr int kPieces = 4;  // uint4s of a block

 public:
  __device__ FragmentReader(const Args& args, int row_block, int first_step, int end)
      : args_(args), step_(first_step), end_(end) {
    halves_at_ = args.halves + int64_t{row_block} * args.steps * kPieces + threadIdx.x % 32 / 16 * 2;
    LoadHalves();
  }

  __device__ void Take(uint32_t (&upper)[kSteps][4], uint32_t (&rest)[kSteps][4]) const {
#pragma unroll
    for (int i = 0; i < kSteps; ++i) entries_[i].Split(upper[i], rest[i]);
  }
  __device__ void LoadEntries() {
#pragma unroll
    for (int i = 0; i < kSteps; ++i) entries_[i].Load(halves_[i], args_.entries);
  }

  __device__ void LoadHalves() {
    if (step_ >= end_) return;
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      const uint4* const at = halves_at_ + (step_ + i) * kPieces;
      halves_[i][0] = __ldg(at), halves_[i][1] = __ldg(at + 1);
    }
    step_ += kStride;
  }

 private:
  const Args& args_;
  const uint4* halves_at_;
  int step_;
  const int end_;
  uint4 halves_[kSteps][2] = {};
  BlockEntries entries_[kSteps];
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_CSR_FRAGMENT_READER_CUH_
