// How a depthwise 3x3 convolution of stride 2 is cut up where its outputs are counted through in the order of panels
// (halved_planes-inl.h), and what each unit of kPositionUnit outputs reads.
//
// Planes are of even width. So the two taps of a window's row whose columns are a pair, 2x and 2x + 1, lie in the same
// unit of inputs, and the third, the outer tap, is one of a neighbouring output's pair.
#ifndef SWIZZLE_KERNELS_CPU_WINDOW_HALVED_PLANES_H_
#define SWIZZLE_KERNELS_CPU_WINDOW_HALVED_PLANES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/window/shifted_planes.h"

namespace swizzle::cpu {

// 3x3, stride 2, at most one row and one column of padding before the plane, and an output of half its even width and
// of half its height, rounded up with padding above it and down without. The left tap is the outer one with padding
// before the columns, the right one without.
bool IsHalved3x3(const Problem& problem);

// What the taps of one row of the window read for a unit of outputs. Units are of inputs, counted from the period's
// first; where a row is beside the plane they are the middle row's.
struct HalvedRow {
  static constexpr int kMaxSources = 5;
  int32_t sources[kMaxSources];  // rising; the last repeated
  int32_t outer;                 // with the outer tap of the unit's first output, if that is left, else of its last
  uint16_t inside;               // the outputs whose row is inside the plane
};

// A unit of outputs.
struct HalvedUnit {
  int32_t pairs[kPositionUnit];  // positions of the pairs of the window's first row, from the period's first; above the
                                 // first plane they are negative
  HalvedRow rows[3];
  int32_t max_sources;    // of its rows
  uint16_t outer_inside;  // the outputs whose outer tap is inside the plane
};

// Planes of several images follow each other: after `units` of outputs and `input_units` of inputs all repeats.
struct HalvedPeriod {
  static constexpr int64_t kMaxUnits = 4096;  // larger plans would be read from beyond the second cache
  std::vector<HalvedUnit> units;  // empty, no plan: there would be more, or a row with more than kMaxSources
  int64_t input_units = 0;
};

// REQUIRES: IsHalved3x3(problem).
HalvedPeriod PlanHalvedPlanes(const Problem& problem);

struct HalvedPart {
  const UnitPlace* inputs;  // of the unit first_input
  int64_t first_input;
  const UnitPlace* outputs;  // of the range's first unit
  UnitRange range;
};

// Of one thread, for the places of a part. REQUIRES: IsHalved3x3(problem).
size_t HalvedWorkspaceBytes(const Problem& problem);

// Fills `places`, HalvedWorkspaceBytes of a thread's, with those of the range.
HalvedPart PlaceHalvedPart(const Problem& problem, const HalvedPeriod& period, const UnitRange& range,
                           UnitPlace* places);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_WINDOW_HALVED_PLANES_H_
