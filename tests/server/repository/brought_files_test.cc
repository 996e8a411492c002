#include "server/repository/brought_files.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;

using swizzle::testing::IsOk;

TEST(BroughtFolder, HoldsItsFilesUntilItGoes) {
  fs::path path;
  {
    const auto folder = BroughtFolder::Write({{"1/model", "content"}, {"labels.txt", ""}});
    ASSERT_THAT(folder.status(), IsOk());
    path = (*folder)->path();
    std::ifstream file(path / "1/model");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "content");
    EXPECT_TRUE(fs::is_regular_file(path / "labels.txt"));
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(BroughtFolder, GoesWithAProcessThatWaitsForNobody) {
  const auto folder = BroughtFolder::Write({{"1/model", "content"}});
  ASSERT_THAT(folder.status(), IsOk());
  RemoveBroughtFolders();
  EXPECT_FALSE(fs::exists((*folder)->path()));
}

TEST(CheckBroughtPath, TakesWhatStaysWithinAFolder) {
  for (const char* path : {"1/model.onnx", "config", "1/weights/part/data", "2/..data"}) {
    EXPECT_THAT(CheckBroughtPath(path), IsOk()) << path;
  }
  for (const char* path : {"", "/1/model", "..", "1/..", "a/../../b", "./a", "a//b", "a/", "1/2/3/4/5"}) {
    EXPECT_EQ(CheckBroughtPath(path).code(), StatusCode::kInvalidArgument) << path;
  }
}

}  // namespace
}  // namespace swizzle
