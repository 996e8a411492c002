// What is known of the values of a sequence graph: the forms that the walk over its nodes (walk.h) gives them.
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_FORMS_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_FORMS_H_

#include <algorithm>
#include <compare>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model_loader/graph/graph.h"
#include "model_loader/semantics/point_function.h"
#include "model_loader/sequences/distances.h"
#include "model_loader/sequences/pairs.h"
#include "model_loader/sequences/view.h"
#include "model_loader/sequences/whole.h"

namespace swizzle {

// Values of more dimensions are unknown.
inline constexpr size_t kMaxFormRank = 8;

// Nothing, for this reason. It is an error only where something that matters reads the value.
struct Unknown {
  Status why;
};

// `real` holds elements of floating types, `whole` those of all others.
struct Number {
  double real = 0.0;
  Whole whole = {0};
};

// Numbers that are the same for every request.
struct Known {
  DType dtype = DType::kInt64;
  Wholes shape;
  std::vector<Number> numbers;  // one: all elements are this; else one each; none: too many to list, see `constant`
  int constant = kNoValue;      // the constant in the graph that was read, where the value is one

  bool IsUniform() const { return numbers.size() == 1; }
  // Whether `numbers` tells of all elements, of which there may be none.
  bool IsListed() const {
    const auto is_zero = [](const Whole& size) { return size == Whole{0}; };
    return !numbers.empty() || constant == kNoValue || std::ranges::any_of(shape, is_zero);
  }
};

// offset + per_position * position in the sequence, along kLength, + per_sequence * place in the batch, along kBatch.
struct Positions {
  int64_t offset = 0;
  int64_t per_position = 1;
  Whole per_sequence = {0};
  bool is_pair = false;    // both places, as GatherND takes them, in a last dimension of 2
  bool has_values = true;  // else only the shape is known
  DType dtype = DType::kInt64;
  View view;
};

// What is made of a number that equals this one, and of any other.
struct Compared {
  int64_t number = 0;
  double at_equal = 1.0;
  double at_other = 0.0;
  bool operator==(const Compared&) const = default;
};

// A graph input of whole numbers, one a token, or what an element-wise function makes of it where it holds 0 and 1.
struct TokenNumbers {
  int input = kNoValue;  // of the new graph
  bool as_it_is = true;  // no function was applied
  double at_zero = 0.0;
  double at_one = 1.0;
  DType dtype = DType::kInt64;
  View view;
  std::optional<Compared> compared = {};  // whatever it holds, where the function asks for one number alone
};

// How many tokens of a sequence up to each, itself included, hold another number than `padding` in a graph input; for
// RoBERTa's positions.
struct TokenCounts {
  int input = kNoValue;  // of the new graph
  bool of_mask = false;  // which holds 0 and 1
  int64_t padding = 0;
  bool zero_at_padding = false;  // else as many as before it
  int64_t offset = 0;            // is added to all
  DType dtype = DType::kInt64;
  View view;
};

// The place of the first token of each sequence of which a graph input holds a number, or its largest one; the first
// place where none does.
struct EndPlaces {
  enum class Kind : uint8_t {
    kInSequence,
    kInBatch,  // in all sequences of the batch, one behind the other
    kPair      // both places, as GatherND takes them, in a last dimension of 2
  };

  int input = kNoValue;  // of the new graph
  bool at_largest = false;
  int64_t number = 0;  // else
  Kind kind = Kind::kInSequence;
  DType dtype = DType::kInt64;
  View view;
};

// Numbers for each pair of places, along kLength and kKeys, the same for every request. Only where the length is fixed.
struct Pairs {
  DType dtype = DType::kBool;
  SharedPairs function;
  View view;
};

// Numbers for each pair of places that go by their distance, along kLength and kKeys, and, for each head, along
// kChannels; the same for every request but for a mask of keys.
struct Distances {
  DType dtype = DType::kInt64;
  SharedDistances numbers;
  int mask = kNoValue;  // input of the new graph, where there are two states
  View view;
};

// What one column of PositionNumbers holds at a position p of a sequence, times `factor`.
struct PositionColumn {
  enum class Kind : uint8_t { kLinear, kCosine, kSine, kTable };
  struct Table {
    int64_t rows = 0, columns = 0;
    std::vector<float> numbers;
  };

