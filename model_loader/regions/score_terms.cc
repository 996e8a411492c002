#include "model_loader/regions/score_terms.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/cpu/conv/sgemm.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "model_loader/semantics/strides.h"

namespace swizzle::regions {
namespace {

using interpreter::Array;

// Several such still have a finite sum.
constexpr float kLowest = -1e37f, kHighest = 1e38f;

float Held(float number) { return std::isfinite(number) ? std::clamp(number, kLowest, kHighest) : number; }

Shape Widened(Shape shape) {
  shape.insert(shape.begin(), 4 - shape.size(), 1);
  return shape;
}

bool Broadcasts(const Shape& shape, const Shape& to) {
  const Shape both[] = {to, shape};
  const auto broadcast = BroadcastShape(both);
  return broadcast.ok() && *broadcast == to;
}

// Where a term's inputs are, for scores of 4 dimensions. Its strides are those of [sequence, head, query, key], of an
// index and places of theirs.
struct TermPlace {
  Shape numbers;                       // strides
  int64_t turns = 0;                   // sequences have numbers by so many turns; 0: each its own
  cpu::TokenView<const float> tokens;  // without data
  Shape places, index;                 // strides
  int64_t tokens_count = 0, channels = 0, place_count = 0;
};

std::optional<TermPlace> PlaceTokens(const ScoreTerm& term, std::span<const Shape> shapes, const Shape& scores) {
  const bool by_key = term.kind == ScoreTerm::Kind::kPlacesOfKeys;
  const Shape &tokens = shapes[0], &places = shapes[1], &index = shapes[2];
  if (tokens.size() != term.order.size() || tokens.size() < 2 || tokens.size() > 4) return std::nullopt;
  if (places.size() < 2 || places.size() > 4 || index.size() < 2 || index.size() > 4) return std::nullopt;
  const Shape read = Permuted(tokens, term.order);
  TermPlace place;
  const auto view = ViewOf<const float>(read, Permuted(DenseStrides(tokens), term.order));
  if (!view) return std::nullopt;
  place.tokens = *view;
  place.tokens_count = by_key ? scores[3] : scores[2];
  place.channels = read.back();
  place.place_count = places.back();
  const Shape expected = {scores[0], scores[1], place.tokens_count, place.channels};
  if (Widened(read) != expected || place.channels == 0 || place.place_count == 0) return std::nullopt;
  const Shape of_places = {scores[0], scores[1], place.channels, place.place_count};
  const Shape of_index = {scores[0], scores[1], place.tokens_count, by_key ? scores[2] : scores[3]};
  if (places[places.size() - 2] != place.channels || !Broadcasts(places, of_places)) return std::nullopt;
  if (term.expanded ? !Broadcasts(index, of_index) : Widened(index) != of_index) return std::nullopt;
  place.places = BroadcastStrides(places, of_places);
  place.index = BroadcastStrides(index, of_index);
  return place;
}

std::optional<TermPlace> PlaceTurns(const Shape& given, const Shape& scores) {
  if (given.size() != 5 || given[0] != 1 || given[1] < 1 || scores[0] % given[1] != 0) return std::nullopt;
  TermPlace place;
  place.turns = given[1];
  const Shape of_turn(given.begin() + 1, given.end());
  Shape all = scores;
  all[0] = place.turns;
  if (!Broadcasts(of_turn, all)) return std::nullopt;
  place.numbers = BroadcastStrides(of_turn, all);
  return place;
}

std::optional<TermPlace> PlaceOf(const ScoreTerm& term, std::span<const DType> types, std::span<const Shape> shapes,
                                 const Shape& scores) {
  if (term.HasPlaces()) {
    const bool fits = types[0] == DType::kFloat32 && types[1] == DType::kFloat32 && types[2] == DType::kInt64;
    return fits ? PlaceTokens(term, shapes, scores) : std::nullopt;
  }
  if (term.by_turns) return types[0] == DType::kFloat32 ? PlaceTurns(shapes[0], scores) : std::nullopt;
  const DType wanted = term.kind == ScoreTerm::Kind::kNumbers ? DType::kFloat32 : DType::kBool;
  if (types[0] != wanted || shapes[0].size() > 4 || !Broadcasts(shapes[0], scores)) return std::nullopt;
  TermPlace place;
  place.numbers = BroadcastStrides(shapes[0], scores);
  return place;
}

std::optional<std::vector<TermPlace>> PlacesOf(std::span<const ScoreTerm> terms, std::span<const DType> types,
                                               std::span<const Shape> shapes, const Shape& scores) {
  std::vector<TermPlace> places;
  size_t first = 0;
  for (const ScoreTerm& term : terms) {
    auto place = PlaceOf(term, types.subspan(first), shapes.subspan(first), scores);
    if (!place) return std::nullopt;
    places.push_back(*std::move(place));
    first += term.inputs();
  }
  return places;
}

// Whether each index is one of a place, counted from the first.
bool NamesPlaces(const Array& index, int64_t places) {
  const auto [least, most] = std::ranges::minmax_element(index.As<int64_t>());
  return index.elements() > 0 && *least >= 0 && *most < places;
}

class Summation {
 public:
  Summation(std::span<const ScoreTerm> terms, std::span<const Array> inputs, std::span<const TermPlace> places,
            const Shape& scores)
      : terms_(terms), inputs_(inputs), places_(places), scores_(scores), sum_(4, 1) {
    sum_[3] = scores[3];
    bool each_its_own = false;
    int64_t turns = 0;
    for (size_t t = 0; t < terms.size(); ++t) {
      for (size_t i = 0; i < 3; ++i) {
        if (terms[t].HasPlaces() || places[t].numbers[i] != 0) sum_[i] = scores[i];
      }
      const bool varies = terms[t].HasPlaces() || places[t].numbers[0] != 0;
      each_its_own |= varies && (places[t].turns == 0 || (turns != 0 && turns != places[t].turns));
      turns = std::max(turns, places[t].turns);
      product_floats_ = std::max(product_floats_, places[t].tokens_count * places[t].place_count);
    }
    if (turns > 0 && !each_its_own) sum_[0] = turns;
  }

