#include "model_loader/plan/choose/layer_rows.h"

#include <algorithm>
#include <span>

#include "kernels/backend/select.h"
#include "kernels/whole_numbers/position_weight.h"
#include "model_loader/plan/choose/estimate.h"
#include "model_loader/plan/choose/pooled_layers.h"
#include "model_loader/semantics/whole_numbers.h"

namespace swizzle {
namespace {

// What whole numbers may be stored in and renamed, all of it where channels stay.
std::span<const Layout> WholeLayouts(bool channels_stay) {
  static constexpr Layout kLayouts[] = {Layout::kNchw, Layout::kFullPanels, Layout::kRows, Layout::kNhwc};
  return std::span(kLayouts).first(channels_stay ? 4 : 1);
}

// Whether the layer holds its input to the range of whole numbers and does nothing else, and the input may be stored as
// these: then it is held already where it is.
bool OnlyQuantises(const Network& network, const Layer& layer) {
  const auto wholes = network.values[layer.output].AsWholeNumbers();
  if (layer.op != Op::kActivation || !wholes || wholes != network.values[layer.inputs[0]].AsWholeNumbers())
    return false;
  const RealRange range = RangeOf(*wholes);
  return layer.epilogue == Epilogue{.low = range.low, .high = range.high};
}

// How many operands a row, its weight included, has as the whole numbers that the problem has for them.
int WholeOperands(const Kernel& kernel, const Problem& problem) {
  if (kernel.key.output.pooled) return 0;  // it converts what it reads
  int wholes = 0;
  for (int i = 0; i < InputCount(problem); ++i) wholes += problem.inputs_as[i].dtype == kernel.key.input.dtype;
  const auto& output = problem.epilogue.requantise;
  return (problem.inputs_as[0].dtype == DType::kFloat32 ? 0 : wholes) + (kernel.key.weight_dtype == DType::kInt8) +
         (output && output->dtype == kernel.key.output.dtype);
}

// Whether the layer that makes the value multiplies whole numbers, its input's or each position's own.
bool IsProductOfWholeNumbers(const Network& network, int value) {
  const auto maker = std::ranges::find(network.layers, value, &Layer::output);
  if (maker == network.layers.end() || maker->op != Op::kConv) return false;
  const Weight& weight = network.weights[maker->weight];
  const Problem problem = LayerProblem(network, *maker, 1, 1);
  if (!IsSparse(weight.format())) return HoldsBytes(weight, problem) || HoldsPositionBytes(weight, problem);
  return HoldsWideBytes(weight, problem) || HoldsWidePositionBytes(weight, problem);
}

// Of numbers beyond signed bytes no dense row is one of bytes: those of real numbers stay in their place.
void MarkThoseThatRoundLess(const Problem& problem, const Weight* weight, std::vector<Candidate>& candidates) {
  int most = 0;
  for (const Candidate& candidate : candidates) most = std::max(most, WholeOperands(*candidate.kernel, problem));
  const bool keeps_dense = weight != nullptr && CountBeyondSignedBytes(*weight) > 0;
  for (Candidate& candidate : candidates) {
    candidate.rounds_less =
        WholeOperands(*candidate.kernel, problem) < most && !(keeps_dense && !IsSparse(candidate.kernel->key.weights));
  }
}

// A reshape only renames: any layout where channels and plane stay, else the row-major one; in any type.
std::vector<Candidate> ReshapeCandidates(const Network& network, const Layer& layer, Precision precision) {
  const NetworkValue& from = network.values[layer.inputs[0]];
  const NetworkValue& to = network.values[layer.output];
  std::vector<Layout> layouts = {Layout::kNchw};
  if (from.channels == to.channels) {
    layouts = {Layout::kNchw, Layout::kPanels, Layout::kBlocked16, Layout::kRows, Layout::kNhwc};
  }
  std::vector<Candidate> candidates;
  if (const auto wholes = from.AsWholeNumbers(); wholes && wholes == to.AsWholeNumbers()) {
    for (const Layout layout : WholeLayouts(from.channels == to.channels)) {
      const Storage storage = {layout, wholes->dtype};
      candidates.push_back({.input = storage, .output = storage});
    }
  }
  for (const Layout layout : layouts) {
    const Storage single = {layout, DType::kFloat32}, own = StorageIn(layout, TypeOf(precision));
    if (MayStore(precision, single)) candidates.push_back({.input = single, .output = single});
    if (own != single) candidates.push_back({.input = own, .output = own});
  }
  return candidates;
}

}  // namespace

bool ReadsWholeNumbers(const Network& network, const Layer& layer) {
  return std::ranges::all_of(layer.inputs, [&](int value) {
    return network.values[value].AsWholeNumbers().has_value() || IsProductOfWholeNumbers(network, value);
  });
}

const Weight* WeightOf(const Network& network, const Layer& layer) {
  return layer.weight < 0 ? nullptr : &network.weights[layer.weight];
}

StatusOr<std::vector<Candidate>> LayerRows(const Backend& backend, const Network& network, const Layer& layer,
                                           RunSettings settings, bool dense_only) {
  if (layer.op == Op::kReshape) return ReshapeCandidates(network, layer, settings.precision);
  std::vector<Candidate> candidates;
  const Problem problem = LayerProblem(network, layer, 1, settings.threads);
  for (const Kernel* kernel : WidestCandidates(backend, problem, WeightOf(network, layer), settings.precision)) {
    if (dense_only && IsSparse(kernel->key.weights)) continue;
    if (!Allows(settings.precision, kernel->numerics)) continue;
    if (kernel->numerics == Numerics::kBfloat16Factors && !ReadsWholeNumbers(network, layer)) continue;
    if (kernel->key.output.pooled && !FeedsPooling(network, layer)) continue;
    candidates.push_back({.kernel = kernel, .input = kernel->key.input, .output = kernel->key.output});
  }
  if (candidates.empty()) {
    return Unimplemented("layer '", layer.name, "' (", OpName(layer.op), "): no kernel of the ", backend.name(),
                         " backend accepts it in ", PrecisionName(settings.precision));
  }
  MarkThoseThatRoundLess(problem, WeightOf(network, layer), candidates);
  return candidates;
}

void SettleForDevice(Precision precision, const Problem& problem, std::vector<Candidate>& candidates) {
  if (problem.inputs_as[0].dtype == DType::kFloat32 && precision != Precision::kInt8) {
    for (Candidate& candidate : candidates) candidate.rounds_less = false;
  }
  const std::vector<Candidate> all = candidates;
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return candidate.rounds_less && std::ranges::any_of(all, [&](const Candidate& other) {
             return !other.rounds_less && other.input == candidate.input && other.output == candidate.output;
           });
  });
}

