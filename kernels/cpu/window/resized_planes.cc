#include "kernels/cpu/window/resized_planes.h"

#include "kernels/base/integers.h"

namespace swizzle::cpu {
namespace {

constexpr int64_t kWidestVector = 16;
// Of a band's output: with its input it stays in a first cache.
constexpr int64_t kBandFloats = 4096;

ResampledAxis Vertical(const Problem& problem) {
  return AxisOf(problem.input.height, problem.output.height, problem.resampling().scale_h);
}

ResampledAxis Horizontal(const Problem& problem) {
  return AxisOf(problem.input.width, problem.output.width, problem.resampling().scale_w);
}

void Fill(const Resampling& how, const ResampledAxis& axis, int64_t padded, const AxisTaps& taps) {
  for (int64_t i = 0; i < padded; ++i) {
    const ResampledTaps at = TapsOf(how, axis, std::min(i, axis.to - 1));
    taps.first[i] = at.first;
    taps.second[i] = at.second;
    taps.weight[i] = at.weight;
  }
}

}  // namespace

ResizedPlanes::ResizedPlanes(const Problem& problem) : problem_(problem) {
  const Extent &from = problem.input, &to = problem.output;
  band_rows_ = std::clamp<int64_t>(kBandFloats / to.width, 1, to.height);
  bands_per_image_ = CeilDiv(to.height, band_rows_);
  from_rows_ = 1;
  for (int64_t first = 0; first < to.height; first += band_rows_) {
    const auto taps = [&](int64_t row) { return TapsOf(problem.resampling(), Vertical(problem), row); };
    const int64_t last = std::min(first + band_rows_, to.height) - 1;
    from_rows_ = std::max<int64_t>(from_rows_, taps(last).second + 1 - taps(first).first);
  }
  row_floats_ = RoundUp(from.width, kWidestVector) + kWidestVector;
  from_floats_ = RoundUp(from_rows_ * from.width, kWidestVector) + kWidestVector;
  to_floats_ = RoundUp(band_rows_ * to.width, kWidestVector) + kWidestVector;
  padded_rows_ = RoundUp(to.height, kWidestVector);
  padded_columns_ = RoundUp(to.width, kWidestVector);
}

ResizeBand ResizedPlanes::BandAt(int64_t band, const AxisTaps& rows) const {
  const int64_t first = band % bands_per_image_ * band_rows_;
  ResizeBand at{band / bands_per_image_, first, std::min(band_rows_, problem_.output.height - first), 0, 0};
  const int64_t last = first + at.rows - 1;
  at.from_first = rows.first[first];  // positions rise, and so do what they take
  at.from_rows = rows.second[last] + 1 - at.from_first;
  return at;
}

size_t ResizedPlanes::TableBytes() const {
  constexpr size_t kArrays = 3;
  return kArrays * static_cast<size_t>(padded_rows_ + padded_columns_) * sizeof(float);
}

size_t ResizedPlanes::SlotBytes() const {
  const int64_t runs = MaxRuns(from_rows_ * problem_.input.width) + MaxRuns(band_rows_ * problem_.output.width);
  const auto floats = static_cast<size_t>(from_floats_ + to_floats_ + row_floats_) * sizeof(float);
  return RoundUp(floats + static_cast<size_t>(runs) * sizeof(Run), kBufferAlignment);
}

AxisTaps ResizedPlanes::TapsIn(std::span<std::byte> workspace, size_t offset, int64_t padded) const {
  auto* const first = reinterpret_cast<int32_t*>(workspace.data() + offset);
  return {first, first + padded, reinterpret_cast<float*>(first + 2 * padded)};
}

AxisTaps ResizedPlanes::Rows(std::span<std::byte> workspace) const { return TapsIn(workspace, 0, padded_rows_); }

AxisTaps ResizedPlanes::Columns(std::span<std::byte> workspace) const {
  return TapsIn(workspace, 3 * static_cast<size_t>(padded_rows_) * sizeof(float), padded_columns_);
}

void ResizedPlanes::FillTaps(std::span<std::byte> workspace) const {
  const Resampling& how = problem_.resampling();
  Fill(how, Vertical(problem_), padded_rows_, Rows(workspace));
  Fill(how, Horizontal(problem_), padded_columns_, Columns(workspace));
}

ResizedPlanes::Slot ResizedPlanes::SlotOf(std::span<std::byte> workspace, int64_t slot) const {
  Slot of;
  of.from = reinterpret_cast<float*>(workspace.data() + TableBytes() + slot * SlotBytes());
  of.to = of.from + from_floats_;
  of.row = of.to + to_floats_;
  of.from_runs = reinterpret_cast<Run*>(of.row + row_floats_);
  of.to_runs = of.from_runs + MaxRuns(from_rows_ * problem_.input.width);
  return of;
}

std::span<const Run> ResizedPlanes::FromRuns(const ResizeBand& band, Run* room) const {
  const int64_t width = problem_.input.width;
  return {room, AppendRuns(problem_.input, problem_.from.layout, band.image, band.from_first * width,
                           band.from_rows * width, 0, room)};
}

std::span<const Run> ResizedPlanes::ToRuns(const ResizeBand& band, Run* room) const {
  const int64_t width = problem_.output.width;
  return {room,
          AppendRuns(problem_.output, problem_.to.layout, band.image, band.first * width, band.rows * width, 0, room)};
}

}  // namespace swizzle::cpu
