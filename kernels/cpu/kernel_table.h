// The CPU's kernel table: one row a kernel and instruction set. Its order is the order of candidates.
#ifndef SWIZZLE_KERNELS_CPU_KERNEL_TABLE_H_
#define SWIZZLE_KERNELS_CPU_KERNEL_TABLE_H_

#include <span>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

std::span<const Kernel> KernelTable();

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_KERNEL_TABLE_H_
