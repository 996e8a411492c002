#include "tests/support/network_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "kernels/format/csr.h"

namespace swizzle::testing {

Window SquareWindow(int32_t kernel, int32_t stride, int32_t pad) {
  Window window;
  window.kernel_h = window.kernel_w = kernel;
  window.stride_h = window.stride_w = stride;
  window.pad_top = window.pad_left = window.pad_bottom = window.pad_right = pad;
  return window;
}

DenseMatrix MakeRandomMatrix(int64_t rows, int64_t cols, double sparsity, uint32_t seed) {
  std::mt19937 random(seed);
  const double kept = std::max(1.0, static_cast<double>(cols) * (1.0 - sparsity));
  std::normal_distribution<float> normal(0.0f, static_cast<float>(1.0 / std::sqrt(kept)));
  DenseMatrix dense{rows, cols, std::vector<float>(static_cast<size_t>(rows * cols))};
  for (float& value : dense.values) value = normal(random);
  std::vector<size_t> order(dense.values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  order.resize(static_cast<size_t>(std::llround(sparsity * static_cast<double>(order.size()))));
  for (size_t i : order) dense.values[i] = 0.0f;
  return dense;
}

NetworkBuilder::NetworkBuilder(uint32_t seed, int64_t batch_size) : seed_(seed * 1000) {
  network_.producer = "random";
  network_.batch_size = batch_size;
}

int NetworkBuilder::Value(const std::string& name, int64_t channels, int64_t height, int64_t width) {
  network_.values.push_back({name, channels, height, width});
  return static_cast<int>(network_.values.size()) - 1;
}

Layer NetworkBuilder::NewLayer(Op op, std::vector<int> inputs) const {
  Layer layer;
  layer.SetOp(op);
  layer.name = std::string(OpName(op)) + std::to_string(network_.layers.size());
  layer.inputs = std::move(inputs);
  return layer;
}

int NetworkBuilder::Append(Layer layer, int64_t channels) {
  const NetworkValue x = network_.values[layer.inputs[0]];
  const Window w = IsWindowed(layer.op) ? layer.window() : Window();
  const int64_t height = (x.height + w.pad_top + w.pad_bottom - w.kernel_h) / w.stride_h + 1;
  const int64_t width = (x.width + w.pad_left + w.pad_right - w.kernel_w) / w.stride_w + 1;
  layer.output = Value(layer.name + ".out", channels, height, width);
  network_.values[layer.output].per_token = x.per_token;
  network_.layers.push_back(std::move(layer));
  return network_.layers.back().output;
}

int NetworkBuilder::AppendTokens(Layer layer, int64_t channels, bool per_token) {
  layer.output = Value(layer.name + ".out", channels);
  network_.values[layer.output].per_token = per_token;
  network_.layers.push_back(std::move(layer));
  return network_.layers.back().output;
}

int NetworkBuilder::AddWeight(int64_t rows, int64_t cols, double sparsity, bool bias) {
  Weight weight;
  DenseMatrix dense = MakeRandomMatrix(rows, cols, sparsity, ++seed_);
  if (sparsity > 0.0) {
    weight.matrix = CsrMatrix::FromDense(dense);
  } else {
    weight.matrix = std::move(dense);
  }
  std::mt19937 random(++seed_);
  std::normal_distribution<float> normal(0.0f, 0.1f);
  for (int64_t i = 0; bias && i < rows; ++i) weight.bias.push_back(normal(random));
  network_.weights.push_back(std::move(weight));
  return static_cast<int>(network_.weights.size()) - 1;
}

int NetworkBuilder::Conv(int input, int64_t outputs, Window window, double sparsity, Epilogue epilogue, int residual) {
  Layer layer = NewLayer(Op::kConv, {input});
  layer.window() = window;
  layer.epilogue = epilogue;
  layer.epilogue.residual = residual >= 0;
  if (residual >= 0) layer.inputs.push_back(residual);
  layer.weight = AddWeight(outputs, value(input).channels * window.kernel_h * window.kernel_w, sparsity, true);
  return Append(std::move(layer), outputs);
}

int NetworkBuilder::Linear(int input, int64_t outputs, double sparsity, int residual) {
  return Conv(input, outputs, SquareWindow(1, 1, 0), sparsity, kNoEpilogue, residual);
}

int NetworkBuilder::Depthwise(int input, Window window, Epilogue epilogue) {
  const int64_t channels = value(input).channels;
  Layer layer = NewLayer(Op::kDepthwiseConv, {input});
  layer.window() = window;
  layer.epilogue = epilogue;
  layer.weight = AddWeight(channels, window.kernel_h * window.kernel_w, 0.0, true);
  return Append(std::move(layer), channels);
}

int NetworkBuilder::Pool(Op op, int input, Window window) {
  Layer layer = NewLayer(op, {input});
  layer.window() = window;
  return Append(std::move(layer), value(input).channels);
}

int NetworkBuilder::MeanOfPlane(int input) {
  Window plane;
  plane.kernel_h = static_cast<int32_t>(value(input).height);
  plane.kernel_w = static_cast<int32_t>(value(input).width);
  return Pool(Op::kAveragePool, input, plane);
}

int NetworkBuilder::Pointwise(Op op, std::vector<int> inputs, Epilogue epilogue) {
  const int64_t channels = value(inputs[0]).channels;
  Layer layer = NewLayer(op, std::move(inputs));
  layer.epilogue = epilogue;
  return Append(std::move(layer), channels);
}

int NetworkBuilder::Function(int input, const swizzle::Function& function) {
  Layer layer = NewLayer(Op::kFunction, {input});
  layer.function() = function;
  return Append(std::move(layer), value(input).channels);
}

int NetworkBuilder::Concat(std::vector<int> inputs) {
  const NetworkValue first = value(inputs[0]);
  Layer layer = NewLayer(Op::kConcat, inputs);
  ConcatParts& parts = layer.parts();
  int64_t channels = 0;
  for (const int input : inputs) {
    parts.sizes[parts.count++] = static_cast<int32_t>(value(input).channels);
    channels += value(input).channels;
  }
  layer.output = Value(layer.name + ".out", channels, first.height, first.width);
  network_.layers.push_back(std::move(layer));
  return network_.layers.back().output;
}

int NetworkBuilder::ConcatPlanes(std::vector<int> inputs) {
  const NetworkValue first = value(inputs[0]);
  Layer layer = NewLayer(Op::kConcat, inputs);
  ConcatParts& parts = layer.parts();
  parts.of_planes = true;
  int64_t positions = 0;
  for (const int input : inputs) {
    const int64_t plane = value(input).height * value(input).width;
    parts.sizes[parts.count++] = static_cast<int32_t>(plane);
    positions += plane;
  }
  layer.output = Value(layer.name + ".out", first.channels, 1, positions);
  network_.layers.push_back(std::move(layer));
  return network_.layers.back().output;
}

int NetworkBuilder::Slice(int input, int64_t first, int64_t channels) {
  const NetworkValue x = value(input);
  Layer layer = NewLayer(Op::kSlice, {input});
  layer.channel_range() = {first};
  layer.output = Value(layer.name + ".out", channels, x.height, x.width);
  network_.layers.push_back(std::move(layer));
  return network_.layers.back().output;
}

int NetworkBuilder::Resize(int input, int64_t height, int64_t width, const Resampling& how) {
  Layer layer = NewLayer(Op::kResize, {input});
  layer.resampling() = how;
  layer.output = Value(layer.name + ".out", value(input).channels, height, width);
  network_.layers.push_back(std::move(layer));
  return network_.layers.back().output;
}

int NetworkBuilder::DepthToSpace(int input, int32_t block) {
  const NetworkValue x = value(input);
  Layer layer = NewLayer(Op::kDepthToSpace, {input});
  layer.space_block() = {block, true};
  layer.output = Value(layer.name + ".out", x.channels / (block * block), x.height * block, x.width * block);
  network_.layers.push_back(std::move(layer));
  return network_.layers.back().output;
}

int NetworkBuilder::Transpose(int input) {
  const NetworkValue x = value(input);
  Layer layer = NewLayer(Op::kTranspose, {input});
  layer.output = Value(layer.name + ".out", x.height * x.width, 1, x.channels);
  network_.layers.push_back(std::move(layer));
  return network_.layers.back().output;
}

int NetworkBuilder::Flatten(int input) {
  Layer layer = NewLayer(Op::kReshape, {input});
  layer.output = Value(layer.name + ".out", value(input).elements());
  network_.layers.push_back(std::move(layer));
  return network_.layers.back().output;
}

int NetworkBuilder::Ids(const std::string& name) {
  const int ids = Value(name, 1);
  network_.values[ids].per_token = network_.values[ids].ids = true;
  return ids;
}

int NetworkBuilder::Embedding(int ids, int64_t rows, int64_t channels, int64_t offset) {
  Layer layer = NewLayer(Op::kEmbedding, {});
  if (ids >= 0) {
    layer.inputs = {ids};
  } else {
    layer.lookup() = {true, offset};
  }
  layer.weight = AddWeight(rows + offset, channels, 0.0, false);
  return AppendTokens(std::move(layer), channels, true);
}

int NetworkBuilder::LayerNorm(int input) {
  const int64_t channels = value(input).channels;
  Layer layer = NewLayer(Op::kLayerNorm, {input});
  layer.normalisation() = {1e-5f};
  layer.weight = AddWeight(channels, 1, 0.0, true);
  return AppendTokens(std::move(layer), channels, true);
}

int NetworkBuilder::Attention(int q, int k, int v, int32_t heads, float scale) {
  Layer layer = NewLayer(Op::kAttention, {q, k, v});
  layer.attention() = {heads, scale, 0, 0};
  layer.attention().group_size = static_cast<int32_t>(value(q).channels / value(k).channels);
  return AppendTokens(std::move(layer), value(v).channels * layer.attention().group_size, true);
}

int NetworkBuilder::Rotary(int input, int32_t size, int32_t pairs, int64_t positions) {
  const int64_t channels = value(input).channels;
  Layer layer = NewLayer(Op::kRotary, {input});
  layer.rotation() = {static_cast<int32_t>(channels / size), size, pairs};
  layer.weight = AddWeight(positions, int64_t{2} * pairs, 0.0, false);
  return AppendTokens(std::move(layer), channels, true);
}

int NetworkBuilder::BiasedAttention(int q, int k, int v, int32_t heads, float scale, int64_t reach) {
  Layer layer = NewLayer(Op::kBiasedAttention, {q, k, v});
  const auto group_size = static_cast<int32_t>(value(q).channels / value(k).channels);
  layer.attention() = {.heads = heads, .scale = scale, .reach = reach, .group_size = group_size};
  layer.weight = AddWeight(heads, 2 * reach + 1, 0.0, false);
  DenseMatrix biases = network_.weights[layer.weight].ToDense();
  for (int64_t head = 1; head <= heads; ++head) {
    biases.values[head * biases.cols - 1] = -std::numeric_limits<float>::infinity();
  }
  network_.weights[layer.weight].matrix = std::move(biases);
  return AppendTokens(std::move(layer), value(v).channels * group_size, true);
}

int NetworkBuilder::DisentangledAttention(int q, int k, int v, int32_t heads, float scale, int64_t places) {
  Layer layer = NewLayer(Op::kDisentangledAttention, {q, k, v});
  layer.attention() = {.heads = heads, .scale = scale, .places = places};
  layer.weight = AddWeight(2 * value(q).channels + 1, places, 0.0, false);
  DenseMatrix vectors = network_.weights[layer.weight].ToDense();
  for (int64_t place = 0; place < places; ++place) {
    vectors.values[(vectors.rows - 1) * places + place] = static_cast<float>(place - places / 2);
  }
  network_.weights[layer.weight].matrix = std::move(vectors);
  return AppendTokens(std::move(layer), value(v).channels, true);
}

int NetworkBuilder::WindowAttention(int q, int k, int v, int32_t heads, float scale, int64_t length, int64_t windows) {
  Layer layer = NewLayer(Op::kBiasedAttention, {q, k, v});
  layer.attention() = {.heads = heads, .scale = scale, .length = length, .windows = windows};
  layer.weight = AddWeight(heads, windows * length * length, 0.0, false);
  return AppendTokens(std::move(layer), value(v).channels, true);
}

int NetworkBuilder::ReverseTokens(int input, int64_t length) {
  Layer layer = NewLayer(Op::kPermuteTokens, {input});
  DenseMatrix places;
  places.rows = length;
  places.cols = 1;
  for (int64_t place = length; place-- > 0;) places.values.push_back(static_cast<float>(place));
  layer.weight = static_cast<int>(network_.weights.size());
  network_.weights.push_back({std::move(places), {}});
  return AppendTokens(std::move(layer), value(input).channels, true);
}

int NetworkBuilder::SparseAttention(int q, int k, int v, int32_t heads, float scale, AttentionPattern pattern) {
  Layer layer = NewLayer(Op::kSparseAttention, {q, k, v});
  const auto group_size = static_cast<int32_t>(value(q).channels / value(k).channels);
  layer.attention() = {heads, scale, pattern.tokens, pattern.nnz()};
  layer.attention().group_size = group_size;
  layer.weight = static_cast<int>(network_.weights.size());
  network_.weights.push_back({std::move(pattern), {}});
  return AppendTokens(std::move(layer), value(v).channels * group_size, true);
}

int NetworkBuilder::SelectFirstToken(int input) {
  return AppendTokens(NewLayer(Op::kSelectToken, {input}), value(input).channels, false);
}

int NetworkBuilder::MeanTokens(int input) {
  return AppendTokens(NewLayer(Op::kMeanTokens, {input}), value(input).channels, false);
}

NetworkPort NetworkBuilder::Port(int i, const std::string& name) const {
  const NetworkValue& v = value(i);
  Shape dims = {v.channels};
  if (v.height * v.width > 1) dims = {v.channels, v.height, v.width};
  if (network_.batch_size > 0) dims.insert(dims.begin(), network_.batch_size);
  return {name, DType::kFloat32, dims, i};
}

}  // namespace swizzle::testing
