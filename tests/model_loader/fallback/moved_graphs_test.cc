// Graphs that move elements and compute with them, in any order: what a run makes, which moves them when somebody
// computes with them, is what nodes make that are given made arrays one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "model_loader/fallback/settle.h"
#include "tests/model_loader/fallback/run_node.h"
#include "tests/support/status_matchers.h"

namespace swizzle::fallback {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;

constexpr int64_t kFloat = 1, kByte = 2, kInt64 = 7, kBool = 9, kHalf = 10, kDouble = 11;

struct Known {
  std::string name;
  Shape shape;
  int64_t type = kFloat;

  int64_t elements() const { return ProductOf(shape, 0, static_cast<int64_t>(shape.size())); }
};

// A random graph, twice: with some of its nodes in branches of Ifs, and with all of them in one graph.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {
    for (OnnxBuilder* const builder : {&nested_, &flat_}) {
      builder->Input("x", {4, 12, 10, 6}).Input("z", {2, 8, 8, 16}).Input("one", {1});
      builder->Floats("zero", {}, {0});
      builder->Node("ReduceSum", {"one"}, {"sum"}, {{"keepdims", int64_t{0}}});
      builder->Node("Greater", {"sum", "zero"}, {"yes"});
    }
    values_ = {{"x", {4, 12, 10, 6}}, {"z", {2, 8, 8, 16}}};
    const int64_t nodes = 5 + Below(25);
    for (int64_t i = 0; i < nodes; ++i) {
      if (Below(8) == 0) {
        AddBranch();
      } else {
        AddNode();
      }
    }
    for (const Known& value : values_) {
      if (value.name == "x" || value.name == "z" || Below(3) != 0) continue;
      nested_.Output(value.name), flat_.Output(value.name);
    }
    nested_.Output(values_.back().name + "_last"), flat_.Output(values_.back().name + "_last");
    nested_.Node("Identity", {values_.back().name}, {values_.back().name + "_last"});
    flat_.Node("Identity", {values_.back().name}, {values_.back().name + "_last"});
  }

  const OnnxBuilder& nested() const { return nested_; }
  const OnnxBuilder& flat() const { return flat_; }

 private:
  int64_t Below(int64_t bound) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound)); }
  const Known& Any() {
    return values_[static_cast<size_t>(Below(3) == 0 ? Below(std::ssize(values_))
                                                     : std::max<int64_t>(0, std::ssize(values_) - 1 - Below(4)))];
  }
  std::string NewName() { return "v" + std::to_string(next_++); }

  void Emit(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
            const std::map<std::string, Attribute>& attributes = {}) {
    (body_ != nullptr ? *body_ : nested_).Node(op, inputs, outputs, attributes);
    flat_.Node(op, inputs, outputs, attributes);
  }
  void Made(const std::string& op, std::vector<std::string> inputs, Shape shape, int64_t type,
            const std::map<std::string, Attribute>& attributes = {}) {
    const std::string name = NewName();
    Emit(op, inputs, {name}, attributes);
    values_.push_back({name, std::move(shape), type});
  }
  std::string List(const std::vector<int64_t>& numbers, bool scalar = false) {
    const std::string name = "list" + std::to_string(next_++);
    const Shape shape = scalar ? Shape{} : Shape{std::ssize(numbers)};
    nested_.Int64s(name, shape, numbers), flat_.Int64s(name, shape, numbers);
    return name;
  }

  void AddBranch() {
    const size_t before = values_.size();
    OnnxBuilder body;
    body_ = &body;
    const int64_t nodes = 1 + Below(4);
    for (int64_t i = 0; i < nodes; ++i) AddNode();
    body_ = nullptr;
    if (values_.size() == before) return;
    const Known last = values_.back();
    values_.resize(before);
    body.Output(last.name);
    const std::string name = NewName();
    nested_.Node("If", {"yes"}, {name});
    nested_.Body("then_branch", {}, body), nested_.Body("else_branch", {}, body);
    flat_.Node("Identity", {last.name}, {name});
    values_.push_back({name, last.shape, last.type});
  }

  Shape OtherShape(int64_t elements) {
    Shape shape;
    while (elements > 1 && shape.size() < 5) {
      std::vector<int64_t> divisors;
      for (int64_t d = 1; d <= elements && d <= 64; ++d) {
        if (elements % d == 0) divisors.push_back(d);
      }
      shape.push_back(divisors[static_cast<size_t>(Below(std::ssize(divisors)))]);
      elements /= shape.back();
    }
    shape.push_back(elements);
    return shape;
  }

  void AddNode() {
    const Known v = Any();
    const int64_t rank = std::ssize(v.shape), axis = rank == 0 ? 0 : Below(rank);
    const int64_t kind = Below(20);
    if (kind < 6) return AddOtherShape(v, axis);
    if (kind < 11) return Below(2) == 0 ? AddSlice(v) : AddConcat(v, static_cast<size_t>(axis));
    if (kind < 15) return AddPart(v, axis);
    if (kind == 15) return AddBlocks(v);
    return kind == 16 ? AddTyped(v) : AddComputed(v, axis);
  }

  void AddOtherShape(const Known& v, int64_t axis) {
    Shape shape = v.shape;
    const int64_t rank = std::ssize(shape), kind = Below(8);
    if (kind < 3 && v.elements() > 0) {
      shape = OtherShape(v.elements());
      Made("Reshape", {v.name, List(shape)}, shape, v.type);
    } else if (kind < 5 && rank > 0) {
      std::vector<int64_t> order(shape.size());
      std::iota(order.begin(), order.end(), 0);
      std::ranges::shuffle(order, random_);
      for (size_t d = 0; d < order.size(); ++d) shape[d] = v.shape[static_cast<size_t>(order[d])];
      Made("Transpose", {v.name}, shape, v.type, {{"perm", order}});
    } else if (kind == 5 && rank < 7) {
      shape.insert(shape.begin() + axis, 1);
      Made("Unsqueeze", {v.name, List({axis})}, shape, v.type);
    } else if (kind == 6 && rank > 0 && shape[static_cast<size_t>(axis)] == 1) {
      shape.erase(shape.begin() + axis);
      Made("Squeeze", {v.name, List({axis})}, shape, v.type);
    } else if (rank > 0 && Below(2) == 0) {
      shape = {ProductOf(shape, 0, axis), ProductOf(shape, axis, rank)};
      Made("Flatten", {v.name}, shape, v.type, {{"axis", axis}});
    } else {
      Made("Identity", {v.name}, shape, v.type);
    }
  }

  // Split, Expand or Gather.
  void AddPart(const Known& v, int64_t axis) {
    Shape shape = v.shape;
    const int64_t rank = std::ssize(shape), kind = Below(4);
    const int64_t extent = rank == 0 ? 0 : shape[static_cast<size_t>(axis)];
    const bool large = v.elements() > 30000;
    if (kind == 0 && extent > 1) {
      const int64_t first = Below(extent + 1);
      const std::string names[] = {NewName(), NewName()};
      Emit("Split", {v.name, List({first, extent - first})}, {names[0], names[1]}, {{"axis", axis}});
      shape[static_cast<size_t>(axis)] = first;
      values_.push_back({names[0], shape, v.type});
      shape[static_cast<size_t>(axis)] = extent - first;
      values_.push_back({names[1], shape, v.type});
    } else if (kind == 1 && rank < 7 && !large) {
      for (int64_t& d : shape) d = d == 1 ? 1 + Below(4) : d;
      if (Below(2) == 0) shape.insert(shape.begin(), 1 + Below(3));
      Made("Expand", {v.name, List(shape)}, shape, v.type);
    } else if (kind == 2 && extent > 0) {
      shape.erase(shape.begin() + axis);
      Made("Gather", {v.name, List({Below(2 * extent) - extent}, true)}, shape, v.type, {{"axis", axis}});
    } else if (extent > 0 && !large) {
      shape[static_cast<size_t>(axis)] = 3;
      Made("Gather", {v.name, List({Below(extent), -1, 0})}, shape, v.type, {{"axis", axis}});
    }
  }

  void AddBlocks(const Known& v) {
    if (v.shape.size() != 4) return;
    const int64_t n = v.shape[0], c = v.shape[1], h = v.shape[2], w = v.shape[3];
    if (h % 2 == 0 && w % 2 == 0 && Below(2) == 0) {
      Made("SpaceToDepth", {v.name}, {n, c * 4, h / 2, w / 2}, v.type, {{"blocksize", int64_t{2}}});
    } else if (c % 4 == 0) {
      Made("DepthToSpace", {v.name}, {n, c / 4, h * 2, w * 2}, v.type, {{"blocksize", int64_t{2}}});
    }
  }

  void AddTyped(const Known& v) {
    constexpr int64_t kTypes[] = {kFloat, kByte, kInt64, kBool, kHalf, kDouble};
    const int64_t type = v.type == kHalf || v.type == kDouble ? kFloat : kTypes[Below(6)];
    Made("Cast", {v.name}, v.shape, type, {{"to", type}});
  }

  void AddComputed(const Known& v, int64_t axis) {
    Shape shape = v.shape;
    const auto rank = shape.size();
    const int64_t kind = Below(5);
    const Known other = Any();
    if (kind == 0 && v.type == kFloat && rank > 0) {
      Made("Softmax", {v.name}, shape, v.type, {{"axis", axis}});
    } else if (kind == 1 && v.type == kFloat && rank > 0 && v.elements() > 0) {
      shape[static_cast<size_t>(axis)] = 1;
      Made("ReduceSum", {v.name, List({axis})}, shape, v.type);
    } else if (kind == 2 && v.type == kFloat && rank > 1 && v.elements() <= 5000) {
      std::vector<int64_t> order(rank);
      std::iota(order.begin(), order.end(), 0);
      std::swap(order[rank - 1], order[rank - 2]);
      const std::string turned = NewName();
      Emit("Transpose", {v.name}, {turned}, {{"perm", order}});
      shape.back() = shape[rank - 2];
      Made("MatMul", {v.name, turned}, shape, v.type);
    } else if (kind == 3 && other.shape == shape && other.type == v.type && (v.type == kFloat || v.type == kInt64)) {
      Made("Add", {v.name, other.name}, shape, v.type);
    } else {
      Made("Where", {"yes", v.name, v.name}, shape, v.type);
    }
  }

  void AddSlice(const Known& v) {
    std::vector<int64_t> starts, ends, axes, steps;
    Shape shape = v.shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (Below(2) == 0 || shape[d] == 0) continue;
      const int64_t size = shape[d], step = Below(3) == 0 ? 1 + Below(3) : 1, first = Below(size);
      axes.push_back(static_cast<int64_t>(d));
      if (Below(3) == 0) {
        starts.push_back(first), ends.push_back(-size - 1), steps.push_back(-step);
        shape[d] = first / step + 1;
      } else {
        const int64_t end = std::min(size, first + 1 + Below(size));
        starts.push_back(first - (Below(2) == 0 ? size : 0)), ends.push_back(end), steps.push_back(step);
        shape[d] = (end - first + step - 1) / step;
      }
    }
    if (axes.empty()) return;
    Made("Slice", {v.name, List(starts), List(ends), List(axes), List(steps)}, shape, v.type);
  }

  void AddConcat(const Known& v, size_t axis) {
    if (v.shape.empty() || v.elements() > 20000) return;
    std::vector<std::string> names = {v.name};
    Shape shape = v.shape;
    for (const Known& other : values_) {
      Shape its = other.shape;
      if (its.size() != shape.size() || other.type != v.type || Below(2) == 0) continue;
      const int64_t added = its[axis];
      its[axis] = shape[axis];
      if (its != shape || other.elements() > 20000) continue;
      shape[axis] += added;
      names.insert(names.begin() + (Below(2) == 0 ? 0 : std::ssize(names)), other.name);
      if (names.size() > 4) break;
    }
    Made("Concat", names, shape, v.type, {{"axis", static_cast<int64_t>(axis)}});
  }

  std::mt19937 random_;
  OnnxBuilder nested_, flat_;
  OnnxBuilder* body_ = nullptr;
  std::vector<Known> values_;
  int next_ = 0;
};

