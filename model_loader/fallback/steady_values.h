// What a program's nodes make of the shapes of its inputs alone, whatever their elements (regions/shape_flow.h): made
// in the first run of inputs of such shapes, and kept for those that follow.
#ifndef SWIZZLE_MODEL_LOADER_FALLBACK_STEADY_VALUES_H_
#define SWIZZLE_MODEL_LOADER_FALLBACK_STEADY_VALUES_H_

#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "model_loader/fallback/array.h"

namespace swizzle::fallback {

// Thread-safe. Of the shapes that came last as many as the bounds allow are kept.
class SteadyValues {
 public:
  using Shapes = std::vector<Shape>;                  // of all inputs
  using Values = std::vector<std::pair<int, Array>>;  // by value of the graph
  static constexpr size_t kMostShapes = 128;
  static constexpr int64_t kMostBytes = int64_t{1} << 25;  // of all of them; values that take more are not kept

  // Null: there are none.
  std::shared_ptr<const Values> Find(const Shapes& shapes);
  // Copies the values.
  void Keep(const Shapes& shapes, const Values& values);

 private:
  struct Entry {
    Shapes shapes;
    std::shared_ptr<const Values> values;
    int64_t bytes = 0;
  };

  Mutex mutex_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // what was asked for last comes first
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace swizzle::fallback

#endif  // SWIZZLE_MODEL_LOADER_FALLBACK_STEADY_VALUES_H_
