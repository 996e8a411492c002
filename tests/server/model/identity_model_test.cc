#include "server/model/identity_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/fake_clock.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelSpec IdentitySpec() {
  ModelSpec spec;
  spec.name = "echo";
  spec.max_batch_size = 8;
  spec.inputs = {{"A", DType::kFloat32, {-1}}, {"B", DType::kString, {2}}};
  spec.outputs = {{"C", DType::kFloat32, {-1}}, {"D", DType::kString, {2}}};
  return spec;
}

std::string Refusal(const ModelSpec& spec, absl::Duration delay = absl::ZeroDuration()) {
  const Status status = NewIdentityModel(spec, delay).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  return std::string(status.message());
}

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

TEST(IdentityModelTest, OutputsAreInputs) {
  StatusOr<std::shared_ptr<Model>> model = NewIdentityModel(IdentitySpec(), absl::ZeroDuration());
  ASSERT_TRUE(model.ok()) << model.status();
  StatusOr<std::unique_ptr<Session>> session = (*model)->NewSession(Clock::Real());
  ASSERT_TRUE(session.ok());
  EXPECT_TRUE((*session)->RunsAtOnce(0));

  const std::vector<TensorView> first = {{DType::kFloat32, {1, 2}, BytesOf("12345678")},
                                         {DType::kString, {1, 2}, BytesOf("ab")}};
  const std::vector<TensorView> second = {{DType::kFloat32, {2, 1}, BytesOf("87654321")},
                                          {DType::kString, {2, 2}, BytesOf("")}};
  std::vector<std::string> first_out, second_out;
  std::vector<Shape> first_shapes, second_shapes;
  std::vector<BatchItem> batch = {{first, 1, &first_out, &first_shapes}, {second, 2, &second_out, &second_shapes}};
  BatchTimes times;
  ASSERT_TRUE((*session)->Run(batch, times).ok());
  EXPECT_THAT(first_out, ElementsAre("12345678", "ab"));
  EXPECT_THAT(first_shapes, ElementsAre(Shape{1, 2}, Shape{1, 2}));
  EXPECT_THAT(second_out, ElementsAre("87654321", ""));
  EXPECT_THAT(second_shapes, ElementsAre(Shape{2, 1}, Shape{2, 2}));
}

TEST(IdentityModelTest, ABatchTakesTheDelay) {
  FakeClock clock;
  StatusOr<std::shared_ptr<Model>> model = NewIdentityModel(IdentitySpec(), absl::Milliseconds(20));
  ASSERT_TRUE(model.ok()) << model.status();
  StatusOr<std::unique_ptr<Session>> session = (*model)->NewSession(clock);
  ASSERT_TRUE(session.ok());

  EXPECT_FALSE((*session)->RunsAtOnce(0));
  BatchTimes times;
  std::atomic<bool> ended = false;
  std::thread executor([&] {
    EXPECT_TRUE((*session)->Run({}, times).ok());
    ended = true;
  });
  while (!ended) {
    clock.Advance(absl::Milliseconds(1));
    std::this_thread::yield();
  }
  executor.join();
  EXPECT_GE(times.compute, absl::Milliseconds(20));
}

TEST(IdentityModelTest, RefusesOutputsThatAreNotItsInputs) {
  ModelSpec fewer = IdentitySpec();
  fewer.outputs.pop_back();
  EXPECT_THAT(Refusal(fewer), HasSubstr("identity model 'echo' has 2 inputs and 1 outputs"));

  ModelSpec none = IdentitySpec();
  none.inputs.clear();
  none.outputs.clear();
  EXPECT_THAT(Refusal(none), HasSubstr("at least one"));

  ModelSpec dtype = IdentitySpec();
  dtype.outputs[0].dtype = DType::kInt32;
  EXPECT_THAT(Refusal(dtype), HasSubstr("output 'C' (INT32 [-1]) must have the data type and dims of input 'A' (FP32"));

  ModelSpec dims = IdentitySpec();
  dims.outputs[1].dims = {3};
  EXPECT_THAT(Refusal(dims), HasSubstr("output 'D' (BYTES [3])"));

  EXPECT_THAT(Refusal(IdentitySpec(), absl::Milliseconds(-1)), HasSubstr("must not be negative"));
}

class RecordedAnswers final : public AnswerSink {
 public:
  explicit RecordedAnswers(size_t most) : most_(most) {}
  bool Emit(std::vector<std::string> outputs, std::vector<Shape> shapes) override {
    outputs_.push_back(std::move(outputs));
    shapes_.push_back(std::move(shapes));
    return outputs_.size() < most_;
  }
  bool begun() const override { return !outputs_.empty(); }
  const std::vector<std::vector<std::string>>& outputs() const { return outputs_; }
  const std::vector<std::vector<Shape>>& shapes() const { return shapes_; }

 private:
  const size_t most_;
  std::vector<std::vector<std::string>> outputs_;
  std::vector<std::vector<Shape>> shapes_;
};

TEST(IdentityModelTest, ADecoupledOneAnswersUntilNobodyWantsMore) {
  ModelSpec spec = IdentitySpec();
  spec.decoupled = true;
  auto model = NewIdentityModel(spec, absl::ZeroDuration(), 3);
  ASSERT_TRUE(model.ok());
  auto session = *(*model)->NewSession(Clock::Real());
  EXPECT_FALSE(session->RunsAtOnce(0));
  const std::string bytes = "abcd";
  const std::vector<TensorView> inputs(spec.inputs.size(),
                                       {spec.inputs[0].dtype, {1, 1}, std::as_bytes(std::span(bytes))});
  RecordedAnswers all(10), one(1);
  std::vector<BatchItem> batch(2);
  batch[0].inputs = batch[1].inputs = inputs;
  batch[0].answers = &all;
  batch[1].answers = &one;
  BatchTimes times;
  ASSERT_TRUE(session->Run(batch, times).ok());
  EXPECT_EQ(all.outputs().size(), 3u);
  EXPECT_EQ(all.outputs()[2], std::vector<std::string>(inputs.size(), bytes));
  EXPECT_EQ(all.shapes()[2][0], (Shape{1, 1}));
  EXPECT_EQ(one.outputs().size(), 1u);
}

}  // namespace
}  // namespace swizzle
