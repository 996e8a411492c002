#include "model_loader/sequences/known.h"

#include <cstring>

#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/evaluate.h"
#include "model_loader/semantics/given_axes.h"

namespace swizzle::sequences {
namespace {

constexpr int64_t kMaxListedReals = 16;

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

}  // namespace

Form KnownConstant(Context& context, int value) {
  const Tensor& tensor = context.Constant(value);
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

StatusOr<Wholes> WholesOf(Context& context, size_t input, const char* what) {
  const Known* known = context.InputAs<Known>(input);
  const auto shape = known == nullptr || IsFloating(known->dtype) ? std::nullopt : AsShape(known->shape);
  if (!shape || shape->size() > 1) return context.Refuse("its ", what, " is not a list of numbers known beforehand");
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t count, ElementCount(*shape));
  if (count > kMaxListedWholes || (count > 0 && known->numbers.empty()))
    return context.Refuse("its ", what, " is too long");
  Wholes wholes;
  for (int64_t i = 0; i < count; ++i) wholes.push_back(known->numbers[known->IsUniform() ? 0 : i].whole);
  return wholes;
}

StatusOr<std::vector<int64_t>> IntegersOf(Context& context, size_t input, const char* what) {
  SWIZZLE_ASSIGN_OR_RETURN(const Wholes wholes, WholesOf(context, input, what));
  const auto integers = AsShape(wholes);
  if (!integers) return context.Refuse("its ", what, " depends on the batch or the length");
  return *integers;
}

StatusOr<std::optional<std::vector<int64_t>>> AxesGiven(Context& context, size_t input) {
  return GivenAxes(context.node(), context.HasInput(input), [&] { return IntegersOf(context, input, "axes"); });
}

StatusOr<std::optional<std::vector<int64_t>>> AxesOr(Context& context, size_t input, int64_t rank) {
  SWIZZLE_ASSIGN_OR_RETURN(auto axes, AxesGiven(context, input));
  if (!axes) return axes;
  auto normal = NormalAxes(*std::move(axes), rank);
  if (!normal.ok()) return Annotate(normal.status(), Describe(context.node()));
  return std::optional(*std::move(normal));
}

std::optional<double> NumberOf(const Known& known) {
  if (!known.IsUniform()) return std::nullopt;
  const Number& number = known.numbers[0];
  if (IsFloating(known.dtype)) return number.real;
  if (!number.whole.IsNumber()) return std::nullopt;
  return static_cast<double>(number.whole.factor);
}

std::optional<double> NumberOf(Context& context, size_t input) {
  const Known* known = context.InputAs<Known>(input);
  return known == nullptr ? std::nullopt : NumberOf(*known);
}

std::optional<int64_t> IntegerOf(const Known& known) {
  if (!known.IsUniform() || IsFloating(known.dtype) || !known.numbers[0].whole.IsNumber()) return std::nullopt;
  return known.numbers[0].whole.factor;
}

StatusOr<std::pair<Shape, std::span<const float>>> FloatTensor(Context& context, size_t input, const char* what) {
  const auto* known = context.InputAs<Known>(input);
  if (known == nullptr || known->constant == kNoValue || known->dtype != DType::kFloat32) {
    return context.Refuse("its ", what, " is not an FP32 constant");
  }
  const Tensor& tensor = context.Constant(known->constant);
  if (static_cast<int64_t>(tensor.bytes.size()) != tensor.elements() * static_cast<int64_t>(sizeof(float))) {
    return context.Refuse("its ", what, " is read again where it is not known any more");
  }
  return std::pair(tensor.shape, tensor.floats());
}

StatusOr<std::vector<float>> FloatsOf(Context& context, size_t input, int64_t count, const char* what) {
  context.out().Spend(static_cast<size_t>(count));
  if (const auto number = NumberOf(context, input)) return std::vector<float>(count, static_cast<float>(*number));
  SWIZZLE_ASSIGN_OR_RETURN(const auto tensor, FloatTensor(context, input, what));
  if (static_cast<int64_t>(tensor.second.size()) != count) {
    return context.Refuse("its ", what, " ", ShapeText(tensor.first), " is not one number for each of ", count,
                          " channels");
  }
  return std::vector<float>(tensor.second.begin(), tensor.second.end());
}

bool IsCountingUp(const Known& known, int64_t& offset) {
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

}  // namespace swizzle::sequences
