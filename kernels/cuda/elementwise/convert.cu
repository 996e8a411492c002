#include "kernels/cuda/elementwise/convert.h"
#include "kernels/cuda/elementwise/pack_channels.cuh"
#include "kernels/cuda/elementwise/pack_images.cuh"
#include "kernels/cuda/runtime/byte_element.cuh"
#include "kernels/cuda/runtime/dependent_launch.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kTile = 32;
constexpr int kTileRows = 8;        // threads down a tile
constexpr int kMostRegisters = 32;  // so that a multiprocessor takes as many threads as it may, which hides latency

// A batch of matrices [rows, cols]; strides in elements.
struct Matrices {
  int64_t batch_stride;
  int64_t row_stride;
};
struct Counts {
  int batch, rows, cols;
};

template <typename T>
constexpr bool kIsByte = std::is_same_v<T, uint8_t>;

// What an element becomes on its way: itself, as its type has it, or between bytes and real numbers what they stand for
// (base/quantised.h).
template <typename From, typename To>
struct Change {
  static constexpr bool kScales = kIsByte<From> != kIsByte<To>;
  float scale;
  int32_t zero_point;

  Change(const Operand& from, const MutableOperand& to)
      : scale(kIsByte<From> ? from.scale : to.scale), zero_point(kIsByte<From> ? from.zero_point : to.zero_point) {}
  __device__ float Read(From value) const {
    if constexpr (kScales && kIsByte<From>) {
      return static_cast<float>(value - zero_point) * scale;
    } else if constexpr (kIsByte<From>) {
      return value;
    } else {
      return ToFloat(value);
    }
  }
  __device__ To Write(float value) const {
    if constexpr (kScales && kIsByte<To>) {
      constexpr int kFar = 1024;  // from any byte
      const int steps = min(max(__float2int_rn(value / scale), -kFar), kFar);
      return static_cast<uint8_t>(min(max(steps + zero_point, 0), 255));
    } else if constexpr (kIsByte<To>) {
      return static_cast<uint8_t>(value);
    } else {
      return FromFloat<To>(value);
    }
  }
};

// to[b][c][r] = from[b][r][c].
template <typename From, typename To>
__global__ void __maxnreg__(kMostRegisters) TransposeTiles(const From* from, Matrices from_lies, To* to,
                                                           Matrices to_lies, Counts counts, Change<From, To> change) {
  __shared__ float tile[kTile][kTile + 1];  // a column of it lies in 32 banks
  LetNextStart();
  WaitForResults();
  const int col0 = blockIdx.x * kTile;
  for (int b = blockIdx.z; b < counts.batch; b += gridDim.z) {
    const From* in = from + b * from_lies.batch_stride;
    To* out = to + b * to_lies.batch_stride;
    for (int row0 = blockIdx.y * kTile; row0 < counts.rows; row0 += gridDim.y * kTile) {
      for (int i = threadIdx.y; i < kTile; i += kTileRows) {
        const int row = row0 + i, col = col0 + threadIdx.x;
        if (row < counts.rows && col < counts.cols) {
          tile[i][threadIdx.x] = change.Read(in[row * from_lies.row_stride + col]);
        }
      }
      __syncthreads();
      for (int i = threadIdx.y; i < kTile; i += kTileRows) {
        const int row = row0 + threadIdx.x, col = col0 + i;
        if (row < counts.rows && col < counts.cols) {
          out[col * to_lies.row_stride + row] = change.Write(tile[threadIdx.x][i]);
        }
      }
      __syncthreads();
    }
  }
}

// to[b][r][c] = from[b][r][c].
template <typename From, typename To>
__global__ void CopyLines(const From* from, Matrices from_lies, To* to, Matrices to_lies, Counts counts,
                          Change<From, To> change) {
  LetNextStart();
  WaitForResults();
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col >= counts.cols) return;
  for (int b = blockIdx.z; b < counts.batch; b += gridDim.z) {
    for (int row = blockIdx.y; row < counts.rows; row += gridDim.y) {
      to[b * to_lies.batch_stride + row * to_lies.row_stride + col] =
          change.Write(change.Read(from[b * from_lies.batch_stride + row * from_lies.row_stride + col]));
    }
  }
}

Counts CountsOf(int64_t batch, int64_t rows, int64_t cols) {
  return {static_cast<int>(batch), static_cast<int>(rows), static_cast<int>(cols)};
}

template <typename From, typename To>
void Transpose(const KernelArgs& args, Stream& stream, Matrices from, Matrices to, int64_t batch, int64_t rows,
               int64_t cols) {
  const LaunchGrid grid(CeilDiv(cols, kTile), CeilDiv(rows, kTile), batch);
  LaunchDependent(TransposeTiles<From, To>, grid, dim3(kTile, kTileRows), 0, QueueOf(stream), args.Input<From>(0), from,
                  args.Output<To>(), to, CountsOf(batch, rows, cols), Change<From, To>(args.inputs[0], args.output));
}

