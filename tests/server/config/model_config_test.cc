#include "server/config/model_config.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace swizzle {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  const auto config = ParseModelConfig(text, "m");
  return std::string(config.status().message());
}

TEST(ParseModelConfig, EmptyFileIsAConfiguration) { EXPECT_TRUE(ParseModelConfig("", "m").ok()); }

TEST(ParseModelConfig, SyntaxErrorNamesTheLine) {
  EXPECT_EQ(ErrorOf("name: 'm'\nmax_batch_size 8 }\n"), "config.pbtxt: line 2: Expected \":\", found \"8\".");
}

TEST(ParseModelConfig, UnknownFieldIsNamedWithItsLine) {
  EXPECT_EQ(ErrorOf("name: 'm'\n\nbatch_size: 8\n"),
            "config.pbtxt: line 3: Message type \"inference.ModelConfig\" has no field named \"batch_size\".");
}

TEST(ParseModelConfig, NameMustBeTheDirectorys) {
  EXPECT_EQ(ErrorOf("name: 'other'"), "config.pbtxt: 'name' is 'other', but the directory is 'm'");
}

TEST(ParseModelConfig, UnknownBackendListsWhatThereIs) {
  EXPECT_EQ(ErrorOf("backend: 'tensorrt'"),
            "config.pbtxt: 'backend' is 'tensorrt', which this server does not have; it has 'swizzle', 'identity', "
            "'onnxruntime', 'openvino', or none need be given: export the model to ONNX");
  EXPECT_THAT(ErrorOf("platform: 'tensorflow_graphdef'"), HasSubstr("'platform' is 'tensorflow_graphdef'"));
}

TEST(ParseModelConfig, WhatIsRefusedSaysWhatToDoInstead) {
  const struct {
    const char* text;
    const char* path;
    const char* instead;
  } cases[] = {
      {"input { name: 'x' allow_ragged_batch: true }", "input.allow_ragged_batch", "share no batch"},
      {"output { name: 'y' is_shape_tensor: true }", "output.is_shape_tensor", "TensorRT"},
      {"batch_input { kind: BATCH_ELEMENT_COUNT }", "batch_input", "share no batch"},
      {"batch_output { target_name: 'y' }", "batch_output", "share no batch"},
      {"instance_group { passive: true }", "instance_group.passive", "remove the group"},
      {"sequence_batching { control_input { name: 'START' } oldest { max_candidate_sequences: 4 } }",
       "sequence_batching", "give the model its state as an input"},
      {"model_repository_agents { agents { name: 'checksum' } }", "model_repository_agents", "prepare them before"},
  };
  for (const auto& test : cases) {
    const Status status = ParseModelConfig(test.text, "m").status();
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << test.text;
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr(Concat("config.pbtxt: the field '", test.path, "' is not served: ")), HasSubstr(test.instead)));
  }
}

TEST(ParseModelConfig, WhatChangesNothingIsAcceptedWithOneNoticeEach) {
  const struct {
    const char* text;
    const char* field;
  } cases[] = {
      {"input { name: 'x' data_type: TYPE_FP32 dims: [3, 8, 8] format: FORMAT_NCHW }", "input.format"},
      {"instance_group { name: 'a' }", "instance_group.name"},
      {"instance_group { profile: '1' }", "instance_group.profile"},
      {"instance_group { host_policy: 'numa_0' }", "instance_group.host_policy"},
      {"instance_group { rate_limiter { resources { name: 'R' count: 2 } priority: 1 } }",
       "instance_group.rate_limiter"},
      {"instance_group { secondary_devices { kind: KIND_NVDLA device_id: 1 } }", "instance_group.secondary_devices"},
      {"cc_model_filenames { key: '7.5' value: 'model75.onnx' }", "cc_model_filenames"},
      {"metric_tags { key: 'team' value: 'search' }", "metric_tags"},
      {"dynamic_batching { preserve_ordering: true }", "dynamic_batching.preserve_ordering"},
      {"optimization { graph { level: 1 } }", "optimization.graph"},
      {"optimization { priority: PRIORITY_MAX }", "optimization.priority"},
      {"optimization { cuda { graphs: true graph_spec { batch_size: 1 input { key: 'x' value { dim: 3 } } } } }",
       "optimization.cuda"},
      {"optimization { execution_accelerators { gpu_execution_accelerator : [ { name : 'tensorrt' parameters { key: "
       "'precision_mode' value: 'FP16' } } ] } }",
       "optimization.execution_accelerators"},
      {"optimization { execution_accelerators { cpu_execution_accelerator : [ { name : 'openvino' } ] } }",
       "optimization.execution_accelerators"},
      {"optimization { input_pinned_memory { enable: true } }", "optimization.input_pinned_memory"},
      {"optimization { output_pinned_memory { enable: false } }", "optimization.output_pinned_memory"},
      {"optimization { gather_kernel_buffer_threshold: 4 }", "optimization.gather_kernel_buffer_threshold"},
      {"optimization { eager_batching: true }", "optimization.eager_batching"},
      {"model_operations { op_library_filename: 'libops.so' }", "model_operations"},
      {"runtime: 'libtriton_onnxruntime.so'", "runtime"},
      {"parameters { key: 'intra_op_thread_count' value { string_value: '2' } }", "parameters.intra_op_thread_count"},
      {"parameters { key: 'session.disable_prepacking' value { string_value: '1' } }",
       "parameters.session.disable_prepacking"},
      {"parameters { key: 'INFERENCE_NUM_THREADS' value { string_value: '1' } }", "parameters.INFERENCE_NUM_THREADS"},
  };
  for (const auto& test : cases) {
    const auto config = ParseModelConfig(test.text, "m");
    ASSERT_TRUE(config.ok()) << config.status();
    const std::vector<ConfigNotice> notices = NoticesOf(*config);
    ASSERT_EQ(notices.size(), 1u) << test.text;
    EXPECT_EQ(notices[0].field, test.field);
    EXPECT_FALSE(notices[0].why.empty());
  }
}

