// Which processors share a last-level cache. A cache line goes from one processor to another and back in some 100 ns
// within such a domain, and in 350 and more between two, which the threads of a small layer meet several times: a
// MobileNetV1 that took 1.55 ms on two threads of one domain took 2.9 ms, its time on one thread, on those of two.
#ifndef SWIZZLE_KERNELS_CPU_RUNTIME_CACHE_DOMAINS_H_
#define SWIZZLE_KERNELS_CPU_RUNTIME_CACHE_DOMAINS_H_

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"

namespace swizzle {

// Domains of the processors that this process may use; 1 where its cgroup lets it use fewer of them at a time, since it
// isn't known then which of them are whose.
int CacheDomainCount();

namespace cpu {

using CpuList = std::vector<int>;  // the system's numbers of processors

// `cpus` by the last-level cache that they share, as the system tells below `devices`; those of which it tells nothing
// are one domain. Domains and what is in them are in the order of `cpus`.
std::vector<CpuList> CacheDomains(std::span<const int> cpus,
                                  const std::filesystem::path& devices = "/sys/devices/system/cpu");

// CacheDomains of this process, one where CacheDomainCount is 1.
const std::vector<CpuList>& CacheDomainsOfProcess();

// Gives streams their processors: all threads of a stream within one domain, streams spread over the domains.
// Thread-safe.
class DomainShares {
 public:
  explicit DomainShares(std::vector<CpuList> domains) : domains_(std::move(domains)), taken_(domains_.size()) {}

  // The processors of one domain, to hold while the stream lives, the first of them those that the fewest streams were
  // given: of the domain with the fewest threads a processor, among those with a processor for each thread. Null where
  // a stream had better be free: it has one thread, there is one domain, or none is large enough. The DomainShares has
  // to outlive it.
  std::shared_ptr<const CpuList> Take(int threads);

 private:
  double Load(size_t domain) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return static_cast<double>(taken_[domain]) / static_cast<double>(domains_[domain].size());
  }
  void GiveBack(size_t domain, int threads) {
    MutexLock lock(mutex_);
    taken_[domain] -= threads;
  }

  const std::vector<CpuList> domains_;
  Mutex mutex_;
  std::vector<int> taken_ ABSL_GUARDED_BY(mutex_);  // threads of streams, by domain
};

}  // namespace cpu
}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_CPU_RUNTIME_CACHE_DOMAINS_H_
