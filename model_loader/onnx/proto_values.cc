#include "model_loader/onnx/proto_values.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "model_loader/files/file_kind.h"
#include "model_loader/onnx/narrow_types.h"
#include "model_loader/onnx/sparse_tensor.h"
#include "model_loader/packed/file_layout.h"
#include "model_loader/semantics/element_types.h"

namespace swizzle {
namespace {

using onnx::AttributeProto;
using onnx::TensorProto;

// Copies `field`'s values as elements of type T, which may be narrower than the field's.
template <typename T, typename Field>
Status CopyField(const Field& field, int64_t elements, const std::string& what, Tensor& tensor) {
  if (field.size() != elements) {
    return InvalidArgument(what, " has ", field.size(), " elements of data, but ", elements, " by its shape ",
                           ShapeText(tensor.shape));
  }
  tensor.bytes.resize(static_cast<size_t>(elements) * sizeof(T));
  for (int i = 0; i < field.size(); ++i) {
    const T element = static_cast<T>(field.Get(i));
    std::memcpy(tensor.bytes.data() + static_cast<size_t>(i) * sizeof(T), &element, sizeof(T));
  }
  return {};
}

Status CopyRaw(const std::string& raw, int64_t bytes, const std::string& what, Tensor& tensor) {
  if (static_cast<int64_t>(raw.size()) != bytes) {
    return InvalidArgument(what, " has ", raw.size(), " bytes of data, but ", bytes, " by its shape ",
                           ShapeText(tensor.shape), " of ", DTypeName(tensor.dtype));
  }
  tensor.bytes.resize(raw.size());
  if (!raw.empty()) std::memcpy(tensor.bytes.data(), raw.data(), raw.size());
  return {};
}

// ONNX keeps each type in the typed field that its specification names.
Status CopyTyped(const TensorProto& proto, int64_t elements, const std::string& what, Tensor& tensor) {
  switch (tensor.dtype) {
    case DType::kFloat32:
      return CopyField<float>(proto.float_data(), elements, what, tensor);
    case DType::kFloat64:
      return CopyField<double>(proto.double_data(), elements, what, tensor);
    case DType::kInt64:
      return CopyField<int64_t>(proto.int64_data(), elements, what, tensor);
    case DType::kUint32:
      return CopyField<uint32_t>(proto.uint64_data(), elements, what, tensor);
    case DType::kUint64:
      return CopyField<uint64_t>(proto.uint64_data(), elements, what, tensor);
    case DType::kBool:
    case DType::kUint8:
    case DType::kInt8:
      return CopyField<uint8_t>(proto.int32_data(), elements, what, tensor);
    case DType::kUint16:
    case DType::kInt16:
    case DType::kFloat16:  // halves keep their bits
    case DType::kBFloat16:
      return CopyField<uint16_t>(proto.int32_data(), elements, what, tensor);
    case DType::kInt32:
      return CopyField<int32_t>(proto.int32_data(), elements, what, tensor);
    case DType::kString:
      break;
  }
  return Unimplemented(what, " has strings");
}

bool HasTypedData(const TensorProto& proto) {
  return proto.float_data_size() + proto.double_data_size() + proto.int32_data_size() + proto.int64_data_size() +
             proto.uint64_data_size() + proto.string_data_size() >
         0;
}

bool IsExternal(const TensorProto& proto) { return proto.data_location() == TensorProto::EXTERNAL; }

// The data may be in one place only.
Status CheckPlace(const TensorProto& proto, const std::string& what) {
  if (proto.has_segment()) return Unimplemented(what, " is stored in segments");
  if (proto.has_raw_data() && HasTypedData(proto)) return InvalidArgument(what, " has both raw and typed data");
  if (IsExternal(proto) && (proto.has_raw_data() || HasTypedData(proto))) {
    return InvalidArgument(what, " has data both in an external file and inside the model");
  }
  if (!IsExternal(proto) && proto.external_data_size() > 0) {
    return InvalidArgument(what, " names external data, but its data_location is not EXTERNAL");
  }
  return {};
}

StatusOr<Tensor> ReadTypeAndShape(const TensorProto& proto, const std::string& what) {
  Tensor tensor;
  if (const NarrowType* const narrow = FindNarrowType(proto.data_type())) {
    tensor.dtype = narrow->held;
  } else {
    SWIZZLE_ASSIGN_OR_RETURN(tensor.dtype, DTypeOfProto(proto.data_type(), what));
  }
  tensor.shape.assign(proto.dims().begin(), proto.dims().end());
  return tensor;
}

template <typename T, typename Field>
std::vector<T> CopyList(const Field& field) {
  return {field.begin(), field.end()};
}

}  // namespace

std::optional<int64_t> DefaultOpset(const onnx::ModelProto& model) {
  std::optional<int64_t> opset;
  for (const auto& import : model.opset_import()) {
    if (IsDefaultDomain(import.domain())) opset = import.version();
  }
  return opset;
}

bool HasQuantisingNodes(const onnx::GraphProto& graph) {
  return std::ranges::any_of(graph.node(), [](const onnx::NodeProto& node) {
    return node.op_type().find("QuantizeLinear") != std::string::npos || node.op_type().starts_with("QLinear");
  });
}

Status NotOnnx(std::span<const std::byte> bytes, std::string_view why) {
  const auto& magic = PackedPrefix::kMagic;
  if (bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0) {
    return InvalidArgument("this is a packed model, not an ONNX one: let its name end in .swz");
  }
  if (const std::string_view kind = KindOfFile(bytes); !kind.empty()) {
    return InvalidArgument("this is not an ONNX model, but ", kind);
  }
  return InvalidArgument("this is not an ONNX model, or it is truncated", why);
}

StatusOr<std::vector<std::byte>> Serialised(const onnx::ModelProto& model) {
  constexpr size_t kMost = std::numeric_limits<int>::max();
  const size_t size = model.ByteSizeLong();
  std::vector<std::byte> bytes(size <= kMost ? size : 0);
  if (size <= kMost && model.SerializeToArray(bytes.data(), static_cast<int>(size))) return bytes;
  return MakeError(StatusCode::kResourceExhausted, "the model is too large for one file");
}

StatusOr<DType> DTypeOfProto(int data_type, const std::string& what) {
  auto dtype = ElementTypeOf(data_type);
  if (!dtype.ok()) return Unimplemented(what, " has the ONNX data type ", data_type, ", which is not supported");
  return dtype;
}

StatusOr<int64_t> TensorBytes(const Tensor& tensor, const std::string& what, const ReadOptions& options) {
  const auto elements = ElementCount(tensor.shape);
  if (!elements.ok()) return Annotate(elements.status(), what);
  const int64_t element_bytes = static_cast<int64_t>(ElementBytes(tensor.dtype));
  if (*elements > options.max_tensor_bytes / element_bytes) {
    return InvalidArgument(what, " has ", *elements, " elements of ", DTypeName(tensor.dtype), "; the limit is ",
                           options.max_tensor_bytes, " bytes");
  }
  return *elements * element_bytes;
}

namespace {

// What is stored of `tensor`, which has the type and shape of `proto`, and what that takes: packed bytes, or its
// elements.
StatusOr<std::pair<Tensor, int64_t>> StoredOf(const TensorProto& proto, const Tensor& tensor, const std::string& what,
                                              const ReadOptions& options) {
  SWIZZLE_ASSIGN_OR_RETURN(int64_t bytes, TensorBytes(tensor, what, options));
  const NarrowType* const narrow = FindNarrowType(proto.data_type());
  if (narrow == nullptr) return std::pair(tensor, bytes);
  bytes = narrow->PackedBytes(tensor.elements());
  return std::pair(Tensor{DType::kUint8, {bytes}, {}}, bytes);
}

}  // namespace

StatusOr<Tensor> ReadTensor(TensorProto& proto, const std::string& what, TensorSource& source) {
  SWIZZLE_RETURN_IF_ERROR(CheckPlace(proto, what));
  SWIZZLE_ASSIGN_OR_RETURN(Tensor tensor, ReadTypeAndShape(proto, what));
  SWIZZLE_ASSIGN_OR_RETURN(auto stored_bytes, StoredOf(proto, tensor, what, source.options));
  auto& [stored, bytes] = stored_bytes;
  if (IsExternal(proto)) {
    SWIZZLE_ASSIGN_OR_RETURN(stored.bytes, source.external.Read(proto, bytes, what));
  } else if (proto.has_raw_data()) {
    SWIZZLE_RETURN_IF_ERROR(CopyRaw(proto.raw_data(), bytes, what, stored));
  } else {
    SWIZZLE_RETURN_IF_ERROR(CopyTyped(proto, stored.elements(), what, stored));
  }
  const NarrowType* const narrow = FindNarrowType(proto.data_type());
  tensor.bytes = narrow != nullptr ? Widen(*narrow, stored.bytes, tensor.elements()) : std::move(stored.bytes);
  TensorProto().Swap(&proto);  // Clear() would keep the memory
  return tensor;
}

Status EmbedExternalData(TensorProto& proto, const std::string& what, TensorSource& source) {
  if (!IsExternal(proto)) return {};
  SWIZZLE_RETURN_IF_ERROR(CheckPlace(proto, what));
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor tensor, ReadTypeAndShape(proto, what));
  SWIZZLE_ASSIGN_OR_RETURN(const auto stored, StoredOf(proto, tensor, what, source.options));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::byte> data, source.external.Read(proto, stored.second, what));
  proto.clear_external_data();
  proto.clear_data_location();
  proto.set_raw_data(data.data(), data.size());
  return {};
}

