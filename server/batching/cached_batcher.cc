#include "server/batching/cached_batcher.h"

#include <atomic>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "server/telemetry/containment.h"
#include "server/telemetry/no_metrics.h"

namespace swizzle {
namespace {

// The ticket of a request that has ended; no batcher comes so far.
constexpr Ticket kAnswered = std::numeric_limits<Ticket>::max();

class CachedBatcher final : public Batcher {
 public:
  CachedBatcher(std::unique_ptr<Batcher> batcher, std::shared_ptr<ResponseCache> cache, Clock& clock,
                ModelMetrics& metrics)
      : cache_(std::move(cache)),
        owner_(cache_->NewOwner()),
        clock_(clock),
        metrics_(metrics),
        batcher_(std::move(batcher)) {}
  ~CachedBatcher() override {
    batcher_ = nullptr;  // first: what it still runs is kept
    cache_->Forget(owner_);
  }

  // Known only when the request is.
  Status CheckRoom(uint64_t, Instant) const override { return absl::OkStatus(); }

  StatusOr<Ticket> Submit(Request request, Done done) override {
    if (draining_.load(std::memory_order_relaxed)) return batcher_->Submit(std::move(request), std::move(done));
    const Instant start = clock_.Now();
    const uint64_t hash = ResponseCache::HashOf(request.inputs);
    std::optional<Result> known = cache_->Find(owner_, hash, request.inputs);
    metrics_.RecordCacheLookup(known ? CacheLookup::kHit : CacheLookup::kMiss, clock_.Now() - start);
    if (known) {
      std::move(done)(*std::move(known));
      return kAnswered;
    }
    Done keeps = Keeping(request, hash, std::move(done));
    return batcher_->Submit(std::move(request), std::move(keeps));
  }

  void Cancel(Ticket ticket) override {
    if (ticket != kAnswered) batcher_->Cancel(ticket);
  }
  void Drain(absl::FunctionRef<void()> progress) override {
    draining_.store(true, std::memory_order_relaxed);
    batcher_->Drain(progress);
  }
  int64_t queued() const override { return batcher_->queued(); }
  void HoldUntilQueued(int64_t count) override { batcher_->HoldUntilQueued(count); }

 private:
  // `done`, and before it the answer is kept. Inputs are there until `done` has run.
  Done Keeping(const Request& request, uint64_t hash, Done done) {
    return [this, hash, inputs = request.inputs, owner = request.owner, staged = request.staged,
            done = std::move(done)](StatusOr<Result> result) mutable {
      if (result.ok()) {
        Contain("keep the answer", [&] {
          cache_->Keep(owner_, hash, inputs, *result);
          return absl::OkStatus();
        }).IgnoreError();
      }
      std::move(done)(std::move(result));
    };
  }

  const std::shared_ptr<ResponseCache> cache_;
  const ResponseCache::Owner owner_;
  Clock& clock_;
  ModelMetrics& metrics_;
  std::unique_ptr<Batcher> batcher_;
  std::atomic<bool> draining_ = false;
};

}  // namespace

std::unique_ptr<Batcher> NewCachedBatcher(std::unique_ptr<Batcher> batcher, std::shared_ptr<ResponseCache> cache,
                                          Clock& clock, ModelMetrics* metrics) {
  return std::make_unique<CachedBatcher>(std::move(batcher), std::move(cache), clock, OrNone(metrics));
}

}  // namespace swizzle
