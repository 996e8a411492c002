// Products that are sparse on one side or on both, FP16 and BF16 on tensor cores: Y[M,N] = W[M,K] X[K,N], W a bitmap, X
// a bitmap (SpGEMM) or dense in kRows (SpMM). After Wang et al., "Dual-side Sparse Tensor Core", ISCA 2021: outer
// products need no search for matching indices. What their hardware skips inside a product, a GPU's tensor cores
// multiply; what is left is not to begin it, and to read and decode only what is there.
//
// A CTA has 64 or 128 rows by as many columns of Y. For it, a k counts whose column of W, in these rows, and whose row
// of X, in these columns, both hold something: two bitmaps say so, 32 k at a time, and their common bits are put into a
// list. Stages are of 64 k of that list, wherever they are: so K shrinks to what meets, which whole tiles of 32 x 16 do
// only where nearly all is zero. The share of k that meet is (1 - a^tile)(1 - b^tile) for shares a and b of scattered
// zeros: at 99 + 99 % .22 of them in tiles of 64, .52 in tiles of 128; at 90 + 90 % and below all. A stage is decoded
// into shared memory by a thread a word, while tensor cores multiply the one before it.
//
// Measured on an H200 (tests/bench/seeds/README.md), 4096 x 4096 x 4096, encoding X included, over cuBLAS: .15 at 70 +
// 70 % scattered zeros, .22 at 90 + 90, .68 at 99 + 99, 1.8 at 99.9 + 99. By count of its bytes, a stage is bound by
// reads of shared memory before its products by mma.sync are, and a word costs its thread about 8 instructions and 8
// more a value. Asking for a word's first values a stage ahead, four at a time, made products of full words 1.8 times
// as fast, and others no faster.
//
// Y can leave as a bitmap operand of the next product, or of the next convolution, instead of, or beside, elements: it
// is encoded from shared memory before it is stored.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_BITMAP_BITMAP_PRODUCT_H_
#define SWIZZLE_KERNELS_CUDA_CONV_BITMAP_BITMAP_PRODUCT_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/base/dtype.h"
#include "kernels/cuda/conv/bitmap/bitmap_operand.h"
#include "kernels/cuda/conv/bitmap/bitmap_planes.h"
#include "kernels/operator/epilogue.h"

namespace swizzle::cuda {

// Everything in device memory.
struct BitmapProduct {
  const BitmapStrips* weight;
  DType dtype;                           // FP16 or BF16
  const BitmapView* sparse;              // X, of as many k; null: it is
  const void* x;                         // dense, in kRows
  const void* residual;                  // may be null
  void* y;                               // null: Y leaves encoded alone
  BitmapActivations* encoded = nullptr;  // null, or made for M k and the strips of X. REQUIRES: X has no places
  PlanesTarget planes = {};  // of planes whose channels are Y's rows. REQUIRES: LeavesAsPlanes, X has places
  int64_t stride;            // of rows of X, residual and Y: a multiple of 16 elements
  int64_t columns;           // N
  Epilogue epilogue = {};
};

enum class BitmapTile : uint8_t { k64, k128 };
// Large tiles where they fill the device.
BitmapTile BitmapTileFor(int64_t rows, int64_t columns, int multiprocessors);

// Whether tiles have whole rows of planes of this width.
bool LeavesAsPlanes(int64_t width, BitmapTile tile);

void QueueBitmapProduct(const BitmapProduct& product, BitmapTile tile, cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_BITMAP_BITMAP_PRODUCT_H_
