// How kernel_table.cc writes rows of bytes: their keys, and one for each target. Compile-time, stateless.
#ifndef SWIZZLE_KERNELS_CPU_INT8_BYTE_ROWS_H_
#define SWIZZLE_KERNELS_CPU_INT8_BYTE_ROWS_H_

#include <array>
#include <cstdint>

#include "kernels/backend/kernel_rows.h"
#include "kernels/cpu/int8/byte_cells.h"
#include "kernels/cpu/int8/convert_bytes.h"
#include "kernels/cpu/int8/function_bytes.h"
#include "kernels/cpu/int8/resize_bytes.h"
#include "kernels/cpu/runtime/targets.h"
#include "kernels/cpu/window/resize.h"

namespace swizzle::cpu {

// Rows of bytes on either side, with scales where there are weights.
constexpr KernelKey ByteKey(Op op, Format weights, Storage input, Storage output) {
  return {op, weights, weights == Format::kNone ? DType::kFloat32 : DType::kInt8, input, output};
}

// One that has one target.
template <RowText kName>
constexpr std::array<Kernel, 1> SingleByteRow(const KernelKey& key, uint32_t features, const Kernel& common,
                                              RunFunctionPointer run) {
  return {MakeRow<kName>(common, key, features, run)};
}

// One function in the targets of bytes: one kernel for each table of cells.
struct PerByteTarget {
  RunFunctionPointer vnni, avx512, avx2, base;
};
#define SWIZZLE_PER_BYTE_TARGET(function)                                                                \
  (PerByteTarget{function<vnni::kByteCells>, function<N_AVX3::kByteCells>, function<N_AVX2::kByteCells>, \
                 function<N_EMU128::kByteCells>})

// The same with windows, which VBMI makes faster.
struct PerWindowTarget {
  RunFunctionPointer vbmi;
  PerByteTarget others;
};
#define SWIZZLE_PER_WINDOW_TARGET(function) \
  (PerWindowTarget{function<vbmi::kByteCells>, SWIZZLE_PER_BYTE_TARGET(function)})

// How a weight is prepared for some targets, where they have a form of their own: for those with VNNI, and for those
// that have AVX2 at best.
struct OwnForms {
  decltype(Kernel::prepare) vnni = nullptr, avx2 = nullptr;
};

// Rows <name>_<target>, of bytes on either side.
template <RowText kName>
constexpr std::array<Kernel, 4> ByteRows(Op op, Format weights, Storage input, Storage output, const Kernel& common,
                                         const PerByteTarget& run, const OwnForms& forms = {}) {
  const KernelKey key = ByteKey(op, weights, input, output);
  Kernel family = common;
  family.family = RowName<kName>();
  Kernel vnni = family, paired = family;
  if (forms.vnni != nullptr) vnni.prepare = forms.vnni;
  if (forms.avx2 != nullptr) paired.prepare = forms.avx2;
  return {MakeRow<kName + "_vnni">(vnni, key, kAvx512 | kVnni, run.vnni),
          MakeRow<kName + "_avx512">(paired, key, kAvx512, run.avx512),
          MakeRow<kName + "_avx2">(paired, key, kAvx2, run.avx2),
          MakeRow<kName + "_base">(family, key, kAnyX86, run.base)};
}

template <RowText kName>
constexpr auto WindowRows(Op op, Format weights, Storage input, Storage output, const Kernel& common,
                          const PerWindowTarget& run, const OwnForms& forms = {}) {
  const KernelKey key = ByteKey(op, weights, input, output);
  Kernel family = common;
  family.family = RowName<kName>();
  if (forms.vnni != nullptr) family.prepare = forms.vnni;
  const std::array<Kernel, 1> vbmi = {MakeRow<kName + "_vbmi">(family, key, kAvx512 | kVnni | kVbmi, run.vbmi)};
  return Join(vbmi, ByteRows<kName>(op, weights, input, output, common, run.others, forms));
}

inline constexpr Storage kNchwU8 = {Layout::kNchw, DType::kUint8};
inline constexpr Storage kFullU8 = {Layout::kFullPanels, DType::kUint8};
inline constexpr Storage kNhwcU8 = {Layout::kNhwc, DType::kUint8};
inline constexpr Storage kNchwF32 = {Layout::kNchw, DType::kFloat32};
inline constexpr Storage kNhwcF32 = {Layout::kNhwc, DType::kFloat32};
inline constexpr Storage kPanelsF32 = {Layout::kPanels, DType::kFloat32};
inline constexpr Storage kBlockedF32 = {Layout::kBlocked16, DType::kFloat32};

template <RowText kName, Storage kFrom, Storage kTo>
constexpr auto ByteConversion(Op op = Op::kConvertLayout, decltype(Kernel::accepts) accepts = AcceptsConvertBytes) {
  return ByteRows<kName>(op, Format::kNone, kFrom, kTo, {.accepts = accepts}, SWIZZLE_PER_BYTE_TARGET(ConvertBytes));
}

// Between bytes and real numbers, and layouts of bytes.
constexpr auto ByteConversions() {
  return Join(ByteConversion<"quantise_nchw_nchw_u8", kNchwF32, kNchwU8>(),
              ByteConversion<"quantise_nchw_full_panels_u8", kNchwF32, kFullU8>(),
              ByteConversion<"quantise_panels_full_panels_u8", kPanelsF32, kFullU8>(),
              ByteConversion<"quantise_blocked16_full_panels_u8", kBlockedF32, kFullU8>(),
              ByteConversion<"dequantise_nchw_nchw_u8", kNchwU8, kNchwF32>(),
              ByteConversion<"dequantise_full_panels_nchw_u8", kFullU8, kNchwF32>(),
              ByteConversion<"dequantise_full_panels_panels_u8", kFullU8, kPanelsF32>(),
              ByteConversion<"dequantise_full_panels_blocked16_u8", kFullU8, kBlockedF32>(),
              ByteConversion<"move_nchw_full_panels_u8", kNchwU8, kFullU8>(),
              ByteConversion<"move_full_panels_nchw_u8", kFullU8, kNchwU8>(),
              ByteConversion<"quantise_nchw_nhwc_u8", kNchwF32, kNhwcU8>(),
              ByteConversion<"quantise_nhwc_nhwc_u8", kNhwcF32, kNhwcU8>(),
              ByteConversion<"dequantise_nhwc_nhwc_u8", kNhwcU8, kNhwcF32>(),
              ByteConversion<"dequantise_nhwc_nchw_u8", kNhwcU8, kNchwF32>(),
              ByteConversion<"move_nchw_nhwc_u8", kNchwU8, kNhwcU8>(),
              ByteConversion<"move_nhwc_nchw_u8", kNhwcU8, kNchwU8>(),
              ByteConversion<"move_full_panels_nhwc_u8", kFullU8, kNhwcU8>(),
              ByteConversion<"move_nhwc_full_panels_u8", kNhwcU8, kFullU8>());
}

// Clamps of real numbers that are stored as bytes.
constexpr auto Roundings() {
  constexpr Op kOp = Op::kActivation;
  return Join(ByteConversion<"round_nchw_nchw_u8", kNchwF32, kNchwU8>(kOp, AcceptsRoundToBytes),
              ByteConversion<"round_nchw_full_panels_u8", kNchwF32, kFullU8>(kOp, AcceptsRoundToBytes),
              ByteConversion<"round_panels_full_panels_u8", kPanelsF32, kFullU8>(kOp, AcceptsRoundToBytes));
}

// A row <name>_base of bytes that stay in their layout.
template <RowText kName, Storage kStorage>
constexpr std::array<Kernel, 1> ByteRow(Op op, const Kernel& common, RunFunctionPointer run) {
  return {MakeRow<kName + "_base">(common, {op, Format::kNone, DType::kFloat32, kStorage, kStorage}, kAnyX86, run)};
}

// Rows <name>_<target> of what is compiled for every target.
template <RowText kName>
constexpr std::array<Kernel, 3> TargetRows(const KernelKey& key, Kernel family, const auto& run) {
  family.family = RowName<kName>();
  return {MakeRow<kName + "_avx512">(family, key, kAvx512, run.avx512),
          MakeRow<kName + "_avx2">(family, key, kAvx2, run.avx2),
          MakeRow<kName + "_base">(family, key, kAnyX86, run.base)};
}

// The same of bytes that stay in their layout.
template <RowText kName, Storage kStorage>
constexpr auto PlainByteRows(Op op, const Kernel& family, const auto& run) {
  return TargetRows<kName>(ByteKey(op, Format::kNone, kStorage, kStorage), family, run);
}

// Rows function_<layout>_u8_<target>.
template <RowText kName, Storage kStorage>
constexpr std::array<Kernel, 2> FunctionByteRows() {
  const KernelKey key = ByteKey(Op::kFunction, Format::kNone, kStorage, kStorage);
  const Kernel family = {.accepts = AcceptsFunctionBytes, .family = RowName<kName>()};
  return {MakeRow<kName + "_vbmi">(family, key, kAvx512 | kVnni | kVbmi, &FunctionBytesVbmi),
          MakeRow<kName + "_base">(family, key, kAnyX86, &FunctionBytes)};
}

// Rows <name>_<target> of bytes in kFullPanels that are picked one by one, or with VBMI.
template <RowText kName>
constexpr std::array<Kernel, 2> PickedByteRows(Op op, Kernel family, RunFunctionPointer singly,
                                               RunFunctionPointer vbmi) {
  constexpr Storage kStorage = {Layout::kFullPanels, DType::kUint8};
  const KernelKey key = ByteKey(op, Format::kNone, kStorage, kStorage);
  family.family = RowName<kName>();
  return {MakeRow<kName + "_vbmi">(family, key, kAvx512 | kVnni | kVbmi, vbmi),
          MakeRow<kName + "_base">(family, key, kAnyX86, singly)};
}

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_BYTE_ROWS_H_
