#include "server/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "model_loader/packed/packed_writer.h"
#include "tests/support/network_builder.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/random_encoder.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace swizzle::engine {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

template <typename T>
std::vector<T> Elements(const Output& output) {
  std::vector<T> elements(output.data.size() / sizeof(T));
  if (!elements.empty()) std::memcpy(elements.data(), output.data.data(), output.data.size());
  return elements;
}

template <typename T>
std::span<const std::byte> BytesOf(const std::vector<T>& elements) {
  return std::as_bytes(std::span(elements));
}

// An input with memory of its own.
template <typename T>
struct Given {
  std::string name, datatype;
  std::vector<int64_t> shape;
  std::vector<T> elements;
  InputView View() const { return {name, datatype, shape, BytesOf(elements)}; }
};

Given<float> Image(int64_t rows, float first = 1) {
  Given<float> given{"x", "FP32", {rows, 2}, {}};
  for (int64_t i = 0; i < rows * 2; ++i) given.elements.push_back(first + static_cast<float>(i));
  return given;
}

class EngineTest : public ::testing::Test {
 protected:
  std::filesystem::path Write(const std::string& name, const OnnxBuilder& builder) const {
    const std::vector<std::byte> bytes = builder.Bytes();
    std::ofstream(folder_ / name).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
    return folder_ / name;
  }
  // y = x W, and z = relu(y): [rows, 2] to [rows, 3]. W counts from 1 to 6.
  std::filesystem::path Linear(int64_t rows = -1) const {
    OnnxBuilder builder;
    builder.Input("x", {rows, 2}).Counting("w", {2, 3}).Node("MatMul", {"x", "w"}, {"y"}).Output("y");
    return Write("linear.onnx", builder.Node("Relu", {"y"}, {"z"}).Output("z"));
  }
  // y = x + x, which no plan takes whole.
  std::filesystem::path Doubling(const Shape& shape) const {
    OnnxBuilder builder;
    return Write("doubling.onnx", builder.Input("x", shape).Node("Add", {"x", "x"}, {"y"}).Output("y"));
  }
  std::unique_ptr<Model> Open(const std::filesystem::path& file, Options options = {}) const {
    options.threads = 1;
    auto model = Model::Open(file, options);
    SWIZZLE_CHECK(model.ok());
    return *std::move(model);
  }

  const TemporaryFolder folder_;
};

TEST_F(EngineTest, SaysWhatAModelTakesAndGives) {
  const auto model = Open(Linear());
  EXPECT_EQ(model->name(), "linear");
  EXPECT_EQ(model->max_batch(), 64);
  ASSERT_THAT(model->inputs(), SizeIs(1));
  EXPECT_EQ(model->inputs()[0].name, "x");
  EXPECT_EQ(model->inputs()[0].datatype, "FP32");
  EXPECT_THAT(model->inputs()[0].shape, ElementsAre(-1, 2));
  EXPECT_FALSE(model->inputs()[0].optional);
  ASSERT_THAT(model->outputs(), SizeIs(2));
  EXPECT_THAT(model->outputs()[0].shape, ElementsAre(-1, 3));
  EXPECT_EQ(model->properties().at("swizzle_threads"), "1");
  EXPECT_TRUE(model->tuned());
}

TEST_F(EngineTest, RunsAPlannedModel) {
  const auto model = Open(Linear());
  const auto outputs = model->Run({Image(2).View()});
  ASSERT_THAT(outputs, IsOk());
  ASSERT_THAT(*outputs, SizeIs(2));
  EXPECT_EQ((*outputs)[0].name, "y");
  EXPECT_EQ((*outputs)[0].datatype, "FP32");
  EXPECT_THAT((*outputs)[0].shape, ElementsAre(2, 3));
  EXPECT_THAT(Elements<float>((*outputs)[0]), ElementsAre(9, 12, 15, 19, 26, 33));
}

TEST_F(EngineTest, GivesTheOutputsThatAreAskedFor) {
  const auto model = Open(Linear());
  const Given<float> image = Image(1, -2);
  const std::array inputs = {image.View()};
  const std::vector<std::string> names = {"z"};
  const auto outputs = model->Run(inputs, names);
  ASSERT_THAT(outputs, IsOk());
  ASSERT_THAT(*outputs, SizeIs(1));
  EXPECT_EQ((*outputs)[0].name, "z");
  const std::vector<std::string> unknown = {"z", "q"}, twice = {"z", "z"};
  EXPECT_THAT(model->Run(inputs, unknown),
              IsError(StatusCode::kInvalidArgument, "model 'linear' has no output 'q'; it has 'y', 'z'"));
  EXPECT_THAT(model->Run(inputs, twice),
              IsError(StatusCode::kInvalidArgument, "output 'z' of model 'linear' is asked"));
}

