// A graph that was drawn, as plain values that can be cut smaller: what random_graphs runs in several ways.
#ifndef SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_DRAWN_GRAPH_H_
#define SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_DRAWN_GRAPH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model_loader/graph/graph.h"

namespace swizzle::random_graphs {

// In place of a dimension of an input: free, and of the same size wherever a request's inputs have it.
inline constexpr int64_t kRows = -1, kLength = -2, kWidth = -3;

// The sizes of free dimensions in one request.
struct Sizes {
  int64_t rows = 1, length = 1, width = 1;

  int64_t Of(int64_t dimension) const {
    return dimension == kRows ? rows : dimension == kLength ? length : dimension == kWidth ? width : dimension;
  }
};

// Each graph is drawn for three requests. The first two differ in rows alone, so that they may share a batch.
inline constexpr size_t kRequests = 3;
using RequestSizes = std::array<Sizes, kRequests>;

struct DrawnInput {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;        // dimension 0 is kRows
  int64_t below = 0;  // whole numbers are 0 or more, and less than this
};

// A node of the domain "", with inputs and outputs by name; "" is an input that is left out.
struct DrawnNode {
  std::string op;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, Attribute> attributes = {};
};

struct DrawnOutput {
  std::string name;
  std::optional<DType> dtype = std::nullopt;  // as it is declared; nothing: it isn't
  Shape shape = {};                           // likewise, where shapes are; free dimensions are kRows or kLength
};

struct DrawnGraph {
  int64_t opset = 17;
  std::vector<DrawnInput> inputs;
  std::map<std::string, Tensor> constants;  // FP32 and INT64
  std::vector<DrawnNode> nodes;             // in the order in which they run
  std::vector<DrawnOutput> outputs;
  bool names_axes = false;       // free dimensions of inputs have names
  bool declares_shapes = false;  // of outputs

  // Without nodes, constants and inputs that no output needs. At least one input stays.
  DrawnGraph Pruned() const;
  // The ONNX file.
  std::vector<std::byte> Bytes() const;
  // The graph is shown as graph/print.h prints it, or why it can't.
  std::string Text() const;
};

}  // namespace swizzle::random_graphs

#endif  // SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_DRAWN_GRAPH_H_
