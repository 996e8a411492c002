// Graphs of encoders whose tokens come from elsewhere, and the regions that they become.
#ifndef SWIZZLE_TESTS_MODEL_LOADER_REGIONS_REGION_ENCODERS_H_
#define SWIZZLE_TESTS_MODEL_LOADER_REGIONS_REGION_ENCODERS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/model_loader/regions/planned_programs.h"

namespace swizzle::regions {

inline constexpr int64_t kEncoderChannels = 8;

// Encoders whose tokens come from elsewhere, of two heads of four channels.
class RegionEncoders : public PlannedPrograms {
 protected:
  using OnnxBuilder = swizzle::testing::OnnxBuilder;
  static constexpr int64_t kChannels = kEncoderChannels;
  static std::vector<float> Weights(int64_t count) { return regions::Weights(count); }

  // scales: of scores, one number, or one a head.
  OnnxBuilder Starting(const Shape& shape, const std::vector<float>& scales = {0.5f}) {
    OnnxBuilder builder;
    builder.Input("x", shape)
        .Floats("scale", scales.size() == 1 ? Shape() : Shape{static_cast<int64_t>(scales.size()), 1, 1}, scales)
        .Floats("ones", {kChannels}, std::vector<float>(8, 1.0f));
    builder.Int64s("heads", {4}, {0, -1, 2, 4}).Int64s("joined", {3}, {0, -1, kChannels});
    return builder;
  }

  void Linear(OnnxBuilder& builder, const std::string& from, const std::string& to) {
    builder.Floats("w" + to, {kChannels, kChannels}, Weights(64)).Node("MatMul", {from, "w" + to}, {to});
  }

  // Attention of `from` to `keys`, with a residual and a norm behind it; heads are told apart as `heads` says.
  std::string Layer(OnnxBuilder& builder, const std::string& from, const std::string& keys, const std::string& name,
                    const std::string& heads = "heads") {
    for (const std::string part : {"q", "k", "v"}) {
      Linear(builder, part == "q" ? from : keys, name + part);
      builder.Node("Reshape", {name + part, heads}, {name + part + "2"});
      builder.Node("Transpose", {name + part + "2"}, {name + part + "3"},
                   {{"perm", part == "k" ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 1, 3}}});
    }
    builder.Node("MatMul", {name + "q3", name + "k3"}, {name + "product"});
    builder.Node("Mul", {name + "product", "scale"}, {name + "scores"});
    builder.Node("Softmax", {name + "scores"}, {name + "powers"}, {{"axis", int64_t{-1}}});
    builder.Node("MatMul", {name + "powers", name + "v3"}, {name + "sums"});
    builder.Node("Transpose", {name + "sums"}, {name + "tokens"}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    builder.Node("Reshape", {name + "tokens", "joined"}, {name + "attended"});
    builder.Node("Add", {name + "attended", from}, {name + "sum"});
    builder.Node("LayerNormalization", {name + "sum", "ones"}, {name + "norm"}, {{"axis", int64_t{-1}}});
    return name + "norm";
  }

  // Four patches of an image [3, 8, 8], as planes.
  OnnxBuilder Patches(int64_t batch = -1) {
    OnnxBuilder builder = Starting({batch, 3, 8, 8});
    builder.Floats("patch", {kChannels, 3, 4, 4}, Weights(kChannels * 48)).Floats("shift", {kChannels}, Weights(8));
    builder.Node("Conv", {"x", "patch", "shift"}, {"planes"}, {{"strides", std::vector<int64_t>{4, 4}}});
    builder.Int64s("rows", {3}, {0, kChannels, -1});
    return builder;
  }

  // The planes as tokens behind a class token, positions added.
  std::string WithClassToken(OnnxBuilder& builder) {
    builder.Node("Reshape", {"planes", "rows"}, {"patches"});
    builder.Node("Transpose", {"patches"}, {"tokens"}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
    builder.Node("Shape", {"x"}, {"shape"}).Int64s("zero", {1}, {0}).Int64s("vector", {2}, {1, kChannels});
    builder.Node("Gather", {"shape", "zero"}, {"batch"}).Floats("class", {1, 1, kChannels}, Weights(8));
    builder.Node("Concat", {"batch", "vector"}, {"sizes"}, {{"axis", int64_t{0}}});
    builder.Node("Expand", {"class", "sizes"}, {"classes"});
    builder.Node("Concat", {"classes", "tokens"}, {"all"}, {{"axis", int64_t{1}}});
    builder.Floats("positions", {1, 5, kChannels}, Weights(40)).Node("Add", {"all", "positions"}, {"placed"});
    return "placed";
  }

  std::string TwoLayers(OnnxBuilder& builder, const std::string& from, const std::string& heads = "heads") {
    const std::string first = Layer(builder, from, from, "a", heads);
    return Layer(builder, first, first, "b", heads);
  }

  // That all of the model is one region.
  static void ExpectOneRegion(const RegionalProgram& regional) {
    ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
    EXPECT_EQ(regional.program->OperatorCounts(), "");
  }

  // Layers of the first region.
  static int64_t CountOf(const RegionalProgram& regional, Op op) {
    return std::ranges::count(regional.regions[0]->plan()->network().layers, op, &Layer::op);
  }
};

}  // namespace swizzle::regions

#endif  // SWIZZLE_TESTS_MODEL_LOADER_REGIONS_REGION_ENCODERS_H_
