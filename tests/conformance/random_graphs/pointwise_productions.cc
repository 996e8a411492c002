#include <algorithm>

#include "tests/conformance/random_graphs/productions.h"

namespace swizzle::random_graphs {
namespace {

using Names = std::vector<std::string>;
using Attributes = std::map<std::string, Attribute>;

bool AnyRank(const Dims&) { return true; }

// Whether values of these dimensions may stand beside each other without making anything larger than the first.
bool BroadcastsTo(const Dims& small, const Dims& large) {
  if (small.size() > large.size()) return false;
  for (size_t d = 0; d < small.size(); ++d) {
    const Dim& dim = small[small.size() - 1 - d];
    if (dim != FixedDim(1) && dim != large[large.size() - 1 - d]) return false;
  }
  return true;
}

// A constant that broadcasts to the value: one number, one a channel, one for each of its last dimensions.
std::string ConstantBeside(Drawer& drawer, const std::string& value, double low, double high) {
  const Dims dims = drawer.DimsOf(value);
  if (drawer.Chance(25)) return drawer.Floats({}, low, high);
  const auto rank = drawer.Between(1, std::max<int64_t>(std::ssize(dims), 1));
  Shape shape;
  for (int64_t d = std::ssize(dims) - rank; d < std::ssize(dims); ++d) {
    const Dim& dim = dims[static_cast<size_t>(std::max<int64_t>(d, 0))];
    shape.push_back(d >= 0 && IsFixed(dim) && drawer.Chance(75) ? dim[0] : 1);
  }
  return drawer.Floats(shape, low, high);
}

void Function(Drawer& drawer) {
  const std::string x = drawer.Any(AnyRank);
  Names ops = {"Relu",     "Sigmoid",     "Tanh", "Erf",      "Neg",      "Abs",    "LeakyRelu",
               "Elu",      "HardSigmoid", "Relu", "Softplus", "Softsign", "Sin",    "Cos",
               "Identity", "Selu",        "Celu", "Atan",     "Exp",      "Dropout"};
  if (drawer.opset() >= 14) ops.insert(ops.end(), {"HardSwish", "HardSwish"});
  if (drawer.opset() >= 18) ops.emplace_back("Mish");
  if (drawer.opset() >= 20) ops.insert(ops.end(), {"Gelu", "Gelu"});
  drawer.Node(drawer.OneOf(ops), {x});
}

void FunctionOfOneSign(Drawer& drawer) {
  const std::string x = drawer.Any(AnyRank);
  const std::string positive = drawer.Node("Add", {drawer.Node("Abs", {x}), drawer.Float(0.5)});
  drawer.Node(drawer.OneOf<std::string>({"Sqrt", "Log", "Reciprocal"}), {positive});
}

void Bounds(Drawer& drawer) {
  const std::string x = drawer.Any(AnyRank);
  const auto way = drawer.Between(0, 3);
  if (way == 0) drawer.Node("Clip", {x, drawer.Float(-0.4), drawer.Float(0.6)});
  if (way == 1) drawer.Node("Clip", {x, "", drawer.Float(0.5)});
  if (way == 2) drawer.Node("Max", {x, drawer.Float(-0.1), ConstantBeside(drawer, x, -1, 0)});
  if (way == 3) drawer.Node("PRelu", {x, ConstantBeside(drawer, x, 0, 0.5)});
}

void WithConstant(Drawer& drawer) {
  const std::string x = drawer.Any(AnyRank);
  const auto op = drawer.OneOf<std::string>({"Add", "Mul", "Sub", "Div", "Add", "Mul", "Pow"});
  if (op == "Pow") {
    drawer.Node("Pow", {x, drawer.Float(drawer.Chance(70) ? 2 : 3)});
    return;
  }
  const std::string constant = ConstantBeside(drawer, x, 0.3, 1.2);
  const bool is_first = drawer.Chance(20) && op != "Div";
  drawer.Node(op, is_first ? Names{constant, x} : Names{x, constant});
}

void WithValue(Drawer& drawer) {
  const std::string x = drawer.Any(AnyRank);
  const Dims dims = drawer.DimsOf(x);
  const std::string other = drawer.Any([&](const Dims& small) { return BroadcastsTo(small, dims); });
  const auto op = drawer.OneOf<std::string>({"Add", "Add", "Mul", "Sub", "Max", "Min", "Sum", "Mean"});
  drawer.Node(op, drawer.Chance(30) ? Names{other, x} : Names{x, other});
}

// Each of the two has a dimension of 1 where the other has none: the result is larger than both.
void OuterSum(Drawer& drawer) {
  const std::string x = drawer.OfRank(2, 3);
  const std::string column = drawer.Node("Unsqueeze", {x, drawer.Int64s({-1})});
  const std::string row = drawer.Node("Unsqueeze", {x, drawer.Int64s({-2})});
  drawer.Node(drawer.OneOf<std::string>({"Sub", "Mul", "Add"}), {column, row});
}

void Gated(Drawer& drawer) {
  const std::string x = drawer.Any(AnyRank);
  const auto op = drawer.OneOf<std::string>({"Sigmoid", "HardSigmoid", "Tanh", "Softplus"});
  drawer.Node("Mul", {x, drawer.Node(op, {x})});
}

void Choice(Drawer& drawer) {
  const std::string x = drawer.Any(AnyRank);
  const Dims dims = drawer.DimsOf(x);
  const bool has_mask = drawer.Chance(50);
  const auto fits = [&](const Dims& small) { return BroadcastsTo(small, dims); };
  std::string mask = has_mask ? drawer.Find(fits, DType::kBool) : "";
  if (mask.empty()) {
    mask = drawer.Node(drawer.OneOf<std::string>({"Greater", "Less", "GreaterOrEqual"}),
                       {x, ConstantBeside(drawer, x, -0.3, 0.3)});
  }
  if (drawer.Chance(30)) mask = drawer.Node("Not", {mask});
  if (drawer.Chance(40)) {
    drawer.Node("Mul", {x, drawer.Node("Cast", {mask}, {{"to", int64_t{1}}})});
  } else {
    const std::string other = drawer.Chance(50) ? drawer.Any(fits) : ConstantBeside(drawer, x, -1, 1);
    drawer.Node("Where", drawer.Chance(50) ? Names{mask, x, other} : Names{mask, other, x});
  }
}

void ThroughIntegers(Drawer& drawer) {
  const std::string x = drawer.Any(AnyRank);
  const std::string rounded = drawer.Node(drawer.OneOf<std::string>({"Floor", "Round", "Ceil"}), {x});
  const std::string cast = drawer.Node("Cast", {rounded}, {{"to", int64_t{7}}});
  drawer.Node("Cast", {drawer.Node("Add", {cast, drawer.Int64s({drawer.Between(-2, 2)})})}, {{"to", int64_t{1}}});
}

// The axes are none of the batch, which mixing productions reduce.
std::vector<int64_t> AxesOf(Drawer& drawer, const Dims& dims) {
  const auto rank = std::ssize(dims);
  const auto last = drawer.Between(1, std::max<int64_t>(rank - 1, 1));
  std::vector<int64_t> axes = {last};
  if (rank > 2 && drawer.Chance(35)) axes = {rank - 2, rank - 1};
  if (drawer.Chance(60)) {
    for (int64_t& axis : axes) axis -= rank;
  }
  return axes;
}

void Reduction(Drawer& drawer) {
  const std::string x = drawer.OfRank(2, 5);
  const auto op = drawer.OneOf<std::string>(
      {"ReduceMean", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceLogSumExp", "ReduceL1"});
  const std::vector<int64_t> axes = AxesOf(drawer, drawer.DimsOf(x));
  Attributes attributes = {{"keepdims", drawer.Between(0, 1)}};
  if (drawer.opset() >= 18 || op == "ReduceSum") {
    drawer.Node(op, {x, drawer.Int64s(axes)}, attributes);
  } else {
    attributes["axes"] = axes;
    drawer.Node(op, {x}, attributes);
  }
}

void AlongAnAxis(Drawer& drawer) {
  const std::string x = drawer.OfRank(2, 5);
  const auto rank = std::ssize(drawer.DimsOf(x));
  const int64_t axis = drawer.Chance(60) ? -1 : drawer.Between(1, rank - 1);
  const auto way = drawer.Between(0, 6);
  if (way < 3) drawer.Node("Softmax", {x}, {{"axis", axis}});
  if (way == 3) drawer.Node("LogSoftmax", {x}, {{"axis", axis}});
  if (way == 4) drawer.Node("CumSum", {x, drawer.Int64s({axis}, {})}, {{"reverse", drawer.Between(0, 1)}});
  if (way == 5) drawer.Nodes("TopK", {x, drawer.Int64s({2})}, 2, {{"axis", axis}});
  if (way == 6) drawer.Node("LpNormalization", {x}, {{"axis", axis}, {"p", int64_t{2}}});
}

void Norm(Drawer& drawer) {
  const std::string x = drawer.OfRank(2, 5);
  const Dims dims = drawer.DimsOf(x);
  const Dim channels = dims[std::min<size_t>(1, dims.size() - 1)], last = dims.back();
  const auto of = [&](const Dim& dim, double low, double high) { return drawer.Floats({dim[0]}, low, high); };
  const auto way = drawer.Between(0, 3);
  if (way < 2 && drawer.opset() >= 17) {
    if (!IsFixed(last)) return drawer.Fail();
    Names inputs = {x, of(last, 0.5, 1.5)};
    if (drawer.Chance(70)) inputs.push_back(of(last, -0.5, 0.5));
    drawer.Node("LayerNormalization", inputs, {{"axis", int64_t{-1}}, {"epsilon", 1e-3f}});
    return;
  }
  if (!IsFixed(channels)) return drawer.Fail();
  if (way % 2 == 0) {
    drawer.Node("BatchNormalization",
                {x, of(channels, 0.5, 1.5), of(channels, -0.5, 0.5), of(channels, -0.3, 0.3), of(channels, 0.5, 1.5)});
  } else {
    drawer.Node("InstanceNormalization", {x, of(channels, 0.5, 1.5), of(channels, -0.5, 0.5)}, {{"epsilon", 1e-2f}});
  }
}

constexpr Production kProductions[] = {
    {8, Function}, {2, FunctionOfOneSign}, {2, Bounds},    {7, WithConstant}, {7, WithValue}, {1, OuterSum}, {2, Gated},
    {2, Choice},   {1, ThroughIntegers},   {4, Reduction}, {4, AlongAnAxis},  {4, Norm},
};

}  // namespace

std::span<const Production> PointwiseProductions() { return kProductions; }

}  // namespace swizzle::random_graphs
