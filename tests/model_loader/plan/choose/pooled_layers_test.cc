#include "model_loader/plan/choose/pooled_layers.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/base/storage.h"
#include "tests/support/network_builder.h"

namespace swizzle {
namespace {

constexpr Storage kRows = {Layout::kRows, DType::kFloat16};
constexpr Storage kPooledRows = {Layout::kRows, DType::kFloat16, true};

class PooledLayersTest : public ::testing::Test {
 protected:
  int Stem() { return builder_.Conv(image_, 4, testing::SquareWindow(7, 2, 3), 0.0, testing::kRelu); }
  // Whether the network's first layer feeds a pooling.
  bool Feeds(int output) {
    const NetworkPort in = builder_.Port(image_, "image"), out = builder_.Port(output, "output");
    network_ = builder_.Finish();
    network_.inputs = {in};
    network_.outputs = {out};
    return FeedsPooling(network_, network_.layers[0]);
  }

  testing::NetworkBuilder builder_{1, 0};
  const int image_ = builder_.Value("image", 3, 21, 30);
  Network network_;
};

TEST_F(PooledLayersTest, APoolingBehindIsRenamed) {
  ASSERT_TRUE(Feeds(builder_.MeanOfPlane(builder_.Pool(Op::kMaxPool, Stem(), testing::SquareWindow(3, 2, 1)))));
  const Kernel kernel = {};
  const Candidate plain = {.kernel = &kernel, .input = kRows, .output = kRows, .microseconds = {2, 3}};
  Candidate pooled = plain;
  pooled.output = kPooledRows;
  LayerCandidates candidates = {{plain, pooled, pooled}, {plain}, {plain}};
  AddPooledRenames(network_, candidates);
  ASSERT_EQ(candidates[1].size(), 2u);
  EXPECT_EQ(candidates[1][1].kernel, nullptr);
  EXPECT_EQ(candidates[1][1].input, kPooledRows);
  EXPECT_EQ(candidates[1][1].output, kRows);
  EXPECT_EQ(candidates[1][1].microseconds, (std::vector<double>{0, 0}));
  EXPECT_EQ(candidates[2].size(), 1u);
}

TEST_F(PooledLayersTest, OtherPoolingsAreNot) {
  EXPECT_FALSE(Feeds(builder_.Pool(Op::kMaxPool, Stem(), testing::SquareWindow(3, 2, 0))));
}

TEST_F(PooledLayersTest, MeansAreNot) {
  EXPECT_FALSE(Feeds(builder_.Pool(Op::kAveragePool, Stem(), testing::SquareWindow(3, 2, 1))));
}

TEST_F(PooledLayersTest, WhatIsReadElsewhereIsThere) {
  const int stem = Stem();
  builder_.MeanOfPlane(stem);
  EXPECT_FALSE(Feeds(builder_.Pool(Op::kMaxPool, stem, testing::SquareWindow(3, 2, 1))));
}

TEST_F(PooledLayersTest, OutputsAreThere) {
  const int stem = Stem();
  builder_.Pool(Op::kMaxPool, stem, testing::SquareWindow(3, 2, 1));
  EXPECT_FALSE(Feeds(stem));
}

TEST_F(PooledLayersTest, StoredAsPooled) {
  const Extent image = {2, 5, 11, 15};
  EXPECT_EQ(PooledExtent(image), (Extent{2, 5, 6, 8}));
  EXPECT_EQ(PooledExtent(Extent{1, 1, 12, 1}), (Extent{1, 1, 6, 1}));
  EXPECT_EQ(StorageBytes(image, kPooledRows), static_cast<size_t>(5 * RowStride(2 * 6 * 8) * 2));
}

}  // namespace
}  // namespace swizzle
