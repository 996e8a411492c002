#include "model_loader/calibration/row_batches.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "model_loader/interpreter/run/load.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::OnnxBuilder;

std::shared_ptr<const interpreter::Program> ProgramOf(const std::string& op, const Shape& shape) {
  OnnxBuilder builder;
  builder.Input("x", shape).Node(op, {"x"}, {"y"}).Output("y");
  builder.graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  return *interpreter::ReadProgram(builder.Bytes());
}

// Counts up from 0.
NpyArrays Rows(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(*ElementCount(shape)));
  std::iota(values.begin(), values.end(), 0.0f);
  const auto bytes = std::as_bytes(std::span(values));
  return {{"x", {DType::kFloat32, shape, {bytes.begin(), bytes.end()}}}};
}

float FirstOf(const TensorView& view) {
  float first;
  std::memcpy(&first, view.bytes.data(), sizeof(first));
  return first;
}

TEST(RowBatchesTest, AreOfTheModelsOwnSize) {
  const auto program = ProgramOf("Erf", {2, 3});
  const NpyArrays rows = Rows({6, 3});
  const auto batches = RowBatches::Of(InterfaceOf(*program), rows, 8);
  ASSERT_THAT(batches, IsOk());
  EXPECT_EQ(batches->size(), 3);
  EXPECT_EQ(batches->rows(), 6);
  for (int64_t i = 0; i < 3; ++i) {
    const TensorView view = batches->Batch(i)[0];
    EXPECT_EQ(view.shape, (Shape{2, 3}));
    EXPECT_EQ(view.bytes.size(), 6 * sizeof(float));
    EXPECT_EQ(FirstOf(view), static_cast<float>(6 * i));
  }
  EXPECT_THAT(RowBatches::Of(InterfaceOf(*program), Rows({5, 3}), 8),
              IsError(StatusCode::kInvalidArgument, "input 'x' is [5,3]; the model runs batches of 2"));
}

TEST(RowBatchesTest, OfAFreeBatchAreAsManyAsAreAskedFor) {
  const auto program = ProgramOf("Erf", {-1, 3});
  const NpyArrays rows = Rows({10, 3});
  const auto batches = RowBatches::Of(InterfaceOf(*program), rows, 8);
  ASSERT_THAT(batches, IsOk());
  EXPECT_EQ(batches->size(), 2);
  EXPECT_EQ(batches->Batch(0)[0].shape, (Shape{8, 3}));
  EXPECT_EQ(batches->Batch(1)[0].shape, (Shape{2, 3}));
  EXPECT_EQ(FirstOf(batches->Batch(1)[0]), 24.0f);
}

TEST(RowBatchesTest, AreOneWhereRowsDependOnEachOther) {
  const auto program = *interpreter::ReadProgram(
      OnnxBuilder().Input("x", {-1, 3}).Node("Softmax", {"x"}, {"y"}, {{"axis", int64_t{0}}}).Output("y").Bytes());
  const NpyArrays rows = Rows({10, 3});
  const auto batches = RowBatches::Of(InterfaceOf(*program), rows, 8);
  ASSERT_THAT(batches, IsOk());
  EXPECT_EQ(batches->size(), 1);
  EXPECT_EQ(batches->Batch(0)[0].shape, (Shape{10, 3}));
}

TEST(RowBatchesTest, NameInputsThatAreMissingOrTooMany) {
  const auto program = ProgramOf("Erf", {-1, 3});
  EXPECT_THAT(RowBatches::Of(InterfaceOf(*program), {}, 8),
              IsError(StatusCode::kInvalidArgument, "input 'x' is missing"));
  NpyArrays two = Rows({1, 3});
  two["z"] = two["x"];
  EXPECT_THAT(RowBatches::Of(InterfaceOf(*program), two, 8), IsError(StatusCode::kInvalidArgument, "no input 'z'"));
}

}  // namespace
}  // namespace swizzle
