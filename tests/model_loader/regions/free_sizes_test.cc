#include "model_loader/regions/free_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/regions/survey.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle::regions {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;
using ::testing::ElementsAre;

constexpr auto kHopeless = StatusCode::kFailedPrecondition;

class FreeSizesTest : public ::testing::Test {
 protected:
  StatusOr<Survey> SurveyOf(const OnnxBuilder& builder, const SampleShapes& samples = {}) {
    SWIZZLE_ASSIGN_OR_RETURN(program_, interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes())));
    SWIZZLE_ASSIGN_OR_RETURN(const auto stream, backend_->NewStream(1));
    return SurveyProgram(*program_, *stream, {}, samples);
  }

  // The inputs' shapes of the run that went through.
  std::vector<Shape> FoundFor(const OnnxBuilder& builder) {
    const StatusOr<Survey> survey = SurveyOf(builder);
    EXPECT_THAT(survey, IsOk());
    return survey.ok() ? survey->inputs.shapes : std::vector<Shape>();
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend();
  std::shared_ptr<const interpreter::Program> program_;
};

void Name(OnnxBuilder& builder, int input, int axis, const std::string& name) {
  auto& type = *builder.graph().mutable_input(input)->mutable_type()->mutable_tensor_type();
  type.mutable_shape()->mutable_dim(axis)->set_dim_param(name);
}

TEST_F(FreeSizesTest, DimensionsOfOneNameAreOne) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 16}).Input("edges", {2, -1}).Input("weight", {-1}).Input("y", {-1, -1});
  builder.Node("Identity", {"x"}, {"z"}).Output("z");
  Name(builder, 0, 0, "nodes");
  Name(builder, 1, 1, "edges");
  Name(builder, 2, 0, "edges");
  Name(builder, 3, 0, "None");
  Name(builder, 3, 1, "None");
  const auto program = *interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes()));
  const std::vector<FreeDimension> dimensions = FreeDimensionsOf(program->inputs());
  ASSERT_EQ(dimensions.size(), 4u);
  EXPECT_EQ(dimensions[0].name, "nodes");
  EXPECT_TRUE(dimensions[0].counts_rows);
  EXPECT_THAT(dimensions[1].places, ElementsAre(std::pair(1u, 1u), std::pair(2u, 0u)));
  EXPECT_FALSE(dimensions[1].counts_rows);
  EXPECT_THAT(dimensions[2].places, ElementsAre(std::pair(3u, 0u))) << "which is no name";
  EXPECT_TRUE(dimensions[2].counts_rows);
  EXPECT_FALSE(dimensions[3].counts_rows);
  EXPECT_EQ(ShapesOf(program->inputs(), dimensions, {5, 7, 2, 3}), (std::vector<Shape>{{5, 16}, {2, 7}, {7}, {2, 3}}));
}

TEST_F(FreeSizesTest, AreSmallWhereTheyMayBe) {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1}).Node("Tan", {"x"}, {"y"}).Output("y");
  const auto survey = SurveyOf(builder);
  ASSERT_THAT(survey, IsOk());
  EXPECT_THAT(survey->inputs.shapes, ElementsAre(Shape{2, 64}));
  EXPECT_TRUE(survey->shapes_follow);
  EXPECT_EQ(survey->other_shapes[0], (Shape{3, 32}));
}

// What shapes go by is computed beside what is left out, and so is what no input has a part in.
TEST_F(FreeSizesTest, ShapesAreThoseOfARunThatComputesAll) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 6}).Int64s("zero", {1}, {0}).Int64s("rest", {2}, {2, -1}).Floats("two", {}, {2.0f});
  builder.Node("Exp", {"x"}, {"e"}).Node("Shape", {"e"}, {"shape"}).Node("Gather", {"shape", "zero"}, {"rows"});
  builder.Node("Concat", {"rows", "rest"}, {"target"}, {{"axis", int64_t{0}}}).Node("Reshape", {"e", "target"}, {"r"});
  builder.Node("Mul", {"two", "two"}, {"four"}).Node("Mul", {"r", "four"}, {"y"}).Output("y");
  const auto survey = SurveyOf(builder);
  ASSERT_THAT(survey, IsOk());
  const auto value = static_cast<size_t>(program_->graph().outputs[0].value);
  EXPECT_EQ(survey->shapes[value], (Shape{2, 2, 3}));
  EXPECT_EQ(survey->other_shapes[value], (Shape{3, 2, 3}));
  const bool knows_four = std::ranges::any_of(survey->known, [](const auto& known) {
    return known.second.elements() == 1 && known.second.dtype == DType::kFloat32 &&
           known.second.template As<float>()[0] == 4.0f;
  });
  EXPECT_TRUE(knows_four);
}

