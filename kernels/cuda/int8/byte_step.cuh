// What a warp does with 32 columns of a panel and a tile of X in shared memory: the inner part of spmm_bytes.h. Device
// code.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_BYTE_STEP_CUH_
#define SWIZZLE_KERNELS_CUDA_INT8_BYTE_STEP_CUH_

#include "kernels/cuda/int8/byte_panels.h"
#include "kernels/cuda/tensor_core/mma.cuh"

namespace swizzle::cuda {

inline constexpr int kByteWarp = 32, kChunkBytes = 16, kStepColumns = BytePanels::kStep;

// From one head to the next, and from one sequence's heads to those of the next; of X in bytes, of weights in bytes, of
// Y in elements.
struct HeadStrides {
  int64_t head = 0, sequence = 0;
  __device__ int64_t Of(int index, int heads) const { return index / heads * sequence + index % heads * head; }
};

struct ByteArgs {
  const uint8_t* x[2];  // digits, the lower first
  int64_t pitch;
  const BytePanel* panels;
  const uint16_t* columns;
  const uint8_t* weights;
  int32_t rows;  // of X and W, as its kernel needs them
  int32_t cols;
  int32_t chunks;  // of a row of X
  int32_t panel_count;
  int32_t tiles;   // of columns
  int64_t stride;  // of Y
  // Products that differ in X and weights' values only, for widths that have heads: one for each blockIdx.y.
  int32_t heads = 1, all_heads = 1;  // of a sequence, of all
  HeadStrides x_strides = {}, weight_strides = {}, y_strides = {};
};

// Of how many bits the operands are, and what follows from that. kTile: chunks of a tile, where not as many as fit.
template <int kWeights, int kColumns, bool kSignedColumns = true, int kTile = 0>
struct ByteWidths {
  template <int kChunksOfTile>
  using WithTile = ByteWidths<kWeights, kColumns, kSignedColumns, kChunksOfTile>;
  static constexpr bool kHeads = false;
  using Sum = int32_t;  // of all powers: wraps around where it does not fit
  static constexpr int kWeightBits = kWeights;
  static constexpr int kWeightDigits = kWeights > 8 ? 2 : 1;
  static constexpr int kColumnDigits = kColumns > 8 ? 2 : 1;
  static constexpr int kStepBytes = BytePanels::StepBytes(kWeights);
  static constexpr int kDigitBytes = BytePanels::StepBytes(8);
  static constexpr bool kHalfWeights = kWeights % 8 != 0;  // the upper digit is of 4 bits
  static constexpr bool kHalfColumns = kColumns == 4;
  static constexpr int kColumnsOfByte = kHalfColumns ? 2 : 1;
  static constexpr int kPowers = kWeightDigits + kColumnDigits - 1;                          // of 256 that sums are of
  static constexpr int kSumsOfChunk = 4 * kColumnsOfByte;                                    // of a lane
  static constexpr int kChunks = kTile != 0 ? kTile : kPowers * kColumnsOfByte > 2 ? 4 : 8;  // of a tile: registers
  template <int kDigit>
  using Column = std::conditional_t<kDigit == kColumnDigits - 1 && kSignedColumns, int8_t, uint8_t>;
  template <int kDigit>
  using WeightDigit = std::conditional_t<kDigit == kWeightDigits - 1, int8_t, uint8_t>;

  // What the sum of a power is to be shifted by: halves are multiplied as sixteen times what they are.
  __host__ __device__ static constexpr int Shift(int power) {
    const bool upper = kHalfWeights && power == kPowers - 1;
    return 8 * power - (upper ? 4 : 0) - (kHalfColumns ? 4 : 0);
  }
};

// A lane's sums of a tile: of chunk i, by powers, rows 2t and 2t + 1 of the panel at neighbouring columns (see Finish).
template <typename W>
using ByteSums = int32_t[W::kChunks][W::kPowers][W::kSumsOfChunk];

// Where chunk 0 of a row of a tile lies in shared memory; chunk i is at the same address ^ 16 i. Rows of which eight
// follow each other, or differ in the lowest three bits, have chunk i in different banks.
template <int kChunks>
__device__ uint32_t RowInTile(uint32_t row) {
  constexpr int kShift = kChunks == 8 ? 0 : 1;
  static_assert(kChunks == 8 || kChunks == 4);
  return row * (kChunks * kChunkBytes) + (row >> kShift & (kChunks - 1)) * kChunkBytes;
}

// The weights of a step, as products take them: of each digit two words.
template <typename W>
struct StepWeights {
  uint32_t words[W::kWeightDigits][2];

