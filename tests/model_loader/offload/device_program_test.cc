#include "model_loader/offload/device_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "kernels/base/integers.h"
#include "model_loader/offload/runner.h"
#include "tests/model_loader/offload/on_device.h"

namespace swizzle::offload {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using swizzle::testing::OnDeviceTest;
using swizzle::testing::OnnxBuilder;
using swizzle::testing::Weights;

class DeviceProgramTest : public OnDeviceTest {};

std::shared_ptr<const interpreter::Program> Read(const OnnxBuilder& builder) {
  return *interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes()));
}

// x [batch, length, 8] -> a layer, what no plan takes, a layer.
OnnxBuilder Tokens(const std::string& between, const std::vector<float>& first = Weights(8 * 24)) {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1, 8}).Floats("w1", {8, 24}, first).Floats("w2", {24, 40}, Weights(24 * 40));
  builder.Node("MatMul", {"x", "w1"}, {"h"}).Node(between, {"h"}, {"s"}).Node("MatMul", {"s", "w2"}, {"y"}).Output("y");
  return builder;
}

TEST_F(DeviceProgramTest, RegionsAndWhatIsBetweenThemRunThere) {
  Plan(Tokens("Exp"));
  EXPECT_EQ(regional_.regions.size(), 2u);
  EXPECT_EQ(regional_.device_nodes(), 1);
  EXPECT_EQ(regional_.interpreted_nodes(), 0u) << regional_.OperatorCounts();
  EXPECT_EQ(regional_.HowItRuns(), "in regions");
  EXPECT_EQ(regional_.PlaceText(), "; all regions run on fake:0, and 1 nodes between them");
  for (const int64_t length : {1, 5, 300}) ExpectSame({{3, length, 8}});
}

TEST_F(DeviceProgramTest, RunsAreRecordedForEachShape) {
  Plan(Tokens("Exp"));
  for (int seed = 0; seed < 4; ++seed) ExpectSame({{2, 5, 8}}, seed);
  EXPECT_EQ(device_.last_stream->recordings, 1);
  EXPECT_EQ(device_.last_stream->replays, 3);
  for (int seed = 0; seed < 2; ++seed) ExpectSame({{1, 7, 8}}, seed);
  ExpectSame({{2, 5, 8}}, 9);
  EXPECT_EQ(device_.last_stream->replays, 5);
}

TEST_F(DeviceProgramTest, LargeBatchesAreFilledUp) {
  for (const auto& [rows, filled] : {std::pair<int64_t, int64_t>{1, 1},
                                     {7, 7},
                                     {8, 8},
                                     {9, 10},
                                     {16, 16},
                                     {17, 20},
                                     {33, 40},
                                     {63, 64},
                                     {64, 64},
                                     {65, 80}}) {
    EXPECT_EQ(FilledRows(rows), filled) << rows;
  }
  OnnxBuilder builder = Tokens("Exp");
  builder.graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  Plan(builder);
  ASSERT_EQ(program_->batch_obstacle(), std::nullopt);
  for (const int64_t rows : {17, 18, 19, 20, 17}) ExpectSame({{rows, 5, 8}}, static_cast<int>(rows));
  EXPECT_EQ(device_.last_stream->recordings, 1);
  EXPECT_EQ(device_.last_stream->replays, 4);
}

// Runs views' rows as so many pieces of memory that the device reads.
StatusOr<std::vector<interpreter::Array>> RunInPieces(interpreter::ProgramRunner& runner,
                                                      std::span<const TensorView> views, int64_t rows_of_a_piece) {
  std::vector<TensorPieces> inputs;
  for (const TensorView& view : views) {
    TensorPieces& input = inputs.emplace_back(view.dtype, view.shape);
    input.is_pinned = true;
    const size_t row = view.bytes.size() / static_cast<size_t>(view.shape[0]);
    for (int64_t first = 0; first < view.shape[0]; first += rows_of_a_piece) {
      const int64_t rows = std::min(rows_of_a_piece, view.shape[0] - first);
      input.pieces.push_back(view.bytes.subspan(static_cast<size_t>(first) * row, static_cast<size_t>(rows) * row));
    }
  }
  return runner.RunArrays(inputs);
}

