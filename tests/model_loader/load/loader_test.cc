#include "model_loader/load/loader.h"

#include <fstream>

#include "gtest/gtest.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/onnx/onnx_rewrite.h"
#include "model_loader/packed/packed_graph.h"
#include "model_loader/packed/packed_writer.h"
#include "tests/support/network_builder.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::OnnxBuilder;

std::filesystem::path Shipped(const std::string& name) {
  return std::filesystem::path(SWIZZLE_SOURCE_DIR) / "deploy" / "models" / name;
}

int CountOf(const LoadedModel& model, const std::string& pass) {
  for (const auto& [name, count] : model.fusions) {
    if (name == pass) return count;
  }
  return -1;
}

// MobileNetV1: a stem, 13 blocks of depthwise and 1x1 convolution, a pool and a classifier; ReLU6 behind each of
// the 27.
TEST(LoaderTest, LoadsTheShippedModels) {
  for (const bool sparse : {false, true}) {
    const auto model = LoadModel(Shipped(sparse ? "mobilenet_v1_fashion_sparse90.onnx" : "mobilenet_v1_fashion.onnx"));
    ASSERT_THAT(model, IsOk());
    EXPECT_EQ(model->container, "onnx");
    EXPECT_EQ(CountOf(*model, "recognise_depthwise"), 13);
    EXPECT_EQ(CountOf(*model, "fuse_activation"), 27);
    const Network& network = model->network;
    EXPECT_EQ(network.layers.size(), 1u + 26 + 2);
    EXPECT_EQ(network.batch_size, 0);
    EXPECT_EQ(network.inputs[0].name, "image");
    EXPECT_EQ(network.outputs[0].name, "logits");
    int sparse_weights = 0;
    for (const Weight& weight : network.weights) sparse_weights += weight.format() == Format::kCsr ? 1 : 0;
    EXPECT_EQ(sparse_weights, sparse ? 13 : 0);
    if (sparse) {
      EXPECT_LT(network.StoredWeightBytes(), network.DenseWeightBytes() / 5);
    }
  }
}

void Write(const std::filesystem::path& file, std::span<const std::byte> bytes) {
  const auto size = static_cast<std::streamsize>(bytes.size());
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), size);
}

TEST(LoaderTest, WhatIsParsedServesTheNextReading) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 8, 8}).Node("Det", {"x"}, {"y"}).Output("y");
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "model.onnx";
  Write(file, builder.Bytes());
  const OnnxSource source = OnnxSource::OfFile(file);
  EXPECT_THAT(ReadOnnx(source), IsError(StatusCode::kUnimplemented, "Det"));
  std::filesystem::remove(file);
  EXPECT_THAT(interpreter::ReadProgram(source), IsOk()) << "it would have to be parsed again";
  EXPECT_THAT(interpreter::ReadProgram(source), IsError(StatusCode::kNotFound, "no such file"))
      << "its elements were taken";
}

TEST(LoaderTest, NamesTheFileInErrors) {
  const TemporaryFolder folder;
  const auto at = [&](const char* name) { return folder / name; };
  EXPECT_THAT(LoadModel(at("missing.onnx")), IsError(StatusCode::kNotFound, "missing.onnx: there is no such file"));
  EXPECT_THAT(LoadModel(at("model.pt")), IsError(StatusCode::kInvalidArgument, "model.pt: its ending"));
  std::filesystem::create_directory(at("folder.onnx"));
  EXPECT_THAT(LoadModel(at("folder.onnx")), IsError(StatusCode::kInvalidArgument, "not a regular file"));
  Write(at("garbage.onnx"), std::as_bytes(std::span("garbage")));
  EXPECT_THAT(LoadModel(at("garbage.onnx")),
              IsError(StatusCode::kInvalidArgument, "garbage.onnx: this is not an ONNX"));
  Write(at("garbage.swz"), std::as_bytes(std::span("garbage")));
  EXPECT_THAT(LoadModel(at("garbage.swz")), IsError(StatusCode::kInvalidArgument, "garbage.swz: "));
  Write(at("operator.onnx"), OnnxBuilder().Input("x", {-1, 2}).Node("Softsign", {"x"}, {"y"}).Output("y").Bytes());
  EXPECT_THAT(LoadModel(at("operator.onnx")),
              IsError(StatusCode::kUnimplemented, "operator.onnx: operator Softsign (opset 17, node 'y_node')"));
}

