#include "server/rpc/wire_response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>

namespace swizzle {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMost = 1 << 20;
constexpr std::array<int, 2> kBoth = {0, 1};

// Two outputs: one as long as the input, as far as can be told, the other of so many numbers a row.
ModelSpec SpecWith(int64_t numbers) {
  ModelSpec spec;
  spec.name = "net";
  spec.inputs = {{"x", DType::kFloat32, {-1, -1}}};
  spec.outputs = {{"open", DType::kFloat32, {-1}}, {"fixed", DType::kFloat32, {numbers}}};
  return spec;
}

Request RequestOf(const Shape& shape) {
  Request request;
  request.inputs.push_back({DType::kFloat32, shape, {}});
  return request;
}

TEST(ResponseBytes, AreTheShapes) {
  EXPECT_EQ(*ResponseBytes(SpecWith(10), RequestOf({1, 100}), kBoth, kMost), 4 * 100 + 4 * 10);
}

TEST(ResponseBytes, WhatIsCertainlyTooLargeIsRefused) {
  const Status status = ResponseBytes(SpecWith(kMost), RequestOf({1, 1}), kBoth, kMost).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has 4194304 bytes, and the server sends at most 1048576"));
}

// An input without elements may have any length in its other dimension.
TEST(ResponseBytes, AGuessIsNeverSoLargeThatSumsOverflow) {
  for (const int64_t length : {int64_t{1} << 40, (int64_t{1} << 61) - 1, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(*ResponseBytes(SpecWith(10), RequestOf({0, length}), kBoth, kMost), kMost + 1 + 40) << length;
  }
}

}  // namespace
}  // namespace swizzle
