#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/conformance/random_graphs/productions.h"

namespace swizzle::random_graphs {
namespace {

using Names = std::vector<std::string>;
using Attributes = std::map<std::string, Attribute>;

bool IsTokens(const Dims& dims) { return dims.size() == 3 && IsFixed(dims[2]) && dims[2][0] % 4 == 0; }

std::string LinearOf(Drawer& drawer, const std::string& x, int64_t inner, int64_t outer) {
  const std::string y = drawer.Node("MatMul", {x, drawer.Weights({inner, outer}, inner)});
  return drawer.Chance(80) ? drawer.Node("Add", {drawer.Floats({outer}, -0.3, 0.3), y}) : y;
}

std::string MeanOverLast(Drawer& drawer, const std::string& x) {
  if (drawer.opset() >= 18) return drawer.Node("ReduceMean", {x, drawer.Int64s({-1})}, {{"keepdims", int64_t{1}}});
  return drawer.Node("ReduceMean", {x}, {{"axes", std::vector<int64_t>{-1}}, {"keepdims", int64_t{1}}});
}

std::string NormOf(Drawer& drawer, const std::string& x, int64_t channels) {
  const auto scale = [&] { return drawer.Floats({channels}, 0.5, 1.5); };
  const bool is_of_squares = drawer.Chance(35);
  const std::string centred = is_of_squares ? x : drawer.Node("Sub", {x, MeanOverLast(drawer, x)});
  const std::string square =
      drawer.Chance(70) ? drawer.Node("Pow", {centred, drawer.Float(2)}) : drawer.Node("Mul", {centred, centred});
  const std::string deviation =
      drawer.Node("Sqrt", {drawer.Node("Add", {MeanOverLast(drawer, square), drawer.Float(1e-2)})});
  if (is_of_squares && drawer.Chance(50)) {
    return drawer.Node("Mul", {scale(), drawer.Node("Mul", {x, drawer.Node("Reciprocal", {deviation})})});
  }
  const std::string y = drawer.Node("Mul", {drawer.Node("Div", {centred, deviation}), scale()});
  return is_of_squares ? y : drawer.Node("Add", {y, drawer.Floats({channels}, -0.5, 0.5)});
}

void WrittenNorm(Drawer& drawer) {
  const std::string x = drawer.Any([](const Dims& dims) { return dims.size() >= 2 && IsFixed(dims.back()); });
  NormOf(drawer, x, drawer.DimsOf(x).back()[0]);
}

void WrittenGelu(Drawer& drawer) {
  const std::string x = drawer.OfRank(2, 4);
  if (drawer.Chance(60)) {
    const std::string erf = drawer.Node("Erf", {drawer.Node("Div", {x, drawer.Float(std::sqrt(2.0))})});
    const std::string part = drawer.Node("Mul", {x, drawer.Node("Add", {erf, drawer.Float(1)})});
    drawer.Node("Mul", {part, drawer.Float(0.5)});
    return;
  }
  const std::string cube = drawer.Node("Mul", {drawer.Node("Pow", {x, drawer.Float(3)}), drawer.Float(0.044715)});
  const std::string inner = drawer.Node("Mul", {drawer.Node("Add", {x, cube}), drawer.Float(0.7978845608)});
  const std::string part = drawer.Node("Add", {drawer.Node("Tanh", {inner}), drawer.Float(1)});
  drawer.Node("Mul", {drawer.Node("Mul", {x, drawer.Float(0.5)}), part});
}

// Makes [batch, heads, length, channels of each] of [batch, length, channels].
std::string HeadsOf(Drawer& drawer, const std::string& x, int64_t heads, bool transposed) {
  const Dims dims = drawer.DimsOf(x);
  const Dim channels = FixedDim(dims.back()[0] / heads);
  const std::string apart = drawer.Reshaped(x, {{dims[0]}, {dims[1 % dims.size()]}, {FixedDim(heads)}, {channels}});
  return drawer.Node("Transpose", {apart},
                     {{"perm", transposed ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 1, 3}}});
}

// Masks keys, or pairs of positions, or nothing.
std::string Masked(Drawer& drawer, const std::string& scores, const Dims& tokens) {
  const auto way = drawer.Between(0, 5);
  const auto is_mask = [&](const Dims& dims) {
    return dims.size() == 2 && dims[0] == tokens[0] && dims[1] == tokens[1 % tokens.size()];
  };
  if (way < 2) {
    const std::string mask = drawer.Find(is_mask, DType::kBool);
    const std::string ids = mask.empty() ? drawer.Find(is_mask, DType::kInt64) : "";
    if (mask.empty() && ids.empty()) return scores;
    const std::string keys = drawer.Node("Unsqueeze", {mask.empty() ? ids : mask, drawer.Int64s({1, 2})});
    if (mask.empty()) {
      const std::string real = drawer.Node("Cast", {keys}, {{"to", int64_t{1}}});
      const std::string bias = drawer.Node("Mul", {drawer.Node("Sub", {drawer.Float(1), real}), drawer.Float(-10000)});
      return drawer.Node("Add", {scores, bias});
    }
    const double least = drawer.Chance(50) ? -std::numeric_limits<float>::max() : -1e9;
    return drawer.Node("Where", {keys, scores, drawer.Float(least)});
  }
  if (way > 2) return scores;
  // The mask is causal, of a free length.
  const Dim length = tokens[1 % tokens.size()];
  const std::string count = drawer.Node("Squeeze", {drawer.Size({length}), drawer.Int64s({0})});
  const std::string range = drawer.Node("Range", {drawer.Int64s({0}, {}), count, drawer.Int64s({1}, {})});
  const std::string column = drawer.Node("Unsqueeze", {range, drawer.Int64s({1})});
  return drawer.Node("Where", {drawer.Node("LessOrEqual", {range, column}), scores, drawer.Float(-1e9)});
}

void Attention(Drawer& drawer) {
  const std::string x = drawer.Any(IsTokens);
  const Dims dims = drawer.DimsOf(x);
  const int64_t channels = dims[2 % dims.size()][0], heads = drawer.OneOf<int64_t>({1, 2, 4});
  if (drawer.failed() || channels % heads != 0) return drawer.Fail();
  Names parts;
  if (drawer.Chance(30)) {
    const std::string all = LinearOf(drawer, x, channels, 3 * channels);
    const std::string sizes = drawer.Int64s({channels, channels, channels});
    parts = drawer.Nodes("Split", {all, sizes}, 3, {{"axis", int64_t{-1}}});
  } else {
    for (int i = 0; i < 3; ++i) parts.push_back(LinearOf(drawer, x, channels, channels));
  }
  if (drawer.failed()) return;
  const std::string queries = HeadsOf(drawer, parts[0], heads, false);
  const std::string keys = HeadsOf(drawer, parts[1], heads, true);
  const std::string values = HeadsOf(drawer, parts[2], heads, false);
  const double scale = std::sqrt(static_cast<double>(channels) / static_cast<double>(heads));
  std::string scores = drawer.Node("MatMul", {queries, keys});
  scores = drawer.Chance(60) ? drawer.Node("Div", {scores, drawer.Float(scale)})
                             : drawer.Node("Mul", {scores, drawer.Float(1 / scale)});
  scores = Masked(drawer, scores, dims);
  const std::string weights = drawer.Node("Softmax", {scores}, {{"axis", int64_t{-1}}});
  const std::string heard = drawer.Node("MatMul", {weights, values});
  const std::string turned = drawer.Node("Transpose", {heard}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  const std::string joined = drawer.Reshaped(turned, {{dims[0]}, {dims[1]}, {FixedDim(channels)}});
  const std::string y = LinearOf(drawer, joined, channels, channels);
  if (drawer.Chance(70)) drawer.Node("Add", {x, y});
}

void Block(Drawer& drawer) {
  const std::string x = drawer.Any([](const Dims& dims) { return dims.size() >= 2 && IsFixed(dims.back()); });
  const int64_t channels = drawer.DimsOf(x).back()[0];
  const std::string norm = drawer.Chance(50) ? NormOf(drawer, x, channels) : x;
  const std::string inner = LinearOf(drawer, norm, channels, 2 * channels);
  const std::string acted = drawer.Node(drawer.OneOf<std::string>({"Relu", "Tanh", "Sigmoid"}), {inner});
  drawer.Node("Add", {LinearOf(drawer, acted, 2 * channels, channels), x});
}

bool IsPlanes(const Dims& dims) { return dims.size() == 4 && IsFixed(dims[1]); }

void SqueezeAndExcite(Drawer& drawer) {
  const std::string x = drawer.Any(IsPlanes);
  const int64_t channels = drawer.DimsOf(x)[1][0];
  const std::string mean = drawer.Node("GlobalAveragePool", {x});
  const std::string less = drawer.Node("Conv", {mean, drawer.Weights({4, channels, 1, 1}, channels)});
  const std::string more = drawer.Node("Conv", {drawer.Node("Relu", {less}), drawer.Weights({channels, 4, 1, 1}, 4)});
  const std::string gate = drawer.Node(drawer.OneOf<std::string>({"Sigmoid", "HardSigmoid"}), {more});
  drawer.Node("Mul", drawer.Chance(50) ? Names{x, gate} : Names{gate, x});
}

void Residual(Drawer& drawer) {
  const std::string x = drawer.Any(IsPlanes);
  const int64_t channels = drawer.DimsOf(x)[1][0];
  const Attributes attributes = {{"pads", std::vector<int64_t>{1, 1, 1, 1}}};
  const std::string first = drawer.Node(
      "Conv", {x, drawer.Weights({8, channels, 3, 3}, channels * 9), drawer.Floats({8}, -0.3, 0.3)}, attributes);
  const std::string second =
      drawer.Node("Conv", {drawer.Node("Relu", {first}), drawer.Weights({channels, 8, 3, 3}, 72)}, attributes);
  const std::string sum = drawer.Node("Add", drawer.Chance(50) ? Names{x, second} : Names{second, x});
  if (drawer.Chance(70)) drawer.Node("Relu", {sum});
}

// Groups are planes of [batch, groups, -1].
void WrittenGroupNorm(Drawer& drawer) {
  const std::string x = drawer.Any([](const Dims& dims) { return IsPlanes(dims) && dims[1][0] % 4 == 0; });
  const Dims dims = drawer.DimsOf(x);
  const std::string groups = drawer.Node("Reshape", {x, drawer.Int64s({0, 4, -1})});
  const std::string norm = drawer.Node(
      "InstanceNormalization", {groups, drawer.Floats({4}, 1, 1), drawer.Floats({4}, 0, 0)}, {{"epsilon", 1e-2f}});
  const std::string back = drawer.Node("Reshape", {norm, drawer.Node("Shape", {x})});
  const Shape shape = {dims[1][0], 1, 1};
  drawer.Node("Add", {drawer.Node("Mul", {back, drawer.Floats(shape, 0.5, 1.5)}), drawer.Floats(shape, -0.5, 0.5)});
}

// Planes become tokens, as vision transformers begin, or channels stand last for a while.
void PlanesToTokens(Drawer& drawer) {
  const std::string x = drawer.Any(IsPlanes);
  const Dims dims = drawer.DimsOf(x);
  if (drawer.Chance(60)) {
    const std::string flat = drawer.Reshaped(x, {{dims[0]}, {dims[1]}, {dims[2], dims[3]}});
    drawer.Node("Transpose", {flat}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
    return;
  }
  const std::string last = drawer.Node("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  const int64_t channels = dims[1][0];
  const std::string y = LinearOf(drawer, NormOf(drawer, last, channels), channels, channels);
  drawer.Node("Transpose", {y}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
}

// Windows of tokens become rows of a batch, as in Swin transformers.
void Windows(Drawer& drawer) {
  const std::string x = drawer.Any([](const Dims& dims) {
    return dims.size() == 4 && IsFixed(dims[1]) && IsFixed(dims[2]) && dims[1][0] % 2 == 0 && dims[2][0] % 2 == 0;
  });
  const Dims d = drawer.DimsOf(x);
  const Dim two = FixedDim(2), high = FixedDim(d[1][0] / 2), wide = FixedDim(d[2][0] / 2);
  const std::string apart = drawer.Reshaped(x, {{d[0]}, {high}, {two}, {wide}, {two}, {d[3]}});
  const std::string turned = drawer.Node("Transpose", {apart}, {{"perm", std::vector<int64_t>{0, 1, 3, 2, 4, 5}}});
  const std::string windows = drawer.Reshaped(turned, {{d[0], high, wide}, {two, two}, {d[3]}});
  const std::string y = drawer.Node("Softmax", {windows}, {{"axis", int64_t{1}}});
  const std::string parts = drawer.Reshaped(y, {{d[0]}, {high}, {wide}, {two}, {two}, {d[3]}});
  const std::string back = drawer.Node("Transpose", {parts}, {{"perm", std::vector<int64_t>{0, 1, 3, 2, 4, 5}}});
  drawer.Reshaped(back, {{d[0]}, {high, two}, {wide, two}, {d[3]}});
}

constexpr Production kProductions[] = {
    {2, WrittenNorm}, {2, WrittenGelu},      {6, Attention},      {3, Block},   {2, SqueezeAndExcite},
    {2, Residual},    {1, WrittenGroupNorm}, {4, PlanesToTokens}, {2, Windows},
};

}  // namespace

std::span<const Production> PatternProductions() { return kProductions; }

}  // namespace swizzle::random_graphs
