#include <utility>

#include "tests/kernels/cuda/tensor_core/product_kernels.cuh"

namespace swizzle::cuda {
namespace {

template <typename Variants, int... kEights>
void AddAllWidths(Variants variants, std::integer_sequence<int, kEights...>) {
  variants.AddWarps();
  (variants.template AddGroups<8 * (kEights + 1)>(), ...);
}

template <typename T>
void AddAll(const char* types, Factor type, std::vector<ProductVariant>& variants) {
  AddAllWidths(VariantsOf<T, T>(types, type, type, variants), std::make_integer_sequence<int, 32>());
}

template <typename T>
void AddOuter(const char* types, Factor type, std::vector<ProductVariant>& variants) {
  VariantsOf<T, T> outer(types, type, type, variants);
  outer.template AddOuterGroups<64>();
  outer.template AddOuterGroups<256>();
}

}  // namespace

std::vector<ProductVariant> FloatVariants() {
  std::vector<ProductVariant> variants;
  AddAll<__half>("f16", Factor::kFloat16, variants);
  AddAll<__nv_bfloat16>("bf16", Factor::kBFloat16, variants);
  AddAll<Tf32>("tf32", Factor::kTf32, variants);
  AddOuter<__half>("f16", Factor::kFloat16, variants);
  AddOuter<__nv_bfloat16>("bf16", Factor::kBFloat16, variants);
  return variants;
}

}  // namespace swizzle::cuda
