// What inspect shows of models that run in regions: of each layer what it shows of one that is planned whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "nlohmann/json.hpp"
#include "tests/model_loader/pack/regions_fixture.h"

namespace swizzle::pack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class InspectInRegions : public PrunedInRegions {
 protected:
  nlohmann::json Inspect(const std::string& name, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"inspect", Path(name), "--tuning-budget=0", "--threads=1", "-o", "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(Run(arguments), 0) << err();
    return nlohmann::json::parse(out());
  }
};

TEST_F(InspectInRegions, JsonHasOfEachLayerWhatItHasOfAPlan) {
  Write(Model());
  const auto report = Inspect("m.onnx");
  EXPECT_TRUE(report["fallback"]);
  EXPECT_EQ(report["layers"].size(), report["planned_layers"].get<size_t>()) << "no region has several places";
  std::set<int> regions;
  int sparse = 0;
  for (const auto& layer : report["layers"]) {
    regions.insert(layer["region"].get<int>());
    EXPECT_FALSE(layer["measured_batches"].empty());
    if (layer["weight"].is_null()) continue;
    ++sparse;
    EXPECT_EQ(layer["weight"]["format"], "csr") << layer["name"];
    EXPECT_EQ(layer["weight"]["structure"]["pattern"], "blocks") << layer["name"];
    EXPECT_NEAR(layer["weight"]["sparsity"].get<double>(), 0.875, 0.02);
    int chosen = 0, rejected = 0;
    for (const auto& candidate : layer["candidates"]) ++(candidate["chosen"] ? chosen : rejected);
    EXPECT_GT(chosen, 0) << layer["name"];
    EXPECT_GT(rejected, 0) << layer["name"];
    EXPECT_FALSE(layer.contains("picture"));
  }
  EXPECT_EQ(sparse, 3);
  EXPECT_EQ(regions.size(), report["regions"].size());
  for (const auto& region : report["regions"]) {
    EXPECT_EQ(region["places"], 1);
    EXPECT_GT(region["arena_bytes"], 0);
    EXPECT_GT(region["max_batch"], 0);
    EXPECT_FALSE(region["layers"][0]["kernels"].empty());
  }
  EXPECT_GT(report["device_bytes"], 0);
  EXPECT_LT(report["stored_bytes"], report["dense_bytes"]);
  EXPECT_GT(report["arena_bytes"], 0);
  EXPECT_EQ(report["threads"], 1);
  size_t grouped = 0;
  for (const auto& group : report["timings"]) {
    grouped += group["regions"].size();
    EXPECT_EQ(group["microseconds"].size(), group["measured_batches"].size());
    EXPECT_TRUE(group["formats"].contains("csr"));
  }
  EXPECT_EQ(grouped, report["regions"].size());
}

TEST_F(InspectInRegions, SaysWhatEachFormatTakesInAFile) {
  Write(Model());
  const auto told = Inspect("m.onnx")["packed_bytes"];
  for (const char* format : {"csr", "shfl-bw", "sr-bcrs", "auto"}) {
    ASSERT_TRUE(told.contains(format)) << format;
    ASSERT_EQ(Run({"pack", Path("m.onnx"), Path("p.swz"), "--format", format}), 0) << err();
    EXPECT_EQ(told[format]["bytes"], Read("p.swz").stored_bytes()) << format;
    EXPECT_EQ(told[format]["layers"], 3) << format;
  }
  EXPECT_EQ(Inspect("p.swz")["packed_bytes"], told) << "whatever the file has now";
}

TEST_F(InspectInRegions, TextHasTablesAndTotals) {
  Write(Model());
  ASSERT_EQ(Run({"inspect", Path("m.onnx"), "--tuning-budget=0", "-v"}), 0) << err();
  for (const char* part : {"m.onnx: regions: 2 planned", "\nregion  layer", "structure", "  conv_csr", "\nweights  ",
                           "\npacked   ", "\nkernels  region 1: ", "\nkernels  region 2: ",
                           "\nplans    2 for 2 places; ", "\ndevice   ", "\nstep  what"}) {
    EXPECT_THAT(out(), HasSubstr(part));
  }
  EXPECT_THAT(out(), Not(HasSubstr("fusions"))) << "a region's passes are not counted";
}

