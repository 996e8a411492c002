#include <cuda_pipeline.h>

#include "kernels/base/integers.h"
#include "kernels/cuda/conv/bitmap/bitmap_encode.cuh"
#include "kernels/cuda/conv/bitmap/bitmap_product.h"
#include "kernels/cuda/runtime/epilogue.cuh"
#include "kernels/cuda/runtime/launch_grid.h"
#include "kernels/cuda/runtime/shared_memory.h"
#include "kernels/cuda/tensor_core/mma.cuh"
#include "kernels/cuda/tensor_core/pipeline.cuh"

namespace swizzle::cuda {
namespace {

constexpr uint32_t kAll = 0xFFFFFFFFu;
constexpr int kWarp = 32, kDepth = 64;  // k of a stage
constexpr int kListed = 4096;           // k that are looked through at once
constexpr uint16_t kNoK = 0xFFFF;       // fills a stage up
constexpr int kListedWords = kListed / 32;

struct Args {
  BitmapView w, sparse_x;
  const uint16_t* x;
  const uint16_t* residual;
  uint16_t* y;
  BitmapTarget encoded;  // words may be null
  PlanesTarget planes;   // bits may be null
  const float* bias;
  int64_t stride, columns;
  int32_t rows, row_tiles;
};

// kSide rows by kSide columns of Y a CTA, in warps of kWarpRows by 32.
template <int kTileSide>
struct Tile {
  static constexpr int kSide = kTileSide, kStrips = kSide / kStripLanes;
  static constexpr int kWarpRows = kSide / 2, kWarpCols = 32, kWarps = 2 * (kSide / kWarpCols);
  static constexpr int kThreads = kWarps * kWarp, kSixteens = kWarpRows / 16;
  static constexpr int kPitch = kSide * 2;                 // bytes of a k
  static constexpr int kPieces = kPitch / 16;              // of 16 bytes
  static constexpr int kOutPitch = kSide + 8;              // elements of a row of Y, in shared memory
  static constexpr int kFoursAhead = kSide == 64 ? 2 : 1;  // of a word's values, in registers
  static constexpr int kPieceMask = kPieces < 8 ? kPieces - 1 : 7;
  static_assert(kStrips * kDepth == kThreads, "a thread decodes one word of either side a stage");
  struct alignas(128) Stage {
    uint8_t w[kDepth * kPitch], x[kDepth * kPitch];
  };
  struct Shared {
    union {
      Stage stages[2];
      uint16_t y[kSide * kOutPitch];
    };
    uint16_t list[kListed + kDepth];
    uint32_t counts[kWarps];
  };
  // Of the 16-byte piece of a k's elements: turned by k, so that a warp that reads eight k meets all banks.
  static __device__ int PieceAt(int k, int piece) { return k * kPitch + ((piece ^ (k & kPieceMask)) << 4); }
};

// Lists the k from `begin` on that count for this CTA, less `begin`; returns how many, and fills the last stage up.
template <typename S, bool kSparseX>
__device__ int ListDepths(const Args& args, int first_row_strip, int first_col_strip, int begin,
                          typename S::Shared& shared) {
  static_assert(kListedWords <= S::kThreads);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, words = args.w.depth / 32;
  const int word = begin / 32 + static_cast<int>(threadIdx.x);
  uint32_t alive = 0;
  if (threadIdx.x < kListedWords && word < words) {
#pragma unroll
    for (int i = 0; i < S::kStrips; ++i) alive |= __ldg(args.w.alive + int64_t{first_row_strip + i} * words + word);
    if constexpr (kSparseX) {
      uint32_t met = 0;
#pragma unroll
      for (int i = 0; i < S::kStrips; ++i) {
        met |= __ldg(args.sparse_x.alive + int64_t{first_col_strip + i} * words + word);
      }
      alive &= met;
    }
  }
  const auto count = static_cast<uint32_t>(__popc(alive));
  uint32_t before = count;
#pragma unroll
  for (int step = 1; step < kWarp; step *= 2) {
    const uint32_t more = __shfl_up_sync(kAll, before, step);
    if (lane >= step) before += more;
  }
  if (lane == kWarp - 1) shared.counts[warp] = before;
  __syncthreads();
  uint32_t at = before - count, total = 0;
#pragma unroll
  for (int i = 0; i < S::kWarps; ++i) {
    if (i < warp) at += shared.counts[i];
    total += shared.counts[i];
  }
  for (; alive != 0; alive &= alive - 1) {
    shared.list[at++] = static_cast<uint16_t>(threadIdx.x * 32 + __ffs(alive) - 1);
  }
  if (threadIdx.x < kDepth) shared.list[total + threadIdx.x] = kNoK;
  __syncthreads();
  return static_cast<int>(total);
}

// A thread's word of a stage of one operand, which goes three ways: the word is read, then the first of its values are
// asked for, and when these are there it is written out as the 32 elements that it stands for. Aligned values come four
// at a time.
template <typename S, bool kAligned>
class WordDecoder {
 public:
  __device__ WordDecoder(const BitmapView& view, int first_strip)
      : words_(view.words + int64_t{first_strip + static_cast<int>(threadIdx.x) / kDepth} * view.depth),
        values_(view.values) {}

