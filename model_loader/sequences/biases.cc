#include "model_loader/sequences/biases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/elements.h"
#include "model_loader/sequences/known.h"
#include "model_loader/sequences/scores.h"
#include "model_loader/sequences/window_biases.h"

namespace swizzle::sequences {
namespace {

constexpr int64_t kMostNumbers = int64_t{1} << 22;  // of a table whose numbers go by distance
constexpr int64_t kMostHeads = 512;
constexpr int64_t kMostBiases = int64_t{1} << 26;  // of pairs, for all heads
constexpr double kRounding = 2e-7;                 // of a sum in FP32
// Below it nothing is left of a key beside others.
constexpr double kLeastExcluded = -1e3;

// Whether what is added has for each of the scores the number of its sequence, head, query and key.
bool GoesWith(const View& added, const View& scores) {
  const auto view = Expanded(added, scores.shape());
  return view && std::ranges::equal(view->dims, scores.dims, GoesAlong);
}

// A constant's elements; nothing where its bytes went with its last reader.
std::optional<Elements> ElementsOf(Context& context, int constant) {
  const Tensor& tensor = context.Constant(constant);
  const int64_t bytes = tensor.elements() * static_cast<int64_t>(ElementBytes(tensor.dtype));
  return static_cast<int64_t>(tensor.bytes.size()) == bytes ? Elements::FromTensor(tensor) : std::nullopt;
}

// The numbers of a constant, or of what was computed of some and is listed; nothing where there are none.
std::optional<std::vector<double>> NumbersOf(Context& context, const Known& known, int64_t count) {
  std::vector<double> numbers;
  if (known.constant != kNoValue) {
    const auto elements = ElementsOf(context, known.constant);
    if (!elements) return std::nullopt;
    for (const Scalar& scalar : elements->scalars) {
      numbers.push_back(IsFloating(known.dtype) ? scalar.real : static_cast<double>(scalar.whole));
    }
  } else {
    for (const Number& number : known.numbers) {
      if (!IsFloating(known.dtype) && !number.whole.IsNumber()) return std::nullopt;
      numbers.push_back(IsFloating(known.dtype) ? number.real : static_cast<double>(number.whole.factor));
    }
  }
  return static_cast<int64_t>(numbers.size()) == count ? std::optional(std::move(numbers)) : std::nullopt;
}

// Whether its leading dimensions go through the heads in their order, one or as many as scores have.
bool HasHeadsInOrder(const Distances& distances, int64_t heads) {
  const std::vector<int64_t> order = ChannelsOf(LeadingAxes(distances.view), 0);
  const int64_t own = distances.numbers->heads;
  if ((own != 1 && own != heads) || static_cast<int64_t>(order.size()) != own) return false;
  return std::ranges::is_sorted(order) && order.back() == own - 1;
}

// A constant that differs along one dimension alone has a number for each head.
std::optional<Distances> DistancesOfEachHead(Context& context, const Known& known) {
  const auto shape = AsShape(known.shape);
  if (!shape || known.constant == kNoValue) return std::nullopt;
  const auto is_long = [](int64_t size) { return size > 1; };
  if (std::ranges::count_if(*shape, is_long) != 1 || std::ranges::max(*shape) > kMostHeads) return std::nullopt;
  const auto elements = ElementsOf(context, known.constant);
  if (!elements || elements->scalars.empty()) return std::nullopt;
  std::vector<double> numbers;
  for (const Scalar& scalar : elements->scalars) {
    numbers.push_back(IsFloating(known.dtype) ? scalar.real : static_cast<double>(scalar.whole));
  }
  Distances distances{known.dtype, DistancesOfHeads(numbers), kNoValue, {}};
  for (const int64_t size : *shape) distances.view.dims.push_back(is_long(size) ? ChannelAxis(size) : Axes());
  return distances;
}

// A mask of keys, whose last dimension goes along them.
std::optional<Distances> DistancesOfKeys(const TokenNumbers& mask) {
  Distances distances{mask.dtype, DistancesOfMask(mask.at_zero, mask.at_one), mask.input, mask.view};
  if (mask.view.rank() == 0 || !mask.view.Is(mask.view.rank() - 1, AxisKind::kLength)) return std::nullopt;
  distances.view.dims.back()[0].kind = AxisKind::kKeys;
  return distances.view.Has(AxisKind::kLength) ? std::nullopt : std::optional(distances);
}

// What the input is, or is made of: a number, one for each head, or a mask of keys.
StatusOr<Distances> AsDistances(Context& context, size_t input) {
  if (const auto* distances = context.InputAs<Distances>(input)) return *distances;
  if (const auto* mask = context.InputAs<TokenNumbers>(input)) {
    if (auto distances = DistancesOfKeys(*mask)) return *std::move(distances);
  }
  const auto* known = context.InputAs<Known>(input);
  if (known != nullptr) {
    if (const auto number = NumberOf(*known)) {
      return Distances{known->dtype, DistancesOf([&](int64_t) { return *number; }), kNoValue,
                       RepeatedView(known->shape)};
    }
    if (auto distances = DistancesOfEachHead(context, *known)) return *std::move(distances);
  }
  return context.Refuse("it combines numbers by distance with what is neither a number nor a mask of keys");
}

// Masks scores as `distances` do, whose numbers are less where a key's mask is 0.
StatusOr<Scores> WithMaskOf(Context& context, Scores scores, const Distances& distances) {
  const DistanceNumbers& numbers = *distances.numbers;
  double most = -std::numeric_limits<double>::infinity(), bias = 0.0;
  bool masks = false, same_bias = true;
  for (int64_t head = 0; head < numbers.heads; ++head) {
    const auto masked = numbers.Of(0, head), kept = numbers.Of(1, head);
    for (size_t i = 0; i < masked.size(); ++i) {
      const double difference = masked[i] - kept[i];
      if (head == 0 && i == 0) bias = difference;
      masks = masks || masked[i] != kept[i];
      same_bias = same_bias && std::abs(difference - bias) <= kRounding * std::abs(bias);
      most = std::max(most, masked[i]);
    }
  }
  if (!masks) return scores;
  if (scores.mask != kNoValue) return context.Refuse("scores are masked twice");
  if (most > kExcludedScore && !(same_bias && bias < 0.0)) {
    return context.Refuse("what it adds to the scores of masked tokens goes by their distance");
  }
  scores.mask = distances.mask;
  scores.masked_bias = most > kExcludedScore ? bias : most;
  return scores;
}

// The numbers of keys that are not masked.
SharedDistances KeptOf(const SharedDistances& distances) {
  if (distances->states == 1) return distances;
  auto kept = std::make_shared<DistanceNumbers>();
  kept->heads = distances->heads;
  const auto half = static_cast<std::ptrdiff_t>(distances->numbers.size() / 2);
  kept->numbers.assign(distances->numbers.begin() + half, distances->numbers.end());
  return kept;
}

// Whether at(head, query, key) is the same for all pairs of as far places.
bool GoByDistance(int64_t heads, int64_t length, const auto& at) {
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t query = 1; query < length; ++query) {
      for (int64_t key = 1; key < length; ++key) {
        if (at(head, query, key) != at(head, query - 1, key - 1)) return false;
      }
    }
  }
  return true;
}

