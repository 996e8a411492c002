// Nodes that change nothing cut no region in two, where sizes are free, and the results stay what they are.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/regions/plan_regions.h"
#include "tests/model_loader/offload/on_device.h"

namespace swizzle::regions {
namespace {

using interpreter::Array;
using swizzle::testing::Drawn;
using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;
using swizzle::testing::Weights;
using Ints = std::vector<int64_t>;

// Adds nodes that make `to` of `from` and change nothing.
struct NoOp {
  const char* name;
  std::function<void(OnnxBuilder&, const std::string& from, const std::string& to)> add;
};

NoOp Alone(const char* op, const std::map<std::string, Attribute>& attributes = {}) {
  return {op, [=](OnnxBuilder& b, const std::string& x, const std::string& y) { b.Node(op, {x}, {y}, attributes); }};
}
NoOp With(const char* op, const char* second, bool swapped = false) {
  return {op, [=](OnnxBuilder& b, const std::string& x, const std::string& y) {
            b.Node(op, swapped ? std::vector<std::string>{second, x} : std::vector<std::string>{x, second}, {y});
          }};
}
NoOp ToOwnShape(const char* op) {
  return {op, [=](OnnxBuilder& b, const std::string& x, const std::string& y) {
            b.Node("Shape", {x}, {y + "_shape"}).Node(op, {x, y + "_shape"}, {y});
          }};
}
NoOp And(const char* name, const char* first, const char* second, std::vector<std::string> more,
         const std::map<std::string, Attribute>& of_first = {},
         const std::map<std::string, Attribute>& of_second = {}) {
  return {name, [=](OnnxBuilder& b, const std::string& x, const std::string& y) {
            std::vector<std::string> from = {x}, between = {y + "_between"};
            from.insert(from.end(), more.begin(), more.end());
            between.insert(between.end(), more.begin(), more.end());
            b.Node(first, from, {y + "_between"}, of_first).Node(second, between, {y}, of_second);
          }};
}

// Of values of any rank.
std::vector<NoOp> NoOpsOfAny() {
  return {
      Alone("Identity"),
      Alone("Dropout"),
      Alone("Cast", {{"to", int64_t{1}}}),
      Alone("Sum"),
      Alone("Concat", {{"axis", int64_t{1}}}),
      With("Mul", "one"),
      With("Mul", "one", true),
      With("Div", "one"),
      With("Pow", "one"),
      With("Add", "zero"),
      With("Sub", "zero"),
      With("CastLike", "zero"),
      ToOwnShape("Reshape"),
      ToOwnShape("Expand"),
      And("CastTwice", "Cast", "Cast", {}, {{"to", int64_t{11}}}, {{"to", int64_t{1}}}),
      And("NegTwice", "Neg", "Neg", {}),
      {"Where",
       [](OnnxBuilder& b, const std::string& x, const std::string& y) {
         b.Node("Where", {"truth", x, "zero"}, {y});
       }},
      {"SliceToTheEnd",
       [](OnnxBuilder& b, const std::string& x, const std::string& y) {
         b.Node("Slice", {x, "begin", "end", "second"}, {y});
       }},
      {"SliceToTheSize",
       [](OnnxBuilder& b, const std::string& x, const std::string& y) {
         b.Node("Shape", {x}, {y + "_shape"}).Node("Gather", {y + "_shape", "second"}, {y + "_size"});
         b.Node("Slice", {x, "begin", y + "_size", "second"}, {y});
       }},
  };
}

std::vector<NoOp> NoOpsOfPlanes() {
  std::vector<NoOp> no_ops = NoOpsOfAny();
  const std::vector<NoOp> more = {
      Alone("Transpose", {{"perm", Ints{0, 1, 2, 3}}}),
      Alone("MaxPool", {{"kernel_shape", Ints{1, 1}}}),
      Alone("DepthToSpace", {{"blocksize", int64_t{1}}}),
      With("Pad", "no_pads"),
      With("Tile", "ones_of_four"),
      With("Reshape", "zeros_of_four"),
      And("UnsqueezeSqueeze", "Unsqueeze", "Squeeze", {"second"}),
      And("TransposeBack", "Transpose", "Transpose", {}, {{"perm", Ints{0, 2, 3, 1}}}, {{"perm", Ints{0, 3, 1, 2}}}),
      {"FlatAndBack",
       [](OnnxBuilder& b, const std::string& x, const std::string& y) {
         b.Node("Shape", {x}, {y + "_shape"}).Node("Flatten", {x}, {y + "_flat"}, {{"axis", int64_t{2}}});
         b.Node("Reshape", {y + "_flat", y + "_shape"}, {y});
       }},
      {"ResizeToOwnSize",
       [](OnnxBuilder& b, const std::string& x, const std::string& y) {
         b.Node("Shape", {x}, {y + "_shape"}).Node("Resize", {x, "", "", y + "_shape"}, {y});
       }},
  };
  no_ops.insert(no_ops.end(), more.begin(), more.end());
  return no_ops;
}

std::vector<NoOp> NoOpsOfTokens() {
  std::vector<NoOp> no_ops = NoOpsOfAny();
  const std::vector<NoOp> more = {
      Alone("Transpose", {{"perm", Ints{0, 1, 2}}}),
      With("Reshape", "zero_left_sixteen"),
      And("HeadsAndBack", "Unsqueeze", "Squeeze", {"second"}),
      {"RowsAndBack",
       [](OnnxBuilder& b, const std::string& x, const std::string& y) {
         b.Node("Shape", {x}, {y + "_shape"}).Node("Reshape", {x, "rows"}, {y + "_rows"});
         b.Node("Reshape", {y + "_rows", y + "_shape"}, {y});
       }},
  };
  no_ops.insert(no_ops.end(), more.begin(), more.end());
  return no_ops;
}

void AddConstants(OnnxBuilder& builder) {
  builder.Floats("one", {}, {1}).Floats("zero", {1}, {0}).Int64s("begin", {1}, {0}).Int64s("second", {1}, {1});
  builder.Int64s("end", {1}, {2147483647}).Int64s("no_pads", {8}, Ints(8)).Int64s("ones_of_four", {4}, {1, 1, 1, 1});
  builder.Int64s("zeros_of_four", {4}, {0, 0, 0, -1}).Int64s("zero_left_sixteen", {3}, {0, -1, 16});
  builder.Int64s("rows", {2}, {-1, 16});
  onnx::TensorProto& truth = *builder.graph().add_initializer();
  truth.set_name("truth");
  truth.set_data_type(onnx::TensorProto::BOOL);
  truth.add_dims(1);
  truth.set_raw_data(std::string(1, '\1'));
}

// The last node's output becomes another one's, behind the no-op.
using Last = std::function<std::string(OnnxBuilder&, const std::string&)>;

// A detector of blocks, on planes of any size, or of lines where `planes` is 1.
OnnxBuilder Detector(size_t planes, const Last& behind) {
  OnnxBuilder builder;
  AddConstants(builder);
  Shape input(planes + 2, -1), kernel = {16, 16}, depthwise = {16, 1};
  input[1] = 16;
  kernel.resize(planes + 2, 1);
  depthwise.resize(planes + 2, 3);
  builder.Input("x", input);
  std::string at = "x";
  for (int i = 0; i < 3; ++i) {
    const std::string n = std::to_string(i);
    builder.Floats("w" + n, kernel, Weights(256)).Floats("v" + n, depthwise, Weights(*ElementCount(depthwise)));
    builder.Node("Conv", {at, "w" + n}, {"a" + n});
    builder.Node("Conv", {behind(builder, "a" + n), "v" + n}, {"b" + n},
                 {{"group", int64_t{16}}, {"pads", Ints(2 * planes, 1)}});
    builder.Node("Relu", {behind(builder, "b" + n)}, {"c" + n});
    at = behind(builder, "c" + n);
  }
  return builder.Node("Sigmoid", {at}, {"y"}).Output("y");
}

// Two layers and a residual, of sequences of any length.
OnnxBuilder Encoder(const Last& behind) {
  OnnxBuilder builder;
  AddConstants(builder);
  builder.Input("x", {-1, -1, 16}).Floats("w", {16, 16}, Weights(256)).Floats("v", {16, 16}, Weights(256));
  builder.Node("MatMul", {"x", "w"}, {"a"}).Node("Relu", {behind(builder, "a")}, {"b"});
  builder.Node("MatMul", {behind(builder, "b"), "v"}, {"c"});
  builder.Node("Add", {behind(builder, "c"), "x"}, {"y"});
  return builder.Output("y");
}

std::string AsItIs(OnnxBuilder&, const std::string& value) { return value; }
Last Behind(const NoOp& no_op) {
  return [no_op](OnnxBuilder& builder, const std::string& value) {
    no_op.add(builder, value, value + "_same");
    return value + "_same";
  };
}

class NoOpsTest : public ::testing::Test {
 protected:
  // That as many regions are planned as without, and compute what the file's own nodes do one by one.
  void ExpectAsWithout(const OnnxBuilder& builder, const OnnxBuilder& without, const std::vector<Shape>& shapes) {
    const RegionalProgram regional = Plan(builder);
    EXPECT_EQ(regional.regions.size(), Plan(without).regions.size()) << regional.program->OperatorCounts();
    EXPECT_EQ(regional.interpreted_nodes(), 0u) << regional.program->OperatorCounts();
    const auto as_written =
        *interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes()), {}, interpreter::Nodes::kAll);
    for (const Shape& shape : shapes) {
      const Array expected = Run(*as_written, shape), actual = Run(*regional.program, shape);
      ASSERT_EQ(actual.shape, expected.shape);
      for (size_t i = 0; i < expected.As<float>().size(); ++i) {
        ASSERT_NEAR(actual.As<float>()[i], expected.As<float>()[i], 1e-4) << i;
      }
    }
  }

