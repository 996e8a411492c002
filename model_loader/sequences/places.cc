#include "model_loader/sequences/places.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/sequences/biases.h"
#include "model_loader/sequences/known.h"
#include "model_loader/sequences/scores.h"

namespace swizzle::sequences {
namespace {

using Term = PlaceProducts::Term;

// Whether vectors of some heads, or of all, go with the heads of an activation along this dimension.
bool GoWithHeads(const Axes& vectors, const Axes& heads) {
  if (IsRepeated(vectors)) return true;
  return std::ranges::equal(vectors, heads, [](const Axis& vector, const Axis& head) {
    const bool alike = vector.kind == head.kind || (vector.kind == AxisKind::kRepeat && head.kind == AxisKind::kBatch);
    return alike && vector.size == head.size;
  });
}

// Whether heads go on in the order of their channels: no axis of theirs was moved, and none is there twice.
bool HasHeadsInOrder(const View& view) {
  const Axes leading = LeadingAxes(view);
  const auto repeats = [](const Axis& axis) { return axis.kind == AxisKind::kRepeat; };
  return std::ranges::none_of(leading, repeats) && std::ranges::is_sorted(ChannelsOf(leading, 0));
}

// Whether two views are of the same sequences and heads, in order, and of the same pairs of tokens.
bool AreAlike(const View& a, const View& b) {
  const auto same = [](const Axes& x, const Axes& y) {
    return std::ranges::equal(x, y, [](const Axis& p, const Axis& q) { return p.kind == q.kind && p.size == q.size; });
  };
  return HasHeadsInOrder(a) && HasHeadsInOrder(b) && std::ranges::equal(a.dims, b.dims, same);
}

// Where products with places lie that are taken by pairs of tokens.
bool IsOfPairs(const View& view, AxisKind rows, AxisKind columns) {
  const size_t rank = view.rank();
  return rank >= 2 && view.Is(rank - 2, rows) && view.Is(rank - 1, columns);
}

// The place at each sampled distance, none of `count` or above; nothing where an index is out of range.
SharedDistances PlacesOf(const DistanceNumbers& indices, int64_t count) {
  auto places = std::make_shared<DistanceNumbers>(indices);
  for (double& place : places->numbers) {
    if (place < 0) place += static_cast<double>(count);
    if (!(place >= 0 && place < static_cast<double>(count))) return nullptr;
  }
  return places;
}

int64_t CountOf(Context& context, const Term& term) {
  return static_cast<int64_t>(term.vectors->size()) / context.out().Channels(term.value);
}

// The columns of a weight of disentangled attention, and the least distance of each: a column for all neighbours in
// distance whose places are alike in every term.
struct Columns {
  std::vector<float> least;
  std::vector<std::vector<int64_t>> places;  // by column and term
};

StatusOr<Columns> ColumnsOf(Context& context, const std::vector<Term>& terms) {
  int64_t reach = 0;
  std::vector<std::vector<float>> by_distance;  // of each term
  for (const Term& term : terms) {
    const auto its = ReachOf(*term.places, context.FixedLength());
    if (!its) return context.Refuse("the places it takes go on changing with the distance");
    reach = std::max(reach, *its);
  }
  for (const Term& term : terms) by_distance.push_back(BiasesWithin(*term.places, 0, 1, reach));
  Columns columns;
  for (size_t i = 0; i < by_distance[0].size(); ++i) {
    std::vector<int64_t> places;
    for (const auto& of_term : by_distance) places.push_back(static_cast<int64_t>(of_term[i]));
    if (!columns.places.empty() && columns.places.back() == places) continue;
    columns.least.push_back(static_cast<float>(static_cast<int64_t>(i) - reach));
    columns.places.push_back(std::move(places));
  }
  return columns;
}

}  // namespace

StatusOr<ConstantVectors> AsConstantVectors(Context& context, size_t input) {
  if (const auto* vectors = context.InputAs<ConstantVectors>(input)) return *vectors;
  SWIZZLE_ASSIGN_OR_RETURN(const auto tensor, FloatTensor(context, input, "vectors"));
  ConstantVectors vectors{std::make_shared<std::vector<float>>(tensor.second.begin(), tensor.second.end()), {}};
  context.out().Spend(tensor.second.size());
  for (const int64_t size : tensor.first) vectors.view.dims.push_back(ChannelAxis(size));
  vectors.view = InOrder(vectors.view).view;
  return vectors;
}

bool MeetsPlaces(Context& context) {
  const auto* tokens = context.InputAs<Tokens>(0);
  const auto* known = context.InputAs<Known>(1);
  const bool of_heads = (known != nullptr && known->shape.size() > 2) || context.InputAs<ConstantVectors>(1) != nullptr;
  const size_t rank = tokens == nullptr ? 0 : tokens->view.rank();
  return of_heads && rank > 2 && tokens->view.Is(rank - 2, AxisKind::kLength) &&
         IsOfChannels(tokens->view.dims[rank - 1]);
}

StatusOr<Form> PlaceProductsOf(Context& context, double alpha) {
  const Tokens tokens = *context.InputAs<Tokens>(0);
  SWIZZLE_ASSIGN_OR_RETURN(const ConstantVectors vectors, AsConstantVectors(context, 1));
  const size_t rank = tokens.view.rank();
  bool fits = vectors.view.rank() == rank &&
              SizeOf(vectors.view.dims[rank - 2]) == SizeOf(tokens.view.dims[rank - 1]) &&
              IsOfChannels(vectors.view.dims[rank - 2]) && IsOfChannels(vectors.view.dims[rank - 1]) &&
              HasHeadsInOrder(tokens.view);
  for (size_t i = 0; fits && i + 2 < rank; ++i) fits = GoWithHeads(vectors.view.dims[i], tokens.view.dims[i]);
  if (!fits) {
    return context.Refuse("its constant of shape ", Text(vectors.view.shape()), " does not go with the heads of ",
                          Text(tokens.view.shape()));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const HeadMatrix matrix, HeadsOf(context, tokens));
  const std::vector<int64_t> heads = ChannelsOf(LeadingAxes(vectors.view), vectors.view.first_channel);
  const std::vector<int64_t> depth = ChannelsOf(vectors.view.dims[rank - 2], 0);
  const std::vector<int64_t> places = ChannelsOf(vectors.view.dims[rank - 1], 0);
  const bool has_all = heads.size() == 1 || static_cast<int64_t>(heads.size()) == matrix.heads;
  if (!has_all || places.size() > static_cast<size_t>(2 * kNearDistance)) {
    return context.Refuse("its vectors are of ", heads.size(), " heads and ", places.size(), " places");
  }
  auto numbers = std::make_shared<std::vector<float>>();
  numbers->reserve(static_cast<size_t>(matrix.heads) * depth.size() * places.size());
  for (int64_t head = 0; head < matrix.heads; ++head) {
    const int64_t of_head = heads[heads.size() == 1 ? 0 : static_cast<size_t>(head)];
    for (const int64_t channel : depth) {
      for (const int64_t place : places) {
        numbers->push_back((*vectors.numbers)[static_cast<size_t>(of_head + channel + place)]);
      }
    }
  }
  context.out().Spend(numbers->size());
  PlaceProducts products{{{matrix.value, std::move(numbers), alpha * matrix.factor}}, tokens.view};
  products.view.dims.back() = ChannelAxis(static_cast<int64_t>(places.size()));
  return products;
}

StatusOr<Form> TakePlaces(Context& context) {
  PlaceProducts products = *context.InputAs<PlaceProducts>(0);
  if (const auto* listed = context.InputAs<Known>(1)) {
    if (auto distances = DistancesOfTable(context, *listed)) context.ReplaceInput(1, *std::move(distances));
  }
  const auto* indices = context.InputAs<Distances>(1);
  const size_t rank = products.view.rank();
  SWIZZLE_ASSIGN_OR_RETURN(int64_t axis, IntAttribute(context.node(), "axis", 0));
  SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(context.node(), axis, static_cast<int64_t>(rank)));
  const bool by_distance = indices != nullptr && indices->numbers->states == 1 && indices->numbers->heads == 1 &&
                           !IsFloating(indices->dtype) && indices->view.rank() == rank &&
                           IsOfPairs(indices->view, AxisKind::kLength, AxisKind::kKeys);
  Term& term = products.terms.front();
  // Elsewhere the index may not be narrower, or it would take the first of what it lacks.
  bool is_whole = by_distance && products.view.Is(rank - 2, AxisKind::kLength) && HasHeadsInOrder(products.view) &&
                  products.view.dims.back() == ChannelAxis(CountOf(context, term));
  for (size_t i = 0; is_whole && i + 2 < rank; ++i) {
    is_whole = SizeOf(indices->view.dims[i]) == SizeOf(products.view.dims[i]);
  }
  if (!is_whole || axis + 1 != static_cast<int64_t>(rank) || products.terms.size() != 1 || term.places != nullptr) {
    return context.Refuse("its indices are not whole numbers that go by distance alone");
  }
  term.places = PlacesOf(*indices->numbers, CountOf(context, term));
  if (term.places == nullptr) return context.Refuse("one of its indices is out of range");
  if (!context.TakeDistances(term.places)) return context.Refuse("numbers by distance take too much to compute");
  products.view.dims.back() = indices->view.dims.back();
  return products;
}

