#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "model_loader/load/loader.h"
#include "model_loader/safetensors/checkpoint.h"
#include "model_loader/safetensors/encoder_config.h"
#include "tests/support/shipped_checkpoint.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::ConfigOf;
using testing::ExpectedOf;
using testing::IsError;
using testing::IsOk;
using testing::kInvalid;
using testing::kUnsupported;
using testing::TensorsOf;

StatusOr<QwenConfig> Parse(const std::string& type, const std::string& fields) {
  SWIZZLE_ASSIGN_OR_RETURN(const EncoderConfig config,
                           ParseEncoderConfig(Concat(R"({"model_type":")", type, "\"", fields, "}")));
  return std::get<QwenConfig>(config);
}

TEST(QwenConfig, WhatIsLeftOutIsAsInTransformers) {
  for (const std::string type : {"qwen2", "qwen3"}) {
    const auto config = Parse(type, "");
    ASSERT_THAT(config, IsOk()) << type;
    EXPECT_EQ(config->hidden_size, 4096) << type;
    EXPECT_EQ(config->head_size, 128) << type;
    EXPECT_EQ(config->num_hidden_layers, 32) << type;
    EXPECT_EQ(config->theta, 10000.0f) << type;
    EXPECT_EQ(config->activation, EncoderActivation::kSilu) << type;
    EXPECT_EQ(config->norm_eps, 1e-6f) << type;
    EXPECT_EQ(config->input_bias, type == "qwen2");
    EXPECT_FALSE(config->output_bias) << type;
    EXPECT_EQ(config->norms_heads, type == "qwen3");
    EXPECT_TRUE(config->is_causal) << type;
  }
}

TEST(QwenConfig, ReadsWhatItIsTold) {
  // Qwen2's heads make up the hidden size, Qwen3's need not.
  EXPECT_EQ(Parse("qwen2", R"(,"hidden_size":96,"num_attention_heads":4)")->head_size, 24);
  EXPECT_EQ(Parse("qwen2", R"(,"hidden_size":96,"num_attention_heads":4,"head_dim":8)")->head_size, 8);
  EXPECT_EQ(Parse("qwen3", R"(,"hidden_size":96,"num_attention_heads":4)")->head_size, 128);
  const auto biased = Parse("qwen3", R"(,"attention_bias":true)");
  EXPECT_TRUE(biased->input_bias && biased->output_bias);
  EXPECT_EQ(Parse("qwen3", R"(,"rope_theta":1000000)")->theta, 1e6f);
  EXPECT_EQ(Parse("qwen3", R"(,"rope_parameters":{"rope_theta":5e5,"rope_type":"default"})")->theta, 5e5f);
  EXPECT_FALSE(Parse("qwen2", R"(,"is_causal":false)")->is_causal);
  // A window that no layer has counts for nothing.
  EXPECT_THAT(Parse("qwen2", R"(,"use_sliding_window":true,"max_window_layers":32,"sliding_window":8)"), IsOk());
  EXPECT_THAT(Parse("qwen2", R"(,"use_sliding_window":true,"sliding_window":null)"), IsOk());
}

TEST(QwenConfig, RefusesWhatIsWrongByItsName) {
  const std::tuple<const char*, StatusCode, const char*> faults[] = {
      {R"(,"hidden_size":33)", kInvalid,
       "its hidden size 33 is not made of heads of an even size by its num_attention"},
      {R"(,"head_dim":7)", kInvalid, "its head_dim is 7; it must be even"},
      {R"(,"rms_norm_eps":0)", kInvalid, "its rms_norm_eps is 0; it must be a number between 0 and 1"},
      {R"(,"rope_scaling":{"rope_type":"yarn","factor":4.0})", kUnsupported, "its rope_scaling is {\"factor\":4.0,"},
      {R"(,"use_sliding_window":true)", kUnsupported, "its use_sliding_window is true; windows are not supported"},
      {R"(,"num_hidden_layers":1,"layer_types":["sliding_attention"])", kUnsupported, "its layer_types is [\"sliding_"},
      {R"(,"architectures":["Qwen2ForSequenceClassification"])", kUnsupported,
       "of this model_type only the last hidden"},
  };
  for (const auto& [fields, code, message] : faults) EXPECT_THAT(Parse("qwen2", fields), IsError(code, message));
}

