#include "model_loader/safetensors/relative_buckets.h"

#include <map>
#include <vector>

#include "gtest/gtest.h"

namespace swizzle {
namespace {

// Each bucket's bias is its number, and 100 more for the second head; what transformers 4.57 says of distances.
TEST(RelativeBuckets, DistancesShareThemAsInTransformers) {
  std::vector<float> table;
  for (int64_t bucket = 0; bucket < kRelativeBuckets; ++bucket) {
    table.push_back(static_cast<float>(bucket));
    table.push_back(static_cast<float>(100 + bucket));
  }
  const std::vector<float> biases = BiasesByDistance(Tensor::Floats({kRelativeBuckets, 2}, table));
  ASSERT_EQ(biases.size(), static_cast<size_t>(2 * (2 * kFarthestBucket + 1)));
  const std::map<int64_t, int> expected = {
      {-128, 15}, {-127, 15}, {-91, 15}, {-90, 14}, {-64, 14}, {-63, 13}, {-46, 13}, {-45, 12}, {-32, 12}, {-31, 11},
      {-23, 11},  {-22, 10},  {-16, 10}, {-15, 9},  {-12, 9},  {-11, 8},  {-8, 8},   {-7, 7},   {-1, 1},   {0, 0},
      {1, 17},    {7, 23},    {8, 24},   {11, 24},  {12, 25},  {15, 25},  {16, 26},  {22, 26},  {23, 27},  {31, 27},
      {32, 28},   {45, 28},   {46, 29},  {63, 29},  {64, 30},  {90, 30},  {91, 31},  {127, 31}, {128, 31}};
  for (const auto& [distance, bucket] : expected) {
    const auto at = static_cast<size_t>(2 * (distance + kFarthestBucket));
    EXPECT_EQ(biases[at], static_cast<float>(bucket)) << distance;
    EXPECT_EQ(biases[at + 1], static_cast<float>(100 + bucket)) << distance;
  }
}

}  // namespace
}  // namespace swizzle
