#include <algorithm>
#include <numeric>

#include "tests/conformance/random_graphs/productions.h"

namespace swizzle::random_graphs {
namespace {

std::string OfBatch(Drawer& drawer, size_t least, size_t most) {
  return drawer.Any(
      [&](const Dims& dims) { return dims.size() >= least && dims.size() <= most && dims[0] == drawer.rows(); });
}

void AlongTheBatch(Drawer& drawer) {
  const std::string x = OfBatch(drawer, 1, 4);
  const auto way = drawer.Between(0, 4);
  if (way == 0) drawer.Node("Softmax", {x}, {{"axis", int64_t{0}}});
  if (way == 1) drawer.Node("CumSum", {x, drawer.Int64s({0}, {})}, {{"exclusive", drawer.Between(0, 1)}});
  if (way == 2) drawer.Nodes("TopK", {x, drawer.Int64s({1})}, 2, {{"axis", int64_t{0}}});
  if (way == 3) {
    const std::string sum = drawer.Node("ReduceSum", {x, drawer.Int64s({0})}, {{"keepdims", drawer.Between(0, 1)}});
    drawer.Node("Add", {x, sum});
  }
  if (way == 4) {
    const std::string least = drawer.Node("ReduceSum", {x}, {{"keepdims", drawer.Between(0, 1)}});
    drawer.Node("Mul", {x, drawer.Node("Tanh", {least})});
  }
}

// Rows stand backwards or one further on, or one is there for all.
void RowsElsewhere(Drawer& drawer) {
  const std::string x = OfBatch(drawer, 1, 4);
  constexpr int64_t kEnd = 9223372036854775807;
  const auto slice = [&](int64_t from, int64_t to, int64_t step) {
    return drawer.Node("Slice",
                       {x, drawer.Int64s({from}), drawer.Int64s({to}), drawer.Int64s({0}), drawer.Int64s({step})});
  };
  const auto way = drawer.Between(0, 4);
  if (way == 0) slice(-1, -kEnd, -1);
  if (way == 1) drawer.Node("Concat", {slice(-1, kEnd, 1), slice(0, -1, 1)}, {{"axis", int64_t{0}}});
  if (way == 2) drawer.Node("Add", {x, slice(0, 1, 1)});
  if (way == 3) drawer.Node("Mul", {x, drawer.Node("Gather", {x, drawer.Int64s({-1})}, {{"axis", int64_t{0}}})});
  if (way == 4) drawer.Node("Concat", {x, drawer.Node("Neg", {x})}, {{"axis", int64_t{0}}});
}

// A dimension trades places with the batch, and something is computed along it before they trade back.
void TurnedBatch(Drawer& drawer) {
  const std::string x = OfBatch(drawer, 2, 4);
  std::vector<int64_t> perm(drawer.DimsOf(x).size());
  std::iota(perm.begin(), perm.end(), 0);
  const auto other = static_cast<size_t>(drawer.Between(1, std::ssize(perm) - 1));
  std::swap(perm[0], perm[other]);
  std::string y = drawer.Node("Transpose", {x}, {{"perm", perm}});
  const auto way = drawer.Between(0, 5);
  if (way == 0) y = drawer.Node("Softmax", {y}, {{"axis", int64_t{-1}}});
  if (way == 5) {
    // The window has one dimension or two, as many as stand last.
    const auto rank = static_cast<size_t>(std::max<int64_t>(std::ssize(perm) - 2, 1));
    y = drawer.Node("MaxPool", {y},
                    {{"kernel_shape", std::vector<int64_t>(rank, 3)}, {"pads", std::vector<int64_t>(2 * rank, 1)}});
  }
  if (way == 1) y = drawer.Node("MatMul", {y, drawer.Node("Tanh", {x})});
  if (way == 2) y = drawer.Node("CumSum", {y, drawer.Int64s({static_cast<int64_t>(other)}, {})});
  if (way == 3) y = drawer.Node("Tanh", {y});
  if (drawer.Chance(70)) drawer.Node("Transpose", {y}, {{"perm", perm}});
}

// The batch is the second dimension when elements are cut elsewhere: it takes half of the first, or stays as it is.
void CutBeforeTheBatch(Drawer& drawer) {
  const std::string x = drawer.Any([&](const Dims& dims) {
    return dims.size() >= 2 && dims.size() <= 4 && dims[0] == drawer.rows() && IsFixed(dims[1]) && dims[1][0] % 2 == 0;
  });
  const Dims dims = drawer.DimsOf(x);
  std::vector<int64_t> perm(dims.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[0], perm[1 % perm.size()]);
  const Dim half = FixedDim(dims[1 % dims.size()][0] / 2), two = FixedDim(2);
  const bool takes_half = drawer.Chance(60);
  std::vector<Factors> cut = {takes_half ? Factors{half} : Factors{half, two}, {dims[0]}},
                       apart = {{dims[0]}, {half, two}};
  if (takes_half) cut[1].push_back(two);
  for (size_t d = 2; d < dims.size(); ++d) {
    cut.push_back({dims[d]});
    apart.push_back({dims[d]});
  }
  const std::string turned = drawer.Node("Transpose", {x}, {{"perm", perm}});
  const std::string regrouped = drawer.Node("Tanh", {drawer.Reshaped(turned, cut)});
  drawer.Reshaped(drawer.Node("Transpose", {regrouped}, {{"perm", perm}}), apart);
}

// The same elements are cut elsewhere: rows begin within other rows.
void CutAcross(Drawer& drawer) {
  const std::string x = OfBatch(drawer, 2, 4);
  const Dims dims = drawer.DimsOf(x);
  std::vector<Factors> target;
  for (const Dim& dim : dims) target.push_back({dim});
  std::swap(target[0], target[static_cast<size_t>(drawer.Between(1, std::ssize(dims) - 1))]);
  if (drawer.Chance(40)) {
    // The batch is the last dimension.
    target = {Factors(dims.begin() + 1, dims.end()), {dims[0]}};
  }
  std::string y = drawer.Reshaped(x, target);
  if (drawer.Chance(40)) y = drawer.Node("Softmax", {y}, {{"axis", int64_t{-1}}});
  std::vector<Factors> back;
  for (const Dim& dim : dims) back.push_back({dim});
  if (drawer.Chance(70)) drawer.Reshaped(y, back);
}

// What is added is as large as the batch, but of no request: its rows are counted.
void OfCount(Drawer& drawer) {
  const std::string x = OfBatch(drawer, 1, 3);
  const Dims dims = drawer.DimsOf(x);
  const std::string size = drawer.Size({dims[0]});
  const auto way = drawer.Between(0, 2);
  if (way == 0) {
    const std::string number = drawer.Node("Cast", {size}, {{"to", int64_t{1}}});
    drawer.Node("Div", {x, number});
    return;
  }
  const std::string count = drawer.Node("Squeeze", {size, drawer.Int64s({0})});
  const std::string range = drawer.Node("Range", {drawer.Int64s({0}, {}), count, drawer.Int64s({1}, {})});
  std::string real = drawer.Node("Cast", {range}, {{"to", int64_t{1}}});
  std::vector<Factors> column = {{dims[0]}};
  for (size_t d = 1; d < dims.size(); ++d) column.push_back({FixedDim(1)});
  if (way == 1) real = drawer.Reshaped(real, column);
  drawer.Node("Add", {x, real});
}

// Rows are scored against rows, as in contrastive models.
void AllPairs(Drawer& drawer) {
  const std::string x = OfBatch(drawer, 2, 2);
  const std::string turned = drawer.Node("Transpose", {x}, {{"perm", std::vector<int64_t>{1, 0}}});
  const std::string scores = drawer.Node("MatMul", {x, turned});
  if (drawer.Chance(60)) drawer.Node("MatMul", {drawer.Node("Softmax", {scores}, {{"axis", int64_t{-1}}}), x});
}

// There are twice as many rows, or one more; some become as many again.
void MoreRows(Drawer& drawer) {
  const std::string x = OfBatch(drawer, 2, 3);
  const Dims dims = drawer.DimsOf(x);
  std::vector<int64_t> times(dims.size(), 1);
  times[0] = 2;
  const auto way = drawer.Between(0, 3);
  if (way == 0) {
    std::vector<int64_t> pads(2 * dims.size(), 0);
    pads[dims.size()] = 1;
    drawer.Node("Pad", {x, drawer.Int64s(pads)});
    return;
  }
  const std::string twice = way == 1 ? drawer.Node("Concat", {x, drawer.Node("Tanh", {x})}, {{"axis", int64_t{0}}})
                                     : drawer.Node("Tile", {x, drawer.Int64s(times)});
  std::vector<Factors> apart = {{FixedDim(2)}};
  for (const Dim& dim : dims) apart.push_back({dim});
  if (drawer.Chance(50)) std::swap(apart[0], apart[1]);
  const std::string pairs = drawer.Reshaped(twice, apart);
  drawer.Node("ReduceSum", {pairs, drawer.Int64s({drawer.Between(0, 1)})}, {{"keepdims", int64_t{0}}});
}

// The batch is where operators have their sequence, their channels or what they sum over.
void RowsAsSomethingElse(Drawer& drawer) {
  const auto way = drawer.Between(0, 3);
  const std::string x = OfBatch(drawer, way == 0 ? 3 : 2, way == 0 ? 3 : 2);
  const Dims dims = drawer.DimsOf(x);
  const int64_t channels = dims.back()[0];
  if (way == 0) {
    drawer.Node("RNN", {x, drawer.Weights({1, 4, channels}, channels), drawer.Weights({1, 4, 4}, 4)},
                {{"hidden_size", int64_t{4}}});
  } else if (way == 1) {
    drawer.Node("Einsum", {x, x}, {{"equation", drawer.OneOf<std::string>({"ij,kj->ik", "ij,ik->jk", "ij,kj->ij"})}});
  } else if (way == 2) {
    drawer.Node("Gemm", {x, drawer.Node("Tanh", {x})}, {{drawer.Chance(50) ? "transA" : "transB", int64_t{1}}});
  } else {
    const std::string planes = drawer.Node("Unsqueeze", {x, drawer.Int64s({0, 1})});
    const std::string y =
        drawer.Node("Conv", {planes, drawer.Weights({1, 1, 3, 3}, 9)}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
    drawer.Node("Squeeze", {y, drawer.Int64s({0, 1})});
  }
}

constexpr Production kProductions[] = {
    {9, AlongTheBatch}, {9, RowsElsewhere}, {9, TurnedBatch}, {9, CutAcross},           {6, CutBeforeTheBatch},
    {6, OfCount},       {3, AllPairs},      {6, MoreRows},    {6, RowsAsSomethingElse},
};

}  // namespace

std::span<const Production> MixingProductions() { return kProductions; }

}  // namespace swizzle::random_graphs
