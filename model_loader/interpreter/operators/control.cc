// Operators that run graphs within them: If, Loop, Scan.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/values/strided.h"

namespace swizzle::interpreter {
namespace {

// How many of the node's inputs are the operator's own; behind them is what its graphs capture.
size_t OwnInputs(const Call& call, const Body& body) {
  return body.captured.empty() ? call.input_count() : *std::ranges::min_element(body.captured);
}

// The one element of a BOOL.
StatusOr<bool> TruthOf(const Array& array) {
  if (array.IsSequence() || array.dtype != DType::kBool || array.elements() != 1) {
    return InvalidArgument("a condition must be one BOOL");
  }
  return array.As<uint8_t>()[0] != 0;
}

StatusOr<Array> Truth(Call& call, bool value) {
  SWIZZLE_ASSIGN_OR_RETURN(Array truth, call.New(DType::kBool, {}));
  truth.Mutable<uint8_t>()[0] = value ? 1 : 0;
  return truth;
}

// What a graph gives each time it runs, to be one array in the end.
class Stack {
 public:
  Status Add(const Array& array) {
    if (array.IsSequence()) return InvalidArgument("its graph gives a sequence where a tensor is to be put together");
    if (!arrays_.empty() && (array.dtype != arrays_[0].dtype || array.shape != arrays_[0].shape)) {
      return InvalidArgument("its graph gives ", DTypeName(array.dtype), ShapeText(array.shape), " after ",
                             DTypeName(arrays_[0].dtype), ShapeText(arrays_[0].shape));
    }
    arrays_.push_back(array);
    return {};
  }

  // Along a new axis 0, from the last if `reverse`. `declared` says what there is none of.
  StatusOr<Array> Together(Call& call, const GraphOutput& declared, bool reverse = false) const {
    Shape shape = arrays_.empty() ? declared.shape.value_or(Shape()) : arrays_[0].shape;
    for (int64_t& dimension : shape) dimension = std::max<int64_t>(dimension, 0);
    shape.insert(shape.begin(), static_cast<int64_t>(arrays_.size()));
    const DType dtype = arrays_.empty() ? declared.dtype.value_or(DType::kFloat32) : arrays_[0].dtype;
    SWIZZLE_ASSIGN_OR_RETURN(Array together, call.New(dtype, shape));
    for (size_t i = 0; i < arrays_.size(); ++i) {
      const auto bytes = static_cast<size_t>(arrays_[i].bytes());
      const size_t place = reverse ? arrays_.size() - 1 - i : i;
      if (bytes > 0) std::memcpy(together.data.get() + place * bytes, arrays_[i].data.get(), bytes);
    }
    return together;
  }

 private:
  std::vector<Array> arrays_;
};

// A list with an entry for each of `count`, all `absent` where the node has none.
StatusOr<std::vector<int64_t>> ListFor(const Call& call, const std::string& name, size_t count) {
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<int64_t> list, call.Ints(name, std::vector<int64_t>(count, 0)));
  if (list.size() == count) return list;
  return InvalidArgument(name, " has ", list.size(), " entries for ", count);
}

StatusOr<Array> WithAxisAt(Call& call, const Array& array, int64_t from, int64_t to) {
  std::vector<int64_t> order;
  for (int64_t d = 0; d < array.rank(); ++d) {
    if (d != from) order.push_back(d);
  }
  order.insert(order.begin() + to, from);
  return Transposed(call, array, order);
}

// --- Scan ---

// What Scan walks along.
struct Scanned {
  std::vector<Array> inputs;   // steps first
  std::vector<int64_t> turns;  // 1: from the last step
  int64_t steps = 0;
};

StatusOr<Scanned> ReadScanned(Call& call, size_t states, size_t count) {
  Scanned scanned;
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ListFor(call, "scan_input_axes", count));
  SWIZZLE_ASSIGN_OR_RETURN(scanned.turns, ListFor(call, "scan_input_directions", count));
  for (size_t i = 0; i < count; ++i) {
    if (!call.Has(states + i) || call.In(states + i).IsSequence()) {
      return InvalidArgument("input ", states + i, " must be a tensor");
    }
    const Array& input = call.In(states + i);
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, NormalAxis(axes[i], input.rank()));
    SWIZZLE_ASSIGN_OR_RETURN(const Array first, WithAxisAt(call, input, axis, 0));
    if (i > 0 && first.shape[0] != scanned.steps) {
      return InvalidArgument("its inputs have ", scanned.steps, " and ", first.shape[0], " steps");
    }
    scanned.steps = first.shape[0];
    scanned.inputs.push_back(first);
  }
  return scanned;
}

