// A region's plan as a part of a program: batches of any number of rows, in parts that the plan takes.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_PLANNED_REGION_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_PLANNED_REGION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "model_loader/interpreter/run/executor.h"
#include "model_loader/plan/run/plan.h"
#include "model_loader/regions/region.h"
#include "model_loader/regions/row_counts.h"
#include "model_loader/regions/shape_plans.h"

namespace swizzle::regions {

// Thread-safe.
class PlannedRegion final : public interpreter::Part {
 public:
  // `place`: where the plan computes. `others`, for rows of other shapes, may be those of several regions alike, or
  // null: then inputs of such are not taken.
  PlannedRegion(Form form, interpreter::Place place, std::shared_ptr<const Plan> plan,
                std::unique_ptr<ShapePlans> others)
      : form_(form), place_(place), others_(std::move(others)), plan_(std::move(plan)) {}

  // Of the rows that the region was found with.
  std::shared_ptr<const Plan> plan() const {
    MutexLock lock(mutex_);
    return plan_;
  }
  // Runs another plan of the same network from now on, which leaves this; null only where rows of other shapes are not
  // taken.
  void Replace(std::shared_ptr<const Plan> plan, std::shared_ptr<const Blueprint> blueprint) {
    if (others_ != nullptr) others_->Follow(std::move(blueprint));
    {
      MutexLock lock(mutex_);
      plan_ = std::move(plan);
    }
    ++version_;
  }

  // Takes what the network's ports are of, whose rows can be planned, and as many for each input, or so many that they
  // broadcast. Errors say that they don't.
  StatusOr<std::optional<interpreter::Results>> Run(std::span<const interpreter::Array> inputs,
                                                    interpreter::Memory& memory, Stream& stream,
                                                    StepGate* gate) const override;
  StatusOr<std::optional<interpreter::Results>> RunOnDevice(std::span<const interpreter::Array> inputs,
                                                            interpreter::Device& device) const override;
  uint64_t version() const override { return version_; }

 private:
  struct Execution {
    interpreter::Memory& memory;  // where the plan computes
    Stream& stream;
    StepGate* gate;
    interpreter::Device* device;  // null: the host
  };
  StatusOr<std::optional<interpreter::Results>> RunIn(std::span<const interpreter::Array> inputs, Execution in) const;
  StatusOr<interpreter::Results> RunRows(const Plan& plan, std::span<const interpreter::Array> inputs,
                                         std::span<const int64_t> leading, int64_t rows, const Execution& in) const;
  // The same of inputs of which some have to be repeated, or have no rows.
  StatusOr<interpreter::Results> RunRepeated(const Plan& plan, std::span<const interpreter::Array> inputs,
                                             const RowCounts& counts, const Execution& in) const;
  // RunIn's part for sequences (planned_sequences.cc).
  StatusOr<std::optional<interpreter::Results>> RunSequences(std::span<const interpreter::Array> inputs,
                                                             const Execution& in) const;
  // How many dimensions count rows, of each input as many; nothing where the inputs are no region's.
  std::optional<size_t> LeadingOf(const Network& network, std::span<const interpreter::Array> inputs) const;
  // For so many rows of such; null where they cannot be planned.
  std::shared_ptr<const Plan> PlanFor(std::span<const interpreter::Array> inputs, size_t leading, int64_t rows) const;
  // For how many rows a plan of other shapes is made, where a batch has so many.
  int64_t BatchOf(int64_t rows) const;

  const Form form_;
  const interpreter::Place place_;
  const std::unique_ptr<ShapePlans> others_;
  std::atomic<uint64_t> version_ = 0;
  mutable Mutex mutex_;
  std::shared_ptr<const Plan> plan_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_PLANNED_REGION_H_