TEST_F(FreeSizesTest, AreThoseOfSamplesBeforeAllOthers) {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1})
      .Input("y", {-1, -1})
      .Node("Add", {"x", "y"}, {"s"})
      .Node("Tan", {"s"}, {"z"})
      .Output("z");
  const auto survey = SurveyOf(builder, {{{"x", {1, 41}}, {"y", {1, 41}}}, {{"x", {1, 17}}, {"y", {1, 17}}}});
  ASSERT_THAT(survey, IsOk());
  EXPECT_THAT(survey->inputs.shapes, ElementsAre(Shape{2, 41}, Shape{2, 41}));
  EXPECT_EQ(survey->other_shapes[0], (Shape{3, 17}));
  for (const SampleShapes& useless : {SampleShapes{{{"x", {1, 41}}}}, SampleShapes{{{"x", {41}}, {"y", {41}}}},
                                      SampleShapes{{{"x", {1, 41}}, {"y", {1, 42}}}},
                                      SampleShapes{{{"x", {1, 0}}, {"y", {1, 0}}}}, SampleShapes{{}}}) {
    const auto without = SurveyOf(builder, useless);
    ASSERT_THAT(without, IsOk());
    EXPECT_THAT(without->inputs.shapes, ElementsAre(Shape{2, 64}, Shape{2, 64}));
  }
}

TEST_F(FreeSizesTest, ReachOverWindows) {
  OnnxBuilder sound;
  sound.Input("x", {-1, 1, -1}).Counting("w", {2, 1, 400}).Counting("v", {3, 2, 9});
  sound.Node("Conv", {"x", "w"}, {"c"}, {{"strides", std::vector<int64_t>{160}}});
  sound.Node("Conv", {"c", "v"}, {"d"}).Node("Tan", {"d"}, {"y"}).Output("y");
  const std::vector<Shape> found = FoundFor(sound);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_GE(found[0][2], 400 + 8 * 160);
  EXPECT_LT(found[0][2], 4 * (400 + 8 * 160));

  OnnxBuilder plane;
  plane.Input("x", {-1, 1, -1, -1}).Node("MaxPool", {"x"}, {"p"}, {{"kernel_shape", std::vector<int64_t>{300, 7}}});
  plane.Node("Tan", {"p"}, {"y"}).Output("y");
  EXPECT_THAT(FoundFor(plane), ElementsAre(Shape{2, 1, 300, 64}));
  OnnxBuilder dilated;
  dilated.Input("x", {-1, 1, -1}).Counting("w", {2, 1, 50});
  dilated.Node("Conv", {"x", "w"}, {"c"}, {{"dilations", std::vector<int64_t>{9}}})
      .Node("Tan", {"c"}, {"y"})
      .Output("y");
  EXPECT_GE(FoundFor(dilated)[0][2], 49 * 9 + 1);
}

TEST_F(FreeSizesTest, AreThoseOfConstants) {
  OnnxBuilder product;
  product.Input("x", {-1, -1}).Counting("w", {37, 5}).Node("MatMul", {"x", "w"}, {"y"}).Output("y");
  EXPECT_THAT(FoundFor(product), ElementsAre(Shape{2, 37}));
  OnnxBuilder sum;
  sum.Input("x", {-1, -1, 3})
      .Counting("c", {11, 1})
      .Node("Add", {"x", "c"}, {"s"})
      .Node("Tan", {"s"}, {"y"})
      .Output("y");
  EXPECT_THAT(FoundFor(sum), ElementsAre(Shape{2, 11, 3}));
  OnnxBuilder reshaped;
  reshaped.Input("x", {-1, -1}).Int64s("shape", {3}, {-1, 7, 11}).Node("Reshape", {"x", "shape"}, {"r"});
  reshaped.Node("Tan", {"r"}, {"y"}).Output("y");
  EXPECT_EQ(FoundFor(reshaped)[0][1] * 2 % 77, 0);
  OnnxBuilder split;
  split.Input("x", {-1, -1})
      .Int64s("sizes", {2}, {13, 29})
      .Node("Split", {"x", "sizes"}, {"a", "b"}, {{"axis", int64_t{1}}});
  split.Node("Tan", {"a"}, {"y"}).Output("y").Node("Tan", {"b"}, {"z"}).Output("z");
  EXPECT_THAT(FoundFor(split), ElementsAre(Shape{2, 42}));
}

