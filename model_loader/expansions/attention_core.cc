#include "model_loader/expansions/attention_core.h"

#include <cmath>

namespace swizzle::expansions {
namespace {

// Queries times the scale: by a number, where the size of heads is known.
int ScaledScores(Site& site, const Heads& heads, int scores) {
  if (heads.scale != 0.0) return site.Scaled(scores, heads.scale);
  int64_t size = site.SizeOf(heads.q, kSize);
  if (size <= 0) size = site.SizeOf(heads.k, kSize);
  if (size > 0) return site.Scaled(scores, 1.0 / std::sqrt(static_cast<double>(size)));
  const int root = site.Make("Sqrt", {site.Cast(site.Dimension(heads.q, kSize), site.TypeOf(heads.q))});
  return site.Make("Div", {scores, root});
}

}  // namespace

int SplitHeads(Site& site, int x, int64_t heads) {
  const int64_t channels = site.SizeOf(x, -1);
  const int64_t size = channels > 0 && channels % heads == 0 ? channels / heads : -1;
  return site.Transpose(site.Reshape(x, {0, 0, heads, size}), {0, 2, 1, 3});
}

int JoinHeads(Site& site, int x) {
  const int64_t heads = site.SizeOf(x, 1), size = site.SizeOf(x, kSize);
  const int64_t channels = heads > 0 && size > 0 ? heads * size : -1;
  return site.Reshape(site.Transpose(x, {0, 2, 1, 3}), {0, 0, channels});
}

int BiasOfSight(Site& site, const Heads& heads, const Sight& sight, int place, double masked) {
  const auto range = [&](int x) {
    return site.Make("Range", {site.Whole(0), site.Dimension(x, kLength), site.Whole(1)});
  };
  int rows = site.Unsqueeze(range(heads.q), {1});
  if (place != kNoValue) rows = site.Make("Add", {rows, place});
  const int columns = range(heads.k);
  int hidden = kNoValue;
  if (sight.behind >= 0) {
    const int last = sight.behind == 0 ? rows : site.Make("Add", {rows, site.Whole(sight.behind)});
    hidden = site.Make("Greater", {columns, last});
  }
  if (sight.before >= 0) {
    const int past = site.Make("Greater", {rows, site.Make("Add", {columns, site.Whole(sight.before)})});
    hidden = hidden == kNoValue ? past : site.Make("Or", {hidden, past});
  }
  return site.Make("Where", {hidden, site.Number(masked, heads.q), site.Number(0.0, heads.q)});
}

int BiasOfMask(Site& site, int mask, const Heads& heads, double masked) {
  if (site.TypeOf(mask) != DType::kBool) mask = site.Cast(mask, DType::kBool);
  return site.Make("Where", {mask, site.Number(0.0, heads.q), site.Number(masked, heads.q)});
}

Attended Attend(Site& site, const Heads& heads) {
  Attended made;
  const int product = site.Make("MatMul", {heads.q, site.Transpose(heads.k, {0, 1, 3, 2})});
  made.scores = made.capped = ScaledScores(site, heads, product);
  if (heads.softcap != 0.0) {
    const int bounded = site.Make("Tanh", {site.Scaled(made.scores, 1.0 / heads.softcap)});
    made.capped = site.Scaled(bounded, heads.softcap);
  }
  made.biased = made.capped;
  for (const int bias : heads.bias) made.biased = site.Make("Add", {made.biased, bias});
  made.weights = site.Make("Softmax", {made.biased}, {{"axis", site.opset() < 13 ? int64_t{3} : int64_t{-1}}});
  made.result = site.Make("MatMul", {made.weights, heads.v});
  return made;
}

int WithPast(Site& site, int past, int given) {
  return past == kNoValue ? given : site.Make("Concat", {past, given}, {{"axis", kLength}});
}

}  // namespace swizzle::expansions
