// On a real network, which the tree has, and on drawn images.
#include "model_loader/calibration/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/calibration/moments.h"
#include "model_loader/fallback/load.h"
#include "model_loader/files/read_file.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using testing::IsError;
using testing::IsOk;
using testing::OnnxBuilder;

const std::string kModel = SWIZZLE_SOURCE_DIR "/deploy/models/resnet18_thin_fashion.onnx";

// Smooth blobs, as clothes are.
NpyArray DrawImages(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<float> pixels;
  for (int64_t image = 0; image < count; ++image) {
    float x[3], y[3], size[3];
    for (int blob = 0; blob < 3; ++blob) {
      x[blob] = 28 * uniform(random), y[blob] = 28 * uniform(random), size[blob] = 3 + 6 * uniform(random);
    }
    for (int i = 0; i < 28 * 28; ++i) {
      const int row = i / 28;
      float sum = 0;
      for (int blob = 0; blob < 3; ++blob) {
        const float dx = (static_cast<float>(i % 28) - x[blob]) / size[blob];
        const float dy = (static_cast<float>(row) - y[blob]) / size[blob];
        sum += std::exp(-dx * dx - dy * dy);
      }
      pixels.push_back(std::min(1.0f, sum));
    }
  }
  const auto bytes = std::as_bytes(std::span(pixels));
  return {DType::kFloat32, {count, 1, 28, 28}, {bytes.begin(), bytes.end()}};
}

class Calibrate : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto bytes = ReadFile(kModel, int64_t{1} << 30);
    ASSERT_THAT(bytes, IsOk());
    model_ = *bytes;
    backend_ = NewCpuBackend();
    auto stream = backend_->NewStream(2);
    ASSERT_THAT(stream, IsOk());
    stream_ = *std::move(stream);
  }

  std::vector<NamedWeight> Weights() const {
    std::vector<NamedWeight> weights;
    const auto collect = [&](const OnnxWeight& weight, std::span<float> elements) {
      weights.push_back({weight, {elements.begin(), elements.end()}});
    };
    EXPECT_THAT(RewriteOnnxWeights(model_, collect), IsOk());
    return weights;
  }

  std::vector<float> Outputs(const std::vector<NamedWeight>* weights, const NpyArray& images) const {
    const auto replace = [&, next = size_t{0}](const OnnxWeight&, std::span<float> elements) mutable {
      if (weights != nullptr) std::ranges::copy((*weights)[next++].elements, elements.begin());
    };
    const auto bytes = RewriteOnnxWeights(model_, replace);
    const auto program = fallback::ReadProgram(std::span<const std::byte>(*bytes));
    const TensorView inputs[] = {images.view()};
    const auto outputs = (*program)->Run(inputs, *stream_);
    const auto values = (*outputs)[0].As<float>();
    return {values.begin(), values.end()};
  }

  Status Run(const NpyArrays& inputs, Pruner& pruner, std::vector<NamedWeight>& weights,
             const std::filesystem::path& folder = {},
             const std::function<Status(size_t, const std::string&)>& progress = nullptr) const {
    const auto program = fallback::ReadProgram(std::span<const std::byte>(model_));
    return PruneCalibrated({**program, inputs, *stream_, folder, progress}, weights, pruner);
  }

  // The layers of large planes, whose systems are small.
  static PruneOptions Options(PruneMethod method, double sparsity) {
    return {.method = method,
            .vector_rows = 16,
            .sparsity = sparsity,
            .skip = {"*stem*", "*blocks.[4567]*", "*classifier*"}};
  }

  std::vector<std::byte> model_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Stream> stream_;
};

double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double distance = 0;
  for (size_t i = 0; i < a.size(); ++i) distance += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  return distance;
}