StatusOr<Graph> MakeQwen(const TensorMap& tensors, const std::string& config = ConfigOf("qwen3")) {
  return MakeCheckpointGraph(config, tensors, {.find_operator = FindInterpretedOperator});
}

std::string OpsOf(const Graph& graph, const std::string& place) {
  std::string ops;
  for (const Node& node : graph.nodes) {
    if (node.name.starts_with(place)) ops += node.op + " ";
  }
  return ops;
}

TEST(Qwen, IsWrittenAsAnExporterWould) {
  const auto graph = MakeQwen(TensorsOf("qwen3"));
  ASSERT_THAT(graph, IsOk());
  const std::string norm = "Pow ReduceMean Add Sqrt Reciprocal Mul Mul ";
  const std::string rotation = "Mul Slice Slice Neg Concat Mul Add ", repeated = "Unsqueeze Expand Reshape ";
  EXPECT_EQ(OpsOf(*graph, "layers.1."), norm + "MatMul Reshape " + norm + "Transpose MatMul Reshape " + norm +
                                            "Transpose MatMul Reshape Transpose " + rotation + rotation + repeated +
                                            repeated +
                                            "Transpose MatMul Mul Add Softmax MatMul Transpose Reshape MatMul Add " +
                                            norm + "MatMul Sigmoid Mul MatMul Mul MatMul Add ");
  EXPECT_EQ(OpsOf(*graph, "causal"), "Unsqueeze Transpose LessOrEqual Unsqueeze Not Where ");
}

// Heads of keys and values stand once, though two of queries share each: products have the rows of their tensors.
TEST(Qwen, WeightsAreAsLargeAsTheirTensors) {
  for (const char* name : {"qwen2", "qwen3"}) {
    const auto runnable = LoadRunnableModel(testing::Shipped(name));
    ASSERT_THAT(runnable, IsOk()) << name;
    const Network& network = std::get<LoadedModel>(*runnable).network;
    int64_t held = 0, stored = 0;
    for (const Layer& layer : network.layers) {
      if (layer.op != Op::kConv) continue;
      const Weight& weight = network.weights[static_cast<size_t>(layer.weight)];
      held += weight.rows() * weight.cols();
    }
    for (const auto& [tensor_name, tensor] : TensorsOf(name)) {
      if (tensor_name.ends_with("_proj.weight")) stored += *ElementCount(tensor.shape);
    }
    EXPECT_EQ(held, stored) << name;
  }
}

// Behind the text, as the shipped expectations have it, or before it.
TEST(Qwen, PaddingChangesNothing) {
  for (const char* name : {"qwen2", "qwen3"}) {
    auto graph = MakeQwen(TensorsOf(name), ConfigOf(name));
    ASSERT_THAT(graph, IsOk()) << name;
    const auto program = interpreter::Program::Make(*std::move(graph));
    ASSERT_THAT(program, IsOk()) << name;
    const TensorMap expected = ExpectedOf(name);
    testing::ExpectPaddingChangesNothing(**program, expected, 4);
    const TensorMap before = {{"input_ids", Tensor::Int64s({1, 6}, std::vector<int64_t>{1, 1, 3, 4, 6, 8})},
                              {"attention_mask", Tensor::Int64s({1, 6}, std::vector<int64_t>{0, 0, 1, 1, 1, 1})}};
    const auto outputs = testing::Run(**program, before);
    ASSERT_THAT(outputs, IsOk()) << name;
    const auto alone = outputs->at("last_hidden_state").floats().subspan(2 * 8, 4 * 8);
    const auto shipped = expected.at("last_hidden_state").floats().subspan(7 * 8, 4 * 8);
    for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(alone[i], shipped[i], 1e-5) << name << " " << i;
  }
}

