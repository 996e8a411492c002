// Dense attention of packed token sequences on tensor cores in kRows, which sparse products read and write: rows
// attention_rows_<type>_mma_sm80. As attention_mma.h, with operands transposed as they are loaded.
//
// A row of a head's channel is contiguous along tokens, so tiles of queries and of keys begin at multiples of their
// size, whatever sequence they belong to, and copies are of 16 bytes; what lies in a tile but not in the sequence is
// masked, values to zero (they may be no numbers), and not stored. Sequences that begin elsewhere meet up to one tile
// more.
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_MMA_ROWS_H_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_MMA_ROWS_H_

#include "kernels/backend/kernel_args.h"

namespace swizzle::cuda {

// Heads of at most 128 channels, a multiple of 16.
bool AcceptsAttentionMmaRows(const Problem& problem);
// FP16 and BF16.
template <DType kDType>
void AttendMmaRows(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_MMA_ROWS_H_
