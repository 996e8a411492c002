// Products of whole numbers on a GPU: Y[M,N] = W[M,K] X[K,N], W sparse and packed by byte_panels.h, X and Y in kRows.
// Sums are of 32 bits, and exact where they fit.
//
// After Magicube's SpMM (Li et al., SC 2022, section 4.2), with the operands of mma.m16n8k32 changed over, so that the
// eight rows of a panel are its n: a warp multiplies a panel with 128 columns of X. Of each step of 32 columns of W,
// the rows of X that it names lie in shared memory, each in 16-byte chunks. One ldmatrix.trans reads a chunk of all 32:
// a lane gets neighbouring bytes of eight rows, and four PRMT make of them the words of four rows at one column that
// the product takes. Nothing in X is turned before.
//
// Where the rows come from:
//   gather     A warp copies the rows of its next steps to a ring of its own (cp.async), straight from the second
//              cache. In few panels four warps share one, each with every fourth step.
//   resident   A CTA holds a column tile of all of X, and its warps take panels in turn: X is read once a CTA, whatever
//              the number of panels. Tiles of 128 or 64 bytes of a row. Needs K times as many bytes.
// Bounds on an H200: an ldmatrix of 512 bytes takes 4 clocks and feeds 4096 multiply-adds, which is 1024 a clock and
// SM, 470 TOP/s; PRMT takes half of that time, products 40 %.
//
// Wider numbers go by digits to a base of 256 (byte_panels.h): a product of each digit of W and each of X, added up
// shifted. Numbers of 4 bits are stored as such, X's two to a byte, and multiplied as bytes, of which they are the
// upper half: Hopper has no products of 4 bits, and moving them there takes one shift and no sign extension.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_SPMM_BYTES_H_
#define SWIZZLE_KERNELS_CUDA_INT8_SPMM_BYTES_H_

#include <cuda_runtime.h>

#include <cstdint>
#include <string_view>

#include "kernels/cuda/int8/byte_panels.h"
#include "kernels/cuda/int8/sum_ends.h"

namespace swizzle::cuda {

enum class ByteWay { kGather, kGatherShared, kResident128, kResident64 };
inline constexpr ByteWay kByteWays[] = {ByteWay::kGather, ByteWay::kGatherShared, ByteWay::kResident128,
                                        ByteWay::kResident64};
std::string_view ByteWayName(ByteWay way);
// Whether a tile of so many rows of X fits the current device.
bool FitsResident(ByteWay way, int64_t cols);

// X, in device memory: K rows, `pitch` bytes apart, a multiple of 16. Of 16 bits it is two matrices of digits, the
// lower unsigned; of 4 bits a byte has two columns, the first one lower.
struct WholeColumns {
  int bits = 8;           // 4, 8 or 16
  bool is_signed = true;  // of 8 bits
  const void* low = nullptr;
  const void* high = nullptr;  // of 16 bits
  int64_t pitch = 0;
};

struct ByteOperands {
  const BytePanels* weight = nullptr;
  WholeColumns x;
  int64_t columns = 0;  // N; columns up to the end of a chunk of 16 bytes of X are computed too
  int64_t stride = 0;   // of rows of Y and the residual, in elements: at least what is computed, a multiple of 16
  void* y = nullptr;
};

// Y is sums of 32 bits. W and X are 16-16, 16-8, 16-4, 12-4, 8-8, 8-4 or 4-4 bits, of which only 8-8 takes X without
// signs, and 16-16 goes by kGather and kGatherShared alone.
bool HasSums(int weight_bits, int column_bits, ByteWay way);
void QueueSums(const ByteOperands& operands, ByteWay way, int multiprocessors, cudaStream_t queue);

// How rows are gathered, by the ways above or for ablations (tests/bench/cuda/gather_forms.h).
struct GatherForm {
  bool shared = false;        // four warps share a panel with a tile
  int tile = 0;               // chunks of a row of X that a warp multiplies at once: 4 or, where 0, as many as fit
  int stages = 3;             // of the ring, all but one of them ahead of products
  bool conflict_free = true;  // an order of chunks that keeps banks apart
  bool transposes = true;     // words by ldmatrix.trans, not put together from bytes
  bool names_at_once = true;  // column numbers are loaded in the order in which they lie, not one by one
};

// With the ends of a layer. REQUIRES: 8-8 bits, X without signs.
void QueueEnded(const ByteOperands& operands, const SumEnds& ends, ByteWay way, int multiprocessors,
                cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_SPMM_BYTES_H_