// x [batch, 2048, 8]: a row has 64 KiB, as many as are worth a copy of their own.
TEST_F(DeviceProgramTest, LargeInputsAreCopiedFromWhereTheyLie) {
  Plan(Tokens("Exp"));
  const Shape row = {1, 2048, 8};
  ASSERT_EQ(static_cast<size_t>(*ElementCount(row)) * sizeof(float), kLeastCopied);
  const auto stream = *host_->NewStream(1);
  int64_t copied = 0;
  for (const int64_t rows : {9, 9, 4, 4, 1, 1, 9, 4}) {
    for (const int64_t rows_of_a_piece : {1, 3}) {
      const std::vector<Shape> shapes = {{rows, row[1], row[2]}};
      const auto inputs = Inputs(shapes, static_cast<int>(++copied));
      const auto views = Views(shapes, inputs);
      const Outputs expected = program_->Run(views, *stream);
      const FakeDeviceStream& device = *device_.last_stream;
      const int64_t copies = device.copies, replays = device.replays;
      const Outputs actual = RunInPieces(*runner_, views, rows_of_a_piece);
      ASSERT_THAT(actual, IsOk());
      if (device.replays > replays) {
        EXPECT_EQ(device.copies - copies, CeilDiv(rows, rows_of_a_piece)) << "a copy a piece, and none recorded";
      }
      ASSERT_EQ((*actual)[0].shape, (*expected)[0].shape);
      for (int64_t i = 0; i < (*expected)[0].elements(); ++i) {
        const auto at = static_cast<size_t>(i);
        ASSERT_NEAR((*actual)[0].As<float>()[at], (*expected)[0].As<float>()[at], 1e-3) << rows << " rows, " << i;
      }
    }
    ExpectSame({{rows, row[1], row[2]}}, static_cast<int>(copied));  // in one piece of other memory
  }
  EXPECT_GE(device_.last_stream->replays, 24 - 2 * 3) << "each shape is recorded at its second run at the latest";
}

TEST_F(DeviceProgramTest, SmallPiecesAreGatheredFirst) {
  Plan(Tokens("Exp"));
  const std::vector<Shape> shapes = {{64, 128, 8}};  // 4 KiB a row
  for (int seed = 0; seed < 3; ++seed) {
    const auto inputs = Inputs(shapes, seed);
    const auto stream = *host_->NewStream(1);
    const auto views = Views(shapes, inputs);
    const Outputs expected = program_->Run(views, *stream);
    const int64_t copies = device_.last_stream->copies;
    const Outputs actual = RunInPieces(*runner_, views, 1);
    ASSERT_THAT(actual, IsOk());
    EXPECT_LE(device_.last_stream->copies - copies, seed == 0 ? 4 : 2);
    for (size_t i = 0; i < (*expected)[0].As<float>().size(); ++i) {
      ASSERT_NEAR((*actual)[0].As<float>()[i], (*expected)[0].As<float>()[i], 1e-3) << i;
    }
  }
}

// A node that the device does not have reads the input: it goes back once, and then stays on the host.
TEST_F(DeviceProgramTest, LargeInputsOfTheHostAreStagedThere) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2048, 8}).Floats("w", {8, 24}, Weights(8 * 24)).Node("MatMul", {"x", "w"}, {"y"});
  builder.Node("NonZero", {"x"}, {"z"}).Output("y").Output("z");
  Plan(builder);
  for (int seed = 0; seed < 3; ++seed) ExpectSame({{3, 2048, 8}}, seed);
  EXPECT_EQ(device_.last_stream->recordings, 0);
}

TEST_F(DeviceProgramTest, BatchesOfAllSizesShareTheMemoryOfTheLargest) {
  Plan(Tokens("Exp"));
  const auto before = device_.memory()->used;
  ExpectSame({{64, 50, 8}});
  const auto of_largest = device_.memory()->used - before;
  Plan(Tokens("Exp"));
  const auto at_rest = device_.memory()->used;
  for (const int64_t rows : {1, 2, 5, 16, 20, 24, 33, 48, 56, 64}) ExpectSame({{rows, 50, 8}}, static_cast<int>(rows));
  EXPECT_LE(device_.memory()->used - at_rest, 2 * of_largest);
  for (const int64_t rows : {1, 2, 5, 16, 20, 24, 33, 48, 56, 64}) ExpectSame({{rows, 50, 8}}, static_cast<int>(rows));
  const int replays = device_.last_stream->replays;
  for (const int64_t rows : {64, 2, 33, 1, 48, 5, 56, 16, 24, 20}) ExpectSame({{rows, 50, 8}}, 3);
  EXPECT_EQ(device_.last_stream->replays, replays + 10);
  EXPECT_LE(device_.memory()->used - at_rest, 2 * of_largest);
}

