// What moves elements on a device, in any order with what computes there.
#include <gtest/gtest.h>

#include "tests/model_loader/interpreter/values/random_moves.h"
#include "tests/model_loader/offload/on_device.h"

namespace swizzle::offload {
namespace {

using swizzle::testing::OnDeviceTest;
using swizzle::testing::RandomMoves;

class MovedOnDeviceTest : public OnDeviceTest {};

TEST_F(MovedOnDeviceTest, AsOnTheHost) {
  constexpr unsigned kRounds = 60;
  int replays = 0;
  for (unsigned seed = 0; seed < kRounds; ++seed) {
    SCOPED_TRACE(seed);
    Plan(RandomMoves(seed, true).flat());
    for (int run = 0; run < 3; ++run) ExpectSame({{4, 12, 10, 6}, {2, 8, 8, 16}, {1}}, run);
    if (HasFailure()) return;
    replays += device_.last_stream->replays;
  }
  EXPECT_GT(replays, 30);
}

TEST_F(MovedOnDeviceTest, IntoMoreDimensionsThanItsFunctionsTake) {
  const Shape shape = {2, 2, 2, 2, 3, 2, 5, 2, 3};
  swizzle::testing::OnnxBuilder builder;
  builder.Input("x", {4, 12, 10, 6}).Counting("w", {6, 6}).Node("MatMul", {"x", "w"}, {"layer"});
  builder.Node("Transpose", {"layer"}, {"turned"}, {{"perm", Shape{1, 0, 2, 3}}});
  builder.Int64s("shape", {9}, shape).Node("Reshape", {"turned", "shape"}, {"deep"});
  builder.Node("Exp", {"deep"}, {"y"}).Output("y");
  Plan(builder);
  EXPECT_EQ(regional_.interpreted_nodes(), 0u) << regional_.OperatorCounts();
  ExpectSame({{4, 12, 10, 6}});
}

}  // namespace
}  // namespace swizzle::offload