TEST(ParseModelConfig, OnlyDecoupledIdentitiesRepeat) {
  const std::string repeats = "parameters { key: 'repeat_count' value { string_value: '3' } } ";
  const std::string decoupled = "model_transaction_policy { decoupled: true } ";
  EXPECT_TRUE(ParseModelConfig(repeats + decoupled + "backend: 'identity'", "m").ok());
  for (const std::string& text : {repeats + decoupled, repeats + "backend: 'identity'"}) {
    EXPECT_THAT(std::string(ParseModelConfig(text, "m").status().message()),
                ::testing::HasSubstr("parameter 'repeat_count' is for models with `backend: \"identity\"` and"));
  }
}

TEST(ParseModelConfig, WhatAsksForNothingIsNoNews) {
  for (const char* text :
       {"", "response_cache { enable: false }", "model_transaction_policy { decoupled: false }", "optimization { }",
        "version_policy { latest { num_versions: 1 } }", "version_policy { all { } }", "version_policy { latest { } }",
        "default_model_filename: 'model.onnx'", "backend: 'openvino'", "instance_group { kind: KIND_MODEL }",
        "dynamic_batching { priority_levels: 1 default_priority_level: 1 }",
        "input { name: 'x' data_type: TYPE_FP32 format: FORMAT_NONE dims: 8 reshape { shape: [2, 4] } }",
        "parameters { key: 'precision' value { string_value: 'FP32' } }"}) {
    const auto config = ParseModelConfig(text, "m");
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_TRUE(NoticesOf(*config).empty()) << text;
  }
}

TEST(ParseModelConfig, TheModelsFileIsAPlainName) {
  for (const char* name : {"net.onnx", "a b.swz", "x.safetensors", "m.safetensors.index.json"}) {
    EXPECT_TRUE(ParseModelConfig(Concat("default_model_filename: '", name, "'"), "m").ok()) << name;
  }
  for (const char* name : {"../model.onnx", "/etc/model.onnx", "a/model.onnx", ".onnx"}) {
    EXPECT_THAT(ErrorOf(Concat("default_model_filename: '", name, "'")), HasSubstr("must be the plain name of a file"));
  }
  EXPECT_THAT(ErrorOf("default_model_filename: 'model.plan'"),
              HasSubstr("'model.plan'; known are models that end in .onnx, .swz and .safetensors"));
  EXPECT_THAT(ErrorOf("default_model_filename: 'a\\nb.onnx'"), HasSubstr("has a name that is not printable"));
}

