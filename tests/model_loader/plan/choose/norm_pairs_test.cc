#include "model_loader/plan/choose/norm_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "model_loader/plan/choose/kernel_choice.h"
#include "tests/support/network_builder.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::NetworkBuilder;

constexpr int64_t kChannels = 64;

Network WithPorts(NetworkBuilder& b, int input, const std::vector<int>& outputs) {
  const NetworkPort in = b.Port(input, "in");
  std::vector<NetworkPort> out;
  for (const int value : outputs) out.push_back(b.Port(value, "out" + std::to_string(value)));
  Network network = b.Finish();
  network.inputs = {in};
  network.outputs = out;
  return network;
}

TEST(NormPairsTest, ALinearLayerWithAResidualAndItsNormAreAPair) {
  NetworkBuilder b(1, 0);
  const int x = b.Value("x", kChannels);
  const int y = b.LayerNorm(b.Linear(x, kChannels, 0.5, x));
  const Network network = WithPorts(b, x, {b.LayerNorm(b.Linear(y, kChannels, 0.5, y))});
  EXPECT_THAT(FindNormPairs(network), ElementsAre(NormPair{0, 1}, NormPair{2, 3}));
}

TEST(NormPairsTest, NoPairIsWhatOthersRead) {
  NetworkBuilder b(1, 0);
  const int x = b.Value("x", kChannels);
  const int sum = b.Linear(x, kChannels, 0.5, x), norm = b.LayerNorm(sum);
  const int other = b.Linear(norm, kChannels, 0.5, norm), last = b.LayerNorm(other);
  const Network network = WithPorts(b, x, {b.Linear(last, kChannels, 0.5, sum), other});
  EXPECT_THAT(FindNormPairs(network), IsEmpty());
}

TEST(NormPairsTest, NoPairIsWithoutAResidualOrDenseOrClamped) {
  NetworkBuilder b(1, 0);
  const int x = b.Value("x", kChannels);
  const int plain = b.LayerNorm(b.Linear(x, kChannels, 0.5));
  const int dense = b.LayerNorm(b.Linear(plain, kChannels, 0.0, x));
  const int clamped = b.LayerNorm(b.Linear(dense, kChannels, 0.5, x));
  Network network = WithPorts(b, x, {clamped});
  network.layers[4].epilogue.low = 0;
  EXPECT_THAT(FindNormPairs(network), IsEmpty());
}

TEST(NormPairsTest, APairsWeightHasTheNormsScalesAndBiasesBehindTheBias) {
  NetworkBuilder b(1, 0);
  const int x = b.Value("x", kChannels);
  Network network = WithPorts(b, x, {b.LayerNorm(b.Linear(x, kChannels, 0.5, x))});
  Weight &product = network.weights[network.layers[0].weight], &norm = network.weights[network.layers[1].weight];
  product.bias.clear();
  norm.bias.assign(kChannels, 0.25f);
  const Weight both = WeightOfPair(network, {0, 1});
  EXPECT_EQ(both.ToDense().values, product.ToDense().values);
  ASSERT_EQ(both.bias.size(), 3u * kChannels);
  EXPECT_EQ(both.bias[5], 0);
  EXPECT_EQ(both.bias[kChannels + 5], norm.ToDense().values[5]);
  EXPECT_EQ(both.bias[2 * kChannels + 5], 0.25f);

  const Layer layer = LayerOfPair(network, {0, 1});
  EXPECT_EQ(layer.op, Op::kLayerNorm);
  EXPECT_TRUE(layer.epilogue.residual);
  EXPECT_EQ(layer.inputs, network.layers[0].inputs);
  EXPECT_EQ(layer.output, network.layers[1].output);
}

// Candidates of a linear layer, its norm and both, in the order of the layers; times are of one batch size or more.
class ChoiceOfPairsTest : public ::testing::Test {
 protected:
  static constexpr Storage kRowsOfHalves = {Layout::kRows, DType::kFloat16};

