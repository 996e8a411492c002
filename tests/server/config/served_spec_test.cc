#include "server/config/served_spec.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

#include "model_loader/load/loader.h"
#include "server/config/config_parameters.h"
#include "server/config/model_config.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;

// A network with a free batch dimension: x FP32 [3,4] and n INT64 [1] to y FP32 [10].
ModelSpec Derived() {
  ModelSpec spec;
  spec.name = "m";
  spec.platform = "swizzle_onnx";
  spec.backend = "swizzle";
  spec.max_batch_size = 64;
  spec.inputs = {{"x", DType::kFloat32, {3, 4}}, {"n", DType::kInt64, {1}}};
  spec.outputs = {{"y", DType::kFloat32, {10}}};
  return spec;
}

StatusOr<ModelSpec> Configured(const std::string& text, ModelSpec derived = Derived()) {
  SWIZZLE_ASSIGN_OR_RETURN(const inference::ModelConfig config, ParseModelConfig(text, "m"));
  return ConfigureSpec(config, std::move(derived));
}

std::string MismatchOf(const std::string& text, ModelSpec derived = Derived()) {
  return std::string(Configured(text, std::move(derived)).status().message());
}

constexpr char kBothInputs[] =
    "input { name: 'n' data_type: TYPE_INT64 dims: 1 } input { name: 'x' data_type: TYPE_FP32 dims: [-1, 4] } ";

TEST(IdentitySpec, IsTheFiles) {
  const auto config = ParseModelConfig(
      "backend: 'identity' max_batch_size: 8 dynamic_batching { } instance_group { count: 3 }"
      "input { name: 'x' data_type: TYPE_STRING dims: [-1] } output { name: 'y' data_type: TYPE_STRING dims: [-1] }"
      "parameters { key: 'execute_delay_ms' value { string_value: '25' } }",
      "m");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(IsIdentity(*config));
  EXPECT_EQ(ExecuteDelay(*config), absl::Milliseconds(25));
  const auto spec = IdentitySpec(*config, "m", 7);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->name, "m");
  EXPECT_EQ(spec->version, 7);
  EXPECT_EQ(spec->max_batch_size, 8);
  EXPECT_EQ(spec->instance_count, 3);
  EXPECT_TRUE(spec->dynamic_batching);
  ASSERT_EQ(spec->inputs.size(), 1u);
  EXPECT_EQ(spec->inputs[0].dtype, DType::kString);
  EXPECT_THAT(spec->inputs[0].dims, ElementsAre(-1));
}

TEST(ConfigureSpec, EmptyFileChangesNothing) {
  const auto spec = Configured("");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->max_batch_size, 64);
  EXPECT_TRUE(spec->dynamic_batching);
  EXPECT_EQ(spec->instance_count, 1);
  EXPECT_EQ(spec->inputs[0].name, "x");
}

TEST(ConfigureSpec, BatchSizeWithoutDynamicBatchingMeansNoBatching) {
  const auto spec = Configured("max_batch_size: 16");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->max_batch_size, 16);
  EXPECT_FALSE(spec->dynamic_batching);
}

TEST(ConfigureSpec, DynamicBatchingIsTakenOver) {
  const auto spec = Configured(
      "max_batch_size: 16 dynamic_batching { preferred_batch_size: [8, 4] max_queue_delay_microseconds: 500 "
      "default_queue_policy { max_queue_size: 9 default_timeout_microseconds: 2000 } }");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_TRUE(spec->dynamic_batching);
  EXPECT_THAT(spec->preferred_batch_sizes, ElementsAre(4, 8));
  EXPECT_EQ(spec->max_queue_delay, absl::Microseconds(500));
  EXPECT_EQ(spec->queue_policy.max_requests, 9);
  EXPECT_EQ(spec->queue_policy.default_timeout, absl::Milliseconds(2));
  EXPECT_FALSE(spec->queue_policy.allow_timeout_override);
}

TEST(ConfigureSpec, PrioritiesHavePolicies) {
  const auto spec = Configured(
      "max_batch_size: 16 dynamic_batching { priority_levels: 3 default_priority_level: 2 default_queue_policy { "
      "max_queue_size: 9 timeout_action: DELAY allow_timeout_override: true } priority_queue_policy { key: 3 value { "
      "max_queue_size: 2000 default_timeout_microseconds: 5000 } } }");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->priority_levels, 3);
  EXPECT_EQ(spec->default_priority, 2);
  const QueuePolicy of_others = {9, absl::InfiniteDuration(), true, true};
  EXPECT_EQ(spec->PolicyOf(1), of_others);
  EXPECT_EQ(spec->PolicyOf(2), of_others);
  EXPECT_EQ(spec->PolicyOf(3), (QueuePolicy{2000, absl::Milliseconds(5), false, false}));
  EXPECT_EQ(spec->max_queue_rows, 2000);
}

