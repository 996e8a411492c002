// What the pack command makes of models that run in regions: the formats and the zeros that those planned whole get.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "kernels/base/half_bits.h"
#include "kernels/cpu/cpu_backend.h"
#include "model_loader/load/loader.h"
#include "model_loader/regions/plan_regions.h"
#include "tests/model_loader/pack/regions_fixture.h"

namespace swizzle::pack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::OnnxBuilder;

class PackInRegions : public PrunedInRegions {};

TEST_F(PackInRegions, EveryFormatHoldsTheWeightsOfLayers) {
  Write(Model());
  ASSERT_EQ(Run({"inspect", Path("m.onnx"), "--tuning-budget=0"}), 0) << err();
  ASSERT_THAT(out(), HasSubstr("regions: "));
  for (const auto& [name, format] : {std::pair<const char*, Format>{"csr", Format::kCsr},
                                     {"bitmap", Format::kBitmap},
                                     {"shfl-bw", Format::kShflBw},
                                     {"sr-bcrs", Format::kSrBcrs},
                                     {"auto", Format::kShflBw}}) {
    ASSERT_EQ(Run({"pack", Path("m.onnx"), Path("p.swz"), "--format", name}), 0) << err();
    EXPECT_THAT(out(), Not(HasSubstr("cannot"))) << name;
    EXPECT_EQ(FormatsIn("p.swz"), std::vector<Format>(3, format)) << name;
    ExpectSameResults("p.swz");
    // A packed one is where others start from.
    ASSERT_EQ(Run({"pack", Path("p.swz"), Path("q.swz"), "--format", name}), 0) << err();
    EXPECT_EQ(*ReadFile(Path("q.swz"), 1 << 24), *ReadFile(Path("p.swz"), 1 << 24)) << name;
  }
}

TEST_F(PackInRegions, AutoTakesNoMoreThanAnyOther) {
  Write(Model());
  const auto bytes_as = [&](const std::string& format) {
    SWIZZLE_CHECK(Run({"pack", Path("m.onnx"), Path("p.swz"), "--format", format}) == 0);
    return Read("p.swz").stored_bytes();
  };
  const int64_t least = bytes_as("auto");
  for (const char* format : {"csr", "bitmap", "shfl-bw", "sr-bcrs", "hb-ell", "n-m"}) {
    EXPECT_LE(least, bytes_as(format)) << format;
  }
  // A value for each nonzero, and next to nothing for places.
  const PackedGraph graph = Read("p.swz");
  EXPECT_LT(least, graph.dense_bytes() / 8 * 11 / 10);
}