TEST_F(InspectInRegions, RegionsAtSeveralPlacesCountOnceInBytesAndEachTimeInTimes) {
  testing::OnnxBuilder builder;
  builder.Input("x", {-1, 128}).Floats("w", {128, 128}, InVectors(128, 128));
  builder.Node("MatMul", {"x", "w"}, {"a"}).Node("Erf", {"a"}, {"b"}).Node("MatMul", {"b", "w"}, {"y"}).Output("y");
  Write(builder);
  const auto report = Inspect("m.onnx");
  ASSERT_EQ(report["regions"].size(), 1u);
  EXPECT_EQ(report["regions"][0]["places"], 2);
  ASSERT_EQ(report["layers"].size(), 1u);
  EXPECT_EQ(report["dense_bytes"], 128 * 128 * 4);
  const auto& candidates = report["layers"][0]["candidates"];
  EXPECT_DOUBLE_EQ(report["timings"][0]["microseconds"][0].get<double>(),
                   2 * candidates[0]["microseconds"][0].get<double>());
  EXPECT_EQ(report["timings"][0]["formats"]["csr"]["layers"], 2);
}

TEST_F(InspectInRegions, PageHasPicturesOfWeights) {
  Write(Model());
  ASSERT_EQ(Run({"inspect", Path("m.onnx"), "--tuning-budget=0", "--report", Path("r.html")}), 0) << err();
  const auto bytes = *ReadFile(Path("r.html"), 1 << 22);
  const std::string page(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  size_t pictures = 0;
  for (size_t at = page.find("\"density\":"); at != std::string::npos; at = page.find("\"density\":", at + 1))
    ++pictures;
  EXPECT_EQ(pictures, 3u);
}

TEST_F(InspectInRegions, ModelsWithoutAnyAreReported) {
  testing::OnnxBuilder builder;
  Write(builder.Input("x", {-1, 8}).Node("Erf", {"x"}, {"y"}).Output("y"));
  const auto report = Inspect("m.onnx");
  EXPECT_TRUE(report["layers"].empty());
  EXPECT_TRUE(report["regions"].empty());
  ASSERT_EQ(Run({"inspect", Path("m.onnx"), "--tuning-budget=0", "--report", Path("r.html")}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("all 1 nodes run on the interpreter"));
}

// Of data, or of what a file was packed with.
TEST_F(InspectInRegions, ShowsZerosOfInputs) {
  Write(Model());
  const std::string data = "--calibration=" + WriteRows("i.npz", 10);
  const auto counted = Inspect("m.onnx", {data});
  ASSERT_EQ(Run({"pack", Path("m.onnx"), Path("p.swz"), data}), 0) << err();
  const auto kept = Inspect("p.swz");
  int seen = 0;
  for (size_t i = 0; i < counted["layers"].size(); ++i) {
    const auto& layer = counted["layers"][i];
    EXPECT_EQ(layer.contains("sparse_input"), !layer["weight"].is_null()) << layer["name"];
    if (!layer.contains("sparse_input")) continue;
    ++seen;
    for (const char* key : {"zeros", "empty_runs", "empty_planes", "empty_channels", "chosen"}) {
      EXPECT_EQ(kept["layers"][i]["sparse_input"][key], layer["sparse_input"][key]) << i << key;
    }
    EXPECT_GT(layer["sparse_input"]["meets"], 0);
  }
  EXPECT_EQ(seen, 3);
  ASSERT_EQ(Run({"inspect", Path("m.onnx"), "--tuning-budget=0", data}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("zeros of its input"));
  for (const auto& layer : Inspect("m.onnx")["layers"]) EXPECT_FALSE(layer.contains("sparse_input"));
}

}  // namespace
}  // namespace swizzle::pack
