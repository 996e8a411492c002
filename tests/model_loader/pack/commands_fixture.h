// Runs swizzle-pack's commands in a folder of their own.
#ifndef SWIZZLE_TESTS_MODEL_LOADER_PACK_COMMANDS_FIXTURE_H_
#define SWIZZLE_TESTS_MODEL_LOADER_PACK_COMMANDS_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "model_loader/files/npy.h"
#include "model_loader/pack/commands.h"
#include "model_loader/packed/packed_writer.h"
#include "tests/support/npz_writer.h"
#include "tests/support/temporary_folder.h"

namespace swizzle::pack {

class Commands : public ::testing::Test {
 protected:
  int Run(std::vector<std::string> arguments) {
    out_.str("");
    err_.str("");
    std::vector<const char*> argv = {"swizzle-pack"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    std::istringstream in(in_);
    Terminal terminal{.out = out_, .err = err_, .in = &in};
    return RunTool(static_cast<int>(argv.size()), argv.data(), terminal);
  }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string out() const { return out_.str(); }
  void Type(std::string text) { in_ = std::move(text); }
  std::string err() const { return err_.str(); }

  std::string Packed(const std::string& name, const Network& network) const {
    SWIZZLE_CHECK(WritePacked(network, Path(name)).ok());
    return Path(name);
  }

  std::string WriteInput(const std::string& name, const Shape& shape) const {
    const std::vector<float> values(static_cast<size_t>(*ElementCount(shape)), 0.5f);
    SWIZZLE_CHECK(WriteNpy(Path(name), {DType::kFloat32, shape, std::as_bytes(std::span(values))}).ok());
    return Path(name);
  }

  // Rows for the input of MakeRandomNetwork.
  std::string WriteImages(const std::string& file, int64_t rows, const std::string& input = "image") const {
    const std::vector<float> values(static_cast<size_t>(rows) * 3 * 14 * 14, 0.5f);
    const TensorView view{DType::kFloat32, {rows, 3, 14, 14}, std::as_bytes(std::span(values))};
    std::ofstream(Path(file), std::ios::binary) << testing::MakeNpz({{input, view}});
    return Path(file);
  }

  std::string WriteLabels(const std::vector<int64_t>& labels) const {
    const Shape shape = {static_cast<int64_t>(labels.size())};
    SWIZZLE_CHECK(WriteNpy(Path("labels.npy"), {DType::kInt64, shape, std::as_bytes(std::span(labels))}).ok());
    return Path("labels.npy");
  }

  // The exit code is 2 and standard error is one line with `part` in it.
  void ExpectBadInput(const std::vector<std::string>& arguments, const std::string& part) {
    EXPECT_EQ(Run(arguments), 2);
    EXPECT_THAT(err(), ::testing::MatchesRegex("swizzle-pack: [^\n]*\n"));
    EXPECT_THAT(err(), ::testing::HasSubstr(part));
    EXPECT_EQ(out(), "");
  }

 private:
  const TemporaryFolder folder_;
  std::ostringstream out_, err_;
  std::string in_;
};

}  // namespace swizzle::pack

#endif  // SWIZZLE_TESTS_MODEL_LOADER_PACK_COMMANDS_FIXTURE_H_
