#include "model_loader/plan/fuse_layers.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "kernels/whole_numbers/byte_weight.h"
#include "model_loader/passes/lower.h"
#include "model_loader/semantics/whole_numbers.h"

namespace swizzle {
namespace {

constexpr int kNone = -1;

// Who makes and reads each value. Layers are taken out of it by marking them.
class Fuser {
 public:
  explicit Fuser(Network& network)
      : network_(network),
        maker_(network.values.size(), kNone),
        readers_(network.values.size()),
        weight_readers_(network.weights.size()),
        gone_(network.layers.size()) {
    for (size_t i = 0; i < network.layers.size(); ++i) {
      maker_[network.layers[i].output] = static_cast<int>(i);
      for (int value : network.layers[i].inputs) ++readers_[value];
      if (network.layers[i].weight >= 0) ++weight_readers_[network.layers[i].weight];
    }
    for (const NetworkPort& port : network.outputs) ++readers_[port.value];
  }

  void FuseFunctions() {
    for (size_t i = 0; i < network_.layers.size(); ++i) {
      const Layer& layer = network_.layers[i];
      if (layer.op != Op::kFunction || layer.epilogue != Epilogue{}) continue;
      Layer* const conv = OnlyReadLayer(layer.inputs[0], Op::kConv);
      if (conv != nullptr && !conv->epilogue.function) End(*conv, i);
    }
  }

  void FuseDepthwiseFunctions() {
    for (size_t i = 0; i < network_.layers.size(); ++i) {
      const Layer& layer = network_.layers[i];
      if (layer.op != Op::kFunction || layer.epilogue != Epilogue{} || !layer.function().KeepsZero()) continue;
      Layer* const depthwise = OnlyReadLayer(layer.inputs[0], Op::kDepthwiseConv);
      if (depthwise == nullptr || depthwise->epilogue != Epilogue{}) continue;
      if (!network_.values[depthwise->inputs[0]].quantisation) End(*depthwise, i);
    }
  }

  // Those whose bytes are read, perhaps behind what moves them.
  void FuseRoundedDepthwiseFunctions() {
    for (Layer& layer : network_.layers) {
      if (layer.op != Op::kFunction || !layer.function().KeepsZero() || !OnlyHoldsToItsRange(layer)) continue;
      std::vector<int> values = {layer.inputs[0]};
      while (const Layer* const move = OnlyReadMove(values.back())) values.push_back(move->inputs[0]);
      Layer* const depthwise = OnlyReadLayer(values.back(), Op::kDepthwiseConv);
      if (depthwise == nullptr || depthwise->epilogue != Epilogue{} || !LeavesAsBytes(layer.output)) continue;
      if (!network_.values[depthwise->inputs[0]].AsWholeNumbers() || !IsReal(values)) continue;
      depthwise->epilogue.function = layer.function();
      for (const int value : values) network_.values[value].quantisation = network_.values[layer.output].quantisation;
      layer.SetOp(Op::kActivation);
    }
  }

  void FuseRoundedFunctions() {
    for (Layer& layer : network_.layers) {
      if (layer.op != Op::kFunction || !OnlyHoldsToItsRange(layer)) continue;
      Layer* const conv = OnlyReadLayer(layer.inputs[0], Op::kConv);
      if (conv == nullptr || conv->epilogue.function || conv->epilogue.residual) continue;
      if (!network_.values[conv->inputs[0]].AsWholeNumbers() || network_.values[conv->output].quantisation) continue;
      if (!IsOfFewBytes(*conv) || !IsReadAsBytes(layer.output)) continue;
      conv->epilogue.function = layer.function();
      network_.values[conv->output].quantisation = network_.values[layer.output].quantisation;
      layer.SetOp(Op::kActivation);
    }
  }

  void FuseAttentionInputs() {
    for (Layer& layer : network_.layers) {
      if (IsAttention(layer.op) && layer.op != Op::kSparseAttention && !layer.attention().packed) PackAttention(layer);
    }
  }

  void QuantiseInputs() {
    for (const Layer& layer : network_.layers) {
      if (layer.op != Op::kActivation || readers_[layer.inputs[0]] != 1) continue;
      const int maker = maker_[layer.inputs[0]];
      if (network_.values[layer.inputs[0]].quantisation) continue;
      if (maker != kNone && TraitsOf(network_.layers[maker].op).Has(OpTraits::kClamps)) continue;
      if (OnlyHoldsToItsRange(layer)) {
        network_.values[layer.inputs[0]].quantisation = network_.values[layer.output].quantisation;
      }
    }
  }

