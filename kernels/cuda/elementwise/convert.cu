#include "kernels/cuda/elementwise/convert.h"
#include "kernels/cuda/runtime/elements.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kTile = 32;
constexpr int kTileRows = 8;            // threads down a tile
constexpr int64_t kMostBlocks = 65535;  // of a grid's second and third dimension

// A batch of matrices [rows, cols]; strides in elements.
struct Matrices {
  int64_t batch_stride;
  int64_t row_stride;
};

// to[b][c][r] = from[b][r][c].
template <typename From, typename To>
__global__ void TransposeTiles(const From* from, Matrices from_lies, To* to, Matrices to_lies, int rows, int cols) {
  __shared__ float tile[kTile][kTile + 1];  // a column of it lies in 32 banks
  const From* in = from + blockIdx.z * from_lies.batch_stride;
  To* out = to + blockIdx.z * to_lies.batch_stride;
  const int col0 = blockIdx.x * kTile;
  for (int row0 = blockIdx.y * kTile; row0 < rows; row0 += gridDim.y * kTile) {
    for (int i = threadIdx.y; i < kTile; i += kTileRows) {
      const int row = row0 + i, col = col0 + threadIdx.x;
      if (row < rows && col < cols) tile[i][threadIdx.x] = ToFloat(in[row * from_lies.row_stride + col]);
    }
    __syncthreads();
    for (int i = threadIdx.y; i < kTile; i += kTileRows) {
      const int row = row0 + threadIdx.x, col = col0 + i;
      if (row < rows && col < cols) out[col * to_lies.row_stride + row] = FromFloat<To>(tile[threadIdx.x][i]);
    }
    __syncthreads();
  }
}

// to[b][r][c] = from[b][r][c].
template <typename From, typename To>
__global__ void CopyLines(const From* from, Matrices from_lies, To* to, Matrices to_lies, int rows, int cols) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    to[blockIdx.z * to_lies.batch_stride + row * to_lies.row_stride + col] =
        FromFloat<To>(ToFloat(from[blockIdx.z * from_lies.batch_stride + row * from_lies.row_stride + col]));
  }
}

template <typename From, typename To>
void Transpose(const KernelArgs& args, Stream& stream, Matrices from, Matrices to, int64_t batch, int64_t rows,
               int64_t cols) {
  const dim3 grid(BlocksFor(cols, kTile), static_cast<unsigned>(std::min(CeilDiv(rows, kTile), kMostBlocks)),
                  static_cast<unsigned>(batch));
  TransposeTiles<From, To><<<grid, dim3(kTile, kTileRows), 0, QueueOf(stream)>>>(
      InputAs<From>(args, 0), from, OutputAs<To>(args), to, static_cast<int>(rows), static_cast<int>(cols));
}

template <typename From, typename To>
void Copy(const KernelArgs& args, Stream& stream, Matrices from, Matrices to, int64_t batch, int64_t rows,
          int64_t cols) {
  constexpr int kThreads = 128;
  const dim3 grid(BlocksFor(cols, kThreads), static_cast<unsigned>(std::min(rows, kMostBlocks)),
                  static_cast<unsigned>(batch));
  CopyLines<From, To><<<grid, kThreads, 0, QueueOf(stream)>>>(InputAs<From>(args, 0), from, OutputAs<To>(args), to,
                                                              static_cast<int>(rows), static_cast<int>(cols));
}

// The strides of [batch][channels][plane] in the two layouts that have positions innermost.
Matrices InNchw(const Extent& extent) { return {extent.channels * extent.plane(), extent.plane()}; }
Matrices InRows(const Extent& extent) { return {extent.plane(), RowStride(extent.positions())}; }

// Without a plane kNchw and kNhwc differ in the type at most.
template <typename From, typename To>
void CopyTokens(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  Copy<From, To>(args, stream, {0, extent.channels}, {0, extent.channels}, 1, extent.batch, extent.channels);
}

}  // namespace

// Where the plane is one position, as of tokens, the batch is the other side of one transpose.
template <DType kDType>
void ConvertNchwToRows(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  if (extent.plane() == 1) {
    Transpose<float, Element<kDType>>(args, stream, {0, extent.channels}, {0, RowStride(extent.batch)}, 1, extent.batch,
                                      extent.channels);
  } else {
    Copy<float, Element<kDType>>(args, stream, InNchw(extent), InRows(extent), extent.batch, extent.channels,
                                 extent.plane());
  }
}

template <DType kDType>
void ConvertRowsToNchw(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  if (extent.plane() == 1) {
    Transpose<Element<kDType>, float>(args, stream, {0, RowStride(extent.batch)}, {0, extent.channels}, 1,
                                      extent.channels, extent.batch);
  } else {
    Copy<Element<kDType>, float>(args, stream, InRows(extent), InNchw(extent), extent.batch, extent.channels,
                                 extent.plane());
  }
}

template <DType kDType>
void ConvertNchwToNhwc(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  if (extent.plane() == 1) return CopyTokens<float, Element<kDType>>(args, stream);
  const int64_t image = extent.channels * extent.plane();
  Transpose<float, Element<kDType>>(args, stream, {image, extent.plane()}, {image, extent.channels}, extent.batch,
                                    extent.channels, extent.plane());
}

template <DType kDType>
void ConvertNhwcToNchw(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  if (extent.plane() == 1) return CopyTokens<Element<kDType>, float>(args, stream);
  const int64_t image = extent.channels * extent.plane();
  Transpose<Element<kDType>, float>(args, stream, {image, extent.channels}, {image, extent.plane()}, extent.batch,
                                    extent.plane(), extent.channels);
}

template <DType kDType>
void ConvertRowsToNhwc(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  Transpose<Element<kDType>, Element<kDType>>(args, stream, {0, RowStride(extent.positions())}, {0, extent.channels}, 1,
                                              extent.channels, extent.positions());
}

template <DType kDType>
void ConvertNhwcToRows(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  Transpose<Element<kDType>, Element<kDType>>(args, stream, {0, extent.channels}, {0, RowStride(extent.positions())}, 1,
                                              extent.positions(), extent.channels);
}

// [channels][plane] to [plane][channels] in each image, whatever the extents then call it.
void TransposeNchw(const KernelArgs& args, Stream& stream) { ConvertNchwToNhwc<DType::kFloat32>(args, stream); }

#define SWIZZLE_INSTANTIATE_CONVERT(function)                                      \
  template void function<DType::kFloat32>(const KernelArgs& args, Stream& stream); \
  template void function<DType::kFloat16>(const KernelArgs& args, Stream& stream); \
  template void function<DType::kBFloat16>(const KernelArgs& args, Stream& stream)

SWIZZLE_INSTANTIATE_CONVERT(ConvertNchwToRows);
SWIZZLE_INSTANTIATE_CONVERT(ConvertRowsToNchw);
SWIZZLE_INSTANTIATE_CONVERT(ConvertNchwToNhwc);
SWIZZLE_INSTANTIATE_CONVERT(ConvertNhwcToNchw);
SWIZZLE_INSTANTIATE_CONVERT(ConvertRowsToNhwc);
SWIZZLE_INSTANTIATE_CONVERT(ConvertNhwcToRows);

}  // namespace swizzle::cuda
