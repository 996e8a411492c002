#include <gtest/gtest.h>

#include "tests/model_loader/interpreter/operators/run_node.h"
#include "tests/support/status_matchers.h"

namespace swizzle::interpreter {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using swizzle::testing::kInvalid;
using swizzle::testing::OnnxBuilder;

StatusOr<std::vector<Array>> Multiply(const std::string& equation, const Tensor& x, const Tensor& c,
                                      const Limits& limits = {}) {
  OnnxBuilder builder = OneNode("Einsum", x.shape, {"x", "c"}, {{"equation", equation}});
  const auto floats = c.floats();
  builder.Floats("c", c.shape, {floats.begin(), floats.end()});
  return Execute(builder, {x}, limits);
}

// Their shapes' dimensions of 1 go with any other, in "..." and else.
TEST(Einsum, BroadcastsDimensionsOfOne) {
  const Tensor x = Floats({2, 1, 3}, {1, 2, 3, 4, 5, 6}), c = Floats({2, 3}, {1, 10, 100, 2, 20, 200});
  const auto dots = Multiply("...i,...i->...", x, c);
  ASSERT_THAT(dots, IsOk());
  EXPECT_EQ((*dots)[0].shape, (Shape{2, 2}));
  EXPECT_EQ(Values((*dots)[0]), (std::vector<float>{321, 642, 654, 1308}));
  const auto letters = Multiply("aji,ji->j", x, c);
  ASSERT_THAT(letters, IsOk());
  EXPECT_EQ(Values((*letters)[0]), (std::vector<float>{975, 1950}));
}

TEST(Einsum, DotsThatTheResultLacksAreSummed) {
  const auto sums = Multiply("...i,j->i", Floats({2, 3}, {1, 2, 3, 4, 5, 6}), Floats({2}, {1, 1}));
  ASSERT_THAT(sums, IsOk());
  EXPECT_EQ(Values((*sums)[0]), (std::vector<float>{10, 14, 18}));
}

TEST(Einsum, RefusesWhatDoesNotFit) {
  const Tensor x = Floats({2, 3}, {1, 2, 3, 4, 5, 6}), c = Floats({2}, {1, 1});
  EXPECT_THAT(Multiply("ij,j->i", x, c),
              IsError(kInvalid, "Einsum node 'y_node': the equation gives dimensions of 3 and 2"));
  EXPECT_THAT(Multiply("ij,i,j->i", x, c), IsError(kInvalid, "not one of 2 operands"));
  EXPECT_THAT(Multiply("ij,ij->i", x, c), IsError(kInvalid, "an operand of 1 dimensions 2 letters"));
  EXPECT_THAT(Multiply("ij,i->iji", x, c), IsError(kInvalid, "a letter twice"));
}

// Outer products grow as fast as an equation is written.
TEST(Einsum, BoundsItsResult) {
  const Tensor x = Floats({1000}, std::vector<float>(1000, 1)), c = Floats({1000}, std::vector<float>(1000, 1));
  EXPECT_THAT(Multiply("i,j->ij", x, c, {.max_array_bytes = 4'000'000}), IsOk());
  EXPECT_THAT(Multiply("i,j->ij", x, c, {.max_array_bytes = 3'999'999}),
              IsError(StatusCode::kResourceExhausted, "larger than the limit"));
}

}  // namespace
}  // namespace swizzle::interpreter
