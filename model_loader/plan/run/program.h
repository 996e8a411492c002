// What a plan runs: kernel calls over slots of an arena. Immutable once it is put together (assemble.h), and shared by
// the plan and its runners.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_RUN_PROGRAM_H_
#define SWIZZLE_MODEL_LOADER_PLAN_RUN_PROGRAM_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/backend/backend.h"
#include "model_loader/network/network.h"

namespace swizzle {

// One kernel call. inputs and output are slots: buffers of the arena.
struct Step {
  const Kernel* kernel = nullptr;
  std::shared_ptr<const PackedWeight> weight;
  Problem problem;                             // at batch 1; ProblemAt sets the batch
  bool tokens_in = false, tokens_out = false;  // whether input and output are per token
  std::vector<int> inputs;
  int output = -1;
  int layer = -1;  // that it computes; none for conversions

  Problem ProblemAt(BatchSize size) const {
    Problem sized = problem;
    sized.input.batch = tokens_in ? size.tokens : size.rows;
    sized.output.batch = tokens_out ? size.tokens : size.rows;
    return sized;
  }

  // How input i is stored, a residual behind the others among them.
  Storage InputStorage(size_t i) const {
    return i < static_cast<size_t>(InputCount(problem)) ? problem.from : problem.to;
  }
};

// One value, stored in one way. A reshape makes no slot of its own: its output shares its input's.
struct Slot {
  int value_index = -1;
  NetworkValue value;
  Storage storage = {};
  int first_step = 0;  // that writes it
  int last_step = 0;   // that reads it
};

// The last, small steps that may wait until all parts of a batch are there (tail.h).
struct Tail {
  int first_step = 0;
  int slot = 0;          // all that the tail reads of what steps before it wrote; rows one after the other
  size_t row_bytes = 0;  // of it
};

// The steps for one range of batch sizes.
struct StepList {
  std::vector<Step> steps;
  std::vector<Slot> slots;
  std::vector<int> inputs, outputs;  // slots of the network's ports; -1: none
  std::optional<Tail> tail;          // of the same value in all lists of a program, or in none
};

// Where a slot lies: in itself, or in one that lies in itself, among its channels (nested_slots.h).
struct SlotPlace {
  int within = -1;
  size_t offset = 0;     // bytes in that one, a multiple of kBufferAlignment; in kNhwc of kPitchAlignment
  int64_t row = 0;       // in kRows and kBatched the rows before it, too, which are as long as the batch makes them
  int64_t channels = 0;  // of that one
};

// The arena for batches up to this size. Small batches use a compact prefix of the same memory.
struct ArenaBucket {
  BatchSize size;
  int list = 0;                   // of the program's
  std::vector<size_t> offsets;    // bytes, per slot of the list
  std::vector<SlotPlace> places;  // per slot; their offsets are in `offsets`. Empty: all lie in themselves
  size_t workspace_offset = 0;
  size_t workspace_bytes = 0;
  size_t bytes() const { return workspace_offset + workspace_bytes; }
};

struct ProgramParts {
  Network network;  // without its weights
  int threads = 1;  // of the streams that it runs on
  std::vector<StepList> lists;
  std::vector<ArenaBucket> buckets;  // by rising size, the last for the largest batch
  std::vector<int64_t> id_limits;    // by input
  int64_t position_limit = 0;
};

class Program {
 public:
  explicit Program(ProgramParts parts) : parts_(std::move(parts)) {}
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const Network& network() const { return parts_.network; }
  int threads() const { return parts_.threads; }
  BatchSize max_size() const { return parts_.buckets.back().size; }
  size_t arena_bytes() const;
  // The part of it that batches up to this size take. Smaller ones may take more: their kernels may be others.
  size_t ArenaBytes(BatchSize size) const;
  int64_t held_bytes() const;  // of the host's memory, without weights; about
  // The layer that each step of a list computes; -1: none.
  std::vector<int> LayersOf(int list) const;
  bool has_tail() const { return parts_.lists.front().tail.has_value(); }
  int64_t IdLimit(int i) const { return parts_.id_limits[i]; }
  int64_t position_limit() const { return parts_.position_limit; }

  const ArenaBucket& BucketFor(BatchSize size) const;
  const StepList& ListOf(const ArenaBucket& bucket) const { return parts_.lists[bucket.list]; }
  std::span<const StepList> lists() const { return parts_.lists; }

  // In an arena of arena_bytes() that begins here.
  std::span<std::byte> Input(std::byte* arena, int i, BatchSize size) const;
  std::span<std::byte> Output(std::byte* arena, int i, BatchSize size) const;

  // An input's memory, or an output's, as the elements that it holds. REQUIRES: T is their type.
  template <typename T>
  std::span<T> Elements(const NetworkPort& port, std::span<std::byte> memory) const {
    const DType dtype = port.storage().dtype;
    return {MutableOperand{memory.data(), dtype}.As<T>(), memory.size() / sizeof(T)};
  }
  template <typename T>
  std::span<T> InputElements(int i, std::span<std::byte> memory) const {
    return Elements<T>(network().inputs[i], memory);
  }
  std::span<float> OutputElements(int i, std::span<std::byte> memory) const {
    return Elements<float>(network().outputs[i], memory);
  }

 private:
  size_t PortBytes(const NetworkPort& port, BatchSize size) const;

  const ProgramParts parts_;
};

// What a step is run on.
struct StepOperands {
  std::byte* arena = nullptr;
  BatchSize size;
  const Sequences* sequences = nullptr;
  std::span<std::byte* const> elsewhere = {};  // by slot: where it lies outside of the arena, or null; empty: none does
};

// Of a slot that lies in itself, or that no batch size moves.
std::byte* SlotData(const ArenaBucket& bucket, std::byte* arena, int slot);

// Queues a step of `list`, the bucket's. REQUIRES: within Run, Time or Record of the stream where that is a device's.
void RunStep(const StepList& list, size_t step, const ArenaBucket& bucket, const StepOperands& operands,
             Stream& stream);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_RUN_PROGRAM_H_
