// What a plan runs: kernel calls over slots of an arena.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_RUN_STEP_H_
#define SWIZZLE_MODEL_LOADER_PLAN_RUN_STEP_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "kernels/backend/kernel_table.h"
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
  int layer = -1;       // that it computes; none for conversions
  bool serial = false;  // where a batch is small (serial_steps.h)

  Problem ProblemAt(BatchSize size) const {
    Problem sized = problem;
    sized.input.batch = tokens_in ? size.tokens : size.rows;
    sized.output.batch = tokens_out ? size.tokens : size.rows;
    return sized;
  }
};

// One value in one layout. A reshape makes no slot of its own: its output shares its input's.
struct Slot {
  NetworkValue value;
  Layout layout = Layout::kNchw;
  int first_step = 0;  // that writes it
  int last_step = 0;   // that reads it
};

// The arena for batches up to this size. Small batches use a compact prefix of the same memory.
struct Bucket {
  BatchSize size;
  std::vector<size_t> offsets;  // bytes, per slot
  size_t workspace_offset = 0;
  size_t workspace_bytes = 0;
  size_t bytes() const { return workspace_offset + workspace_bytes; }
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_RUN_STEP_H_
