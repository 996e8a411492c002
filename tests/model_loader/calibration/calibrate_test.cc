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
#include "model_loader/files/read_file.h"
#include "model_loader/interpreter/run/load.h"
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
    const auto program = interpreter::ReadProgram(std::span<const std::byte>(*bytes));
    const TensorView inputs[] = {images.view()};
    const auto outputs = (*program)->Run(inputs, *stream_);
    const auto values = (*outputs)[0].As<float>();
    return {values.begin(), values.end()};
  }

  Status Run(const NpyArrays& inputs, Pruner& pruner, std::vector<NamedWeight>& weights,
             const std::filesystem::path& folder = {},
             const std::function<Status(size_t, const std::string&)>& progress = nullptr) const {
    const auto program = interpreter::ReadProgram(std::span<const std::byte>(model_));
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

// Kept layers have used their scores, too.
TEST_F(Calibrate, AResumedRunGoesByItsScores) {
  const NpyArrays inputs = {{"image", DrawImages(4, 1)}};
  const TemporaryFolder folder;
  PruneOptions options = Options(PruneMethod::kMagnitude, 0.8);
  NpyArrays scores;
  for (const NamedWeight& named : Weights()) {
    const auto bytes = std::as_bytes(std::span(named.elements));
    scores[named.weight.names.back()] = {DType::kFloat32, named.weight.shape, {bytes.begin(), bytes.end()}};
  }
  options.scores = ScoreFile(scores);
  Pruner first(options), second(options);
  const auto stop = [](size_t done, const std::string&) {
    return done < 5 ? Status() : MakeError(StatusCode::kCancelled, "enough");
  };
  std::vector<NamedWeight> weights = Weights();
  EXPECT_THAT(Run(inputs, first, weights, folder.path(), stop), IsError(StatusCode::kCancelled, "enough"));
  weights = Weights();
  ASSERT_THAT(Run(inputs, second, weights, folder.path()), IsOk());
  EXPECT_THAT(second.CheckResult(), IsOk());
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

// As of a file that a loss of power cut off.
TEST_F(Calibrate, DamagedLayersAreDoneAgain) {
  const NpyArrays inputs = {{"image", DrawImages(4, 1)}};
  const TemporaryFolder folder;
  std::vector<NamedWeight> whole = Weights(), again = whole;
  Pruner first(Options(PruneMethod::kMagnitude, 0.8)), second(Options(PruneMethod::kMagnitude, 0.8));
  ASSERT_THAT(Run(inputs, first, whole, folder.path()), IsOk());
  std::filesystem::resize_file(folder / "1-weights.npy", 40);
  std::filesystem::resize_file(folder / "2-record.npy", 0);
  ASSERT_THAT(Run(inputs, second, again, folder.path()), IsOk());
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(whole[i].elements, again[i].elements) << i;
}

TEST_F(Calibrate, NothingIsLearntFromNoRowsOrFromInfinity) {
  std::vector<NamedWeight> weights = Weights();
  Pruner pruner(Options(PruneMethod::kMagnitude, 0.8));
  EXPECT_THAT(Run({{"image", {DType::kFloat32, {0, 1, 28, 28}, {}}}}, pruner, weights),
              IsError(StatusCode::kInvalidArgument, "input 'image' is empty: [0,1,28,28]"));
  NpyArray infinite = DrawImages(1, 1);
  const float infinity = INFINITY;
  std::memcpy(infinite.bytes.data() + 400, &infinity, sizeof(infinity));
  EXPECT_THAT(Run({{"image", infinite}}, pruner, weights), IsError(StatusCode::kInvalidArgument, "or infinite"));
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

std::vector<float> Drawn(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// Of numbers that depend on each other, `rank` of them.
std::vector<float> DrawnRows(int64_t rows, int64_t width, int64_t rank, unsigned seed) {
  const std::vector<float> few = Drawn(rows * rank, seed), mix = Drawn(rank * width, seed + 1);
  std::vector<float> values(rows * width);
  for (int64_t i = 0; i < rows * width; ++i) {
    for (int64_t j = 0; j < rank; ++j) values[i] += few[i / width * rank + j] * mix[j * width + i % width];
  }
  return values;
}

// A weight that two layers share, with other inputs each, is as good for the second as for the first.
TEST_F(Calibrate, SharedWeightsAreCompensatedForAllTheirReaders) {
  constexpr int64_t kWidth = 16, kRows = 200;
  OnnxBuilder builder;
  builder.Input("a", {-1, kWidth}).Input("b", {-1, kWidth}).Floats("w", {kWidth, kWidth}, Drawn(kWidth * kWidth, 1));
  builder.Node("MatMul", {"a", "w"}, {"x"}).Node("MatMul", {"b", "w"}, {"y"}).Output("x").Output("y");
  model_ = builder.Bytes();
  NpyArrays inputs;
  for (const auto& [name, seed] : {std::pair("a", 2u), std::pair("b", 4u)}) {
    const std::vector<float> rows = DrawnRows(kRows, kWidth, 4, seed);
    const auto bytes = std::as_bytes(std::span(rows));
    inputs[name] = {DType::kFloat32, {kRows, kWidth}, {bytes.begin(), bytes.end()}};
  }
  std::vector<NamedWeight> weights = Weights();
  ASSERT_EQ(weights.size(), 1u);
  const std::vector<float> before = weights[0].elements;
  Pruner pruner({.method = PruneMethod::kMagnitude, .sparsity = 0.4});
  ASSERT_THAT(Run(inputs, pruner, weights), IsOk());
  // Of each layer the squared error over the squares of what it made.
  for (const char* name : {"a", "b"}) {
    const auto* const rows = reinterpret_cast<const float*>(inputs[name].bytes.data());
    double error = 0, whole = 0;
    for (int64_t i = 0; i < kRows * kWidth; ++i) {
      double off = 0, sum = 0;
      for (int64_t j = 0; j < kWidth; ++j) {
        const int64_t at = j * kWidth + i % kWidth;
        off += double{rows[i / kWidth * kWidth + j]} * (weights[0].elements[at] - before[at]);
        sum += double{rows[i / kWidth * kWidth + j]} * before[at];
      }
      error += off * off, whole += sum * sum;
    }
    EXPECT_LT(error, 0.01 * whole) << name;
  }
  EXPECT_LT(pruner.records()[0].errors->compensated, 0.01);
}

TEST_F(Calibrate, AWeightThatIsReadBothWaysIsNamed) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 4}).Floats("w", {4, 6}, Drawn(24, 1)).Output("y");
  builder.Node("MatMul", {"x", "w"}, {"h"}).Node("Gemm", {"h", "w"}, {"y"}, {{"transB", int64_t{1}}});
  model_ = builder.Bytes();
  const std::vector<float> rows = Drawn(40, 2);
  const auto bytes = std::as_bytes(std::span(rows));
  const NpyArrays inputs = {{"x", {DType::kFloat32, {10, 4}, {bytes.begin(), bytes.end()}}}};
  std::vector<NamedWeight> weights = Weights();
  Pruner pruner({.method = PruneMethod::kMagnitude, .sparsity = 0.5}),
      skipping({.method = PruneMethod::kMagnitude, .sparsity = 0.5, .skip = {"w"}});
  EXPECT_THAT(Run(inputs, pruner, weights),
              IsError(StatusCode::kUnimplemented, "weight 'w' is multiplied with from both sides"));
  EXPECT_THAT(Run(inputs, skipping, weights), IsOk());
}

// Patches of padded, strided windows, and rows of either orientation, against sums over what the layer reads.
TEST_F(Calibrate, MomentsAreOfWhatTheWeightMeets) {
  const auto moments_of = [&](const OnnxBuilder& builder, const std::vector<float>& x, const Shape& shape) {
    const auto program = interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes()));
    InputMoments moments;
    const auto watch = [&](const Node& node, std::span<interpreter::Array> given, interpreter::Memory& memory,
                           Stream& s) {
      interpreter::Call call(node, 17, given, memory, s);
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
