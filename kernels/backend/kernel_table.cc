#include "kernels/backend/kernel_table.h"

#include <array>

namespace swizzle {

std::string_view FormatName(Format format) {
  static constexpr std::array<std::string_view, 4> kNames = {"none", "dense", "csr", "pattern"};
  static_assert(static_cast<size_t>(Format::kPattern) + 1 == kNames.size());
  return kNames[static_cast<size_t>(format)];
}

namespace {

template <typename Matrix>
constexpr bool kIsPattern = std::is_same_v<Matrix, AttentionPattern>;

DenseMatrix DensePattern(const AttentionPattern& pattern) {
  DenseMatrix dense{pattern.tokens, pattern.tokens, {}};
  dense.values.resize(static_cast<size_t>(pattern.tokens * pattern.tokens));
  for (int64_t query = 0; query < pattern.tokens; ++query) {
    for (uint32_t key : pattern.Keys(query)) dense.values[query * pattern.tokens + key] = 1;
  }
  return dense;
}

}  // namespace

int64_t Weight::rows() const {
  return std::visit(
      []<typename Matrix>(const Matrix& value) {
        if constexpr (kIsPattern<Matrix>) {
          return value.tokens;
        } else {
          return value.rows;
        }
      },
      matrix);
}

int64_t Weight::cols() const {
  return std::visit(
      []<typename Matrix>(const Matrix& value) {
        if constexpr (kIsPattern<Matrix>) {
          return value.tokens;
        } else {
          return value.cols;
        }
      },
      matrix);
}

int64_t Weight::nonzeros() const {
  if (const auto* csr = std::get_if<CsrMatrix>(&matrix)) return csr->nnz();
  if (const auto* pattern = std::get_if<AttentionPattern>(&matrix)) return pattern->nnz();
  return std::get<DenseMatrix>(matrix).CountNonzeros();
}

size_t Weight::StoredBytes() const {
  return std::visit([](const auto& value) { return value.bytes(); }, matrix) + bias.size() * sizeof(float);
}

int64_t Weight::DenseBytes() const {
  if (format() == Format::kPattern) return static_cast<int64_t>(StoredBytes());
  return (rows() * cols() + static_cast<int64_t>(bias.size())) * static_cast<int64_t>(sizeof(float));
}

DenseMatrix Weight::ToDense() const {
  if (const auto* csr = std::get_if<CsrMatrix>(&matrix)) return csr->ToDense();
  if (const auto* pattern = std::get_if<AttentionPattern>(&matrix)) return DensePattern(*pattern);
  return std::get<DenseMatrix>(matrix);
}

}  // namespace swizzle
