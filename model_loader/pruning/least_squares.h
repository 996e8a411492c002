// One-shot compensation: once weights of a layer are pruned, the others are changed so that its outputs on calibration
// data are as near as they can be to what they were. Layer by layer that is a problem of least squares, for the Hessian
// of the squared error is X X^T, with a column of X for each input vector (Hassibi and Stork, "Optimal Brain Surgeon",
// 1993; for whole layers Frantar and Alistarh, "Optimal Brain Compression", 2022).
//
// Where it is affordable, every row is solved exactly, rows that keep the same columns with one factorisation. Beyond
// that columns are swept once as SparseGPT does (Frantar and Alistarh, 2023, section 3.3): what pruning a column costs,
// the columns behind it make good, for all rows by one inverse. Both add damping, a hundredth of the mean diagonal.
//
// Pure; deterministic whatever the number of threads.
#ifndef SWIZZLE_MODEL_LOADER_PRUNING_LEAST_SQUARES_H_
#define SWIZZLE_MODEL_LOADER_PRUNING_LEAST_SQUARES_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model_loader/pruning/vectors.h"

namespace swizzle {

// X X^T of what a layer read, [inputs, inputs], row-major and symmetric.
struct InputMoments {
  int64_t inputs = 0;
  std::vector<double> sums;

  // What another layer with the same weight read. REQUIRES: as many inputs.
  void Add(const InputMoments& other);
};

// Runs body(0) to body(count - 1), perhaps at once.
using ParallelFor = std::function<void(int64_t count, const std::function<void(int64_t)>& body)>;

// How much the error grows at least if a weight goes and the others make it good: w^2 over the diagonal of the inverse
// Hessian, OBS's saliency. REQUIRES: moments of weights.cols inputs.
std::vector<float> Saliencies(const WeightView& weights, const InputMoments& moments);

enum class Compensation : uint8_t { kExact, kSweep };

// What Compensate takes for a pruned matrix.
Compensation CompensationFor(const WeightView& pruned);

// The squared error of a layer's outputs over the outputs' squares; 0 where these are 0.
struct OutputErrors {
  double pruned = 0;
  double compensated = 0;
};

// Changes what is not zero in `pruned`, which was `original` before some of it was zeroed. Where that would not lessen
// the error (inputs that were all zero, numbers that are not), the weights stay as they are.
OutputErrors Compensate(const WeightView& pruned, std::span<const float> original, const InputMoments& moments,
                        const ParallelFor& parallel);

// The sweep alone, for what is not zero in `pruned`; nothing where the moments are no numbers.
void SweepColumns(const WeightView& pruned, std::span<const float> original, const InputMoments& moments,
                  const ParallelFor& parallel);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PRUNING_LEAST_SQUARES_H_
