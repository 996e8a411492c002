#include "tests/kernels/plane_cases.h"

#include <algorithm>
#include <numeric>

namespace swizzle {
namespace {

KernelCase PlaneCase(const Operator& operator_, const Extent& input, const Extent& output, size_t turn) {
  return {{operator_, input, output, 1 + static_cast<int>(turn % 2)}, false, 0};
}

// Operands that begin on blocks of channels, and others that do not; one of a channel, many of them.
std::vector<KernelCase> ConcatCases() {
  const std::vector<std::vector<int32_t>> all_sizes = {{1},         {16, 16},        {3, 1},
                                                       {32, 16, 5}, {16, 7, 16, 30}, {17, 1, 2, 64},
                                                       {100, 3},    {8, 8, 8},       {1, 2, 3, 4, 5, 6, 7, 8}};
  const std::vector<Extent> planes = {{1, 0, 1, 1}, {65, 0, 1, 1}, {3, 0, 7, 7}, {2, 0, 5, 9}, {1, 0, 28, 28}};
  std::vector<KernelCase> cases;
  for (const auto& sizes : all_sizes) {
    for (const Extent& plane : planes) {
      for (const bool of_planes : {false, true}) {
        const size_t turn = cases.size();
        ConcatParts parts{static_cast<int32_t>(sizes.size()), of_planes};
        std::ranges::copy(sizes, parts.sizes.begin());
        Extent output = plane;
        (of_planes ? output.width : output.channels) = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
        if (of_planes) output.height = 1, output.channels = 1 + static_cast<int64_t>(turn % 19);
        Problem problem{{Op::kConcat, parts}, output, output};
        cases.push_back(PlaneCase(problem, InputExtent(problem, 0), output, turn / 2));
      }
    }
  }
  return cases;
}

std::vector<KernelCase> SliceCases() {
  struct Taken {
    int64_t channels, first, count;
  };
  constexpr Taken kTaken[] = {{1, 0, 1},   {32, 0, 16}, {32, 16, 16},  {40, 16, 24}, {33, 32, 1},
                              {48, 8, 24}, {20, 3, 17}, {100, 50, 50}, {64, 5, 3}};
  std::vector<KernelCase> cases;
  for (const Taken& taken : kTaken) {
    for (const Extent& plane : {Extent{1, 0, 1, 1}, Extent{65, 0, 1, 1}, Extent{2, 0, 7, 7}, Extent{3, 0, 5, 9}}) {
      Extent input = plane, output = plane;
      input.channels = taken.channels;
      output.channels = taken.count;
      cases.push_back(PlaneCase({Op::kSlice, ChannelRange{taken.first}}, input, output, cases.size()));
    }
  }
  return cases;
}

// Every mode on planes that grow, shrink and stay, by whole factors and others, and in one direction alone.
std::vector<KernelCase> ResizeCases() {
  struct Planes {
    Extent from;
    int64_t height, width;
    float scale_h, scale_w;
  };
  constexpr Planes kPlanes[] = {
      {{1, 1, 1, 1}, 3, 2, 0, 0},     {{2, 17, 4, 4}, 8, 8, 2, 2},     {{1, 16, 7, 7}, 14, 14, 0, 0},
      {{3, 3, 5, 9}, 15, 18, 3, 2},   {{1, 31, 9, 5}, 4, 7, 0, 0},     {{2, 5, 14, 14}, 7, 7, 0.5f, 0.5f},
      {{1, 3, 28, 28}, 37, 91, 0, 0}, {{1, 2, 20, 33}, 20, 66, 1, 2},  {{2, 1, 20, 50}, 60, 150, 3, 3},
      {{1, 18, 1, 13}, 1, 26, 1, 2},  {{1, 4, 6, 6}, 9, 9, 1.6f, 1.6f}};
  std::vector<KernelCase> cases;
  for (const Planes& planes : kPlanes) {
    const Extent to = {planes.from.batch, planes.from.channels, planes.height, planes.width};
    for (int mode = 0; mode < kCoordinatesCount * (kNearestCount + 1); ++mode) {
      const int nearest = mode / kCoordinatesCount;
      Resampling how{.linear = nearest == kNearestCount,
                     .coordinates = static_cast<Coordinates>(mode % kCoordinatesCount),
                     .scale_h = planes.scale_h,
                     .scale_w = planes.scale_w};
      if (!how.linear) how.nearest = static_cast<Nearest>(nearest);
      cases.push_back(PlaneCase({Op::kResize, how}, planes.from, to, cases.size()));
    }
  }
  return cases;
}

std::vector<KernelCase> DepthToSpaceCases() {
  std::vector<KernelCase> cases;
  for (const int32_t block : {1, 2, 3, 4}) {
    for (const Extent& to : {Extent{1, 1, 1, 1}, Extent{2, 3, 7, 7}, Extent{1, 17, 5, 9}, Extent{1, 2, 40, 70}}) {
      for (const bool places_first : {false, true}) {
        const Extent input = {to.batch, to.channels * block * block, to.height, to.width};
        const Extent output = {to.batch, to.channels, to.height * block, to.width * block};
        cases.push_back(
            PlaneCase({Op::kDepthToSpace, SpaceBlock{block, places_first}}, input, output, cases.size() / 2));
      }
    }
  }
  return cases;
}

}  // namespace

std::vector<KernelCase> PlaneCases(Op op) {
  if (op == Op::kConcat) return ConcatCases();
  if (op == Op::kSlice) return SliceCases();
  if (op == Op::kResize) return ResizeCases();
  return op == Op::kDepthToSpace ? DepthToSpaceCases() : std::vector<KernelCase>();
}

}  // namespace swizzle
