#include "server/repository/warm_up.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "server/model/identity_model.h"
#include "server/threading/clock.h"
#include "tests/server/repository_directory.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Keeps what its sessions ran: of each batch the bytes of each item's first input.
class ListeningModel final : public Model {
 public:
  explicit ListeningModel(ModelSpec spec) : spec_(std::move(spec)) {}
  const ModelSpec& spec() const override { return spec_; }
  std::shared_ptr<const ModelFacts> facts() const override { return std::make_shared<const ModelFacts>(); }
  StatusOr<std::vector<int64_t>> CheckRequest(std::span<const TensorView> inputs) const override {
    if (refuses) return InvalidArgument("these values are none");
    shape = inputs[0].shape;
    return std::vector<int64_t>{tokens};
  }
  StatusOr<std::unique_ptr<Session>> NewSession(Clock&) override { return std::make_unique<Listening>(*this); }

  bool refuses = false, fails = false;
  int64_t tokens = 0;
  mutable Shape shape;  // of the first input that was checked last
  std::vector<std::vector<std::string>> batches;

 private:
  class Listening final : public Session {
   public:
    explicit Listening(ListeningModel& model) : model_(model) {}
    Status Run(std::span<BatchItem> batch, BatchTimes&) override {
      auto& items = model_.batches.emplace_back();
      for (const BatchItem& item : batch) {
        const std::span<const std::byte> bytes = item.inputs[0].bytes;
        items.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      }
      return model_.fails ? absl::InternalError("the device is lost") : absl::OkStatus();
    }

   private:
    ListeningModel& model_;
  };
  const ModelSpec spec_;
};

class WarmUpTest : public ::testing::Test {
 protected:
  WarmUpTest() { SetInput({"X", DType::kFloat32, {2}}); }

  void SetInput(TensorSpec input, int64_t max_batch_size = 8) {
    ModelSpec spec;
    spec.name = "m";
    spec.max_batch_size = max_batch_size;
    spec.inputs = {std::move(input)};
    model_ = std::make_unique<ListeningModel>(std::move(spec));
  }

  Status Run(const std::string& samples) {
    inference::ModelConfig config;
    SWIZZLE_CHECK(google::protobuf::TextFormat::ParseFromString(samples, &config));
    const StatusOr<WarmUp> warm_up = WarmUp::Of(config, *model_, repository_.path() / "m");
    if (!warm_up.ok()) return warm_up.status();
    const auto session = *model_->NewSession(Clock::Real());
    return warm_up->Run(*session);
  }
  std::string ErrorOf(const std::string& input, const std::string& name = "X") {
    return std::string(
        Run(Concat("model_warmup { name: 's' inputs { key: '", name, "' value { ", input, " } } }")).message());
  }

  RepositoryDirectory repository_;
  std::unique_ptr<ListeningModel> model_;
};

TEST_F(WarmUpTest, RunsSamplesOfZerosAsOftenAsTheySay) {
  const std::string x = "inputs { key: 'X' value { data_type: TYPE_FP32 dims: 2 zero_data: true } }";
  ASSERT_TRUE(
      Run("model_warmup { name: 'one' " + x + " } model_warmup { name: 'many' batch_size: 3 count: 2 " + x + " }")
          .ok());
  const std::string zeros(8, '\0');
  EXPECT_THAT(model_->batches,
              ElementsAre(ElementsAre(zeros), ElementsAre(zeros, zeros, zeros), ElementsAre(zeros, zeros, zeros)));
  EXPECT_THAT(model_->shape, ElementsAre(1, 2));
}