// The number of one of the pairs that are so far apart.
auto AtDistance(int64_t head, int64_t distance, const auto& at) {
  return at(head, std::max<int64_t>(-distance, 0), std::max<int64_t>(distance, 0));
}

// Biases of pairs [heads][length][length] by distance, where they go by it alone: far fewer are read then, and tokens
// that are masked may be left out.
std::optional<Emitter::BiasTable> ByDistance(const std::vector<float>& pairs, int64_t length) {
  const auto at = [&](int64_t head, int64_t query, int64_t key) {
    return pairs[static_cast<size_t>((head * length + query) * length + key)];
  };
  const int64_t heads = static_cast<int64_t>(pairs.size()) / (length * length);
  if (!GoByDistance(heads, length, at)) return std::nullopt;
  Emitter::BiasTable table{{}, 0, length - 1};
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t distance = 1 - length; distance < length; ++distance) {
      table.biases.push_back(AtDistance(head, distance, at));
    }
  }
  return table;
}

// What excludes a key becomes -infinity, unless that would leave a query without keys: each keeps its own.
void Exclude(Emitter::BiasTable& table, size_t columns) {
  const auto pairs = static_cast<size_t>(table.length * table.length);
  for (size_t i = 0; i < table.biases.size(); ++i) {
    const auto column = static_cast<int64_t>(i % (table.windows > 1 ? pairs : columns));
    const bool is_own = table.length > 0 ? column % (table.length + 1) == 0 : column == table.reach;
    if (is_own && !(table.biases[i] > kLeastExcluded)) return;
  }
  for (float& bias : table.biases) {
    if (bias <= kExcludedScore) bias = -std::numeric_limits<float>::infinity();
  }
}

