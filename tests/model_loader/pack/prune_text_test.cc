// What the prune command says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "model_loader/files/atomic_file.h"
#include "model_loader/pack/commands.h"
#include "tests/support/npz_writer.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/temporary_folder.h"

namespace swizzle::pack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PruneText : public ::testing::Test {
 protected:
  // What it prints, or the error's message.
  std::string Prune(PruneCommand command) const {
    std::ostringstream out, err;
    Terminal terminal{out, err, false};
    command.output = folder_ / "p.onnx";
    const auto outcome = Execute(command, terminal);
    return outcome.ok() ? out.str() : std::string(outcome.status().message());
  }

  const std::string model_ = SWIZZLE_SOURCE_DIR "/deploy/models/mobilenet_v1_fashion.onnx";
  const TemporaryFolder folder_;
};

// The first 1x1 layer has two blocks of 32x32, and 80 % of two are both. Trained for hours, such a network guesses.
TEST_F(PruneText, TellsOfLayersOfWhichNothingIsLeft) {
  PruneCommand command;
  command.model = model_;
  command.method = PruneMethod::kBlock;
  command.vector_rows = 32;
  command.sparsity = 0.8;
  const std::string much = Prune(command);
  EXPECT_THAT(much, HasSubstr("nothing left"));
  EXPECT_THAT(much, HasSubstr("leave such layers out with --skip"));
  command.sparsity = 0.1;
  EXPECT_THAT(Prune(command), Not(HasSubstr("nothing")));
}

TEST_F(PruneText, LeavesWhatElseLiesBesideTheOutput) {
  swizzle::testing::OnnxBuilder builder;
  builder.Input("x", {-1, 4}).Floats("w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}).Output("y");
  const std::vector<std::byte> bytes = builder.Node("MatMul", {"x", "w"}, {"y"}).Bytes();
  PruneCommand command;
  command.model = folder_ / "m.onnx";
  ASSERT_TRUE(WriteFileAtomically(command.model, bytes).ok());
  const std::vector<float> rows(12, 0.5f);
  command.calibration = folder_ / "x.npz";
  std::ofstream(command.calibration, std::ios::binary)
      << swizzle::testing::MakeNpz({{"x", {DType::kFloat32, {3, 4}, std::as_bytes(std::span(rows))}}});
  command.sparsity = 0.5;
  const std::filesystem::path kept = folder_ / "p.onnx.partial";
  EXPECT_THAT(Prune(command), HasSubstr("Squared error"));
  EXPECT_FALSE(std::filesystem::exists(kept));
  std::filesystem::create_directories(kept / "of another run");
  EXPECT_THAT(Prune(command), HasSubstr("Squared error"));
  EXPECT_TRUE(std::filesystem::exists(kept / "of another run"));
}

TEST_F(PruneText, WholeNumbersAreCalledThat) {
  swizzle::testing::OnnxBuilder builder;
  builder.Input("x", {-1, 4}).Output("y").Node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  PruneCommand command;
  command.model = folder_ / "m.onnx";
  ASSERT_TRUE(WriteFileAtomically(command.model, builder.Node("MatMulInteger", {"q", "w"}, {"y"}).Bytes()).ok());
  command.sparsity = 0.5;
  EXPECT_THAT(Prune(command), HasSubstr("prune the FP32 model"));
}

// Of the layers of one model one is pruned, and the others are named.
TEST_F(PruneText, NamesWhatItLeavesAsItIs) {
  const std::vector<float> ones(16, 1.0f);
  swizzle::testing::OnnxBuilder builder;
  builder.Input("x", {-1, 4})
      .Floats("w", {4, 4}, ones)
      .Floats("turned", {4, 4}, ones)
      .Floats("shift", {4}, {1, 2, 3, 4});
  builder.Node("Transpose", {"turned"}, {"t"}).Node("MatMul", {"x", "t"}, {"a"});
  builder.Node("Add", {"w", "shift"}, {"v"}).Node("MatMul", {"a", "v"}, {"y"}).Output("y");
  PruneCommand command;
  command.model = folder_ / "m.onnx";
  ASSERT_TRUE(WriteFileAtomically(command.model, builder.Bytes()).ok());
  command.sparsity = 0.5;
  const std::string text = Prune(command);
  EXPECT_THAT(text, HasSubstr("16 weights in 1 layers"));
  EXPECT_THAT(text, HasSubstr("Not pruned, for they are not read as weights alone: 'w' (behind Add node"));
  const std::vector<float> rows(12, 0.5f);
  command.calibration = folder_ / "x.npz";
  std::ofstream(command.calibration, std::ios::binary)
      << swizzle::testing::MakeNpz({{"x", {DType::kFloat32, {3, 4}, std::as_bytes(std::span(rows))}}});
  const std::string calibrated = Prune(command);
  EXPECT_THAT(calibrated, HasSubstr("none of its weights can be pruned: 'w' (behind Add node"));
  EXPECT_THAT(calibrated, HasSubstr("'turned' (not followed by calibration)"));
}

TEST_F(PruneText, NamesAFileOnce) {
  const std::string missing = folder_ / "none.onnx", scores = folder_ / "none.npz";
  PruneCommand command;
  command.model = missing;
  EXPECT_EQ(Prune(command), missing + ": there is no such file");
  command.model = model_;
  command.scores = scores;
  EXPECT_EQ(Prune(command), scores + ": there is no such file");
}

}  // namespace
}  // namespace swizzle::pack
