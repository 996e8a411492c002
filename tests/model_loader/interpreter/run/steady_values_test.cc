#include "model_loader/interpreter/run/steady_values.h"

#include <gtest/gtest.h>

#include "tests/model_loader/interpreter/operators/run_node.h"
#include "tests/support/status_matchers.h"

namespace swizzle::interpreter {
namespace {

using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;

SteadyValues::Values SomeValues(int64_t elements) {
  return {{3, *Memory::New({})->Allocate(DType::kInt64, {elements})}};
}

TEST(SteadyValues, KeepsACopy) {
  SteadyValues steady;
  SteadyValues::Values values = SomeValues(2);
  values[0].second.Mutable<int64_t>()[1] = 7;
  EXPECT_EQ(steady.Find({{2, 4}}), nullptr);
  steady.Keep({{2, 4}}, values);
  values[0].second.Mutable<int64_t>()[1] = 8;
  const auto found = steady.Find({{2, 4}});
  ASSERT_NE(found, nullptr);
  EXPECT_EQ((*found)[0].first, 3);
  EXPECT_EQ(Wholes((*found)[0].second)[1], 7);
  EXPECT_EQ(steady.Find({{4, 2}}), nullptr);
}

TEST(SteadyValues, KeepsThoseOfThousandsOfShapes) {
  SteadyValues steady;
  for (int64_t width = 0; width < 2000; ++width) steady.Keep({{width}}, SomeValues(1));
  for (int64_t width = 0; width < 2000; ++width) EXPECT_NE(steady.Find({{width}}), nullptr) << width;
}

TEST(SteadyValues, BytesDoNotGrowWithoutBound) {
  SteadyValues steady;
  const int64_t third = SteadyValues::kMostBytes / 3 / static_cast<int64_t>(sizeof(int64_t));
  for (const int64_t width : {1000, 1001}) steady.Keep({{width}}, SomeValues(third));
  steady.Find({{1000}});
  steady.Keep({{1002}}, SomeValues(third));
  EXPECT_EQ(steady.Find({{1001}}), nullptr) << "it was asked for longest ago";
  EXPECT_NE(steady.Find({{1000}}), nullptr);
  EXPECT_NE(steady.Find({{1002}}), nullptr);
  steady.Keep({{2000}}, SomeValues(4 * third));
  EXPECT_EQ(steady.Find({{2000}}), nullptr);
  EXPECT_NE(steady.Find({{1002}}), nullptr);
}

// y = x divided by the root of its width: four nodes for the root.
class SteadyNodesTest : public ::testing::Test {
 protected:
  SteadyNodesTest() {
    OnnxBuilder builder;
    builder.Input("x", {-1, -1}).Int64s("one", {}, {1}).Node("Shape", {"x"}, {"shape"});
    builder.Node("Gather", {"shape", "one"}, {"width"}).Node("Cast", {"width"}, {"real"}, {{"to", int64_t{1}}});
    builder.Node("Sqrt", {"real"}, {"root"}).Node("Div", {"x", "root"}, {"y"}).Output("y").Output("root");
    program_ = (*ReadProgram(std::span<const std::byte>(builder.Bytes())))->Divided({{}, {}, {0, 1, 2, 3}});
  }

  // The outputs, and how many turns were run for them.
  std::pair<std::vector<Array>, size_t> Run(const Tensor& x) {
    std::vector<TurnTime> times;
    RunSupplies supplies;
    supplies.blocks = blocks_;
    supplies.times = &times;
    const TensorView views[] = {{x.dtype, x.shape, x.bytes}};
    auto outputs = program_->Run(views, **backend_->NewStream(1), {}, nullptr, supplies);
    EXPECT_THAT(outputs, IsOk());
    return {*std::move(outputs), times.size()};
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend();
  const std::shared_ptr<BlockStore> blocks_ = std::make_shared<BlockRange>();
  std::shared_ptr<const Program> program_;
};

TEST_F(SteadyNodesTest, RunOnceForEachShape) {
  EXPECT_EQ(program_->interpreted_nodes(), 1u);
  EXPECT_EQ(program_->OperatorCounts(), "Div:1");
  EXPECT_EQ(Run(Floats({1, 4}, {2, 4, 6, 8})).second, 5u);
  const auto [again, turns] = Run(Floats({1, 4}, {4, 8, 12, 16}));
  EXPECT_EQ(turns, 1u);
  EXPECT_EQ(Values(again[0]), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(Values(again[1]), (std::vector<float>{2}));
  const auto [other, other_turns] = Run(Floats({2, 1}, {3, 5}));
  EXPECT_EQ(other_turns, 5u);
  EXPECT_EQ(Values(other[0]), (std::vector<float>{3, 5}));
}

TEST_F(SteadyNodesTest, AllRunForWhoeverWatches) {
  Run(Floats({1, 4}, {2, 4, 6, 8}));
  int seen = 0;
  const Tensor x = Floats({1, 4}, {2, 4, 6, 8});
  const TensorView views[] = {{x.dtype, x.shape, x.bytes}};
  const NodeWatch watch = [&](const Node&, std::span<Array>, Memory&, Stream&) {
    ++seen;
    return Status();
  };
  EXPECT_THAT(program_->Run(views, **backend_->NewStream(1), {}, watch), IsOk());
  EXPECT_EQ(seen, 5);
}

}  // namespace
}  // namespace swizzle::interpreter