StatusOr<Attribute> ReadAttribute(AttributeProto& proto, const std::string& what, TensorSource& source) {
  if (!proto.ref_attr_name().empty()) return Unimplemented(what, " refers to a function's attribute");
  switch (proto.type()) {
    case AttributeProto::INT:
      return Attribute(static_cast<int64_t>(proto.i()));
    case AttributeProto::FLOAT:
      return Attribute(proto.f());
    case AttributeProto::STRING:
      SWIZZLE_RETURN_IF_ERROR(CheckName(proto.s(), what));
      return Attribute(proto.s());
    case AttributeProto::INTS:
      return Attribute(CopyList<int64_t>(proto.ints()));
    case AttributeProto::FLOATS:
      return Attribute(CopyList<float>(proto.floats()));
    case AttributeProto::STRINGS:
      for (const std::string& string : proto.strings()) SWIZZLE_RETURN_IF_ERROR(CheckName(string, what));
      return Attribute(CopyList<std::string>(proto.strings()));
    case AttributeProto::TENSOR: {
      SWIZZLE_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(*proto.mutable_t(), what, source));
      return Attribute(std::move(tensor));
    }
    case AttributeProto::SPARSE_TENSOR: {
      SWIZZLE_ASSIGN_OR_RETURN(Tensor tensor, ReadSparseTensor(*proto.mutable_sparse_tensor(), what, source));
      return Attribute(std::move(tensor));
    }
    default:
      return Unimplemented(what, " has the attribute type ", static_cast<int>(proto.type()));
  }
}

}  // namespace swizzle