TEST_F(WarmUpTest, TellsShapesThatRequestsHave) {
  inference::ModelConfig config;
  SWIZZLE_CHECK(google::protobuf::TextFormat::ParseFromString(
      "model_warmup { name: 'one' inputs { key: 'X' value { data_type: TYPE_FP32 dims: [3, 7] zero_data: true } } }"
      "model_warmup { name: 'wrong' inputs { key: 'X' value { data_type: TYPE_FP32 dims: 9 zero_data: true } } }",
      &config));
  const regions::SampleShapes batched = {{{"X", {1, 3, 7}}}, {}}, plain = {{{"X", {3, 7}}}, {}};
  const regions::SampleShapes reshaped = {{{"X", {1, 7, 1, 3}}}, {}};
  SetInput({"X", DType::kFloat32, {3, -1}});
  EXPECT_EQ(WarmUp::ShapesOf(config, model_->spec()), batched);
  SetInput({"X", DType::kFloat32, {-1, 7}}, 0);
  EXPECT_EQ(WarmUp::ShapesOf(config, model_->spec()), plain);
  SetInput({.name = "X", .dims = {-1, 1, 3}, .reshaped = Shape{3, -1}});
  EXPECT_EQ(WarmUp::ShapesOf(config, model_->spec()), reshaped);
}

TEST_F(WarmUpTest, DrawsNumbersThatModelsTake) {
  const std::string random = "dims: 64 random_data: true";
  SetInput({"X", DType::kFloat32, {-1}});
  ASSERT_EQ(ErrorOf("data_type: TYPE_FP32 " + random), "");
  std::vector<float> numbers(64);
  std::memcpy(numbers.data(), model_->batches[0][0].data(), model_->batches[0][0].size());
  for (const float number : numbers) EXPECT_LE(std::abs(number), 1.0f);
  EXPECT_NE(numbers.front(), numbers.back());

  SetInput({"X", DType::kInt64, {-1}});
  ASSERT_EQ(ErrorOf("data_type: TYPE_INT64 " + random), "");
  std::vector<int64_t> ids(64);
  std::memcpy(ids.data(), model_->batches[0][0].data(), model_->batches[0][0].size());
  EXPECT_EQ(std::ranges::count(ids, 0) + std::ranges::count(ids, 1), 64);

  SetInput({"X", DType::kString, {-1}});
  EXPECT_EQ(ErrorOf("data_type: TYPE_STRING " + random), "");
  SetInput({"X", DType::kFloat16, {-1}});
  ASSERT_EQ(ErrorOf("data_type: TYPE_FP16 " + random), "");
  EXPECT_EQ(model_->batches[0][0].size(), 128u);
}

TEST_F(WarmUpTest, ReadsFilesOfTheFolderWarmup) {
  repository_.Write("m/warmup/x", "12345678");
  repository_.Write("m/x", "12345678");
  const std::string fp32 = "data_type: TYPE_FP32 dims: 2 input_data_file: ";
  ASSERT_EQ(ErrorOf(fp32 + "'x'"), "");
  EXPECT_THAT(model_->batches, ElementsAre(ElementsAre("12345678")));
  EXPECT_THAT(ErrorOf(fp32 + "'../x'"), HasSubstr("is not below the model's folder"));
  EXPECT_THAT(ErrorOf(fp32 + "'y'"), HasSubstr("its file 'y' is not there"));
  repository_.Write("m/warmup/x", "1234567");
  EXPECT_EQ(ErrorOf(fp32 + "'x'"),
            "config.pbtxt: sample 's' of 'model_warmup': input 'X': has a file of 7 bytes, which are not 2 elements of "
            "FP32");
}