TEST(ParseModelConfig, ReshapesKeepElements) {
  const auto error = [](const char* dims, const char* shape) {
    return ErrorOf(Concat("input { name: 'x' data_type: TYPE_FP32 dims: ", dims, " reshape { shape: ", shape, " } }"));
  };
  EXPECT_EQ(error("[1]", "[]"), "");
  EXPECT_EQ(error("[-1, 8]", "[2, -1, 4]"), "");
  EXPECT_THAT(error("[8]", "[2, 3]"),
              HasSubstr("the 'reshape' of input 'x' makes [2,3] of [8]; both need as many -1s"));
  EXPECT_THAT(error("[-1, 8]", "[-1, -1]"), HasSubstr("as many -1s"));
  EXPECT_THAT(error("[8]", "[0]"), HasSubstr("input 'x' has the dimension 0"));
  EXPECT_THAT(error("[9223372036854775807, 4]", "[4]"), HasSubstr("as many elements"));
}

TEST(ParseModelConfig, AFileThatIsNoTextIsCalledWhatItIs) {
  EXPECT_THAT(ErrorOf("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
              HasSubstr("config.pbtxt: this is a pointer file of Git LFS"));
  EXPECT_THAT(ErrorOf("<!DOCTYPE html>"), HasSubstr("config.pbtxt: this is an HTML page"));
}

// Every field of the schema has a row, or lies below one that is not served; and every row is a field's.
TEST(ConfigFields, CoverTheSchema) {
  std::vector<std::string> paths;
  const std::function<void(const google::protobuf::Descriptor&, const std::string&)> walk =
      [&](const google::protobuf::Descriptor& message, const std::string& prefix) {
        for (int i = 0; i < message.field_count(); ++i) {
          const google::protobuf::FieldDescriptor& field = *message.field(i);
          const std::string path = prefix + std::string(field.name());
          const auto row = std::ranges::find(ConfigFields(), path, &ConfigField::path);
          ASSERT_NE(row, ConfigFields().end()) << path;
          EXPECT_FALSE(row->meaning.empty()) << path;
          paths.push_back(path);
          if (row->use != FieldUse::kServed || field.message_type() == nullptr || field.is_map()) continue;
          walk(*field.message_type(), path + ".");
        }
      };
  walk(*inference::ModelConfig::descriptor(), "");
  for (const ConfigField& row : ConfigFields()) {
    EXPECT_EQ(std::ranges::count(paths, row.path), 1) << row.path;
  }
}

TEST(ParseModelConfig, EveryNumberHasARange) {
  const struct {
    const char* text;
    const char* field;
  } cases[] = {
      {"max_batch_size: -1", "'max_batch_size' is -1"},
      {"max_batch_size: 4097", "'max_batch_size' is 4097"},
      {"instance_group { count: -1 }", "'instance_group.count' is -1"},
      {"instance_group { count: 200 } instance_group { count: 57 }", "is 257; it must be from 0 to 256"},
      {"dynamic_batching { max_queue_delay_microseconds: 60000001 }", "max_queue_delay_microseconds' is 60000001"},
      {"dynamic_batching { default_queue_policy { max_queue_size: 1000001 } }", "max_queue_size' is 1000001"},
      {"dynamic_batching { priority_levels: 101 }", "priority_levels' is 101; it must be from 0 to 100"},
      {"dynamic_batching { priority_levels: 2 }", "default_priority_level' is 0; it must be from 1 to 2"},
      {"dynamic_batching { priority_levels: 2 default_priority_level: 3 }", "default_priority_level' is 3"},
      {"dynamic_batching { default_priority_level: 2 }", "default_priority_level' is 2; it must be from 0 to 1"},
      {"dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 value { } } }",
       "priority_queue_policy.key' is 3; it must be from 1 to 2"},
      {"dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 2 value { "
       "max_queue_size: 1000001 } } }",
       "priority_queue_policy.value.max_queue_size' is 1000001"},
      {"max_batch_size: 8 model_warmup { name: 'w' batch_size: 9 }", "'model_warmup.batch_size' is 9"},
      {"max_batch_size: 0 model_warmup { name: 'w' batch_size: 2 }", "'model_warmup.batch_size' is 2"},
      {"model_warmup { name: 'w' count: 10001 }", "'model_warmup.count' is 10001"},
      {"model_warmup { }", "a sample of 'model_warmup' has no 'name'"},
      {"dynamic_batching { default_queue_policy { default_timeout_microseconds: 18446744073709551615 } }",
       "default_timeout_microseconds' is 18446744073709551615"},
      {"input { name: 'x' data_type: TYPE_FP32 dims: 0 }", "input 'x' has the dimension 0"},
      {"output { name: 'y' data_type: TYPE_FP32 dims: -2 }", "output 'y' has the dimension -2"},
  };
  for (const auto& test : cases) {
    const Status status = ParseModelConfig(test.text, "m").status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << test.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(test.field));
  }
}

