#include "model_loader/files/file_kind.h"

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model_loader/load/loader.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;
using testing::IsError;

const struct {
  std::string content;
  const char* kind;
} kFiles[] = {
    {"version https://git-lfs.github.com/spec/v1\noid sha256:0f\nsize 90\n", "a pointer file of Git LFS"},
    {"<!DOCTYPE html>\n<html>", "an HTML page"},
    {"\xef\xbb\xbf \n<!doctype HTML>", "an HTML page"},
    {"<html lang=\"en\">", "an HTML page"},
    {"<?xml version=\"1.0\"?>\n<!DOCTYPE html PUBLIC>\n<html xmlns=\"\">", "an HTML page"},
    {"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", "XML"},
    {"{\"error\":\"Repository not found\"}", "JSON"},
    {"PK\3\4\0\0", "a ZIP archive, as PyTorch"},
    {"\x80\2}q\0"s, "a Python pickle"},
    {"\x89HDF\r\n\x1a\n\0"s, "an HDF5 file"},
    {"ftrt\0\0\0\0"s, "a TensorRT engine"},
    {"GGUF\3\0\0\0"s, "llama.cpp (GGUF)"},
    {"\x1c\0\0\0TFL3"s, "TensorFlow Lite"},
    {"\x10\0\0\0ORTM"s, "ONNX Runtime's own format"},
    {"\x28\0\0\0\0\0\0\0{\"w\":{}}"s, "a safetensors file"},
    {"\x1f\x8b\x08\0"s, "a compressed file or archive"},
    {std::string(257, 'a') + "ustar", "a compressed file or archive"},
    {"\x93NUMPY\1\0"s, "an array of NumPy"},
    {"\x7f"
     "ELF\2\1",
     "a program or library"},
    {std::string(1000, '\0'), "zeros from its beginning on"},
    {"", "an empty file"},
};

std::string KindOf(const std::string& content) {
  return std::string(KindOfFile(std::as_bytes(std::span(content.data(), content.size()))));
}

TEST(FileKind, IsToldByTheBeginning) {
  for (const auto& file : kFiles) EXPECT_THAT(KindOf(file.content), HasSubstr(file.kind));
  for (const std::string& content : {"\x08\x07\x12\x04"s, "This is a sentence."s, "\0\0\0\0"s, "P"s, "<"s, "{{{"s}) {
    EXPECT_EQ(KindOf(content), "") << content;
  }
}

// Whatever the name that such a file got.
TEST(FileKind, IsWhatReadersSayInstead) {
  const TemporaryFolder folder;
  std::ofstream(folder / "config.json") << R"({"model_type":"bert"})";
  for (const auto& file : kFiles) {
    for (const char* name : {"model.onnx", "model.swz"}) {
      std::ofstream(folder / name, std::ios::binary) << file.content;
      EXPECT_THAT(LoadRunnableModel(folder / name), IsError(StatusCode::kInvalidArgument, Concat(" model, but ")));
      EXPECT_THAT(LoadRunnableModel(folder / name), IsError(StatusCode::kInvalidArgument, file.kind));
    }
  }
  for (size_t i = 0; i < 9; ++i) {
    std::ofstream(folder / "model.safetensors", std::ios::binary) << kFiles[i].content << std::string(8, ' ');
    EXPECT_THAT(LoadRunnableModel(folder / "model.safetensors"), IsError(StatusCode::kInvalidArgument, kFiles[i].kind));
  }
  std::ofstream(folder / "config.json") << kFiles[0].content;
  EXPECT_THAT(LoadRunnableModel(folder / "model.safetensors"),
              IsError(StatusCode::kInvalidArgument, "config.json: it is not a JSON object, but a pointer file of Git"));
}

}  // namespace
}  // namespace swizzle
