// Pruning of whole vectors of rows, of blocks, and to N:M: what tensor cores multiply without the zeros
// (kernels/format/shfl_bw.h, n_m.h). Scores are magnitudes unless others are given, of a vector or block their mean;
// zeros add nothing to it, and what is wholly zero goes first. One shot, without training. Pure, deterministic.
#ifndef SWIZZLE_MODEL_LOADER_PRUNING_VECTORS_H_
#define SWIZZLE_MODEL_LOADER_PRUNING_VECTORS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace swizzle {

// A matrix of weights, row-major: a row for each output.
struct WeightView {
  int64_t rows = 0;
  int64_t cols = 0;
  std::span<float> values;
  std::span<const float> scores = {};  // one a weight, all of them numbers; none: magnitudes
  int64_t taps = 1;                    // of a window, which are the faster in a row; the rest of it are input channels
};

// Zeros the vectors of least score until round(sparsity * vectors) are pruned, whichever groups they are of. A vector
// is the entries in one column of a group, which are `vector_rows` neighbours in `row_order`; the last may be shorter.
// Of equal scores the first go first. REQUIRES: 0 <= sparsity <= 1, vector_rows >= 1,
// row_order names every row once.
void PruneVectors(const WeightView& weights, std::span<const uint32_t> row_order, int64_t vector_rows, double sparsity);

// Likewise of blocks of `size` rows by `size` input channels at one tap, cut off at the edges, by their mean: those
// that DetectStructure finds. REQUIRES: taps divides cols.
void PruneBlocks(const WeightView& weights, int64_t size, double sparsity);

// Of any m neighbouring input channels at one tap at most n stay; the last of a row's groups may be shorter.
// REQUIRES: 1 <= n <= m, taps divides cols.
void PruneNOfM(const WeightView& weights, int64_t n, int64_t m);

double SumOfMagnitudes(std::span<const float> weights);
// Of the scores of what is not zero.
double SumOfScores(const WeightView& weights);

// The order of rows that Shfl-BW's search finds (Huang et al., "Shfl-BW", DAC 2022, section 4): rows of an unstructured
// mask at twice the density are clustered into groups of vector_rows, so that rows which keep the same columns meet.
// What the paper leaves open:
//   distance        Euclid's, of masks to the means of groups;
//   initialisation  k-means++ with a fixed seed;
//   balance         the last group is short where rows are no multiple; rows choose in the order of what they lose by
//                   not getting the group they are nearest to;
//   iterations      until nothing moves, at most ten;
//   result          of all iterations and the rows' own order that which keeps the highest scores.
// REQUIRES: 0 <= sparsity <= 1, vector_rows >= 1.
std::vector<uint32_t> FindRowOrder(const WeightView& weights, int64_t vector_rows, double sparsity);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PRUNING_VECTORS_H_