 private:
  RegionalProgram Plan(const OnnxBuilder& builder) {
    const PlanOptions options{.threads = 1, .tuning_budget = absl::ZeroDuration()};
    return PlanRegions(*interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes())), *backend_, options);
  }
  Array Run(const interpreter::Program& program, const Shape& shape) {
    const std::vector<std::byte> bytes = Drawn(DType::kFloat32, shape, 3);
    const TensorView view{DType::kFloat32, shape, bytes};
    const auto stream = *backend_->NewStream(1);
    const auto outputs = program.Run(std::span(&view, 1), *stream);
    EXPECT_THAT(outputs, IsOk());
    return outputs.ok() ? outputs->at(0) : Array();
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend();
};

TEST_F(NoOpsTest, CutNoDetectorOfPlanesOfAnySize) {
  for (const NoOp& no_op : NoOpsOfPlanes()) {
    SCOPED_TRACE(no_op.name);
    ExpectAsWithout(Detector(2, Behind(no_op)), Detector(2, AsItIs), {{1, 16, 9, 12}, {2, 16, 5, 5}});
  }
}

TEST_F(NoOpsTest, CutNoEncoderOfSequencesOfAnyLength) {
  for (const NoOp& no_op : NoOpsOfTokens()) {
    SCOPED_TRACE(no_op.name);
    ExpectAsWithout(Encoder(Behind(no_op)), Encoder(AsItIs), {{2, 7, 16}, {1, 1, 16}});
  }
}

