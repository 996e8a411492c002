// The rows of attention to all keys in the kernel table: plain, with biases of pairs, and with vectors of places.
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_ROWS_H_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_ROWS_H_

#include "kernels/backend/kernel_rows.h"
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/attention_biases.h"
#include "kernels/cuda/attention/attention_mma.h"
#include "kernels/cuda/attention/attention_mma_rows.h"
#include "kernels/cuda/attention/attention_places.h"
#include "kernels/cuda/attention/attention_wgmma.h"

namespace swizzle::cuda::attention_rows {

inline constexpr DType kF32 = DType::kFloat32, kF16 = DType::kFloat16, kBf16 = DType::kBFloat16;

// What an operator's rows share.
struct Shared {
  Op op;
  Format weights;
  Kernel kernel;  // but for `accepts`

  constexpr Kernel Accepting(bool (*accepts)(const Problem&)) const {
    Kernel made = kernel;
    made.accepts = accepts;
    return made;
  }
};

template <RowText kName, Layout kLayout, DType kDtype>
constexpr std::array<Kernel, 1> RowOf(const Shared& shared, uint32_t features, const Kernel& common,
                                      RunFunctionPointer run) {
  return {MakeRow<kName>(common, KeyOf({shared.op, shared.weights, kLayout, kLayout}, kDtype, kDtype), features, run)};
}

// Rows <stem>_<layout><format>_<type>_wgmma_sm90a.
template <RowText kStem, RowText kFormat, Layout kLayout, DType... kTypes>
constexpr auto WarpgroupRows(const Shared& shared) {
  constexpr RowText kName = kStem + "_" + RowText(LayoutName(kLayout)) + kFormat + "_";
  return Join(RowOf<kName + TypeTag(kTypes) + "_wgmma_sm90a", kLayout, kTypes>(
      shared, kSm90a, shared.Accepting(AcceptsAttentionWgmma), &AttendWgmma<kLayout, kTypes>)...);
}

// Rows <stem>_<layout><format>_<type>_mma_sm80, FP32 as TF32.
template <RowText kStem, RowText kFormat>
constexpr auto NhwcWarpRows(const Shared& shared) {
  constexpr RowText kName = kStem + "_nhwc" + kFormat;
  constexpr Layout kNhwc = Layout::kNhwc;
  const Kernel common = shared.Accepting(AcceptsAttentionMma);
  return Join(RowOf<kName + "_tf32_mma_sm80", kNhwc, kF32>(shared, kSm80, Computing(Numerics::kTf32Factors, common),
                                                           AttendMma<kF32>),
              RowOf<kName + "_f16_mma_sm80", kNhwc, kF16>(shared, kSm80, common, AttendMma<kF16>),
              RowOf<kName + "_bf16_mma_sm80", kNhwc, kBf16>(shared, kSm80, common, AttendMma<kBf16>));
}
template <RowText kStem, RowText kFormat>
constexpr auto WarpRows(const Shared& shared) {
  constexpr RowText kName = kStem + "_rows" + kFormat;
  constexpr Layout kRows = Layout::kRows;
  const Kernel common = shared.Accepting(AcceptsAttentionMmaRows);
  return Join(NhwcWarpRows<kStem, kFormat>(shared),
              RowOf<kName + "_f16_mma_sm80", kRows, kF16>(shared, kSm80, common, AttendMmaRows<kF16>),
              RowOf<kName + "_bf16_mma_sm80", kRows, kBf16>(shared, kSm80, common, AttendMmaRows<kBf16>));
}

// Rows <stem>_<layout><format>_<type>_sm75.
template <RowText kStem, RowText kFormat, Layout kLayout, DType... kTypes>
constexpr auto LaneRowsIn(const Shared& shared, bool (*accepts)(const Problem&)) {
  constexpr RowText kName = kStem + "_" + RowText(LayoutName(kLayout)) + kFormat + "_";
  return Join(RowOf<kName + TypeTag(kTypes) + "_sm75", kLayout, kTypes>(shared, kAnySm, shared.Accepting(accepts),
                                                                        &Attend<kLayout, kTypes>)...);
}
template <RowText kStem, RowText kFormat>
constexpr auto LaneRows(const Shared& shared, bool (*accepts)(const Problem&)) {
  return Join(LaneRowsIn<kStem, kFormat, Layout::kRows, kF32, kF16, kBf16>(shared, accepts),
              LaneRowsIn<kStem, kFormat, Layout::kNhwc, kF32, kF16, kBf16>(shared, accepts));
}

template <RowText kStem, RowText kFormat>
constexpr auto WithoutWarpgroups(const Shared& shared) {
  return Join(WarpRows<kStem, kFormat>(shared), LaneRows<kStem, kFormat>(shared, AcceptsAttention));
}

template <RowText kStem, RowText kFormat>
constexpr auto AllOf(const Shared& shared) {
  return Join(WarpgroupRows<kStem, kFormat, Layout::kRows, kF16, kBf16>(shared),
              WarpgroupRows<kStem, kFormat, Layout::kNhwc, kF16, kBf16>(shared),
              WithoutWarpgroups<kStem, kFormat>(shared));
}

// Estimates go by bytes, and of equals the first row is taken: tensor cores before CUDA cores.
constexpr auto All() {
  constexpr Shared kPlain = {Op::kAttention, Format::kNone, {}};
  constexpr Shared kBiased = {Op::kBiasedAttention, Format::kDense, {.prepare = PrepareBiasedAttention}};
  constexpr Shared kDisentangled = {Op::kDisentangledAttention,
                                    Format::kDense,
                                    {.prepare = PrepareDisentangledAttention, .workspace_bytes = PlaceProductsBytes}};
  return Join(AllOf<"attention", "">(kPlain), AllOf<"biased_attention", "_dense">(kBiased),
              WithoutWarpgroups<"disentangled_attention", "_dense">(kDisentangled));
}

// With a pattern as a mask.
constexpr auto AllOfMasks() {
  constexpr Shared kMasked = {Op::kSparseAttention, Format::kDense, {.prepare = PrepareMaskedAttention}};
  return Join(NhwcWarpRows<"sparse_attention", "_dense">(kMasked),
              LaneRows<"sparse_attention", "_dense">(kMasked, AcceptsMaskedAttention));
}

}  // namespace swizzle::cuda::attention_rows

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_ROWS_H_
