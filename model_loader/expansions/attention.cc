// Attention, of the standard and of com.microsoft, as products and a softmax.

#include "model_loader/expansions/attention_core.h"
#include "model_loader/expansions/constant_weights.h"
#include "model_loader/expansions/operators.h"

namespace swizzle::expansions {
namespace {

// The past's length, a scalar; kNoValue: there is none.
int LengthOf(Site& site, int past) { return past == kNoValue ? kNoValue : site.Dimension(past, kLength); }

Status RankUnknown(const char* what) {
  return Unimplemented("the rank of its ", what, " is not known: run onnx.shape_inference.infer_shapes on the model");
}

// A mask of com.microsoft: 1 for keys that count. [batch, keys], [batch, length, keys], or how many keys count of
// each sequence, [batch].
StatusOr<int> KeyBias(Site& site, int mask, const Heads& heads, double masked) {
  const std::optional<size_t> rank = site.RankOf(mask);
  if (!rank) return RankUnknown("mask");
  if (*rank == 1) {
    const std::optional<Shape> shape = site.facts().Of(mask).shape;
    const int64_t batch = site.SizeOf(heads.q, 0);
    if (batch > 0 && (*shape)[0] > 0 && (*shape)[0] != batch) {
      return Unimplemented("a mask of several numbers for each sequence is not supported");
    }
    const int columns = site.Make("Range", {site.Whole(0), site.Dimension(heads.k, kLength), site.Whole(1)});
    const int counts = site.Unsqueeze(site.Cast(mask, DType::kInt64), {1});
    return BiasOfMask(site, site.Unsqueeze(site.Make("Less", {columns, counts}), {1, 2}), heads, masked);
  }
  if (*rank > 3) return Unimplemented("a mask of ", *rank, " dimensions is not supported");
  const std::vector<int64_t> axes = *rank == 2 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1};
  return BiasOfMask(site, site.Unsqueeze(mask, axes), heads, masked);
}

// com.microsoft's attributes. Its masks are for past and present keys.
struct Settings {
  int64_t heads = 0;
  double masked = 0.0;
  bool is_causal = false;
};

StatusOr<Settings> ReadSettings(Site& site, Heads& heads) {
  Settings settings;
  SWIZZLE_ASSIGN_OR_RETURN(settings.heads, site.Int("num_heads", 0));
  if (settings.heads < 1 || settings.heads > kMostHeads) return InvalidArgument("its num_heads is ", settings.heads);
  SWIZZLE_ASSIGN_OR_RETURN(const float masked, site.Float("mask_filter_value", -10000.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const float scale, site.Float("scale", 0.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t unidirectional, site.Int("unidirectional", 0));
  for (const char* name : {"do_rotary", "past_present_share_buffer"}) {
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t value, site.Int(name, 0));
    if (value != 0) return Unimplemented("its attribute ", name, " is not supported");
  }
  settings.masked = masked;
  settings.is_causal = unidirectional != 0;
  heads.scale = scale;
  return settings;
}

// The result, [batch, length, channels].
void Finish(Site& site, const Attended& attended) { site.Result(0, JoinHeads(site, attended.result)); }

// Keys, or values, of MultiHeadAttention, with their part of the bias; already heads where they have four dimensions.
StatusOr<int> MemoryHeads(Site& site, size_t input, int64_t heads, int bias) {
  const int x = site.In(input);
  const std::optional<size_t> rank = site.RankOf(x);
  if (!rank) return RankUnknown("keys");
  if (*rank == 4) return x;
  if (*rank != 3) return Unimplemented("keys of ", *rank, " dimensions are not supported");
  return SplitHeads(site, bias == kNoValue ? x : site.Make("Add", {x, bias}), heads);
}

// The bias of queries, keys and values, one after the other.
StatusOr<std::vector<int>> SplitBias(Site& site, size_t input) {
  if (!site.Has(input)) return std::vector<int>(3, kNoValue);
  const int bias = site.In(input);
  const int64_t all = site.SizeOf(bias, 0), queries = site.SizeOf(site.In(0), -1);
  std::vector<int64_t> sizes = {queries, queries, all - 2 * queries};
  if (all > 0 && (queries <= 0 || all == 3 * queries)) {
    sizes = {all / 3, all / 3, all / 3};
  } else if (all <= 2 * queries || queries <= 0) {
    return Unimplemented("the sizes of its bias are not known");
  }
  const Tensor* const constant = site.facts().ConstantOf(bias);
  if (constant == nullptr) return site.Split(bias, 0, 3, sizes);
  if (constant->shape.size() != 1) return InvalidArgument("its bias is ", ShapeText(constant->shape));
  const std::vector<float> numbers = RealsOf(*constant);
  std::vector<int> parts;
  auto begin = numbers.begin();
  for (const int64_t size : sizes) {
    parts.push_back(site.Constant(TensorOf(constant->dtype, {size}, {begin, begin + size})));
    begin += size;
  }
  return parts;
}

// Queries, keys and values in one, [batch, length, heads, 3, size].
void UnpackHeads(Site& site, int x, Heads& heads) {
  const std::vector<int> parts = site.Split(x, 3, 3);
  int* const to[] = {&heads.q, &heads.k, &heads.v};
  for (size_t i = 0; i < 3; ++i) *to[i] = site.Transpose(site.Reshape(parts[i], {0, 0, 0, -1}), {0, 2, 1, 3});
}

Status ReadMemory(Site& site, int64_t count, Heads& heads) {
  constexpr size_t kQ = 0, kK = 1, kV = 2, kBias = 3;
  const int q = site.In(kQ);
  if (!site.Has(kK)) {
    if (site.Has(kBias)) return Unimplemented("a bias of queries, keys and values in one is not supported");
    UnpackHeads(site, q, heads);
    return {};
  }
  if (!site.Has(kV)) return Unimplemented("keys and values in one are not supported");
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int> bias, SplitBias(site, kBias));
  heads.q = SplitHeads(site, bias[0] == kNoValue ? q : site.Make("Add", {q, bias[0]}), count);
  SWIZZLE_ASSIGN_OR_RETURN(heads.k, MemoryHeads(site, kK, count, bias[1]));
  SWIZZLE_ASSIGN_OR_RETURN(heads.v, MemoryHeads(site, kV, count, bias[2]));
  return {};
}

// Each of the keys' heads as often as queries have heads for it.
int Repeated(Site& site, int x, int64_t heads, int64_t times) {
  if (times == 1) return x;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < heads * times; ++i) places.push_back(i / times);
  return site.Make("Gather", {x, site.Wholes(places)}, {{"axis", int64_t{1}}});
}

}  // namespace