TEST_F(EngineTest, ReadsInputsThatAreNotAligned) {
  const auto model = Open(Linear());
  const Given<float> image = Image(2);
  std::vector<std::byte> shifted(1 + image.elements.size() * sizeof(float));
  std::memcpy(shifted.data() + 1, image.elements.data(), shifted.size() - 1);
  const auto outputs = model->Run({{"x", "FP32", image.shape, std::span(shifted).subspan(1)}});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_THAT(Elements<float>((*outputs)[0]), ElementsAre(9, 12, 15, 19, 26, 33));
}

TEST_F(EngineTest, RunsMoreRowsThanABatchInParts) {
  const auto model = Open(Linear(), {.max_batch = 4}), whole = Open(Linear(), {.max_batch = 64});
  EXPECT_EQ(model->max_batch(), 4);
  for (const int64_t rows : {4, 5, 11}) {
    const Given<float> image = Image(rows);
    const auto outputs = model->Run({image.View()}), expected = whole->Run({image.View()});
    ASSERT_THAT(outputs, IsOk());
    ASSERT_THAT(expected, IsOk());
    EXPECT_THAT((*outputs)[0].shape, ElementsAre(rows, 3));
    EXPECT_EQ((*outputs)[0].data, (*expected)[0].data);
    EXPECT_EQ((*outputs)[1].data, (*expected)[1].data);
  }
}

TEST_F(EngineTest, RunsModelsThatNoPlanTakesWhole) {
  const auto model = Open(Doubling({-1, -1}), {.max_batch = 2});
  EXPECT_EQ(model->properties().count("swizzle_fallback"), 1u);
  const Given<float> image = Image(5);
  const auto outputs = model->Run({image.View()});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_THAT((*outputs)[0].shape, ElementsAre(5, 2));
  EXPECT_THAT(Elements<float>((*outputs)[0]), ElementsAre(2, 4, 6, 8, 10, 12, 14, 16, 18, 20));
  const auto fixed = Open(Doubling({3, -1}));
  EXPECT_EQ(fixed->max_batch(), 0);
  EXPECT_THAT(fixed->Run({image.View()}), IsError(StatusCode::kInvalidArgument,
                                                  "input 'x' of model 'doubling' has shape [5,2]; [3,-1] is expected"));
  const Given<float> nothing{"x", "FP32", {200, 0}, {}};
  const auto none = model->Run({nothing.View()});
  ASSERT_THAT(none, IsOk());
  EXPECT_THAT((*none)[0].shape, ElementsAre(200, 0));
}

TEST_F(EngineTest, BadInputsAreNamed) {
  const auto model = Open(Linear());
  const auto expect = [&](const std::vector<InputView>& inputs, const std::string& message) {
    EXPECT_THAT(model->Run(inputs), IsError(StatusCode::kInvalidArgument, message));
  };
  const Given<float> image = Image(2);
  const InputView good = image.View();
  const std::array<int64_t, 2> wide = {2, 3};
  const std::array<int64_t, 2> negative = {-1, 2};
  const std::array<int64_t, 0> scalar = {};
  expect({}, "input 'x' of model 'linear' is missing");
  expect({good, good}, "input 'x' of model 'linear' is there twice");
  expect({{"a\nb", "FP32", image.shape, good.data}}, "model 'linear' has no input 'a?b'; it has 'x'");
  expect({{"x", "INT64", image.shape, good.data}},
         "input 'x' of model 'linear' has datatype 'INT64'; FP32 is expected");
  expect({{"x", "FP32", wide, good.data}}, "input 'x' of model 'linear' has shape [2,3]; [-1,2] is expected");
  expect({{"x", "FP32", negative, good.data}}, "input 'x' of model 'linear' has a batch of -1; it must be at least 1");
  expect({{"x", "FP32", scalar, good.data}}, "input 'x' of model 'linear' has shape []; [-1,2] is expected");
  expect({{"x", "FP32", image.shape, good.data.subspan(1)}},
         "input 'x' of model 'linear' has 15 bytes; FP32 [2,2] needs 16");
  const std::array<int64_t, 2> huge = {int64_t{1} << 62, 2};
  expect({{"x", "FP32", huge, good.data}}, "input 'x' of model 'linear'");
}

