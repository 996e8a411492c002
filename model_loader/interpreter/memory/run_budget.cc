#include "model_loader/interpreter/memory/run_budget.h"

#include "model_loader/interpreter/memory/block_store.h"

namespace swizzle::interpreter {

bool RunBudget::TakeNow(int64_t bytes) {
  int64_t held = held_;
  while (held <= most_ - bytes) {
    if (held_.compare_exchange_weak(held, held + bytes)) return true;
  }
  return false;
}

bool RunBudget::Take(int64_t bytes) {
  if (TakeNow(bytes)) return true;
  {
    const MutexLock lock(mutex_);
    for (BlockStore* const store : stores_) store->FreeKept();
  }
  return TakeNow(bytes);
}

void RunBudget::FreeIdle() {
  const MutexLock lock(mutex_);
  for (BlockStore* const store : stores_) store->FreeIdle();
}

void RunBudget::Add(BlockStore& store) {
  const MutexLock lock(mutex_);
  stores_.insert(&store);
}

void RunBudget::Remove(BlockStore& store) {
  const MutexLock lock(mutex_);
  stores_.erase(&store);
}

}  // namespace swizzle::interpreter