TEST(ConfigureSpec, TheQueueIsNeverUnbounded) {
  const auto spec = Configured("dynamic_batching { default_queue_policy { } }");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->queue_policy.max_requests, QueuePolicy().max_requests);
  EXPECT_EQ(spec->queue_policy.default_timeout, absl::Seconds(10));
}

TEST(ConfigureSpec, ADelayIsOnTopOfTheDefaultTimeout) {
  const auto spec = Configured("dynamic_batching { max_queue_delay_microseconds: 60000000 }");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->queue_policy.default_timeout, absl::Seconds(70));
}

TEST(ConfigureSpec, ParametersBoundTheQueue) {
  const auto spec = Configured(
      "parameters { key: 'max_queue_rows' value { string_value: '7' } }"
      "parameters { key: 'max_queue_bytes' value { string_value: '8' } }"
      "parameters { key: 'max_queue_wait_ms' value { string_value: '9' } }"
      "parameters { key: 'max_connection_queue_percent' value { string_value: '50' } }");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->max_queue_rows, 7);
  EXPECT_EQ(spec->max_queue_bytes, 8);
  EXPECT_EQ(spec->max_queue_wait, absl::Milliseconds(9));
  EXPECT_EQ(spec->max_connection_queue_percent, 50);
}

TEST(ConfigureSpec, PreferredSizesFitTheBatch) {
  EXPECT_EQ(MismatchOf("max_batch_size: 4 dynamic_batching { preferred_batch_size: 8 }"),
            "config.pbtxt: 'dynamic_batching.preferred_batch_size' is 8; it must be from 1 to 4");
  EXPECT_EQ(MismatchOf("max_batch_size: 0 dynamic_batching { }"),
            "config.pbtxt: 'dynamic_batching' needs a 'max_batch_size' above 0");
}

TEST(ConfigureSpec, TensorsTakeTheFilesOrderAndTheModelsDims) {
  const auto spec = Configured(std::string("max_batch_size: 8 ") + kBothInputs);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->inputs[0].name, "n");
  EXPECT_EQ(spec->inputs[1].name, "x");
  EXPECT_THAT(spec->inputs[1].dims, ElementsAre(3, 4));
}

TEST(ConfigureSpec, WithoutBatchingDimsCarryTheBatchDimension) {
  const auto spec = Configured("max_batch_size: 0 output { name: 'y' data_type: TYPE_FP32 dims: [2, 10] }");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->max_batch_size, 0);
  EXPECT_FALSE(spec->dynamic_batching);
  EXPECT_THAT(spec->inputs[0].dims, ElementsAre(-1, 3, 4));
  EXPECT_THAT(spec->outputs[0].dims, ElementsAre(2, 10));
}

TEST(ConfigureSpec, ListedTensorsWithoutABatchSizeMeanZero) {
  const auto spec = Configured("output { name: 'y' data_type: TYPE_FP32 dims: [-1, 10] }");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->max_batch_size, 0);
}

TEST(ConfigureSpec, ContradictionsNameTheTensor) {
  EXPECT_EQ(MismatchOf("max_batch_size: 8 output { name: 'z' data_type: TYPE_FP32 dims: 10 }"),
            "config.pbtxt: the model has no output 'z'; it has 'y'");
  EXPECT_EQ(MismatchOf("max_batch_size: 8 output { name: 'y' data_type: TYPE_FP16 dims: 10 }"),
            "config.pbtxt: output 'y' is FP16 [10] in the configuration, but FP32 [10] in the model");
  EXPECT_EQ(MismatchOf("max_batch_size: 8 output { name: 'y' data_type: TYPE_FP32 dims: 11 }"),
            "config.pbtxt: output 'y' is FP32 [11] in the configuration, but FP32 [10] in the model");
  EXPECT_EQ(MismatchOf("max_batch_size: 8 output { name: 'y' data_type: TYPE_FP32 dims: [1, 10] }"),
            "config.pbtxt: output 'y' is FP32 [1,10] in the configuration, but FP32 [10] in the model");
  EXPECT_EQ(MismatchOf("max_batch_size: 8 input { name: 'n' data_type: TYPE_INT64 dims: 1 }"),
            "config.pbtxt: the configuration leaves out the model's input 'x'; list all of them, or none");
}

TEST(ConfigureSpec, AFixedBatchDimensionTakesNoBatchSize) {
  ModelSpec fixed = Derived();
  fixed.max_batch_size = 0;
  EXPECT_EQ(MismatchOf("max_batch_size: 8", fixed),
            "config.pbtxt: 'max_batch_size' is 8, but the model's batch dimension is fixed; set it to 0");
  EXPECT_TRUE(Configured("max_batch_size: 0", fixed).ok());
}

