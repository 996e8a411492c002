#include "kernels/format/n_m.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "kernels/format/structure.h"
#include "kernels/format/weight_matrix.h"

namespace swizzle {
namespace {

constexpr int64_t kMaxUint32 = std::numeric_limits<uint32_t>::max();
constexpr int64_t kSomeM[] = {2, 4, 8, 16};
constexpr int64_t kSomeTaps[] = {1, 9, 25, 49};

int64_t PlaceBits(int64_t m) { return static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(m - 1))); }

int64_t PlaceBytes(int64_t entries, int64_t m) { return CeilDiv(entries * PlaceBits(m), 8); }

// The columns of a group: `width` of them from `first` on, `taps` apart.
struct Group {
  int64_t first, width;
};

Group GroupAt(const NOfMMatrix& matrix, int64_t group) {
  const int64_t tap = group / matrix.groups_of_tap(), channel = group % matrix.groups_of_tap() * matrix.m;
  return {channel * matrix.taps + tap, std::min(matrix.m, matrix.channels() - channel)};
}

// The most nonzeros of any group; more than `limit` where there are more.
int64_t FullestGroup(const DenseMatrix& dense, int64_t m, int64_t taps, int64_t limit) {
  const int64_t channels = dense.cols / taps;
  int64_t most = 0;
  for (int64_t line = 0; line < dense.rows * taps && most <= limit; ++line) {
    const float* const first = dense.values.data() + line / taps * dense.cols + line % taps;
    int64_t count = 0;
    for (int64_t c = 0; c < channels; ++c) {
      if (c % m == 0) count = 0;
      most = std::max(most, count += first[c * taps] != 0);
    }
  }
  return most;
}

Status ValidateCounts(const NOfMMatrix& matrix) {
  if (matrix.rows < 0 || matrix.cols < 0 || matrix.rows > kMaxUint32 || matrix.cols > kMaxUint32) {
    return InvalidArgument("N:M matrix has impossible dimensions ", matrix.rows, " x ", matrix.cols);
  }
  if (matrix.n < 1 || matrix.n > matrix.m || matrix.m > NOfMMatrix::kMostM) {
    return InvalidArgument("N:M matrix keeps ", matrix.n, " of ", matrix.m, "; 1 <= n <= m <= ", NOfMMatrix::kMostM,
                           " is possible");
  }
  if (matrix.taps < 1 || matrix.cols % matrix.taps != 0) {
    return InvalidArgument("N:M matrix of ", matrix.cols, " columns has ", matrix.taps,
                           " taps, which do not divide them");
  }
  const auto values = static_cast<int64_t>(matrix.values.size());
  const int64_t row = matrix.entries_of_row();  // below 2^42
  if (matrix.rows != 0 && row > 0 ? values / row != matrix.rows || values % row != 0 : values != 0) {
    return InvalidArgument("N:M matrix has ", values, " values; ", matrix.rows, " rows have ", row, " each");
  }
  if (static_cast<int64_t>(matrix.places.size()) != PlaceBytes(values, matrix.m)) {
    return InvalidArgument("N:M matrix has ", matrix.places.size(), " bytes of places; ", values, " entries take ",
                           PlaceBytes(values, matrix.m));
  }
  return absl::OkStatus();
}

Status ValidateGroup(const NOfMMatrix& matrix, int64_t row, int64_t group) {
  const int64_t begin = row * matrix.entries_of_row() + group * matrix.n, width = GroupAt(matrix, group).width;
  int64_t previous = -1;
  for (int64_t entry = begin; entry < begin + matrix.n; ++entry) {
    const int64_t place = matrix.Place(entry);
    if (place <= previous || place >= matrix.m) {
      return InvalidArgument("N:M row ", row, ", group ", group, ": place ", place, " does not come after ", previous,
                             " below ", matrix.m);
    }
    if (place >= width && matrix.values[entry] != 0) {
      return InvalidArgument("N:M row ", row, ", group ", group, ": a value past the last channel is not zero");
    }
    previous = place;
  }
  return absl::OkStatus();
}

void SetPlace(NOfMMatrix& matrix, int64_t entry, int64_t place) {
  for (int64_t bit = 0, at = entry * PlaceBits(matrix.m); bit < PlaceBits(matrix.m); ++bit, ++at) {
    matrix.places[at / 8] |= static_cast<uint8_t>((place >> bit & 1) << at % 8);
  }
}

// Entries from `entry` on: the nonzeros, and the lowest of the other places. False where there are too many.
bool StoreGroup(const float* values, int64_t step, int64_t width, int64_t entry, NOfMMatrix& matrix) {
  const auto at = [&](int64_t place) { return place < width ? values[place * step] : 0.0f; };
  int64_t nonzeros = 0;
  for (int64_t place = 0; place < width; ++place) nonzeros += at(place) != 0;
  int64_t spare = matrix.n - nonzeros;
  for (int64_t place = 0; place < matrix.m; ++place) {
    if (at(place) == 0 && spare-- <= 0) continue;
    if (nonzeros > matrix.n) return false;
    matrix.values[entry] = at(place);
    SetPlace(matrix, entry++, place);
  }
  return true;
}

}  // namespace

