#include "model_loader/interpreter/run/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "tests/model_loader/interpreter/operators/run_node.h"
#include "tests/support/status_matchers.h"

namespace swizzle::interpreter {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using swizzle::testing::kInvalid;
using swizzle::testing::OnnxBuilder;

constexpr auto kTooLarge = StatusCode::kResourceExhausted;

TEST(Interpreter, BroadcastsAndFusesNothing) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 3}).Floats("b", {3}, {1, 2, 3}).Node("Add", {"x", "b"}, {"s"}).Node("Relu", {"s"}, {"y"});
  builder.Output("y");
  const auto outputs = Execute(builder, {Floats({2, 3}, {-5, 0, 1, 1, -2, -4})});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_EQ((*outputs)[0].shape, (Shape{2, 3}));
  EXPECT_EQ(Values((*outputs)[0]), (std::vector<float>{0, 2, 4, 2, 0, 0}));
}

TEST(Interpreter, FindsShapesAsItRuns) {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1, 4});
  builder.Int64s("axis0", {1}, {0}).Int64s("minus", {1}, {-1});
  builder.Node("Shape", {"x"}, {"shape"}).Node("Gather", {"shape", "axis0"}, {"batch"});
  builder.Node("Concat", {"batch", "minus"}, {"target"}, {{"axis", int64_t{0}}});
  builder.Node("Reshape", {"x", "target"}, {"y"}).Output("y");
  for (const int64_t batch : {1, 2, 3}) {
    const auto outputs =
        Execute(builder, {Floats({batch, 5, 4}, std::vector<float>(static_cast<size_t>(batch * 20), 1))});
    ASSERT_THAT(outputs, IsOk());
    EXPECT_EQ((*outputs)[0].shape, (Shape{batch, 20}));
  }
}

TEST(Interpreter, ThreadsShareAProductAndGiveTheSameResult) {
  std::vector<float> x(70 * 33), w(33 * 50);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3;
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 5) - 2;
  OnnxBuilder builder = OneNode("MatMul", {-1, 33}, {"x", "w"});
  builder.Floats("w", {33, 50}, w);
  const auto one = Execute(builder, {Floats({70, 33}, x)}, {}, 1);
  const auto three = Execute(builder, {Floats({70, 33}, x)}, {}, 3);
  ASSERT_THAT(one, IsOk());
  ASSERT_THAT(three, IsOk());
  for (size_t row = 0; row < 70; ++row) {
    for (size_t column = 0; column < 50; ++column) {
      float sum = 0;
      for (size_t k = 0; k < 33; ++k) sum += x[row * 33 + k] * w[k * 50 + column];
      ASSERT_EQ(Values((*one)[0])[row * 50 + column], sum);
    }
  }
  EXPECT_EQ(Values((*one)[0]), Values((*three)[0]));
}

TEST(Interpreter, FreesAValueAfterItsLastReader) {
  OnnxBuilder builder;
  builder.Input("x", {-1});
  std::string last = "x";
  for (int i = 0; i < 20; ++i) {
    const std::string next = Concat("v", i);
    builder.Node("Tanh", {last}, {next});
    last = next;
  }
  builder.Output(last);
  const Tensor x = Floats({1000}, std::vector<float>(1000, 2));
  EXPECT_THAT(Execute(builder, {x}, {.max_live_bytes = 3 * 4000}), IsOk());
  EXPECT_THAT(Execute(builder, {x}, {.max_live_bytes = 1 * 4000}), IsError(kTooLarge, "Tanh node 'v0_node'"));
}

