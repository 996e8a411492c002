// Regions on inputs of which some have one row where others have several, and on such without any.
#include "model_loader/regions/row_counts.h"

#include <gtest/gtest.h>

#include "tests/model_loader/offload/on_device.h"

namespace swizzle::regions {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::OnDeviceTest;
using swizzle::testing::OnnxBuilder;
using swizzle::testing::Weights;

// x [batch, S, 16] by a layer, and z [batch, T, 4] added to it; "m" is made before they meet.
OnnxBuilder Sums() {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1, 16}).Input("z", {-1, -1, 4});
  builder.Floats("w", {16, 4}, Weights(64)).Floats("v", {4, 4}, Weights(16));
  builder.Node("MatMul", {"x", "w"}, {"a"}).Node("MatMul", {"z", "v"}, {"m"}).Node("Add", {"a", "m"}, {"y"});
  return builder.Output("y").Output("m");
}

// Each of them, on the host and on a device.
class RowCountsTest : public OnDeviceTest {
 protected:
  void ExpectSameOnBoth(const std::vector<Shape>& shapes) {
    SCOPED_TRACE(Concat(ShapeText(shapes.front()), " and ", ShapeText(shapes.back())));
    ExpectSame(shapes);
    const PlanOptions options{.threads = 1, .tuning_budget = absl::ZeroDuration()};
    const RegionalProgram on_host = PlanRegions(program_, *host_, options);
    ASSERT_FALSE(on_host.regions.empty()) << on_host.unplanned;
    runner_.swap(on_host_runner_ = *on_host.NewRunner(*host_, 1));
    ExpectSame(shapes);
    runner_.swap(on_host_runner_);
  }

  std::unique_ptr<interpreter::ProgramRunner> on_host_runner_;
};

TEST_F(RowCountsTest, OnesAreRepeated) {
  Plan(Sums());
  EXPECT_EQ(regional_.regions.size(), 1u);
  ExpectSameOnBoth({{2, 3, 16}, {2, 3, 4}});
  ExpectSameOnBoth({{2, 3, 16}, {2, 1, 4}});
  ExpectSameOnBoth({{2, 1, 16}, {2, 3, 4}});
  ExpectSameOnBoth({{1, 3, 16}, {2, 3, 4}});
  ExpectSameOnBoth({{2, 1, 16}, {1, 5, 4}});
}

// x and z never meet; s goes to both.
TEST_F(RowCountsTest, WhatMeetsInRowsOfOneAloneHasRowsOfItsOwn) {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1, 16}).Input("z", {-1, -1, 4}).Input("s", {-1, -1, 4});
  builder.Floats("w", {16, 4}, Weights(64)).Floats("v", {4, 4}, Weights(16)).Floats("u", {4, 4}, Weights(16));
  builder.Node("MatMul", {"x", "w"}, {"a"}).Node("MatMul", {"z", "v"}, {"m"}).Node("MatMul", {"s", "u"}, {"t"});
  builder.Node("Add", {"a", "t"}, {"y"}).Node("Add", {"m", "t"}, {"n"}).Output("y").Output("n").Output("t");
  Plan(builder);
  ASSERT_EQ(regional_.regions.size(), 1u);
  ExpectSameOnBoth({{2, 3, 16}, {2, 5, 4}, {2, 1, 4}});
  ExpectSameOnBoth({{2, 3, 16}, {5, 3, 4}, {1, 3, 4}});
  ExpectSameOnBoth({{3, 2, 16}, {5, 7, 4}, {1, 1, 4}});
  ExpectSameOnBoth({{2, 3, 16}, {2, 0, 4}, {1, 1, 4}});
  ExpectSameOnBoth({{0, 3, 16}, {2, 5, 4}, {1, 1, 4}});
}

TEST_F(RowCountsTest, ImagesOfOneAreRepeatedForABatch) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 3, 8, 8}).Input("z", {-1, 4, 8, 8}).Floats("w", {4, 3, 1, 1}, Weights(12));
  builder.Node("Conv", {"x", "w"}, {"a"}).Node("Add", {"a", "z"}, {"s"}).Node("Relu", {"s"}, {"y"}).Output("y");
  Plan(builder);
  ExpectSameOnBoth({{3, 3, 8, 8}, {1, 4, 8, 8}});
  ExpectSameOnBoth({{1, 3, 8, 8}, {3, 4, 8, 8}});
}

TEST_F(RowCountsTest, EmptyInputsMakeEmptyResults) {
  Plan(Sums());
  ExpectSameOnBoth({{1, 0, 16}, {1, 0, 4}});
  ExpectSameOnBoth({{0, 3, 16}, {0, 3, 4}});
  ExpectSameOnBoth({{2, 0, 16}, {2, 0, 4}});
  ExpectSameOnBoth({{2, 0, 16}, {2, 1, 4}});
  ExpectSameOnBoth({{2, 1, 16}, {2, 0, 4}});
  OnnxBuilder one;
  one.Input("x", {-1, -1, 16}).Floats("w", {16, 5}, Weights(80)).Floats("b", {5}, Weights(5));
  one.Node("MatMul", {"x", "w"}, {"m"}).Node("Add", {"m", "b"}, {"y"}).Output("y");
  Plan(one);
  ExpectSameOnBoth({{1, 0, 16}});
}

TEST_F(RowCountsTest, PlanesWithoutElementsAreInterpreted) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 3, -1, -1}).Floats("w", {4, 3, 1, 1}, Weights(12));
  builder.Node("Conv", {"x", "w"}, {"a"}).Node("Relu", {"a"}, {"y"}).Output("y");
  Plan(builder);
  ExpectSameOnBoth({{1, 3, 8, 8}});
  for (const Shape& shape : {Shape{1, 3, 0, 5}, Shape{1, 3, 5, 0}, Shape{0, 3, 5, 5}}) {
    const auto inputs = Inputs({shape}, 0);
    const auto stream = *host_->NewStream(1);
    const Outputs expected = program_->Run(Views({shape}, inputs), *stream);
    const Outputs actual = runner_->Run(Views({shape}, inputs));
    EXPECT_EQ(actual.status().code(), expected.status().code()) << ShapeText(shape) << actual.status();
    if (!actual.ok() || !expected.ok()) continue;
    EXPECT_EQ(actual->at(0).shape, expected->at(0).shape);
  }
}

TEST_F(RowCountsTest, WhatDoesNotBroadcastIsTheRequestsMistake) {
  Plan(Sums());
  const std::vector<Shape> shapes = {{2, 3, 16}, {2, 5, 4}};
  const auto inputs = Inputs(shapes, 0);
  EXPECT_THAT(runner_->Run(Views(shapes, inputs)), IsError(StatusCode::kInvalidArgument, "do not broadcast"));
}

}  // namespace
}  // namespace swizzle::regions
