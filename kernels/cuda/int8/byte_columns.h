// The columns that convolutions of bytes multiply their weights with, on a GPU: of each output position the window's
// taps, all channels of a tap one after the other, as ByteWeight counts columns. Outside the plane they are `outside`,
// the input's zero point.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_BYTE_COLUMNS_H_
#define SWIZZLE_KERNELS_CUDA_INT8_BYTE_COLUMNS_H_

#include <cstdint>

#include "kernels/backend/kernel_args.h"

namespace swizzle::cuda {

// Columns of a problem.
int64_t ByteColumnCount(const Problem& problem);

// kRows: a row of RowStride(output positions) bytes for each column. Spare positions at the end are `outside`, too.
int64_t ByteRowsSize(const Problem& problem);
void QueueByteRows(const Problem& problem, const uint8_t* input, uint8_t outside, uint8_t* columns, Stream& stream);

// kNhwc: for each output position all columns, filled up to a multiple of kByteUnit by bytes that are not to count.
inline constexpr int64_t kByteUnit = 16;
int64_t ByteLineSize(const Problem& problem);  // of a position
void QueueByteLines(const Problem& problem, const uint8_t* input, uint8_t outside, uint8_t* columns, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_BYTE_COLUMNS_H_