  __device__ void Load(const uint8_t* weights, uint32_t step) {
    const int lane = threadIdx.x % kByteWarp;
    const uint8_t* from = weights + size_t{step} * W::kStepBytes;
#pragma unroll
    for (int digit = 0; digit < W::kWeightDigits; ++digit) {
      if (W::kHalfWeights && digit == W::kWeightDigits - 1) {
        const uint32_t word = __ldg(reinterpret_cast<const uint32_t*>(from) + lane);
        words[digit][0] = word << 4 & 0xF0F0F0F0u, words[digit][1] = word & 0xF0F0F0F0u;
      } else {
        const uint2 both = __ldg(reinterpret_cast<const uint2*>(from) + lane);
        words[digit][0] = both.x, words[digit][1] = both.y;
      }
      from += W::kDigitBytes;
    }
  }
};

// Bytes 2g and 2g + 1 of a chunk of 32 slots, as words of four slots.
struct ChunkWords {
  uint32_t even[2], odd[2];
};

// row: the address of the chunk in the row of slot `lane`.
__device__ inline ChunkWords ReadChunk(uint32_t row) {
  uint32_t bytes[4];
  LoadTransposed(bytes, row);
  return {{__byte_perm(bytes[0], bytes[1], 0x6420), __byte_perm(bytes[2], bytes[3], 0x6420)},
          {__byte_perm(bytes[0], bytes[1], 0x7531), __byte_perm(bytes[2], bytes[3], 0x7531)}};
}

// The same byte by byte. `row` is that of slot `lane`, as above.
__device__ inline ChunkWords ReadChunkByBytes(uint32_t row) {
  const int lane = threadIdx.x % kByteWarp, g = lane / 4, t = lane % 4;
  ChunkWords words = {};
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int slot = i / 4 * 16 + i % 4 / 2 * 8 + 2 * t + i % 2;
    const uint32_t from = __shfl_sync(0xffffffffu, row, slot) + 2 * g;
    uint32_t even, odd;
    asm volatile("ld.shared.u8 %0, [%1];" : "=r"(even) : "r"(from) : "memory");
    asm volatile("ld.shared.u8 %0, [%1];" : "=r"(odd) : "r"(from + 1) : "memory");
    words.even[i / 4] |= even << 8 * (i % 4);
    words.odd[i / 4] |= odd << 8 * (i % 4);
  }
  return words;
}

template <typename Column, typename WeightDigit>
__device__ void MultiplyWords(const uint32_t (&first)[2], const uint32_t (&second)[2], const uint32_t (&weights)[2],
                              int32_t* sums) {
  const uint32_t a[4] = {first[0], second[0], first[1], second[1]};
  Mma<Column, WeightDigit>(reinterpret_cast<int32_t(&)[4]>(*sums), a, weights[0], weights[1]);
}

template <typename W, int kColumnDigit, int kWeightDigit>
__device__ void MultiplyDigits(const ChunkWords& x, const StepWeights<W>& weights,
                               int32_t (&sums)[W::kPowers][W::kSumsOfChunk]) {
  using Column = typename W::template Column<kColumnDigit>;
  using Digit = typename W::template WeightDigit<kWeightDigit>;
  const uint32_t(&words)[2] = weights.words[kWeightDigit];
  int32_t* const to = sums[kColumnDigit + kWeightDigit];
  if constexpr (W::kHalfColumns) {
    constexpr uint32_t kUpper = 0xF0F0F0F0u;
    const uint32_t even_first[2] = {x.even[0] << 4 & kUpper, x.even[1] << 4 & kUpper};
    const uint32_t even_second[2] = {x.even[0] & kUpper, x.even[1] & kUpper};
    const uint32_t odd_first[2] = {x.odd[0] << 4 & kUpper, x.odd[1] << 4 & kUpper};
    const uint32_t odd_second[2] = {x.odd[0] & kUpper, x.odd[1] & kUpper};
    MultiplyWords<Column, Digit>(even_first, even_second, words, to);
    MultiplyWords<Column, Digit>(odd_first, odd_second, words, to + 4);
  } else {
    MultiplyWords<Column, Digit>(x.even, x.odd, words, to);
  }
}

