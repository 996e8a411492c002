#include "kernels/cuda/kernel_table.h"

#include "kernels/backend/kernel_rows.h"
#include "kernels/cuda/attention/attention_rows.h"
#include "kernels/cuda/attention/sparse_attention_rows.h"
#include "kernels/cuda/conv/bitmap/conv_bitmap.h"
#include "kernels/cuda/conv/csr/conv_csr.h"
#include "kernels/cuda/conv/csr/conv_csr_wgmma.h"
#include "kernels/cuda/conv/dense/conv_dense_cublaslt.h"
#include "kernels/cuda/conv/dense/conv_dense_simt.h"
#include "kernels/cuda/conv/n_m/conv_n_m.h"
#include "kernels/cuda/conv/parts/part_rows.h"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw.h"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_batched.h"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_window.h"
#include "kernels/cuda/conv/shfl_bw/norm_rows.h"
#include "kernels/cuda/conv/stem/stem_rows.h"
#include "kernels/cuda/elementwise/bytes.h"
#include "kernels/cuda/elementwise/channels.h"
#include "kernels/cuda/elementwise/convert.h"
#include "kernels/cuda/elementwise/elementwise.h"
#include "kernels/cuda/elementwise/scale.h"
#include "kernels/cuda/elementwise/softmax.h"
#include "kernels/cuda/int8/byte_rows.h"
#include "kernels/cuda/tokens/embedding.h"
#include "kernels/cuda/tokens/layer_norm.h"
#include "kernels/cuda/tokens/permute_tokens.h"
#include "kernels/cuda/tokens/plane_tokens.h"
#include "kernels/cuda/tokens/rotary.h"
#include "kernels/cuda/tokens/token_reduction.h"
#include "kernels/cuda/window/depthwise.h"
#include "kernels/cuda/window/pool.h"
#include "kernels/cuda/window/resize.h"
#ifdef SWIZZLE_HAS_CUDNN
#include "kernels/cuda/conv/dense/conv_dense_cudnn.h"
#endif

