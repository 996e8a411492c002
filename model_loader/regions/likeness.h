// Which regions are one: steps of a recurrent cell that an exporter has unrolled, layers that share their weights.
//
// Single-owner; the graph and the survey outlive it.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_LIKENESS_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_LIKENESS_H_

#include <cstdint>
#include <map>
#include <string>

#include "model_loader/regions/region.h"

namespace swizzle::regions {

class Likeness {
 public:
  // What of weights two regions have in common that are alike: what they hold, or, for who asks whether there are
  // kernels at all, their types and shapes alone. Other known values always count by what they hold.
  enum class Weights : uint8_t { kElements, kShapes };
  Likeness(const Graph& graph, const Survey& survey, Weights weights = Weights::kElements)
      : graph_(graph), survey_(survey), weights_(weights) {}

  // Two regions have this in common only if their networks are the same but for names, inputs and outputs in the same
  // order, and the survey saw inputs of the same shapes.
  std::string Of(const Region& region);

 private:
  class Text;

  // A hash of the type, shape and elements. REQUIRES: it is known.
  const std::string& ContentOf(int value);

  const Graph& graph_;
  const Survey& survey_;
  const Weights weights_;
  std::map<int, std::string> contents_;  // by value
};

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_LIKENESS_H_
