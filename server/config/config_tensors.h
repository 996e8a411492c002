// Inputs and outputs of config.pbtxt as specifications, checked against those that the model has.
#ifndef SWIZZLE_SERVER_CONFIG_CONFIG_TENSORS_H_
#define SWIZZLE_SERVER_CONFIG_CONFIG_TENSORS_H_

#include <google/protobuf/repeated_field.h>

#include <optional>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/onnx/onnx_reader.h"
#include "proto/model_config.pb.h"
#include "server/model/model.h"

namespace swizzle {

using ConfigInputs = google::protobuf::RepeatedPtrField<inference::ModelInput>;
using ConfigOutputs = google::protobuf::RepeatedPtrField<inference::ModelOutput>;

// INVALID_ARGUMENT naming the tensor that has no name, no type, an impossible dimension, or is there twice.
StatusOr<std::vector<TensorSpec>> SpecsOf(const ConfigInputs& inputs);
StatusOr<std::vector<TensorSpec>> SpecsOf(const ConfigOutputs& outputs);

// Replaces `specs`, the model's, by the tensors that the file lists, in its order; a file that lists none changes
// nothing. INVALID_ARGUMENT naming the tensor where the two contradict each other.
Status MatchTensors(const ConfigInputs& inputs, std::vector<TensorSpec>& specs);
Status MatchTensors(const ConfigOutputs& outputs, std::vector<TensorSpec>& specs);

// Gives inputs that the file calls optional what `defaults` have of them. INVALID_ARGUMENT, naming the input, where
// that is nothing, or no value that all rows of a batch can have. REQUIRES: spec.max_batch_size is final.
Status ApplyDefaults(const ConfigInputs& inputs, const InputDefaults& defaults, ModelSpec& spec);

// Nothing for TYPE_INVALID.
std::optional<DType> DTypeOf(inference::DataType type);

void FillTensor(const TensorSpec& spec, inference::ModelInput& tensor);
void FillTensor(const TensorSpec& spec, inference::ModelOutput& tensor);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_CONFIG_CONFIG_TENSORS_H_
