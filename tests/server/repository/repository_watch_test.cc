#include "server/repository/repository_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/server/repository_directory.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

class RepositoryWatchTest : public ::testing::Test {
 protected:
  RepositoryWatchTest() {
    directory_.Write("m/1/model.onnx", "abc");
    watch_.emplace(std::vector<fs::path>{directory_.path()});
  }

  RepositoryWatch::Changes Look() { return *watch_->Look(); }
  // As a program does that copies, or checks out: the content is the same, the time is not.
  void Touch(const std::string& file) {
    fs::last_write_time(directory_.path() / file,
                        fs::last_write_time(directory_.path() / file) + std::chrono::hours(1));
  }
  RepositoryDirectory directory_;
  std::optional<RepositoryWatch> watch_;
};

TEST_F(RepositoryWatchTest, TellsNothingOfWhatWasThere) {
  EXPECT_THAT(Look().changed, IsEmpty());
  EXPECT_THAT(Look().changed, IsEmpty());
}

TEST_F(RepositoryWatchTest, WaitsUntilAFolderIsQuiet) {
  directory_.Write("m/1/model.onnx", "abcd");
  EXPECT_THAT(Look().changed, IsEmpty());
  directory_.Write("m/1/model.onnx", "abcde");
  EXPECT_THAT(Look().changed, IsEmpty()) << "it is being written";
  EXPECT_THAT(Look().changed, ElementsAre("m"));
  EXPECT_THAT(Look().changed, IsEmpty()) << "once";
}

TEST_F(RepositoryWatchTest, NewFoldersAreModels) {
  directory_.Write("new/1/model.onnx", "abc");
  EXPECT_THAT(Look().changed, IsEmpty());
  EXPECT_THAT(Look().changed, ElementsAre("new"));
}

TEST_F(RepositoryWatchTest, GoesByContentAndNotByTime) {
  Look();
  Look();
  Touch("m/1/model.onnx");
  Look();
  EXPECT_THAT(Look().changed, IsEmpty()) << "it has the same bytes";
  directory_.Write("m/1/model.onnx", "abd");
  Touch("m/1/model.onnx");
  Look();
  EXPECT_THAT(Look().changed, ElementsAre("m")) << "it has as many others";
}

TEST_F(RepositoryWatchTest, AFileThatWasReplacedUnderItsOldTimeIsSeen) {
  Look();
  directory_.Write("m/1/other", "xyz");
  fs::last_write_time(directory_.path() / "m/1/other", fs::last_write_time(directory_.path() / "m/1/model.onnx"));
  fs::rename(directory_.path() / "m/1/other", directory_.path() / "m/1/model.onnx");
  Look();
  EXPECT_THAT(Look().changed, ElementsAre("m"));
}

TEST_F(RepositoryWatchTest, ConfigurationsVersionsAndLinksCount) {
  directory_.Write("m/config.pbtxt", "");
  Look();
  EXPECT_THAT(Look().changed, ElementsAre("m"));
  directory_.Write("m/2/model.onnx", "");
  Look();
  EXPECT_THAT(Look().changed, ElementsAre("m"));
  directory_.Write(".store/a", "1");
  directory_.Write(".store/b", "2");
  fs::create_symlink("../../.store/a", directory_.path() / "m/2/data");
  Look();
  EXPECT_THAT(Look().changed, ElementsAre("m"));
  fs::remove(directory_.path() / "m/2/data");
  fs::create_symlink("../../.store/b", directory_.path() / "m/2/data");
  Look();
  EXPECT_THAT(Look().changed, ElementsAre("m"));
}

TEST_F(RepositoryWatchTest, WhatIsGoneTwiceIsGone) {
  fs::rename(directory_.path() / "m", directory_.path() / ".m");
  EXPECT_THAT(Look().gone, IsEmpty()) << "it may be replaced";
  fs::rename(directory_.path() / ".m", directory_.path() / "m");
  EXPECT_THAT(Look().gone, IsEmpty());
  fs::rename(directory_.path() / "m", directory_.path() / ".m");
  Look();
  EXPECT_THAT(Look().gone, ElementsAre("m"));
  EXPECT_THAT(Look().gone, IsEmpty());
}

// As when a network's folder is away for a while.
TEST_F(RepositoryWatchTest, ARepositoryThatCannotBeListedHasLostNoModel) {
  fs::rename(directory_.path(), directory_.path().string() + ".away");
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(watch_->Look().ok());
  fs::rename(directory_.path().string() + ".away", directory_.path());
  EXPECT_THAT(Look().gone, IsEmpty());
}

}  // namespace
}  // namespace swizzle
