#include "kernels/whole_numbers/byte_weight.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <utility>

#include "kernels/format/csr.h"
#include "kernels/whole_numbers/steps.h"

namespace swizzle {
namespace {

constexpr double kMostSum = 1u << 30;    // leaves room for the bias
constexpr double kMostSteps = 1u << 30;  // of the output that a sum may come to, to fit 32 bits

constexpr int32_t kLeastByte = -128, kMostByte = 127;

// What a weight's numbers may be, less the zero point.
struct WholeRange {
  int32_t least, most;
};
constexpr WholeRange kSignedBytes = {kLeastByte, kMostByte}, kAnyBytes = {-255, 255};

// What stands for `value`, less the zero point; none where that is beyond the range.
std::optional<int32_t> WholeOf(float value, float scale, const WholeRange& range) {
  const double steps = std::nearbyint(static_cast<double>(value) / scale);
  if (!(steps >= range.least && steps <= range.most)) return std::nullopt;
  // The value that bytes stand for is a product that was rounded once.
  if (std::abs(steps * scale - value) > 1e-4 * scale) return std::nullopt;
  return static_cast<int32_t>(steps);
}

// As one signed byte, or as many as add up to it.
void AddEntries(int32_t column, int32_t value, std::vector<ByteWeight::Entry>& entries) {
  while (value != 0) {
    const int32_t part = std::clamp(value, kLeastByte, kMostByte);
    entries.push_back({column, static_cast<int8_t>(part)});
    value -= part;
  }
}

std::optional<int32_t> BiasOf(float bias, float scale) {
  const double steps = std::nearbyint(static_cast<double>(bias) / scale);
  if (!(std::abs(steps) < kMostSum)) return std::nullopt;
  return static_cast<int32_t>(steps);
}

// Columns of a weight count channels first, then taps; kernels count the other way round.
int32_t ColumnOf(int64_t col, const Problem& problem) {
  if (problem.op != Op::kConv) return static_cast<int32_t>(col);
  const int64_t taps = problem.window().taps();
  return static_cast<int32_t>(col % taps * problem.input.channels + col / taps);
}

struct RowSums {
  int64_t all = 0;         // of the bytes
  int64_t magnitudes = 0;  // of their magnitudes
};

// The start of a row's sum, where it and all that follows stay in range.
std::optional<int32_t> StartOf(const RowSums& sums, float bias, float product, float scale, int32_t zero_point) {
  const std::optional<int32_t> steps = BiasOf(bias, product);
  const double most = static_cast<double>(sums.magnitudes) * 255;
  if (!steps || most >= kMostSum) return std::nullopt;
  const int64_t start = *steps - sums.all * zero_point;
  if (std::abs(static_cast<double>(start)) >= kMostSum) return std::nullopt;
  if ((std::abs(static_cast<double>(start)) + most) * scale >= kMostSteps) return std::nullopt;
  return static_cast<int32_t>(start);
}

// Entries come channel by channel, and leave tap by tap. A sort took 45 % of the time in which a dense ResNet-50 of
// bytes was loaded.
void BringTapsTogether(const Problem& problem, std::vector<ByteWeight::Entry>& entries) {
  if (problem.op != Op::kConv || problem.window().taps() == 1 || entries.empty()) return;
  const int64_t channels = problem.input.channels;
  std::vector<size_t> next(problem.window().taps() + 1);
  for (const ByteWeight::Entry& entry : entries) ++next[entry.column / channels + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<ByteWeight::Entry> ordered(entries.size());
  for (const ByteWeight::Entry& entry : entries) ordered[next[entry.column / channels]++] = entry;
  entries = std::move(ordered);
}

// with_entries: else they are only looked at.
std::optional<ByteWeight> Convert(const Weight& weight, const Problem& problem, const WholeRange& range,
                                  bool with_entries) {
  const std::optional<Quantisation>& quantisation = weight.quantisation;
  if (!quantisation || !quantisation->Validate(weight.rows()).ok()) return std::nullopt;
  const auto csr = weight.matrix.In<CsrMatrix>();
  if (!csr.ok()) return std::nullopt;
  const CsrMatrix& matrix = **csr;
  ByteWeight made;
  made.rows = matrix.rows;
  made.cols = matrix.cols;
  made.entries.resize(matrix.rows);
  const Quantised& input = problem.inputs_as[0];
  for (int64_t row = 0; row < matrix.rows; ++row) {
    const float weight_scale = quantisation->Of(row).scale;
    RowSums sums;
    for (uint32_t i = matrix.row_offsets[row]; i < matrix.row_offsets[row + 1]; ++i) {
      const std::optional<int32_t> value = WholeOf(matrix.values[i], weight_scale, range);
      if (!value) return std::nullopt;
      sums.all += *value;
      sums.magnitudes += std::abs(*value);
      if (with_entries) AddEntries(ColumnOf(matrix.col_indices[i], problem), *value, made.entries[row]);
    }
    BringTapsTogether(problem, made.entries[row]);
    made.scale.push_back(ScaleInSteps(input.scale, weight_scale, problem));
    const float bias = weight.bias.empty() ? 0.0f : weight.bias[row];
    const auto start = StartOf(sums, bias, input.scale * weight_scale, made.scale.back(), input.zero_point);
    if (!start) return std::nullopt;
    made.start.push_back(*start);
  }
  return made;
}

bool Holds(const Weight& weight, const Problem& problem, const WholeRange& range) {
  return Convert(weight, problem, range, /*with_entries=*/false).has_value();
}

StatusOr<ByteWeight> Make(const Weight& weight, const Problem& problem, const WholeRange& range) {
  std::optional<ByteWeight> made = Convert(weight, problem, range, /*with_entries=*/true);
  if (!made) return InvalidArgument("the weight is not of whole numbers whose sums fit 32 bits");
  return *std::move(made);
}

}  // namespace

int64_t ByteWeight::nonzeros() const {
  int64_t count = 0;
  for (const std::vector<Entry>& row : entries) count += static_cast<int64_t>(row.size());
  return count;
}

bool HoldsBytes(const Weight& weight, const Problem& problem) { return Holds(weight, problem, kSignedBytes); }

bool HoldsWideBytes(const Weight& weight, const Problem& problem) { return Holds(weight, problem, kAnyBytes); }

StatusOr<ByteWeight> MakeByteWeight(const Weight& weight, const Problem& problem) {
  return Make(weight, problem, kSignedBytes);
}

int64_t CountBeyondSignedBytes(const Weight& weight) {
  const std::optional<Quantisation>& quantisation = weight.quantisation;
  if (!quantisation || !quantisation->Validate(weight.rows()).ok()) return 0;
  const bool only_signed = quantisation->dtype == DType::kInt8 && quantisation->common_zero_point() == 0;
  const auto csr = only_signed ? InvalidArgument("none") : weight.matrix.In<CsrMatrix>();
  if (!csr.ok()) return 0;
  int64_t count = 0;
  for (int64_t row = 0; row < (*csr)->rows; ++row) {
    const float scale = quantisation->Of(row).scale;
    for (uint32_t i = (*csr)->row_offsets[row]; i < (*csr)->row_offsets[row + 1]; ++i) {
      count += WholeOf((*csr)->values[i], scale, kAnyBytes) && !WholeOf((*csr)->values[i], scale, kSignedBytes);
    }
  }
  return count;
}

StatusOr<ByteWeight> MakeWideByteWeight(const Weight& weight, const Problem& problem) {
  return Make(weight, problem, kAnyBytes);
}

}  // namespace swizzle