  const Shape& shape() const { return sum_; }
  // A thread's.
  int64_t product_floats() const { return product_floats_; }

  // Of one sequence and head. `products` has room for product_floats().
  Status Run(int64_t matrix, float* products, float* to) const {
    const int64_t sequence = matrix / sum_[1], head = matrix % sum_[1];
    std::fill_n(to, sum_[2] * sum_[3], 0.0f);
    size_t first = 0;
    for (size_t t = 0; t < terms_.size(); ++t) {
      const auto inputs = inputs_.subspan(first, terms_[t].inputs());
      if (terms_[t].kind == ScoreTerm::Kind::kNumbers) {
        const float factor = terms_[t].number;
        Add<float>(
            inputs[0], places_[t], sequence, head, [=](float x) { return Held(x * factor); }, to);
      } else if (terms_[t].kind == ScoreTerm::Kind::kCondition) {
        const float number = Held(terms_[t].number);
        const bool keeps = terms_[t].keeps;
        Add<uint8_t>(
            inputs[0], places_[t], sequence, head, [=](uint8_t x) { return (x != 0) == keeps ? 0.0f : number; }, to);
      } else {
        SWIZZLE_RETURN_IF_ERROR(AddPlaces(terms_[t], places_[t], inputs, sequence, head, products, to));
      }
      first += terms_[t].inputs();
    }
    return {};
  }

 private:
  template <typename T, typename Function>
  void Add(const Array& input, const TermPlace& place, int64_t sequence, int64_t head, const Function& function,
           float* to) const {
    const Shape& strides = place.numbers;
    if (place.turns > 0) sequence %= place.turns;
    for (int64_t query = 0; query < sum_[2]; ++query) {
      const T* const from = input.As<T>().data() + sequence * strides[0] + head * strides[1] + query * strides[2];
      float* const row = to + query * sum_[3];
      if (strides[3] == 1) {
        for (int64_t key = 0; key < sum_[3]; ++key) row[key] += function(from[key]);
      } else {
        for (int64_t key = 0; key < sum_[3]; ++key) row[key] += function(from[key * strides[3]]);
      }
    }
  }

