// Builds small ONNX models, right or wrong, for tests of the reader and the passes.
#ifndef SWIZZLE_TESTS_SUPPORT_ONNX_BUILDER_H_
#define SWIZZLE_TESTS_SUPPORT_ONNX_BUILDER_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "model_loader/graph/graph.h"
#include "onnx/onnx.pb.h"

namespace swizzle::testing {

class OnnxBuilder {
 public:
  explicit OnnxBuilder(int64_t opset = 17);

  // An FP32 graph input; -1 stands for a free dimension.
  OnnxBuilder& Input(const std::string& name, const Shape& shape);
  // Likewise, of INT64.
  OnnxBuilder& Int64Input(const std::string& name, const Shape& shape);
  OnnxBuilder& Output(const std::string& name);
  // Initializers, as raw data.
  OnnxBuilder& Floats(const std::string& name, const Shape& shape, const std::vector<float>& values);
  OnnxBuilder& Int64s(const std::string& name, const Shape& shape, const std::vector<int64_t>& values);
  // An FP32 initializer that counts up from 1 in steps of 1.
  OnnxBuilder& Counting(const std::string& name, const Shape& shape);
  // An FP32 sparse initializer; the indices are linear.
  OnnxBuilder& Sparse(const std::string& name, const Shape& shape, const std::vector<float>& values,
                      const std::vector<int64_t>& indices);
  // A node called after its first output.
  OnnxBuilder& Node(const std::string& op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, const std::map<std::string, Attribute>& attributes = {});

  // Likewise of the domain com.microsoft.
  OnnxBuilder& MicrosoftNode(const std::string& op, const std::vector<std::string>& inputs,
                             const std::vector<std::string>& outputs,
                             const std::map<std::string, Attribute>& attributes = {});
  // The graph of `body` becomes an attribute of the last node. Its inputs are names alone, as exporters leave them.
  OnnxBuilder& Body(const std::string& attribute_name, const std::vector<std::string>& inputs, const OnnxBuilder& body);

  // For what a right model would not have.
  onnx::ModelProto& model() { return model_; }
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }

  std::vector<std::byte> Bytes() const;
  // What the reader makes of it.
  StatusOr<Graph> Read() const;

 private:
  onnx::ModelProto model_;
};

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_ONNX_BUILDER_H_
