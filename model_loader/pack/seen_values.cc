#include "model_loader/pack/seen_values.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "kernels/operator/count_zeros.h"
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
  explicit Watcher(const NetworkValue& value)
      : row_elements_(static_cast<size_t>(value.elements())), count_(value.WithBatch(1)) {}

  void Add(std::span<const float> batch) {
    for (size_t at = 0; at < batch.size(); at += row_elements_) count_.Add(batch.subspan(at, row_elements_));
    const size_t left = row_elements_ * kKeptRows - std::min(rows_.size(), row_elements_ * kKeptRows);
    const std::span<const float> kept = batch.first(std::min(left, batch.size()));
    rows_.insert(rows_.end(), kept.begin(), kept.end());
  }
  SeenValue Seen() && { return {count_.Shares(), std::move(rows_)}; }

 private:
  const size_t row_elements_;
  ZerosCount count_;
  std::vector<float> rows_;
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
