#include <gtest/gtest.h>

#include <limits>

#include "tests/model_loader/interpreter/operators/run_node.h"
#include "tests/support/status_matchers.h"

namespace swizzle::interpreter {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using swizzle::testing::kInvalid;
using Attributes = std::map<std::string, Attribute>;

StatusOr<std::vector<Array>> Sample(const std::vector<float>& grid, const Attributes& attributes) {
  auto builder = OneNode("GridSample", {1, 1, 2, 2}, {"x", "grid"}, attributes);
  builder.Floats("grid", {1, 1, static_cast<int64_t>(grid.size()) / 2, 2}, grid);
  return Execute(builder, {Floats({1, 1, 2, 2}, {1, 2, 3, 4})});
}

// A client may send any grid.
TEST(GridSample, TakesPlacesThatAreNoneOrFarAway) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(),
                  kNoNumber = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> grid = {kInfinity, 0, -kInfinity, -kInfinity, kNoNumber, kNoNumber, 1e30f, -1e30f};
  for (const char* mode : {"nearest", "bilinear", "bicubic"}) {
    const auto zeros = Sample(grid, {{"mode", std::string(mode)}});
    ASSERT_THAT(zeros, IsOk());
    EXPECT_EQ(Values((*zeros)[0]), (std::vector<float>{0, 0, 0, 0})) << mode;
    const auto border = Sample(grid, {{"mode", std::string(mode)}, {"padding_mode", std::string("border")}});
    ASSERT_THAT(border, IsOk());
    EXPECT_FLOAT_EQ(Values((*border)[0])[1], 1.0f) << mode;
    EXPECT_THAT(Sample(grid, {{"mode", std::string(mode)}, {"padding_mode", std::string("reflection")}}), IsOk());
  }
}

TEST(GridSample, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(Sample({0, 0}, {{"mode", std::string("area")}}), IsError(kInvalid, "mode is 'area'"));
  EXPECT_THAT(Sample({0, 0}, {{"padding_mode", std::string("wrap")}}), IsError(kInvalid, "padding_mode is 'wrap'"));
  auto builder = OneNode("GridSample", {1, 1, 2, 3}, {"x", "x"});
  EXPECT_THAT(Execute(builder, {Floats({1, 1, 2, 3}, std::vector<float>(6))}),
              IsError(kInvalid, "GridSample node 'y_node': image and grid have shapes [1,1,2,3] and [1,1,2,3]"));
  auto volume = OneNode("GridSample", {1, 1, 1, 1, 2}, {"x", "x"}, {}, 20);
  EXPECT_THAT(Execute(volume, {Floats({1, 1, 1, 1, 2}, {1, 2})}),
              IsError(StatusCode::kUnimplemented, "volumes are not supported"));
}

}  // namespace
}  // namespace swizzle::interpreter
