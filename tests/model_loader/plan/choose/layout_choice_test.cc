#include "model_loader/plan/choose/layout_choice.h"

#include <gtest/gtest.h>

#include <iterator>
#include <limits>
#include <random>
#include <vector>

namespace swizzle {
namespace {

constexpr Storage kN = {Layout::kNchw, DType::kFloat32};
constexpr Storage kP = {Layout::kPanels, DType::kFloat32};
constexpr Storage kB = {Layout::kBlocked16, DType::kFloat32};
constexpr Storage kRounded = {Layout::kPanels, DType::kBFloat16};
constexpr Storage kQuantised = {Layout::kPanels, DType::kUint8};

ConversionCost Flat(double cost) {
  return [cost](int, Storage, Storage) { return cost; };
}

LayerOptions Chain(int input, int output, std::vector<LayerOption> options) {
  return LayerOptions{{input}, false, output, std::move(options)};
}

// The network's input is value 0; both ends are in kN.
std::vector<int> Choose(const std::vector<LayerOptions>& layers, int output, const ConversionCost& cost) {
  return ChooseOptions(layers, std::vector<StoredValue>{{0, kN}}, std::vector<StoredValue>{{output, kN}}, cost);
}

TEST(LayoutChoiceTest, TakesTheFasterOfTwoInOneLayout) {
  const std::vector<LayerOptions> layers = {Chain(0, 1, {{kN, kN, 5.0}, {kN, kN, 3.0}})};
  EXPECT_EQ(Choose(layers, 1, Flat(1.0)), (std::vector{1}));
}

TEST(LayoutChoiceTest, AConversionCountsAgainstAFastKernel) {
  // The panel kernel saves 3, but needs a conversion on either side.
  const std::vector<LayerOptions> layers = {Chain(0, 1, {{kN, kN, 5.0}, {kP, kP, 2.0}})};
  EXPECT_EQ(Choose(layers, 1, Flat(1.0)), (std::vector{1}));
  EXPECT_EQ(Choose(layers, 1, Flat(2.0)), (std::vector{0}));
}

TEST(LayoutChoiceTest, ARunOfLayersPaysForOneConversion) {
  // Each alone would stay; together they move, which no step-by-step choice finds.
  std::vector<LayerOptions> layers;
  for (int i = 0; i < 4; ++i) layers.push_back(Chain(i, i + 1, {{kN, kN, 5.0}, {kP, kP, 4.0}}));
  EXPECT_EQ(Choose(layers, 4, Flat(1.5)), (std::vector{1, 1, 1, 1}));
}

TEST(LayoutChoiceTest, AResidualIsReadInTheOutputsLayout) {
  // Layer 0 feeds layers 1 and 2; layer 2 adds layer 0's value as a residual.
  std::vector<LayerOptions> layers = {Chain(0, 1, {{kN, kP, 1.0}, {kN, kB, 1.0}}), Chain(1, 2, {{kP, kP, 1.0}}),
                                      LayerOptions{{2, 1}, true, 3, {{kP, kB, 1.0}, {kP, kP, 1.0}}}};
  EXPECT_EQ(layers[2].InputStorage(1, layers[2].options[0]), kB);
  EXPECT_EQ(Choose(layers, 3, Flat(1.0)), (std::vector{0, 0, 1}));
}

TEST(LayoutChoiceTest, ATypeIsLeftWhereTheRestOfTheLayoutsRunGainsNothing) {
  // The first two layers are faster in whole numbers, the third isn't, and the fourth has none.
  const std::vector<LayerOptions> layers = {
      Chain(0, 1, {{kN, kP, 5.0}, {kN, kQuantised, 4.5}}), Chain(1, 2, {{kP, kP, 5.0}, {kQuantised, kQuantised, 1.0}}),
      Chain(2, 3, {{kP, kP, 2.0}, {kQuantised, kQuantised, 3.0}}), Chain(3, 4, {{kP, kP, 2.0}, {kRounded, kP, 1.5}})};
  EXPECT_EQ(Choose(layers, 4, Flat(0.6)), (std::vector{1, 1, 0, 0}));
  EXPECT_EQ(Choose(layers, 4, Flat(6.0)), (std::vector{0, 0, 0, 0}));
}

TEST(LayoutChoiceTest, ValuesArriveAndLeaveAsTheyAreSaidTo) {
  const std::vector<LayerOptions> layers = {Chain(0, 1, {{kIdStorage, kN, 2.0}, {kN, kRounded, 1.5}})};
  const auto choose = [&](Storage arrives, Storage leaves) {
    return ChooseOptions(layers, std::vector<StoredValue>{{0, arrives}}, std::vector<StoredValue>{{1, leaves}},
                         Flat(1.0))[0];
  };
  EXPECT_EQ(choose(kIdStorage, kN), 0);
  EXPECT_EQ(choose(kN, kRounded), 1);
}

TEST(LayoutChoiceTest, OfManyOutputsEachCountsItsConversion) {
  // Panels are faster by less than what it costs to give each value out. All alive at once would be 2^30 states.
  constexpr int kLayers = 30;
  std::vector<LayerOptions> layers;
  std::vector<StoredValue> outputs;
  for (int i = 0; i < kLayers; ++i) {
    layers.push_back(Chain(i, i + 1, {{kN, kN, 3.0}, {kP, kP, 2.5}}));
    outputs.push_back({i + 1, kN});
  }
  EXPECT_EQ(ChooseOptions(layers, std::vector<StoredValue>{{0, kN}}, outputs, Flat(1.0)), std::vector<int>(kLayers, 0));
  EXPECT_EQ(ChooseOptions(layers, std::vector<StoredValue>{{0, kN}}, outputs, Flat(0.4)), std::vector<int>(kLayers, 1));
}

TEST(LayoutChoiceTest, AnImpossibleConversionIsAvoided) {
  const auto cost = [](int, Storage from, Storage to) {
    return from == kB || to == kB ? std::numeric_limits<double>::infinity() : 1.0;
  };
  const std::vector<LayerOptions> layers = {Chain(0, 1, {{kB, kB, 0.1}, {kP, kP, 50.0}})};
  EXPECT_EQ(Choose(layers, 1, cost), (std::vector{1}));
}

// The least cost over all combinations, by trying them.
double CostOf(const std::vector<LayerOptions>& layers, const std::vector<int>& chosen, int output,
              const ConversionCost& conversion) {
  std::vector<Storage> stored(layers.size() + 1, kN);
  double cost = 0.0;
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerOption& option = layers[i].options[chosen[i]];
    cost += option.cost;
    for (size_t k = 0; k < layers[i].inputs.size(); ++k) {
      const Storage to = layers[i].InputStorage(k, option);
      const Storage from = stored[layers[i].inputs[k]];
      if (from != to) cost += conversion(layers[i].inputs[k], from, to);
    }
    stored[layers[i].output] = option.output;
  }
  if (stored[output] != kN) cost += conversion(output, stored[output], kN);
  return cost;
}

TEST(LayoutChoiceTest, EqualsExhaustiveSearchOnRandomNetworks) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> cost(0.0, 4.0);
  constexpr Storage kAll[] = {kN, kP, kB, kRounded, kQuantised};
  for (int round = 0; round < 40; ++round) {
    std::vector<LayerOptions> layers;
    for (int i = 0; i < 6; ++i) {
      LayerOptions layer = Chain(i, i + 1, {});
      if (i > 1 && random() % 2 == 0) layer.inputs.push_back(static_cast<int>(random() % i)), layer.residual = true;
      for (int o = 0; o < 3; ++o) {
        layer.options.push_back({kAll[random() % std::size(kAll)], kAll[random() % std::size(kAll)], cost(random)});
      }
      layers.push_back(layer);
    }
    const auto conversion = [](int value, Storage from, Storage to) {
      const auto number = [](Storage storage) {
        return static_cast<int>(storage.layout) + static_cast<int>(storage.dtype);
      };
      return 0.3 + 0.1 * value + 0.2 * (number(from) % 4 + 2 * (number(to) % 4));
    };
    double least = std::numeric_limits<double>::max();
    std::vector<int> combination(6, 0);
    for (int code = 0; code < 729; ++code) {
      for (int i = 0, rest = code; i < 6; ++i, rest /= 3) combination[i] = rest % 3;
      least = std::min(least, CostOf(layers, combination, 6, conversion));
    }
    const std::vector<int> chosen = Choose(layers, 6, conversion);
    EXPECT_NEAR(CostOf(layers, chosen, 6, conversion), least, 1e-9);
  }
}

}  // namespace
}  // namespace swizzle
