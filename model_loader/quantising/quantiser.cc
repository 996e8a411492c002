#include "model_loader/quantising/quantiser.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "model_loader/network/shared_weights.h"
#include "model_loader/semantics/whole_numbers.h"

namespace swizzle {
namespace {

constexpr float kMostWhole = 127.0f;  // of a weight: as far from 0 below as above

bool IsConvolution(const Layer& layer) { return layer.op == Op::kConv || layer.op == Op::kDepthwiseConv; }
// Whether its output has nothing but numbers of its inputs: then all are the same whole numbers.
bool KeepsNumbers(const Layer& layer) {
  switch (layer.op) {
    case Op::kMaxPool:
    case Op::kReshape:
    case Op::kConcat:
    case Op::kSlice:
    case Op::kDepthToSpace:
      return true;
    case Op::kResize:
      return !layer.resampling().linear;
    case Op::kConv:
    case Op::kDepthwiseConv:
    case Op::kAdd:
    case Op::kActivation:
    case Op::kAveragePool:
    case Op::kSoftmax:
    case Op::kMultiply:
    case Op::kScale:
    case Op::kFunction:
    case Op::kTranspose:
    case Op::kEmbedding:
    case Op::kLayerNorm:
    case Op::kAttention:
    case Op::kSelectToken:
    case Op::kMeanTokens:
    case Op::kSparseAttention:
    case Op::kBiasedAttention:
    case Op::kDisentangledAttention:
    case Op::kRotary:
    case Op::kPermuteTokens:
    case Op::kPlaneTokens:
    case Op::kConvertLayout:
      return false;
  }
  return false;
}
// Layers that read whole numbers, and those that do where their output is of such.
bool CountsInWholes(const Layer& layer) {
  return IsConvolution(layer) || layer.op == Op::kAdd || layer.op == Op::kAveragePool;
}
bool MayCountInWholes(const Layer& layer) {
  return layer.op == Op::kFunction || layer.op == Op::kMultiply || layer.op == Op::kScale;
}

double Decibels(double signal, double noise) {
  if (signal == 0.0 || noise == 0.0) return std::numeric_limits<double>::infinity();
  return 10.0 * std::log10(signal / noise);
}

class Quantiser {
 public:
  Quantiser(Network& network, std::span<const Observer> observers, const QuantiseOptions& options)
      : network_(network),
        observers_(observers),
        options_(options),
        wanted_(network.values.size()),
        holdable_(network.values.size()),
        reads_(network.layers.size()),
        alike_(network.values.size()) {
    UnshareWeights(network);  // what layers read says how their weights are rounded
  }

  StatusOr<std::vector<QuantisedLayer>> Run() {
    SWIZZLE_RETURN_IF_ERROR(FindSkipped());
    FindHoldable();
    FindWanted();
    FindAlike();
    for (const NetworkPort& port : network_.inputs) QuantiseBehind(port.value, 0);
    for (size_t i = 0; i < network_.layers.size(); ++i) QuantiseOutput(i);
    std::vector<QuantisedLayer> results;
    for (size_t i = 0; i < network_.layers.size(); ++i) {
      if (IsConvolution(network_.layers[i])) results.push_back(QuantiseWeight(static_cast<int>(i)));
    }
    PutInserted();
    ShareWeights(network_);
    SWIZZLE_RETURN_IF_ERROR(network_.Validate());
    return results;
  }

  StatusOr<std::vector<QuantisedLayer>> RunOnSequences() {
    SWIZZLE_RETURN_IF_ERROR(FindSkipped());
    std::vector<QuantisedLayer> results;
    for (size_t i = 0; i < network_.layers.size(); ++i) {
      const Layer& layer = network_.layers[i];
      if (layer.op != Op::kConv) continue;
      results.push_back({layer.name, static_cast<int>(i), skipped_[i]});
      if (skipped_[i]) continue;
      Weight& weight = network_.weights[layer.weight];
      const DenseMatrix real = weight.ToDense();
      DenseMatrix rounded = real;
      results.back().weight_decibels = RoundWeight(weight, real, rounded);
    }
    ShareWeights(network_);
    SWIZZLE_RETURN_IF_ERROR(network_.Validate());
    return results;
  }

 private:
  Status FindSkipped() {
    skipped_.resize(network_.layers.size());
    for (const std::string& pattern : options_.skip) {
      bool any = false;
      for (size_t i = 0; i < network_.layers.size(); ++i) {
        if (fnmatch(pattern.c_str(), network_.layers[i].name.c_str(), 0) == 0) any = skipped_[i] = true;
      }
      if (!any) return InvalidArgument("the pattern to skip '", pattern, "' matches no layer");
    }
    return {};
  }

