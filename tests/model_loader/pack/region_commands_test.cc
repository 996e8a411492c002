// The commands on models that no plan takes whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "model_loader/files/atomic_file.h"
#include "model_loader/files/read_file.h"
#include "nlohmann/json.hpp"
#include "tests/model_loader/pack/commands_fixture.h"
#include "tests/support/onnx_builder.h"

namespace swizzle::pack {
namespace {

using ::testing::HasSubstr;

class CommandsInRegions : public Commands {};

// A model that no plan takes whole; `scale` multiplies its last weight.
std::vector<std::byte> InRegions(float scale = 1.0f, int64_t batch = -1) {
  std::vector<float> first(8 * 32), last(32 * 4);
  for (size_t i = 0; i < first.size(); i += 4) first[i] = 0.01f * static_cast<float>(i % 29) - 0.1f;
  for (size_t i = 0; i < last.size(); ++i) last[i] = scale * (0.02f * static_cast<float>(i % 13) - 0.1f);
  testing::OnnxBuilder builder;
  builder.Input("x", {batch, 8}).Floats("w", {8, 32}, first).Floats("v", {32, 4}, last);
  builder.Node("MatMul", {"x", "w"}, {"a"}).Node("Erf", {"a"}, {"b"}).Node("MatMul", {"b", "v"}, {"y"}).Output("y");
  builder.graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  return builder.Bytes();
}

TEST_F(CommandsInRegions, PackTakesModelsThatRunInRegions) {
  SWIZZLE_CHECK(WriteFileAtomically(Path("m.onnx"), InRegions()).ok());
  EXPECT_EQ(Run({"pack", Path("m.onnx"), Path("m.swz")}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("m.swz: weights 1.50 KiB dense, 800 B stored (1.9x smaller)"));
  EXPECT_EQ(Run({"validate", Path("m.onnx"), Path("m.swz"), "--samples=2", "--tolerance=0"}), 0) << out() << err();
  EXPECT_EQ(Run({"inspect", Path("m.swz"), "--tuning-budget=0"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("Erf"));
  // Packed ones are where others start from.
  EXPECT_EQ(Run({"pack", Path("m.swz"), Path("n.swz")}), 0) << err();
  EXPECT_EQ(*ReadFile(Path("n.swz"), 1 << 20), *ReadFile(Path("m.swz"), 1 << 20));
  EXPECT_EQ(Run({"prune", Path("m.swz"), Path("p.swz"), "--sparsity=0.9"}), 0) << err();
  EXPECT_EQ(Run({"prune", Path("m.swz"), Path("p.onnx"), "--sparsity=0.9"}), 0) << err();
  EXPECT_EQ(Run({"validate", Path("p.onnx"), Path("p.swz"), "--samples=2", "--tolerance=0"}), 0) << out() << err();
  EXPECT_EQ(Run({"validate", Path("m.onnx"), Path("p.swz"), "--samples=2"}), 1) << out() << err();
  ExpectBadInput({"quantize", Path("m.swz"), Path("q.swz")}, "needs --calibration (");
}

TEST_F(CommandsInRegions, ValidateComparesModelsThatRunInRegions) {
  SWIZZLE_CHECK(WriteFileAtomically(Path("a.onnx"), InRegions()).ok());
  SWIZZLE_CHECK(WriteFileAtomically(Path("b.onnx"), InRegions(1.1f)).ok());
  EXPECT_EQ(Run({"validate", Path("a.onnx"), Path("b.onnx"), "--samples=2", "-o", "json"}), 1) << err();
  EXPECT_NEAR(nlohmann::json::parse(out())["outputs"][0]["relative_difference"].get<double>(), 0.1, 0.001);
  // The largest output, whatever scales them, is the same.
  const std::vector<float> values(10 * 8, 0.5f);
  const auto bytes = std::as_bytes(std::span(values));
  std::ofstream(Path("i.npz"), std::ios::binary)
      << testing::MakeNpz({{"x", TensorView{DType::kFloat32, {10, 8}, bytes}}});
  const std::string inputs = "--inputs=" + Path("i.npz");
  const auto labels = [this](int64_t label) { return "--labels=" + WriteLabels(std::vector<int64_t>(10, label)); };
  int64_t right = 0;
  for (int64_t label = 0; label < 4; ++label) {
    ASSERT_EQ(Run({"validate", Path("a.onnx"), Path("b.onnx"), inputs, labels(label), "-o", "json"}), 0) << err();
    const auto top1 = nlohmann::json::parse(out())["top1"];
    EXPECT_EQ(top1["rows"], 10);
    EXPECT_EQ(top1["reference"], top1["candidate"]);
    right += top1["reference"].get<int64_t>();
  }
  EXPECT_EQ(right, 100);
  ExpectBadInput({"validate", Path("a.onnx"), Path("b.onnx"), inputs, "--labels=" + WriteLabels({1, 2})},
                 "labels are [2]; they must be [10]");
  // A fixed batch takes as many rows at a time.
  SWIZZLE_CHECK(WriteFileAtomically(Path("two.onnx"), InRegions(1.0f, 2)).ok());
  EXPECT_EQ(Run({"validate", Path("two.onnx"), Path("two.onnx"), inputs}), 0) << err();
  SWIZZLE_CHECK(WriteFileAtomically(Path("three.onnx"), InRegions(1.0f, 3)).ok());
  ExpectBadInput({"validate", Path("three.onnx"), Path("three.onnx"), inputs}, "the model runs batches of 3");
}

// `op` makes of a matrix of rows what is no row of scores for each.
TEST_F(CommandsInRegions, ValidateWantsScoresForEachRow) {
  const std::vector<float> values(10 * 8, 0.5f);
  const auto bytes = std::as_bytes(std::span(values));
  std::ofstream(Path("i.npz"), std::ios::binary)
      << testing::MakeNpz({{"x", TensorView{DType::kFloat32, {10, 8}, bytes}}});
  const auto expect_refused = [&](testing::OnnxBuilder& builder) {
    builder.Node("Erf", {"z"}, {"y"}).Output("y");
    SWIZZLE_CHECK(WriteFileAtomically(Path("m.onnx"), builder.Bytes()).ok());
    ExpectBadInput({"validate", Path("m.onnx"), Path("m.onnx"), "--inputs=" + Path("i.npz"),
                    "--labels=" + WriteLabels(std::vector<int64_t>(10, 0))},
                   "--labels asks for a model whose one output is [rows, classes]");
  };
  testing::OnnxBuilder more;  // rows than the input has
  more.Input("x", {1, 8}).Int64s("shape", {2}, {4, 2}).Node("Reshape", {"x", "shape"}, {"z"});
  expect_refused(more);
  testing::OnnxBuilder one;
  one.Input("x", {-1, 8}).Node("ReduceMean", {"x"}, {"z"}, {{"axes", std::vector<int64_t>{0}}});
  expect_refused(one);
  testing::OnnxBuilder none;
  none.Input("x", {-1, 8}).Int64s("at", {1}, {0}).Int64s("axes", {1}, {0});
  none.Node("Slice", {"x", "at", "at", "axes"}, {"z"});
  expect_refused(none);
}

TEST_F(CommandsInRegions, ValidateTakesTheBatchOfWhicheverHasOne) {
  SWIZZLE_CHECK(WriteFileAtomically(Path("free.onnx"), InRegions()).ok());
  SWIZZLE_CHECK(WriteFileAtomically(Path("two.onnx"), InRegions(1.0f, 2)).ok());
  SWIZZLE_CHECK(WriteFileAtomically(Path("five.onnx"), InRegions(1.0f, 5)).ok());
  const std::vector<float> values(10 * 8, 0.5f);
  const auto bytes = std::as_bytes(std::span(values));
  std::ofstream(Path("i.npz"), std::ios::binary)
      << testing::MakeNpz({{"x", TensorView{DType::kFloat32, {10, 8}, bytes}}});
  const std::string inputs = "--inputs=" + Path("i.npz");
  EXPECT_EQ(Run({"validate", Path("free.onnx"), Path("two.onnx"), inputs}), 0) << err();
  EXPECT_EQ(Run({"validate", Path("two.onnx"), Path("free.onnx"), inputs}), 0) << err();
  ExpectBadInput({"validate", Path("five.onnx"), Path("two.onnx"), inputs},
                 "'x' is [2,8] in one model and [5,8] in the other");
}

TEST_F(CommandsInRegions, WhatIsNoNumberIsRefused) {
  SWIZZLE_CHECK(WriteFileAtomically(Path("m.onnx"), InRegions()).ok());
  const auto write = [this](int64_t rows, float value) {
    const std::vector<float> values(static_cast<size_t>(rows) * 8, value);
    const auto bytes = std::as_bytes(std::span(values));
    std::ofstream(Path("i.npz"), std::ios::binary)
        << testing::MakeNpz({{"x", TensorView{DType::kFloat32, {rows, 8}, bytes}}});
  };
  const std::string inputs = "--inputs=" + Path("i.npz"), calibration = "--calibration=" + Path("i.npz");
  write(3, std::nanf(""));
  ExpectBadInput({"validate", Path("m.onnx"), Path("m.onnx"), inputs}, "input 'x' has values that are no numbers");
  ExpectBadInput({"quantize", Path("m.onnx"), Path("q.onnx"), calibration}, "input 'x' has values that are no numbers");
  ExpectBadInput({"prune", Path("m.onnx"), Path("p.onnx"), "--sparsity=0.5", calibration}, "that are no numbers");
  write(0, 0.0f);
  ExpectBadInput({"validate", Path("m.onnx"), Path("m.onnx"), inputs}, "input 'x' has no rows");
  ExpectBadInput({"quantize", Path("m.onnx"), Path("q.onnx"), calibration}, "input 'x' has no rows");
  write(5, 1e30f);  // squares of it are infinite, and then no numbers
  testing::OnnxBuilder builder;
  builder.Input("x", {-1, 8}).Node("Mul", {"x", "x"}, {"s"}).Node("Sub", {"s", "s"}, {"d"});
  SWIZZLE_CHECK(WriteFileAtomically(Path("nan.onnx"), builder.Node("Erf", {"d"}, {"y"}).Output("y").Bytes()).ok());
  EXPECT_EQ(Run({"validate", Path("nan.onnx"), Path("nan.onnx"), inputs}), 1) << out() << err();
}

TEST_F(CommandsInRegions, InspectListsTheLayers) {
  SWIZZLE_CHECK(WriteFileAtomically(Path("m.onnx"), InRegions()).ok());
  EXPECT_EQ(Run({"inspect", Path("m.onnx"), "--tuning-budget=0"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("region  layer"));
  EXPECT_THAT(out(), HasSubstr("     2  y_node"));
  ExpectBadInput({"inspect", Path("m.onnx"), "--precision=FP16"}, "the cpu backend computes in FP32 or BF16");
}

TEST_F(CommandsInRegions, ValidateComparesAModelInRegionsWithOneThatAPlanTakes) {
  testing::OnnxBuilder builder;
  builder.Input("x", {-1, 8}).Counting("w", {8, 4}).Node("MatMul", {"x", "w"}, {"y"}).Output("y");
  SWIZZLE_CHECK(WriteFileAtomically(Path("whole.onnx"), builder.Bytes()).ok());
  SWIZZLE_CHECK(WriteFileAtomically(Path("m.onnx"), InRegions()).ok());
  EXPECT_EQ(Run({"validate", Path("m.onnx"), Path("whole.onnx"), "--samples=1"}), 1) << err();
  EXPECT_EQ(Run({"pack", Path("whole.onnx"), Path("whole.swz")}), 0) << err();
  EXPECT_EQ(Run({"validate", Path("m.onnx"), Path("whole.swz"), "--samples=1"}), 1) << err();
  EXPECT_THAT(out(), HasSubstr("NOT equal"));
}

TEST_F(CommandsInRegions, ValidateSaysWhichInputsItCannotDraw) {
  testing::OnnxBuilder ids;
  ids.Int64Input("ids", {1, 4}).Node("Neg", {"ids"}, {"y"}).Output("y");
  SWIZZLE_CHECK(WriteFileAtomically(Path("ids.onnx"), ids.Bytes()).ok());
  ExpectBadInput({"validate", Path("ids.onnx"), Path("ids.onnx")}, "input 'ids' is INT64, of which nothing says");
  testing::OnnxBuilder free;
  free.Input("x", {-1, -1}).Node("Erf", {"x"}, {"y"}).Output("y");
  SWIZZLE_CHECK(WriteFileAtomically(Path("free.onnx"), free.Bytes()).ok());
  ExpectBadInput({"validate", Path("free.onnx"), Path("free.onnx")}, "input 'x' is [-1,-1], whose free sizes");
  testing::OnnxBuilder large;
  large.Input("x", {1, int64_t{1} << 40}).Node("Erf", {"x"}, {"y"}).Output("y");
  SWIZZLE_CHECK(WriteFileAtomically(Path("large.onnx"), large.Bytes()).ok());
  EXPECT_EQ(Run({"validate", Path("large.onnx"), Path("large.onnx")}), 2);
}

TEST_F(CommandsInRegions, QuantizeTakesRowsOfAFixedBatchAndWritesEitherFile) {
  SWIZZLE_CHECK(WriteFileAtomically(Path("m.onnx"), InRegions(1.0f, 2)).ok());
  std::vector<float> values(24 * 8);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.1f * static_cast<float>(i % 31) - 1.5f;
  const auto bytes = std::as_bytes(std::span(values));
  std::ofstream(Path("i.npz"), std::ios::binary)
      << testing::MakeNpz({{"x", TensorView{DType::kFloat32, {24, 8}, bytes}}});
  const std::string calibration = "--calibration=" + Path("i.npz"), inputs = "--inputs=" + Path("i.npz");
  EXPECT_EQ(Run({"quantize", Path("m.onnx"), Path("q.onnx"), calibration}), 0) << err();
  EXPECT_EQ(Run({"quantize", Path("m.onnx"), Path("q.swz"), calibration}), 0) << err();
  EXPECT_EQ(Run({"validate", Path("q.onnx"), Path("q.swz"), inputs, "--tolerance=0"}), 0) << out() << err();
  EXPECT_EQ(Run({"validate", Path("m.onnx"), Path("q.swz"), inputs, "--tolerance=0.03"}), 0) << out() << err();
  EXPECT_EQ(Run({"validate", Path("m.onnx"), Path("q.swz"), inputs, "--tolerance=1e-4"}), 1) << out() << err();
}

}  // namespace
}  // namespace swizzle::pack