TEST(LoaderTest, FallsBackWhereNoPlanTakesAModel) {
  const TemporaryFolder folder;
  const auto node = [&](const std::string& op) {
    Write(folder / "m.onnx", OnnxBuilder().Input("x", {-1, 2}).Node(op, {"x"}, {"y"}).Output("y").Bytes());
    return LoadRunnableModel(folder / "m.onnx");
  };
  const auto planned = node("Relu");
  ASSERT_THAT(planned, IsOk());
  EXPECT_TRUE(std::holds_alternative<LoadedModel>(*planned));
  const auto unplanned = node("Softsign");
  ASSERT_THAT(unplanned, IsOk());
  const auto& fallback = std::get<ProgramModel>(*unplanned);
  EXPECT_EQ(fallback.reason, "operator Softsign (opset 17, node 'y_node') is not supported");
  EXPECT_EQ(fallback.program->OperatorCounts(), "Softsign:1");
  EXPECT_THAT(node("MaxRoiPool"),
              IsError(StatusCode::kUnimplemented, "m.onnx: operator MaxRoiPool (opset 17, node 'y_node')"));
}

// What the model is packed as says nothing of whether a plan takes it.
TEST(LoaderTest, OpensPackedGraphs) {
  const TemporaryFolder folder;
  const auto packed = [&](const std::string& op) {
    OnnxBuilder builder;
    builder.Input("x", {-1, 8}).Counting("w", {8, 16}).Node("MatMul", {"x", "w"}, {"h"});
    const auto detached = DetachInitializers(builder.Node(op, {"h"}, {"y"}).Output("y").Bytes(), /*least_bytes=*/1);
    SWIZZLE_CHECK(detached.ok() && detached->tensors.size() == 1);
    const PackedGraph graph{detached->model, {Compressed(detached->tensors[0].bytes, sizeof(float))}};
    SWIZZLE_CHECK(WritePacked(graph, folder / "m.swz").ok());
    return LoadRunnableModel(folder / "m.swz");
  };
  const auto planned = packed("Relu");
  ASSERT_THAT(planned, IsOk());
  const auto& loaded = std::get<LoadedModel>(*planned);
  EXPECT_EQ(loaded.container, "swz");
  const std::vector<float> weight = loaded.network.weights[0].ToDense().values;
  EXPECT_EQ(weight[1], 17.0f);  // outputs are rows
  const auto unplanned = packed("Softsign");
  ASSERT_THAT(unplanned, IsOk());
  const auto& fallback = std::get<ProgramModel>(*unplanned);
  EXPECT_EQ(fallback.container, "swz");
  EXPECT_EQ(fallback.reason, "operator Softsign (opset 17, node 'y_node') is not supported");
  EXPECT_EQ(fallback.program->weight_bytes(), 8 * 16 * 4);
  EXPECT_THAT(LoadRunnableModel(folder / "m.swz", {.external_bytes = 511}),
              IsError(StatusCode::kInvalidArgument, "takes the model above its limit"));
  EXPECT_THAT(packed("MaxRoiPool"), IsError(StatusCode::kUnimplemented, "m.swz: operator MaxRoiPool"));
}

TEST(ReadFileTest, ReadsWholeFilesWithinTheLimit) {
  const TemporaryFolder folder;
  const auto file = folder / "bytes";
  const std::vector<std::byte> bytes = {std::byte{0}, std::byte{255}, std::byte{10}};
  Write(file, bytes);
  const auto read = ReadFile(file, 3);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(*read, bytes);
  EXPECT_THAT(ReadFile(file, 2), IsError(StatusCode::kResourceExhausted, "3 bytes; the limit is 2"));
  Write(file, {});
  EXPECT_THAT(ReadFile(file, 0), IsOk());
}

// As those that were packed before weights could be shared.
TEST(LoaderTest, LayersOfPackedFilesShareWeights) {
  testing::NetworkBuilder b(1, 0);
  const int x = b.Value("x", 8);
  const int y = b.Linear(b.Linear(x, 8, 0.5), 8, 0.5);
  const std::vector<NetworkPort> inputs = {b.Port(x, "x")}, outputs = {b.Port(y, "y")};
  Network network = b.Finish();
  network.inputs = inputs;
  network.outputs = outputs;
  network.weights[1] = network.weights[0];
  const TemporaryFolder folder;
  ASSERT_THAT(WritePacked(network, folder / "m.swz"), IsOk());
  const auto loaded = LoadModel(folder / "m.swz");
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(loaded->network.weights.size(), 1u);
  EXPECT_EQ(loaded->network.layers[1].weight, loaded->network.layers[0].weight);
}

}  // namespace
}  // namespace swizzle
