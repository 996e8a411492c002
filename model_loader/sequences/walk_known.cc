// Numbers that are the same for every request: constants, and the arithmetic on shapes.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/evaluate.h"
#include "model_loader/semantics/strides.h"
#include "model_loader/sequences/walk.h"

namespace swizzle {
namespace {

constexpr int64_t kMaxListedWholes = int64_t{1} << 16;
constexpr int64_t kMaxListedReals = 16;

Wholes AsWholes(const Shape& shape) {
  Wholes wholes;
  for (int64_t size : shape) wholes.push_back({size});
  return wholes;
}

std::optional<Shape> AsShape(const Wholes& wholes) {
  Shape shape;
  for (const Whole& whole : wholes) {
    if (!whole.IsNumber()) return std::nullopt;
    shape.push_back(whole.factor);
  }
  return shape;
}

bool IsUniform(const Tensor& tensor) {
  const size_t size = ElementBytes(tensor.dtype);
  if (tensor.bytes.size() < size || size == 0) return false;
  return std::memcmp(tensor.bytes.data(), tensor.bytes.data() + size, tensor.bytes.size() - size) == 0;
}

Number NumberFrom(const Scalar& scalar) { return {scalar.real, {scalar.whole}}; }

std::vector<Number> Listed(const Tensor& tensor) {
  const auto elements = Elements::FromTensor(tensor);
  std::vector<Number> numbers;
  if (!elements) return numbers;
  for (const Scalar& scalar : elements->scalars) numbers.push_back(NumberFrom(scalar));
  return numbers;
}

// Nothing where elements or their number depend on the batch or the length.
std::optional<Elements> ElementsOf(const Known& known) {
  const auto shape = AsShape(known.shape);
  const auto count = shape ? ElementCount(*shape) : StatusOr<int64_t>(-1);
  if (!count.ok() || *count < 0 || *count > kMaxListedWholes) return std::nullopt;
  Elements elements{known.dtype, *shape, {}};
  for (int64_t i = 0; i < *count; ++i) {
    const Number& number = known.numbers[known.IsUniform() ? 0 : static_cast<size_t>(i)];
    if (!number.whole.IsNumber()) return std::nullopt;
    elements.scalars.push_back({number.real, number.whole.factor, false});
  }
  return elements;
}

// The place in a tensor of shape `from` of each element of the shape `to` that it is broadcast to.
class BroadcastIndex {
 public:
  BroadcastIndex(const Shape& from, const Shape& to) : to_(to), strides_(BroadcastStrides(from, to)) {}
  size_t operator()(int64_t element) const {
    int64_t index = 0;
    for (size_t d = to_.size(); d-- > 0;) {
      index += element % to_[d] * strides_[d];
      element /= to_[d];
    }
    return static_cast<size_t>(index);
  }

