// Random graphs that move elements and compute with them, in any order.
#ifndef SWIZZLE_TESTS_MODEL_LOADER_INTERPRETER_VALUES_RANDOM_MOVES_H_
#define SWIZZLE_TESTS_MODEL_LOADER_INTERPRETER_VALUES_RANDOM_MOVES_H_

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "model_loader/semantics/strides.h"
#include "tests/support/onnx_builder.h"

namespace swizzle::testing {

// A random graph of x, z and one, twice: with some of its nodes in branches of Ifs, and with all of them in one graph.
// `exact`: of inputs in small steps of 1/8 it makes what does not depend on how it is rounded.
class RandomMoves {
 public:
  explicit RandomMoves(unsigned seed, bool exact = false) : random_(seed), exact_(exact) {
    for (OnnxBuilder* const builder : {&nested_, &flat_}) {
      builder->Input("x", {4, 12, 10, 6}).Input("z", {2, 8, 8, 16}).Input("one", {1});
      builder->Floats("zero", {}, {0}).Counting("w", {6, 6}).Node("MatMul", {"x", "w"}, {"layer"}).Output("layer");
      builder->Node("ReduceSum", {"one"}, {"sum"}, {{"keepdims", int64_t{0}}});
      builder->Node("Greater", {"sum", "zero"}, {"yes"});
    }
    values_ = {{"x", {4, 12, 10, 6}}, {"layer", {4, 12, 10, 6}}, {"z", {2, 8, 8, 16}}};
    const int64_t nodes = 5 + Below(25);
    for (int64_t i = 0; i < nodes; ++i) {
      if (Below(8) == 0) {
        AddBranch();
      } else {
        AddNode();
      }
    }
    for (const Known& value : values_) {
      if (value.name[0] != 'v' || Below(3) != 0) continue;
      nested_.Output(value.name), flat_.Output(value.name);
    }
    nested_.Output(values_.back().name + "_last"), flat_.Output(values_.back().name + "_last");
    nested_.Node("Identity", {values_.back().name}, {values_.back().name + "_last"});
    flat_.Node("Identity", {values_.back().name}, {values_.back().name + "_last"});
  }

  const OnnxBuilder& nested() const { return nested_; }
  const OnnxBuilder& flat() const { return flat_; }

 private:
  static constexpr int64_t kFloat = 1, kByte = 2, kInt64 = 7, kBool = 9, kHalf = 10, kDouble = 11;

  struct Known {
    std::string name;
    Shape shape;
    int64_t type = kFloat;

    int64_t elements() const { return ProductOf(shape, 0, static_cast<int64_t>(shape.size())); }
  };

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
    if (kind == 0 && v.type == kFloat && rank > 0 && !exact_) {
      Made("Softmax", {v.name}, shape, v.type, {{"axis", axis}});
    } else if (kind == 1 && v.type == kFloat && rank > 0 && v.elements() > 0) {
      shape[static_cast<size_t>(axis)] = 1;
      Made("ReduceSum", {v.name, List({axis})}, shape, v.type);
    } else if (kind == 2 && v.type == kFloat && !exact_ && rank > 1 && v.elements() <= 5000) {
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
  const bool exact_;
  OnnxBuilder nested_, flat_;
  OnnxBuilder* body_ = nullptr;
  std::vector<Known> values_;
  int next_ = 0;
};

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_MODEL_LOADER_INTERPRETER_VALUES_RANDOM_MOVES_H_
