// The shapes of tensors between models and whoever uses them: requests, answers, and the steps of ensembles. They have
// a batch dimension in front where the model takes batches, and may be reshaped (reshaped_dims.h). Free functions,
// thread-safe.
#ifndef SWIZZLE_SERVER_MODEL_WIRE_SHAPE_H_
#define SWIZZLE_SERVER_MODEL_WIRE_SHAPE_H_

#include <cstddef>

#include "kernels/base/tensor.h"
#include "server/model/model.h"

namespace swizzle {

inline size_t BatchDims(const ModelSpec& spec) { return spec.max_batch_size > 0 ? 1 : 0; }

// The dimensions that a tensor of the model has outside, its batch dimension included: -1: any.
Shape WireDims(const ModelSpec& spec, const TensorSpec& tensor);

// Whether `shape` is as WireDims says. Its batch dimension may be any number, and no other is negative.
bool ShapeFits(const ModelSpec& spec, const TensorSpec& tensor, const Shape& shape);

// What the model gets of an input of this shape. REQUIRES: it fits.
Shape ModelShape(const ModelSpec& spec, const TensorSpec& input, const Shape& shape);

// The shape that an output of this shape has outside. Where the model made another than a configuration expects, that
// is shown.
Shape WireShape(const ModelSpec& spec, const TensorSpec& output, const Shape& shape);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_WIRE_SHAPE_H_
