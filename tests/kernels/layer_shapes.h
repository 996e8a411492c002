// The extents and windows of the problems in kernel_cases.h.
#ifndef SWIZZLE_TESTS_KERNELS_LAYER_SHAPES_H_
#define SWIZZLE_TESTS_KERNELS_LAYER_SHAPES_H_

#include <cstdint>
#include <vector>

#include "kernels/operator/problem.h"

namespace swizzle {

struct LayerShape {
  Extent input;
  int64_t output_channels = 0;  // 0: as the input
  Window window = {};
};

inline Window Square(int size, int stride, int pad, int dilation = 1) {
  return {size, size, stride, stride, pad, pad, pad, pad, dilation, dilation, false};
}

inline constexpr Window kAsymmetric = {3, 3, 2, 2, 0, 0, 1, 1, 1, 1, false};
inline constexpr Window kWide = {2, 5, 1, 3, 0, 2, 1, 1, 1, 1, false};
inline constexpr Window kDilated = {3, 3, 1, 1, 2, 2, 2, 2, 2, 2, false};

// 2x3 becomes 3x2: as many positions, in another shape.
inline const Window kTransposing = {3, 3, 1, 1, 1, 1, 2, 0, 1, 1, false};
// Over a 2x2 plane: as large as the plane, but only its first tap lies inside.
inline const Window kIntoPadding = {2, 2, 1, 1, 0, 0, 1, 1, 2, 2, false};

inline std::vector<LayerShape> ConvShapes() {
  return {
      {{1, 1, 1, 1}, 1},
      {{1, 64, 1, 1}, 100},
      {{3, 100, 1, 1}, 17},
      {{7, 31, 1, 1}, 64},
      {{64, 64, 1, 1}, 31},
      {{65, 16, 1, 1}, 10},
      {{1, 16, 4, 4}, 16},
      {{3, 17, 4, 4}, 31},
      {{1, 64, 7, 7}, 64},
      {{2, 100, 7, 7}, 17},
      {{7, 31, 7, 7}, 100},
      {{1, 64, 14, 14}, 100},
      {{2, 17, 5, 9}, 3},
      {{1, 31, 28, 28}, 64},
      {{2, 3, 28, 28}, 1},
      {{1, 600, 7, 7}, 40},
      {{1, 3, 28, 28}, 32, Square(3, 1, 1)},
      {{2, 1, 28, 28}, 17, Square(3, 1, 1)},
      {{3, 3, 17, 17}, 16, Square(3, 2, 1)},
      {{2, 4, 9, 5}, 31, kAsymmetric},
      {{1, 16, 14, 14}, 31, Square(3, 1, 1)},
      {{2, 17, 14, 14}, 16, Square(3, 2, 1)},
      {{7, 31, 7, 7}, 17, Square(3, 1, 1)},
      {{3, 16, 4, 4}, 16, Square(3, 2, 1)},
      {{1, 16, 28, 28}, 3, Square(5, 1, 2)},
      {{2, 3, 14, 14}, 17, kWide},
      {{1, 17, 9, 5}, 16, kDilated},
      {{2, 16, 7, 7}, 100, Square(1, 2, 0)},
      {{64, 3, 4, 4}, 16, Square(3, 1, 1)},
      {{1, 16, 7, 7}, 10, Square(7, 1, 0)},
      {{2, 5, 17, 14}, 9, Square(3, 3, 1)},
      {{2, 3, 32, 32}, 16, Square(16, 16, 0)},
      {{2, 5, 15, 31}, 16, Square(3, 2, 2, 2)},
      {{3, 2100, 1, 1}, 16},
      {{30, 1100, 1, 1}, 96},
      {{11, 300, 1, 1}, 277},
  };
}

// Long vectors: groups and their parts, columns and positions around tiles of 64, 128 and 256.
struct GroupedShape {
  LayerShape shape;
  int64_t vector_rows;
};
inline const GroupedShape kGroupedShapes[] = {
    {{{1, 100, 16, 16}, 128}, 64},
    {{{257, 33, 1, 1}, 64}, 64},
    {{{1, 700, 5, 4}, 192}, 32},
    {{{2, 300, 11, 12}, 256}, 128},
    {{{3, 40, 7, 7}, 130, Square(3, 1, 1)}, 64},
    {{{7, 260, 1, 1}, 96}, 16},
    {{{1, 129, 14, 14}, 200}, 32},
    {{{520, 64, 1, 1}, 320}, 64},
    {{{2, 24, 28, 28}, 64, Square(3, 2, 1)}, 64},
    {{{1, 16, 9, 56}, 128, Square(3, 1, 1)}, 64},
    {{{5, 33, 9, 13}, 128, kAsymmetric}, 64},
    {{{2, 20, 15, 31}, 64, Square(3, 2, 2, 2)}, 32},
    {{{2, 64, 14, 14}, 128, Square(1, 2, 0)}, 64},
    {{{3, 12, 17, 19}, 64, kWide}, 64},
    {{{4, 30, 12, 14}, 192, Square(3, 1, 1)}, 64},
    {{{9, 40, 7, 9}, 130, Square(3, 1, 1)}, 64},
    {{{32, 48, 6, 5}, 64, Square(3, 2, 1)}, 64},
    {{{17, 70, 9, 8}, 128, Square(1, 2, 0)}, 64},
    {{{5, 700, 9, 7}, 384}, 128},
    {{{300, 129, 1, 1}, 200}, 128},
    {{{2, 24, 28, 28}, 128, Square(3, 1, 1)}, 128},
    {{{10, 3, 20, 22}, 64, Square(7, 2, 3)}, 64},
    {{{12, 90, 1, 1}, 4480}, 64},
    {{{32, 900, 1, 1}, 320}, 64},
};

// Groups of whole blocks of 16 channels, and of parts of them.
struct ShapeInGroups {
  LayerShape shape;
  int64_t groups;
};
inline const ShapeInGroups kShapesInGroups[] = {
    {{{3, 48, 9, 13}, 96, Square(3, 2, 1)}, 3}, {{{1, 64, 14, 14}, 64, Square(3, 1, 1)}, 4},
    {{{10, 96, 7, 7}, 96, kAsymmetric}, 3},     {{{2, 64, 8, 8}, 64, Square(3, 1, 1)}, 16},
    {{{2, 64, 6, 5}, 32, Square(1, 1, 0)}, 2},  {{{2, 48, 6, 5}, 48, Square(3, 1, 1)}, 4},
};

// For weights of which two of any four neighbouring columns are left: rows and columns around tiles of 128 and stages
// of 64, positions around tiles of 128 and 256.
inline const LayerShape kTwoOfFourShapes[] = {
    {{1, 64, 1, 1}, 1},      {{300, 65, 1, 1}, 130},  {{257, 256, 1, 1}, 128},
    {{2, 200, 11, 12}, 129}, {{1, 260, 16, 16}, 300}, {{1, 12, 9, 9}, 20, Square(3, 1, 1)},
    {{4096, 63, 1, 1}, 2},
};

// First layers that kernels may pool: around their borders, tiles of 56 columns of the pooling's result and, with few
// images and many, of 2 and 8 of its rows.
inline const LayerShape kStemShapes[] = {{{2, 3, 37, 45}, 64, Square(7, 2, 3)}, {{1, 3, 16, 232}, 64, Square(7, 2, 3)},
                                         {{1, 3, 9, 8}, 64, Square(7, 2, 3)},   {{1, 3, 6, 450}, 64, Square(7, 2, 3)},
                                         {{150, 3, 5, 4}, 64, Square(7, 2, 3)}, {{140, 3, 36, 5}, 64, Square(7, 2, 3)}};

inline std::vector<LayerShape> DepthwiseShapes() {
  return {
      {{1, 1, 1, 1}},
      {{7, 17, 1, 1}, 0, Square(3, 1, 1)},
      {{1, 100, 4, 4}, 0, Square(3, 1, 1)},
      {{64, 31, 4, 4}, 0, Square(3, 1, 1)},
      {{3, 16, 4, 4}, 0, Square(3, 2, 1)},
      {{1, 100, 7, 7}, 0, Square(3, 1, 1)},
      {{7, 31, 7, 7}, 0, Square(3, 1, 1)},
      {{2, 17, 7, 7}, 0, Square(3, 2, 1)},
      {{1, 1, 8, 8}, 0, Square(3, 1, 1)},
      {{3, 64, 14, 14}, 0, Square(3, 1, 1)},
      {{2, 32, 9, 7}, 0, Square(3, 1, 1)},
      {{1, 32, 4, 6}, 0, Square(3, 1, 0)},
      {{1, 100, 14, 14}, 0, Square(3, 2, 1)},
      {{2, 17, 5, 9}, 0, Square(3, 1, 1)},
      {{2, 17, 9, 5}, 0, Square(3, 2, 1)},
      {{1, 31, 28, 28}, 0, Square(3, 1, 1)},
      {{2, 17, 6, 32}, 0, Square(3, 1, 1)},
      {{1, 33, 11, 112}, 0, Square(3, 1, 1)},
      {{3, 5, 9, 31}, 0, Square(3, 1, 1)},
      {{2, 16, 28, 28}, 0, Square(3, 2, 1)},
      {{1, 3, 113, 57}, 0, Square(3, 1, 1)},
      {{1, 3, 112, 112}, 0, Square(3, 2, 1)},
      {{9, 70, 14, 14}, 0, Square(3, 2, 1)},
      {{1, 65, 56, 56}, 0, kAsymmetric},
      {{3, 17, 7, 36}, 0, kAsymmetric},
      {{5, 5, 9, 10}, 0, Square(3, 2, 1)},
      {{1, 2, 200, 150}, 0, Square(3, 1, 1)},
      {{2, 3, 14, 14}, 0, Square(5, 1, 2)},
      {{1, 17, 28, 28}, 0, Square(5, 2, 2)},
      {{3, 17, 7, 7}, 0, Square(5, 1, 2)},
      {{1, 5, 33, 20}, 0, Square(5, 2, 2)},
      {{1, 17, 19, 18}, 0, Square(7, 1, 3)},
      {{2, 3, 29, 14}, 0, Square(7, 2, 3)},
      {{2, 12, 14, 14}, 0, Square(7, 1, 3)},
      {{1, 8, 9, 16}, 0, Square(7, 1, 3)},
      {{3, 20, 7, 21}, 0, Square(5, 1, 2)},
      {{2, 4, 6, 28}, 0, Square(5, 1, 0)},
      {{2, 16, 14, 14}, 0, kAsymmetric},
      {{2, 3, 14, 14}, 0, kWide},
      {{2, 17, 14, 14}, 0, kDilated},
      {{1, 16, 9, 5}, 0, kDilated},
      {{3, 17, 5, 9}, 0, Square(1, 1, 0)},
      {{3, 17, 5, 9}, 0, Square(3, 3, 1)},
      {{2, 31, 7, 7}, 0, Square(7, 1, 0)},
      {{1, 5, 3, 3}, 0, Square(3, 1, 0)},
      {{1, 17, 2, 3}, 0, kTransposing},
      {{2, 17, 3, 2}, 0, Square(5, 1, 2)},
      {{1, 33, 4, 5}, 0, Square(3, 1, 2)},  // beside the plane a window has padding alone
      {{1, 16, 3, 11}, 0, Square(5, 2, 3)},
  };
}

inline std::vector<LayerShape> PoolShapes() {
  Window padded_average = Square(3, 2, 1);
  padded_average.count_include_pad = true;
  return {
      {{1, 1, 1, 1}},
      {{1, 100, 7, 7}, 0, Square(7, 1, 0)},
      {{7, 31, 7, 7}, 0, Square(7, 1, 0)},
      {{64, 17, 4, 4}, 0, Square(4, 1, 0)},
      {{2, 16, 14, 14}, 0, Square(14, 1, 0)},
      {{3, 3, 28, 28}, 0, Square(28, 1, 0)},
      {{3, 31, 28, 28}, 0, Square(2, 2, 0)},
      {{1, 17, 14, 14}, 0, Square(3, 2, 1)},
      {{2, 16, 14, 14}, 0, padded_average},
      {{7, 17, 7, 7}, 0, Square(3, 1, 1)},
      {{2, 64, 5, 9}, 0, kAsymmetric},
      {{2, 3, 14, 14}, 0, kWide},
      {{1, 2, 112, 112}, 0, Square(3, 2, 1)},
      {{3, 5, 15, 24}, 0, Square(3, 2, 1)},
      {{64, 5, 4, 4}, 0, Square(2, 2, 0)},
      {{2, 17, 2, 2}, 0, kIntoPadding},
  };
}

inline std::vector<LayerShape> PlaneShapes() {
  return {
      {{1, 1, 1, 1}},   {{1, 1000, 1, 1}}, {{3, 10, 1, 1}}, {{64, 100, 1, 1}}, {{65, 17, 1, 1}},  {{130, 31, 1, 1}},
      {{7, 3, 4, 4}},   {{64, 16, 4, 4}},  {{1, 64, 7, 7}}, {{2, 100, 7, 7}},  {{7, 31, 7, 7}},   {{3, 17, 14, 14}},
      {{1, 1, 28, 28}}, {{2, 3, 28, 28}},  {{2, 31, 5, 9}}, {{1, 64, 28, 28}}, {{1, 3, 57, 113}}, {{2, 33, 16, 16}},
  };
}

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_KERNELS_LAYER_SHAPES_H_
