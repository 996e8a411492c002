#include "model_loader/semantics/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/evaluate_products.h"
#include "model_loader/semantics/given_axes.h"
#include "model_loader/semantics/reshape.h"
#include "model_loader/semantics/slice_arguments.h"
#include "model_loader/semantics/slices.h"
#include "model_loader/semantics/strides.h"

namespace swizzle {
namespace {

using Inputs = std::span<const Elements* const>;
using Result = StatusOr<std::optional<Elements>>;

const Elements* InputAt(Inputs inputs, size_t i) { return i < inputs.size() ? inputs[i] : nullptr; }

int64_t CountOf(const Shape& shape) { return ProductOf(shape, 0, static_cast<int64_t>(shape.size())); }

// Reads `source` through an affine index: element (i0, i1, ...) of `shape` is at offset + sum(i * steps).
std::vector<Scalar> Gathered(const std::vector<Scalar>& source, const Shape& shape, int64_t offset,
                             const std::vector<int64_t>& steps) {
  std::vector<Scalar> scalars;
  const int64_t count = CountOf(shape);
  scalars.reserve(static_cast<size_t>(count));
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t left = count; left > 0; --left) {
    scalars.push_back(source[static_cast<size_t>(offset)]);
    for (size_t d = shape.size(); d-- > 0;) {
      offset += steps[d];
      if (++index[d] < shape[d]) break;
      offset -= index[d] * steps[d];
      index[d] = 0;
    }
  }
  return scalars;
}

Status NeedsNumbers(const Node& node, const char* what) {
  return InvalidArgument(Describe(node), ": its ", what, " must be a list of integers that don't depend on the batch");
}

// The integers of a 1-dimensional (or scalar) input.
StatusOr<std::vector<int64_t>> IntegersOf(const Node& node, const Elements& input, const char* what) {
  if (IsFloating(input.dtype) || input.shape.size() > 1 || input.DependsOnBatch()) return NeedsNumbers(node, what);
  std::vector<int64_t> integers;
  for (const Scalar& scalar : input.scalars) integers.push_back(scalar.whole);
  return integers;
}

Result EvaluateGather(const Node& node, Inputs inputs) {
  const Elements& data = *inputs[0];
  const Elements& indices = *inputs[1];
  SWIZZLE_ASSIGN_OR_RETURN(int64_t axis, IntAttribute(node, "axis", 0));
  SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(node, axis, static_cast<int64_t>(data.shape.size())));
  if (IsFloating(indices.dtype) || indices.DependsOnBatch()) return NeedsNumbers(node, "indices");
  const auto split = data.shape.begin() + axis;
  const int64_t outer = ProductOf(data.shape, 0, axis);
  const int64_t inner = ProductOf(data.shape, axis + 1, static_cast<int64_t>(data.shape.size()));
  const int64_t length = *split;
  Elements result{data.dtype, Shape(data.shape.begin(), split), {}};
  result.shape.insert(result.shape.end(), indices.shape.begin(), indices.shape.end());
  result.shape.insert(result.shape.end(), split + 1, data.shape.end());
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(result.shape));
  if (elements > kMaxEvaluatedElements) return std::nullopt;
  for (int64_t o = 0; o < outer; ++o) {
    for (const Scalar& scalar : indices.scalars) {
      const int64_t index = scalar.whole < 0 ? scalar.whole + length : scalar.whole;
      if (index < 0 || index >= length) {
        return InvalidArgument(Describe(node), ": index ", scalar.whole, " is out of range for ", length, " elements");
      }
      const auto first = data.scalars.begin() + (o * length + index) * inner;
      result.scalars.insert(result.scalars.end(), first, first + inner);
    }
  }
  return result;
}