TEST_F(DeviceProgramTest, BatchesWhoseRowsMayBeJoinedAreNot) {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1, 8}).Floats("w", {8, 24}, Weights(8 * 24)).Node("MatMul", {"x", "w"}, {"h"});
  builder.Node("Softmax", {"h"}, {"y"}, {{"axis", int64_t{0}}}).Output("y");
  Plan(builder);
  for (const int64_t rows : {17, 18, 17}) ExpectSame({{rows, 5, 8}}, static_cast<int>(rows));
  EXPECT_EQ(device_.last_stream->recordings, 2);
}

TEST_F(DeviceProgramTest, RunsAreRecordedAgainOnceAPlanIsReplaced) {
  Plan(Tokens("Exp"));
  const FakeDeviceStream& stream = *device_.last_stream;
  for (int seed = 0; seed < 3; ++seed) ExpectSame({{2, 5, 8}}, seed);
  program_ = Read(Tokens("Exp", std::vector<float>(8 * 24, 0.25f)));
  const PlanOptions options{.threads = 1, .tuning_budget = absl::ZeroDuration()};
  const auto others = regions::PlanRegions(program_, {*host_, &device_, &device_.functions()}, options);
  const auto region = std::const_pointer_cast<regions::PlannedRegion>(regional_.regions[0]);
  region->Replace(others.regions[0]->plan(), nullptr);
  for (int seed = 0; seed < 3; ++seed) ExpectSame({{2, 5, 8}}, seed);
  EXPECT_EQ(stream.recordings, 2);
  EXPECT_EQ(stream.replays, 4);
}

TEST_F(DeviceProgramTest, RegionsAreReadyOnEstimatesAndMeasuredLater) {
  program_ = Read(Tokens("Exp"));
  regions::TunableRegions tunable =
      regions::PlanTunableRegions(program_, {*host_, &device_, &device_.functions()}, {.threads = 1});
  ASSERT_NE(tunable.program.on_device, nullptr) << tunable.program.not_on_device;
  ASSERT_NE(tunable.tuner, nullptr);
  EXPECT_EQ(tunable.program.regions[0]->plan()->report().timed_now, 0);
  runner_ = *tunable.program.NewRunner(*host_, 1);
  for (int seed = 0; seed < 2; ++seed) ExpectSame({{2, 5, 8}}, seed);
  const auto tuned = tunable.tuner->Tune(MeasureGate::Open(), absl::Seconds(2));
  ASSERT_THAT(tuned, IsOk());
  EXPECT_GT(tuned->timed_now, 0);
  for (int seed = 0; seed < 2; ++seed) ExpectSame({{2, 5, 8}}, seed);
}

TEST_F(DeviceProgramTest, ManyShapesAreNotAllKept) {
  Plan(Tokens("Exp"));
  for (int64_t length = 1; length < 40; ++length) ExpectSame({{1, length, 8}});
  for (int64_t length = 1; length < 4; ++length) ExpectSame({{1, length, 8}});
  EXPECT_EQ(device_.last_stream->replays, 0);
}

TEST_F(DeviceProgramTest, AShapeThatFindsNoMemoryHasThatOfOthers) {
  Plan(Tokens("Exp"));
  EXPECT_GT(regional_.on_device->run_memory().bytes, 0);
  EXPECT_EQ(regional_.on_device->run_memory().rows, 2);
  ExpectSame({{1, 100, 8}});
  const int64_t one = device_.memory()->used;
  ExpectSame({{1, 99, 8}});
  device_.total = device_.memory()->used + one / 2;
  ExpectSame({{1, 98, 8}});
  EXPECT_LE(device_.memory()->used, device_.total);
  for (int seed = 0; seed < 3; ++seed) ExpectSame({{1, 100, 8}}, seed);
}

TEST_F(DeviceProgramTest, WhatHasNoFunctionThereIsInterpretedBetweenCopies) {
  Plan(Tokens("Asinh"));
  EXPECT_EQ(regional_.interpreted_nodes(), 1u);
  EXPECT_EQ(regional_.OperatorCounts(), "Asinh:1");
  EXPECT_EQ(regional_.HowItRuns(), "in regions, with interpreted nodes between them");
  for (int seed = 0; seed < 3; ++seed) ExpectSame({{2, 5, 8}}, seed);
  EXPECT_EQ(device_.last_stream->recordings, 0);
}