TEST_F(FreeSizesTest, AreThoseOfOtherInputs) {
  OnnxBuilder beside;  // one size in two places, without a name
  beside.Input("x", {-1, -1, 4}).Input("weight", {-1}).Int64s("axes", {1}, {1});
  beside.Node("Unsqueeze", {"weight", "axes"}, {"column"}).Node("Mul", {"x", "column"}, {"m"});
  beside.Node("Tan", {"m"}, {"y"}).Output("y");
  const std::vector<Shape> found = FoundFor(beside);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0][1], found[1][0]);
  OnnxBuilder joined;
  joined.Input("x", {-1, 5}).Input("past", {-1, 9, -1}).Int64s("axes", {1}, {1});
  joined.Node("Unsqueeze", {"x", "axes"}, {"u"}).Node("Concat", {"past", "u"}, {"c"}, {{"axis", int64_t{1}}});
  joined.Node("Tan", {"c"}, {"y"}).Output("y");
  EXPECT_THAT(FoundFor(joined), ElementsAre(Shape{2, 5}, Shape{2, 9, 5}));
}

TEST_F(FreeSizesTest, AnotherRunHasOtherSizesWhereThereAreSuch) {
  OnnxBuilder frames;
  frames.Input("x", {-1, -1}).Int64s("shape", {3}, {0, -1, 105}).Node("Reshape", {"x", "shape"}, {"r"});
  frames.Node("Tan", {"r"}, {"y"}).Output("y");
  const auto survey = SurveyOf(frames);
  ASSERT_THAT(survey, IsOk());
  EXPECT_TRUE(survey->shapes_follow);
  const auto x = static_cast<size_t>(program_->graph().inputs[0]);
  const Shape &one = *survey->shapes[x], &other = *survey->other_shapes[x];
  EXPECT_NE(one[0], other[0]);
  EXPECT_NE(one[1], other[1]);
}

TEST_F(FreeSizesTest, OnesAreTriedWhereZerosAreRefused) {
  OnnxBuilder builder;
  builder.Int64Input("step", {}).Int64s("none", {}, {0}).Int64s("ten", {}, {10});
  builder.Node("Range", {"none", "ten", "step"}, {"y"}).Output("y");
  const auto survey = SurveyOf(builder);
  ASSERT_THAT(survey, IsOk());
  EXPECT_EQ(survey->inputs.element, 1);
}

// What no request can satisfy.
TEST_F(FreeSizesTest, RefusesWhatNoSizeMends) {
  const auto said = [&](const std::string& op, const Shape& x, const std::vector<std::string>& inputs,
                        const std::map<std::string, Attribute>& attributes = {}) {
    OnnxBuilder builder;
    builder.Input("x", x).Counting("w", {9, 4}).Counting("v", {3, 1}).Counting("b", {1, 4}).Counting("k", {8, 3, 5});
    builder.Int64s("n", {2}, {3, 4}).Int64s("far", {1}, {100});
    builder.Node(op, inputs, {"y"}, attributes).Output("y");
    return SurveyOf(builder);
  };
  EXPECT_THAT(said("MatMul", {-1, 8}, {"x", "w"}), IsError(kHopeless, "MatMul node 'y_node': matrices of shapes"));
  EXPECT_THAT(said("MatMul", {-1, -1, 8}, {"x", "w"}), IsError(kHopeless, "the model is at fault"));
  EXPECT_THAT(said("Gemm", {-1, 3}, {"x", "v", "b"}), IsError(kHopeless, "input 2 does not broadcast"));
  EXPECT_THAT(said("Add", {-1, 5}, {"x", "w"}), IsError(kHopeless, "Add node 'y_node'"));
  EXPECT_THAT(said("Add", {-1, 4}, {"x", "n"}), IsError(kHopeless, "types FP32 and INT64"));
  EXPECT_THAT(said("Conv", {-1, 4, -1}, {"x", "k"}), IsError(kHopeless, "Conv node"));
  EXPECT_THAT(said("Softmax", {-1, -1}, {"x"}, {{"axis", int64_t{2}}}), IsError(kHopeless, "axis 2 is not one of 2"));
  EXPECT_THAT(said("Concat", {-1, 5}, {"x", "w"}, {{"axis", int64_t{0}}}), IsError(kHopeless, "Concat node"));
  EXPECT_THAT(said("Split", {-1, 5}, {"x", "n"}, {{"axis", int64_t{1}}}), IsError(kHopeless, "Split node"));
  EXPECT_THAT(said("Reshape", {4, 5}, {"x", "n"}), IsError(kHopeless, "Reshape node"));
  EXPECT_THAT(said("Transpose", {-1, 5}, {"x"}, {{"perm", std::vector<int64_t>{0, 2, 1}}}), IsError(kHopeless, "perm"));
  EXPECT_THAT(said("Gather", {-1, 5}, {"w", "x"}), IsError(kHopeless, "Gather node"));
  EXPECT_THAT(said("Gather", {-1, 5}, {"x", "far"}, {{"axis", int64_t{1}}}), IsError(kHopeless, "Gather node"));
  EXPECT_THAT(said("Where", {-1, 5}, {"x", "x", "x"}), IsError(kHopeless, "the condition must be BOOL"));
  EXPECT_THAT(said("DepthToSpace", {-1, 7, -1, -1}, {"x"}, {{"blocksize", int64_t{2}}}), IsError(kHopeless, "Depth"));
  EXPECT_THAT(said("BitShift", {-1, 5}, {"x", "x"}, {{"direction", "UP"}}), IsError(kHopeless, "BitShift node"));
}