  Kind kind = Kind::kLinear;
  double factor = 1.0;
  float start = 0.0f, slope = 0.0f;         // kLinear: start + p * slope; kCosine, kSine: of p * slope
  std::shared_ptr<const Table> table = {};  // kTable: its element [p + first, column]
  int64_t first = 0, column = 0;
  int64_t from = 0;  // at positions before this one it is `before` instead
  float before = 0.0f;
  auto operator<=>(const PositionColumn&) const = default;
};
using PositionColumns = std::vector<PositionColumn>;

// Numbers that go by a token's position in its sequence, along kLength, and by channel: angles of rotary embeddings,
// their cosines and sines; also numbers by channel alone. FP32. The view's channels are columns.
struct PositionNumbers {
  std::shared_ptr<const PositionColumns> columns;
  View view;
};

// What an activation was quantised to, as it was then.
struct Rounding {
  Quantisation as;
  int value = kNoValue;
  Samples samples;
};

// An activation, and a function of one variable still to be applied to each element.
struct Tokens {
  int value = kNoValue;                   // of the new graph
  Samples samples;                        // of the function; none: identity
  View view;                              // its kPlaces are all positions, in their order
  std::optional<Rounding> rounding = {};  // counts as long as the value and its function are the same (rounding.h)
};

// An activation whose tokens are to be moved within each sequence, all of the same fixed length: the view's kPlaces, or
// its kLength, counted from `first_place`, are places in `rows`, which has a token's row of the matrix.
struct MovedTokens {
  Tokens tokens;
  std::shared_ptr<const std::vector<int32_t>> rows = {};  // null: 0, 1, ...
  int64_t first_place = 0;
};

// Channels of one activation, moved, and summed once they are multiplied by numbers that go by position, on the way
// through a rotary embedding. The view's channels are places in `sums`.
struct Mixture {
  struct Term {
    int64_t channel = 0;  // of the activation
    double factor = 1.0;
    std::optional<PositionColumn> by = {};
    bool operator==(const Term&) const = default;
  };
  using Sums = std::vector<std::vector<Term>>;

  int value = kNoValue;  // of the new graph, per token
  std::shared_ptr<const Sums> sums;
  View view;  // its kPlaces are some of the positions, from first_place on
  int64_t first_place = 0;
};

// Vectors that are the same for every request, of heads and of places of one token from another (DeBERTa). The view's
// channels are places in `numbers`.
struct ConstantVectors {
  std::shared_ptr<const std::vector<float>> numbers;
  View view;
};

// Sums of an activation's products with such vectors, [.., kLength, places], then one for each pair of tokens, [..,
// kLength, kKeys], the place being that of their distance.
struct PlaceProducts {
  struct Term {
    int value = kNoValue;                               // of the new graph: heads, one behind the other
    std::shared_ptr<const std::vector<float>> vectors;  // [channels][places]
    double factor = 1.0;
    SharedDistances places = nullptr;  // the place by key - query, once they are taken
    bool of_keys = false;              // else the activation's tokens are the queries
  };
  std::vector<Term> terms;
  View view;
};

// A stage of a written-out layer normalisation, or of one by the root mean square or by the vector's length.
struct Moment {
  enum class Stage { kMean, kCentred, kSquares, kVariance, kShifted, kDeviation, kInverse, kNormal, kScaled };
  Stage stage = Stage::kMean;
  Tokens tokens;             // what is normalised, no function left to apply
  bool centred = true;       // else the variance is the mean of squares, and what is scaled are the tokens themselves
  bool of_length = false;    // the deviation is the root of the sum of squares, not of their mean
  bool expanded = false;     // what is one number of a token has been repeated for all channels
  int64_t groups = 1;        // of the channels, which are normalised apart: the last dimension has those of one
  float epsilon = 0.0f;      // from kShifted on
  std::vector<float> scale;  // kScaled
};

// Products of queries and keys, [.., kLength, kKeys], on the way through a softmax.
struct Scores {
  enum class Stage { kRaw, kProbabilities, kInvalid };  // kInvalid: whether a probability is not a number
  Stage stage = Stage::kRaw;
  int queries = kNoValue, keys = kNoValue;  // of the new graph
  int64_t heads = 1;                        // of queries
  int64_t group_size = 1;                   // heads of queries that share one of keys
  std::vector<int64_t> head_order = {};     // the channels that the view's leading dimensions began with
  int64_t windows = 1;                      // that a sequence is cut into, whose tokens attend to one another
  bool of_one_query = false;                // which all tokens have: the view has it once
  double scale = 1.0;
  int mask = kNoValue;  // input of the new graph
  double masked_bias = 0.0;
  std::shared_ptr<const MaskPattern> pattern;             // the keys left to each query; null: all
  double scale_after_mask = 1.0;                          // what scores were multiplied by since
  SharedDistances biases;                                 // are added, by distance; of one state; null: none
  std::shared_ptr<const std::vector<float>> pair_biases;  // likewise [heads][length][length]; of windows of `length`
                                                          // [heads][1 or windows][length][length]
  std::vector<PlaceProducts::Term> places;                // are added likewise, but for the scale
  View view;
};

// Tokens times the mask, and their sum over each sequence.
struct MaskedTokens {
  int value = kNoValue;
  int mask = kNoValue;
  bool summed = false;
  View view;  // before the sum with, then without kLength
};

// How many tokens of each sequence the mask lets through.
struct TokenCount {
  int mask = kNoValue;
  View view;
};

using Form = std::variant<Unknown, Known, Positions, TokenNumbers, TokenCounts, EndPlaces, Pairs, Distances,
                          PositionNumbers, Tokens, MovedTokens, Mixture, ConstantVectors, PlaceProducts, Moment, Scores,
                          MaskedTokens, TokenCount>;

// Null for Unknown and Known.
View* ViewOf(Form& form);

// The shape; none for Unknown.
std::optional<Wholes> ShapeOf(const Form& form);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_FORMS_H_
