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

class TextPipelineTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  StatusOr<Pipeline> Read() { return ReadPipeline(ModelFolder::Of(folder_ / "model.safetensors")); }

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
