// A plan: a network made runnable on one backend. Kernels, prepared weights, layouts and arena offsets are fixed;
// immutable and thread-safe, shared by all executors. An executor brings an ExecutionState of its own.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_RUN_PLAN_H_
#define SWIZZLE_MODEL_LOADER_PLAN_RUN_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend/backend.h"
#include "model_loader/network/network.h"

namespace swizzle {

class Recordings;
class StagedSequences;

// Why a layer runs on the kernel it runs on.
struct LayerReport {
  struct Candidate {
    std::string kernel;
    // Microseconds of a run at PlanReport::measured_batches, same order. Where not measured, an estimate; a candidate
    // hopeless at the first batch size is extrapolated to the others.
    std::vector<double> microseconds;
    bool measured = false;           // now, or before (see choose/tuning_cache.h)
    Format weights = Format::kNone;  // that the kernel takes
  };
  std::string name;
  std::string op;
  Extent input, output;                                    // at batch 1
  int64_t weight_rows = 0, weight_cols = 0, nonzeros = 0;  // 0 for layers without weights that pruning is for
  std::string format;                                      // of the stored weight
  int64_t dense_bytes = 0, stored_bytes = 0, device_bytes = 0;
  std::string kernel;                 // chosen
  std::string blocking;               // of its weight (Kernel::blockings), where it isn't the usual one
  bool serial = false;                // runs on one thread where a batch is no larger than PlanReport::small_batch
  std::vector<Candidate> candidates;  // the chosen one among them
  double sparsity() const {
    const int64_t total = weight_rows * weight_cols;
    return total == 0 ? 0.0 : 1.0 - static_cast<double>(nonzeros) / static_cast<double>(total);
  }
};

struct PlanReport {
  std::string backend;  // "cpu", "cuda:0"
  std::string device;
  int threads = 0;
  std::vector<int64_t> measured_batches;  // rows, or tokens where there are sequences
  std::vector<LayerReport> layers;
  int conversions = 0;  // layout conversions between layers
  // Rows, or tokens where there are sequences, that whoever has a larger batch should give a part (Plan::RunPart) or a
  // run at most (see choose/micro_batch.h); one sequence may have more. On a GPU, and where nothing was measured, all
  // that a plan takes.
  int64_t micro_batch = 0;
  int64_t small_batch = 0;  // rows, or tokens, of a batch that some layers compute on one thread; 0: none do
  int timed_now = 0;        // measurements made for this plan
  int timed_before = 0;     // taken from the tuning cache
  int64_t dense_bytes = 0, stored_bytes = 0, device_bytes = 0;
};

// Single-owner: the stream, arena and workspace of one executor; where the device has memory of its own, also what
// stands on the host's side of it, and the runs that were recorded.
struct ExecutionState {
  ExecutionState();
  ~ExecutionState();
  ExecutionState(ExecutionState&&) noexcept;
  ExecutionState& operator=(ExecutionState&&) noexcept;

  std::unique_ptr<Stream> stream;
  std::unique_ptr<Buffer> arena;
  std::unique_ptr<Buffer> staging;
  std::unique_ptr<StagedSequences> sequences;
  std::unique_ptr<Recordings> recordings;  // destroyed before the stream
  std::unique_ptr<Buffer> held;            // what parts of a batch leave to its tail; null before the first
  bool inputs_copied = false;              // by CopyInput, for the next run
};

// Rows [first, first + rows) of a batch of so many.
struct BatchPart {
  int64_t first = 0;
  int64_t rows = 0;
  int64_t of = 0;
};

class Plan {
 public:
  virtual ~Plan() = default;
  virtual const Network& network() const = 0;  // its weights are gone: kernels hold their own layouts
  virtual const PlanReport& report() const = 0;
  virtual int64_t max_batch() const = 0;   // rows
  virtual int64_t max_tokens() const = 0;  // 0 where the network has no sequences
  // What the ids of input i have to be below; 0 for inputs that are not ids.
  virtual int64_t IdLimit(int i) const = 0;
  // What positions in a sequence have to be below; 0: anything goes.
  virtual int64_t PositionLimit() const = 0;
  virtual size_t arena_bytes() const = 0;  // at max_batch, workspace included

  virtual StatusOr<ExecutionState> NewState() const = 0;

  // Where the host puts input i and finds output i for a batch of this size, the arena or beside it: a matrix with a
  // line for each row, or, where the port's value is per token, for each token. Row-major; valid as long as the state.
  // REQUIRES: 1 <= rows <= max_batch; rows <= tokens <= max_tokens where there are sequences.
  virtual std::span<float> Input(ExecutionState& state, int i, BatchSize size) const = 0;
  virtual std::span<const float> Output(ExecutionState& state, int i, BatchSize size) const = 0;
  // Likewise an input of ids. REQUIRES: its port has a value.
  virtual std::span<int32_t> Ids(ExecutionState& state, int i, BatchSize size) const = 0;

  // Host memory that CopyInput takes; null where inputs go through Input alone.
  virtual StatusOr<std::unique_ptr<Buffer>> AllocateSource(size_t bytes) const = 0;
  // In place of Input, which the next Run then ignores for all inputs: queues a copy of `bytes`, in such memory and
  // unchanged until that Run has returned, to this offset in bytes of input i. REQUIRES: no sequences.
  virtual void CopyInput(ExecutionState& state, int i, BatchSize size, size_t offset,
                         std::span<const std::byte> bytes) const = 0;

  // Computes all outputs from the inputs. Inputs are undefined afterwards. `sequences`, of as many rows and tokens and
  // in the host's memory, are for networks that have them, else null.
  virtual Status Run(ExecutionState& state, BatchSize size, const Sequences* sequences = nullptr) const = 0;

  // Likewise one of the parts that follow each other until the batch is computed; its inputs are put where Input says
  // for a batch of part.rows. Where the plan has a tail (tail.h), the last part computes it for the whole batch, and
  // that is then where Output says for part.of rows; else each part leaves its outputs where Output says for part.rows.
  // REQUIRES: no sequences.
  virtual Status RunPart(ExecutionState& state, BatchPart part) const { return Run(state, part.rows); }
  virtual bool has_tail() const { return false; }
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_RUN_PLAN_H_
