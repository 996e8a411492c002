#include "model_loader/sequences/folding.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/evaluate.h"
#include "model_loader/semantics/strides.h"
#include "model_loader/sequences/ends.h"
#include "model_loader/sequences/known.h"
#include "model_loader/sequences/places.h"

namespace swizzle::sequences {
namespace {

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

StatusOr<Number> ComputeNumber(Context& context, const std::vector<Number>& inputs, DType dtype,
                               const PointFunction& function) {
  const bool real = IsFloating(dtype);
  const DType target = PointFunctionType(context.node(), dtype);
  const bool symbolic = std::any_of(inputs.begin(), inputs.end(), [](const Number& n) { return !n.whole.IsNumber(); });
  if (context.node().op == "Where") return inputs[inputs[0].whole.factor != 0 ? 1 : 2];
  if (!real && inputs.size() == 2) {
    const Whole a = inputs[0].whole, b = inputs[1].whole;
    std::optional<Whole> exact;
    if (context.node().op == "Add") exact = Sum(a, b);
    if (context.node().op == "Sub") exact = Difference(a, b);
    if (context.node().op == "Mul") exact = Product(a, b);
    if (context.node().op == "Div") exact = Quotient(a, b);
    if (exact) return Number{0.0, *exact};
    if (const auto equal = AreEqual(a, b); equal && context.node().op == "Equal") return Number{0.0, {*equal ? 1 : 0}};
  }
  if (!real && context.node().op == "Neg") {
    if (const auto negative = Product(inputs[0].whole, Whole{-1})) return Number{0.0, *negative};
  }
  if (symbolic && context.node().op == "Cast" && !IsFloating(target) && target != DType::kBool) return inputs[0];
  if (symbolic) return context.Refuse("its result depends on the batch or the length");
  std::vector<double> arguments;
  arguments.reserve(inputs.size());
  for (const Number& input : inputs) arguments.push_back(real ? input.real : static_cast<double>(input.whole.factor));
  const double value = Rounded(function(arguments), target);
  if (IsFloating(target)) return Number{value};
  constexpr double kLimit = 9e15;  // beyond it, doubles are not exact
  if (!(std::abs(value) <= kLimit)) return context.Refuse("its result is too large");
  return Number{0.0, {static_cast<int64_t>(value)}};
}

}  // namespace

StatusOr<Form> EvaluateConstants(Context& context) {
  std::vector<std::optional<Elements>> inputs;
  std::vector<const Elements*> pointers;
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    const Known* known = context.InputAs<Known>(i);
    std::optional<Elements> elements;
    if (known != nullptr && known->constant != kNoValue) {
      const Tensor& tensor = context.Constant(known->constant);
      if (tensor.elements() <= kMaxEvaluatedElements) elements = Elements::FromTensor(tensor);
    } else if (known != nullptr) {
      elements = ElementsOf(*known);
    }
    if (known != nullptr && !elements) return context.Refuse("its inputs are too large to compute it beforehand");
    inputs.push_back(std::move(elements));
  }
  pointers.reserve(inputs.size());
  for (const auto& input : inputs) pointers.push_back(input ? &*input : nullptr);
  if (!IsEvaluable(context.node())) return context.Refuse("it is not computed beforehand");
  SWIZZLE_ASSIGN_OR_RETURN(const std::optional<Elements> result, Evaluate(context.node(), pointers));
  if (!result) return context.Refuse("it is not computed beforehand");
  context.out().Spend(result->scalars.size());
  return KnownConstant(context, context.AddConstant(context.node().name + ".computed", result->ToTensor()));
}

StatusOr<Form> MoveKnown(Context& context) {
  std::vector<Number> table;
  std::vector<Elements> inputs;
  DType dtype = DType::kInt64;
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    if (!context.HasInput(i)) {
      inputs.emplace_back();
      continue;
    }
    const Known& known = *context.InputAs<Known>(i);
    const auto shape = AsShape(known.shape);
    if (!shape) return context.Refuse("the shape ", Text(known.shape), " is not known beforehand");
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t count, ElementCount(*shape));
    if (count > kMaxListedWholes) return context.Refuse("its input has too many elements");
    Elements elements{DType::kInt64, *shape, std::vector<Scalar>(static_cast<size_t>(count))};
    const bool data = i == 0 || context.node().op == "Concat";
    if (i == 0) dtype = known.dtype;
    for (size_t e = 0; e < elements.scalars.size(); ++e) {
      const Number& number = known.numbers[known.IsUniform() ? 0 : e];
      if (!data && !number.whole.IsNumber())
        return context.Refuse("its input ", i, " depends on the batch or the length");
      elements.scalars[e].whole = data ? static_cast<int64_t>(table.size()) : number.whole.factor;
      if (data) table.push_back(number);
    }
    inputs.push_back(std::move(elements));
  }
  std::vector<const Elements*> pointers;
  for (size_t i = 0; i < inputs.size(); ++i) pointers.push_back(context.HasInput(i) ? &inputs[i] : nullptr);
  SWIZZLE_ASSIGN_OR_RETURN(const std::optional<Elements> moved, Evaluate(context.node(), pointers));
  if (!moved || !context.TakeNumbers(static_cast<int64_t>(moved->scalars.size()))) {
    return context.Refuse("it is not computed beforehand");
  }
  Known result{dtype, AsWholes(moved->shape), {}};
  for (const Scalar& scalar : moved->scalars) result.numbers.push_back(table[static_cast<size_t>(scalar.whole)]);
  return result;
}