TEST(ConfigureSpec, RequestsThatCanShareNoBatchTakeNoBatchSize) {
  ModelSpec mixed = Derived();
  mixed.max_batch_size = 0;
  mixed.batch_obstacle = "ReduceMean node 'm' may join requests";
  EXPECT_EQ(MismatchOf("max_batch_size: 8", mixed),
            "config.pbtxt: 'max_batch_size' is 8, but requests can share no batch (ReduceMean node 'm' may join "
            "requests); set it to 0, and give 'dims' with their batch dimension");
  EXPECT_TRUE(Configured("max_batch_size: 0", mixed).ok());
}

TEST(ConfigureSpec, TensorsAreReshaped) {
  const auto spec = Configured(
      "max_batch_size: 8 input { name: 'x' data_type: TYPE_FP32 dims: [12] reshape { shape: [3, -1] } }"
      "input { name: 'n' data_type: TYPE_INT64 dims: [-1] reshape { shape: [-1] } }"
      "output { name: 'y' data_type: TYPE_FP32 dims: [2, 5] reshape { shape: [10] } }");
  EXPECT_FALSE(spec.ok()) << "[3,-1] is no [12]";
  const auto reshaped = Configured(
      "max_batch_size: 8 input { name: 'x' data_type: TYPE_FP32 dims: [-1, 3] reshape { shape: [3, -1] } }"
      "input { name: 'n' data_type: TYPE_INT64 dims: [] reshape { shape: [1] } }"
      "output { name: 'y' data_type: TYPE_FP32 dims: [2, 5] reshape { shape: [10] } }");
  ASSERT_TRUE(reshaped.ok()) << reshaped.status();
  EXPECT_THAT(reshaped->inputs[0].dims, ElementsAre(3, 4));
  EXPECT_THAT(reshaped->inputs[0].wire_dims(), ElementsAre(4, 3)) << "the model's dimension in place of -1";
  EXPECT_THAT(reshaped->inputs[1].dims, ElementsAre(1));
  EXPECT_THAT(reshaped->inputs[1].wire_dims(), ElementsAre());
  EXPECT_THAT(reshaped->outputs[0].dims, ElementsAre(10));
  EXPECT_THAT(reshaped->outputs[0].wire_dims(), ElementsAre(2, 5));
  EXPECT_EQ(
      MismatchOf("max_batch_size: 8 output { name: 'y' data_type: TYPE_FP32 dims: 10 reshape { shape: [5, 2] } }"),
      "config.pbtxt: output 'y' is FP32 [5,2] in the configuration, but FP32 [10] in the model");
}

TEST(ConfigureSpec, OptionalInputsHaveDefaults) {
  const std::string text =
      "max_batch_size: 3 input { name: 'x' data_type: TYPE_FP32 dims: [3, 4] }"
      "input { name: 'n' data_type: TYPE_INT64 dims: 1 optional: true }";
  const auto config = ParseModelConfig(text, "m");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(DeclaredPorts(*config).at("n").is_optional);
  EXPECT_FALSE(DeclaredPorts(*config).at("x").is_optional);
  const auto configure = [&](const Tensor& value) { return ConfigureSpec(*config, Derived(), {{"n", value}}); };
  const auto spec = configure(Tensor::Int64s({1, 1}, std::vector<int64_t>{7}));
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_NE(spec->inputs[1].default_value, nullptr);
  EXPECT_THAT(spec->inputs[1].default_value->dims, ElementsAre(1));
  EXPECT_EQ(spec->inputs[1].default_value->bytes.size(), 3 * sizeof(int64_t)) << "of the largest batch";
  EXPECT_EQ(spec->inputs[0].default_value, nullptr);
  EXPECT_TRUE(ConfigOf(*spec, {}).input(1).optional());

  EXPECT_EQ(std::string(ConfigureSpec(*config, Derived()).status().message()),
            "config.pbtxt: input 'n' is 'optional', but the model has no default for it: remove that, or give the "
            "model's input an initializer of the same name");
  EXPECT_EQ(std::string(configure(Tensor::Int64s({2, 1}, std::vector<int64_t>{7, 8})).status().message()),
            "config.pbtxt: input 'n' is 'optional', but: its default is INT64 [2,1]; one row of INT64 [1] is needed");
  EXPECT_EQ(std::string(configure(Tensor::Int64s({1, 2}, std::vector<int64_t>{7, 8})).status().message()),
            "config.pbtxt: input 'n' is 'optional', but: its default has the shape [1,2], and its dims are [1]");
  EXPECT_FALSE(configure(Tensor::Floats({1, 1}, std::vector<float>{7})).ok());
}

