#include "model_loader/safetensors/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "model_loader/graph/operator_table.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/load/loader.h"
#include "model_loader/safetensors/sharded_checkpoint.h"
#include "tests/support/safetensors_builder.h"
#include "tests/support/shipped_checkpoint.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;
using testing::ConfigOf;
using testing::ExpectAsExpected;
using testing::ExpectedOf;
using testing::FormatSafetensors;
using testing::IsError;
using testing::IsOk;
using testing::kInvalid;
using testing::kUnsupported;
using testing::Shipped;
using testing::TensorsOf;
using testing::WriteBytes;

const CheckpointOptions kAnyOperator = {.find_operator = FindInterpretedOperator};

// How far the interpreter may be off. Where tokens have scales of their own, it has one for all (bert_graph.h).
double ToleranceOf(std::string_view name) { return name == "bert_int8_bitmask" ? 0.05 : 1e-5; }

// What transformers and compressed-tensors wrote answers as transformers answers.
class ShippedCheckpointTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ShippedCheckpointTest, AnswersAsItsAuthorsModel) {
  const auto program = interpreter::ReadProgram(Shipped(GetParam()));
  ASSERT_THAT(program, IsOk());
  ExpectAsExpected(**program, ExpectedOf(GetParam()), ToleranceOf(GetParam()));
}

// Those that run as one plan. What it computes, tests/integration/encoders_test.py compares.
class PlannedCheckpointTest : public ShippedCheckpointTest {};

TEST_P(PlannedCheckpointTest, IsPlannedWhole) {
  const auto runnable = LoadRunnableModel(Shipped(GetParam()));
  ASSERT_THAT(runnable, IsOk());
  const auto* planned = std::get_if<LoadedModel>(&*runnable);
  ASSERT_NE(planned, nullptr);
  EXPECT_EQ(planned->container, "safetensors");
  ASSERT_TRUE(planned->network.sequences.has_value());
  const std::string_view name = GetParam();
  const bool counts = name == "roberta" || name == "mpnet";
  EXPECT_EQ(planned->network.sequences->counted != -1, counts);
  EXPECT_EQ(planned->network.sequences->padding, counts ? 1 : 0);  // its pad_token_id
}

TEST_P(ShippedCheckpointTest, AnswersTheSameFromShards) {
  const TemporaryFolder folder;
  TensorMap shards[2];
  std::string map;
  for (const auto& [name, tensor] : TensorsOf(GetParam())) {
    const int shard = shards[0].size() > shards[1].size() ? 1 : 0;
    shards[shard].emplace(name, tensor);
    map += Concat(map.empty() ? "" : ",", "\"", name, "\":\"", shard, ".safetensors\"");
  }
  for (int shard : {0, 1}) WriteBytes(folder / Concat(shard, ".safetensors"), FormatSafetensors(shards[shard]));
  std::ofstream(folder / "model.safetensors.index.json") << R"({"weight_map":{)" << map << "}}";
  std::ofstream(folder / "config.json") << ConfigOf(GetParam());
  const auto program = interpreter::ReadProgram(folder.path());
  ASSERT_THAT(program, IsOk());
  ExpectAsExpected(**program, ExpectedOf(GetParam()), ToleranceOf(GetParam()));
  EXPECT_THAT(interpreter::ReadProgram(folder / "model.safetensors.index.json"), IsOk());
}

const auto NameOf = [](const auto& name) { return std::string(name.param); };
const auto kPlanned =
    ::testing::Values("bert", "bert_bitmask", "bert_24_bitmask", "bert_int8", "bert_int8_bitmask", "roberta", "mpnet",
                      "distilbert", "distilbert_int8", "deberta_v2", "deberta_v3_classifier", "modernbert",
                      "modernbert_classifier", "nomic_bert", "qwen2", "qwen3");
INSTANTIATE_TEST_SUITE_P(Checkpoints, PlannedCheckpointTest, kPlanned, NameOf);
INSTANTIATE_TEST_SUITE_P(Checkpoints, ShippedCheckpointTest, kPlanned, NameOf);
INSTANTIATE_TEST_SUITE_P(InRegions, ShippedCheckpointTest, ::testing::Values("nomic_bert_interleaved"), NameOf);

StatusOr<Graph> Make(const TensorMap& tensors, const std::string& config = ConfigOf("bert")) {
  return MakeCheckpointGraph(config, tensors, kAnyOperator);
}

