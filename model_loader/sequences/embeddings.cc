#include "model_loader/sequences/embeddings.h"

#include <utility>

#include "model_loader/semantics/element_types.h"
#include "model_loader/sequences/known.h"

namespace swizzle::sequences {
StatusOr<Form> EmbeddingOf(Context& context, size_t table, const Form& ids) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto given, FloatTensor(context, table, "table"));
  const Shape& shape = given.first;
  if (shape.size() != 2 || given.second.empty()) return context.Refuse("its table ", ShapeText(shape), " is no matrix");
  const int64_t rows = shape[0], channels = shape[1];
  const auto view_of = [&](View view) {
    view.dims.push_back(ChannelAxis(channels));
    return view;
  };
  if (const auto* numbers = std::get_if<TokenNumbers>(&ids)) {
    if (!numbers->as_it_is) return context.Refuse("its ids are a function of an input");
    context.facts().ReadAsIds(numbers->input);
    return Tokens{
        context.out().Embedding(numbers->input, Tensor::Floats(shape, given.second), 0), {}, view_of(numbers->view)};
  }
  int64_t offset = 0, first = 0;  // of positions; the first that is looked up
  View view;
  if (const auto* counts = std::get_if<TokenCounts>(&ids)) {
    if (!counts->zero_at_padding) return context.Refuse("its indices count tokens, and go on where padding is");
    SWIZZLE_RETURN_IF_ERROR(
        Annotate(context.facts().CountTokens(counts->input, counts->padding), Describe(context.node())));
    offset = counts->offset;
    first = 1;
    view = counts->view;
  } else if (const auto* positions = std::get_if<Positions>(&ids)) {
    const bool in_sequence = positions->has_values && !positions->is_pair && positions->per_position == 1 &&
                             positions->per_sequence == Whole{0};
    if (!in_sequence) return context.Refuse("its indices are neither ids nor positions");
    offset = positions->offset;
    view = positions->view;
  } else {
    const auto* known = std::get_if<Known>(&ids);
    if (known == nullptr) return context.Refuse("its indices are neither ids nor positions");
    if (const auto row = IntegerOf(*known)) {
      if (*row < -rows || *row >= rows) return context.Refuse("its index ", *row, " is out of range");
      const int64_t place = *row < 0 ? *row + rows : *row;
      const auto floats = given.second.subspan(static_cast<size_t>(place * channels), static_cast<size_t>(channels));
      Shape one(known->shape.size(), 1);
      one.push_back(channels);
      return KnownConstant(context,
                           context.AddConstant(context.node().name + ".row", Tensor::Floats(std::move(one), floats)));
    }
    if (!IsCountingUp(*known, offset) || known->shape.back() != SizeOf(context.LengthAxis())) {
      return context.Refuse("its indices are neither ids nor positions");
    }
    view.dims.resize(known->shape.size());
    view.dims.back() = context.LengthAxis();
  }
  if (offset < 0 || offset + first >= rows)
    return context.Refuse("its positions begin at ", offset + first, ", its table has ", rows, " rows");
  const Whole length = SizeOf(context.LengthAxis());
  if (!std::holds_alternative<TokenCounts>(ids)) {
    if (length.IsNumber() && length.factor > rows - offset) {
      return context.Refuse("its table has ", rows - offset, " rows for sequences of ", length.factor, " tokens");
    }
    context.facts().ReadPositions();
  }
  return Tokens{
      context.out().Embedding(kNoValue, Tensor::Floats(shape, given.second), offset), {}, view_of(std::move(view))};
}

}  // namespace swizzle::sequences
