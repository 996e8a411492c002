// packed_seeds FOLDER: writes small packed models into FOLDER, which is there.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/format/format_row.h"
#include "model_loader/packed/packed_graph.h"
#include "model_loader/packed/packed_writer.h"
#include "tests/support/random_detector.h"
#include "tests/support/random_encoder.h"
#include "tests/support/random_network.h"

namespace {

// A linear layer in a format; in blocks of 16 rows it keeps the same two of any four columns, which every format holds.
swizzle::Network LayerIn(swizzle::Format format) {
  constexpr int64_t kRows = 18, kCols = 20;
  swizzle::DenseMatrix dense{kRows, kCols, std::vector<float>(kRows * kCols)};
  for (int64_t i = 0; i < kRows * kCols; ++i) {
    if ((i % kCols + i / kCols / 16) % 4 < 2) dense.values[i] = 1.0f / static_cast<float>(i + 1);
  }
  swizzle::Network network;
  network.values = {{"x", kCols, 1, 1}, {"y", kRows, 1, 1}};
  network.inputs = {{"x", swizzle::DType::kFloat32, {kCols}, 0}};
  network.outputs = {{"y", swizzle::DType::kFloat32, {kRows}, 1}};
  swizzle::Layer layer;
  layer.inputs = {0};
  layer.output = 1;
  layer.weight = 0;
  network.layers = {layer};
  network.weights = {{*swizzle::WeightMatrix::FromDense(format, dense), {}}};
  return network;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("Usage: packed_seeds FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const auto encoder = swizzle::testing::MakeRandomEncoder({});
  if (!swizzle::WritePacked(encoder, folder / "encoder.swz").ok()) return 1;
  if (!swizzle::WritePacked(swizzle::testing::MakeRandomDetector(6), folder / "detector.swz").ok()) return 1;
  swizzle::PackedGraph graph{std::vector<std::byte>(100, std::byte{7}), {}};
  std::vector<std::byte> elements(200, std::byte{1});
  graph.tensors.push_back(swizzle::Compressed(elements, 1));
  for (size_t i = 8; i < elements.size(); ++i) elements[i] = std::byte{0};
  graph.tensors.push_back(swizzle::Compressed(elements, 4));
  graph.zeros["x"] = {0.1, 0.2, 0.3, 0.5};
  if (!swizzle::WritePacked(graph, folder / "graph.swz").ok()) return 1;
  for (const swizzle::DType dtype : {swizzle::DType::kFloat32, swizzle::DType::kFloat16}) {
    const swizzle::WeightMatrix matrix = LayerIn(swizzle::Format::kCsr).weights[0].matrix;
    graph.tensors.push_back(swizzle::MatrixElements{matrix, dtype, dtype == swizzle::DType::kFloat16});
  }
  swizzle::DenseMatrix wholes{4, 8, std::vector<float>(32)};
  for (size_t i = 0; i < wholes.values.size(); i += 3) wholes.values[i] = static_cast<float>(i) - 9.0f;
  graph.tensors.push_back(swizzle::MatrixElements{swizzle::WeightMatrix(wholes), swizzle::DType::kInt8, false, 3});
  if (!swizzle::WritePacked(graph, folder / "graph_formats.swz").ok()) return 1;
  for (const swizzle::FormatRow& row : swizzle::FormatRows()) {
    if (!row.traits.has_values) continue;
    const std::string name = swizzle::Concat(row.traits.name, ".swz");
    if (!swizzle::WritePacked(LayerIn(row.format), folder / name).ok()) return 1;
  }
  for (const double sparsity : {0.0, 0.5, 1.0}) {
    for (const int64_t batch : {0, 2}) {
      const auto network = swizzle::testing::MakeRandomNetwork({.sparsity = sparsity, .batch_size = batch, .image = 6});
      const std::string name = swizzle::Concat("sparsity_", sparsity, "_batch_", batch, ".swz");
      const swizzle::Status status = swizzle::WritePacked(network, folder / name);
      if (!status.ok()) {
        std::fprintf(stderr, "packed_seeds: %s\n", std::string(status.message()).c_str());
        return 1;
      }
    }
  }
  return 0;
}
