// When operators changed, beyond the types that they take: the same node is something else in opsets before and after.
// Internal to model_loader/onnx.
#ifndef SWIZZLE_MODEL_LOADER_ONNX_OPERATOR_CHANGES_H_
#define SWIZZLE_MODEL_LOADER_ONNX_OPERATOR_CHANGES_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace swizzle {

struct OperatorChange {
  std::string_view op;
  int64_t opset;  // the first of the new kind
};

inline constexpr std::array kOperatorChanges = {
    OperatorChange{"BatchNormalization", 9},
    OperatorChange{"BatchNormalization", 14},
    OperatorChange{"Clip", 11},
    OperatorChange{"DFT", 20},
    OperatorChange{"Dropout", 12},
    OperatorChange{"GridSample", 20},
    OperatorChange{"GroupNormalization", 21},
    OperatorChange{"Hardmax", 13},
    OperatorChange{"LogSoftmax", 13},
    OperatorChange{"Pad", 11},
    OperatorChange{"ReduceL1", 18},
    OperatorChange{"ReduceL2", 18},
    OperatorChange{"ReduceLogSum", 18},
    OperatorChange{"ReduceLogSumExp", 18},
    OperatorChange{"ReduceMax", 18},
    OperatorChange{"ReduceMean", 18},
    OperatorChange{"ReduceMin", 18},
    OperatorChange{"ReduceProd", 18},
    OperatorChange{"ReduceSum", 13},
    OperatorChange{"ReduceSumSquare", 18},
    OperatorChange{"Resize", 11},
    OperatorChange{"Scatter", 11},
    OperatorChange{"Slice", 10},
    OperatorChange{"Softmax", 13},
    OperatorChange{"Split", 13},
    OperatorChange{"Split", 18},
    OperatorChange{"Squeeze", 13},
    OperatorChange{"TopK", 10},
    OperatorChange{"Unsqueeze", 13},
    OperatorChange{"Upsample", 9},
    OperatorChange{"Upsample", 10},
};

// Whether nodes of this operator differ between the two opsets. Before opset 7, all that broadcast do.
constexpr bool DiffersBetween(std::string_view op, int64_t a, int64_t b) {
  const int64_t low = a < b ? a : b, high = a < b ? b : a;
  if (low < 7 && high >= 7) return true;
  for (const OperatorChange& change : kOperatorChanges) {
    if (change.op == op && low < change.opset && change.opset <= high) return true;
  }
  return false;
}

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_ONNX_OPERATOR_CHANGES_H_
