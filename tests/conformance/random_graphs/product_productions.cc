#include <algorithm>

#include "tests/conformance/random_graphs/productions.h"

namespace swizzle::random_graphs {
namespace {

using Names = std::vector<std::string>;
using Attributes = std::map<std::string, Attribute>;

bool HasFixedLast(const Dims& dims) { return dims.size() >= 2 && IsFixed(dims.back()); }

void Linear(Drawer& drawer) {
  const std::string x = drawer.Any(HasFixedLast);
  const int64_t inner = drawer.DimsOf(x).back()[0], outer = drawer.OneOf<int64_t>({4, 8, 12, 16, 24, 3});
  std::string y = drawer.Node("MatMul", {x, drawer.Weights({inner, outer}, inner)});
  if (drawer.Chance(60)) {
    const std::string bias = drawer.Floats({outer}, -0.5, 0.5);
    y = drawer.Node("Add", drawer.Chance(50) ? Names{y, bias} : Names{bias, y});
  }
  if (drawer.Chance(30)) drawer.Node(drawer.OneOf<std::string>({"Relu", "Tanh", "Sigmoid"}), {y});
}

void General(Drawer& drawer) {
  const std::string x = drawer.Any([](const Dims& dims) { return dims.size() == 2 && IsFixed(dims[1]); });
  const int64_t inner = drawer.DimsOf(x).back()[0], outer = drawer.OneOf<int64_t>({4, 8, 10, 16});
  const bool is_turned = drawer.Chance(60);
  const Shape shape = is_turned ? Shape{outer, inner} : Shape{inner, outer};
  Names inputs = {x, drawer.Weights(shape, inner)};
  if (drawer.Chance(70)) inputs.push_back(drawer.Chance(80) ? drawer.Floats({outer}, -1, 1) : drawer.Float(0.4));
  Attributes attributes = {{"transB", int64_t{is_turned}}};
  if (drawer.Chance(20)) attributes["alpha"] = 0.7f;
  if (drawer.Chance(20)) attributes["beta"] = 1.3f;
  drawer.Node("Gemm", inputs, attributes);
}

// Weights stand on the left, or there is one matrix for each of a dimension before.
void LinearOtherwise(Drawer& drawer) {
  const std::string x = drawer.OfRank(3, 4);
  const Dims dims = drawer.DimsOf(x);
  const Dim inner = dims[dims.size() - 2], last = dims.back(), before = dims[dims.size() - 3];
  if (drawer.Chance(50)) {
    if (!IsFixed(inner)) return drawer.Fail();
    drawer.Node("MatMul", {drawer.Weights({drawer.OneOf<int64_t>({4, 6, 8}), inner[0]}, inner[0]), x});
  } else {
    if (!IsFixed(last) || !IsFixed(before)) return drawer.Fail();
    drawer.Node("MatMul", {x, drawer.Weights({before[0], last[0], drawer.OneOf<int64_t>({4, 6, 8})}, last[0])});
  }
}

void OfValues(Drawer& drawer) {
  const std::string x = drawer.OfRank(2, 4);
  const Dims dims = drawer.DimsOf(x);
  const auto fits = [&](const Dims& other) {
    return other.size() == dims.size() && other[other.size() - 2] == dims.back() &&
           std::equal(other.begin(), other.end() - 2, dims.begin());
  };
  std::string other = drawer.Find(fits);
  if (other.empty() || drawer.Chance(50)) {
    // Another of the same shape is turned.
    const std::string same = drawer.Any([&](const Dims& found) { return found == dims; });
    std::vector<int64_t> perm;
    for (int64_t d = 0; d < std::ssize(dims); ++d) perm.push_back(d);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    other = drawer.Node("Transpose", {same}, {{"perm", perm}});
  }
  const std::string scores = drawer.Node("MatMul", {x, other});
  drawer.Node("Mul", {scores, drawer.Float(0.3)});
}

void Equation(Drawer& drawer) {
  const std::string x = drawer.OfRank(3, 3);
  const Dims dims = drawer.DimsOf(x);
  if (drawer.Chance(50)) {
    const std::string other = drawer.Any([&](const Dims& found) { return found == dims; });
    drawer.Node("Einsum", {x, other}, {{"equation", drawer.OneOf<std::string>({"bij,bkj->bik", "bij,bik->bjk"})}});
  } else if (IsFixed(dims.back())) {
    const std::string weight = drawer.Weights({dims.back()[0], 2, 4}, dims.back()[0]);
    drawer.Node("Einsum", {x, weight}, {{"equation", drawer.OneOf<std::string>({"blc,chd->bhld", "blc,chd->blhd"})}});
  } else {
    drawer.Fail();
  }
}

bool IsPlanes(const Dims& dims) { return dims.size() == 4 && IsFixed(dims[1]); }

std::vector<int64_t> Twice(int64_t a, int64_t b) { return {a, b, a, b}; }

void Convolution(Drawer& drawer) {
  const std::string x = drawer.Any(IsPlanes);
  const int64_t channels = drawer.DimsOf(x)[1][0];
  int64_t group = 1, outer = drawer.OneOf<int64_t>({4, 8, 12, 16});
  if (drawer.Chance(25)) group = outer = channels;
  if (group == 1 && channels % 4 == 0 && outer % 4 == 0 && drawer.Chance(20)) group = drawer.Chance(50) ? 2 : 4;
  const int64_t high = drawer.OneOf<int64_t>({1, 1, 3, 3, 2}), wide = drawer.Chance(80) ? high : 3;
  Attributes attributes = {{"group", group}, {"kernel_shape", std::vector<int64_t>{high, wide}}};
  if (drawer.Chance(10)) {
    attributes["auto_pad"] = drawer.OneOf<std::string>({"SAME_UPPER", "SAME_LOWER", "VALID"});
  } else if (drawer.Chance(10)) {
    attributes["pads"] = std::vector<int64_t>{0, 1, high / 2, 1};
  } else {
    attributes["pads"] = Twice(high / 2, wide / 2);
  }
  if (drawer.Chance(30)) attributes["strides"] = std::vector<int64_t>{2, drawer.Chance(80) ? 2 : 1};
  if (drawer.Chance(10)) attributes["dilations"] = std::vector<int64_t>{2, 2};
  const int64_t fan_in = channels / group * high * wide;
  Names inputs = {x, drawer.Weights({outer, channels / group, high, wide}, fan_in)};
  if (drawer.Chance(70)) inputs.push_back(drawer.Floats({outer}, -0.5, 0.5));
  const std::string y = drawer.Node("Conv", inputs, attributes);
  if (drawer.Chance(50)) drawer.Node(drawer.OneOf<std::string>({"Relu", "Sigmoid", "Tanh", "Relu"}), {y});
}

void ConvolutionOfLength(Drawer& drawer) {
  const std::string x = drawer.Any([](const Dims& dims) { return dims.size() == 3 && IsFixed(dims[1]); });
  const int64_t channels = drawer.DimsOf(x)[1][0], outer = drawer.OneOf<int64_t>({4, 8, 12});
  const int64_t high = drawer.OneOf<int64_t>({1, 3});
  Attributes attributes = {{"pads", std::vector<int64_t>{high / 2, high / 2}},
                           {"strides", std::vector<int64_t>{drawer.Between(1, 2)}}};
  drawer.Node("Conv", {x, drawer.Weights({outer, channels, high}, channels * high), drawer.Floats({outer}, -1, 1)},
              attributes);
}

void Deconvolution(Drawer& drawer) {
  const std::string x = drawer.Any(IsPlanes);
  const int64_t channels = drawer.DimsOf(x)[1][0], outer = drawer.OneOf<int64_t>({4, 8});
  const bool overlaps = drawer.Chance(50);
  const int64_t side = overlaps ? 4 : 2, pad = overlaps ? 1 : 0;
  Names inputs = {x, drawer.Weights({channels, outer, side, side}, channels)};
  if (drawer.Chance(60)) inputs.push_back(drawer.Floats({outer}, -0.5, 0.5));
  drawer.Node("ConvTranspose", inputs,
              {{"strides", std::vector<int64_t>{2, 2}},
               {"pads", Twice(pad, pad)},
               {"kernel_shape", std::vector<int64_t>{side, side}}});
}

void Pool(Drawer& drawer) {
  const std::string x = drawer.OfRank(4, 4);
  const auto op = drawer.OneOf<std::string>({"MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"});
  if (op.starts_with("Global")) {
    drawer.Node(op, {x});
    return;
  }
  const int64_t side = drawer.Between(2, 3);
  Attributes attributes = {{"kernel_shape", std::vector<int64_t>{side, side}},
                           {"strides", std::vector<int64_t>{drawer.Between(1, 2), 2}}};
  if (drawer.Chance(40)) attributes["pads"] = Twice(1, side / 2);
  if (drawer.Chance(20)) attributes["ceil_mode"] = int64_t{1};
  if (op == "AveragePool" && drawer.Chance(50)) attributes["count_include_pad"] = int64_t{1};
  drawer.Node(op, {x}, attributes);
}

// The node runs over [length, batch, channels], or with the batch first.
void Recurrence(Drawer& drawer) {
  std::string x = drawer.Any([](const Dims& dims) { return dims.size() == 3 && IsFixed(dims[2]); });
  const int64_t channels = drawer.DimsOf(x)[2][0], hidden = 4;
  const auto op = drawer.OneOf<std::string>({"LSTM", "GRU", "RNN"});
  const int64_t gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
  const int64_t directions = drawer.Between(1, 2);
  const bool batch_first = drawer.opset() >= 14 && drawer.Chance(30);
  if (!batch_first) x = drawer.Node("Transpose", {x}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
  Names inputs = {x, drawer.Weights({directions, gates * hidden, channels}, channels),
                  drawer.Weights({directions, gates * hidden, hidden}, hidden)};
  if (drawer.Chance(70)) inputs.push_back(drawer.Floats({directions, 2 * gates * hidden}, -0.3, 0.3));
  Attributes attributes = {{"hidden_size", hidden}};
  attributes["direction"] =
      directions == 2 ? std::string("bidirectional") : drawer.OneOf<std::string>({"forward", "reverse"});
  if (op == "GRU") attributes["linear_before_reset"] = drawer.Between(0, 1);
  if (batch_first) attributes["layout"] = int64_t{1};
  const Names results = drawer.Nodes(op, inputs, drawer.Chance(50) ? 2 : 1, attributes);
  if (batch_first || drawer.failed()) return;
  // [length, directions, batch, hidden]
  const std::string turned = drawer.Node("Transpose", {results[0]}, {{"perm", std::vector<int64_t>{2, 0, 1, 3}}});
  const Dims dims = drawer.DimsOf(turned);
  drawer.Reshaped(turned, {{dims[0]}, {dims[1]}, {dims[2], dims[3]}});
  if (results.size() > 1) drawer.Node("Transpose", {results[1]}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
}

constexpr Production kProductions[] = {
    {10, Linear},  {4, General},      {2, LinearOtherwise},     {3, OfValues},
    {1, Equation}, {12, Convolution}, {2, ConvolutionOfLength}, {2, Deconvolution},
    {4, Pool},     {2, Recurrence},
};

}  // namespace

std::span<const Production> ProductProductions() { return kProductions; }

}  // namespace swizzle::random_graphs
