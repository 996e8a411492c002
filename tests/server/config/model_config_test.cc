#include "server/config/model_config.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

namespace swizzle {
namespace {

using testing::HasSubstr;

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
            "'onnxruntime'");
  EXPECT_THAT(ErrorOf("platform: 'tensorflow_graphdef'"), HasSubstr("'platform' is 'tensorflow_graphdef'"));
}

TEST(ParseModelConfig, FieldsThatAreNotHonouredAreRefusedByPath) {
  const struct {
    const char* text;
    const char* path;
  } cases[] = {
      {"version_policy { latest { num_versions: 2 } }", "version_policy"},
      {"default_model_filename: 'x.onnx'", "default_model_filename"},
      {"optimization { graph { level: 1 } }", "optimization"},
      {"model_warmup { name: 'w' }", "model_warmup"},
      {"response_cache { enable: true }", "response_cache"},
      {"model_metrics { }", "model_metrics"},
      {"input { name: 'x' data_type: TYPE_FP32 reshape { shape: 1 } }", "input.reshape"},
      {"input { name: 'x' data_type: TYPE_FP32 format: FORMAT_NCHW }", "input.format"},
      {"input { name: 'x' data_type: TYPE_FP32 optional: true }", "input.optional"},
      {"output { name: 'y' data_type: TYPE_FP32 label_filename: 'l' }", "output.label_filename"},
      {"instance_group { count: 1 gpus: 0 }", "instance_group.gpus"},
      {"instance_group { name: 'a' }", "instance_group.name"},
      {"dynamic_batching { preserve_ordering: true }", "dynamic_batching.preserve_ordering"},
      {"dynamic_batching { priority_levels: 2 }", "dynamic_batching.priority_levels"},
      {"dynamic_batching { priority_queue_policy { key: 1 value { } } }", "dynamic_batching.priority_queue_policy"},
      {"dynamic_batching { default_queue_policy { timeout_action: DELAY } }",
       "dynamic_batching.default_queue_policy.timeout_action"},
  };
  for (const auto& test : cases) {
    const Status status = ParseModelConfig(test.text, "m").status();
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << test.text;
    EXPECT_EQ(std::string(status.message()),
              Concat("config.pbtxt: the field '", test.path, "' is not supported yet; remove it"));
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
  EXPECT_THAT(ErrorOf("instance_group { kind: KIND_MODEL }"), HasSubstr("'instance_group.kind' is KIND_MODEL"));
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
