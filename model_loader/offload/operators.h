// Operators that have a function on a device: what stands between the regions of a program there.
//
// They are called as those of the interpreter are (interpreter/operators/operators.h), with arrays on the device but
// for settings (OperatorFacts), which the host reads, and make arrays there; what they queue has not run when they
// return. UNIMPLEMENTED: not for these types, shapes or attributes; the interpreter is then asked.
#ifndef SWIZZLE_MODEL_LOADER_OFFLOAD_OPERATORS_H_
#define SWIZZLE_MODEL_LOADER_OFFLOAD_OPERATORS_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "model_loader/interpreter/operators/functions.h"

namespace swizzle::offload {

struct DeviceOperator {
  std::string_view op;
  interpreter::RunOperator run;
  interpreter::TakesMoved moved = interpreter::TakesMoved::kNone;

  bool Takes(size_t input) const { return interpreter::Takes(moved, input); }
};

std::span<const DeviceOperator> DeviceOperators();

// Null if there is none of this name.
const DeviceOperator* FindDeviceOperator(std::string_view domain, std::string_view op);

// They give the elements of an array of floats on the device, which the host may not read.
inline const float* FloatsOf(const interpreter::Array& array) {
  return reinterpret_cast<const float*>(array.data.get());
}
inline float* MutableFloats(interpreter::Array& array) { return reinterpret_cast<float*>(array.data.get()); }

// points.cc: one function of each element.
template <PointOp kOp>
StatusOr<interpreter::Array> Unary(interpreter::Call& call);
template <PointOp kOp>
StatusOr<interpreter::Array> Binary(interpreter::Call& call);
template <PointOp kOp>
StatusOr<interpreter::Array> Joined(interpreter::Call& call);  // of any number of inputs
StatusOr<interpreter::Array> Cast(interpreter::Call& call);
StatusOr<interpreter::Array> Clip(interpreter::Call& call);
StatusOr<interpreter::Array> Gelu(interpreter::Call& call);
StatusOr<interpreter::Array> HardSwish(interpreter::Call& call);
StatusOr<interpreter::Array> Pow(interpreter::Call& call);
StatusOr<interpreter::Array> Where(interpreter::Call& call);
// rows.cc
template <RowReduction kReduction>
StatusOr<interpreter::Array> Reduce(interpreter::Call& call);
template <RowReduction kReduction>
StatusOr<interpreter::Array> ReducePlanes(interpreter::Call& call);  // GlobalAveragePool and its kin
StatusOr<interpreter::Array> Softmax(interpreter::Call& call);
StatusOr<interpreter::Array> LayerNormalization(interpreter::Call& call);
StatusOr<interpreter::Array> CumSum(interpreter::Call& call);
StatusOr<interpreter::Array> Gather(interpreter::Call& call);
StatusOr<interpreter::Array> ReduceL2(interpreter::Call& call);
// normalise.cc
StatusOr<interpreter::Array> GroupNormalization(interpreter::Call& call);
StatusOr<interpreter::Array> InstanceNormalization(interpreter::Call& call);
// planes.cc
StatusOr<interpreter::Array> Gemm(interpreter::Call& call);
StatusOr<interpreter::Array> Conv(interpreter::Call& call);
StatusOr<interpreter::Array> ConvTranspose(interpreter::Call& call);
StatusOr<interpreter::Array> MaxPool(interpreter::Call& call);

// a op b, which broadcast; both FP32, or both INT64 or of other whole numbers that are computed as such.
StatusOr<interpreter::Array> Pointed(interpreter::Call& call, PointOp op, std::span<const interpreter::Array> inputs,
                                     float alpha = 0.0f, float beta = 0.0f);

}  // namespace swizzle::offload

#endif  // SWIZZLE_MODEL_LOADER_OFFLOAD_OPERATORS_H_
