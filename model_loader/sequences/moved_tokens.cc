#include "model_loader/sequences/moved_tokens.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace swizzle::sequences {
namespace {

using Rows = std::vector<int32_t>;

constexpr int64_t kMostTokens = int64_t{1} << 20;  // of a sequence whose tokens are moved

// Whether a view goes through so many tokens of a sequence that no list of their places may be made.
bool HasTooMany(const View& view) {
  int64_t count = 1;
  for (const Axis& axis : view.AllAxes()) {
    if (axis.kind != AxisKind::kLength && axis.kind != AxisKind::kPlaces) continue;
    if (axis.size.factor > kMostTokens) return true;
    count *= axis.size.factor;
    if (count > kMostTokens) return true;
  }
  return false;
}

// The places that axes go through, in their order, counted from 0.
Rows PlacesOf(const Axes& axes) {
  Rows places = {0};
  for (const Axis& axis : axes) {
    if (axis.kind != AxisKind::kLength && axis.kind != AxisKind::kPlaces) continue;
    const int64_t stride = axis.kind == AxisKind::kLength ? 1 : axis.stride;
    Rows next;
    next.reserve(places.size() * static_cast<size_t>(axis.size.factor));
    for (const int32_t place : places) {
      for (int64_t i = 0; i < axis.size.factor; ++i) next.push_back(place + static_cast<int32_t>(i * stride));
    }
    places = std::move(next);
  }
  return places;
}

bool CountsUp(const Rows& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] != static_cast<int32_t>(i)) return false;
  }
  return true;
}

int64_t LengthOf(Context& context) { return context.facts().sequences().length; }

bool HasPlaces(const View& view) { return view.Has(AxisKind::kPlaces); }

bool IsSameActivation(const MovedTokens& a, const MovedTokens& b) {
  return a.tokens.value == b.tokens.value && a.tokens.samples == b.tokens.samples &&
         a.tokens.view.first_channel == b.tokens.view.first_channel;
}

// Whether two views differ in nothing but the positions of one dimension.
bool DifferInPlaces(const View& a, const View& b, size_t axis) {
  if (a.rank() != b.rank() || !b.Is(axis, AxisKind::kPlaces)) return false;
  for (size_t i = 0; i < a.rank(); ++i) {
    if (i != axis && a.dims[i] != b.dims[i]) return false;
  }
  return true;
}

}  // namespace

Rows RowsOf(const MovedTokens& moved) {
  if (HasTooMany(moved.tokens.view)) return {};
  Rows rows = PlacesOf(moved.tokens.view.AllAxes());
  for (int32_t& row : rows) {
    row += static_cast<int32_t>(moved.first_place);
    if (moved.rows != nullptr) row = (*moved.rows)[static_cast<size_t>(row)];
  }
  return rows;
}

std::optional<MovedTokens> AsMoved(const Form& form) {
  if (const auto* moved = std::get_if<MovedTokens>(&form)) return *moved;
  if (const auto* tokens = std::get_if<Tokens>(&form)) return MovedTokens{*tokens};
  return std::nullopt;
}

Form InOrderOrMoved(Context& context, MovedTokens moved) {
  // What is one axis again may be a part of the positions.
  const bool may_lie_so = moved.rows == nullptr && moved.first_place == 0 && !HasPlaces(moved.tokens.view);
  const Axes axes = moved.tokens.view.AllAxes();
  const auto length = std::ranges::find(axes, AxisKind::kLength, &Axis::kind);
  if (may_lie_so && (length == axes.end() || length->size == SizeOf(context.LengthAxis()))) return moved.tokens;
  const Rows rows = RowsOf(moved);
  if (static_cast<int64_t>(rows.size()) != LengthOf(context) || !CountsUp(rows)) return moved;
  moved.tokens.view = WithPlacesInOrder(moved.tokens.view);
  return moved.tokens;
}

