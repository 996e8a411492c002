// What writers add to a graph's protobuf: initializers, and names that nothing in it has yet. Internal to
// model_loader/onnx.
#ifndef SWIZZLE_MODEL_LOADER_ONNX_GRAPH_ADDITIONS_H_
#define SWIZZLE_MODEL_LOADER_ONNX_GRAPH_ADDITIONS_H_

#include <set>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "kernels/base/tensor.h"
#include "onnx/onnx.pb.h"

namespace swizzle {

// The graph outlives it.
class GraphAdditions {
 public:
  explicit GraphAdditions(onnx::GraphProto& graph) : graph_(graph) {}

  // A name of the graph's own. REQUIRES: all are told before the first is asked for.
  void Avoid(const std::string& name) { taken_.insert(name); }

  // The name, or one like it that nothing has yet.
  std::string Fresh(const std::string& wanted) {
    std::string name = wanted;
    for (int i = 1; !taken_.insert(name).second; ++i) name = Concat(wanted, "_", i);
    return name;
  }

  // Gives its name. REQUIRES: T is what `type` is in memory.
  template <typename T>
  std::string AddInitializer(const std::string& wanted, onnx::TensorProto::DataType type, const Shape& shape,
                             const std::vector<T>& values) {
    onnx::TensorProto& tensor = *graph_.add_initializer();
    tensor.set_name(Fresh(wanted));
    tensor.set_data_type(type);
    tensor.mutable_dims()->Add(shape.begin(), shape.end());
    tensor.set_raw_data(values.data(), values.size() * sizeof(T));
    return tensor.name();
  }

 private:
  onnx::GraphProto& graph_;
  std::set<std::string> taken_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_ONNX_GRAPH_ADDITIONS_H_
