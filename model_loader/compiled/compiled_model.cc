#include "model_loader/compiled/compiled_model.h"

#include "model_loader/offload/runner.h"
#include "model_loader/plan/run/plan_runner.h"

namespace swizzle {

ModelInterface CompiledModel::interface() const {
  return plan_ != nullptr ? InterfaceOf(*plan_) : InterfaceOf(*regional_->program);
}

std::vector<std::shared_ptr<const Plan>> CompiledModel::plans() const {
  if (plan_ != nullptr) return {plan_};
  std::vector<std::shared_ptr<const Plan>> plans;
  for (const auto& region : regional_->regions) plans.push_back(region->plan());
  return plans;
}

std::string_view CompiledModel::device() const {
  if (plan_ != nullptr) return plan_->report().backend;
  return regional_->on_device == nullptr ? "cpu" : regional_->on_device->device().name();
}

std::string CompiledModel::device_name() const {
  if (plan_ != nullptr) return plan_->report().device;
  return regional_->on_device == nullptr ? host_->device_name() : regional_->on_device->device().device_name();
}

StatusOr<std::unique_ptr<ModelRunner>> CompiledModel::NewRunner(const ModelRunOptions& options) const {
  if (plan_ != nullptr) return PlanRunner::Make(plan_, {options.pinned_executor, options.gate});
  return regional_->NewRunner(*host_, options.threads, options.limits, options.gate);
}

StatusOr<std::unique_ptr<Buffer>> CompiledModel::AllocateSource(size_t bytes) const {
  if (plan_ != nullptr) return plan_->network().sequences ? nullptr : plan_->AllocateSource(bytes);
  if (regional_->on_device == nullptr) return nullptr;
  return regional_->on_device->device().AllocateHost(bytes);
}

size_t CompiledModel::least_copied() const { return plan_ != nullptr ? 0 : offload::kLeastCopied; }

}  // namespace swizzle