TEST(Checkpoint, LayersHaveTheSizesOfTheirTensors) {
  const auto graph = Make(TensorsOf("bert"));
  ASSERT_THAT(graph, IsOk());
  std::map<std::string, Shape> shapes;
  for (const Value& value : graph->values) {
    if (value.constant) shapes[value.name] = value.constant->shape;
  }
  // One of two heads, of 4 rows each, was pruned from layer 1; linear layers are [in, out].
  EXPECT_EQ(shapes.at("encoder.layer.0.attention.self.query.weight"), (Shape{8, 8}));
  EXPECT_EQ(shapes.at("encoder.layer.1.attention.self.query.weight"), (Shape{8, 4}));
  EXPECT_EQ(shapes.at("encoder.layer.1.attention.output.dense.weight"), (Shape{4, 8}));
  EXPECT_EQ(shapes.at("encoder.layer.1.intermediate.dense.weight"), (Shape{8, 12}));
  std::set<std::string> names;
  for (const Node& node : graph->nodes) EXPECT_TRUE(names.insert(node.name).second) << node.name;
}

TEST(Checkpoint, IsWrittenAsAnExporterWould) {
  const auto graph = Make(TensorsOf("bert_bitmask"), ConfigOf("bert_bitmask"));
  ASSERT_THAT(graph, IsOk());
  std::string ops;
  for (const Node& node : graph->nodes) {
    if (node.name.starts_with("encoder.layer.1.")) ops += node.op + " ";
  }
  EXPECT_EQ(ops,
            "MatMul Add MatMul Add MatMul Add Reshape Transpose Reshape Transpose Reshape Transpose "
            "MatMul Div Add Softmax MatMul Transpose Reshape MatMul Add Add LayerNormalization "
            "MatMul Add Div Erf Add Mul Mul MatMul Add Add LayerNormalization ");
}

TEST(Checkpoint, SpellsWholeNumbersAsAQuantiserWould) {
  std::string ops[2];
  const char* const names[] = {"bert_int8", "bert_int8_bitmask"};
  for (int i : {0, 1}) {
    const auto graph = Make(TensorsOf(names[i]), ConfigOf(names[i]));
    ASSERT_THAT(graph, IsOk());
    for (const Node& node : graph->nodes) {
      const bool of_layer = node.name.starts_with("encoder.layer.1.attention.self.") ||
                            node.name.starts_with("encoder.layer.0.output.LayerNorm/");
      if (of_layer && ops[i].find(" Reshape") == std::string::npos) ops[i] += node.op + " ";
    }
  }
  const std::string by_scale = "DequantizeLinear QuantizeLinear DequantizeLinear MatMul Add ";
  EXPECT_EQ(ops[0], "LayerNormalization " + by_scale + by_scale + by_scale + "Reshape ");
  const std::string by_token = "MatMulInteger Mul Cast Mul Add ";
  EXPECT_EQ(ops[1], "LayerNormalization DynamicQuantizeLinear " + by_token + by_token + by_token + "Reshape ");
}

TEST(Checkpoint, ReadsPrefixesAndOldNames) {
  TensorMap renamed;
  for (auto& [name, tensor] : TensorsOf("bert")) {
    std::string old = "0.auto_model." + name;
    if (old.ends_with("LayerNorm.weight")) old.replace(old.size() - 6, 6, "gamma");
    if (old.ends_with("LayerNorm.bias")) old.replace(old.size() - 4, 4, "beta");
    renamed.emplace(old, tensor);
  }
  const auto plain = Make(TensorsOf("bert")), other = Make(renamed);
  ASSERT_THAT(plain, IsOk());
  ASSERT_THAT(other, IsOk());
  EXPECT_EQ(other->values.size(), plain->values.size());
  for (size_t i = 0; i < plain->values.size(); ++i) EXPECT_EQ(other->values[i].constant, plain->values[i].constant);
  renamed.emplace("embeddings.LayerNorm.bias", TensorsOf("bert").at("embeddings.LayerNorm.bias"));
  EXPECT_THAT(Make(renamed), IsError(kInvalid, "'embeddings.LayerNorm.bias' twice, under two prefixes"));
}

// The configuration of bert, whose text is `from` at one place, with `to` there.
std::string Changed(const std::string& from, const std::string& to) {
  std::string config = ConfigOf("bert");
  const size_t at = config.find(from);
  SWIZZLE_CHECK(at != std::string::npos);
  return config.replace(at, from.size(), to);
}