// What the whole network gives on images that it was not calibrated with is nearer to what it gave.
TEST_F(Calibrate, TheNetworksOutputsAreNearerByEveryMethod) {
  const NpyArrays inputs = {{"image", DrawImages(32, 1)}};
  const NpyArray others = DrawImages(32, 2);
  const std::vector<float> dense = Outputs(nullptr, others);
  for (const PruneMethodRow& row : PruneMethods()) {
    const double sparsity = row.method == PruneMethod::kMagnitude ? 0.7 : 0.5;
    std::vector<NamedWeight> alone = Weights(), calibrated = alone;
    Pruner plain(Options(row.method, sparsity)), pruner(Options(row.method, sparsity));
    for (NamedWeight& w : alone) {
      plain.Prune({w.weight.names, w.weight.shape, w.weight.outputs_last, w.weight.taps()}, w.elements);
    }
    ASSERT_THAT(Run(inputs, pruner, calibrated), IsOk());
    EXPECT_LT(Distance(Outputs(&calibrated, others), dense), 0.7 * Distance(Outputs(&alone, others), dense))
        << row.name;
    for (const PruneRecord& record : pruner.records()) {
      if (record.skipped) continue;
      ASSERT_TRUE(record.errors.has_value());
      EXPECT_LE(record.errors->compensated, record.errors->pruned) << row.name << " " << record.name;
    }
  }
}

TEST_F(Calibrate, TheLimitHoldsAfterwards) {
  std::vector<NamedWeight> weights = Weights();
  Pruner pruner(Options(PruneMethod::kNOfM, 0));
  ASSERT_THAT(Run({{"image", DrawImages(8, 1)}}, pruner, weights), IsOk());
  for (const NamedWeight& named : weights) {
    if (pruner.Skips(named.weight.names)) continue;
    const int64_t taps = named.weight.taps(), channels = named.weight.shape[1];
    for (int64_t line = 0; line < named.weight.shape[0] * taps; ++line) {
      for (int64_t c = 0; c < channels; c += 4) {
        int kept = 0;
        for (int64_t i = c; i < std::min(channels, c + 4); ++i) {
          kept += named.elements[(line / taps * channels + i) * taps + line % taps] != 0;
        }
        ASSERT_LE(kept, 2);
      }
    }
  }
}

TEST_F(Calibrate, AResumedRunGivesTheSameBytes) {
  const NpyArrays inputs = {{"image", DrawImages(8, 1)}};
  const TemporaryFolder folder;
  std::vector<NamedWeight> whole = Weights(), resumed = whole;
  Pruner uninterrupted(Options(PruneMethod::kMagnitude, 0.8)), first(Options(PruneMethod::kMagnitude, 0.8)),
      second(Options(PruneMethod::kMagnitude, 0.8));
  ASSERT_THAT(Run(inputs, uninterrupted, whole), IsOk());

  const auto stop = [](size_t done, const std::string&) {
    return done < 5 ? Status() : MakeError(StatusCode::kCancelled, "enough");
  };
  EXPECT_THAT(Run(inputs, first, resumed, folder / "kept", stop), IsError(StatusCode::kCancelled, "enough"));
  resumed = Weights();
  ASSERT_THAT(Run(inputs, second, resumed, folder / "kept"), IsOk());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(std::memcmp(whole[i].elements.data(), resumed[i].elements.data(), whole[i].elements.size() * 4), 0) << i;
  }
  ASSERT_EQ(uninterrupted.records().size(), second.records().size());
  for (size_t i = 0; i < second.records().size(); ++i) {
    const PruneRecord &a = uninterrupted.records()[i], &b = second.records()[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.zeros_after, b.zeros_after);
    EXPECT_EQ(a.kept, b.kept);
    EXPECT_EQ(a.errors.has_value(), b.errors.has_value());
    if (a.errors && b.errors) {
      EXPECT_EQ(a.errors->compensated, b.errors->compensated);
    }
  }
}