StatusOr<Form> ComputeKnown(Context& context) {
  // Where's condition is of another type than its values.
  const DType dtype = context.InputAs<Known>(context.node().op == "Where" && context.HasInput(1) ? 1 : 0)->dtype;
  const auto function = PointFunctionOf(context.node(), dtype);
  if (!function) return context.Refuse("it is not computed beforehand");
  Known result{PointFunctionType(context.node(), dtype), {}, {}};
  bool uniform = true;
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    const Known* known = context.InputAs<Known>(i);
    if (known == nullptr || !known->IsListed()) {
      return context.Refuse("an input is left out or too large");
    }
    const auto shape = Broadcast(result.shape, known->shape);
    if (!shape)
      return context.Refuse("its inputs ", Text(result.shape), " and ", Text(known->shape), " do not broadcast");
    result.shape = *shape;
    uniform = uniform && known->IsUniform();
  }
  const auto shape = AsShape(result.shape);
  int64_t count = 1;
  if (!uniform) {
    if (!shape) return context.Refuse("its result depends on the batch or the length");
    SWIZZLE_ASSIGN_OR_RETURN(count, ElementCount(*shape));
    if (count > kMaxListedWholes || !context.TakeNumbers(count))
      return context.Refuse("its result has too many elements");
  }
  std::vector<BroadcastIndex> indices;
  for (size_t i = 0; i < context.node().inputs.size() && !uniform; ++i) {
    indices.emplace_back(*AsShape(context.InputAs<Known>(i)->shape), *shape);
  }
  std::vector<Number> inputs(context.node().inputs.size());
  for (int64_t e = 0; e < count; ++e) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Known& known = *context.InputAs<Known>(i);
      inputs[i] = known.numbers[known.IsUniform() ? 0 : indices[i](e)];
    }
    SWIZZLE_ASSIGN_OR_RETURN(const Number number, ComputeNumber(context, inputs, dtype, *function));
    result.numbers.push_back(number);
  }
  return result;
}

StatusOr<Form> InterpretConstantOfShape(Context& context) {
  Known known{DType::kFloat32, {}, {Number()}};
  SWIZZLE_ASSIGN_OR_RETURN(known.shape, WholesOf(context, 0, "shape"));
  if (known.shape.size() > kMaxFormRank) return context.Refuse("its rank is too high");
  if (const auto value = context.node().attributes.find("value"); value != context.node().attributes.end()) {
    const Tensor* tensor = std::get_if<Tensor>(&value->second);
    const auto elements = tensor == nullptr ? std::nullopt : Elements::FromTensor(*tensor);
    if (!elements || elements->scalars.size() != 1) return context.Refuse("its value is not one number");
    known.dtype = elements->dtype;
    known.numbers = {{elements->scalars[0].real, {elements->scalars[0].whole}}};
  }
  return known;
}

// A branch that is known to be taken, and only passes on what it reads.
StatusOr<Form> InterpretIf(Context& context) {
  const auto condition = NumberOf(context, 0);
  if (!condition) return context.Refuse("which branch it takes is not known beforehand");
  const auto attribute = context.node().attributes.find(*condition != 0 ? "then_branch" : "else_branch");
  const auto* branch = attribute == context.node().attributes.end()
                           ? nullptr
                           : std::get_if<std::shared_ptr<const Body>>(&attribute->second);
  if (branch == nullptr) return context.Refuse("it lacks a branch");
  const Graph& graph = (*branch)->graph;
  std::map<int, int> passed;  // to values of the branch, from those around it
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    passed[graph.inputs[i]] = context.node().inputs[(*branch)->captured[i]];
  }
  for (const Node& node : graph.nodes) {
    const auto from = node.inputs.empty() ? passed.end() : passed.find(node.inputs[0]);
    if (node.op != "Identity" || from == passed.end()) return context.Refuse("the branch that it takes computes");
    passed[node.outputs[0]] = from->second;
  }
  const auto form_of = [&](size_t output) -> StatusOr<Form> {
    const auto from = passed.find(graph.outputs[output].value);
    if (from == passed.end()) return context.Refuse("the branch that it takes gives a constant");
    return context.FormOf(from->second);
  };
  for (size_t i = 1; i < graph.outputs.size(); ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(Form other, form_of(i));
    context.SetOther(i, std::move(other));
  }
  return form_of(0);
}

// Elements that are all the same are so wherever they are taken from.
StatusOr<Form> InterpretGatherElements(Context& context) {
  if (context.InputAs<PlaceProducts>(0) != nullptr) return TakePlaces(context);
  if (context.InputAs<EndPlaces>(1) != nullptr) {
    SWIZZLE_ASSIGN_OR_RETURN(int64_t axis, IntAttribute(context.node(), "axis", 0));
    SWIZZLE_ASSIGN_OR_RETURN(axis,
                             NormalAxis(context.node(), axis, static_cast<int64_t>(ShapeOf(context.Input(0))->size())));
    return TakeAtEnds(context, axis);
  }
  const auto* data = context.InputAs<Known>(0);
  if (data == nullptr || !data->IsUniform()) return context.Refuse("it takes elements that are not all the same");
  Known taken = *data;
  taken.constant = kNoValue;
  taken.shape = *ShapeOf(context.Input(1));
  return taken;
}

}  // namespace swizzle::sequences