// Excludes keys, and gives the canonical operator, which is plain attention where all biases are alike.
int EmitBiased(Context& context, const Scores& scores, int values, Emitter::BiasTable table) {
  const Emitter::AttentionInputs inputs = InputsOf(scores, values);
  Exclude(table, table.biases.size() / static_cast<size_t>(scores.heads));
  const bool same =
      table.windows == 1 && std::ranges::all_of(table.biases, [&](float bias) { return bias == table.biases[0]; });
  if (same && std::isfinite(table.biases[0])) return context.out().Attention(inputs);
  return context.out().BiasedAttention(inputs, table);
}

}  // namespace

std::optional<Distances> DistancesOfPositions(Context& context, const Positions& a, const Positions& b) {
  constexpr std::string_view kTests[] = {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Sub"};
  const size_t rank = std::max(a.view.rank(), b.view.rank());
  const auto along = [&](const Positions& positions) -> std::optional<size_t> {
    std::optional<size_t> found;
    for (size_t i = 0; i < positions.view.rank(); ++i) {
      if (!positions.view.Is(i, AxisKind::kLength)) continue;
      if (found) return std::nullopt;
      found = i + rank - positions.view.rank();
    }
    return found;
  };
  const auto of_sequence = [](const Positions& positions) {
    constexpr int64_t kMostOffset = int64_t{1} << 24;  // whose sums are exact as doubles
    return positions.has_values && !positions.is_pair && positions.per_sequence == Whole{0} &&
           std::abs(positions.offset) <= kMostOffset && std::abs(positions.per_position) <= kMostOffset;
  };
  const auto at_a = along(a), at_b = along(b);
  const bool apart = at_a && at_b && *at_a != *at_b && of_sequence(a) && of_sequence(b);
  const auto function = PointFunctionOf(context.node(), a.dtype);
  if (!apart || !function || std::ranges::find(kTests, context.node().op) == std::end(kTests)) return std::nullopt;
  if (a.per_position != b.per_position || a.dtype != b.dtype) return std::nullopt;
  // The earlier dimension is of queries. What both places are moved by changes neither differences nor comparisons.
  Positions of_keys = *at_a > *at_b ? a : b;
  for (Axes& dim : of_keys.view.dims) {
    for (Axis& axis : dim) axis.kind = axis.kind == AxisKind::kLength ? AxisKind::kKeys : axis.kind;
  }
  const auto view = Broadcast(of_keys.view, (*at_a > *at_b ? b : a).view);
  if (!view) return std::nullopt;
  const DType dtype = PointFunctionType(context.node(), a.dtype);
  const auto number = [&](int64_t distance) {
    const auto place = static_cast<double>(a.per_position * distance);
    const double x = static_cast<double>(a.offset) + (*at_a > *at_b ? place : 0.0);
    const double y = static_cast<double>(b.offset) + (*at_a > *at_b ? 0.0 : place);
    return Rounded((*function)(std::array{x, y}), dtype);
  };
  Distances distances{dtype, DistancesOf(number), kNoValue, *view};
  return context.TakeDistances(distances.numbers) ? std::optional(std::move(distances)) : std::nullopt;
}

StatusOr<Form> CombineDistances(Context& context) {
  Distances result;
  std::vector<SharedDistances> inputs;
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    if (!context.HasInput(i)) return context.Refuse("an input is left out");
    SWIZZLE_ASSIGN_OR_RETURN(const Distances distances, AsDistances(context, i));
    const auto view = i == 0 ? distances.view : Broadcast(result.view, distances.view);
    if (!view) return context.Refuse("its inputs do not broadcast");
    result.view = *view;
    if (result.mask != kNoValue && distances.mask != kNoValue && result.mask != distances.mask) {
      return context.Refuse("it combines masks of two inputs");
    }
    if (result.mask == kNoValue) result.mask = distances.mask;
    if (i == (context.node().op == "Where" ? 1 : 0)) result.dtype = distances.dtype;
    inputs.push_back(distances.numbers);
  }
  const auto function = PointFunctionOf(context.node(), result.dtype);
  if (!function) return context.Refuse("it is not computed beforehand");
  result.dtype = PointFunctionType(context.node(), result.dtype);
  result.numbers = DistancesApplied(*function, result.dtype, inputs);
  if (result.numbers == nullptr) return context.Refuse("its inputs are of different numbers of heads");
  if (!context.TakeDistances(result.numbers)) return context.Refuse("numbers by distance take too much to compute");
  return result;
}

