#include "server/model/token_pooling.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "model_loader/plan/run/token_packing.h"

namespace swizzle {
namespace {

std::vector<float> FloatsOf(std::string_view bytes) {
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

std::string BytesOf(const std::vector<float>& floats) {
  return {reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float)};
}

float Activated(const std::string& activation, float x) {
  if (activation == "Tanh") return std::tanh(x);
  if (activation == "Relu") return std::max(x, 0.0f);
  if (activation == "Sigmoid") return 1.0f / (1.0f + std::exp(-x));
  SWIZZLE_CHECK(activation.empty());
  return x;
}

}  // namespace

std::string PooledStates(text::Pooling pooling, const std::string& states, const Shape& shape, const TensorView& mask) {
  const auto rows = static_cast<size_t>(shape[0]), length = static_cast<size_t>(shape[1]);
  const auto width = static_cast<size_t>(shape[2]);
  const std::vector<float> all = FloatsOf(states);
  std::vector<float> pooled(rows * width);
  for (size_t row = 0; row < rows; ++row) {
    float* const vector = pooled.data() + row * width;
    int64_t count = 0;
    for (size_t at = 0; at < length; ++at) {
      if (WholeAt(mask, static_cast<int64_t>(row * length + at)) == 0) continue;
      const float* const state = all.data() + (row * length + at) * width;
      ++count;
      if (pooling == text::Pooling::kMean) {
        for (size_t i = 0; i < width; ++i) vector[i] += state[i];
      } else if (pooling == text::Pooling::kLast || count == 1) {
        std::copy_n(state, width, vector);
      }
    }
    if (pooling != text::Pooling::kMean || count == 0) continue;
    for (size_t i = 0; i < width; ++i) vector[i] /= static_cast<float>(count);
  }
  return BytesOf(pooled);
}

void ApplyDense(const text::DenseLayer& layer, std::string& vectors) {
  const auto in = static_cast<size_t>(layer.weight.shape[0]), out = static_cast<size_t>(layer.weight.shape[1]);
  const std::vector<float> read = FloatsOf(vectors);
  const std::span<const float> weight = layer.weight.floats();
  std::vector<float> made(read.size() / in * out);
  for (size_t row = 0; row * in < read.size(); ++row) {
    float* const to = made.data() + row * out;
    if (layer.bias) std::ranges::copy(layer.bias->floats(), to);
    for (size_t i = 0; i < in; ++i) {
      for (size_t o = 0; o < out; ++o) to[o] += read[row * in + i] * weight[i * out + o];
    }
    for (size_t o = 0; o < out; ++o) to[o] = Activated(layer.activation, to[o]);
  }
  vectors = BytesOf(made);
}

}  // namespace swizzle
