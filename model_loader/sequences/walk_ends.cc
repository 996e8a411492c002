// Where sequences begin and end: embeddings, and what makes one row of each sequence.
#include <algorithm>
#include <cmath>

#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/evaluate.h"
#include "model_loader/sequences/walk.h"

namespace swizzle {
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

// Rows of the input `table` [V, C]: one by each id, by position, or the same for all.
StatusOr<Form> Walk::EmbeddingOf(size_t table, const Form& ids) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto given, FloatTensor(table, "table"));
  const Shape& shape = given.first;
  if (shape.size() != 2 || given.second.empty()) return Refuse("its table ", ShapeText(shape), " is no matrix");
  const int64_t rows = shape[0], channels = shape[1];
  const auto view_of = [&](View view) {
    view.dims.push_back(ChannelAxis(channels));
    return view;
  };
  if (const auto* numbers = std::get_if<TokenNumbers>(&ids)) {
    if (!numbers->as_it_is) return Refuse("its ids are a function of an input");
    SWIZZLE_RETURN_IF_ERROR(UseIds(numbers->input));
    return Tokens{out_.Embedding(numbers->input, Tensor::Floats(shape, given.second), 0), {}, view_of(numbers->view)};
  }
  int64_t offset = 0;
  View view;
  if (const auto* positions = std::get_if<Positions>(&ids)) {
    const bool in_sequence = positions->has_values && !positions->is_pair && positions->per_position == 1 &&
                             positions->per_sequence == Whole{0};
    if (!in_sequence) return Refuse("its indices are neither ids nor positions");
    offset = positions->offset;
    view = positions->view;
  } else {
    const auto* known = std::get_if<Known>(&ids);
    if (known == nullptr) return Refuse("its indices are neither ids nor positions");
    if (const auto row = IntegerOf(*known)) {
      if (*row < -rows || *row >= rows) return Refuse("its index ", *row, " is out of range");
      const int64_t place = *row < 0 ? *row + rows : *row;
      const auto floats = given.second.subspan(static_cast<size_t>(place * channels), static_cast<size_t>(channels));
      Shape one(known->shape.size(), 1);
      one.push_back(channels);
      return KnownConstant(graph_.AddConstant(node().name + ".row", Tensor::Floats(std::move(one), floats)));
    }
    if (!IsCountingUp(*known, offset) || known->shape.back() != SizeOf(LengthAxis())) {
      return Refuse("its indices are neither ids nor positions");
    }
    view.dims.resize(known->shape.size());
    view.dims.back() = LengthAxis();
  }
  if (offset < 0 || offset >= rows) return Refuse("its positions begin at ", offset, ", its table has ", rows, " rows");
  return Tokens{out_.Embedding(kNoValue, Tensor::Floats(shape, given.second), offset), {}, view_of(std::move(view))};
}

StatusOr<Form> Walk::InterpretGather() {
  const Wholes shape = *ShapeOf(Input(0));
  SWIZZLE_ASSIGN_OR_RETURN(int64_t axis, IntAttribute(node(), "axis", 0));
  SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(node(), axis, static_cast<int64_t>(shape.size())));
  if (const auto* data = InputAs<Known>(0)) {
    const Form indices = Input(1);
    if (IsFloating(data->dtype) && shape.size() == 2 && axis == 0) return EmbeddingOf(0, indices);
    if (!std::holds_alternative<Known>(indices)) return Refuse("it looks up what is no table of embeddings");
    return data->numbers.empty() ? EvaluateConstants() : MoveKnown();
  }
  const auto* numbers = InputAs<TokenNumbers>(0);
  const auto* places = InputAs<Positions>(1);
  if (numbers != nullptr && places != nullptr) {  // of all tokens in one dimension
    Axes tokens = BatchAxis();
    for (const Axis& length : LengthAxis()) tokens.push_back(length);
    View flat = numbers->view;
    flat.dims.resize(1);
    const bool each = places->has_values && !places->is_pair && places->offset == 0 && places->per_position == 1 &&
                      places->per_sequence == SizeOf(LengthAxis()) && axis == 0 && flat == View{{tokens}} &&
                      SizeOf(numbers->view.AllAxes()) == SizeOf(tokens);
    if (!each) return Refuse("it does not take an input's tokens by their places");
    TokenNumbers taken = *numbers;
    taken.view = places->view;
    taken.view.dims.resize(places->view.rank() + numbers->view.rank() - 1);
    return taken;
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens tokens, AsTokens(Input(0)));
  const auto* indices = InputAs<Known>(1);
  const auto index = indices != nullptr ? IntegerOf(*indices) : std::nullopt;
  if (!index || (!indices->shape.empty() && indices->shape != Wholes{{1}})) {
    return Refuse("it takes several parts of an activation");
  }
  const bool keep = !indices->shape.empty();
  int64_t at = *index;
  if (tokens.view.Is(axis, AxisKind::kLength) && (at == 0 || at == -1)) return SelectTokenOf(tokens, axis, at, keep);
  const Whole size = shape[axis];
  if (!size.IsNumber() || at < -size.factor || at >= size.factor) return Refuse("its index ", at, " is out of range");
  if (at < 0) at += size.factor;
  SWIZZLE_ASSIGN_OR_RETURN(Form part, SliceAxis(tokens, axis, Whole{at}, Whole{at + 1}));
  View& view = *ViewOf(part);
  if (!keep) view.dims.erase(view.dims.begin() + axis);
  return part;
}

