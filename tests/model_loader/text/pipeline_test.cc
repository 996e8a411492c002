#include "model_loader/text/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

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
  EXPECT_EQ(TextTaskOf("poem"), std::nullopt);
}

TEST_F(TextPipelineTest, RefusesByName) {
  Write("modules.json", R"([{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}])");
  EXPECT_THAT(Read(),
              IsError(StatusCode::kUnimplemented, "module sentence_transformers.models.Dense is not supported"));
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
