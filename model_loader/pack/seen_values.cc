#include "model_loader/pack/seen_values.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "kernels/operator/count_zeros.h"
#include "model_loader/calibration/calibration_runs.h"
#include "model_loader/calibration/roundings.h"
#include "model_loader/pack/calibration_data.h"

namespace swizzle::pack {
namespace {

constexpr int64_t kKeptRows = 8;

std::set<int> WatchedValues(const Network& network) {
  std::set<int> watched;
  for (const Layer& layer : network.layers) {
    if (MaySkipInputZeros(network, layer)) watched.insert(layer.inputs[0]);
  }
  return watched;
}

// One value, batch by batch.
class Watcher {
 public:
  explicit Watcher(const NetworkValue& value) : Watcher(value.WithBatch(1)) {}
  explicit Watcher(const Extent& row)
      : row_(row), row_elements_(static_cast<size_t>(row.channels * row.plane())), count_(row) {}

  void Add(std::span<const float> batch) {
    for (size_t at = 0; at < batch.size(); at += row_elements_) count_.Add(batch.subspan(at, row_elements_));
    const size_t left = row_elements_ * kKeptRows - std::min(rows_.size(), row_elements_ * kKeptRows);
    const std::span<const float> kept = batch.first(std::min(left, batch.size()));
    rows_.insert(rows_.end(), kept.begin(), kept.end());
  }
  bool saw_any() const { return count_.rows() > 0; }
  const Extent& row() const { return row_; }
  SeenValue Seen() && { return {count_.Shares(), std::move(rows_)}; }

 private:
  const Extent row_;
  const size_t row_elements_;
  ZerosCount count_;
  std::vector<float> rows_;
};

// A row of what a layer reads: a plane of each channel where it is a convolution, else a vector. No channels where it
// is neither.
Extent RowExtentOf(const Node& layer, const Shape& shape) {
  if (layer.op != "Conv") return shape.empty() ? Extent{1, 0} : Extent{1, shape.back()};
  if (shape.size() < 3) return {1, 0};
  const bool is_line = shape.size() == 3;
  Extent row{1, shape[1], is_line ? 1 : shape[2], is_line ? shape[2] : 1};
  for (size_t i = 3; i < shape.size(); ++i) row.width *= shape[i];
  return row;
}

bool IsMostlyZeros(const interpreter::Array& weight) {
  const std::span<const float> elements = weight.As<float>();
  return std::ranges::count(elements, 0.0f) * 2 >= std::ssize(elements);
}

// Counts zeros of what layers of a graph read.
class GraphWatch {
 public:
  GraphWatch(const interpreter::Program& program, const CalibrationRuns& runs) : program_(program), runs_(runs) {}

  void See(const Node& node, std::span<interpreter::Array> given) {
    const auto is_constant = [&](int value) { return runs_.IsConstant(value); };
    if (!IsWeightedLayer(node, is_constant) || given[0].dtype != DType::kFloat32 || given[1].dtype != DType::kFloat32) {
      return;
    }
    const auto [sparse, is_new] = sparse_.try_emplace(&node, false);
    if (is_new) sparse->second = IsMostlyZeros(given[1]);
    if (!sparse->second || given[0].elements() == 0 || !seen_.insert(node.inputs[0]).second) return;
    const Extent row = RowExtentOf(node, given[0].shape);
    if (row.channels == 0) return;
    const auto watcher = watchers_.try_emplace(node.inputs[0], row).first;
    if (watcher->second.row() == row) watcher->second.Add(given[0].As<float>());
  }
  void BeginBatch() { seen_.clear(); }

  std::map<std::string, SeenValue> Seen() && {
    std::map<std::string, SeenValue> seen;
    for (auto& [value, watcher] : watchers_) {
      const std::string& name = program_.graph().values[static_cast<size_t>(value)].name;
      if (watcher.saw_any()) seen[name] = std::move(watcher).Seen();
    }
    return seen;
  }