  __device__ void Read(uint16_t listed, int begin) {
    next_ = {};
    if (listed != kNoK) {
      const auto pair = __ldg(reinterpret_cast<const uint2*>(words_ + begin + listed));
      next_ = {pair.x, pair.y};
    }
  }

  __device__ void Ask() {
    word_ = next_;
#pragma unroll
    for (int i = 0; i < S::kFoursAhead; ++i) ahead_[i] = Four(i);
  }

  __device__ void Decode(uint8_t* to) {
    constexpr int kPiecesOfWord = kStripLanes / 8;
    const int k = threadIdx.x % kDepth, first_piece = threadIdx.x / kDepth * kPiecesOfWord;
#pragma unroll
    for (int i = 0; i < kPiecesOfWord; ++i) {
      *reinterpret_cast<uint4*>(to + S::PieceAt(k, first_piece + i)) = uint4{};
    }
    uint32_t bits = word_.bits;
    const auto put = [&](uint2 four) {
      const uint32_t pairs[2] = {four.x, four.y};
#pragma unroll
      for (int i = 0; i < kValuesUnit; ++i) {
        if (bits == 0) break;
        const int place = __ffs(bits) - 1;
        bits &= bits - 1;
        *reinterpret_cast<uint16_t*>(to + S::PieceAt(k, first_piece + place / 8) + place % 8 * 2) =
            static_cast<uint16_t>(pairs[i / 2] >> i % 2 * 16);
      }
    };
#pragma unroll
    for (int i = 0; i < S::kFoursAhead; ++i) put(ahead_[i]);
    for (int i = S::kFoursAhead; bits != 0; ++i) put(Four(i));
  }

 private:
  __device__ uint2 Four(int i) const {
    const uint16_t* const from = values_ + word_.first + i * kValuesUnit;
    if (__popc(word_.bits) <= i * kValuesUnit) return {};
    if constexpr (kAligned) return __ldg(reinterpret_cast<const uint2*>(from));
    return {__ldg(from) | uint32_t{__ldg(from + 1)} << 16, __ldg(from + 2) | uint32_t{__ldg(from + 3)} << 16};
  }

