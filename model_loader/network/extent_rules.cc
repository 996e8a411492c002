#include "model_loader/network/extent_rules.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "kernels/operator/resampling.h"
#include "model_loader/network/validate_layer.h"

namespace swizzle {
namespace {

int64_t ProductOf(std::span<const int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

// As lowering has it of a row's dimensions.
void SetRow(const Shape& dims, NetworkValue& value) {
  const std::span<const int64_t> all(dims);
  value.channels = all.empty() ? 1 : all[0];
  value.height = all.size() > 2 ? all[1] : 1;
  value.width = all.size() > 2 ? ProductOf(all.subspan(2)) : all.size() == 2 ? all[1] : 1;
}

bool SameButExtents(const Network& a, const Network& b) {
  const auto same_layers = [](const Layer& one, const Layer& other) {
    return one.op == other.op && one.epilogue == other.epilogue && one.inputs == other.inputs &&
           one.output == other.output && (one.weight < 0) == (other.weight < 0);
  };
  const auto same_values = [](const NetworkValue& one, const NetworkValue& other) {
    return one.quantisation == other.quantisation && one.per_token == other.per_token && one.ids == other.ids;
  };
  const auto same_ports = [](const NetworkPort& one, const NetworkPort& other) {
    return one.dtype == other.dtype && one.value == other.value && one.dims.size() == other.dims.size();
  };
  return a.batch_size == b.batch_size && !a.sequences && !b.sequences &&
         std::ranges::equal(a.layers, b.layers, same_layers) && std::ranges::equal(a.values, b.values, same_values) &&
         std::ranges::equal(a.inputs, b.inputs, same_ports) && std::ranges::equal(a.outputs, b.outputs, same_ports);
}

// Fused layers leave values that nothing makes any more.
bool SameExtents(const Network& a, const Network& b) {
  const auto same_output = [&](const Layer& layer) {
    return SameExtent(a.values[layer.output], b.values[layer.output]);
  };
  return std::ranges::all_of(a.layers, same_output) &&
         std::ranges::equal(a.layers, b.layers, {}, &Layer::attributes, &Layer::attributes) &&
         std::ranges::equal(a.inputs, b.inputs, {}, &NetworkPort::dims, &NetworkPort::dims) &&
         std::ranges::equal(a.outputs, b.outputs, {}, &NetworkPort::dims, &NetworkPort::dims);
}

// 0 where the model gave the size, which then stays as it was.
int64_t Resized(int64_t extent, float scale, int64_t before) {
  return scale == 0.0f ? before : static_cast<int64_t>(ScaledLength(extent, scale));
}

int64_t Plane(const NetworkValue& value) { return value.height * value.width; }

}  // namespace

// Where several dimensions vary, each is one of `from`'s extents, which no other is.
bool ExtentRules::LearnSources(std::span<const int64_t> first, std::span<const int64_t> second,
                               const Extents& first_from, const Extents& second_from, Sources& sources) {
  sources.assign(first.size(), kFixed);
  const auto varying = std::ranges::count_if(sources, [&](const int& source) {
    const auto d = static_cast<size_t>(&source - sources.data());
    return first[d] != second[d];
  });
  for (size_t d = 0; d < first.size(); ++d) {
    if (first[d] == second[d]) continue;
    sources[d] = kByCount;
    if (varying == 1) continue;
    int found = 0;
    for (int s = 0; s < 3; ++s) {
      if (first_from[s] != first[d] || second_from[s] != second[d]) continue;
      sources[d] = s;
      ++found;
    }
    if (found != 1) return false;
  }
  return true;
}

bool ExtentRules::Fill(const Sources& sources, const Extents& from, int64_t elements, std::span<int64_t> dims) {
  int64_t known = 1, *by_count = nullptr;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (sources[d] >= 0) dims[d] = from[static_cast<size_t>(sources[d])];
    if (sources[d] == kByCount) {
      by_count = &dims[d];
    } else {
      known *= dims[d];
    }
  }
  if (by_count == nullptr) return known == elements;
  *by_count = known > 0 ? elements / known : 0;
  return *by_count > 0 && *by_count * known == elements;
}

bool ExtentRules::LearnLayer(const Network& first, const Network& second, size_t index) {
  const Layer &a = first.layers[index], &b = second.layers[index];
  LayerRule& rule = layers_[index];
  if (a.inputs.empty()) return false;
  const NetworkValue &a_in = first.values[a.inputs[0]], &b_in = second.values[b.inputs[0]];
  if (IsWindowed(a.op)) {
    rule.whole_height = a.window().kernel_h != b.window().kernel_h;
    rule.whole_width = a.window().kernel_w != b.window().kernel_w;
  }
  const bool by_planes = a.op == Op::kConcat && a.parts().of_planes;
  if (a.op != Op::kReshape && a.op != Op::kTranspose && !by_planes) return true;
  const Extents a_out = Of(first.values[a.output]), b_out = Of(second.values[b.output]);
  return LearnSources(a_out, b_out, Of(a_in), Of(b_in), rule.output);
}

std::optional<ExtentRules> ExtentRules::Learn(const Network& first, const Network& second,
                                              const PaddingRules& paddings) {
  const auto is_read = [](const NetworkPort& port) { return port.value != -1; };
  if (!SameButExtents(first, second) || !std::ranges::all_of(first.inputs, is_read)) return std::nullopt;
  ExtentRules rules;
  rules.layers_.resize(first.layers.size());
  for (size_t i = 0; i < first.layers.size(); ++i) {
    if (!rules.LearnLayer(first, second, i)) return std::nullopt;
    const auto padding = paddings.find(first.layers[i].name);
    if (padding != paddings.end()) rules.layers_[i].padding = padding->second;
  }
  for (size_t i = 0; i < first.inputs.size(); ++i) {
    const Shape &a = first.inputs[i].dims, &b = second.inputs[i].dims;
    std::vector<bool>& varies = rules.varies_.emplace_back();
    for (size_t d = 0; d < a.size(); ++d) varies.push_back(a[d] != b[d]);
  }
  for (size_t i = 0; i < first.outputs.size(); ++i) {
    const NetworkPort &a = first.outputs[i], &b = second.outputs[i];
    const Extents a_from = Of(first.values[a.value]), b_from = Of(second.values[b.value]);
    if (!LearnSources(a.dims, b.dims, a_from, b_from, rules.outputs_.emplace_back())) return std::nullopt;
  }
  for (const Network* const made : {&first, &second}) {
    std::vector<Shape> rows;
    for (const NetworkPort& port : made->inputs) rows.push_back(port.dims);
    const std::optional<Network> again = rules.Apply(first, rows);
    if (!again || !SameExtents(*again, *made)) return std::nullopt;
  }
  return rules;
}

bool ExtentRules::SetWindow(const LayerRule& rule, const NetworkValue& in, Window& window) const {
  if ((rule.whole_height && in.height > kMaxWindowExtent) || (rule.whole_width && in.width > kMaxWindowExtent)) {
    return false;
  }
  if (rule.whole_height) window.kernel_h = static_cast<int32_t>(in.height);
  if (rule.whole_width) window.kernel_w = static_cast<int32_t>(in.width);
  const PaddingRule& padding = rule.padding;
  WindowAxis vertical = VerticalAxis(window, in.height), horizontal = HorizontalAxis(window, in.width);
  if (padding.same != AutoPad::kExplicit) {
    vertical.PadToSame(padding.same);
    horizontal.PadToSame(padding.same);
  }
  if (padding.cut) {
    if (padding.same == AutoPad::kExplicit) {
      vertical.after = padding.bottom;
      horizontal.after = padding.right;
    }
    vertical.PadForCutWindow();
    horizontal.PadForCutWindow();
  }
  window.pad_top = static_cast<int32_t>(vertical.before);
  window.pad_bottom = static_cast<int32_t>(vertical.after);
  window.pad_left = static_cast<int32_t>(horizontal.before);
  window.pad_right = static_cast<int32_t>(horizontal.after);
  return true;
}

// What is not told by the operator and its attributes.
bool ExtentRules::SetOutput(const Network& before, const LayerRule& rule, Layer& layer, Network& network) const {
  const NetworkValue& in = network.values[layer.inputs[0]];
  NetworkValue& out = network.values[layer.output];
  int64_t elements = in.elements();
  if (layer.op == Op::kConcat) {
    elements = 0;
    for (const int input : layer.inputs) elements += network.values[input].elements();
  }
  Extents extents = Of(before.values[layer.output]);
  if (!Fill(rule.output, Of(in), elements, extents)) return false;
  out.channels = extents[0];
  out.height = extents[1];
  out.width = extents[2];
  return true;
}

bool ExtentRules::ApplyLayer(const Network& before, size_t index, Network& network) const {
  Layer& layer = network.layers[index];
  const LayerRule& rule = layers_[index];
  const NetworkValue& in = network.values[layer.inputs[0]];
  NetworkValue& out = network.values[layer.output];
  if (IsWindowed(layer.op)) {
    if (!SetWindow(rule, in, layer.window())) return false;
    out.height = VerticalAxis(layer.window(), in.height).Output();
    out.width = HorizontalAxis(layer.window(), in.width).Output();
    if (layer.op != Op::kConv) out.channels = in.channels;
  } else if (!rule.output.empty()) {
    if (layer.op == Op::kConcat) {
      for (size_t i = 0; i < layer.inputs.size(); ++i) {
        layer.parts().sizes[i] = static_cast<int32_t>(Plane(network.values[layer.inputs[i]]));
      }
    }
    if (!SetOutput(before, rule, layer, network)) return false;
  } else if (layer.op == Op::kResize) {
    out.channels = in.channels;
    out.height = Resized(in.height, layer.resampling().scale_h, out.height);
    out.width = Resized(in.width, layer.resampling().scale_w, out.width);
  } else if (layer.op == Op::kDepthToSpace) {
    out.height = in.height * layer.space_block().block;
    out.width = in.width * layer.space_block().block;
  } else {
    out.height = in.height;
    out.width = in.width;
    if (layer.op != Op::kConcat && layer.op != Op::kSlice) out.channels = in.channels;
  }
  const bool same_weight =
      in.channels == before.values[layer.inputs[0]].channels && out.channels == before.values[layer.output].channels;
  if (out.channels < 1 || out.height < 1 || out.width < 1 || (layer.weight >= 0 && !same_weight)) return false;
  return CheckLayerValues(network, layer).ok();
}

std::optional<Network> ExtentRules::Apply(const Network& network, std::span<const Shape> rows) const {
  if (rows.size() != network.inputs.size()) return std::nullopt;
  Network made = network;
  made.weights.clear();
  for (size_t i = 0; i < rows.size(); ++i) {
    NetworkPort& port = made.inputs[i];
    if (rows[i].size() != port.dims.size()) return std::nullopt;
    for (size_t d = 0; d < rows[i].size(); ++d) {
      if (rows[i][d] < 1 || (!varies_[i][d] && rows[i][d] != port.dims[d])) return std::nullopt;
    }
    port.dims = rows[i];
    SetRow(rows[i], made.values[port.value]);
  }
  for (size_t i = 0; i < made.layers.size(); ++i) {
    if (!ApplyLayer(network, i, made)) return std::nullopt;
  }
  for (size_t i = 0; i < made.outputs.size(); ++i) {
    NetworkPort& port = made.outputs[i];
    const NetworkValue& value = made.values[port.value];
    if (!Fill(outputs_[i], Of(value), value.elements(), port.dims)) return std::nullopt;
  }
  return made;
}

}  // namespace swizzle
