// What a drawn graph makes of its requests, node by node: each node is a model of its own, which the interpreter runs
// on what those before it made, so that nothing is known of what is around it.
//
// Beside the exact values go noisy ones, to which every node adds a rounding's worth: how far these drift from the
// exact ones is how far another order of computing may, too. A node where it is far is refused, and so are results that
// are no numbers: what is left can be compared.
#ifndef SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_EVALUATION_H_
#define SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_EVALUATION_H_

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend/backend.h"
#include "tests/conformance/random_graphs/drawn_graph.h"

namespace swizzle::random_graphs {

inline constexpr double kMostDrift = 5e-5;      // of noisy values, relative to ScaleOf
inline constexpr int64_t kMostElements = 6000;  // of a value

// What elements of a value are compared relative to: the largest magnitude, but for those of masks.
double ScaleOf(const Tensor& tensor);
// The largest distance of an element from its expected one, relative to the scale and, where it is larger, to that;
// infinite where types or shapes differ, or what is no real number.
double Distance(const Tensor& actual, const Tensor& expected);

// One value in each request.
struct KnownValue {
  DType dtype = DType::kFloat32;
  std::array<std::shared_ptr<const Tensor>, kRequests> exact, noisy;
  double drift = 0;  // of the noisy ones

  const Shape& ShapeIn(size_t request) const { return exact[request]->shape; }
};

class Evaluation {
 public:
  // `seed`: of inputs' elements and of noise. The stream is the CPU backend's, and outlives this.
  Evaluation(const RequestSizes& sizes, uint64_t seed, Stream& stream) : sizes_(sizes), seed_(seed), stream_(stream) {}

  void AddInput(const DrawnInput& input);
  void AddConstant(const std::string& name, const Tensor& tensor);
  // An error, after which nothing is added, where the interpreter refuses the node, or its results can't be compared.
  // REQUIRES: all its inputs are known.
  Status AddNode(const DrawnNode& node, int64_t opset);
  // All of a graph's.
  Status Add(const DrawnGraph& graph);

  const KnownValue* Find(const std::string& name) const;
  void Forget(const std::string& name) { values_.erase(name); }
  const RequestSizes& sizes() const { return sizes_; }

 private:
  using Tensors = std::vector<std::shared_ptr<const Tensor>>;
  // A graph of the node and the constants that it reads.
  DrawnGraph Alone(const DrawnNode& node, int64_t opset) const;
  // Whether none of its inputs has noise.
  bool IsExact(const DrawnNode& node) const;
  Tensors InputsOf(const DrawnNode& node, size_t request, bool noisy) const;
  // Adds to noisy results; an error where they drifted too far.
  Status MakeNoisy(const std::string& name, const Tensor& exact, Tensor& noisy, double& drift) const;

  const RequestSizes sizes_;
  const uint64_t seed_;
  Stream& stream_;
  std::map<std::string, KnownValue> values_;
  std::map<std::string, std::shared_ptr<const Tensor>> constants_;
};

}  // namespace swizzle::random_graphs

#endif  // SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_EVALUATION_H_
