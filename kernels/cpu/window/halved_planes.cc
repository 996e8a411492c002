#include "kernels/cpu/window/halved_planes.h"

#include <algorithm>
#include <numeric>

#include "kernels/base/integers.h"

namespace swizzle::cpu {
namespace {

// Images until the first output and the first input of one begin a unit again.
int64_t PeriodImages(const Problem& problem) {
  const auto images = [](int64_t plane) { return kPositionUnit / std::gcd(plane, kPositionUnit); };
  return std::max(images(problem.input.plane()), images(problem.output.plane()));  // both are powers of two
}

// An output of the period.
struct Output {
  Output(const Problem& problem, int64_t index)
      : image(index / problem.output.plane()),
        row(index / problem.output.width % problem.output.height),
        column(index % problem.output.width) {}
  int64_t image, row, column;
};

// Of the window's row `tap_row`, for the output: the row of the plane, which may lie outside.
int64_t InputRow(const Problem& problem, const Output& output, int tap_row) {
  return 2 * output.row - problem.window().pad_top + tap_row;
}

int64_t PairPosition(const Problem& problem, const Output& output, int tap_row) {
  return output.image * problem.input.plane() + InputRow(problem, output, tap_row) * problem.input.width +
         2 * output.column;
}

static_assert(kPositionUnit == 16);

// Floor, of negative positions too.
int32_t UnitOf(int64_t position) { return static_cast<int32_t>(position >> 4); }

// Whether the output's outer tap is inside the plane, rows aside.
bool OuterInside(const Problem& problem, const Output& output) {
  return problem.window().pad_left == 1 ? output.column > 0 : output.column + 1 < problem.output.width;
}

// Of the outputs from `first` on; the number of its sources.
int PlanRow(const Problem& problem, int64_t first, int tap_row, HalvedRow* row) {
  const bool left = problem.window().pad_left == 1;
  std::vector<int32_t> sources;
  row->inside = 0;
  for (int64_t i = 0; i < kPositionUnit; ++i) {
    const Output output(problem, first + i);
    const int64_t input_row = InputRow(problem, output, tap_row);
    const bool inside = input_row >= 0 && input_row < problem.input.height;
    // The middle row is inside always, and near.
    const int64_t pair = PairPosition(problem, output, inside ? tap_row : 1);
    if (inside) row->inside |= static_cast<uint16_t>(1u << i);
    if (sources.empty() || sources.back() != UnitOf(pair)) sources.push_back(UnitOf(pair));
    const bool alone = i == (left ? 0 : kPositionUnit - 1);
    if (alone) row->outer = UnitOf(OuterInside(problem, output) ? pair + (left ? -1 : 2) : pair);
  }
  const int count = static_cast<int>(sources.size());
  if (count > HalvedRow::kMaxSources) return count;
  sources.resize(HalvedRow::kMaxSources, sources.back());
  std::ranges::copy(sources, row->sources);
  return count;
}

HalvedUnit PlanUnit(const Problem& problem, int64_t first) {
  HalvedUnit unit{};
  for (int64_t i = 0; i < kPositionUnit; ++i) {
    const Output output(problem, first + i);
    unit.pairs[i] = static_cast<int32_t>(PairPosition(problem, output, 0));
    if (OuterInside(problem, output)) unit.outer_inside |= static_cast<uint16_t>(1u << i);
  }
  for (int row = 0; row < 3; ++row) {
    unit.max_sources = std::max(unit.max_sources, PlanRow(problem, first, row, &unit.rows[row]));
  }
  return unit;
}

// Units of inputs that a range of outputs may span.
int64_t MaxInputUnits(const Problem& problem) {
  const int64_t output_rows = kMaxRangeUnits * kPositionUnit / problem.output.width + 2;
  const int64_t images = output_rows / problem.output.height + 2;
  return ((2 * output_rows + images + 3) * problem.input.width) / kPositionUnit + 2;
}

// The unit of the batch that stands for its period's.
struct InPeriod {
  InPeriod(const HalvedPeriod& period, int64_t unit)
      : planned(period.units[unit % static_cast<int64_t>(period.units.size())]),
        first_input(unit / static_cast<int64_t>(period.units.size()) * period.input_units) {}
  const HalvedUnit& planned;
  int64_t first_input;  // unit of inputs
};

}  // namespace

bool IsHalved3x3(const Problem& problem) {
  const Window& window = problem.window();
  const Extent &input = problem.input, &output = problem.output;
  return window.kernel_h == 3 && window.kernel_w == 3 && window.stride_h == 2 && window.stride_w == 2 &&
         window.dilation_h == 1 && window.dilation_w == 1 && window.pad_top >= 0 && window.pad_top <= 1 &&
         window.pad_left >= 0 && window.pad_left <= 1 && input.width == 2 * output.width &&
         output.height == (input.height + window.pad_top) / 2 && output.height > 0;
}

HalvedPeriod PlanHalvedPlanes(const Problem& problem) {
  const int64_t images = PeriodImages(problem);
  const int64_t outputs = images * problem.output.plane();
  if (outputs > HalvedPeriod::kMaxUnits * kPositionUnit) return {};
  HalvedPeriod period;
  period.input_units = images * problem.input.plane() / kPositionUnit;
  for (int64_t first = 0; first < outputs; first += kPositionUnit) {
    period.units.push_back(PlanUnit(problem, first));
    if (period.units.back().max_sources > HalvedRow::kMaxSources) return {};
  }
  return period;
}

size_t HalvedWorkspaceBytes(const Problem& problem) {
  const size_t bytes = static_cast<size_t>(MaxInputUnits(problem) + kMaxRangeUnits) * sizeof(UnitPlace);
  return RoundUp(bytes, kBufferAlignment);
}

HalvedPart PlaceHalvedPart(const Problem& problem, const HalvedPeriod& period, const UnitRange& range,
                           UnitPlace* places) {
  const InPeriod first(period, range.first_unit), last(period, range.first_unit + range.units - 1);
  int64_t begin = first.planned.rows[1].sources[0], end = 0;
  for (int row = 0; row < 3; ++row) {
    const HalvedRow &low = first.planned.rows[row], &high = last.planned.rows[row];
    begin = std::min<int64_t>({begin, low.sources[0], low.outer});
    end = std::max<int64_t>({end, high.sources[HalvedRow::kMaxSources - 1] + 1, high.outer + 1});
  }
  begin += first.first_input;
  end += last.first_input;
  UnitPlace* const outputs = places + MaxInputUnits(problem);
  PlaceUnits(problem.input, begin, end - begin, places);
  PlaceUnits(problem.output, range.first_unit, range.units, outputs);
  return {places, begin, outputs, range};
}

}  // namespace swizzle::cpu