  void JoinSlices() {
    for (Layer& layer : network_.layers) {
      if (layer.op != Op::kConcat || layer.parts().of_planes) continue;
      for (size_t i = 0; i < layer.inputs.size(); ++i) JoinSlicesFrom(layer, i);
    }
  }

  void RemoveGone() {
    std::vector<Layer> kept;
    for (size_t i = 0; i < network_.layers.size(); ++i) {
      if (!gone_[i]) kept.push_back(std::move(network_.layers[i]));
    }
    network_.layers = std::move(kept);
  }

 private:
  // Whether sparse rows of bytes hold the weight, and the library's dense ones, which end in no function, don't.
  bool IsOfFewBytes(const Layer& layer) const {
    const Weight& weight = network_.weights[layer.weight];
    constexpr int64_t kColumnsPerNonzero = 4;  // as kernels/cpu/int8/onednn_bytes.cc has it
    return IsSparse(weight.format()) && weight.nonzeros() * kColumnsPerNonzero < weight.rows() * weight.cols() &&
           HoldsWideBytes(weight, LayerProblem(network_, layer, 1, 1));
  }

  // Whether only products of bytes read a value, so that real numbers of it are of no use.
  bool IsReadAsBytes(int value) const {
    int products = 0;
    for (const Layer& layer : network_.layers) {
      if (std::ranges::find(layer.inputs, value) == layer.inputs.end()) continue;
      if (layer.op != Op::kConv || layer.inputs[0] != value) return false;
      if (!HoldsWideBytes(network_.weights[layer.weight], LayerProblem(network_, layer, 1, 1))) return false;
      ++products;
    }
    return products > 0 && products == readers_[value];
  }

  const Layer* OnlyReadMove(int value) {
    const Layer* const move = OnlyReadLayer(value, Op::kReshape);
    return move != nullptr ? move : OnlyReadLayer(value, Op::kTranspose);
  }

  bool IsReal(const std::vector<int>& values) const {
    return std::ranges::none_of(values, [&](int value) { return network_.values[value].quantisation.has_value(); });
  }

  bool LeavesAsBytes(int value) const {
    return readers_[value] == 1 && std::ranges::any_of(network_.outputs, [&](const NetworkPort& port) {
             return port.value == value && port.dtype == DType::kUint8;
           });
  }

  // Whether all that its epilogue does is to hold its output to what the output's whole numbers reach.
  bool OnlyHoldsToItsRange(const Layer& layer) const {
    const auto& quantisation = network_.values[layer.output].quantisation;
    if (!quantisation || !quantisation->per_tensor()) return false;
    const RealRange range = RangeOf(quantisation->Of(0));
    return layer.epilogue == Epilogue{.low = range.low, .high = range.high};
  }

  // The layer of this operator that makes a value which has one reader; null if there is none.
  Layer* OnlyReadLayer(int value, Op op) {
    if (maker_[value] == kNone || readers_[value] != 1) return nullptr;
    Layer& layer = network_.layers[maker_[value]];
    return layer.op == op ? &layer : nullptr;
  }

  // Makes a function the end of the layer before, unless what is between is quantised.
  void End(Layer& layer, size_t function) {
    if (network_.values[layer.output].quantisation) return;
    const Layer& ending = network_.layers[function];
    layer.epilogue.function = ending.function();
    maker_[ending.output] = maker_[layer.output];
    layer.output = ending.output;
    gone_[function] = true;
  }

  // The Slice that makes a value; null if none does.
  const Layer* SliceOf(int value) const {
    const Layer* const layer = maker_[value] == kNone ? nullptr : &network_.layers[maker_[value]];
    return layer != nullptr && layer->op == Op::kSlice && layer->epilogue == Epilogue{} ? layer : nullptr;
  }

