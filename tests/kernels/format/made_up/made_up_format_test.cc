// A format is its header and source, an enumerator and a row of the list, and a kernel that takes it is a row: all else
// follows. Held by adding one that the program has never heard of: it is stored in files, hashed, counted, stacked,
// planned, run and reported by the program's libraries as they are (made_up_list.cc).
//
// tests/integration/formats_test.py holds what has to be edited for a real one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "kernels/format/csr.h"
#include "kernels/format/structure.h"
#include "model_loader/pack/commands.h"
#include "model_loader/packed/packed_reader.h"
#include "model_loader/packed/packed_writer.h"
#include "model_loader/plan/choose/tuning_cache.h"
#include "model_loader/plan/fuse_layers.h"
#include "model_loader/plan/planner.h"
#include "tests/kernels/format/made_up/made_up_backend.h"
#include "tests/kernels/format/made_up/made_up_matrix.h"
#include "tests/support/network_builder.h"
#include "tests/support/random_encoder.h"
#include "tests/support/random_network.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

using testing::MadeUpMatrix;

// All sparse weights in the made-up format.
Network InMadeUp(Network network) {
  for (Weight& weight : network.weights) {
    if (weight.format() != Format::kCsr) continue;
    weight.matrix = *WeightMatrix::FromDense(MadeUpMatrix::kFormat, weight.ToDense());
  }
  return network;
}

Network MadeUpNetwork() { return InMadeUp(testing::MakeRandomNetwork({})); }

int CountMadeUp(const Network& network) {
  return static_cast<int>(
      std::ranges::count(network.weights, MadeUpMatrix::kFormat, [](const Weight& weight) { return weight.format(); }));
}

MadeUpMatrix Example() { return MadeUpMatrix::FromDense({3, 4, {1, 0, 0, -2, 0, 0, 0, 0, 0, 3, 0, 0}}); }

TEST(MadeUpFormatTest, HasANameAndIsSparse) {
  EXPECT_EQ(FormatName(MadeUpMatrix::kFormat), "made_up");
  EXPECT_EQ(FormatFromName("made_up"), MadeUpMatrix::kFormat);
  EXPECT_TRUE(IsSparse(MadeUpMatrix::kFormat));
  EXPECT_TRUE(HasValues(MadeUpMatrix::kFormat));
}

TEST(MadeUpFormatTest, IsConvertedFromAndToOthers) {
  const WeightMatrix matrix = Example();
  EXPECT_EQ(matrix.nnz(), 3);
  const auto csr = matrix.In<CsrMatrix>();
  ASSERT_TRUE(csr.ok());
  EXPECT_EQ((*csr)->col_indices, (std::vector<uint32_t>{0, 3, 1}));
  const auto again = WeightMatrix(**csr).In<MadeUpMatrix>();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)->values, Example().values);
}

TEST(MadeUpFormatTest, BytesAndHashFollowFromItsParts) {
  const Weight weight{Example(), {}};
  EXPECT_EQ(weight.StoredBytes(), 3 * 8 + 3 * 1 + 3 * 4u);
  EXPECT_EQ(weight.DenseBytes(), 48);
  MadeUpMatrix other = Example();
  other.values[0] = 1;
  other.scales[0] = 5;
  EXPECT_EQ(PatternHash(weight), PatternHash({other, {}}));
  other.bits[0] = 3;
  EXPECT_NE(PatternHash(weight), PatternHash({other, {}}));
}