TEST_F(EngineTest, RunsEncodersWithinTheirTokens) {
  const auto file = folder_ / "encoder.swz";
  ASSERT_THAT(WritePacked(swizzle::testing::MakeRandomEncoder({.positions = 0}), file), IsOk());
  const auto model = Open(file);
  // Of 200 tokens each, 100 sequences are more than one batch's tokens, and than its rows.
  const int64_t rows = 100, length = 200;
  Given<int64_t> ids{"input_ids", "INT64", {rows, length}, {}}, mask{"attention_mask", "INT64", {rows, length}, {}};
  Given<int32_t> types{"token_type_ids", "INT32", {rows, length}, {}};
  for (int64_t i = 0; i < rows * length; ++i) {
    ids.elements.push_back(i % 50);
    mask.elements.push_back(i % length < 150 ? 1 : 0);
    types.elements.push_back(0);
  }
  const auto outputs = model->Run({ids.View(), mask.View(), types.View()});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_THAT((*outputs)[1].shape, ElementsAre(rows, 24));
  const auto row = [&](const auto& given, int64_t i) {
    auto one = given;
    one.shape[0] = 1;
    one.elements = {given.elements.begin() + i * length, given.elements.begin() + (i + 1) * length};
    return one;
  };
  const auto last_ids = row(ids, 99), last_mask = row(mask, 99);
  const auto last_types = row(types, 99);
  const auto alone = model->Run({last_types.View(), last_mask.View(), last_ids.View()});
  ASSERT_THAT(alone, IsOk());
  EXPECT_EQ((*alone)[1].data, (*outputs)[1].data.substr(99 * 24 * sizeof(float)));
  EXPECT_EQ((*alone)[0].data, (*outputs)[0].data.substr(99 * length * 24 * sizeof(float)));
  ids.elements.back() = 50;
  EXPECT_THAT(model->Run({ids.View(), mask.View(), types.View()}),
              IsError(StatusCode::kInvalidArgument, "in rows 64 to 99: input 'input_ids' of model 'encoder' holds 50"));
}