  ChoiceOfPairsTest() {
    NetworkBuilder b(1, 0);
    const int x = b.Value("x", kChannels);
    network_ = WithPorts(b, x, {b.LayerNorm(b.Linear(x, kChannels, 0.5, x))});
    for (Kernel* kernel : {&product_, &norm_, &both_}) kernel->key.input = kernel->key.output = kRowsOfHalves;
    both_.prepare = [](const Weight&, const Problem&) -> StatusOr<std::unique_ptr<PackedWeight>> { return nullptr; };
    norm_.prepare = [](const Weight&, const Problem&) -> StatusOr<std::unique_ptr<PackedWeight>> { return nullptr; };
  }

  Candidate Of(const Kernel& kernel, std::vector<double> times) const {
    return {.kernel = &kernel,
            .input = kRowsOfHalves,
            .output = kRowsOfHalves,
            .microseconds = std::move(times),
            .measured = true};
  }

  // Both layers apart and as a pair.
  LayerCandidates Candidates(std::vector<double> product, std::vector<double> norm, std::vector<double> both) const {
    LayerCandidates layers = {{Of(product_, std::move(product))}, {Of(norm_, std::move(norm))}};
    OfferPair({0, 1}, Of(both_, std::move(both)), layers);
    return layers;
  }

  std::vector<int> Choose(const LayerCandidates& candidates) const {
    const auto chosen = ChooseKernels(network_, candidates, conversions_);
    EXPECT_TRUE(chosen.ok()) << chosen.status();
    return chosen.ok() ? *chosen : std::vector<int>();
  }

  Network network_;
  Kernel product_, norm_, both_;
  // None, but at the edges, of what is within a pair.
  const ConversionTimes conversions_ = [](const NetworkValue&, Storage from, Storage to) {
    const bool within = from == kWithinPair || to == kWithinPair;
    return StatusOr<std::vector<double>>(within ? std::vector<double>() : std::vector<double>(2, 1.0));
  };
};

TEST_F(ChoiceOfPairsTest, APairIsTakenWhereItIsFasterThanBoth) {
  EXPECT_THAT(Choose(Candidates({5, 5}, {4, 4}, {8, 8})), ElementsAre(1, 1));
  EXPECT_THAT(Choose(Candidates({5, 5}, {4, 4}, {10, 10})), ElementsAre(0, 0));
}

TEST_F(ChoiceOfPairsTest, EachSizeTakesWhatIsFaster) {
  const LayerCandidates candidates = Candidates({5, 10}, {4, 10}, {10, 11});
  const std::vector<int> common = {1, 1};
  const auto choices =
      ChooseKernelsBySize(network_, candidates, conversions_, common, [](size_t, const Candidate&) { return true; });
  ASSERT_TRUE(choices.ok()) << choices.status();
  EXPECT_THAT(*choices, ElementsAre(ElementsAre(0, 0), ElementsAre(1, 1)));
}

// With the pair held, the norm of its own is wanted where both apart are faster; and the other way round.
TEST_F(ChoiceOfPairsTest, FormsAreWantedForWhatTheyGainTogether) {
  LayerCandidates candidates = Candidates({5, 10}, {4, 10}, {10, 11});
  const auto beside_pair = FindWantedForms(network_, candidates, conversions_, {1, 1}, 0);
  ASSERT_TRUE(beside_pair.ok()) << beside_pair.status();
  ASSERT_EQ(beside_pair->size(), 1u);
  EXPECT_EQ((*beside_pair)[0].layer, 1u);
  EXPECT_EQ((*beside_pair)[0].candidate, 0);
  const auto beside_both = FindWantedForms(network_, candidates, conversions_, {0, 0}, 0);
  ASSERT_TRUE(beside_both.ok()) << beside_both.status();
  ASSERT_EQ(beside_both->size(), 1u);
  EXPECT_EQ((*beside_both)[0].layer, 0u);
  EXPECT_EQ((*beside_both)[0].candidate, 1);
  EXPECT_GT((*beside_both)[0].gain, 0.2);
}

}  // namespace
}  // namespace swizzle
