#include "model_loader/pack/sparse_inputs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cuda/sparse_input.h"
#include "kernels/measure/measure_kernels.h"

namespace swizzle::pack {
namespace {

constexpr int64_t kTile = 64;
constexpr std::array kShares = {0.5, 0.75, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999};

// Of tiles of rows, by column of the weight: which hold something in it.
std::vector<double> AliveInWeight(const Weight& weight) {
  const MatrixSize size = weight.matrix.size();
  std::vector<int64_t> last_tile(static_cast<size_t>(size.cols), -1), count(static_cast<size_t>(size.cols));
  weight.matrix.ForEachRow([&](int64_t row, std::span<const uint32_t> cols) {
    for (const uint32_t col : cols) {
      count[col] += last_tile[col] != row / kTile;
      last_tile[col] = row / kTile;
    }
  });
  std::vector<double> shares;
  for (const int64_t tiles : count) {
    shares.push_back(static_cast<double>(tiles) / static_cast<double>(CeilDiv(size.rows, kTile)));
  }
  return shares;
}

// One channel of one image by one tap.
class TapRows {
 public:
  TapRows(const Problem& problem, int64_t tap) : in_(problem.input), out_(problem.output), window_(problem.window()) {
    y_ = tap / window_.kernel_w * window_.dilation_h - window_.pad_top;
    x_ = tap % window_.kernel_w * window_.dilation_w - window_.pad_left;
  }

  // Tiles of the output's rows in which something is read that is not zero.
  int64_t Alive(const float* plane) const {
    int64_t alive = 0;
    for (int64_t row = 0; row < out_.height; ++row) {
      const int64_t y = row * window_.stride_h + y_;
      if (y < 0 || y >= in_.height) continue;
      for (int64_t first = 0; first < out_.width; first += kTile) {
        alive += IsAlive(plane + y * in_.width, first, std::min(first + kTile, out_.width));
      }
    }
    return alive;
  }

 private:
  bool IsAlive(const float* row, int64_t first, int64_t end) const {
    for (int64_t i = first; i < end; ++i) {
      const int64_t x = i * window_.stride_w + x_;
      if (x >= 0 && x < in_.width && row[x] != 0.0f) return true;
    }
    return false;
  }

  const Extent in_, out_;
  const Window window_;
  int64_t y_, x_;
};

double ZerosOf(std::span<const float> values) {
  const auto zeros = std::ranges::count(values, 0.0f);
  return values.empty() ? 0.0 : static_cast<double>(zeros) / static_cast<double>(values.size());
}

// With the smallest elements zero, so that at least this share is.
std::vector<float> Thinned(std::span<const float> values, double zeros) {
  std::vector<float> magnitudes(values.size());
  std::ranges::transform(values, magnitudes.begin(), [](float value) { return std::abs(value); });
  const auto at = magnitudes.begin() + static_cast<std::ptrdiff_t>(zeros * static_cast<double>(values.size()));
  if (at == magnitudes.end()) return std::vector<float>(values.size());
  std::ranges::nth_element(magnitudes, at);
  std::vector<float> thinned(values.begin(), values.end());
  for (float& value : thinned) {
    if (std::abs(value) <= *at) value = 0.0f;
  }
  return thinned;
}

// The fastest dense kernel's in FP16.
StatusOr<double> TimeDense(Backend& gpu, const Problem& asked, const Weight& weight) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto stream, gpu.NewStream(0));
  double least = std::numeric_limits<double>::infinity();
  for (const Kernel* kernel : Candidates(gpu, asked, &weight, Precision::kFloat16)) {
    const Storage& to = kernel->key.output;
    if (IsSparse(kernel->key.weights) || to.dtype != DType::kFloat16 || kernel->key.input != to) continue;
    const Problem problem = AsRowSolves(*kernel, asked);
    SWIZZLE_ASSIGN_OR_RETURN(const auto packed, gpu.Prepare(*kernel, weight, problem));
    const auto measured = MeasureKernel(gpu, *stream, *kernel, problem, packed.get(), {});
    if (measured.ok()) least = std::min(least, absl::ToDoubleMicroseconds(measured->time));
  }
  return least;
}

