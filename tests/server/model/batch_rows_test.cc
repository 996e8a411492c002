#include "server/model/batch_rows.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace swizzle {
namespace {

// Requests of 3, 1 and 2 rows of two bytes, which are 0 to 11.
class BatchRowsTest : public ::testing::Test {
 protected:
  BatchRowsTest() : bytes_(12), outputs_(3, std::vector<std::string>(1)) {
    std::iota(reinterpret_cast<uint8_t*>(bytes_.data()), reinterpret_cast<uint8_t*>(bytes_.data()) + 12, uint8_t{0});
    size_t first = 0;
    for (const int64_t rows : {3, 1, 2}) {
      const auto count = static_cast<size_t>(rows);
      inputs_.push_back({{DType::kUint8, {rows, 2}, std::span(bytes_).subspan(2 * first, 2 * count)}});
      first += count;
    }
    for (size_t i = 0; i < 3; ++i) {
      items_.push_back({.inputs = inputs_[i], .rows = inputs_[i][0].shape[0], .outputs = &outputs_[i]});
    }
  }

  static std::vector<int> Numbers(std::span<const std::byte> bytes) {
    std::vector<int> numbers;
    for (const std::byte byte : bytes) numbers.push_back(static_cast<int>(byte));
    return numbers;
  }

  std::vector<std::byte> bytes_;
  std::vector<std::vector<TensorView>> inputs_;
  std::vector<std::vector<std::string>> outputs_;
  std::vector<BatchItem> items_;
};

TEST_F(BatchRowsTest, PiecesAreWhereRequestsHaveThem) {
  const BatchRows rows(items_, {3, 1, 2});
  EXPECT_EQ(rows.total(), 6);
  std::vector<std::span<const std::byte>> all;
  rows.PiecesOf(0, {0, 6}, all);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1].data(), bytes_.data() + 6);
  std::vector<std::span<const std::byte>> some;
  rows.PiecesOf(0, {2, 5}, some);
  ASSERT_EQ(some.size(), 3u);
  EXPECT_EQ(Numbers(some[0]), (std::vector{4, 5}));
  EXPECT_EQ(Numbers(some[1]), (std::vector{6, 7}));
  EXPECT_EQ(Numbers(some[2]), (std::vector{8, 9}));
  std::vector<std::span<const std::byte>> one;
  rows.PiecesOf(0, {3, 4}, one);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(Numbers(one[0]), (std::vector{6, 7}));
}

TEST_F(BatchRowsTest, OutputsGoToTheirRequests) {
  const BatchRows rows(items_, {3, 1, 2});
  rows.Append(0, {0, 2}, std::as_bytes(std::span("ab", 2)));
  rows.Append(0, {2, 6}, std::as_bytes(std::span("cdef", 4)));
  EXPECT_EQ(outputs_, (std::vector<std::vector<std::string>>{{"abc"}, {"d"}, {"ef"}}));
}

}  // namespace
}  // namespace swizzle
