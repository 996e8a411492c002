#include "model_loader/sequences/window_biases.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "model_loader/sequences/known.h"

namespace swizzle::sequences {
namespace {

constexpr int64_t kMostBiases = int64_t{1} << 26;  // of all heads and windows

// A head of a window, and where its pairs begin in a constant.
struct Place {
  int64_t window = 0, head = 0, pair = 0;
};

// How many windows a leading dimension of scores goes through.
int64_t WindowsIn(const Axes& dimension) {
  int64_t windows = 1;
  for (const Axis& axis : dimension) {
    if (axis.kind == AxisKind::kPlaces) windows *= axis.size.factor;
  }
  return windows;
}

// Whether the constant has dimensions of windows at all.
bool DiffersByWindow(const View& scores, const Shape& shape) {
  const size_t skipped = scores.rank() - shape.size();
  for (size_t i = 0; i + 2 < shape.size(); ++i) {
    if (shape[i] > 1 && WindowsIn(scores.dims[skipped + i]) > 1) return true;
  }
  return false;
}

// Every head of every window, or of one where none differs; nothing where the constant does not broadcast so.
std::optional<std::vector<Place>> PlacesOf(const View& scores, const Shape& shape, int64_t pairs, bool of_windows) {
  std::vector<Place> places(1);
  const size_t skipped = scores.rank() - shape.size();
  for (size_t i = 0; i + 2 < scores.rank(); ++i) {
    const int64_t own = i < skipped ? 1 : shape[i - skipped], windows = WindowsIn(scores.dims[i]);
    const bool is_of_heads = !scores.dims[i].empty() && IsOfChannels(scores.dims[i]);
    const int64_t count = is_of_heads ? SizeOf(scores.dims[i]).factor : of_windows ? windows : 1;
    const bool goes_along = own == count && SizeOf(scores.dims[i]) == Whole{count};
    if (own != 1 && !goes_along) return std::nullopt;
    std::vector<Place> next;
    for (const Place& place : places) {
      for (int64_t k = 0; k < count; ++k) {
        Place& made = next.emplace_back(place);
        int64_t& index = is_of_heads ? made.head : made.window;
        index = index * count + k;
        made.pair = place.pair * own + (own == 1 ? 0 : k);
      }
    }
    places = std::move(next);
  }
  for (Place& place : places) place.pair *= pairs;
  return places;
}

// Biases [heads][kinds][pairs] with as many kinds.
std::vector<float> WithKinds(const std::vector<float>& biases, int64_t heads, int64_t kinds, int64_t pairs) {
  const auto size = static_cast<int64_t>(biases.size());
  if (size == 0) return std::vector<float>(static_cast<size_t>(heads * kinds * pairs));
  if (size == heads * kinds * pairs) return biases;
  std::vector<float> repeated;
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t kind = 0; kind < kinds; ++kind) {
      repeated.insert(repeated.end(), biases.begin() + head * pairs, biases.begin() + (head + 1) * pairs);
    }
  }
  return repeated;
}

}  // namespace

StatusOr<Scores> WithWindowBiases(Context& context, Scores scores, size_t input, double sign) {
  const auto* known = context.InputAs<Known>(input);
  const auto shape = known == nullptr ? std::nullopt : AsShape(known->shape);
  const int64_t length = SizeOf(scores.view.dims.back()).factor, pairs = length * length;
  const size_t rank = shape ? shape->size() : 0;
  const bool square = rank >= 2 && (*shape)[rank - 1] == length && (*shape)[rank - 2] == length;
  if (!square || rank > scores.view.rank() || scores.heads > kMostBiases / pairs / scores.windows) {
    return context.Refuse("what it adds to scores is no constant for each pair of tokens in a window of ", length);
  }
  SWIZZLE_ASSIGN_OR_RETURN(const auto table, FloatTensor(context, input, "bias of pairs of tokens"));
  const bool had_windows =
      scores.pair_biases != nullptr && static_cast<int64_t>(scores.pair_biases->size()) > scores.heads * pairs;
  const bool of_windows = had_windows || DiffersByWindow(scores.view, *shape);
  const auto places = PlacesOf(scores.view, *shape, pairs, of_windows);
  const int64_t kinds = of_windows ? scores.windows : 1;
  if (!places || static_cast<int64_t>(places->size()) != scores.heads * kinds) {
    return context.Refuse("what it adds to scores, of shape ", ShapeText(*shape), ", does not go with ",
                          Text(scores.view.shape()));
  }
  context.out().Spend(table.second.size());
  std::vector<float> sum =
      WithKinds(scores.pair_biases == nullptr ? std::vector<float>() : *scores.pair_biases, scores.heads, kinds, pairs);
  for (const Place& place : *places) {
    float* const to = sum.data() + (place.head * kinds + place.window) * pairs;
    const float* const from = table.second.data() + place.pair;
    for (int64_t i = 0; i < pairs; ++i) to[i] += static_cast<float>(sign) * from[i];
  }
  scores.pair_biases = std::make_shared<const std::vector<float>>(std::move(sum));
  return scores;
}

Emitter::BiasTable WindowTableOf(Context& context, const Scores& scores) {
  const int64_t length = context.facts().sequences().length / scores.windows;
  Emitter::BiasTable table{{}, length, 0, scores.windows};
  if (scores.pair_biases != nullptr) {
    table.biases = *scores.pair_biases;
  } else {
    table.biases.resize(static_cast<size_t>(scores.heads * length * length));
  }
  return table;
}

}  // namespace swizzle::sequences
