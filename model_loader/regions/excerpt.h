// A region apart from its program: what plans for rows of other shapes are made of.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_EXCERPT_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_EXCERPT_H_

#include <string>

#include "model_loader/graph/graph.h"
#include "model_loader/network/extent_rules.h"
#include "model_loader/regions/region.h"
#include "model_loader/regions/shape_plans.h"
#include "model_loader/regions/survey.h"

namespace swizzle::regions {

// The region's nodes, and those that make its weights of whole numbers; their values in the order in which they are
// named; what the survey has of these. Elements of constants are shared with the program. Value type.
struct Excerpt {
  Graph graph;
  Survey survey;
  Region region;
};

Excerpt ExcerptOf(const Graph& graph, const Survey& survey, const Region& region);

// Whether what lowering makes of the region goes by its rows' shapes only as ExtentRules know, told these paddings.
// Said where it is certain.
bool GoesByExtentRules(const Excerpt& excerpt);
PaddingRules PaddingsOf(const Excerpt& excerpt);

// The shapes of rows that tell ExtentRules how extents go: those of the survey with the dimensions that vary made
// larger, each by a factor of its own. Empty where none varies.
RowShapes OtherRows(const Survey& survey, const Region& region);

// The region's network for rows of these shapes. Errors are those of NetworkOf.
StatusOr<Network> NetworkOf(const Excerpt& excerpt, const RowShapes& rows);

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_EXCERPT_H_
