// Prunes the layers of a model by one method and keeps a record of what that did. One shot, without training.
#ifndef SWIZZLE_MODEL_LOADER_PRUNING_PRUNER_H_
#define SWIZZLE_MODEL_LOADER_PRUNING_PRUNER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model_loader/network/network.h"
#include "model_loader/pruning/least_squares.h"
#include "model_loader/pruning/score_file.h"
#include "model_loader/pruning/vectors.h"

namespace swizzle {

enum class PruneMethod : uint8_t {
  kMagnitude,   // magnitude.h
  kNOfM,        // at most n of m neighbouring input channels (vectors.h)
  kVectorWise,  // vectors of neighbouring rows
  kShflBw,      // the same in the order of rows that the search finds
  kBlock,
};

// All of them, in order, with how people name them and what they choose.
struct PruneMethodRow {
  PruneMethod method;
  std::string_view name;  // "shfl-bw"
  std::string_view chooses;
};
std::span<const PruneMethodRow> PruneMethods();

std::string_view PruneMethodName(PruneMethod method);
std::optional<PruneMethod> PruneMethodFromName(std::string_view name);

// At most n of m.
struct GroupLimit {
  static constexpr int64_t kMostM = 256;

  int64_t n = 2;
  int64_t m = 4;
};
// "2:4", where 1 <= n < m <= kMostM; else none.
std::optional<GroupLimit> GroupLimitFromText(std::string_view text);

struct PruneOptions {
  PruneMethod method = PruneMethod::kMagnitude;
  int64_t vector_rows = 64;            // of vectors; of blocks rows and columns
  GroupLimit limit = {};               // of kNOfM
  double sparsity = 0.0;               // of each layer, 0 to 1; by kNOfM at least what the limit says
  std::vector<std::string> skip = {};  // patterns of names, with * ? and [ ] as in a shell; * also matches a slash
  std::optional<ScoreFile> scores = std::nullopt;  // in place of magnitudes
  // For who measures: a layer whose weight has the shape of an earlier one's gets its zeros where that one has them, so
  // that both are one problem. Records are as without.
  bool alike_zeros = false;
  // Called before each layer that is pruned; an error is the pruner's status.
  std::function<Status(const std::string& layer)> progress = nullptr;
};

// A layer's weight, as somebody holds it.
struct LayerWeight {
  std::span<const std::string> names;  // of nodes, then its own; the first names the record
  Shape shape;
  bool outputs_last = false;  // rows of the matrix are the last dimension's, else the first's
  int64_t taps = 1;           // of a window: what is the faster along a row
  // Scores are of the matrix [outputs, inputs], as checkpoints hold it, whatever the shape; else of the weight's shape.
  bool scores_by_outputs = false;
};

// What pruning did to one layer.
struct PruneRecord {
  std::string name;
  Shape shape;  // of its weight
  int64_t elements = 0;
  int64_t zeros_before = 0;
  int64_t zeros_after = 0;
  bool skipped = false;
  // Share of the magnitudes that is left, and, except by magnitude alone, what other methods would have left: by
  // magnitude the most that any could, the others by the same scores.
  double kept = 1.0;
  double removed_squares = 0.0;  // share of the weights' squares that is gone: of their squared Frobenius norm
  double kept_by_magnitude = 1.0, kept_by_vectors = 1.0, kept_by_blocks = 1.0;
  std::optional<OutputErrors> errors = std::nullopt;  // with calibration
};

// What a layer read when the model ran on calibration data.
struct Calibration {
  const InputMoments& moments;
  ParallelFor parallel;
};

// Prunes layers one after another and keeps a record of each. Not thread-safe.
class Pruner {
 public:
  // REQUIRES: 0 <= options.sparsity <= 1.
  explicit Pruner(PruneOptions options);

  // Prunes a layer's weights, unless a pattern to skip matches one of its names, or something was wrong before.
  // With calibration what stays is compensated for what goes (least_squares.h), and saliencies are the scores where no
  // others are. REQUIRES: moments of as many inputs as an output has weights.
  void Prune(const LayerWeight& layer, std::span<float> weights, const Calibration* calibration = nullptr);

  // Whether a pattern to skip matches.
  bool Skips(std::span<const std::string> names);

  // Takes the record of a layer with these names that was pruned before, instead of pruning it.
  void Add(std::span<const std::string> names, PruneRecord record) {
    if (options_.scores) options_.scores->Skip(names);
    records_.push_back(std::move(record));
  }

  const std::vector<PruneRecord>& records() const { return records_; }
  NpyArrays scores() const { return options_.scores ? options_.scores->arrays() : NpyArrays(); }
  const Status& status() const { return status_; }  // the first thing that was wrong with scores, or ended the work

  // INVALID_ARGUMENT if there was no layer to prune; if a pattern to skip matched none: most likely it is misspelt, and
  // what it was to save is pruned; or if scores were missing, wrong, or of no weight.
  Status CheckResult() const;

 private:
  void PruneBy(PruneMethod method, const WeightView& weights) const;
  void PruneMatrix(const WeightView& weights, PruneRecord& record) const;
  void PruneMatrix(WeightView weights, const Calibration* calibration, PruneRecord& record) const;
  // Zeros of `weights`, which were `before`, where those of the first weight of this shape are.
  void TakeAlikeZeros(const LayerWeight& layer, std::span<const float> before, std::span<float> weights);

  PruneOptions options_;
  double sparsity_;  // with what the method itself asks for
  Status status_;
  std::vector<bool> skip_matched_;  // by pattern
  std::vector<PruneRecord> records_;
  std::map<std::string, std::vector<bool>> zeros_by_shape_;
};

// Prunes the convolutions (linear layers among them) of a network, and gives their weights the format that suits them
// then. Depthwise convolutions are never pruned. What was counted of values' zeros is forgotten: other weights make
// others. REQUIRES: a validated network.
void PruneNetwork(Network& network, Pruner& pruner);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PRUNING_PRUNER_H_
