#include "server/repository/model_place.h"

#include <gmock/gmock.h>

#include "server/repository/folder_state.h"
#include "server/repository/model_directory.h"
#include "tests/server/repository_directory.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using swizzle::testing::IsError;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;

class ModelPlaceTest : public ::testing::Test {
 protected:
  ModelPlaceTest() {
    directory_.Write("net.onnx", "x");
    directory_.Write("net.onnx_data", "x");
    directory_.Write("other.onnx", "x");
    directory_.Write("checkpoint/config.json", "{}");
    directory_.Write("checkpoint/model.safetensors", "x");
    directory_.Write("versioned/2/model.onnx", "x");
    directory_.Write("configured/config.pbtxt", "");
  }

  NamedModel Parse(const std::string& below) { return *ParseNamedModel((directory_.path() / below).string()); }

  RepositoryDirectory directory_;
};

TEST_F(ModelPlaceTest, AFileIsAllOfAModel) {
  const NamedModel model = Parse("net.onnx");
  EXPECT_EQ(model.name, "net");
  EXPECT_TRUE(model.place.is_file());
  EXPECT_THAT(*VersionsIn(model.place), ElementsAre(1));
  EXPECT_EQ(*ModelFile(model.place, 1, ""), directory_.path() / "net.onnx");
  EXPECT_EQ(*ModelFile(model.place, 1, "other.onnx"), directory_.path() / "other.onnx");
  EXPECT_THAT(LookAtVersion(model.place, 1), ElementsAre(Key("net.onnx"), Key("net.onnx_data")));
  EXPECT_THAT(LookAtVersion(model.place, 0), IsEmpty());
}

TEST_F(ModelPlaceTest, SoIsACheckpointsFolder) {
  const NamedModel model = Parse("checkpoint/");
  EXPECT_EQ(model.name, "checkpoint");
  EXPECT_FALSE(model.place.versioned());
  EXPECT_EQ(*ModelFile(model.place, 1, ""), directory_.path() / "checkpoint/model.safetensors");
  EXPECT_THAT(LookAtAll(model.place), ElementsAre(Key("config.json"), Key("model.safetensors")));
}

TEST_F(ModelPlaceTest, AModelsFolderIsAsInARepository) {
  const NamedModel model = Parse("versioned");
  EXPECT_TRUE(model.place.versioned());
  EXPECT_THAT(*VersionsIn(model.place), ElementsAre(2));
  EXPECT_THAT(LookAtVersion(model.place, 2), ElementsAre(Key("2/model.onnx")));
  EXPECT_TRUE(Parse("configured").place.versioned());
}

TEST_F(ModelPlaceTest, NamesAreGivenOrTaken) {
  EXPECT_EQ(Parse("net.onnx,name=a.b-c").name, "a.b-c");
  directory_.Write("model.safetensors.index.json", "{}");
  EXPECT_EQ(Parse("model.safetensors.index.json").name, "model");
  directory_.Write("my net.onnx", "x");
  EXPECT_THAT(ParseNamedModel((directory_.path() / "my net.onnx").string()).status(),
              IsError(StatusCode::kInvalidArgument, "'my net' is no name for a model"));
  EXPECT_THAT(ParseNamedModel("").status(), IsError(StatusCode::kInvalidArgument, "there is no file and no folder ''"));
  EXPECT_THAT(ParseNamedModel("/dev/null").status(), IsError(StatusCode::kInvalidArgument, "there is no file"));
}

TEST_F(ModelPlaceTest, TheSameNameTwiceIsFoundTwice) {
  const auto models = FindModels({directory_.path()}, {Parse("net.onnx"), Parse("other.onnx,name=versioned")});
  EXPECT_EQ(models->at("versioned").size(), 2u);
  EXPECT_EQ(models->at("net").size(), 1u);
}

}  // namespace
}  // namespace swizzle