// No plan takes convolutions over lines: without no-ops, too, they are interpreted, and no node more is.
TEST_F(NoOpsTest, AreNoNodesOfConvolutionsOverLines) {
  const auto nodes = [](const OnnxBuilder& builder) {
    return (*interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes())))->interpreted_nodes();
  };
  for (const NoOp& no_op : NoOpsOfAny()) {
    EXPECT_EQ(nodes(Detector(1, Behind(no_op))), nodes(Detector(1, AsItIs))) << no_op.name;
  }
}

TEST_F(NoOpsTest, OutputsKeepTheirNamesAndTypes) {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1}).Node("Identity", {"x"}, {"same"}).Node("Relu", {"x"}, {"r"});
  builder.Node("Identity", {"r"}, {"twice"}).Output("same").Output("r").Output("twice");
  const auto program = *interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes()));
  ASSERT_EQ(program->outputs().size(), 3u);
  EXPECT_EQ(program->outputs()[0].name, "same");
  EXPECT_EQ(program->outputs()[2].name, "twice");
  EXPECT_EQ(program->graph().nodes.size(), 1u);
  const std::vector<std::byte> bytes = Drawn(DType::kFloat32, {2, 3}, 1);
  const TensorView view{DType::kFloat32, {2, 3}, bytes};
  const auto backend = NewCpuBackend();
  const auto stream = *backend->NewStream(1);
  const auto outputs = program->Run(std::span(&view, 1), *stream);
  ASSERT_THAT(outputs, IsOk());
  EXPECT_TRUE(std::ranges::equal(outputs->at(0).AsBytes(), bytes));
  EXPECT_TRUE(std::ranges::equal(outputs->at(1).AsBytes(), outputs->at(2).AsBytes()));
}

}  // namespace
}  // namespace swizzle::regions
