#include "model_loader/pack/model_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "nlohmann/json.hpp"

namespace swizzle::pack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ModelReport SampleReport() {
  LayerReport conv;
  conv.name = "/blocks/0/Conv";
  conv.op = "Conv";
  conv.input = {1, 64, 28, 28};
  conv.output = {1, 128, 28, 28};
  conv.weight_rows = 128;
  conv.weight_cols = 64;
  conv.nonzeros = 2048;
  conv.format = Format::kCsr;
  conv.dense_bytes = 32768;
  conv.stored_bytes = 12804;
  conv.device_bytes = 13000;
  conv.kernels = {"conv_csr"};
  conv.candidates = {{"conv_dense", {50.0, 400.0}, true, Format::kDense},
                     {"conv_slow", {70.5, 1500.0}, true, Format::kDense},
                     {"conv_csr", {60.0, 100.0}, true, Format::kCsr, false, DType::kInt8},
                     {"conv_unmeasured", {}}};
  LayerReport reshape;
  reshape.name = "flatten";
  reshape.op = "Reshape";
  reshape.input = {1, 128, 28, 28};
  reshape.output = {1, 100352, 1, 1};

  ModelReport report;
  PartReport& part = report.parts.emplace_back();
  report.model = "model.onnx";
  report.container = "onnx";
  report.producer = "pytorch 2.1.0";
  report.features = "avx2";
  part.max_batch = 64;
  part.arena_bytes = 1 << 20;
  report.fusions = {{"fold_affine", 3}, {"fuse_activation", 2}};
  part.plan.device = "A processor";
  part.plan.threads = 2;
  part.plan.measured_batches = {1, 8};
  part.plan.timed_now = 7;
  part.plan.timed_before = 2;
  part.plan.layers = {conv, reshape};
  part.plan.conversions = 1;
  part.plan.dense_bytes = 32768;
  part.plan.stored_bytes = 12804;
  part.plan.device_bytes = 13000;
  part.structures.resize(2);
  part.structures[0] = {.pattern = SparsityPattern::kBlocks,
                        .block_cols = 4,
                        .fill = 0.875,
                        .bytes = 9000,
                        .zero_rows = 3,
                        .zero_cols = 2,
                        .zero_channels = 1};
  return report;
}

TEST(ReportText, IsATableWithTotals) {
  EXPECT_EQ(
      ReportText(SampleReport()),
      R"(model.onnx: onnx, pytorch 2.1.0, 2 layers (* marks the chosen kernel of each; ~ a like layer's time, or an estimate)

layer           op       weight  plane   zeros  structure     stored  type  kernel             batch 1  batch 8
--------------  -------  ------  -----  ------  ----------  --------  ----  -----------------  -------  -------
/blocks/0/Conv  Conv     128x64  28x28  75.0 %  1x4 blocks  12.5 KiB  INT8  * conv_csr         60.0 us   100 us
                                                                      FP32    conv_dense       50.0 us   400 us
                                                                      FP32    conv_slow        70.5 us  1.50 ms
                                                                      FP32    conv_unmeasured        -        -
flatten         Reshape       -    1x1       -  -                  -  -     -                        -        -

weights  32.0 KiB dense, 12.5 KiB stored (2.6x smaller), 12.7 KiB as the kernels hold them; 75.0 % are zero
kernels  60.0 us at batch 1, 100 us at batch 8, all layers together
dense    50.0 us at batch 1, 400 us at batch 8, the fastest dense kernel of each layer
formats  csr 60.0 us at batch 1, 100 us at batch 8; dense 50.0 us at batch 1, 400 us at batch 8, in one layer
times    7 measured now, 2 before
plan     1 layout conversion; arena 1.00 MiB for batches up to 64
fusions  fold_affine 3, fuse_activation 2
device   A processor (avx2), 2 threads
)");
}