TEST_F(PackInRegions, LayersThatAFormatCannotHoldKeepTheirs) {
  OnnxBuilder builder = Model();
  std::vector<float> scattered(128 * 128);
  for (size_t i = 0; i < scattered.size(); i += 11) scattered[i] = 1.0f;
  builder.graph().mutable_initializer()->RemoveLast();
  Write(builder.Floats("gemm", {128, 128}, scattered));
  ASSERT_EQ(Run({"pack", Path("m.onnx"), Path("p.swz"), "--format=sr-bcrs"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("1 of 3 sparse layers cannot be stored as sr-bcrs and keep their format; the first: "));
  EXPECT_EQ(FormatsIn("p.swz"), std::vector<Format>(2, Format::kSrBcrs));
  ExpectSameResults("p.swz");
  ASSERT_EQ(Run({"pack", Path("m.onnx"), Path("p.swz"), "--format=hb-ell"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("--format=auto would take "));
}

// What is embedded is read by more than layers, and what is dense gains nothing.
TEST_F(PackInRegions, OtherTensorsStayAsTheyAre) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 64}).Floats("dense", {64, 64}, std::vector<float>(64 * 64, 0.5f));
  builder.Floats("read_twice", {64, 64}, InVectors(64, 64)).Node("MatMul", {"x", "dense"}, {"a"});
  builder.Node("Erf", {"a"}, {"b"}).Node("MatMul", {"b", "read_twice"}, {"c"});
  Write(builder.Node("Add", {"c", "read_twice"}, {"y"}).Output("y"));
  ASSERT_EQ(Run({"pack", Path("m.onnx"), Path("p.swz"), "--format=csr"}), 0) << err();
  EXPECT_EQ(FormatsIn("p.swz"), std::vector<Format>());
}

TEST_F(PackInRegions, HalvesTakeTwoBytesAValue) {
  OnnxBuilder builder = Model();
  ASSERT_EQ((Write(builder), Run({"pack", Path("m.onnx"), Path("single.swz")})), 0) << err();
  for (onnx::TensorProto& tensor : *builder.graph().mutable_initializer()) {
    const std::string& raw = tensor.raw_data();
    std::vector<float> values(raw.size() / sizeof(float));
    std::memcpy(values.data(), raw.data(), raw.size());
    std::string halves(values.size() * 2, '\0');
    StoreHalves(values, DType::kFloat16, reinterpret_cast<std::byte*>(halves.data()));
    tensor.set_raw_data(halves);
    tensor.set_data_type(onnx::TensorProto::FLOAT16);
  }
  for (onnx::NodeProto& node : *builder.graph().mutable_node()) {
    if (node.input_size() > 1) node.set_input(1, node.input(1) + "_32");
  }
  OnnxBuilder with_casts;
  for (const char* name : {"conv", "matmul", "gemm"}) {
    with_casts.Node("Cast", {name}, {std::string(name) + "_32"}, {{"to", int64_t{1}}});
  }
  with_casts.graph().mutable_node()->MergeFrom(builder.graph().node());
  *builder.graph().mutable_node() = with_casts.graph().node();
  Write(builder);
  for (const char* format : {"auto", "csr"}) {
    ASSERT_EQ(Run({"pack", Path("m.onnx"), Path("p.swz"), "--format", format}), 0) << err();
    EXPECT_EQ(FormatsIn("p.swz").size(), 3u);
    ExpectSameResults("p.swz");
  }
  ASSERT_EQ(Run({"pack", Path("m.onnx"), Path("p.swz")}), 0) << err();
  EXPECT_LT(Read("p.swz").stored_bytes(), Read("single.swz").stored_bytes() * 6 / 10);
}

// As quantisers write them, behind DequantizeLinear; masks that were multiplied with leave the zero point.
TEST_F(PackInRegions, WholeNumbersTakeAByteAValue) {
  for (const auto& [zero_point, type] : {std::pair{0, onnx::TensorProto::INT8}, {128, onnx::TensorProto::UINT8}}) {
    OnnxBuilder builder = Model();
    OnnxBuilder with_wholes;
    with_wholes.Floats("scale", {}, {0.01f});
    onnx::TensorProto& zero = *builder.graph().add_initializer();
    zero.set_name("zero");
    zero.set_data_type(type);
    zero.set_raw_data(std::string(1, static_cast<char>(zero_point)));
    for (onnx::TensorProto& tensor : *builder.graph().mutable_initializer()) {
      if (tensor.name() == "zero") continue;
      std::string wholes;
      for (size_t at = 0; at < tensor.raw_data().size(); at += sizeof(float)) {
        float value;
        std::memcpy(&value, tensor.raw_data().data() + at, sizeof(value));
        wholes.push_back(static_cast<char>(static_cast<int>(std::lround(value * 100)) + zero_point));
      }
      tensor.set_raw_data(wholes);
      tensor.set_data_type(type);
      with_wholes.Node("DequantizeLinear", {tensor.name(), "scale", "zero"}, {tensor.name() + "_32"});
    }
    *builder.graph().add_initializer() = with_wholes.graph().initializer(0);
    for (onnx::NodeProto& node : *builder.graph().mutable_node()) {
      if (node.input_size() > 1) node.set_input(1, node.input(1) + "_32");
    }
    with_wholes.graph().mutable_node()->MergeFrom(builder.graph().node());
    *builder.graph().mutable_node() = with_wholes.graph().node();
    Write(builder);
    for (const char* format : {"auto", "csr", "bitmap"}) {
      ASSERT_EQ(Run({"pack", Path("m.onnx"), Path("p.swz"), "--format", format}), 0) << err();
      EXPECT_EQ(FormatsIn("p.swz").size(), 3u) << format;
      ExpectSameResults("p.swz");
    }
    ASSERT_EQ(Run({"pack", Path("m.onnx"), Path("p.swz")}), 0) << err();
    const PackedGraph graph = Read("p.swz");
    EXPECT_LT(graph.stored_bytes(), graph.dense_bytes() / 8 * 13 / 10);
  }
}

// Files that have no matrices are as older programs read them.
TEST_F(PackInRegions, FilesAreOfTheOldestVersionThatHoldsThem) {
  const auto version_of = [&](const std::string& name) {
    return static_cast<int>((*ReadFile(Path(name), 1 << 24))[8]);
  };
  Write(Model());
  ASSERT_EQ(Run({"pack", Path("m.onnx"), Path("p.swz")}), 0) << err();
  EXPECT_EQ(version_of("p.swz"), 7);
  OnnxBuilder dense;
  dense.Input("x", {-1, 64}).Floats("w", {64, 64}, std::vector<float>(64 * 64, 0.5f));
  Write(dense.Node("MatMul", {"x", "w"}, {"a"}).Node("Erf", {"a"}, {"y"}).Output("y"));
  ASSERT_EQ(Run({"pack", Path("m.onnx"), Path("p.swz")}), 0) << err();
  EXPECT_EQ(version_of("p.swz"), 5);
}

TEST_F(PackInRegions, CalibrationCountsZerosOfWhatSparseLayersRead) {
  Write(Model());
  ASSERT_EQ(Run({"pack", Path("m.onnx"), Path("p.swz"), "--calibration", WriteRows("i.npz", 10)}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("counted the zeros of what layers with sparse weights read: 3 values"));
  const auto zeros = Read("p.swz").zeros;
  std::vector<std::string> names;
  for (const auto& [name, of] : zeros) names.push_back(name);
  EXPECT_THAT(names, ::testing::ElementsAre("e", "f", "x"));
  EXPECT_NEAR(zeros.at("x").elements, 1.0 / 23, 0.01);
  ExpectSameResults("p.swz");
  // Whoever loads it knows of them, and so does a file that is made of it, but for one with other weights.
  const auto model = LoadRunnableModel(Path("p.swz"));
  ASSERT_TRUE(model.ok()) << model.status();
  const Graph& graph = std::get<ProgramModel>(*model).program->graph();
  EXPECT_EQ(std::ranges::count_if(graph.values, [](const Value& value) { return value.zeros.has_value(); }), 3);
  const std::unique_ptr<Backend> cpu = NewCpuBackend();
  const regions::RegionalProgram regional =
      regions::PlanRegions(std::get<ProgramModel>(*model).program, *cpu, {.threads = 1, .tuning_budget = {}});
  int64_t known = 0;  // of what layers read
  for (const auto& region : regional.regions) {
    const Network& network = region->plan()->network();
    known += std::ranges::count_if(network.layers, [&](const Layer& layer) {
      return layer.op == Op::kConv && network.values[static_cast<size_t>(layer.inputs[0])].zeros.has_value();
    });
  }
  EXPECT_EQ(known, 3);
  ASSERT_EQ(Run({"pack", Path("p.swz"), Path("q.swz"), "--format=csr"}), 0) << err();
  EXPECT_EQ(Read("q.swz").zeros, zeros);
  ASSERT_EQ(Run({"prune", Path("p.swz"), Path("r.swz"), "--sparsity=0.95"}), 0) << err();
  EXPECT_TRUE(Read("r.swz").zeros.empty());
}

TEST_F(PackInRegions, CalibrationTakesAFolderOfArrays) {
  Write(Model());
  ASSERT_EQ(Run({"pack", Path("m.onnx"), Path("p.swz"), "--calibration", WriteRows("i.npz", 10)}), 0) << err();
  std::filesystem::create_directory(Path("rows"));
  WriteRows("rows/a.npy", 10);
  const std::string folder = Path("rows");
  ASSERT_EQ(Run({"pack", Path("m.onnx"), Path("q.swz"), "--calibration", folder}), 0) << err();
  EXPECT_EQ(Read("q.swz").zeros, Read("p.swz").zeros);
  EXPECT_EQ(Run({"quantize", Path("m.onnx"), Path("z.onnx"), "--calibration", folder}), 0) << err();
  const std::vector<float> other(50, 1.0f);
  SWIZZLE_CHECK(WriteNpy(Path("rows/b.npy"), {DType::kFloat32, {10, 5}, std::as_bytes(std::span(other))}).ok());
  ExpectBadInput({"pack", Path("m.onnx"), Path("q.swz"), "--calibration", folder},
                 "input 'x' is FP32 [10,4,6,6] in one array and FP32 [10,5] in another");
}

TEST_F(PackInRegions, CalibrationDataHasToFit) {
  Write(Model());
  const std::vector<float> values(50, 1.0f);
  SWIZZLE_CHECK(WriteNpy(Path("x.npy"), {DType::kFloat32, {10, 5}, std::as_bytes(std::span(values))}).ok());
  std::ofstream(Path("i.npz"), std::ios::binary)
      << swizzle::testing::MakeNpz({{"x", TensorView{DType::kFloat32, {10, 5}, std::as_bytes(std::span(values))}}});
  ExpectBadInput({"pack", Path("m.onnx"), Path("p.swz"), "--calibration", Path("i.npz")}, "'x'");
  EXPECT_FALSE(std::filesystem::exists(Path("p.swz")));
}

}  // namespace
}  // namespace swizzle::pack
