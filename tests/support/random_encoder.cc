#include "tests/support/random_encoder.h"

#include "tests/support/network_builder.h"

namespace swizzle::testing {
namespace {

constexpr int64_t kChannels = 24;
constexpr int64_t kInner = 40;
constexpr int32_t kHeads = 2;
constexpr int64_t kPositionOffset = 2;  // as RoBERTa, whose positions start at 2

}  // namespace

Network MakeRandomEncoder(const RandomEncoderOptions& options) {
  NetworkBuilder b(options.seed, options.batch_size);
  const double s = options.sparsity;
  const int ids = b.Ids("input_ids");
  const int words = b.Embedding(ids, options.vocabulary, kChannels);
  const int positions = b.Embedding(-1, options.positions, kChannels, kPositionOffset);
  const int x = b.LayerNorm(b.Pointwise(LayerKind::kAdd, {words, positions}));
  const int q = b.Linear(x, kChannels, s), k = b.Linear(x, kChannels, s), v = b.Linear(x, kChannels, s);
  const int attended = b.Attention(q, k, v, kHeads, 0.3f);
  const int mixed = b.LayerNorm(b.Linear(attended, kChannels, s, x));
  const int inner = b.Function(b.Linear(mixed, kInner, s), {FunctionKind::kGelu, 0, 0});
  const int hidden = b.LayerNorm(b.Linear(inner, kChannels, s, mixed));
  const int pooled = b.Function(b.Linear(b.SelectFirstToken(hidden), kChannels, s), {FunctionKind::kTanh, 0, 0});

  Network network = b.Finish();
  Shape tokens = {options.length > 0 ? options.length : -1}, rows;
  if (options.batch_size > 0) {
    tokens.insert(tokens.begin(), options.batch_size);
    rows.push_back(options.batch_size);
  }
  network.inputs = {{"input_ids", DType::kInt64, tokens, ids},
                    {"attention_mask", DType::kInt64, tokens, -1},
                    {"token_type_ids", DType::kInt32, tokens, -1}};
  tokens.push_back(kChannels);
  rows.push_back(kChannels);
  network.outputs = {{"hidden", DType::kFloat32, tokens, hidden}, {"pooled", DType::kFloat32, rows, pooled}};
  network.sequences = SequenceInputs{options.length, 1, -10000.0f, options.skips_masked};
  return network;
}

}  // namespace swizzle::testing
