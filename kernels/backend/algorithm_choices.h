// Which of a library's algorithms a device's kernels take, by what they compute. Libraries name many for one product,
// in the order of a guess; kernels take the first, 0, until one was chosen, which Stream::Time does before it times
// work that computes something of which none was. Choices stay for as long as the device's backend does, and the tuning
// cache keeps them for the next process: a plan of known times computes with what it was measured with. Thread-safe.
#ifndef SWIZZLE_KERNELS_BACKEND_ALGORITHM_CHOICES_H_
#define SWIZZLE_KERNELS_BACKEND_ALGORITHM_CHOICES_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "kernels/backend/backend.h"
#include "kernels/base/mutex.h"

namespace swizzle {

struct AlgorithmChoice {
  int algorithm = 0;          // its place in the library's list
  double microseconds = 0.0;  // that it took
  bool operator==(const AlgorithmChoice&) const = default;
};

class AlgorithmChoices {
 public:
  // By a text that names the library, its version and all that its list depends on.
  using ByProduct = std::map<std::string, AlgorithmChoice>;

  std::optional<AlgorithmChoice> Find(const std::string& product) const {
    MutexLock lock(mutex_);
    const auto found = choices_.find(product);
    return found == choices_.end() ? std::nullopt : std::optional(found->second);
  }

  // Returns what holds: the earliest choice for a product.
  AlgorithmChoice Add(const std::string& product, AlgorithmChoice choice) {
    MutexLock lock(mutex_);
    return choices_.try_emplace(product, choice).first->second;
  }

  ByProduct All() const {
    MutexLock lock(mutex_);
    return choices_;
  }

  // For how many products it isn't the library's first.
  int64_t CountOthers() const {
    MutexLock lock(mutex_);
    return std::ranges::count_if(choices_, [](const auto& each) { return each.second.algorithm > 0; });
  }

 private:
  mutable Mutex mutex_;
  ByProduct choices_ ABSL_GUARDED_BY(mutex_);
};

// What a backend is, too, whose kernels have algorithms to choose.
class AlgorithmChooser {
 public:
  virtual ~AlgorithmChooser() = default;
  virtual AlgorithmChoices& algorithm_choices() = 0;
};

// Null where it is none.
inline AlgorithmChoices* ChoicesOf(Backend& backend) {
  auto* const chooser = dynamic_cast<AlgorithmChooser*>(&backend);
  return chooser == nullptr ? nullptr : &chooser->algorithm_choices();
}

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BACKEND_ALGORITHM_CHOICES_H_
