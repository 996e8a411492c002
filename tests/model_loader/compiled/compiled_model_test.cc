#include "model_loader/compiled/compiled_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model_loader/compiled/compile.h"
#include "model_loader/interpreter/run/load.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/plan_runs.h"
#include "tests/support/random_encoder.h"
#include "tests/support/random_network.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using ::testing::Each;

std::vector<float> Floats(const TensorView& view) {
  std::vector<float> floats(view.bytes.size() / sizeof(float));
  std::memcpy(floats.data(), view.bytes.data(), view.bytes.size());
  return floats;
}

TensorView ViewOf(const std::vector<float>& values, Shape shape) {
  return {DType::kFloat32, std::move(shape), std::as_bytes(std::span(values))};
}

class CompiledModelTest : public ::testing::Test {
 protected:
  CompiledModel Compile(RunnableModel model) {
    PlanOptions options{.max_batch = 6, .max_tokens = 64, .threads = 1, .tuning_budget = absl::ZeroDuration()};
    auto compiled = CompileFor(devices_, std::move(model), options);
    SWIZZLE_CHECK(compiled.ok());
    return *std::move(compiled);
  }
  std::unique_ptr<ModelRunner> NewRunner(const CompiledModel& model) {
    auto runner = model.NewRunner({.threads = 1});
    SWIZZLE_CHECK(runner.ok());
    return *std::move(runner);
  }

  const Devices devices_ = *Devices::Open("cpu");
};

