// Importance of weights, from a file that somebody else made: what is pruned by it goes by these scores instead of by
// magnitudes. The higher a score, the longer its weight stays; scores may be negative.
//
// Single-owner.
#ifndef SWIZZLE_MODEL_LOADER_PRUNING_SCORE_FILE_H_
#define SWIZZLE_MODEL_LOADER_PRUNING_SCORE_FILE_H_

#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/tensor.h"
#include "model_loader/files/npz.h"

namespace swizzle {

class ScoreFile {
 public:
  explicit ScoreFile(NpyArrays arrays) : arrays_(std::move(arrays)) {}
  // An .npz file, which has an array for each weight, named as its node or as itself; or a folder of .npy files, named
  // likewise, with _ in place of what a file's name can't hold (/).
  static StatusOr<ScoreFile> Read(const std::filesystem::path& file);

  // The scores of the weight with these names, FP32 or FP64 in the file. All are finite: what is infinite, or is so in
  // FP32, is 2^20 times the largest other, as far as FP32 goes. INVALID_ARGUMENT, naming the weight, if there are none,
  // they have another shape, or one is not a number.
  StatusOr<std::vector<float>> Of(std::span<const std::string> names, const Shape& shape);

  const NpyArrays& arrays() const { return arrays_; }

  // Scores of a weight that is not pruned, or was before, may stand in the file.
  void Skip(std::span<const std::string> names) { Find(names); }

  // INVALID_ARGUMENT naming an array that was not asked for: most likely its name is misspelt.
  Status CheckAllUsed() const;

 private:
  // The array of the first of the names that has one; null for none. Used then.
  const NpyArray* Find(std::span<const std::string> names);

  NpyArrays arrays_;
  std::set<std::string> used_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PRUNING_SCORE_FILE_H_
