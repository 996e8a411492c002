// What batch_proof.h knows of the values of a graph, and what a node's rules ask of it.
#ifndef SWIZZLE_MODEL_LOADER_FALLBACK_BATCH_FACTS_H_
#define SWIZZLE_MODEL_LOADER_FALLBACK_BATCH_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model_loader/fallback/batch_extents.h"
#include "model_loader/graph/graph.h"

namespace swizzle::fallback {

inline constexpr size_t kMostElements = 64;  // of lists of which the elements are known

// Of one value. It has rows where a dimension goes by the batch: each request's elements lie together there, as many
// slices as that dimension has times the batch, and depend on that request alone.
struct BatchFact {
  bool known = false;                    // false: nothing is
  std::optional<Extents> shape = {};     // nothing: it is the same for every batch, of some rank
  std::optional<Extents> elements = {};  // of a few whole numbers, row-major
  const Tensor* constant = nullptr;

  static BatchFact Shared() { return {.known = true}; }
  static BatchFact OfShape(std::optional<Extents> shape) { return {.known = true, .shape = std::move(shape)}; }
  static BatchFact OfConstant(const Tensor& constant);
  static BatchFact OfElements(Extents elements, const Shape& shape);
  static BatchFact OfList(Extents elements);

  bool HasRows() const { return shape && GoByBatch(*shape); }
  bool HasBatchElements() const { return elements && GoByBatch(*elements); }
  // Whether it is the same for every batch.
  bool IsShared() const { return known && !HasRows() && !HasBatchElements(); }
  // The elements of what is of a known shape and is the same for every batch or holds sizes; those that are not known
  // are any. Nothing where there are many.
  std::optional<Extents> Elements() const;
  // Those of a number or a list.
  std::optional<Extents> List() const;
};

// A node with what is known of its inputs, all of which are known. Thread-compatible; refers to what it is made of.
class NodeFacts {
 public:
  NodeFacts(const Node& node, int64_t opset, const std::vector<BatchFact>& facts)
      : node_(node), opset_(opset), facts_(facts) {}

  const Node& node() const { return node_; }
  int64_t opset() const { return opset_; }
  size_t size() const { return node_.inputs.size(); }
  bool Has(size_t i) const { return node_.Input(i) != kNoValue; }
  const BatchFact& In(size_t i) const;
  // Null where its rank is not known.
  const Extents* ShapeOf(size_t i) const;
  // Whether all inputs from `first` on are the same for every batch.
  bool AreShared(size_t first) const;
  // The elements of an input that are all numbers.
  std::optional<std::vector<int64_t>> Numbers(size_t i) const;
  // Axes from input `i` or the attribute, counted from the front, ascending; nothing if they are neither known nor
  // right, or not given.
  std::optional<std::vector<int64_t>> Axes(size_t i, int64_t rank) const;
  // The attribute "axis", counted from the front.
  std::optional<int64_t> Axis(int64_t absent, int64_t rank) const;
  // Otherwise the attribute has another type than that.
  std::optional<int64_t> Int(const std::string& name, int64_t absent) const;

 private:
  const Node& node_;
  const int64_t opset_;
  const std::vector<BatchFact>& facts_;
};

}  // namespace swizzle::fallback

#endif  // SWIZZLE_MODEL_LOADER_FALLBACK_BATCH_FACTS_H_
