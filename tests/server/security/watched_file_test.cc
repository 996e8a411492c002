#include "server/security/watched_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

void Write(const std::filesystem::path& path, const std::string& text) { std::ofstream(path) << text; }

TEST(WatchedFileTest, SeesWhatHasChanged) {
  const TemporaryFolder folder;
  WatchedFile file(folder / "file", "certificate");
  EXPECT_TRUE(file.Changed()) << "it was never read";
  EXPECT_EQ(file.Read().status().code(), StatusCode::kNotFound);
  Write(folder / "file", "one");
  EXPECT_EQ(file.Read().value(), "one");
  EXPECT_FALSE(file.Changed());
  Write(folder / "file", "other");
  EXPECT_TRUE(file.Changed());
  EXPECT_EQ(file.Read().value(), "other");
  std::filesystem::remove(folder / "file");
  EXPECT_TRUE(file.Changed());
}

TEST(WatchedFileTest, FollowsLinksOfFolders) {
  const TemporaryFolder folder;
  for (const char* version : {"1", "2"}) {
    std::filesystem::create_directory(folder / version);
    Write(folder.path() / version / "file", version);
  }
  std::filesystem::create_symlink("1", folder / "data");
  std::filesystem::create_symlink("data/file", folder / "file");
  WatchedFile file(folder / "file", "certificate");
  EXPECT_EQ(file.Read().value(), "1");
  std::filesystem::create_symlink("2", folder / "next");
  std::filesystem::rename(folder / "next", folder / "data");
  EXPECT_TRUE(file.Changed());
  EXPECT_EQ(file.Read().value(), "2");
}

TEST(WatchedFileTest, ErrorsNameTheFile) {
  const TemporaryFolder folder;
  WatchedFile file(folder.path(), "certificate");
  EXPECT_NE(file.Read().status().message().find(folder.path().string()), std::string::npos);
}

}  // namespace
}  // namespace swizzle
