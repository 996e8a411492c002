#include "tests/support/random_encoder.h"

#include "tests/support/random_network.h"

namespace swizzle::testing {
namespace {

constexpr int64_t kChannels = 24;
constexpr int64_t kInner = 40;
constexpr int32_t kHeads = 2;

// Appends layers; each method returns the value it made.
class EncoderBuilder {
 public:
  explicit EncoderBuilder(const RandomEncoderOptions& options) : options_(options), seed_(options.seed * 100) {
    network_.producer = "random";
    network_.batch_size = options.batch_size;
  }

  int Value(const std::string& name, int64_t channels, bool per_token) {
    network_.values.push_back({name, channels, 1, 1, per_token, false});
    return static_cast<int>(network_.values.size()) - 1;
  }

  int Ids(const std::string& name) {
    const int value = Value(name, 1, true);
    network_.values[value].ids = true;
    return value;
  }

  int Embedding(int ids, int64_t rows) {
    Layer layer;
    layer.kind = LayerKind::kEmbedding;
    layer.lookup = ids >= 0 ? Lookup{} : Lookup{true, 2};  // as RoBERTa, whose positions start at 2
    if (ids >= 0) layer.inputs = {ids};
    layer.weight = AddWeight(ids >= 0 ? rows : rows + 2, kChannels, 0.0, false);
    return Append(std::move(layer), kChannels, true);
  }

  int Linear(int input, int64_t outputs, int residual = -1) {
    Layer layer;
    layer.kind = LayerKind::kConv;
    layer.inputs = {input};
    layer.epilogue.residual = residual >= 0;
    if (residual >= 0) layer.inputs.push_back(residual);
    layer.weight = AddWeight(outputs, network_.values[input].channels, options_.sparsity, true);
    return Append(std::move(layer), outputs, network_.values[input].per_token);
  }

  int LayerNorm(int input) {
    Layer layer;
    layer.kind = LayerKind::kLayerNorm;
    layer.inputs = {input};
    layer.epsilon = 1e-5f;
    layer.weight = AddWeight(kChannels, 1, 0.0, true);
    return Append(std::move(layer), kChannels, true);
  }

  int Attention(int q, int k, int v) {
    Layer layer;
    layer.kind = LayerKind::kAttention;
    layer.inputs = {q, k, v};
    layer.attention = {kHeads, 0.3f};
    return Append(std::move(layer), kChannels, true);
  }

  int Function(int input, FunctionKind kind) {
    Layer layer;
    layer.kind = LayerKind::kFunction;
    layer.inputs = {input};
    layer.function.kind = kind;
    return Append(std::move(layer), network_.values[input].channels, network_.values[input].per_token);
  }

  int Add(int a, int b) {
    Layer layer;
    layer.kind = LayerKind::kAdd;
    layer.inputs = {a, b};
    return Append(std::move(layer), kChannels, true);
  }

  int SelectFirst(int input) {
    Layer layer;
    layer.kind = LayerKind::kSelectToken;
    layer.inputs = {input};
    return Append(std::move(layer), kChannels, false);
  }

  Network& network() { return network_; }

 private:
  int AddWeight(int64_t rows, int64_t cols, double sparsity, bool bias) {
    DenseMatrix matrix = MakeRandomMatrix(rows, cols, sparsity, ++seed_);
    Weight weight;
    if (bias) weight.bias = MakeRandomMatrix(rows, 1, 0.0, ++seed_).values;
    if (sparsity > 0) {
      weight.matrix = CsrMatrix::FromDense(matrix);
    } else {
      weight.matrix = std::move(matrix);
    }
    network_.weights.push_back(std::move(weight));
    return static_cast<int>(network_.weights.size()) - 1;
  }

  int Append(Layer layer, int64_t channels, bool per_token) {
    layer.name = std::string(LayerKindName(layer.kind)) + std::to_string(network_.layers.size());
    layer.output = Value(layer.name + ".out", channels, per_token);
    network_.layers.push_back(std::move(layer));
    return network_.layers.back().output;
  }

  const RandomEncoderOptions options_;
  uint32_t seed_;
  Network network_;
};

}  // namespace

Network MakeRandomEncoder(const RandomEncoderOptions& options) {
  EncoderBuilder builder(options);
  const int ids = builder.Ids("input_ids");
  const int words = builder.Embedding(ids, options.vocabulary);
  const int positions = builder.Embedding(-1, options.positions);
  const int x = builder.LayerNorm(builder.Add(words, positions));
  const int q = builder.Linear(x, kChannels);
  const int k = builder.Linear(x, kChannels);
  const int v = builder.Linear(x, kChannels);
  const int attended = builder.Attention(q, k, v);
  const int mixed = builder.LayerNorm(builder.Linear(attended, kChannels, x));
  const int inner = builder.Function(builder.Linear(mixed, kInner), FunctionKind::kGelu);
  const int hidden = builder.LayerNorm(builder.Linear(inner, kChannels, mixed));
  const int pooled = builder.Function(builder.Linear(builder.SelectFirst(hidden), kChannels), FunctionKind::kTanh);

  Network network = std::move(builder.network());
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
