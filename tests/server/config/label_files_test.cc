#include "server/config/label_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/server/repository_directory.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LabelFiles : public ::testing::Test {
 protected:
  StatusOr<std::vector<ConfigNotice>> Read(const std::string& name) {
    inference::ModelConfig config;
    config.add_output()->set_name("other");
    config.add_output()->set_name("Y");
    config.mutable_output(1)->set_label_filename(name);
    spec_.outputs = {{"Y", DType::kFloat32, {3}}, {"other", DType::kFloat32, {3}}};
    return ReadLabels(repository_.path() / "m", config, spec_);
  }
  std::string ErrorOf(const std::string& name) { return std::string(Read(name).status().message()); }

  RepositoryDirectory repository_;
  ModelSpec spec_;
};

TEST_F(LabelFiles, HaveALabelALine) {
  repository_.Write("m/labels.txt", "T-shirt/top\r\n\nAnkle boot \u00fc");
  const auto notices = Read("labels.txt");
  ASSERT_TRUE(notices.ok()) << notices.status();
  EXPECT_THAT(*notices, IsEmpty());
  ASSERT_NE(spec_.outputs[0].labels, nullptr);
  EXPECT_THAT(*spec_.outputs[0].labels, ElementsAre("T-shirt/top", "", "Ankle boot \u00fc"));
  EXPECT_EQ(spec_.outputs[1].labels, nullptr);
}

TEST_F(LabelFiles, MayLieBelowTheModelsFolderAndNowhereElse) {
  repository_.Write("m/1/labels.txt", "a\n");
  repository_.Write("labels.txt", "secret\n");
  EXPECT_TRUE(Read("1/labels.txt").ok());
  EXPECT_THAT(
      ErrorOf("../labels.txt"),
      HasSubstr("config.pbtxt: output 'Y': its file of labels '../labels.txt' is not below the model's folder"));
  EXPECT_THAT(ErrorOf("/etc/passwd"), HasSubstr("is not below the model's folder"));
  std::filesystem::create_symlink("../labels.txt", repository_.path() / "m/link.txt");
  EXPECT_THAT(ErrorOf("link.txt"), HasSubstr("symbolic link"));
  EXPECT_THAT(ErrorOf("1"), HasSubstr("is not a regular file"));
}

TEST_F(LabelFiles, ThatAreNotThereAreANotice) {
  repository_.Write("m/1/empty", "");
  const auto notices = Read("labels.txt");
  ASSERT_TRUE(notices.ok()) << notices.status();
  ASSERT_EQ(notices->size(), 1u);
  EXPECT_EQ(notices->front().field, "output.label_filename");
  EXPECT_EQ(notices->front().why, "there is no file 'labels.txt': classes of 'Y' have no labels");
  EXPECT_EQ(spec_.outputs[0].labels, nullptr);
}

TEST_F(LabelFiles, AreBounded) {
  repository_.Write("m/long.txt", "a\n" + std::string(1025, 'b') + "\n");
  EXPECT_THAT(ErrorOf("long.txt"), HasSubstr("line 2 of its file of labels has 1025 bytes; a label has 1024 at most"));
  repository_.Write("m/large.txt", "");
  std::filesystem::resize_file(repository_.path() / "m/large.txt", (16 << 20) + 1);
  EXPECT_THAT(ErrorOf("large.txt"), HasSubstr("has 16777217 bytes; it may have 16777216 at most"));
  EXPECT_THAT(ErrorOf("a\nb"), HasSubstr("name that is not printable"));
}

}  // namespace
}  // namespace swizzle
