// Every product that the wrappers of tensor cores' instructions make (kernels/cuda/tensor_core), one launch each.
#ifndef SWIZZLE_TESTS_KERNELS_CUDA_TENSOR_CORE_PRODUCT_VARIANTS_H_
#define SWIZZLE_TESTS_KERNELS_CUDA_TENSOR_CORE_PRODUCT_VARIANTS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace swizzle::cuda {

enum class Factor { kFloat16, kBFloat16, kTf32, kInt8, kUint8 };

// Where a warpgroup's product finds its operands. kOuter: with the depth as rows, for 16-bit types.
enum class Place { kWarp, kRegisters, kShared, kRegistersOuter, kSharedOuter };

// Operands are rows of 8 words of 32 bits, along the depth; the right one, of a sparse product, of 16. Sums are
// [rows][columns], FP32 or INT32. The product is queued twice, first over and then on top of the sums, so that they are
// twice what operands make. All in device memory; `metadata` is that of every lane.
struct ProductVariant {
  std::string name;
  Factor left, right;
  int rows, columns;
  bool sparse;
  bool needs_hopper;
  void (*queue)(const uint32_t* left, const uint32_t* right, uint32_t metadata, uint32_t* sums);
};

std::vector<ProductVariant> FloatVariants();
std::vector<ProductVariant> IntegerVariants();

}  // namespace swizzle::cuda

#endif  // SWIZZLE_TESTS_KERNELS_CUDA_TENSOR_CORE_PRODUCT_VARIANTS_H_