StatusOr<Form> GatherByDistance(Context& context, const Distances& distances) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto table, FloatTensor(context, 0, "table"));
  const int64_t rows = table.first[0], heads = table.first[1];
  const DistanceNumbers& places = *distances.numbers;
  if (places.states != 1 || places.heads != 1 || IsFloating(distances.dtype) || heads < 1 || heads > kMostHeads) {
    return context.Refuse("its indices are not whole numbers that go by distance alone");
  }
  auto taken = std::make_shared<DistanceNumbers>();
  taken->heads = heads;
  for (int64_t head = 0; head < heads; ++head) {
    for (const double place : places.numbers) {
      if (!(place >= static_cast<double>(-rows) && place < static_cast<double>(rows))) {
        return context.Refuse("its index ", place, " is out of range");
      }
      const int64_t row = static_cast<int64_t>(place) + (place < 0 ? rows : 0);
      taken->numbers.push_back(table.second[static_cast<size_t>(row * heads + head)]);
    }
  }
  Distances result{DType::kFloat32, std::move(taken), kNoValue, distances.view};
  if (!context.TakeDistances(result.numbers)) return context.Refuse("numbers by distance take too much to compute");
  result.view.dims.push_back(ChannelAxis(heads));
  return result;
}

StatusOr<Form> TriangleOfDistances(Context& context, int64_t diagonal, bool upper) {
  SWIZZLE_ASSIGN_OR_RETURN(Distances distances, AsDistances(context, 0));
  const size_t rank = distances.view.rank();
  const Axes length = context.LengthAxis();
  const bool square = rank >= 2 && !length.empty() && SizeOf(distances.view.dims[rank - 1]) == SizeOf(length) &&
                      SizeOf(distances.view.dims[rank - 2]) == SizeOf(length);
  const auto may_be = [&](size_t i, AxisKind kind) {
    return IsRepeated(distances.view.dims[i]) || distances.view.Is(i, kind);
  };
  if (!square || !may_be(rank - 2, AxisKind::kLength) || !may_be(rank - 1, AxisKind::kKeys)) {
    return context.Refuse("its input is no mask of pairs of tokens");
  }
  distances.view.dims[rank - 2] = length;
  distances.view.dims[rank - 1] = AsDimension({AxisKind::kKeys, SizeOf(length)});
  const SharedDistances inside =
      DistancesOf([&](int64_t distance) { return (upper ? distance >= diagonal : distance <= diagonal) ? 1.0 : 0.0; });
  const PointFunction keep = [](std::span<const double> x) { return x[1] != 0.0 ? x[0] : 0.0; };
  distances.numbers = DistancesApplied(keep, distances.dtype, std::array{distances.numbers, inside});
  if (!context.TakeDistances(distances.numbers)) return context.Refuse("numbers by distance take too much to compute");
  return distances;
}

