// A model made runnable on one device, of one kind whatever its graph is like: a program of parts, which may be one
// plan of the whole. The server, the tool and benchmarks run models as this.
#ifndef SWIZZLE_MODEL_LOADER_COMPILED_COMPILED_MODEL_H_
#define SWIZZLE_MODEL_LOADER_COMPILED_COMPILED_MODEL_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/backend/backend.h"
#include "model_loader/compiled/model_interface.h"
#include "model_loader/plan/run/model_runner.h"
#include "model_loader/plan/run/plan.h"
#include "model_loader/regions/plan_regions.h"

namespace swizzle {

// How one executor runs a model.
struct ModelRunOptions {
  int threads = 0;                                    // of the host's, for a model in regions; a plan has its own
  interpreter::Limits limits = {};                    // of runs in regions
  std::optional<int> pinned_executor = std::nullopt;  // as RunnerOptions has it; of plans of the whole
  StepGate* gate = nullptr;  // asked between steps on the host, outlives the runner; null: never
};

// Immutable, but that tuners replace plans of regions. Thread-safe, cheap to copy.
class CompiledModel {
 public:
  template <std::derived_from<Plan> P>
  // NOLINTNEXTLINE(google-explicit-constructor): a plan of the whole is a model
  CompiledModel(std::shared_ptr<P> plan) : plan_(std::move(plan)) {}
  template <std::derived_from<Plan> P>
  // NOLINTNEXTLINE(google-explicit-constructor): likewise
  CompiledModel(std::shared_ptr<const P> plan) : plan_(std::move(plan)) {}
  // `host`, the CPU's, outlives this. `reason`: why no plan takes the whole.
  CompiledModel(regions::RegionalProgram regional, std::string reason, Backend& host)
      : regional_(std::make_shared<const regions::RegionalProgram>(std::move(regional))),
        reason_(std::move(reason)),
        host_(&host) {}

  // One of the two is null.
  const std::shared_ptr<const Plan>& plan() const { return plan_; }
  const regions::RegionalProgram* regional() const { return regional_.get(); }
  const std::string& reason() const { return reason_; }

  ModelInterface interface() const;
  // The plans that run now: one of the whole, or each region's.
  std::vector<std::shared_ptr<const Plan>> plans() const;
  // "cuda:0"; "cpu" where the host computes.
  std::string_view device() const;
  bool on_device() const { return device() != "cpu"; }
  std::string device_name() const;
  // An error: no request can be computed, and whose fault that is.
  Status refusal() const { return regional_ == nullptr ? absl::OkStatus() : regional_->refusal; }

  // The model, or a copy of it, outlives its runners.
  StatusOr<std::unique_ptr<ModelRunner>> NewRunner(const ModelRunOptions& options) const;
  // Host memory from which a device reads inputs by itself (TensorPieces::is_pinned); null where none does.
  StatusOr<std::unique_ptr<Buffer>> AllocateSource(size_t bytes) const;
  // Inputs of fewer bytes are not worth a copy of their own from there.
  size_t least_copied() const;

 private:
  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<const regions::RegionalProgram> regional_;
  std::string reason_;
  Backend* host_ = nullptr;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_COMPILED_COMPILED_MODEL_H_
