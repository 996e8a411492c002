// What zeros would bring, of real files, through the same entry as the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "model_loader/files/atomic_file.h"
#include "nlohmann/json.hpp"
#include "tests/model_loader/pack/commands_fixture.h"
#include "tests/support/onnx_builder.h"

namespace swizzle::pack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kShippedNetwork = SWIZZLE_SOURCE_DIR "/deploy/models/mobilenet_v1_fashion.onnx";
const std::string kCheckpoint = SWIZZLE_SOURCE_DIR "/tests/testdata/checkpoints/bert";

// Three layers, of which the last two are of one shape.
std::vector<std::byte> ThreeProducts() {
  std::vector<float> first(16 * 32), second(32 * 32), third(32 * 32);
  for (size_t i = 0; i < first.size(); ++i) first[i] = 0.01f * static_cast<float>(1 + i % 29);
  for (size_t i = 0; i < second.size(); ++i) {
    second[i] = 0.01f * static_cast<float>(1 + i % 31);
    third[i] = 0.01f * static_cast<float>(1 + (7 * i) % 37);
  }
  testing::OnnxBuilder builder;
  builder.Input("x", {-1, 16}).Floats("a", {16, 32}, first).Floats("b", {32, 32}, second).Floats("c", {32, 32}, third);
  builder.Node("MatMul", {"x", "a"}, {"u"}).Node("Relu", {"u"}, {"v"}).Node("MatMul", {"v", "b"}, {"w"});
  builder.Node("Relu", {"w"}, {"y"}).Node("MatMul", {"y", "c"}, {"z"}).Output("z");
  return builder.Bytes();
}

class AdviseCommands : public Commands {
 protected:
  nlohmann::json AdviseJson(const std::string& model, std::vector<std::string> flags = {"--tuning-budget=0"}) {
    std::vector<std::string> arguments = {"advise", model, "--threads=1", "-o", "json"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    EXPECT_EQ(Run(arguments), 0) << err();
    return nlohmann::json::parse(out(), nullptr, false);
  }
};

TEST_F(AdviseCommands, TellsOfEachLayerThatCanBePruned) {
  const auto json = AdviseJson(kShippedNetwork);
  EXPECT_EQ(json["sparsities"], nlohmann::json({0.5, 0.6, 0.7, 0.8, 0.9, 0.95}));
  EXPECT_EQ(json["layers"].size(), 15u) << "no depthwise ones";
  for (const auto& layer : json["layers"]) {
    double before = 0.0;
    for (const auto& at : layer["at"]) {
      EXPECT_GT(at["removed_squares"], before) << layer["name"];
      EXPECT_LT(at["removed_squares"], at["sparsity"]) << layer["name"] << ": the smallest go";
      before = at["removed_squares"];
    }
  }
  ASSERT_EQ(Run({"advise", kShippedNetwork, "--threads=1", "--tuning-budget=0", "--skip=*pointwise*"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("/stem/conv/Conv"));
  EXPECT_THAT(out(), Not(HasSubstr("pointwise")));
}

TEST_F(AdviseCommands, MeasuresLayersOfOneShapeOnce) {
  SWIZZLE_CHECK(WriteFileAtomically(Path("m.onnx"), ThreeProducts()).ok());
  const auto json = AdviseJson(Path("m.onnx"), {"--tuning-cache=" + Path("times")});
  ASSERT_EQ(json["layers"].size(), 3u);
  EXPECT_NE(json["layers"][1]["at"][0]["removed_squares"], json["layers"][2]["at"][0]["removed_squares"]);
  // The last layer has no Relu, and so is another problem; its zeros lie where those of the one before do.
  std::set<std::string> patterns;
  std::ifstream times(Path("times"));
  for (std::string line; std::getline(times, line);) {
    const auto record = nlohmann::json::parse(line);
    const std::string problem = record.value("problem", "");
    if (record.contains("pattern") && absl::StrContains(problem, "Conv 1x32x1x1 -> "))
      patterns.insert(record["pattern"]);
  }
  EXPECT_GT(patterns.size(), 1u);
  EXPECT_LE(patterns.size(), json["sparsities"].size());
}

TEST_F(AdviseCommands, TakesOtherSparsitiesAndMethods) {
  const auto json =
      AdviseJson(kShippedNetwork, {"--tuning-budget=0", "--sparsity=0.85", "--method=vector-wise", "--vector=16"});
  EXPECT_EQ(json["sparsities"], nlohmann::json({0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95}));
  EXPECT_EQ(json["method"], "vector-wise");
  EXPECT_EQ(json["vector_rows"], 16);
  EXPECT_EQ(json["wanted"], 0.85);
  for (const auto& layer : json["layers"]) {
    const double advised = layer["advised_sparsity"];
    EXPECT_EQ(advised, layer["advice"] == "prune" ? 0.85 : 0.0);
  }
}

TEST_F(AdviseCommands, TakesEveryKindOfModel) {
  const auto checkpoint = AdviseJson(kCheckpoint);
  EXPECT_EQ(checkpoint["container"], "safetensors");
  EXPECT_FALSE(checkpoint["in_regions"]);
  EXPECT_TRUE(checkpoint["counts_tokens"]);
  ASSERT_EQ(Run({"advise", kCheckpoint, "--tuning-budget=0"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr(" tokens\n\nlayer"));
  ASSERT_EQ(Run({"pack", kShippedNetwork, Path("m.swz")}), 0) << err();
  EXPECT_EQ(AdviseJson(Path("m.swz"))["layers"].size(), 15u);
  const std::string vit = SWIZZLE_SOURCE_DIR "/tests/testdata/exports/vit_opset17.onnx";
  const auto regions = AdviseJson(vit);
  EXPECT_TRUE(regions["in_regions"]);
  EXPECT_EQ(regions["left_out"], 0);
  EXPECT_EQ(regions["layers"].size(), 7u);
  EXPECT_TRUE(regions["layers"][0]["at"][0]["removed_squares"].is_number()) << regions["layers"][0]["name"];
  ASSERT_EQ(Run({"pack", vit, Path("v.swz")}), 0) << err();
  EXPECT_EQ(AdviseJson(Path("v.swz"))["layers"].size(), 7u);
}

TEST_F(AdviseCommands, WritesAPageOfWhatItPrints) {
  const auto printed = AdviseJson(kCheckpoint, {"--tuning-budget=0", "--report=" + Path("new/m.html")});
  std::stringstream page;
  page << std::ifstream(Path("new/m.html")).rdbuf();
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const size_t from = page.str().find(begin) + begin.size();
  EXPECT_EQ(nlohmann::json::parse(page.str().substr(from, page.str().find("</script>", from) - from)), printed);
}

TEST_F(AdviseCommands, NamesWhatIsWrong) {
  ExpectBadInput({"advise", Path("none.onnx")}, "none.onnx");
  ExpectBadInput({"advise", kShippedNetwork, "--tuning-budget=0", "--skip=nothing*"}, "the pattern to skip 'nothing*'");
  ExpectBadInput({"advise", kShippedNetwork, "--sparsity=90"}, "--sparsity");
  ExpectBadInput({"advise", kShippedNetwork, "--vector=16"}, "does nothing with --method=magnitude");
}

}  // namespace
}  // namespace swizzle::pack
