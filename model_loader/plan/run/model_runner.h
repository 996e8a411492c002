// What one executor runs a model with, however that is computed: by a plan of the whole (plan_runner.h), or as a
// program whose parts are planned (model_loader/interpreter, model_loader/offload).
#ifndef SWIZZLE_MODEL_LOADER_PLAN_RUN_MODEL_RUNNER_H_
#define SWIZZLE_MODEL_LOADER_PLAN_RUN_MODEL_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/status.h"
#include "kernels/base/tensor.h"
#include "model_loader/plan/run/plan.h"

namespace swizzle {

// A tensor whose elements lie in pieces, one after the other. Refers to them.
struct TensorPieces {
  DType dtype = DType::kFloat32;
  Shape shape;  // batch dimension included
  std::vector<std::span<const std::byte>> pieces;
  // All lie in memory that DeviceBackend::AllocateHost or Plan::AllocateSource gave, and stay as they are until the run
  // has returned.
  bool is_pinned = false;

  size_t bytes() const;
};

// Outputs of a batch, in the model's order: of its rows [first, first + rows).
struct PartOutputs {
  std::vector<TensorView> views;  // none where rows is 0: a later part brings them
  int64_t first = 0, rows = 0;
};

// Single-owner. What it returns views of is valid until its next run.
class ModelRunner {
 public:
  virtual ~ModelRunner() = default;

  // The outputs of the inputs, each in the model's order. INVALID_ARGUMENT, naming the input, if one is not as the
  // model declares it.
  StatusOr<std::vector<TensorView>> RunPieces(std::span<const TensorPieces> inputs);
  // Runs on inputs that are in one piece each.
  StatusOr<std::vector<TensorView>> RunViews(std::span<const TensorView> inputs);
  // Runs one of the parts that follow each other until a batch is computed; the inputs are of its rows. The last part
  // may compute something for all of them at once, and then has the outputs of all.
  virtual StatusOr<PartOutputs> RunPart(std::span<const TensorPieces> inputs, const BatchPart& part) = 0;

  // How many of the host's threads compute a batch of so many rows.
  virtual int threads(int64_t rows) const = 0;
  // More rows are best computed in parts of nearly equal size, of at most so many; 0: nobody knows.
  virtual int64_t rows_at_once() const { return 0; }
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_RUN_MODEL_RUNNER_H_
