#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include "kernels/cpu/cpu_backend.h"
#include "server/model/derived_spec.h"
#include "server/model/served_model.h"
#include "tests/kernels/fake_device.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;

// y = op(x), x and y FP32 of this shape.
ProgramModel OneNode(const std::string& op, const Shape& shape) {
  Graph graph;
  graph.opset = 17;
  graph.inputs = {graph.AddValue({"x", DType::kFloat32, shape, std::nullopt})};
  const int y = graph.AddValue({"y", DType::kFloat32, std::nullopt, std::nullopt});
  graph.nodes.push_back({op, "", "node", graph.inputs, {y}, {}});
  graph.outputs.push_back({"y", y, DType::kFloat32, shape});
  return {*interpreter::Program::Make(std::move(graph)), "a reason"};
}

class InRegionsTest : public ::testing::Test {
 protected:
  StatusOr<std::shared_ptr<ServedModel>> Make(const ProgramModel& model, ModelSpec spec) {
    regions::RegionalProgram regional{
        .program = model.program, .regions = {}, .unplanned = "no weights", .refusals = {}};
    return Serve(std::move(spec), model.reason, {std::move(regional)});
  }
  StatusOr<std::shared_ptr<ServedModel>> Serve(ModelSpec spec, const std::string& reason,
                                               std::vector<regions::RegionalProgram> regionals) {
    std::vector<CompiledModel> models;
    for (regions::RegionalProgram& regional : regionals) models.emplace_back(std::move(regional), reason, *backend_);
    return NewServedModel(std::move(spec), std::move(models), runs_);
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend();
  SessionOptions runs_ = {.threads = 1};
};

// One request of rows of two elements.
struct Request {
  explicit Request(std::vector<float> values) : elements(std::move(values)) {
    const auto rows = static_cast<int64_t>(elements.size() / 2);
    views = {{DType::kFloat32, {rows, 2}, std::as_bytes(std::span(elements))}};
  }
  BatchItem Item() { return {views, static_cast<int64_t>(elements.size() / 2), &outputs, &shapes}; }
  std::vector<float> Result() const {
    std::vector<float> result(outputs.at(0).size() / sizeof(float));
    std::memcpy(result.data(), outputs[0].data(), outputs[0].size());
    return result;
  }

