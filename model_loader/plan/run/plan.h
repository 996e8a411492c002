// A plan: a network made runnable on one backend. Kernels, prepared weights, layouts and arena offsets are fixed:
// plans are complete when they are made, immutable and thread-safe, and shared by all executors, each of which runs the
// plan with a Runner of its own.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_RUN_PLAN_H_
#define SWIZZLE_MODEL_LOADER_PLAN_RUN_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "kernels/backend/backend.h"
#include "kernels/base/sequences.h"
#include "model_loader/network/network.h"
#include "model_loader/plan/run/plan_report.h"
#include "model_loader/plan/run/step_gate.h"

namespace swizzle {

// Rows [first, first + rows) of a batch of so many.
struct BatchPart {
  int64_t first = 0;
  int64_t rows = 0;
  int64_t of = 0;
};

// What one executor runs a plan with: a stream, an arena, and on a device what stands on the host's side of it.
// Single-owner. Spans are valid as long as the runner, which may outlive the plan, but not the backend.
// REQUIRES everywhere: 1 <= rows <= max_batch; rows <= tokens <= max_tokens where there are sequences.
class Runner {
 public:
  virtual ~Runner() = default;

  // Where the host puts input i and finds output i for a batch of this size: a matrix with a line for each row, or,
  // where the port's value is per token, for each token. Row-major.
  // REQUIRES: the port of an input read so, or of an output, is FP32.
  virtual std::span<float> Input(int i, BatchSize size) = 0;
  virtual std::span<const float> Output(int i, BatchSize size) = 0;
  // Likewise an input of ids, which is no other input. REQUIRES: its port has a value.
  virtual std::span<int32_t> Ids(int i, BatchSize size) = 0;
  // Likewise any input, as NetworkPort::storage says. REQUIRES: its port has a value.
  virtual std::span<std::byte> InputMemory(int i, BatchSize size) = 0;

  // Copies `bytes` to this offset in bytes of InputMemory(i, size), by all threads where that pays.
  virtual void WriteInput(int i, BatchSize size, size_t offset, std::span<const std::byte> bytes) = 0;
  // Likewise, from memory that Plan::AllocateSource gave, unchanged until the next Run has returned. That Run then
  // takes all inputs to be copied so. REQUIRES: no sequences.
  virtual void CopyInput(int i, BatchSize size, size_t offset, std::span<const std::byte> bytes) = 0;

  // Computes all outputs from the inputs. Inputs are undefined afterwards. `sequences`, of as many rows and tokens and
  // in the host's memory, are for networks that have them, else null.
  virtual Status Run(BatchSize size, const Sequences* sequences = nullptr) = 0;

  // Likewise one of the parts that follow each other until the batch is computed; its inputs are put where Input says
  // for a batch of part.rows. Where the plan has a tail (tail.h), the last part computes it for the whole batch, and
  // that is then where Output says for part.of rows; else each part leaves its outputs where Output says for part.rows.
  // REQUIRES: no sequences.
  virtual Status RunPart(BatchPart part) = 0;
};

struct RunnerOptions {
  // Which of the executors that share the process this is: its threads keep to processors of their own
  // (HostStream::PinThreads). None: to no processor. A device's runner has no threads.
  std::optional<int> pinned_executor = std::nullopt;
  StepGate* gate = nullptr;  // outlives the runner; null: it never waits. A device's runner doesn't ask
};

// What a batch is run in that has no runner: all is the caller's, and lies where the plan's backend computes. inputs[i]
// and outputs[i] are as Runner::InputMemory and Output say, of the type that the port has; an input stays as it was.
struct BorrowedMemory {
  std::span<std::byte> arena;  // of Plan::ArenaBytes(size), aligned to kBufferAlignment
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  StepGate* gate = nullptr;  // asked between steps; null: it never waits
  // The sequences of a network that has them, of as many rows and tokens, in the backend's memory; else null.
  const Sequences* sequences = nullptr;
};

class Plan {
 public:
  virtual ~Plan() = default;
  virtual const Network& network() const = 0;  // without weights, but for PlanOptions::keep_weights
  virtual const PlanReport& report() const = 0;
  virtual int64_t max_batch() const = 0;   // rows
  virtual int64_t max_tokens() const = 0;  // 0 where the network has no sequences
  // What the ids of input i have to be below; 0 for inputs that are not ids.
  virtual int64_t IdLimit(int i) const = 0;
  // What positions in a sequence have to be below; 0: anything goes.
  virtual int64_t PositionLimit() const = 0;
  virtual size_t arena_bytes() const = 0;  // at max_batch, workspace included
  // Whether the last of a batch's parts computes the last layers for all of them (Runner::RunPart).
  virtual bool has_tail() const = 0;

  // Computes a batch on a stream of the plan's backend, of as many threads as it was made for. On a device it only
  // queues the work. REQUIRES: on a device, within Run, Time or Record of the stream.
  virtual Status RunOn(Stream& stream, const BorrowedMemory& memory, BatchSize size) const = 0;
  // That batches up to this size take.
  virtual size_t ArenaBytes(BatchSize size) const = 0;

  virtual StatusOr<std::unique_ptr<Runner>> NewRunner(const RunnerOptions& options) const = 0;
  // Host memory that Runner::CopyInput takes; null where inputs go through Input alone.
  virtual StatusOr<std::unique_ptr<Buffer>> AllocateSource(size_t bytes) const = 0;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_RUN_PLAN_H_
