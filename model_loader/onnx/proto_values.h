// Converts the leaves of an ONNX model: tensors and attributes. Internal to model_loader/onnx.
#ifndef SWIZZLE_MODEL_LOADER_ONNX_PROTO_VALUES_H_
#define SWIZZLE_MODEL_LOADER_ONNX_PROTO_VALUES_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model_loader/files/printable_name.h"
#include "model_loader/graph/graph.h"
#include "model_loader/onnx/external_data.h"
#include "model_loader/onnx/onnx_reader.h"
#include "onnx/onnx.pb.h"

namespace swizzle {

// Both names of the domain of ONNX's own operators.
inline bool IsDefaultDomain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

// The opset of ONNX's own operators: of several imports of them, under either name, the last one counts, as in ONNX
// Runtime. Nothing if there is none.
std::optional<int64_t> DefaultOpset(const onnx::ModelProto& model);

// Whether operators make whole numbers of real ones, or the other way round.
bool HasQuantisingNodes(const onnx::GraphProto& graph);

// The error for bytes that are no ONNX model. `why` follows it, where their beginning does not tell what else they are.
Status NotOnnx(std::span<const std::byte> bytes, std::string_view why = "");

// The bytes of a model. RESOURCE_EXHAUSTED if they are more than a protobuf message can have.
StatusOr<std::vector<std::byte>> Serialised(const onnx::ModelProto& model);

// UNIMPLEMENTED, naming `what`, for types that no tensor here can have.
StatusOr<DType> DTypeOfProto(int data_type, const std::string& what);

// What the tensors of one model are read from and count against, beside the model itself.
struct TensorSource {
  explicit TensorSource(const ReadOptions& read_options)
      : options(read_options),
        external(options.external_folder, options.max_external_bytes, options.external_elements),
        sparse_bytes_left(options.max_sparse_bytes) {}

  const ReadOptions options;
  ExternalData external;
  int64_t sparse_bytes_left;  // once dense
};

// The bytes that the elements of `tensor`, which has a type and a shape, take. INVALID_ARGUMENT if they overflow or are
// above the limit of one tensor.
StatusOr<int64_t> TensorBytes(const Tensor& tensor, const std::string& what, const ReadOptions& options);

// Takes the data out of `proto`, so that it is not held twice, or out of its external file. The element count is
// compared with the data that is there, in checked arithmetic, before anything is allocated.
StatusOr<Tensor> ReadTensor(onnx::TensorProto& proto, const std::string& what, TensorSource& source);

// Moves the data of `proto` into `proto` itself where it lies in an external file.
Status EmbedExternalData(onnx::TensorProto& proto, const std::string& what, TensorSource& source);

// Takes a tensor's data out of `proto`.
StatusOr<Attribute> ReadAttribute(onnx::AttributeProto& proto, const std::string& what, TensorSource& source);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_ONNX_PROTO_VALUES_H_
