// What two runs of a program show of its values: their shapes, and which are the same in every run. These runs are of
// zeros, at load; dimensions that the model leaves free are given sizes that it takes.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_SURVEY_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_SURVEY_H_

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "kernels/backend/backend.h"
#include "model_loader/fallback/executor.h"
#include "model_loader/regions/idioms.h"

namespace swizzle::regions {

// Value type. All by value of the program's graph.
struct Survey {
  std::vector<std::optional<Shape>> shapes;  // in that run; none of what nothing reads
  std::vector<DType> dtypes;
  // In another run, where the free dimensions, the batch among them, had other sizes; the same where there are none.
  std::vector<std::optional<Shape>> other_shapes;
  fallback::RunMemory memory;             // of that run, between its nodes
  bool shapes_follow = false;             // whether shapes go by those of the inputs alone, and there was another run
  std::map<int, fallback::Array> known;   // constants, and what is computed of nothing else
  std::vector<std::vector<int>> readers;  // nodes, and kOutside for an output of the graph
  std::vector<Idiom> idioms;
  std::vector<int> idiom_of;  // by node: of idioms, or -1

  // Null if the node is of none.
  const Idiom* IdiomOf(size_t node) const { return idiom_of[node] < 0 ? nullptr : &idioms[idiom_of[node]]; }
  static constexpr int kOutside = -1;

  bool IsKnown(int value) const { return known.contains(value); }
};

// Inputs of zeros whose free dimensions are `rows` where they are dimension 0, else `size`; views of `zeros`.
// UNIMPLEMENTED where an input is declared without a shape, INVALID_ARGUMENT where one is beyond the limits.
StatusOr<std::vector<TensorView>> InputsOfZeros(const fallback::Program& program, int64_t rows, int64_t size,
                                                const fallback::Limits& limits,
                                                std::vector<std::vector<std::byte>>& zeros);

// Rows of the two runs where the batch is free: more than one, which no dimension that is always 1 is then taken for.
inline constexpr int64_t kSurveyedRows = 2, kOtherSurveyedRows = 3;

// What is tried for `size`, in turn.
inline constexpr std::array<int64_t, 5> kFreeSizes = {64, 32, 96, 224, 16};

// INVALID_ARGUMENT if the program runs on zeros of none of the sizes that are tried.
StatusOr<Survey> SurveyProgram(const fallback::Program& program, Stream& stream, const fallback::Limits& limits);

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_SURVEY_H_
