// How far the outputs of two models are apart, and how often each is right. Value types.
#ifndef SWIZZLE_MODEL_LOADER_PACK_COMPARISON_H_
#define SWIZZLE_MODEL_LOADER_PACK_COMPARISON_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/status.h"

namespace swizzle::pack {

// Of one output, over all samples.
struct Difference {
  std::string output;
  double largest_difference = 0.0;
  double largest_magnitude = 0.0;  // of the reference

  // What is no number, or infinite in one of them alone, differs without bound. REQUIRES: as many elements of each.
  void See(std::span<const double> reference, std::span<const double> candidate);
  double relative() const;
};

// How many rows each model puts into the class that they are labelled with.
struct Top1 {
  int64_t rows = 0, reference = 0, candidate = 0;

  double points(int64_t right) const { return 100.0 * static_cast<double>(right) / static_cast<double>(rows); }
  double lost() const { return points(reference) - points(candidate); }
};

struct Comparison {
  int64_t samples = 0;                  // that both ran: rows, or batches that were drawn
  std::vector<Difference> differences;  // by output of the reference
  std::optional<Top1> top1;             // where there are labels
};

// The classes of `rows` rows, each below `classes`, from an .npy file. Errors name the file.
StatusOr<std::vector<int64_t>> ReadLabels(const std::filesystem::path& file, int64_t rows, int64_t classes);

// How many rows of `scores` are greatest where their label says. REQUIRES: there are labels, one for each row.
int64_t CountRight(std::span<const double> scores, std::span<const int64_t> labels);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_COMPARISON_H_
