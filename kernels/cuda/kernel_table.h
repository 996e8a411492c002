// The GPU's kernel table: one row a kernel, element type and generation of devices. Its order is the order of
// candidates.
#ifndef SWIZZLE_KERNELS_CUDA_KERNEL_TABLE_H_
#define SWIZZLE_KERNELS_CUDA_KERNEL_TABLE_H_

#include <cstdint>
#include <span>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cuda {

// Bits of Backend::features() and Kernel::required_features. Compute capability 7.5 has none.
inline constexpr uint32_t kAnySm = 0;
inline constexpr uint32_t kSm80 = 1u << 0;   // asynchronous copies, bf16 and TF32
inline constexpr uint32_t kSm90a = 1u << 1;  // Hopper's own: wgmma, bulk copies

std::span<const Kernel> KernelTable();

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_KERNEL_TABLE_H_
