// Numbers for every pair of a query's and a key's place in sequences of one length: what constant masks of attention
// are computed from. They are computed a row at a time when they are asked for, so that none of length by length is
// held but constants, and these as bits.
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_PAIRS_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_PAIRS_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/format/attention_pattern.h"
#include "model_loader/graph/graph.h"
#include "model_loader/semantics/point_function.h"

namespace swizzle {

// Immutable.
struct PairFunction {
  std::function<void(int64_t query, std::span<double> keys)> row;
  int64_t cost = 1;  // what a pair takes, in calls of element-wise functions
};
using SharedPairs = std::shared_ptr<const PairFunction>;

SharedPairs PairsOfNumber(double number);
SharedPairs PairsOfQueries(std::vector<double> numbers);  // one for each query, the same for all keys
SharedPairs PairsOfKeys(std::vector<double> numbers);

// Of a constant [.., length, length]. Nothing unless it holds at most two different numbers and is the same along all
// dimensions but the last two, or if no arithmetic is done in its type.
SharedPairs PairsOfTensor(const Tensor& tensor, int64_t length);
// Likewise of listed numbers.
SharedPairs PairsOfNumbers(std::span<const double> numbers, int64_t length);

// function(inputs), rounded to `dtype`, element by element.
SharedPairs PairsApplied(PointFunction function, DType dtype, std::vector<SharedPairs> inputs);
// `pairs` where key - query <= diagonal (or >= where `upper`), else 0.
SharedPairs PairsOfTriangle(SharedPairs pairs, int64_t diagonal, bool upper);

// What of a mask lets a query attend to a key.
enum class MaskUse : uint8_t {
  kAdded,       // numbers that are added to the scores: one number lets through, all others are kExcludedScore or less
  kSubtracted,  // likewise their negatives
  kKeepsTrue,   // numbers other than 0
  kKeepsFalse,  // zeros
};
// Added to a score, it leaves nothing of the key.
inline constexpr double kExcludedScore = -1e4;

struct MaskPattern {
  AttentionPattern pattern;
  double largest_excluded = kExcludedScore;  // of added numbers
};

// The masks of a graph, so that each is read and written once, whatever the number of attentions.
struct PairMaskCache {
  std::map<std::pair<SharedPairs, MaskUse>, std::shared_ptr<const MaskPattern>> read;
  std::map<std::shared_ptr<const MaskPattern>, std::pair<int, int>> emitted;  // as constants of the new graph
  SharedPairs causal;                                                         // null until asked for
  int64_t work_left = int64_t{1} << 33;                                       // calls of element-wise functions
};

// INVALID_ARGUMENT, saying why, if the mask is none, a query is left without keys, or there are more than 2^27
// nonzeros.
StatusOr<MaskPattern> PatternOf(const PairFunction& pairs, int64_t length, MaskUse use);

// What both let through. REQUIRES: as many tokens.
AttentionPattern Intersection(const AttentionPattern& a, const AttentionPattern& b);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_PAIRS_H_
