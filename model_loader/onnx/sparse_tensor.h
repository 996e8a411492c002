// ONNX's sparse tensors (sparse_initializer, a Constant's sparse_value), which become dense tensors with zeros: the
// same weights that dense initializers would have become. Internal to model_loader/onnx.
//
// dims [3,4] and values {5,6,7} at indices {1,4,11}, or at {{0,1},{1,0},{2,3}}, are
//   0 5 0 0
//   6 0 0 0
//   0 0 0 7
#ifndef SWIZZLE_MODEL_LOADER_ONNX_SPARSE_TENSOR_H_
#define SWIZZLE_MODEL_LOADER_ONNX_SPARSE_TENSOR_H_

#include <span>
#include <string>

#include "model_loader/onnx/proto_values.h"

namespace swizzle {

// Takes the data out of `proto`. The dense size is compared with the limits of `source` before anything is allocated.
// INVALID_ARGUMENT, beginning with `what`, unless the indices are INT64, as many as the values, strictly ascending and
// in range.
StatusOr<Tensor> ReadSparseTensor(onnx::SparseTensorProto& proto, const std::string& what, TensorSource& source);

// Makes `dense` the elements of `proto`, whose indices keep their form and whose dims, name and unknown fields stay.
// REQUIRES: `proto` is one that ReadSparseTensor makes FP32 of, in as many elements.
void WriteSparseTensor(std::span<const float> dense, onnx::SparseTensorProto& proto);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_ONNX_SPARSE_TENSOR_H_
