// The problems that every row of a kernel table is tried on, chosen per op to sit on the edges of tiles: channels
// around blocks of 16 and 32, planes that share, straddle and fill panels, batches around the panel width, awkward
// windows, sequences that end inside vectors and panels.
#ifndef SWIZZLE_TESTS_KERNELS_KERNEL_CASES_H_
#define SWIZZLE_TESTS_KERNELS_KERNEL_CASES_H_

#include <random>
#include <string>
#include <vector>

#include "kernels/backend/kernel_table.h"
#include "kernels/format/attention_pattern.h"
#include "kernels/format/dense.h"

namespace swizzle {

// What Sequences::key_bias masks.
enum class Masked { kNothing, kSomeKeys, kSomeKeysWholly, kAllKeys };

// What kBiasedAttention's biases are: drawn numbers, or the same where some distances, 0 not among them, are left out.
enum class PairRule { kDrawn, kCausal, kNear };

struct KernelCase {
  Problem problem;
  bool bias = false;
  double sparsity = 0;  // of the weight; rows 0 and M/2 are empty as well where it is above 0, if rows share no zeros
  int64_t vector_rows = 1;            // of the weight's neighbouring rows that are zero in the same columns
  bool shuffled = false;              // those rows lie anywhere
  int64_t block_channels = 1;         // neighbouring input channels that are zero together, at one tap
  int64_t groups = 1;                 // of channels; what reads other groups' is zero
  bool wide_bytes = false;            // numbers of a weight in INT8 may be beyond signed bytes
  bool two_of_four = false;           // of any four neighbouring columns two are left, drawn
  std::vector<int32_t> lengths = {};  // of the sequences; empty for ops without
  Masked masked = Masked::kNothing;   // by -10000, wholly by -infinity; one key of a sequence is left unless all are
  int64_t table_rows = 0;             // kEmbedding, kRotary, kPermuteTokens, kPlaneTokens
  float mean = 0;                     // of the inputs
  AttentionPattern pattern = {};      // kSparseAttention
  PairRule pair_rule = PairRule::kDrawn;  // kBiasedAttention
  int64_t window_kinds = 1;               // of biases, kBiasedAttention's windows having them in turn
};

// Zeros two of any four neighbouring columns of each row, drawn.
void KeepTwoOfFour(DenseMatrix& matrix, std::mt19937& random);
void ShuffleRows(DenseMatrix& matrix, std::mt19937& random);

// "Conv 2x16x7x7 -> 2x31x7x7 window 3x3 stride 1x1 ... bias residual [0,6] sparsity 0.9 threads 2".
std::string CaseText(const KernelCase& kernel_case);

// All problems of one op, in a fixed order.
std::vector<KernelCase> KernelCases(Op op);

// Likewise those that only plans have (model_loader/plan/fuse_layers.h).
std::vector<KernelCase> FusedCases(Op op);

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_KERNELS_KERNEL_CASES_H_
