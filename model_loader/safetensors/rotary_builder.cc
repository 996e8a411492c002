#include "model_loader/safetensors/rotary_builder.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace swizzle {

// A power of theta that grew is the power of theta times that of what it grew by.
int RotaryBuilder::AddStretched(const std::string& place, int frequencies, int positions, int64_t size,
                                const RotaryStretch& stretch) {
  std::vector<float> exponents;
  for (int64_t i = 0; i < size; i += 2) {
    exponents.push_back(i == 0 ? 0.0f : -static_cast<float>(i) / static_cast<float>(size - 2));
  }
  const int by = graph_.AddConstant(place + ".exponents", Tensor::Floats({1, size / 2, 1}, exponents));
  const int length = Add(place, "Cast", {Add(place, "Shape", {positions}, {}, DType::kInt64)}, {{"to", kOnnxFloat}});
  const float slope = stretch.factor / static_cast<float>(stretch.trained);
  const int line = Add(place + ".line", "Mul", {length, Scalar(place + ".slope", slope)});
  const int ratio = Add(place, "Sub", {line, Scalar(place + ".offset", stretch.factor - 1.0f)});
  const int grown = Add(place, "Max", {ratio, Scalar(place + ".one", 1.0f)});
  return Add(place, "Mul", {frequencies, Add(place, "Pow", {grown, by})});
}

