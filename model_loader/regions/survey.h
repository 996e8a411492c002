// What two runs of a program show of its values: their shapes, and which are the same in every run. These runs are of
// elements that are all alike, at load, and where no shape goes by elements, most of what goes by them is not computed;
// dimensions that the model leaves free are given sizes that it takes.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_SURVEY_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_SURVEY_H_

#include <map>
#include <optional>
#include <vector>

#include "kernels/backend/backend.h"
#include "model_loader/interpreter/run/executor.h"
#include "model_loader/regions/free_sizes.h"
#include "model_loader/regions/idioms.h"

namespace swizzle::regions {

// Value type. All by value of the program's graph.
struct Survey {
  RunInputs inputs;                          // of that run
  std::vector<std::optional<Shape>> shapes;  // in that run; none of what nothing reads
  std::vector<DType> dtypes;
  // In another run, where the free dimensions, the batch among them, had other sizes; the same where there are none.
  std::vector<std::optional<Shape>> other_shapes;
  interpreter::RunMemory memory;            // of that run, between its nodes
  bool shapes_follow = false;               // whether shapes go by those of the inputs alone, and there was another run
  std::map<int, interpreter::Array> known;  // constants, and what is computed of nothing else
  std::map<int, interpreter::Array> fixed;  // what is computed of them and of sizes that the model fixes
  std::vector<int> makers;                  // nodes, kOutside for constants and inputs
  std::vector<std::vector<int>>
      readers;  // nodes, once for each time they read, and kOutside for an output of the graph
  std::vector<Idiom> idioms;
  std::vector<int> idiom_of;  // by node: of idioms, or -1

  // Null if the node is of none.
  const Idiom* IdiomOf(size_t node) const { return idiom_of[node] < 0 ? nullptr : &idioms[idiom_of[node]]; }
  static constexpr int kOutside = -1;

  bool IsKnown(int value) const { return known.contains(value); }
  // What the value holds where it is known or fixed, else null.
  const interpreter::Array* KnownOf(int value) const {
    for (const auto* values : {&known, &fixed}) {
      if (const auto found = values->find(value); found != values->end()) return &found->second;
    }
    return nullptr;
  }
  // The node that makes it, or kOutside.
  int MakerOf(int value) const { return value == kNoValue ? kOutside : makers[static_cast<size_t>(value)]; }
  // The node that alone reads it, once; kOutside where there are others, or it is an output of the graph.
  int OnlyReaderOf(int value) const {
    const bool one = value != kNoValue && readers[static_cast<size_t>(value)].size() == 1;
    return one ? readers[static_cast<size_t>(value)].front() : kOutside;
  }
};

// `samples`: shapes that are tried first. UNIMPLEMENTED if an input is declared without a shape. FAILED_PRECONDITION,
// naming the node and whose fault it is, if no request can be computed. Any other error if the program runs on nothing
// that is tried (free_sizes.h).
StatusOr<Survey> SurveyProgram(const interpreter::Program& program, Stream& stream, const interpreter::Limits& limits,
                               const SampleShapes& samples = {});

// FAILED_PRECONDITION, naming the output, where one is of another type than the program declares and clients expect.
Status CheckOutputTypes(const interpreter::Program& program, const Survey& survey);

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_SURVEY_H_