std::vector<Candidate>& KeepThoseOfAnyZeros(std::vector<Candidate>& candidates) {
  std::erase_if(candidates, [](const Candidate& candidate) { return candidate.kernel->skips_input_zeros; });
  return candidates;
}

std::vector<Candidate> LayerRenames(const Network& network, const Layer& layer) {
  std::vector<Candidate> renames;
  if (layer.op == Op::kTranspose && layer.epilogue == Epilogue{}) {
    // Channels for positions: what is row-major of the one has neighbouring channels of the other.
    const auto wholes = network.values[layer.output].AsWholeNumbers();
    const bool stays_whole = wholes && wholes == network.values[layer.inputs[0]].AsWholeNumbers();
    for (const DType dtype : {DType::kFloat32, DType::kUint8}) {
      if (dtype == DType::kUint8 && !stays_whole) continue;
      const Storage nchw = {Layout::kNchw, dtype}, nhwc = {Layout::kNhwc, dtype};
      renames.push_back({.input = nchw, .output = nhwc});
      renames.push_back({.input = nhwc, .output = nchw});
    }
    return renames;
  }
  if (!OnlyQuantises(network, layer)) return renames;
  for (const Layout layout : WholeLayouts(/*channels_stay=*/true)) {
    const Storage storage = {layout, network.values[layer.output].AsWholeNumbers()->dtype};
    renames.push_back({.input = storage, .output = storage});
  }
  return renames;
}

}  // namespace swizzle
