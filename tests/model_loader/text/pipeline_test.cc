#include "model_loader/text/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/support/safetensors_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace swizzle::text {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TextPipelineTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  StatusOr<Pipeline> Read(TextTask task = TextTask::kEmbedding) {
    return ReadPipeline(ModelFolder::Of(folder_ / "model.safetensors"), task);
  }

  const TemporaryFolder folder_;
};

TEST_F(TextPipelineTest, PoolsTheMeanWhereNothingSaysMore) {
  const auto pipeline = Read();
  ASSERT_THAT(pipeline, IsOk());
  EXPECT_EQ(pipeline->pooling, Pooling::kMean);
  EXPECT_FALSE(pipeline->normalises);
  EXPECT_EQ(pipeline->max_tokens, 0);
}

TEST_F(TextPipelineTest, FollowsItsModules) {
  Write("modules.json", R"([
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])");
  Write("1_Pooling/config.json", R"({"word_embedding_dimension": 8, "pooling_mode_cls_token": true,
                                     "pooling_mode_mean_tokens": false})");
  Write("sentence_bert_config.json", R"({"max_seq_length": 256, "do_lower_case": false})");
  const auto pipeline = Read();
  ASSERT_THAT(pipeline, IsOk());
  EXPECT_EQ(pipeline->pooling, Pooling::kFirst);
  EXPECT_TRUE(pipeline->normalises);
  EXPECT_EQ(pipeline->max_tokens, 256);
  EXPECT_EQ(PoolingName(pipeline->pooling), "cls");
}

TEST_F(TextPipelineTest, KnowsThePositionsOfItsEncoder) {
  EXPECT_EQ(Read()->positions, 0);
  Write("config.json", R"({"model_type": "bert", "max_position_embeddings": 512, "pad_token_id": 0})");
  EXPECT_EQ(Read()->positions, 512);
  EXPECT_EQ(Read(TextTask::kClassification)->positions, 512);
  Write("config.json", R"({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1})");
  EXPECT_EQ(Read()->positions, 512) << "they count from behind the padding";
  Write("config.json", R"({"model_type": "mpnet", "max_position_embeddings": 1})");
  EXPECT_EQ(Read()->positions, 0);
  Write("config.json", R"({"max_position_embeddings": "many"})");
  EXPECT_EQ(Read()->positions, 0);
}

class DenseTest : public TextPipelineTest {
 protected:
  void WriteDense(const std::string& config, const TensorMap& tensors, bool normalises_before = false) {
    const std::string dense = R"({"type": "sentence_transformers.models.Dense", "path": "2_Dense"})",
                      normalize = R"({"type": "sentence_transformers.models.Normalize"})";
    Write("modules.json",
          normalises_before ? "[" + normalize + "," + dense + "]" : "[" + dense + "," + normalize + "]");
    Write("2_Dense/config.json", config);
    swizzle::testing::WriteBytes(folder_ / "2_Dense/model.safetensors", swizzle::testing::FormatSafetensors(tensors));
  }

  const Tensor weight_ = Tensor::Floats({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}),
               bias_ = Tensor::Floats({2}, std::vector<float>{7, 8});
};

