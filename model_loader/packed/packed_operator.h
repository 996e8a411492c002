// How a packed file holds a layer's operator: what packed_reader and packed_writer do with its attributes, type by
// type. A new operator, a new type of attributes or a new field of one does not compile before it has its place here.
#ifndef SWIZZLE_MODEL_LOADER_PACKED_PACKED_OPERATOR_H_
#define SWIZZLE_MODEL_LOADER_PACKED_PACKED_OPERATOR_H_

#include <optional>

#include "kernels/base/status.h"
#include "kernels/operator/operator.h"
#include "proto/packed_model.pb.h"

namespace swizzle {

// The schema's name of an operator; LAYER_KIND_UNSPECIFIED where no network has it.
packed::LayerKind PackedOp(Op op);
// Nothing where the number is not known.
std::optional<Op> UnpackedOp(packed::LayerKind kind);

// Sets the fields of `proto` that say what the layer computes.
void PackOperator(const Operator& layer, packed::Layer& proto);

// INVALID_ARGUMENT where the operator or its function is not known. What a pattern says of an attention is not set.
StatusOr<Operator> UnpackOperator(const packed::Layer& proto);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PACKED_PACKED_OPERATOR_H_
