#include "model_loader/sequences/pools.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/sequences/activations.h"
#include "model_loader/sequences/known.h"
#include "model_loader/sequences/moved_tokens.h"

namespace swizzle::sequences {
namespace {

// The mask's numbers are 1 for tokens that count and 0 for others.
bool IsPlainMask(const TokenNumbers& mask) { return mask.at_zero == 0.0 && mask.at_one == 1.0; }

View WithoutLength(const View& view, size_t axis, bool keep) {
  View reduced = view;
  reduced.dims[axis].clear();
  if (!keep) reduced.dims.erase(reduced.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  return reduced;
}

}  // namespace

StatusOr<Form> SelectTokenOf(Context& context, const Tokens& tokens, size_t axis, int64_t token, bool keep) {
  SWIZZLE_ASSIGN_OR_RETURN(Tokens selected, Contiguous(context, tokens));
  const Whole length = tokens.view.shape()[axis];
  if (length.IsNumber() && token > 0 && token == length.factor - 1) token = -1;
  if (token != 0) context.facts().ReadLaterToken();
  selected.value = context.out().SelectToken(selected.value, token);
  selected.view = WithoutLength(selected.view, axis, keep);
  return selected;
}

StatusOr<std::optional<Form>> MeanOver(Context& context, const Tokens& tokens, const std::vector<int64_t>& axes,
                                       bool keep) {
  if (axes.empty()) return std::nullopt;
  const auto first = static_cast<size_t>(axes[0]);
  const auto joined = WithPositionsAsOne(tokens.view, first);
  const auto more = static_cast<int64_t>(axes.size()) - 1;  // dimensions that are one with the first
  const bool are_neighbours = axes.back() - axes[0] == more;
  if (!joined || !are_neighbours || joined->rank() + axes.size() - 1 != tokens.view.rank()) return std::nullopt;
  SWIZZLE_ASSIGN_OR_RETURN(Tokens mean, Contiguous(context, {tokens.value, tokens.samples, *joined}));
  mean.value = context.out().MeanTokens(mean.value);
  mean.view = WithoutLength(mean.view, first, keep);
  if (keep) mean.view.dims.insert(mean.view.dims.begin() + axes[0], static_cast<size_t>(more), Axes());
  context.facts().TakePlainMean();
  return mean;
}

StatusOr<std::optional<Form>> MeanOverPart(Context& context, const MovedTokens& part, const std::vector<int64_t>& axes,
                                           bool keep) {
  constexpr int64_t kMostOthers = 8;
  const auto is_place = [](const Axis& axis) {
    return axis.kind == AxisKind::kPlaces || axis.kind == AxisKind::kLength;
  };
  const View& view = part.tokens.view;
  for (size_t i = 0; i < view.rank(); ++i) {
    const bool is_over = std::ranges::find(axes, static_cast<int64_t>(i)) != axes.end();
    if (!std::ranges::all_of(view.dims[i], [&](const Axis& axis) { return is_place(axis) == is_over; }))
      return std::nullopt;
  }
  const std::vector<int32_t> rows = RowsOf(part);
  const int64_t length = context.FixedLength();
  const auto left_out = length - std::ssize(rows);
  if (rows.empty() || left_out < 0 || left_out > kMostOthers || !context.TakeNumbers(length)) return std::nullopt;
  std::vector<int64_t> times_of(static_cast<size_t>(length));
  for (const int32_t row : rows) ++times_of[static_cast<size_t>(row)];
  std::vector<std::pair<int64_t, int64_t>> others;  // rows, and how much more often than once they count
  for (int64_t row = 0; row < length; ++row) {
    const int64_t times = times_of[static_cast<size_t>(row)];
    if (times != 1) others.emplace_back(row, times - 1);
  }
  if (std::ssize(others) > 2 * kMostOthers) return std::nullopt;
  SWIZZLE_ASSIGN_OR_RETURN(Tokens mean, Contiguous(context, {part.tokens.value, part.tokens.samples, view}));
  const int64_t channels = context.out().Channels(mean.value);
  const auto scaled = [&](int value, double factor) {
    const auto count = static_cast<size_t>(channels);
    return context.out().Affine(value, std::vector<float>(count, static_cast<float>(factor)),
                                std::vector<float>(count));
  };
  const auto count = static_cast<double>(rows.size());
  const int all = context.out().MeanTokens(mean.value);
  int sum = scaled(all, static_cast<double>(length) / count);
  for (const auto& [row, times] : others) {
    if (row != 0) context.facts().ReadLaterToken();
    const int token = context.out().SelectToken(mean.value, row);
    sum = context.out().Add(sum, scaled(token, static_cast<double>(times) / count));
  }
  context.facts().TakePlainMean();
  mean.value = sum;
  for (size_t i = axes.size(); i-- > 0;) {
    mean.view.dims[static_cast<size_t>(axes[i])].clear();
    if (!keep) mean.view.dims.erase(mean.view.dims.begin() + axes[i]);
  }
  return mean;
}

StatusOr<Form> InterpretGlobalAveragePool(Context& context) {
  std::vector<int64_t> axes;
  const auto rank = static_cast<int64_t>(ShapeOf(context.Input(0))->size());
  for (int64_t axis = 2; axis < rank; ++axis) axes.push_back(axis);
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens tokens, AsTokens(context, context.Input(0)));
  SWIZZLE_ASSIGN_OR_RETURN(auto mean, MeanOver(context, tokens, axes, true));
  if (!mean) return context.Refuse("it is not the mean of all tokens");
  return *std::move(mean);
}

StatusOr<Form> InterpretReduceSum(Context& context) {
  const Wholes shape = *ShapeOf(context.Input(0));
  SWIZZLE_ASSIGN_OR_RETURN(const bool keep, KeepsAxes(context.node()));
  SWIZZLE_ASSIGN_OR_RETURN(const auto axes, AxesOr(context, 1, static_cast<int64_t>(shape.size())));
  if (!axes || axes->size() != 1) return context.Refuse("it is not over one dimension");
  const size_t axis = static_cast<size_t>((*axes)[0]);
  if (const auto* masked = context.InputAs<MaskedTokens>(0);
      masked != nullptr && masked->view.Is(axis, AxisKind::kLength)) {
    return MaskedTokens{masked->value, masked->mask, true, WithoutLength(masked->view, axis, keep)};
  }
  if (const auto* mask = context.InputAs<TokenNumbers>(0)) {
    if (IsPlainMask(*mask) && mask->view.Is(axis, AxisKind::kLength)) {
      return TokenCount{mask->input, WithoutLength(mask->view, axis, keep)};
    }
  }
  return context.Refuse("it is not the sum of the tokens that a mask lets through");
}

StatusOr<Form> CombinePool(Context& context) {
  const std::string& op = context.node().op;
  if (op == "Mul" && (context.InputAs<Tokens>(0) != nullptr || context.InputAs<Tokens>(1) != nullptr)) {
    const size_t at = context.InputAs<Tokens>(0) != nullptr ? 0 : 1;
    const auto* mask = context.InputAs<TokenNumbers>(1 - at);
    if (mask == nullptr || !IsPlainMask(*mask))
      return context.Refuse("it multiplies an activation by what is no mask of tokens");
    SWIZZLE_ASSIGN_OR_RETURN(const Tokens tokens, Contiguous(context, *context.InputAs<Tokens>(at)));
    const auto view = Expanded(mask->view, tokens.view.shape());
    bool fits = view && view->rank() == tokens.view.rank();
    for (size_t i = 0; fits && i < view->rank(); ++i) {
      const bool repeats = std::all_of(view->dims[i].begin(), view->dims[i].end(),
                                       [](const Axis& axis) { return axis.kind == AxisKind::kRepeat; });
      fits = view->dims[i] == tokens.view.dims[i] || repeats;
    }
    if (!fits || !view->Has(AxisKind::kLength)) return context.Refuse("its mask does not go with its tokens");
    return MaskedTokens{tokens.value, mask->input, false, tokens.view};
  }
  if (const auto* count = context.InputAs<TokenCount>(0)) {
    // What keeps an empty sequence from dividing by zero changes no other.
    const auto least = NumberOf(context, 1);
    const bool harmless = (op == "Clip" && !context.HasInput(2) && (!least || *least <= 1.0)) ||
                          (op == "Max" && least && *least <= 1.0) || (op == "Add" && least && std::abs(*least) <= 1e-6);
    if (harmless || op == "Cast") return *count;
  }
  const auto* sum = context.InputAs<MaskedTokens>(0);
  const bool stays_real = op == "Cast" && IsFloating(PointFunctionType(context.node(), DType::kFloat32));
  if (stays_real && sum != nullptr) return *sum;
  const auto* count = context.node().inputs.size() == 2 ? context.InputAs<TokenCount>(1) : nullptr;
  const bool is_mean = op == "Div" && sum != nullptr && sum->summed && count != nullptr && count->mask == sum->mask;
  if (!is_mean) return context.Refuse("it is not the mean of the tokens that a mask lets through");
  const Status masked = context.facts().TakeMaskedMean(context.out().graph(), sum->mask);
  if (!masked.ok()) return context.Refuse(masked.message());
  return Tokens{context.out().MeanTokens(sum->value), {}, sum->view};
}

}  // namespace swizzle::sequences