template <typename From, typename To>
void Copy(const KernelArgs& args, Stream& stream, Matrices from, Matrices to, int64_t batch, int64_t rows,
          int64_t cols) {
  constexpr int kThreads = 128;
  const LaunchGrid grid(CeilDiv(cols, kThreads), rows, batch);
  LaunchDependent(CopyLines<From, To>, grid, kThreads, 0, QueueOf(stream), args.Input<From>(0), from, args.Output<To>(),
                  to, CountsOf(batch, rows, cols), Change<From, To>(args.inputs[0], args.output));
}

// The strides of [batch][channels][plane] in the two layouts that have positions innermost.
Matrices InNchw(const Extent& extent) { return {extent.channels * extent.plane(), extent.plane()}; }
Matrices InRows(const Extent& extent) { return {extent.plane(), RowStride(extent.positions())}; }

// In kBatched a channel is a matrix [position][image] of its own.
Matrices InBatched(const Extent& extent) {
  return {RowStride(BatchedPositions(extent)), RoundUp(extent.batch, kBatchUnit)};
}

// Without a plane kNchw and kNhwc differ in the type at most.
template <typename From, typename To>
void CopyTokens(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  Copy<From, To>(args, stream, {0, extent.channels}, {0, extent.channels}, 1, extent.batch, extent.channels);
}

}  // namespace

// Where the plane is one position, as of tokens, the batch is the other side of one transpose.
template <DType kDType, DType kEdge>
void ConvertNchwToRows(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  if (extent.plane() == 1) {
    Transpose<Element<kEdge>, Element<kDType>>(args, stream, {0, extent.channels}, {0, RowStride(extent.batch)}, 1,
                                               extent.batch, extent.channels);
  } else {
    Copy<Element<kEdge>, Element<kDType>>(args, stream, InNchw(extent), InRows(extent), extent.batch, extent.channels,
                                          extent.plane());
  }
}

template <DType kDType, DType kEdge>
void ConvertRowsToNchw(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  if (extent.plane() == 1) {
    Transpose<Element<kDType>, Element<kEdge>>(args, stream, {0, RowStride(extent.batch)}, {0, extent.channels}, 1,
                                               extent.channels, extent.batch);
  } else {
    Copy<Element<kDType>, Element<kEdge>>(args, stream, InRows(extent), InNchw(extent), extent.batch, extent.channels,
                                          extent.plane());
  }
}

template <DType kDType, DType kEdge>
void ConvertNchwToNhwc(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  if (extent.plane() == 1) return CopyTokens<Element<kEdge>, Element<kDType>>(args, stream);
  if constexpr (kEdge != DType::kUint8 && kDType != DType::kUint8) {
    if (extent.channels == kPackedChannels) {
      return QueuePackChannels(args.Input<Element<kEdge>>(0), args.Output<Element<kDType>>(), extent, Unchanged(),
                               QueueOf(stream));
    }
  }
  const int64_t image = extent.channels * extent.plane();
  Transpose<Element<kEdge>, Element<kDType>>(args, stream, {image, extent.plane()}, {image, extent.channels},
                                             extent.batch, extent.channels, extent.plane());
}

template <DType kDType, DType kEdge>
void ConvertNhwcToNchw(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  if (extent.plane() == 1) return CopyTokens<Element<kDType>, Element<kEdge>>(args, stream);
  const int64_t image = extent.channels * extent.plane();
  Transpose<Element<kDType>, Element<kEdge>>(args, stream, {image, extent.channels}, {image, extent.plane()},
                                             extent.batch, extent.plane(), extent.channels);
}

template <DType kDType>
void ConvertNchwToBatched(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  if (extent.plane() == 1) return ConvertNchwToRows<kDType>(args, stream);
  QueuePackImages(args.Input<float>(0), args.Output<Element<kDType>>(), extent, extent.plane(),
                  extent.channels * extent.plane(), Unchanged(), QueueOf(stream));
}

template <DType kDType>
void ConvertRowsToBatched(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  QueuePackImages(args.Input<Element<kDType>>(0), args.Output<Element<kDType>>(), extent, RowStride(extent.positions()),
                  extent.plane(), Unchanged(), QueueOf(stream));
}

template <DType kDType>
void ConvertBatchedToRows(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  Transpose<Element<kDType>, Element<kDType>>(args, stream, InBatched(extent),
                                              {RowStride(extent.positions()), extent.plane()}, extent.channels,
                                              extent.plane(), extent.batch);
}