 private:
  const interpreter::Program& program_;
  const CalibrationRuns& runs_;
  std::map<const Node*, bool> sparse_;  // layers with known weights
  std::set<int> seen_;                  // values, of this batch
  std::map<int, Watcher> watchers_;     // by value
};

}  // namespace

bool MaySkipInputZeros(const Network& network, const Layer& layer) {
  return layer.op == Op::kConv && IsSparse(network.weights[layer.weight].format()) &&
         HasValues(network.weights[layer.weight].format());
}

StatusOr<SeenValues> SeeValues(const Network& network, const std::filesystem::path& calibration, Backend& cpu,
                               int threads) {
  if (network.sequences) return Unimplemented("--calibration is for models of planes; this one is of tokens");
  SWIZZLE_ASSIGN_OR_RETURN(const CalibrationData data, CalibrationData::Read(calibration, network));
  const std::set<int> watched = WatchedValues(network);
  std::set<int> inputs;
  for (const NetworkPort& port : network.inputs) inputs.insert(port.value);
  std::vector<int> made;
  std::ranges::set_difference(watched, inputs, std::back_inserter(made));
  std::unique_ptr<PlanRunner> runner;
  if (!made.empty()) {
    SWIZZLE_ASSIGN_OR_RETURN(runner, NewWatchingRunner(network, made, cpu, threads));
  }
  std::map<int, Watcher> watchers;
  for (const int value : watched) watchers.try_emplace(value, network.values[value]);
  for (size_t batch = 0; batch < data.batches() && !watched.empty(); ++batch) {
    const std::vector<TensorView> own = data.Batch(batch);
    for (size_t i = 0; i < own.size(); ++i) {
      const auto watcher = watchers.find(network.inputs[i].value);
      if (watcher != watchers.end()) watcher->second.Add(FloatsOf(own[i]));
    }
    if (runner == nullptr) continue;
    SWIZZLE_ASSIGN_OR_RETURN(const auto outputs, runner->RunViews(own));
    for (size_t i = 0; i < made.size(); ++i) watchers.at(made[i]).Add(FloatsOf(outputs[i]));
  }
  SeenValues seen;
  for (auto& [value, watcher] : watchers) seen[value] = std::move(watcher).Seen();
  return seen;
}

StatusOr<std::map<std::string, SeenValue>> SeeValues(const interpreter::Program& program,
                                                     const std::filesystem::path& calibration, Backend& cpu,
                                                     int threads) {
  SWIZZLE_ASSIGN_OR_RETURN(const NpyArrays arrays, ReadCalibration(calibration, program.inputs()));
  SWIZZLE_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, cpu.NewStream(threads));
  SWIZZLE_ASSIGN_OR_RETURN(const CalibrationRuns runs,
                           CalibrationRuns::Of(program, arrays, *stream, [](const std::string&) { return Status(); }));
  GraphWatch watch(program, runs);
  SWIZZLE_RETURN_IF_ERROR(runs.Run(
      "Zeros", [&] { watch.BeginBatch(); },
      [&](const Node& node, std::span<interpreter::Array> given) { watch.See(node, given); }));
  return std::move(watch).Seen();
}

SeenValues DrawSeenValues(const Network& network) {
  SeenValues seen;
  for (const int i : WatchedValues(network)) {
    const NetworkValue& value = network.values[i];
    if (!value.zeros) continue;
    const Extent extent = value.WithBatch(kKeptRows);
    SeenValue& drawn = seen[i];
    drawn = {*value.zeros, std::vector<float>(static_cast<size_t>(kKeptRows * value.elements()))};
    DrawZeros(*value.zeros, extent, [&](const DrawnRun& run) {
      float* const to = drawn.rows.data() + (run.row * extent.channels + run.channel) * extent.plane() + run.position;
      for (int k = 0; k < run.count; ++k) to[k] = static_cast<float>(run.held >> k & 1);
    });
  }
  return seen;
}

void KeepZeros(const SeenValues& seen, Network& network) {
  for (const auto& [value, of] : seen) network.values[value].zeros = of.zeros;
}

}  // namespace swizzle::pack
