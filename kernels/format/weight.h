// The weight of one layer as the model holds it. Value type; copies share the matrix.
#ifndef SWIZZLE_KERNELS_FORMAT_WEIGHT_H_
#define SWIZZLE_KERNELS_FORMAT_WEIGHT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/base/quantisation.h"
#include "kernels/format/weight_matrix.h"

namespace swizzle {

// kConv: matrix [output channels M, K], K = input channels * kernel_h * kernel_w in that order (ONNX's OIHW).
// kDepthwiseConv: matrix [channels, kernel_h * kernel_w], always dense.
// kEmbedding: matrix [table rows, channels], always dense, no bias. kLayerNorm: matrix [channels, 1], always dense.
// kSparseAttention: a pattern, and nothing else has one; no bias. kBiasedAttention: matrix [heads, biases of pairs], of
// which some may be -infinity (operator/pair_biases.h), always dense; no bias. In windows, whose biases may differ, the
// biases of one window come behind those of another. kDisentangledAttention: matrix [2 * channels + 1, places], always
// dense; no bias (operator/place_vectors.h). kRotary: matrix [positions, 2 * pairs], always dense; no bias.
// kPermuteTokens: matrix [length, 1] of places, always dense; no bias. kPlaneTokens: matrix [length, channels], always
// dense; no bias.
struct Weight {
  WeightMatrix matrix;
  std::vector<float> bias;  // [M], or empty
  // Whole numbers that stand for the values exactly, by rows; absent where there are no such.
  std::optional<Quantisation> quantisation = {};

  Format format() const { return matrix.format(); }
  int64_t rows() const { return matrix.size().rows; }
  int64_t cols() const { return matrix.size().cols; }
  int64_t nonzeros() const { return matrix.nnz(); }
  size_t StoredBytes() const;   // of the matrix, as a file holds it, and the bias
  int64_t DenseBytes() const;   // had it been stored dense, with the bias; what has no values counts as it is
  DenseMatrix ToDense() const;  // a pattern has ones
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_WEIGHT_H_
