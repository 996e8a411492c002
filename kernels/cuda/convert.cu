#include "kernels/cuda/convert.h"

#include <cuda_runtime.h>

#include "kernels/cuda/cuda_stream.h"

namespace swizzle::cuda {
namespace {

constexpr int kTile = 32;
constexpr int kTileRows = 8;  // threads down a tile

// A batch of matrices [rows, cols]; strides in elements.
struct Matrices {
  int64_t batch_stride;
  int64_t row_stride;
};

// to[b][c][r] = from[b][r][c].
__global__ void TransposeTiles(const float* from, Matrices from_lies, float* to, Matrices to_lies, int rows, int cols) {
  __shared__ float tile[kTile][kTile + 1];  // a column of it lies in 32 banks
  const int col0 = blockIdx.x * kTile, row0 = blockIdx.y * kTile;
  const float* in = from + blockIdx.z * from_lies.batch_stride;
  float* out = to + blockIdx.z * to_lies.batch_stride;
  for (int i = threadIdx.y; i < kTile; i += kTileRows) {
    const int row = row0 + i, col = col0 + threadIdx.x;
    if (row < rows && col < cols) tile[i][threadIdx.x] = in[row * from_lies.row_stride + col];
  }
  __syncthreads();
  for (int i = threadIdx.y; i < kTile; i += kTileRows) {
    const int row = row0 + threadIdx.x, col = col0 + i;
    if (row < rows && col < cols) out[col * to_lies.row_stride + row] = tile[threadIdx.x][i];
  }
}

// to[b][r][c] = from[b][r][c].
__global__ void CopyLines(const float* from, Matrices from_lies, float* to, Matrices to_lies, int rows, int cols) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    to[blockIdx.z * to_lies.batch_stride + row * to_lies.row_stride + col] =
        from[blockIdx.z * from_lies.batch_stride + row * from_lies.row_stride + col];
  }
}

int Ceil(int64_t value, int64_t unit) { return static_cast<int>((value + unit - 1) / unit); }

constexpr int64_t kMaxGridYZ = 65535;

void Transpose(const KernelArgs& args, Stream& stream, Matrices from, Matrices to, int64_t batch, int64_t rows,
               int64_t cols) {
  const dim3 grid(Ceil(cols, kTile), Ceil(rows, kTile), static_cast<unsigned>(batch));
  TransposeTiles<<<grid, dim3(kTile, kTileRows), 0, CudaStream::From(stream).queue()>>>(
      args.inputs[0], from, args.output, to, static_cast<int>(rows), static_cast<int>(cols));
}

void Copy(const KernelArgs& args, Stream& stream, Matrices from, Matrices to, int64_t batch, int64_t rows,
          int64_t cols) {
  constexpr int kThreads = 128;
  const dim3 grid(Ceil(cols, kThreads), static_cast<unsigned>(rows < kMaxGridYZ ? rows : kMaxGridYZ),
                  static_cast<unsigned>(batch));
  CopyLines<<<grid, kThreads, 0, CudaStream::From(stream).queue()>>>(args.inputs[0], from, args.output, to,
                                                                    static_cast<int>(rows), static_cast<int>(cols));
}

// The strides of [batch][channels][plane] in the two layouts that have positions innermost.
Matrices InNchw(const Extent& extent) { return {extent.channels * extent.plane(), extent.plane()}; }
Matrices InRows(const Extent& extent) { return {extent.plane(), RowStride(extent.positions())}; }

}  // namespace

// Where the plane is one position, as of tokens, the batch is the other side of one transpose.
void ConvertNchwToRows(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  if (extent.plane() == 1) {
    Transpose(args, stream, {0, extent.channels}, {0, RowStride(extent.batch)}, 1, extent.batch, extent.channels);
  } else {
    Copy(args, stream, InNchw(extent), InRows(extent), extent.batch, extent.channels, extent.plane());
  }
}

void ConvertRowsToNchw(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  if (extent.plane() == 1) {
    Transpose(args, stream, {0, RowStride(extent.batch)}, {0, extent.channels}, 1, extent.channels, extent.batch);
  } else {
    Copy(args, stream, InRows(extent), InNchw(extent), extent.batch, extent.channels, extent.plane());
  }
}

void ConvertNchwToNhwc(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  const int64_t image = extent.channels * extent.plane();
  Transpose(args, stream, {image, extent.plane()}, {image, extent.channels}, extent.batch, extent.channels,
            extent.plane());
}

void ConvertNhwcToNchw(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  const int64_t image = extent.channels * extent.plane();
  Transpose(args, stream, {image, extent.channels}, {image, extent.plane()}, extent.batch, extent.plane(),
            extent.channels);
}

void ConvertRowsToNhwc(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  Transpose(args, stream, {0, RowStride(extent.positions())}, {0, extent.channels}, 1, extent.channels,
            extent.positions());
}

void ConvertNhwcToRows(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  Transpose(args, stream, {0, extent.channels}, {0, RowStride(extent.positions())}, 1, extent.positions(),
            extent.channels);
}

}  // namespace swizzle::cuda
