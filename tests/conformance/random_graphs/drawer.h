// Draws graphs: from a seed the same one each time. Every node is run as it is added (evaluation.h), so that graphs are
// valid for all of their requests, and whoever adds nodes knows the shapes of what there is.
//
// Nodes are added by productions (productions.h): an operator, or a few as exporters write them. One that doesn't fit
// what there is leaves nothing behind.
#ifndef SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_DRAWER_H_
#define SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_DRAWER_H_

#include <array>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/conformance/random_graphs/drawn_graph.h"
#include "tests/conformance/random_graphs/evaluation.h"

namespace swizzle::random_graphs {

// A dimension's size in each request. Two that are the same stand for one size.
using Dim = std::array<int64_t, kRequests>;
using Dims = std::vector<Dim>;
// What is multiplied to make a size.
using Factors = std::vector<Dim>;

inline Dim FixedDim(int64_t size) { return {size, size, size}; }
inline bool IsFixed(const Dim& dim) { return dim == FixedDim(dim[0]); }

struct Drawing {
  DrawnGraph graph;
  RequestSizes sizes;
};

struct Production;

class Drawer {
 public:
  // The stream is the CPU backend's, and outlives this.
  Drawer(uint64_t seed, Stream& stream);

  Drawing Draw();

  // For productions. Chance: of so many in a hundred. Between: both ends included.
  bool Chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  int64_t Between(int64_t low, int64_t high) { return low + static_cast<int64_t>(random_() % (high - low + 1)); }
  template <typename T>
  T OneOf(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(Between(0, static_cast<int64_t>(choices.size()) - 1))];
  }
  int64_t opset() const { return graph_.opset; }

  // A node's first result, and the others. After one that failed the production fails, whatever else it adds.
  std::string Node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::map<std::string, Attribute>& attributes = {});
  std::vector<std::string> Nodes(const std::string& op, const std::vector<std::string>& inputs, size_t outputs,
                                 const std::map<std::string, Attribute>& attributes = {});
  void Fail() { failed_ = true; }
  bool failed() const { return failed_; }

  // Constants. Weights are of about the magnitude that keeps that of what they are multiplied with, by sums over
  // `fan_in`, half of them mostly zeros.
  std::string Weights(const Shape& shape, int64_t fan_in);
  // Numbers from low to high.
  std::string Floats(const Shape& shape, double low, double high);
  std::string Float(double value) { return Floats({}, value, value); }
  std::string Int64s(const std::vector<int64_t>& elements) { return Int64s(elements, {std::ssize(elements)}); }
  std::string Int64s(const std::vector<int64_t>& elements, const Shape& shape);

  // Values that are there, late ones sooner; the production fails where there is none.
  using Wanted = std::function<bool(const Dims&)>;
  std::string Any(const Wanted& wanted, DType dtype = DType::kFloat32);
  std::string OfRank(size_t least, size_t most);
  // Empty where there is none: nothing fails.
  std::string Find(const Wanted& wanted, DType dtype = DType::kFloat32);
  Dims DimsOf(const std::string& name) const;
  DType TypeOf(const std::string& name) const;

  // [1], of INT64: a product of sizes, from shapes of values where they are not fixed.
  std::string Size(const Factors& factors);
  // Of INT64: a shape whose dimensions are such products; a constant where at most one of them is not fixed, mostly,
  // and with -1 there if a Reshape reads it.
  std::string Target(const std::vector<Factors>& dims, bool for_reshape);
  std::string Reshaped(const std::string& name, const std::vector<Factors>& dims) {
    return Node("Reshape", {name, Target(dims, true)});
  }

  const Dim& rows() const { return rows_; }
  const Dim& length() const { return length_; }
  const Dim& width() const { return width_; }

 private:
  void DrawInputs();
  // One of them, by their weights.
  void (*ChosenOf(std::span<const Production> productions))(Drawer&);
  void AddInput(DType dtype, const Shape& shape, int64_t below);
  // Adds what one production makes, or nothing.
  bool Produce(void (*production)(Drawer&));
  void ChooseOutputs();
  std::string NewName(const char* prefix) { return prefix + std::to_string(names_++); }
  std::string AddConstant(Tensor tensor);
  std::string SizeOf(const Dim& dim);
  Dim DimOf(int64_t rows, int64_t length, int64_t width) const;

  std::minstd_rand random_;
  const RequestSizes sizes_;
  const Dim rows_, length_, width_;
  DrawnGraph graph_;
  Evaluation values_;
  std::vector<std::string> made_;  // values that are no constants, in order
  int names_ = 0;
  bool mixes_ = false;  // rows of the batch
  bool failed_ = false;
};

}  // namespace swizzle::random_graphs

#endif  // SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_DRAWER_H_
