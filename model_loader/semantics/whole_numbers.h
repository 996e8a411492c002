// What ONNX's quantised operators say of whole numbers and the real ones that they stand for: scales and zero points as
// a Quantisation, constants to and fro. Pure functions; errors do not name the node.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_WHOLE_NUMBERS_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_WHOLE_NUMBERS_H_

#include "kernels/base/quantisation.h"
#include "model_loader/graph/graph.h"

namespace swizzle {

// Of scales (FP32) and zero points of `dtype` (null: zeros), one or as many as channels. Zero points that are all zero
// are left out, so that equal ones compare equal. INVALID_ARGUMENT where the two do not fit each other or are none,
// UNIMPLEMENTED for types but INT8 and UINT8, and for scales that are not above 0. A scale of 0, which quantisers write
// for channels of zeros, becomes 1: REQUIRES then that DequantisedTensor is told the scales as given.
StatusOr<Quantisation> QuantisationOf(const Tensor& scales, const Tensor* zero_points, DType dtype);

// scale * (whole - zero point), by channels of dimension `axis` where there are several scales. `wholes` is INT8, UINT8
// or INT32. INVALID_ARGUMENT where the numbers of channels differ, or a zero point of INT32 is not 0.
StatusOr<Tensor> DequantisedTensor(const Tensor& wholes, const Tensor& scales, const Tensor* zero_points, int64_t axis);

// The whole numbers nearest to `reals`, ties to even. INVALID_ARGUMENT where the numbers of channels differ.
StatusOr<Tensor> QuantisedTensor(const Tensor& reals, const Quantisation& quantisation, int64_t axis);

// The least and the greatest real number that is stood for. REQUIRES: one scale.
struct RealRange {
  float low;
  float high;
};
RealRange RangeOf(const Quantised& quantised);

// Whether it is one of the real numbers stood for, as single precision has it.
bool IsWhole(const Quantised& quantised, float real);

// Whether a value that is one of the real numbers stood for still is once it is clamped: each bound is one of them, or
// outside of their range.
bool ClampKeepsWholes(const Quantised& quantised, float low, float high);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_WHOLE_NUMBERS_H_
