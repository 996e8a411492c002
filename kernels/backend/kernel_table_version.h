// Apart from the table, whose readers are most of the sources: it changes often.
#ifndef SWIZZLE_KERNELS_BACKEND_KERNEL_TABLE_VERSION_H_
#define SWIZZLE_KERNELS_BACKEND_KERNEL_TABLE_VERSION_H_

namespace swizzle {

// Times that were measured with another version no longer count (plan/choose/tuning_cache.h): raise it with every
// change to what a kernel does or how fast.
inline constexpr int kKernelTableVersion = 36;

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BACKEND_KERNEL_TABLE_VERSION_H_