TEST(MadeUpFormatTest, FilesHoldIt) {
  const Network network = MadeUpNetwork();
  ASSERT_GE(CountMadeUp(network), 2);
  const auto bytes = EncodePacked(network);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto read = ReadPacked(*bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(CountMadeUp(*read), CountMadeUp(network));
  for (size_t i = 0; i < network.weights.size(); ++i) {
    EXPECT_EQ(read->weights[i].ToDense().values, network.weights[i].ToDense().values);
    EXPECT_EQ(PatternHash(read->weights[i]), PatternHash(network.weights[i]));
  }
}

TEST(MadeUpFormatTest, WhatIsMalformedInAFileIsNamed) {
  Network network = MadeUpNetwork();
  const auto weight = std::ranges::find(network.weights, MadeUpMatrix::kFormat, &Weight::format);
  MadeUpMatrix matrix = *weight->matrix.As<MadeUpMatrix>();
  matrix.values.pop_back();
  weight->matrix = matrix;
  EXPECT_THAT(std::string(ReadPacked(*EncodePacked(network)).status().message()),
              ::testing::HasSubstr(Concat("weight ", weight - network.weights.begin(), ": made-up matrix has ")));
}

TEST(MadeUpFormatTest, QueriesKeysAndValuesAreStacked) {
  Network network = InMadeUp(testing::MakeRandomEncoder({}));
  FuseLayers(network);
  const auto attention = std::ranges::find(network.layers, Op::kAttention, [](const Layer& layer) { return layer.op; });
  ASSERT_TRUE(attention->attention().packed);
  const auto product = std::ranges::find(network.layers, attention->inputs[0], &Layer::output);
  const Weight& weight = network.weights[product->weight];
  EXPECT_EQ(weight.format(), MadeUpMatrix::kFormat);
  EXPECT_EQ(weight.rows(), 3 * weight.cols());
  EXPECT_TRUE(weight.matrix.Validate().ok());
}

TEST(MadeUpFormatTest, TheStructureDetectorFindsIt) {
  EXPECT_THAT(FormatsThatHold({.pattern = SparsityPattern::kUnstructured}),
              ::testing::ElementsAre(Format::kDense, Format::kCsr, Format::kBitmap, MadeUpMatrix::kFormat));
  EXPECT_THAT(FormatsThatHold({.pattern = SparsityPattern::kDense}), ::testing::ElementsAre(Format::kDense));
  const Structure structure = DetectStructure(WeightMatrix(Example()), 1);
  EXPECT_EQ(structure.zero_rows, 1);
  EXPECT_EQ(structure.zero_cols, 1);
}

std::vector<float> RunPlan(const Plan& plan, const std::vector<float>& image) {
  const auto runner = plan.NewRunner({});
  SWIZZLE_CHECK(runner.ok());
  std::ranges::copy(image, (*runner)->Input(0, 1).begin());
  SWIZZLE_CHECK((*runner)->Run(1).ok());
  const auto output = (*runner)->Output(0, 1);
  return {output.begin(), output.end()};
}

TEST(MadeUpFormatTest, PlansRunItOnItsOwnKernelAndOnDenseOnes) {
  const Network network = MadeUpNetwork();
  Network dense = network;
  for (Weight& weight : dense.weights) weight.matrix = weight.ToDense();
  std::vector<float> image(network.values[network.inputs[0].value].elements());
  for (size_t i = 0; i < image.size(); ++i) image[i] = std::sin(static_cast<float>(i));
  const auto backend = testing::NewMadeUpBackend();
  const auto plan = [&](const Network& of, bool dense_only) {
    auto made =
        MakePlan(of, *backend,
                 {.threads = 1, .dense_only = dense_only, .tuning_budget = absl::Seconds(2), .make_watch = nullptr});
    SWIZZLE_CHECK(made.ok());
    return *std::move(made);
  };
  const std::vector<float> expected = RunPlan(*plan(dense, false), image);
  int offered = 0;
  const auto sparse = plan(network, false);
  for (const LayerReport& layer : sparse->report().layers) {
    for (const auto& candidate : layer.candidates) {
      if (candidate.kernel != "conv_made_up_f32_base") continue;
      ++offered;
      EXPECT_EQ(layer.format, MadeUpMatrix::kFormat);
      EXPECT_GE(layer.weight_cols, 8);
      EXPECT_TRUE(candidate.measured);
    }
  }
  EXPECT_GT(offered, 0);
  for (const auto& of : {sparse, plan(network, true)}) {
    const std::vector<float> actual = RunPlan(*of, image);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-4) << i;
  }
}

// With no budget to measure, zeros that are skipped are what makes it the faster one.
TEST(MadeUpFormatTest, EstimatesCountItsNonzeros) {
  testing::NetworkBuilder builder(1, 0);
  const int x = builder.Value("x", 512);
  const int y = builder.Linear(x, 512, 0.9);
  const std::vector<NetworkPort> inputs = {builder.Port(x, "x")}, outputs = {builder.Port(y, "y")};
  Network network = InMadeUp(builder.Finish());
  network.inputs = inputs;
  network.outputs = outputs;
  const auto backend = testing::NewMadeUpBackend();
  const auto plan = MakePlan(network, *backend, {.threads = 1, .tuning_budget = absl::ZeroDuration()});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE((*plan)->report().layers[0].RunsOn("conv_made_up_f32_base"));
}

TEST(MadeUpFormatTest, InspectReportsIt) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WritePacked(MadeUpNetwork(), folder / "model.swz").ok());
  std::ostringstream out, err;
  pack::Terminal terminal{out, err};
  const auto outcome = pack::Execute(pack::InspectCommand{.model = folder / "model.swz",
                                                          .json = true,
                                                          .threads = 1,
                                                          .tuning_budget = absl::ZeroDuration(),
                                                          .tuning_cache = {},
                                                          .page = folder / "page.html",
                                                          .calibration = {}},
                                     terminal);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  const auto report = nlohmann::json::parse(out.str());
  int made_up = 0;
  for (const auto& layer : report["layers"]) {
    if (layer["weight"].is_null() || layer["weight"]["format"] != "made_up") continue;
    ++made_up;
    EXPECT_EQ(layer["weight"]["sparse"], true);
    EXPECT_GT(layer["weight"]["nonzeros"], 0);
    // Kernels of other formats convert it.
    for (const auto& candidate : layer["candidates"])
      EXPECT_THAT(candidate["weights"], ::testing::AnyOf("dense", "csr"));
  }
  EXPECT_EQ(made_up, CountMadeUp(MadeUpNetwork()));
}

}  // namespace
}  // namespace swizzle
