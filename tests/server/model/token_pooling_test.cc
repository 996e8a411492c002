#include "server/model/token_pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

std::string BytesOf(const std::vector<float>& floats) {
  return {reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float)};
}

std::vector<float> FloatsOf(const std::string& bytes) {
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

// Three rows of three tokens with two numbers each: one with all tokens, one with the last two, one without any.
std::vector<float> Pooled(text::Pooling pooling) {
  std::vector<float> states(18);
  for (size_t i = 0; i < states.size(); ++i) states[i] = static_cast<float>(i);
  const std::vector<int32_t> mask = {1, 1, 1, 0, 1, 1, 0, 0, 0};
  return FloatsOf(
      PooledStates(pooling, BytesOf(states), {3, 3, 2}, {DType::kInt32, {3, 3}, std::as_bytes(std::span(mask))}));
}

TEST(PooledStatesTest, AreOfTheTokensThatTheMaskLetsThrough) {
  EXPECT_THAT(Pooled(text::Pooling::kMean), ElementsAre(2, 3, 9, 10, 0, 0));
  EXPECT_THAT(Pooled(text::Pooling::kFirst), ElementsAre(0, 1, 8, 9, 0, 0));
  EXPECT_THAT(Pooled(text::Pooling::kLast), ElementsAre(4, 5, 10, 11, 0, 0));
}

TEST(ApplyDenseTest, MultipliesAddsAndActivates) {
  const std::vector<float> weight = {1, 2, 3, -4, -5, -6}, bias = {10, 20, 30};
  text::DenseLayer layer{
      .name = "2_Dense", .weight = Tensor::Floats({2, 3}, weight), .bias = Tensor::Floats({3}, bias), .activation = ""};
  const auto applied = [&](const std::string& activation) {
    layer.activation = activation;
    std::string vectors = BytesOf({1, 1, 5, 0});
    ApplyDense(layer, vectors);
    return FloatsOf(vectors);
  };
  EXPECT_THAT(applied(""), ElementsAre(7, 17, 27, 15, 30, 45));
  layer.bias.reset();
  EXPECT_THAT(applied(""), ElementsAre(-3, -3, -3, 5, 10, 15));
  EXPECT_THAT(applied("Relu"), ElementsAre(0, 0, 0, 5, 10, 15));
  EXPECT_THAT(applied("Tanh")[0], FloatEq(std::tanh(-3.0f)));
  EXPECT_THAT(applied("Sigmoid")[0], FloatEq(1.0f / (1.0f + std::exp(3.0f))));
}

}  // namespace
}  // namespace swizzle