 private:
  Shape to_, strides_;
};

}  // namespace

Form Walk::KnownConstant(int value) const {
  const Tensor& tensor = *graph_.values[value].constant;
  Known known{tensor.dtype, AsWholes(tensor.shape), {}, value};
  const int64_t limit = IsFloating(tensor.dtype) ? kMaxListedReals : kMaxListedWholes;
  const bool foldable = IsFoldable(tensor.dtype);
  if (foldable && tensor.elements() > 0 && IsUniform(tensor)) {
    const Tensor first{
        tensor.dtype,
        {1},
        {tensor.bytes.begin(), tensor.bytes.begin() + static_cast<std::ptrdiff_t>(ElementBytes(tensor.dtype))}};
    known.numbers = Listed(first);
  } else if (foldable && tensor.elements() <= limit && (!IsFloating(tensor.dtype) || tensor.shape.size() <= 1)) {
    known.numbers = Listed(tensor);
  }
  return known;
}

StatusOr<Form> Walk::EvaluateKnown() {
  constexpr std::string_view kMoves[] = {"Concat", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"};
  const auto is_listed = [&](size_t i) {
    const Known* known = InputAs<Known>(i);
    return known == nullptr || !known->numbers.empty() || known->constant == kNoValue;
  };
  bool listed = true, uniform = true;
  for (size_t i = 0; i < node().inputs.size(); ++i) listed = listed && is_listed(i);
  if (HasInput(0)) uniform = InputAs<Known>(0)->IsUniform() && !AsShape(InputAs<Known>(0)->shape);
  const bool moves = std::find(std::begin(kMoves), std::end(kMoves), node().op) != std::end(kMoves);
  const auto is_symbolic = [&](size_t i) {
    const Known* known = InputAs<Known>(i);
    return known != nullptr && std::any_of(known->numbers.begin(), known->numbers.end(),
                                           [](const Number& number) { return !number.whole.IsNumber(); });
  };
  const bool to_length = node().op == "Slice" && (is_symbolic(1) || is_symbolic(2));
  if (moves && listed && !uniform && !to_length) return MoveKnown();
  // What is too large to list may be a mask of pairs of tokens.
  const auto or_pairs = [&](Result result) -> Result {
    if (result.ok() || result.status().code() != StatusCode::kUnimplemented) return result;
    auto pairs = moves ? MovePairs() : CombinePairs();
    return pairs.ok() ? pairs : result;
  };
  if (!listed && !moves && PointFunctionOf(node(), InputAs<Known>(0)->dtype)) return or_pairs(EvaluateConstants());
  if (!listed && moves && !to_length) return or_pairs(EvaluateConstants());
  if (const Interpreter* interpreter = FindInterpreter(node().op)) return (this->*interpreter->run)();
  return or_pairs(ComputeKnown());
}

// Large constants, by the arithmetic that the passes fold constants with.
StatusOr<Form> Walk::EvaluateConstants() {
  std::vector<std::optional<Elements>> inputs;
  std::vector<const Elements*> pointers;
  for (size_t i = 0; i < node().inputs.size(); ++i) {
    const Known* known = InputAs<Known>(i);
    std::optional<Elements> elements;
    if (known != nullptr && known->constant != kNoValue) {
      const Tensor& tensor = *graph_.values[known->constant].constant;
      if (tensor.elements() <= kMaxEvaluatedElements) elements = Elements::FromTensor(tensor);
    } else if (known != nullptr) {
      elements = ElementsOf(*known);
    }
    if (known != nullptr && !elements) return Refuse("its inputs are too large to compute it beforehand");
    inputs.push_back(std::move(elements));
  }
  for (const auto& input : inputs) pointers.push_back(input ? &*input : nullptr);
  if (!IsEvaluable(node())) return Refuse("it is not computed beforehand");
  SWIZZLE_ASSIGN_OR_RETURN(const std::optional<Elements> result, Evaluate(node(), pointers));
  if (!result) return Refuse("it is not computed beforehand");
  out_.Spend(result->scalars.size());
  return KnownConstant(graph_.AddConstant(graph_.values[node().outputs[0]].name, result->ToTensor()));
}

// Every element becomes its place in a table, the arithmetic on places is that of all constants, and places become
// elements again: so the elements may be sizes that no number stands for.
StatusOr<Form> Walk::MoveKnown() {
  std::vector<Number> table;
  std::vector<Elements> inputs;
  DType dtype = DType::kInt64;
  for (size_t i = 0; i < node().inputs.size(); ++i) {
    if (!HasInput(i)) {
      inputs.emplace_back();
      continue;
    }
    const Known& known = *InputAs<Known>(i);
    const auto shape = AsShape(known.shape);
    if (!shape) return Refuse("the shape ", Text(known.shape), " is not known beforehand");
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t count, ElementCount(*shape));
    if (count > kMaxListedWholes) return Refuse("its input has too many elements");
    Elements elements{DType::kInt64, *shape, std::vector<Scalar>(static_cast<size_t>(count))};
    const bool data = i == 0 || node().op == "Concat";
    if (i == 0) dtype = known.dtype;
    for (size_t e = 0; e < elements.scalars.size(); ++e) {
      const Number& number = known.numbers[known.IsUniform() ? 0 : e];
      if (!data && !number.whole.IsNumber()) return Refuse("its input ", i, " depends on the batch or the length");
      elements.scalars[e].whole = data ? static_cast<int64_t>(table.size()) : number.whole.factor;
      if (data) table.push_back(number);
    }
    inputs.push_back(std::move(elements));
  }
  std::vector<const Elements*> pointers;
  for (size_t i = 0; i < inputs.size(); ++i) pointers.push_back(HasInput(i) ? &inputs[i] : nullptr);
  SWIZZLE_ASSIGN_OR_RETURN(const std::optional<Elements> moved, Evaluate(node(), pointers));
  if (!moved || (numbers_left_ -= static_cast<int64_t>(moved->scalars.size())) < 0) {
    return Refuse("it is not computed beforehand");
  }
  Known result{dtype, AsWholes(moved->shape), {}};
  for (const Scalar& scalar : moved->scalars) result.numbers.push_back(table[static_cast<size_t>(scalar.whole)]);
  return result;
}

StatusOr<Number> Walk::ComputeNumber(const std::vector<Number>& inputs, DType dtype,
                                     const PointFunction& function) const {
  const bool real = IsFloating(dtype);
  const DType target = PointFunctionType(node(), dtype);
  const bool symbolic = std::any_of(inputs.begin(), inputs.end(), [](const Number& n) { return !n.whole.IsNumber(); });
  if (node().op == "Where") return inputs[inputs[0].whole.factor != 0 ? 1 : 2];
  if (!real && inputs.size() == 2) {
    const Whole a = inputs[0].whole, b = inputs[1].whole;
    std::optional<Whole> exact;
    if (node().op == "Add") exact = Sum(a, b);
    if (node().op == "Sub") exact = Difference(a, b);
    if (node().op == "Mul") exact = Product(a, b);
    if (node().op == "Div") exact = Quotient(a, b);
    if (exact) return Number{0.0, *exact};
    if (const auto equal = AreEqual(a, b); equal && node().op == "Equal") return Number{0.0, {*equal ? 1 : 0}};
  }
  if (symbolic && node().op == "Cast" && !IsFloating(target) && target != DType::kBool) return inputs[0];
  if (symbolic) return Refuse("its result depends on the batch or the length");
  std::vector<double> arguments;
  for (const Number& input : inputs) arguments.push_back(real ? input.real : static_cast<double>(input.whole.factor));
  const double value = Rounded(function(arguments), target);
  if (IsFloating(target)) return Number{value};
  constexpr double kLimit = 9e15;  // beyond it, doubles are not exact
  if (!(std::abs(value) <= kLimit)) return Refuse("its result is too large");
  return Number{0.0, {static_cast<int64_t>(value)}};
}

StatusOr<Form> Walk::ComputeKnown() {
  // Where's condition is of another type than its values.
  const DType dtype = InputAs<Known>(node().op == "Where" && HasInput(1) ? 1 : 0)->dtype;
  const auto function = PointFunctionOf(node(), dtype);
  if (!function) return Refuse("it is not computed beforehand");
  Known result{PointFunctionType(node(), dtype), {}, {}};
  bool uniform = true;
  for (size_t i = 0; i < node().inputs.size(); ++i) {
    const Known* known = InputAs<Known>(i);
    if (known == nullptr || (known->numbers.empty() && known->constant != kNoValue)) {
      return Refuse("an input is left out or too large");
    }
    const auto shape = Broadcast(result.shape, known->shape);
    if (!shape) return Refuse("its inputs ", Text(result.shape), " and ", Text(known->shape), " do not broadcast");
    result.shape = *shape;
    uniform = uniform && known->IsUniform();
  }
  const auto shape = AsShape(result.shape);
  int64_t count = 1;
  if (!uniform) {
    if (!shape) return Refuse("its result depends on the batch or the length");
    SWIZZLE_ASSIGN_OR_RETURN(count, ElementCount(*shape));
    if (count > kMaxListedWholes || (numbers_left_ -= count) < 0) return Refuse("its result has too many elements");
  }
  std::vector<BroadcastIndex> indices;
  for (size_t i = 0; i < node().inputs.size() && !uniform; ++i) {
    indices.emplace_back(*AsShape(InputAs<Known>(i)->shape), *shape);
  }
  std::vector<Number> inputs(node().inputs.size());
  for (int64_t e = 0; e < count; ++e) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Known& known = *InputAs<Known>(i);
      inputs[i] = known.numbers[known.IsUniform() ? 0 : indices[i](e)];
    }
    SWIZZLE_ASSIGN_OR_RETURN(const Number number, ComputeNumber(inputs, dtype, *function));
    result.numbers.push_back(number);
  }
  return result;
}

