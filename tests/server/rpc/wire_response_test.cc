#include "server/rpc/wire_response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace swizzle {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMost = 1 << 20;
constexpr std::array<RequestedOutput, 2> kBoth = {{{0}, {1}}};

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
    EXPECT_EQ(*ResponseBytes(SpecWith(10), RequestOf({0, length}), kBoth, kMost), 4 + 40) << length;
    EXPECT_EQ(*ResponseBytes(SpecWith(10), RequestOf({length / 8, 1}), kBoth, kMost), kMost + 1 + 40) << length;
  }
}

// Else requests of images would be refused beside each other: one of 640x640 was taken to need a gigabyte.
TEST(ResponseBytes, WhatIsLeftOpenIsNoLargerTogetherThanARowOfTheInputs) {
  ModelSpec spec;
  spec.name = "detector";
  spec.max_batch_size = 8;
  spec.inputs = {{"image", DType::kFloat32, {3, -1, -1}}};
  spec.outputs = {{"map", DType::kFloat32, {-1, -1, -1}}, {"classes", DType::kFloat32, {21, -1, -1}}};
  Request request = RequestOf({2, 3, 64, 48});
  request.rows = 2;
  EXPECT_EQ(*ResponseBytes(spec, request, kBoth, int64_t{1} << 30), 2 * 4 * (3 * 64 * 48 + 21 * 64 * 64));
}

// The model computes the tensor all the same.
TEST(ResponseBytes, TextsOfClassesCountBesideTheTensor) {
  ModelSpec spec = SpecWith(100);
  const auto bytes = [&](int64_t classes) {
    const std::array<RequestedOutput, 1> asked = {{{1, classes}}};
    return *ResponseBytes(spec, RequestOf({1, 1}), asked, kMost) - 4 - 400;
  };
  EXPECT_EQ(bytes(0), 0);
  const int64_t of_one = bytes(1);
  EXPECT_GE(of_one, 4 + static_cast<int64_t>(std::string("-340282346638528859811704183484516925440.000000:99").size()));
  EXPECT_EQ(bytes(3), 3 * of_one);
  EXPECT_EQ(bytes(1000), 100 * of_one);  // there are no more
  spec.outputs[1].labels = std::make_shared<const std::vector<std::string>>(2, std::string(50, 'a'));
  EXPECT_EQ(bytes(1), of_one + 50);
}

}  // namespace
}  // namespace swizzle