Result EvaluateConcat(const Node& node, Inputs inputs) {
  const auto has_input = [](const Elements* input) { return input != nullptr; };
  if (!std::all_of(inputs.begin(), inputs.end(), has_input)) return InvalidArgument(Describe(node), " lacks an input");
  const Shape& first = inputs[0]->shape;
  SWIZZLE_ASSIGN_OR_RETURN(int64_t axis, IntAttribute(node, "axis", std::numeric_limits<int64_t>::max()));
  SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(node, axis, static_cast<int64_t>(first.size())));
  Elements result{inputs[0]->dtype, first, {}};
  result.shape[axis] = 0;
  for (const Elements* input : inputs) {
    if (input->shape.size() != first.size() || input->dtype != result.dtype) {
      return InvalidArgument(Describe(node), ": its inputs differ in rank or type");
    }
    Shape joined = input->shape;
    joined[axis] += result.shape[axis];
    if (joined[axis] > kMaxEvaluatedElements) return std::nullopt;
    result.shape[axis] = joined[axis];
    if (joined != result.shape) return InvalidArgument(Describe(node), ": its inputs differ in shape");
  }
  if (CountOf(result.shape) > kMaxEvaluatedElements) return std::nullopt;
  const int64_t outer = ProductOf(first, 0, axis);
  for (int64_t o = 0; o < outer; ++o) {
    for (const Elements* input : inputs) {
      const int64_t length = static_cast<int64_t>(input->scalars.size()) / outer;
      const auto begin = input->scalars.begin() + o * length;
      result.scalars.insert(result.scalars.end(), begin, begin + length);
    }
  }
  return result;
}

// Slice's arguments among what is known.
struct KnownInputs {
  using Place = int64_t;
  const Node& node;
  Inputs inputs;

  bool Has(size_t i) const { return InputAt(inputs, i) != nullptr; }
  StatusOr<std::vector<int64_t>> Integers(size_t i, const char* what) const {
    return IntegersOf(node, *inputs[i], what);
  }
  StatusOr<std::vector<int64_t>> Places(size_t i, const char* what) const { return Integers(i, what); }
  Status Named(const Status& status) const { return Annotate(status, Describe(node)); }
};

Result EvaluateSlice(const Node& node, Inputs inputs) {
  const Elements& data = *inputs[0];
  const int64_t rank = static_cast<int64_t>(data.shape.size());
  SWIZZLE_ASSIGN_OR_RETURN(const auto slice, SliceArgumentsOf(node, rank, KnownInputs{node, inputs}));
  Elements result{data.dtype, data.shape, {}};
  std::vector<int64_t> strides = DenseStrides(data.shape);
  const std::vector<int64_t> data_strides = strides;
  int64_t offset = 0;
  for (size_t i = 0; i < slice.axes.size(); ++i) {
    const int64_t axis = slice.axes[i];
    const auto range = ClampSlice(slice.starts[i], slice.ends[i], slice.steps[i], data.shape[axis]);
    if (!range.ok()) return Annotate(range.status(), Describe(node));
    result.shape[axis] = range->count;
    if (range->count > 0) offset += range->start * data_strides[axis];
    strides[axis] = range->count > 1 ? data_strides[axis] * range->step : 0;
  }
  result.scalars = Gathered(data.scalars, result.shape, offset, strides);
  return result;
}

Result EvaluateTranspose(const Node& node, Inputs inputs) {
  const Elements& data = *inputs[0];
  const size_t rank = data.shape.size();
  SWIZZLE_ASSIGN_OR_RETURN(const auto perm, PermutationOf(node, rank));
  const std::vector<int64_t> data_strides = DenseStrides(data.shape);
  Elements result{data.dtype, {}, {}};
  std::vector<int64_t> strides;
  for (int64_t axis : perm) {
    result.shape.push_back(data.shape[axis]);
    strides.push_back(data_strides[axis]);
  }
  result.scalars = Gathered(data.scalars, result.shape, 0, strides);
  return result;
}

Result EvaluateSqueeze(const Node& node, Inputs inputs) {
  Elements result = *inputs[0];
  const int64_t rank = static_cast<int64_t>(result.shape.size());
  SWIZZLE_ASSIGN_OR_RETURN(const auto axes, AxesOf(node, InputAt(inputs, 1), rank));
  auto kept = SqueezedDimensions(result.shape, axes, [](int64_t dimension) { return dimension == 1; });
  if (!kept.ok()) return Annotate(kept.status(), Describe(node));
  result.shape = *std::move(kept);
  return result;
}

Result EvaluateUnsqueeze(const Node& node, Inputs inputs) {
  Elements result = *inputs[0];
  const Elements* input = InputAt(inputs, 1);
  SWIZZLE_ASSIGN_OR_RETURN(const auto given, AxesGiven(node, input));
  if (!given) return InvalidArgument(Describe(node), " has no axes");
  const int64_t rank = static_cast<int64_t>(result.shape.size() + given->size());
  SWIZZLE_ASSIGN_OR_RETURN(const auto axes, AxesOf(node, input, rank));
  result.shape = UnsqueezedDimensions(std::move(result.shape), *axes);
  return result;
}

