#include "kernels/cpu/kernel_table.h"

#include "kernels/cpu/conv/conv_csr.h"
#include "kernels/cpu/conv/conv_dense.h"
#include "kernels/cpu/conv/conv_pointwise.h"
#include "kernels/cpu/conv/conv_stem.h"
#include "kernels/cpu/conv/conv_vector.h"
#include "kernels/cpu/conv/conv_winograd.h"
#include "kernels/cpu/conv/linear_bitmap.h"
#include "kernels/cpu/conv/linear_csr.h"
#include "kernels/cpu/conv/linear_dense.h"
#include "kernels/cpu/conv/onednn_conv.h"
#include "kernels/cpu/conv/onednn_linear.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/elementwise/function.h"
#include "kernels/cpu/elementwise/scale.h"
#include "kernels/cpu/elementwise/softmax.h"
#include "kernels/cpu/int8/byte_rows.h"
#include "kernels/cpu/int8/conv_bytes.h"
#include "kernels/cpu/int8/convert_bytes.h"
#include "kernels/cpu/int8/elementwise_bytes.h"
#include "kernels/cpu/int8/lane_conv.h"
#include "kernels/cpu/int8/linear_bytes.h"
#include "kernels/cpu/int8/multiply_bytes.h"
#include "kernels/cpu/int8/nhwc_windows.h"
#include "kernels/cpu/int8/onednn_bytes.h"
#include "kernels/cpu/int8/position_bytes.h"
#include "kernels/cpu/int8/window_bytes.h"
#include "kernels/cpu/layout/channels.h"
#include "kernels/cpu/layout/convert.h"
#include "kernels/cpu/runtime/targets.h"
#include "kernels/cpu/target_rows.h"
#include "kernels/cpu/tokens/attention.h"
#include "kernels/cpu/tokens/attention_bfloat16.h"
#include "kernels/cpu/tokens/attention_biases.h"
#include "kernels/cpu/tokens/attention_bits.h"
#include "kernels/cpu/tokens/attention_places.h"
#include "kernels/cpu/tokens/embedding.h"
#include "kernels/cpu/tokens/layer_norm.h"
#include "kernels/cpu/tokens/permute_tokens.h"
#include "kernels/cpu/tokens/plane_tokens.h"
#include "kernels/cpu/tokens/rotary.h"
#include "kernels/cpu/tokens/sparse_attention.h"
#include "kernels/cpu/tokens/token_reduction.h"
#include "kernels/cpu/window/depth_to_space.h"
#include "kernels/cpu/window/depthwise_blocked.h"
#include "kernels/cpu/window/depthwise_dense.h"
#include "kernels/cpu/window/depthwise_nhwc.h"
#include "kernels/cpu/window/pool.h"
#include "kernels/cpu/window/resize.h"

