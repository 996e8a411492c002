#include "server/rpc/wire_convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace swizzle {
namespace {

using inference::ModelInferRequest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Instant kNow = Instant() + absl::Seconds(1'000'000);

// Model M: X FP32 [-1,4] and N INT64 [2] to Y FP32 [4] and Z BYTES [-1], in batches of up to 8.
ModelSpec BatchedSpec() {
  ModelSpec spec;
  spec.name = "M";
  spec.version = 3;
  spec.max_batch_size = 8;
  spec.inputs = {{"X", DType::kFloat32, {4}}, {"N", DType::kInt64, {2}}};
  spec.outputs = {{"Y", DType::kFloat32, {4}}, {"Z", DType::kString, {-1}}};
  return spec;
}

// A model with the one input X, exact shapes.
ModelSpec UnbatchedSpec(DType dtype, Shape dims) {
  ModelSpec spec;
  spec.name = "M";
  spec.inputs = {{"X", dtype, std::move(dims)}};
  spec.outputs = {{"Y", dtype, {}}};
  return spec;
}

ModelInferRequest::InferInputTensor& AddInput(ModelInferRequest& message, const std::string& name,
                                              const std::string& datatype, const Shape& shape) {
  auto& input = *message.add_inputs();
  input.set_name(name);
  input.set_datatype(datatype);
  input.mutable_shape()->Add(shape.begin(), shape.end());
  return input;
}

void AddRaw(ModelInferRequest& message, const std::string& name, const std::string& datatype, const Shape& shape,
            size_t bytes) {
  AddInput(message, name, datatype, shape);
  message.add_raw_input_contents(std::string(bytes, 'a'));
}

// A good request to BatchedSpec(), two rows.
ModelInferRequest GoodRequest() {
  ModelInferRequest message;
  AddRaw(message, "X", "FP32", {2, 4}, 32);
  AddRaw(message, "N", "INT64", {2, 2}, 32);
  return message;
}

// A request to UnbatchedSpec() with one raw input.
ModelInferRequest RawRequest(const std::string& datatype, const Shape& shape, const std::string& bytes) {
  ModelInferRequest message;
  AddInput(message, "X", datatype, shape);
  message.add_raw_input_contents(bytes);
  return message;
}

std::string ErrorOf(const ModelInferRequest& message, const ModelSpec& spec = BatchedSpec()) {
  const auto decoded = DecodeInfer(message, spec, kNow);
  EXPECT_EQ(decoded.status().code(), StatusCode::kInvalidArgument);
  return std::string(decoded.status().message());
}

std::string Bytes(const TensorView& view) {
  return std::string(reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size());
}

template <typename T>
std::vector<T> Elements(const TensorView& view) {
  std::vector<T> elements(view.bytes.size() / sizeof(T));
  std::memcpy(elements.data(), view.bytes.data(), view.bytes.size());
  return elements;
}

TEST(DecodeInfer, RawInputsAreViewsIntoTheMessageInTheModelsOrder) {
  ModelInferRequest message;
  AddRaw(message, "N", "INT64", {2, 2}, 32);
  AddRaw(message, "X", "FP32", {2, 4}, 32);
  const auto decoded = DecodeInfer(message, BatchedSpec(), kNow);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const Request& request = decoded->request;
  EXPECT_EQ(request.rows, 2);
  EXPECT_EQ(request.deadline, Instant::InfiniteFuture());
  EXPECT_EQ(request.owner, nullptr);
  ASSERT_EQ(request.inputs.size(), 2u);
  EXPECT_EQ(request.inputs[0].dtype, DType::kFloat32);
  EXPECT_THAT(request.inputs[0].shape, ElementsAre(2, 4));
  EXPECT_EQ(static_cast<const void*>(request.inputs[0].bytes.data()), message.raw_input_contents(1).data());
  EXPECT_EQ(static_cast<const void*>(request.inputs[1].bytes.data()), message.raw_input_contents(0).data());
  EXPECT_THAT(decoded->outputs, ElementsAre(RequestedOutput{0}, RequestedOutput{1}));
}

TEST(DecodeInfer, SizesAreCheckedAndBothAreNamed) {
  ModelInferRequest message = GoodRequest();
  message.set_raw_input_contents(0, std::string(40, 'a'));
  EXPECT_EQ(ErrorOf(message), "input 'X' of model 'M' has 40 bytes; FP32 [2,4] needs 32");
}

TEST(DecodeInfer, OneRawContentForEachInput) {
  ModelInferRequest message = GoodRequest();
  message.mutable_raw_input_contents()->RemoveLast();
  EXPECT_EQ(ErrorOf(message),
            "the request to model 'M' has 2 inputs and 1 raw_input_contents; give one for each input");
}

TEST(DecodeInfer, RawAndTypedContentsExcludeEachOther) {
  ModelInferRequest message = GoodRequest();
  message.mutable_inputs(1)->mutable_contents()->add_int64_contents(1);
  EXPECT_EQ(ErrorOf(message),
            "input 'N' of model 'M' has typed contents in a request with raw_input_contents; use one or the other");
  message.mutable_inputs(1)->mutable_contents()->Clear();
  EXPECT_TRUE(DecodeInfer(message, BatchedSpec(), kNow).ok()) << "an empty contents message is none";
}

TEST(DecodeInfer, InputsMustBeTheModels) {
  ModelInferRequest unknown = GoodRequest();
  unknown.mutable_inputs(0)->set_name("Q");
  EXPECT_EQ(ErrorOf(unknown), "model 'M' has no input 'Q'; it has 'X', 'N'");

  ModelInferRequest twice = GoodRequest();
  *twice.mutable_inputs(1) = twice.inputs(0);
  EXPECT_EQ(ErrorOf(twice), "input 'X' of model 'M' is there twice");

  ModelInferRequest missing;
  AddRaw(missing, "X", "FP32", {1, 4}, 16);
  EXPECT_EQ(ErrorOf(missing), "input 'N' of model 'M' is missing");
  EXPECT_EQ(ErrorOf(ModelInferRequest()), "input 'X' of model 'M' is missing");
}

TEST(DecodeInfer, LongNamesAreCutInMessages) {
  ModelInferRequest message = GoodRequest();
  message.mutable_inputs(0)->set_name(std::string(1'000'000, 'q'));
  EXPECT_EQ(ErrorOf(message), "model 'M' has no input '" + std::string(128, 'q') + "...'; it has 'X', 'N'");
}

TEST(DecodeInfer, ControlCharactersAreMaskedInMessages) {
  constexpr char kNamed[] = "a\x1b[2J\r\nb", kMasked[] = "'a?[2J??b'";
  ModelInferRequest input = GoodRequest();
  input.mutable_inputs(0)->set_name(kNamed);
  EXPECT_EQ(ErrorOf(input), Concat("model 'M' has no input ", kMasked, "; it has 'X', 'N'"));
  ModelInferRequest datatype = GoodRequest();
  datatype.mutable_inputs(0)->set_datatype(kNamed);
  EXPECT_EQ(ErrorOf(datatype), Concat("input 'X' of model 'M' has datatype ", kMasked, "; FP32 is expected"));
  ModelInferRequest output = GoodRequest();
  output.add_outputs()->set_name(kNamed);
  EXPECT_EQ(ErrorOf(output), Concat("model 'M' has no output ", kMasked, "; it has 'Y', 'Z'"));
  ModelInferRequest parameter = GoodRequest();
  (*parameter.mutable_parameters())["triton_\n"].set_int64_param(1);
  EXPECT_EQ(ErrorOf(parameter), "parameter 'triton_?' is not known");
}

TEST(DecodeInfer, DatatypesMustMatch) {
  for (const std::string datatype : {"FP16", "float", "", "fp32"}) {
    ModelInferRequest message = GoodRequest();
    message.mutable_inputs(0)->set_datatype(datatype);
    EXPECT_EQ(ErrorOf(message), "input 'X' of model 'M' has datatype '" + datatype + "'; FP32 is expected");
  }
}

TEST(DecodeInfer, ShapesMustMatch) {
  const struct {
    Shape shape;
    const char* error;
  } cases[] = {
      {{4}, "input 'X' of model 'M' has shape [4]; [-1,4] is expected"},
      {{2, 5}, "input 'X' of model 'M' has shape [2,5]; [-1,4] is expected"},
      {{2, -1}, "input 'X' of model 'M' has shape [2,-1]; [-1,4] is expected"},
      {{2, 4, 1}, "input 'X' of model 'M' has shape [2,4,1]; [-1,4] is expected"},
      {{}, "input 'X' of model 'M' has shape []; [-1,4] is expected"},
      {{0, 4}, "input 'X' of model 'M' has a batch of 0; it must be from 1 to 8"},
      {{9, 4}, "input 'X' of model 'M' has a batch of 9; it must be from 1 to 8"},
      {{-3, 4}, "input 'X' of model 'M' has a batch of -3; it must be from 1 to 8"},
      {{1, 4}, "input 'N' of model 'M' has a batch of 2, and another input one of 1"},
      {Shape(20, 7), "input 'X' of model 'M' has shape [7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7] and more; [-1,4] is expected"},
  };
  for (const auto& test : cases) {
    ModelInferRequest message = GoodRequest();
    message.mutable_inputs(0)->mutable_shape()->Assign(test.shape.begin(), test.shape.end());
    if (test.shape == Shape{1, 4}) message.set_raw_input_contents(0, std::string(16, 'a'));
    EXPECT_EQ(ErrorOf(message), test.error);
  }
}

TEST(DecodeInfer, ElementCountsThatOverflowAreRefused) {
  const ModelSpec spec = UnbatchedSpec(DType::kFloat32, {-1, -1});
  constexpr int64_t kLarge = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(ErrorOf(RawRequest("FP32", {kLarge, 2}, "abcd"), spec), HasSubstr("more elements than fit in 64 bits"));
  EXPECT_EQ(ErrorOf(RawRequest("FP32", {kLarge, 1}, "abcd"), spec),
            "input 'X' of model 'M' has shape [9223372036854775807,1], which no message can hold");
}

TEST(DecodeInfer, FreeDimensionsTakeAnySizeZeroIncluded) {
  const ModelSpec spec = UnbatchedSpec(DType::kFloat32, {-1});
  for (const int64_t size : {0, 1, 5}) {
    const ModelInferRequest message = RawRequest("FP32", {size}, std::string(static_cast<size_t>(size) * 4, 'a'));
    EXPECT_TRUE(DecodeInfer(message, spec, kNow).ok()) << size;
  }
}

TEST(DecodeInfer, HalfPrecisionIsRawOnly) {
  for (const auto& [name, dtype] : {std::pair("FP16", DType::kFloat16), std::pair("BF16", DType::kBFloat16)}) {
    const ModelSpec spec = UnbatchedSpec(dtype, {2});
    EXPECT_TRUE(DecodeInfer(RawRequest(name, {2}, "abcd"), spec, kNow).ok());
    ModelInferRequest typed;
    AddInput(typed, "X", name, {2}).mutable_contents()->add_fp32_contents(1);
    EXPECT_EQ(ErrorOf(typed, spec), std::string("input 'X' of model 'M' is ") + name +
                                        ", which has no typed contents; use raw_input_contents");
  }
}

TEST(DecodeInfer, RawStringsFillTheirBytesExactly) {
  const ModelSpec spec = UnbatchedSpec(DType::kString, {2});
  const std::string good("\x02\0\0\0hi\0\0\0\0", 10);
  const ModelInferRequest message = RawRequest("BYTES", {2}, good);  // which the inputs are views into
  const auto decoded = DecodeInfer(message, spec, kNow);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(Bytes(decoded->request.inputs[0]), good);

  const std::string bad[] = {"", good.substr(0, 9), good + "x", good.substr(0, 6), std::string("\xff\xff\xff\xff", 4)};
  for (const std::string& bytes : bad) {
    EXPECT_EQ(ErrorOf(RawRequest("BYTES", {2}, bytes), spec),
              Concat("input 'X' of model 'M' has ", bytes.size(),
                     " bytes that are not the 2 (uint32 length, bytes) elements of BYTES [2]"));
  }
}

TEST(DecodeInfer, AHugeStringCountCostsNothing) {
  const ModelSpec spec = UnbatchedSpec(DType::kString, {-1});
  EXPECT_THAT(ErrorOf(RawRequest("BYTES", {int64_t{1} << 62}, "abc"), spec), HasSubstr("that are not the"));
}

TEST(DecodeInfer, TypedContentsOfTheTensorsOwnTypeAreUsedInPlace) {
  ModelInferRequest message;
  auto& contents = *AddInput(message, "X", "FP32", {2}).mutable_contents();
  contents.add_fp32_contents(1.5f);
  contents.add_fp32_contents(-2.0f);
  const auto decoded = DecodeInfer(message, UnbatchedSpec(DType::kFloat32, {2}), kNow);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(static_cast<const void*>(decoded->request.inputs[0].bytes.data()),
            message.inputs(0).contents().fp32_contents().data());
  EXPECT_THAT(Elements<float>(decoded->request.inputs[0]), ElementsAre(1.5f, -2.0f));
}

// Adds `values` with `add` to the contents of a one-input request and gives its elements back.
template <typename T, typename Add>
std::vector<T> RoundTrip(DType dtype, const std::vector<T>& values, Add add) {
  ModelInferRequest message;
  const Shape shape = {static_cast<int64_t>(values.size())};
  auto& contents = *AddInput(message, "X", std::string(DTypeName(dtype)), shape).mutable_contents();
  for (const T value : values) add(contents, value);
  const auto decoded = DecodeInfer(message, UnbatchedSpec(dtype, shape), kNow);
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return decoded.ok() ? Elements<T>(decoded->request.inputs[0]) : std::vector<T>();
}

TEST(DecodeInfer, EveryTypedContentsComesThrough) {
  using Contents = inference::InferTensorContents;
  const auto check = [](DType dtype, const auto& sent, auto add) { EXPECT_EQ(RoundTrip(dtype, sent, add), sent); };
  check(DType::kInt8, std::vector<int8_t>{-128, 127}, [](Contents& c, int8_t v) { c.add_int_contents(v); });
  check(DType::kInt16, std::vector<int16_t>{-32768, 32767}, [](Contents& c, int16_t v) { c.add_int_contents(v); });
  check(DType::kInt32, std::vector<int32_t>{-5, 1 << 30}, [](Contents& c, int32_t v) { c.add_int_contents(v); });
  check(DType::kInt64, std::vector<int64_t>{-5, int64_t{1} << 60},
        [](Contents& c, int64_t v) { c.add_int64_contents(v); });
  check(DType::kUint8, std::vector<uint8_t>{0, 255}, [](Contents& c, uint8_t v) { c.add_uint_contents(v); });
  check(DType::kUint16, std::vector<uint16_t>{0, 65535}, [](Contents& c, uint16_t v) { c.add_uint_contents(v); });
  check(DType::kUint32, std::vector<uint32_t>{0, 4'000'000'000},
        [](Contents& c, uint32_t v) { c.add_uint_contents(v); });
  check(DType::kUint64, std::vector<uint64_t>{0, uint64_t{1} << 63},
        [](Contents& c, uint64_t v) { c.add_uint64_contents(v); });
  check(DType::kFloat64, std::vector<double>{0.25, -1e300}, [](Contents& c, double v) { c.add_fp64_contents(v); });
  check(DType::kBool, std::vector<uint8_t>{1, 0, 1}, [](Contents& c, uint8_t v) { c.add_bool_contents(v != 0); });
}

TEST(DecodeInfer, TypedStringsAreSerialized) {
  ModelInferRequest message;
  auto& contents = *AddInput(message, "X", "BYTES", {2}).mutable_contents();
  contents.add_bytes_contents("hi");
  contents.add_bytes_contents("");
  auto decoded = DecodeInfer(message, UnbatchedSpec(DType::kString, {2}), kNow);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const DecodedInfer moved = *std::move(decoded);
  EXPECT_EQ(Bytes(moved.request.inputs[0]), std::string("\x02\0\0\0hi\0\0\0\0", 10));
  EXPECT_NE(moved.request.owner, nullptr);
}

TEST(DecodeInfer, TypedElementsOutOfRangeAreRefused) {
  ModelInferRequest message;
  AddInput(message, "X", "INT8", {1}).mutable_contents()->add_int_contents(128);
  EXPECT_EQ(ErrorOf(message, UnbatchedSpec(DType::kInt8, {1})),
            "input 'X' of model 'M' has an element in int_contents that is out of the range of INT8");
}

TEST(DecodeInfer, TypedElementsAreCountedInTheRightField) {
  ModelInferRequest few;
  AddInput(few, "X", "FP32", {2}).mutable_contents()->add_fp32_contents(1);
  EXPECT_EQ(ErrorOf(few, UnbatchedSpec(DType::kFloat32, {2})),
            "input 'X' of model 'M' has 1 elements in fp32_contents and 0 in other fields; FP32 [2] needs 2 in "
            "fp32_contents");
  ModelInferRequest wrong_field;
  AddInput(wrong_field, "X", "FP32", {1}).mutable_contents()->add_fp64_contents(1);
  EXPECT_THAT(ErrorOf(wrong_field, UnbatchedSpec(DType::kFloat32, {1})),
              HasSubstr("has 0 elements in fp32_contents and 1 in other fields"));
  ModelInferRequest none;
  AddInput(none, "X", "FP32", {1});
  EXPECT_THAT(ErrorOf(none, UnbatchedSpec(DType::kFloat32, {1})), HasSubstr("needs 1 in fp32_contents"));
}

TEST(DecodeInfer, AnInputWithADefaultMayBeLeftOut) {
  ModelSpec spec = BatchedSpec();
  InputDefault value{{2}, 16, {}};
  for (int i = 0; i < 16 * 8; ++i) value.bytes.push_back(static_cast<std::byte>(i % 16));
  spec.inputs[1].default_value = std::make_shared<const InputDefault>(std::move(value));
  ModelInferRequest message;
  AddInput(message, "X", "FP32", {2, 4});
  message.add_raw_input_contents(std::string(32, 'x'));
  const auto decoded = DecodeInfer(message, spec, kNow);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const TensorView& n = decoded->request.inputs[1];
  EXPECT_EQ(n.dtype, DType::kInt64);
  EXPECT_THAT(n.shape, ElementsAre(2, 2));
  ASSERT_EQ(n.bytes.size(), 32u);
  EXPECT_EQ(n.bytes[17], std::byte{1});

  spec.inputs[1].default_value = nullptr;
  EXPECT_EQ(ErrorOf(message, spec), "input 'N' of model 'M' is missing");
}

TEST(DecodeInfer, OutputsAreAsAskedFor) {
  ModelInferRequest message = GoodRequest();
  message.add_outputs()->set_name("Z");
  message.add_outputs()->set_name("Y");
  const auto decoded = DecodeInfer(message, BatchedSpec(), kNow);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_THAT(decoded->outputs, ElementsAre(RequestedOutput{1}, RequestedOutput{0}));

  message.add_outputs()->set_name("Y");
  EXPECT_EQ(ErrorOf(message), "output 'Y' of model 'M' is asked for twice");
  message.mutable_outputs(2)->set_name("W");
  EXPECT_EQ(ErrorOf(message), "model 'M' has no output 'W'; it has 'Y', 'Z'");
}

TEST(DecodeInfer, TimeoutSetsADeadline) {
  ModelInferRequest message = GoodRequest();
  auto& timeout = (*message.mutable_parameters())["timeout"];
  timeout.set_int64_param(1500);
  EXPECT_EQ(DecodeInfer(message, BatchedSpec(), kNow)->request.deadline, kNow + absl::Microseconds(1500));
  timeout.set_int64_param(0);
  EXPECT_EQ(DecodeInfer(message, BatchedSpec(), kNow)->request.deadline, Instant::InfiniteFuture());
  timeout.set_uint64_param(std::numeric_limits<uint64_t>::max());
  EXPECT_GT(DecodeInfer(message, BatchedSpec(), kNow)->request.deadline, kNow + absl::Hours(24));
  timeout.set_int64_param(-1);
  EXPECT_EQ(ErrorOf(message), "parameter 'timeout' must be a non-negative integer");
  timeout.set_string_param("1");
  EXPECT_EQ(ErrorOf(message), "parameter 'timeout' must be a non-negative integer");
}

TEST(DecodeInfer, TimeoutIsIgnoredWhereTheModelDoesNotAllowIt) {
  ModelSpec spec = BatchedSpec();
  spec.queue_policy.allow_timeout_override = false;
  ModelInferRequest message = GoodRequest();
  (*message.mutable_parameters())["timeout"].set_int64_param(1500);
  EXPECT_EQ(DecodeInfer(message, spec, kNow)->request.deadline, Instant::InfiniteFuture());
}

TEST(DecodeInfer, ParametersThatWouldChangeTheResultAreRefused) {
  ModelInferRequest reserved = GoodRequest();
  (*reserved.mutable_parameters())["triton_else"].set_bool_param(true);
  EXPECT_EQ(ErrorOf(reserved), "parameter 'triton_else' is not known");

  ModelInferRequest marked = GoodRequest();
  (*marked.mutable_parameters())["triton_enable_empty_final_response"].set_string_param("yes");
  EXPECT_EQ(ErrorOf(marked), "parameter 'triton_enable_empty_final_response' must be true or false");

  ModelInferRequest shared = GoodRequest();
  (*shared.mutable_inputs(0)->mutable_parameters())["shared_memory_region"].set_string_param("r");
  EXPECT_EQ(
      ErrorOf(shared),
      "parameter 'shared_memory_region' of 'X' is not supported: this server takes no shared memory; send tensors "
      "in messages");
}

TEST(DecodeInfer, AClientsOwnParametersPass) {
  ModelInferRequest message = GoodRequest();
  (*message.mutable_parameters())["trace_id"].set_string_param("abc");
  for (const std::string key : {"sequence_id", "sequence_start", "sequence_end"}) {
    (*message.mutable_parameters())[key].set_int64_param(1);
  }
  (*message.mutable_inputs(0)->mutable_parameters())["binary_data_size"].set_int64_param(32);
  EXPECT_TRUE(DecodeInfer(message, BatchedSpec(), kNow).ok());
}

TEST(EncodeInfer, WritesTheOutputsAskedForInTheirOrder) {
  ModelInferRequest message;
  message.set_id("request-7");
  Result result;
  result.outputs = {"yyyy", "zz"};
  result.shapes = {{2, 4}, {2, 1}};
  result.queue = absl::Microseconds(12);
  result.compute = absl::Microseconds(345);
  inference::ModelInferResponse response;
  const RequestedOutput outputs[] = {{1}, {0}};
  EncodeInfer(message, BatchedSpec(), outputs, std::move(result), response);

  EXPECT_EQ(response.model_name(), "M");
  EXPECT_EQ(response.model_version(), "3");
  EXPECT_EQ(response.id(), "request-7");
  EXPECT_EQ(response.parameters().at("swizzle_queue_us").int64_param(), 12);
  EXPECT_EQ(response.parameters().at("swizzle_compute_us").int64_param(), 345);
  ASSERT_EQ(response.outputs_size(), 2);
  EXPECT_EQ(response.outputs(0).name(), "Z");
  EXPECT_EQ(response.outputs(0).datatype(), "BYTES");
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 1));
  EXPECT_EQ(response.outputs(1).name(), "Y");
  EXPECT_FALSE(response.outputs(1).has_contents());
  EXPECT_THAT(response.raw_output_contents(), ElementsAre("zz", "yyyy"));
}

}  // namespace
}  // namespace swizzle