RotaryBuilder::Angles RotaryBuilder::AddAngles(const std::string& place, int positions, float theta, int64_t size,
                                               RotaryOrder order, const RotaryStretch& stretch) {
  std::vector<float> frequencies;  // in FP32, as transformers computes them
  for (int64_t i = 0; i < size; i += 2) {
    frequencies.push_back(1.0f / std::pow(theta, static_cast<float>(i) / static_cast<float>(size)));
  }
  int by = graph_.AddConstant(place + ".frequencies", Tensor::Floats({1, size / 2, 1}, frequencies));
  if (stretch.factor > 0.0f) by = AddStretched(place + ".stretched", by, positions, size, stretch);
  const int row = Add(place, "Unsqueeze", {positions, List(place + ".row", {0, 1})}, {}, DType::kInt64);
  const int product = Add(place, "MatMul", {by, Add(place, "Cast", {row}, {{"to", kOnnxFloat}})});
  const int half = Add(place, "Transpose", {product}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  int angles;
  if (order == RotaryOrder::kHalves) {
    angles = Add(place, "Concat", {half, half}, {{"axis", int64_t{-1}}});
  } else {
    const int column = Add(place + ".pairs", "Unsqueeze", {half, List(place + ".column", {-1})});
    const int pairs = Add(place + ".pairs", "Concat", {column, column}, {{"axis", int64_t{-1}}});
    angles = Add(place + ".pairs", "Reshape", {pairs, List(place + ".flat", {0, 0, size})});
  }
  const int axis = List(place + ".heads", {1});
  const int cosines = Add(place + ".cosines", "Unsqueeze", {Add(place, "Cos", {angles}), axis});
  const int sines = Add(place + ".sines", "Unsqueeze", {Add(place, "Sin", {angles}), axis});
  return {cosines, sines, size, order};
}

int RotaryBuilder::AddRotation(const std::string& name, int x, const Angles& angles) {
  const int straight = Add(name, "Mul", {x, angles.cosines});
  const std::string place = name + ".turned";
  const int turned = angles.order == RotaryOrder::kHalves ? AddTurnedHalves(place, x, angles.size)
                                                          : AddTurnedPairs(place, x, angles.size);
  return Add(name, "Add", {straight, Add(place, "Mul", {turned, angles.sines})});
}

// The second half, negated, then the first.
int RotaryBuilder::AddTurnedHalves(const std::string& name, int x, int64_t size) {
  const std::string first = name + ".first", second = name + ".second";
  const int begin = List(first + ".begin", {0}), middle = List(first + ".end", {size / 2});
  const int end = List(second + ".end", {std::numeric_limits<int64_t>::max()});
  const int axis = List(name + ".axis", {3}), step = List(name + ".step", {1});
  const int before = Add(first, "Slice", {x, begin, middle, axis, step});
  const int behind = Add(second, "Slice", {x, middle, end, axis, step});
  return Add(name, "Concat", {Add(name, "Neg", {behind}), before}, {{"axis", int64_t{-1}}});
}

// Of each pair the second, negated, then the first.
int RotaryBuilder::AddTurnedPairs(const std::string& name, int x, int64_t size) {
  const std::string first = name + ".first", second = name + ".second";
  const int end = List(name + ".end", {std::numeric_limits<int64_t>::max()});
  const int axis = List(name + ".axis", {3}), step = List(name + ".step", {2}), column = List(name + ".column", {-1});
  const int evens = Add(first, "Slice", {x, List(first + ".begin", {0}), end, axis, step});
  const int odds = Add(second, "Slice", {x, List(second + ".begin", {1}), end, axis, step});
  const int before = Add(second, "Unsqueeze", {Add(name, "Neg", {odds}), column});
  const int pairs = Add(name, "Concat", {before, Add(first, "Unsqueeze", {evens, column})}, {{"axis", int64_t{-1}}});
  return Add(name, "Reshape", {pairs, List(name + ".flat", {0, 0, 0, size})});
}

RotaryBuilder::Pairs RotaryBuilder::AddPairs(const std::string& place, int positions) {
  const int keys = Add(place + ".keys", "Unsqueeze", {positions, List(place + ".row", {0})}, {}, DType::kInt64);
  const int queries =
      Add(place + ".queries", "Transpose", {keys}, {{"perm", std::vector<int64_t>{1, 0}}}, DType::kInt64);
  return {keys, queries};
}

int RotaryBuilder::AddHidden(const std::string& place, int visible, int mask) {
  const int of_heads = Add(place, "Unsqueeze", {visible, List(place + ".heads", {0, 1})}, {}, DType::kBool);
  const int hidden = Add(place, "Not", {of_heads}, {}, DType::kBool);
  return Add(place, "Where", {hidden, Scalar(place + ".lowest", std::numeric_limits<float>::lowest()), mask});
}

int RotaryBuilder::AddWindow(const std::string& place, int positions, int64_t reach, int mask) {
  const Pairs of = AddPairs(place, positions);
  const int distances = Add(place, "Sub", {of.keys, of.queries}, {}, DType::kInt64);
  const int away = Add(place, "Abs", {distances}, {}, DType::kInt64);
  const int near = Add(place, "LessOrEqual", {away, Number(place + ".reach", reach)}, {}, DType::kBool);
  return AddHidden(place, near, mask);
}

int RotaryBuilder::AddCausal(const std::string& place, int positions, int mask) {
  const Pairs of = AddPairs(place, positions);
  return AddHidden(place, Add(place, "LessOrEqual", {of.keys, of.queries}, {}, DType::kBool), mask);
}

StatusOr<RotaryBuilder::PackedHeads> RotaryBuilder::AddPackedHeads(const std::string& name, const Linear& all,
                                                                   int64_t head_size) {
  if (all.outputs % (3 * head_size) != 0) {
    return InvalidArgument("the tensor '", name, ".weight' has ", all.outputs,
                           " rows, which are no queries, keys and values of whole heads of ", head_size);
  }
  const int target = List(name + ".heads", {0, 0, 3, all.outputs / (3 * head_size), head_size});
  const int apart = Add(name, "Reshape", {all.value, target});
  const int moved = Add(name, "Transpose", {apart}, {{"perm", std::vector<int64_t>{0, 3, 2, 1, 4}}});
  const std::vector<int> parts = AddSplit(name, moved, {1, 1, 1}, 2);
  const int axis = List(name + ".axis", {2});
  const auto squeezed = [&](const char* what, int part) { return Add(name + what, "Squeeze", {part, axis}); };
  return PackedHeads{squeezed(".query", parts[0]), squeezed(".key", parts[1]), squeezed(".value", parts[2])};
}

int RotaryBuilder::AddScaledAttention(const std::string& name, const PackedHeads& heads, int mask, int64_t head_size) {
  const std::string scores = name + ".scores";
  const int keys = Add(scores, "Transpose", {heads.key}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  const int scale = Scalar(scores + ".scale", 1.0f / std::sqrt(static_cast<float>(head_size)));
  const int scaled = Add(scores, "Mul", {Add(scores, "MatMul", {heads.query, keys}), scale});
  const int share = Add(scores, "Softmax", {Add(scores, "Add", {scaled, mask})}, {{"axis", int64_t{-1}}});
  return Add(name + ".context", "MatMul", {share, heads.value});
}

}  // namespace swizzle