// All positions of all images are one matrix in these two.
template <Layout kFromLayout, DType kFrom, Layout kToLayout, DType kTo>
void ConvertTypes(const KernelArgs& args, Stream& stream) {
  using From = Element<kFrom>;
  using To = Element<kTo>;
  const Extent& extent = args.problem->input;
  const int64_t channels = extent.channels, positions = extent.positions();
  const Matrices rows = {0, RowStride(positions)};
  const Matrices from_nhwc = {0, args.inputs[0].PitchOr(channels)}, to_nhwc = {0, args.output.PitchOr(channels)};
  if constexpr (kFromLayout == Layout::kRows && kToLayout == Layout::kRows) {
    Copy<From, To>(args, stream, rows, rows, 1, channels, positions);
  } else if constexpr (kFromLayout == Layout::kRows) {
    Transpose<From, To>(args, stream, rows, to_nhwc, 1, channels, positions);
  } else if constexpr (kToLayout == Layout::kRows) {
    Transpose<From, To>(args, stream, from_nhwc, rows, 1, positions, channels);
  } else {
    Copy<From, To>(args, stream, from_nhwc, to_nhwc, 1, positions, channels);
  }
}

template <DType kDType>
void ConvertRowsToNhwc(const KernelArgs& args, Stream& stream) {
  ConvertTypes<Layout::kRows, kDType, Layout::kNhwc, kDType>(args, stream);
}

template <DType kDType>
void ConvertNhwcToRows(const KernelArgs& args, Stream& stream) {
  ConvertTypes<Layout::kNhwc, kDType, Layout::kRows, kDType>(args, stream);
}

// [channels][plane] to [plane][channels] in each image, whatever the extents then call it.
void TransposeNchw(const KernelArgs& args, Stream& stream) { ConvertNchwToNhwc<DType::kFloat32>(args, stream); }

#define SWIZZLE_INSTANTIATE_CONVERT(function)                                       \
  template void function<DType::kFloat32>(const KernelArgs& args, Stream& stream);  \
  template void function<DType::kFloat16>(const KernelArgs& args, Stream& stream);  \
  template void function<DType::kBFloat16>(const KernelArgs& args, Stream& stream); \
  template void function<DType::kUint8>(const KernelArgs& args, Stream& stream)
#define SWIZZLE_INSTANTIATE_EDGE(function) \
  SWIZZLE_INSTANTIATE_CONVERT(function);   \
  template void function<DType::kUint8, DType::kUint8>(const KernelArgs& args, Stream& stream)

SWIZZLE_INSTANTIATE_EDGE(ConvertNchwToRows);
SWIZZLE_INSTANTIATE_EDGE(ConvertRowsToNchw);
SWIZZLE_INSTANTIATE_EDGE(ConvertNchwToNhwc);
SWIZZLE_INSTANTIATE_EDGE(ConvertNhwcToNchw);
SWIZZLE_INSTANTIATE_CONVERT(ConvertRowsToNhwc);
SWIZZLE_INSTANTIATE_CONVERT(ConvertNhwcToRows);

#define SWIZZLE_INSTANTIATE_BATCHED(dtype)                                                  \
  template void ConvertNchwToBatched<DType::dtype>(const KernelArgs& args, Stream& stream); \
  template void ConvertRowsToBatched<DType::dtype>(const KernelArgs& args, Stream& stream); \
  template void ConvertBatchedToRows<DType::dtype>(const KernelArgs& args, Stream& stream)

SWIZZLE_INSTANTIATE_BATCHED(kFloat16);
SWIZZLE_INSTANTIATE_BATCHED(kBFloat16);

#define SWIZZLE_INSTANTIATE_TYPES(from_layout, from, to_layout, to)                                                  \
  template void ConvertTypes<Layout::from_layout, DType::from, Layout::to_layout, DType::to>(const KernelArgs& args, \
                                                                                             Stream& stream)
#define SWIZZLE_INSTANTIATE_LAYOUTS(from, to)        \
  SWIZZLE_INSTANTIATE_TYPES(kRows, from, kRows, to); \
  SWIZZLE_INSTANTIATE_TYPES(kRows, from, kNhwc, to); \
  SWIZZLE_INSTANTIATE_TYPES(kNhwc, from, kRows, to); \
  SWIZZLE_INSTANTIATE_TYPES(kNhwc, from, kNhwc, to)

SWIZZLE_INSTANTIATE_LAYOUTS(kFloat32, kFloat16);
SWIZZLE_INSTANTIATE_LAYOUTS(kFloat32, kBFloat16);
SWIZZLE_INSTANTIATE_LAYOUTS(kFloat16, kFloat32);
SWIZZLE_INSTANTIATE_LAYOUTS(kBFloat16, kFloat32);
SWIZZLE_INSTANTIATE_LAYOUTS(kFloat32, kUint8);
SWIZZLE_INSTANTIATE_LAYOUTS(kFloat16, kUint8);
SWIZZLE_INSTANTIATE_LAYOUTS(kBFloat16, kUint8);
SWIZZLE_INSTANTIATE_LAYOUTS(kUint8, kFloat32);
SWIZZLE_INSTANTIATE_LAYOUTS(kUint8, kFloat16);
SWIZZLE_INSTANTIATE_LAYOUTS(kUint8, kBFloat16);

}  // namespace swizzle::cuda
