// Functions of vectors that no ONNX node computes alone below some opset, or that plans know and passes do not read:
// GELU, layer and RMS normalisation, as nodes of their own or written out. A region takes an idiom whole, as one
// canonical node (graph/operators.h), but for rounding to whole numbers, QuantizeLinear with DequantizeLinear behind
// it: both are real numbers to what is around them, and stay as they are.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_IDIOMS_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_IDIOMS_H_

#include <map>
#include <string>
#include <vector>

#include "model_loader/graph/graph.h"

namespace swizzle::regions {

struct Survey;

// Value type.
struct Idiom {
  std::vector<int> nodes;      // of the program's graph, in order; nothing else reads what they make but for the last
  int input = kNoValue;        // the only one that is not known
  int output = kNoValue;       // of the last node
  std::string op;              // canonical; "QuantizeLinear": the nodes themselves
  std::vector<int> constants;  // known inputs of the canonical node, one number a channel; kNoValue: zeros
  std::map<std::string, Attribute> attributes;
};

// No node is in two.
std::vector<Idiom> FindIdioms(const Graph& graph, const Survey& survey);

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_IDIOMS_H_
