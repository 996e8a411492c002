#include "model_loader/sequences/emitter.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>

#include "model_loader/graph/operators.h"
#include "model_loader/semantics/epilogues.h"
#include "model_loader/semantics/functions.h"
#include "model_loader/semantics/whole_numbers.h"
#include "model_loader/semantics/windows.h"

namespace swizzle {
namespace {

// The attribute that says how many alike parts of channels a node takes apart, one unless it is there; null for nodes
// of no such.
const char* PartsAttribute(const Node& node) {
  return Is(node, "Rotary") ? "heads" : Is(node, "LayerNorm") ? "groups" : nullptr;
}

int64_t PartsOf(const Node& node) {
  const auto parts = node.attributes.find(PartsAttribute(node));
  return parts == node.attributes.end() ? 1 : std::get<int64_t>(parts->second);
}

// Whether a node gives these of its channels where it is given them: whole parts, each in its order.
bool MayTakeParts(const Node& node, int64_t all, const std::vector<int64_t>& channels) {
  if (PartsAttribute(node) == nullptr) return false;
  const int64_t size = all / PartsOf(node);
  if (static_cast<int64_t>(channels.size()) % size != 0) return false;
  for (size_t i = 0; i < channels.size(); ++i) {
    const int64_t place = static_cast<int64_t>(i) % size;
    const int64_t begin = channels[i - static_cast<size_t>(place)];
    if (begin % size != 0 || channels[i] != begin + place) return false;
  }
  return true;
}

void SetParts(Node& node, int64_t all, int64_t left) {
  node.attributes[PartsAttribute(node)] = PartsOf(node) * left / all;
}

}  // namespace

void Emitter::Count(const std::string& what) {
  const auto found =
      std::find_if(counts_.begin(), counts_.end(), [&](const auto& count) { return count.first == what; });
  if (found == counts_.end()) {
    counts_.emplace_back(what, 1);
  } else {
    ++found->second;
  }
}

std::string Emitter::FreshName(const std::string& suffix) {
  const std::string name = name_ + suffix;
  const int taken = names_taken_[name]++;
  return taken == 0 ? name : Concat(name, ".", taken);
}

int Emitter::AddInput(const std::string& name, DType dtype) { return AddPerToken(name, dtype, 1); }

int Emitter::AddTokens(const std::string& name, int64_t channels) {
  return AddPerToken(name, DType::kFloat32, channels);
}

int Emitter::AddPerToken(const std::string& name, DType dtype, int64_t channels) {
  Value value{name, dtype, Shape{kFreeBatch, channels}, std::nullopt};
  value.per_token = true;
  graph_.inputs.push_back(graph_.AddValue(std::move(value)));
  return graph_.inputs.back();
}

int Emitter::AddNode(const char* op, std::vector<int> inputs, int64_t channels, bool per_token,
                     std::map<std::string, Attribute> attributes) {
  const std::string name = FreshName("");
  Value value{name, DType::kFloat32, Shape{kFreeBatch, channels}, std::nullopt};
  value.per_token = per_token;
  Node node;
  node.op = op;
  node.domain = kSwizzleDomain;
  node.name = name;
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  const int output = graph_.AddValue(std::move(value));
  node.outputs = {output};
  producers_.resize(graph_.values.size(), -1);
  producers_[output] = static_cast<int>(graph_.nodes.size());
  graph_.nodes.push_back(std::move(node));
  return output;
}

int Emitter::AddFloats(const char* suffix, Shape shape, std::span<const float> values) {
  Spend(values.size());
  return graph_.AddConstant(name_ + suffix, Tensor::Floats(std::move(shape), values));
}

int Emitter::Embedding(int ids, Tensor table, int64_t offset) {
  Count("embedding");
  const int64_t channels = table.shape[1];
  Spend(table.bytes.size() / sizeof(float));
  const int constant = graph_.AddConstant(name_ + ".table", std::move(table));
  return AddNode("Embedding", {ids, constant}, channels, true, {{"offset", offset}});
}

int Emitter::Linear(int x, int64_t rows, std::vector<float> weight, std::optional<Quantisation> wholes) {
  Count("linear");
  Node window;
  SetWindow(window, Window{});
  window.attributes["group"] = int64_t{1};
  const int constant = Weight({rows, Channels(x), 1, 1}, weight, std::move(wholes));
  return AddNode("Conv", {x, constant}, rows, IsPerToken(x), std::move(window.attributes));
}

int Emitter::Weight(const Shape& shape, std::span<const float> numbers, std::optional<Quantisation> wholes) {
  const auto bytes = std::as_bytes(numbers);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<int>& alike = weights_[std::hash<std::string_view>()(text)];
  for (const int known : alike) {
    const Value& value = graph_.values[known];
    const auto& its = value.wholes;
    const bool same_wholes = its.has_value() == wholes.has_value() && (!its || its->quantisation == *wholes);
    if (value.shape == shape && same_wholes && std::ranges::equal(value.constant->bytes, bytes)) return known;
  }
  const int constant = alike.emplace_back(AddFloats(".weight", shape, numbers));
  if (wholes) graph_.values[constant].wholes = WholeNumbers{*std::move(wholes), 0};
  return constant;
}

int Emitter::Quantise(int x, const Quantisation& as) {
  for (const auto& [real, whole] : quantised_) {
    if (real == x && graph_.values[whole].wholes->quantisation == as) return whole;
  }
  const RealRange range = RangeOf(as.Of(0));
  const int output = AddNode("Clamp", {x}, Channels(x), IsPerToken(x));
  SetBounds(graph_.nodes.back(), range.low, range.high);
  graph_.values[output].wholes = WholeNumbers{as};
  quantised_.emplace_back(x, output);
  return output;
}

int Emitter::Affine(int x, std::vector<float> scale, std::vector<float> shift) {
  const int64_t channels = Channels(x);
  const int scales = AddFloats(".scale", {channels}, scale);
  const int shifts = AddFloats(".shift", {channels}, shift);
  return AddNode("Affine", {x, scales, shifts}, channels, IsPerToken(x));
}

int Emitter::Scale(int x, std::vector<float> factors) {
  const int producer = ProducerOf(x);
  if (producer < 0 || graph_.nodes[producer].op != "LayerNorm") {
    std::vector<float> shift(factors.size());
    return Affine(x, std::move(factors), std::move(shift));
  }
  const Node norm = graph_.nodes[producer];
  const auto scaled = [&](size_t input, const char* suffix) {
    const auto numbers = graph_.values[norm.inputs[input]].constant->floats();
    std::vector<float> products(factors.size());
    std::ranges::transform(numbers, factors, products.begin(), std::multiplies());
    return AddFloats(suffix, {Channels(x)}, products);
  };
  const int scales = scaled(1, ".scale"), shifts = scaled(2, ".shift");
  return AddNode("LayerNorm", {norm.inputs[0], scales, shifts}, Channels(x), IsPerToken(x), norm.attributes);
}

int Emitter::LayerNorm(int x, std::vector<float> scale, std::vector<float> shift, const Normalisation& norm) {
  Count("layer_norm");
  const int64_t channels = Channels(x);
  const int scales = AddFloats(".scale", {channels}, scale);
  const int shifts = AddFloats(".shift", {channels}, shift);
  std::map<std::string, Attribute> attributes = {{"epsilon", norm.epsilon}};
  if (!norm.centred) attributes.emplace("centred", int64_t{0});
  if (norm.groups > 1) attributes.emplace("groups", int64_t{norm.groups});
  return AddNode("LayerNorm", {x, scales, shifts}, channels, IsPerToken(x), std::move(attributes));
}

int Emitter::Rotary(int x, int table, const Rotation& rotation) {
  Count("rotary");
  return AddNode(
      "Rotary", {x, table}, Channels(x), true,
      {{"heads", int64_t{rotation.heads}}, {"size", int64_t{rotation.size}}, {"pairs", int64_t{rotation.pairs}}});
}

int Emitter::Table(const Tensor& table) { return Weight(table.shape, table.floats(), std::nullopt); }

std::optional<Emitter::PositionTable> Emitter::PositionTableOf(int x) const {
  const int producer = ProducerOf(x);
  if (producer < 0 || !Is(graph_.nodes[producer], "Embedding")) return std::nullopt;
  const Node& node = graph_.nodes[producer];
  if (node.inputs[0] != kNoValue) return std::nullopt;
  return PositionTable{node.inputs[1], std::get<int64_t>(node.attributes.at("offset"))};
}

int Emitter::AddAttention(const char* op, const AttentionInputs& inputs, const std::vector<int>& constants,
                          std::map<std::string, Attribute> attributes) {
  attributes.emplace("heads", inputs.heads);
  attributes.emplace("scale", inputs.scale);
  if (inputs.group_size > 1) attributes.emplace("group_size", inputs.group_size);
  std::vector<int> operands = {inputs.q, inputs.k, inputs.v};
  operands.insert(operands.end(), constants.begin(), constants.end());
  return AddNode(op, std::move(operands), Channels(inputs.v) * inputs.group_size, true, std::move(attributes));
}

int Emitter::Attention(const AttentionInputs& inputs) {
  Count("attention");
  return AddAttention("Attention", inputs, {});
}

int Emitter::SparseAttention(const AttentionInputs& inputs, std::pair<int, int> pattern) {
  Count("sparse_attention");
  return AddAttention("SparseAttention", inputs, {pattern.first, pattern.second});
}

int Emitter::BiasedAttention(const AttentionInputs& inputs, const BiasTable& table) {
  Count("biased_attention");
  const int64_t columns = static_cast<int64_t>(table.biases.size()) / inputs.heads;
  const int biases = Weight({inputs.heads, columns}, table.biases, std::nullopt);
  std::map<std::string, Attribute> attributes = {{"length", table.length}, {"reach", table.reach}};
  if (table.windows > 1) attributes.emplace("windows", table.windows);
  return AddAttention("BiasedAttention", inputs, {biases}, std::move(attributes));
}

int Emitter::DisentangledAttention(const AttentionInputs& inputs, int64_t places, const std::vector<float>& vectors) {
  Count("disentangled_attention");
  const int weight = Weight({2 * Channels(inputs.q) + 1, places}, vectors, std::nullopt);
  return AddAttention("DisentangledAttention", inputs, {weight}, {{"places", places}});
}

std::pair<int, int> Emitter::Pattern(const AttentionPattern& pattern) {
  const auto add = [&](const char* suffix, const std::vector<uint32_t>& places) {
    const auto bytes = std::as_bytes(std::span(places));
    Tensor tensor{DType::kInt32, {static_cast<int64_t>(places.size())}, {bytes.begin(), bytes.end()}};
    return graph_.AddConstant(name_ + suffix, std::move(tensor));
  };
  return {add(".row_offsets", pattern.row_offsets), add(".col_indices", pattern.col_indices)};
}

bool Emitter::IsLinearInAttended(int x) const {
  const int producer = ProducerOf(x);
  if (producer < 0) return false;
  const Node& node = graph_.nodes[producer];
  if (node.op.ends_with("Attention")) return true;
  return (Is(node, "Conv") || Is(node, "Affine")) && IsLinearInAttended(node.inputs[0]);
}

int Emitter::PermuteTokens(int x, std::span<const int32_t> places) {
  const int producer = ProducerOf(x);
  const bool is_attention = producer >= 0 && graph_.nodes[producer].op.ends_with("Attention");
  if (!is_attention && IsLinearInAttended(x)) {
    Node node = graph_.nodes[producer];
    node.inputs[0] = PermuteTokens(node.inputs[0], places);
    const int permuted = AddNode("", node.inputs, Channels(x), true);
    graph_.nodes.back().op = node.op;
    graph_.nodes.back().attributes = std::move(node.attributes);
    return permuted;
  }
  Count("permute_tokens");
  const std::vector<float> numbers(places.begin(), places.end());
  const int constant = Weight({static_cast<int64_t>(places.size()), 1}, numbers, std::nullopt);
  return AddNode("PermuteTokens", {x, constant}, Channels(x), true);
}

int Emitter::SelectToken(int x, int64_t token) {
  Count("select_token");
  return AddNode("SelectToken", {x}, Channels(x), false, {{"token", token}});
}

int Emitter::MeanTokens(int x) {
  Count("mean_tokens");
  return AddNode("MeanTokens", {x}, Channels(x), false);
}

int Emitter::Add(int a, int b) { return AddNode("Add", {a, b}, Channels(a), IsPerToken(a)); }

int Emitter::Multiply(int a, int b) { return AddNode("Multiply", {a, b}, Channels(a), IsPerToken(a)); }

int Emitter::Softmax(int x) { return AddNode("Softmax", {x}, Channels(x), IsPerToken(x)); }

int Emitter::Apply(int x, const KnownFunction& known) {
  const size_t channels = static_cast<size_t>(Channels(x));
  const auto every = [&](float number) { return std::vector<float>(channels, number); };
  if (const auto* linear = std::get_if<LinearFunction>(&known)) {
    return Affine(x, every(linear->scale), every(linear->shift));
  }
  if (const auto* clamp = std::get_if<ClampFunction>(&known)) {
    const int clamped = AddNode("Clamp", {x}, Channels(x), IsPerToken(x));
    SetBounds(graph_.nodes.back(), clamp->low, clamp->high);
    return clamped;
  }
  const auto& named = std::get<NamedFunction>(known);
  const FunctionKind kind = named.function.kind;
  Count(kind == FunctionKind::kGelu || kind == FunctionKind::kGeluTanh ? "gelu" : "function");
  if (named.scale != 1.0f) x = Affine(x, every(named.scale), every(0.0f));
  x = AddNode("Function", {x}, Channels(x), IsPerToken(x), FunctionAttributes(named.function));
  return named.scale != 1.0f ? Affine(x, every(1.0f / named.scale), every(0.0f)) : x;
}

std::optional<WholeNumbers> Emitter::SelectedWholes(const std::optional<WholeNumbers>& wholes,
                                                    const std::vector<int64_t>& rows) {
  if (!wholes || wholes->quantisation.per_tensor()) return wholes;
  const auto& [dtype, scales, zero_points] = wholes->quantisation;
  WholeNumbers selected{{dtype, {}, {}}, wholes->axis};
  for (const int64_t row : rows) {
    selected.quantisation.scales.push_back(scales[row]);
    if (!zero_points.empty()) selected.quantisation.zero_points.push_back(zero_points[row]);
  }
  return selected;
}

int Emitter::SelectRows(int constant, size_t row, const std::vector<int64_t>& channels) {
  const Tensor& from = *graph_.values[constant].constant;
  Tensor selected{from.dtype, from.shape, std::vector<std::byte>(channels.size() * row * sizeof(float))};
  selected.shape[0] = static_cast<int64_t>(channels.size());
  Spend(channels.size() * row);
  for (size_t i = 0; i < channels.size(); ++i) {
    std::memcpy(selected.bytes.data() + i * row * sizeof(float),
                from.bytes.data() + static_cast<size_t>(channels[i]) * row * sizeof(float), row * sizeof(float));
  }
  const int made = graph_.AddConstant(graph_.values[constant].name, std::move(selected));
  graph_.values[made].wholes = SelectedWholes(graph_.values[constant].wholes, channels);
  return made;
}

StatusOr<int> Emitter::SelectChannels(int x, const std::vector<int64_t>& channels, int depth) {
  constexpr int kMaxDepth = 16;
  bool all = static_cast<int64_t>(channels.size()) == Channels(x);
  for (size_t i = 0; i < channels.size() && all; ++i) all = channels[i] == static_cast<int64_t>(i);
  if (all) return x;
  const auto key = std::pair(x, channels);
  if (const auto found = selected_.find(key); found != selected_.end()) return found->second;
  const int producer = ProducerOf(x);
  const auto is = [&](const char* op) { return producer >= 0 && Is(graph_.nodes[producer], op); };
  const bool element_wise = is("Function") || is("Clamp") || is("Affine");
  const bool in_parts = producer >= 0 && MayTakeParts(graph_.nodes[producer], Channels(x), channels);
  if ((!element_wise && !in_parts && !is("Conv")) || depth == kMaxDepth) {
    return Unimplemented("channels are taken out of what is not a linear layer's output");
  }
  Node node = graph_.nodes[producer];
  if (!is("Conv")) {
    SWIZZLE_ASSIGN_OR_RETURN(node.inputs[0], SelectChannels(node.inputs[0], channels, depth + 1));
  }
  if (in_parts) SetParts(node, Channels(x), static_cast<int64_t>(channels.size()));
  for (size_t i = 1; i < node.inputs.size() && !is("Rotary"); ++i) {
    const bool weight = is("Conv") && i == 1;
    node.inputs[i] = SelectRows(node.inputs[i], weight ? static_cast<size_t>(Channels(node.inputs[0])) : 1, channels);
  }
  const int output = AddNode("", node.inputs, static_cast<int64_t>(channels.size()), IsPerToken(x));
  graph_.nodes.back().op = node.op;
  graph_.nodes.back().attributes = std::move(node.attributes);
  selected_.emplace(key, output);
  return output;
}

}  // namespace swizzle
