#include "model_loader/sequences/rotary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "model_loader/sequences/position_numbers.h"

namespace swizzle::sequences {
namespace {

constexpr int64_t kMostNumbers = int64_t{1} << 26;  // of a table

using Term = Mixture::Term;
using Sums = Mixture::Sums;

// Two places in a mixture whose channels, `from_a` and `from_b` of the activation, turn into each other:
// a = from_a * cosine - from_b * sine, b = from_b * cosine + from_a * sine.
struct Pair {
  int64_t a = 0, b = 0;
  int64_t from_a = 0, from_b = 0;
  PositionColumn cosine, sine;
};

bool IsTurned(const std::vector<Term>& sum) {
  return sum.size() == 2 && sum[0].by && sum[1].by && sum[0].channel != sum[1].channel;
}
bool IsKept(const std::vector<Term>& sum) { return sum.size() == 1 && !sum[0].by; }

PositionColumn ColumnOf(const Term& term, double scale) {
  PositionColumn column = *term.by;
  column.factor *= term.factor / scale;
  return column;
}

// Places `a` < `b` as a pair; nothing where they are none.
std::optional<Pair> PairOf(const Sums& sums, int64_t a, int64_t b, double scale) {
  const auto &of_a = sums[static_cast<size_t>(a)], &of_b = sums[static_cast<size_t>(b)];
  for (const size_t own : {0, 1}) {
    const Term &a_own = of_a[own], &a_other = of_a[1 - own];
    const Term& b_own = of_b[of_b[0].channel == a_other.channel ? 0 : 1];
    const Term& b_other = of_b[of_b[0].channel == a_other.channel ? 1 : 0];
    if (a_own.by != b_own.by || a_own.factor != b_own.factor) continue;
    if (a_other.by != b_other.by || a_other.factor != -b_other.factor) continue;
    return Pair{a, b, a_own.channel, a_other.channel, ColumnOf(a_own, scale), ColumnOf(b_other, scale)};
  }
  return std::nullopt;
}

// All pairs by their first place; nothing where a sum is neither of a pair nor a channel that stays.
std::optional<std::vector<Pair>> PairsOf(const Sums& sums, double scale) {
  std::map<std::pair<int64_t, int64_t>, int64_t> open;  // places by their channels
  std::vector<Pair> pairs;
  for (int64_t i = 0; i < static_cast<int64_t>(sums.size()); ++i) {
    const auto& sum = sums[static_cast<size_t>(i)];
    if (IsKept(sum) && sum[0].factor == scale) continue;
    if (!IsTurned(sum)) return std::nullopt;
    const auto [at, is_new] = open.emplace(std::minmax(sum[0].channel, sum[1].channel), i);
    if (is_new) continue;
    const auto pair = PairOf(sums, at->second, i, scale);
    if (!pair) return std::nullopt;
    pairs.push_back(*pair);
    open.erase(at);
  }
  if (!open.empty()) return std::nullopt;
  std::ranges::sort(pairs, {}, &Pair::a);
  return pairs;
}

// How many pairs a head has, so that all heads are alike; nothing where they are not.
std::optional<Rotation> RotationOf(const std::vector<Pair>& pairs, int64_t channels) {
  const auto count = static_cast<int64_t>(pairs.size());
  for (int64_t each = 1; each <= count; ++each) {
    const int64_t heads = count / each, size = channels / heads;
    if (count % each != 0 || channels % heads != 0 || size < 2 * each) continue;
    bool alike = true;
    for (int64_t i = 0; i < count && alike; ++i) {
      const Pair& pair = pairs[static_cast<size_t>(i)];
      const Pair& first = pairs[static_cast<size_t>(i % each)];
      const int64_t begin = i / each * size;
      alike = pair.a == first.a + begin && pair.b == first.b + begin && first.b < size && pair.cosine == first.cosine &&
              pair.sine == first.sine;
    }
    if (alike) return Rotation{static_cast<int32_t>(heads), static_cast<int32_t>(size), static_cast<int32_t>(each)};
  }
  return std::nullopt;
}

// The places of a head in the order that the operator has them: first ones of pairs, second ones, what stays.
std::vector<int64_t> OrderOfHead(const std::vector<Pair>& pairs, const Rotation& rotation) {
  std::vector<int64_t> order;
  std::vector<bool> is_turned(static_cast<size_t>(rotation.size));
  for (int64_t Pair::*const place : {&Pair::a, &Pair::b}) {
    for (int32_t i = 0; i < rotation.pairs; ++i) {
      order.push_back(pairs[static_cast<size_t>(i)].*place);
      is_turned[static_cast<size_t>(order.back())] = true;
    }
  }
  for (int64_t i = 0; i < rotation.size; ++i) {
    if (!is_turned[static_cast<size_t>(i)]) order.push_back(i);
  }
  return order;
}

// The channels of the activation that are turned, in the operator's order.
std::vector<int64_t> SourcesOf(const Sums& sums, const std::vector<Pair>& pairs, const Rotation& rotation) {
  std::vector<int64_t> own(sums.size());
  for (size_t i = 0; i < sums.size(); ++i) own[i] = sums[i][0].channel;
  for (const Pair& pair : pairs) {
    own[static_cast<size_t>(pair.a)] = pair.from_a;
    own[static_cast<size_t>(pair.b)] = pair.from_b;
  }
  std::vector<int64_t> sources;
  const std::vector<int64_t> order = OrderOfHead(pairs, rotation);
  for (int32_t head = 0; head < rotation.heads; ++head) {
    for (const int64_t place : order) sources.push_back(own[static_cast<size_t>(head * rotation.size + place)]);
  }
  return sources;
}

// Pairs of neighbours, where the operator has halves: what stood at 2 * j + k of a head stands at k * pairs + j.
std::optional<View> FromNeighbours(View view, const Rotation& rotation) {
  const int64_t size = rotation.size, pairs = rotation.pairs;
  for (Axes& dim : view.dims) {
    Axes split;
    for (const Axis& axis : dim) {
      const int64_t count = axis.size.factor, stride = axis.stride;
      if (axis.kind != AxisKind::kChannels || stride % size == 0) {
        split.push_back(axis);
      } else if (stride == 1 && count % size == 0) {
        if (count > size) split.push_back({AxisKind::kChannels, Whole{count / size}, size});
        if (pairs > 1) split.push_back({AxisKind::kChannels, Whole{pairs}, 1});
        split.push_back({AxisKind::kChannels, Whole{2}, pairs});
      } else if (stride == 1 && count == 2) {
        split.push_back({AxisKind::kChannels, Whole{2}, pairs});
      } else if (stride == 2 && count * stride <= size) {
        split.push_back({AxisKind::kChannels, axis.size, 1});
      } else {
        return std::nullopt;
      }
    }
    dim = std::move(split);
  }
  return view;
}

// The view of the turned activation: the mixture's, but where pairs were neighbours.
std::optional<View> TurnedView(const View& view, const std::vector<Pair>& pairs, const Rotation& rotation) {
  const std::vector<int64_t> order = OrderOfHead(pairs, rotation);
  if (std::ranges::is_sorted(order)) return view;
  bool are_neighbours = 2 * rotation.pairs == rotation.size;
  for (int64_t i = 0; i < rotation.size && are_neighbours; ++i) {
    are_neighbours = order[static_cast<size_t>(i)] == 2 * (i % rotation.pairs) + i / rotation.pairs;
  }
  return are_neighbours ? FromNeighbours(view, rotation) : std::nullopt;
}

// The rows of all positions that there may be.
StatusOr<Tensor> TableOf(Context& context, const PositionColumns& columns) {
  const Whole length = SizeOf(context.LengthAxis());
  int64_t rows = length.IsNumber() ? length.factor : kMostComputedPositions;
  for (const PositionColumn& column : columns) rows = std::min(rows, PositionsOf(column).value_or(rows));
  if (rows < 1 || (length.IsNumber() && rows < length.factor)) {
    return context.Refuse("its table has ", rows, " rows for sequences of ", Text({length}), " tokens");
  }
  if (rows > kMostNumbers / static_cast<int64_t>(columns.size())) {
    return context.Refuse("its table of ", rows, " positions would have too many numbers");
  }
  std::vector<float> numbers;
  numbers.reserve(static_cast<size_t>(rows) * columns.size());
  for (int64_t position = 0; position < rows; ++position) {
    for (const PositionColumn& column : columns) numbers.push_back(NumberAt(column, position));
  }
  return Tensor::Floats({rows, static_cast<int64_t>(columns.size())}, numbers);
}

StatusOr<int> TableConstant(Context& context, const std::vector<Pair>& pairs, const Rotation& rotation) {
  PositionColumns columns;
  for (PositionColumn Pair::*const part : {&Pair::cosine, &Pair::sine}) {
    for (int32_t i = 0; i < rotation.pairs; ++i) columns.push_back(pairs[static_cast<size_t>(i)].*part);
  }
  auto& made = context.rotary_tables();
  const auto known = std::ranges::find(
      made, columns, [](const auto& table) -> const auto& { return table.first; });
  if (known != made.end()) return known->second;
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor table, TableOf(context, columns));
  const int constant = context.out().Table(table);
  made.emplace_back(std::move(columns), constant);
  return constant;
}

// Channels in their order, each times a number by position: no rotary embedding, but a product; nothing for any other.
std::optional<StatusOr<Tokens>> ProductOf(Context& context, int value, const Sums& sums, const View& view) {
  PositionNumbers numbers{nullptr, view};
  PositionColumns columns;
  for (size_t i = 0; i < sums.size(); ++i) {
    const bool is_one = sums[i].size() == 1 && sums[i][0].by && sums[i][0].channel == static_cast<int64_t>(i);
    if (!is_one || context.out().Channels(value) != static_cast<int64_t>(sums.size())) return std::nullopt;
    columns.push_back(ColumnOf(sums[i][0], 1.0));
  }
  numbers.columns = std::make_shared<const PositionColumns>(std::move(columns));
  StatusOr<Tokens> factors = EmbeddedOf(context, numbers);
  if (factors.ok()) factors->value = context.out().Multiply(value, factors->value);
  return factors;
}

}  // namespace