  // Values that what makes them could make as whole numbers. Inputs that arrive as such have a scale that nothing else
  // is joined to.
  void FindHoldable() {
    std::vector<bool> given(network_.values.size());
    for (const NetworkPort& port : network_.inputs) {
      given[port.value] = holdable_[port.value] = network_.values[port.value].quantisation.has_value();
    }
    for (const Layer& layer : network_.layers) {
      if (!KeepsNumbers(layer)) {
        holdable_[layer.output] = TraitsOf(layer.op).Has(OpTraits::kClamps);
        continue;
      }
      given[layer.output] = std::ranges::any_of(layer.inputs, [&](int value) { return given[value]; });
      const bool any = std::ranges::any_of(layer.inputs, [&](int value) { return holdable_[value]; });
      holdable_[layer.output] = any && (layer.inputs.size() == 1 || !given[layer.output]);
    }
  }

  // Values that a layer would read as whole numbers, from the last layer to the first.
  void FindWanted() {
    for (size_t i = network_.layers.size(); i-- > 0;) {
      const Layer& layer = network_.layers[i];
      const bool makes = wanted_[layer.output] && holdable_[layer.output];
      reads_[i] = KeepsNumbers(layer)       ? makes
                  : MayCountInWholes(layer) ? makes && !skipped_[i]
                                            : CountsInWholes(layer) && !skipped_[i];
      for (const int value : layer.inputs) wanted_[value] = wanted_[value] || reads_[i];
    }
  }

  // Joins values of which one has numbers of the other.
  void FindAlike() {
    std::iota(alike_.begin(), alike_.end(), 0);
    for (size_t i = 0; i < network_.layers.size(); ++i) {
      const Layer& layer = network_.layers[i];
      if (!KeepsNumbers(layer) || !reads_[i]) continue;
      for (const int value : layer.inputs) alike_[OneOf(value)] = OneOf(layer.output);
    }
    for (int value = 0; value < std::ssize(alike_); ++value) members_[OneOf(value)].push_back(value);
  }

  // The one that stands for all that are joined with the value.
  int OneOf(int value) {
    while (alike_[value] != value) value = alike_[value] = alike_[alike_[value]];
    return value;
  }

  // For all that was seen of those that are joined.
  Quantised ChosenFor(int value) {
    std::optional<Quantised> all;
    for (const int member : members_[OneOf(value)]) {
      const Quantised its = observers_[static_cast<size_t>(member)].Choose(options_.observer);
      all = all ? Observer::Spanning(*all, its) : its;
    }
    return *all;
  }

  // What is wanted, and not made as whole numbers, is quantised by a layer of its own, before layer `place`.
  void QuantiseBehind(int value, size_t place) {
    if (!wanted_[value] || holdable_[value]) return;
    const int quantised = static_cast<int>(network_.values.size());
    network_.values.push_back(network_.values[value]);
    network_.values.back().name += ".quantised";
    Layer layer;
    layer.SetOp(Op::kActivation);
    layer.name = network_.values.back().name;
    layer.inputs = {value};
    layer.output = quantised;
    Hold(layer, ChosenFor(value));
    for (size_t i = 0; i < network_.layers.size(); ++i) {
      if (reads_[i]) std::ranges::replace(network_.layers[i].inputs, value, quantised);
    }
    originals_[quantised] = value;
    inserted_[place].push_back(std::move(layer));
  }

  // The layer's output is of these whole numbers, and within their range.
  void Hold(Layer& layer, const Quantised& as) {
    const RealRange range = RangeOf(as);
    layer.epilogue.low = std::clamp(layer.epilogue.low, range.low, range.high);
    layer.epilogue.high = std::clamp(layer.epilogue.high, range.low, range.high);
    std::vector<int32_t> zero_points;
    if (as.zero_point != 0) zero_points.push_back(as.zero_point);
    network_.values[layer.output].quantisation = Quantisation{as.dtype, {as.scale}, std::move(zero_points)};
  }

  void QuantiseOutput(size_t index) {
    Layer& layer = network_.layers[index];
    if (!wanted_[layer.output]) return;
    if (!holdable_[layer.output]) return QuantiseBehind(layer.output, index + 1);
    if (KeepsNumbers(layer)) {
      network_.values[layer.output].quantisation = network_.values[layer.inputs[0]].quantisation;
    } else {
      Hold(layer, ChosenFor(layer.output));
    }
  }

  const Observer& ObserverOf(int value) const {
    const auto original = originals_.find(value);
    return observers_[static_cast<size_t>(original == originals_.end() ? value : original->second)];
  }

