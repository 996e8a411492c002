// Makes rows of the CPU's kernel table: the same kernel for each instruction set, type and layout. Names are made here.
#ifndef SWIZZLE_KERNELS_CPU_TARGET_ROWS_H_
#define SWIZZLE_KERNELS_CPU_TARGET_ROWS_H_

#include <array>
#include <cstdint>

#include "kernels/backend/kernel_rows.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

// One function in all targets' namespaces.
struct PerTarget {
  RunFunctionPointer avx512, avx2, base;
};
#define SWIZZLE_PER_TARGET(function) (PerTarget{N_AVX3::function, N_AVX2::function, N_EMU128::function})

// Rows of one type: one for each instruction set, or the only one of what is compiled once.
template <RowText kStem, DType kType>
constexpr std::array<Kernel, 3> RowsOfType(const RowShape& shape, const Kernel& common, const PerTarget& run) {
  constexpr RowText kName = kStem + "_" + TypeTag(kType);
  const KernelKey key = KeyOf(shape, DType::kFloat32, kType);
  Kernel family = common;
  family.family = RowName<kName>();
  return {MakeRow<kName + "_avx512">(family, key, kAvx512, run.avx512),
          MakeRow<kName + "_avx2">(family, key, kAvx2, run.avx2),
          MakeRow<kName + "_base">(family, key, kAnyX86, run.base)};
}
template <RowText kStem, DType kType>
constexpr std::array<Kernel, 1> RowsOfType(const RowShape& shape, const Kernel& common, RunFunctionPointer run) {
  const KernelKey key = KeyOf(shape, DType::kFloat32, kType);
  return {MakeRow<kStem + "_" + TypeTag(kType) + "_base">(common, key, kAnyX86, run)};
}

// Rows <stem>_<type>_<target>.
template <RowText kStem, DType... kTypes>
constexpr auto Rows(const RowShape& shape, const Kernel& common, auto run) {
  return Join(RowsOfType<kStem, kTypes>(shape, common, run)...);
}

// Rows <stem>_<layout>[_<format>]_<type>_<target> of what stays in its layout, in each type that the layout has.
template <RowText kStem, RowText kFormat, Layout kLayout>
constexpr auto RowsInLayout(Op op, Format weights, const Kernel& common, auto run) {
  constexpr RowText kName = kStem + "_" + RowText(LayoutName(kLayout)) + kFormat;
  const RowShape shape = {op, weights, kLayout, kLayout};
  if constexpr (kLayout == Layout::kPanels) {
    return Rows<kName, DType::kFloat32, DType::kBFloat16>(shape, common, run);
  } else {
    return Rows<kName, DType::kFloat32>(shape, common, run);
  }
}
template <RowText kStem, Layout... kLayouts>
constexpr auto PlainRows(Op op, const Kernel& common, auto run) {
  return Join(RowsInLayout<kStem, "", kLayouts>(op, Format::kNone, common, run)...);
}

// A row of a library's kernel, or of one instruction set alone.
template <RowText kName, DType kType = DType::kFloat32>
constexpr std::array<Kernel, 1> LibraryRow(const RowShape& shape, uint32_t features, const Kernel& common,
                                           RunFunctionPointer run) {
  return {MakeRow<kName>(common, KeyOf(shape, DType::kFloat32, kType), features, run)};
}

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TARGET_ROWS_H_
