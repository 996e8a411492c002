// Whether the rows of a graph are proven to be independent.
#ifndef SWIZZLE_TESTS_MODEL_LOADER_SHAPES_BATCH_HOLDS_H_
#define SWIZZLE_TESTS_MODEL_LOADER_SHAPES_BATCH_HOLDS_H_

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "model_loader/interpreter/run/load.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle::testing {

using Attributes = std::map<std::string, Attribute>;
using Ints = std::vector<int64_t>;

// Whether the rows of `builder`, with an output of this shape, are proven to be independent, all of its nodes being
// there.
inline bool Holds(OnnxBuilder& builder, const Shape& output) {
  auto& shape = *builder.graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const int64_t dimension : output) {
    auto& added = *shape.add_dim();
    if (dimension != -1) added.set_dim_value(dimension);
  }
  const auto program =
      interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes()), {}, interpreter::Nodes::kAll);
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() && (*program)->rows_are_independent();
}

// One node from x, of shape [-1, 4, 6], and an initializer c.
inline bool OneNode(const std::string& op, const std::vector<std::string>& inputs, const Attributes& attributes,
                    const Shape& output, const Shape& constant = {1}) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 4, 6}).Counting("c", constant).Int64s("zero", {1}, {0}).Int64s("two", {1}, {2});
  builder.Int64s("keep", {2}, {0, -1}).Int64s("flat", {2}, {-1, 24});
  builder.Node(op, inputs, {"y"}, attributes).Output("y");
  return Holds(builder, output);
}

// x [batch, length, 6] and y [batch, length], through nodes that `add` adds, to "out" of the shape [batch, ...].
template <typename Add>
bool OfAnyLength(const Shape& output, const Add& add) {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1, 6}).Input("y", {-1, -1}).Counting("table", {32, 6}).Counting("square", {1, 1, 9, 9});
  builder.Int64s("zero", {1}, {0}).Int64s("one", {1}, {1}).Int64s("two", {1}, {2}).Int64s("minus", {1}, {-1});
  builder.Int64s("0", {}, {0}).Int64s("1", {}, {1}).Int64s("heads", {4}, {0, 0, 2, 3}).Int64s("six", {1}, {6});
  builder.Node("Shape", {"x"}, {"sizes"}).Node("Gather", {"sizes", "1"}, {"length"});
  builder.Node("Gather", {"sizes", "0"}, {"batch"}).Node("Range", {"0", "length", "1"}, {"places"});
  builder.Node("Unsqueeze", {"length", "zero"}, {"length1"}).Node("Unsqueeze", {"batch", "zero"}, {"batch1"});
  add(builder);
  builder.Output("out");
  return Holds(builder, output);
}

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_MODEL_LOADER_SHAPES_BATCH_HOLDS_H_