// Their shapes come of a value's shape, through a sum of its dimensions.
TEST_F(DeviceProgramTest, ArithmeticOfShapesStaysOnTheHostAndIsRecorded) {
  OnnxBuilder builder = Tokens("Exp");
  builder.Node("Shape", {"y"}, {"shape"}).Int64s("first", {1}, {0}).Int64s("rest", {1}, {-1});
  builder.Node("Gather", {"shape", "first"}, {"batch"}, {{"axis", int64_t{0}}});
  builder.Node("Concat", {"batch", "rest"}, {"wanted"}, {{"axis", int64_t{0}}});
  builder.Node("Reshape", {"y", "wanted"}, {"z"}).Output("z");
  Plan(builder);
  EXPECT_EQ(regional_.interpreted_nodes(), 0u) << regional_.OperatorCounts();
  EXPECT_GT(regional_.on_device->placement().shape_nodes, 0);
  for (int seed = 0; seed < 3; ++seed) ExpectSame({{2, 5, 8}}, seed);
  EXPECT_EQ(device_.last_stream->replays, 2);
}

// Of a length that only the elements say.
TEST_F(DeviceProgramTest, ShapesThatFollowElementsAreFoundInEachRun) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 8}).Floats("w1", {8, 8}, Weights(64)).Floats("half", {}, {0.5f});
  builder.Node("MatMul", {"x", "w1"}, {"h"}).Node("Greater", {"h", "half"}, {"large"});
  builder.Node("NonZero", {"large"}, {"places"}).Output("places").Node("Relu", {"h"}, {"y"}).Output("y");
  Plan(builder);
  EXPECT_EQ(regional_.OperatorCounts(), "NonZero:1");
  for (int seed = 0; seed < 3; ++seed) ExpectSame({{6, 8}}, seed);
  for (int seed = 0; seed < 3; ++seed) ExpectSame({{3 + seed, 8}}, seed);
}

OnnxBuilder Table() {
  OnnxBuilder builder;
  builder.Int64Input("ids", {-1, -1}).Floats("table", {5, 8}, Weights(40)).Floats("w", {8, 16}, Weights(128));
  builder.Node("Gather", {"table", "ids"}, {"x"}, {{"axis", int64_t{0}}}).Node("MatMul", {"x", "w"}, {"y"}).Output("y");
  return builder;
}

TEST_F(DeviceProgramTest, AnIndexOutOfRangeEndsItsRunAlone) {
  Plan(Table());
  EXPECT_EQ(regional_.interpreted_nodes(), 0u) << regional_.OperatorCounts();
  for (int seed = 0; seed < 3; ++seed) {
    ExpectSame({{2, 3}}, seed);
    const int64_t ids[] = {0, 4, -5, 1, 5, 2};
    const TensorView view{DType::kInt64, {2, 3}, std::as_bytes(std::span(ids))};
    EXPECT_THAT(runner_->Run({&view, 1}),
                IsError(StatusCode::kInvalidArgument, "node 'x_node': an index is out of range"));
  }
  EXPECT_GT(device_.last_stream->replays, 0);
}

TEST_F(DeviceProgramTest, InputsHaveToBeAsDeclared) {
  Plan(Tokens("Exp"));
  const std::vector<float> elements(16);
  const TensorView wrong{DType::kFloat32, {2, 8}, std::as_bytes(std::span(elements))};
  EXPECT_THAT(runner_->Run({&wrong, 1}), IsError(StatusCode::kInvalidArgument, "input 'x' is [2,8]"));
  const TensorView truncated{DType::kFloat32, {2, 2, 8}, std::as_bytes(std::span(elements))};
  EXPECT_THAT(runner_->Run({&truncated, 1}), IsError(StatusCode::kInvalidArgument, "input 'x' has 64 bytes"));
}

TEST_F(DeviceProgramTest, WhatADeviceHasNoRoomForRunsOnTheHost) {
  program_ = Read(Tokens("Exp"));
  const PlanOptions options{.threads = 1, .tuning_budget = absl::ZeroDuration()};
  device_.out_of_memory = true;
  regional_ = regions::PlanRegions(program_, {*host_, &device_, &device_.functions()}, options);
  EXPECT_EQ(regional_.on_device, nullptr);
  EXPECT_EQ(regional_.not_on_device, "no memory");
  EXPECT_EQ(regional_.PlaceText(), "; all run on the CPU: no memory");
  EXPECT_EQ(regional_.regions.size(), 2u);
  runner_ = *regional_.NewRunner(*host_, 1);
  ExpectSame({{2, 5, 8}});
}

}  // namespace
}  // namespace swizzle::offload
