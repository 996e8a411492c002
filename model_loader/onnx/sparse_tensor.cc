#include "model_loader/onnx/sparse_tensor.h"

#include <cstring>
#include <vector>

namespace swizzle {
namespace {

std::span<const int64_t> Int64s(const Tensor& tensor) {
  return {reinterpret_cast<const int64_t*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(int64_t)};
}

// The dense tensor, still without its bytes, whose size is within the limits.
StatusOr<Tensor> BoundedTensor(const onnx::SparseTensorProto& proto, const std::string& what, TensorSource& source) {
  Tensor tensor;
  SWIZZLE_ASSIGN_OR_RETURN(tensor.dtype, DTypeOfProto(proto.values().data_type(), what));
  tensor.shape.assign(proto.dims().begin(), proto.dims().end());
  if (tensor.shape.empty()) return InvalidArgument(what, " is sparse and has no dimensions");
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t bytes, TensorBytes(tensor, what, source.options));
  if (bytes > source.sparse_bytes_left) {
    return InvalidArgument(what, " takes ", bytes, " bytes when dense, which takes the model's sparse tensors above ",
                           "their limit; ", source.sparse_bytes_left, " are left");
  }
  source.sparse_bytes_left -= bytes;
  return tensor;
}

// The indices as positions in the dense, row-major elements: in range, strictly ascending.
StatusOr<std::vector<int64_t>> Positions(const Tensor& indices, int64_t count, const Tensor& dense,
                                         const std::string& what) {
  const int64_t rank = static_cast<int64_t>(dense.shape.size());
  const bool linear = indices.shape == Shape{count};
  if (!linear && indices.shape != Shape{count, rank}) {
    return InvalidArgument(what, " has ", count, " values, but indices of shape ", ShapeText(indices.shape),
                           "; they must be [", count, "] or [", count, ",", rank, "]");
  }
  const Shape extents = linear ? Shape{dense.elements()} : dense.shape;
  const auto all = Int64s(indices);
  std::vector<int64_t> positions(static_cast<size_t>(count));
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto index = all.subspan(i * extents.size(), extents.size());
    int64_t position = 0;  // never overflows: it is below the element count
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      if (index[axis] < 0 || index[axis] >= extents[axis]) {
        return InvalidArgument(what, ": index ", index[axis], " of value ", i, " is not within 0 and ",
                               extents[axis] - 1);
      }
      position = position * extents[axis] + index[axis];
    }
    if (i > 0 && position <= positions[i - 1]) {
      return InvalidArgument(what, ": the indices of values ", i - 1, " and ", i, " are not in ascending order");
    }
    positions[i] = position;
  }
  return positions;
}

void SetInt64s(const std::vector<int64_t>& values, const Shape& shape, onnx::TensorProto& proto) {
  proto.clear_int64_data();
  proto.mutable_dims()->Assign(shape.begin(), shape.end());
  proto.set_raw_data(values.data(), values.size() * sizeof(int64_t));
}

}  // namespace

StatusOr<Tensor> ReadSparseTensor(onnx::SparseTensorProto& proto, const std::string& what, TensorSource& source) {
  if (proto.indices().data_type() != onnx::TensorProto::INT64) {
    return InvalidArgument(what, " has indices of the ONNX data type ", proto.indices().data_type(),
                           "; they must be INT64");
  }
  SWIZZLE_ASSIGN_OR_RETURN(Tensor dense, BoundedTensor(proto, what, source));
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor values,
                           ReadTensor(*proto.mutable_values(), what + ": its list of values", source));
  SWIZZLE_ASSIGN_OR_RETURN(const Tensor indices,
                           ReadTensor(*proto.mutable_indices(), what + ": its list of indices", source));
  if (values.shape.size() != 1) {
    return InvalidArgument(what, " has values of shape ", ShapeText(values.shape), "; they must be a list");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> positions, Positions(indices, values.shape[0], dense, what));
  const size_t element_bytes = ElementBytes(dense.dtype);
  dense.bytes.resize(static_cast<size_t>(dense.elements()) * element_bytes);
  for (size_t i = 0; i < positions.size(); ++i) {
    std::memcpy(dense.bytes.data() + static_cast<size_t>(positions[i]) * element_bytes,
                values.bytes.data() + i * element_bytes, element_bytes);
  }
  return dense;
}

void WriteSparseTensor(std::span<const float> dense, onnx::SparseTensorProto& proto) {
  const size_t rank = static_cast<size_t>(proto.dims_size());
  const bool linear = proto.indices().dims_size() == 1;
  std::vector<float> values;
  std::vector<int64_t> indices;
  for (size_t position = 0; position < dense.size(); ++position) {
    if (dense[position] == 0.0f) continue;
    values.push_back(dense[position]);
    if (linear) {
      indices.push_back(static_cast<int64_t>(position));
      continue;
    }
    int64_t rest = static_cast<int64_t>(position);
    indices.resize(indices.size() + rank);
    for (size_t axis = rank; axis-- > 0; rest /= proto.dims(static_cast<int>(axis))) {
      indices[indices.size() - rank + axis] = rest % proto.dims(static_cast<int>(axis));
    }
  }
  const int64_t count = static_cast<int64_t>(values.size());
  SetInt64s(indices, linear ? Shape{count} : Shape{count, static_cast<int64_t>(rank)}, *proto.mutable_indices());
  proto.mutable_values()->clear_float_data();
  proto.mutable_values()->mutable_dims()->Assign(&count, &count + 1);
  proto.mutable_values()->set_raw_data(values.data(), values.size() * sizeof(float));
}

}  // namespace swizzle
