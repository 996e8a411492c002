#include "kernels/cuda/kernel_table.h"

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/attention_mma.h"
#include "kernels/cuda/attention/sparse_attention_rows.h"
#include "kernels/cuda/conv/conv_csr.h"
#include "kernels/cuda/conv/conv_csr_wgmma.h"
#include "kernels/cuda/conv/conv_dense_cublaslt.h"
#include "kernels/cuda/conv/conv_dense_simt.h"
#include "kernels/cuda/elementwise/convert.h"
#include "kernels/cuda/elementwise/elementwise.h"
#include "kernels/cuda/elementwise/scale.h"
#include "kernels/cuda/elementwise/softmax.h"
#include "kernels/cuda/tokens/embedding.h"
#include "kernels/cuda/tokens/layer_norm.h"
#include "kernels/cuda/tokens/token_reduction.h"
#include "kernels/cuda/window/depthwise.h"
#include "kernels/cuda/window/pool.h"
#ifdef SWIZZLE_HAS_CUDNN
#include "kernels/cuda/conv/conv_dense_cudnn.h"
#endif

namespace swizzle::cuda {
namespace {

constexpr KernelKey Key(Op op, Format weights, DType dtype, Layout input, Layout output) {
  return {op, weights, dtype, ElementType(input, dtype), ElementType(output, dtype), input, output};
}

constexpr KernelKey Key(Op op, Format weights, DType dtype, Layout layout) {
  return Key(op, weights, dtype, layout, layout);
}

bool AcceptsAll(const Problem&) { return true; }

// One row for each precision, on devices that have it; `name` ends before the type, `library` is the rest.
#define SWIZZLE_HALF_ROWS(name, library, layout, accepts, prepare, workspace, run)                            \
  Kernel{name "_f16_" library,                                                                                \
         Key(Op::kConv, Format::kDense, DType::kFloat16, layout),                                             \
         kAnySm,                                                                                              \
         accepts,                                                                                             \
         prepare,                                                                                             \
         workspace,                                                                                           \
         run},                                                                                                \
      Kernel {                                                                                                \
    name "_bf16_" library, Key(Op::kConv, Format::kDense, DType::kBFloat16, layout), kSm80, accepts, prepare, \
        workspace, run                                                                                        \
  }

// `run` is a template of whether factors are rounded to TF32.
#define SWIZZLE_DENSE_ROWS(name, library, layout, accepts, prepare, workspace, run) \
  Kernel{name "_f32_" library,                                                      \
         Key(Op::kConv, Format::kDense, DType::kFloat32, layout),                   \
         kAnySm,                                                                    \
         accepts,                                                                   \
         prepare,                                                                   \
         workspace,                                                                 \
         run<false>},                                                               \
      Kernel{name "_tf32_" library,                                                 \
             Key(Op::kConv, Format::kDense, DType::kFloat32, layout),               \
             kSm80,                                                                 \
             accepts,                                                               \
             prepare,                                                               \
             workspace,                                                             \
             run<true>},                                                            \
      SWIZZLE_HALF_ROWS(name, library, layout, accepts, prepare, workspace, run<false>)

// One row for each type; `function` is a template of the type.
#define SWIZZLE_CONVERT_ROWS(name, input, output, function)                                                         \
  Kernel{name "_f32_sm75",                                                                                          \
         Key(Op::kConvertLayout, Format::kNone, DType::kFloat32, input, output),                                    \
         kAnySm,                                                                                                    \
         AcceptsAll,                                                                                                \
         nullptr,                                                                                                   \
         nullptr,                                                                                                   \
         function<DType::kFloat32>},                                                                                \
      Kernel{name "_f16_sm75",                                                                                      \
             Key(Op::kConvertLayout, Format::kNone, DType::kFloat16, input, output),                                \
             kAnySm,                                                                                                \
             AcceptsAll,                                                                                            \
             nullptr,                                                                                               \
             nullptr,                                                                                               \
             function<DType::kFloat16>},                                                                            \
      Kernel {                                                                                                      \
    name "_bf16_sm75", Key(Op::kConvertLayout, Format::kNone, DType::kBFloat16, input, output), kAnySm, AcceptsAll, \
        nullptr, nullptr, function<DType::kBFloat16>                                                                \
  }

// One row for each layout and type; `function` is a template of both.
#define SWIZZLE_LAYOUT_TYPE_ROW(name, op, format, input, layout, dtype, accepts, prepare, function) \
  Kernel { name, Key(op, format, dtype, input, layout), kAnySm, accepts, prepare, nullptr, function<layout, dtype> }

#define SWIZZLE_TYPE_ROWS(name, op, format, input, layout, accepts, prepare, function)                               \
  SWIZZLE_LAYOUT_TYPE_ROW(name "_f32_sm75", op, format, input, layout, DType::kFloat32, accepts, prepare, function), \
      SWIZZLE_LAYOUT_TYPE_ROW(name "_f16_sm75", op, format, input, layout, DType::kFloat16, accepts, prepare,        \
                              function),                                                                             \
      SWIZZLE_LAYOUT_TYPE_ROW(name "_bf16_sm75", op, format, input, layout, DType::kBFloat16, accepts, prepare,      \
                              function)

// Of ops without weights whose layout stays.
#define SWIZZLE_PLAIN_ROWS(name, op, accepts_rows, accepts_nhwc, function)                                           \
  SWIZZLE_TYPE_ROWS(name "_rows", op, Format::kNone, Layout::kRows, Layout::kRows, accepts_rows, nullptr, function), \
      SWIZZLE_TYPE_ROWS(name "_nhwc", op, Format::kNone, Layout::kNhwc, Layout::kNhwc, accepts_nhwc, nullptr,        \
                        function)

// Attention on tensor cores: one row for each precision, FP32 as TF32. `name` ends before the type.
#define SWIZZLE_ATTENTION_MMA_ROW(name, op, format, dtype, prepare) \
  Kernel { name, Key(op, format, dtype, Layout::kNhwc), kSm80, AcceptsAttentionMma, prepare, nullptr, AttendMma<dtype> }
#define SWIZZLE_ATTENTION_MMA_ROWS(name, op, format, prepare)                                \
  SWIZZLE_ATTENTION_MMA_ROW(name "_tf32_mma_sm80", op, format, DType::kFloat32, prepare),    \
      SWIZZLE_ATTENTION_MMA_ROW(name "_f16_mma_sm80", op, format, DType::kFloat16, prepare), \
      SWIZZLE_ATTENTION_MMA_ROW(name "_bf16_mma_sm80", op, format, DType::kBFloat16, prepare)

#define SWIZZLE_EMBEDDING_ROW(name, layout, dtype)                                                        \
  SWIZZLE_LAYOUT_TYPE_ROW(name, Op::kEmbedding, Format::kDense, Layout::kNchw, layout, dtype, AcceptsAll, \
                          (PrepareEmbedding<layout, dtype>), Embedding)

constexpr Kernel kRows[] = {
    // Layout conversion.
    SWIZZLE_CONVERT_ROWS("convert_nchw_rows", Layout::kNchw, Layout::kRows, ConvertNchwToRows),
    SWIZZLE_CONVERT_ROWS("convert_rows_nchw", Layout::kRows, Layout::kNchw, ConvertRowsToNchw),
    SWIZZLE_CONVERT_ROWS("convert_nchw_nhwc", Layout::kNchw, Layout::kNhwc, ConvertNchwToNhwc),
    SWIZZLE_CONVERT_ROWS("convert_nhwc_nchw", Layout::kNhwc, Layout::kNchw, ConvertNhwcToNchw),
    SWIZZLE_CONVERT_ROWS("convert_rows_nhwc", Layout::kRows, Layout::kNhwc, ConvertRowsToNhwc),
    SWIZZLE_CONVERT_ROWS("convert_nhwc_rows", Layout::kNhwc, Layout::kRows, ConvertNhwcToRows),
    {"transpose_nchw_f32_sm75", Key(Op::kTranspose, Format::kNone, DType::kFloat32, Layout::kNchw), kAnySm, AcceptsAll,
     nullptr, nullptr, TransposeNchw},

    // Dense convolution and linear layers.
    SWIZZLE_DENSE_ROWS("conv_nhwc_dense", "cublaslt", Layout::kNhwc, AcceptsAll, PrepareConvNhwcCublas,
                       ConvNhwcCublasWorkspaceBytes, ConvNhwcCublas),
    SWIZZLE_DENSE_ROWS("conv_rows_dense", "cublaslt", Layout::kRows, AcceptsAll, PrepareConvRowsCublas,
                       ConvRowsCublasWorkspaceBytes, ConvRowsCublas),
    {"conv_nhwc_dense_f32_sm75", Key(Op::kConv, Format::kDense, DType::kFloat32, Layout::kNhwc), kAnySm,
     AcceptsConvSimt, PrepareConvSimt, ConvSimtWorkspaceBytes<Layout::kNhwc>, ConvSimt<Layout::kNhwc>},
    {"conv_rows_dense_f32_sm75", Key(Op::kConv, Format::kDense, DType::kFloat32, Layout::kRows), kAnySm,
     AcceptsConvSimt, PrepareConvSimt, ConvSimtWorkspaceBytes<Layout::kRows>, ConvSimt<Layout::kRows>},
#ifdef SWIZZLE_HAS_CUDNN
    // In FP32 it turns kNhwc around in workspace of any size, and fails where that is more than a stream has.
    SWIZZLE_HALF_ROWS("conv_nhwc_dense", "cudnn", Layout::kNhwc, AcceptsConvCudnn, PrepareConvCudnn, nullptr,
                      ConvCudnn),
#endif

    // Convolutions and linear layers with sparse weights.
    {"conv_rows_csr_f32_sm75", Key(Op::kConv, Format::kCsr, DType::kFloat32, Layout::kRows), kAnySm,
     AcceptsConvCsr<DType::kFloat32>, PrepareConvCsr, ConvCsrWorkspaceBytes, RunConvCsrPieces},
    {"conv_rows_csr_f32_tile128_sm80", Key(Op::kConv, Format::kCsr, DType::kFloat32, Layout::kRows), kSm80,
     AcceptsConvCsrTile<DType::kFloat32, 128>, PrepareConvCsr, ConvCsrWorkspaceBytes, RunConvCsrTile128},
    {"conv_rows_csr_f32_tile256_sm80", Key(Op::kConv, Format::kCsr, DType::kFloat32, Layout::kRows), kSm80,
     AcceptsConvCsrTile<DType::kFloat32, 256>, PrepareConvCsr, ConvCsrWorkspaceBytes, RunConvCsrTile256},
    {"conv_rows_csr_f16_sm75", Key(Op::kConv, Format::kCsr, DType::kFloat16, Layout::kRows), kAnySm,
     AcceptsConvCsr<DType::kFloat16>, PrepareConvCsr, ConvCsrWorkspaceBytes, RunConvCsrPieces},
    {"conv_rows_csr_f16_tile128_sm80", Key(Op::kConv, Format::kCsr, DType::kFloat16, Layout::kRows), kSm80,
     AcceptsConvCsrTile<DType::kFloat16, 128>, PrepareConvCsr, ConvCsrWorkspaceBytes, RunConvCsrTile128},
    {"conv_rows_csr_f16_tile256_sm80", Key(Op::kConv, Format::kCsr, DType::kFloat16, Layout::kRows), kSm80,
     AcceptsConvCsrTile<DType::kFloat16, 256>, PrepareConvCsr, ConvCsrWorkspaceBytes, RunConvCsrTile256},
    {"conv_rows_csr_bf16_sm80", Key(Op::kConv, Format::kCsr, DType::kBFloat16, Layout::kRows), kSm80,
     AcceptsConvCsr<DType::kBFloat16>, PrepareConvCsr, ConvCsrWorkspaceBytes, RunConvCsrPieces},
    {"conv_rows_csr_bf16_tile128_sm80", Key(Op::kConv, Format::kCsr, DType::kBFloat16, Layout::kRows), kSm80,
     AcceptsConvCsrTile<DType::kBFloat16, 128>, PrepareConvCsr, ConvCsrWorkspaceBytes, RunConvCsrTile128},
    {"conv_rows_csr_bf16_tile256_sm80", Key(Op::kConv, Format::kCsr, DType::kBFloat16, Layout::kRows), kSm80,
     AcceptsConvCsrTile<DType::kBFloat16, 256>, PrepareConvCsr, ConvCsrWorkspaceBytes, RunConvCsrTile256},

    // The same on tensor cores.
    {"conv_rows_csr_f32_wgmma_sm90a", Key(Op::kConv, Format::kCsr, DType::kFloat32, Layout::kRows), kSm90a,
     AcceptsConvCsr<DType::kFloat32>, PrepareConvCsrWgmma, ConvCsrWorkspaceBytes, RunConvCsrWgmma},

    // Element-wise.
    SWIZZLE_PLAIN_ROWS("add", Op::kAdd, AcceptsAll, AcceptsAll, Add),
    SWIZZLE_PLAIN_ROWS("multiply", Op::kMultiply, AcceptsAll, AcceptsAll, Multiply),
    SWIZZLE_PLAIN_ROWS("activation", Op::kActivation, AcceptsAll, AcceptsAll, Activation),
    SWIZZLE_PLAIN_ROWS("function", Op::kFunction, AcceptsAll, AcceptsAll, ApplyFunction),
    SWIZZLE_PLAIN_ROWS("scale", Op::kScale, AcceptsScale<Layout::kRows>, AcceptsScale<Layout::kNhwc>, Scale),

    // Planes.
    SWIZZLE_TYPE_ROWS("depthwise_rows_dense", Op::kDepthwiseConv, Format::kDense, Layout::kRows, Layout::kRows,
                      AcceptsDepthwise<Layout::kRows>, PrepareDepthwise<Layout::kRows>, Depthwise),
    SWIZZLE_TYPE_ROWS("depthwise_nhwc_dense", Op::kDepthwiseConv, Format::kDense, Layout::kNhwc, Layout::kNhwc,
                      AcceptsDepthwise<Layout::kNhwc>, PrepareDepthwise<Layout::kNhwc>, Depthwise),
    SWIZZLE_PLAIN_ROWS("max_pool", Op::kMaxPool, AcceptsPool<Layout::kRows>, AcceptsPool<Layout::kNhwc>, MaxPool),
    SWIZZLE_PLAIN_ROWS("average_pool", Op::kAveragePool, AcceptsPool<Layout::kRows>, AcceptsPool<Layout::kNhwc>,
                       AveragePool),
    SWIZZLE_PLAIN_ROWS("softmax", Op::kSoftmax, AcceptsSoftmax, AcceptsSoftmax, Softmax),

    // Token sequences.
    SWIZZLE_EMBEDDING_ROW("embedding_rows_dense_f32_sm75", Layout::kRows, DType::kFloat32),
    SWIZZLE_EMBEDDING_ROW("embedding_rows_dense_f16_sm75", Layout::kRows, DType::kFloat16),
    SWIZZLE_EMBEDDING_ROW("embedding_rows_dense_bf16_sm75", Layout::kRows, DType::kBFloat16),
    SWIZZLE_EMBEDDING_ROW("embedding_nhwc_dense_f32_sm75", Layout::kNhwc, DType::kFloat32),
    SWIZZLE_EMBEDDING_ROW("embedding_nhwc_dense_f16_sm75", Layout::kNhwc, DType::kFloat16),
    SWIZZLE_EMBEDDING_ROW("embedding_nhwc_dense_bf16_sm75", Layout::kNhwc, DType::kBFloat16),
    SWIZZLE_TYPE_ROWS("layer_norm_rows_dense", Op::kLayerNorm, Format::kDense, Layout::kRows, Layout::kRows, AcceptsAll,
                      PrepareLayerNorm, LayerNorm),
    SWIZZLE_TYPE_ROWS("layer_norm_nhwc_dense", Op::kLayerNorm, Format::kDense, Layout::kNhwc, Layout::kNhwc, AcceptsAll,
                      PrepareLayerNorm, LayerNorm),
    SWIZZLE_PLAIN_ROWS("attention", Op::kAttention, AcceptsAttention, AcceptsAttention, Attend),
    SWIZZLE_ATTENTION_MMA_ROWS("attention_nhwc", Op::kAttention, Format::kNone, nullptr),
    {"sparse_attention_nhwc_pattern_f32_fused_sm90",
     Key(Op::kSparseAttention, Format::kPattern, DType::kFloat32, Layout::kNhwc), kSm90a, AcceptsFusedAttention,
     PrepareFusedAttention, FusedAttentionWorkspaceBytes, RunFusedAttention},
    {"sparse_attention_nhwc_pattern_f16_fused_sm90",
     Key(Op::kSparseAttention, Format::kPattern, DType::kFloat16, Layout::kNhwc), kSm90a, AcceptsFusedAttention,
     PrepareFusedAttention, FusedAttentionWorkspaceBytes, RunFusedAttention},
    {"sparse_attention_nhwc_pattern_f32_parts_sm80",
     Key(Op::kSparseAttention, Format::kPattern, DType::kFloat32, Layout::kNhwc), kSm80, AcceptsAttentionInParts,
     PrepareAttentionInParts, AttentionInPartsWorkspaceBytes, RunAttentionInParts},
    {"sparse_attention_nhwc_pattern_f16_parts_sm80",
     Key(Op::kSparseAttention, Format::kPattern, DType::kFloat16, Layout::kNhwc), kSm80, AcceptsAttentionInParts,
     PrepareAttentionInParts, AttentionInPartsWorkspaceBytes, RunAttentionInParts},
    SWIZZLE_TYPE_ROWS("sparse_attention_rows_dense", Op::kSparseAttention, Format::kDense, Layout::kRows, Layout::kRows,
                      AcceptsMaskedAttention, PrepareMaskedAttention, Attend),
    SWIZZLE_TYPE_ROWS("sparse_attention_nhwc_dense", Op::kSparseAttention, Format::kDense, Layout::kNhwc, Layout::kNhwc,
                      AcceptsMaskedAttention, PrepareMaskedAttention, Attend),
    SWIZZLE_ATTENTION_MMA_ROWS("sparse_attention_nhwc_dense", Op::kSparseAttention, Format::kDense,
                               PrepareMaskedAttention),
    SWIZZLE_PLAIN_ROWS("select_token", Op::kSelectToken, AcceptsAll, AcceptsAll, SelectToken),
    SWIZZLE_PLAIN_ROWS("mean_tokens", Op::kMeanTokens, AcceptsAll, AcceptsAll, MeanTokens),
};

}  // namespace

std::span<const Kernel> KernelTable() { return kRows; }

}  // namespace swizzle::cuda