TEST(ReportText, HasWhatEachFormatTakesInTheLayersThatItHolds) {
  ModelReport report = SampleReport();
  LayerReport other = report.parts[0].plan.layers[0];
  other.candidates = {{"conv_dense", {10.0, 20.0}, true, Format::kDense},
                      {"conv_csr", {4.0, 8.0}, true, Format::kCsr},
                      {"conv_csr_wide", {5.0, 6.0}, true, Format::kCsr},
                      {"conv_bitmap", {9.0, 30.0}, true, Format::kBitmap}};
  report.parts[0].plan.layers.push_back(other);
  report.parts[0].structures.push_back(report.parts[0].structures[0]);
  const std::string text = ReportText(report);
  EXPECT_THAT(text, HasSubstr("csr 64.0 us at batch 1, 106 us at batch 8; dense 60.0 us at batch 1, 420 us at batch 8, "
                              "in 2 layers\n"));
  EXPECT_THAT(text, HasSubstr("bitmap 9.00 us at batch 1, 30.0 us at batch 8; dense 10.0 us at batch 1, 20.0 us at "
                              "batch 8, in one layer\n"));
  const auto formats = nlohmann::json::parse(ReportJson(report))["formats"];
  EXPECT_EQ(formats["csr"]["layers"], 2);
  EXPECT_EQ(formats["csr"]["microseconds"], (std::vector<double>{64.0, 106.0}));
  EXPECT_EQ(formats["bitmap"]["dense_microseconds"], (std::vector<double>{10.0, 20.0}));
  EXPECT_EQ(formats.size(), 2u);
}

TEST(ReportText, TellsEstimatesFromTimes) {
  ModelReport report = SampleReport();
  report.parts[0].plan.layers[0].candidates[1].measured = false;
  EXPECT_THAT(ReportText(report), HasSubstr("  conv_slow        ~70.5 us  ~1.50 ms\n"));
  report.parts[0].plan.timed_now = report.parts[0].plan.timed_before = 0;
  const std::string estimated = ReportText(report);
  EXPECT_THAT(estimated, Not(HasSubstr("~"))) << "all are";
  EXPECT_THAT(estimated, HasSubstr("times    estimated by rule of thumb"));
}

TEST(ReportText, NamesPassesThatApplied) {
  ModelReport report = SampleReport();
  report.fusions = {{"fold_affine", 0}, {"fuse_activation", 2}, {"fold_pad", 0}};
  EXPECT_THAT(ReportText(report), HasSubstr("fusions  fuse_activation 2\n"));
  report.fusions = {{"fold_affine", 0}};
  EXPECT_THAT(ReportText(report), HasSubstr("fusions  none\n"));
}

// 0 us would look as if it had been measured.
TEST(ReportText, SaysWhatIsNotCopied) {
  ModelReport report = SampleReport();
  LayerReport& layer = report.parts[0].plan.layers[0];
  layer.candidates[1].copied = 0.0;
  layer.candidates[2].copied = 0.25;
  const std::string text = ReportText(report);
  EXPECT_THAT(text, HasSubstr("  conv_slow, in place "));
  EXPECT_THAT(text, HasSubstr("* conv_csr, 25.0 % copied "));
  EXPECT_THAT(text, HasSubstr("  conv_dense "));
  const auto candidates = nlohmann::json::parse(ReportJson(report))["layers"][0]["candidates"];
  EXPECT_EQ(candidates[0]["copied"], 0.25);
  EXPECT_FALSE(candidates[1].contains("copied"));
}

TEST(ReportText, SaysWhatIsOnlyAName) {
  ModelReport report = SampleReport();
  LayerReport& layer = report.parts[0].plan.layers[1];
  layer.op = "Transpose";
  layer.kernels = {""};
  layer.candidates = {{"transpose", {5.0, 40.0}, true}};
  EXPECT_THAT(ReportText(report), HasSubstr("* none: another name        -        -\n"));
  EXPECT_THAT(ReportText(report), HasSubstr("FP32    transpose           5.00 us  40.0 us\n"));
}

TEST(ReportText, FitsATerminalWhateverTheNames) {
  ModelReport report = SampleReport();
  report.parts[0].plan.layers[0].name = std::string(500, 'n');
  report.parts[0].plan.layers[0].op = "DepthwiseConv";
  report.parts[0].plan.layers[0].weight_rows = report.parts[0].plan.layers[0].weight_cols = 16384;
  report.parts[0].plan.layers[0].candidates[0].kernel = std::string(100, 'k');
  report.parts[0].structures[0] = {.pattern = SparsityPattern::kRowsColumns, .zero_rows = 1, .zero_cols = 1};
  std::istringstream lines(ReportText(report));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 160u) << line;
}

TEST(ReportText, SaysWhenNothingWasMeasured) {
  ModelReport report = SampleReport();
  report.parts[0].plan.measured_batches.clear();
  report.parts[0].plan.layers[0].candidates.clear();
  report.fusions.clear();
  const std::string text = ReportText(report);
  EXPECT_THAT(text, HasSubstr("kernels  not measured"));
  EXPECT_THAT(text, HasSubstr("fusions  done when the file was packed"));
  EXPECT_THAT(text, HasSubstr("* conv_csr\n"));
}

