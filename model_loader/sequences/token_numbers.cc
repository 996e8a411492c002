#include "model_loader/sequences/token_numbers.h"

#include <algorithm>
#include <limits>

#include "model_loader/semantics/element_types.h"
#include "model_loader/sequences/biases.h"
#include "model_loader/sequences/known.h"

namespace swizzle::sequences {
namespace {

constexpr double kLeftOut = std::numeric_limits<double>::quiet_NaN();

// Of an input as it is and a number, whichever comes first.
std::optional<Compared> ComparedWithNumber(Context& context) {
  for (const size_t i : {0, 1}) {
    const auto* numbers = context.InputAs<TokenNumbers>(i);
    const auto* known = context.InputAs<Known>(1 - i);
    if (numbers == nullptr || !numbers->as_it_is || known == nullptr || !known->IsUniform()) continue;
    const Whole number = known->numbers[0].whole;
    if (!IsFloating(known->dtype) && number.IsNumber()) return Compared{number.factor, 1.0, 0.0};
  }
  return std::nullopt;
}

// What the node makes of inputs that ask for the same number, and of numbers.
std::optional<Compared> CompareAgain(Context& context, const PointFunction& function, DType result) {
  std::optional<Compared> compared;
  std::vector<double> at_equal, at_other;
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    const auto* numbers = context.InputAs<TokenNumbers>(i);
    if (numbers == nullptr) {
      const auto number = context.HasInput(i) ? NumberOf(context, i) : kLeftOut;
      at_equal.push_back(*number);
      at_other.push_back(*number);
      continue;
    }
    const auto& asked = numbers->compared;
    if (!asked || (compared && compared->number != asked->number)) return std::nullopt;
    compared = asked;
    at_equal.push_back(asked->at_equal);
    at_other.push_back(asked->at_other);
  }
  return Compared{compared->number, Rounded(function(at_equal), result), Rounded(function(at_other), result)};
}

// Whether an input is a constant for each pair of tokens that goes by their distance; all others know it as such then.
bool HasTableByDistance(Context& context) {
  bool found = false;
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    const auto* known = context.InputAs<Known>(i);
    if (known == nullptr || known->IsUniform()) continue;
    auto distances = DistancesOfTable(context, *known);
    if (!distances) return false;
    context.ReplaceInput(i, *std::move(distances));
    found = true;
  }
  return found;
}

// Whether it goes along tokens twice: by queries and by keys.
bool IsOfPairs(const View& view) {
  const auto of_tokens = [](const Axes& dim) { return dim.size() == 1 && dim[0].kind == AxisKind::kLength; };
  return std::ranges::count_if(view.dims, of_tokens) > 1;
}

// Where a result is of pairs, numbers of queries alone are those of a token that is there: nothing reads what others
// attend to.
void TakeQueriesAsThere(Context& context, std::vector<double>& at_zero, const std::vector<double>& at_one) {
  for (size_t i = 0; i < at_zero.size(); ++i) {
    const auto* numbers = context.InputAs<TokenNumbers>(i);
    const size_t rank = numbers == nullptr ? 0 : numbers->view.rank();
    if (rank > 0 && !numbers->view.Is(rank - 1, AxisKind::kLength)) at_zero[i] = at_one[i];
  }
}

}  // namespace

StatusOr<Form> CombineTokenNumbers(Context& context) {
  if (HasTableByDistance(context)) return CombineDistances(context);
  TokenNumbers result;
  bool first = true;
  std::vector<double> at_zero, at_one;
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    View view;
    if (const auto* numbers = context.InputAs<TokenNumbers>(i)) {
      if (result.input != kNoValue && result.input != numbers->input) return context.Refuse("it combines two inputs");
      result.input = numbers->input;
      at_zero.push_back(numbers->at_zero);
      at_one.push_back(numbers->at_one);
      view = numbers->view;
    } else if (context.HasInput(i)) {
      const auto number = NumberOf(context, i);
      if (!number) return context.Refuse("it combines a mask with a constant of many elements");
      at_zero.push_back(*number);
      at_one.push_back(*number);
      view = RepeatedView(context.InputAs<Known>(i)->shape);
    } else {
      at_zero.push_back(kLeftOut);
      at_one.push_back(kLeftOut);
    }
    const auto joined = first ? view : Broadcast(result.view, view);
    if (!joined) return context.Refuse("its inputs do not broadcast, or hold a mask of pairs of tokens");
    result.view = *joined;
    first = false;
  }
  const auto type_of = [&](size_t i) {
    const auto* numbers = context.InputAs<TokenNumbers>(i);
    return numbers != nullptr ? numbers->dtype : context.InputAs<Known>(i)->dtype;
  };
  const DType dtype = type_of(context.node().op == "Where" ? 1 : 0);
  const auto function = PointFunctionOf(context.node(), dtype);
  result.dtype = PointFunctionType(context.node(), dtype);
  const bool of_pairs = IsOfPairs(result.view);
  if (of_pairs) TakeQueriesAsThere(context, at_zero, at_one);
  const auto* only = context.InputAs<TokenNumbers>(0);
  const bool is_of_ids = result.dtype == DType::kInt32 || result.dtype == DType::kInt64;
  result.as_it_is = context.node().op == "Cast" && is_of_ids && only->as_it_is;
  result.at_zero = Rounded((*function)(at_zero), result.dtype);
  result.at_one = Rounded((*function)(at_one), result.dtype);
  result.compared =
      context.node().op == "Equal" ? ComparedWithNumber(context) : CompareAgain(context, *function, result.dtype);
  if (of_pairs) result.compared = std::nullopt;
  return result;
}

}  // namespace swizzle::sequences