Status MultiHeadAttention(Site& site) {
  constexpr size_t kMask = 4, kScores = 5, kPastKeys = 6, kPastValues = 7, kPastLength = 8, kIndirection = 9;
  if (site.Has(kPastLength) || site.Has(kIndirection)) return Unimplemented("a shared past is not supported");
  Heads heads;
  SWIZZLE_ASSIGN_OR_RETURN(const Settings settings, ReadSettings(site, heads));
  SWIZZLE_RETURN_IF_ERROR(ReadMemory(site, settings.heads, heads));
  heads.k = WithPast(site, site.In(kPastKeys), heads.k);
  heads.v = WithPast(site, site.In(kPastValues), heads.v);
  if (site.Has(kMask)) {
    SWIZZLE_ASSIGN_OR_RETURN(heads.bias.emplace_back(), KeyBias(site, site.In(kMask), heads, settings.masked));
  }
  if (site.Has(kScores)) heads.bias.push_back(site.In(kScores));
  if (settings.is_causal) {
    heads.bias.push_back(BiasOfSight(site, heads, {.behind = 0}, LengthOf(site, site.In(kPastKeys)), settings.masked));
  }
  const Attended attended = Attend(site, heads);
  Finish(site, attended);
  site.Result(1, heads.k);
  site.Result(2, heads.v);
  site.Result(3, attended.biased);
  return {};
}

