// The GPU's own layout of a CSR weight: rows in quads, for conv_csr.h.
//
// Rows are sorted by falling length (Sputnik's row swizzle: Gale et al., SC20, section 5.2) and taken four at a time.
// The entries of a quad are cut into chunks of four of each row, and a chunk lies as [row][entry]: the four parts of a
// warp read the entries of their rows with one 16-byte load of weights and one 8-byte load of columns, always aligned
// (what Sputnik's reverse-offset alignment buys, without its masks), and a warp's load touches one line instead of
// four. Rows are padded to whole chunks of their quad's longest row with weights of zero and a column the row has
// anyway; as neighbours in sorted order are of like length, that is 2 to 3 % at 50 entries a row.
//
// Worked example, chunks of 2 instead of 4 and quads of 2 rows:
//      1 0 0 2      lengths 2, 0, 1, 2; sorted: rows 0, 3, 2, 1.
//      0 0 0 0      Quad 0 has rows 0 and 3 and one chunk, quad 1 rows 2 and 1 and one chunk.
//      0 3 0 0      weights 1 2 4 5 | 3 0 0 0
//      4 0 5 0      columns 0 3 0 2 | 1 1 0 0
//
// A warp takes a piece: some chunks of one quad. Long quads are cut into 2, 4 or 8 pieces, which lie in one bundle (the
// pieces of one CTA) and are summed there. Cutting finer makes more warps for small problems, so there are several
// cuts, by the most chunks of a piece; even the coarsest cuts rows that are much longer than the others.
//
// Immutable, thread-safe.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_CSR_QUAD_CSR_H_
#define SWIZZLE_KERNELS_CUDA_CONV_CSR_QUAD_CSR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/base/tensor.h"
#include "kernels/cuda/conv/csr/spmm_plan.h"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/format/csr.h"

namespace swizzle::cuda {

// Read by kernels as one int4.
struct QuadPiece {
  int32_t quad;   // -1: nothing to do
  int32_t begin;  // first chunk, among those of all quads
  int32_t chunks;
  int32_t
      parts;  // pieces of this quad, a power of two; they are neighbours, the first of them at a multiple of `parts`
};

class QuadCsr {
 public:
  static constexpr int kRows = 4;         // of a quad
  static constexpr int kEntries = 4;      // of a row in a chunk
  static constexpr int kPieces = 8;       // of a bundle
  static constexpr int kSpareChunks = 2;  // after the last one, so that kernels may read ahead

  // Device memory: bundles of pieces, heaviest quad first.
  struct Cut {
    int64_t most_chunks;
    int64_t pieces;  // that have something to do, as in counts()
    int64_t bundles;
    const QuadPiece* bundle;  // [bundles][kPieces]
  };

  // Weights are stored as `dtype`: kFloat32, kFloat16 or kBFloat16; columns in 16 bits if there are at most 65536.
  static StatusOr<std::unique_ptr<QuadCsr>> Make(const CsrMatrix& matrix, std::span<const float> bias, DType dtype);

  // Of what Make would make.
  static QuadCounts Count(const CsrMatrix& matrix);

  size_t bytes() const;
  const QuadCounts& counts() const { return counts_; }
  int64_t cols() const { return counts_.cols; }
  int64_t quads() const { return counts_.quads; }
  bool has_short_columns() const { return counts_.has_short_columns(); }
  const void* weights() const { return weights_.data(); }  // [chunks][kRows][kEntries], then spare ones
  const void* columns() const { return columns_.data(); }  // likewise
  const int32_t* rows() const { return rows_.data(); }     // [quads][kRows], the row of the matrix; -1: none
  const float* bias() const { return bias_.data(); }       // likewise, zero if the layer has none
  const int32_t* chunk_begins() const { return chunk_begins_.data(); }  // [quads + 1]
  std::span<const Cut> cuts() const { return cuts_; }                   // from coarse to fine; at least one

 private:
  friend class QuadPacker;
  QuadCsr() = default;

  QuadCounts counts_;
  DeviceArray<std::byte> weights_;
  DeviceArray<std::byte> columns_;
  DeviceArray<int32_t> rows_;
  DeviceArray<float> bias_;
  DeviceArray<int32_t> chunk_begins_;
  DeviceArray<QuadPiece> pieces_;
  std::vector<Cut> cuts_;
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_CSR_QUAD_CSR_H_