Result EvaluateReshape(const Node& node, Inputs inputs) {
  SWIZZLE_ASSIGN_OR_RETURN(Shape shape, IntegersOf(node, *inputs[1], "shape"));
  Elements result = *inputs[0];
  SWIZZLE_ASSIGN_OR_RETURN(const bool allow_zero, AllowsZero(node));
  auto reshaped = ReshapedShape(result.shape, std::move(shape), allow_zero);
  if (!reshaped.ok()) return Annotate(reshaped.status(), Describe(node));
  result.shape = *std::move(reshaped);
  return result;
}

Result EvaluateConstantOfShape(const Node& node, Inputs inputs) {
  if (inputs[0]->DependsOnBatch()) return std::nullopt;
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, IntegersOf(node, *inputs[0], "shape"));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(shape));
  if (elements > kMaxEvaluatedElements) return std::nullopt;
  Elements fill{DType::kFloat32, {1}, {Scalar()}};
  if (const auto value = node.attributes.find("value"); value != node.attributes.end()) {
    const Tensor* tensor = std::get_if<Tensor>(&value->second);
    if (tensor == nullptr || tensor->elements() != 1) {
      return InvalidArgument(Describe(node), ": its value is not a tensor of one element");
    }
    auto given = Elements::FromTensor(*tensor);
    if (!given) return std::nullopt;
    fill = *std::move(given);
  }
  return Elements{fill.dtype, shape, std::vector<Scalar>(static_cast<size_t>(elements), fill.scalars[0])};
}

Result EvaluateCast(const Node& node, Inputs inputs) {
  const std::optional<DType> target = FoldableCastType(node);
  Elements result = *inputs[0];
  if (!target || (result.DependsOnBatch() && *target != DType::kInt64)) return std::nullopt;
  const bool from_real = IsFloating(result.dtype);
  result.dtype = *target;
  for (Scalar& scalar : result.scalars) {
    constexpr double kLimit = 9.2e18;
    if (from_real && !IsFloating(*target)) {
      if (!(std::abs(scalar.real) < kLimit)) return std::nullopt;
      scalar.whole = *target == DType::kBool ? scalar.real != 0.0 : Truncated(scalar.real);
    } else if (!from_real && IsFloating(*target)) {
      scalar.real = static_cast<double>(scalar.whole);
    }
    scalar.whole = Wrapped(scalar.whole, *target);
    if (*target == DType::kFloat32) scalar.real = static_cast<float>(scalar.real);
  }
  return result;
}

double RealArithmetic(char op, double a, double b) {
  switch (op) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    default:
      return a / b;
  }
}

// Nothing on overflow and division by zero.
std::optional<int64_t> WholeArithmetic(char op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case '+':
      return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case '-':
      return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case '*':
      return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    default:
      if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min())) return std::nullopt;
      return a / b;
  }
}

// Multiples of the batch size may be multiplied and divided evenly by a number, and added to each other.
bool BatchAllows(char op, const Scalar& a, const Scalar& b) {
  if (op == '*') return !(a.times_batch && b.times_batch);
  if (op == '/')
    return a.times_batch == b.times_batch ? !a.times_batch : !b.times_batch && b.whole != 0 && a.whole % b.whole == 0;
  return a.times_batch == b.times_batch;
}

std::optional<Scalar> Arithmetic(char op, DType dtype, const Scalar& a, const Scalar& b) {
  Scalar result;
  if (IsFloating(dtype)) {
    result.real = RealArithmetic(op, a.real, b.real);
    if (dtype == DType::kFloat32) result.real = static_cast<float>(result.real);
    return result;
  }
  const auto whole = BatchAllows(op, a, b) ? WholeArithmetic(op, a.whole, b.whole) : std::nullopt;
  if (!whole) return std::nullopt;
  result.whole = Wrapped(*whole, dtype);
  result.times_batch = a.times_batch || b.times_batch;
  return result;
}