TEST_F(DenseTest, IsReadWithItsTensors) {
  WriteDense(R"({"in_features": 3, "activation_function": "torch.nn.modules.linear.Identity"})",
             {{"linear.weight", weight_}, {"linear.bias", bias_}});
  const auto pipeline = Read();
  ASSERT_THAT(pipeline, IsOk());
  EXPECT_TRUE(pipeline->normalises);
  ASSERT_EQ(pipeline->dense.size(), 1u);
  const DenseLayer& layer = *pipeline->dense[0];
  EXPECT_EQ(layer.weight.shape, (Shape{3, 2}));
  EXPECT_THAT(layer.weight.floats(), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_EQ(layer.bias, bias_);
  EXPECT_EQ(layer.activation, "");
  WriteDense("{}", {{"linear.weight", weight_}});
  EXPECT_EQ(Read()->dense[0]->activation, "Tanh");
  EXPECT_FALSE(Read()->dense[0]->bias.has_value());
}

TEST_F(TextPipelineTest, PoolingMayBeNamed) {
  Write("modules.json", R"([{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}])");
  Write("1_Pooling/config.json", R"({"pooling_mode": "cls", "pooling_mode_mean_tokens": true})");
  EXPECT_EQ(Read()->pooling, Pooling::kFirst);
  Write("1_Pooling/config.json", R"({"pooling_mode": "lasttoken"})");
  EXPECT_EQ(Read()->pooling, Pooling::kLast);
  Write("1_Pooling/config.json", R"({"pooling_mode": "max"})");
  EXPECT_THAT(Read(), IsError(StatusCode::kUnimplemented, "1_Pooling/config.json: its pooling_mode is "));
}

TEST_F(DenseTest, TakesTheVectorAlone) {
  WriteDense(R"({"module_input_name": "sentence_embedding", "module_output_name": null})",
             {{"linear.weight", weight_}});
  EXPECT_THAT(Read(), IsOk());
  WriteDense(R"({"module_input_name": "token_embeddings"})", {{"linear.weight", weight_}});
  EXPECT_THAT(Read(), IsError(StatusCode::kUnimplemented, "2_Dense/config.json: its module_input_name is "));
}

TEST_F(DenseTest, SaysWhatIsWrong) {
  WriteDense(R"({"activation_function": "torch.nn.modules.activation.GELU"})", {{"linear.weight", weight_}});
  EXPECT_THAT(Read(), IsError(StatusCode::kUnimplemented, "2_Dense/config.json: its activation_function is "));
  WriteDense("{}", {{"linear.bias", bias_}});
  EXPECT_THAT(Read(), IsError(StatusCode::kInvalidArgument, "it lacks the tensor 'linear.weight'"));
  WriteDense("{}", {{"linear.weight", bias_}});
  EXPECT_THAT(Read(), IsError(StatusCode::kInvalidArgument, "it must have 2 dimensions"));
  WriteDense("{}", {{"linear.weight", weight_}, {"linear.bias", Tensor::Floats({1}, std::vector<float>{1})}});
  EXPECT_THAT(Read(), IsError(StatusCode::kInvalidArgument, "linear.bias has 1 elements, and linear.weight 2 rows"));
  WriteDense("{}", {{"linear.weight", weight_}}, /*normalises_before=*/true);
  EXPECT_THAT(Read(), IsError(StatusCode::kUnimplemented, "a Dense module behind Normalize is not supported"));
}

TEST_F(TextPipelineTest, PromptsHaveNames) {
  Write("config_sentence_transformers.json",
        R"({"prompts": {"query": "query: ", "document": ""}, "default_prompt_name": "query"})");
  const auto pipeline = Read();
  ASSERT_THAT(pipeline, IsOk());
  EXPECT_EQ(pipeline->prompts, (std::map<std::string, std::string>{{"query", "query: "}, {"document", ""}}));
  EXPECT_EQ(pipeline->default_prompt, "query: ");
  Write("config_sentence_transformers.json", R"({"prompts": {}, "default_prompt_name": null})");
  EXPECT_EQ(Read()->default_prompt, "");
  Write("config_sentence_transformers.json", R"({"prompts": {"a": "b"}, "default_prompt_name": "c"})");
  EXPECT_THAT(Read(), IsError(StatusCode::kInvalidArgument, "prompts have none of that name"));
  Write("config_sentence_transformers.json", R"({"prompts": {"a": 1}})");
  EXPECT_THAT(Read(), IsError(StatusCode::kInvalidArgument, "its prompt 'a' is no string"));
  Write("config_sentence_transformers.json", R"({"prompts": {"a": "b"}})");
  Write("modules.json", R"([{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}])");
  Write("1_Pooling/config.json", R"({"include_prompt": false})");
  EXPECT_THAT(Read(), IsError(StatusCode::kUnimplemented, "include_prompt is false"));
}

TEST_F(TextPipelineTest, LabelsAreTheConfigurations) {
  const auto alone = Read(TextTask::kClassification);
  ASSERT_THAT(alone, IsOk());
  EXPECT_THAT(alone->labels, IsEmpty());
  EXPECT_EQ(alone->of_many, ScoreFunction::kSoftmax);
  Write("config.json", R"({"id2label": {"1": "yes", "0": "no"}, "problem_type": null})");
  const auto two = Read(TextTask::kClassification);
  ASSERT_THAT(two, IsOk());
  EXPECT_EQ(two->task, TextTask::kClassification);
  EXPECT_THAT(two->labels, ElementsAre("no", "yes"));
  EXPECT_EQ(two->of_many, ScoreFunction::kSoftmax);
  Write("config.json", R"({"problem_type": "multi_label_classification"})");
  EXPECT_EQ(Read(TextTask::kClassification)->of_many, ScoreFunction::kSigmoid);
  Write("config.json", R"({"problem_type": "regression"})");
  EXPECT_EQ(Read(TextTask::kClassification)->of_many, ScoreFunction::kNone);
}

TEST_F(TextPipelineTest, SaysWhatIsWrongWithLabels) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"id2label": ["a"]})", "id2label is no object"},
      {R"({"id2label": {"0": "a", "2": "b"}})", "has 2 labels, and none of the id 1"},
      {R"({"id2label": {"0": 1}})", "has a label 0 that is no string"},
  };
  for (const auto& [config, said] : cases) {
    Write("config.json", config);
    EXPECT_THAT(Read(TextTask::kClassification), IsError(StatusCode::kInvalidArgument, said)) << config;
  }
  Write("config.json", R"({"problem_type": "guessing"})");
  EXPECT_THAT(Read(TextTask::kClassification), IsError(StatusCode::kUnimplemented, "problem_type is"));
}