// y = softmax(tanh(x w) * x), of which everything but the shapes is left out.
TEST(Interpreter, LeavesElementsThatNobodyLooksAt) {
  OnnxBuilder builder = OneNode("MatMul", {-1, 3}, {"x", "w"});
  builder.Floats("w", {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  builder.Node("Tanh", {"y"}, {"t"}).Node("Mul", {"t", "x"}, {"m"}).Node("Softmax", {"m"}, {"s"}).Output("s");
  const auto program = ReadProgram(builder.Bytes());
  ASSERT_THAT(program, IsOk());
  const auto stream = *NewCpuBackend()->NewStream(1);
  const std::vector<float> ones(6, 1.0f);
  const std::vector<bool> all((*program)->graph().nodes.size(), true);
  const auto run = [&](const Shape& shape) {
    const TensorView x{DType::kFloat32, shape, std::as_bytes(std::span(ones))};
    return (*program)->Run(std::span(&x, 1), *stream, {}, nullptr, {.without_elements = &all});
  };
  const auto outputs = run({2, 3});
  ASSERT_THAT(outputs, IsOk());
  for (const Array& output : *outputs) {
    EXPECT_EQ(output.shape, (Shape{2, 3}));
    EXPECT_EQ(Values(output), std::vector<float>(6, 0.0f));
  }
  EXPECT_THAT(run({3, 2}), IsError(kInvalid, "it must be [-1,3]"));
  OnnxBuilder unfit = OneNode("MatMul", {-1, 3}, {"x", "w"});
  unfit.Floats("w", {2, 3}, {1, 2, 3, 4, 5, 6});
  const TensorView x{DType::kFloat32, {2, 3}, std::as_bytes(std::span(ones))};
  const auto refusing = ReadProgram(unfit.Bytes());
  ASSERT_THAT(refusing, IsOk());
  EXPECT_THAT((*refusing)->Run(std::span(&x, 1), *stream, {}, nullptr, {.without_elements = &all}),
              IsError(kInvalid, "have no product"));
}

TEST(Interpreter, OldOpsetsBroadcastAlongTheAxisTheyName) {
  OnnxBuilder builder = OneNode("Add", {1, 2, 2}, {"x", "b"}, {{"broadcast", int64_t{1}}, {"axis", int64_t{1}}}, 6);
  builder.Floats("b", {2}, {10, 20});
  const auto outputs = Execute(builder, {Floats({1, 2, 2}, {1, 2, 3, 4})});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_EQ(Values((*outputs)[0]), (std::vector<float>{11, 12, 23, 24}));
}

TEST(Interpreter, SoftmaxChangesItsMeaningAtOpset13) {
  const Tensor x = Floats({1, 2, 2}, {0, 0, 0, 0});
  const auto flattened = Execute(OneNode("Softmax", {1, 2, 2}, {"x"}, {{"axis", int64_t{1}}}, 11), {x});
  const auto along = Execute(OneNode("Softmax", {1, 2, 2}, {"x"}, {{"axis", int64_t{1}}}, 13), {x});
  ASSERT_THAT(flattened, IsOk());
  ASSERT_THAT(along, IsOk());
  EXPECT_FLOAT_EQ(Values((*flattened)[0])[0], 0.25f);
  EXPECT_FLOAT_EQ(Values((*along)[0])[0], 0.5f);
}

TEST(Interpreter, NamesTheInputThatIsNotAsDeclared) {
  const OnnxBuilder builder = OneNode("Relu", {-1, 3}, {"x"});
  EXPECT_THAT(Execute(builder, {Floats({2, 4}, std::vector<float>(8))}), IsError(kInvalid, "input 'x' is [2,4]"));
  EXPECT_THAT(Execute(builder, {Tensor::Int64s({1, 3}, std::vector<int64_t>(3))}),
              IsError(kInvalid, "input 'x' is INT64"));
  Tensor torn = Floats({1, 3}, {1, 2, 3});
  torn.bytes.pop_back();
  EXPECT_THAT(Execute(builder, {torn}), IsError(kInvalid, "input 'x': it has 11 bytes"));
}

TEST(Interpreter, NamesTheNodeThatRefuses) {
  OnnxBuilder builder = OneNode("Reshape", {-1}, {"x", "to"});
  builder.Int64s("to", {2}, {3, -1});
  EXPECT_THAT(Execute(builder, {Floats({4}, {1, 2, 3, 4})}),
              IsError(kInvalid, "Reshape node 'y_node': a value of shape [4]"));
  OnnxBuilder product = OneNode("MatMul", {2, 3}, {"x", "x"});
  EXPECT_THAT(Execute(product, {Floats({2, 3}, std::vector<float>(6))}), IsError(kInvalid, "MatMul node 'y_node'"));
}

TEST(Interpreter, RefusesOperatorsThatItsTableOrTheOpsetLacks) {
  EXPECT_THAT(Execute(OneNode("MaxRoiPool", {1, 2, 3}, {"x"}), {}),
              IsError(StatusCode::kUnimplemented, "operator MaxRoiPool (opset 17, node 'y_node') is not supported"));
  OnnxBuilder upsample = OneNode("Upsample", {1, 1, 2, 2}, {"x", "s"}, {}, 11);
  upsample.Floats("s", {4}, {1, 1, 2, 2});
  EXPECT_THAT(Execute(upsample, {}), IsError(StatusCode::kUnimplemented, "ended with opset 9"));
}

TEST(Interpreter, BoundsWhatAModelMayAllocate) {
  const Tensor x = Floats({1}, {1});
  const auto of_shape = [](std::vector<int64_t> shape) {
    OnnxBuilder builder;
    builder.Input("x", {1}).Int64s("to", {static_cast<int64_t>(shape.size())}, shape);
    builder.Node("ConstantOfShape", {"to"}, {"y"}).Output("y");
    return builder;
  };
  EXPECT_THAT(Execute(of_shape({1 << 20, 1 << 20}), {x}), IsError(kTooLarge, "larger than the limit"));
  EXPECT_THAT(Execute(of_shape({int64_t{1} << 62, 4}), {x}), IsError(kInvalid, "more elements than fit"));
  EXPECT_THAT(Execute(of_shape({-3}), {x}), IsError(kInvalid, "negative dimension"));
  // Nothing to hold, but loops over the other dimension would not end.
  EXPECT_THAT(Execute(of_shape({int64_t{1} << 60, 0}), {x}), IsError(kTooLarge, "larger than the limit"));
}

TEST(Interpreter, RefusesAttributesBeyondReason) {
  const Tensor x = Floats({1, 1, 4, 4}, std::vector<float>(16, 1));
  const auto pool = [&](std::map<std::string, Attribute> attributes) {
    return Execute(OneNode("MaxPool", {1, 1, 4, 4}, {"x"}, attributes), {x});
  };
  using Ints = std::vector<int64_t>;
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(pool({{"kernel_shape", Ints{2, 2}}}), IsOk());
  EXPECT_THAT(pool({}), IsError(kInvalid, "kernel_shape"));
  EXPECT_THAT(pool({{"kernel_shape", Ints{5, 5}}}), IsError(kInvalid, "does not fit into 4"));
  EXPECT_THAT(pool({{"kernel_shape", Ints{0, 2}}}), IsError(kInvalid, "kernel_shape"));
  EXPECT_THAT(pool({{"kernel_shape", Ints{2, 2}}, {"strides", Ints{0, 1}}}), IsError(kInvalid, "strides"));
  EXPECT_THAT(pool({{"kernel_shape", Ints{2, 2}}, {"pads", Ints{-1, 0, 0, 0}}}), IsError(kInvalid, "pads"));
  EXPECT_THAT(pool({{"kernel_shape", Ints{2, 2}}, {"pads", Ints{kHuge, 0, 0, 0}}}), IsError(kInvalid, "pads"));
  EXPECT_THAT(pool({{"kernel_shape", Ints{1 << 29, 1 << 29}}, {"pads", Ints{1 << 29, 1 << 29, 1 << 29, 1 << 29}}}),
              ::testing::Not(IsOk()));
  EXPECT_THAT(pool({{"kernel_shape", int64_t{2}}}), IsError(kInvalid, "'kernel_shape' is not a list"));
  const auto transposed = [&](const Ints& output_shape) {
    OnnxBuilder builder = OneNode("ConvTranspose", {1, 1, 4, 4}, {"x", "w"}, {{"output_shape", output_shape}});
    return Execute(builder.Floats("w", {1, 1, 1, 1}, {1}), {x});
  };
  EXPECT_THAT(transposed({4, 4}), IsOk());
  EXPECT_THAT(transposed({4, std::numeric_limits<int64_t>::min()}), IsError(kInvalid, "output_shape"));
  EXPECT_THAT(transposed({4, kHuge}), IsError(kInvalid, "output_shape"));
  EXPECT_THAT(Execute(OneNode("Transpose", {1, 1, 4, 4}, {"x"}, {{"perm", Ints{0, 1, 1, 2}}}), {x}),
              IsError(kInvalid, "perm is not a permutation of 4 axes"));
  EXPECT_THAT(Execute(OneNode("Softmax", {1, 1, 4, 4}, {"x"}, {{"axis", kHuge}}), {x}), IsError(kInvalid, "axis"));
  EXPECT_THAT(Execute(OneNode("DepthToSpace", {1, 1, 4, 4}, {"x"}, {{"blocksize", kHuge}}), {x}),
              IsError(kInvalid, "blocksize"));
}

TEST(Interpreter, ChecksIndices) {
  const auto gather = [](int64_t index) {
    OnnxBuilder builder = OneNode("Gather", {3}, {"x", "i"});
    builder.Int64s("i", {1}, {index});
    return Execute(builder, {Floats({3}, {1, 2, 3})});
  };
  EXPECT_THAT(gather(-3), IsOk());
  EXPECT_THAT(gather(3), IsError(kInvalid, "index 3 is not one of 3"));
  EXPECT_THAT(gather(std::numeric_limits<int64_t>::min()), IsError(kInvalid, "is not one of 3"));
}

TEST(Interpreter, SlicesAtTheEndsOfTheRange) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  const auto slice = [](int64_t start, int64_t end, int64_t step) {
    OnnxBuilder builder = OneNode("Slice", {4}, {"x", "start", "end", "axes", "step"});
    builder.Int64s("start", {1}, {start})
        .Int64s("end", {1}, {end})
        .Int64s("axes", {1}, {0})
        .Int64s("step", {1}, {step});
    return Execute(builder, {Floats({4}, {1, 2, 3, 4})});
  };
  EXPECT_EQ(Values((*slice(kMin, kMax, 1))[0]), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(Values((*slice(kMax, kMin, -1))[0]), (std::vector<float>{4, 3, 2, 1}));
  EXPECT_EQ(Values((*slice(kMax, kMin, kMin))[0]), (std::vector<float>{4}));
  EXPECT_EQ(Values((*slice(0, kMax, kMax))[0]), (std::vector<float>{1}));
  EXPECT_EQ(Values((*slice(-3, -1, 2))[0]), (std::vector<float>{2}));
  EXPECT_THAT(slice(0, 4, 0), IsError(kInvalid, "step 0"));
}

TEST(Interpreter, ConvertsEveryType) {
  const std::shared_ptr<Memory> memory = Memory::New({});
  Array x = *memory->Allocate(DType::kFloat32, {6});
  const std::vector<float> values = {0.0f,         -1.5f, 65504.0f, 1e-7f, std::numeric_limits<float>::infinity(),
                                     1.0009765625f};
  std::copy(values.begin(), values.end(), x.Mutable<float>().begin());
  const Array half = *Convert(*memory, x, DType::kFloat16);
  EXPECT_EQ(half.As<uint16_t>()[1], 0xBE00);
  EXPECT_EQ(half.As<uint16_t>()[2], 0x7BFF);
  EXPECT_EQ(half.As<uint16_t>()[3], 0x0002);
  EXPECT_EQ(half.As<uint16_t>()[4], 0x7C00);
  const Array back = *Convert(*memory, half, DType::kFloat32);
  EXPECT_EQ(Values(back)[2], 65504.0f);
  EXPECT_EQ(Values(back)[5], 1.0009765625f);
  const Array whole = *Convert(*memory, x, DType::kInt64);
  EXPECT_EQ(whole.As<int64_t>()[1], -1);
  EXPECT_EQ(whole.As<int64_t>()[4], std::numeric_limits<int64_t>::max());
  EXPECT_EQ((*Convert(*memory, x, DType::kBool)).As<uint8_t>()[3], 1);
  EXPECT_GT(memory->live_bytes(), 0);
}

// The amounts may come from whoever sends the request.
TEST(Interpreter, WhatPadTakesIsCounted) {
  OnnxBuilder builder = OneNode("Pad", {1}, {"x", "pads"}, {{"mode", "edge"}});
  builder.Int64s("pads", {2}, {0, 1000});
  const std::vector<Tensor> inputs = {Floats({1}, {7})};
  EXPECT_THAT(Execute(builder, inputs, {.max_live_bytes = 20'000}), IsOk());
  EXPECT_THAT(Execute(builder, inputs, {.max_live_bytes = 10'000}), IsError(kTooLarge, "Pad"));
}

// ONNX's example of then.
TEST(Interpreter, WhatShrankTookTheNextPositionBeforeOpset11) {
  OnnxBuilder builder = OneNode("Resize", {1, 1, 2, 4}, {"x", "scales"}, {{"mode", "nearest"}}, 10);
  builder.Floats("scales", {4}, {1, 1, 0.6f, 0.6f});
  const auto result = Execute(builder, {Floats({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->at(0).shape, (Shape{1, 1, 1, 2}));
  EXPECT_EQ(Values(result->at(0)), (std::vector<float>{1, 3}));
}

TEST(Interpreter, TransposedConvolutionsOfFarStepsHaveNothingToPad) {
  OnnxBuilder builder = OneNode("ConvTranspose", {1, 1, 1, 3}, {"x", "w"},
                                {{"auto_pad", "SAME_UPPER"}, {"strides", std::vector<int64_t>{1, 4}}});
  const auto result = Execute(builder.Floats("w", {1, 1, 1, 2}, {1, 2}), {Floats({1, 1, 1, 3}, {1, 2, 3})});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(Values(result->at(0)), (std::vector<float>{1, 2, 0, 0, 2, 4, 0, 0, 3, 6}));
}

// The numbers are ONNX Runtime's.
TEST(Interpreter, ResizeWithAntialiasTakesInAllThatBecomesOne) {
  const auto resized = [](const char* mode, int64_t exclude_outside, int64_t size) {
    OnnxBuilder builder =
        OneNode("Resize", {1, 1, 7, 1}, {"x", "", "", "sizes"},
                {{"mode", mode}, {"antialias", int64_t{1}}, {"exclude_outside", exclude_outside}}, 18);
    builder.Int64s("sizes", {4}, {1, 1, size, 1});
    const auto outputs = Execute(builder, {Floats({1, 1, 7, 1}, {1, 5, 2, 8, 3, 9, 4})});
    EXPECT_THAT(outputs, IsOk());
    return outputs.ok() ? Values((*outputs)[0]) : std::vector<float>();
  };
  using ::testing::FloatNear;
  using ::testing::Pointwise;
  EXPECT_THAT(resized("linear", 0, 3), Pointwise(FloatNear(1e-5f), {2.6875f, 5.2941179f, 5.6874995f}));
  EXPECT_THAT(resized("cubic", 0, 3), Pointwise(FloatNear(1e-5f), {2.7201750f, 5.3756247f, 5.9225483f}));
  EXPECT_THAT(resized("cubic", 1, 3), Pointwise(FloatNear(1e-5f), {2.8384511f, 5.2716856f, 6.0547395f}));
  EXPECT_THAT(resized("linear", 0, 11)[3], FloatNear(2.8181818f, 1e-5f));
}

TEST(Interpreter, ResizeKeepsProportionsWithinOrBeyondItsSizes) {
  const auto shape_for = [](const char* policy) {
    OnnxBuilder builder =
        OneNode("Resize", {1, 1, 4, 6}, {"x", "", "", "sizes"},
                {{"mode", "linear"}, {"keep_aspect_ratio_policy", policy}, {"axes", std::vector<int64_t>{2, 3}}}, 18);
    builder.Int64s("sizes", {2}, {7, 7});
    const auto outputs = Execute(builder, {Floats({1, 1, 4, 6}, std::vector<float>(24))});
    EXPECT_THAT(outputs, IsOk());
    return outputs.ok() ? (*outputs)[0].shape : Shape();
  };
  EXPECT_EQ(shape_for("not_larger"), (Shape{1, 1, 5, 7}));
  EXPECT_EQ(shape_for("not_smaller"), (Shape{1, 1, 7, 11}));
}

TEST(Interpreter, WhatResizeTakesIsCounted) {
  OnnxBuilder builder = OneNode("Resize", {1}, {"x", "", "scales"});
  builder.Floats("scales", {1}, {1000});
  const std::vector<Tensor> inputs = {Floats({1}, {7})};
  EXPECT_THAT(Execute(builder, inputs, {.max_live_bytes = 100'000}), IsOk());
  EXPECT_THAT(Execute(builder, inputs, {.max_live_bytes = 50'000}), IsError(kTooLarge, "Resize"));
}

// Counts what runs take.
class CountingBlocks final : public BlockStore {
 public:
  Block Take(size_t bytes) override {
    ++taken;
    return blocks_.Take(bytes);
  }
  void Give(Block block) override {
    ++given;
    blocks_.Give(block);
  }
  void BeginRun() override { blocks_.BeginRun(); }
  void FreeKept() override { blocks_.FreeKept(); }
  void FreeIdle() override { blocks_.FreeIdle(); }
  size_t kept_bytes() const override { return blocks_.kept_bytes(); }

  int taken = 0, given = 0;

 private:
  BlockRange blocks_;
};

// A recurrent cell written out: what it makes of one row.
OnnxBuilder Cell() {
  OnnxBuilder builder;
  builder.Input("x", {1, 16}).Input("c", {1, 4}).Floats("two", {}, {2}).Int64s("axis", {1}, {0});
  builder.Node("Split", {"x"}, {"i", "f", "g", "o"}, {{"axis", int64_t{1}}});
  builder.Node("Sigmoid", {"f"}, {"keep"}).Node("Mul", {"keep", "c"}, {"kept"}).Node("Tanh", {"g"}, {"new"});
  builder.Node("Mul", {"i", "new"}, {"added"}).Node("Add", {"kept", "added"}, {"sum"});
  builder.Node("Mul", {"sum", "two"}, {"doubled"}).Node("Unsqueeze", {"doubled", "axis"}, {"y"}).Output("y");
  return builder;
}

// Blocks of the third of three runs of one row of ones, which the others have left for it.
int BlocksOfARun(const OnnxBuilder& builder) {
  const auto program = *ReadProgram(std::span<const std::byte>(builder.Bytes()));
  const auto backend = NewCpuBackend();
  const auto stream = *backend->NewStream(2);
  const auto blocks = std::make_shared<CountingBlocks>();
  const std::vector<float> ones(16, 1.0f);
  std::vector<TensorView> views;
  for (const Port& port : program->inputs()) {
    const auto elements = static_cast<size_t>(*ElementCount(*port.shape));
    views.push_back({DType::kFloat32, *port.shape, std::as_bytes(std::span(ones).first(elements))});
  }
  size_t kept = 0;
  for (int run = 0; run < 3; ++run) {
    blocks->taken = blocks->given = 0;
    RunSupplies supplies;
    supplies.blocks = blocks;
    EXPECT_THAT(program->Run(views, *stream, {}, nullptr, supplies), IsOk());
    EXPECT_EQ(blocks->given, blocks->taken);
    EXPECT_TRUE(run == 0 || blocks->kept_bytes() == kept) << "what a run gives back serves the next one";
    kept = blocks->kept_bytes();
  }
  return blocks->taken;
}

TEST(Interpreter, TakesABlockForEachValueThatIsComputedAndNoneForViews) {
  EXPECT_EQ(BlocksOfARun(Cell()), 2 + 6) << "inputs, and what six nodes compute; Split and Unsqueeze take none";
}

TEST(Interpreter, TakesNoBlocksForWhatALoopCaptures) {
  OnnxBuilder body;
  body.Node("MatMul", {"h", "w"}, {"next"}).Node("Identity", {"goes_on"}, {"on"}).Output("on").Output("next");
  OnnxBuilder builder;
  builder.Input("x", {1, 4}).Int64s("turns", {}, {5}).Floats("w", {4, 4}, std::vector<float>(16, 0.5f));
  builder.Node("Loop", {"turns", "", "x"}, {"y"}).Output("y");
  builder.Body("body", {"i", "goes_on", "h"}, body);
  EXPECT_EQ(BlocksOfARun(builder), 1 + 5 * 3) << "the input, and for each turn its number, the condition and a product";
}

}  // namespace
}  // namespace swizzle::interpreter