// Every node by itself, of made arrays.
std::vector<Array> OneByOne(const Program& program, const std::vector<Tensor>& inputs, Stream& stream, int& moved) {
  const std::shared_ptr<Memory> memory = Memory::New({});
  std::vector<Array> values(program.graph().values.size());
  for (const auto& [value, array] : program.constants()) values[static_cast<size_t>(value)] = array;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Array input = *memory->Allocate(inputs[i].dtype, inputs[i].shape);
    std::ranges::copy(inputs[i].bytes, input.data.get());
    values[static_cast<size_t>(program.graph().inputs[i])] = input;
  }
  for (size_t n = 0; n < program.graph().nodes.size(); ++n) {
    const Node& node = program.graph().nodes[n];
    std::vector<Array> given;
    for (const int value : node.inputs) given.push_back(values[static_cast<size_t>(value)]);
    const StatusOr<Results> results = program.Compute(n, given, *memory, stream);
    if (!results.ok()) {
      ADD_FAILURE() << results.status();
      return {};
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      moved += (*results)[i].moved != nullptr ? 1 : 0;
      values[static_cast<size_t>(node.outputs[i])] = *Settled((*results)[i], *memory, stream, nullptr);
    }
  }
  std::vector<Array> outputs;
  for (const GraphOutput& output : program.graph().outputs)
    outputs.push_back(values[static_cast<size_t>(output.value)]);
  return outputs;
}

