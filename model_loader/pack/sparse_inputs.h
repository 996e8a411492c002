// What zeros layers with sparse weights read in calibration data, and whether products that skip those of both sides
// would be faster than dense ones. Plain values.
//
// Such a product begins an outer product k of a tile of 64 rows by 64 positions of one row of the output only where
// the weight's column, in these rows, and what the window's tap reads, in these positions, both hold something. What of
// all k is left is `meets`. On a GPU both products are timed in FP16, the sparse one with the data itself and with
// all but its largest elements zeroed, so that it is known from which share of zeros on it would win.
#ifndef SWIZZLE_MODEL_LOADER_PACK_SPARSE_INPUTS_H_
#define SWIZZLE_MODEL_LOADER_PACK_SPARSE_INPUTS_H_

#include <map>
#include <optional>
#include <span>

#include "model_loader/pack/seen_values.h"

namespace swizzle::pack {

struct SparseInput {
  InputZeros zeros;
  double meets = 0.0;
  int64_t batch = 0;  // what follows is of so many rows; 0: nothing was timed
  double microseconds = 0.0, dense_microseconds = 0.0;
  std::optional<double> wins_from;  // share of the input's zeros; none where no share up to 99.9 % wins

  bool wins() const { return batch > 0 && microseconds < dense_microseconds; }
};
using SparseInputs = std::map<int, SparseInput>;  // by layer of the network

// As tiles see them: the share of k that both sides hold. `input` is in NCHW.
double MeetingShare(const Problem& problem, const Weight& weight, std::span<const float> input);

// Of layers whose input was seen, of the extents that the network has, on the rows that were kept; none of tokens.
// `gpu` is null where nothing is to be timed.
StatusOr<SparseInputs> SeeSparseInputs(const Network& network, const SeenValues& seen, Backend* gpu);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_SPARSE_INPUTS_H_
