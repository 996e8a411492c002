// FP32 activations as FP16 parts, for products on tensor cores (tensor_core/operand.cuh): of each position, all numbers
// are multiplied by the power of two that brings the largest to 2^14, and each is then the sum of two FP16 numbers, its
// upper part and its rest. Positions do not touch each other. A NaN stays one; an infinity may become one.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_POSITION_PARTS_H_
#define SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_POSITION_PARTS_H_

#include <cstdint>

#include "kernels/backend/kernel_args.h"

namespace swizzle::cuda {

// Device memory.
struct PositionParts {
  void* halves;     // aligned to 16 bytes
  float* inverses;  // [positions]: undo what positions were multiplied by
};

// Numbers of one of the three parts of a line: whole pieces of 16 bytes.
constexpr int64_t PartOfLine(int64_t depth) { return (depth + 7) / 8 * 8; }

// From [positions][depth] to lines [uppers][rests][uppers], zeros behind each `depth` numbers. Uppers are there twice,
// for a weight's rests and its uppers: small products are then summed before large ones.
void SplitLines(const float* from, int64_t positions, int64_t depth, const PositionParts& to, Stream& stream);

// From [depth][stride], positions being neighbours, to rows of uppers [depth][stride] and then as many of rests.
// REQUIRES: the stride is a multiple of 4.
void SplitRows(const float* from, int64_t depth, int64_t stride, const PositionParts& to, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_POSITION_PARTS_H_