  // Rounds the weight, whose signal to noise it returns, and `rounded`, which is the same matrix.
  static double RoundWeight(Weight& weight, const DenseMatrix& real, DenseMatrix& rounded) {
    weight.quantisation = Quantisation{DType::kInt8, {}, {}};
    double signal = 0.0, noise = 0.0;
    const auto cols = static_cast<size_t>(real.cols);
    for (size_t row = 0; row < static_cast<size_t>(real.rows); ++row) {
      const std::span<float> values = std::span(rounded.values).subspan(row * cols, cols);
      weight.quantisation->scales.push_back(RoundToSteps(values));
      for (size_t k = 0; k < cols; ++k) {
        const double value = real.values[row * cols + k], error = values[k] - value;
        signal += value * value;
        noise += error * error;
      }
    }
    // A matrix of the same zeros, and perhaps more, goes into the same format.
    weight.matrix = *WeightMatrix::FromDense(weight.format(), rounded);
    return Decibels(signal, noise);
  }

  QuantisedLayer QuantiseWeight(int index) {
    Layer& layer = network_.layers[static_cast<size_t>(index)];
    const auto& input = network_.values[layer.inputs[0]].quantisation;
    QuantisedLayer result{layer.name, index, skipped_[static_cast<size_t>(index)] || !input};
    if (result.skipped) return result;
    Weight& weight = network_.weights[layer.weight];
    const DenseMatrix real = weight.ToDense();
    DenseMatrix rounded = real;
    result.weight_decibels = RoundWeight(weight, real, rounded);
    CorrectBias(layer, real, rounded, weight);
    result.input_decibels = ObserverOf(layer.inputs[0]).SignalToNoise(input->Of(0));
    return result;
  }

  // Whether windows read so much beside the plane, where everything is zero, that its means say little of what they
  // read.
  bool PadsMuch(const Layer& layer) const {
    constexpr int64_t kFewest = 4;  // elements of a dimension for each that pads it
    const Window& window = layer.window();
    const NetworkValue& input = network_.values[layer.inputs[0]];
    return std::max(window.pad_top, window.pad_bottom) * kFewest > input.height ||
           std::max(window.pad_left, window.pad_right) * kFewest > input.width;
  }

  // Takes off the bias what the rounding of weights adds to sums on average.
  void CorrectBias(const Layer& layer, const DenseMatrix& real, const DenseMatrix& rounded, Weight& weight) const {
    if (PadsMuch(layer)) return;
    const std::vector<double> means = ObserverOf(layer.inputs[0]).Means();
    const auto cols = static_cast<size_t>(real.cols), taps = static_cast<size_t>(layer.window().taps());
    weight.bias.resize(static_cast<size_t>(real.rows));
    for (size_t row = 0; row < weight.bias.size(); ++row) {
      double added = 0.0;
      for (size_t k = 0; k < cols; ++k) {
        const size_t channel = layer.op == Op::kDepthwiseConv ? row : k / taps;
        added += (double{rounded.values[row * cols + k]} - real.values[row * cols + k]) * means[channel];
      }
      weight.bias[row] -= static_cast<float>(added);
    }
  }

  void PutInserted() {
    std::vector<Layer> layers;
    for (size_t i = 0; i <= network_.layers.size(); ++i) {
      if (const auto before = inserted_.find(i); before != inserted_.end()) {
        std::ranges::move(before->second, std::back_inserter(layers));
      }
      if (i < network_.layers.size()) layers.push_back(std::move(network_.layers[i]));
    }
    network_.layers = std::move(layers);
  }

  Network& network_;
  const std::span<const Observer> observers_;
  const QuantiseOptions& options_;
  // Of the network as given, by value and by layer.
  std::vector<bool> wanted_;                       // values, as whole numbers
  std::vector<bool> holdable_;                     // values that what makes them could make so
  std::vector<bool> reads_;                        // layers that read whole numbers
  std::vector<bool> skipped_;                      // layers
  std::vector<int> alike_;                         // another value of the same whole numbers, or itself
  std::map<int, std::vector<int>> members_;        // values, by OneOf
  std::map<int, int> originals_;                   // the value that a new one is
  std::map<size_t, std::vector<Layer>> inserted_;  // before a layer, new ones
};

}  // namespace

float RoundToSteps(std::span<float> values) {
  float most = 0.0f;
  for (const float value : values) most = std::max(most, std::abs(value));
  const float scale = most / kMostWhole;
  if (!(scale >= std::numeric_limits<float>::min())) {
    std::ranges::fill(values, 0.0f);
    return 1.0f;
  }
  for (float& value : values) value = scale * std::clamp(std::nearbyint(value / scale), -kMostWhole, kMostWhole);
  return scale;
}

StatusOr<std::vector<QuantisedLayer>> QuantiseSequenceNetwork(Network& network, const QuantiseOptions& options) {
  return Quantiser(network, {}, options).RunOnSequences();
}

StatusOr<std::vector<QuantisedLayer>> QuantiseNetwork(Network& network, std::span<const Observer> observers,
                                                      const QuantiseOptions& options) {
  return Quantiser(network, observers, options).Run();
}

}  // namespace swizzle
