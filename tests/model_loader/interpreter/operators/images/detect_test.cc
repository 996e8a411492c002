#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/model_loader/interpreter/operators/run_node.h"
#include "tests/support/status_matchers.h"

namespace swizzle::interpreter {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using swizzle::testing::kInvalid;
using swizzle::testing::OnnxBuilder;
using Attributes = std::map<std::string, Attribute>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Four boxes, of which the first two share most of what they cover.
StatusOr<std::vector<Array>> Choose(const std::vector<float>& scores, int64_t most, float overlap,
                                    const Shape& boxes = {1, 4, 4}) {
  OnnxBuilder builder;
  builder.Input("x", {1, 1, static_cast<int64_t>(scores.size())}).Int64s("most", {}, {most});
  builder.Floats("overlap", {}, {overlap});
  builder.Floats("boxes", boxes, {0, 0, 10, 10, 0, 1, 10, 11, 20, 20, 30, 30, 40, 40, 40, 50});
  builder.Node("NonMaxSuppression", {"boxes", "x", "most", "overlap"}, {"y"}).Output("y");
  return Execute(builder, {Floats({1, 1, static_cast<int64_t>(scores.size())}, scores)});
}

TEST(NonMaxSuppression, TakesTheBestFirstAndNoNumberNever) {
  const auto chosen = Choose({0.5f, 0.9f, kNan, 0.7f}, 4, 0.5f);
  ASSERT_THAT(chosen, IsOk());
  EXPECT_EQ(Wholes((*chosen)[0]), (std::vector<int64_t>{0, 0, 1, 0, 0, 3}));
  const auto none = Choose({0.5f, 0.9f, 0.1f, 0.7f}, 0, 0.5f);
  ASSERT_THAT(none, IsOk());
  EXPECT_EQ((*none)[0].shape, (Shape{0, 3}));
  EXPECT_THAT(Choose({0.5f, 0.9f, 0.1f, 0.7f}, -3, 0.5f), IsOk());
  EXPECT_THAT(Choose({0.5f, 0.9f, 0.1f, 0.7f}, std::numeric_limits<int64_t>::max(), 0.5f), IsOk());
}

TEST(NonMaxSuppression, RefusesWhatDoesNotFit) {
  EXPECT_THAT(Choose({1, 2, 3, 4}, 4, 1.5f), IsError(kInvalid, "iou_threshold is 1.5"));
  EXPECT_THAT(Choose({1, 2, 3, 4}, 4, kNan), IsError(kInvalid, "iou_threshold"));
  EXPECT_THAT(Choose({1, 2, 3}, 4, 0.5f), IsError(kInvalid, "NonMaxSuppression node 'y_node': boxes and scores"));
  EXPECT_THAT(Choose({1, 2, 3, 4}, 4, 0.5f, {4, 4, 1}), IsError(kInvalid, "boxes and scores"));
}

StatusOr<std::vector<Array>> Align(const std::vector<float>& roi, int64_t image, const Attributes& attributes) {
  OnnxBuilder builder = OneNode("RoiAlign", {1, 1, 4, 4}, {"x", "roi", "image"}, attributes);
  builder.Floats("roi", {1, 4}, roi).Int64s("image", {1}, {image});
  return Execute(builder, {Floats({1, 1, 4, 4}, std::vector<float>(16, 2.0f))});
}

TEST(RoiAlign, BoundsWhatARegionAsksFor) {
  EXPECT_THAT(Align({0, 0, 3, 3}, 0, {}), IsOk());
  EXPECT_THAT(Align({0, 0, 1e9f, 3}, 0, {}), IsError(kInvalid, "more than 1024 samples a bin"));
  EXPECT_THAT(Align({0, kNan, 3, 3}, 0, {}), IsError(kInvalid, "samples a bin"));
  EXPECT_THAT(Align({kNan, 0, 3, 3}, 0, {{"sampling_ratio", int64_t{2}}}), IsOk());
  EXPECT_THAT(Align({0, 0, 3, 3}, 1, {}), IsError(kInvalid, "there is no image 1"));
  EXPECT_THAT(Align({0, 0, 3, 3}, -1, {}), IsError(kInvalid, "there is no image -1"));
  EXPECT_THAT(Align({0, 0, 3, 3}, 0, {{"output_height", int64_t{0}}}), IsError(kInvalid, "must be positive"));
  EXPECT_THAT(Align({0, 0, 3, 3}, 0, {{"output_height", int64_t{1} << 40}}),
              IsError(StatusCode::kResourceExhausted, "larger than the limit"));
  EXPECT_THAT(Align({0, 0, 3, 3}, 0, {{"sampling_ratio", int64_t{1} << 40}}), IsError(kInvalid, "sampling_ratio"));
  EXPECT_THAT(Align({0, 0, 3, 3}, 0, {{"mode", std::string("median")}}), IsError(kInvalid, "mode is 'median'"));
}

}  // namespace
}  // namespace swizzle::interpreter