// More texts than are computed at once, and each alone.
TEST_F(EngineTest, EmbedsTexts) {
  for (const char* const name : {"config.json", "model.safetensors"}) {
    std::filesystem::copy_file(std::filesystem::path(SWIZZLE_SOURCE_DIR "/tests/testdata/checkpoints/bert") / name,
                               folder_ / name);
  }
  std::ofstream(folder_ / "vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n";
  const std::filesystem::path file = folder_ / "model.safetensors";
  const auto model = Open(file, {.max_batch = 2, .text = "embedding"});
  EXPECT_EQ(model->inputs()[0].datatype, "BYTES");
  EXPECT_EQ(model->outputs()[0].name, "embedding");
  const auto texts = [](const std::vector<std::string>& all) {
    Given<char> given{"text", "BYTES", {std::ssize(all), 1}, {}};
    for (const std::string& text : all) {
      const auto length = static_cast<uint32_t>(text.size());
      const auto* const bytes = reinterpret_cast<const char*>(&length);
      given.elements.insert(given.elements.end(), bytes, bytes + sizeof(length));
      given.elements.insert(given.elements.end(), text.begin(), text.end());
    }
    return given;
  };
  const std::vector<std::string> all = {"a b", "c", "a a a a", "b", ""};
  const auto given = texts(all);
  const auto together = model->Run({{given.View()}});
  ASSERT_THAT(together, IsOk());
  EXPECT_THAT((*together)[0].shape, ElementsAre(5, 8));
  const std::vector<float> vectors = Elements<float>((*together)[0]);
  for (size_t i = 0; i < all.size(); ++i) {
    const auto one = texts({all[i]});
    const auto alone = model->Run({{one.View()}});
    ASSERT_THAT(alone, IsOk());
    const std::vector<float> vector = Elements<float>((*alone)[0]);
    for (size_t k = 0; k < 8; ++k) EXPECT_NEAR(vector[k], vectors[i * 8 + k], 1e-5) << all[i];
  }
  EXPECT_THAT(Model::Open(file, {.text = "poem"}), IsError(StatusCode::kInvalidArgument, "option 'text' is 'poem'"));
}

TEST_F(EngineTest, OpeningSaysWhatIsWrong) {
  EXPECT_THAT(Model::Open(folder_ / "none.onnx"), IsError(StatusCode::kNotFound, "none.onnx"));
  std::ofstream(folder_ / "bad.onnx") << "no model";
  EXPECT_THAT(Model::Open(folder_ / "bad.onnx"), IsError(StatusCode::kInvalidArgument, "bad.onnx"));
  const auto file = Linear();
  const auto expect = [&](const Options& options, const std::string& message) {
    EXPECT_THAT(Model::Open(file, options), IsError(StatusCode::kInvalidArgument, message));
  };
  expect({.device = "tpu"}, "option 'device'");
  expect({.precision = "fp8"}, "option 'precision' is 'fp8'; it may be FP32");
  expect({.threads = -1}, "option 'threads' is -1; it may be 0 to 1024");
  expect({.concurrency = 0}, "option 'concurrency' is 0; it may be 1 to 1024");
  expect({.max_batch = 0}, "option 'max_batch' is 0; it may be 1 to 65536");
  expect({.tuning_budget = -absl::Seconds(1)}, "option 'tuning_budget' is -1s");
  std::ofstream(folder_ / "cache") << "no cache";
  expect({.tuning_cache = folder_ / "cache"}, "option 'tuning_cache'");
  EXPECT_THAT(Model::Open(file, {.precision = "fp16"}), IsError(StatusCode::kUnimplemented, "FP16"));
  EXPECT_THAT(Model::Open(file, {.precision = "bf16"}), IsOk());
}

TEST_F(EngineTest, InspectsAsTheToolDoes) {
  const auto model = Open(Linear());
  EXPECT_THAT(*model->Inspect(Format::kText), HasSubstr("linear.onnx"));
  EXPECT_THAT(*model->Inspect(Format::kJson), HasSubstr("\"layers\""));
  EXPECT_THAT(*model->Inspect(Format::kHtml), HasSubstr("<html"));
  EXPECT_THAT(*Open(Doubling({-1, -1}))->Inspect(Format::kText), HasSubstr("doubling.onnx"));
}

TEST_F(EngineTest, PrunesQuantisesAndPacks) {
  const auto file = Linear();
  const auto pruned = Prune({.model = file, .output = folder_ / "pruned.onnx", .sparsity = 0.5});
  ASSERT_THAT(pruned, IsOk());
  EXPECT_THAT(*pruned, HasSubstr("50.0 % after"));
  ASSERT_THAT(Pack({.model = folder_ / "pruned.onnx", .output = folder_ / "pruned.swz"}), IsOk());
  const auto model = Open(folder_ / "pruned.swz");
  const auto outputs = model->Run({Image(1).View()});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_THAT(Elements<float>((*outputs)[0]), ElementsAre(8, 10, 12));
  EXPECT_THAT(Prune({.model = file, .output = folder_ / "p.onnx", .sparsity = 2}),
              IsError(StatusCode::kInvalidArgument, "option 'sparsity': '2' is not from 0 to 1"));
}

TEST_F(EngineTest, MessagesNameOptionsAndNoFlags) {
  const auto file = Linear(), output = folder_ / "made.onnx";
  EXPECT_THAT(Prune({.model = file, .output = output, .sparsity = 0.5, .method = "least"}),
              IsError(StatusCode::kInvalidArgument, "option 'method': least not in {"));
  EXPECT_THAT(
      Prune({.model = file, .output = output, .sparsity = 0.5, .vector_rows = 32}),
      IsError(StatusCode::kInvalidArgument, "option 'vector_rows': does nothing with method=magnitude; it is for"));
  EXPECT_THAT(Pack({.model = file, .output = output}),
              IsError(StatusCode::kInvalidArgument, "option 'output': '" + output.string() + "' does not end in .swz"));
  EXPECT_THAT(Quantize({.model = file, .output = output}),
              IsError(StatusCode::kInvalidArgument, "needs option 'calibration'"));
  const auto all = Prune({.model = file, .output = output, .sparsity = 1});
  ASSERT_THAT(all, IsOk());
  EXPECT_THAT(*all,
              AllOf(HasSubstr("leave such layers out with option 'skip', or prune less"), Not(HasSubstr("--skip"))));
}

TEST_F(EngineTest, MessagesLeaveNamesOfFilesAlone) {
  const auto file = folder_ / "my--skip --outer" / "model.onnx";
  EXPECT_THAT(Prune({.model = file, .output = folder_ / "made.onnx", .sparsity = 0.5}),
              IsError(StatusCode::kNotFound, "my--skip --outer"));
}

TEST_F(EngineTest, VersionsAreTheProjects) {
  EXPECT_THAT(Version(), ::testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

}  // namespace
}  // namespace swizzle::engine