// Models whose tokens see all others were trained from those that do not.
TEST(Qwen, AttentionNeedNotBeCausal) {
  std::string config = ConfigOf("qwen2");
  config.replace(config.find('{'), 1, R"({"is_causal":false,)");
  auto graph = MakeQwen(TensorsOf("qwen2"), config);
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(OpsOf(*graph, "causal"), "");
  const auto program = interpreter::Program::Make(*std::move(graph));
  ASSERT_THAT(program, IsOk());
  const TensorMap expected = ExpectedOf("qwen2");
  const auto outputs = testing::Run(**program, expected);
  ASSERT_THAT(outputs, IsOk());
  EXPECT_GT(testing::LargestDifference(outputs->at("last_hidden_state"), expected.at("last_hidden_state")), 1e-2);
}

TEST(Qwen, ReadsWhatIsOfTheEncoder) {
  const auto plain = MakeQwen(TensorsOf("qwen3"));
  ASSERT_THAT(plain, IsOk());
  for (const std::string wrapper : {"", "module."}) {
    TensorMap tensors;
    for (const auto& [name, tensor] : TensorsOf("qwen3")) tensors.emplace(wrapper + "model." + name, tensor);
    tensors.emplace(wrapper + "lm_head.weight", Tensor::Floats({1}, std::vector<float>{1}));
    std::string config = ConfigOf("qwen3");
    config.replace(config.find('{'), 1, R"({"architectures":["Qwen3ForCausalLM"],)");
    const auto graph = MakeQwen(tensors, config);
    ASSERT_THAT(graph, IsOk()) << wrapper;
    ASSERT_EQ(graph->values.size(), plain->values.size());
    for (size_t i = 0; i < plain->values.size(); ++i) EXPECT_EQ(graph->values[i].constant, plain->values[i].constant);
  }
}

TEST(Qwen, SaysWhatIsWrong) {
  const auto floats = [](Shape shape) {
    const auto count = static_cast<size_t>(*ElementCount(shape));
    return Tensor::Floats(std::move(shape), std::vector<float>(count));
  };
  // Heads of 6 numbers, two of queries and one of keys.
  const std::tuple<const char*, std::optional<Tensor>, const char*> faults[] = {
      {"embed_tokens.weight", std::nullopt, "lacks the tensor 'embed_tokens.weight'"},
      {"layers.0.self_attn.q_proj.weight", floats({11, 8}), "has 11 rows, which are no whole heads of 6"},
      {"layers.0.self_attn.k_proj.weight", floats({18, 8}), "v_proj.weight' has the shape [6,8]; it must be [18,8]"},
      {"layers.0.self_attn.q_norm.weight", floats({8}), "q_norm.weight' has the shape [8]; it must be [6]"},
      {"layers.0.self_attn.o_proj.bias", floats({8}), "o_proj.bias', which is of no part of the encoder"},
      {"layers.1.mlp.up_proj.weight", floats({11, 8}), "has the shape [11,8]; it must be [12,8]"},
      {"layers.2.mlp.up_proj.weight", floats({12, 8}), "'layers.2.mlp.up_proj.weight', which is of no part"},
      {"norm.weight", std::nullopt, "lacks the tensor 'norm.weight'"},
  };
  for (const auto& [name, tensor, message] : faults) {
    TensorMap tensors = TensorsOf("qwen3");
    tensors.erase(name);
    if (tensor) tensors.emplace(name, *tensor);
    EXPECT_THAT(MakeQwen(tensors), IsError(kInvalid, message)) << name;
  }
  TensorMap tensors = TensorsOf("qwen3");
  for (const char* name : {"layers.0.self_attn.k_proj.weight", "layers.0.self_attn.v_proj.weight"}) {
    tensors[name] = floats({18, 8});
  }
  EXPECT_THAT(MakeQwen(tensors), IsError(kInvalid, "q_proj.weight' has 2 heads, which 3 of keys cannot share evenly"));
}

}  // namespace
}  // namespace swizzle
