// What stands around Winograd's transforms: weights in the transformed domain, and how a layer is cut into groups of
// tiles. Compiled once; see conv_winograd.h.
#ifndef SWIZZLE_KERNELS_CPU_CONV_WINOGRAD_TILES_H_
#define SWIZZLE_KERNELS_CPU_CONV_WINOGRAD_TILES_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

inline constexpr int64_t kTileOutputs = 4, kTileInputs = 6;  // in each direction
inline constexpr int64_t kTileNumbers = kTileInputs * kTileInputs;
// What the transforms evaluate polynomials at, beside 0, both negatives and infinity. 1 and 2, which are usual, would
// make the largest error four times as large.
inline constexpr float kNearPoint = 0.625f, kFarPoint = 1.5f;
// Outputs whose products are made together; the last group of a layer may have half of them.
inline constexpr int64_t kOutputGroup = 32;

// [output group][number][input channel][output of the group], then the bias. Immutable.
class WinogradWeight final : public PackedWeight {
 public:
  // RESOURCE_EXHAUSTED without memory.
  static StatusOr<std::unique_ptr<PackedWeight>> Make(const DenseMatrix& matrix, const std::vector<float>& bias);

  int64_t GroupWidth(int64_t group) const;
  // Of the group's first number.
  const float* weights(int64_t group) const { return values_.get() + group * kTileNumbers * inputs_ * kOutputGroup; }
  // kOutputGroup of them, zero beyond the outputs.
  const float* bias(int64_t group) const { return bias_.data() + group * kOutputGroup; }
  size_t bytes() const override;

 private:
  struct FreeAligned {
    void operator()(float* data) const { std::free(data); }
  };

  WinogradWeight(int64_t inputs, int64_t outputs) : inputs_(inputs), outputs_(outputs) {}
  void Fill(const DenseMatrix& matrix);

  const int64_t inputs_, outputs_;
  std::unique_ptr<float, FreeAligned> values_;
  std::vector<float> bias_;
};

// Bytes of WinogradWeight::weights.
int64_t WinogradWeightBytes(int64_t inputs, int64_t outputs);

// How a layer is cut. Counts are of tiles, or of floats.
struct WinogradTiles {
  explicit WinogradTiles(const Problem& problem);

  int64_t columns, tiles;         // of an image
  int64_t groups;                 // of tiles, of an image
  int64_t group_tiles;            // at most
  int64_t in_channels;            // with those that fill the last block
  int64_t output_groups, parts;   // of outputs; the latter: of them, for threads that would have no tiles
  int64_t in_stride, out_stride;  // from one number to the next, of inputs [tile][channel], of sums [tile][output]
  int64_t slot_floats;            // of a thread

  int64_t FirstTile(int64_t group) const { return tiles * group / groups; }
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_WINOGRAD_TILES_H_
