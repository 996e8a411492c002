// Recurrent nodes whose products are planned. tests/integration/interpreter_test.py compares them with ONNX Runtime.
#include "model_loader/regions/recurrence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/regions/plan_regions.h"
#include "tests/support/counting_gate.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle::regions {
namespace {

using interpreter::Array;
using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;
using AttributeMap = std::map<std::string, Attribute>;

constexpr int64_t kInputs = 7;

// One in `of` is not zero.
std::vector<float> DrawnNumbers(int64_t count, int of, float reach = 0.5f) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t hash = i * 2654435761u % 1009;
    values[i] = hash % static_cast<size_t>(of) != 0 ? 0.0f : (static_cast<float>(hash % 101) / 50.0f - 1.0f) * reach;
  }
  return values;
}

// x [steps, batch, 7], both free, through a node of weights of which one in `of` is not zero.
OnnxBuilder RecurrentNetwork(const std::string& op, int64_t gates, int64_t units, int of,
                             const AttributeMap& attributes = {}) {
  const bool both = attributes.contains("direction") && attributes.at("direction") == Attribute("bidirectional");
  const int64_t directions = both ? 2 : 1, rows = gates * units;
  OnnxBuilder builder;
  builder.Input("x", {-1, -1, kInputs});
  builder.Floats("w", {directions, rows, kInputs}, DrawnNumbers(directions * rows * kInputs, of));
  builder.Floats("r", {directions, rows, units}, DrawnNumbers(directions * rows * units, of));
  builder.Floats("b", {directions, 2 * rows}, DrawnNumbers(directions * 2 * rows, 1));
  builder.Node(op, {"x", "w", "r", "b"}, {"y", "y_h"}, attributes).Output("y").Output("y_h");
  return builder;
}

class RecurrenceTest : public ::testing::Test {
 protected:
  RegionalProgram Plan(const OnnxBuilder& builder, int threads, absl::Duration budget = {}) {
    program_ = *interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes()));
    const PlanOptions options{.threads = threads, .tuning_budget = budget};
    return PlanRegions(program_, *backend_, options);
  }

  StatusOr<std::vector<Array>> Run(const interpreter::Program& program, const Shape& shape, int threads,
                                   const interpreter::Limits& limits = {}, StepGate* gate = nullptr) {
    const std::vector<float> x = DrawnNumbers(*ElementCount(shape), 1, 2.0f);
    const TensorView view{DType::kFloat32, shape, std::as_bytes(std::span(x))};
    SWIZZLE_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, backend_->NewStream(threads));
    return program.Run({&view, 1}, *stream, limits, nullptr, {nullptr, gate});
  }

  // That plans compute what the interpreter does.
  void ExpectSame(const RegionalProgram& regional, const Shape& shape, int threads) {
    const auto expected = Run(*program_, shape, 1);
    const auto actual = Run(*regional.program, shape, threads);
    ASSERT_THAT(expected, IsOk());
    ASSERT_THAT(actual, IsOk());
    for (size_t output = 0; output < expected->size(); ++output) {
      const Array &is = (*actual)[output], &as = (*expected)[output];
      ASSERT_EQ(is.shape, as.shape);
      for (size_t i = 0; i < as.As<float>().size(); ++i) ASSERT_NEAR(is.As<float>()[i], as.As<float>()[i], 2e-5) << i;
    }
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend();
  std::shared_ptr<const interpreter::Program> program_;
};

// Of vectors that end with a step's units and of others, by threads of their own and together.
TEST_F(RecurrenceTest, PlansAreRight) {
  const AttributeMap both = {{"direction", std::string("bidirectional")}};
  const AttributeMap back = {{"direction", std::string("reverse")}};
  struct Kind {
    std::string op;
    int64_t gates;
    AttributeMap more = {};
    size_t phases = 1;
  };
  for (const Kind& kind : {Kind{"LSTM", 4}, Kind{"GRU", 3, {}, 2}, Kind{"RNN", 1},
                           Kind{"GRU", 3, {{"linear_before_reset", int64_t{1}}}}}) {
    for (const auto& [attributes, units, of] : {std::tuple(AttributeMap(), 33, 10), std::tuple(back, 32, 1),
                                                std::tuple(both, 48, 8), std::tuple(AttributeMap(), 300, 1)}) {
      AttributeMap all = attributes;
      all.insert(kind.more.begin(), kind.more.end());
      for (const int threads : {1, 2}) {
        const RegionalProgram regional = Plan(RecurrentNetwork(kind.op, kind.gates, units, of, all), threads);
        ASSERT_EQ(regional.program->interpreted_nodes(), 0u) << kind.op << " " << units;
        const size_t directions = attributes == both ? 2 : 1;
        ASSERT_EQ(regional.regions.size(), 1 + directions * kind.phases);
        ASSERT_EQ(regional.recurrences.size(), 1u);
        for (const Shape& shape : {Shape{5, 1, kInputs}, Shape{3, 3, kInputs}, Shape{2, 70, kInputs}}) {
          ExpectSame(regional, shape, threads);
        }
      }
    }
  }
}