namespace {

// Attention of queries, keys and values that one product made, with what else it is given.
Status AttendProjected(Site& site, int projected, const std::vector<int64_t>& sizes, size_t mask, size_t past_input) {
  Heads heads;
  SWIZZLE_ASSIGN_OR_RETURN(const Settings settings, ReadSettings(site, heads));
  const std::vector<int> parts = site.Split(projected, 2, 3, sizes);
  heads.q = SplitHeads(site, parts[0], settings.heads);
  heads.k = SplitHeads(site, parts[1], settings.heads);
  heads.v = SplitHeads(site, parts[2], settings.heads);
  int past = kNoValue;
  if (site.Has(past_input)) {
    const auto of_past = [&](int64_t i) {
      return site.Make("Gather", {site.In(past_input), site.Whole(i)}, {{"axis", int64_t{0}}});
    };
    past = of_past(0);
    heads.k = WithPast(site, past, heads.k);
    heads.v = WithPast(site, of_past(1), heads.v);
  }
  if (site.Has(mask)) {
    SWIZZLE_ASSIGN_OR_RETURN(heads.bias.emplace_back(), KeyBias(site, site.In(mask), heads, settings.masked));
  }
  if (settings.is_causal) {
    heads.bias.push_back(BiasOfSight(site, heads, {.behind = 0}, LengthOf(site, past), settings.masked));
  }
  constexpr size_t kScores = 5;
  if (site.node().op == "Attention" && site.Has(kScores)) heads.bias.push_back(site.In(kScores));
  Finish(site, Attend(site, heads));
  if (site.Wants(1)) {
    const std::vector<int> both = {site.Unsqueeze(heads.k, {0}), site.Unsqueeze(heads.v, {0})};
    site.Result(1, site.Make("Concat", both, {{"axis", int64_t{0}}}));
  }
  return {};
}

}  // namespace

Status PackedAttention(Site& site) {
  constexpr size_t kX = 0, kWeight = 1, kBias = 2, kMask = 3, kPast = 4, kPastLength = 6;
  if (site.Has(kPastLength)) return Unimplemented("a shared past is not supported");
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, IntsAttribute(site.node(), "qkv_hidden_sizes", {}));
  if (!sizes.empty() && sizes.size() != 3) return InvalidArgument("it has ", sizes.size(), " qkv_hidden_sizes, not 3");
  int projected = site.Make("MatMul", {site.In(kX), site.In(kWeight)});
  if (site.Has(kBias)) projected = site.Make("Add", {projected, site.In(kBias)});
  return AttendProjected(site, projected, sizes, kMask, kPast);
}

Status QuantisedAttention(Site& site) {
  constexpr size_t kX = 0, kWeight = 1, kBias = 2, kScale = 3, kWeightScale = 4, kMask = 5, kZero = 6, kWeightZero = 7,
                   kPast = 8;
  const std::vector<int> inputs = {site.In(kX),    site.In(kWeight),     site.In(kScale), site.In(kWeightScale),
                                   site.In(kZero), site.In(kWeightZero), site.In(kBias)};
  const int projected = site.Make("MatMulIntegerToFloat", inputs, {}, "com.microsoft");
  return AttendProjected(site, projected, {}, kMask, kPast);
}

namespace {

// Inputs of the standard's operator.
struct Standard {
  static constexpr size_t kMask = 3, kPastKeys = 4, kPastValues = 5, kValidKeys = 6;
};

StatusOr<Sight> StandardSight(Site& site) {
  Sight sight;
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t is_causal, site.Int("is_causal", 0));
  SWIZZLE_ASSIGN_OR_RETURN(sight.before, site.Int("left_window_size", -1));
  SWIZZLE_ASSIGN_OR_RETURN(sight.behind, site.Int("right_window_size", -1));
  if (is_causal != 0) sight.behind = 0;
  return sight;
}

