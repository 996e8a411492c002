// Runs small models with the interpreter, for tests of its operators.
#ifndef SWIZZLE_TESTS_MODEL_LOADER_INTERPRETER_OPERATORS_RUN_NODE_H_
#define SWIZZLE_TESTS_MODEL_LOADER_INTERPRETER_OPERATORS_RUN_NODE_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/interpreter/run/executor.h"
#include "model_loader/interpreter/run/load.h"
#include "tests/support/float_tensor.h"
#include "tests/support/onnx_builder.h"

namespace swizzle::interpreter {

inline StatusOr<std::vector<Array>> Execute(const testing::OnnxBuilder& builder, const std::vector<Tensor>& inputs,
                                            const Limits& limits = {}, int threads = 2) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto program, ReadProgram(std::span<const std::byte>(builder.Bytes())));
  std::vector<TensorView> views;
  for (const Tensor& tensor : inputs) views.push_back({tensor.dtype, tensor.shape, tensor.bytes});
  const std::unique_ptr<Backend> backend = NewCpuBackend();
  SWIZZLE_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, backend->NewStream(threads));
  return program->Run(views, *stream, limits);
}

using swizzle::testing::Floats;

inline std::vector<float> Values(const Array& array) {
  const auto values = array.As<float>();
  return {values.begin(), values.end()};
}

inline std::vector<int64_t> Wholes(const Array& array) {
  const auto values = array.As<int64_t>();
  return {values.begin(), values.end()};
}

// A model of one node `y = op(x, ...)`; more inputs are initializers of the builder's.
inline testing::OnnxBuilder OneNode(const std::string& op, const Shape& shape, const std::vector<std::string>& inputs,
                                    const std::map<std::string, Attribute>& attributes = {}, int64_t opset = 17) {
  testing::OnnxBuilder builder(opset);
  builder.Input("x", shape).Node(op, inputs, {"y"}, attributes).Output("y");
  return builder;
}

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_TESTS_MODEL_LOADER_INTERPRETER_OPERATORS_RUN_NODE_H_
