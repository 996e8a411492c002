#include <utility>

#include "tests/kernels/cuda/tensor_core/product_kernels.cuh"

namespace swizzle::cuda {
namespace {

template <typename Variants, int... kSixteens>
void AddAllWidths(Variants variants, std::integer_sequence<int, kSixteens...>) {
  variants.AddWarps();
  variants.template AddGroups<8>();
  variants.template AddGroups<24>();
  (variants.template AddGroups<16 * (kSixteens + 1)>(), ...);
}

template <typename A, typename B>
void AddAll(const char* types, Factor left, Factor right, std::vector<ProductVariant>& variants) {
  AddAllWidths(VariantsOf<A, B>(types, left, right, variants), std::make_integer_sequence<int, 16>());
}

}  // namespace

std::vector<ProductVariant> IntegerVariants() {
  std::vector<ProductVariant> variants;
  AddAll<int8_t, int8_t>("s8 by s8", Factor::kInt8, Factor::kInt8, variants);
  AddAll<int8_t, uint8_t>("s8 by u8", Factor::kInt8, Factor::kUint8, variants);
  AddAll<uint8_t, int8_t>("u8 by s8", Factor::kUint8, Factor::kInt8, variants);
  AddAll<uint8_t, uint8_t>("u8 by u8", Factor::kUint8, Factor::kUint8, variants);
  return variants;
}

}  // namespace swizzle::cuda
