// com.microsoft's GroupQueryAttention: causal, with keys and values of before, whose heads several of queries share.

#include "model_loader/expansions/attention_core.h"
#include "model_loader/expansions/operators.h"
#include "model_loader/expansions/rotary.h"

namespace swizzle::expansions {
namespace {

constexpr size_t kQ = 0, kK = 1, kV = 2, kPastKeys = 3, kPastValues = 4, kLastKeys = 5, kKeys = 6, kCosines = 7,
                 kSines = 8, kPositions = 9, kScores = 10, kSink = 11;

struct GroupSettings {
  int64_t heads = 0, kept = 0;  // of queries; of keys and values
  RotaryTables tables;
  bool rotates = false;
  Sight sight{.behind = 0};
};

StatusOr<GroupSettings> ReadGroupSettings(Site& site, Heads& heads) {
  GroupSettings settings;
  SWIZZLE_ASSIGN_OR_RETURN(settings.heads, site.Int("num_heads", 0));
  SWIZZLE_ASSIGN_OR_RETURN(settings.kept, site.Int("kv_num_heads", 0));
  if (settings.heads < 1 || settings.kept < 1 || settings.heads % settings.kept != 0 || settings.heads > kMostHeads) {
    return InvalidArgument("its num_heads is ", settings.heads, ", its kv_num_heads ", settings.kept);
  }
  SWIZZLE_ASSIGN_OR_RETURN(const float scale, site.Float("scale", 0.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const float softcap, site.Float("softcap", 0.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t window, site.Int("local_window_size", -1));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t rotates, site.Int("do_rotary", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t is_interleaved, site.Int("rotary_interleaved", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t is_smooth, site.Int("smooth_softmax", 0));
  if (is_smooth > 0 || site.Has(kSink)) return Unimplemented("its smooth softmax is not supported");
  if (rotates != 0 && (!site.Has(kCosines) || !site.Has(kSines)))
    return InvalidArgument("it has no tables to rotate by");
  heads.scale = scale;
  heads.softcap = softcap;
  settings.sight.before = window > 0 ? window : -1;
  settings.rotates = rotates != 0;
  settings.tables = {site.In(kCosines), site.In(kSines), is_interleaved != 0};
  return settings;
}

// Queries, keys and values, [batch, length, heads, size], which may come in one.
std::vector<int> SplitInputs(Site& site, const GroupSettings& settings) {
  if (site.Has(kK)) {
    return {site.Reshape(site.In(kQ), {0, 0, settings.heads, -1}), site.Reshape(site.In(kK), {0, 0, settings.kept, -1}),
            site.Reshape(site.In(kV), {0, 0, settings.kept, -1})};
  }
  const int all = site.Reshape(site.In(kQ), {0, 0, settings.heads + 2 * settings.kept, -1});
  return site.Split(all, 2, 3, {settings.heads, settings.kept, settings.kept});
}

// Numbers from 0 on, as many as the scalar says.
int CountTo(Site& site, int count) { return site.Make("Range", {site.Whole(0), count, site.Whole(1)}); }

// Keys, or values, of before with the new ones behind those that count of each sequence, which `before` says, [batch].
int Joined(Site& site, int past, int given, int before, int keys) {
  if (past == kNoValue) return given;
  const int both = site.Make("Concat", {past, given}, {{"axis", int64_t{2}}});
  const int old = site.Dimension(past, 2), all = site.Dimension(both, 2);
  const int places = site.Unsqueeze(CountTo(site, keys), {0}), counts = site.Unsqueeze(before, {1});
  const int shifted = site.Make("Add", {places, site.Make("Sub", {old, counts})});
  const int last = site.Make("Sub", {all, site.Whole(1)});
  const int bounded = site.Make("Where", {site.Make("Less", {shifted, all}), shifted, last});
  const int chosen = site.Make("Where", {site.Make("Less", {places, counts}), places, bounded});
  std::vector<int> dims;
  for (const int64_t d : {0, 1, 3}) dims.push_back(site.Unsqueeze(site.Dimension(both, d), {0}));
  dims.insert(dims.begin() + 2, site.Unsqueeze(keys, {0}));
  const int shape = site.Make("Concat", std::move(dims), {{"axis", int64_t{0}}});
  const int indices = site.Make("Expand", {site.Unsqueeze(chosen, {1, 3}), shape});
  return site.Make("GatherElements", {both, indices}, {{"axis", int64_t{2}}});
}

int Repeated(Site& site, int x, const GroupSettings& settings) {
  const int64_t times = settings.heads / settings.kept;
  if (times == 1) return x;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < settings.heads; ++i) places.push_back(i / times);
  return site.Make("Gather", {x, site.Wholes(places)}, {{"axis", int64_t{1}}});
}

}  // namespace

Status GroupQueryAttention(Site& site) {
  Heads heads;
  SWIZZLE_ASSIGN_OR_RETURN(const GroupSettings settings, ReadGroupSettings(site, heads));
  if (site.Has(kPastKeys) != site.Has(kPastValues)) return InvalidArgument("it has past keys or past values alone");
  std::vector<int> parts = SplitInputs(site, settings);
  const int length = site.Dimension(parts[0], 1);
  const int keys = site.Cast(site.Reshape(site.In(kKeys), {}), DType::kInt64);
  const int last = site.Cast(site.Reshape(site.In(kLastKeys), {-1}), DType::kInt64);
  const int beyond = site.Make("Sub", {site.Make("Add", {last, site.Whole(1)}), length});
  const int is_behind = site.Make("Greater", {beyond, site.Whole(0)});
  const int before = site.Make("Where", {is_behind, beyond, site.Whole(0)});
  if (settings.rotates) {
    const int counted = site.Make("Add", {site.Unsqueeze(before, {1}), site.Unsqueeze(CountTo(site, length), {0})});
    const int positions = site.Has(kPositions) ? site.In(kPositions) : counted;
    for (size_t i = 0; i < 2; ++i) parts[i] = Turned(site, parts[i], positions, settings.tables);
  }
  for (int& part : parts) part = site.Transpose(part, {0, 2, 1, 3});
  heads.q = parts[0];
  heads.k = Joined(site, site.In(kPastKeys), parts[1], before, keys);
  heads.v = Joined(site, site.In(kPastValues), parts[2], before, keys);
  site.Result(1, heads.k);
  site.Result(2, heads.v);
  heads.k = Repeated(site, heads.k, settings);
  heads.v = Repeated(site, heads.v, settings);
  heads.bias = {BiasOfSight(site, heads, settings.sight, site.Unsqueeze(before, {1, 2, 3}), kLowest)};
  if (site.Has(kScores)) heads.bias.push_back(site.In(kScores));
  site.Result(0, JoinHeads(site, Attend(site, heads).result));
  return {};
}

}  // namespace swizzle::expansions
