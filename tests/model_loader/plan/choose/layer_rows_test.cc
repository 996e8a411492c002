#include "model_loader/plan/choose/layer_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/cpu/kernel_table.h"
#include "model_loader/quantising/quantiser.h"
#include "tests/kernels/fake_backend.h"
#include "tests/support/random_encoder.h"

namespace swizzle {
namespace {

Candidate In(Layout layout, DType dtype, bool rounds_less) {
  const Storage storage = {layout, dtype};
  return {.input = storage, .output = storage, .rounds_less = rounds_less};
}

TEST(LayerRowsTest, OnlyPlansWhosePrecisionAllowsItRoundFactors) {
  for (const Precision precision : kPrecisions) {
    EXPECT_TRUE(Allows(precision, Kernel().numerics));
    EXPECT_EQ(Allows(precision, Numerics::kTf32Factors), precision == Precision::kTf32);
    EXPECT_EQ(Allows(precision, Numerics::kSplitFactors),
              precision == Precision::kFloat16x3 || precision == Precision::kTf32);
    EXPECT_EQ(Allows(precision, Numerics::kOperandsAsBytes), precision == Precision::kInt8);
  }
}

Layer& AttentionOf(Network& network) {
  return *std::ranges::find(network.layers, Op::kAttention, [](const Layer& layer) { return layer.op; });
}

bool MayRoundToBfloat16(Network& network) {
  const FakeBackend backend(cpu::KernelTable(), ~0u);
  const auto rows = LayerRows(backend, network, AttentionOf(network), {1, Precision::kFloat32}, /*dense_only=*/false);
  EXPECT_TRUE(rows.ok());
  const auto rounds = [](const Candidate& row) { return row.kernel->numerics == Numerics::kBfloat16Factors; };
  EXPECT_FALSE(std::ranges::all_of(*rows, rounds));
  return std::ranges::any_of(*rows, rounds);
}

TEST(LayerRowsTest, AttentionIsRoundedWhereWholeNumbersMadeAllThatItReads) {
  for (const double sparsity : {0.0, 0.9}) {
    Network network = testing::MakeRandomEncoder({.sparsity = sparsity});
    EXPECT_FALSE(MayRoundToBfloat16(network));
    ASSERT_TRUE(QuantiseSequenceNetwork(network, {}).ok());
    EXPECT_TRUE(MayRoundToBfloat16(network));
    for (const int input : AttentionOf(network).inputs) {
      Network mixed = network;
      const auto maker = std::ranges::find(mixed.layers, input, &Layer::output);
      mixed.weights[maker->weight].quantisation.reset();
      EXPECT_FALSE(MayRoundToBfloat16(mixed)) << "input " << input;
      mixed.values[input].quantisation = Quantisation{DType::kUint8, {0.1f}, {128}};
      EXPECT_TRUE(MayRoundToBfloat16(mixed)) << "input " << input;
    }
  }
}

TEST(LayerRowsTest, RowsThatRoundLessGoWhereOthersAreStoredAlike) {
  std::vector<Candidate> candidates = {In(Layout::kNhwc, DType::kFloat16, true),
                                       In(Layout::kNhwc, DType::kFloat16, false),
                                       In(Layout::kRows, DType::kFloat16, true),   // no other has its layout
                                       In(Layout::kNhwc, DType::kFloat32, true)};  // nor its type
  SettleForDevice(Precision::kInt8, {}, candidates);
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_FALSE(candidates[0].rounds_less);
  EXPECT_EQ(candidates[1].input.layout, Layout::kRows);
  EXPECT_EQ(candidates[2].input.dtype, DType::kFloat32);
}

TEST(LayerRowsTest, RowsStayThatNoOtherRoundsMoreThan) {
  std::vector<Candidate> candidates = {In(Layout::kNhwc, DType::kFloat16, false),
                                       In(Layout::kNhwc, DType::kFloat16, false)};
  SettleForDevice(Precision::kInt8, {}, candidates);
  EXPECT_EQ(candidates.size(), 2u);
}

// Scales that a model has for an input are its own, and others are not.
TEST(LayerRowsTest, RealRowsCompeteWhereTheModelHasNoScales) {
  const std::vector<Candidate> both = {In(Layout::kNhwc, DType::kFloat16, true),
                                       In(Layout::kNhwc, DType::kFloat16, false)};
  std::vector<Candidate> candidates = both;
  SettleForDevice(Precision::kFloat16, {}, candidates);
  ASSERT_EQ(candidates.size(), 2u);
  EXPECT_FALSE(candidates[0].rounds_less);
  Problem scaled;
  scaled.inputs_as[0] = {DType::kUint8, 1.0f, 0};
  candidates = both;
  SettleForDevice(Precision::kFloat16, scaled, candidates);
  EXPECT_EQ(candidates.size(), 1u);
}

}  // namespace
}  // namespace swizzle