// Whatever the server reports may stand in a file.
TEST(ConfigOf, ThePlatformsThatTheServerReportsAreTaken) {
  for (const std::string_view container : kContainers) {
    ModelSpec spec = Derived();
    spec.platform = PlatformOf(container);
    std::string text;
    ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(ConfigOf(spec, {}), &text));
    const auto config = ParseModelConfig(text, "m");
    EXPECT_TRUE(config.ok()) << config.status();
  }
}

TEST(PlaceOn, DevicesHaveExecutorsOfTheirOwnNumberUnlessTheFileCounts) {
  const auto executors = [](const std::string& text, InstanceKind kind, int64_t tokens = 0) {
    ModelSpec derived = Derived();
    derived.max_batch_tokens = tokens;
    auto spec = Configured(text, std::move(derived));
    EXPECT_TRUE(spec.ok()) << spec.status();
    PlaceOn(kind, 3, /*cpu_executors=*/4, *spec);
    EXPECT_EQ(spec->instance_kind, kind);
    return spec->executors();
  };
  EXPECT_EQ(executors("", InstanceKind::kGpu), 6);
  EXPECT_EQ(executors("", InstanceKind::kGpu, 4096), 3) << "what sequences copy is little";
  EXPECT_EQ(executors("", InstanceKind::kCpu), 12);
  EXPECT_EQ(executors("instance_group { kind: KIND_CPU }", InstanceKind::kCpu), 12);
  EXPECT_EQ(executors("instance_group { count: 1 }", InstanceKind::kCpu), 3);
  EXPECT_EQ(executors("instance_group { kind: KIND_GPU }", InstanceKind::kGpu), 6);
  EXPECT_EQ(executors("instance_group { count: 1 }", InstanceKind::kGpu), 3);
  EXPECT_EQ(executors("instance_group { count: 1 } instance_group { count: 4 }", InstanceKind::kGpu), 15);
}

TEST(ConfigOf, TellsClientsWhatTheFileTellsThem) {
  const std::string text =
      "max_batch_size: 8 input { name: 'n' data_type: TYPE_INT64 dims: 1 }"
      "input { name: 'x' data_type: TYPE_FP32 dims: [3, 4] format: FORMAT_NCHW }"
      "output { name: 'y' data_type: TYPE_FP32 dims: 10 label_filename: 'labels.txt' }";
  const auto given = ParseModelConfig(text, "m");
  ASSERT_TRUE(given.ok()) << given.status();
  const inference::ModelConfig config = ConfigOf(*Configured(text), *given);
  EXPECT_EQ(config.input(0).format(), inference::ModelInput::FORMAT_NONE);
  EXPECT_EQ(config.input(1).format(), inference::ModelInput::FORMAT_NCHW);
  EXPECT_EQ(config.output(0).label_filename(), "labels.txt");
}

TEST(ConfigOf, IsAFileThatSaysTheSame) {
  for (const std::string text :
       {"", "max_batch_size: 16", "max_batch_size: 0",
        "max_batch_size: 8 output { name: 'y' data_type: TYPE_FP32 dims: [2, 5] reshape { shape: 10 } }",
        "instance_group { count: 2 } dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 7 }",
        "dynamic_batching { priority_levels: 2 default_priority_level: 2 default_queue_policy { timeout_action: DELAY "
        "} "
        "priority_queue_policy { key: 1 value { max_queue_size: 3 } } }"}) {
    const auto spec = Configured(text);
    ASSERT_TRUE(spec.ok()) << spec.status();
    const inference::ModelConfig config = ConfigOf(*spec, {});
    std::string printed;
    ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(config, &printed));
    const auto again = Configured(printed);
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << printed;
    EXPECT_EQ(ConfigOf(*again, {}).SerializeAsString(), config.SerializeAsString()) << printed;
  }
}

TEST(DeclaredPorts, AreWhatTheFileListsWithItsBatch) {
  inference::ModelConfig config;
  config.set_max_batch_size(4);
  auto& x = *config.add_input();
  x.set_name("x");
  x.set_data_type(inference::TYPE_FP32);
  x.add_dims(3);
  auto& y = *config.add_output();
  y.set_name("y");
  y.set_data_type(inference::TYPE_INT64);
  y.add_dims(-1);
  EXPECT_EQ(DeclaredPorts(config).at("x").shape, (Shape{-1, 3}));
  EXPECT_EQ(DeclaredPorts(config).at("y").dtype, DType::kInt64);
  config.set_max_batch_size(0);
  EXPECT_EQ(DeclaredPorts(config).at("y").shape, Shape{-1});
  config.mutable_input(0)->clear_data_type();  // refused elsewhere
  EXPECT_FALSE(DeclaredPorts(config).contains("x"));
}

}  // namespace
}  // namespace swizzle