StatusOr<Array> StepOf(Call& call, const Scanned& scanned, size_t i, int64_t turn) {
  const Array& input = scanned.inputs[i];
  const int64_t step = scanned.turns[i] != 0 ? scanned.steps - 1 - turn : turn;
  SWIZZLE_ASSIGN_OR_RETURN(Array slice, call.New(input.dtype, Shape(input.shape.begin() + 1, input.shape.end())));
  if (slice.bytes() > 0) {
    std::memcpy(slice.data.get(), input.data.get() + step * slice.bytes(), static_cast<size_t>(slice.bytes()));
  }
  return slice;
}

}  // namespace

StatusOr<Results> If(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const bool chosen, TruthOf(call.In(0)));
  SWIZZLE_ASSIGN_OR_RETURN(const auto body, call.BodyAttribute(chosen ? "then_branch" : "else_branch"));
  return call.Run(*body, {});
}

// The graph takes the turn's number, the condition and what it carries on; it gives the condition, what it carries on
// and what is to be put together.
StatusOr<Results> Loop(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto body, call.BodyAttribute("body"));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t turns, call.IntScalar(0, std::numeric_limits<int64_t>::max()));
  bool goes_on = true;
  if (call.Has(1)) {
    SWIZZLE_ASSIGN_OR_RETURN(goes_on, TruthOf(call.In(1)));
  }
  Results carried;
  for (size_t i = 2; i < OwnInputs(call, *body); ++i) {
    if (!call.Has(i)) return InvalidArgument("input ", i, " is left out");
    carried.push_back(call.In(i));
  }
  const std::vector<GraphOutput>& outputs = body->graph.outputs;
  if (outputs.size() < carried.size() + 1) {
    return InvalidArgument("its graph gives ", outputs.size(), " outputs, but carries on ", carried.size());
  }
  std::vector<Stack> stacks(outputs.size() - 1 - carried.size());
  for (int64_t turn = 0; goes_on && turn < turns; ++turn) {
    SWIZZLE_ASSIGN_OR_RETURN(Array number, call.New(DType::kInt64, {}));
    number.Mutable<int64_t>()[0] = turn;
    SWIZZLE_ASSIGN_OR_RETURN(const Array condition, Truth(call, goes_on));
    std::vector<Array> inputs = {number, condition};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<Array> results, call.Run(*body, inputs));
    SWIZZLE_ASSIGN_OR_RETURN(goes_on, TruthOf(results[0]));
    std::copy_n(results.begin() + 1, carried.size(), carried.begin());
    for (size_t i = 0; i < stacks.size(); ++i) {
      SWIZZLE_RETURN_IF_ERROR(stacks[i].Add(results[1 + carried.size() + i]));
    }
  }
  const size_t first = 1 + carried.size();
  for (size_t i = 0; i < stacks.size(); ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(carried.emplace_back(), stacks[i].Together(call, outputs[first + i]));
  }
  return carried;
}

// The graph takes its states and a step of each input; it gives its states and what is to be put together.
StatusOr<Results> Scan(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto body, call.BodyAttribute("body"));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t given, call.Int("num_scan_inputs", 0));
  const size_t own = OwnInputs(call, *body);
  if (given < 1 || static_cast<size_t>(given) > own) {
    return InvalidArgument("num_scan_inputs is ", given, " of ", own, " inputs");
  }
  const auto count = static_cast<size_t>(given), states = own - count;
  SWIZZLE_ASSIGN_OR_RETURN(const Scanned scanned, ReadScanned(call, states, count));
  Results carried;
  for (size_t i = 0; i < states; ++i) {
    if (!call.Has(i)) return InvalidArgument("input ", i, " is left out");
    carried.push_back(call.In(i));
  }
  const std::vector<GraphOutput>& outputs = body->graph.outputs;
  if (outputs.size() < states) return InvalidArgument("its graph gives ", outputs.size(), " outputs for ", states);
  std::vector<Stack> stacks(outputs.size() - states);
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ListFor(call, "scan_output_axes", stacks.size()));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> turned, ListFor(call, "scan_output_directions", stacks.size()));
  for (int64_t turn = 0; turn < scanned.steps; ++turn) {
    std::vector<Array> inputs = carried;
    for (size_t i = 0; i < count; ++i) {
      SWIZZLE_ASSIGN_OR_RETURN(inputs.emplace_back(), StepOf(call, scanned, i, turn));
    }
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<Array> results, call.Run(*body, inputs));
    std::copy_n(results.begin(), states, carried.begin());
    for (size_t i = 0; i < stacks.size(); ++i) SWIZZLE_RETURN_IF_ERROR(stacks[i].Add(results[states + i]));
  }
  for (size_t i = 0; i < stacks.size(); ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(const Array stack, stacks[i].Together(call, outputs[states + i], turned[i] != 0));
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, NormalAxis(axes[i], stack.rank()));
    SWIZZLE_ASSIGN_OR_RETURN(carried.emplace_back(), WithAxisAt(call, stack, 0, axis));
  }
  return carried;
}

}  // namespace swizzle::interpreter