Result EvaluateArithmetic(const Node& node, Inputs inputs) {
  const char op = node.op == "Add" ? '+' : node.op == "Sub" ? '-' : node.op == "Mul" ? '*' : '/';
  const Elements& a = *inputs[0];
  const Elements& b = *inputs[1];
  if (node.attributes.count("axis") > 0) return std::nullopt;  // the broadcasting of opset 6
  if (a.dtype != b.dtype) return InvalidArgument(Describe(node), ": its inputs differ in type");
  Elements result{a.dtype, {}, {}};
  const Shape shapes[] = {a.shape, b.shape};
  auto shape = BroadcastShape(shapes);
  if (!shape.ok()) return Annotate(shape.status(), Describe(node));
  result.shape = *std::move(shape);
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(result.shape));
  if (elements > kMaxEvaluatedElements) return std::nullopt;
  result.scalars = Gathered(a.scalars, result.shape, 0, BroadcastStrides(a.shape, result.shape));
  const auto right = Gathered(b.scalars, result.shape, 0, BroadcastStrides(b.shape, result.shape));
  for (size_t i = 0; i < right.size(); ++i) {
    const auto scalar = Arithmetic(op, a.dtype, result.scalars[i], right[i]);
    if (!scalar) return std::nullopt;
    result.scalars[i] = *scalar;
  }
  return result;
}

struct Evaluator {
  std::string_view op;
  Result (*run)(const Node&, Inputs);
};

constexpr Evaluator kEvaluators[] = {
    {"Add", EvaluateArithmetic},
    {"Cast", EvaluateCast},
    {"Concat", EvaluateConcat},
    {"ConstantOfShape", EvaluateConstantOfShape},
    {"Div", EvaluateArithmetic},
    {"Gather", EvaluateGather},
    {"LayerNormalization", EvaluateLayerNorm},
    {"MatMul", EvaluateMatMul},
    {"Mul", EvaluateArithmetic},
    {"Reshape", EvaluateReshape},
    {"Slice", EvaluateSlice},
    {"Squeeze", EvaluateSqueeze},
    {"Sub", EvaluateArithmetic},
    {"Transpose", EvaluateTranspose},
    {"Unsqueeze", EvaluateUnsqueeze},
};

const Evaluator* FindEvaluator(const Node& node) {
  for (const Evaluator& evaluator : kEvaluators) {
    if (node.domain.empty() && evaluator.op == node.op) return &evaluator;
  }
  return nullptr;
}

}  // namespace

bool IsEvaluable(const Node& node) { return FindEvaluator(node) != nullptr; }

StatusOr<std::optional<Elements>> Evaluate(const Node& node, std::span<const Elements* const> inputs) {
  // No elements in several dimensions: the others may be of any size, and would be walked.
  const auto is_empty_matrix = [](const Elements* input) {
    return input != nullptr && input->scalars.empty() && input->shape.size() > 1;
  };
  if (std::any_of(inputs.begin(), inputs.end(), is_empty_matrix)) return std::optional<Elements>();
  return FindEvaluator(node)->run(node, inputs);
}

StatusOr<Elements> EvaluateShape(const Node& node, const Shape& shape) {
  const int64_t rank = static_cast<int64_t>(shape.size());
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t start, IntAttribute(node, "start", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t end, IntAttribute(node, "end", rank));
  SWIZZLE_ASSIGN_OR_RETURN(const SliceRange range, ClampSlice(start, end, 1, rank));
  Elements elements{DType::kInt64, {range.count}, {}};
  for (int64_t i = range.start; i < range.start + range.count; ++i) {
    const bool batch = shape[i] == kFreeBatch;
    elements.scalars.push_back({0.0, batch ? 1 : shape[i], batch});
  }
  return elements;
}

StatusOr<std::optional<std::vector<int64_t>>> AxesGiven(const Node& node, const Elements* input) {
  return GivenAxes(node, input != nullptr, [&] { return IntegersOf(node, *input, "axes"); });
}

StatusOr<std::optional<std::vector<int64_t>>> AxesOf(const Node& node, const Elements* input, int64_t rank) {
  SWIZZLE_ASSIGN_OR_RETURN(auto axes, AxesGiven(node, input));
  if (!axes) return axes;
  auto normal = NormalAxes(*std::move(axes), rank);
  if (!normal.ok()) return Annotate(normal.status(), Describe(node));
  return std::optional(*std::move(normal));
}

}  // namespace swizzle