// A thread's rows end with a vector, but begin within one.
TEST_F(RecurrenceTest, RowsOfAThreadMayBeginWithinAVector) {
  for (const auto& [units, batch, threads] : {std::tuple(8, 3, 2), std::tuple(4, 7, 2), std::tuple(4, 15, 3)}) {
    for (const int of : {1, 10}) {
      for (const auto& [op, gates] : {std::pair("LSTM", 4), std::pair("GRU", 3), std::pair("RNN", 1)}) {
        ExpectSame(Plan(RecurrentNetwork(op, gates, units, of), threads), {4, batch, kInputs}, threads);
      }
    }
  }
}

TEST_F(RecurrenceTest, MeasuredPlansAreRight) {
  const auto network = RecurrentNetwork("LSTM", 4, 64, 10, {{"direction", std::string("bidirectional")}});
  ExpectSame(Plan(network, 2, absl::Seconds(1)), {6, 2, kInputs}, 2);
}

TEST_F(RecurrenceTest, TakesSequencesOfNoStepsAndBatchesOfNoRows) {
  const RegionalProgram regional = Plan(RecurrentNetwork("LSTM", 4, 16, 4), 1);
  ExpectSame(regional, {0, 2, kInputs}, 1);
  ExpectSame(regional, {3, 0, kInputs}, 1);
}

// By the interpreter and planned: of units that threads share, of directions that each has its own of, and by one.
TEST_F(RecurrenceTest, AsksAGateBetweenSteps) {
  constexpr int kSteps = 80;
  const Shape shape = {kSteps, 4, kInputs};
  for (const auto& [units, direction] : {std::pair(400, "forward"), std::pair(256, "bidirectional")}) {
    for (const int threads : {1, 2}) {
      const RegionalProgram regional =
          Plan(RecurrentNetwork("LSTM", 4, units, 1, {{"direction", std::string(direction)}}), threads);
      for (const interpreter::Program* program : {program_.get(), regional.program.get()}) {
        SCOPED_TRACE(::testing::Message() << units << " units, " << threads << " threads, "
                                          << (program == program_.get() ? "interpreted" : "planned"));
        swizzle::testing::CountingGate gate;
        const auto free = Run(*program, shape, threads), gated = Run(*program, shape, threads, {}, &gate);
        ASSERT_THAT(gated, IsOk());
        EXPECT_GE(gate.asked, kSteps / 8);
        EXPECT_EQ(gate.waited, 1);
        EXPECT_TRUE(std::ranges::equal((*gated)[0].As<float>(), (*free)[0].As<float>()));
      }
    }
  }
}

// Not for the most rows that a plan takes, 64, which would be 2 MB here.
TEST_F(RecurrenceTest, HasMemoryForTheRowsThatThereAre) {
  const RegionalProgram regional = Plan(RecurrentNetwork("LSTM", 4, 512, 10), 1);
  EXPECT_THAT(Run(*regional.program, {2, 1, kInputs}, 1, {.max_live_bytes = 200'000}), IsOk());
}

TEST_F(RecurrenceTest, HoldsNoWeightTwice) {
  const RegionalProgram regional = Plan(RecurrentNetwork("GRU", 3, 16, 4), 1);
  program_ = nullptr;
  EXPECT_EQ(regional.program->weight_bytes(), 0);
  EXPECT_GT(regional.weight_bytes(), 0);
}

TEST_F(RecurrenceTest, LeavesWhatItDoesNotKnowToTheInterpreter) {
  OnnxBuilder unknown;
  unknown.Input("x", {3, 2, kInputs}).Input("r", {1, 8, 8}).Floats("w", {1, 8, kInputs}, DrawnNumbers(8 * kInputs, 1));
  unknown.Node("RNN", {"x", "w", "r"}, {"y"}).Output("y");
  const RegionalProgram regional = Plan(unknown, 1);
  EXPECT_TRUE(regional.recurrences.empty());
}

}  // namespace
}  // namespace swizzle::regions
