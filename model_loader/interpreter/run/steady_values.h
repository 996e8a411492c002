// What a program's nodes make of the shapes of its inputs alone, whatever their elements (graph/shape_flow.h): made
// in the first run of inputs of such shapes, and kept for those that follow.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_RUN_STEADY_VALUES_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_RUN_STEADY_VALUES_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/base/lru_cache.h"
#include "kernels/base/mutex.h"
#include "model_loader/interpreter/values/array.h"

namespace swizzle::interpreter {

// Thread-safe. Of the shapes that came last as many as the bound allows are kept.
class SteadyValues {
 public:
  using Shapes = std::vector<Shape>;                       // of all inputs
  using Values = std::vector<std::pair<int, Array>>;       // by value of the graph
  static constexpr int64_t kMostBytes = int64_t{1} << 25;  // of all of them; values that take more are not kept

  // Null: there are none.
  std::shared_ptr<const Values> Find(const Shapes& shapes);
  // Copies the values.
  void Keep(const Shapes& shapes, const Values& values);

 private:
  Mutex mutex_;
  LruCache<Shapes, std::shared_ptr<const Values>> kept_ ABSL_GUARDED_BY(mutex_){kMostBytes};
};

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_RUN_STEADY_VALUES_H_