TEST(MovedGraphs, MakeWhatTheirNodesMakeOneByOne) {
  const std::unique_ptr<Backend> backend = NewCpuBackend();
  const std::unique_ptr<Stream> stream = *backend->NewStream(2);
  std::vector<Tensor> inputs;
  for (const Shape& shape : {Shape{4, 12, 10, 6}, Shape{2, 8, 8, 16}, Shape{1}}) {
    std::vector<float> values(static_cast<size_t>(ProductOf(shape, 0, static_cast<int64_t>(shape.size()))));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 251) + 1;
    inputs.push_back(Floats(shape, values));
  }
  constexpr unsigned kRounds = 100;
  int moved = 0;
  for (unsigned seed = 0; seed < kRounds; ++seed) {
    SCOPED_TRACE(seed);
    const RandomGraph graph(seed);
    const auto flat = ReadProgram(std::span<const std::byte>(graph.flat().Bytes()));
    ASSERT_THAT(flat, IsOk());
    const std::vector<Array> expected = OneByOne(**flat, inputs, *stream, moved);
    if (::testing::Test::HasFailure()) return;
    for (const OnnxBuilder* const builder : {&graph.nested(), &graph.flat()}) {
      const StatusOr<std::vector<Array>> made = Execute(*builder, inputs);
      ASSERT_THAT(made, IsOk());
      ASSERT_EQ(made->size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ((*made)[i].shape, expected[i].shape);
        ASSERT_EQ((*made)[i].dtype, expected[i].dtype);
        ASSERT_TRUE(std::ranges::equal((*made)[i].AsBytes(), expected[i].AsBytes())) << "output " << i;
      }
    }
  }
  EXPECT_GT(moved, 300);
}