TEST(ParseModelConfig, TensorsNeedANameATypeAndToBeUnique) {
  EXPECT_THAT(ErrorOf("input { data_type: TYPE_FP32 }"), HasSubstr("an input has no 'name'"));
  EXPECT_THAT(ErrorOf("output { name: 'y' }"), HasSubstr("output 'y' has no 'data_type'"));
  EXPECT_THAT(ErrorOf("input { name: 'x' data_type: TYPE_FP32 } input { name: 'x' data_type: TYPE_FP32 }"),
              HasSubstr("input 'x' is there twice"));
}

TEST(ParseModelConfig, PrecisionIsOneThatPlansHave) {
  const auto config = [](const std::string& value) {
    return "parameters { key: 'precision' value { string_value: '" + value + "' } }";
  };
  for (const char* value : {"FP32", "FP16X3", "TF32", "FP16", "BF16", "INT8"})
    EXPECT_TRUE(ParseModelConfig(config(value), "m").ok()) << value;
  EXPECT_THAT(ErrorOf(config("INT4")),
              HasSubstr("'precision' is 'INT4'; it must be FP32, FP16X3, TF32, FP16, BF16 or INT8"));
}

TEST(ParseModelConfig, InstancesAreOfOneKind) {
  EXPECT_TRUE(ParseModelConfig("instance_group { kind: KIND_CPU count: 2 }", "m").ok());
  EXPECT_TRUE(ParseModelConfig("instance_group { kind: KIND_GPU count: 2 }", "m").ok());
  EXPECT_THAT(ErrorOf("instance_group { kind: KIND_GPU } instance_group { kind: KIND_CPU }"), HasSubstr("differs"));
}

TEST(ParseModelConfig, GroupsNameGpus) {
  const auto placed = [](const std::string& text) {
    const auto config = ParseModelConfig(text, "m");
    EXPECT_TRUE(config.ok()) << config.status();
    return std::pair(NamedGpus(*config), ExecutorsOnEach(*config));
  };
  using Gpus = std::vector<int>;
  EXPECT_EQ(placed(""), std::pair(Gpus(), 0));
  EXPECT_EQ(placed("instance_group { count: 2 } instance_group { }"), std::pair(Gpus(), 3));
  EXPECT_EQ(placed("instance_group { count: 2 gpus: [3, 0] }"), std::pair(Gpus({0, 3}), 2));
  EXPECT_EQ(placed("instance_group { gpus: [0, 1] kind: KIND_GPU } instance_group { gpus: [1, 0] kind: KIND_GPU }"),
            std::pair(Gpus({0, 1}), 2));
  EXPECT_EQ(placed("instance_group { gpus: 1 count: 2 } instance_group { gpus: 0 count: 2 }"),
            std::pair(Gpus({0, 1}), 2));
}

TEST(ParseModelConfig, GpusThatCannotBeServedAreRefused) {
  EXPECT_THAT(ErrorOf("instance_group { gpus: -1 }"), HasSubstr("'instance_group.gpus' is -1"));
  EXPECT_THAT(ErrorOf("instance_group { gpus: [0, 0] }"), HasSubstr("names GPU 0 twice; raise 'count'"));
  EXPECT_THAT(ErrorOf("instance_group { kind: KIND_CPU gpus: 0 }"), HasSubstr("beside KIND_CPU"));
  EXPECT_THAT(ErrorOf("instance_group { gpus: 0 } instance_group { }"), HasSubstr("in some groups alone"));
  EXPECT_THAT(ErrorOf("instance_group { count: 1 gpus: [0, 1] } instance_group { gpus: 1 }"),
              HasSubstr("gives GPU 0 1 executors, and GPU 1 2; give each as many"));
}

TEST(ParseModelConfig, ParametersAreKnownOrRefused) {
  EXPECT_THAT(ErrorOf("parameters { key: 'x' value { string_value: '1' } }"), HasSubstr("parameter 'x' is not known"));
  EXPECT_THAT(ErrorOf("parameters { key: 'execute_delay_ms' value { string_value: '1' } }"),
              HasSubstr("for models with `backend: \"identity\"` only"));
  for (const std::string value : {"", "-1", "1.5", "60001", "1s", "99999999999999999999"}) {
    EXPECT_THAT(
        ErrorOf("backend: 'identity' parameters { key: 'execute_delay_ms' value { string_value: '" + value + "' } }"),
        HasSubstr("parameter 'execute_delay_ms' is '" + value + "'; it must be a whole number"));
  }
}

}  // namespace
}  // namespace swizzle
