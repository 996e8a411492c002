#include "kernels/cuda/conv/csr/quad_csr.h"

#include <algorithm>
#include <bit>

#include "kernels/base/half_bits.h"
#include "kernels/base/integers.h"

namespace swizzle::cuda {
namespace {

// Cuts that would make more pieces than this are not made: there are warps enough without.
constexpr int64_t kMostPieces = 16384;
constexpr int64_t kFewestChunks = 2;  // of a piece in the finest cut
// The coarsest cut is for rows that stand out: it cuts quads of more than this many times the mean.
constexpr int64_t kOutlier = 2;

StatusOr<DeviceArray<std::byte>> UploadBytes(const auto& values) {
  return DeviceArray<std::byte>::Upload(std::as_bytes(std::span(values)));
}

}  // namespace

// Builds the host's side of one weight.
class QuadPacker {
 public:
  QuadPacker(const CsrMatrix& matrix, std::span<const float> bias)
      : matrix_(matrix), order_(RowSwizzle(matrix)), quads_(CeilDiv(matrix.rows, QuadCsr::kRows)) {
    PackRows(bias);
    PackEntries();
    MakeCuts();
  }

  QuadCounts Count() const {
    QuadCounts counts = {
        .cols = matrix_.cols, .quads = quads_, .chunks = chunk_begins_.back(), .nonzeros = matrix_.nnz(), .pieces = {}};
    for (const QuadCsr::Cut& cut : cuts_) counts.pieces.push_back(cut.pieces);
    return counts;
  }

  StatusOr<std::unique_ptr<QuadCsr>> Upload(DType dtype) {
    std::unique_ptr<QuadCsr> packed(new QuadCsr);
    packed->counts_ = Count();
    SWIZZLE_ASSIGN_OR_RETURN(packed->weights_, UploadWeights(dtype));
    SWIZZLE_ASSIGN_OR_RETURN(packed->columns_, UploadColumns(packed->has_short_columns()));
    SWIZZLE_ASSIGN_OR_RETURN(packed->rows_, DeviceArray<int32_t>::Upload(rows_));
    SWIZZLE_ASSIGN_OR_RETURN(packed->bias_, DeviceArray<float>::Upload(bias_));
    SWIZZLE_ASSIGN_OR_RETURN(packed->chunk_begins_, DeviceArray<int32_t>::Upload(chunk_begins_));
    SWIZZLE_ASSIGN_OR_RETURN(packed->pieces_, DeviceArray<QuadPiece>::Upload(pieces_));
    const QuadPiece* first = packed->pieces_.data();
    for (QuadCsr::Cut& cut : cuts_) {
      cut.bundle = first;
      first += cut.bundles * QuadCsr::kPieces;
    }
    packed->cuts_ = std::move(cuts_);
    return packed;
  }

 private:
  uint32_t Length(uint32_t row) const { return matrix_.row_offsets[row + 1] - matrix_.row_offsets[row]; }
  int64_t Chunks(int64_t quad) const { return chunk_begins_[quad + 1] - chunk_begins_[quad]; }

  void PackRows(std::span<const float> bias) {
    rows_.assign(quads_ * QuadCsr::kRows, -1);
    bias_.assign(quads_ * QuadCsr::kRows, 0.0f);
    for (size_t i = 0; i < order_.size(); ++i) {
      rows_[i] = static_cast<int32_t>(order_[i]);
      if (!bias.empty()) bias_[i] = bias[order_[i]];
    }
  }

  void PackEntries() {
    chunk_begins_ = {0};
    for (int64_t quad = 0; quad < quads_; ++quad) {
      const int64_t longest = Length(order_[quad * QuadCsr::kRows]);
      chunk_begins_.push_back(chunk_begins_.back() + static_cast<int32_t>(CeilDiv(longest, QuadCsr::kEntries)));
    }
    const size_t entries = (int64_t{chunk_begins_.back()} + QuadCsr::kSpareChunks) * QuadCsr::kRows * QuadCsr::kEntries;
    weights_.assign(entries, 0.0f);
    columns_.assign(entries, 0);
    for (size_t i = 0; i < order_.size(); ++i) {
      PackRow(order_[i], static_cast<int64_t>(i) / QuadCsr::kRows, static_cast<int64_t>(i) % QuadCsr::kRows);
    }
  }

