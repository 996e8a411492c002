// Times of kernels that were measured before, in a file, so that a model is planned again without measuring.
//
// The file begins with {"swizzle_tuning_cache":1} and holds one JSON object a line after it, e.g. (in one line)
//
//   {"device":"AMD EPYC, AuthenticAMD family 25 model 17","features":"avx512 avx2, of avx avx2 fma f16c avx512f ...",
//    "kernel":"conv_csr_f32_avx512","kernel_table":1,"microseconds":12.5,"pattern":"5f1d0e6ac1b2a093",
//    "problem":"conv 1x512x14x14 -> ... threads 2"}
//
// or, in place of kernel, pattern and problem, "plan", a hash of its kernels, problems and patterns: with "rows" and
// "micro_batch" of a batch in parts or runs (micro_batch.h), with "step" and "threads" of one of its steps in a small
// batch (serial_steps.h), or "product", of which "algorithm" says which was fastest (kernels/backend/
// algorithm_choices.h). A record holds where everything but the time is equal. One that was disturbed
// when it was measured has "suspect", which says by what (machine_watch.h): nothing is chosen by it, and whoever
// measures measures it again. The pattern is a hash of the places of a weight's nonzeros: two layers of one shape and
// sparsity may still take different times. Machines may share a file: records of others are kept. Files are replaced
// whole, so that a reader never sees half of one.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_TUNING_CACHE_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_TUNING_CACHE_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "kernels/backend/algorithm_choices.h"
#include "kernels/backend/backend.h"
#include "kernels/base/mutex.h"

namespace swizzle {

// All of a problem that its time may depend on, as a row solves it; how operands are stored is the row's.
std::string ProblemText(const Problem& problem);

// A hash of the places of a weight's nonzeros. A dense weight has a nonzero everywhere: dense kernels do not look.
// Stable across machines and builds.
uint64_t PatternHash(const Weight& weight);

// A hash of what a plan runs, begun with 0 and extended by each step. pattern: of its weight, 0 for kernels without
// any. Stable likewise.
uint64_t ExtendPlanHash(uint64_t hash, const Kernel& kernel, const Problem& problem, uint64_t pattern);
// Likewise by what else a plan's times depend on: the size of a batch, say.
uint64_t ExtendPlanHash(uint64_t hash, int64_t number);

// Thread-safe.
class TuningCache {
 public:
  // Records that a file may hold; what comes later is dropped.
  static constexpr size_t kMaxRecords = 50'000;

  // Reads `file`; one that is not there yet is empty. A file that is of no use (see status) leaves the cache empty and
  // is never written. Without a name, times are kept in memory alone. `backend` is whose kernels are timed; it is not
  // kept.
  TuningCache(std::filesystem::path file, const Backend& backend);

  // Why the file is not used: it cannot be read, is no tuning cache, or is too large. OK if it is used.
  const Status& status() const { return status_; }

  bool empty() const;  // then there is nothing to find, and no need for patterns

  // Microseconds of one run. pattern: 0 for kernels without weights. A suspect time is not found, except by itself.
  std::optional<double> Find(const Kernel& kernel, const Problem& problem, uint64_t pattern) const;
  bool IsSuspect(const Kernel& kernel, const Problem& problem, uint64_t pattern) const;
  // suspect: what disturbed the measurement; such a time does not replace one that is none.
  void Add(const Kernel& kernel, const Problem& problem, uint64_t pattern, double microseconds,
           const std::string& suspect = {});

  // Likewise of a batch of `rows` in parts or runs of a plan, each of `micro_batch` rows (micro_batch.h).
  std::optional<double> FindRuns(uint64_t plan_hash, int64_t rows, int64_t micro_batch) const;
  void AddRuns(uint64_t plan_hash, int64_t rows, int64_t micro_batch, double microseconds);

  // Likewise of a step of a plan in a small batch.
  enum class Steps { kParallel, kSerial, kChosen };  // on all threads, on one, each on what was chosen for it
  static constexpr int kAllSteps = -1;
  std::optional<double> FindStep(uint64_t plan_hash, int step, Steps steps) const;
  void AddStep(uint64_t plan_hash, int step, Steps steps, double microseconds);

  // Tells a backend which algorithms this device's kernels chose before; what it has chosen itself stays.
  void GiveChoices(AlgorithmChoices& choices) const;
  // Adds what a backend has chosen; what was known before stays.
  void TakeChoices(const AlgorithmChoices& choices);

  // Writes what was added, if anything was, beside what others have written since. RESOURCE_EXHAUSTED if records had to
  // be dropped; an error of the file system leaves the old file.
  Status Save();

 private:
  struct Record {
    double microseconds = 0.0;
    std::string suspect = {};  // why; empty: it isn't
    int algorithm = -1;        // of a product
  };
  using Records = std::map<std::string, Record>;  // by the rest of the record, as JSON

  static Status Read(const std::filesystem::path& file, Records& records);
  static bool ParseRecord(const std::string& line, std::string& key, Record& record);
  static std::string RecordLine(const std::string& key, const Record& record);
  // Unless `records` has one that is to be trusted, and this is not.
  static void Put(const std::string& key, const Record& record, Records& records);
  std::string KeyOf(const Kernel& kernel, const Problem& problem, uint64_t pattern) const;
  std::string KeyOfRuns(uint64_t plan_hash, int64_t rows, int64_t micro_batch) const;
  std::string KeyOfStep(uint64_t plan_hash, int step, Steps steps) const;
  std::string KeyOfProduct(const std::string& product) const;
  std::optional<double> FindKey(const std::string& key) const;
  void AddKey(const std::string& key, const Record& record);

  const std::filesystem::path file_;
  const std::string device_;
  const std::string features_;
  Status status_;
  mutable Mutex mutex_;
  Records records_ ABSL_GUARDED_BY(mutex_);
  Records added_ ABSL_GUARDED_BY(mutex_);  // since the last Save
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_TUNING_CACHE_H_