StatusOr<Form> Walk::SelectTokenOf(const Tokens& tokens, size_t axis, int64_t token, bool keep) {
  SWIZZLE_ASSIGN_OR_RETURN(Tokens selected, Contiguous(tokens));
  selected.value = out_.SelectToken(selected.value, token);
  selected.view = WithoutLength(selected.view, axis, keep);
  return selected;
}

StatusOr<Form> Walk::MeanOf(const Tokens& tokens, size_t axis, bool keep) {
  SWIZZLE_ASSIGN_OR_RETURN(Tokens mean, Contiguous(tokens));
  mean.value = out_.MeanTokens(mean.value);
  mean.view = WithoutLength(mean.view, axis, keep);
  plain_mean_ = true;
  return mean;
}

StatusOr<Form> Walk::InterpretReduceSum() {
  const Wholes shape = *ShapeOf(Input(0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t keep, IntAttribute(node(), "keepdims", 1));
  SWIZZLE_ASSIGN_OR_RETURN(const auto axes, AxesOr(1, static_cast<int64_t>(shape.size())));
  if (!axes || axes->size() != 1) return Refuse("it is not over one dimension");
  const size_t axis = static_cast<size_t>((*axes)[0]);
  if (const auto* masked = InputAs<MaskedTokens>(0); masked != nullptr && masked->view.Is(axis, AxisKind::kLength)) {
    return MaskedTokens{masked->value, masked->mask, true, WithoutLength(masked->view, axis, keep != 0)};
  }
  if (const auto* mask = InputAs<TokenNumbers>(0)) {
    if (IsPlainMask(*mask) && mask->view.Is(axis, AxisKind::kLength)) {
      return TokenCount{mask->input, WithoutLength(mask->view, axis, keep != 0)};
    }
  }
  return Refuse("it is not the sum of the tokens that a mask lets through");
}

// The mean of the tokens that a mask lets through: tokens times mask, summed, over the mask's sum.
StatusOr<Form> Walk::CombinePool() {
  const std::string& op = node().op;
  if (op == "Mul" && (InputAs<Tokens>(0) != nullptr || InputAs<Tokens>(1) != nullptr)) {
    const size_t at = InputAs<Tokens>(0) != nullptr ? 0 : 1;
    const auto* mask = InputAs<TokenNumbers>(1 - at);
    if (mask == nullptr || !IsPlainMask(*mask))
      return Refuse("it multiplies an activation by what is no mask of tokens");
    SWIZZLE_ASSIGN_OR_RETURN(const Tokens tokens, Contiguous(*InputAs<Tokens>(at)));
    const auto view = Expanded(mask->view, tokens.view.shape());
    bool fits = view && view->rank() == tokens.view.rank();
    for (size_t i = 0; fits && i < view->rank(); ++i) {
      const bool repeats = std::all_of(view->dims[i].begin(), view->dims[i].end(),
                                       [](const Axis& axis) { return axis.kind == AxisKind::kRepeat; });
      fits = view->dims[i] == tokens.view.dims[i] || repeats;
    }
    if (!fits || !view->Has(AxisKind::kLength)) return Refuse("its mask does not go with its tokens");
    return MaskedTokens{tokens.value, mask->input, false, tokens.view};
  }
  if (const auto* count = InputAs<TokenCount>(0)) {
    // What keeps an empty sequence from dividing by zero changes no other.
    const auto least = NumberOf(1);
    const bool harmless = (op == "Clip" && !HasInput(2) && (!least || *least <= 1.0)) ||
                          (op == "Max" && least && *least <= 1.0) || (op == "Add" && least && std::abs(*least) <= 1e-6);
    if (harmless || op == "Cast") return *count;
  }
  const auto* sum = InputAs<MaskedTokens>(0);
  if (op == "Cast" && sum != nullptr) return *sum;
  const auto* count = node().inputs.size() == 2 ? InputAs<TokenCount>(1) : nullptr;
  const bool is_mean = op == "Div" && sum != nullptr && sum->summed && count != nullptr && count->mask == sum->mask;
  if (!is_mean) return Refuse("it is not the mean of the tokens that a mask lets through");
  SWIZZLE_RETURN_IF_ERROR(UseMask(sum->mask));
  masked_mean_ = true;
  return Tokens{out_.MeanTokens(sum->value), {}, sum->view};
}

}  // namespace swizzle