TEST(ReportJson, HoldsEverything) {
  const auto json = nlohmann::json::parse(ReportJson(SampleReport()));
  EXPECT_EQ(json["model"], "model.onnx");
  EXPECT_EQ(json["container"], "onnx");
  EXPECT_EQ(json["threads"], 2);
  EXPECT_EQ(json["measured_batches"], (std::vector<int>{1, 8}));
  EXPECT_EQ(json["timed_now"], 7);
  EXPECT_EQ(json["timed_before"], 2);
  EXPECT_EQ(json["microseconds"], (std::vector<double>{60.0, 100.0}));
  EXPECT_EQ(json["dense_microseconds"], (std::vector<double>{50.0, 400.0}));
  EXPECT_EQ(json["sparsity"], 0.75);
  EXPECT_EQ(json["fusions"]["fold_affine"], 3);
  ASSERT_EQ(json["layers"].size(), 2u);
  const auto& conv = json["layers"][0];
  EXPECT_EQ(conv["output"]["channels"], 128);
  EXPECT_EQ(conv["weight"]["rows"], 128);
  EXPECT_EQ(conv["weight"]["sparsity"], 0.75);
  EXPECT_EQ(conv["weight"]["format"], "csr");
  EXPECT_EQ(conv["weight"]["sparse"], true);
  EXPECT_EQ(conv["weight"]["structure"]["formats"], (std::vector<std::string>{"dense", "csr"}));
  EXPECT_EQ(conv["candidates"][0]["sparse"], true);
  EXPECT_EQ(conv["candidates"][1]["sparse"], false);
  EXPECT_EQ(conv["weight"]["stored_bytes"], 12804);
  const auto& structure = conv["weight"]["structure"];
  EXPECT_EQ(structure["pattern"], "blocks");
  EXPECT_EQ(structure["name"], "1x4 blocks");
  EXPECT_EQ(structure["block_rows"], 1);
  EXPECT_EQ(structure["block_cols"], 4);
  EXPECT_EQ(structure["fill"], 0.875);
  EXPECT_EQ(structure["zero_rows"], 3);
  EXPECT_EQ(structure["zero_cols"], 2);
  EXPECT_EQ(structure["zero_channels"], 1);
  EXPECT_FALSE(conv.contains("picture"));
  EXPECT_EQ(conv["kernel"], "conv_csr");
  ASSERT_EQ(conv["candidates"].size(), 4u);
  EXPECT_EQ(conv["candidates"][0]["kernel"], "conv_csr");
  EXPECT_EQ(conv["candidates"][0]["chosen"], true);
  EXPECT_EQ(conv["candidates"][0]["weights"], "csr");
  EXPECT_EQ(conv["candidates"][0]["measured"], true);
  EXPECT_EQ(conv["candidates"][1]["microseconds"][0], 50.0);
  EXPECT_TRUE(json["layers"][1]["weight"].is_null());
  EXPECT_TRUE(json["layers"][1]["kernel"].is_null());
}

TEST(ReportObject, HasPicturesWhereTheyWereTaken) {
  ModelReport report = SampleReport();
  report.parts[0].pictures.resize(2);
  report.parts[0].pictures[0] = {
      .rows = 1, .cols = 2, .density = "A/", .corner_rows = 1, .corner_cols = 2, .corner = {"4"}};
  const auto json = ReportObject(report);
  EXPECT_EQ(json["layers"][0]["picture"]["density"], "A/");
  EXPECT_EQ(json["layers"][0]["picture"]["corner"][0], "4");
  EXPECT_FALSE(json["layers"][1].contains("picture"));
}

TEST(ReportJson, SaysWhatEachPatternIs) {
  const auto structure_of = [](const Structure& structure) {
    ModelReport report = SampleReport();
    report.parts[0].structures[0] = structure;
    return ReportObject(report)["layers"][0]["weight"]["structure"];
  };
  const auto n_of_m = structure_of({.pattern = SparsityPattern::kNOfM, .n = 2, .m = 4});
  EXPECT_EQ(n_of_m["name"], "2:4");
  EXPECT_EQ(n_of_m["n"], 2);
  EXPECT_EQ(n_of_m["m"], 4);
  EXPECT_EQ(structure_of({.pattern = SparsityPattern::kRowVectors, .block_rows = 8})["vector_rows"], 8);
  EXPECT_FALSE(structure_of({.pattern = SparsityPattern::kUnstructured}).contains("block_rows"));
}

}  // namespace
}  // namespace swizzle::pack
