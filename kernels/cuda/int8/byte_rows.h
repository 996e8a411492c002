// The rows of whole numbers in the kernel table: conversions, layers of bytes, and what only moves them.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_BYTE_ROWS_H_
#define SWIZZLE_KERNELS_CUDA_INT8_BYTE_ROWS_H_

#include "kernels/backend/kernel_rows.h"
#include "kernels/cuda/elementwise/channels.h"
#include "kernels/cuda/elementwise/convert.h"
#include "kernels/cuda/int8/conv_bytes.h"
#include "kernels/cuda/int8/dense_conv_bytes.h"
#include "kernels/cuda/int8/elementwise_bytes.h"
#include "kernels/cuda/int8/position_bytes.h"
#include "kernels/cuda/int8/window_bytes.h"
#include "kernels/cuda/window/resize.h"
#include "kernels/whole_numbers/kept_bytes.h"

namespace swizzle::cuda::byte_rows {

inline constexpr DType kF32 = DType::kFloat32, kF16 = DType::kFloat16, kBf16 = DType::kBFloat16, kU8 = DType::kUint8;
inline constexpr Layout kNchw = Layout::kNchw, kGpuRows = Layout::kRows, kNhwc = Layout::kNhwc;

inline bool AcceptsAnyConversion(const Problem&) { return true; }
inline bool AcceptsConcatBytes(const Problem& problem) { return AcceptsConcat(problem) && KeepsBytes(problem); }
inline bool AcceptsResizeBytes(const Problem& problem) {
  return AcceptsResize(problem) && KeepsBytes(problem) && !problem.resampling().linear;
}

// Between bytes and real numbers, or, of bytes, between layouts.
template <RowText kStem, Layout kFromLayout, DType kFrom, Layout kToLayout, DType kTo>
constexpr std::array<Kernel, 1> WholesRow(RunFunctionPointer run) {
  constexpr RowText kName = kStem + "_" + RowText(LayoutName(kFromLayout)) + "_" + TypeTag(kFrom) + "_" +
                            RowText(LayoutName(kToLayout)) + "_" + TypeTag(kTo) + "_sm75";
  return {MakeRow<kName>({.accepts = AcceptsAnyConversion},
                         {Op::kConvertLayout, Format::kNone, kF32, {kFromLayout, kFrom}, {kToLayout, kTo}}, kAnySm,
                         run)};
}
template <Layout kLayout, DType... kTypes>
constexpr auto WholesRowsOf() {
  return Join(
      Join(WholesRow<"quantise", kGpuRows, kTypes, kLayout, kU8>(&ConvertTypes<kGpuRows, kTypes, kLayout, kU8>),
           WholesRow<"quantise", kNhwc, kTypes, kLayout, kU8>(&ConvertTypes<kNhwc, kTypes, kLayout, kU8>),
           WholesRow<"dequantise", kLayout, kU8, kGpuRows, kTypes>(&ConvertTypes<kLayout, kU8, kGpuRows, kTypes>),
           WholesRow<"dequantise", kLayout, kU8, kNhwc, kTypes>(&ConvertTypes<kLayout, kU8, kNhwc, kTypes>))...);
}
constexpr auto WholesRows() {
  return Join(WholesRowsOf<kGpuRows, kF32, kF16, kBf16>(), WholesRowsOf<kNhwc, kF32, kF16, kBf16>(),
              WholesRow<"quantise", kNchw, kF32, kGpuRows, kU8>(&ConvertNchwToRows<kU8>),
              WholesRow<"quantise", kNchw, kF32, kNhwc, kU8>(&ConvertNchwToNhwc<kU8>),
              WholesRow<"dequantise", kGpuRows, kU8, kNchw, kF32>(&ConvertRowsToNchw<kU8>),
              WholesRow<"dequantise", kNhwc, kU8, kNchw, kF32>(&ConvertNhwcToNchw<kU8>),
              WholesRow<"move", kNchw, kU8, kGpuRows, kU8>(&ConvertNchwToRows<kU8, kU8>),
              WholesRow<"move", kNchw, kU8, kNhwc, kU8>(&ConvertNchwToNhwc<kU8, kU8>),
              WholesRow<"move", kGpuRows, kU8, kNchw, kU8>(&ConvertRowsToNchw<kU8, kU8>),
              WholesRow<"move", kNhwc, kU8, kNchw, kU8>(&ConvertNhwcToNchw<kU8, kU8>),
              WholesRow<"move", kGpuRows, kU8, kNhwc, kU8>(&ConvertRowsToNhwc<kU8>),
              WholesRow<"move", kNhwc, kU8, kGpuRows, kU8>(&ConvertNhwcToRows<kU8>));
}

// Layers of bytes, to bytes or real numbers: rows <stem>[_<real type>]_<target>.
template <RowText kStem, RowText kTarget, Format kFormat, Layout kLayout, DType... kTypes>
constexpr auto ByteLayerRows(uint32_t features, const Kernel& common, RunFunctionPointer run) {
  return Join(std::array<Kernel, 1>{
      MakeRow<kStem + (kTypes == kU8 ? RowText("") : RowText("_") + TypeTag(kTypes)) + "_" + kTarget>(
          common, {Op::kConv, kFormat, DType::kInt8, Storage{kLayout, kU8}, Storage{kLayout, kTypes}}, features,
          run)}...);
}
template <RowText kTarget, ByteWay kWay>
constexpr auto SrBcrsRows() {
  return ByteLayerRows<"conv_rows_sr_bcrs_u8", kTarget + "_sm80", Format::kSrBcrs, kGpuRows, kU8, kF32, kF16, kBf16>(
      kSm80,
      {.accepts = AcceptsConvBytes<kWay>,
       .prepare = PrepareConvBytes,
       .workspace_bytes = ConvBytesWorkspaceBytes,
       .holds = HoldsBytes},
      RunConvBytes<kWay>);
}
template <RowText kTarget>
constexpr auto DenseConvByteRows(uint32_t features, decltype(Kernel::prepare) prepare, RunFunctionPointer run) {
  return ByteLayerRows<"conv_nhwc_dense_u8", kTarget, Format::kDense, kNhwc, kU8, kF32, kF16, kBf16>(
      features,
      {.accepts = AcceptsDenseConvBytes,
       .prepare = prepare,
       .workspace_bytes = DenseConvBytesWorkspaceBytes,
       .holds = HoldsBytes},
      run);
}

// Layers that make bytes of real numbers, and end in such: rows <stem>_<type>_<target>.
template <RowText kStem, RowText kTarget, Format kFormat, Layout kLayout, DType... kTypes>
constexpr auto PositionByteRows(uint32_t features, const Kernel& common, RunFunctionPointer run) {
  return Join(std::array<Kernel, 1>{MakeRow<kStem + "_" + TypeTag(kTypes) + "_" + kTarget>(
      common, {Op::kConv, kFormat, DType::kInt8, Storage{kLayout, kTypes}, Storage{kLayout, kTypes}}, features,
      run)}...);
}
template <RowText kTarget, ByteWay kWay>
constexpr auto PositionPanelRows() {
  return PositionByteRows<"conv_rows_sr_bcrs_position_u8", kTarget + "_sm80", Format::kSrBcrs, kGpuRows, kF32, kF16,
                          kBf16>(kSm80,
                                 {.accepts = AcceptsPositionPanels<kWay>,
                                  .prepare = PreparePositionPanels,
                                  .workspace_bytes = PositionPanelsWorkspaceBytes,
                                  .holds = HoldsPositionBytes},
                                 RunPositionPanels<kWay>);
}
template <RowText kTarget, typename Shape>
constexpr auto PositionTileRows() {
  return PositionByteRows<"conv_nhwc_dense_position_u8", kTarget + "_sm90a", Format::kDense, kNhwc, kF32, kF16, kBf16>(
      kSm90a,
      {.accepts = AcceptsPositionBytes,
       .prepare = PreparePositionTiles,
       .workspace_bytes = PositionLinesWorkspaceBytes,
       .holds = HoldsPositionBytes},
      RunPositionTiles<Shape>);
}
constexpr auto AllPositionRows() {
  return Join(PositionPanelRows<"gather", ByteWay::kGather>(), PositionPanelRows<"shared", ByteWay::kGatherShared>(),
              PositionPanelRows<"tile128", ByteWay::kResident128>(),
              PositionPanelRows<"tile64", ByteWay::kResident64>(), PositionTileRows<"wgmma128x64", ByteTile128x64>(),
              PositionTileRows<"wgmma128x128", ByteTile128x128>(), PositionTileRows<"wgmma64x64", ByteTile64x64>(),
              PositionTileRows<"wgmma64x64s2", ByteTileShort>(), PositionTileRows<"wgmma64x64k4", ByteTileSplit>(),
              PositionByteRows<"conv_nhwc_dense_position_u8", "cublaslt", Format::kDense, kNhwc, kF32, kF16, kBf16>(
                  kSm80,
                  {.accepts = AcceptsPositionBytes,
                   .prepare = PreparePositionLibrary,
                   .workspace_bytes = PositionLibraryWorkspaceBytes,
                   .holds = HoldsPositionBytes},
                  RunPositionLibrary));
}

// Rows <stem>_<layout>[_<format>]_u8_sm75 of what stays bytes in its layout.
template <RowText kStem, Layout kLayout, Format kFormat = Format::kNone>
constexpr std::array<Kernel, 1> ByteRow(Op op, const Kernel& common, RunFunctionPointer run) {
  constexpr RowText kName = kStem + "_" + RowText(LayoutName(kLayout)) +
                            (kFormat == Format::kNone ? RowText("") : RowText("_dense")) + "_u8_sm75";
  constexpr Storage kStorage = {kLayout, kU8};
  return {MakeRow<kName>(common, {op, kFormat, kFormat == Format::kNone ? kF32 : DType::kInt8, kStorage, kStorage},
                         kAnySm, run)};
}
template <Layout kLayout>
constexpr auto ByteRowsOf() {
  return Join(
      ByteRow<"depthwise", kLayout, Format::kDense>(
          Op::kDepthwiseConv,
          {.accepts = AcceptsDepthwiseBytes<kLayout>, .prepare = PrepareDepthwiseBytes, .holds = HoldsBytes},
          DepthwiseBytes<kLayout>),
      ByteRow<"max_pool", kLayout>(Op::kMaxPool, {.accepts = AcceptsMaxPoolBytes<kLayout>}, MaxPoolBytes<kLayout>),
      ByteRow<"average_pool", kLayout>(Op::kAveragePool, {.accepts = AcceptsAveragePoolBytes<kLayout>},
                                       AveragePoolBytes<kLayout>),
      ByteRow<"add", kLayout>(Op::kAdd, {.accepts = AcceptsElementwiseBytes}, AddBytes),
      ByteRow<"activation", kLayout>(Op::kActivation, {.accepts = AcceptsElementwiseBytes}, AddBytes),
      ByteRow<"concat", kLayout>(Op::kConcat, {.accepts = AcceptsConcatBytes}, RunConcat<kLayout, kU8>),
      ByteRow<"slice", kLayout>(Op::kSlice, {.accepts = KeepsBytes}, RunSlice<kLayout, kU8>),
      ByteRow<"resize", kLayout>(Op::kResize, {.accepts = AcceptsResizeBytes}, Resize<kLayout, kU8>));
}

constexpr auto All() {
  return Join(
      WholesRows(), SrBcrsRows<"gather", ByteWay::kGather>(), SrBcrsRows<"shared", ByteWay::kGatherShared>(),
      SrBcrsRows<"tile128", ByteWay::kResident128>(), SrBcrsRows<"tile64", ByteWay::kResident64>(),
      // Of equals the first is taken where nothing is measured.
      DenseConvByteRows<"wgmma128x64_sm90a">(kSm90a, PrepareDenseConvBytesWgmma,
                                             RunDenseConvBytesWgmma<ByteTile128x64>),
      DenseConvByteRows<"wgmma128x128_sm90a">(kSm90a, PrepareDenseConvBytesWgmma,
                                              RunDenseConvBytesWgmma<ByteTile128x128>),
      DenseConvByteRows<"wgmma64x64_sm90a">(kSm90a, PrepareDenseConvBytesWgmma, RunDenseConvBytesWgmma<ByteTile64x64>),
      DenseConvByteRows<"wgmma64x64s2_sm90a">(kSm90a, PrepareDenseConvBytesWgmma,
                                              RunDenseConvBytesWgmma<ByteTileShort>),
      DenseConvByteRows<"wgmma64x64k4_sm90a">(kSm90a, PrepareDenseConvBytesWgmma,
                                              RunDenseConvBytesWgmma<ByteTileSplit>),
      DenseConvByteRows<"mma128x128_sm80">(kSm80, PrepareDenseConvBytes, RunDenseConvBytes<128, 128>),
      DenseConvByteRows<"mma64x64_sm80">(kSm80, PrepareDenseConvBytes, RunDenseConvBytes<64, 64>),
      ByteLayerRows<"conv_nhwc_dense_u8", "cublaslt", Format::kDense, kNhwc, kU8, kF32, kF16, kBf16>(
          kSm80,
          {.accepts = AcceptsDenseBytes,
           .prepare = PrepareDenseBytes,
           .workspace_bytes = DenseBytesWorkspaceBytes,
           .holds = HoldsBytes},
          RunDenseBytes),
      AllPositionRows(), ByteRowsOf<kGpuRows>(), ByteRowsOf<kNhwc>());
}

}  // namespace swizzle::cuda::byte_rows

#endif  // SWIZZLE_KERNELS_CUDA_INT8_BYTE_ROWS_H_