std::optional<Distances> DistancesOfTable(Context& context, const Known& known) {
  const auto shape = AsShape(known.shape);
  if (!shape || shape->size() < 2) return std::nullopt;
  const size_t rank = shape->size();
  const int64_t length = shape->back();
  if (known.constant == kNoValue && length != context.FixedLength()) return std::nullopt;
  const auto elements_of = ElementCount(*shape);
  if (length != (*shape)[rank - 2] || length < 2 || length > kNearDistance || !elements_of.ok()) return std::nullopt;
  const int64_t heads = *elements_of / (length * length);
  if (*elements_of > kMostNumbers || heads < 1 || heads > kMostHeads ||
      (heads > 1 && (rank < 3 || (*shape)[rank - 3] != heads)))
    return std::nullopt;
  const auto table = NumbersOf(context, known, *elements_of);
  if (!table) return std::nullopt;
  const auto number = [&](int64_t head, int64_t query, int64_t key) {
    return (*table)[static_cast<size_t>((head * length + query) * length + key)];
  };
  if (!GoByDistance(heads, length, number)) return std::nullopt;
  auto numbers = std::make_shared<DistanceNumbers>();
  numbers->heads = heads;
  for (int64_t head = 0; head < heads; ++head) {
    for (const int64_t distance : SampledDistances()) {
      numbers->numbers.push_back(AtDistance(head, std::clamp(distance, 1 - length, length - 1), number));
    }
  }
  Distances distances{known.dtype, std::move(numbers), kNoValue, {}};
  if (!context.TakeDistances(distances.numbers)) return std::nullopt;
  distances.view.dims.resize(rank);
  if (heads > 1) distances.view.dims[rank - 3] = ChannelAxis(heads);
  distances.view.dims[rank - 2] = AsDimension({AxisKind::kLength, Whole{length}});
  distances.view.dims[rank - 1] = AsDimension({AxisKind::kKeys, Whole{length}});
  return distances;
}

StatusOr<Scores> WithDistances(Context& context, Scores scores, const Distances& distances) {
  if (!GoesWith(distances.view, scores.view) || !HasHeadsInOrder(distances, scores.heads) ||
      scores.heads > kMostHeads) {
    return context.Refuse("what it adds to scores, of shape ", Text(distances.view.shape()), ", does not go with ",
                          Text(scores.view.shape()));
  }
  if (distances.mask != kNoValue) {
    SWIZZLE_ASSIGN_OR_RETURN(scores, WithMaskOf(context, std::move(scores), distances));
  }
  SharedDistances added = KeptOf(distances.numbers);
  if (scores.biases != nullptr) {
    const PointFunction sum = [](std::span<const double> x) { return x[0] + x[1]; };
    added = DistancesApplied(sum, DType::kFloat32, std::array{scores.biases, added});
    if (added == nullptr) return context.Refuse("its biases are of different numbers of heads");
  }
  if (!context.TakeDistances(added)) return context.Refuse("numbers by distance take too much to compute");
  scores.biases = std::move(added);
  return scores;
}

StatusOr<Scores> WhereDistances(Context& context, Scores scores, Distances condition, bool keeps, double fill) {
  const PointFunction added = [&](std::span<const double> x) { return (x[0] != 0.0) == keeps ? 0.0 : fill; };
  condition.numbers = DistancesApplied(added, DType::kFloat32, std::array{condition.numbers});
  return WithDistances(context, std::move(scores), condition);
}

