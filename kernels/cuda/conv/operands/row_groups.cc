#include "kernels/cuda/conv/operands/row_groups.h"

#include <algorithm>
#include <vector>

#include "kernels/base/half_bits.h"
#include "kernels/base/integers.h"
#include "kernels/cuda/conv/operands/half_parts.h"

namespace swizzle::cuda {
namespace {

constexpr int kWarps = 4, kColumnsOfWarp = RowGroups::kStage / kWarps;
constexpr int kStepElements = RowGroups::kRows * RowGroups::kStep;

// Of a step's weights, the place of a row and a column.
int64_t PlaceInStep(int64_t row, int64_t column) { return column / 8 * (RowGroups::kRows * 8) + row * 8 + column % 8; }

// Builds the host's side of one weight, group by group; as parts where there is no type.
class Packer {
 public:
  Packer(const ShflBwMatrix& matrix, std::span<const float> bias, std::optional<DType> dtype)
      : matrix_(matrix), bias_(bias), dtype_(dtype), position_of_(matrix.cols) {
    for (int64_t place = 0; place < matrix.rows; place += RowGroups::kRows) AddGroup(place);
    if (HasRowPairs(matrix.rows, matrix.vector_rows)) {
      for (size_t i = 0; i < groups.size(); i += 2) pairs.push_back(groups[i]);
    }
    for (std::vector<RowGroup>* const all : {&groups, &pairs}) {
      std::ranges::stable_sort(*all, [](const RowGroup& a, const RowGroup& b) { return a.steps > b.steps; });
    }
  }

 private:
  void AddGroup(int64_t first) {
    const int64_t rows = std::min<int64_t>(RowGroups::kRows, matrix_.rows - first);
    std::vector<uint32_t> used = ColumnsOf(first, rows);
    if (used.empty()) used = {0};
    const int64_t steps = CeilDiv(static_cast<int64_t>(used.size()), RowGroups::kStep) * (dtype_ ? 1 : 2);
    groups.push_back({.weights = static_cast<uint32_t>(weights.size() / kStepElements),
                      .columns = static_cast<uint32_t>(columns.size() / RowGroups::kChunk),
                      .steps = static_cast<uint32_t>(steps),
                      .place = static_cast<uint32_t>(first)});
    AddColumns(dtype_ ? used : RowsOfParts(used));
    const size_t begin = weights.size();
    weights.resize(begin + steps * kStepElements);
    for (size_t i = 0; i < used.size(); ++i) position_of_[used[i]] = static_cast<uint32_t>(i);
    for (int64_t row = 0; row < rows; ++row) {
      const std::span<uint16_t> to = std::span(weights).subspan(begin);
      dtype_ ? AddRow(first + row, row, to) : AddParts(first + row, row, to);
    }
    for (int64_t row = 0; row < RowGroups::kRows; ++row) {
      const int32_t at = row < rows ? static_cast<int32_t>(matrix_.row_order[first + row]) : -1;
      rows_of_places.push_back(at);
      biases.push_back(at < 0 || bias_.empty() ? 0.0f : bias_[at]);
    }
    if (!dtype_) inverses.resize(rows_of_places.size(), 1.0f);
  }

  // Of all vectors that reach into these places.
  std::vector<uint32_t> ColumnsOf(int64_t first, int64_t rows) const {
    std::vector<uint32_t> used;
    for (int64_t group = first / matrix_.vector_rows; group * matrix_.vector_rows < first + rows; ++group) {
      const auto more =
          std::span(matrix_.col_indices)
              .subspan(matrix_.group_offsets[group], matrix_.group_offsets[group + 1] - matrix_.group_offsets[group]);
      used.insert(used.end(), more.begin(), more.end());
    }
    std::ranges::sort(used);
    used.erase(std::unique(used.begin(), used.end()), used.end());
    return used;
  }

  void AddColumns(const std::vector<uint32_t>& used) {
    const size_t begin = columns.size();
    columns.resize(begin + RoundUp(static_cast<int64_t>(used.size()), RowGroups::kChunk));
    for (size_t i = 0; begin + i < columns.size(); ++i) {
      const size_t stage = i / RowGroups::kStage, c = i % RowGroups::kStage;
      columns[begin + stage * RowGroups::kStage + c % kWarps * kColumnsOfWarp + c / kWarps] =
          static_cast<uint16_t>(used[std::min(i, used.size() - 1)]);
    }
  }

