#include "model_loader/safetensors/sharded_checkpoint.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/safetensors_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;
using testing::FormatSafetensors;
using testing::IsError;
using testing::IsOk;
using testing::kInvalid;
using testing::WriteBytes;

Tensor Number(float value) { return Tensor::Floats({1}, std::vector<float>{value}); }

// A folder with the shards one.safetensors (tensors a and b) and two.safetensors (c).
class ShardedCheckpointTest : public ::testing::Test {
 protected:
  ShardedCheckpointTest() {
    fs::create_directories(folder_ / "model/deep");
    WriteBytes(File("one.safetensors"), FormatSafetensors({{"a", Number(1)}, {"b", Number(2)}}));
    WriteBytes(File("two.safetensors"), FormatSafetensors({{"c", Number(3)}}));
  }

  fs::path File(const std::string& name) const { return folder_ / "model" / name; }

  StatusOr<TensorMap> Read(const std::string& index) const {
    std::ofstream(File("model.safetensors.index.json")) << index;
    return ReadTensors(File("model.safetensors.index.json"));
  }

  // The right map, but for `c`.
  StatusOr<TensorMap> ReadWithShardOfC(const std::string& shard) const {
    return Read(R"({"weight_map":{"a":"one.safetensors","b":"one.safetensors","c":")" + shard + "\"}}");
  }

  TemporaryFolder folder_;
};

TEST_F(ShardedCheckpointTest, ReadsAllShards) {
  const auto tensors = Read(R"({"metadata":{"total_size":12},"weight_map":)"
                            R"({"a":"one.safetensors","c":"two.safetensors","b":"one.safetensors"}})");
  ASSERT_THAT(tensors, IsOk());
  EXPECT_EQ(*tensors, (TensorMap{{"a", Number(1)}, {"b", Number(2)}, {"c", Number(3)}}));
}

TEST_F(ShardedCheckpointTest, ReadsASingleFile) {
  const auto tensors = ReadTensors(File("two.safetensors"));
  ASSERT_THAT(tensors, IsOk());
  EXPECT_EQ(*tensors, (TensorMap{{"c", Number(3)}}));
  EXPECT_THAT(ReadTensors(File("none.safetensors")), IsError(StatusCode::kNotFound, "none.safetensors"));
  std::ofstream(File("two.safetensors")) << "short";
  EXPECT_THAT(ReadTensors(File("two.safetensors")),
              IsError(kInvalid, "two.safetensors: this is not a safetensors file"));
}

TEST_F(ShardedCheckpointTest, RefusesShardsThatDisagreeWithTheIndex) {
  EXPECT_THAT(ReadWithShardOfC("one.safetensors"),
              IsError(kInvalid, "one.safetensors: it lacks the tensor 'c', which the index says it has"));
  EXPECT_THAT(Read(R"({"weight_map":{"a":"one.safetensors","c":"two.safetensors"}})"),
              IsError(kInvalid, "one.safetensors: it has the tensor 'b', which by the index it has not"));
  // 'a' in both shards: one of them has to be more than the index says.
  WriteBytes(File("two.safetensors"), FormatSafetensors({{"a", Number(1)}, {"c", Number(3)}}));
  EXPECT_THAT(ReadWithShardOfC("two.safetensors"), IsError(kInvalid, "two.safetensors: it has the tensor 'a'"));
}

TEST_F(ShardedCheckpointTest, RefusesShardsThatAreMalformed) {
  fs::resize_file(File("two.safetensors"), fs::file_size(File("two.safetensors")) - 1);
  EXPECT_THAT(ReadWithShardOfC("two.safetensors"), IsError(kInvalid, "two.safetensors: the tensors take 4 bytes"));
}

TEST_F(ShardedCheckpointTest, ReachesNothingButFilesBesideTheIndex) {
  fs::copy_file(File("two.safetensors"), File("deep/two.safetensors"));
  fs::copy_file(File("two.safetensors"), folder_ / "outside.safetensors");
  fs::create_symlink("../outside.safetensors", File("link.safetensors"));
  fs::create_symlink("two.safetensors", File("inside.safetensors"));
  fs::create_directory(File("folder.safetensors"));
  for (const char* shard : {"../outside.safetensors", "deep/two.safetensors", "/etc/passwd.safetensors",
                            "./two.safetensors", "two.bin", ""}) {
    EXPECT_THAT(ReadWithShardOfC(shard), IsError(kInvalid, "must be the plain name of a .safetensors file"));
  }
  EXPECT_THAT(ReadWithShardOfC("link.safetensors"),
              IsError(kInvalid, "the shard 'link.safetensors' is, or lies behind"));
  EXPECT_THAT(ReadWithShardOfC("inside.safetensors"), IsError(kInvalid, "symbolic link"));
  EXPECT_THAT(ReadWithShardOfC("folder.safetensors"), IsError(kInvalid, "is not a regular file"));
  EXPECT_THAT(ReadWithShardOfC("none.safetensors"), IsError(StatusCode::kNotFound, "'none.safetensors' is not there"));
  EXPECT_THAT(ReadWithShardOfC("a\\nb.safetensors"), IsError(kInvalid, "the shard of 'c' has a name that is not"));
  fs::create_hard_link(File("two.safetensors"), File("hard.safetensors"));
  EXPECT_THAT(ReadWithShardOfC("hard.safetensors"), IsError(kInvalid, "has other names (hard links)"));
}

// As huggingface_hub keeps it.
TEST_F(ShardedCheckpointTest, ReadsShardsOfABlobStore) {
  fs::create_directories(folder_ / "blobs");
  fs::create_directories(folder_ / "snapshots/cafe");
  std::ofstream(folder_ / "blobs" / std::string(40, 'a')) << R"({"weight_map":{"c":"two.safetensors"}})";
  fs::rename(File("two.safetensors"), folder_ / "blobs" / std::string(64, 'b'));
  const fs::path index = folder_ / "snapshots/cafe/model.safetensors.index.json";
  fs::create_symlink("../../blobs/" + std::string(40, 'a'), index);
  fs::create_symlink("../../blobs/" + std::string(64, 'b'), folder_ / "snapshots/cafe/two.safetensors");
  const auto tensors = ReadTensors(index);
  ASSERT_THAT(tensors, IsOk());
  EXPECT_EQ(*tensors, (TensorMap{{"c", Number(3)}}));
}

TEST_F(ShardedCheckpointTest, RefusesMalformedIndices) {
  const std::pair<std::string, const char*> faults[] = {
      {"", "not a JSON object"},
      {"[]", "not a JSON object"},
      {R"({"weight_map":{"a":"one.safetensors"})", "not a JSON object"},
      {"{}", "it has no weight_map"},
      {R"({"weight_map":[]})", "it has no weight_map"},
      {R"({"weight_map":{}})", "it has no weight_map"},
      {R"({"weight_map":{"a":1}})", "the weight_map's 'a' is no file name"},
      {R"({"weight_map":{"a":"one.safetensors","a":"two.safetensors"}})", "the key 'a' is given twice"},
      {R"({"weight_map":{"a\n":"one.safetensors"}})", "a key has a name that is not printable"},
      {std::string("{}\0", 3), "it holds a zero byte"},
      {std::string(40, '[') + std::string(40, ']'), "it nests more than 32 deep"},
  };
  for (const auto& [text, message] : faults) {
    const auto tensors = Read(text);
    EXPECT_THAT(tensors, IsError(kInvalid, message)) << text;
    EXPECT_THAT(tensors, IsError(kInvalid, "model.safetensors.index.json: ")) << text;
  }
}

}  // namespace
}  // namespace swizzle
