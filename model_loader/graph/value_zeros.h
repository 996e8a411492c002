// What share of a graph's values is zero on calibration data. Pure.
#ifndef SWIZZLE_MODEL_LOADER_GRAPH_VALUE_ZEROS_H_
#define SWIZZLE_MODEL_LOADER_GRAPH_VALUE_ZEROS_H_

#include <map>
#include <string>

#include "model_loader/graph/graph.h"

namespace swizzle {

// Notes it of the values of these names.
inline void NoteZeros(const std::map<std::string, InputZeros>& zeros, Graph& graph) {
  for (Value& value : graph.values) {
    const auto found = zeros.find(value.name);
    if (found != zeros.end()) value.zeros = found->second;
  }
}

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_GRAPH_VALUE_ZEROS_H_
