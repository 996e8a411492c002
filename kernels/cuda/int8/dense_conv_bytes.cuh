// What the kernels of dense_conv_bytes.h have in common: where columns come from, and how a lane's sums end. Device
// code, and what a launch is made of.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_DENSE_CONV_BYTES_CUH_
#define SWIZZLE_KERNELS_CUDA_INT8_DENSE_CONV_BYTES_CUH_

#include <utility>

#include "kernels/cuda/int8/byte_columns.h"
#include "kernels/cuda/int8/sum_ends.cuh"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/cuda/runtime/shared_memory.h"
#include "kernels/cuda/tensor_core/pipeline.cuh"
#include "kernels/whole_numbers/byte_weight.h"

namespace swizzle::cuda {

inline constexpr int kConvPiece = static_cast<int>(kByteUnit);  // columns that lie together
inline constexpr int kConvGroup = 64;                           // channels that weights are packed by
inline constexpr int kConvProducts = kConvGroup / 8;            // across them

// Where a piece of columns lies: how far from a window's first tap, in elements and in the plane.
struct PieceTap {
  int32_t offset;
  int16_t y, x;
};

struct DenseConvArgs {
  const uint8_t* input;
  const uint8_t* weights;   // [group][step]
  const PieceTap* taps;     // of all pieces of all steps
  uint32_t outside;         // four bytes
  int32_t positions, rows;  // rows: channels of the output
  int32_t pieces, steps, groups, channel_tiles;
  bool direct;  // a position's columns lie together, `line` bytes from one to the next
  int32_t line, channels, height, width;
  int32_t stride_h, stride_w, pad_top, pad_left;
  FastDivider out_width, out_height;
};

// A weight in device memory: see dense_conv_bytes.h. Immutable.
class ByteTiles {
 public:
  ByteTiles(DeviceArray<int8_t> weights, int64_t steps, DeviceArray<PieceTap> taps)
      : weights_(std::move(weights)), steps_(steps), taps_(std::move(taps)) {}
  // For wgmma, of positions whose columns lie together, filled up to whole pieces.
  static StatusOr<ByteTiles> OfLines(const ByteWeight& weight);

  size_t bytes() const { return weights_.bytes() + taps_.bytes(); }
  void NameIn(DenseConvArgs& args) const {
    args.weights = reinterpret_cast<const uint8_t*>(weights_.data());
    args.taps = taps_.data();
    args.steps = static_cast<int32_t>(steps_);
  }

 private:
  DeviceArray<int8_t> weights_;
  int64_t steps_;
  DeviceArray<PieceTap> taps_;
};

// Of a layer's launch, but for channel_tiles; what it needs of the workspace is queued.
DenseConvArgs DenseConvArgsOf(const KernelArgs& args, Stream& stream);
SumEnds DenseConvEndsOf(const KernelArgs& args);

// kCount output positions, kApart from one to the next, whose pieces a thread copies.
template <int kCount, int kApart>
class ConvPlaces {
 public:
  __device__ ConvPlaces(const DenseConvArgs& args, int first) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int position = first + i * kApart;
      base_[i] = 0, y_[i] = kNowhere, x_[i] = 0;
      if (position >= args.positions) continue;
      y_[i] = 0;
      if (args.direct) {
        base_[i] = position * args.line;
        continue;
      }
      auto rest = static_cast<uint32_t>(position);
      x_[i] = static_cast<int32_t>(args.out_width.Split(rest)) * args.stride_w - args.pad_left;
      y_[i] = static_cast<int32_t>(args.out_height.Split(rest)) * args.stride_h - args.pad_top;
      base_[i] = ((static_cast<int32_t>(rest) * args.height + y_[i]) * args.width + x_[i]) * args.channels;
    }
  }

  // The piece of position i, to shared memory. What lies outside is stored rather than copied: all blocks would ask one
  // part of the second cache for it.
  __device__ void Copy(const DenseConvArgs& args, int i, PieceTap tap, uint32_t to) const {
    const bool inside = static_cast<uint32_t>(y_[i] + tap.y) < static_cast<uint32_t>(args.height) &&
                        static_cast<uint32_t>(x_[i] + tap.x) < static_cast<uint32_t>(args.width);
    if (inside) {
      CopyPiece(to, args.input + (base_[i] + tap.offset));
    } else {
      asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(to), "r"(args.outside) : "memory");
    }
  }

 private:
  static constexpr int32_t kNowhere = -16384;  // of positions that fill tiles up: outside any plane that is accepted
  int32_t base_[kCount], y_[kCount], x_[kCount];
};

// What a lane's 16 channels from `channel` on have of a residual, of each fragment at positions 16 apart and at those 8
// further. Asked for before the sums are there.
template <int kFragments>
struct AddedFragments {
  uint32_t words[kFragments][2][4];

