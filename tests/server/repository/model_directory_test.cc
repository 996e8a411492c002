#include "server/repository/model_directory.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/repository_directory.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

StatusOr<std::vector<int64_t>> Served(const std::vector<int64_t>& versions, const std::string& text) {
  inference::ModelVersionPolicy policy;
  SWIZZLE_CHECK(google::protobuf::TextFormat::ParseFromString(text, &policy));
  return ServedVersions(versions, policy);
}

TEST(ServedVersions, AreThoseThatAPolicyMeans) {
  EXPECT_THAT(*Served({}, ""), IsEmpty());
  EXPECT_THAT(*Served({}, "specific { versions: 3 }"), IsEmpty()) << "that there is none is said elsewhere";
  EXPECT_THAT(*Served({1, 2, 10}, ""), ElementsAre(10));
  EXPECT_THAT(*Served({1, 2, 10}, "latest { num_versions: 1 }"), ElementsAre(10));
  EXPECT_THAT(*Served({1, 2, 10}, "latest { }"), ElementsAre(10));
  EXPECT_THAT(*Served({1, 2, 10}, "latest { num_versions: 2 }"), ElementsAre(2, 10));
  EXPECT_THAT(*Served({4}, "latest { num_versions: 3 }"), ElementsAre(4));
  EXPECT_THAT(*Served({1, 2, 10}, "all { }"), ElementsAre(1, 2, 10));
  EXPECT_THAT(*Served({1, 2, 10}, "specific { versions: [10, 1] }"), ElementsAre(1, 10));
  EXPECT_THAT(*Served({1, 2, 10}, "specific { versions: [2, 3] }"), ElementsAre(2)) << "the other is not there";
}

TEST(ServedVersions, AreThere) {
  EXPECT_THAT(std::string(Served({1, 2}, "specific { versions: 3 }").status().message()),
              HasSubstr("none of the versions that 'version_policy' names is there; the latest is 2"));
  EXPECT_EQ(Served({1, 2}, "specific { }").status().code(), StatusCode::kNotFound);
}

TEST(FindModels, LooksIntoEveryRepository) {
  RepositoryDirectory first, second;
  for (const char* file : {"a/1/x", "b/1/x", ".git/x"}) first.Write(file, "");
  for (const char* file : {"b/1/x", "c/1/x"}) second.Write(file, "");
  const auto models = FindModels({first.path(), second.path()});
  ASSERT_TRUE(models.ok()) << models.status();
  EXPECT_EQ(models->size(), 3u);
  EXPECT_THAT(models->at("a"), ElementsAre(ModelPlace::Versioned(first.path() / "a")));
  EXPECT_THAT(models->at("b"),
              ElementsAre(ModelPlace::Versioned(first.path() / "b"), ModelPlace::Versioned(second.path() / "b")));
  EXPECT_EQ(FindModels({first.path(), first.path() / "none"}).status().code(), StatusCode::kNotFound);
}

TEST(ModelDirectory, HasVersionsAndFiles) {
  RepositoryDirectory directory;
  for (const char* file : {"m/10/model.onnx", "m/2/net.onnx", "m/011/x", "m/draft/x", "m/lost+found/x", "m/3"}) {
    directory.Write(file, "");
  }
  const auto model = directory.path() / "m";
  const ModelPlace place = ModelPlace::Versioned(model);
  EXPECT_THAT(*VersionsIn(place), ElementsAre(2, 10));
  EXPECT_EQ(*ModelFile(place, 10, ""), model / "10/model.onnx");
  EXPECT_EQ(*ModelFile(place, 2, "net.onnx"), model / "2/net.onnx");
  EXPECT_THAT(std::string(ModelFile(place, 10, "net.onnx").status().message()),
              HasSubstr("there is no 'net.onnx' in the version's directory"));
  EXPECT_THAT(std::string(ModelFile(place, 2, "").status().message()),
              HasSubstr("in the version's directory, but 'net.onnx'; name the model in 'default_model_filename', or"));
  for (const char* file : {"m/4/a.pt", "m/4/b.plan", "m/4/c", "m/4/d", "m/4/e\n"}) directory.Write(file, "");
  EXPECT_THAT(std::string(ModelFile(place, 4, "").status().message()),
              HasSubstr(", but 'a.pt', 'b.plan', 'c', 'd' and 1 more; name"));
  directory.Write("m/5/x", "");
  std::filesystem::remove(model / "5/x");
  EXPECT_THAT(std::string(ModelFile(place, 5, "").status().message()), ::testing::EndsWith("the version's directory"));

  std::filesystem::create_symlink("gone.onnx", model / "5/model.onnx");
  EXPECT_EQ(std::string(ModelFile(place, 5, "").status().message()),
            "model.onnx is a link that leads to no file; mend it or remove it");
}

TEST(IsNoModel, KnowsWhatSystemsMake) {
  for (const char* folder : {"lost+found", ".snapshot", "@eaDir", ".git", "..data", "#recycle", "$RECYCLE.BIN"}) {
    EXPECT_TRUE(IsNoModel(folder)) << folder;
  }
  for (const char* folder : {"m", "lost", "two words", "a@b", "_m", "found+lost"}) EXPECT_FALSE(IsNoModel(folder));
}

}  // namespace
}  // namespace swizzle