// Behind the past, or so that the last query stands at the last key that counts.
int PlaceOfFirst(Site& site, const Heads& heads) {
  if (site.Has(Standard::kPastKeys) || !site.Has(Standard::kValidKeys))
    return LengthOf(site, site.In(Standard::kPastKeys));
  const int counts = site.Cast(site.In(Standard::kValidKeys), DType::kInt64);
  return site.Unsqueeze(site.Make("Sub", {counts, site.Dimension(heads.q, kLength)}), {1, 2, 3});
}

// The standard's inputs, as heads; their number where they come joined.
Status ReadStandardHeads(Site& site, Heads& heads, bool& joined) {
  const std::optional<size_t> rank = site.RankOf(site.In(0));
  if (!rank) return RankUnknown("queries");
  joined = *rank == 3;
  SWIZZLE_ASSIGN_OR_RETURN(int64_t queries, site.Int("q_num_heads", 0));
  SWIZZLE_ASSIGN_OR_RETURN(int64_t keys, site.Int("kv_num_heads", 0));
  if (joined && (queries < 1 || keys < 1 || queries % keys != 0 || queries > kMostHeads)) {
    return InvalidArgument("q_num_heads is ", queries, " and kv_num_heads ", keys);
  }
  const auto as_heads = [&](size_t input, int64_t count) {
    return joined ? SplitHeads(site, site.In(input), count) : site.In(input);
  };
  heads.q = as_heads(0, queries);
  heads.k = as_heads(1, keys);
  heads.v = as_heads(2, keys);
  return {};
}

// The keys' heads are repeated where queries have more of them.
Status RepeatHeads(Site& site, Heads& heads) {
  const int64_t queries = site.SizeOf(heads.q, 1), keys = site.SizeOf(heads.k, 1);
  if (queries < 1 || keys < 1) return queries == keys ? Status() : Unimplemented("its numbers of heads are not known");
  if (queries % keys != 0 || queries > kMostHeads)
    return InvalidArgument(queries, " heads of queries share ", keys, " of keys");
  heads.k = Repeated(site, heads.k, keys, queries / keys);
  heads.v = Repeated(site, heads.v, keys, queries / keys);
  return {};
}

}  // namespace

Status Attention(Site& site) {
  Heads heads;
  bool joined = false;
  SWIZZLE_RETURN_IF_ERROR(ReadStandardHeads(site, heads, joined));
  SWIZZLE_ASSIGN_OR_RETURN(const float scale, site.Float("scale", 0.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const float softcap, site.Float("softcap", 0.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t mode, site.Int("qk_matmul_output_mode", 0));
  heads.scale = scale;
  heads.softcap = softcap;
  heads.k = WithPast(site, site.In(Standard::kPastKeys), heads.k);
  heads.v = WithPast(site, site.In(Standard::kPastValues), heads.v);
  site.Result(1, heads.k);
  site.Result(2, heads.v);
  if (site.Has(Standard::kMask)) {
    const int mask = site.In(Standard::kMask);
    const bool is_bool = site.TypeOf(mask) == DType::kBool;
    heads.bias.push_back(is_bool ? BiasOfMask(site, mask, heads, kLowest) : mask);
  }
  if (site.Has(Standard::kValidKeys)) {
    SWIZZLE_ASSIGN_OR_RETURN(heads.bias.emplace_back(), KeyBias(site, site.In(Standard::kValidKeys), heads, kLowest));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Sight sight, StandardSight(site));
  if (!sight.IsAll()) heads.bias.push_back(BiasOfSight(site, heads, sight, PlaceOfFirst(site, heads), kLowest));
  SWIZZLE_RETURN_IF_ERROR(RepeatHeads(site, heads));
  const Attended attended = Attend(site, heads);
  site.Result(0, joined ? JoinHeads(site, attended.result) : attended.result);
  const int of_modes[] = {attended.scores, attended.capped, attended.biased, attended.weights};
  if (mode < 0 || mode > 3) return InvalidArgument("its qk_matmul_output_mode is ", mode);
  site.Result(3, of_modes[mode]);
  return {};
}

}  // namespace swizzle::expansions