TEST(Checkpoint, TakesTheKindFromTensorsWhereTheConfigurationIsSilent) {
  const std::string config =
      R"({"hidden_size":8,"num_attention_heads":2,"num_hidden_layers":2,"max_position_embeddings":10})";
  EXPECT_THAT(Make(TensorsOf("bert"), config), IsError(kInvalid, "it lacks the field model_type"));
  TensorMap prefixed;
  for (auto& [name, tensor] : TensorsOf("bert")) prefixed.emplace("bert." + name, tensor);
  const auto graph = Make(prefixed, config);
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(graph->inputs.size(), 3u);
}

// Whoever reads words from narrower tables makes them wide by a layer of its own.
TEST(Checkpoint, ElectraProjectsItsEmbeddings) {
  TensorMap tensors;
  for (auto& [name, tensor] : TensorsOf("bert")) {
    if (name.starts_with("pooler.")) continue;
    Tensor taken = tensor;
    if (name.starts_with("embeddings.")) {
      taken.shape.back() = 4;
      taken.bytes.resize(static_cast<size_t>(*ElementCount(taken.shape)) * sizeof(float));
    }
    tensors.emplace("electra." + name, taken);
  }
  tensors.emplace("electra.embeddings_project.weight", Tensor::Floats({8, 4}, std::vector<float>(32, 0.5f)));
  tensors.emplace("electra.embeddings_project.bias", Tensor::Floats({8}, std::vector<float>(8, 0.25f)));
  tensors.emplace("discriminator_predictions.dense.bias", Tensor::Floats({8}, std::vector<float>(8)));
  const std::string config = Changed(R"("model_type": "bert")", R"("model_type": "electra", "embedding_size": 4)");
  const auto graph = Make(tensors, config);
  ASSERT_THAT(graph, IsOk());
  const auto has = [&](const std::string& name) {
    return std::ranges::any_of(graph->nodes, [&](const Node& node) { return node.name == name; });
  };
  EXPECT_TRUE(has("embeddings_project/MatMul"));
  EXPECT_EQ(graph->outputs.size(), 1u);
  tensors.erase("electra.embeddings_project.bias");
  EXPECT_THAT(Make(tensors, config), IsError(kInvalid, "lacks the tensor 'embeddings_project.bias'"));
}