TEST(MovedGraphs, AnErrorNamesTheNodeThatMoves) {
  OnnxBuilder builder;
  builder.Input("x", {64, 64}).Node("Transpose", {"x"}, {"turned"}).Node("Relu", {"turned"}, {"y"}).Output("y");
  const Tensor x = Floats({64, 64}, std::vector<float>(4096, 1));
  EXPECT_THAT(Execute(builder, {x}, {.max_live_bytes = 20000}),
              IsError(StatusCode::kResourceExhausted, "Transpose node 'turned_node': the model's values together"));
}

TEST(MovedGraphs, WhatMovesAnOutputIsTheTimeOfItsNode) {
  OnnxBuilder builder;
  builder.Input("x", {64, 64}).Node("Transpose", {"x"}, {"y"}).Output("y");
  const auto program = ReadProgram(std::span<const std::byte>(builder.Bytes()));
  ASSERT_THAT(program, IsOk());
  const std::unique_ptr<Backend> backend = NewCpuBackend();
  const std::unique_ptr<Stream> stream = *backend->NewStream(1);
  const Tensor x = Floats({64, 64}, std::vector<float>(4096, 1));
  const TensorView views[] = {{x.dtype, x.shape, x.bytes}};
  std::vector<TurnTime> times;
  ASSERT_THAT((*program)->Run(views, *stream, {}, nullptr, {.times = &times}), IsOk());
  ASSERT_EQ(times.size(), 2u);  // to say what is moved, and to move it
  for (const TurnTime& time : times) EXPECT_EQ(time.first_node, 0);
}

}  // namespace
}  // namespace swizzle::fallback
