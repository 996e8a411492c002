#include "kernels/whole_numbers/byte_weight.h"

#include <gtest/gtest.h>

#include <cmath>

namespace swizzle {
namespace {

Problem LinearProblem(int64_t rows, int64_t cols) {
  Problem problem{{Op::kConv, Window(), {}}, {1, cols}, {1, rows}};
  problem.inputs_as[0] = {DType::kUint8, 0.5f, 3};
  problem.epilogue.requantise = Quantised{DType::kUint8, 2.0f, 7};
  return problem;
}

Weight WeightOf(int64_t rows, int64_t cols, std::vector<float> values, std::vector<float> scales) {
  Weight weight{DenseMatrix{rows, cols, std::move(values)}, {}};
  weight.quantisation = Quantisation{DType::kInt8, std::move(scales), {}};
  return weight;
}

// Row 0 is 2, -128 at a scale of .25, row 1 zero and 127 at .1: what real numbers are rounded from comes back.
TEST(ByteWeightTest, WorkedExample) {
  Weight weight = WeightOf(2, 2, {0.5f, -32.0f, 0.0f, 127 * 0.1f}, {0.25f, 0.1f});
  weight.bias = {1.0f, -0.5f};
  const auto made = MakeByteWeight(weight, LinearProblem(2, 2));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->nonzeros(), 3);
  ASSERT_EQ(made->entries[0].size(), 2u);
  EXPECT_EQ(made->entries[0][0].value, 2);
  EXPECT_EQ(made->entries[0][1].value, -128);
  ASSERT_EQ(made->entries[1].size(), 1u);
  EXPECT_EQ(made->entries[1][0].column, 1);
  EXPECT_EQ(made->entries[1][0].value, 127);
  // The bias in steps of .5 * .25, less three times the row's sum.
  EXPECT_EQ(made->start[0], 8 - 3 * (2 - 128));
  EXPECT_EQ(made->start[1], -10 - 3 * 127);
  EXPECT_EQ(made->scale[0], 0.5f * 0.25f / 2.0f);
}

TEST(ByteWeightTest, ColumnsCountTapsFirst) {
  Problem problem = LinearProblem(1, 2);
  problem.window().kernel_w = 3;
  std::vector<float> values(6);
  values[1 * 3 + 2] = 1.0f;  // channel 1, tap 2
  const auto made = MakeByteWeight(WeightOf(1, 6, values, {1.0f}), problem);
  ASSERT_TRUE(made.ok());
  ASSERT_EQ(made->entries[0].size(), 1u);
  EXPECT_EQ(made->entries[0][0].column, 2 * 2 + 1);
}

TEST(ByteWeightTest, EntriesComeInTheOrderOfColumns) {
  Problem problem = LinearProblem(1, 2);
  problem.window().kernel_w = 3;
  const auto made = MakeByteWeight(WeightOf(1, 6, {1, 2, 3, 4, 0, 6}, {1.0f}), problem);
  ASSERT_TRUE(made.ok());
  std::vector<std::pair<int32_t, int8_t>> entries;
  for (const ByteWeight::Entry& entry : made->entries[0]) entries.emplace_back(entry.column, entry.value);
  const std::vector<std::pair<int32_t, int8_t>> expected = {{0, 1}, {1, 4}, {2, 2}, {4, 3}, {5, 6}};
  EXPECT_EQ(entries, expected);
}

TEST(ByteWeightTest, RefusesWhatIsNotWholeOrDoesNotFit) {
  const Problem problem = LinearProblem(1, 2);
  EXPECT_TRUE(HoldsBytes(WeightOf(1, 2, {127, -128}, {1.0f}), problem));
  EXPECT_FALSE(HoldsBytes(WeightOf(1, 2, {128, 0}, {1.0f}), problem));
  EXPECT_FALSE(HoldsBytes(WeightOf(1, 2, {0, -129}, {1.0f}), problem));
  EXPECT_FALSE(HoldsBytes(WeightOf(1, 2, {0.5f, 0}, {1.0f}), problem));
  EXPECT_FALSE(HoldsBytes(WeightOf(1, 2, {std::nanf(""), 0}, {1.0f}), problem));
  Weight real = WeightOf(1, 2, {1, 0}, {1.0f});
  real.quantisation.reset();
  EXPECT_FALSE(HoldsBytes(real, problem));
  Weight far = WeightOf(1, 2, {1, 0}, {1.0f});
  far.bias = {1e9f};
  EXPECT_FALSE(HoldsBytes(far, problem));
}

// 200 is 127 and 73, -255 is -128 and -127; 127 and -128 are themselves.
TEST(ByteWeightTest, WideBytesAreSums) {
  Weight weight = WeightOf(1, 5, {200, 127, 0, -255, -128}, {1.0f});
  weight.quantisation = Quantisation{DType::kUint8, {1.0f}, {128}};
  const auto made = MakeWideByteWeight(weight, LinearProblem(1, 5));
  ASSERT_TRUE(made.ok()) << made.status();
  std::vector<std::pair<int32_t, int8_t>> entries;
  for (const ByteWeight::Entry& entry : made->entries[0]) entries.emplace_back(entry.column, entry.value);
  const std::vector<std::pair<int32_t, int8_t>> expected = {{0, 127},  {0, 73},   {1, 127},
                                                            {3, -128}, {3, -127}, {4, -128}};
  EXPECT_EQ(entries, expected);
  EXPECT_EQ(made->start[0], -3 * (200 + 127 - 255 - 128));
  EXPECT_FALSE(HoldsBytes(weight, LinearProblem(1, 5)));
  EXPECT_TRUE(HoldsWideBytes(weight, LinearProblem(1, 5)));
  EXPECT_FALSE(HoldsWideBytes(WeightOf(1, 2, {256, 0}, {1.0f}), LinearProblem(1, 2)));
}

// 255 * 127 * 33,200 is beyond 2^30.
TEST(ByteWeightTest, RefusesSumsThatLeave32Bits) {
  for (const int64_t cols : {33'000, 33'200}) {
    const Weight weight = WeightOf(1, cols, std::vector<float>(cols, 127.0f), {1.0f});
    EXPECT_EQ(HoldsBytes(weight, LinearProblem(1, cols)), cols == 33'000) << cols;
  }
}

// Steps of the output beyond 32 bits would come out on the wrong side.
TEST(ByteWeightTest, RefusesStepsThatLeave32Bits) {
  Problem problem = LinearProblem(1, 2);
  const Weight weight = WeightOf(1, 2, {100, 100}, {1.0f});
  problem.epilogue.requantise->scale = 1e-3f;
  EXPECT_TRUE(HoldsBytes(weight, problem));
  problem.epilogue.requantise->scale = 1e-5f;
  EXPECT_FALSE(HoldsBytes(weight, problem));
}

}  // namespace
}  // namespace swizzle