// A layer that is kept is not computed again: what its file says stands in the result.
TEST_F(Calibrate, KeptLayersAreTaken) {
  const NpyArrays inputs = {{"image", DrawImages(4, 1)}};
  const TemporaryFolder folder;
  std::vector<NamedWeight> weights = Weights();
  Pruner first(Options(PruneMethod::kMagnitude, 0.8)), second(Options(PruneMethod::kMagnitude, 0.8));
  ASSERT_THAT(Run(inputs, first, weights, folder.path()), IsOk());
  const std::vector<float> marked(16 * 16 * 9, 0.25f);
  ASSERT_THAT(WriteNpy(folder / "1-weights.npy",
                       {DType::kFloat32, {static_cast<int64_t>(marked.size())}, std::as_bytes(std::span(marked))}),
              IsOk());
  weights = Weights();
  ASSERT_THAT(Run(inputs, second, weights, folder.path()), IsOk());
  EXPECT_TRUE(std::ranges::any_of(weights, [&](const NamedWeight& named) { return named.elements == marked; }));
  ASSERT_THAT(WriteNpy(folder / "1-weights.npy", {DType::kFloat32, {1}, std::as_bytes(std::span(marked)).first(4)}),
              IsOk());
  EXPECT_THAT(Run(inputs, second, weights, folder.path()),
              IsError(StatusCode::kInvalidArgument, "1-weights.npy is of another run"));
}

TEST_F(Calibrate, InputsHaveToBeTheModels) {
  std::vector<NamedWeight> weights = Weights();
  Pruner pruner(Options(PruneMethod::kMagnitude, 0.8));
  EXPECT_THAT(Run({}, pruner, weights), IsError(StatusCode::kInvalidArgument, "input 'image' is missing"));
  EXPECT_THAT(Run({{"image", DrawImages(1, 1)}, {"images", DrawImages(1, 1)}}, pruner, weights),
              IsError(StatusCode::kInvalidArgument, "no input 'images'"));
  NpyArray other = DrawImages(1, 1);
  other.shape = {1, 1, 14, 56};
  EXPECT_THAT(Run({{"image", other}}, pruner, weights),
              IsError(StatusCode::kInvalidArgument, "input 'image' is [1,1,14,56]"));
}

// Patches of padded, strided windows, and rows of either orientation, against sums over what the layer reads.
TEST_F(Calibrate, MomentsAreOfWhatTheWeightMeets) {
  const auto moments_of = [&](const OnnxBuilder& builder, const std::vector<float>& x, const Shape& shape) {
    const auto program = fallback::ReadProgram(std::span<const std::byte>(builder.Bytes()));
    InputMoments moments;
    const auto watch = [&](const Node& node, std::span<fallback::Array> given, fallback::Memory& memory, Stream& s) {
      fallback::Call call(node, 17, given, memory, s);
      SWIZZLE_ASSIGN_OR_RETURN(moments, MomentsOf(call));
      return Status();
    };
    const TensorView inputs[] = {{DType::kFloat32, shape, std::as_bytes(std::span(x))}};
    EXPECT_THAT((*program)->Run(inputs, *stream_, {}, watch), IsOk());
    return moments.sums;
  };
  OnnxBuilder conv, matmul, gemm;
  conv.Input("x", {1, 1, 1, 3}).Floats("w", {1, 1, 1, 2}, {1, 1}).Output("y");
  conv.Node("Conv", {"x", "w"}, {"y"},
            {{"strides", std::vector<int64_t>{1, 2}}, {"pads", std::vector<int64_t>{0, 1, 0, 0}}});
  EXPECT_THAT(moments_of(conv, {1, 2, 4}, {1, 1, 1, 3}), ElementsAre(0 + 4, 0 + 8, 0 + 8, 1 + 16));
  matmul.Input("x", {1, 2, 2}).Floats("w", {2, 1}, {1, 1}).Output("y").Node("MatMul", {"x", "w"}, {"y"});
  EXPECT_THAT(moments_of(matmul, {1, 2, 3, 4}, {1, 2, 2}), ElementsAre(10, 14, 14, 20));
  gemm.Input("x", {2, 2}).Floats("w", {2, 1}, {1, 1}).Output("y");
  gemm.Node("Gemm", {"x", "w"}, {"y"}, {{"transA", int64_t{1}}});
  EXPECT_THAT(moments_of(gemm, {1, 2, 3, 4}, {2, 2}), ElementsAre(5, 11, 11, 25));
}

}  // namespace
}  // namespace swizzle
