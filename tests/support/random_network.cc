#include "tests/support/random_network.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace swizzle::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Appends layers; each method returns the value it made.
class Builder {
 public:
  explicit Builder(const RandomNetworkOptions& options) : options_(options) {
    network_.producer = "random";
    network_.batch_size = options.batch_size;
  }

  int Value(const std::string& name, int64_t channels, int64_t height, int64_t width) {
    network_.values.push_back({name, channels, height, width});
    return static_cast<int>(network_.values.size()) - 1;
  }

  int Conv(int input, int64_t outputs, Window window, double sparsity, Epilogue epilogue, int residual = -1) {
    const NetworkValue& x = network_.values[input];
    Layer layer = NewLayer(LayerKind::kConv, input, window, epilogue);
    layer.weight = AddWeight(outputs, x.channels * window.kernel_h * window.kernel_w, sparsity);
    if (residual >= 0) layer.inputs.push_back(residual);
    return Append(std::move(layer), outputs);
  }

  int Depthwise(int input, Window window, Epilogue epilogue) {
    const int64_t channels = network_.values[input].channels;
    Layer layer = NewLayer(LayerKind::kDepthwiseConv, input, window, epilogue);
    layer.weight = AddWeight(channels, window.kernel_h * window.kernel_w, 0.0);
    return Append(std::move(layer), channels);
  }

  int Pool(LayerKind kind, int input, Window window) {
    return Append(NewLayer(kind, input, window, {}), network_.values[input].channels);
  }

  int Pointwise(LayerKind kind, std::vector<int> inputs, Epilogue epilogue = {}) {
    const int64_t channels = network_.values[inputs[0]].channels;
    Layer layer = NewLayer(kind, inputs[0], {}, epilogue);
    layer.inputs = std::move(inputs);
    return Append(std::move(layer), channels);
  }

  int Function(int input, const swizzle::Function& function) {
    Layer layer = NewLayer(LayerKind::kFunction, input, {}, {});
    layer.function = function;
    return Append(std::move(layer), network_.values[input].channels);
  }

  // Squeeze-and-excite without its convolutions: every channel times the hard sigmoid of its mean.
  int Excite(int input) {
    Window plane;
    plane.kernel_h = static_cast<int32_t>(network_.values[input].height);
    plane.kernel_w = static_cast<int32_t>(network_.values[input].width);
    const int mean = Pool(LayerKind::kAveragePool, input, plane);
    return Pointwise(LayerKind::kScale, {input, Function(mean, {FunctionKind::kHardSigmoid, 0.2f, 0.5f})});
  }

  // [C,H,W] to [H*W,1,C].
  int Transpose(int input) {
    const NetworkValue x = network_.values[input];
    Layer layer = NewLayer(LayerKind::kTranspose, input, {}, {});
    layer.output = Value(layer.name + ".out", x.height * x.width, 1, x.channels);
    network_.layers.push_back(std::move(layer));
    return network_.layers.back().output;
  }

  int Flatten(int input) {
    const NetworkValue x = network_.values[input];
    Layer layer = NewLayer(LayerKind::kReshape, input, {}, {});
    layer.output = Value(layer.name + ".out", x.elements(), 1, 1);
    network_.layers.push_back(std::move(layer));
    return network_.layers.back().output;
  }

  Network Finish(int input, const std::string& input_name, int output, const std::string& output_name) {
    network_.inputs.push_back(Port(input, input_name));
    network_.outputs.push_back(Port(output, output_name));
    return std::move(network_);
  }

 private:
  Layer NewLayer(LayerKind kind, int input, Window window, Epilogue epilogue) {
    Layer layer;
    layer.kind = kind;
    layer.name = std::string(LayerKindName(kind)) + std::to_string(network_.layers.size());
    layer.inputs = {input};
    layer.window = window;
    layer.epilogue = epilogue;
    return layer;
  }

  int Append(Layer layer, int64_t channels) {
    const NetworkValue x = network_.values[layer.inputs[0]];
    const Window& w = layer.window;
    const int64_t height = (x.height + w.pad_top + w.pad_bottom - w.kernel_h) / w.stride_h + 1;
    const int64_t width = (x.width + w.pad_left + w.pad_right - w.kernel_w) / w.stride_w + 1;
    layer.output = Value(layer.name + ".out", channels, height, width);
    network_.layers.push_back(std::move(layer));
    return network_.layers.back().output;
  }

  int AddWeight(int64_t rows, int64_t cols, double sparsity) {
    const uint32_t seed = options_.seed * 100 + static_cast<uint32_t>(network_.weights.size());
    Weight weight;
    DenseMatrix dense = MakeRandomMatrix(rows, cols, sparsity, seed);
    if (sparsity > 0.0) weight.matrix = CsrMatrix::FromDense(dense);
    else weight.matrix = std::move(dense);
    std::mt19937 random(seed + 50);
    std::normal_distribution<float> normal(0.0f, 0.1f);
    for (int64_t i = 0; i < rows; ++i) weight.bias.push_back(normal(random));
    network_.weights.push_back(std::move(weight));
    return static_cast<int>(network_.weights.size()) - 1;
  }

  NetworkPort Port(int value, const std::string& name) const {
    const NetworkValue& v = network_.values[value];
    Shape dims = {v.channels};
    if (v.height * v.width > 1) dims = {v.channels, v.height, v.width};
    if (network_.batch_size > 0) dims.insert(dims.begin(), network_.batch_size);
    return {name, DType::kFloat32, dims, value};
  }

  const RandomNetworkOptions options_;
  Network network_;
};

Window Square(int32_t kernel, int32_t stride, int32_t pad) {
  Window window;
  window.kernel_h = window.kernel_w = kernel;
  window.stride_h = window.stride_w = stride;
  window.pad_top = window.pad_left = window.pad_bottom = window.pad_right = pad;
  return window;
}

}  // namespace

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

Network MakeRandomNetwork(const RandomNetworkOptions& options) {
  const Epilogue relu6{0.0f, 6.0f, false}, relu{0.0f, kInfinity, false};
  Epilogue residual;
  residual.residual = true;
  Builder b(options);
  const int image = b.Value("image", options.input_channels, options.image, options.image);
  const int stem = b.Conv(image, 16, Square(3, 2, 1), 0.0, relu6);
  int x = b.Conv(stem, 48, Square(1, 1, 0), options.sparsity, relu6);
  x = b.Depthwise(x, Square(3, 1, 1), relu6);
  x = b.Conv(x, 16, Square(1, 1, 0), options.sparsity, residual, stem);
  x = b.Pointwise(LayerKind::kAdd, {x, stem});
  x = b.Pointwise(LayerKind::kActivation, {x}, relu);
  x = b.Pool(LayerKind::kMaxPool, x, Square(3, 1, 1));
  x = b.Depthwise(x, Square(3, 2, 1), relu6);
  x = b.Function(x, {FunctionKind::kHardSwish, 1.0f / 6, 0.5f});
  x = b.Excite(x);
  x = b.Pointwise(LayerKind::kMultiply, {x, b.Function(x, {FunctionKind::kSigmoid, 0, 0})});
  x = b.Pool(LayerKind::kAveragePool, x, Square(2, 1, 0));
  x = b.Flatten(b.Transpose(x));
  x = b.Conv(x, 10, Square(1, 1, 0), 0.0, {});
  x = b.Pointwise(LayerKind::kSoftmax, {x});
  return b.Finish(image, "image", x, "probabilities");
}

}  // namespace swizzle::testing
