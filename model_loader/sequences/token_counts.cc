#include "model_loader/sequences/token_counts.h"

#include <cstdlib>

#include "model_loader/semantics/element_types.h"
#include "model_loader/sequences/known.h"

namespace swizzle::sequences {
namespace {

bool HoldsMask(const TokenNumbers& numbers) { return numbers.at_zero == 0 && numbers.at_one == 1; }

bool IsZeroAtPadding(const TokenNumbers& numbers, const TokenCounts& counts) {
  if (numbers.input != counts.input) return false;
  return counts.of_mask ? HoldsMask(numbers) : numbers.compared == Compared{counts.padding, 0.0, 1.0};
}

}  // namespace

StatusOr<Form> InterpretCumSum(Context& context) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t exclusive, IntAttribute(context.node(), "exclusive", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t reverse, IntAttribute(context.node(), "reverse", 0));
  const auto* numbers = context.InputAs<TokenNumbers>(0);
  const double axis = context.HasInput(1) ? NumberOf(context, 1).value_or(0) : 0;
  const View tokens{{context.BatchAxis(), context.LengthAxis()}};
  if (numbers == nullptr || numbers->view != tokens || (axis != 1 && axis != -1) || exclusive != 0 || reverse != 0) {
    return context.Refuse("it does not count the tokens of each sequence");
  }
  TokenCounts counts;
  counts.input = numbers->input;
  counts.dtype = numbers->dtype;
  counts.view = numbers->view;
  if (numbers->compared && numbers->compared->at_equal == 0 && numbers->compared->at_other == 1) {
    counts.padding = numbers->compared->number;
    return counts;
  }
  if (!HoldsMask(*numbers)) return context.Refuse("it adds up what is neither a mask nor tokens that are not padding");
  counts.of_mask = true;
  const Status mask = context.facts().ReadAsMask(context.out().graph(), counts.input);
  if (!mask.ok()) return context.Refuse(mask.message());
  return counts;
}

StatusOr<Form> CombineTokenCounts(Context& context) {
  const std::string& op = context.node().op;
  const size_t at = context.InputAs<TokenCounts>(0) != nullptr ? 0 : 1;
  TokenCounts counts = *context.InputAs<TokenCounts>(at);
  const DType target = PointFunctionType(context.node(), counts.dtype);
  if (op == "Cast" && !IsFloating(target) && target != DType::kBool) {
    counts.dtype = target;
    return counts;
  }
  const bool two = context.node().inputs.size() == 2;
  const auto* numbers = two ? context.InputAs<TokenNumbers>(1 - at) : nullptr;
  if (op == "Mul" && numbers != nullptr && IsZeroAtPadding(*numbers, counts) && counts.offset == 0) {
    const auto view = Broadcast(counts.view, numbers->view);
    if (!view) return context.Refuse("its inputs do not broadcast");
    counts.zero_at_padding = true;
    counts.view = *view;
    return counts;
  }
  const auto* known = two ? context.InputAs<Known>(1 - at) : nullptr;
  const bool whole = known != nullptr && known->IsUniform() && !IsFloating(known->dtype) && !IsFloating(counts.dtype);
  const Whole number = whole ? known->numbers[0].whole : Whole{};
  constexpr int64_t kMost = 1 << 24;
  const bool adds = whole && number.IsNumber() && (op == "Add" || (op == "Sub" && at == 0));
  if (!adds || std::abs(number.factor) > kMost || std::abs(counts.offset) > kMost ||
      (number.factor != 0 && !counts.zero_at_padding)) {
    return context.Refuse("it makes something else of the count of tokens");
  }
  const auto view = Broadcast(counts.view, RepeatedView(known->shape));
  if (!view) return context.Refuse("its inputs do not broadcast");
  counts.view = *view;
  counts.offset += op == "Add" ? number.factor : -number.factor;
  return counts;
}

}  // namespace swizzle::sequences