int64_t NOfMMatrix::Place(int64_t entry) const {
  int64_t place = 0;
  for (int64_t bit = 0, at = entry * PlaceBits(m); bit < PlaceBits(m); ++bit, ++at) {
    place |= int64_t{places[at / 8] >> at % 8 & 1} << bit;
  }
  return place;
}

int64_t NOfMMatrix::nnz() const {
  return std::ranges::count_if(values, [](float value) { return value != 0; });
}

Status NOfMMatrix::Validate() const {
  SWIZZLE_RETURN_IF_ERROR(ValidateCounts(*this));
  for (int64_t row = 0; row < rows && cols > 0; ++row) {
    for (int64_t group = 0; group < taps * groups_of_tap(); ++group) {
      SWIZZLE_RETURN_IF_ERROR(ValidateGroup(*this, row, group));
    }
  }
  const int64_t bits = static_cast<int64_t>(values.size()) * PlaceBits(m);
  if (bits % 8 != 0 && places.back() >> bits % 8 != 0) {
    return InvalidArgument("N:M matrix has bits of places past the last entry's");
  }
  return absl::OkStatus();
}

StatusOr<NOfMMatrix> NOfMMatrix::FromDense(const DenseMatrix& dense, const GroupLimits& limits) {
  NOfMMatrix matrix{dense.rows, dense.cols, limits.n, limits.m, limits.taps, {}, {}};
  SWIZZLE_CHECK(limits.n >= 1 && limits.n <= limits.m && limits.m <= kMostM);
  SWIZZLE_CHECK(limits.taps >= 1 && dense.cols % limits.taps == 0);
  const int64_t row_entries = matrix.entries_of_row(), entries = dense.rows * row_entries;
  matrix.values.resize(entries);
  matrix.places.resize(PlaceBytes(entries, matrix.m));
  for (int64_t entry = 0; entry < entries; entry += matrix.n) {
    const int64_t row = entry / row_entries;
    const Group group = GroupAt(matrix, entry % row_entries / matrix.n);
    const float* const first = dense.values.data() + row * dense.cols + group.first;
    if (!StoreGroup(first, matrix.taps, group.width, entry, matrix)) {
      return InvalidArgument("row ", row, " of a ", dense.rows, " x ", dense.cols, " matrix has more than ", limits.n,
                             " nonzeros of ", limits.m, " neighbouring channels; prune it by --method=n-m");
    }
  }
  return matrix;
}

StatusOr<NOfMMatrix> NOfMMatrix::FromDense(const DenseMatrix& dense) {
  std::optional<GroupLimits> best;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const int64_t taps : kSomeTaps) {
    if (dense.cols % taps != 0) continue;
    for (const int64_t m : kSomeM) {
      const int64_t n = std::max<int64_t>(1, FullestGroup(dense, m, taps, m / 2));
      const int64_t entries = dense.rows * taps * CeilDiv(dense.cols / taps, m) * n;
      const int64_t bytes = entries * static_cast<int64_t>(sizeof(float)) + PlaceBytes(entries, m);
      if (n <= m / 2 && bytes < least) best = {n, m, taps}, least = bytes;
    }
  }
  if (best) return FromDense(dense, *best);
  return InvalidArgument("a ", dense.rows, " x ", dense.cols,
                         " matrix has more than half of some neighbouring channels ",
                         "that are not zero; prune it by --method=n-m");
}

DenseMatrix NOfMMatrix::ToDense() const {
  DenseMatrix dense{rows, cols, std::vector<float>(rows * cols)};
  const int64_t row_entries = cols == 0 ? 1 : entries_of_row();
  for (int64_t entry = 0; entry < static_cast<int64_t>(values.size()); ++entry) {
    const Group group = GroupAt(*this, entry % row_entries / n);
    const int64_t place = Place(entry);
    if (place < group.width) dense.values[entry / row_entries * cols + group.first + place * taps] = values[entry];
  }
  return dense;
}

std::vector<uint32_t> NOfMMatrix::ValueRows() const {
  std::vector<uint32_t> value_rows(values.size());
  const auto row_entries = static_cast<size_t>(entries_of_row());
  for (size_t entry = 0; entry < values.size(); ++entry) value_rows[entry] = static_cast<uint32_t>(entry / row_entries);
  return value_rows;
}

bool NOfMMatrix::Holds(const Structure& structure) { return structure.pattern == SparsityPattern::kNOfM; }

bool KeepsLimits(const WeightMatrix& matrix, int64_t n, int64_t m) {
  bool keeps = true;
  matrix.ForEachRow([&](int64_t, std::span<const uint32_t> cols) {
    int64_t group = -1, count = 0;
    for (size_t i = 0; i < cols.size() && keeps; ++i) {
      count = cols[i] / m == group ? count + 1 : 1;
      group = cols[i] / m;
      keeps = count <= n;
    }
  });
  return keeps;
}

}  // namespace swizzle
