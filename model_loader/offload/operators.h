// Operators that have a function on a device: what stands between the regions of a program there.
//
// They are called as those of the interpreter are (fallback/operators.h), with arrays on the device but for settings
// (OperatorFacts), which the host reads, and make arrays there; what they queue has not run when they return.
// UNIMPLEMENTED: not for these types, shapes or attributes; the interpreter is then asked.
#ifndef SWIZZLE_MODEL_LOADER_OFFLOAD_OPERATORS_H_
#define SWIZZLE_MODEL_LOADER_OFFLOAD_OPERATORS_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "model_loader/fallback/functions.h"

namespace swizzle::offload {

struct DeviceOperator {
  std::string_view op;
  fallback::RunOperator run;
  fallback::TakesMoved moved = fallback::TakesMoved::kNone;

  bool Takes(size_t input) const { return fallback::Takes(moved, input); }
};

std::span<const DeviceOperator> DeviceOperators();

// Null if there is none of this name.
const DeviceOperator* FindDeviceOperator(std::string_view domain, std::string_view op);

// points.cc: one function of each element.
template <PointOp kOp>
StatusOr<fallback::Array> Unary(fallback::Call& call);
template <PointOp kOp>
StatusOr<fallback::Array> Binary(fallback::Call& call);
template <PointOp kOp>
StatusOr<fallback::Array> Joined(fallback::Call& call);  // of any number of inputs
StatusOr<fallback::Array> Cast(fallback::Call& call);
StatusOr<fallback::Array> Clip(fallback::Call& call);
StatusOr<fallback::Array> Gelu(fallback::Call& call);
StatusOr<fallback::Array> HardSwish(fallback::Call& call);
StatusOr<fallback::Array> Pow(fallback::Call& call);
StatusOr<fallback::Array> Where(fallback::Call& call);
// rows.cc
template <RowReduction kReduction>
StatusOr<fallback::Array> Reduce(fallback::Call& call);
template <RowReduction kReduction>
StatusOr<fallback::Array> ReducePlanes(fallback::Call& call);  // GlobalAveragePool and its kin
StatusOr<fallback::Array> Softmax(fallback::Call& call);
StatusOr<fallback::Array> LayerNormalization(fallback::Call& call);
StatusOr<fallback::Array> CumSum(fallback::Call& call);
StatusOr<fallback::Array> Gather(fallback::Call& call);
StatusOr<fallback::Array> ReduceL2(fallback::Call& call);
// normalise.cc
StatusOr<fallback::Array> GroupNormalization(fallback::Call& call);
StatusOr<fallback::Array> InstanceNormalization(fallback::Call& call);
// planes.cc
StatusOr<fallback::Array> Gemm(fallback::Call& call);
StatusOr<fallback::Array> Conv(fallback::Call& call);
StatusOr<fallback::Array> ConvTranspose(fallback::Call& call);
StatusOr<fallback::Array> MaxPool(fallback::Call& call);

// a op b, which broadcast; both FP32, or both INT64 or of other whole numbers that are computed as such.
StatusOr<fallback::Array> Pointed(fallback::Call& call, PointOp op, std::span<const fallback::Array> inputs,
                                  float alpha = 0.0f, float beta = 0.0f);

}  // namespace swizzle::offload

#endif  // SWIZZLE_MODEL_LOADER_OFFLOAD_OPERATORS_H_
