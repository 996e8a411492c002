#include "model_loader/quantising/quantiser.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model_loader/semantics/whole_numbers.h"
#include "tests/support/random_detector.h"
#include "tests/support/random_encoder.h"
#include "tests/support/random_network.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Every value was seen from -1 to 2, by channels.
std::vector<Observer> SeenOf(const Network& network) {
  std::vector<Observer> observers(network.values.size());
  for (size_t i = 0; i < observers.size(); ++i) {
    std::vector<float> values(static_cast<size_t>(network.values[i].elements()));
    for (size_t k = 0; k < values.size(); ++k) values[k] = k % 2 == 0 ? -1.0f : 2.0f;
    observers[i].SeeRange(values);
    observers[i].SeeValues(values, network.values[i].channels);
  }
  return observers;
}

// That each value is a whole number of its row's scales, and zeros are where they were.
void ExpectWholes(const Weight& before, const Weight& after) {
  ASSERT_TRUE(after.quantisation);
  const DenseMatrix real = before.ToDense(), rounded = after.ToDense();
  for (int64_t i = 0; i < real.rows * real.cols; ++i) {
    const float scale = after.quantisation->Of(i / real.cols).scale;
    EXPECT_NEAR(std::remainder(rounded.values[i], scale), 0.0f, 1e-4f * scale);
    EXPECT_LE(std::abs(rounded.values[i] - real.values[i]), 0.5001f * scale);
    if (real.values[i] == 0.0f) {
      EXPECT_EQ(rounded.values[i], 0.0f);
    }
  }
}

TEST(RoundToStepsTest, TheLargestIs127StepsAndZerosStay) {
  std::vector<float> values = {0.0f, 12.7f, -3.14f, 0.04f};
  EXPECT_FLOAT_EQ(RoundToSteps(values), 0.1f);
  EXPECT_THAT(values, ElementsAre(0.0f, ::testing::FloatEq(12.7f), ::testing::FloatEq(-3.1f), 0.0f));
  std::vector<float> nothing = {0.0f, 1e-40f};
  EXPECT_EQ(RoundToSteps(nothing), 1.0f);
  EXPECT_THAT(nothing, Each(0.0f));
}

TEST(QuantiserTest, ConvolutionsReadWholeNumbersAndHoldThem) {
  const Network real = testing::MakeRandomNetwork({});
  Network network = real;
  const auto layers = QuantiseNetwork(network, SeenOf(real), {});
  ASSERT_TRUE(layers.ok()) << layers.status();
  size_t quantised = 0;
  for (const QuantisedLayer& result : *layers) {
    const Layer* const layer = &*std::ranges::find(network.layers, result.name, &Layer::name);
    EXPECT_EQ(result.skipped, !network.values[layer->inputs[0]].quantisation) << result.name;
    if (result.skipped) continue;  // behind what has no whole numbers
    ++quantised;
    EXPECT_GT(result.weight_decibels, 20.0) << result.name;
    ExpectWholes(real.weights[layer->weight], network.weights[layer->weight]);
  }
  EXPECT_GT(quantised, 0u);
  EXPECT_TRUE(network.Validate().ok());
}

TEST(QuantiserTest, WhatIsOnlyMovedHasOneScale) {
  const Network real = testing::MakeRandomDetector();
  Network network = real;
  std::vector<Observer> seen = SeenOf(real);
  const Layer& joined = *std::ranges::find(real.layers, Op::kConcat, &Layer::op);
  std::vector<float> wide(static_cast<size_t>(real.values[joined.inputs[1]].elements()), 1.0f);
  wide[0] = 9.0f;
  Observer& widest = seen[static_cast<size_t>(joined.inputs[1])] = Observer();
  widest.SeeRange(wide);
  widest.SeeValues(wide, real.values[joined.inputs[1]].channels);
  const auto layers = QuantiseNetwork(network, seen, {});
  ASSERT_TRUE(layers.ok()) << layers.status();
  int moved = 0;
  for (const Layer& layer : network.layers) {
    const bool moves = layer.op == Op::kConcat || layer.op == Op::kSlice || layer.op == Op::kDepthToSpace ||
                       (layer.op == Op::kResize && !layer.resampling().linear);
    const auto& output = network.values[layer.output].quantisation;
    if (!moves || !output) continue;
    ++moved;
    for (const int input : layer.inputs) EXPECT_EQ(network.values[input].quantisation, output) << layer.name;
  }
  EXPECT_GE(moved, 2);
  const RealRange range = RangeOf(network.values[joined.output].quantisation->Of(0));  // of all that is joined
  EXPECT_NEAR(range.low, -1.0f, 0.08f);
  EXPECT_NEAR(range.high, 9.0f, 0.08f);
  for (const QuantisedLayer& layer : *layers) {
    EXPECT_FALSE(layer.skipped) << layer.name;
  }
}

TEST(QuantiserTest, SkippedLayersStayAsTheyAre) {
  const Network real = testing::MakeRandomNetwork({});
  Network network = real;
  const auto layers = QuantiseNetwork(network, SeenOf(real), {.skip = {"*"}});
  ASSERT_TRUE(layers.ok()) << layers.status();
  for (const QuantisedLayer& result : *layers) EXPECT_TRUE(result.skipped);
  for (const Weight& weight : network.weights) EXPECT_FALSE(weight.quantisation);
  EXPECT_THAT(QuantiseNetwork(network, SeenOf(real), {.skip = {"none"}}).status().message(), HasSubstr("'none'"));
}

TEST(QuantiserTest, OverTokensOnlyWeightsOfLinearLayersChange) {
  const Network real = testing::MakeRandomEncoder({});
  Network network = real;
  const auto layers = QuantiseSequenceNetwork(network, {});
  ASSERT_TRUE(layers.ok()) << layers.status();
  size_t linear = 0;
  for (const Layer& layer : network.layers) {
    if (layer.weight < 0) continue;
    if (layer.op == Op::kConv) {
      ++linear;
      ExpectWholes(real.weights[layer.weight], network.weights[layer.weight]);
      EXPECT_EQ(network.weights[layer.weight].bias, real.weights[layer.weight].bias);
    } else {
      EXPECT_FALSE(network.weights[layer.weight].quantisation) << layer.name;
    }
  }
  EXPECT_EQ(layers->size(), linear);
  for (const NetworkValue& value : network.values) EXPECT_FALSE(value.quantisation) << value.name;
}

}  // namespace
}  // namespace swizzle