  __device__ void Load(const DenseConvArgs& args, const uint8_t* residual, int first_position, int channel) {
#pragma unroll
    for (int i = 0; i < kFragments; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint32_t(&of)[4] = words[i][half];
        const int position = first_position + i * 16 + half * 8;
        of[0] = of[1] = of[2] = of[3] = 0;
        if (residual == nullptr || position >= args.positions || channel >= args.rows) continue;
        const uint8_t* const from = residual + int64_t{position} * args.rows + channel;
        if (args.rows % kConvPiece == 0) {
          const uint4 all = *reinterpret_cast<const uint4*>(from);
          of[0] = all.x, of[1] = all.y, of[2] = all.z, of[3] = all.w;
          continue;
        }
#pragma unroll
        for (int c = 0; c < kConvPiece; ++c) {
          if (channel + c < args.rows) of[c / 4] |= uint32_t{from[c]} << 8 * (c % 4);
        }
      }
    }
  }
};

// Their bytes. Sums of product j are those of two neighbouring channels at the one position and then at the other.
// ends(i): FourEnds of the lane's channels from 4 i on.
template <int kFragments, typename Ends>
__device__ void StoreFragments(const DenseConvArgs& args, const int32_t (&sums)[kFragments][kConvProducts][4],
                               const AddedFragments<kFragments>& added, int first_position, int channel,
                               const StoreBytes& store, const Ends& ends_of) {
  const int count = min(args.rows - channel, kConvPiece);
  if (count <= 0) return;
  const bool whole = args.rows % kConvPiece == 0;
  uint32_t words[kFragments][2][4] = {};
#pragma unroll
  for (int four = 0; four < 4; ++four) {
    const FourEnds ends = ends_of(four);
#pragma unroll
    for (int i = 0; i < kFragments; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int32_t of_four[4] = {sums[i][2 * four][2 * half], sums[i][2 * four][2 * half + 1],
                                    sums[i][2 * four + 1][2 * half], sums[i][2 * four + 1][2 * half + 1]};
        words[i][half][four] = store.WordOf(ends, of_four, added.words[i][half][four]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kFragments; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int position = first_position + i * 16 + half * 8;
      if (position >= args.positions) continue;
      uint8_t* const to = store.y + int64_t{position} * args.rows + channel;
      const uint32_t(&of)[4] = words[i][half];
      if (whole) {
        *reinterpret_cast<uint4*>(to) = make_uint4(of[0], of[1], of[2], of[3]);
      } else {
#pragma unroll
        for (int c = 0; c < kConvPiece; ++c) {
          if (c < count) to[c] = static_cast<uint8_t>(of[c / 4] >> 8 * (c % 4));
        }
      }
    }
  }
}

// Real numbers that a store takes kPack neighbouring channels of, at one position at a time (kDirect): of a lane's sums
// as StoreFragments has them.
template <int kFragments, typename Store>
__device__ void StoreRealFragments(const DenseConvArgs& args, const int32_t (&sums)[kFragments][kConvProducts][4],
                                   int first_position, int channel, const Store& store) {
  constexpr int kPack = Store::kPack;
#pragma unroll
  for (int part = 0; part < kConvPiece / kPack; ++part) {
    const int first = channel + part * kPack, count = min(args.rows - first, kPack);
    if (count <= 0) return;
    const auto ends = store.EndsOf(first);
#pragma unroll
    for (int i = 0; i < kFragments * 2; ++i) {
      const int position = first_position + i * 8;
      if (position >= args.positions) continue;
      int32_t of_pack[kPack];
#pragma unroll
      for (int c = 0; c < kPack; ++c) of_pack[c] = sums[i / 2][(part * kPack + c) / 2][i % 2 * 2 + c % 2];
      store.StoreChannels(ends, position, int64_t{position} * args.rows + first, count, of_pack);
    }
  }
}

// Others go through shared memory: sums of a tile, [position][channel].
template <int kFragments>
__device__ void ParkFragments(const int32_t (&sums)[kFragments][kConvProducts][4], int first_position, int channel,
                              int tile_channels, int32_t* parked) {
#pragma unroll
  for (int i = 0; i < kFragments; ++i) {
#pragma unroll
    for (int j = 0; j < kConvProducts * 4; ++j) {
      const int position = first_position + i * 16 + j % 4 / 2 * 8;
      parked[position * tile_channels + channel + j / 4 * 2 + j % 2] = sums[i][j / 4][j % 4];
    }
  }
}
template <int kPositions, int kChannels, int kThreads, typename Store>
__device__ void StoreParked(const DenseConvArgs& args, const int32_t* parked, int first_position, int first_channel,
                            const Store& store) {
  for (int i = threadIdx.x; i < kPositions * kChannels; i += kThreads) {
    const int position = first_position + i / kChannels, channel = first_channel + i % kChannels;
    if (position >= args.positions || channel >= args.rows) continue;
    const int32_t sum[1] = {parked[i]};
    store.Store(channel, int64_t{position} * args.rows + channel, sum);
  }
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_DENSE_CONV_BYTES_CUH_
