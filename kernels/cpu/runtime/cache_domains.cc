#include "kernels/cpu/runtime/cache_domains.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include "kernels/base/control_groups.h"
#include "kernels/cpu/runtime/available_cpus.h"

namespace swizzle {
namespace cpu {
namespace {

namespace fs = std::filesystem;

// The processors that share the cache of the highest level with this one, as the system writes them ("0-3,8-11"), which
// all of them write alike. Empty: it is not told.
std::string LastLevelSharers(const fs::path& cpu) {
  int last_level = 0;
  std::string sharers;
  for (int index = 0;; ++index) {
    const fs::path cache = cpu / "cache" / ("index" + std::to_string(index));
    int level = 0;
    if (!(std::istringstream(ReadKernelFile(cache / "level")) >> level)) return sharers;
    if (level < last_level) continue;
    last_level = level;
    sharers = ReadKernelFile(cache / "shared_cpu_list");
  }
}

}  // namespace

std::vector<CpuList> CacheDomains(std::span<const int> cpus, const fs::path& devices) {
  std::vector<CpuList> domains;
  std::map<std::string, size_t> known;
  for (const int cpu : cpus) {
    const auto [domain, is_new] =
        known.try_emplace(LastLevelSharers(devices / ("cpu" + std::to_string(cpu))), domains.size());
    if (is_new) domains.emplace_back();
    domains[domain->second].push_back(cpu);
  }
  return domains;
}

const std::vector<CpuList>& CacheDomainsOfProcess() {
  static const std::vector<CpuList> domains = [] {
    const CpuList cpus = AffinityMask();
    if (AvailableCpus() < static_cast<int>(cpus.size())) return std::vector<CpuList>{cpus};
    return CacheDomains(cpus);
  }();
  return domains;
}

std::shared_ptr<const CpuList> DomainShares::Take(int threads) {
  if (domains_.size() < 2 || threads < 2) return nullptr;
  MutexLock lock(mutex_);
  std::optional<size_t> best;
  for (size_t domain = 0; domain < domains_.size(); ++domain) {
    if (domains_[domain].size() < static_cast<size_t>(threads)) continue;
    if (!best || Load(domain) < Load(*best)) best = domain;
  }
  if (!best) return nullptr;
  auto cpus = std::make_unique<CpuList>(domains_[*best]);
  std::ranges::rotate(*cpus, cpus->begin() + taken_[*best] % static_cast<std::ptrdiff_t>(cpus->size()));
  taken_[*best] += threads;
  return {cpus.release(), [this, domain = *best, threads](const CpuList* held) {
            delete held;
            GiveBack(domain, threads);
          }};
}

}  // namespace cpu

int CacheDomainCount() { return static_cast<int>(cpu::CacheDomainsOfProcess().size()); }

}  // namespace swizzle