  // Operands `first` and behind it become one, where they are the channels of one value in their order. Slices that
  // nothing else reads are gone.
  void JoinSlicesFrom(Layer& concat, size_t first) {
    const Layer* const slice = SliceOf(concat.inputs[first]);
    if (slice == nullptr) return;
    const int whole = slice->inputs[0];
    const NetworkValue& value = network_.values[whole];
    size_t end = first;
    int64_t channels = 0;
    for (; end < concat.inputs.size() && channels < value.channels; ++end) {
      const Layer* const next = SliceOf(concat.inputs[end]);
      if (next == nullptr || next->inputs[0] != whole || next->channel_range().first != channels) return;
      if (network_.values[next->output].quantisation != value.quantisation) return;
      channels += network_.values[next->output].channels;
    }
    if (channels != value.channels) return;
    ConcatParts& parts = concat.parts();
    for (size_t i = first; i < end; ++i) {
      const int operand = concat.inputs[i];
      if (--readers_[operand] > 0) continue;
      gone_[maker_[operand]] = true;
      --readers_[whole];
    }
    ++readers_[whole];
    concat.inputs.erase(concat.inputs.begin() + first + 1, concat.inputs.begin() + end);
    concat.inputs[first] = whole;
    std::copy(parts.sizes.begin() + end, parts.sizes.begin() + parts.count, parts.sizes.begin() + first + 1);
    parts.sizes[first] = static_cast<int32_t>(channels);
    parts.count = static_cast<int32_t>(concat.inputs.size());
    std::fill(parts.sizes.begin() + parts.count, parts.sizes.end(), 0);
  }

  static bool CanJoin(const Layer& a, const Layer& b) {
    return a.inputs == b.inputs && a.window() == b.window() && a.epilogue == b.epilogue && !a.epilogue.residual;
  }

  // The layers that turn queries and keys alike; nulls where there are none such.
  std::array<Layer*, 2> TurnsOf(const Layer& attention) {
    std::array<Layer*, 2> turns;
    for (size_t i = 0; i < turns.size(); ++i) {
      turns[i] = OnlyReadLayer(attention.inputs[i], Op::kRotary);
      if (turns[i] == nullptr) return {};
      const auto& [heads, size, pairs] = turns[i]->rotation();
      const bool turns_all = int64_t{heads} * size == network_.values[turns[i]->output].channels;
      if (!turns_all || network_.values[turns[i]->output].quantisation) return {};
    }
    const Rotation &a = turns[0]->rotation(), &b = turns[1]->rotation();
    const bool alike = turns[0]->weight == turns[1]->weight && a.size == b.size && a.pairs == b.pairs;
    return alike ? turns : std::array<Layer*, 2>();
  }

  // Both turn the heads of one value, in which keys stand behind queries, and others behind both.
  int TurnTogether(const std::array<Layer*, 2>& turns, int value) {
    Layer &first = *std::min(turns[0], turns[1]), &second = *std::max(turns[0], turns[1]);
    first.inputs = {value};
    first.rotation().heads += second.rotation().heads;
    network_.values[first.output].channels = network_.values[value].channels;
    gone_[static_cast<size_t>(&second - network_.layers.data())] = true;
    if (--weight_readers_[second.weight] == 0) network_.weights[second.weight] = Weight{};
    return first.output;
  }

  void PackAttention(Layer& attention) {
    const std::array<Layer*, 2> turns = TurnsOf(attention);
    std::array<Layer*, 3> parts;
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool is_turned = i < turns.size() && turns[i] != nullptr;
      parts[i] = OnlyReadLayer(is_turned ? turns[i]->inputs[0] : attention.inputs[i], Op::kConv);
      if (parts[i] == nullptr || !CanJoin(*parts[0], *parts[i])) return;
    }
    Layer& first = **std::ranges::min_element(parts);  // in the order of execution
    const int weight = StackedWeight({parts[0]->weight, parts[1]->weight, parts[2]->weight});
    if (weight == kNone) return;
    NetworkValue value = network_.values[first.output];
    value.channels = network_.weights[weight].rows();
    for (const Layer* part : parts) {
      if (--weight_readers_[part->weight] == 0) network_.weights[part->weight] = Weight{};
      if (part != &first) gone_[part - network_.layers.data()] = true;
    }
    first.weight = weight;
    first.output = static_cast<int>(network_.values.size());
    network_.values.push_back(std::move(value));
    attention.inputs = {turns[0] == nullptr ? first.output : TurnTogether(turns, first.output)};
    attention.attention().packed = true;
  }

  // The rows of these weights, one after another, as a weight of their own; kNone where they cannot be stacked.
  int StackedWeight(const std::array<int, 3>& weights) {
    if (const auto known = stacked_.find(weights); known != stacked_.end()) return known->second;
    std::optional<Weight> stacked =
        Stack({&network_.weights[weights[0]], &network_.weights[weights[1]], &network_.weights[weights[2]]});
    if (!stacked) return kNone;
    network_.weights.push_back(*std::move(stacked));
    weight_readers_.push_back(1);
    return stacked_[weights] = static_cast<int>(network_.weights.size()) - 1;
  }

