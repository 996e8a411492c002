#include "model_loader/plan/choose/kernel_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace swizzle {
namespace {

using ::testing::ElementsAre;

Kernel WithWeights(Format format) {
  Kernel kernel = {};
  kernel.key.weights = format;
  return kernel;
}
const Kernel kDense = WithWeights(Format::kDense);
const Kernel kSparse = WithWeights(Format::kCsr);

Candidate In(Layout layout, const Kernel& kernel, std::vector<double> microseconds) {
  const Storage storage = {layout, DType::kFloat32};
  return {.kernel = &kernel,
          .input = storage,
          .output = storage,
          .microseconds = std::move(microseconds),
          .measured = true};
}
Candidate Dense(std::vector<double> microseconds) { return In(Layout::kNchw, kDense, std::move(microseconds)); }
Candidate Sparse(std::vector<double> microseconds) { return In(Layout::kNchw, kSparse, std::move(microseconds)); }

// A chain of layers.
Network ChainOf(size_t layers) {
  Network network;
  network.values.resize(layers + 1);
  for (size_t i = 0; i < layers; ++i) {
    Layer layer;
    layer.inputs = {static_cast<int>(i)};
    layer.output = static_cast<int>(i) + 1;
    network.layers.push_back(layer);
  }
  network.inputs.push_back({.name = "x", .dims = {}, .value = 0});
  network.outputs.push_back({.name = "y", .dims = {}, .value = static_cast<int>(layers)});
  return network;
}

ConversionTimes Each(std::vector<double> times) {
  return [times](const NetworkValue&, Storage, Storage) -> StatusOr<std::vector<double>> { return times; };
}

std::vector<int> Choose(const std::vector<std::vector<Candidate>>& candidates, const ConversionTimes& conversions) {
  const auto chosen = ChooseKernels(ChainOf(candidates.size()), candidates, conversions);
  EXPECT_TRUE(chosen.ok()) << chosen.status();
  return chosen.ok() ? *chosen : std::vector<int>();
}

TEST(KernelChoiceTest, BatchSizesWeighTheSame) {
  // Twice the time at the first size against three quarters at the second, though that is more microseconds.
  EXPECT_THAT(Choose({{Dense({10, 80}), Dense({20, 60})}}, Each({0, 0})), ElementsAre(0));
  EXPECT_THAT(Choose({{Dense({10, 80}), Dense({11, 60})}}, Each({0, 0})), ElementsAre(1));
}

TEST(KernelChoiceTest, NoBatchSizeIsSlowerThanDenseKernelsAlone) {
  EXPECT_THAT(Choose({{Dense({10, 80}), Sparse({5, 88})}}, Each({0, 0})), ElementsAre(0));
  EXPECT_THAT(Choose({{Dense({10, 80}), Sparse({12, 40})}}, Each({0, 0})), ElementsAre(0));
  EXPECT_THAT(Choose({{Dense({10, 80}), Sparse({5, 81})}}, Each({0, 0})), ElementsAre(1)) << "less than times vary";
}

TEST(KernelChoiceTest, LayersThatWinMakeUpForThoseThatLose) {
  // One layer's gain pays for the other's loss.
  EXPECT_THAT(Choose({{Dense({10, 80}), Sparse({5, 88})}, {Dense({10, 80}), Sparse({9, 70})}}, Each({0, 0})),
              ElementsAre(1, 1));
  // But not for that of two: the one that gains more for what it loses stays.
  EXPECT_THAT(
      Choose(
          {{Dense({10, 80}), Sparse({5, 88})}, {Dense({10, 80}), Sparse({9, 71})}, {Dense({10, 80}), Sparse({6, 92})}},
          Each({0, 0})),
      ElementsAre(1, 1, 0));
}

TEST(KernelChoiceTest, ConversionsCountAsLayersDo) {
  // Sparse saves 6 in its layout at the second size, and converting there and back takes 8.
  const std::vector<std::vector<Candidate>> candidates = {{Dense({10, 80}), In(Layout::kRows, kSparse, {2, 74})}};
  EXPECT_THAT(Choose(candidates, Each({1, 4})), ElementsAre(0));
  EXPECT_THAT(Choose(candidates, Each({1, 3})), ElementsAre(1));
}

TEST(KernelChoiceTest, ALayerWithoutDenseKernelsTakesWhatThereIs) {
  EXPECT_THAT(Choose({{Sparse({5, 88}), Sparse({4, 80})}, {Dense({10, 80}), Sparse({5, 88})}}, Each({0, 0})),
              ElementsAre(1, 1));
}

TEST(KernelChoiceTest, NoConversionIsAskedForWhichOnlyCandidatesThatRoundLessNeed) {
  std::vector<Candidate> layer = {Dense({10}), In(Layout::kRows, kDense, {1}), In(Layout::kNhwc, kDense, {5})};
  layer[1].rounds_less = true;
  bool asks_for_rows = false;
  const ConversionTimes asked = [&](const NetworkValue&, Storage from, Storage to) -> StatusOr<std::vector<double>> {
    asks_for_rows |= from.layout == Layout::kRows || to.layout == Layout::kRows;
    return std::vector<double>{1};
  };
  EXPECT_THAT(Choose({layer, layer}, asked), ElementsAre(2, 2));
  EXPECT_FALSE(asks_for_rows);
}

TEST(KernelChoiceTest, CandidatesThatRoundLessAreTakenWhereTheOthersAreNotEnough) {
  std::vector<Candidate> layer = {In(Layout::kRows, kDense, {1}), Dense({10})};
  layer[1].rounds_less = true;
  EXPECT_THAT(Choose({layer}, Each({})), ElementsAre(1)) << "nothing converts";
  EXPECT_THAT(Choose({layer}, Each({1})), ElementsAre(0));
}

TEST(KernelChoiceTest, ErrorsOfConversionsAreReturned) {
  const ConversionTimes fails = [](const NetworkValue&, Storage, Storage) -> StatusOr<std::vector<double>> {
    return absl::InternalError("no");
  };
  const auto chosen = ChooseKernels(ChainOf(1), {{Dense({1}), In(Layout::kRows, kSparse, {1})}}, fails);
  EXPECT_EQ(chosen.status().code(), absl::StatusCode::kInternal);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareOneWay(const Weight&, const Problem&) { return nullptr; }
StatusOr<std::unique_ptr<PackedWeight>> PrepareAnother(const Weight&, const Problem&) { return nullptr; }

Kernel Preparing(Format format, StatusOr<std::unique_ptr<PackedWeight>> (*prepare)(const Weight&, const Problem&)) {
  Kernel kernel = WithWeights(format);
  kernel.prepare = prepare;
  return kernel;
}
const Kernel kOneWay = Preparing(Format::kDense, PrepareOneWay);
const Kernel kAlsoOneWay = Preparing(Format::kDense, PrepareOneWay);
const Kernel kAnother = Preparing(Format::kCsr, PrepareAnother);

// One layer whose second kernel is best for small batches, and the third, which reads another form, for large ones.
std::vector<std::vector<Candidate>> ThreeKernels() {
  return {{In(Layout::kNchw, kOneWay, {10, 80}), In(Layout::kNchw, kAlsoOneWay, {5, 100}),
           In(Layout::kNchw, kAnother, {11, 40})}};
}

TEST(KernelsBySizeTest, TakeWhatIsFastestAtEachSizeOfWhatIsAvailable) {
  const auto candidates = ThreeKernels();
  const auto of_one_form = [&](size_t, const Candidate& candidate) {
    return ReadSameForm(candidate, candidates[0][0]);
  };
  const auto one_form = ChooseKernelsBySize(ChainOf(1), candidates, Each({0, 0}), {0}, of_one_form);
  ASSERT_TRUE(one_form.ok());
  EXPECT_THAT(*one_form, ElementsAre(ElementsAre(1), ElementsAre(0)));
  const auto both_forms =
      ChooseKernelsBySize(ChainOf(1), candidates, Each({0, 0}), {0}, [](size_t, const Candidate&) { return true; });
  ASSERT_TRUE(both_forms.ok());
  EXPECT_THAT(*both_forms, ElementsAre(ElementsAre(1), ElementsAre(2)));
}

TEST(KernelsBySizeTest, AreOneChoiceWhereSizesGainNothing) {
  const std::vector<std::vector<Candidate>> candidates = {
      {In(Layout::kNchw, kOneWay, {10, 80}), In(Layout::kNchw, kAlsoOneWay, {9.9, 81})}};
  const auto chosen =
      ChooseKernelsBySize(ChainOf(1), candidates, Each({0, 0}), {0}, [](size_t, const Candidate&) { return true; });
  ASSERT_TRUE(chosen.ok());
  EXPECT_THAT(*chosen, ElementsAre(ElementsAre(0)));
}

TEST(WantedFormsTest, AreThoseThatAreNotHeldAndMakeSomeSizeFaster) {
  Network network = ChainOf(1);
  network.layers[0].weight = 0;
  network.weights.push_back({DenseMatrix{.rows = 1, .cols = 1, .values = {1}}, {}});
  const auto wanted = FindWantedForms(network, ThreeKernels(), Each({0, 0}), {0}, 0.0);
  ASSERT_TRUE(wanted.ok());
  ASSERT_EQ(wanted->size(), 1u);
  EXPECT_EQ((*wanted)[0].candidate, 2);
  EXPECT_DOUBLE_EQ((*wanted)[0].gain, 0.5);
}

TEST(WantedFormsTest, AreWorthTheirBytes) {
  Network network = ChainOf(2);  // the second layer has a hundredth of the first one's weights, and as much to gain
  for (const int64_t rows : {100, 1}) {
    network.layers[network.weights.size()].weight = static_cast<int>(network.weights.size());
    network.weights.push_back(
        {DenseMatrix{.rows = rows, .cols = 1, .values = std::vector<float>(static_cast<size_t>(rows), 1.0f)}, {}});
  }
  const std::vector<Candidate> layer = {In(Layout::kNchw, kOneWay, {10, 80}), In(Layout::kNchw, kAnother, {11, 40})};
  const auto wanted_for = [&](double least_worth) {
    std::vector<size_t> layers;
    const auto wanted = FindWantedForms(network, {layer, layer}, Each({0, 0}), {0, 0}, least_worth);
    EXPECT_TRUE(wanted.ok());
    for (const WantedForm& form : *wanted) layers.push_back(form.layer);
    return layers;
  };
  // 40 of 160 us at one of two sizes, for 100 and 1 of 101 bytes each.
  EXPECT_THAT(wanted_for(0.0), ElementsAre(1, 0));
  EXPECT_THAT(wanted_for(0.12), ElementsAre(1, 0));
  EXPECT_THAT(wanted_for(0.13), ElementsAre(1));
  EXPECT_THAT(wanted_for(13.0), ElementsAre());
}

// There is rarely time to measure every layer. Those that were not had one form of their weight for all sizes, where
// layers like them had two.
TEST(WantedFormsTest, AreOfLayersLikeMeasuredOnesToo) {
  Network network = ChainOf(1);
  network.layers[0].weight = 0;
  network.weights.push_back({DenseMatrix{.rows = 1, .cols = 1, .values = {1}}, {}});
  auto candidates = ThreeKernels();
  for (Candidate& candidate : candidates[0]) candidate.measured = false;
  const auto by_estimate = FindWantedForms(network, candidates, Each({0, 0}), {0}, 0.0);
  ASSERT_TRUE(by_estimate.ok());
  EXPECT_TRUE(by_estimate->empty());
  for (Candidate& candidate : candidates[0]) candidate.alike = true;
  const auto alike = FindWantedForms(network, candidates, Each({0, 0}), {0}, 0.0);
  ASSERT_TRUE(alike.ok());
  ASSERT_EQ(alike->size(), 1u);
  EXPECT_EQ((*alike)[0].candidate, 2);
}

TEST(CandidateTest, FormsAreTheSameForOnePrepareAndBlocking) {
  Candidate one{.kernel = &kOneWay}, also{.kernel = &kAlsoOneWay}, another{.kernel = &kAnother};
  EXPECT_TRUE(ReadSameForm(one, also));
  EXPECT_FALSE(ReadSameForm(one, another));
  also.blocking = 1;
  EXPECT_FALSE(ReadSameForm(one, also));
  EXPECT_FALSE(ReadSameForm(one, {.kernel = &kDense}));
  EXPECT_TRUE(ReadSameForm({.kernel = &kSparse}, {.kernel = &kDense})) << "neither takes a weight";
}

}  // namespace
}  // namespace swizzle