StatusOr<Scores> WithPairBiases(Context& context, Scores scores, size_t input, double sign) {
  if (scores.windows > 1) return WithWindowBiases(context, std::move(scores), input, sign);
  const int64_t length = context.FixedLength();
  const auto* known = context.InputAs<Known>(input);
  const auto shape = known == nullptr ? std::nullopt : AsShape(known->shape);
  const size_t rank = shape ? shape->size() : 0;
  const bool square = rank >= 2 && length > 0 && (*shape)[rank - 1] == length && (*shape)[rank - 2] == length;
  if (!square || scores.view.rank() < rank || scores.heads > kMostBiases / (length * length)) {
    return context.Refuse(
        "what it adds to scores is no constant for each pair of tokens in sequences of a fixed length");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const auto table, FloatTensor(context, input, "bias of pairs of tokens"));
  const int64_t heads = static_cast<int64_t>(table.second.size()) / (length * length);
  View view;
  view.dims.resize(rank);
  if (rank > 2) view.dims[rank - 3] = ChannelAxis((*shape)[rank - 3]);
  view.dims[rank - 2] = AsDimension({AxisKind::kLength, Whole{length}});
  view.dims[rank - 1] = AsDimension({AxisKind::kKeys, Whole{length}});
  if (heads != (rank > 2 ? (*shape)[rank - 3] : 1) || !GoesWith(view, scores.view)) {
    return context.Refuse("what it adds to scores, of shape ", ShapeText(*shape), ", does not go with ",
                          Text(scores.view.shape()));
  }
  context.out().Spend(table.second.size());
  std::vector<float> sum(static_cast<size_t>(scores.heads * length * length));
  for (size_t i = 0; i < sum.size(); ++i) {
    sum[i] = static_cast<float>(sign) * table.second[i % table.second.size()];
    if (scores.pair_biases != nullptr) sum[i] += (*scores.pair_biases)[i];
  }
  scores.pair_biases = std::make_shared<const std::vector<float>>(std::move(sum));
  return scores;
}

Status ScaleBiases(Context& context, Scores& scores, double factor) {
  if (scores.biases != nullptr) {
    const PointFunction scaled = [factor](std::span<const double> x) { return x[0] * factor; };
    scores.biases = DistancesApplied(scaled, DType::kFloat32, std::array{scores.biases});
    if (!context.TakeDistances(scores.biases)) return context.Refuse("numbers by distance take too much to compute");
  }
  if (scores.pair_biases != nullptr) {
    std::vector<float> scaled = *scores.pair_biases;
    for (float& bias : scaled) bias *= static_cast<float>(factor);
    scores.pair_biases = std::make_shared<const std::vector<float>>(std::move(scaled));
  }
  return {};
}

StatusOr<int> BiasedAttentionOf(Context& context, const Scores& scores, int values) {
  if (scores.pattern != nullptr) return context.Refuse("it has biases as well as a mask of pairs of tokens");
  const int64_t length = context.FixedLength(), heads = scores.heads;
  if (scores.windows > 1) return EmitBiased(context, scores, values, WindowTableOf(context, scores));
  if (scores.pair_biases == nullptr) {
    auto reach = ReachOf(*scores.biases, length);
    if (!reach && length > 0) return context.Refuse("its biases go on changing with the distance, in long sequences");
    if (!reach) {  // ALiBi's: as far as they are known
      reach = kNearDistance;
      context.facts().BoundLength(kNearDistance + 1);
    }
    return EmitBiased(context, scores, values, {BiasesWithin(*scores.biases, 0, heads, *reach), 0, *reach});
  }
  Emitter::BiasTable table{*scores.pair_biases, length, 0};
  if (scores.biases != nullptr) {
    if (length > kNearDistance) return context.Refuse("it adds numbers by distance in sequences that are too long");
    const auto columns = static_cast<size_t>(length * length);
    const std::vector<float> added = BiasesWithin(*scores.biases, 0, heads, length);
    for (size_t i = 0; i < table.biases.size(); ++i) {
      const auto head = static_cast<int64_t>(i / columns), pair = static_cast<int64_t>(i % columns);
      table.biases[i] += added[static_cast<size_t>(head * (2 * length + 1) + pair % length - pair / length + length)];
    }
  }
  if (auto by_distance = ByDistance(table.biases, length)) table = *std::move(by_distance);
  return EmitBiased(context, scores, values, std::move(table));
}

}  // namespace swizzle::sequences
