// What goes from one region to another in whole numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/regions/plan_regions.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle::regions {
namespace {

using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;
using Ints = std::vector<int64_t>;

constexpr int64_t kByteTokens = 16, kInner = 12;

void AddWholes(OnnxBuilder& builder, const std::string& name, const Ints& shape) {
  onnx::TensorProto& weight = *builder.graph().add_initializer();
  weight.set_name(name + ".wholes");
  weight.set_data_type(onnx::TensorProto::INT8);
  int64_t elements = 1;
  for (const int64_t extent : shape) {
    weight.add_dims(extent);
    elements *= extent;
  }
  std::string bytes;
  for (int64_t i = 0; i < elements; ++i) bytes += static_cast<char>(i * 37 % 61 - 30);
  weight.set_raw_data(bytes);
  builder.Node("DequantizeLinear", {name + ".wholes", "of_weights"}, {name});
}

// A layer on tokens, a depthwise one on the plane that they are with a function behind it, and a layer on tokens again:
// three regions. `zeros`: the type of all zero points.
OnnxBuilder MixedLayers(onnx::TensorProto::DataType zeros, const std::string& function = "HardSwish") {
  OnnxBuilder builder(20);
  builder.Input("x", {-1, kByteTokens, 8}).Floats("of_weights", {}, {0.015625f}).Floats("s", {}, {0.03125f});
  builder.Int64s("plane", {4}, {0, kInner, 4, 4}).Int64s("line", {3}, {0, kInner, kByteTokens});
  onnx::TensorProto& zero = *builder.graph().add_initializer();
  zero.set_name("z");
  zero.set_data_type(zeros);
  zero.set_raw_data(zeros == onnx::TensorProto::UINT8 ? "\x64" : "\x07");
  const auto rounded = [&](const std::string& value) {
    builder.Node("QuantizeLinear", {value, "s", "z"}, {value + ".q"});
    builder.Node("DequantizeLinear", {value + ".q", "s", "z"}, {value + ".r"});
    return value + ".r";
  };
  AddWholes(builder, "w1", {8, kInner});
  AddWholes(builder, "taps", {kInner, 1, 3, 3});
  AddWholes(builder, "w2", {kInner, 8});
  builder.Node("MatMul", {rounded("x"), "w1"}, {"h"});
  builder.Node("Transpose", {"h"}, {"t"}, {{"perm", Ints{0, 2, 1}}}).Node("Reshape", {"t", "plane"}, {"p"});
  builder.Node("Conv", {rounded("p"), "taps"}, {"c"}, {{"group", kInner}, {"pads", Ints{1, 1, 1, 1}}});
  builder.Node("Reshape", {"c", "line"}, {"l"}).Node("Transpose", {"l"}, {"b"}, {{"perm", Ints{0, 2, 1}}});
  builder.Node(function, {"b"}, {"f"});
  builder.Node("MatMul", {rounded("f"), "w2"}, {"y"}).Output("y");
  return builder;
}

class ByteBordersTest : public ::testing::Test {
 protected:
  RegionalProgram Plan(const OnnxBuilder& builder) {
    program_ = *interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes()));
    return PlanRegions(program_, *backend_, {.threads = 2, .tuning_budget = absl::ZeroDuration()});
  }

  std::vector<float> Run(const interpreter::Program& program, int64_t rows) {
    std::vector<float> drawn(static_cast<size_t>(rows * kByteTokens * 8));
    for (size_t i = 0; i < drawn.size(); ++i) drawn[i] = static_cast<float>(static_cast<int>(i * 7 % 23) - 11) / 8;
    const TensorView view{DType::kFloat32, {rows, kByteTokens, 8}, std::as_bytes(std::span(drawn))};
    const auto outputs = program.Run({&view, 1}, **backend_->NewStream(2), {});
    SWIZZLE_CHECK(outputs.ok());
    const auto elements = outputs->at(0).As<float>();
    return {elements.begin(), elements.end()};
  }

  // All outputs are near, and nearly all the same: a step here and there is rounded otherwise.
  void ExpectSame(const RegionalProgram& regional, int64_t rows) {
    const std::vector<float> expected = Run(*program_, rows), actual = Run(*regional.program, rows);
    ASSERT_EQ(actual.size(), expected.size());
    size_t differing = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(actual[i], expected[i], 2 * 0.03125 * 0.5) << i;
      differing += std::abs(actual[i] - expected[i]) > 1e-4 * (1 + std::abs(expected[i]));
    }
    EXPECT_LE(differing, expected.size() / 50);
  }

  // Of the ports between the three regions.
  std::vector<DType> Types(const RegionalProgram& regional) {
    std::vector<DType> types;
    for (size_t i = 0; i + 1 < regional.regions.size(); ++i) {
      types.push_back(regional.regions[i + 1]->plan()->network().inputs[0].dtype);
      const auto& outputs = regional.regions[i]->plan()->network().outputs;
      EXPECT_NE(std::ranges::find(outputs, types.back(), &NetworkPort::dtype), outputs.end());
    }
    return types;
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend();
  std::shared_ptr<const interpreter::Program> program_;
};

TEST_F(ByteBordersTest, WhatOneRegionRoundsAnotherReadsAsBytes) {
  const RegionalProgram regional = Plan(MixedLayers(onnx::TensorProto::UINT8));
  ASSERT_EQ(regional.regions.size(), 3u) << regional.unplanned;
  EXPECT_EQ(regional.program->interpreted_nodes(), 0u) << regional.program->OperatorCounts();
  EXPECT_EQ(Types(regional), std::vector(2, DType::kUint8));
  for (const int64_t rows : {1, 3, 40}) ExpectSame(regional, rows);
}

TEST_F(ByteBordersTest, SignedBytesGoAsRealNumbers) {
  const RegionalProgram regional = Plan(MixedLayers(onnx::TensorProto::INT8));
  ASSERT_EQ(regional.regions.size(), 3u) << regional.unplanned;
  EXPECT_EQ(Types(regional), std::vector(2, DType::kFloat32));
  ExpectSame(regional, 3);
}

// It is rounded where it is multiplied: a plan of real numbers would round it for nothing.
TEST_F(ByteBordersTest, WhatIsReadElsewhereIsRoundedWhereItIsMultiplied) {
  for (const char* const function : {"HardSwish", "Gelu"}) {
    for (const char* const read : {"f.r", "f", "y"}) {
      SCOPED_TRACE(Concat(function, " ", read));
      OnnxBuilder builder = MixedLayers(onnx::TensorProto::UINT8, function);
      if (read != std::string("y")) builder.Output(read);
      const RegionalProgram regional = Plan(builder);
      ASSERT_EQ(regional.regions.size(), 3u) << regional.unplanned;
      EXPECT_EQ(Types(regional).back(), read == std::string("f.r") ? DType::kFloat32 : DType::kUint8);
      const Network& last = regional.regions.back()->plan()->network();
      EXPECT_TRUE(
          std::ranges::any_of(last.values, [](const NetworkValue& v) { return v.AsWholeNumbers().has_value(); }));
      ExpectSame(regional, 3);
    }
  }
}

}  // namespace
}  // namespace swizzle::regions
