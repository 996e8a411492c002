// A node that is written out, as those who write it out see it: what it is given, and the nodes that take its place.
//
// Nodes are of the graph's opset, and constants of the type that they are combined with. Single-owner; the graph and
// the facts must outlive it.
#ifndef SWIZZLE_MODEL_LOADER_EXPANSIONS_SITE_H_
#define SWIZZLE_MODEL_LOADER_EXPANSIONS_SITE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model_loader/expansions/value_facts.h"
#include "model_loader/graph/graph.h"

namespace swizzle::expansions {

using Attributes = std::map<std::string, Attribute>;

class Site {
 public:
  Site(Node node, Graph& graph, ValueFacts& facts) : node_(std::move(node)), graph_(graph), facts_(facts) {}

  const Node& node() const { return node_; }
  int64_t opset() const { return graph_.opset; }
  int In(size_t input) const { return node_.Input(input); }
  bool Has(size_t input) const { return In(input) != kNoValue; }
  bool Wants(size_t output) const { return output < node_.outputs.size() && node_.outputs[output] != kNoValue; }

  StatusOr<int64_t> Int(const char* name, int64_t absent) const { return IntAttribute(node_, name, absent); }
  StatusOr<float> Float(const char* name, float absent) const { return FloatAttribute(node_, name, absent); }
  StatusOr<std::string> Text(const char* name, const char* absent) const {
    return StringAttribute(node_, name, absent);
  }

  const ValueFacts& facts() const { return facts_; }
  std::optional<size_t> RankOf(int value) const;
  // kUnknown where it is not known; negative dimensions count from the end.
  static constexpr int64_t kUnknown = -1;
  int64_t SizeOf(int value, int64_t dimension) const;
  // FP32 where it is not known.
  DType TypeOf(int value) const { return facts_.Of(value).dtype.value_or(DType::kFloat32); }

  // A node of the standard, or of another domain, and its first result.
  int Make(std::string_view op, std::vector<int> inputs, Attributes attributes = {}, std::string_view domain = "");
  std::vector<int> MakeSeveral(std::string_view op, std::vector<int> inputs, Attributes attributes, size_t results);

  int Constant(Tensor tensor);
  // One number of the type of `like`, the nearest that is finite.
  int Number(double number, int like);
  int Whole(int64_t whole) { return Constant(Tensor::Int64s({}, std::vector{whole})); }
  int Wholes(const std::vector<int64_t>& wholes);

  // Operators whose form changed with opsets.
  int Unsqueeze(int x, const std::vector<int64_t>& axes);
  int Slice(int x, int64_t axis, int64_t begin, int64_t end);
  // As many equal parts, or, if there are sizes, parts of these.
  std::vector<int> Split(int x, int64_t axis, size_t parts, const std::vector<int64_t>& sizes = {});
  int ReduceSum(int x, int64_t axis, bool keeps);
  int Clip(int x, std::optional<float> low, std::optional<float> high);

  int Reshape(int x, const std::vector<int64_t>& dims) { return Make("Reshape", {x, Wholes(dims)}); }
  int Transpose(int x, std::vector<int64_t> order) { return Make("Transpose", {x}, {{"perm", std::move(order)}}); }
  int Cast(int x, DType dtype);
  // One dimension of x, a scalar.
  int Dimension(int x, int64_t dimension);
  int Scaled(int x, double factor);

  // `value` is the node's result, and may be read on. REQUIRES: a node was made for it, or it is an input.
  void Result(size_t output, int value);

  // Result 0 is a constant.
  void ConstantResult(Tensor tensor);

  // What takes the node's place.
  std::vector<Node> Take() { return std::move(made_); }

 private:
  Node node_;
  Graph& graph_;
  ValueFacts& facts_;
  std::vector<int> Renamed(std::vector<int> inputs) const;

  std::vector<Node> made_;
  std::map<int, int> results_;  // values that became the node's
  int constants_ = 0;
};

}  // namespace swizzle::expansions

#endif  // SWIZZLE_MODEL_LOADER_EXPANSIONS_SITE_H_
