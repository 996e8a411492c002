// The CPU's kernel table: one row a kernel and instruction set. Its order is the order of candidates.
//
// How a kernel of real numbers is written:
//
// - its header declares what its rows name: accepts, prepare and workspace_bytes once, and the functions that run in
//   each target's namespace, by SWIZZLE_DECLARE_PER_TARGET (runtime/targets.h);
// - its source is compiled once a target by hwy/foreach_target.h. In HWY_NAMESPACE all but the declared functions
//   stands in an anonymous namespace: two kernels' internals of one name would else be one to the linker (a test holds
//   it). What no target needs follows under HWY_ONCE;
// - vector code that several kernels share is an -inl.h header with a per-target guard: simd/elements-inl.h has the
//   loads and stores of whole vectors and of ends, in every type;
// - what computes no vectors (packing, sizes, cutting work) is an ordinary source, compiled once;
// - so is what has one instruction set alone (tokens/attention_bfloat16.cc), for these (simd/bfloat16_pairs-inl.h).
//
// How one of bytes is written (int8/): what decides, which is most of it (threads, panels, slices, windows), is alike
// for all targets, and compiled once. Only what is done to a panel of 64 positions is not. So:
//
// - the inner part is a function of ByteCells (int8/byte_cells.h), which each target has a table of: int8/byte_cells.cc
//   and int8/window_cells.cc per target, int8/*_vnni.cc for AVX-512 with VNNI, and int8/window_cells_vbmi.cc where
//   VBMI brings the bytes of windows together;
// - the kernel is an ordinary source: a template over a table, `template <const ByteCells& kCells> void RunX(...)`,
//   declared in its header and instantiated for the tables at its end;
// - kernel_table.cc names it once: SWIZZLE_PER_BYTE_TARGET(RunX) in ByteRows makes a row of each table but VBMI's, and
//   SWIZZLE_PER_WINDOW_TARGET(RunX) in WindowRows, for what slides windows, of all.
#ifndef SWIZZLE_KERNELS_CPU_KERNEL_TABLE_H_
#define SWIZZLE_KERNELS_CPU_KERNEL_TABLE_H_

#include <span>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

std::span<const Kernel> KernelTable();

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_KERNEL_TABLE_H_