  const BitmapWord* const words_;
  const uint16_t* const values_;
  BitmapWord next_, word_;
  uint2 ahead_[S::kFoursAhead];
};

// A stage of dense X: rows of the list, asked for without waiting.
template <typename S>
__device__ void CopyRows(const Args& args, const uint16_t* list, int begin, int64_t first_column, uint8_t* to) {
  constexpr int kPiecesEach = kDepth * S::kPieces / S::kThreads;
#pragma unroll
  for (int i = 0; i < kPiecesEach; ++i) {
    const int at = static_cast<int>(threadIdx.x) + i * S::kThreads, k = at / S::kPieces, piece = at % S::kPieces;
    const uint16_t listed = list[k];
    const int64_t column = first_column + piece * 8;
    const bool is_there = listed != kNoK && column < args.stride;
    const uint16_t* const from = is_there ? args.x + int64_t{begin + listed} * args.stride + column : args.x;
    __pipeline_memcpy_async(to + S::PieceAt(k, piece), from, 16, is_there ? 0 : 16);
  }
}

// A warp's part of the products of a stage.
template <typename S, typename T>
__device__ void AddStage(const typename S::Stage& stage, int row, int column, float (&sums)[S::kSixteens][4][4]) {
  const int lane = threadIdx.x % kWarp, matrix = lane / 8;
  const uint32_t w = SharedAddress(stage.w), x = SharedAddress(stage.x);
#pragma unroll
  for (int k = 0; k < kDepth; k += 16) {
    uint32_t left[S::kSixteens][4], right[2][4];
    const int w_k = k + matrix / 2 * 8 + lane % 8, x_k = k + matrix % 2 * 8 + lane % 8;
#pragma unroll
    for (int i = 0; i < S::kSixteens; ++i) {
      LoadTransposed(left[i], w + S::PieceAt(w_k, row / 8 + i * 2 + matrix % 2));
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) LoadTransposed(right[j], x + S::PieceAt(x_k, column / 8 + j * 2 + matrix / 2));
#pragma unroll
    for (int i = 0; i < S::kSixteens; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) Mma<T>(sums[i][j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
    }
  }
}

__device__ StripPlace PlaceOf(const Args& args, int strip) {
  if (args.sparse_x.places != nullptr) return args.sparse_x.places[strip];
  const int64_t first = int64_t{strip} * kStripLanes, left = args.columns - first;
  return {static_cast<int32_t>(first), static_cast<int32_t>(left < 0 ? 0 : left < kStripLanes ? left : kStripLanes)};
}

// Ends a warp's sums and puts them into shared memory; elements past Y are zero there.
template <typename S, typename T, typename Function>
__device__ void PutSums(const Args& args, const Ending<Function>& ending, int first_row, int first_strip, int row,
                        int column, const float (&sums)[S::kSixteens][4][4], uint16_t* to) {
  const int g = threadIdx.x % kWarp / 4, t = threadIdx.x % 4;
  const StripPlace place = PlaceOf(args, first_strip + column / kStripLanes);
#pragma unroll
  for (int i = 0; i < S::kSixteens; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int in_tile = row + i * 16 + half * 8 + g, y_row = first_row + in_tile;
      const float bias = __ldg(args.bias + y_row);
      const int64_t from = int64_t{y_row} * args.stride + place.first;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int lane = j * 8 + 2 * t;
        float pair[2] = {sums[i][j][half * 2] + bias, sums[i][j][half * 2 + 1] + bias};
        const bool is_row = y_row < args.rows, first = is_row && lane < place.count,
                   second = is_row && lane + 1 < place.count;
        if (args.residual != nullptr) {
          const auto* const residual = reinterpret_cast<const T*>(args.residual);
          if (first) pair[0] += ToFloat(residual[from + lane]);
          if (second) pair[1] += ToFloat(residual[from + lane + 1]);
        }
        ending.template Apply<T>(pair);
        *reinterpret_cast<uint32_t*>(to + in_tile * S::kOutPitch + column + lane) =
            PackPair<T>(first ? pair[0] : 0.0f, second ? pair[1] : 0.0f);
      }
    }
  }
}

// Rows of planes of a tile, as the next convolution reads them. A warp takes a row of a channel at a time.
template <typename S>
__device__ void StorePlanes(const PlanesTarget& to, int first_row, int rows, int first_strip, const uint16_t* from) {
  const int lane = threadIdx.x % kWarp, row_strips = (to.width + kStripLanes - 1) / kStripLanes;
  const int lines = S::kStrips / row_strips, first_line = first_strip / row_strips;
  for (int i = threadIdx.x / kWarp; i < S::kSide * lines; i += S::kWarps) {
    const int row = i / lines, line = i % lines;
    if (first_row + row >= rows || first_line + line >= to.rows_of_channel) continue;
    const uint16_t* const plane_row = from + row * S::kOutPitch + line * row_strips * kStripLanes;
    const int64_t place = int64_t{first_row + row} * to.rows_of_channel + first_line + line;
    for (int phase = 0; phase < to.phases; ++phase) {
      const int64_t first_word = (place * to.phases + phase) * to.row_words;
      int64_t at = first_word * kStripLanes;
      for (int word = 0; word < to.row_words; ++word) {
        const int x = phase + (word * kStripLanes + lane) * to.phases;
        const uint16_t value = x < to.width ? plane_row[x] : uint16_t{0};
        const bool holds = (value & 0x7FFF) != 0;
        const uint32_t held = __ballot_sync(kAll, holds);
        if (holds) to.values[at + __popc(held & ((1u << lane) - 1))] = value;
        if (lane == 0) to.bits[first_word + word] = held;
        at += __popc(held);
      }
    }
  }
}

// From shared memory to Y, and as words of the next product's operand.
template <typename S>
__device__ void StoreTile(const Args& args, int first_row, int first_strip, const uint16_t* from) {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  for (int strip = 0; args.y != nullptr && strip < S::kStrips; ++strip) {
    const StripPlace place = PlaceOf(args, first_strip + strip);
    if (lane >= place.count) continue;
    for (int row = warp; row < S::kSide && first_row + row < args.rows; row += S::kWarps) {
      args.y[int64_t{first_row + row} * args.stride + place.first + lane] =
          from[row * S::kOutPitch + strip * kStripLanes + lane];
    }
  }
  if (args.planes.bits != nullptr) StorePlanes<S>(args.planes, first_row, args.rows, first_strip, from);
  if (args.encoded.words == nullptr) return;
  for (int i = warp; i < S::kStrips * (S::kSide / kStripDepthUnit); i += S::kWarps) {
    const int strip = i % S::kStrips, row = i / S::kStrips * kStripDepthUnit;
    if (first_row + row >= args.encoded.depth) continue;
    EncodeWords(args.encoded, first_strip + strip, first_row + row,
                [&](int k) { return from[(row + k) * S::kOutPitch + strip * kStripLanes + lane]; });
  }
}

extern __shared__ uint4 dynamic_shared[];

// How X comes: dense, encoded, or as planes were unfolded, whose values begin anywhere.
enum class XKind { kDense, kAligned, kAnywhere };

template <typename S, typename T, XKind kX, typename Function>
__global__ void __launch_bounds__(S::kThreads, 2)
    MultiplyBitmaps(const __grid_constant__ Args args, const __grid_constant__ Ending<Function> ending) {
  auto& shared = *reinterpret_cast<typename S::Shared*>(dynamic_shared);
  const int row_tile = blockIdx.x % args.row_tiles, col_tile = blockIdx.x / args.row_tiles;
  const int first_row_strip = row_tile * S::kStrips, first_col_strip = col_tile * S::kStrips;
  const int64_t first_column = int64_t{col_tile} * S::kSide;
  const int warp = threadIdx.x / kWarp, row = warp % 2 * S::kWarpRows, column = warp / 2 * S::kWarpCols;
  constexpr bool kSparseX = kX != XKind::kDense;
  WordDecoder<S, true> w(args.w, first_row_strip);
  WordDecoder<S, kX == XKind::kAligned> x(kSparseX ? args.sparse_x : args.w, kSparseX ? first_col_strip : 0);
  float sums[S::kSixteens][4][4] = {};
  for (int begin = 0; begin < args.w.depth; begin += kListed) {
    const int listed = ListDepths<S, kSparseX>(args, first_row_strip, first_col_strip, begin, shared);
    const int stages = (listed + kDepth - 1) / kDepth;
    const auto read = [&](int stage) {
      const uint16_t k = stage < stages ? shared.list[stage * kDepth + threadIdx.x % kDepth] : kNoK;
      w.Read(k, begin);
      if constexpr (kSparseX) x.Read(k, begin);
    };
    const auto ask = [&](int stage) {
      w.Ask();
      if constexpr (kSparseX) {
        x.Ask();
      } else {
        CopyRows<S>(args, shared.list + stage * kDepth, begin, first_column, shared.stages[stage % 2].x);
        __pipeline_commit();
      }
    };
    const auto decode = [&](int stage) {
      w.Decode(shared.stages[stage % 2].w);
      if constexpr (kSparseX) x.Decode(shared.stages[stage % 2].x);
    };
    read(0);
    if (stages > 0) ask(0);
    read(1);
    if (stages > 0) decode(0);
    for (int stage = 0; stage < stages; ++stage) {
      if constexpr (!kSparseX) __pipeline_wait_prior(0);
      __syncthreads();
      if (stage + 1 < stages) ask(stage + 1);
      read(stage + 2);
      AddStage<S, T>(shared.stages[stage % 2], row, column, sums);
      if (stage + 1 < stages) decode(stage + 1);
    }
    __syncthreads();  // the list and both stages are written again
  }
  PutSums<S, T>(args, ending, row_tile * S::kSide, first_col_strip, row, column, sums, shared.y);
  __syncthreads();
  StoreTile<S>(args, row_tile * S::kSide, first_col_strip, shared.y);
}

template <typename S, typename T, XKind kX>
void Queue(const BitmapProduct& product, cudaStream_t queue) {
  constexpr bool kSparseX = kX != XKind::kDense;
  const BitmapStrips& weight = *product.weight;
  const int64_t row_tiles = CeilDiv(weight.rows(), int64_t{S::kSide});
  const int64_t strips = kSparseX                     ? product.sparse->strips
                         : product.encoded != nullptr ? product.encoded->strips()
                                                      : CeilDiv(product.columns, int64_t{kStripLanes});
  Args args = {.w = weight.view(),
               .sparse_x = {},
               .x = static_cast<const uint16_t*>(product.x),
               .residual = static_cast<const uint16_t*>(product.residual),
               .y = static_cast<uint16_t*>(product.y),
               .encoded = {},
               .planes = product.planes,
               .bias = weight.bias(),
               .stride = product.stride,
               .columns = product.columns,
               .rows = static_cast<int32_t>(weight.rows()),
               .row_tiles = static_cast<int32_t>(row_tiles)};
  if (kSparseX) args.sparse_x = *product.sparse;
  if (product.encoded != nullptr) {
    args.encoded = {product.encoded->words(), product.encoded->alive(), product.encoded->values(),
                    product.encoded->depth()};
  }
  const LaunchGrid grid(row_tiles * CeilDiv(strips, int64_t{S::kStrips}));
  const auto launch = [&]<typename Function>(const Ending<Function>& ending) {
    auto* const kernel = MultiplyBitmaps<S, T, kX, Function>;
    AllowSharedMemory(kernel, sizeof(typename S::Shared));
    kernel<<<grid, S::kThreads, sizeof(typename S::Shared), queue>>>(args, ending);
  };
  WithEnding(product.epilogue, launch);
}

template <typename S, typename T>
void QueueTyped(const BitmapProduct& product, cudaStream_t queue) {
  if (product.sparse == nullptr) return Queue<S, T, XKind::kDense>(product, queue);
  if (product.sparse->places == nullptr) return Queue<S, T, XKind::kAligned>(product, queue);
  Queue<S, T, XKind::kAnywhere>(product, queue);
}

template <typename S>
void QueueTiles(const BitmapProduct& product, cudaStream_t queue) {
  VisitHalf(product.dtype, [&]<DType kHalf>() { QueueTyped<S, Element<kHalf>>(product, queue); });
}

}  // namespace

BitmapTile BitmapTileFor(int64_t rows, int64_t columns, int multiprocessors) {
  const int64_t tiles = CeilDiv(rows, int64_t{128}) * CeilDiv(columns, int64_t{128});
  return rows > 64 && tiles >= 2 * multiprocessors ? BitmapTile::k128 : BitmapTile::k64;
}

bool LeavesAsPlanes(int64_t width, BitmapTile tile) {
  const int64_t strips = tile == BitmapTile::k128 ? Tile<128>::kStrips : Tile<64>::kStrips;
  return width > 0 && strips % CeilDiv(width, int64_t{kStripLanes}) == 0;
}

void QueueBitmapProduct(const BitmapProduct& product, BitmapTile tile, cudaStream_t queue) {
  if (product.weight->rows() == 0 || product.columns == 0) return;
  if (tile == BitmapTile::k128) return QueueTiles<Tile<128>>(product, queue);
  QueueTiles<Tile<64>>(product, queue);
}

}  // namespace swizzle::cuda
