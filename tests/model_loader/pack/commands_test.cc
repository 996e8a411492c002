// The commands on real files, through the same entry as the program.
#include "model_loader/pack/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <utility>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/runtime/available_cpus.h"
#include "model_loader/files/npy.h"
#include "model_loader/load/loader.h"
#include "model_loader/packed/packed_writer.h"
#include "nlohmann/json.hpp"
#include "tests/model_loader/pack/commands_fixture.h"
#include "tests/support/npz_writer.h"
#include "tests/support/random_network.h"

namespace swizzle::pack {
namespace {

using ::testing::HasSubstr;
using testing::MakeRandomNetwork;

const std::string kShippedModel = SWIZZLE_SOURCE_DIR "/deploy/models/mobilenet_v1_fashion.onnx";

// Of the layers that are pruned.
int64_t Nonzeros(const Network& network) {
  int64_t nonzeros = 0;
  for (const Layer& layer : network.layers) {
    if (layer.op == Op::kConv) nonzeros += network.weights[layer.weight].nonzeros();
  }
  return nonzeros;
}

TEST_F(Commands, PackWritesWhatLoads) {
  ASSERT_EQ(Run({"pack", kShippedModel, Path("m.swz")}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("12.2 MiB dense"));
  const auto model = LoadModel(Path("m.swz"));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->container, "swz");
}

TEST_F(Commands, PruneKeepsOnnxAsOnnxOrPacksIt) {
  const std::vector<std::string> flags = {"--sparsity=0.75", "--skip=/stem/*", "--skip=classifier.*"};
  for (const std::string name : {"p.onnx", "p.swz"}) {
    std::vector<std::string> arguments = {"prune", kShippedModel, Path(name)};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    ASSERT_EQ(Run(arguments), 0) << err();
    EXPECT_THAT(out(), HasSubstr("skipped"));
    const auto model = LoadModel(Path(name));
    ASSERT_TRUE(model.ok()) << model.status();
    for (const Layer& layer : model->network.layers) {
      if (layer.weight < 0) continue;
      const Weight& weight = model->network.weights[layer.weight];
      const bool pruned = layer.name.find("pointwise") != std::string::npos;
      const int64_t elements = weight.rows() * weight.cols();
      EXPECT_EQ(elements - weight.nonzeros(), pruned ? elements * 3 / 4 : 0) << layer.name;
    }
  }
  EXPECT_EQ(std::filesystem::file_size(Path("p.onnx")), std::filesystem::file_size(kShippedModel));
}

TEST_F(Commands, PruneCalibratesAndGoesByScores) {
  const std::vector<float> pixels(4 * 28 * 28, 0.5f);
  const TensorView images{DType::kFloat32, {4, 1, 28, 28}, std::as_bytes(std::span(pixels))};
  std::ofstream(Path("images.npz"), std::ios::binary) << testing::MakeNpz({{"image", images}});
  std::ofstream(Path("other.npz"), std::ios::binary) << testing::MakeNpz({{"picture", images}});
  const std::vector<std::string> prune = {"prune",          kShippedModel,    Path("p.onnx"),
                                          "--sparsity=0.9", "--skip=*[1-9]*", "--skip=*[cC]lassifier*"};
  const auto with = [&](const std::string& flag) {
    std::vector<std::string> arguments = prune;
    arguments.push_back(flag);
    return arguments;
  };
  ASSERT_EQ(Run(with("--calibration=" + Path("images.npz"))), 0) << err();
  EXPECT_THAT(out(), HasSubstr("Squared error of the outputs on calibration data"));
  EXPECT_TRUE(std::filesystem::exists(Path("p.onnx")));
  EXPECT_FALSE(std::filesystem::exists(Path("p.onnx.partial")));
  ExpectBadInput(with("--calibration=" + Path("other.npz")), "the model has no input 'picture'");
  ExpectBadInput(with("--calibration=" + Path("none.npz")), "none.npz");
  ExpectBadInput(with("--scores=" + Path("images.npz")), "are missing");
  ExpectBadInput({"prune", Packed("m.swz", MakeRandomNetwork({})), Path("p.swz"), "--sparsity=0.9",
                  "--calibration=" + Path("images.npz")},
                 "packed models cannot be calibrated");
}

// The whole way of a 2:4 model with windows of nine taps: it is held as such, shown as such, and computes the same.
TEST_F(Commands, ModelsOfFewNeighbouringChannels) {
  const std::string model = SWIZZLE_SOURCE_DIR "/deploy/models/resnet18_thin_fashion.onnx";
  ASSERT_EQ(Run({"prune", model, Path("p.onnx"), "--method=n-m", "--sparsity=0.5", "--skip=*stem*"}), 0) << err();
  std::uintmax_t bytes = 0;
  for (const char* format : {"csr", "n-m", "auto"}) {
    ASSERT_EQ(Run({"pack", Path("p.onnx"), Path("p.swz"), std::string("--format=") + format}), 0) << err();
    const auto packed = LoadModel(Path("p.swz"));
    ASSERT_TRUE(packed.ok()) << packed.status();
    for (const Layer& layer : packed->network.layers) {
      if (layer.op != Op::kConv || layer.name.find("/blocks/") == std::string::npos) continue;
      const Format held = packed->network.weights[layer.weight].format();
      EXPECT_EQ(held, std::string(format) == "csr" ? Format::kCsr : Format::kNOfM) << layer.name;
    }
    EXPECT_EQ(Run({"validate", Path("p.onnx"), Path("p.swz"), "--samples=2"}), 0) << out();
    if (bytes == 0) bytes = std::filesystem::file_size(Path("p.swz"));
  }
  EXPECT_LT(std::filesystem::file_size(Path("p.swz")), bytes * 8 / 10);
  ASSERT_EQ(Run({"inspect", Path("p.swz"), "--tuning-budget=0"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("2:4"));
}

// Likewise of vectors of four rows, which auto holds in the fewest bytes.
TEST_F(Commands, ModelsOfVectorsOfFourRows) {
  const std::string model = SWIZZLE_SOURCE_DIR "/deploy/models/resnet18_thin_fashion.onnx";
  ASSERT_EQ(
      Run({"prune", model, Path("p.onnx"), "--method=vector-wise", "--vector=4", "--sparsity=0.8", "--skip=*stem*"}), 0)
      << err();
  std::uintmax_t bytes = 0;
  for (const char* format : {"csr", "hb-ell", "bitmap", "sr-bcrs", "auto"}) {
    ASSERT_EQ(Run({"pack", Path("p.onnx"), Path("p.swz"), std::string("--format=") + format}), 0) << err();
    const auto packed = LoadModel(Path("p.swz"));
    ASSERT_TRUE(packed.ok()) << packed.status();
    for (const Layer& layer : packed->network.layers) {
      // Strides of four are much padding for shortcuts, which have few columns.
      const bool pruned = layer.name.find("/blocks/") != std::string::npos;
      if (layer.op != Op::kConv || !pruned || layer.name.find("/shortcut/") != std::string::npos) continue;
      const Format held = packed->network.weights[layer.weight].format();
      EXPECT_EQ(held, FormatFromName(format).value_or(Format::kSrBcrs)) << layer.name;
    }
    EXPECT_EQ(Run({"validate", Path("p.onnx"), Path("p.swz"), "--samples=2"}), 0) << out();
    if (bytes == 0) bytes = std::filesystem::file_size(Path("p.swz"));
  }
  EXPECT_LT(std::filesystem::file_size(Path("p.swz")), bytes * 9 / 10);
  ASSERT_EQ(Run({"inspect", Path("p.swz"), "--tuning-budget=0"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("4x1 blocks"));
}

TEST_F(Commands, PrunePackedModels) {
  const std::string model = Packed("m.swz", MakeRandomNetwork({.sparsity = 0.5}));
  ASSERT_EQ(Run({"prune", model, "-O", Path("p.swz"), "--sparsity=0.8"}), 0) << err();
  EXPECT_TRUE(LoadModel(Path("p.swz")).ok());
  ExpectBadInput({"prune", model, Path("p.onnx"), "--sparsity=0.8"}, "a packed model cannot become ONNX");
}

TEST_F(Commands, PruneTakesCheckpointsAsItsHelpSays) {
  const std::string folder = SWIZZLE_SOURCE_DIR "/tests/testdata/checkpoints/bert";
  for (const std::string& model : {folder, folder + "/model.safetensors"}) {
    ASSERT_EQ(Run({"prune", model, Path("p.swz"), "--sparsity=0.9", "--skip=*.output.dense*"}), 0) << err();
    EXPECT_THAT(out(), HasSubstr("skipped"));
    const auto pruned = LoadModel(Path("p.swz"));
    ASSERT_TRUE(pruned.ok()) << pruned.status();
    EXPECT_TRUE(pruned->network.sequences.has_value());
    ExpectBadInput({"prune", model, Path("p.onnx"), "--sparsity=0.9"}, "a checkpoint cannot become ONNX");
  }
}

TEST_F(Commands, PruneCalibratesCheckpoints) {
  const std::string folder = SWIZZLE_SOURCE_DIR "/tests/testdata/checkpoints/bert";
  std::vector<int64_t> ids(32 * 8), ones(ids.size(), 1), zeros(ids.size(), 0);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * i % 19);
  const auto array = [](const std::vector<int64_t>& elements) {
    return TensorView{DType::kInt64, {32, 8}, std::as_bytes(std::span(elements))};
  };
  std::ofstream(Path("ids.npz"), std::ios::binary) << testing::MakeNpz(
      {{"input_ids", array(ids)}, {"attention_mask", array(ones)}, {"token_type_ids", array(zeros)}});
  ASSERT_EQ(Run({"prune", folder, Path("p.swz"), "--sparsity=0.6"}), 0) << err();
  ASSERT_EQ(Run({"prune", folder, Path("c.swz"), "--sparsity=0.6", "--calibration=" + Path("ids.npz")}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("Squared error of the outputs"));
  const auto plain = LoadModel(Path("p.swz")), calibrated = LoadModel(Path("c.swz")), dense = LoadModel(folder);
  ASSERT_TRUE(plain.ok() && calibrated.ok() && dense.ok());
  EXPECT_LT(Nonzeros(calibrated->network), Nonzeros(dense->network) * 6 / 10);
  EXPECT_NEAR(static_cast<double>(Nonzeros(calibrated->network)), static_cast<double>(Nonzeros(plain->network)),
              0.02 * static_cast<double>(Nonzeros(plain->network)));
}

TEST_F(Commands, FoldersOfOutputsAreMade) {
  ASSERT_EQ(Run({"pack", kShippedModel, Path("models/m/1/model.swz")}), 0) << err();
  EXPECT_TRUE(LoadModel(Path("models/m/1/model.swz")).ok());
  EXPECT_EQ(Run({"prune", kShippedModel, Path("pruned/onnx/m.onnx"), "--sparsity=0.5"}), 0) << err();
  EXPECT_EQ(Run({"prune", kShippedModel, Path("pruned/packed/m.swz"), "--sparsity=0.5"}), 0) << err();
  EXPECT_EQ(Run({"inspect", Path("models/m/1/model.swz"), "--tuning-budget=0", "--report=" + Path("pages/m.html")}), 0)
      << err();
  EXPECT_TRUE(std::filesystem::exists(Path("pages/m.html")));
}

TEST_F(Commands, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(Path("file")) << "no folder";
  ExpectBadInput({"pack", kShippedModel, Path("file/1/model.swz")}, Path("file/1"));
}

TEST_F(Commands, PruneWritesNothingAfterAMisspeltPattern) {
  ExpectBadInput({"prune", kShippedModel, Path("p.onnx"), "--sparsity=0.8", "--skip=clasifier*"}, "'clasifier*'");
  EXPECT_FALSE(std::filesystem::exists(Path("p.onnx")));
}

TEST_F(Commands, ValidateTellsEqualFromOther) {
  Network network = MakeRandomNetwork({});
  const std::string a = Packed("a.swz", network);
  const std::string b = Packed("b.swz", network);
  EXPECT_EQ(Run({"validate", a, b, "--samples=2"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("probabilities"));
  network.weights.back().bias[0] += 1.0f;
  const std::string c = Packed("c.swz", network);
  EXPECT_EQ(Run({"validate", a, c, "--samples=2", "-o", "json"}), 1) << err();
  const auto json = nlohmann::json::parse(out());
  EXPECT_EQ(json["passed"], false);
  EXPECT_EQ(json["outputs"][0]["name"], "probabilities");
  EXPECT_GT(json["outputs"][0]["relative_difference"], 1e-4);
}

// A network whose answer is this class, whatever it is asked.
Network AlwaysClass(size_t answer) {
  Network network = MakeRandomNetwork({});
  network.weights.back().bias[answer] += 1000.0f;
  return network;
}

TEST_F(Commands, ValidateCountsHowOftenBothAreRight) {
  const std::string three = Packed("3.swz", AlwaysClass(3)), five = Packed("5.swz", AlwaysClass(5));
  const std::string inputs = "--inputs=" + WriteImages("i.npz", 4), labels = "--labels=" + WriteLabels({3, 5, 3, 3});
  EXPECT_EQ(Run({"validate", three, three, inputs}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("equal within 0.0001 on the inputs of i.npz"));
  EXPECT_EQ(Run({"validate", three, five, inputs}), 1) << err();
  EXPECT_EQ(Run({"validate", three, three, inputs, labels}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("top-1 of 4 labelled inputs: 75.00 % and 75.00 %, within 0.5 points"));
  EXPECT_EQ(Run({"validate", three, five, inputs, labels, "--max-drop=49.9"}), 1) << err();
  EXPECT_THAT(out(), HasSubstr("75.00 % and 25.00 %, NOT within 49.9 points"));
  EXPECT_EQ(Run({"validate", three, five, inputs, labels, "--max-drop=50", "-o", "json"}), 0) << err();
  const auto json = nlohmann::json::parse(out());
  EXPECT_EQ(json["samples"], 4);
  EXPECT_EQ(json["top1"], (nlohmann::json{{"rows", 4}, {"reference", 75}, {"candidate", 25}, {"max_drop", 50}}));
  EXPECT_EQ(Run({"validate", five, three, inputs, labels, "--max-drop=0"}), 0) << err();
}

TEST_F(Commands, ValidateTakesBatchesOfFixedSize) {
  const std::string model = Packed("m.swz", MakeRandomNetwork({.batch_size = 2})), labels = WriteLabels({0, 1, 2, 3});
  EXPECT_EQ(Run({"validate", model, model, "--inputs=" + WriteImages("i.npz", 4), "--labels=" + labels}), 0) << err();
  ExpectBadInput({"validate", model, model, "--inputs=" + WriteImages("i.npz", 3)}, "rows must be a multiple");
}

TEST_F(Commands, ValidateNamesWhatIsWrongWithInputsAndLabels) {
  const std::string model = Packed("m.swz", MakeRandomNetwork({}));
  const auto expect = [&](const std::string& inputs, const std::vector<int64_t>& labels, const std::string& part) {
    ExpectBadInput({"validate", model, model, "--inputs=" + inputs, "--labels=" + WriteLabels(labels)}, part);
  };
  expect(WriteImages("i.npz", 2), {1, 2, 3}, "labels.npy: labels are [3]; they must be [2]");
  expect(WriteImages("i.npz", 2), {1, 10}, "labels.npy: label 1 is 10; the model's classes are 0 to 9");
  expect(WriteImages("i.npz", 2, "picture"), {1, 2}, "i.npz: the model has no input 'picture'; it has 'image'");
  expect(Path("nothing.npz"), {1}, "nothing.npz");
  const std::string inputs = "--inputs=" + WriteImages("i.npz", 2), floats = WriteInput("floats.npy", {2});
  ExpectBadInput({"validate", model, model, inputs, "--labels=" + floats}, "save array.astype('<i8')");
}

TEST_F(Commands, ValidateRefusesModelsOfOtherShapes) {
  const std::string a = Packed("a.swz", MakeRandomNetwork({.image = 14}));
  const std::string b = Packed("b.swz", MakeRandomNetwork({.image = 16}));
  ExpectBadInput({"validate", a, b}, "'image' is");
}

TEST_F(Commands, InspectPrintsEachLayer) {
  const std::string model = Packed("m.swz", MakeRandomNetwork({}));
  ASSERT_EQ(Run({"inspect", model, "--threads=1", "--tuning-budget=0", "--max-batch=4", "-o", "json"}), 0) << err();
  const auto json = nlohmann::json::parse(out());
  EXPECT_EQ(json["layers"].size(), MakeRandomNetwork({}).layers.size());
  EXPECT_EQ(json["max_batch"], 4);
  EXPECT_EQ(json["threads"], 1);
  ASSERT_EQ(Run({"inspect", model, "--threads=1024", "--tuning-budget=0", "-o", "json"}), 0) << err();
  EXPECT_EQ(nlohmann::json::parse(out())["threads"], AffinityCpus());
  ASSERT_EQ(Run({"inspect", model, "--threads=1", "--tuning-budget=0"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("DepthwiseConv"));
}

// What depends on the machine apart from its instruction sets: its name, and bytes that go by the sizes of its caches.
std::string WithoutTheMachine(std::string text) {
  const std::pair<const char*, const char*> parts[] = {
      {"\"device\": \"[^\"]*\"", "\"device\": \"\""},
      {"device   .* \\(", "device   ("},
      {"\"(device|arena)_bytes\": [0-9]+", "\"$1_bytes\": 0"},
      {"smaller\\), [^;]* as the kernels hold them", "smaller), as the kernels hold them"},
      {"arena .* for batches", "arena for batches"},
  };
  for (const auto& [pattern, with] : parts) text = std::regex_replace(text, std::regex(pattern), with);
  return text;
}

// Compares with a file of tests/testdata; with SWIZZLE_REWRITE_GOLDEN set, writes it.
void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string file = SWIZZLE_SOURCE_DIR "/tests/testdata/inspect/" + name;
  if (std::getenv("SWIZZLE_REWRITE_GOLDEN") != nullptr) std::ofstream(file) << text;
  std::ostringstream golden;
  golden << std::ifstream(file).rdbuf();
  EXPECT_EQ(text, golden.str()) << "if this is meant, run again with SWIZZLE_REWRITE_GOLDEN=1";
}

TEST_F(Commands, InspectPrintsWhatItDid) {
  if (NewCpuBackend()->features_text() != "avx512 avx2") GTEST_SKIP() << "the golden files are of AVX-512's kernels";
  const std::string model = Packed("m.swz", MakeRandomNetwork({}));
  std::vector<std::string> arguments = {"inspect", model, "--threads=1", "--tuning-budget=0", "--max-batch=4"};
  ASSERT_EQ(Run(arguments), 0) << err();
  ExpectGolden("random_network.txt", WithoutTheMachine(out()));
  arguments.insert(arguments.end(), {"-o", "json"});
  ASSERT_EQ(Run(arguments), 0) << err();
  ExpectGolden("random_network.json", WithoutTheMachine(out()));
}

TEST_F(Commands, InspectWritesAPageBesideWhatItPrints) {
  const std::string model = Packed("m.swz", MakeRandomNetwork({.sparsity = 0.5}));
  const std::vector<std::string> flags = {"--threads=1", "--tuning-budget=0", "-o", "json", "--report", Path("m.html")};
  std::vector<std::string> arguments = {"inspect", model};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  ASSERT_EQ(Run(arguments), 0) << err();
  const auto printed = nlohmann::json::parse(out());
  std::stringstream page;
  page << std::ifstream(Path("m.html")).rdbuf();
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const size_t from = page.str().find(begin) + begin.size();
  auto shown = nlohmann::json::parse(page.str().substr(from, page.str().find("</script>", from) - from));
  int pictures = 0;
  for (auto& layer : shown["layers"]) pictures += static_cast<int>(layer.erase("picture"));
  EXPECT_EQ(pictures, std::count_if(shown["layers"].begin(), shown["layers"].end(),
                                    [](const auto& layer) { return !layer["weight"].is_null(); }));
  EXPECT_GT(pictures, 0);
  EXPECT_EQ(shown, printed);
  ExpectBadInput({"inspect", model, "--threads=1", "--tuning-budget=0", "--report", Path("m.html/m.html")}, "m.html");
}

TEST_F(Commands, RunGoesFromArraysToArrays) {
  const std::string model = Packed("m.swz", MakeRandomNetwork({.image = 8}));
  const std::string input = WriteInput("image.npy", {2, 3, 8, 8});
  ASSERT_EQ(Run({"run", model, "--input", "image=" + input, "--output-dir", Path("out/deep"), "--threads=1"}), 0)
      << err();
  const auto output = ReadNpy(Path("out/deep/probabilities.npy"));
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(output->shape, (Shape{2, 10}));
  std::vector<float> rows(20);
  ASSERT_EQ(output->bytes.size(), rows.size() * sizeof(float));
  std::memcpy(rows.data(), output->bytes.data(), output->bytes.size());
  float sum = 0.0f;
  for (int i = 0; i < 10; ++i) {
    sum += rows[i];
    EXPECT_EQ(rows[i], rows[10 + i]) << "equal inputs, equal outputs";
  }
  EXPECT_NEAR(sum, 1.0f, 1e-5f);
}

TEST_F(Commands, RunTakesAFixedBatch) {
  const std::string model = Packed("m.swz", MakeRandomNetwork({.batch_size = 3, .image = 8}));
  const std::string input = WriteInput("image.npy", {3, 3, 8, 8});
  ASSERT_EQ(Run({"run", model, "--input", "image=" + input, "--output-dir", Path("out"), "--threads=1"}), 0) << err();
  EXPECT_EQ(ReadNpy(Path("out/probabilities.npy"))->shape, (Shape{3, 10}));
}

TEST_F(Commands, RunNamesWhatIsWrongWithItsInputs) {
  const std::string model = Packed("m.swz", MakeRandomNetwork({.image = 8}));
  const std::string good = WriteInput("good.npy", {1, 3, 8, 8});
  const auto run = [&](const std::vector<std::string>& inputs) {
    std::vector<std::string> arguments = {"run", model, "--output-dir", Path("out")};
    for (const std::string& input : inputs) arguments.insert(arguments.end(), {"--input", input});
    return arguments;
  };
  ExpectBadInput(run({good}), "not NAME=FILE.npy");
  ExpectBadInput(run({"picture=" + good}), "no input 'picture'; it has 'image'");
  ExpectBadInput(run({"image=" + good, "image=" + good}), "given twice");
  ExpectBadInput(run({"image=" + Path("absent.npy")}), "absent.npy");
  ExpectBadInput(run({"image=" + WriteInput("shape.npy", {1, 3, 8, 9})}), "it must be [1,3,8,8]");
  ExpectBadInput(run({"image=" + WriteInput("scalar.npy", {})}), "'image' is []; it must be [1,3,8,8]");
  ExpectBadInput(run({"image=" + WriteInput("empty.npy", {0, 3, 8, 8})}), "must be at least 1");
  const std::vector<double> doubles(192);
  ASSERT_TRUE(WriteNpy(Path("f8.npy"), {DType::kFloat64, {1, 3, 8, 8}, std::as_bytes(std::span(doubles))}).ok());
  ExpectBadInput(run({"image=" + Path("f8.npy")}), "astype('<f4')");
}

TEST_F(Commands, BadFilesAreOneLine) {
  std::ofstream(Path("garbage.onnx")) << "garbage";
  std::ofstream(Path("garbage.swz")) << "garbage";
  for (const std::string name : {"garbage.onnx", "garbage.swz", "absent.onnx", "model.txt"}) {
    ExpectBadInput({"inspect", Path(name)}, name);
    ExpectBadInput({"pack", Path(name), Path("out.swz")}, name);
    ExpectBadInput({"prune", Path(name), Path("out.swz"), "--sparsity=0.5"}, name);
    ExpectBadInput({"validate", Path(name), Path(name)}, name);
  }
  EXPECT_FALSE(std::filesystem::exists(Path("out.swz")));
}

TEST_F(Commands, HelpIsOutputAndMistakesAreErrors) {
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_THAT(out(), HasSubstr("validate"));
  EXPECT_EQ(err(), "");
  ExpectBadInput({"fly"}, "--help");
}

}  // namespace
}  // namespace swizzle::pack