  Status AddPlaces(const ScoreTerm& term, const TermPlace& place, std::span<const Array> inputs, int64_t sequence,
                   int64_t head, float* products, float* to) const {
    const float* const tokens =
        inputs[0].As<float>().data() + sequence * place.tokens.sequence_stride + head * place.tokens.head_stride;
    const float* const places = inputs[1].As<float>().data() + sequence * place.places[0] + head * place.places[1];
    const int64_t* const index = inputs[2].As<int64_t>().data() + sequence * place.index[0] + head * place.index[1];
    SWIZZLE_RETURN_IF_ERROR(cpu::Sgemm(place.tokens_count, place.place_count, place.channels,
                                       {tokens, std::max(place.tokens.token_stride, place.channels)},
                                       {places, place.place_count}, products, place.place_count));
    const int64_t queries = scores_[2], keys = scores_[3], count = place.place_count;
    if (term.kind == ScoreTerm::Kind::kPlacesOfQueries) {
      for (int64_t query = 0; query < queries; ++query) {
        const int64_t* const named = index + query * place.index[2];
        for (int64_t key = 0; key < keys; ++key) {
          to[query * keys + key] += term.number * products[query * count + named[key * place.index[3]]];
        }
      }
      return {};
    }
    constexpr int64_t kQueries = 16;  // so many rows are written by turns, and stay in the cache
    for (int64_t first = 0; first < queries; first += kQueries) {
      const int64_t last = std::min(first + kQueries, queries);
      for (int64_t key = 0; key < keys; ++key) {
        const int64_t* const named = index + key * place.index[2];
        for (int64_t query = first; query < last; ++query) {
          to[query * keys + key] += term.number * products[key * count + named[query * place.index[3]]];
        }
      }
    }
    return {};
  }

  const std::span<const ScoreTerm> terms_;
  const std::span<const Array> inputs_;
  const std::span<const TermPlace> places_;
  const Shape& scores_;
  Shape sum_;
  int64_t product_floats_ = 0;
};

}  // namespace

Shape Permuted(const Shape& shape, const Order& order) {
  Shape permuted;
  for (const size_t dimension : order) permuted.push_back(shape[dimension]);
  return permuted;
}

bool TakeTerms(std::span<const ScoreTerm> terms, std::span<const DType> types, std::span<const Shape> shapes,
               const Shape& scores) {
  return PlacesOf(terms, types, shapes, Widened(scores)).has_value();
}

StatusOr<std::optional<Array>> SumTerms(std::span<const ScoreTerm> terms, std::span<const Array> inputs,
                                        const Shape& scores, interpreter::Memory& memory, Stream& stream) {
  std::vector<DType> types;
  std::vector<Shape> shapes;
  for (const Array& input : inputs) {
    types.push_back(input.dtype);
    shapes.push_back(input.shape);
  }
  const Shape widened = Widened(scores);
  const auto places = PlacesOf(terms, types, shapes, widened);
  if (!places) return std::nullopt;
  size_t first = 0;
  for (size_t t = 0; t < terms.size(); first += terms[t++].inputs()) {
    if (terms[t].HasPlaces() && !NamesPlaces(inputs[first + 2], (*places)[t].place_count)) return std::nullopt;
  }
  const Summation summation(terms, inputs, *places, widened);
  SWIZZLE_ASSIGN_OR_RETURN(Array sum, memory.Allocate(DType::kFloat32, summation.shape()));
  const int64_t floats = summation.product_floats(), numbers = summation.shape()[2] * summation.shape()[3];
  SWIZZLE_ASSIGN_OR_RETURN(Array products, memory.Allocate(DType::kFloat32, {stream.threads(), floats}));
  float* const scratch = products.Mutable<float>().data();
  float* const to = sum.Mutable<float>().data();
  cpu::CpuStream& host = cpu::CpuStream::From(stream);
  host.ParallelRanges(summation.shape()[0] * summation.shape()[1], [&](int64_t slot, int64_t begin, int64_t end) {
    for (int64_t matrix = begin; matrix < end; ++matrix) {
      host.Keep(summation.Run(matrix, scratch + slot * floats, to + matrix * numbers));
    }
  });
  return std::optional(sum.WithShape(Shape(sum.shape.end() - static_cast<ptrdiff_t>(scores.size()), sum.shape.end())));
}

}  // namespace swizzle::regions
