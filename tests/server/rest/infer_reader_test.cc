#include "server/rest/infer_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "proto/grpc_service.pb.h"
#include "server/rpc/received_message.h"

namespace swizzle {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const HttpBody> BodyOf(const std::string& text) {
  auto body = std::make_shared<HttpBody>();
  body->bytes = std::make_unique<char[]>(text.size());
  std::memcpy(body->bytes.get(), text.data(), text.size());
  body->size = text.size();
  return body;
}

StatusOr<inference::ModelInferRequest> Read(const std::string& json, const std::string& tensors = "",
                                            int64_t most = 1 << 20, OutputForms* forms = nullptr) {
  SWIZZLE_ASSIGN_OR_RETURN(RestInferRequest read, ReadRestInfer(BodyOf(json + tensors), json.size(), "m", "2", most));
  inference::ModelInferRequest message;
  SWIZZLE_RETURN_IF_ERROR(Parse(ReceivedMessage(read.message), 1 << 30, "ModelInferRequest", message));
  if (forms != nullptr) *forms = read.forms;
  return message;
}

TEST(InferReaderTest, BecomesTheMessageThatGrpcWouldBring) {
  OutputForms forms;
  const auto message = Read(R"({"id": "i", "parameters": {"priority": 2, "binary_data_output": true, "x": -1.5},
    "inputs": [{"name": "a", "shape": [1, 2], "datatype": "INT16", "data": [[1, -2]]}],
    "outputs": [{"name": "y", "parameters": {"binary_data": false, "classification": 3}}, {"name": "z"}]})",
                            "", 1 << 20, &forms);
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->model_name(), "m");
  EXPECT_EQ(message->model_version(), "2");
  EXPECT_EQ(message->id(), "i");
  EXPECT_EQ(message->parameters().at("priority").int64_param(), 2);
  EXPECT_EQ(message->parameters().at("x").double_param(), -1.5);
  EXPECT_EQ(message->parameters_size(), 2);
  EXPECT_EQ(message->raw_input_contents(0), std::string("\1\0\xFE\xFF", 4));
  EXPECT_EQ(message->outputs(0).parameters().at("classification").int64_param(), 3);
  EXPECT_EQ(message->outputs(0).parameters_size(), 1);
  EXPECT_FALSE(forms.IsBinary("y"));
  EXPECT_TRUE(forms.IsBinary("z"));
}

// Small tensors are copied into the message, and from the first large one on they stand beside it.
TEST(InferReaderTest, TensorsKeepTheirOrderInEitherForm) {
  for (const size_t large : {2u, 100000u}) {
    const std::string binary(large, 'b'), more(3, 'c');
    const std::string json = Concat(R"({"inputs": [
      {"name": "a", "datatype": "UINT8", "data": [65], "shape": [1]},
      {"name": "b", "datatype": "UINT8", "shape": [2], "parameters": {"binary_data_size": )",
                                    large, R"(}},
      {"name": "c", "datatype": "UINT8", "data": [67], "shape": [1]},
      {"name": "s", "datatype": "UINT8", "shape": [1], "parameters": {"shared_memory_region": "r"}},
      {"name": "d", "datatype": "UINT8", "shape": [3], "parameters": {"binary_data_size": 3}}]})");
    const auto message = Read(json, binary + more);
    ASSERT_TRUE(message.ok()) << message.status();
    ASSERT_EQ(message->raw_input_contents_size(), 4);
    EXPECT_EQ(message->raw_input_contents(0), "A");
    EXPECT_EQ(message->raw_input_contents(1), binary);
    EXPECT_EQ(message->raw_input_contents(2), "C");
    EXPECT_EQ(message->raw_input_contents(3), more);
    EXPECT_FALSE(message->inputs(1).parameters().contains("binary_data_size"));
  }
}

TEST(InferReaderTest, DataMayComeBeforeItsType) {
  const auto message =
      Read(R"({"inputs": [{"data": [0.5], "datatype": "FP32"}, {"data": ["x"], "datatype": "BYTES"}]})");
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->raw_input_contents(0), std::string("\0\0\0\x3F", 4));
  EXPECT_EQ(message->raw_input_contents(1), std::string("\1\0\0\0x", 5));
}

TEST(InferReaderTest, TensorsAreBounded) {
  const std::string json = R"({"inputs": [{"datatype": "FP64", "data": [0,0,0,0]}]})";
  EXPECT_TRUE(Read(json, "", 32).ok());
  EXPECT_EQ(Read(json, "", 31).status().code(), StatusCode::kResourceExhausted);
}

TEST(InferReaderTest, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"inputs": [{"datatype": "INT8", "data": [128]}]})", "no INT8"},
      {R"({"inputs": [{"datatype": "UINT64", "data": [-1]}]})", "no UINT64"},
      {R"({"inputs": [{"datatype": "INT32", "data": [1.0]}]})", "no INT32"},
      {R"({"inputs": [{"datatype": "BOOL", "data": [2]}]})", "no BOOL"},
      {R"({"inputs": [{"datatype": "BYTES", "data": [2]}]})", "no BYTES"},
      {R"({"inputs": [{"datatype": "FP16", "data": [65520]}]})", "no FP16"},
      {R"({"inputs": [{"datatype": "FP32", "data": [{}]}]})", "must hold no object"},
      {R"({"inputs": [{"name": "a\u0000", "data": 1}]})", "'data' of input"},
      {R"({"inputs": [{"data": []}]} x)", "is no JSON"},
      {R"({"outputs": [{"parameters": {"binary_data": null}}]})", "must be true or false"},
      {R"({"parameters": []})", "must be no array"},
  };
  for (const auto& [json, text] : cases) {
    const Status status = Read(json).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << json;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text)) << json;
  }
}

}  // namespace
}  // namespace swizzle
