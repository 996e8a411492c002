// Normalisation with the sum before it, and what BERT's begin with.
#include "model_loader/expansions/operators.h"

namespace swizzle::expansions {
namespace {

constexpr float kEpsilon = 1e-12f;  // where a node has none

// Normalises each vector of the last dimension.
StatusOr<int> Normalised(Site& site, const char* op, int x, std::vector<int> parameters) {
  SWIZZLE_ASSIGN_OR_RETURN(const float epsilon, site.Float("epsilon", kEpsilon));
  parameters.insert(parameters.begin(), x);
  return site.Make(op, std::move(parameters), {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
}

// Tables and parameters of an EmbedLayerNormalization, in real numbers, and where its mask is.
struct EmbeddingTables {
  int words, positions, segments, scale, shift;
  int mask = kNoValue, position_ids = kNoValue;
};

Status SumOfEmbeddings(Site& site, const EmbeddingTables& tables) {
  constexpr size_t kIds = 0, kSegments = 1, kMaskOutput = 1, kSumOutput = 2;
  const auto looked_up = [&](int table, int ids) { return site.Make("Gather", {table, ids}, {{"axis", int64_t{0}}}); };
  int place = tables.position_ids;
  if (place == kNoValue) {
    place = site.Make("Range", {site.Whole(0), site.Dimension(site.In(kIds), 1), site.Whole(1)});
  }
  int sum = site.Make("Add", {looked_up(tables.words, site.In(kIds)), looked_up(tables.positions, place)});
  if (site.Has(kSegments)) sum = site.Make("Add", {sum, looked_up(tables.segments, site.In(kSegments))});
  SWIZZLE_ASSIGN_OR_RETURN(const int normalised,
                           Normalised(site, "LayerNormalization", sum, {tables.scale, tables.shift}));
  site.Result(0, normalised);
  if (site.Wants(kMaskOutput) && tables.mask != kNoValue) {
    site.Result(kMaskOutput, site.ReduceSum(site.Cast(tables.mask, DType::kInt32), 1, false));
  }
  site.Result(kSumOutput, sum);
  return {};
}

}  // namespace

Status SkipLayerNorm(Site& site) {
  const bool is_centred = site.node().op == "SkipLayerNormalization";
  constexpr size_t kScale = 2, kShift = 3, kSum = 3;
  const size_t bias = is_centred ? 4 : 3;
  int sum = site.Make("Add", {site.In(0), site.In(1)});
  if (site.Has(bias)) sum = site.Make("Add", {sum, site.In(bias)});
  std::vector<int> parameters = {site.In(kScale)};
  if (is_centred && site.Has(kShift)) parameters.push_back(site.In(kShift));
  const char* const op = is_centred ? "LayerNormalization" : "SimplifiedLayerNormalization";
  SWIZZLE_ASSIGN_OR_RETURN(const int normalised, Normalised(site, op, sum, std::move(parameters)));
  site.Result(0, normalised);
  site.Result(kSum, sum);
  return {};
}

Status EmbedLayerNorm(Site& site) {
  return SumOfEmbeddings(site, {site.In(2), site.In(3), site.In(4), site.In(5), site.In(6), site.In(7), site.In(8)});
}

Status QuantisedEmbedLayerNorm(Site& site) {
  constexpr size_t kFirst = 2, kMask = 7, kFirstScale = 8, kFirstZero = 13;
  const auto real = [&](size_t i) {
    if (!site.Has(kFirst + i)) return kNoValue;
    return site.Make("DequantizeLinear", {site.In(kFirst + i), site.In(kFirstScale + i), site.In(kFirstZero + i)});
  };
  return SumOfEmbeddings(site, {real(0), real(1), real(2), real(3), real(4), site.In(kMask)});
}

}  // namespace swizzle::expansions
