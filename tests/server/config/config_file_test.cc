#include "server/config/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ReadModelConfigTest : public ::testing::Test {
 protected:
  void Link(const fs::path& to) { fs::create_symlink(to, folder_.path() / "config.pbtxt"); }
  std::string Error() const { return std::string(ReadModelConfig(folder_.path(), "m").status().message()); }

  const TemporaryFolder folder_;
};

TEST_F(ReadModelConfigTest, ThereMayBeNone) {
  const auto config = ReadModelConfig(folder_.path(), "m");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_FALSE(config->has_value());
}

TEST_F(ReadModelConfigTest, ALinkToAFileIsFollowed) {
  std::ofstream(folder_.path() / "other") << "max_batch_size: 3";
  Link("other");
  const auto config = ReadModelConfig(folder_.path(), "m");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ((*config)->max_batch_size(), 3);
}

TEST_F(ReadModelConfigTest, ALinkThatLeadsNowhereIsNotNone) {
  Link("nowhere");
  EXPECT_THAT(Error(), HasSubstr("config.pbtxt is a link that leads to no file"));
}

TEST_F(ReadModelConfigTest, NorIsOneThatLeadsToItself) {
  Link("config.pbtxt");
  EXPECT_THAT(Error(), HasSubstr("config.pbtxt is a link that leads to no file"));
}

TEST_F(ReadModelConfigTest, NorIsOneThroughAFile) {
  std::ofstream(folder_.path() / "other") << "max_batch_size: 3";
  Link("other/config.pbtxt");
  EXPECT_THAT(Error(), HasSubstr("config.pbtxt is a link that leads to no file"));
}

TEST_F(ReadModelConfigTest, NorIsAFolder) {
  fs::create_directory(folder_.path() / "config.pbtxt");
  EXPECT_THAT(Error(), HasSubstr("it is not a regular file"));
}

}  // namespace
}  // namespace swizzle