  std::vector<float> elements;
  std::vector<TensorView> views;
  std::vector<std::string> outputs;
  std::vector<Shape> shapes;
};

TEST_F(InRegionsTest, DerivesWhetherRequestsShareABatch) {
  const auto rows = DeriveSpec(InterfaceOf(*OneNode("Neg", {-1, 2}).program));
  ASSERT_THAT(rows, IsOk());
  EXPECT_EQ(rows->max_batch_size, 64);
  EXPECT_EQ(rows->inputs[0].dims, Shape{2});
  const auto of_any_length = DeriveSpec(InterfaceOf(*OneNode("Neg", {-1, -1}).program));
  ASSERT_THAT(of_any_length, IsOk());
  EXPECT_EQ(of_any_length->max_batch_size, 64);
  EXPECT_EQ(of_any_length->inputs[0].dims, Shape{-1});
  const auto whole = DeriveSpec(InterfaceOf(*OneNode("Neg", {2, -1}).program));
  ASSERT_THAT(whole, IsOk());
  EXPECT_EQ(whole->max_batch_size, 0);
  EXPECT_EQ(whole->outputs[0].dims, (Shape{2, -1}));
}

TEST_F(InRegionsTest, ABatchBeyondItsMemoryFailsAlone) {
  const ProgramModel model = OneNode("Neg", {-1, 2});
  runs_.limits.max_live_bytes = 2 * 2 * 8;  // two rows going in, and coming out
  const auto served = Make(model, *DeriveSpec(InterfaceOf(*model.program)));
  ASSERT_THAT(served, IsOk());
  const auto session = (*served)->NewSession(Clock::Real());
  ASSERT_THAT(session, IsOk());
  Request small({1, 2, 3, 4}), large({1, 2, 3, 4, 5, 6});
  BatchTimes times;
  BatchItem items[] = {large.Item()};
  EXPECT_THAT((*session)->Run(items, times), IsError(StatusCode::kResourceExhausted, ""));
  items[0] = small.Item();
  EXPECT_THAT((*session)->Run(items, times), IsOk());
}

// y = x + [1,2,3], or the same in both branches of an If.
Graph SecretSum(bool within) {
  Graph graph;
  graph.opset = 17;
  graph.inputs = {graph.AddValue({"x", DType::kFloat32, Shape{-1, -1}, std::nullopt})};
  const int y = graph.AddValue({"y", DType::kFloat32, std::nullopt, std::nullopt});
  graph.outputs.push_back({"y", y, DType::kFloat32, Shape{-1, -1}});
  if (!within) {
    const int three = graph.AddConstant("three", Tensor::Floats({3}, std::vector<float>{1, 2, 3}));
    graph.nodes.push_back({"Add", "", "/encoder/secret", {graph.inputs[0], three}, {y}, {}});
    return graph;
  }
  const int yes = graph.AddConstant("yes", {DType::kBool, {}, {std::byte{1}}});
  const auto body = std::make_shared<const Body>(Body{SecretSum(false), {1}});
  graph.nodes.push_back({"If", "", "secret", {yes, 0}, {y}, {{"then_branch", body}, {"else_branch", body}}});
  return graph;
}

TEST_F(InRegionsTest, ARequestsErrorNamesTheOperatorAndNoNode) {
  for (const bool within : {false, true}) {
    const ProgramModel model{*interpreter::Program::Make(SecretSum(within)), "a reason"};
    const auto served = Make(model, *DeriveSpec(InterfaceOf(*model.program)));
    ASSERT_THAT(served, IsOk());
    const auto session = (*served)->NewSession(Clock::Real());
    ASSERT_THAT(session, IsOk());
    Request request({1, 2});  // of two columns: three can't be added to them
    BatchItem items[] = {request.Item()};
    BatchTimes times;
    const Status status = (*session)->Run(items, times);
    EXPECT_THAT(status, IsError(StatusCode::kInvalidArgument, within ? "If: Add: " : "Add: "));
    EXPECT_THAT(std::string(status.message()), ::testing::Not(::testing::HasSubstr("secret")));
  }
}

TEST_F(InRegionsTest, GathersAndScattersABatch) {
  const ProgramModel model = OneNode("Neg", {-1, 2});
  const auto served = Make(model, *DeriveSpec(InterfaceOf(*model.program)));
  ASSERT_THAT(served, IsOk());
  const auto session = (*served)->NewSession(Clock::Real());
  ASSERT_THAT(session, IsOk());
  Request one({1, 2}), two({3, 4, 5, 6});
  BatchItem items[] = {one.Item(), two.Item()};
  BatchTimes times;
  ASSERT_THAT((*session)->Run(items, times), IsOk());
  EXPECT_EQ(one.Result(), (std::vector<float>{-1, -2}));
  EXPECT_EQ(two.Result(), (std::vector<float>{-3, -4, -5, -6}));
  EXPECT_EQ(one.shapes[0], (Shape{1, 2}));
  EXPECT_EQ(two.shapes[0], (Shape{2, 2}));
}

// However many are computed at once meanwhile, which is tried.
TEST_F(InRegionsTest, EachRequestHasItsRowsWhicheverAreComputedAtOnce) {
  const ProgramModel model = OneNode("Neg", {-1, 2});
  const auto served = Make(model, *DeriveSpec(InterfaceOf(*model.program)));
  ASSERT_THAT(served, IsOk());
  const auto session = (*served)->NewSession(Clock::Real());
  ASSERT_THAT(session, IsOk());
  BatchTimes times;
  for (int batch = 0; batch < 60; ++batch) {
    std::vector<float> many(18);
    for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<float>(100 + i);
    Request one({1, 2}), two({3, 4, 5, 6}), nine(many);
    BatchItem items[] = {one.Item(), nine.Item(), two.Item()};
    ASSERT_THAT((*session)->Run(items, times), IsOk());
    EXPECT_EQ(one.Result(), (std::vector<float>{-1, -2}));
    EXPECT_EQ(two.Result(), (std::vector<float>{-3, -4, -5, -6}));
    for (float& element : many) element = -element;
    EXPECT_EQ(nine.Result(), many);
    EXPECT_EQ(nine.shapes[0], (Shape{9, 2}));
  }
}

TEST_F(InRegionsTest, ABatchIsOfOneShape) {
  const ProgramModel model = OneNode("Neg", {-1, -1});
  const auto served = Make(model, *DeriveSpec(InterfaceOf(*model.program)));
  ASSERT_THAT(served, IsOk());
  const auto session = (*served)->NewSession(Clock::Real());
  ASSERT_THAT(session, IsOk());
  Request one({1, 2}), two({3, 4, 5, 6}), longer({7, 8, 9, 10});
  longer.views[0].shape = {1, 4};
  EXPECT_EQ((*served)->BatchClass(one.views), (*served)->BatchClass(two.views));
  EXPECT_NE((*served)->BatchClass(one.views), (*served)->BatchClass(longer.views));
  BatchTimes times;
  BatchItem alike[] = {one.Item(), two.Item()};
  ASSERT_THAT((*session)->Run(alike, times), IsOk());
  EXPECT_EQ(two.Result(), (std::vector<float>{-3, -4, -5, -6}));
  BatchItem unlike[] = {one.Item(), longer.Item()};
  EXPECT_THAT((*session)->Run(unlike, times), IsError(StatusCode::kInternal, "requests of several shapes"));
  Request none({1, 2});
  none.views = {{DType::kFloat32, {1, 0}, {}}};
  BatchItem empty[] = {none.Item(), none.Item()};
  EXPECT_THAT((*session)->Run(empty, times), IsError(StatusCode::kInternal, "requests without elements"));
  EXPECT_THAT((*session)->Run(std::span(empty).first(1), times), IsOk());
}

TEST_F(InRegionsTest, OneShapeIsOneClass) {
  const ProgramModel model = OneNode("Neg", {-1, 2});
  const auto served = Make(model, *DeriveSpec(InterfaceOf(*model.program)));
  ASSERT_THAT(served, IsOk());
  EXPECT_EQ((*served)->BatchClass(Request({1, 2}).views), (*served)->BatchClass(Request({3, 4, 5, 6}).views));
}

// A shape that has not come before may have to be planned for, for which no thread is borrowed.
TEST_F(InRegionsTest, RunsShapesAtOnceThatRanBefore) {
  runs_.turns = std::make_shared<ComputeTurns>(2);
  const ProgramModel model = OneNode("Neg", {-1, -1});
  const auto served = Make(model, *DeriveSpec(InterfaceOf(*model.program)));
  ASSERT_THAT(served, IsOk());
  const auto session = (*served)->NewSession(Clock::Real());
  ASSERT_THAT(session, IsOk());
  Request one({1, 2}), longer({7, 8, 9, 10});
  longer.views[0].shape = {1, 4};
  const uint64_t short_class = (*served)->BatchClass(one.views), long_class = (*served)->BatchClass(longer.views);
  EXPECT_FALSE((*session)->RunsAtOnce(short_class));
  BatchTimes times;
  BatchItem batch[] = {one.Item()};
  ASSERT_THAT((*session)->Run(batch, times), IsOk());
  EXPECT_TRUE((*session)->RunsAtOnce(short_class));
  EXPECT_FALSE((*session)->RunsAtOnce(long_class));
  ExecutorTurn other(runs_.turns, std::make_shared<ComputeTurns::Share>());
  other.Begin(1);
  EXPECT_FALSE((*session)->RunsAtOnce(short_class)) << "it would wait for another model";
  other.End();
}

// Stands still, and counts who looks at it.
class WatchedClock final : public Clock {
 public:
  Instant Now() override {
    ++looks;
    return Instant();
  }
  absl::Time WallNow() override { return absl::UnixEpoch(); }
  void WaitUntil(Mutex&, CondVar&, Instant) override {}
  std::atomic<int> looks = 0;
};

// An executor of another model computes, and nothing is left of the processors.
TEST_F(InRegionsTest, ComputesInItsTurn) {
  WatchedClock clock;
  runs_.turns = std::make_shared<ComputeTurns>(1, clock);
  const ProgramModel model = OneNode("Neg", {-1, 2});
  const auto served = Make(model, *DeriveSpec(InterfaceOf(*model.program)));
  ASSERT_THAT(served, IsOk());
  const auto session = (*served)->NewSession(Clock::Real());
  ASSERT_THAT(session, IsOk());
  ExecutorTurn other(runs_.turns, std::make_shared<ComputeTurns::Share>());
  other.Begin(1);
  std::atomic<bool> others_turn = true;
  std::thread executor([&] {
    Request request({1, 2});
    BatchItem items[] = {request.Item()};
    BatchTimes times;
    EXPECT_THAT((*session)->Run(items, times), IsOk());
    EXPECT_FALSE(others_turn);
    EXPECT_EQ(request.Result(), (std::vector<float>{-1, -2}));
  });
  while (clock.looks < 3) std::this_thread::yield();  // the other began, this one did, and it asks for its turn
  others_turn = false;
  other.End();
  executor.join();
}

TEST_F(InRegionsTest, SaysWhatFellBackAndWhy) {
  const ProgramModel model = OneNode("Neg", {-1, 2});
  const auto served = Make(model, *DeriveSpec(InterfaceOf(*model.program)));
  ASSERT_THAT(served, IsOk());
  const auto& properties = (*served)->facts()->properties;
  EXPECT_EQ(properties.at("swizzle_fallback"), "all");
  EXPECT_EQ(properties.at("swizzle_fallback_nodes"), "Neg:1");
  EXPECT_EQ(properties.at("swizzle_fallback_reason"), "a reason");
  EXPECT_EQ(properties.at("swizzle_zeros"),
            "zeros in its weights bring nothing, since no layer is planned: no weights");
}

// y = op(x * [[1, 2], [0, -1]]).
std::shared_ptr<const interpreter::Program> ProductAnd(const std::string& op) {
  Graph graph;
  graph.opset = 17;
  graph.inputs = {graph.AddValue({"x", DType::kFloat32, Shape{-1, 2}, std::nullopt})};
  const std::vector<float> weights = {1, 2, 0, -1};
  const int w = graph.AddConstant("w", Tensor::Floats({2, 2}, weights));
  const int m = graph.AddValue({"m", DType::kFloat32, std::nullopt, std::nullopt});
  const int y = graph.AddValue({"y", DType::kFloat32, std::nullopt, std::nullopt});
  graph.nodes.push_back({"MatMul", "", "product", {graph.inputs[0], w}, {m}, {}});
  graph.nodes.push_back({op, "", "function", {m}, {y}, {}});
  graph.outputs.push_back({"y", y, DType::kFloat32, Shape{-1, 2}});
  return *interpreter::Program::Make(std::move(graph));
}

TEST_F(InRegionsTest, SessionsTakeTheDevicesInTurn) {
  FakeDevice first("fake:0"), second("fake:1");
  const auto program = ProductAnd("Neg");
  const PlanOptions options{.threads = 1, .tuning_budget = absl::ZeroDuration()};
  std::vector<regions::RegionalProgram> regionals;
  for (FakeDevice* const device : {&first, &second}) {
    regionals.push_back(regions::PlanRegions(program, {*backend_, device, &device->functions()}, options));
    ASSERT_NE(regionals.back().on_device, nullptr) << regionals.back().not_on_device;
  }
  const int64_t weight_bytes = regionals.front().regions[0]->plan()->report().device_bytes;
  const auto served = Serve(*DeriveSpec(InterfaceOf(*program)), "a reason", std::move(regionals));
  ASSERT_THAT(served, IsOk());
  EXPECT_EQ((*served)->facts()->device_bytes, weight_bytes) << "of each device; the host has its own copy";
  EXPECT_THAT((*served)->facts()->devices, ::testing::ElementsAre("fake:0", "fake:1"));
  EXPECT_EQ((*served)->facts()->device, "fake");
  first.last_stream = second.last_stream = nullptr;
  const auto one = (*served)->NewSession(Clock::Real()), other = (*served)->NewSession(Clock::Real());
  EXPECT_NE(first.last_stream, nullptr);
  EXPECT_NE(second.last_stream, nullptr);
  for (const auto* const session : {&one, &other}) {
    ASSERT_THAT(*session, IsOk());
    Request request({3, 5});
    BatchItem items[] = {request.Item()};
    BatchTimes times;
    ASSERT_THAT((**session)->Run(items, times), IsOk());
    EXPECT_THAT(request.Result(), ::testing::ElementsAre(-3, -1));
  }
}

TEST_F(InRegionsTest, SaysWhatIsPlanned) {
  const auto program = ProductAnd("Tan");
  const PlanOptions options{.threads = 1, .tuning_budget = absl::ZeroDuration()};
  const regions::RegionalProgram regional = regions::PlanRegions(program, *backend_, options);
  const auto served = Serve(*DeriveSpec(InterfaceOf(*program)), "a reason", {regional});
  ASSERT_THAT(served, IsOk());
  const std::shared_ptr<const ModelFacts> facts = (*served)->facts();
  EXPECT_EQ(facts->properties.at("swizzle_fallback"), "parts");
  EXPECT_EQ(facts->properties.at("swizzle_regions"), "1");
  EXPECT_EQ(facts->properties.at("swizzle_fallback_nodes"), "Tan:1");
  ASSERT_EQ(facts->kernels.size(), 1u);
  EXPECT_EQ(facts->kernels[0].op, "Conv");
  EXPECT_EQ(facts->sparsity, 0.25);
  EXPECT_EQ((*served)->facts(), facts);
  const auto session = (*served)->NewSession(Clock::Real());
  ASSERT_THAT(session, IsOk());
  Request request({1, 1});
  BatchItem items[] = {request.Item()};
  BatchTimes times;
  ASSERT_THAT((*session)->Run(items, times), IsOk());
  EXPECT_FLOAT_EQ(request.Result()[0], std::tan(1.0f));
  EXPECT_FLOAT_EQ(request.Result()[1], std::tan(1.0f));

  const regions::RegionalProgram other = regions::PlanRegions(program, *backend_, options);
  std::const_pointer_cast<regions::PlannedRegion>(regional.regions[0])->Replace(other.regions[0]->plan(), nullptr);
  EXPECT_NE((*served)->facts(), facts) << "they are of the plans that run";
}

TEST_F(InRegionsTest, RefusesSpecificationsThatDoNotFit) {
  const ProgramModel model = OneNode("Neg", {2, -1});
  const auto refuses = [&](auto change, const std::string& message) {
    ModelSpec spec = *DeriveSpec(InterfaceOf(*model.program));
    change(spec);
    EXPECT_THAT(Make(model, std::move(spec)), IsError(StatusCode::kInvalidArgument, message));
  };
  refuses([](ModelSpec& spec) { spec.max_batch_size = 8; }, "max_batch_size must be 0, not 8");
  refuses([](ModelSpec& spec) { spec.inputs[0].name = "z"; }, "is configured, but the model has 'x'");
  refuses([](ModelSpec& spec) { spec.inputs[0].dtype = DType::kInt64; }, "is configured as INT64, but is FP32");
  refuses([](ModelSpec& spec) { spec.outputs[0].dims = {3}; }, "is configured with dims [3]");
  refuses([](ModelSpec& spec) { spec.inputs.push_back(spec.inputs[0]); }, "is configured twice");
  refuses([](ModelSpec& spec) { spec.inputs.clear(); }, "input 'x' of model '' is not configured");
}

TEST_F(InRegionsTest, TakesNoOtherSizesThanAreServed) {
  const ProgramModel model = OneNode("Neg", {-1, -1, 4});
  ModelSpec spec = *DeriveSpec(InterfaceOf(*model.program));
  EXPECT_EQ(InterfaceOf(WithServedInputs(model, spec)).inputs[0].shape, (Shape{-1, -1, 4}));
  spec.inputs[0].dims = {7, -1};
  EXPECT_EQ(InterfaceOf(WithServedInputs(model, spec)).inputs[0].shape, (Shape{-1, 7, 4}));
  spec.max_batch_size = 0;
  spec.inputs[0].dims = {3, 7, -1};
  EXPECT_EQ(InterfaceOf(WithServedInputs(model, spec)).inputs[0].shape, (Shape{3, 7, 4}));
  spec.inputs[0].dims = {3, 7, 5};
  EXPECT_EQ(InterfaceOf(WithServedInputs(model, spec)).inputs[0].shape, (Shape{-1, -1, 4})) << "which does not fit";
}

TEST_F(InRegionsTest, RefusesWhatNoRequestCanSatisfy) {
  const ProgramModel model = OneNode("Det", {-1, 2, 3});
  const PlanOptions options{.threads = 1, .tuning_budget = absl::ZeroDuration()};
  const regions::RegionalProgram regional = regions::PlanRegions(model.program, *backend_, options);
  EXPECT_THAT(Serve(*DeriveSpec(InterfaceOf(*model.program)), model.reason, {regional}),
              IsError(StatusCode::kFailedPrecondition, "Det node 'node'"));
}

TEST_F(InRegionsTest, WantsDeclaredOutputs) {
  Graph graph;
  graph.opset = 17;
  graph.inputs = {graph.AddValue({"x", DType::kFloat32, Shape{2}, std::nullopt})};
  graph.outputs.push_back({"y", graph.inputs[0]});
  EXPECT_THAT(DeriveSpec(InterfaceOf(**interpreter::Program::Make(std::move(graph)))),
              IsError(StatusCode::kUnimplemented, "output 'y' is declared without type or shape"));
}

}  // namespace
}  // namespace swizzle
