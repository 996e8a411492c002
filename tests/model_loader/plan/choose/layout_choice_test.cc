#include "model_loader/plan/choose/layout_choice.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

namespace swizzle {
namespace {

constexpr Layout kN = Layout::kNchw;
constexpr Layout kP = Layout::kPanels;
constexpr Layout kB = Layout::kBlocked16;

ConversionCost Flat(double cost) {
  return [cost](int, Layout, Layout) { return cost; };
}

LayerOptions Chain(int input, int output, std::vector<LayerOption> options) {
  return LayerOptions{{input}, false, output, std::move(options)};
}

TEST(LayoutChoiceTest, TakesTheFasterOfTwoInOneLayout) {
  const std::vector<LayerOptions> layers = {Chain(0, 1, {{kN, kN, 5.0}, {kN, kN, 3.0}})};
  EXPECT_EQ(ChooseOptions(layers, std::vector{0}, std::vector{1}, Flat(1.0)), (std::vector{1}));
}

TEST(LayoutChoiceTest, AConversionCountsAgainstAFastKernel) {
  // The panel kernel saves 3, but needs a conversion on either side.
  const std::vector<LayerOptions> layers = {Chain(0, 1, {{kN, kN, 5.0}, {kP, kP, 2.0}})};
  EXPECT_EQ(ChooseOptions(layers, std::vector{0}, std::vector{1}, Flat(1.0)), (std::vector{1}));
  EXPECT_EQ(ChooseOptions(layers, std::vector{0}, std::vector{1}, Flat(2.0)), (std::vector{0}));
}

TEST(LayoutChoiceTest, ARunOfLayersPaysForOneConversion) {
  // Each alone would stay; together they move, which no step-by-step choice finds.
  std::vector<LayerOptions> layers;
  for (int i = 0; i < 4; ++i) layers.push_back(Chain(i, i + 1, {{kN, kN, 5.0}, {kP, kP, 4.0}}));
  EXPECT_EQ(ChooseOptions(layers, std::vector{0}, std::vector{4}, Flat(1.5)), (std::vector{1, 1, 1, 1}));
}

TEST(LayoutChoiceTest, AResidualIsReadInTheOutputsLayout) {
  // Layer 0 feeds layers 1 and 2; layer 2 adds layer 0's value as a residual.
  std::vector<LayerOptions> layers = {Chain(0, 1, {{kN, kP, 1.0}, {kN, kB, 1.0}}), Chain(1, 2, {{kP, kP, 1.0}}),
                                      LayerOptions{{2, 1}, true, 3, {{kP, kB, 1.0}, {kP, kP, 1.0}}}};
  EXPECT_EQ(layers[2].InputLayout(1, layers[2].options[0]), kB);
  EXPECT_EQ(ChooseOptions(layers, std::vector{0}, std::vector{3}, Flat(1.0)), (std::vector{0, 0, 1}));
}

TEST(LayoutChoiceTest, AnImpossibleConversionIsAvoided) {
  const auto cost = [](int, Layout from, Layout to) {
    return from == kB || to == kB ? std::numeric_limits<double>::infinity() : 1.0;
  };
  const std::vector<LayerOptions> layers = {Chain(0, 1, {{kB, kB, 0.1}, {kP, kP, 50.0}})};
  EXPECT_EQ(ChooseOptions(layers, std::vector{0}, std::vector{1}, cost), (std::vector{1}));
}

// The least cost over all combinations, by trying them.
double CostOf(const std::vector<LayerOptions>& layers, const std::vector<int>& chosen, int output,
              const ConversionCost& conversion) {
  std::vector<Layout> layouts(layers.size() + 1, kN);
  double cost = 0.0;
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerOption& option = layers[i].options[chosen[i]];
    cost += option.cost;
    for (size_t k = 0; k < layers[i].inputs.size(); ++k) {
      const Layout to = layers[i].InputLayout(k, option);
      const Layout from = layouts[layers[i].inputs[k]];
      if (from != to) cost += conversion(layers[i].inputs[k], from, to);
    }
    layouts[layers[i].output] = option.output;
  }
  if (layouts[output] != kN) cost += conversion(output, layouts[output], kN);
  return cost;
}

TEST(LayoutChoiceTest, EqualsExhaustiveSearchOnRandomNetworks) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> cost(0.0, 4.0);
  for (int round = 0; round < 40; ++round) {
    std::vector<LayerOptions> layers;
    for (int i = 0; i < 6; ++i) {
      LayerOptions layer = Chain(i, i + 1, {});
      if (i > 1 && random() % 2 == 0) layer.inputs.push_back(static_cast<int>(random() % i)), layer.residual = true;
      for (int o = 0; o < 3; ++o) {
        layer.options.push_back({Layout(random() % 3), Layout(random() % 3), cost(random)});
      }
      layers.push_back(layer);
    }
    const auto conversion = [](int value, Layout from, Layout to) {
      return 0.3 + 0.1 * value + 0.2 * (static_cast<int>(from) + 2 * static_cast<int>(to));
    };
    double least = std::numeric_limits<double>::max();
    std::vector<int> combination(6, 0);
    for (int code = 0; code < 729; ++code) {
      for (int i = 0, rest = code; i < 6; ++i, rest /= 3) combination[i] = rest % 3;
      least = std::min(least, CostOf(layers, combination, 6, conversion));
    }
    const std::vector<int> chosen = ChooseOptions(layers, std::vector{0}, std::vector{6}, conversion);
    EXPECT_NEAR(CostOf(layers, chosen, 6, conversion), least, 1e-9);
  }
}

}  // namespace
}  // namespace swizzle