namespace swizzle::cuda {
namespace {

constexpr DType kF32 = DType::kFloat32, kF16 = DType::kFloat16, kBf16 = DType::kBFloat16;
constexpr Layout kNchw = Layout::kNchw, kGpuRows = Layout::kRows, kNhwc = Layout::kNhwc, kBatched = Layout::kBatched;

bool AcceptsAll(const Problem&) { return true; }

// One row.
template <RowText kName>
constexpr std::array<Kernel, 1> Row(const RowShape& shape, DType dtype, uint32_t features, const Kernel& common,
                                    RunFunctionPointer run) {
  return {MakeRow<kName>(common, KeyOf(shape, dtype, dtype), features, run)};
}

// Rows <stem>_<type>_<target>. `run_of` is a template of the type that gives the function.
template <RowText kStem, RowText kTarget, DType... kTypes>
constexpr auto Rows(const RowShape& shape, uint32_t features, const Kernel& common, auto run_of) {
  return Join(Row<kStem + "_" + TypeTag(kTypes) + "_" + kTarget>(shape, kTypes, features, common,
                                                                 run_of.template operator()<kTypes>())...);
}

// Rows <stem>_<layout>[_<format>]_<type>_sm75 in every type, on every device, of what writes this layout. `run_of` is a
// template of layout and type.
template <RowText kStem, RowText kFormat, Layout kLayout>
constexpr auto RowsInLayout(Op op, Format weights, const Kernel& common, auto run_of) {
  const auto of_type = [run_of]<DType kType>() { return run_of.template operator()<kLayout, kType>(); };
  return Rows<kStem + "_" + RowText(LayoutName(kLayout)) + kFormat, "sm75", kF32, kF16, kBf16>(
      {op, weights, kLayout, kLayout}, kAnySm, common, of_type);
}

// Of both layouts.
template <RowText kStem, RowText kFormat>
constexpr auto LayoutRows(Op op, Format weights, const Kernel& common, auto run_of) {
  return Join(RowsInLayout<kStem, kFormat, kGpuRows>(op, weights, common, run_of),
              RowsInLayout<kStem, kFormat, kNhwc>(op, weights, common, run_of));
}
template <RowText kStem>
constexpr auto PlainRows(Op op, const Kernel& common, auto run_of) {
  return LayoutRows<kStem, "">(op, Format::kNone, common, run_of);
}

// Of kBatched, which is of half types only: rows <stem>[_<format>]_<type>_sm75.
template <RowText kStem>
constexpr auto BatchedRows(const RowShape& shape, const Kernel& common, auto run_of) {
  const auto of_type = [run_of]<DType kType>() { return run_of.template operator()<kBatched, kType>(); };
  return Rows<kStem, "sm75", kF16, kBf16>(shape, kAnySm, common, of_type);
}
template <RowText kStem>
constexpr auto PlainAndBatchedRows(Op op, const Kernel& common, auto run_of) {
  return Join(PlainRows<kStem>(op, common, run_of),
              BatchedRows<kStem + "_batched">({op, Format::kNone, kBatched, kBatched}, common, run_of));
}

template <Layout kFrom, Layout kTo>
constexpr auto ConvertRows(auto run_of) {
  constexpr RowText kName = RowText("convert_") + RowText(LayoutName(kFrom)) + "_" + RowText(LayoutName(kTo));
  constexpr RowShape kShape = {Op::kConvertLayout, Format::kNone, kFrom, kTo};
  constexpr Kernel kCommon = Pitched({.accepts = AcceptsAll}, kFrom == kNchw || kTo == kNchw ? nullptr : AcceptsAll);
  if constexpr (kFrom == kBatched || kTo == kBatched) {
    return Rows<kName, "sm75", kF16, kBf16>(kShape, kAnySm, kCommon, run_of);
  } else {
    return Rows<kName, "sm75", kF32, kF16, kBf16>(kShape, kAnySm, kCommon, run_of);
  }
}

// Between FP32 and a half type.
template <Layout kFromLayout, DType kFrom, Layout kToLayout, DType kTo>
constexpr std::array<Kernel, 1> TypesRow() {
  constexpr RowText kName = RowText("convert_") + RowText(LayoutName(kFromLayout)) + "_" + TypeTag(kFrom) + "_" +
                            RowText(LayoutName(kToLayout)) + "_" + TypeTag(kTo) + "_sm75";
  return {MakeRow<kName>(Pitched({.accepts = AcceptsAll}),
                         {Op::kConvertLayout, Format::kNone, kF32, {kFromLayout, kFrom}, {kToLayout, kTo}}, kAnySm,
                         &ConvertTypes<kFromLayout, kFrom, kToLayout, kTo>)};
}
template <DType kFrom, DType kTo>
constexpr auto TypesRows() {
  return Join(TypesRow<kGpuRows, kFrom, kGpuRows, kTo>(), TypesRow<kGpuRows, kFrom, kNhwc, kTo>(),
              TypesRow<kNhwc, kFrom, kGpuRows, kTo>(), TypesRow<kNhwc, kFrom, kNhwc, kTo>());
}

// Of bytes in kNchw, which images arrive as.
template <RowText kStem, Layout kTo, DType... kTypes>
constexpr auto ByteRows(Op op, Format weights, const Kernel& common, auto run_of) {
  constexpr RowText kName = kStem + "_nchw_u8_" + RowText(LayoutName(kTo)) + "_";
  return Join(std::array<Kernel, 1>{MakeRow<kName + TypeTag(kTypes) + "_sm75">(
      common,
      {op, weights, weights == Format::kNone ? kF32 : kTypes, Storage{kNchw, DType::kUint8}, Storage{kTo, kTypes}},
      kAnySm, run_of.template operator()<kTo, kTypes>())}...);
}
template <RowText kStem>
constexpr auto ByteRows(Op op, Format weights, const Kernel& common, auto run_of) {
  return Join(ByteRows<kStem, kNchw, kF32>(op, weights, common, run_of),
              ByteRows<kStem, kGpuRows, kF32, kF16, kBf16>(op, weights, common, run_of),
              ByteRows<kStem, kNhwc, kF32, kF16, kBf16>(op, weights, common, run_of),
              ByteRows<kStem, kBatched, kF16, kBf16>(op, weights, common, run_of));
}

// A library's dense products in half precision, on devices that have it.
template <RowText kStem, RowText kLibrary>
constexpr auto HalfRows(const RowShape& shape, const Kernel& common, RunFunctionPointer run) {
  return Join(Row<kStem + "_f16_" + kLibrary>(shape, kF16, kAnySm, common, run),
              Row<kStem + "_bf16_" + kLibrary>(shape, kBf16, kSm80, common, run));
}
// In every precision; `run_tf32` rounds FP32 factors to TF32.
template <RowText kStem, RowText kLibrary>
constexpr auto DenseRows(const RowShape& shape, const Kernel& common, RunFunctionPointer run,
                         RunFunctionPointer run_tf32) {
  return Join(Row<kStem + "_f32_" + kLibrary>(shape, kF32, kAnySm, common, run),
              Row<kStem + "_tf32_" + kLibrary>(shape, kF32, kSm80, Computing(Numerics::kTf32Factors, common), run_tf32),
              HalfRows<kStem, kLibrary>(shape, common, run));
}

constexpr RowShape kCsrShape = {Op::kConv, Format::kCsr, kGpuRows, kGpuRows};
constexpr RowShape kShflBwShape = {Op::kConv, Format::kShflBw, kGpuRows, kGpuRows};
constexpr RowShape kShflBwBatchedShape = {Op::kConv, Format::kShflBw, kBatched, kBatched};
constexpr RowShape kHbEllShape = {Op::kConv, Format::kHbEll, kGpuRows, kGpuRows};
constexpr RowShape kNOfMShape = {Op::kConv, Format::kNOfM, kGpuRows, kGpuRows};
constexpr RowShape kBitmapShape = {Op::kConv, Format::kBitmap, kGpuRows, kGpuRows};
constexpr RowShape kDenseRowsShape = {Op::kConv, Format::kDense, kGpuRows, kGpuRows};
constexpr RowShape kDenseBatchedShape = {Op::kConv, Format::kDense, kBatched, kBatched};
constexpr RowShape kDenseNhwcShape = {Op::kConv, Format::kDense, kNhwc, kNhwc};
constexpr RowShape kPatternShape = {Op::kSparseAttention, Format::kPattern, kNhwc, kNhwc};

constexpr Kernel kConvCsr = {
    .accepts = AcceptsAll, .prepare = PrepareConvCsr, .workspace_bytes = ConvCsrWorkspaceBytes};
template <int kBytes>
constexpr Kernel kConvCsrTile = {
    .accepts = AcceptsConvCsrTile<kBytes>, .prepare = PrepareConvCsr, .workspace_bytes = ConvCsrWorkspaceBytes};
template <auto kPrepare, auto kHolds>
constexpr Kernel kConvGroups = {
    .accepts = AcceptsConvShflBw, .prepare = kPrepare, .workspace_bytes = ConvCsrWorkspaceBytes, .holds = kHolds};
constexpr Kernel kConvShflBw = kConvGroups<PrepareConvShflBw, HoldsRowGroups>;
constexpr Kernel kConvShflBwPairs = kConvGroups<PrepareConvShflBw, HoldsRowPairs>;
constexpr Kernel kConvHbEll = kConvGroups<PrepareConvHbEll, HoldsMixedBlocks>;
constexpr Kernel kConvShflBwWindow = {.accepts = AcceptsConvShflBwWindow,
                                      .prepare = PrepareConvShflBw,
                                      .workspace_bytes = ConvShflBwWindowWorkspaceBytes,
                                      .holds = HoldsRowGroups};
constexpr Kernel kConvThin = {
    .accepts = AcceptsConvThin, .prepare = PrepareConvThin, .workspace_bytes = ConvThinWorkspaceBytes};
constexpr Kernel kConvBatched = {.accepts = AcceptsConvBatched, .prepare = PrepareConvShflBw, .holds = HoldsRowGroups};
constexpr Kernel kConvBatchedWindow = {
    .accepts = AcceptsConvBatchedWindow, .prepare = PrepareConvShflBw, .holds = HoldsRowGroups};
constexpr Kernel kConvBatchedThin = {.accepts = AcceptsConvBatchedThin, .prepare = PrepareConvThin};
constexpr Kernel kConvTwoOfFour = {.accepts = AcceptsConvTwoOfFour,
                                   .prepare = PrepareConvTwoOfFour,
                                   .workspace_bytes = ConvCsrWorkspaceBytes,
                                   .holds = HoldsTwoOfFour};
constexpr Kernel kConvBitmap = {.accepts = AcceptsAll,
                                .prepare = PrepareConvBitmap,
                                .workspace_bytes = ConvCsrWorkspaceBytes,
                                .holds = HoldsEmptyColumns};
constexpr Kernel kConvBitmaps = SkippingInputZeros(
    {.accepts = AcceptsConvBitmaps, .prepare = PrepareConvBitmap, .workspace_bytes = ConvBitmapsWorkspaceBytes});
constexpr Kernel kFusedAttention = {.accepts = AcceptsFusedAttention,
                                    .prepare = PrepareFusedAttention,
                                    .workspace_bytes = FusedAttentionWorkspaceBytes};
constexpr Kernel kBlockAttention = {
    .accepts = AcceptsBlockAttention, .prepare = PrepareBlockAttention, .holds = HoldsFullBlocks};
constexpr Kernel kAttentionInParts = {.accepts = AcceptsAttentionInParts,
                                      .prepare = PrepareAttentionInParts,
                                      .workspace_bytes = AttentionInPartsWorkspaceBytes};
constexpr Kernel kByteAttention = {.accepts = AcceptsByteAttention,
                                   .prepare = PrepareByteAttention,
                                   .workspace_bytes = ByteAttentionRowWorkspaceBytes,
                                   .holds = HoldsSharedKeys};
template <Layout kLayout>
constexpr Kernel kPlaneTokens = {.accepts = AcceptsPlaneTokens, .prepare = PreparePlaneTokens<kLayout>};
constexpr auto kTokensOfPlanes = []<Layout kLayout, DType kType>() { return &PlaneTokens<kLayout, kType>; };
constexpr auto kPermute = []<Layout kLayout, DType kType>() { return &PermuteTokens<kLayout, kType>; };
constexpr auto kFilter = []<Layout kLayout, DType kType>() { return &Depthwise<kLayout, kType>; };

template <Layout kLayout>
constexpr Kernel kDepthwise = Pitched({.accepts = AcceptsDepthwise, .prepare = PrepareDepthwise<kLayout>},
                                      TakesPitchedDepthwise);
template <Layout kLayout>
constexpr Kernel kConvSimt = {
    .accepts = AcceptsConvSimt, .prepare = PrepareConvSimt, .workspace_bytes = ConvSimtWorkspaceBytes<kLayout>};

// Embeddings are prepared in their type.
template <Layout kLayout, DType... kTypes>
constexpr auto EmbeddingRows() {
  constexpr RowText kStem = RowText("embedding_") + RowText(LayoutName(kLayout)) + "_dense_";
  return Join(Row<kStem + TypeTag(kTypes) + "_sm75">(
      {Op::kEmbedding, Format::kDense, kNchw, kLayout}, kTypes, kAnySm,
      {.accepts = AcceptsAll, .prepare = PrepareEmbedding<kLayout, kTypes>}, Embedding<kLayout, kTypes>)...);
}

// Tiles of so many columns.
template <RowText kText, int kWidth>
constexpr auto ShflBwRows() {
  return Join(Rows<"conv_rows_shfl_bw", RowText("wgmma") + kText + "_sm90a", kF16, kBf16>(
                  kShflBwShape, kSm90a, kConvShflBw, []<DType>() { return &RunConvShflBw<kWidth>; }),
              Rows<"conv_rows_shfl_bw", RowText("pairs") + kText + "_sm90a", kF16, kBf16>(
                  kShflBwShape, kSm90a, kConvShflBwPairs, []<DType>() { return &RunConvShflBwPairs<kWidth>; }));
}

template <RowText kText, int kWidth>
constexpr auto HbEllRows() {
  return Rows<"conv_rows_hb_ell", RowText("wgmma") + kText + "_sm90a", kF16, kBf16>(
      kHbEllShape, kSm90a, kConvHbEll, []<DType>() { return &RunConvShflBw<kWidth>; });
}

template <RowText kText, int kWidth>
constexpr auto ShflBwWindowRows() {
  constexpr RowText kTarget = RowText("window") + kText + "_sm90a";
  return Join(
      Rows<"conv_rows_shfl_bw", kTarget, kF16, kBf16>(kShflBwShape, kSm90a, kConvShflBwWindow,
                                                      []<DType>() { return &RunConvShflBwWindow<kWidth>; }),
      Rows<"conv_batched_shfl_bw", kTarget, kF16, kBf16>(kShflBwBatchedShape, kSm90a, kConvBatchedWindow,
                                                         []<DType>() { return &RunConvBatchedWindow<kWidth>; }));
}
template <RowText kText, int kWidth>
constexpr auto ShflBwBatchedRows() {
  return Rows<"conv_batched_shfl_bw", RowText("wgmma") + kText + "_sm90a", kF16, kBf16>(
      kShflBwBatchedShape, kSm90a, kConvBatched, []<DType>() { return &RunConvBatched<kWidth>; });
}
template <RowText kText, int kWidth>
constexpr auto ThinRows() {
  constexpr RowText kTarget = RowText("thin") + kText + "_sm90a";
  return Join(Rows<"conv_rows_dense", kTarget, kF16, kBf16>(kDenseRowsShape, kSm90a, kConvThin,
                                                            []<DType>() { return &RunConvThin<kWidth>; }),
              Rows<"conv_batched_dense", kTarget, kF16, kBf16>(kDenseBatchedShape, kSm90a, kConvBatchedThin,
                                                               []<DType>() { return &RunConvBatchedThin<kWidth>; }));
}
template <RowText kText, uint32_t kFeatures, auto kRun>
constexpr auto TwoOfFourRows() {
  return Rows<"conv_rows_n_m", kText, kF16, kBf16>(kNOfMShape, kFeatures, kConvTwoOfFour, []<DType>() { return kRun; });
}

constexpr auto kRows = Join(
    // Layout conversion.
    ConvertRows<kNchw, kGpuRows>([]<DType kType>() { return &ConvertNchwToRows<kType>; }),
    ConvertRows<kGpuRows, kNchw>([]<DType kType>() { return &ConvertRowsToNchw<kType>; }),
    ConvertRows<kNchw, kNhwc>([]<DType kType>() { return &ConvertNchwToNhwc<kType>; }),
    ConvertRows<kNhwc, kNchw>([]<DType kType>() { return &ConvertNhwcToNchw<kType>; }),
    ConvertRows<kGpuRows, kNhwc>([]<DType kType>() { return &ConvertRowsToNhwc<kType>; }),
    ConvertRows<kNhwc, kGpuRows>([]<DType kType>() { return &ConvertNhwcToRows<kType>; }), TypesRows<kF32, kF16>(),
    TypesRows<kF16, kF32>(), TypesRows<kF32, kBf16>(), TypesRows<kBf16, kF32>(),
    ByteRows<"convert">(Op::kConvertLayout, Format::kNone, {.accepts = AcceptsAll},
                        []<Layout kTo, DType kType>() { return &ConvertBytes<kTo, kType>; }),
    ConvertRows<kNchw, kBatched>([]<DType kType>() { return &ConvertNchwToBatched<kType>; }),
    ConvertRows<kGpuRows, kBatched>([]<DType kType>() { return &ConvertRowsToBatched<kType>; }),
    ConvertRows<kBatched, kGpuRows>([]<DType kType>() { return &ConvertBatchedToRows<kType>; }),
    ByteRows<"scale">(Op::kDepthwiseConv, Format::kDense, {.accepts = AcceptsScaleBytes, .prepare = PrepareScaleBytes},
                      []<Layout kTo, DType kType>() { return &ScaleBytes<kTo, kType>; }),
    Row<"transpose_nchw_f32_sm75">({Op::kTranspose, Format::kNone, kNchw, kNchw}, kF32, kAnySm, {.accepts = AcceptsAll},
                                   TransposeNchw),

    // FP32 by products of halves. Of rows that an estimate finds equal the first is taken: these before exact ones.
    part_rows::All(),

    // Dense convolution and linear layers.
    DenseRows<"conv_nhwc_dense", "cublaslt">(
        kDenseNhwcShape,
        Pitched(
            {.accepts = AcceptsAll, .prepare = PrepareConvNhwcCublas, .workspace_bytes = ConvNhwcCublasWorkspaceBytes}),
        ConvNhwcCublas<false>, ConvNhwcCublas<true>),
    DenseRows<"conv_rows_dense", "cublaslt">(
        kDenseRowsShape,
        {.accepts = AcceptsAll, .prepare = PrepareConvRowsCublas, .workspace_bytes = ConvRowsCublasWorkspaceBytes},
        ConvRowsCublas<false>, ConvRowsCublas<true>),
    Row<"conv_nhwc_dense_f32_sm75">(kDenseNhwcShape, kF32, kAnySm, kConvSimt<kNhwc>, ConvSimt<kNhwc>),
    Row<"conv_rows_dense_f32_sm75">(kDenseRowsShape, kF32, kAnySm, kConvSimt<kGpuRows>, ConvSimt<kGpuRows>),
#ifdef SWIZZLE_HAS_CUDNN
    // In FP32 it turns kNhwc around in workspace of any size, and fails where that is more than a stream has.
    HalfRows<"conv_nhwc_dense", "cudnn">(kDenseNhwcShape,
                                         {.accepts = AcceptsConvCudnn,
                                          .prepare = PrepareConvCudnn,
                                          .workspace_bytes = ConvCudnnWorkspaceBytes,
                                          .writes_pitched = ConvCudnnWritesPitched},
                                         ConvCudnn),
#endif

    ThinRows<"128", 128>(), ThinRows<"256", 256>(),
    // Convolutions and linear layers with sparse weights.
    Row<"conv_rows_csr_f32_sm75">(kCsrShape, kF32, kAnySm, kConvCsr, RunConvCsrPieces),
    Row<"conv_rows_csr_f16_sm75">(kCsrShape, kF16, kAnySm, kConvCsr, RunConvCsrPieces),
    Row<"conv_rows_csr_bf16_sm80">(kCsrShape, kBf16, kSm80, kConvCsr, RunConvCsrPieces),
    Rows<"conv_rows_csr", "tile128_sm80", kF32, kF16, kBf16>(kCsrShape, kSm80, kConvCsrTile<128>,
                                                             []<DType>() { return &RunConvCsrTile128; }),
    Rows<"conv_rows_csr", "tile256_sm80", kF32, kF16, kBf16>(kCsrShape, kSm80, kConvCsrTile<256>,
                                                             []<DType>() { return &RunConvCsrTile256; }),

    // The same on tensor cores.
    Row<"conv_rows_csr_f32_wgmma_sm90a">(
        kCsrShape, kF32, kSm90a,
        {.accepts = AcceptsAll, .prepare = PrepareConvCsrWgmma, .workspace_bytes = ConvCsrWorkspaceBytes},
        RunConvCsrWgmma),
    part_rows::AllOfCsr(), ShflBwRows<"64", 64>(), ShflBwRows<"128", 128>(), ShflBwRows<"192", 192>(),
    ShflBwRows<"256", 256>(),
    Rows<"conv_rows_shfl_bw", "mma_sm80", kF16, kBf16>(kShflBwShape, kSm80, kConvShflBw,
                                                       []<DType>() { return &RunConvShflBwFew; }),
    HbEllRows<"64", 64>(), HbEllRows<"128", 128>(), HbEllRows<"256", 256>(),
    Rows<"conv_rows_hb_ell", "mma_sm80", kF16, kBf16>(kHbEllShape, kSm80, kConvHbEll,
                                                      []<DType>() { return &RunConvShflBwFew; }),
    ShflBwBatchedRows<"64", 64>(), ShflBwBatchedRows<"128", 128>(), ShflBwBatchedRows<"192", 192>(),
    ShflBwBatchedRows<"256", 256>(), ShflBwWindowRows<"64", 64>(), ShflBwWindowRows<"128", 128>(),
    ShflBwWindowRows<"256", 256>(), TwoOfFourRows<"wgmma_sp128_sm90a", kSm90a, &RunConvTwoOfFour<128>>(),
    TwoOfFourRows<"wgmma_sp256_sm90a", kSm90a, &RunConvTwoOfFour<256>>(),
    TwoOfFourRows<"mma_sp64_sm80", kSm80, &RunConvTwoOfFourByWarps<64>>(),
    TwoOfFourRows<"mma_sp128_sm80", kSm80, &RunConvTwoOfFourByWarps<128>>(),
    Rows<"conv_rows_bitmap", "mma_sm80", kF16, kBf16>(kBitmapShape, kSm80, kConvBitmap,
                                                      []<DType>() { return &RunConvBitmap; }),
    Rows<"conv_rows_bitmap", "both_sm80", kF16, kBf16>(kBitmapShape, kSm80, kConvBitmaps,
                                                       []<DType>() { return &RunConvBitmaps; }),
    byte_rows::All(), stem_rows::All(),

    // Element-wise.
    PlainAndBatchedRows<"add">(Op::kAdd, Pitched({.accepts = AcceptsAll}),
                               []<Layout kLayout, DType kType>() { return &Add<kLayout, kType>; }),
    PlainAndBatchedRows<"multiply">(Op::kMultiply, Pitched({.accepts = AcceptsAll}),
                                    []<Layout kLayout, DType kType>() { return &Multiply<kLayout, kType>; }),
    PlainAndBatchedRows<"activation">(Op::kActivation, Pitched({.accepts = AcceptsAll}),
                                      []<Layout kLayout, DType kType>() { return &Activation<kLayout, kType>; }),
    PlainAndBatchedRows<"function">(Op::kFunction, Pitched({.accepts = AcceptsAll}),
                                    []<Layout kLayout, DType kType>() { return &ApplyFunction<kLayout, kType>; }),
    PlainRows<"scale">(Op::kScale, {.accepts = AcceptsScale},
                       []<Layout kLayout, DType kType>() { return &Scale<kLayout, kType>; }),

    // Planes.
    RowsInLayout<"depthwise", "_dense", kGpuRows>(Op::kDepthwiseConv, Format::kDense, kDepthwise<kGpuRows>, kFilter),
    RowsInLayout<"depthwise", "_dense", kNhwc>(Op::kDepthwiseConv, Format::kDense, kDepthwise<kNhwc>, kFilter),
    BatchedRows<"depthwise_batched_dense">({Op::kDepthwiseConv, Format::kDense, kBatched, kBatched},
                                           kDepthwise<kGpuRows>, kFilter),
    PlainAndBatchedRows<"max_pool">(Op::kMaxPool, Pitched({.accepts = AcceptsPool}),
                                    []<Layout kLayout, DType kType>() { return &MaxPool<kLayout, kType>; }),
    PlainAndBatchedRows<"average_pool">(Op::kAveragePool, Pitched({.accepts = AcceptsPool}),
                                        []<Layout kLayout, DType kType>() { return &AveragePool<kLayout, kType>; }),
    BatchedRows<"average_pool_batched_rows">(
        {Op::kAveragePool, Format::kNone, kBatched, kGpuRows}, {.accepts = AcceptsPoolOfPlanes},
        []<Layout kLayout, DType kType>() { return &AveragePool<kLayout, kType>; }),
    PlainRows<"resize">(Op::kResize, Pitched({.accepts = AcceptsResize}),
                        []<Layout kLayout, DType kType>() { return &Resize<kLayout, kType>; }),
    PlainRows<"depth_to_space">(Op::kDepthToSpace, Pitched({.accepts = AcceptsResize}),
                                []<Layout kLayout, DType kType>() { return &DepthToSpace<kLayout, kType>; }),
    PlainAndBatchedRows<"concat">(Op::kConcat, Pitched({.accepts = AcceptsConcat}, ConcatsChannels),
                                  []<Layout kLayout, DType kType>() { return &RunConcat<kLayout, kType>; }),
    PlainAndBatchedRows<"slice">(Op::kSlice, Pitched({.accepts = AcceptsAll}),
                                 []<Layout kLayout, DType kType>() { return &RunSlice<kLayout, kType>; }),
    PlainRows<"softmax">(Op::kSoftmax, {.accepts = AcceptsSoftmax},
                         []<Layout kLayout, DType kType>() { return &Softmax<kLayout, kType>; }),

    // Token sequences.
    EmbeddingRows<kGpuRows, kF32, kF16, kBf16>(), EmbeddingRows<kNhwc, kF32, kF16, kBf16>(),
    LayoutRows<"layer_norm", "_dense">(Op::kLayerNorm, Format::kDense,
                                       {.accepts = AcceptsLayerNorm, .prepare = PrepareLayerNorm},
                                       []<Layout kLayout, DType kType>() { return &LayerNorm<kLayout, kType>; }),
    norm_rows::All(), attention_rows::All(),
    Rows<"sparse_attention_nhwc_pattern", "blocks_sm90a", kF16, kBf16>(kPatternShape, kSm90a, kBlockAttention,
                                                                       []<DType>() { return &RunBlockAttention; }),
    Rows<"sparse_attention_nhwc_pattern", "fused_sm90", kF32, kF16>(kPatternShape, kSm90a, kFusedAttention,
                                                                    []<DType>() { return &RunFusedAttention; }),
    Rows<"sparse_attention_nhwc_pattern", "parts_sm80", kF32, kF16>(kPatternShape, kSm80, kAttentionInParts,
                                                                    []<DType>() { return &RunAttentionInParts; }),
    Rows<"sparse_attention_nhwc_pattern", "bytes_sm80", kF16>(kPatternShape, kSm80,
                                                              Computing(Numerics::kOperandsAsBytes, kByteAttention),
                                                              []<DType>() { return &RunByteAttention; }),
    attention_rows::AllOfMasks(),
    LayoutRows<"rotary", "_dense">(Op::kRotary, Format::kDense, {.accepts = AcceptsRotary, .prepare = PrepareRotary},
                                   []<Layout kLayout, DType kType>() { return &Rotary<kLayout, kType>; }),
    LayoutRows<"permute_tokens", "_dense">(Op::kPermuteTokens, Format::kDense, kPermuteTokens, kPermute),
    RowsInLayout<"plane_tokens", "_dense", kGpuRows>(Op::kPlaneTokens, Format::kDense, kPlaneTokens<kGpuRows>,
                                                     kTokensOfPlanes),
    RowsInLayout<"plane_tokens", "_dense", kNhwc>(Op::kPlaneTokens, Format::kDense, kPlaneTokens<kNhwc>,
                                                  kTokensOfPlanes),
    PlainRows<"select_token">(Op::kSelectToken, {.accepts = AcceptsAll},
                              []<Layout kLayout, DType kType>() { return &SelectToken<kLayout, kType>; }),
    PlainRows<"mean_tokens">(Op::kMeanTokens, {.accepts = AcceptsAll},
                             []<Layout kLayout, DType kType>() { return &MeanTokens<kLayout, kType>; }));

}  // namespace

std::span<const Kernel> KernelTable() { return kRows; }

}  // namespace swizzle::cuda
