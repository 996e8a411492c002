#include "model_loader/files/atomic_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;
using swizzle::testing::IsOk;

class AtomicFileTest : public ::testing::Test {
 protected:
  Status Write(const std::string& name, std::string_view text) const {
    return WriteFileAtomically(folder_ / name, std::as_bytes(std::span(text)));
  }
  std::string Text(const std::string& name) const {
    std::ifstream stream(folder_ / name);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void Link(const std::string& name, const fs::path& to) const { fs::create_symlink(to, folder_ / name); }
  auto Files() const { return std::distance(fs::recursive_directory_iterator(folder_.path()), {}); }

  const TemporaryFolder folder_;
};

TEST_F(AtomicFileTest, ReplacesAFile) {
  EXPECT_THAT(Write("a", "one"), IsOk());
  EXPECT_THAT(Write("a", "two"), IsOk());
  EXPECT_EQ(Text("a"), "two");
  EXPECT_EQ(Files(), 1);
}

TEST_F(AtomicFileTest, WhatALinkLeadsToIsReplacedAndTheLinkStays) {
  fs::create_directory(folder_ / "far");
  std::ofstream(folder_ / "far/file") << "old";
  Link("relative", "far/file");
  Link("absolute", folder_ / "far/file");
  Link("of_a_link", "relative");
  for (const std::string name : {"relative", "absolute", "of_a_link"}) {
    EXPECT_THAT(Write(name, name), IsOk());
    EXPECT_TRUE(fs::is_symlink(folder_ / name));
    EXPECT_FALSE(fs::is_symlink(folder_ / "far/file"));
    EXPECT_EQ(Text("far/file"), name);
  }
  EXPECT_EQ(Files(), 5);
}

TEST_F(AtomicFileTest, ALinkMayLeadToWhatIsNotThereYet) {
  Link("link", "new");
  EXPECT_THAT(Write("link", "text"), IsOk());
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(Text("new"), "text");
}

TEST_F(AtomicFileTest, LinksInACircleAreLeftAlone) {
  Link("one", "two");
  Link("two", "one");
  EXPECT_EQ(Write("one", "text").code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(fs::is_symlink(folder_ / "one"));
  EXPECT_EQ(Files(), 2);
}

TEST_F(AtomicFileTest, ALinkIntoNoFolderIsAnError) {
  Link("link", "nowhere/file");
  EXPECT_EQ(Write("link", "text").code(), StatusCode::kNotFound);
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
}

}  // namespace
}  // namespace swizzle