// One graph by a plan of the whole, and in regions: whoever runs it sees no difference.
TEST_F(CompiledModelTest, APlanOfTheWholeAndRegionsRunAlike) {
  testing::OnnxBuilder builder;
  builder.Input("x", {-1, 8}).Counting("w", {8, 4}).Counting("v", {4, 3});
  builder.Node("MatMul", {"x", "w"}, {"h"}).Node("Relu", {"h"}, {"r"}).Node("MatMul", {"r", "v"}, {"y"});
  builder.Output("y").graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  const std::vector<std::byte> bytes = builder.Bytes();
  const TemporaryFolder folder;
  std::ofstream(folder / "m.onnx", std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  RunnableModel planned = *LoadRunnableModel(folder / "m.onnx");
  ASSERT_TRUE(std::holds_alternative<LoadedModel>(planned));
  RunnableModel program = ProgramModel{*interpreter::ReadProgram(std::span<const std::byte>(bytes)), "a reason"};
  ASSERT_THAT(DeclareOutputs(program, devices_.cpu(), 1), IsOk());
  const ModelInterface one = InterfaceOf(planned), other = InterfaceOf(program);
  EXPECT_EQ(one.inputs[0].shape, other.inputs[0].shape);
  EXPECT_EQ(one.outputs[0].name, other.outputs[0].name);
  EXPECT_EQ(one.batch_obstacle, other.batch_obstacle);
  const CompiledModel whole = Compile(std::move(planned)), regions = Compile(program);
  ASSERT_NE(whole.plan(), nullptr);
  ASSERT_NE(regions.regional(), nullptr);
  EXPECT_EQ(whole.plans().size(), 1u);
  EXPECT_FALSE(regions.plans().empty());
  EXPECT_EQ(whole.device(), regions.device());
  const std::vector<float> x = testing::DrawFloats(5 * 8, 1);
  std::vector<std::vector<float>> results;
  for (const CompiledModel* const model : {&whole, &regions}) {
    const auto runner = NewRunner(*model);
    const auto outputs = runner->RunViews(std::vector{ViewOf(x, {5, 8})});
    ASSERT_THAT(outputs, IsOk());
    EXPECT_EQ((*outputs)[0].shape, (Shape{5, 3}));
    results.push_back(Floats((*outputs)[0]));
    // The same rows in two parts, the first in two pieces.
    const auto rows = std::as_bytes(std::span(x));
    const size_t row = 8 * sizeof(float);
    const std::vector<TensorPieces> first = {{DType::kFloat32, {2, 8}, {rows.first(row), rows.subspan(row, row)}}};
    const std::vector<TensorPieces> second = {{DType::kFloat32, {3, 8}, {rows.subspan(2 * row)}}};
    std::vector<float> parts;
    for (const auto& [inputs, part] : {std::pair(first, BatchPart{0, 2, 5}), std::pair(second, BatchPart{2, 3, 5})}) {
      const auto some = runner->RunPart(inputs, part);
      ASSERT_THAT(some, IsOk());
      if (some->rows == 0) continue;
      const std::vector<float> floats = Floats(some->views[0]);
      parts.insert(parts.end(), floats.begin(), floats.end());
    }
    testing::ExpectClose(parts, results.back(), 1e-5f);
  }
  testing::ExpectClose(results[1], results[0], 1e-5f);
}

TEST_F(CompiledModelTest, APlanSaysWhatIsWrongWithItsInputs) {
  const CompiledModel model = Compile(LoadedModel{testing::MakeRandomNetwork({}), "onnx", {}});
  const auto runner = NewRunner(model);
  const std::vector<float> image(7 * 3 * 14 * 14);
  const auto run = [&](Shape shape) { return runner->RunViews(std::vector{ViewOf(image, std::move(shape))}); };
  EXPECT_THAT(run({1, 3, 14, 15}),
              IsError(StatusCode::kInvalidArgument, "'image' is [1,3,14,15]; it must be [1,3,14,14]"));
  EXPECT_THAT(run({}), IsError(StatusCode::kInvalidArgument, "'image' is []; it must be [1,3,14,14]"));
  EXPECT_THAT(run({7, 3, 14, 14}), IsError(StatusCode::kInvalidArgument, "has 7 rows; its first dimension"));
  EXPECT_THAT(run({0, 3, 14, 14}), IsError(StatusCode::kInvalidArgument, "has 0 rows; its first dimension"));
  const std::vector<TensorView> halves = {{DType::kFloat16, {1, 3, 14, 14}, {}}};
  EXPECT_THAT(runner->RunViews(halves), IsError(StatusCode::kInvalidArgument, "save array.astype('<f4')"));
}

// Of two sequences, whose masks leave some tokens out, each is as it is alone.
TEST_F(CompiledModelTest, APlanPacksTheSequencesOfARequest) {
  const CompiledModel model = Compile(LoadedModel{testing::MakeRandomEncoder({}), "onnx", {}});
  EXPECT_EQ(model.interface().limits, (std::vector<int64_t>{50, 2, 0}));
  EXPECT_EQ(model.interface().longest, 80);
  EXPECT_EQ(model.interface().inputs[0].shape, (Shape{-1, -1}));
  const auto runner = NewRunner(model);
  std::vector<int64_t> ids = {1, 2, 3, 4, 5, 11, 12, 13, 14, 15}, mask = {1, 1, 1, 0, 0, 1, 1, 1, 1, 0};
  const std::vector<int32_t> types(10);
  const auto inputs = [&](int64_t first, int64_t rows) {
    const auto of = [&]<typename T>(DType dtype, const std::vector<T>& all) {
      return TensorView{dtype, {rows, 5}, std::as_bytes(std::span(all).subspan(first * 5, rows * 5))};
    };
    return std::vector<TensorView>{of(DType::kInt64, ids), of(DType::kInt64, mask), of(DType::kInt32, types)};
  };
  const auto both = runner->RunViews(inputs(0, 2));
  ASSERT_THAT(both, IsOk());
  EXPECT_EQ((*both)[0].shape, (Shape{2, 5, 24}));
  EXPECT_EQ((*both)[1].shape, (Shape{2, 24}));
  const std::vector<float> hidden = Floats((*both)[0]), pooled = Floats((*both)[1]);
  EXPECT_THAT(std::vector(hidden.begin() + 3 * 24, hidden.begin() + 5 * 24), Each(0.0f)) << "nobody computed them";
  for (int64_t row = 0; row < 2; ++row) {
    const auto alone = runner->RunViews(inputs(row, 1));
    ASSERT_THAT(alone, IsOk());
    testing::ExpectClose(Floats((*alone)[0]), {hidden.begin() + row * 5 * 24, hidden.begin() + (row + 1) * 5 * 24},
                         1e-5f);
    testing::ExpectClose(Floats((*alone)[1]), {pooled.begin() + row * 24, pooled.begin() + (row + 1) * 24}, 1e-5f);
  }
  mask[2] = 2;
  EXPECT_THAT(runner->RunViews(inputs(0, 2)),
              IsError(StatusCode::kInvalidArgument, "'attention_mask' holds 2 at element 2; it must be from 0 to 1"));
  ids[1] = 50;
  EXPECT_THAT(runner->RunViews(inputs(0, 2)),
              IsError(StatusCode::kInvalidArgument, "'input_ids' holds 50 at element 1; it must be from 0 to 49"));
}

}  // namespace
}  // namespace swizzle
