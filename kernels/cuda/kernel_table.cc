#include "kernels/cuda/kernel_table.h"

#include "kernels/cuda/conv_csr.h"
#include "kernels/cuda/conv_dense_cublaslt.h"
#include "kernels/cuda/conv_dense_simt.h"
#include "kernels/cuda/convert.h"
#ifdef SWIZZLE_HAS_CUDNN
#include "kernels/cuda/conv_dense_cudnn.h"
#endif

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

// One row for each precision, on devices that have it; `name` ends before the type, `library` is the rest.
#define SWIZZLE_DENSE_ROWS(name, library, layout, accepts, prepare, workspace, run)                                  \
  Kernel{name "_f32_" library, Key(Op::kConv, Format::kDense, DType::kFloat32, layout), kAnySm, accepts, prepare,    \
         workspace, run},                                                                                            \
      Kernel{name "_f16_" library, Key(Op::kConv, Format::kDense, DType::kFloat16, layout), kAnySm, accepts,         \
             prepare, workspace, run},                                                                               \
      Kernel{name "_bf16_" library, Key(Op::kConv, Format::kDense, DType::kBFloat16, layout), kSm80, accepts,        \
             prepare, workspace, run}

constexpr Kernel kRows[] = {
    // Layout conversion.
    {"convert_nchw_rows_f32_sm75", Key(Op::kConvertLayout, Format::kNone, DType::kFloat32, Layout::kNchw, Layout::kRows),
     kAnySm, AcceptsAll, nullptr, nullptr, ConvertNchwToRows},
    {"convert_rows_nchw_f32_sm75", Key(Op::kConvertLayout, Format::kNone, DType::kFloat32, Layout::kRows, Layout::kNchw),
     kAnySm, AcceptsAll, nullptr, nullptr, ConvertRowsToNchw},

    // Dense convolution and linear layers.
    SWIZZLE_DENSE_ROWS("conv_nhwc_dense", "cublaslt", Layout::kNhwc, AcceptsAll, PrepareConvNhwcCublas,
                       ConvNhwcCublasWorkspaceBytes, ConvNhwcCublas),
    SWIZZLE_DENSE_ROWS("conv_rows_dense", "cublaslt", Layout::kRows, AcceptsAll, PrepareConvRowsCublas,
                       ConvRowsCublasWorkspaceBytes, ConvRowsCublas),
    {"conv_nhwc_dense_f32_sm75", Key(Op::kConv, Format::kDense, DType::kFloat32, Layout::kNhwc), kAnySm, AcceptsAll,
     PrepareConvSimt, ConvSimtWorkspaceBytes<Layout::kNhwc>, ConvSimt<Layout::kNhwc>},
    {"conv_rows_dense_f32_sm75", Key(Op::kConv, Format::kDense, DType::kFloat32, Layout::kRows), kAnySm, AcceptsAll,
     PrepareConvSimt, ConvSimtWorkspaceBytes<Layout::kRows>, ConvSimt<Layout::kRows>},
#ifdef SWIZZLE_HAS_CUDNN
    SWIZZLE_DENSE_ROWS("conv_nhwc_dense", "cudnn", Layout::kNhwc, AcceptsConvCudnn, PrepareConvCudnn, nullptr,
                       ConvCudnn),
#endif

    // Convolutions and linear layers with sparse weights.
    {"conv_rows_csr_f32_sm75", Key(Op::kConv, Format::kCsr, DType::kFloat32, Layout::kRows), kAnySm, AcceptsConvCsrF32,
     PrepareConvCsrF32, ConvCsrWorkspaceBytes, RunConvCsrF32},
    {"conv_rows_csr_f16_sm75", Key(Op::kConv, Format::kCsr, DType::kFloat16, Layout::kRows), kAnySm, AcceptsConvCsrF16,
     PrepareConvCsrF16, ConvCsrWorkspaceBytes, RunConvCsrF16},
    {"conv_rows_csr_bf16_sm80", Key(Op::kConv, Format::kCsr, DType::kBFloat16, Layout::kRows), kSm80, AcceptsConvCsrBf16,
     PrepareConvCsrBf16, ConvCsrWorkspaceBytes, RunConvCsrBf16},
};

}  // namespace

std::span<const Kernel> KernelTable() { return kRows; }

}  // namespace swizzle::cuda
