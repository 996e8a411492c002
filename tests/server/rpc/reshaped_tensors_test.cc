// Tensors that a configuration reshapes, on their way between messages and models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/rpc/wire_convert.h"

namespace swizzle {
namespace {

using inference::ModelInferRequest;
using ::testing::ElementsAre;

// X is [4] to the model, and [2,2] in requests; N [2] is [-1,1] there, of as many numbers as one may want.
ModelSpec ReshapedSpec() {
  ModelSpec spec;
  spec.name = "M";
  spec.max_batch_size = 8;
  spec.inputs = {{"X", DType::kFloat32, {4}, Shape{2, 2}}, {"N", DType::kInt64, {-1}, Shape{-1, 1}}};
  spec.outputs = {{"Y", DType::kFloat32, {4}, Shape{1, 4, 1}}, {"Z", DType::kString, {-1}, Shape{1, -1}}};
  return spec;
}

ModelInferRequest Request(const Shape& x, const Shape& n) {
  ModelInferRequest message;
  const auto add = [&](const char* name, const char* datatype, const Shape& shape, size_t element_bytes) {
    auto& input = *message.add_inputs();
    input.set_name(name);
    input.set_datatype(datatype);
    input.mutable_shape()->Add(shape.begin(), shape.end());
    message.add_raw_input_contents(std::string(static_cast<size_t>(*ElementCount(shape)) * element_bytes, 'a'));
  };
  add("X", "FP32", x, sizeof(float));
  add("N", "INT64", n, sizeof(int64_t));
  return message;
}

TEST(ReshapedTensors, InputsAreTheModels) {
  const auto decoded = DecodeInfer(Request({2, 2, 2}, {2, 3, 1}), ReshapedSpec(), Instant());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_THAT(decoded->request.inputs[0].shape, ElementsAre(2, 4));
  EXPECT_THAT(decoded->request.inputs[1].shape, ElementsAre(2, 3));
  EXPECT_EQ(decoded->request.rows, 2);
  const auto refused = DecodeInfer(Request({2, 4}, {2, 2}), ReshapedSpec(), Instant());
  EXPECT_EQ(std::string(refused.status().message()), "input 'X' of model 'M' has shape [2,4]; [-1,2,2] is expected");
}

TEST(ReshapedTensors, OutputsAreTheFiles) {
  Result result;
  result.outputs = {"yyyy", "zz"};
  result.shapes = {{2, 4}, {2, 3}};
  inference::ModelInferResponse response;
  const RequestedOutput outputs[] = {{0}, {1}};
  EncodeInfer({}, ReshapedSpec(), outputs, std::move(result), response);
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 1, 4, 1));
  EXPECT_THAT(response.outputs(1).shape(), ElementsAre(2, 1, 3));
  // What the model makes after all is shown as it is.
  Result other;
  other.outputs = {"yyyy", "zz"};
  other.shapes = {{2, 5}, {6}};
  response.Clear();
  EncodeInfer({}, ReshapedSpec(), outputs, std::move(other), response);
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 5));
  EXPECT_THAT(response.outputs(1).shape(), ElementsAre(6));
}

}  // namespace
}  // namespace swizzle