  // The rows of X as parts that hold these columns: of each step first the upper parts.
  std::vector<uint32_t> RowsOfParts(std::vector<uint32_t> used) const {
    used.resize(RoundUp(static_cast<int64_t>(used.size()), RowGroups::kStep), used.back());
    std::vector<uint32_t> rows;
    for (auto step = used.begin(); step != used.end(); step += RowGroups::kStep) {
      rows.insert(rows.end(), step, step + RowGroups::kStep);
      for (auto column = step; column != step + RowGroups::kStep; ++column) {
        rows.push_back(*column + static_cast<uint32_t>(matrix_.cols));
      }
    }
    return rows;
  }

  // visit(value, its column's position among the group's) for the row that stands in this place.
  template <typename Visit>
  void ForEachOf(int64_t place, const Visit& visit) const {
    const int64_t group = place / matrix_.vector_rows;
    for (uint32_t i = matrix_.group_offsets[group]; i < matrix_.group_offsets[group + 1]; ++i) {
      visit(matrix_.values[i * matrix_.vector_rows + place % matrix_.vector_rows],
            int64_t{position_of_[matrix_.col_indices[i]]});
    }
  }

  void AddRow(int64_t place, int64_t row, std::span<uint16_t> to) const {
    ForEachOf(place, [&](float value, int64_t at) {
      to[at / RowGroups::kStep * kStepElements + PlaceInStep(row, at % RowGroups::kStep)] = HalfBits(value, *dtype_);
    });
  }

  void AddParts(int64_t place, int64_t row, std::span<uint16_t> to) {
    RowFit fit;
    ForEachOf(place, [&](float value, int64_t) { fit.See(value); });
    ForEachOf(place, [&](float value, int64_t at) {
      const HalfParts parts = fit.PartsOf(value);
      uint16_t* const step = &to[at / RowGroups::kStep * 2 * kStepElements];
      step[PlaceInStep(row, at % RowGroups::kStep)] = parts.upper;
      step[kStepElements + PlaceInStep(row, at % RowGroups::kStep)] = parts.rest;
    });
    inverses.resize(place + 1, 1.0f);
    inverses[place] = fit.inverse();
  }

  const ShflBwMatrix& matrix_;
  const std::span<const float> bias_;
  const std::optional<DType> dtype_;
  std::vector<uint32_t> position_of_;  // of a column, among those of the group

 public:
  std::vector<uint16_t> weights, columns;
  std::vector<RowGroup> groups, pairs;
  std::vector<int32_t> rows_of_places;
  std::vector<float> biases, inverses;
};

}  // namespace

bool HasRowPairs(int64_t rows, int64_t vector_rows) {
  return vector_rows % (2 * RowGroups::kRows) == 0 && CeilDiv<int64_t>(rows, RowGroups::kRows) % 2 == 0;
}

StatusOr<std::unique_ptr<RowGroups>> RowGroups::Make(const ShflBwMatrix& matrix, std::span<const float> bias,
                                                     DType dtype) {
  return Packed(matrix, bias, dtype);
}

StatusOr<std::unique_ptr<RowGroups>> RowGroups::MakeParts(const ShflBwMatrix& matrix, std::span<const float> bias) {
  return Packed(matrix, bias, std::nullopt);
}

StatusOr<std::unique_ptr<RowGroups>> RowGroups::Packed(const ShflBwMatrix& matrix, std::span<const float> bias,
                                                       std::optional<DType> dtype) {
  const Packer packer(matrix, bias, dtype);
  std::unique_ptr<RowGroups> packed(new RowGroups);
  SWIZZLE_ASSIGN_OR_RETURN(packed->weights_, DeviceArray<uint16_t>::Upload(packer.weights));
  SWIZZLE_ASSIGN_OR_RETURN(packed->columns_, DeviceArray<uint16_t>::Upload(packer.columns));
  SWIZZLE_ASSIGN_OR_RETURN(packed->groups_, DeviceArray<RowGroup>::Upload(packer.groups));
  SWIZZLE_ASSIGN_OR_RETURN(packed->pairs_, DeviceArray<RowGroup>::Upload(packer.pairs));
  SWIZZLE_ASSIGN_OR_RETURN(packed->rows_, DeviceArray<int32_t>::Upload(packer.rows_of_places));
  SWIZZLE_ASSIGN_OR_RETURN(packed->bias_, DeviceArray<float>::Upload(packer.biases));
  SWIZZLE_ASSIGN_OR_RETURN(packed->inverses_, DeviceArray<float>::Upload(packer.inverses));
  return packed;
}

}  // namespace swizzle::cuda
