// Functions of bytes that stand for real numbers: a table of what becomes of each of the 256, made when the row runs.
// Rows function_<layout>_u8_base look up byte by byte, function_<layout>_u8_vbmi 64 at a time. Layouts are kNchw,
// kFullPanels and kNhwc. Stateless, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_INT8_FUNCTION_BYTES_H_
#define SWIZZLE_KERNELS_CPU_INT8_FUNCTION_BYTES_H_

#include <cstdint>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

inline constexpr int kByteValues = 256;

bool AcceptsFunctionBytes(const Problem& problem);

void FunctionBytes(const KernelArgs& args, Stream& stream);
void FunctionBytesVbmi(const KernelArgs& args, Stream& stream);

// to[i] = table[from[i]]; `to` may be `from`. With VBMI.
void LookUpBytes(const uint8_t* table, const uint8_t* from, int64_t count, uint8_t* to);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_FUNCTION_BYTES_H_
