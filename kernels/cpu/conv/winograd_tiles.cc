#include "kernels/cpu/conv/winograd_tiles.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "kernels/base/integers.h"
#include "kernels/cpu/layout/slab.h"

namespace swizzle::cpu {
namespace {

constexpr int64_t kWindow = 3;

// The transform of weights along one direction: a row for each point, the last for infinity.
constexpr std::array<double, kWindow> TransformRow(int64_t row) {
  constexpr double kPoints[] = {0, kNearPoint, -kNearPoint, kFarPoint, -kFarPoint};
  if (row == std::ssize(kPoints)) return {0, 0, 1};
  const double point = kPoints[row];
  double scale = 1;
  for (const double other : kPoints) {
    if (other != point) scale *= point - other;
  }
  return {1 / scale, point / scale, point * point / scale};
}

double Transformed(const float* window, int64_t row, int64_t column) {
  const auto down = TransformRow(row), across = TransformRow(column);
  double sum = 0;
  for (int64_t y = 0; y < kWindow; ++y) {
    for (int64_t x = 0; x < kWindow; ++x) sum += down[y] * across[x] * window[y * kWindow + x];
  }
  return sum;
}

int64_t WeightFloats(int64_t inputs, int64_t outputs) {
  return CeilDiv(outputs, kOutputGroup) * kTileNumbers * inputs * kOutputGroup;
}

}  // namespace

int64_t WinogradWeightBytes(int64_t inputs, int64_t outputs) {
  return WeightFloats(inputs, outputs) * static_cast<int64_t>(sizeof(float));
}

StatusOr<std::unique_ptr<PackedWeight>> WinogradWeight::Make(const DenseMatrix& matrix,
                                                             const std::vector<float>& bias) {
  std::unique_ptr<WinogradWeight> weight(new WinogradWeight(matrix.cols / (kWindow * kWindow), matrix.rows));
  const size_t bytes = static_cast<size_t>(WinogradWeightBytes(weight->inputs_, weight->outputs_));
  weight->values_.reset(static_cast<float*>(std::aligned_alloc(kBufferAlignment, RoundUp(bytes, kBufferAlignment))));
  if (weight->values_ == nullptr) {
    return MakeError(StatusCode::kResourceExhausted, "cannot allocate ", bytes, " bytes for a convolution's weights");
  }
  weight->bias_.resize(static_cast<size_t>(RoundUp(matrix.rows, kOutputGroup)));
  std::ranges::copy(bias, weight->bias_.begin());
  weight->Fill(matrix);
  return weight;
}

void WinogradWeight::Fill(const DenseMatrix& matrix) {
  std::fill_n(values_.get(), WeightFloats(inputs_, outputs_), 0.0f);
  for (int64_t output = 0; output < outputs_; ++output) {
    const int64_t group = output / kOutputGroup, width = GroupWidth(group);
    float* const to = values_.get() + group * kTileNumbers * inputs_ * kOutputGroup + output % kOutputGroup;
    for (int64_t input = 0; input < inputs_; ++input) {
      const float* const window = matrix.values.data() + output * matrix.cols + input * kWindow * kWindow;
      for (int64_t number = 0; number < kTileNumbers; ++number) {
        to[(number * inputs_ + input) * width] =
            static_cast<float>(Transformed(window, number / kTileInputs, number % kTileInputs));
      }
    }
  }
}

int64_t WinogradWeight::GroupWidth(int64_t group) const {
  return outputs_ - group * kOutputGroup <= kBlockChannels ? kBlockChannels : kOutputGroup;
}

size_t WinogradWeight::bytes() const {
  return static_cast<size_t>(WinogradWeightBytes(inputs_, outputs_)) + bias_.size() * sizeof(float);
}

WinogradTiles::WinogradTiles(const Problem& problem)
    : columns(CeilDiv(problem.output.width, kTileOutputs)),
      tiles(columns * CeilDiv(problem.output.height, kTileOutputs)),
      in_channels(RoundUp(problem.input.channels, kBlockChannels)),
      output_groups(CeilDiv(problem.output.channels, kOutputGroup)),
      parts(1) {
  // What a group's inputs may take of the second cache, and how many tiles are enough to read weights seldom.
  constexpr int64_t kInputFloats = int64_t{128} << 10, kFewest = 12, kMost = 48;
  const int64_t most = std::clamp(kInputFloats / (kTileNumbers * in_channels), kFewest, kMost);
  groups = CeilDiv(tiles, most);
  group_tiles = CeilDiv(tiles, groups);
  const int64_t items = problem.output.batch * groups, wanted = int64_t{2} * problem.threads;
  if (problem.threads > 1 && items < wanted) parts = std::min(output_groups, CeilDiv(wanted, items));
  // Neighbours would else be apart by a power of two, and share few lines of the first cache.
  in_stride = group_tiles * in_channels + kBlockChannels;
  out_stride = group_tiles * kOutputGroup + kBlockChannels;
  slot_floats = kTileNumbers * (in_stride + out_stride);
}

}  // namespace swizzle::cpu
