#include "tests/conformance/random_graphs/drawer.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "tests/conformance/random_graphs/productions.h"

namespace swizzle::random_graphs {
namespace {

RequestSizes DrawSizes(uint64_t seed) {
  std::minstd_rand random(static_cast<uint32_t>(seed * 31 + 5));
  const auto one_of = [&](const std::vector<int64_t>& sizes) { return sizes[random() % sizes.size()]; };
  const int64_t length = one_of({4, 5, 6, 8}), width = one_of({7, 9, 10});
  const int64_t first = one_of({1, 1, 2});
  return {Sizes{first, length, width}, Sizes{first + one_of({1, 2}), length, width},
          Sizes{one_of({1, 4}) + first % 2, length + one_of({1, 3, 4}), width + one_of({2, 3})}};
}

Dim DimWith(const RequestSizes& sizes, int64_t dimension) {
  return {sizes[0].Of(dimension), sizes[1].Of(dimension), sizes[2].Of(dimension)};
}

}  // namespace

Drawer::Drawer(uint64_t seed, Stream& stream)
    : random_(static_cast<uint32_t>(seed * 2654435761u + 1)),
      sizes_(DrawSizes(seed)),
      rows_(DimWith(sizes_, kRows)),
      length_(DimWith(sizes_, kLength)),
      width_(DimWith(sizes_, kWidth)),
      values_(sizes_, seed, stream) {
  random_.discard(8);
  graph_.opset = OneOf<int64_t>({13, 14, 17, 18, 20});
  graph_.names_axes = Chance(70);
  graph_.declares_shapes = Chance(50);
}

Drawing Drawer::Draw() {
  DrawInputs();
  std::vector<Production> productions;
  for (const auto list : {PointwiseProductions(), ProductProductions(), MoveProductions(), PatternProductions()}) {
    productions.insert(productions.end(), list.begin(), list.end());
  }
  const auto wanted = static_cast<size_t>(Chance(40) ? Between(3, 8) : Between(6, 22));
  // One production that mixes rows is enough: what else does would hide that it was taken for one that doesn't.
  mixes_ = Chance(45);
  const size_t mixed_at = mixes_ ? static_cast<size_t>(Between(0, static_cast<int64_t>(wanted) - 1)) : wanted;
  bool is_mixed = !mixes_;
  for (int tries = 0; tries < 80 && (graph_.nodes.size() < wanted || (!is_mixed && tries < 40)); ++tries) {
    if (!is_mixed && graph_.nodes.size() >= mixed_at) {
      is_mixed = Produce(ChosenOf(MixingProductions()));
    } else {
      Produce(ChosenOf(productions));
    }
  }
  ChooseOutputs();
  return {graph_.Pruned(), sizes_};
}

void (*Drawer::ChosenOf(std::span<const Production> productions))(Drawer&) {
  int64_t all = 0;
  for (const Production& production : productions) all += production.weight;
  int64_t left = Between(0, all - 1);
  size_t chosen = 0;
  while (left >= productions[chosen].weight) left -= productions[chosen++].weight;
  return productions[chosen].produce;
}

void Drawer::DrawInputs() {
  const auto kind = Between(0, 9);
  const auto channels = OneOf<int64_t>({3, 4, 8, 12, 16});
  if (kind < 4) {
    const bool is_free = Chance(50);
    AddInput(DType::kFloat32, {kRows, channels, is_free ? kLength : 8, is_free ? kWidth : Between(6, 9)}, 0);
  } else if (kind < 7) {
    AddInput(DType::kFloat32, {kRows, Chance(75) ? kLength : 6, channels}, 0);
  } else if (kind < 8) {
    AddInput(DType::kFloat32, {kRows, channels}, 0);
  } else {
    AddInput(DType::kInt64, {kRows, kLength}, 11);
    const std::string table = Floats({11, channels}, -1, 1);
    Node("Gather", {table, made_.front()}, {{"axis", int64_t{0}}});
  }
  if (Chance(20)) AddInput(DType::kFloat32, {kRows, channels}, 0);
  if (Chance(15)) AddInput(DType::kFloat32, {kRows, kLength, channels}, 0);
  if (Chance(15)) AddInput(OneOf<DType>({DType::kBool, DType::kInt64}), {kRows, kLength}, 2);
}

void Drawer::AddInput(DType dtype, const Shape& shape, int64_t below) {
  graph_.inputs.push_back({NewName("in"), dtype, shape, below});
  values_.AddInput(graph_.inputs.back());
  made_.push_back(graph_.inputs.back().name);
}

bool Drawer::Produce(void (*production)(Drawer&)) {
  const size_t nodes = graph_.nodes.size(), made = made_.size();
  failed_ = false;
  production(*this);
  if (!failed_) return true;
  graph_.nodes.resize(nodes);
  for (size_t i = made; i < made_.size(); ++i) values_.Forget(made_[i]);
  made_.resize(made);
  return false;
}

std::vector<std::string> Drawer::Nodes(const std::string& op, const std::vector<std::string>& inputs, size_t outputs,
                                       const std::map<std::string, Attribute>& attributes) {
  DrawnNode node{op, inputs, {}, attributes};
  for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(NewName("v"));
  const auto is_known = [&](const std::string& name) { return name.empty() || values_.Find(name) != nullptr; };
  failed_ |= !std::ranges::all_of(inputs, is_known);
  failed_ = failed_ || !values_.AddNode(node, graph_.opset).ok();
  if (failed_) return node.outputs;
  made_.insert(made_.end(), node.outputs.begin(), node.outputs.end());
  graph_.nodes.push_back(node);
  return node.outputs;
}

std::string Drawer::Node(const std::string& op, const std::vector<std::string>& inputs,
                         const std::map<std::string, Attribute>& attributes) {
  return Nodes(op, inputs, 1, attributes).front();
}

std::string Drawer::AddConstant(Tensor tensor) {
  const std::string name = NewName("c");
  values_.AddConstant(name, tensor);
  graph_.constants[name] = std::move(tensor);
  return name;
}

std::string Drawer::Floats(const Shape& shape, double low, double high) {
  std::vector<float> elements(static_cast<size_t>(*ElementCount(shape)));
  for (float& element : elements) {
    element = static_cast<float>(low + (high - low) * static_cast<double>(random_() % 1001) / 1000);
  }
  return AddConstant(Tensor::Floats(shape, elements));
}

std::string Drawer::Weights(const Shape& shape, int64_t fan_in) {
  const bool is_sparse = Chance(50);
  const double most = 1.7 / std::sqrt(static_cast<double>(std::max<int64_t>(fan_in, 1)) * (is_sparse ? 0.15 : 1));
  const std::string name = Floats(shape, -most, most);
  Tensor tensor = graph_.constants[name];
  for (float& element : tensor.floats()) {
    if (is_sparse && !Chance(15)) element = 0;
  }
  graph_.constants.erase(name);
  values_.Forget(name);
  return AddConstant(std::move(tensor));
}

std::string Drawer::Int64s(const std::vector<int64_t>& elements, const Shape& shape) {
  return AddConstant(Tensor::Int64s(shape, elements));
}

Dims Drawer::DimsOf(const std::string& name) const {
  const KnownValue* const value = values_.Find(name);
  if (value == nullptr) return {FixedDim(1), FixedDim(1), FixedDim(1), FixedDim(1)};  // of one that failed
  Dims dims(value->ShapeIn(0).size());
  for (size_t r = 0; r < kRequests; ++r) {
    for (size_t d = 0; d < dims.size(); ++d) dims[d][r] = value->ShapeIn(r)[d];
  }
  return dims;
}

DType Drawer::TypeOf(const std::string& name) const {
  const KnownValue* const value = values_.Find(name);
  return value == nullptr ? DType::kFloat32 : value->dtype;
}

std::string Drawer::Find(const Wanted& wanted, DType dtype) {
  std::vector<std::string> found;
  for (const std::string& name : made_) {
    if (TypeOf(name) == dtype && wanted(DimsOf(name))) found.push_back(name);
  }
  if (found.empty()) return "";
  const auto last = std::ssize(found) - 1;
  return found[static_cast<size_t>(Chance(60) ? last : Between(0, last))];
}

std::string Drawer::Any(const Wanted& wanted, DType dtype) {
  std::string found = Find(wanted, dtype);
  failed_ |= found.empty();
  return found;
}

std::string Drawer::OfRank(size_t least, size_t most) {
  return Any([&](const Dims& dims) { return dims.size() >= least && dims.size() <= most; });
}

// It comes of a value that has it, or is a constant; its shape is [1].
std::string Drawer::SizeOf(const Dim& dim) {
  if (IsFixed(dim) && !Chance(10)) return Int64s({dim[0]});
  const std::string value = Find([&](const Dims& dims) { return std::ranges::find(dims, dim) != dims.end(); });
  if (value.empty()) {
    failed_ |= !IsFixed(dim);
    return Int64s({dim[0]});
  }
  const Dims dims = DimsOf(value);
  const auto axis = static_cast<int64_t>(std::ranges::find(dims, dim) - dims.begin());
  if (opset() >= 15 && Chance(25)) return Node("Shape", {value}, {{"start", axis}, {"end", axis + 1}});
  const std::string shape = Node("Shape", {value});
  const auto way = Between(0, 2);
  if (way == 0) return Node("Gather", {shape, Int64s({axis})}, {{"axis", int64_t{0}}});
  if (way == 1) return Node("Slice", {shape, Int64s({axis}), Int64s({axis + 1}), Int64s({0})});
  const std::string scalar = Node("Gather", {shape, Int64s({axis}, {})}, {{"axis", int64_t{0}}});
  return Node("Unsqueeze", {scalar, Int64s({0})});
}

std::string Drawer::Size(const Factors& factors) {
  std::string size;
  int64_t fixed = 1;
  for (const Dim& factor : factors) {
    if (IsFixed(factor)) {
      fixed *= factor[0];
      continue;
    }
    const std::string next = SizeOf(factor);
    size = size.empty() ? next : Node("Mul", {size, next});
  }
  if (size.empty()) return SizeOf(FixedDim(fixed));
  return fixed == 1 ? size : Node("Mul", {size, Int64s({fixed})});
}

std::string Drawer::Target(const std::vector<Factors>& dims, bool for_reshape) {
  const auto is_fixed = [](const Factors& factors) { return std::ranges::all_of(factors, IsFixed); };
  const auto free = std::ranges::count_if(dims, [&](const Factors& factors) { return !is_fixed(factors); });
  const bool has_rest = for_reshape && Chance(60);
  size_t rest = dims.size();
  for (size_t d = 0; d < dims.size() && has_rest; ++d) {
    if (!is_fixed(dims[d]) || (free == 0 && Chance(30))) rest = d;
  }
  if (free == 0 || (free == 1 && rest < dims.size() && Chance(75))) {
    std::vector<int64_t> elements;
    for (size_t d = 0; d < dims.size(); ++d) {
      int64_t size = 1;
      for (const Dim& factor : dims[d]) size *= factor[0];
      elements.push_back(d == rest ? -1 : size);
    }
    return Int64s(elements);
  }
  std::vector<std::string> parts;
  for (size_t d = 0; d < dims.size(); ++d) parts.push_back(d == rest ? Int64s({-1}) : Size(dims[d]));
  return parts.size() == 1 ? parts[0] : Node("Concat", parts, {{"axis", int64_t{0}}});
}

// Outputs are one to three values that nothing reads, late ones, and mostly such that have a row for each of the batch.
void Drawer::ChooseOutputs() {
  std::set<std::string> read;
  for (const DrawnNode& node : graph_.nodes) read.insert(node.inputs.begin(), node.inputs.end());
  const bool wants_rows = Chance(mixes_ ? 65 : 85);
  std::vector<std::string> chosen, others;
  for (auto name = made_.rbegin(); name != made_.rend(); ++name) {
    const bool is_input =
        std::ranges::any_of(graph_.inputs, [&](const DrawnInput& input) { return input.name == *name; });
    if (is_input || read.contains(*name)) continue;
    const Dims dims = DimsOf(*name);
    const bool fits = !wants_rows || (!dims.empty() && dims[0] == rows_ && TypeOf(*name) != DType::kInt64);
    (fits ? chosen : others).push_back(*name);
  }
  if (chosen.empty()) chosen = others;
  if (chosen.empty() && !graph_.nodes.empty()) chosen.push_back(graph_.nodes.back().outputs.front());
  const auto most = static_cast<size_t>(Between(1, 3));
  if (chosen.size() > most) chosen.resize(most);
  for (const std::string& name : chosen) {
    DrawnOutput output{name, TypeOf(name)};
    for (const Dim& dim : DimsOf(name)) {
      output.shape.push_back(IsFixed(dim) ? dim[0] : dim == rows_ ? kRows : dim == length_ ? kLength : kWidth);
    }
    graph_.outputs.push_back(std::move(output));
  }
}

}  // namespace swizzle::random_graphs