TEST(Checkpoint, EveryActivationRuns) {
  const std::pair<const char*, std::function<double(double)>> activations[] = {
      {"gelu_10", [](double x) { return std::clamp(x / 2 * (1 + std::erf(x / std::sqrt(2.0))), -10.0, 10.0); }},
      {"gelu_accurate",
       [](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
      {"quick_gelu", [](double x) { return x / (1 + std::exp(-1.702 * x)); }},
      {"silu", [](double x) { return x / (1 + std::exp(-x)); }},
      {"swish", [](double x) { return x / (1 + std::exp(-x)); }},
      {"mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
      {"relu2", [](double x) { return x > 0 ? x * x : 0; }},
      {"relu6", [](double x) { return std::clamp(x, 0.0, 6.0); }},
      {"leaky_relu", [](double x) { return x > 0 ? x : 0.01 * x; }},
      {"tanh", [](double x) { return std::tanh(x); }},
      {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"linear", [](double x) { return x; }},
  };
  const std::string inner = "encoder.layer.0.intermediate.dense/Add_output";
  const std::string outer = "encoder.layer.0.output.dense/MatMul_output";
  const TensorMap expected = ExpectedOf("bert");
  TensorMap tensors = TensorsOf("bert");
  // The second layer of the perceptron adds up what the activations are.
  const std::string weight = "encoder.layer.0.output.dense.weight";
  for (float& value : tensors.at(weight).floats()) value = 1.0f;
  for (const auto& [name, function] : activations) {
    auto graph = Make(tensors, Changed(R"("hidden_act": "gelu")", Concat(R"("hidden_act": ")", name, "\"")));
    ASSERT_THAT(graph, IsOk()) << name;
    graph->outputs.clear();
    for (size_t i = 0; i < graph->values.size(); ++i) {
      const std::string& value = graph->values[i].name;
      if (value == inner || value == outer) graph->outputs.push_back({value, static_cast<int>(i)});
    }
    ASSERT_EQ(graph->outputs.size(), 2u);
    const auto program = interpreter::Program::Make(*std::move(graph));
    ASSERT_THAT(program, IsOk()) << name;
    const auto outputs = testing::Run(**program, expected);
    ASSERT_THAT(outputs, IsOk()) << name;
    const auto before = outputs->at(inner).floats(), after = outputs->at(outer).floats();
    const size_t width = before.size() * 8 / after.size();
    for (size_t token = 0; token < before.size() / width; ++token) {
      double sum = 0;
      for (size_t i = 0; i < width; ++i) sum += function(before[token * width + i]);
      EXPECT_NEAR(after[token * 8], sum, 1e-4 * (1 + std::abs(sum))) << name;
    }
  }
}

TEST(Checkpoint, LeavesOutHeadsForTasksAndAnAbsentPooler) {
  TensorMap tensors = TensorsOf("bert");
  tensors.emplace("classifier.weight", Tensor::Floats({1}, std::vector<float>{1}));
  tensors.erase("pooler.dense.weight");
  tensors.erase("pooler.dense.bias");
  const auto graph = Make(tensors);
  ASSERT_THAT(graph, IsOk());
  ASSERT_EQ(graph->outputs.size(), 1u);
  EXPECT_EQ(graph->outputs[0].name, "last_hidden_state");
}

TEST(Checkpoint, RefusesOperatorsThatNobodyRuns) {
  const auto none = [](std::string_view, std::string_view op) -> const OperatorSpec* {
    return op == "Erf" ? nullptr : FindInterpretedOperator("", op);
  };
  EXPECT_THAT(
      MakeCheckpointGraph(ConfigOf("bert"), TensorsOf("bert"), {.find_operator = none}),
      IsError(kUnsupported, "operator Erf (opset 17, node 'encoder.layer.0.intermediate.activation/Erf') is not"));
}

struct Fault {
  const char* name;
  std::function<void(TensorMap&)> spoil;
  const char* message;
  StatusCode code = kInvalid;
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

Tensor Zeros(Shape shape) {
  const int64_t count = *ElementCount(shape);
  return Tensor::Floats(std::move(shape), std::vector<float>(static_cast<size_t>(count)));
}

Fault With(const char* name, const std::string& key, Tensor tensor, const char* message, StatusCode code = kInvalid) {
  return {name, [=](TensorMap& tensors) { tensors[key] = tensor; }, message, code};
}

Fault Without(const char* name, const std::string& key, const char* message) {
  return {name, [=](TensorMap& tensors) { tensors.erase(key); }, message};
}

class CheckpointFaultTest : public ::testing::TestWithParam<Fault> {};

TEST_P(CheckpointFaultTest, IsRefused) {
  TensorMap tensors = TensorsOf("bert");
  GetParam().spoil(tensors);
  EXPECT_THAT(Make(tensors), IsError(GetParam().code, GetParam().message));
}

const std::string kLayer = "encoder.layer.0.";

const Fault kFaults[] = {
    Without("NoWords", "embeddings.word_embeddings.weight", "lacks the tensor 'embeddings.word_embeddings.weight'"),
    Without("NoTypes", "embeddings.token_type_embeddings.weight", "lacks the tensor 'embeddings.token_type"),
    Without("NoBias", kLayer + "attention.self.key.bias", "lacks the tensor 'encoder.layer.0.attention.self.key.bias'"),
    Without("NoPoolerBias", "pooler.dense.bias", "lacks the tensor 'pooler.dense.bias'"),
    With("WordsNarrow", "embeddings.word_embeddings.weight", Zeros({20, 7}), "has the shape [20,7]; it must be [-1,8]"),
    With("PositionsFew", "embeddings.position_embeddings.weight", Zeros({9, 8}), "it must be [10,8]"),
    With("NormLong", "embeddings.LayerNorm.weight", Zeros({9}), "'embeddings.LayerNorm.weight' has the shape [9]"),
    With("QueryOfHalfAHead", kLayer + "attention.self.query.weight", Zeros({6, 8}), "it must be [6]"),
    {"HalfAHead",
     [](TensorMap& tensors) {
       tensors[kLayer + "attention.self.query.weight"] = Zeros({6, 8});
       tensors[kLayer + "attention.self.query.bias"] = Zeros({6});
     },
     "query.weight' has 6 rows, which are no whole heads of 4"},
    With("KeyUnlikeQuery", kLayer + "attention.self.key.weight", Zeros({4, 8}), "key.weight' has the shape [4,8]; it"),
    With("OutputWide", kLayer + "attention.output.dense.weight", Zeros({8, 4}),
         "has the shape [8,4]; it must be [8,8]"),
    With("InnerUnlikeOuter", kLayer + "output.dense.weight", Zeros({8, 11}), "has the shape [8,11]; it must be [8,12]"),
    With("Rank", kLayer + "output.dense.weight", Zeros({96}), "has the shape [96]"),
    With("NoRowsLeft", kLayer + "intermediate.dense.weight", Zeros({0, 8}), "have lost all their heads or rows",
         kUnsupported),
    With("Whole", kLayer + "output.dense.bias", Tensor::Int64s({8}, std::vector<int64_t>(8)),
         "the tensor 'encoder.layer.0.output.dense.bias' is INT64", kUnsupported),
    With("OneLayerMore", "encoder.layer.2.output.dense.bias", Zeros({8}),
         "has the tensor 'encoder.layer.2.output.dense.bias', which is of no part"),
    With("Scales", kLayer + "output.dense.weight_scale", Zeros({1}), "which is of no part of the encoder"),
    With("Compressed", kLayer + "x.bitmask", Zeros({1}), "but config.json has no sparsity_config that says so"),
};

INSTANTIATE_TEST_SUITE_P(Faults, CheckpointFaultTest, ::testing::ValuesIn(kFaults),
                         [](const auto& fault) { return std::string(fault.param.name); });

class CheckpointFilesTest : public ::testing::Test {
 protected:
  void Copy(const std::string& name) const { fs::copy_file(Shipped("bert") / name, folder_ / name); }

  TemporaryFolder folder_;
};

TEST_F(CheckpointFilesTest, ACheckpointIsAFolderAFileOrAnIndex) {
  for (const char* name : {"a.safetensors", "a/model.safetensors.index.json", "x.safetensors.index.json"}) {
    EXPECT_TRUE(IsCheckpoint(name)) << name;
  }
  fs::create_directory(folder_ / "model.onnx");
  for (const fs::path& path : {folder_ / "model.onnx", folder_ / "none", fs::path("index.json"), fs::path("m.onnx")}) {
    EXPECT_FALSE(IsCheckpoint(path)) << path;
  }
  EXPECT_TRUE(IsCheckpoint(folder_.path()));
}

TEST_F(CheckpointFilesTest, NamesTheFileThatIsWrong) {
  const auto read = [&] { return ReadCheckpoint(folder_.path(), kAnyOperator); };
  EXPECT_THAT(read(), IsError(StatusCode::kNotFound, "there is neither model.safetensors nor model.safetensors.index"));
  Copy("model.safetensors");
  EXPECT_THAT(read(), IsError(StatusCode::kNotFound, "config.json: there is no such file"));
  std::ofstream(folder_ / "config.json") << R"({"model_type":"gpt2"})";
  EXPECT_THAT(read(), IsError(kUnsupported, "config.json: its model_type is \"gpt2\""));
  fs::remove(folder_ / "config.json");
  Copy("config.json");
  EXPECT_THAT(read(), IsOk());
  EXPECT_THAT(ReadCheckpoint(folder_ / "model.safetensors", kAnyOperator), IsOk());
  TensorMap tensors = TensorsOf("bert");
  tensors.erase("embeddings.LayerNorm.bias");
  WriteBytes(folder_ / "model.safetensors", FormatSafetensors(tensors));
  EXPECT_THAT(read(),
              IsError(kInvalid, "model.safetensors: the checkpoint lacks the tensor 'embeddings.LayerNorm.bias'"));
  std::ofstream(folder_ / "model.safetensors.index.json") << "{}";
  EXPECT_THAT(read(), IsError(kInvalid, "both model.safetensors and model.safetensors.index.json; keep one"));
}

TEST_F(CheckpointFilesTest, LoadingFailsAsReadingDoes) {
  Copy("config.json");
  fs::copy_file(Shipped("bert") / "model.safetensors", folder_ / "m.safetensors");
  EXPECT_THAT(LoadRunnableModel(folder_ / "m.safetensors"), IsOk());
  fs::resize_file(folder_ / "m.safetensors", 100);
  EXPECT_THAT(LoadRunnableModel(folder_ / "m.safetensors"), IsError(kInvalid, "m.safetensors: the file is truncated"));
  EXPECT_THAT(LoadModel(folder_ / "none.safetensors"), IsError(StatusCode::kNotFound, "none.safetensors"));
}

}  // namespace
}  // namespace swizzle