namespace swizzle::cpu {
namespace {

constexpr DType kF32 = DType::kFloat32, kBf16 = DType::kBFloat16;

bool AcceptsAll(const Problem&) { return true; }

template <Layout kFrom, Layout kTo, DType... kTypes>
constexpr auto ConvertRows() {
  constexpr RowText kName = RowText("convert_") + RowText(LayoutName(kFrom)) + "_" + RowText(LayoutName(kTo));
  return Rows<kName, kTypes...>({Op::kConvertLayout, Format::kNone, kFrom, kTo}, {.accepts = AcceptsConvert}, &Convert);
}

// Of what stays in its layout, to another type.
template <Layout kLayout, DType kFrom, DType kTo>
constexpr std::array<Kernel, 1> RetypeRow() {
  constexpr RowText kName =
      RowText("convert_") + RowText(LayoutName(kLayout)) + "_" + TypeTag(kFrom) + "_" + TypeTag(kTo) + "_base";
  return {MakeRow<kName>({.accepts = AcceptsConvert},
                         {Op::kConvertLayout, Format::kNone, kF32, {kLayout, kFrom}, {kLayout, kTo}}, kAnyX86,
                         &Convert)};
}

constexpr Layout kNchw = Layout::kNchw, kPanels = Layout::kPanels, kBlocked16 = Layout::kBlocked16,
                 kNhwc = Layout::kNhwc;

constexpr Kernel kConvCsr = {.accepts = AcceptsConvCsr,
                             .prepare = PrepareConvCsr,
                             .workspace_bytes = ConvCsrWorkspaceBytes,
                             .blockings = kConvCsrBlockings,
                             .for_plane = SameForAnyPlane};
constexpr Kernel kConvVector = {.accepts = AcceptsConvCsr,
                                .prepare = PrepareConvVector,
                                .workspace_bytes = ConvVectorWorkspaceBytes,
                                .holds = HoldsVectors,
                                .for_plane = SameForAnyPlane};
constexpr Kernel kConvDense = {.accepts = AcceptsAll,
                               .prepare = PrepareConvDense,
                               .workspace_bytes = ConvDenseWorkspaceBytes,
                               .for_plane = SameForAnyPlane};
constexpr Kernel kLinearDense = {
    .accepts = AcceptsLinearDense, .prepare = PrepareLinearDense, .for_plane = SameForAnyPlane};
// Each instruction set has a form of its own.
constexpr Kernel LinearCsrFrom(decltype(Kernel::prepare) prepare) {
  return {.accepts = AcceptsOnednnLinear, .prepare = prepare, .for_plane = SameForAnyPlane, .family = "linear_csr_f32"};
}
constexpr Kernel kDepthwise = {.accepts = AcceptsDepthwise,
                               .prepare = PrepareDepthwise,
                               .workspace_bytes = DepthwiseWorkspaceBytes,
                               .for_plane = DepthwiseForPlane};
constexpr Kernel kElementwise = {.accepts = AcceptsElementwise};
constexpr Kernel kPool = {.accepts = AcceptsPool, .workspace_bytes = PoolWorkspaceBytes};
constexpr Kernel kAttention = {.accepts = AcceptsAll, .workspace_bytes = AttentionWorkspaceBytes};
constexpr Kernel LayerNormThat(decltype(Kernel::accepts) accepts) {
  return {.accepts = accepts, .prepare = PrepareLayerNorm, .for_plane = SameForAnyPlane};
}
constexpr Kernel kMaskedAttention = {
    .accepts = AcceptsAttentionBits, .prepare = PrepareAttentionBits, .workspace_bytes = AttentionWorkspaceBytes};
constexpr Kernel kBiasedAttention = {
    .accepts = AcceptsAll, .prepare = PrepareAttentionBiases, .workspace_bytes = AttentionWorkspaceBytes};
constexpr Kernel kDisentangledAttention = {
    .accepts = AcceptsAll, .prepare = PrepareAttentionPlaces, .workspace_bytes = AttentionWorkspaceBytes};
constexpr Kernel kRotary = {.accepts = AcceptsAll, .prepare = PrepareRotary};
constexpr Kernel kPermuteTokens = {.accepts = AcceptsAll, .prepare = PreparePermuteTokens};
constexpr Kernel kPlaneTokens = {.accepts = AcceptsAll, .prepare = PreparePlaneTokens};

// A kernel whose forms are the same for every plane.
constexpr Kernel OfAnyPlane(decltype(Kernel::accepts) accepts, decltype(Kernel::prepare) prepare,
                            decltype(Kernel::workspace_bytes) workspace_bytes, decltype(Kernel::holds) holds,
                            std::string_view family = {}) {
  return {.accepts = accepts,
          .prepare = prepare,
          .workspace_bytes = workspace_bytes,
          .holds = holds,
          .for_plane = SameForAnyPlane,
          .family = family};
}
constexpr Kernel kQuadConv = OfAnyPlane(AcceptsConvBytes, PrepareQuadConv, QuadConvWorkspaceBytes, HoldsWideBytes);
constexpr Kernel kVectorQuadConv =
    OfAnyPlane(AcceptsConvBytes, PrepareVectorQuadConv, QuadConvWorkspaceBytes, HoldsVectorQuads);
constexpr Kernel kBlockQuadConv =
    OfAnyPlane(AcceptsConvBytes, PrepareBlockQuadConv, BlockQuadConvWorkspaceBytes, HoldsBlockQuads);
constexpr Kernel kBlockConv = OfAnyPlane(AcceptsConvBytes, PrepareBlockConv, BlockConvWorkspaceBytes, HoldsBytes);
// Its row is before those of the family that it names: where it accepts, they are not measured (WidestCandidates).
constexpr Kernel kStemConv =
    OfAnyPlane(AcceptsStemConv, PrepareStemConv, BlockConvWorkspaceBytes, HoldsBytes, "conv_nchw_dense_u8");
constexpr Kernel kLaneConv = OfAnyPlane(AcceptsLaneConv, PrepareLaneConv, LaneConvWorkspaceBytes, HoldsBytes);
constexpr Kernel kNhwcDepthwise =
    OfAnyPlane(AcceptsNhwcDepthwise, PrepareNhwcDepthwise, nullptr, HoldsBytes, "depthwise_nhwc_dense_u8");
constexpr Kernel kNhwcPairDepthwise =
    OfAnyPlane(AcceptsNhwcPairDepthwise, PrepareNhwcPairDepthwise, nullptr, HoldsBytes, "depthwise_nhwc_dense_u8");
constexpr Kernel kLinearBytes = OfAnyPlane(AcceptsLinearBytes, PrepareLinearBytes, nullptr, HoldsBytes);
// A kernel that quantises each position.
constexpr Kernel OfPositions(decltype(Kernel::prepare) prepare, decltype(Kernel::holds) holds,
                             decltype(Kernel::workspace_bytes) workspace_bytes = PositionBytesWorkspace) {
  return OfAnyPlane(AcceptsPositionBytes, prepare, workspace_bytes, holds);
}
constexpr Kernel kPositionQuads = OfPositions(PreparePositionQuads, HoldsWidePositionBytes);
constexpr Kernel kPositionVectors = OfPositions(PreparePositionVectors, HoldsPositionVectors);
constexpr Kernel kPositionBlockQuads = OfPositions(PreparePositionBlockQuads, HoldsPositionBlockQuads);
constexpr Kernel kPositionLanes = OfPositions(PreparePositionLanes, HoldsPositionBytes, PositionLanesWorkspace);
constexpr Kernel kPositionBlocks = OfPositions(PreparePositionBlocks, HoldsPositionBytes);
constexpr Kernel kMultiplyBytes = {.accepts = AcceptsMultiplyBytes};
constexpr Kernel kDepthwiseBytes =
    OfAnyPlane(AcceptsDepthwiseBytes, PrepareDepthwiseBytes, WindowBytesWorkspace, HoldsBytes);

constexpr Kernel OnednnBytes(bool (*accepts)(const Problem&)) {
  return {.accepts = accepts,
          .prepare = PrepareOnednnBytes,
          .workspace_bytes = OnednnBytesWorkspace,
          .holds = HoldsOnednnBytes,
          .for_plane = OnednnBytesForPlane};
}

constexpr auto kRows = Join(
    // Convolution. Those of vectors come first: where nothing is measured, the first of equals is taken.
    Rows<"conv_vector", kF32, kBf16>({Op::kConv, Format::kCsr, kPanels, kPanels}, kConvVector,
                                     SWIZZLE_PER_TARGET(ConvVector)),
    Rows<"conv_nchw_vector", kF32, kBf16>({Op::kConv, Format::kCsr, kNchw, kPanels}, kConvVector,
                                          SWIZZLE_PER_TARGET(ConvVector)),
    Rows<"conv_blocked16_vector", kF32>({Op::kConv, Format::kCsr, kBlocked16, kPanels}, kConvVector,
                                        SWIZZLE_PER_TARGET(ConvVector)),
    Rows<"conv_csr", kF32, kBf16>({Op::kConv, Format::kCsr, kPanels, kPanels}, kConvCsr, SWIZZLE_PER_TARGET(ConvCsr)),
    Rows<"conv_nchw_csr", kF32, kBf16>({Op::kConv, Format::kCsr, kNchw, kPanels}, kConvCsr,
                                       SWIZZLE_PER_TARGET(ConvCsr)),
    Rows<"conv_blocked16_csr", kF32>({Op::kConv, Format::kCsr, kBlocked16, kPanels}, kConvCsr,
                                     SWIZZLE_PER_TARGET(ConvCsr)),
    Rows<"conv_dense", kF32, kBf16>({Op::kConv, Format::kDense, kPanels, kPanels}, kConvDense,
                                    SWIZZLE_PER_TARGET(ConvDense)),
    Rows<"conv_nchw_dense", kF32, kBf16>({Op::kConv, Format::kDense, kNchw, kPanels}, kConvDense,
                                         SWIZZLE_PER_TARGET(ConvDense)),

    Rows<"linear_dense", kF32>({Op::kConv, Format::kDense, kNchw, kNchw}, kLinearDense,
                               SWIZZLE_PER_TARGET(LinearDense)),

    // Dense layers through oneDNN.
    LibraryRow<"conv_dense_f32_onednn">({Op::kConv, Format::kDense, kBlocked16, kBlocked16}, kAvx512,
                                        {.accepts = AcceptsOnednnConv,
                                         .prepare = PrepareOnednnConv,
                                         .workspace_bytes = OnednnConvWorkspaceBytes,
                                         .for_plane = OnednnConvForPlane},
                                        RunOnednnConv),
    LibraryRow<"conv_stem_dense_f32_onednn">({Op::kConv, Format::kDense, kNchw, kBlocked16}, kAvx512,
                                             {.accepts = AcceptsOnednnStem,
                                              .prepare = PrepareOnednnStem,
                                              .workspace_bytes = OnednnStemWorkspaceBytes,
                                              .for_plane = OnednnConvForPlane},
                                             RunOnednnConv),
    Rows<"conv_stem_dense", kF32>({Op::kConv, Format::kDense, kNchw, kBlocked16},
                                  OfAnyPlane(AcceptsConvStem, PrepareBlockRows, ConvStemWorkspaceBytes, nullptr),
                                  SWIZZLE_PER_TARGET(ConvStem)),
    // Before oneDNN's, for plans that measure nothing.
    Rows<"depthwise_blocked16_dense", kF32>({Op::kDepthwiseConv, Format::kDense, kBlocked16, kBlocked16},
                                            OfAnyPlane(AcceptsDepthwiseBlocked, PrepareBlockRows, nullptr, nullptr),
                                            SWIZZLE_PER_TARGET(DepthwiseBlocked)),
    LibraryRow<"depthwise_dense_f32_onednn">({Op::kDepthwiseConv, Format::kDense, kBlocked16, kBlocked16}, kAvx512,
                                             {.accepts = AcceptsOnednnDepthwise,
                                              .prepare = PrepareOnednnDepthwise,
                                              .workspace_bytes = OnednnDepthwiseWorkspaceBytes,
                                              .for_plane = OnednnConvForPlane},
                                             RunOnednnConv),
    LibraryRow<"conv_grouped_dense_f32_onednn">({Op::kConv, Format::kDense, kBlocked16, kBlocked16}, kAvx512,
                                                {.accepts = AcceptsOnednnGrouped,
                                                 .prepare = PrepareOnednnGrouped,
                                                 .holds = HoldsOnednnGroups,
                                                 .for_plane = OnednnConvForPlane},
                                                RunOnednnConv),
    LibraryRow<"linear_dense_f32_onednn">(
        {Op::kConv, Format::kDense, kNchw, kNchw}, kAnyX86,
        {.accepts = AcceptsOnednnLinear, .prepare = PrepareOnednnLinear, .for_plane = SameForAnyPlane},
        RunOnednnLinear),

    // Of equals the first is taken: where nothing is measured, oneDNN stays.
    Rows<"conv_winograd_dense", kF32>({Op::kConv, Format::kDense, kBlocked16, kBlocked16},
                                      {.accepts = AcceptsConvWinograd,
                                       .prepare = PrepareConvWinograd,
                                       .workspace_bytes = ConvWinogradWorkspaceBytes,
                                       .for_plane = SameForAnyPlane},
                                      SWIZZLE_PER_TARGET(ConvWinograd)),

    Rows<"conv_pointwise_dense", kF32>(
        {Op::kConv, Format::kDense, kBlocked16, kBlocked16},
        {.accepts = AcceptsConvPointwise, .prepare = PrepareBlockRows, .for_plane = SameForAnyPlane},
        SWIZZLE_PER_TARGET(ConvPointwise)),

    // Likewise the dense row before this one.
    LibraryRow<"linear_bitmap_f32_avx512">(
        {Op::kConv, Format::kBitmap, kNchw, kNchw}, kAvx512,
        {.accepts = AcceptsOnednnLinear, .prepare = PrepareLinearBitmap, .for_plane = SameForAnyPlane},
        RunLinearBitmap),
    LibraryRow<"linear_csr_f32_avx512">({Op::kConv, Format::kCsr, kNchw, kNchw}, kAvx512,
                                        LinearCsrFrom(PrepareLinearCsrAvx512), N_AVX3::LinearCsr),
    LibraryRow<"linear_csr_f32_avx2">({Op::kConv, Format::kCsr, kNchw, kNchw}, kAvx2,
                                      LinearCsrFrom(PrepareLinearCsrAvx2), N_AVX2::LinearCsr),

    // Planes.
    Rows<"depthwise_dense", kF32, kBf16>({Op::kDepthwiseConv, Format::kDense, kPanels, kPanels}, kDepthwise,
                                         SWIZZLE_PER_TARGET(Depthwise)),
    Rows<"depthwise_nchw_dense", kF32>({Op::kDepthwiseConv, Format::kDense, kNchw, kNchw}, kDepthwise,
                                       SWIZZLE_PER_TARGET(Depthwise)),
    Rows<"depthwise_nhwc_dense", kF32>(
        {Op::kDepthwiseConv, Format::kDense, kNhwc, kNhwc},
        {.accepts = AcceptsDepthwiseNhwc, .prepare = PrepareDepthwiseNhwc, .for_plane = SameForAnyPlane},
        SWIZZLE_PER_TARGET(DepthwiseNhwc)),
    PlainRows<"max_pool", kNchw, kPanels, kBlocked16>(Op::kMaxPool, kPool, SWIZZLE_PER_TARGET(MaxPool)),
    PlainRows<"average_pool", kNchw, kPanels, kBlocked16>(Op::kAveragePool, kPool, SWIZZLE_PER_TARGET(AveragePool)),

    PlainRows<"resize", kNchw, kPanels, kBlocked16>(
        Op::kResize, {.accepts = AcceptsAll, .workspace_bytes = ResizeWorkspaceBytes}, SWIZZLE_PER_TARGET(Resize)),
    PlainRows<"depth_to_space", kNchw, kPanels>(Op::kDepthToSpace,
                                                {.accepts = AcceptsAll, .workspace_bytes = DepthToSpaceWorkspaceBytes},
                                                SWIZZLE_PER_TARGET(DepthToSpace)),
    PlainRows<"concat", kNchw, kPanels, kBlocked16>(Op::kConcat, {.accepts = AcceptsConcat}, &RunConcat),
    PlainRows<"slice", kNchw, kPanels, kBlocked16>(Op::kSlice, {.accepts = AcceptsAll}, &RunSlice),

    // Element-wise.
    PlainRows<"add", kNchw, kPanels, kBlocked16, kNhwc>(Op::kAdd, kElementwise, SWIZZLE_PER_TARGET(Add)),
    PlainRows<"activation", kNchw, kPanels, kBlocked16, kNhwc>(Op::kActivation, kElementwise,
                                                               SWIZZLE_PER_TARGET(Activation)),
    PlainRows<"multiply", kNchw, kPanels, kBlocked16>(Op::kMultiply, kElementwise, SWIZZLE_PER_TARGET(Multiply)),
    PlainRows<"scale", kNchw, kPanels, kBlocked16>(Op::kScale, kElementwise, SWIZZLE_PER_TARGET(Scale)),
    PlainRows<"function", kNchw, kPanels, kBlocked16, kNhwc>(Op::kFunction, {.accepts = AcceptsFunction},
                                                             SWIZZLE_PER_TARGET(RunFunction)),
    Rows<"softmax_nchw", kF32>({Op::kSoftmax, Format::kNone, kNchw, kNchw}, {.accepts = AcceptsSoftmax},
                               SWIZZLE_PER_TARGET(Softmax)),
    Rows<"softmax_panels", kF32>({Op::kSoftmax, Format::kNone, kPanels, kPanels}, {.accepts = AcceptsSoftmax},
                                 SWIZZLE_PER_TARGET(Softmax)),
    Rows<"softmax_panels_nchw", kF32>({Op::kSoftmax, Format::kNone, kPanels, kNchw}, {.accepts = AcceptsSoftmaxToRows},
                                      SWIZZLE_PER_TARGET(Softmax)),

    // Token sequences.
    Rows<"embedding_dense", kF32>({Op::kEmbedding, Format::kDense, kNchw, kNchw},
                                  {.accepts = AcceptsAll, .prepare = PrepareEmbedding}, &RunEmbedding),
    RowsInLayout<"layer_norm", "_dense", kNchw>(Op::kLayerNorm, Format::kDense, LayerNormThat(AcceptsLayerNormOfRows),
                                                SWIZZLE_PER_TARGET(LayerNorm)),
    RowsInLayout<"layer_norm", "_dense", kPanels>(Op::kLayerNorm, Format::kDense, LayerNormThat(AcceptsLayerNorm),
                                                  SWIZZLE_PER_TARGET(LayerNorm)),
    // Before the others, for plans that measure nothing.
    LibraryRow<"attention_panels_f32_avx512bf16">(
        {Op::kAttention, Format::kNone, kPanels, kPanels}, kAvx512 | kAvx512Bf16,
        Computing(Numerics::kBfloat16Factors,
                  {.accepts = AcceptsAll, .workspace_bytes = AttentionBfloat16WorkspaceBytes}),
        AttentionBfloat16),
    LibraryRow<"attention_panels_bf16_avx512bf16", kBf16>(
        {Op::kAttention, Format::kNone, kPanels, kPanels}, kAvx512 | kAvx512Bf16,
        {.accepts = AcceptsAll, .workspace_bytes = AttentionBfloat16WorkspaceBytes, .family = "attention_panels_bf16"},
        AttentionBfloat16),
    PlainRows<"attention", kNchw, kPanels>(Op::kAttention, kAttention, SWIZZLE_PER_TARGET(Attention)),
    Rows<"sparse_attention_nchw_pattern", kF32>(
        {Op::kSparseAttention, Format::kPattern, kNchw, kNchw},
        {.accepts = AcceptsAll, .prepare = PrepareSparseAttention, .workspace_bytes = SparseAttentionWorkspaceBytes},
        SWIZZLE_PER_TARGET(SparseAttention)),
    RowsInLayout<"sparse_attention", "_dense", kNchw>(Op::kSparseAttention, Format::kDense, kMaskedAttention,
                                                      SWIZZLE_PER_TARGET(Attention)),
    RowsInLayout<"sparse_attention", "_dense", kPanels>(Op::kSparseAttention, Format::kDense, kMaskedAttention,
                                                        SWIZZLE_PER_TARGET(Attention)),
    RowsInLayout<"biased_attention", "_dense", kNchw>(Op::kBiasedAttention, Format::kDense, kBiasedAttention,
                                                      SWIZZLE_PER_TARGET(Attention)),
    RowsInLayout<"biased_attention", "_dense", kPanels>(Op::kBiasedAttention, Format::kDense, kBiasedAttention,
                                                        SWIZZLE_PER_TARGET(Attention)),
    RowsInLayout<"disentangled_attention", "_dense", kNchw>(Op::kDisentangledAttention, Format::kDense,
                                                            kDisentangledAttention, SWIZZLE_PER_TARGET(Attention)),
    RowsInLayout<"disentangled_attention", "_dense", kPanels>(Op::kDisentangledAttention, Format::kDense,
                                                              kDisentangledAttention, SWIZZLE_PER_TARGET(Attention)),
    RowsInLayout<"rotary", "_dense", kNchw>(Op::kRotary, Format::kDense, kRotary, SWIZZLE_PER_TARGET(Rotary)),
    RowsInLayout<"rotary", "_dense", kPanels>(Op::kRotary, Format::kDense, kRotary, SWIZZLE_PER_TARGET(Rotary)),
    RowsInLayout<"permute_tokens", "_dense", kNchw>(Op::kPermuteTokens, Format::kDense, kPermuteTokens, &PermuteTokens),
    RowsInLayout<"permute_tokens", "_dense", kPanels>(Op::kPermuteTokens, Format::kDense, kPermuteTokens,
                                                      &PermuteTokens),
    RowsInLayout<"plane_tokens", "_dense", kNchw>(Op::kPlaneTokens, Format::kDense, kPlaneTokens, &PlaneTokens),
    RowsInLayout<"plane_tokens", "_dense", kPanels>(Op::kPlaneTokens, Format::kDense, kPlaneTokens, &PlaneTokens),
    PlainRows<"select_token", kNchw, kPanels>(Op::kSelectToken, {.accepts = AcceptsAll}, &SelectToken),
    PlainRows<"mean_tokens", kNchw, kPanels>(Op::kMeanTokens, {.accepts = AcceptsAll}, SWIZZLE_PER_TARGET(MeanTokens)),

    // Layout conversion.
    ConvertRows<kNchw, kPanels, kF32, kBf16>(), ConvertRows<kNchw, kBlocked16, kF32>(),
    ConvertRows<kPanels, kNchw, kF32, kBf16>(), ConvertRows<kPanels, kBlocked16, kF32, kBf16>(),
    ConvertRows<kNchw, kNhwc, kF32>(), ConvertRows<kNhwc, kNchw, kF32>(), ConvertRows<kPanels, kNhwc, kF32>(),
    ConvertRows<kNhwc, kPanels, kF32>(), ConvertRows<kBlocked16, kNchw, kF32>(),
    ConvertRows<kBlocked16, kPanels, kF32, kBf16>(), RetypeRow<kPanels, kF32, kBf16>(),
    RetypeRow<kPanels, kBf16, kF32>(),
    // Bytes that stand for real numbers; the more structure is asked for, the earlier.
    WindowRows<"conv_block_u8">(Op::kConv, Format::kCsr, kFullU8, kFullU8, kBlockQuadConv,
                                SWIZZLE_PER_WINDOW_TARGET(QuadConv), {.vnni = PrepareBlockQuadConvInParts}),
    WindowRows<"conv_block_u8_f32">(Op::kConv, Format::kCsr, kFullU8, kPanelsF32, kBlockQuadConv,
                                    SWIZZLE_PER_WINDOW_TARGET(QuadConv)),
    WindowRows<"conv_vector_u8">(Op::kConv, Format::kSrBcrs, kFullU8, kFullU8, kVectorQuadConv,
                                 SWIZZLE_PER_WINDOW_TARGET(QuadConv)),
    WindowRows<"conv_vector_u8_f32">(Op::kConv, Format::kSrBcrs, kFullU8, kPanelsF32, kVectorQuadConv,
                                     SWIZZLE_PER_WINDOW_TARGET(QuadConv)),
    WindowRows<"conv_csr_u8">(Op::kConv, Format::kCsr, kFullU8, kFullU8, kQuadConv, SWIZZLE_PER_WINDOW_TARGET(QuadConv),
                              {.vnni = PrepareQuadConvInParts, .avx2 = PreparePairedQuadConv}),
    WindowRows<"conv_csr_u8_f32">(Op::kConv, Format::kCsr, kFullU8, kPanelsF32, kQuadConv,
                                  SWIZZLE_PER_WINDOW_TARGET(QuadConv), {.avx2 = PreparePairedQuadConv}),
    WindowRows<"conv_dense_u8">(Op::kConv, Format::kDense, kFullU8, kFullU8, kBlockConv,
                                SWIZZLE_PER_WINDOW_TARGET(BlockConv)),
    WindowRows<"conv_dense_u8_f32">(Op::kConv, Format::kDense, kFullU8, kPanelsF32, kBlockConv,
                                    SWIZZLE_PER_WINDOW_TARGET(BlockConv)),
    SingleByteRow<"conv_stem_dense_u8_vbmi">(ByteKey(Op::kConv, Format::kDense, kNchwU8, kFullU8),
                                             kAvx512 | kVnni | kVbmi, kStemConv, &StemConv),
    WindowRows<"conv_nchw_dense_u8">(Op::kConv, Format::kDense, kNchwU8, kFullU8, kBlockConv,
                                     SWIZZLE_PER_WINDOW_TARGET(BlockConv)),
    ByteRows<"linear_dense_u8">(Op::kConv, Format::kDense, kNchwU8, kNchwU8, kLinearBytes,
                                SWIZZLE_PER_BYTE_TARGET(LinearBytes)),
    ByteRows<"linear_dense_u8_f32">(Op::kConv, Format::kDense, kNchwU8, kNchwF32, kLinearBytes,
                                    SWIZZLE_PER_BYTE_TARGET(LinearBytes)),
    SingleByteRow<"conv_nhwc_csr_u8_vbmi">(ByteKey(Op::kConv, Format::kCsr, kNhwcU8, kNhwcU8), kAvx512 | kVnni | kVbmi,
                                           kLaneConv, &LaneConv),
    SingleByteRow<"conv_nhwc_dense_u8_onednn">(ByteKey(Op::kConv, Format::kDense, kNhwcU8, kNhwcU8), kAvx512 | kVnni,
                                               OnednnBytes(AcceptsOnednnConvBytes), RunOnednnBytes),
    SingleByteRow<"linear_dense_u8_onednn">(ByteKey(Op::kConv, Format::kDense, kNchwU8, kNchwU8), kAvx512 | kVnni,
                                            OnednnBytes(AcceptsOnednnLinearBytes), RunOnednnBytes),
    SingleByteRow<"linear_dense_u8_f32_onednn">(ByteKey(Op::kConv, Format::kDense, kNchwU8, kNchwF32), kAvx512 | kVnni,
                                                OnednnBytes(AcceptsOnednnLinearBytes), RunOnednnBytes),
    ByteRows<"linear_block_position_u8">(Op::kConv, Format::kCsr, kPanelsF32, kPanelsF32, kPositionBlockQuads,
                                         SWIZZLE_PER_BYTE_TARGET(PositionQuads)),
    ByteRows<"linear_vector_position_u8">(Op::kConv, Format::kSrBcrs, kPanelsF32, kPanelsF32, kPositionVectors,
                                          SWIZZLE_PER_BYTE_TARGET(PositionQuads)),
    SingleByteRow<"linear_csr_position_u8_vbmi">(ByteKey(Op::kConv, Format::kCsr, kPanelsF32, kPanelsF32),
                                                 kAvx512 | kVnni | kVbmi, kPositionLanes, &PositionLanes),
    ByteRows<"linear_csr_position_u8">(Op::kConv, Format::kCsr, kPanelsF32, kPanelsF32, kPositionQuads,
                                       SWIZZLE_PER_BYTE_TARGET(PositionQuads)),
    ByteRows<"linear_dense_position_u8">(Op::kConv, Format::kDense, kPanelsF32, kPanelsF32, kPositionBlocks,
                                         SWIZZLE_PER_BYTE_TARGET(PositionBlocks)),
    WindowRows<"depthwise_dense_u8">(Op::kDepthwiseConv, Format::kDense, kFullU8, kFullU8, kDepthwiseBytes,
                                     SWIZZLE_PER_WINDOW_TARGET(DepthwiseBytes)),
    SingleByteRow<"depthwise_nhwc_dense_u8_vnni">(ByteKey(Op::kDepthwiseConv, Format::kDense, kNhwcU8, kNhwcU8),
                                                  kAvx512 | kVnni, kNhwcDepthwise, &NhwcDepthwise),
    SingleByteRow<"depthwise_nhwc_dense_u8_avx2">(ByteKey(Op::kDepthwiseConv, Format::kDense, kNhwcU8, kNhwcU8), kAvx2,
                                                  kNhwcPairDepthwise, &NhwcPairDepthwise),
    SingleByteRow<"max_pool_nhwc_u8_vnni">(ByteKey(Op::kMaxPool, Format::kNone, kNhwcU8, kNhwcU8), kAvx512 | kVnni,
                                           {.accepts = AcceptsNhwcMaxPool}, &NhwcMaxPool),
    WindowRows<"max_pool_u8">(Op::kMaxPool, Format::kNone, kFullU8, kFullU8,
                              {.accepts = AcceptsMaxPoolBytes, .workspace_bytes = MaxPoolWorkspace},
                              PerWindowTarget{&MaxPoolInBands, SWIZZLE_PER_BYTE_TARGET(MaxPoolBytes)}),
    WindowRows<"average_pool_u8">(Op::kAveragePool, Format::kNone, kFullU8, kFullU8,
                                  {.accepts = AcceptsAveragePoolBytes, .workspace_bytes = WindowBytesWorkspace},
                                  SWIZZLE_PER_WINDOW_TARGET(AveragePoolBytes)),
    ByteRows<"global_pool_u8">(Op::kAveragePool, Format::kNone, kFullU8, kNchwU8, {.accepts = AcceptsGlobalPoolBytes},
                               SWIZZLE_PER_BYTE_TARGET(GlobalPoolBytes)),
    SingleByteRow<"global_pool_nhwc_u8_base">(ByteKey(Op::kAveragePool, Format::kNone, kNhwcU8, kNchwU8), kAnyX86,
                                              {.accepts = AcceptsNhwcGlobalPool}, &NhwcGlobalPool),
    ByteRows<"add_u8">(Op::kAdd, Format::kNone, kFullU8, kFullU8, {.accepts = AcceptsElementwiseBytes},
                       SWIZZLE_PER_BYTE_TARGET(AddBytes)),
    ByteRows<"activation_u8">(Op::kActivation, Format::kNone, kFullU8, kFullU8, {.accepts = AcceptsElementwiseBytes},
                              SWIZZLE_PER_BYTE_TARGET(AddBytes)),
    PlainByteRows<"multiply_nchw_u8", kNchwU8>(Op::kMultiply, kMultiplyBytes, SWIZZLE_PER_TARGET(MultiplyBytes)),
    PlainByteRows<"multiply_full_panels_u8", kFullU8>(Op::kMultiply, kMultiplyBytes, SWIZZLE_PER_TARGET(MultiplyBytes)),
    PlainByteRows<"multiply_nhwc_u8", kNhwcU8>(Op::kMultiply, kMultiplyBytes, SWIZZLE_PER_TARGET(MultiplyBytes)),
    PlainByteRows<"scale_full_panels_u8", kFullU8>(Op::kScale, kMultiplyBytes, SWIZZLE_PER_TARGET(ScaleBytes)),
    PlainByteRows<"scale_nhwc_u8", kNhwcU8>(Op::kScale, kMultiplyBytes, SWIZZLE_PER_TARGET(ScaleBytes)),
    TargetRows<"layer_norm_panels_dense_f32_u8">({Op::kLayerNorm, Format::kDense, DType::kFloat32, kPanelsF32, kFullU8},
                                                 LayerNormThat(AcceptsLayerNormToBytes), SWIZZLE_PER_TARGET(LayerNorm)),
    FunctionByteRows<"function_nchw_u8", kNchwU8>(), FunctionByteRows<"function_full_panels_u8", kFullU8>(),
    FunctionByteRows<"function_nhwc_u8", kNhwcU8>(),
    ByteRow<"concat_nchw_u8", kNchwU8>(Op::kConcat, {.accepts = AcceptsConcatBytes}, &RunConcat),
    ByteRow<"concat_full_panels_u8", kFullU8>(Op::kConcat, {.accepts = AcceptsConcatBytes}, &RunConcat),
    ByteRow<"slice_nchw_u8", kNchwU8>(Op::kSlice, {.accepts = AcceptsSliceBytes}, &RunSlice),
    ByteRow<"slice_full_panels_u8", kFullU8>(Op::kSlice, {.accepts = AcceptsSliceBytes}, &RunSlice),
    PickedByteRows<"resize_full_panels_u8">(Op::kResize,
                                            {.accepts = AcceptsResizeBytes, .workspace_bytes = ResizeWorkspaceBytes},
                                            &ResizeBytes, &ResizeBytesVbmi),
    PickedByteRows<"depth_to_space_full_panels_u8">(Op::kDepthToSpace, {.accepts = AcceptsDepthToSpaceBytes},
                                                    &DepthToSpaceBytes, &DepthToSpaceBytesVbmi),
    ByteConversions(), Roundings(),

    Rows<"transpose_nchw", kF32>({Op::kTranspose, Format::kNone, kNchw, kNchw}, {.accepts = AcceptsConvert},
                                 &TransposeNchw));

}  // namespace

std::span<const Kernel> KernelTable() { return kRows; }

}  // namespace swizzle::cpu