StatusOr<Tokens> RotatedOf(Context& context, const Mixture& mixture) {
  const OrderedChannels ordered = InOrder(mixture.view);
  Sums sums;
  for (const int64_t channel : ordered.channels) sums.push_back((*mixture.sums)[static_cast<size_t>(channel)]);
  if (sums.empty()) return Unimplemented("a rotary embedding has no channels");
  if (mixture.view.Has(AxisKind::kPlaces)) return Unimplemented("a rotary embedding is of some of the tokens alone");
  if (auto product = ProductOf(context, mixture.value, sums, ordered.view)) return *std::move(product);
  const auto kept = std::ranges::find_if(sums, IsKept);
  const double scale = kept == sums.end() ? std::abs(sums[0][0].factor) : (*kept)[0].factor;
  const auto pairs = PairsOf(sums, scale);
  if (!pairs) return Unimplemented("a part of a rotary embedding is read by something else");
  Tokens tokens{mixture.value, {}, ordered.view};
  if (scale != 1.0) {
    for (const double point : SamplePoints()) tokens.samples.push_back(scale * point);
  }
  if (pairs->empty()) {
    std::vector<int64_t> channels;
    for (const auto& sum : sums) channels.push_back(sum[0].channel);
    SWIZZLE_ASSIGN_OR_RETURN(tokens.value, context.out().SelectChannels(mixture.value, channels));
    return tokens;
  }
  const auto rotation = RotationOf(*pairs, static_cast<int64_t>(sums.size()));
  const auto view = rotation ? TurnedView(ordered.view, *pairs, *rotation) : std::nullopt;
  if (!view) return Unimplemented("a rotary embedding's heads are not turned alike");
  SWIZZLE_ASSIGN_OR_RETURN(const int turned,
                           context.out().SelectChannels(mixture.value, SourcesOf(sums, *pairs, *rotation)));
  SWIZZLE_ASSIGN_OR_RETURN(const int table, TableConstant(context, *pairs, *rotation));
  context.facts().ReadPositions();
  tokens.value = context.out().Rotary(turned, table, *rotation);
  tokens.view = *view;
  return tokens;
}

StatusOr<Tokens> EmbeddedOf(Context& context, const PositionNumbers& numbers) {
  const OrderedChannels ordered = InOrder(numbers.view);
  PositionColumns columns;
  for (const int64_t channel : ordered.channels) columns.push_back((*numbers.columns)[static_cast<size_t>(channel)]);
  const auto by_position = [](const PositionColumn& column) {
    return column.kind != PositionColumn::Kind::kLinear || column.slope != 0.0f;
  };
  if (!ordered.view.Has(AxisKind::kLength) || !std::ranges::any_of(columns, by_position)) {
    return Unimplemented("it is no activation");
  }
  SWIZZLE_ASSIGN_OR_RETURN(Tensor table, TableOf(context, columns));
  context.facts().ReadPositions();
  return Tokens{context.out().Embedding(kNoValue, std::move(table), 0), {}, ordered.view};
}

}  // namespace swizzle::sequences
