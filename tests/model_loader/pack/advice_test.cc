#include "model_loader/pack/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model_loader/pack/advice_report.h"
#include "nlohmann/json.hpp"

namespace swizzle::pack {
namespace {

using ::testing::ContainsRegex;
using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

LayerReport::KernelTimes Timed(const std::string& kernel, Format weights, std::vector<double> microseconds) {
  return {.kernel = kernel, .microseconds = std::move(microseconds), .measured = true, .weights = weights};
}

// A layer that runs on whichever of its kernels is faster at batch 1.
LayerReport MadeLayer(const std::string& name, double sparsity, double dense, double sparse) {
  LayerReport layer;
  layer.name = name;
  layer.op = "Conv";
  layer.weight_rows = layer.weight_cols = 10;
  layer.nonzeros = static_cast<int64_t>(100 * (1.0 - sparsity) + 0.5);
  layer.candidates = {Timed("dense_kernel", Format::kDense, {dense, 2 * dense}),
                      Timed("csr_kernel", Format::kCsr, {sparse, 2 * sparse})};
  layer.kernels = {sparse < dense ? "csr_kernel" : "dense_kernel"};
  return layer;
}

LayerReport Unweighted(double microseconds) {
  LayerReport layer;
  layer.name = "softmax";
  layer.op = "Softmax";
  layer.candidates = {Timed("softmax_kernel", Format::kNone, {microseconds, 2 * microseconds})};
  layer.kernels = {"softmax_kernel"};
  return layer;
}

SparsitySample Made(double sparsity, std::vector<LayerReport> layers, int64_t places = 1) {
  PlanReport plan;
  plan.measured_batches = {1, 8};
  plan.layers = std::move(layers);
  SparsitySample sample;
  sample.sparsity = sparsity;
  sample.parts = {{plan, places}};
  return sample;
}

// One layer that gains, one that does not, and one whose gain is nothing beside the first one's.
std::vector<SparsitySample> ThreeLayers() {
  std::vector<SparsitySample> samples;
  for (const double sparsity : {0.5, 0.8, 0.9}) {
    samples.push_back(
        Made(sparsity, {MadeLayer("big", sparsity, 100, 200 * (1 - sparsity)), MadeLayer("stem", sparsity, 40, 39),
                        MadeLayer("tiny", sparsity, 2, 1), Unweighted(10)}));
    samples.back().removed_squares = {{"big", sparsity / 2}, {"stem", sparsity / 4}};
  }
  return samples;
}

TEST(Advise, SaysWhatZerosBringAndWhatToLeave) {
  Advice advice;
  ASSERT_TRUE(Advise(ThreeLayers(), 0.8, advice).ok());
  ASSERT_EQ(advice.layers.size(), 3u);
  EXPECT_THAT(advice.sparsities, ElementsAre(0.5, 0.8, 0.9));
  const LayerAdvice& big = advice.layers[0];
  EXPECT_EQ(big.verdict, Verdict::kPrune);
  EXPECT_THAT(big.dense, ElementsAre(100, 200));
  EXPECT_THAT(big.times[2], ElementsAre(DoubleNear(20, 1e-9), DoubleNear(40, 1e-9)));
  EXPECT_THAT(big.kernels, ElementsAre("dense_kernel", "csr_kernel", "csr_kernel"));
  EXPECT_EQ(big.pays_from, 0.8) << "at 50 % its dense kernel is as fast";
  EXPECT_DOUBLE_EQ(big.share, 100.0 / 152);
  EXPECT_THAT(big.removed_squares, ElementsAre(0.25, 0.4, 0.45));
  EXPECT_EQ(advice.layers[1].verdict, Verdict::kNoFaster);
  EXPECT_EQ(advice.layers[1].pays_from, 1.0);
  EXPECT_EQ(advice.layers[2].verdict, Verdict::kHardlyCounts);
  EXPECT_TRUE(advice.layers[2].removed_squares.empty());
  EXPECT_THAT(advice.rest, ElementsAre(10, 20));
  EXPECT_THAT(advice.dense, ElementsAre(152, 304));
  EXPECT_THAT(advice.totals[1], ElementsAre(DoubleNear(90, 1e-9), DoubleNear(180, 1e-9)));
  EXPECT_THAT(advice.advised, ElementsAre(DoubleNear(92, 1e-9), DoubleNear(184, 1e-9))) << "the others dense";
}

TEST(Advise, CountsARegionAtEachOfItsPlaces) {
  std::vector<SparsitySample> samples;
  for (const double sparsity : {0.5, 0.9}) {
    samples.push_back(Made(sparsity, {MadeLayer("block", sparsity, 10, 4), Unweighted(1)}, 3));
  }
  Advice advice;
  ASSERT_TRUE(Advise(samples, 0.9, advice).ok());
  EXPECT_EQ(advice.layers[0].places, 3);
  EXPECT_THAT(advice.layers[0].dense, ElementsAre(10, 20));
  EXPECT_THAT(advice.dense, ElementsAre(33, 66));
  EXPECT_THAT(advice.advised, ElementsAre(15, 30));
}

TEST(Advise, SaysWhereRegionsRunAtOtherBatches) {
  std::vector<SparsitySample> samples;
  for (const double sparsity : {0.5, 0.9}) {
    samples.push_back(Made(sparsity, {MadeLayer("block", sparsity, 10, 4)}));
    PlannedPart larger = samples.back().parts[0], fewer = larger;
    larger.plan.measured_batches.back() += 1;
    fewer.plan.measured_batches.pop_back();
    fewer.places = 2;
    samples.back().parts.insert(samples.back().parts.end(), {larger, fewer});
  }
  Advice advice;
  ASSERT_TRUE(Advise(samples, 0.9, advice).ok());
  EXPECT_EQ(advice.layers.size(), 2u);
  EXPECT_THAT(advice.dense, ElementsAre(20, 40));
  EXPECT_TRUE(advice.mixes_batches);
  EXPECT_EQ(advice.left_out, 2);
  samples.clear();
  for (const double sparsity : {0.5, 0.9}) samples.push_back(Made(sparsity, {MadeLayer("block", sparsity, 10, 4)}));
  Advice of_one;
  ASSERT_TRUE(Advise(samples, 0.9, of_one).ok());
  EXPECT_FALSE(of_one.mixes_batches);
}

TEST(Advise, TakesTheMedianOfWhatDenseKernelsTook) {
  std::vector<SparsitySample> samples;
  for (const auto& [sparsity, dense] : std::vector<std::pair<double, double>>{{0.5, 10}, {0.8, 90}, {0.9, 11}}) {
    samples.push_back(Made(sparsity, {MadeLayer("a", sparsity, dense, 5)}));
  }
  Advice advice;
  ASSERT_TRUE(Advise(samples, 0.9, advice).ok());
  EXPECT_THAT(advice.layers[0].dense, ElementsAre(DoubleEq(11), DoubleEq(22)));
}

TEST(Advise, LeavesSparsitiesOutWhereLayersArePlannedOtherwise) {
  std::vector<SparsitySample> samples = ThreeLayers();
  samples[0].parts[0].plan.layers.pop_back();
  Advice advice;
  ASSERT_TRUE(Advise(samples, 0.8, advice).ok());
  EXPECT_THAT(advice.sparsities, ElementsAre(0.8, 0.9));
  EXPECT_THAT(advice.apart, ElementsAre(0.5));
  EXPECT_THAT(AdviceText(advice), HasSubstr("at 50 % layers are planned otherwise"));
  EXPECT_EQ(nlohmann::json::parse(AdviceJson(advice))["sparsities_apart"], nlohmann::json({0.5}));
  Advice of_half;
  ASSERT_TRUE(Advise(samples, 0.5, of_half).ok());
  EXPECT_THAT(of_half.apart, ElementsAre(0.8, 0.9));
}

TEST(Advise, RefusesWhatHasNothingToPrune) {
  Advice none;
  EXPECT_THAT(std::string(Advise({Made(0.5, {Unweighted(1)})}, 0.5, none).message()),
              HasSubstr("no layer of a plan has a weight that can be pruned"));
}

TEST(Advise, PrintsTheSameAsTextAndAsJson) {
  Advice advice;
  advice.model = "m.onnx";
  advice.method = "magnitude";
  ASSERT_TRUE(Advise(ThreeLayers(), 0.8, advice).ok());
  const std::string text = AdviceText(advice);
  EXPECT_THAT(text, ContainsRegex("big +10x10   65.8 %   100 us   100 us  40.0 us  20.0 us  from 80 %  prune\n"));
  EXPECT_THAT(text, HasSubstr("leave: no faster"));
  EXPECT_THAT(text, HasSubstr("leave: hardly counts"));
  EXPECT_THAT(text, HasSubstr("big    25.0 %  40.0 %  45.0 %"));
  EXPECT_THAT(text, HasSubstr("80 % zeros in 1 of 3 layers: 92.0 us at batch 1 (1.7x as fast as dense)"));
  const auto json = nlohmann::json::parse(AdviceJson(advice));
  EXPECT_EQ(json["layers"][0]["advised_sparsity"], 0.8);
  EXPECT_EQ(json["layers"][0]["pays_from"], 0.8);
  EXPECT_EQ(json["layers"][0]["at"][2]["kernel"], "csr_kernel");
  EXPECT_EQ(json["layers"][0]["at"][2]["removed_squares"], 0.45);
  EXPECT_EQ(json["layers"][1]["advised_sparsity"], 0.0);
  EXPECT_TRUE(json["layers"][1]["pays_from"].is_null());
  EXPECT_TRUE(json["layers"][2]["at"][0]["removed_squares"].is_null());
  EXPECT_EQ(json["advised_microseconds"].size(), 2u);
}

}  // namespace
}  // namespace swizzle::pack
