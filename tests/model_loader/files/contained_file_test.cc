#include "model_loader/files/contained_file.h"

#include <array>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;
using testing::IsError;
using testing::IsOk;
using testing::kInvalid;

// A cache of huggingface_hub: two repositories with a blob store each, of which the first has a snapshot.
class BlobStoreTest : public ::testing::Test {
 protected:
  BlobStoreTest() {
    fs::create_directories(snapshot() / "onnx/deep");
    for (const char* repository : {"models--a", "models--b"}) fs::create_directories(folder_ / repository / "blobs");
    Write("models--a/blobs/" + kModel, "model");
    Write("models--a/blobs/" + kData, "data");
    Write("models--a/blobs/short", "another file");
    Write("models--b/blobs/" + kData, "another repository's");
    Write("secret", "somebody else's");
    Link("onnx/model.onnx", "../../../blobs/" + kModel);
    Link("onnx/model.onnx_data", "../../../blobs/" + kData);
    Link("onnx/deep/part", "../../../../blobs/" + kData);
  }

  fs::path snapshot() const { return folder_ / "models--a/snapshots/cafe"; }
  void Write(const std::string& file, const std::string& content) const { std::ofstream(folder_ / file) << content; }
  void Link(const std::string& name, const fs::path& target) const { fs::create_symlink(target, snapshot() / name); }

  StatusOr<std::string> Read(const std::string& location, const fs::path& model) const {
    SWIZZLE_ASSIGN_OR_RETURN(const ContainedFile file, ContainedFile::Open(ModelFolder::Of(model), location, "it"));
    std::string content(static_cast<size_t>(file.bytes()), '\0');
    SWIZZLE_CHECK(file.ReadAt(0, std::as_writable_bytes(std::span(content))));
    return content;
  }
  StatusOr<std::string> Read(const std::string& location) const {
    return Read(location, snapshot() / "onnx/model.onnx");
  }

  const std::string kModel = std::string(64, 'a'), kData = std::string(40, '0');
  TemporaryFolder folder_;
};

TEST_F(BlobStoreTest, AModelsBlobMayNameBlobsOfItsStore) {
  for (const char* location : {"model.onnx_data", "deep/part"}) {
    const auto content = Read(location);
    ASSERT_THAT(content, IsOk()) << location;
    EXPECT_EQ(*content, "data");
  }
  // A repository of models may link to the snapshot, and the link may be absolute.
  fs::create_directory_symlink(snapshot() / "onnx", folder_ / "1");
  EXPECT_THAT(Read("model.onnx_data", folder_ / "1/model.onnx"), IsOk());
  Link("onnx/absolute", folder_ / "models--a/blobs" / kData);
  EXPECT_THAT(Read("absolute"), IsOk());
}

TEST_F(BlobStoreTest, NothingElseIsFollowed) {
  const auto refused = IsError(kInvalid, "symbolic link");
  const std::pair<const char*, fs::path> links[] = {
      {"outside", "../../../../secret"},
      {"absolute", folder_ / "secret"},
      {"of_another", "../../../../models--b/blobs/" + kData},
      {"no_hash", "../../../blobs/short"},
      {"to_a_link", "model.onnx_data"},
      {"upper", "../../../blobs/" + std::string(40, 'A')},
      {"up", "../../../blobs/" + kData + "/.."},
      {"folder", "../../../blobs"},
  };
  for (const auto& [name, target] : links) {
    Link(std::string("onnx/") + name, target);
    EXPECT_THAT(Read(name), refused) << name;
  }
  Link("onnx/linked_folder", "deep");
  EXPECT_THAT(Read("linked_folder/part"), refused);
  EXPECT_THAT(Read("../onnx/model.onnx_data"), IsError(kInvalid, "not below the model's folder"));
}

TEST_F(BlobStoreTest, ABlobIsARegularFileOfOneName) {
  const std::string linked(40, '1'), shared(40, '2'), gone(40, '3');
  fs::create_symlink("../../secret", folder_ / "models--a/blobs" / linked);
  fs::create_hard_link(folder_ / "secret", folder_ / "models--a/blobs" / shared);
  for (const std::string& blob : {linked, shared, gone}) Link("onnx/" + blob, "../../../blobs/" + blob);
  EXPECT_THAT(Read(linked), IsError(kInvalid, "symbolic link"));
  EXPECT_THAT(Read(shared), IsError(kInvalid, "hard links"));
  EXPECT_THAT(Read(gone), IsError(StatusCode::kNotFound, "is not there"));
}

// Of a model that is no blob itself nothing says that the store is its own.
TEST_F(BlobStoreTest, OtherModelsFollowNoLink) {
  std::ofstream(snapshot() / "onnx/copied.onnx") << "model";
  Link("onnx/linked.onnx", "copied.onnx");
  fs::create_directories(folder_ / "elsewhere");
  Write("elsewhere/" + kModel, "model");
  Link("onnx/not_a_store.onnx", "../../../../elsewhere/" + kModel);
  for (const char* model : {"copied.onnx", "linked.onnx", "not_a_store.onnx", "nowhere.onnx"}) {
    EXPECT_THAT(Read("model.onnx_data", snapshot() / "onnx" / model), IsError(kInvalid, "symbolic link")) << model;
  }
}

}  // namespace
}  // namespace swizzle