void TurnPlaces(PlaceProducts& products) {
  if (!IsOfPairs(products.view, AxisKind::kKeys, AxisKind::kLength)) return;
  const size_t rank = products.view.rank();
  std::swap(products.view.dims[rank - 2], products.view.dims[rank - 1]);
  for (Term& term : products.terms) {
    auto turned = std::make_shared<DistanceNumbers>(*term.places);
    std::ranges::reverse(turned->numbers);  // as many distances are sampled below 0 as above
    term.places = std::move(turned);
    term.of_keys = !term.of_keys;
  }
}

StatusOr<Form> CombinePlaceProducts(Context& context) {
  const std::string& op = context.node().op;
  if (op == "Cast" && IsFloating(PointFunctionType(context.node(), DType::kFloat32))) return context.Input(0);
  if (context.node().inputs.size() != 2) return context.Refuse("it takes products with vectors of places");
  const auto* left = context.InputAs<PlaceProducts>(0);
  const auto* right = context.InputAs<PlaceProducts>(1);
  if (left != nullptr && right != nullptr) {
    PlaceProducts sum = *left;
    const auto is_taken = [](const PlaceProducts& products) {
      return IsOfPairs(products.view, AxisKind::kLength, AxisKind::kKeys);
    };
    const bool alike = is_taken(*left) && is_taken(*right) && AreAlike(left->view, right->view);
    if (op != "Add" || !alike) return context.Refuse("it does not add products with vectors of places");
    sum.terms.insert(sum.terms.end(), right->terms.begin(), right->terms.end());
    return sum;
  }
  PlaceProducts products = left != nullptr ? *left : *right;
  const size_t other = left != nullptr ? 1 : 0;
  const auto number = NumberOf(context, other);
  if (number && !std::ranges::all_of(context.InputAs<Known>(other)->shape, &Whole::IsOne)) {
    return context.Refuse("it combines products with vectors of places with more than one number");
  }
  if (op == "Add" && number == 0.0) return products;
  const bool scales = number && (op == "Mul" || (op == "Div" && left != nullptr));
  const double factor = scales ? (op == "Mul" ? *number : 1.0 / *number) : 0.0;
  if (!scales || !std::isfinite(factor)) return context.Refuse("it changes products with vectors of places");
  for (Term& term : products.terms) term.factor *= factor;
  return products;
}