  void PackRow(uint32_t row, int64_t quad, int64_t in_quad) {
    const int64_t length = Length(row), padded = Chunks(quad) * QuadCsr::kEntries;
    if (length == 0) return;
    const uint32_t* columns = matrix_.col_indices.data() + matrix_.row_offsets[row];
    const float* values = matrix_.values.data() + matrix_.row_offsets[row];
    for (int64_t i = 0; i < padded; ++i) {
      const int64_t chunk = chunk_begins_[quad] + i / QuadCsr::kEntries;
      const int64_t at = (chunk * QuadCsr::kRows + in_quad) * QuadCsr::kEntries + i % QuadCsr::kEntries;
      columns_[at] = columns[std::min(i, length - 1)];
      if (i < length) weights_[at] = values[i];
    }
  }

  void MakeCuts() {
    const int64_t mean = CeilDiv(chunk_begins_.back(), std::max<int64_t>(quads_, 1));
    int64_t most = std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(kOutlier * mean, kFewestChunks)));
    const int64_t longest = quads_ == 0 ? 0 : Chunks(0);
    for (; most >= kFewestChunks; most /= 2) {
      const bool same = most >= 2 * longest && most > kFewestChunks;  // the next one cuts nothing either
      if (same) continue;
      const QuadCsr::Cut cut = MakeCut(most);
      if (!cuts_.empty() && cut.pieces > kMostPieces) {
        pieces_.resize(pieces_.size() - cut.bundles * QuadCsr::kPieces);
        break;
      }
      cuts_.push_back(cut);
    }
  }

  // Parts fall from quad to quad and are powers of two, so that those of a quad never straddle bundles.
  QuadCsr::Cut MakeCut(int64_t most) {
    QuadCsr::Cut cut = {.most_chunks = most, .pieces = 0, .bundles = 0, .bundle = nullptr};
    for (int64_t quad = 0; quad < quads_; ++quad) {
      const int64_t wanted = std::max<int64_t>(CeilDiv(Chunks(quad), most), 1);
      const int64_t parts = std::min<int64_t>(std::bit_ceil(static_cast<uint64_t>(wanted)), QuadCsr::kPieces);
      for (int64_t part = 0; part < parts; ++part) {
        const int64_t begin = Chunks(quad) * part / parts, end = Chunks(quad) * (part + 1) / parts;
        pieces_.push_back({static_cast<int32_t>(quad), static_cast<int32_t>(chunk_begins_[quad] + begin),
                           static_cast<int32_t>(end - begin), static_cast<int32_t>(parts)});
      }
      cut.pieces += parts;
    }
    cut.bundles = CeilDiv(cut.pieces, QuadCsr::kPieces);
    pieces_.resize(pieces_.size() + cut.bundles * QuadCsr::kPieces - cut.pieces, QuadPiece{-1, 0, 0, 1});
    return cut;
  }

  StatusOr<DeviceArray<std::byte>> UploadWeights(DType dtype) const {
    if (dtype == DType::kFloat32) return UploadBytes(weights_);
    std::vector<uint16_t> halves(weights_.size());
    StoreHalves(weights_, dtype, std::as_writable_bytes(std::span(halves)).data());
    return UploadBytes(halves);
  }

  StatusOr<DeviceArray<std::byte>> UploadColumns(bool short_columns) const {
    if (!short_columns) return UploadBytes(columns_);
    return UploadBytes(std::vector<uint16_t>(columns_.begin(), columns_.end()));
  }

  const CsrMatrix& matrix_;
  const std::vector<uint32_t> order_;
  const int64_t quads_;
  std::vector<int32_t> rows_;
  std::vector<float> bias_;
  std::vector<int32_t> chunk_begins_;
  std::vector<float> weights_;
  std::vector<uint32_t> columns_;
  std::vector<QuadPiece> pieces_;
  std::vector<QuadCsr::Cut> cuts_;
};

StatusOr<std::unique_ptr<QuadCsr>> QuadCsr::Make(const CsrMatrix& matrix, std::span<const float> bias, DType dtype) {
  return QuadPacker(matrix, bias).Upload(dtype);
}

QuadCounts QuadCsr::Count(const CsrMatrix& matrix) { return QuadPacker(matrix, {}).Count(); }

size_t QuadCsr::bytes() const {
  return weights_.bytes() + columns_.bytes() + rows_.bytes() + bias_.bytes() + chunk_begins_.bytes() + pieces_.bytes();
}

}  // namespace swizzle::cuda