// Adds a step. row: of the lane's slot, of the first digit of X; those of the second are `digit_bytes` later. kAll: of
// all chunks of a tile, with no branch between products.
template <typename W, bool kTransposes, bool kAll>
__device__ void AddChunks(uint32_t row, uint32_t digit_bytes, int chunks, const StepWeights<W>& weights,
                          ByteSums<W>& sums) {
#pragma unroll
  for (int i = 0; i < W::kChunks; ++i) {
    if (!kAll && i >= chunks) continue;
    const uint32_t at = row ^ i * kChunkBytes;
    const ChunkWords low = kTransposes ? ReadChunk(at) : ReadChunkByBytes(at);
    MultiplyDigits<W, 0, 0>(low, weights, sums[i]);
    if constexpr (W::kWeightDigits == 2) MultiplyDigits<W, 0, 1>(low, weights, sums[i]);
    if constexpr (W::kColumnDigits == 2) {
      const ChunkWords high = ReadChunk(at + digit_bytes);
      MultiplyDigits<W, 1, 0>(high, weights, sums[i]);
      if constexpr (W::kWeightDigits == 2) MultiplyDigits<W, 1, 1>(high, weights, sums[i]);
    }
  }
}

template <typename W, bool kTransposes = true>
__device__ void AddStep(uint32_t row, uint32_t digit_bytes, int chunks, const StepWeights<W>& weights,
                        ByteSums<W>& sums) {
  if (chunks == W::kChunks) return AddChunks<W, kTransposes, true>(row, digit_bytes, chunks, weights, sums);
  AddChunks<W, kTransposes, false>(row, digit_bytes, chunks, weights, sums);
}

// What a lane's sums of a chunk come to: of rows 2t and 2t + 1 at kColumnsOfByte * 2 neighbouring columns from column
// kColumnsOfByte * 2g of the chunk on.
template <typename W>
__device__ void JoinPowers(const int32_t (&sums)[W::kPowers][W::kSumsOfChunk],
                           typename W::Sum (&joined)[2][2 * W::kColumnsOfByte]) {
#pragma unroll
  for (int i = 0; i < W::kSumsOfChunk; ++i) {
    typename W::Sum sum = 0;
#pragma unroll
    for (int power = 0; power < W::kPowers; ++power) {
      constexpr int kMost = 31;
      const int shift = W::Shift(power);
      if constexpr (std::is_same_v<typename W::Sum, float>) {
        sum += static_cast<float>(sums[power][i]) * static_cast<float>(1 << (shift & kMost));
      } else {
        sum += shift >= 0 ? static_cast<int32_t>(static_cast<uint32_t>(sums[power][i]) << (shift & kMost))
                          : sums[power][i] >> (-shift & kMost);
      }
    }
    joined[i % 2][i / 4 * 2 + i % 4 / 2] = sum;
  }
}

// Hands a chunk's sums to `output`, which has Store(row, column, values) of neighbouring columns.
template <typename W, typename Output>
__device__ void Finish(const int32_t (&sums)[W::kPowers][W::kSumsOfChunk], int chunk, const BytePanel& panel,
                       const ByteArgs& args, const Output& output) {
  const int lane = threadIdx.x % kByteWarp, g = lane / 4, t = lane % 4;
  typename W::Sum joined[2][2 * W::kColumnsOfByte];
  JoinPowers<W>(sums, joined);
  const int64_t column = (int64_t{chunk} * kChunkBytes + 2 * g) * W::kColumnsOfByte;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = static_cast<int>(panel.row) + 2 * t + i;
    if (row < args.rows) output.Store(row, row * args.stride + column, joined[i]);
  }
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_BYTE_STEP_CUH_
