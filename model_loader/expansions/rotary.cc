#include "model_loader/expansions/rotary.h"

#include <limits>

#include "model_loader/expansions/operators.h"

namespace swizzle::expansions {
namespace {

// All channels of [batch, length, heads, size]; the tables are [batch, length, 1, size / 2].
int TurnAll(Site& site, int x, int cosines, int sines, bool is_interleaved) {
  const auto product = [&](int a, int b) { return site.Make("Mul", {a, b}); };
  int first = kNoValue, second = kNoValue;
  if (is_interleaved) {
    const int pairs = site.Reshape(x, {0, 0, 0, -1, 2});
    first = site.Make("Gather", {pairs, site.Whole(0)}, {{"axis", int64_t{4}}});
    second = site.Make("Gather", {pairs, site.Whole(1)}, {{"axis", int64_t{4}}});
  } else {
    const std::vector<int> halves = site.Split(x, 3, 2);
    first = halves[0];
    second = halves[1];
  }
  const int real = site.Make("Sub", {product(first, cosines), product(second, sines)});
  const int imaginary = site.Make("Add", {product(first, sines), product(second, cosines)});
  if (!is_interleaved) return site.Make("Concat", {real, imaginary}, {{"axis", int64_t{3}}});
  const std::vector<int> pairs = {site.Unsqueeze(real, {4}), site.Unsqueeze(imaginary, {4})};
  return site.Reshape(site.Make("Concat", pairs, {{"axis", int64_t{4}}}), {0, 0, 0, -1});
}

// The rows of a table that the positions name, with a dimension for heads.
int RowsOf(Site& site, int table, int positions, int64_t turned) {
  if (positions == kNoValue) return site.Unsqueeze(table, {2});
  const int rows = site.Make("Gather", {table, positions}, {{"axis", int64_t{0}}});
  const bool is_wide = turned > 0 && site.SizeOf(table, -1) > turned / 2;
  return site.Unsqueeze(is_wide ? site.Slice(rows, 2, 0, turned / 2) : rows, {2});
}

// [batch, length] of com.microsoft's positions, which may be those of the first tokens alone.
StatusOr<int> PositionsOf(Site& site, int given, int x) {
  if (given == kNoValue) return given;
  const std::optional<size_t> rank = site.RankOf(given);
  if (!rank || *rank > 2) return Unimplemented("the rank of its positions is not known");
  if (*rank == 2) return given;
  const int range = site.Make("Range", {site.Whole(0), site.Dimension(x, 1), site.Whole(1)});
  return site.Unsqueeze(site.Make("Add", {range, site.Reshape(given, {-1})}), {0});
}

// The input as [batch, length, heads, size], from [batch, length, channels] or [batch, heads, length, size].
StatusOr<int> HeadsOf(Site& site, int x, bool is_joined, const RotaryTables& tables) {
  if (!is_joined) return site.Transpose(x, {0, 2, 1, 3});
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t heads, site.Int("num_heads", 0));
  const int64_t width = site.SizeOf(tables.cosines, -1), channels = site.SizeOf(x, -1);
  if (heads > 0) return site.Reshape(x, {0, 0, heads, channels > 0 ? channels / heads : -1});
  if (tables.turned != 0 || width <= 0) return Unimplemented("its num_heads is not given");
  return site.Reshape(x, {0, 0, -1, 2 * width});
}

}  // namespace

int Turned(Site& site, int x, int positions, const RotaryTables& tables) {
  const int cosines = RowsOf(site, tables.cosines, positions, tables.turned);
  const int sines = RowsOf(site, tables.sines, positions, tables.turned);
  if (tables.turned == 0) return TurnAll(site, x, cosines, sines, tables.is_interleaved);
  const int first = site.Slice(x, 3, 0, tables.turned);
  const int rest = site.Slice(x, 3, tables.turned, std::numeric_limits<int64_t>::max());
  const int turned = TurnAll(site, first, cosines, sines, tables.is_interleaved);
  return site.Make("Concat", {turned, rest}, {{"axis", int64_t{3}}});
}

// This writes out the standard's operator, and the one of com.microsoft.
Status RotaryEmbedding(Site& site) {
  const bool is_standard = site.node().domain.empty();
  RotaryTables tables{.cosines = site.In(is_standard ? 1 : 2), .sines = site.In(is_standard ? 2 : 3)};
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t is_interleaved, site.Int("interleaved", 0));
  SWIZZLE_ASSIGN_OR_RETURN(tables.turned, site.Int("rotary_embedding_dim", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const float scale, site.Float("scale", 1.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t is_packed, site.Int("is_packed_batching", 0));
  if (is_packed != 0) return Unimplemented("packed batches are not supported");
  tables.is_interleaved = is_interleaved != 0;
  const std::optional<size_t> rank = site.RankOf(site.In(0));
  if (!rank || (*rank != 3 && *rank != 4)) return Unimplemented("the rank of its input is not known");
  const bool is_joined = *rank == 3;
  SWIZZLE_ASSIGN_OR_RETURN(const int x, HeadsOf(site, site.In(0), is_joined, tables));
  SWIZZLE_ASSIGN_OR_RETURN(const int positions, PositionsOf(site, site.In(is_standard ? 3 : 1), x));
  const int result = site.Scaled(Turned(site, x, positions, tables), scale);
  site.Result(0, is_joined ? site.Reshape(result, {0, 0, -1}) : site.Transpose(result, {0, 2, 1, 3}));
  return {};
}

}  // namespace swizzle::expansions