StatusOr<Scores> WithPlaces(Context& context, Scores scores, const PlaceProducts& products) {
  if (!AreAlike(products.view, scores.view)) {
    return context.Refuse("what it adds to scores, of shape ", Text(products.view.shape()), ", does not go with ",
                          Text(scores.view.shape()));
  }
  for (const Term& term : products.terms) {
    if (term.value != (term.of_keys ? scores.keys : scores.queries)) {
      return context.Refuse("it adds products of other tokens than the scores'");
    }
    scores.places.push_back(term);
  }
  return scores;
}

StatusOr<int> DisentangledAttentionOf(Context& context, const Scores& scores, int values) {
  if (scores.pattern != nullptr || scores.biases != nullptr || scores.pair_biases != nullptr) {
    return context.Refuse("it has biases as well as products with vectors of places");
  }
  if (scores.group_size != 1 || scores.windows != 1) {
    return context.Refuse("its heads share keys, or attend in windows, and have products with vectors of places");
  }
  if (scores.scale == 0.0) return context.Refuse("its queries and keys are multiplied by 0");
  SWIZZLE_ASSIGN_OR_RETURN(const Columns columns, ColumnsOf(context, scores.places));
  const int64_t channels = context.out().Channels(scores.queries);
  const size_t count = columns.least.size();
  std::vector<float> weight(static_cast<size_t>(2 * channels) * count);
  for (size_t i = 0; i < scores.places.size(); ++i) {
    const Term& term = scores.places[i];
    const auto factor = static_cast<float>(term.factor / scores.scale);
    const auto from_stride = static_cast<size_t>(CountOf(context, term));
    float* to = weight.data() + (term.of_keys ? static_cast<size_t>(channels) * count : 0);
    for (int64_t channel = 0; channel < channels; ++channel, to += count) {
      const float* const from = term.vectors->data() + static_cast<size_t>(channel) * from_stride;
      for (size_t column = 0; column < count; ++column) to[column] += factor * from[columns.places[column][i]];
    }
  }
  weight.insert(weight.end(), columns.least.begin(), columns.least.end());
  return context.out().DisentangledAttention(InputsOf(scores, values), static_cast<int64_t>(count), weight);
}

}  // namespace swizzle::sequences
