#include <gtest/gtest.h>

#include <cmath>

#include "tests/model_loader/interpreter/operators/run_node.h"
#include "tests/support/status_matchers.h"

namespace swizzle::interpreter {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using swizzle::testing::kInvalid;
using swizzle::testing::OnnxBuilder;
using Attributes = std::map<std::string, Attribute>;

// Two targets of three classes.
StatusOr<std::vector<Array>> Loss(const std::string& op, const std::vector<int64_t>& targets,
                                  const Attributes& attributes, const Shape& weights = {3}) {
  OnnxBuilder builder = OneNode(op, {2, 3}, {"x", "targets", "weights"}, attributes);
  builder.Int64s("targets", {static_cast<int64_t>(targets.size())}, targets).Counting("weights", weights);
  return Execute(builder, {Floats({2, 3}, {-1, -2, -3, -4, -5, -6})});
}

TEST(Losses, WeighEachClass) {
  const auto mean = Loss("NegativeLogLikelihoodLoss", {2, 0}, {});
  ASSERT_THAT(mean, IsOk());
  EXPECT_EQ((*mean)[0].shape, Shape());
  EXPECT_FLOAT_EQ(Values((*mean)[0])[0], (3.0f * 3 + 1.0f * 4) / 4.0f);
  const auto none =
      Loss("NegativeLogLikelihoodLoss", {2, 7}, {{"reduction", std::string("none")}, {"ignore_index", int64_t{7}}});
  ASSERT_THAT(none, IsOk());
  EXPECT_EQ(Values((*none)[0]), (std::vector<float>{9, 0}));
}

TEST(Losses, RefuseWhatDoesNotFit) {
  for (const char* op : {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}) {
    EXPECT_THAT(Loss(op, {0, 1}, {}), IsOk());
    EXPECT_THAT(Loss(op, {0, 3}, {}), IsError(kInvalid, "target 3 is not one of 3 classes"));
    EXPECT_THAT(Loss(op, {0, -1}, {}), IsError(kInvalid, "target -1 is not one of 3 classes"));
    EXPECT_THAT(Loss(op, {0}, {}), IsError(kInvalid, "targets have shape [1] instead of [2]"));
    EXPECT_THAT(Loss(op, {0, 1}, {}, {2}), IsError(kInvalid, "weights have shape [2] instead of [3]"));
    EXPECT_THAT(Loss(op, {0, 1}, {{"reduction", std::string("max")}}), IsError(kInvalid, "reduction is 'max'"));
  }
}

TEST(Det, OfSingularEmptyAndOddMatrices) {
  const auto det = [](const Shape& shape, const std::vector<float>& values) {
    return Execute(OneNode("Det", shape, {"x"}), {Floats(shape, values)});
  };
  EXPECT_FLOAT_EQ(Values((*det({2, 2}, {0, 2, 3, 4}))[0])[0], -6.0f);
  EXPECT_EQ(Values((*det({2, 2}, {1, 2, 2, 4}))[0])[0], 0.0f);
  EXPECT_EQ(Values((*det({0, 0}, {}))[0])[0], 1.0f);
  EXPECT_THAT(det({2, 3}, std::vector<float>(6)), IsError(kInvalid, "its matrices square"));
}

TEST(MaxUnpool, ChecksIndicesAndShapes) {
  const auto unpool = [](const std::vector<int64_t>& indices, const std::vector<int64_t>& to,
                         const Attributes& attributes) {
    OnnxBuilder builder = OneNode("MaxUnpool", {1, 1, 2, 2}, {"x", "indices", to.empty() ? "" : "to"}, attributes);
    builder.Int64s("indices", {1, 1, 2, 2}, indices).Int64s("to", {static_cast<int64_t>(to.size())}, to);
    return Execute(builder, {Floats({1, 1, 2, 2}, {1, 2, 3, 4})});
  };
  using Ints = std::vector<int64_t>;
  const Attributes two = {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  const auto larger = unpool({0, 5, 10, 15}, {1, 1, 4, 5}, two);
  ASSERT_THAT(larger, IsOk());
  EXPECT_EQ(Values((*larger)[0])[6], 2.0f);
  EXPECT_THAT(unpool({0, 5, 10, 16}, {}, two), IsError(kInvalid, "index 16 is not one of 16"));
  EXPECT_THAT(unpool({0, -1, 10, 15}, {}, two), IsError(kInvalid, "index -1"));
  EXPECT_THAT(unpool({0, 5, 10, 15}, {1, 1, 4, 3}, two), IsError(kInvalid, "it must be at least [1,1,4,4]"));
  EXPECT_THAT(unpool({0, 5, 10, 15}, {}, {{"kernel_shape", Ints{2}}}), IsError(kInvalid, "kernel_shape"));
  EXPECT_THAT(unpool({0, 5, 10, 15}, {}, {{"kernel_shape", Ints{1, 1}}, {"pads", Ints{9, 9, 9, 9}}}),
              IsError(kInvalid, "pads are larger"));
}

}  // namespace
}  // namespace swizzle::interpreter