StatusOr<Wholes> Walk::WholesOf(size_t input, const char* what) {
  const Known* known = InputAs<Known>(input);
  const auto shape = known == nullptr || IsFloating(known->dtype) ? std::nullopt : AsShape(known->shape);
  if (!shape || shape->size() > 1) return Refuse("its ", what, " is not a list of numbers known beforehand");
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t count, ElementCount(*shape));
  if (count > kMaxListedWholes || (count > 0 && known->numbers.empty())) return Refuse("its ", what, " is too long");
  Wholes wholes;
  for (int64_t i = 0; i < count; ++i) wholes.push_back(known->numbers[known->IsUniform() ? 0 : i].whole);
  return wholes;
}

StatusOr<std::vector<int64_t>> Walk::IntegersOf(size_t input, const char* what) {
  SWIZZLE_ASSIGN_OR_RETURN(const Wholes wholes, WholesOf(input, what));
  const auto integers = AsShape(wholes);
  if (!integers) return Refuse("its ", what, " depends on the batch or the length");
  return *integers;
}

StatusOr<std::optional<std::vector<int64_t>>> Walk::AxesOr(size_t input, int64_t rank) {
  if (!HasInput(input)) return AxesOf(node(), nullptr, rank);
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, IntegersOf(input, "axes"));
  Elements elements{DType::kInt64, {static_cast<int64_t>(axes.size())}, {}};
  for (int64_t axis : axes) elements.scalars.push_back({0.0, axis, false});
  return AxesOf(node(), &elements, rank);
}

