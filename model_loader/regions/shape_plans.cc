#include "model_loader/regions/shape_plans.h"

namespace swizzle::regions {
namespace {

// What an entry takes beside its plan, about.
constexpr int64_t kEntryBytes = 512;

int64_t BytesOf(const Plan* plan) {
  if (plan == nullptr) return kEntryBytes;
  const PlanReport& report = plan->report();
  return kEntryBytes + report.program_bytes + report.device_bytes - report.shared_bytes;
}

}  // namespace

uint64_t PlanStore::NewOwner() {
  MutexLock lock(mutex_);
  return ++owners_;
}

std::optional<std::shared_ptr<const Plan>> PlanStore::Find(uint64_t owner, const RowShapes& rows, int64_t batch) {
  MutexLock lock(mutex_);
  const std::shared_ptr<const Plan>* const found = plans_.Find({owner, batch, rows});
  return found == nullptr ? std::nullopt : std::optional(*found);
}

void PlanStore::Keep(uint64_t owner, const RowShapes& rows, int64_t batch, std::shared_ptr<const Plan> plan) {
  const int64_t bytes = BytesOf(plan.get());
  MutexLock lock(mutex_);
  plans_.Keep({owner, batch, rows}, std::move(plan), bytes);
}

void PlanStore::Forget(uint64_t owner) {
  MutexLock lock(mutex_);
  plans_.ForgetIf([&](const Key& key) { return std::get<0>(key) == owner; });
}

std::shared_ptr<const Plan> ShapePlans::Find(const RowShapes& rows, int64_t batch) {
  if (const auto known = store_->Find(owner_, rows, batch)) return *known;
  MutexLock lock(mutex_);
  if (const auto known = store_->Find(owner_, rows, batch)) return *known;  // it was another thread's, too
  StatusOr<std::shared_ptr<const Plan>> made = make_(rows, batch, *blueprint_);
  std::shared_ptr<const Plan> plan = made.ok() ? *std::move(made) : nullptr;
  store_->Keep(owner_, rows, batch, plan);
  return plan;
}

void ShapePlans::Follow(std::shared_ptr<const Blueprint> blueprint) {
  MutexLock lock(mutex_);
  blueprint_ = std::move(blueprint);
  store_->Forget(owner_);
}

}  // namespace swizzle::regions
