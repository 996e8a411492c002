// Models that are parsed while their files are read.
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "model_loader/graph/print.h"
#include "model_loader/onnx/onnx_reader.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::OnnxBuilder;

TEST(OnnxFileTest, AFileIsReadAsItsBytesAre) {
  OnnxBuilder model;
  model.Input("x", {-1, 2}).Counting("w", {2, 3}).Node("MatMul", {"x", "w"}, {"y"}).Output("y");
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "model.onnx";
  const auto write = [&](const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; };
  const std::string bytes = model.model().SerializeAsString();
  write(bytes);
  const auto graph = ReadOnnx(OnnxSource::OfFile(file));
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(Print(*graph), Print(*model.Read()));
  ReadOptions few;
  few.max_model_bytes = 99;
  EXPECT_THAT(ReadOnnx(OnnxSource::OfFile(file), few), IsError(StatusCode::kResourceExhausted, "the limit is 99"));
  write(bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(ReadOnnx(OnnxSource::OfFile(file)), IsError(StatusCode::kInvalidArgument, "it is truncated"));
  write("version https://git-lfs.github.com/spec/v1\n");
  EXPECT_THAT(ReadOnnx(OnnxSource::OfFile(file)), IsError(StatusCode::kInvalidArgument, "Git LFS"));
  std::filesystem::remove(file);
  EXPECT_THAT(ReadOnnx(OnnxSource::OfFile(file)), IsError(StatusCode::kNotFound, "there is no such file"));
}

}  // namespace
}  // namespace swizzle