  // Near half of zeros some of the matrices are kept sparse and some are not: all together are by their own share. None
  // where shares differ more, for a dense matrix gains nothing from others' zeros, where one is in another format, or
  // has other columns.
  static std::optional<WeightMatrix> StackPlain(const std::array<const WeightMatrix*, 3>& matrices) {
    constexpr double kNear = 0.1;
    const int64_t cols = matrices[0]->size().cols;
    int64_t rows = 0;
    double least = 1.0, most = 0.0;
    for (const WeightMatrix* matrix : matrices) {
      if (!IsChosen(matrix->format()) || matrix->size().cols != cols) return std::nullopt;
      rows += matrix->size().rows;
      const double share = static_cast<double>(matrix->nnz()) / static_cast<double>(matrix->size().rows * cols);
      least = std::min(least, share);
      most = std::max(most, share);
    }
    if (most - least > kNear) return std::nullopt;
    DenseMatrix all{.rows = rows, .cols = cols, .values = {}};
    all.values.reserve(static_cast<size_t>(rows * cols));
    for (const WeightMatrix* matrix : matrices) {
      const DenseMatrix dense = matrix->ToDense();
      all.values.insert(all.values.end(), dense.values.begin(), dense.values.end());
    }
    return ChooseFormat(std::move(all));
  }

  // The rows of all, one after another; none where the formats cannot be stacked.
  static std::optional<Weight> Stack(const std::array<const Weight*, 3>& parts) {
    std::array<const WeightMatrix*, 3> matrices;
    std::ranges::transform(parts, matrices.begin(), [](const Weight* part) { return &part->matrix; });
    std::optional<Quantisation> quantisation = StackQuantisations(parts);
    std::optional<WeightMatrix> matrix = WeightMatrix::StackRows(matrices);
    const bool loses_wholes =
        !quantisation && std::ranges::any_of(parts, [](const Weight* part) { return part->quantisation.has_value(); });
    if (!matrix && !loses_wholes) matrix = StackPlain(matrices);
    if (!matrix) return std::nullopt;
    Weight stacked{.matrix = *std::move(matrix), .bias = {}, .quantisation = std::move(quantisation)};
    if (std::ranges::all_of(parts, [](const Weight* part) { return part->bias.empty(); })) return stacked;
    for (const Weight* part : parts) {
      stacked.bias.insert(stacked.bias.end(), part->bias.begin(), part->bias.end());
      if (part->bias.empty()) stacked.bias.resize(stacked.bias.size() + part->rows());
    }
    return stacked;
  }

  // By rows; none where a part has none, or of another type.
  static std::optional<Quantisation> StackQuantisations(const std::array<const Weight*, 3>& parts) {
    const std::optional<Quantisation>& first = parts[0]->quantisation;
    if (!first) return std::nullopt;
    Quantisation stacked{first->dtype, {}, {}};
    for (const Weight* part : parts) {
      if (!part->quantisation || part->quantisation->dtype != first->dtype) return std::nullopt;
      for (int64_t row = 0; row < part->rows(); ++row) {
        const Quantised of_row = part->quantisation->Of(row);
        stacked.scales.push_back(of_row.scale);
        stacked.zero_points.push_back(of_row.zero_point);
      }
    }
    return stacked;
  }

  Network& network_;
  std::vector<int> maker_;                     // layer by value; kNone: an input
  std::vector<int> readers_;                   // of each value, ports among them
  std::vector<int> weight_readers_;            // of each weight
  std::vector<bool> gone_;                     // layers
  std::map<std::array<int, 3>, int> stacked_;  // StackedWeight, by what it is of
};

}  // namespace

void FuseLayers(Network& network) {
  Fuser fuser(network);
  fuser.FuseFunctions();
  fuser.FuseAttentionInputs();
  fuser.QuantiseInputs();
  fuser.JoinSlices();
  fuser.RemoveGone();
}

void FuseHostFunctions(Network& network) {
  Fuser fuser(network);
  fuser.FuseDepthwiseFunctions();
  fuser.FuseRoundedDepthwiseFunctions();
  fuser.FuseRoundedFunctions();
  fuser.RemoveGone();
}

void FuseFor(Backend& backend, Network& network) {
  FuseLayers(network);
  if (HasHostMemory(backend)) FuseHostFunctions(network);
}

}  // namespace swizzle
