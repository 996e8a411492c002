// A region: nodes of a program that a plan computes, as a network of their own.
//
// A network's values are rows of a batch, and what it computes of a row depends on that row alone. A region is one of
// three forms, by what its rows are: images, of which dimension 0 counts the rows; the vectors along the last
// dimension, however many stand before it; or sequences of tokens, of which dimension 0 counts the rows and dimension 1
// the tokens (sequence_regions.h).
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_REGION_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_REGION_H_

#include <vector>

#include "model_loader/network/network.h"
#include "model_loader/regions/survey.h"

namespace swizzle::regions {

enum class Form : uint8_t { kNone, kImages, kVectors, kSequences };

// Value type.
struct Region {
  Form form = Form::kNone;
  std::vector<int> nodes;            // of the program's graph, in order
  std::vector<int> inputs, outputs;  // values, but for known ones
};

// The region of these nodes, in order.
Region MakeRegion(const Graph& graph, const Survey& survey, Form form, std::vector<int> nodes);

// What the node makes: its first output, and of the others those that something reads.
std::vector<int> MadeValues(const Node& node, const Survey& survey);

// Whether a value may be one of a region of this form.
bool IsActivation(const Survey& survey, int value, Form form);

// Whether the node multiplies an activation with a matrix that is known.
bool HasKnownWeight(const Node& node, const Survey& survey);

// The shape of a value's row.
Shape RowShape(const Shape& shape, Form form);

// Its network, of which inputs and outputs are in the region's order. UNIMPLEMENTED or INVALID_ARGUMENT where the
// passes or lowering (passes/) refuse it, or its outputs are of other shapes than in the survey, where that has them.
StatusOr<Network> NetworkOf(const Graph& graph, const Survey& survey, const Region& region);

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_REGION_H_
