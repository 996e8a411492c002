// What moves elements on a device, in any order with what computes there.
#include <gtest/gtest.h>

#include "tests/model_loader/fallback/random_moves.h"
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

}  // namespace
}  // namespace swizzle::offload
