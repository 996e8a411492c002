// A model that runs in regions, pruned in vectors, for tests of commands.
#ifndef SWIZZLE_TESTS_MODEL_LOADER_PACK_REGIONS_FIXTURE_H_
#define SWIZZLE_TESTS_MODEL_LOADER_PACK_REGIONS_FIXTURE_H_

#include <fstream>
#include <string>
#include <vector>

#include "model_loader/files/atomic_file.h"
#include "model_loader/files/read_file.h"
#include "model_loader/packed/packed_reader.h"
#include "tests/model_loader/pack/commands_fixture.h"
#include "tests/support/onnx_builder.h"

namespace swizzle::pack {

inline constexpr int64_t kVector = 64;

// A weight [outputs, inputs] of which each 64 neighbouring outputs read the same eighth of the inputs. Of what is left
// out every other zero is a negative one, as a mask that is multiplied with leaves them.
inline std::vector<float> InVectors(int64_t outputs, int64_t inputs, float scale = 0.01f) {
  std::vector<float> weight(static_cast<size_t>(outputs * inputs));
  for (int64_t row = 0; row < outputs; ++row) {
    for (int64_t col = 0; col < inputs; ++col) {
      const bool kept = (col * 5 + row / kVector * 3) % 8 == 0;
      const float value = scale * (static_cast<float>((row * 7 + col * 13) % 37) - 18.5f);
      weight[static_cast<size_t>(row * inputs + col)] = kept ? value : (col % 2 == 0 ? 0.0f : -0.0f);
    }
  }
  return weight;
}

inline std::vector<float> Transposed(const std::vector<float>& weight, size_t rows) {
  std::vector<float> made(weight.size());
  const size_t cols = weight.size() / rows;
  for (size_t i = 0; i < weight.size(); ++i) made[i % cols * rows + i / cols] = weight[i];
  return made;
}

class PrunedInRegions : public Commands {
 protected:
  // Products of all spellings, and Erf between them, which no plan takes.
  static testing::OnnxBuilder Model() {
    testing::OnnxBuilder builder;
    builder.Input("x", {-1, 4, 6, 6}).Floats("conv", {128, 4, 3, 3}, InVectors(128, 36));
    builder.Floats("matmul", {128, 128}, Transposed(InVectors(128, 128), 128));
    builder.Floats("gemm", {128, 128}, InVectors(128, 128, 0.02f));
    builder.Node("Conv", {"x", "conv"}, {"c"}).Node("Relu", {"c"}, {"r"}).Node("GlobalAveragePool", {"r"}, {"g"});
    builder.Node("Flatten", {"g"}, {"f"}).Node("MatMul", {"f", "matmul"}, {"m"}).Node("Erf", {"m"}, {"e"});
    builder.Node("Gemm", {"e", "gemm"}, {"y"}, {{"transB", int64_t{1}}}).Output("y");
    builder.graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
    return builder;
  }

  void Write(const testing::OnnxBuilder& builder) const {
    SWIZZLE_CHECK(WriteFileAtomically(Path("m.onnx"), builder.Bytes()).ok());
  }

  PackedGraph Read(const std::string& name) const {
    auto model = ReadPackedModel(*ReadFile(Path(name), 1 << 24));
    SWIZZLE_CHECK(model.ok());
    return std::get<PackedGraph>(*std::move(model));
  }

  // Of the tensors that are matrices.
  std::vector<Format> FormatsIn(const std::string& name) const {
    std::vector<Format> formats;
    for (const PackedElements& tensor : Read(name).tensors) {
      if (const auto* const held = std::get_if<MatrixElements>(&tensor)) formats.push_back(held->matrix.format());
    }
    return formats;
  }

  void ExpectSameResults(const std::string& name) {
    EXPECT_EQ(Run({"validate", Path("m.onnx"), Path(name), "--samples=3", "--tolerance=0"}), 0) << out() << err();
  }

  std::string WriteRows(const std::string& name, int64_t rows) const {
    std::vector<float> values(static_cast<size_t>(rows) * 4 * 36);
    for (size_t i = 0; i < values.size(); ++i) values[i] = 0.1f * static_cast<float>(i % 23) - 1.0f;
    const TensorView view{DType::kFloat32, {rows, 4, 6, 6}, std::as_bytes(std::span(values))};
    if (name.ends_with(".npy")) {
      SWIZZLE_CHECK(WriteNpy(Path(name), view).ok());
    } else {
      std::ofstream(Path(name), std::ios::binary) << testing::MakeNpz({{"x", view}});
    }
    return Path(name);
  }
};

}  // namespace swizzle::pack

#endif  // SWIZZLE_TESTS_MODEL_LOADER_PACK_REGIONS_FIXTURE_H_
