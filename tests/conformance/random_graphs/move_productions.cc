#include <algorithm>
#include <numeric>

#include "tests/conformance/random_graphs/productions.h"

namespace swizzle::random_graphs {
namespace {

using Names = std::vector<std::string>;
using Attributes = std::map<std::string, Attribute>;

std::vector<int64_t> Counting(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// Fixed dimensions are split in two where they can be.
Factors FactorsOf(Drawer& drawer, const Dims& dims) {
  Factors factors;
  for (const Dim& dim : dims) {
    const int64_t half = dim[0] % 4 == 0 ? 4 : dim[0] % 2 == 0 ? 2 : dim[0] % 3 == 0 ? 3 : 1;
    if (IsFixed(dim) && half > 1 && half < dim[0] && drawer.Chance(35)) {
      factors.push_back(drawer.Chance(50) ? FixedDim(half) : FixedDim(dim[0] / half));
      factors.push_back(FixedDim(dim[0] / factors.back()[0]));
    } else {
      factors.push_back(dim);
    }
  }
  return factors;
}

// The elements keep their order and are cut into other dimensions.
void Reshape(Drawer& drawer) {
  const std::string x = drawer.OfRank(2, 5);
  const Factors factors = FactorsOf(drawer, drawer.DimsOf(x));
  std::vector<Factors> dims;
  const int together = drawer.Chance(50) ? 20 : 50;
  for (const Dim& factor : factors) {
    // The batch stays alone, mostly.
    const bool joins = !dims.empty() && drawer.Chance(dims.size() == 1 ? together / 2 : together);
    if (joins) {
      dims.back().push_back(factor);
    } else {
      dims.push_back({factor});
    }
  }
  if (drawer.Chance(10)) dims.push_back({FixedDim(1)});
  drawer.Reshaped(x, dims);
}

// Zeros keep dimensions, as views in PyTorch's exports have them.
void ReshapeKeeping(Drawer& drawer) {
  const std::string x = drawer.OfRank(3, 5);
  const Dims dims = drawer.DimsOf(x);
  const auto way = drawer.Between(0, 2);
  if (way == 0) drawer.Node("Reshape", {x, drawer.Int64s({0, -1})});
  if (way == 1) drawer.Node("Reshape", {x, drawer.Int64s({0, 0, -1})});
  if (way == 2) {
    if (!IsFixed(dims.back()) || dims.back()[0] % 2 != 0) return drawer.Fail();
    std::vector<int64_t> target(dims.size() - 1, 0);
    target.insert(target.end(), {2, dims.back()[0] / 2});
    drawer.Node("Reshape", {x, drawer.Int64s(target)});
  }
}

// A value is reshaped and, once something was computed of it, reshaped back by the sizes that it had.
void ReshapeAndBack(Drawer& drawer) {
  const std::string x = drawer.OfRank(3, 4);
  const Dims dims = drawer.DimsOf(x);
  std::vector<Factors> joined, apart;
  for (const Dim& dim : dims) apart.push_back({dim});
  if (drawer.Chance(50)) {
    joined = {{dims.begin(), dims.end() - 1}, {dims.back()}};
  } else {
    joined = {{dims[0]}, {dims.begin() + 1, dims.end()}};
  }
  const std::string flat = drawer.Reshaped(x, joined);
  std::string y = drawer.Node("Tanh", {flat});
  if (IsFixed(dims.back()) && joined.back().size() == 1) {
    y = drawer.Node("MatMul", {y, drawer.Weights({dims.back()[0], dims.back()[0]}, dims.back()[0])});
  }
  const bool by_shape = drawer.Chance(30);
  const std::string back =
      by_shape ? drawer.Node("Reshape", {y, drawer.Node("Shape", {x})}) : drawer.Reshaped(y, apart);
  if (drawer.Chance(50)) drawer.Node("Add", {back, x});
}

void Turn(Drawer& drawer) {
  const std::string x = drawer.OfRank(2, 5);
  std::vector<int64_t> perm = Counting(std::ssize(drawer.DimsOf(x)));
  const int64_t kept = drawer.Chance(85) && perm.size() > 2 ? 1 : 0;
  for (int64_t i = std::ssize(perm) - 1; i > kept; --i) std::swap(perm[i], perm[drawer.Between(kept, i)]);
  drawer.Node("Transpose", {x}, {{"perm", perm}});
}

void MoreOrFewerDimensions(Drawer& drawer) {
  const auto way = drawer.Between(0, 2);
  const auto is_one = [](const Dim& dim) { return dim == FixedDim(1); };
  if (way == 0) {
    const std::string x = drawer.OfRank(1, 4);
    const auto rank = std::ssize(drawer.DimsOf(x));
    const int64_t axis = drawer.Chance(85) ? drawer.Between(1, rank) : 0;
    drawer.Node("Unsqueeze", {x, drawer.Int64s({drawer.Chance(50) ? axis : axis - rank - 1})});
  } else if (way == 1) {
    const std::string x = drawer.Any([&](const Dims& dims) { return std::ranges::any_of(dims, is_one); });
    const Dims dims = drawer.DimsOf(x);
    const int64_t axis = std::ranges::find_if(dims, is_one) - dims.begin();
    drawer.Node("Squeeze", {x, drawer.Int64s({axis})});
  } else {
    const std::string x = drawer.OfRank(3, 5);
    drawer.Node("Flatten", {x}, {{"axis", drawer.Chance(80) ? int64_t{1} : drawer.Between(0, 3)}});
  }
}

// Draws a dimension behind the batch.
int64_t AxisOf(Drawer& drawer, const Dims& dims) {
  return drawer.Between(1, std::max<int64_t>(std::ssize(dims) - 1, 1));
}

void Cut(Drawer& drawer) {
  const std::string x = drawer.OfRank(2, 5);
  const Dims dims = drawer.DimsOf(x);
  const int64_t axis = AxisOf(drawer, dims);
  const Dim dim = dims[static_cast<size_t>(axis)];
  const std::string axes = drawer.Int64s({axis});
  const auto way = drawer.Between(0, 4);
  constexpr int64_t kEnd = 9223372036854775807;
  if (way == 0) drawer.Node("Slice", {x, drawer.Int64s({1}), drawer.Int64s({kEnd}), axes});
  if (way == 1) drawer.Node("Slice", {x, drawer.Int64s({0}), drawer.Int64s({-1}), axes});
  if (way == 2) drawer.Node("Slice", {x, drawer.Int64s({0}), drawer.Int64s({kEnd}), axes, drawer.Int64s({2})});
  if (way == 3) drawer.Node("Slice", {x, drawer.Int64s({-1}), drawer.Int64s({-kEnd}), axes, drawer.Int64s({-1})});
  if (way != 4) return;
  const std::string half = drawer.Node("Div", {drawer.Size({dim}), drawer.Int64s({2})});
  const std::string low = drawer.Node("Slice", {x, drawer.Int64s({0}), half, axes});
  const std::string high = drawer.Node("Slice", {x, half, drawer.Int64s({kEnd}), axes});
  if (drawer.Chance(50)) drawer.Node("Concat", {drawer.Node("Neg", {high}), low}, {{"axis", axis}});
}

void Parts(Drawer& drawer) {
  const std::string x = drawer.OfRank(2, 4);
  const Dims dims = drawer.DimsOf(x);
  const int64_t axis = AxisOf(drawer, dims), size = dims[static_cast<size_t>(axis)][0];
  if (!IsFixed(dims[static_cast<size_t>(axis)]) || size < 2) return drawer.Fail();
  const int64_t first = drawer.Chance(60) && size % 2 == 0 ? size / 2 : drawer.Between(1, size - 1);
  const Names parts = drawer.Nodes("Split", {x, drawer.Int64s({first, size - first})}, 2, {{"axis", axis}});
  if (first * 2 == size && drawer.Chance(60)) drawer.Node("Mul", {parts[0], drawer.Node("Sigmoid", {parts[1]})});
}

void Join(Drawer& drawer) {
  const std::string x = drawer.OfRank(2, 5);
  const Dims dims = drawer.DimsOf(x);
  const int64_t axis = AxisOf(drawer, dims);
  const auto fits = [&](const Dims& other) {
    if (other.size() != dims.size()) return false;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (static_cast<int64_t>(d) != axis && other[d] != dims[d]) return false;
    }
    return true;
  };
  Names joined = {x, drawer.Any(fits)};
  if (drawer.Chance(30)) std::swap(joined[0], joined[1]);
  if (drawer.Chance(20)) joined.push_back(drawer.Any(fits));
  drawer.Node("Concat", joined, {{"axis", drawer.Chance(50) ? axis : axis - std::ssize(dims)}});
}

// A token is put before all others, as in vision transformers.
void JoinExpanded(Drawer& drawer) {
  const std::string x = drawer.Any([](const Dims& dims) { return dims.size() == 3 && IsFixed(dims[2]); });
  const Dims dims = drawer.DimsOf(x);
  const std::string token = drawer.Floats({1, 1, dims[2][0]}, -1, 1);
  const std::string target = drawer.Target({{dims[0]}, {FixedDim(1)}, {dims[2]}}, false);
  drawer.Node("Concat", {drawer.Node("Expand", {token, target}), x}, {{"axis", int64_t{1}}});
}

void Choose(Drawer& drawer) {
  const std::string x = drawer.OfRank(2, 4);
  const Dims dims = drawer.DimsOf(x);
  const int64_t axis = AxisOf(drawer, dims), size = dims[static_cast<size_t>(axis)][0];
  const int64_t least = *std::ranges::min_element(dims[static_cast<size_t>(axis)]);
  const auto way = drawer.Between(0, 3);
  const int64_t index = drawer.Between(-1, std::min(size, least) - 1);
  if (way < 2) drawer.Node("Gather", {x, drawer.Int64s({index}, {})}, {{"axis", axis}});
  if (way == 2) drawer.Node("Gather", {x, drawer.Int64s({0, index, 1})}, {{"axis", axis}});
  if (way == 3) drawer.Node("Gather", {x, drawer.Int64s({0, 1, 1, 0}, {2, 2})}, {{"axis", axis}});
}

void Repeat(Drawer& drawer) {
  const std::string x = drawer.OfRank(2, 4);
  const Dims dims = drawer.DimsOf(x);
  const auto axis = static_cast<size_t>(AxisOf(drawer, dims));
  std::vector<int64_t> times(dims.size(), 1);
  if (drawer.Chance(50)) {
    times[axis] = 2;
    drawer.Node("Tile", {x, drawer.Int64s(times)});
  } else if (drawer.Chance(50) && dims[axis] == FixedDim(1)) {
    times[axis] = 3;
    drawer.Node("Expand", {x, drawer.Int64s(times)});
  } else {
    // Grouped queries repeat keys so.
    const std::string apart = drawer.Node("Unsqueeze", {x, drawer.Int64s({static_cast<int64_t>(axis) + 1})});
    std::vector<Factors> larger, joined;
    for (size_t d = 0; d < dims.size(); ++d) {
      larger.push_back({dims[d]});
      joined.push_back({dims[d]});
      if (d == axis) larger.push_back({FixedDim(2)});
      if (d == axis) joined.back().push_back(FixedDim(2));
    }
    drawer.Reshaped(drawer.Node("Expand", {apart, drawer.Target(larger, false)}), joined);
  }
}

void Pad(Drawer& drawer) {
  const std::string x = drawer.OfRank(3, 4);
  const auto rank = drawer.DimsOf(x).size();
  std::vector<int64_t> pads(2 * rank, 0);
  pads[rank - 1] = drawer.Between(0, 2);
  pads[2 * rank - 2] = drawer.Between(0, 1);
  pads[2 * rank - 1] = drawer.Between(0, 1);
  const auto mode = drawer.OneOf<std::string>({"constant", "constant", "reflect", "edge"});
  Names inputs = {x, drawer.Int64s(pads)};
  if (mode == "constant" && drawer.Chance(50)) inputs.push_back(drawer.Float(drawer.Chance(60) ? 0 : 0.5));
  drawer.Node("Pad", inputs, {{"mode", mode}});
}

void Resize(Drawer& drawer) {
  const std::string x = drawer.OfRank(4, 4);
  const Dims dims = drawer.DimsOf(x);
  const bool is_nearest = drawer.Chance(60);
  Attributes attributes = {{"mode", std::string(is_nearest ? "nearest" : "linear")}};
  attributes["coordinate_transformation_mode"] =
      drawer.OneOf<std::string>({"asymmetric", "half_pixel", is_nearest ? "asymmetric" : "align_corners"});
  if (is_nearest) attributes["nearest_mode"] = std::string("floor");
  if (drawer.Chance(60)) {
    const std::string scales =
        drawer.Node("Cast", {drawer.Int64s({1, 1, 2, drawer.Chance(70) ? 2 : 1})}, {{"to", int64_t{1}}});
    drawer.Node("Resize", {x, "", scales}, attributes);
  } else {
    const std::string sizes =
        drawer.Target({{dims[0]}, {dims[1]}, {dims[2], FixedDim(2)}, {dims[3], FixedDim(2)}}, false);
    drawer.Node("Resize", {x, "", "", sizes}, attributes);
  }
}

void Blocks(Drawer& drawer) {
  const std::string x = drawer.OfRank(4, 4);
  const bool to_depth = drawer.Chance(40);
  Attributes attributes = {{"blocksize", int64_t{2}}};
  if (!to_depth && drawer.Chance(40)) attributes["mode"] = std::string("CRD");
  drawer.Node(to_depth ? "SpaceToDepth" : "DepthToSpace", {x}, attributes);
}

// Positions are counted as far as there are tokens, and choose rows of a table.
void Positions(Drawer& drawer) {
  const std::string x = drawer.Any([&](const Dims& dims) { return dims.size() == 3 && IsFixed(dims[2]); });
  const Dims dims = drawer.DimsOf(x);
  const std::string length = drawer.Node("Squeeze", {drawer.Size({dims[1]}), drawer.Int64s({0})});
  const std::string range = drawer.Node("Range", {drawer.Int64s({0}, {}), length, drawer.Int64s({1}, {})});
  const auto way = drawer.Between(0, 2);
  if (way == 0) {
    const std::string table = drawer.Floats({256, dims[2][0]}, -1, 1);
    drawer.Node("Add", {x, drawer.Node("Gather", {table, range}, {{"axis", int64_t{0}}})});
  } else if (way == 1) {
    const std::string real =
        drawer.Node("Mul", {drawer.Node("Cast", {range}, {{"to", int64_t{1}}}), drawer.Float(0.1)});
    drawer.Node("Mul", {x, drawer.Node("Cos", {drawer.Node("Unsqueeze", {real, drawer.Int64s({1})})})});
  } else {
    const std::string table = drawer.Floats({1, 256, dims[2][0]}, -1, 1);
    const std::string slice =
        drawer.Node("Slice", {table, drawer.Int64s({0}), drawer.Size({dims[1]}), drawer.Int64s({1})});
    drawer.Node("Add", {x, slice});
  }
}

void Filled(Drawer& drawer) {
  const std::string x = drawer.OfRank(2, 4);
  const std::string shape = drawer.Node("Shape", {x});
  const float value = 0.7f;
  const std::string filled = drawer.Node("ConstantOfShape", {shape}, {{"value", Tensor::Floats({1}, {&value, 1})}});
  drawer.Node(drawer.OneOf<std::string>({"Add", "Mul"}), {x, filled});
}

// A value of whole numbers becomes an embedding, or what masks are made of.
void FromIds(Drawer& drawer) {
  const std::string ids = drawer.Any([](const Dims& dims) { return dims.size() == 2; }, DType::kInt64);
  const auto way = drawer.Between(0, 2);
  if (way == 0) drawer.Node("Gather", {drawer.Floats({16, 8}, -1, 1), ids}, {{"axis", int64_t{0}}});
  if (way == 1) drawer.Node("Cast", {drawer.Node("Equal", {ids, drawer.Int64s({1}, {})})}, {{"to", int64_t{1}}});
  if (way == 2) drawer.Node("Not", {drawer.Node("Equal", {ids, drawer.Int64s({0}, {})})});
}

constexpr Production kProductions[] = {
    {6, Reshape},
    {2, ReshapeKeeping},
    {4, ReshapeAndBack},
    {5, Turn},
    {4, MoreOrFewerDimensions},
    {4, Cut},
    {3, Parts},
    {5, Join},
    {2, JoinExpanded},
    {3, Choose},
    {3, Repeat},
    {2, Pad},
    {2, Resize},
    {1, Blocks},
    {2, Positions},
    {1, Filled},
    {2, FromIds},
};

}  // namespace

std::span<const Production> MoveProductions() { return kProductions; }

}  // namespace swizzle::random_graphs
