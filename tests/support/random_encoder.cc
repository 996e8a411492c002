#include "tests/support/random_encoder.h"

#include "kernels/format/attention_pattern.h"
#include "model_loader/network/shared_weights.h"
#include "tests/support/network_builder.h"

namespace swizzle::testing {
namespace {

constexpr int64_t kInner = 40;
constexpr int32_t kHeads = 2;
constexpr int64_t kPositionOffset = 2;  // as RoBERTa, whose positions start at 2

// Queries and keys are turned by one table.
void ShareTables(Network& network) {
  int table = -1;
  for (Layer& layer : network.layers) {
    if (layer.op != Op::kRotary) continue;
    if (table >= 0) network.weights[layer.weight] = network.weights[table];
    if (table < 0) table = layer.weight;
  }
  if (table >= 0) ShareWeights(network);
}

}  // namespace

Network MakeRandomEncoder(const RandomEncoderOptions& options) {
  NetworkBuilder b(options.seed, options.batch_size);
  const double s = options.sparsity;
  const int64_t channels = options.channels;
  const int ids = b.Ids("input_ids");
  const int words = b.Embedding(ids, options.vocabulary, channels);
  int sum = words;
  if (options.positions > 0) {
    sum = b.Pointwise(Op::kAdd, {words, b.Embedding(-1, options.positions, channels, kPositionOffset)});
  }
  const int x = b.LayerNorm(sum), windows = static_cast<int>(options.windows);
  const int read = windows > 0 ? b.ReverseTokens(x, options.length) : x;
  const auto turned = [&](int value) {
    const auto size = static_cast<int32_t>(channels / kHeads);
    return options.rotary > 0 ? b.Rotary(value, size, size / 3, options.rotary) : value;
  };
  const int64_t shared = channels / options.group_size;
  const int q = turned(b.Linear(read, channels, s)), k = turned(b.Linear(read, shared, s)),
            v = b.Linear(read, shared, s);
  const bool sparse = options.band > 0;
  const auto pattern = [&] {
    return AttentionPattern::FromBandAndRandom(options.length, options.band, 0.2, options.seed);
  };
  const auto within = [&] {
    return b.ReverseTokens(b.WindowAttention(q, k, v, kHeads, 0.3f, options.length / windows, windows), options.length);
  };
  const int attended = sparse               ? b.SparseAttention(q, k, v, kHeads, 0.3f, pattern())
                       : windows > 0        ? within()
                       : options.reach > 0  ? b.BiasedAttention(q, k, v, kHeads, 0.3f, options.reach)
                       : options.places > 0 ? b.DisentangledAttention(q, k, v, kHeads, 0.3f, options.places)
                                            : b.Attention(q, k, v, kHeads, 0.3f);
  const int mixed = b.LayerNorm(b.Linear(attended, channels, s, x));
  const int inner = b.Function(b.Linear(mixed, kInner, s), {FunctionKind::kGelu, 0, 0});
  const int hidden = b.LayerNorm(b.Linear(inner, channels, s, mixed));
  const int pooled = b.Function(b.Linear(b.SelectFirstToken(hidden), channels, s), {FunctionKind::kTanh, 0, 0});

  Network network = b.Finish();
  ShareTables(network);
  Shape tokens = {options.length > 0 ? options.length : -1}, rows;
  if (options.batch_size > 0) {
    tokens.insert(tokens.begin(), options.batch_size);
    rows.push_back(options.batch_size);
  }
  network.inputs = {{"input_ids", DType::kInt64, tokens, ids},
                    {"attention_mask", DType::kInt64, tokens, -1},
                    {"token_type_ids", DType::kInt32, tokens, -1}};
  tokens.push_back(channels);
  rows.push_back(channels);
  network.outputs = {{"hidden", DType::kFloat32, tokens, hidden}, {"pooled", DType::kFloat32, rows, pooled}};
  network.sequences = sparse || windows > 0 ? SequenceInputs{options.length, -1, 0.0f, false}
                                            : SequenceInputs{options.length, 1, -10000.0f, options.skips_masked};
  if (options.padding) network.sequences->counted = 0, network.sequences->padding = *options.padding;
  return network;
}

}  // namespace swizzle::testing
