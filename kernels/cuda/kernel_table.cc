#include "kernels/cuda/kernel_table.h"

#include "kernels/cuda/convert.h"

namespace swizzle::cuda {
namespace {

// kNchw is FP32 whatever the precision.
constexpr DType TypeIn(Layout layout, DType dtype) { return layout == Layout::kNchw ? DType::kFloat32 : dtype; }

constexpr KernelKey Key(Op op, Format weights, DType dtype, Layout input, Layout output) {
  return {op, weights, dtype, TypeIn(input, dtype), TypeIn(output, dtype), input, output};
}

constexpr KernelKey Key(Op op, Format weights, DType dtype, Layout layout) {
  return Key(op, weights, dtype, layout, layout);
}

bool AcceptsAll(const Problem&) { return true; }

constexpr Kernel kRows[] = {
    // Layout conversion.
    {"convert_nchw_rows_f32_sm75", Key(Op::kConvertLayout, Format::kNone, DType::kFloat32, Layout::kNchw, Layout::kRows),
     kAnySm, AcceptsAll, nullptr, nullptr, ConvertNchwToRows},
    {"convert_rows_nchw_f32_sm75", Key(Op::kConvertLayout, Format::kNone, DType::kFloat32, Layout::kRows, Layout::kNchw),
     kAnySm, AcceptsAll, nullptr, nullptr, ConvertRowsToNchw},
};

}  // namespace

std::span<const Kernel> KernelTable() { return kRows; }

}  // namespace swizzle::cuda