TEST_F(WarmUpTest, SamplesAreCheckedAsRequestsAre) {
  const std::string sample = "config.pbtxt: sample 's' of 'model_warmup': ";
  EXPECT_EQ(ErrorOf("data_type: TYPE_FP32 dims: 3 zero_data: true"),
            sample + "input 'X': is FP32 [3]; FP32 [2] is expected");
  EXPECT_EQ(ErrorOf("data_type: TYPE_INT32 dims: 2 zero_data: true"),
            sample + "input 'X': is INT32 [2]; FP32 [2] is expected");
  EXPECT_EQ(ErrorOf("dims: 2 zero_data: true"), sample + "input 'X': is of no type [2]; FP32 [2] is expected");
  EXPECT_EQ(ErrorOf("data_type: TYPE_FP32 dims: 2"),
            sample + "input 'X': has no data; give zero_data, random_data or input_data_file");
  EXPECT_EQ(ErrorOf("data_type: TYPE_FP32 dims: 2 zero_data: true", "Z"), sample + "has no input 'X'");
  EXPECT_EQ(std::string(Run("model_warmup { name: 's' inputs { key: 'X' value { data_type: TYPE_FP32 dims: 2 "
                            "zero_data: true } } inputs { key: 'Z' value { } } }")
                            .message()),
            sample + "has the input 'Z', which the model has not");
  model_->refuses = true;
  EXPECT_EQ(ErrorOf("data_type: TYPE_FP32 dims: 2 zero_data: true"), sample + "these values are none");
  model_->refuses = false;
  model_->fails = true;
  EXPECT_EQ(ErrorOf("data_type: TYPE_FP32 dims: 2 zero_data: true"), sample + "the device is lost");
}

TEST_F(WarmUpTest, SizesAreBounded) {
  SetInput({"X", DType::kFloat64, {-1, -1}});
  EXPECT_THAT(ErrorOf("data_type: TYPE_FP64 dims: [134217729, 1] zero_data: true"),
              HasSubstr("has 134217729 elements; it may have 1073741824 bytes at most"));
  EXPECT_THAT(ErrorOf("data_type: TYPE_FP64 dims: [9223372036854775807, 9] zero_data: true"), HasSubstr("is expected"));
  EXPECT_THAT(ErrorOf("data_type: TYPE_FP64 dims: [-1, 9] zero_data: true"), HasSubstr("is expected"));
}

// The memory, or the tokens that run together, may leave less room than the file asks for.
TEST_F(WarmUpTest, NoBatchIsLargerThanTheModels) {
  const std::string sample =
      "model_warmup { name: 's' batch_size: 64 inputs { key: 'X' value { data_type: TYPE_FP32 dims: 2 zero_data: true "
      "} "
      "} }";
  ASSERT_TRUE(Run(sample).ok());
  EXPECT_EQ(model_->batches[0].size(), 8u);

  ModelSpec spec = model_->spec();
  spec.max_batch_tokens = 10;
  model_ = std::make_unique<ListeningModel>(spec);
  model_->tokens = 4;
  ASSERT_TRUE(Run(sample).ok());
  EXPECT_EQ(model_->batches[0].size(), 2u);
}

TEST_F(WarmUpTest, TensorsAreTheModels) {
  SetInput({"X", DType::kFloat32, {4}, Shape{2, 2}});
  ASSERT_EQ(ErrorOf("data_type: TYPE_FP32 dims: [2, 2] zero_data: true"), "");
  EXPECT_THAT(model_->shape, ElementsAre(1, 4));
  SetInput({"X", DType::kFloat32, {1, 4}}, 0);
  ASSERT_EQ(ErrorOf("data_type: TYPE_FP32 dims: [1, 4] zero_data: true"), "");
  EXPECT_THAT(model_->shape, ElementsAre(1, 4));
}

// Nobody reads its answers.
TEST(WarmUpOfDecoupledModels, RunsThem) {
  ModelSpec spec;
  spec.name = "m";
  spec.max_batch_size = 8;
  spec.decoupled = true;
  spec.inputs = spec.outputs = {{"X", DType::kFloat32, {2}}};
  const std::shared_ptr<Model> model = *NewIdentityModel(std::move(spec), absl::ZeroDuration(), 3);
  inference::ModelConfig config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(model_warmup { name: "s" inputs { key: "X" value { data_type: TYPE_FP32 dims: 2 zero_data: true } } })",
      &config));
  const StatusOr<WarmUp> warm_up = WarmUp::Of(config, *model, "m");
  ASSERT_TRUE(warm_up.ok()) << warm_up.status();
  const auto session = *model->NewSession(Clock::Real());
  EXPECT_TRUE(warm_up->Run(*session).ok());
}

}  // namespace
}  // namespace swizzle