StatusOr<Tokens> Settled(Context& context, const MovedTokens& moved) {
  const int64_t length = LengthOf(context);
  Rows rows = RowsOf(moved);
  if (static_cast<int64_t>(rows.size()) != length) {
    return Unimplemented("only a part of the tokens of its input is left, or there are more than ", kMostTokens);
  }
  Tokens settled{moved.tokens.value, moved.tokens.samples, WithPlacesInOrder(moved.tokens.view)};
  if (CountsUp(rows)) return settled;
  const auto [known, is_new] = context.permuted().try_emplace({settled.value, std::move(rows)}, kNoValue);
  if (is_new) known->second = context.out().PermuteTokens(settled.value, known->first.second);
  context.facts().PermuteTokens();
  settled.value = known->second;
  return settled;
}

Status SettleInputs(Context& context) {
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    const auto* moved = context.InputAs<MovedTokens>(i);
    if (moved == nullptr) continue;
    SWIZZLE_ASSIGN_OR_RETURN(Tokens settled, Settled(context, *moved));
    context.ReplaceInput(i, std::move(settled));
  }
  return {};
}

std::optional<Form> SlicePlaces(const Form& form, size_t axis, int64_t start, int64_t count) {
  auto moved = AsMoved(form);
  const auto is_place = [](const Axis& at) { return at.kind == AxisKind::kPlaces; };
  if (moved && moved->tokens.view.Is(axis, AxisKind::kLength)) {
    Axis& length = moved->tokens.view.dims[axis][0];
    if (length.size.IsNumber()) length = {AxisKind::kPlaces, length.size, 1};
  }
  if (!moved || moved->tokens.view.dims[axis].empty() ||
      !std::ranges::all_of(moved->tokens.view.dims[axis], is_place) || HasTooMany(moved->tokens.view))
    return std::nullopt;
  MovedTokens part = *moved;
  if (part.tokens.view.dims[axis].size() > 1) {  // which no axis goes through
    part.rows = std::make_shared<const Rows>(RowsOf(part));
    part.first_place = 0;
    part.tokens.view = WithPlacesInOrder(part.tokens.view);
    if (!part.tokens.view.Is(axis, AxisKind::kPlaces)) return std::nullopt;
  }
  Axis taken = part.tokens.view.dims[axis][0];
  part.first_place += start * taken.stride;
  taken.size = Whole{count};
  part.tokens.view.dims[axis] = {taken};
  return part;
}

StatusOr<Form> JoinPlaces(Context& context, size_t axis) {
  std::vector<MovedTokens> parts;
  int64_t along = 0, before = 1, count = 0;
  std::vector<Rows> rows;
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    const auto part = context.HasInput(i) ? AsMoved(context.Input(i)) : std::nullopt;
    if (!part) return context.Refuse("it joins parts of sequences with what is none");
    const View& view = part->tokens.view;
    const bool fits = i == 0 ? axis < view.rank() && view.Is(axis, AxisKind::kPlaces)
                             : IsSameActivation(parts[0], *part) && DifferInPlaces(parts[0].tokens.view, view, axis);
    if (!fits) return context.Refuse("it joins other than parts of one activation's sequences");
    along += view.dims[axis][0].size.factor;
    rows.push_back(RowsOf(*part));
    count += static_cast<int64_t>(rows.back().size());
    if (HasTooMany(view) || count > kMostTokens) return context.Refuse("its sequences are too long");
    parts.push_back(*part);
  }
  MovedTokens joined = parts[0];
  for (size_t d = 0; d < axis; ++d) before *= static_cast<int64_t>(PlacesOf(joined.tokens.view.dims[d]).size());
  Rows all;
  for (int64_t outer = 0; outer < before; ++outer) {
    for (const Rows& own : rows) {
      const auto size = static_cast<int64_t>(own.size()) / before;
      all.insert(all.end(), own.begin() + outer * size, own.begin() + (outer + 1) * size);
    }
  }
  joined.tokens.view.dims[axis][0].size = Whole{along};
  joined.tokens.view = WithPlacesInOrder(joined.tokens.view);
  joined.first_place = 0;
  joined.rows = std::make_shared<const Rows>(std::move(all));
  return InOrderOrMoved(context, std::move(joined));
}

}  // namespace swizzle::sequences
