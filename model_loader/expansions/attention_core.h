// Attention written out as exporters do, which is how recognisers know it. Internal to model_loader/expansions.
#ifndef SWIZZLE_MODEL_LOADER_EXPANSIONS_ATTENTION_CORE_H_
#define SWIZZLE_MODEL_LOADER_EXPANSIONS_ATTENTION_CORE_H_

#include <limits>
#include <vector>

#include "model_loader/expansions/site.h"

namespace swizzle::expansions {

// Queries, keys and values, [batch, heads, length, size] each, and how their scores are made.
struct Heads {
  int q = kNoValue, k = kNoValue, v = kNoValue;
  double scale = 0.0;     // 0: one by the root of the size
  double softcap = 0.0;   // 0: none
  std::vector<int> bias;  // each added to the scores, and broadcast
};

inline constexpr int64_t kLength = 2, kSize = 3;  // dimensions of heads
// What ONNX Runtime masks with where the standard says minus infinity: rows without any key stay numbers.
inline constexpr double kLowest = std::numeric_limits<float>::lowest();

// More heads than any model has: each may become a number in a list.
inline constexpr int64_t kMostHeads = int64_t{1} << 16;

// [batch, length, heads * size] as heads.
int SplitHeads(Site& site, int x, int64_t heads);
// Heads as [batch, length, heads * size].
int JoinHeads(Site& site, int x);

// How far a token sees; -1: as far as there are keys.
struct Sight {
  int64_t before = -1, behind = -1;
  bool IsAll() const { return before < 0 && behind < 0; }
};

// What is added to scores [batch, heads, length, keys] so that tokens see no farther. The first query stands at the key
// that `place` says, a scalar or [batch, 1, 1, 1]; kNoValue: at the first.
int BiasOfSight(Site& site, const Heads& heads, const Sight& sight, int place, double masked);

// 0 where the mask, of any type, is not 0, `masked` elsewhere.
int BiasOfMask(Site& site, int mask, const Heads& heads, double masked);

// The heads' results, as heads. `site` may want the scores before the softmax.
struct Attended {
  int scores = kNoValue;   // of the product, scaled
  int capped = kNoValue;   // after the softcap
  int biased = kNoValue;   // with the bias
  int weights = kNoValue;  // after the softmax
  int result = kNoValue;
};
Attended Attend(Site& site, const Heads& heads);

// `given` behind `past` along the lengths, where there is a past.
int WithPast(Site& site, int past, int given);

}  // namespace swizzle::expansions

#endif  // SWIZZLE_MODEL_LOADER_EXPANSIONS_ATTENTION_CORE_H_
