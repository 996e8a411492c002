#include "kernels/format/n_m.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "kernels/format/structure.h"
#include "kernels/format/weight_matrix.h"
#include "tests/kernels/format/format_checks.h"

namespace swizzle {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The header's worked example.
DenseMatrix ExampleDense() {
  return {.rows = 4, .cols = 4, .values = {1, 0, 2, 0, 0, 3, 0, 0, 5, 0, 0, 6, 0, 7, 8, 0}};
}
NOfMMatrix Example() { return *NOfMMatrix::FromDense(ExampleDense(), {2, 4}); }

TEST(NOfMTest, WorkedExample) {
  const NOfMMatrix matrix = Example();
  EXPECT_THAT(matrix.values, ElementsAre(1, 2, 0, 3, 5, 6, 7, 8));
  EXPECT_THAT(matrix.places, ElementsAre(0b01'00'10'00, 0b10'01'11'00));
  EXPECT_EQ(matrix.nnz(), 7);
  EXPECT_TRUE(matrix.Validate().ok());
  EXPECT_EQ(matrix.ToDense().values, ExampleDense().values);
}

// At most n of m channels at a tap, drawn.
DenseMatrix Draw(int64_t rows, int64_t channels, const GroupLimits& limits) {
  std::mt19937 random(static_cast<unsigned>(rows * 31 + channels * 7 + limits.m));
  DenseMatrix dense{rows, channels * limits.taps, std::vector<float>(rows * channels * limits.taps)};
  std::uniform_real_distribution<float> value(0.5f, 1.0f);
  for (int64_t line = 0; line < rows * limits.taps; ++line) {
    for (int64_t begin = 0; begin < channels; begin += limits.m) {
      for (int64_t i = 0; i < limits.n; ++i) {
        const int64_t channel = begin + static_cast<int64_t>(random() % limits.m);
        if (channel >= channels) continue;
        dense.values[line / limits.taps * dense.cols + channel * limits.taps + line % limits.taps] = value(random);
      }
    }
  }
  return dense;
}

TEST(NOfMTest, RoundTrip) {
  for (const GroupLimits limits :
       {GroupLimits{2, 4, 1}, {1, 4, 1}, {1, 2, 9}, {2, 4, 9}, {3, 7, 1}, {4, 16, 25}, {5, 256, 1}, {1, 1, 1}}) {
    for (const int64_t channels : {0, 1, 4, 17, 64}) {
      for (const int64_t rows : {0, 1, 33}) {
        const DenseMatrix dense = Draw(rows, channels, limits);
        const auto matrix = NOfMMatrix::FromDense(dense, limits);
        ASSERT_TRUE(matrix.ok()) << matrix.status();
        EXPECT_TRUE(matrix->Validate().ok()) << matrix->Validate();
        EXPECT_EQ(matrix->nnz(), dense.nnz());
        EXPECT_EQ(matrix->ToDense().values, dense.values);
      }
    }
  }
}

TEST(NOfMTest, FindsTheLimitsOfTheFewestBytes) {
  for (const GroupLimits limits : {GroupLimits{2, 4, 1}, {2, 4, 9}, {1, 8, 1}, {1, 2, 1}}) {
    const DenseMatrix dense = Draw(64, 64, limits);
    const auto matrix = NOfMMatrix::FromDense(dense);
    ASSERT_TRUE(matrix.ok()) << matrix.status();
    EXPECT_EQ(matrix->n, limits.n);
    EXPECT_EQ(matrix->m, limits.m);
    EXPECT_EQ(matrix->taps, limits.taps);
    EXPECT_EQ(matrix->ToDense().values, dense.values);
  }
}

TEST(NOfMTest, WhatDoesNotFitIsRefused) {
  DenseMatrix dense = Draw(4, 16, {2, 4, 1});
  for (int64_t col = 4; col < 7; ++col) dense.values[2 * 16 + col] = 1;
  const auto matrix = NOfMMatrix::FromDense(dense, {2, 4, 1});
  EXPECT_THAT(std::string(matrix.status().message()), HasSubstr("row 2 of a 4 x 16 matrix has more than 2 nonzeros"));
  std::ranges::fill(dense.values, 1.0f);
  EXPECT_EQ(NOfMMatrix::FromDense(dense).status().code(), StatusCode::kInvalidArgument);
}

TEST(NOfMTest, HoldsWhatIsDetected) {
  std::mt19937 random(2);
  DenseMatrix dense{64, 64 * 9, std::vector<float>(64 * 64 * 9)};
  for (int64_t line = 0; line < 64 * 9; ++line) {
    for (int64_t group = 0; group < 64; group += 4) {
      uint32_t places[] = {0, 1, 2, 3};
      std::ranges::shuffle(places, random);
      for (int i = 0; i < 2; ++i) dense.values[line / 9 * dense.cols + (group + places[i]) * 9 + line % 9] = 1;
    }
  }
  const Structure structure = DetectStructure(dense, 9);
  EXPECT_EQ(structure.Name(), "2:4");
  EXPECT_THAT(FormatsThatHold(structure), Contains(Format::kNOfM));
  EXPECT_THAT(FormatsThatHold(DetectStructure(dense, 1)), Not(Contains(Format::kNOfM)));
  const auto held = WeightMatrix::FromDense(Format::kNOfM, dense);
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(static_cast<int64_t>(held->StoredBytes()), structure.bytes);
}

TEST(NOfMTest, KeepsLimits) {
  EXPECT_TRUE(KeepsLimits(Draw(16, 33, {2, 4, 1}), 2, 4));
  EXPECT_TRUE(KeepsLimits(Example(), 2, 4));
  EXPECT_FALSE(KeepsLimits(Example(), 1, 4));
  DenseMatrix dense = Draw(16, 33, {2, 4, 1});
  for (int64_t col = 28; col < 31; ++col) dense.values[15 * 33 + col] = 1;
  EXPECT_FALSE(KeepsLimits(dense, 2, 4));
}

using Malformation = MalformationOf<NOfMMatrix>;

class NOfMMalformedTest : public ::testing::TestWithParam<Malformation> {};

TEST_P(NOfMMalformedTest, IsRejected) { ExpectRejected(Example(), GetParam()); }

using M = NOfMMatrix;
INSTANTIATE_TEST_SUITE_P(
    All, NOfMMalformedTest,
    ::testing::Values(
        Malformation{"NegativeRows", [](M& m) { m.rows = -1; }, "impossible dimensions -1 x 4"},
        Malformation{"HugeCols", [](M& m) { m.cols = int64_t{1} << 40; }, "impossible dimensions"},
        Malformation{"NoneKept", [](M& m) { m.n = 0; }, "keeps 0 of 4"},
        Malformation{"MoreThanAll", [](M& m) { m.n = 5; }, "keeps 5 of 4"},
        Malformation{"HugeGroups", [](M& m) { m.m = int64_t{1} << 40; }, "1 <= n <= m <= 256"},
        Malformation{"NoTaps", [](M& m) { m.taps = 0; }, "has 0 taps"},
        Malformation{"OtherTaps", [](M& m) { m.taps = 3; }, "has 3 taps"},
        Malformation{"TooFewValues", [](M& m) { m.values.pop_back(); }, "7 values; 4 rows have 2 each"},
        Malformation{"ValuesOfNoRows", [](M& m) { m.rows = 0; }, "8 values; 0 rows"},
        Malformation{"HugeRows", [](M& m) { m.rows = (int64_t{1} << 32) - 1; }, "8 values; 4294967295 rows"},
        Malformation{"TooFewPlaces", [](M& m) { m.places.pop_back(); }, "1 bytes of places; 8 entries take 2"},
        Malformation{"PlaceTwice", [](M& m) { m.places[0] = 0; }, "row 0, group 0: place 0 does not come after 0"},
        Malformation{"PastTheLastChannel", [](M& m) { m.cols = 3, m.taps = 1; }, "a value past the last channel"}),
    [](const auto& malformation) { return std::string(malformation.param.name); });

}  // namespace
}  // namespace swizzle