TEST_F(FreeSizesTest, RefusesNothingThatSomeRequestCanDo) {
  const auto is_refused = [&](const OnnxBuilder& builder) { return SurveyOf(builder).status().code() == kHopeless; };
  OnnxBuilder indices;  // zeros and ones are no rows of it, but other numbers are
  indices.Int64Input("i", {-1}).Floats("t", {3, 2}, {0, 0, 0, 0, 0, 0}).Int64s("four", {}, {4});
  indices.Node("Sub", {"i", "four"}, {"s"})
      .Node("Sub", {"s", "four"}, {"j"})
      .Node("Gather", {"t", "j"}, {"y"})
      .Output("y");
  EXPECT_FALSE(is_refused(indices));
  OnnxBuilder parts;  // of lengths that the request gives
  parts.Input("x", {7}).Int64Input("lengths", {3}).Node("Split", {"x", "lengths"}, {"a", "b", "c"}).Output("a");
  parts.Output("b").Output("c");
  EXPECT_FALSE(is_refused(parts));
  OnnxBuilder counted;  // as many as an element says, and no size of an input does
  counted.Input("x", {}).Int64s("none", {}, {0}).Int64s("one", {}, {1}).Int64s("shape", {2}, {3, 5});
  counted.Node("Cast", {"x"}, {"n"}, {{"to", int64_t{7}}}).Node("Range", {"none", "n", "one"}, {"r"});
  counted.Node("Reshape", {"r", "shape"}, {"y"}).Output("y");
  EXPECT_FALSE(is_refused(counted));
  OnnxBuilder chosen;  // a branch that no input of zeros or ones leaves
  chosen.Input("x", {2}).Floats("limit", {}, {5}).Node("ReduceMax", {"x"}, {"top"}, {{"keepdims", int64_t{0}}});
  chosen.Node("Greater", {"top", "limit"}, {"high"}).Node("If", {"high"}, {"y"}).Output("y");
  OnnxBuilder taken, refusing;
  taken.Node("Tan", {"x"}, {"t"}).Output("t");
  refusing.Node("Softmax", {"x"}, {"s"}, {{"axis", int64_t{4}}}).Output("s");
  chosen.Body("then_branch", {}, taken).Body("else_branch", {}, refusing);
  const auto survey = SurveyOf(chosen);
  EXPECT_THAT(survey, IsError(StatusCode::kInvalidArgument, "it runs on inputs of no size that was tried: If node"));
}

TEST_F(FreeSizesTest, ConstantsThatGrowWithoutEndAreNotComputedBeforehand) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 4}).Counting("c0", {1024, 4});
  for (int i = 0; i < 40; ++i) {
    const std::string grown = Concat("c", i), twice = Concat("c", i + 1);
    builder.Node("Concat", {grown, grown}, {twice}, {{"axis", int64_t{0}}});
  }
  builder.Node("ReduceMax", {"c40"}, {"top"}).Node("Add", {"x", "top"}, {"y"}).Output("y");
  EXPECT_THAT(SurveyOf(builder), IsError(StatusCode::kResourceExhausted, "bytes of constants alone"));
}

}  // namespace
}  // namespace swizzle::regions
