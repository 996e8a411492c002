#include <gtest/gtest.h>

#include "tests/model_loader/interpreter/operators/run_node.h"
#include "tests/support/status_matchers.h"

namespace swizzle::interpreter {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using swizzle::testing::kInvalid;
using swizzle::testing::OnnxBuilder;

// The sequence s of the rows of x, [3,2].
OnnxBuilder Rows() {
  OnnxBuilder builder;
  builder.Input("x", {3, 2}).Int64s("one", {}, {1}).Int64s("minus", {}, {-4}).Int64s("lengths", {2}, {2, 2});
  builder.Node("SplitToSequence", {"x"}, {"s"}, {{"keepdims", int64_t{0}}});
  return builder;
}

const std::vector<Tensor> kX = {Floats({3, 2}, {1, 2, 3, 4, 5, 6})};

TEST(Sequences, AreTakenApartAndPutTogether) {
  OnnxBuilder builder = Rows();
  builder.Node("SequenceAt", {"s", "one"}, {"row"}).Node("SequenceErase", {"s", "one"}, {"fewer"});
  builder.Node("SequenceInsert", {"fewer", "row"}, {"turned"});
  builder.Node("ConcatFromSequence", {"turned"}, {"y"}, {{"axis", int64_t{1}}, {"new_axis", int64_t{1}}}).Output("y");
  const auto outputs = Execute(builder, kX);
  ASSERT_THAT(outputs, IsOk());
  EXPECT_EQ((*outputs)[0].shape, (Shape{2, 3}));
  EXPECT_EQ(Values((*outputs)[0]), (std::vector<float>{1, 5, 3, 2, 6, 4}));
}

TEST(Sequences, AreNoTensors) {
  OnnxBuilder sum = Rows();
  sum.Node("Add", {"x", "s"}, {"y"}).Output("y");
  EXPECT_THAT(Execute(sum, kX), IsError(kInvalid, "Add node 'y_node': input 1 is a sequence; it must be a tensor"));
  OnnxBuilder output = Rows();
  output.Output("s");
  EXPECT_THAT(Execute(output, kX), IsError(StatusCode::kUnimplemented, "output 's' is a sequence"));
  OnnxBuilder nested = Rows();
  nested.Node("SequenceConstruct", {"x", "s"}, {"y"}).Output("y");
  EXPECT_THAT(Execute(nested, kX), IsError(kInvalid, "input 1 must be a tensor"));
  OnnxBuilder tensor = Rows();
  tensor.Node("SequenceLength", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(Execute(tensor, kX), IsError(kInvalid, "input 0 must be a sequence"));
  OnnxBuilder place = Rows();
  place.Node("SequenceAt", {"s", "s"}, {"y"}).Output("y");
  EXPECT_THAT(Execute(place, kX), IsError(kInvalid, "input 1 must be a tensor"));
}

TEST(Sequences, HavePlacesAndOneType) {
  OnnxBuilder beyond = Rows();
  beyond.Node("SequenceAt", {"s", "minus"}, {"y"}).Output("y");
  EXPECT_THAT(Execute(beyond, kX), IsError(kInvalid, "there is no place -4 in a sequence of 3"));
  OnnxBuilder mixed = Rows();
  mixed.Node("SequenceInsert", {"s", "one"}, {"t"}).Node("SequenceLength", {"t"}, {"y"}).Output("y");
  EXPECT_THAT(Execute(mixed, kX), IsError(kInvalid, "a sequence of FP32 is given INT64"));
  OnnxBuilder empty;
  empty.Input("x", {3, 2}).Node("SequenceEmpty", {}, {"s"}).Node("SequenceErase", {"s"}, {"t"});
  empty.Node("SequenceLength", {"t"}, {"y"}).Output("y");
  EXPECT_THAT(Execute(empty, kX), IsError(kInvalid, "the sequence is empty"));
  OnnxBuilder lengths;
  lengths.Input("x", {3, 2}).Int64s("lengths", {2}, {2, 2}).Node("SplitToSequence", {"x", "lengths"}, {"s"});
  lengths.Node("SequenceLength", {"s"}, {"y"}).Output("y");
  EXPECT_THAT(Execute(lengths, kX), IsError(kInvalid, "do not add up to 3"));
  OnnxBuilder ragged = Rows();
  ragged.Node("SequenceInsert", {"s", "x"}, {"t"}).Node("ConcatFromSequence", {"t"}, {"y"}, {{"axis", int64_t{0}}});
  EXPECT_THAT(Execute(ragged.Output("y"), kX), IsError(kInvalid, "[2] and [3,2] cannot be put together"));
}

}  // namespace
}  // namespace swizzle::interpreter