std::optional<double> Walk::NumberOf(const Known& known) const {
  if (!known.IsUniform()) return std::nullopt;
  const Number& number = known.numbers[0];
  if (IsFloating(known.dtype)) return number.real;
  if (!number.whole.IsNumber()) return std::nullopt;
  return static_cast<double>(number.whole.factor);
}

std::optional<int64_t> Walk::IntegerOf(const Known& known) const {
  if (!known.IsUniform() || IsFloating(known.dtype) || !known.numbers[0].whole.IsNumber()) return std::nullopt;
  return known.numbers[0].whole.factor;
}

std::optional<double> Walk::NumberOf(size_t input) {
  const Known* known = InputAs<Known>(input);
  return known == nullptr ? std::nullopt : NumberOf(*known);
}

StatusOr<std::pair<Shape, std::span<const float>>> Walk::FloatTensor(size_t input, const char* what) const {
  const int value = node().Input(input);
  const auto* known = value == kNoValue || !forms_[value] ? nullptr : std::get_if<Known>(&*forms_[value]);
  if (known == nullptr || known->constant == kNoValue || known->dtype != DType::kFloat32) {
    return Refuse("its ", what, " is not an FP32 constant");
  }
  const Tensor& tensor = *graph_.values[known->constant].constant;
  if (static_cast<int64_t>(tensor.bytes.size()) != tensor.elements() * static_cast<int64_t>(sizeof(float))) {
    return Refuse("its ", what, " is read again where it is not known any more");
  }
  return std::pair(tensor.shape, tensor.floats());
}

// `count` numbers, or one for all.
StatusOr<std::vector<float>> Walk::FloatsOf(size_t input, int64_t count, const char* what) {
  out_.Spend(static_cast<size_t>(count));
  if (const auto number = NumberOf(input)) return std::vector<float>(count, static_cast<float>(*number));
  SWIZZLE_ASSIGN_OR_RETURN(const auto tensor, FloatTensor(input, what));
  if (static_cast<int64_t>(tensor.second.size()) != count) {
    return Refuse("its ", what, " ", ShapeText(tensor.first), " is not one number for each of ", count, " channels");
  }
  return std::vector<float>(tensor.second.begin(), tensor.second.end());
}

// Whether the last dimension counts up from `offset` in steps of 1, all others being 1.
bool Walk::IsCountingUp(const Known& known, int64_t& offset) const {
  const auto shape = AsShape(known.shape);
  if (!shape || IsFloating(known.dtype) || known.numbers.empty() || shape->empty()) return false;
  if (static_cast<int64_t>(known.numbers.size()) != shape->back()) return false;
  offset = known.numbers[0].whole.factor;
  for (size_t i = 0; i < known.numbers.size(); ++i) {
    int64_t expected = 0;
    const bool overflows = __builtin_add_overflow(offset, static_cast<int64_t>(i), &expected);
    if (overflows || known.numbers[i].whole != Whole{expected}) return false;
  }
  return true;
}

}  // namespace swizzle