// Where products of both sides go in time.
Status TimeLayer(Backend& gpu, const Problem& problem, const Weight& weight, std::span<const float> input,
                 SparseInput& seen) {
  const auto own = TimeSparseInput(gpu, problem, weight, input);
  if (own.status().code() == StatusCode::kUnimplemented) return {};
  SWIZZLE_RETURN_IF_ERROR(own.status());
  SWIZZLE_ASSIGN_OR_RETURN(seen.dense_microseconds, TimeDense(gpu, problem, weight));
  seen.batch = problem.input.batch;
  seen.microseconds = *own;
  const double zeros = ZerosOf(input);
  if (seen.wins()) seen.wins_from = zeros;
  for (const double share : kShares) {
    if (seen.wins_from || share <= zeros) continue;
    const std::vector<float> thinned = Thinned(input, share);
    SWIZZLE_ASSIGN_OR_RETURN(const double time, TimeSparseInput(gpu, problem, weight, thinned));
    if (time < seen.dense_microseconds) seen.wins_from = ZerosOf(thinned);
  }
  return {};
}

}  // namespace

double MeetingShare(const Problem& problem, const Weight& weight, std::span<const float> input) {
  Problem flat = problem;
  std::vector<float> by_channel;
  if (problem.window().IsPointwise() && problem.input.batch > 1) {  // a row of the output then is all positions
    flat.input = {1, problem.input.channels, 1, problem.input.positions()};
    flat.output = {1, problem.output.channels, 1, problem.output.positions()};
    const int64_t plane = problem.input.plane(), channels = problem.input.channels;
    by_channel.resize(input.size());
    for (int64_t i = 0; i < std::ssize(input); ++i) {
      const int64_t channel = i / plane % channels, image = i / plane / channels;
      by_channel[(channel * problem.input.batch + image) * plane + i % plane] = input[i];
    }
    input = by_channel;
  }
  const Extent& in = flat.input;
  const int64_t taps = flat.window().taps();
  const double tiles = static_cast<double>(flat.output.batch * flat.output.height * CeilDiv(flat.output.width, kTile));
  const std::vector<double> in_weight = AliveInWeight(weight);
  double sum = 0.0;
  for (int64_t k = 0; k < in.channels * taps; ++k) {
    if (in_weight[k] == 0.0) continue;
    const TapRows rows(flat, k % taps);
    int64_t alive = 0;
    for (int64_t image = 0; image < in.batch; ++image) {
      alive += rows.Alive(input.data() + (image * in.channels + k / taps) * in.plane());
    }
    sum += in_weight[k] * static_cast<double>(alive) / tiles;
  }
  return sum / static_cast<double>(in.channels * taps);
}

StatusOr<SparseInputs> SeeSparseInputs(const Network& network, const SeenValues& seen_values, Backend* gpu) {
  SparseInputs inputs;
  if (network.sequences) return inputs;
  for (int i = 0; i < static_cast<int>(network.layers.size()); ++i) {
    const Layer& layer = network.layers[i];
    if (!MaySkipInputZeros(network, layer)) continue;
    const auto value = seen_values.find(layer.inputs[0]);
    if (value == seen_values.end()) continue;
    const Weight& weight = network.weights[layer.weight];
    const std::vector<float>& values = value->second.rows;
    const int64_t elements = network.values[layer.inputs[0]].elements(), rows = std::ssize(values) / elements;
    if (rows == 0 || std::ssize(values) % elements != 0) continue;  // seen at other extents
    const Problem problem = LayerProblem(network, layer, rows, 1);
    SparseInput& seen = inputs[i];
    seen.zeros = value->second.zeros;
    seen.meets = MeetingShare(problem, weight, values);
    if (gpu != nullptr) SWIZZLE_RETURN_IF_ERROR(TimeLayer(*gpu, problem, weight, values, seen));
  }
  return inputs;
}

}  // namespace swizzle::pack