TEST(TextTaskTest, HasAName) {
  EXPECT_EQ(TextTaskOf("embedding"), TextTask::kEmbedding);
  EXPECT_EQ(TextTaskOf(TextTaskName(TextTask::kClassification)), TextTask::kClassification);
  EXPECT_EQ(TextTaskOf(TextTaskName(TextTask::kTokenEmbedding)), TextTask::kTokenEmbedding);
  EXPECT_EQ(TextTaskOf("poem"), std::nullopt);
}

TEST_F(TextPipelineTest, RefusesByName) {
  Write("modules.json", R"([{"type": "sentence_transformers.models.CNN", "path": "2_CNN"}])");
  EXPECT_THAT(Read(), IsError(StatusCode::kUnimplemented, "module sentence_transformers.models.CNN is not supported"));
  Write("modules.json", R"([{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}])");
  EXPECT_THAT(Read(), IsError(StatusCode::kNotFound, "1_Pooling/config.json"));
  Write("1_Pooling/config.json", R"({"pooling_mode_max_tokens": true, "pooling_mode_mean_tokens": true})");
  EXPECT_THAT(Read(),
              IsError(StatusCode::kUnimplemented, "pooling_mode_max_tokens and pooling_mode_mean_tokens is not"));
  Write("modules.json", R"([{"type": "sentence_transformers.models.Pooling", "path": "../1_Pooling"}])");
  EXPECT_THAT(Read(), IsError(StatusCode::kInvalidArgument, ".."));
  Write("modules.json", R"({"type": 1})");
  EXPECT_THAT(Read(), IsError(StatusCode::kInvalidArgument, "modules.json: it is no list of modules"));
  Write("modules.json", "[]");
  Write("sentence_bert_config.json", R"({"max_seq_length": 0})");
  EXPECT_THAT(Read(), IsError(StatusCode::kInvalidArgument, "max_seq_length is no whole number from 1 on"));
  Write("sentence_bert_config.json", R"({"do_lower_case": true})");
  EXPECT_THAT(Read(), IsError(StatusCode::kUnimplemented, "do_lower_case is not supported"));
}

}  // namespace
}  // namespace swizzle::text
