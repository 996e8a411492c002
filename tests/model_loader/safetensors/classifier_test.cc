#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "model_loader/files/read_file.h"
#include "model_loader/graph/operator_table.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/load/loader.h"
#include "model_loader/safetensors/checkpoint.h"
#include "model_loader/safetensors/sharded_checkpoint.h"
#include "tests/support/safetensors_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;

constexpr size_t kHidden = 8, kLabels = 3;

// A kind of model, how its tensors are called, and what it makes of the first token before the last linear layer.
struct Kind {
  const char* name;
  const char* checkpoint;  // the shipped one whose encoder it has
  const char* architecture;
  const char* prefix;
  const char* inner;  // null: the pooler is inside the encoder
  const char* outer;
  std::function<double(double)> activation;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

double Gelu(double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }
double Relu(double x) { return x > 0 ? x : 0; }
double Tanh(double x) { return std::tanh(x); }

Tensor Drawn(Shape shape, int seed) {
  std::vector<float> values(static_cast<size_t>(*ElementCount(shape)));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(seed) + 1.7f * static_cast<float>(i));
  }
  return Tensor::Floats(std::move(shape), values);
}

std::vector<double> Linear(const Tensor& weight, const Tensor& bias, const std::vector<double>& x) {
  std::vector<double> y;
  for (size_t row = 0; row < bias.floats().size(); ++row) {
    y.push_back(bias.floats()[row]);
    for (size_t i = 0; i < x.size(); ++i) y.back() += double{weight.floats()[row * x.size() + i]} * x[i];
  }
  return y;
}

class ClassifierTest : public ::testing::TestWithParam<Kind> {
 protected:
  ClassifierTest() : shipped_(std::string(SWIZZLE_SOURCE_DIR "/tests/testdata/checkpoints/") + GetParam().checkpoint) {
    const Kind& kind = GetParam();
    const auto bytes = ReadFile(shipped_ / "config.json", 1 << 20);
    SWIZZLE_CHECK(bytes.ok());
    config_.assign(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    config_.replace(config_.rfind('}'), 1, Concat(R"(,"architectures":[")", kind.architecture, "\"]}"));
    if (std::string_view(kind.name) == "electra") {
      config_.replace(config_.find(R"("model_type": "bert")"), 20, R"("model_type": "electra", "embedding_size": 8)");
    }
    auto tensors = ReadTensors(shipped_ / "model.safetensors");
    SWIZZLE_CHECK(tensors.ok());
    for (auto& [name, tensor] : *tensors) {
      if (kind.inner != nullptr && name.starts_with("pooler.")) continue;
      const bool prefixed = name.starts_with(kind.prefix);
      tensors_[prefixed ? name : kind.prefix + name] = tensor;
    }
    const int64_t hidden = kHidden, labels = kLabels;
    if (kind.inner != nullptr) {
      tensors_[std::string(kind.inner) + ".weight"] = Drawn({hidden, hidden}, 1);
      tensors_[std::string(kind.inner) + ".bias"] = Drawn({hidden}, 2);
    }
    tensors_[std::string(kind.outer) + ".weight"] = Drawn({labels, hidden}, 3);
    tensors_[std::string(kind.outer) + ".bias"] = Drawn({labels}, 4);
  }

  StatusOr<Graph> Make() const {
    return MakeCheckpointGraph(config_, tensors_, {.find_operator = FindInterpretedOperator});
  }

  const std::filesystem::path shipped_;
  std::string config_;
  TensorMap tensors_;
};

TEST_P(ClassifierTest, ScoresAreOfTheFirstToken) {
  const Kind& kind = GetParam();
  auto graph = Make();
  ASSERT_THAT(graph, IsOk());
  ASSERT_EQ(graph->outputs.back().name, "logits");
  EXPECT_EQ(graph->outputs.back().shape, (Shape{-1, kLabels}));
  const auto program = interpreter::Program::Make(*std::move(graph));
  ASSERT_THAT(program, IsOk());
  const TensorMap given = *ReadTensors(shipped_ / "expected.safetensors");
  std::vector<TensorView> inputs;
  for (const interpreter::Port& port : (*program)->inputs()) {
    const Tensor& tensor = given.at(port.name);
    inputs.push_back({tensor.dtype, tensor.shape, tensor.bytes});
  }
  const auto stream = NewCpuBackend()->NewStream(1);
  const auto outputs = (*program)->Run(inputs, **stream);
  ASSERT_THAT(outputs, IsOk());
  const auto floats = [&](size_t i) {
    const auto bytes = (*outputs)[i].AsBytes();
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  const std::vector<float> states = floats(0), logits = floats(outputs->size() - 1);
  const size_t rows = logits.size() / kLabels, row_size = states.size() / rows;
  ASSERT_GT(rows, 1u);
  const std::string inner = kind.inner == nullptr ? Concat(kind.prefix, "pooler.dense") : kind.inner;
  for (size_t row = 0; row < rows; ++row) {
    const auto first = states.begin() + static_cast<std::ptrdiff_t>(row * row_size);
    std::vector<double> x = Linear(tensors_.at(inner + ".weight"), tensors_.at(inner + ".bias"),
                                   std::vector<double>(first, first + kHidden));
    for (double& value : x) value = kind.activation(value);
    const std::string outer = kind.outer;
    const std::vector<double> y = Linear(tensors_.at(outer + ".weight"), tensors_.at(outer + ".bias"), x);
    for (size_t i = 0; i < kLabels; ++i) EXPECT_NEAR(logits[row * kLabels + i], y[i], 1e-4) << row << " " << i;
  }
}

TEST_P(ClassifierTest, IsPlannedWhole) {
  const TemporaryFolder folder;
  std::ofstream(folder / "config.json") << config_;
  testing::WriteBytes(folder / "model.safetensors", testing::FormatSafetensors(tensors_));
  const auto model = LoadRunnableModel(folder.path());
  ASSERT_THAT(model, IsOk());
  EXPECT_TRUE(std::holds_alternative<LoadedModel>(*model));
}

TEST_P(ClassifierTest, SaysWhatIsMissing) {
  const std::string inner = GetParam().inner == nullptr ? "pooler.dense" : GetParam().inner;
  tensors_.erase((GetParam().inner == nullptr ? GetParam().prefix : "") + inner + ".weight");
  tensors_.erase((GetParam().inner == nullptr ? GetParam().prefix : "") + inner + ".bias");
  EXPECT_THAT(Make(), IsError(StatusCode::kInvalidArgument, Concat("lacks the tensor '", inner, ".weight'")));
}

INSTANTIATE_TEST_SUITE_P(Kinds, ClassifierTest,
                         ::testing::Values(Kind{"bert", "bert", "BertForSequenceClassification", "bert.", nullptr,
                                                "classifier", Tanh},
                                           Kind{"roberta", "roberta", "RobertaForSequenceClassification", "roberta.",
                                                "classifier.dense", "classifier.out_proj", Tanh},
                                           Kind{"electra", "bert", "ElectraForSequenceClassification", "electra.",
                                                "classifier.dense", "classifier.out_proj", Gelu},
                                           Kind{"distilbert", "distilbert", "DistilBertForSequenceClassification",
                                                "distilbert.", "pre_classifier", "classifier", Relu}),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace swizzle
