// Sizes for the dimensions that a program's inputs leave free, of which it runs: they follow from what its nodes
// refuse.
//
// A program is run on few elements, all alike, from small sizes to large ones. Where a node refuses them, the shapes
// that reached it in runs of other sizes say which dimension of an input each of its dimensions comes from, and its
// constants, attributes and other inputs say what that would have to be: the next runs are of such sizes, as long as
// they get further. Where somebody knows shapes that requests have, these are tried before all others.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_FREE_SIZES_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_FREE_SIZES_H_

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model_loader/interpreter/run/executor.h"

namespace swizzle::regions {

// Rows of the two runs where the batch is free: more than one, which no dimension that is always 1 is then taken for.
inline constexpr int64_t kSurveyedRows = 2, kOtherSurveyedRows = 3;

// What is tried first for all other free dimensions, in turn.
inline constexpr std::array<int64_t, 5> kFreeSizes = {64, 32, 96, 224, 16};

// One size of all requests, which dimensions of inputs have. Value type.
struct FreeDimension {
  std::string name;                               // the model's; empty: it gives none
  std::vector<std::pair<size_t, size_t>> places;  // input and dimension
  bool counts_rows = false;                       // it is dimension 0 of all of these inputs
};

// Those of one name are one, and so are those without a name that are dimension 0. REQUIRES: all inputs have shapes.
std::vector<FreeDimension> FreeDimensionsOf(const std::vector<interpreter::Port>& inputs);

// Shapes that requests are known to have: of each its inputs', by name. What does not fit the inputs tells nothing.
using SampleShapes = std::vector<std::map<std::string, Shape>>;

// Inputs of a run. Value type.
struct RunInputs {
  std::vector<Shape> shapes;  // by input
  int element = 0;            // of which there is nothing else: 0 or 1; strings are empty
};

// The inputs' shapes where free dimensions have these sizes.
std::vector<Shape> ShapesOf(const std::vector<interpreter::Port>& inputs, const std::vector<FreeDimension>& dimensions,
                            const std::vector<int64_t>& sizes);

// Views of `held`. INVALID_ARGUMENT where one is beyond the limits.
StatusOr<std::vector<TensorView>> FilledInputs(const interpreter::Program& program, const RunInputs& inputs,
                                               const interpreter::Limits& limits,
                                               std::vector<std::vector<std::byte>>& held);

// How a run ended. Value type.
struct RunEnd {
  Status status;                          // OK: it went through
  int node = -1;                          // that it came to last; -1: none
  std::vector<interpreter::Array> given;  // to that node
};

// Looks for sizes; single-owner. The program and the stream outlive it.
class SizeSearch {
 public:
  using RunOn = std::function<RunEnd(const RunInputs& inputs)>;

  // `run` runs the program. REQUIRES: all inputs have shapes.
  SizeSearch(const interpreter::Program& program, Stream& stream, const interpreter::Limits& limits,
             const SampleShapes& samples, RunOn run);

  // Inputs that the program runs on. An error is of the run that came furthest: FAILED_PRECONDITION where no request
  // comes further.
  StatusOr<RunInputs> Find();
  // Others, of which each free dimension has another size. REQUIRES: Find found some.
  StatusOr<RunInputs> FindOther();

  bool has_free_dimensions() const { return !dimensions_.empty(); }

 private:
  using Sizes = std::vector<int64_t>;
  struct Try {
    Sizes sizes;
    int element = 0;
    RunEnd end;
  };

  Sizes Uniform(int64_t rows, int64_t size) const;
  // Those of the samples, for so many rows.
  std::vector<Sizes> Sampled(int64_t rows) const;
  RunInputs InputsOf(const Sizes& sizes, int element) const;
  // Whether it was not tried yet, is allowed, and went through. Of the others those that came furthest are kept.
  bool Runs(const Sizes& sizes, int element);
  bool RunsOnAny(const std::vector<Sizes>& sizes, int element);
  bool IsAllowed(const Sizes& sizes) const;
  int furthest() const { return refused_.empty() ? -1 : refused_.front().end.node; }

  // Goes from refusal to refusal, as long as that leads further, and whether that led through.
  bool Follow(int element);
  // Sizes of each dimension with which one of the node that refused would be as it may have to be.
  std::vector<Sizes> Proposals(const Try& refused);
  void Propose(const Try& refused, const Try& moved, size_t dimension, std::set<int64_t>& proposed) const;
  // A run that came as far as the furthest, and differs from this one in that dimension alone.
  const Try* MovedIn(size_t dimension, const Try& refused) const;

  // What the furthest run ended with.
  Status Refusal();
  // Whether every request ends there.
  bool IsCertain(const Try& held);
  bool IsFreeAt(size_t input, size_t axis, const Try& refused) const;
  // Whether the node reads nothing that depends on inputs.
  bool ReadsConstants(int node) const;

  const interpreter::Program& program_;
  Stream& stream_;
  const interpreter::Limits limits_;
  const RunOn run_;
  const SampleShapes samples_;
  const std::vector<FreeDimension> dimensions_;
  const std::set<int> constants_;  // values that depend on no input
  const std::set<int> elements_;   // values that depend on elements of inputs
  const bool shapes_follow_;       // whether no shape does
  Try last_;                       // of Runs
  std::optional<Try> found_;       // by Find
  std::set<std::pair<Sizes, int>> tried_;
  std::vector<Try> refused_;  // that came furthest
  std::chrono::steady_clock::time_point until_;
};

// Values that depend on no input.
std::set<int> ConstantValues(const interpreter::Program& program);

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_FREE_SIZES_H_
