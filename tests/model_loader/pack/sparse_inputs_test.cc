#include "model_loader/pack/sparse_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/format/csr.h"
#include "kernels/format/dense.h"
#include "model_loader/load/loader.h"
#include "model_loader/pack/commands.h"
#include "model_loader/packed/packed_writer.h"
#include "nlohmann/json.hpp"
#include "tests/support/npz_writer.h"
#include "tests/support/random_network.h"
#include "tests/support/temporary_folder.h"

namespace swizzle::pack {
namespace {

using ::testing::HasSubstr;

Problem Convolution(const Extent& input, int64_t filters, const Window& window) {
  Problem problem;
  problem.SetOp(Op::kConv);
  problem.window() = window;
  problem.input = {input.batch, input.channels, input.height, input.width};
  problem.output = {input.batch, filters, input.height, input.width};
  return problem;
}

Weight WeightOf(int64_t rows, int64_t cols, const std::vector<float>& values) {
  Weight weight;
  weight.matrix = CsrMatrix::FromDense({rows, cols, values});
  return weight;
}

// Channel 1 of three is zero in the weight, channel 2 in the input: of three k one is left.
TEST(MeetingShareTest, CountsWhatBothSidesHold) {
  const Weight weight = WeightOf(2, 3, {1, 0, 0, 0, 0, 2});
  const std::vector<float> input = {1, 1, 1, 1, 1, 1, 0, 0, 0};  // channels of three positions
  EXPECT_DOUBLE_EQ(MeetingShare(Convolution({1, 3, 1, 3}, 2, {}), weight, input), 1.0 / 3);
}

// Of 65 rows the last one is a tile of its own.
TEST(MeetingShareTest, CountsTilesOfRows) {
  std::vector<float> values(65 * 2);
  values[0] = 1;           // row 0, column 0
  values[64 * 2 + 1] = 1;  // row 64, column 1
  const std::vector<float> input(2 * 4, 1.0f);
  EXPECT_DOUBLE_EQ(MeetingShare(Convolution({1, 2, 1, 4}, 65, {}), WeightOf(65, 2, values), input), 0.5);
}

// 1x1 convolutions go over all positions: of 2 images of 48 the first 64 are a tile.
TEST(MeetingShareTest, CountsTilesOfPositions) {
  std::vector<float> input(2 * 2 * 48);
  input[0] = 1;             // image 0, channel 0, position 0
  input[3 * 48 + 47] = -1;  // image 1, channel 1, position 47, the 96th
  EXPECT_DOUBLE_EQ(MeetingShare(Convolution({2, 2, 1, 48}, 1, {}), WeightOf(1, 2, {1, 1}), input), 0.5);
}

// One element in the corner of a plane: which taps of a 3x3 window meet it, in which of the three rows.
TEST(MeetingShareTest, CountsTapsOfWindows) {
  std::vector<float> input(9);
  input[0] = 1;
  const Window window{.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
  const Weight weight = WeightOf(1, 9, std::vector<float>(9, 1.0f));
  // The upper left four taps read it, each in one row of the output of three.
  EXPECT_DOUBLE_EQ(MeetingShare(Convolution({1, 1, 3, 3}, 1, window), weight, input), 4.0 / (9 * 3));
}

class InspectCalibrationTest : public ::testing::Test {
 protected:
  InspectCalibrationTest() {
    SWIZZLE_CHECK(WritePacked(testing::MakeRandomNetwork({}), Path("model.swz")).ok());
    const std::vector<float> pixels(3 * 3 * 14 * 14, 0.5f);
    const TensorView images{DType::kFloat32, {3, 3, 14, 14}, std::as_bytes(std::span(pixels))};
    std::ofstream(Path("images.npz"), std::ios::binary) << testing::MakeNpz({{"image", images}});
  }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  int RunTool(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "swizzle-pack");
    Terminal terminal{out_, err_, false};
    return pack::RunTool(static_cast<int>(arguments.size()), arguments.data(), terminal);
  }

  const TemporaryFolder folder_;
  std::ostringstream out_, err_;
};

TEST_F(InspectCalibrationTest, ReportsZerosOfInputs) {
  const std::string model = Path("model.swz"), data = "--calibration=" + Path("images.npz");
  ASSERT_EQ(RunTool({"inspect", model.c_str(), data.c_str(), "--tuning-budget=0", "--threads=1"}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("zeros of its input"));
  out_.str("");
  ASSERT_EQ(RunTool({"inspect", model.c_str(), data.c_str(), "--tuning-budget=0", "--threads=1", "-o", "json"}), 0);
  int seen = 0;
  const auto report = nlohmann::json::parse(out_.str());
  for (const auto& layer : report["layers"]) {
    if (!layer.contains("sparse_input")) continue;
    ++seen;
    const auto& input = layer["sparse_input"];
    EXPECT_TRUE(layer["weight"]["sparse"]) << layer["name"];
    EXPECT_GE(input["zeros"].get<double>(), 0.0);
    EXPECT_LE(input["meets"].get<double>(), 1.0);
    EXPECT_FALSE(input.contains("wins"));  // nothing is timed on a CPU
  }
  EXPECT_GT(seen, 0);
}

// What pack counts, the file keeps, and inspect shows without the data; a reader of weights alone would drop it.
TEST_F(InspectCalibrationTest, PackedModelsKeepWhatWasCounted) {
  const std::string model = Path("model.swz"), packed = Path("packed.swz"),
                    data = "--calibration=" + Path("images.npz");
  ASSERT_EQ(RunTool({"pack", model.c_str(), packed.c_str(), data.c_str(), "--threads=1"}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("counted the zeros of what"));
  out_.str("");
  ASSERT_EQ(RunTool({"inspect", model.c_str(), data.c_str(), "--tuning-budget=0", "--threads=1", "-o", "json"}), 0);
  const auto counted = nlohmann::json::parse(out_.str());
  out_.str("");
  ASSERT_EQ(RunTool({"inspect", packed.c_str(), "--tuning-budget=0", "--threads=1", "-o", "json"}), 0);
  const auto kept = nlohmann::json::parse(out_.str());
  int seen = 0;
  for (size_t i = 0; i < counted["layers"].size(); ++i) {
    if (!counted["layers"][i].contains("sparse_input")) continue;
    ++seen;
    for (const char* key : {"zeros", "empty_runs", "empty_planes", "empty_channels"}) {
      EXPECT_EQ(kept["layers"][i]["sparse_input"][key], counted["layers"][i]["sparse_input"][key]) << i << key;
    }
    EXPECT_FALSE(kept["layers"][i]["sparse_input"]["chosen"].get<bool>());
  }
  EXPECT_GT(seen, 0);
  out_.str("");
  ASSERT_EQ(RunTool({"inspect", model.c_str(), "--tuning-budget=0", "--threads=1", "-o", "json"}), 0);
  EXPECT_EQ(out_.str().find("sparse_input"), std::string::npos) << "nothing is known of this one";
}

// Other weights make other zeros.
TEST_F(InspectCalibrationTest, PruningForgetsWhatWasCounted) {
  const std::string model = Path("model.swz"), packed = Path("packed.swz"), pruned = Path("pruned.swz");
  const std::string data = "--calibration=" + Path("images.npz");
  ASSERT_EQ(RunTool({"pack", model.c_str(), packed.c_str(), data.c_str(), "--threads=1"}), 0) << err_.str();
  ASSERT_EQ(RunTool({"prune", packed.c_str(), pruned.c_str(), "--sparsity=0.9"}), 0) << err_.str();
  for (const auto& [file, knows] : {std::pair{packed, true}, std::pair{pruned, false}}) {
    const auto loaded = LoadModel(file);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(std::ranges::any_of(loaded->network.values, [](const auto& value) { return value.zeros.has_value(); }),
              knows)
        << file;
  }
}

TEST_F(InspectCalibrationTest, RefusesDataThatDoesNotFit) {
  const std::vector<float> pixels(3 * 13 * 14, 0.5f);
  const TensorView images{DType::kFloat32, {1, 3, 13, 14}, std::as_bytes(std::span(pixels))};
  std::ofstream(Path("other.npz"), std::ios::binary) << testing::MakeNpz({{"image", images}});
  const std::string model = Path("model.swz"), data = "--calibration=" + Path("other.npz");
  EXPECT_EQ(RunTool({"inspect", model.c_str(), data.c_str(), "--tuning-budget=0"}), 2);
  EXPECT_EQ(RunTool({"pack", model.c_str(), Path("packed.swz").c_str(), data.c_str()}), 2);
  EXPECT_FALSE(std::filesystem::exists(Path("packed.swz")));
  EXPECT_THAT(err_.str(), HasSubstr("it must be rows of"));
}

}  // namespace
}  // namespace swizzle::pack
