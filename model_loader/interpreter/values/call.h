// One call of an operator: its node, its inputs, and where its results come from.
//
// Lives while the operator runs; single-owner. The graph verifier has checked the number of inputs and outputs and the
// attributes' names, nothing else: operators check types, shapes and attribute values, and say what is wrong without
// naming the node, which the executor adds.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_CALL_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_CALL_H_

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend/backend.h"
#include "model_loader/graph/graph.h"
#include "model_loader/interpreter/values/array.h"
#include "model_loader/interpreter/values/device.h"
#include "model_loader/plan/run/step_gate.h"
#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/strides.h"

namespace swizzle::interpreter {

// A call's inputs, which lie one after another or wherever they were made. A view.
class Inputs {
 public:
  template <std::convertible_to<std::span<const Array>> Arrays>
  Inputs(const Arrays& arrays) : arrays_(arrays) {}                  // NOLINT: it views them
  Inputs(std::span<const Array* const> places) : places_(places) {}  // NOLINT

  size_t size() const { return arrays_.size() + places_.size(); }
  const Array& operator[](size_t i) const { return places_.empty() ? arrays_[i] : *places_[i]; }

 private:
  std::span<const Array> arrays_;
  std::span<const Array* const> places_;
};

// Runs a graph within a node: its outputs, of all its inputs.
using RunBody = std::function<StatusOr<std::vector<Array>>(const Body& body, const Inputs& inputs)>;

class Call {
 public:
  // All must outlive the call. inputs[i] is the node's, its data null where it is left out. run_body: null where the
  // node has no graphs within. device: where the call runs; its memory and stream are then the device's. Null: on the
  // host.
  Call(const Node& node, int64_t opset, const Inputs& inputs, Memory& memory, Stream& stream,
       const RunBody* run_body = nullptr, Device* device = nullptr)
      : node_(node),
        opset_(opset),
        inputs_(inputs),
        memory_(memory),
        stream_(stream),
        run_body_(run_body),
        device_(device) {}

  const Node& node() const { return node_; }
  int64_t opset() const { return opset_; }
  Stream& stream() { return stream_; }
  Memory& memory() { return memory_; }
  Device* device() { return device_; }
  bool on_device() const { return device_ != nullptr; }
  // Asked between an operator's steps, where it has such; null: it never waits.
  StepGate* gate() { return gate_; }
  void set_gate(StepGate* gate) { gate_ = gate; }
  // Whether somebody looks at the elements of results. Else an operator that has checked all that it refuses may leave
  // those as New makes them then, 0.
  bool wants_elements() const { return wants_elements_; }
  void set_wants_elements(bool wants) { wants_elements_ = wants; }

  size_t input_count() const { return inputs_.size(); }
  bool Has(size_t i) const { return i < inputs_.size() && !inputs_[i].IsLeftOut(); }
  // REQUIRES: Has(i).
  const Array& In(size_t i) const { return inputs_[i]; }
  bool WantsOutput(size_t i) const { return i < node_.outputs.size() && node_.outputs[i] != kNoValue; }

  StatusOr<int64_t> Int(const std::string& name, int64_t absent) const { return IntAttribute(node_, name, absent); }
  StatusOr<float> Float(const std::string& name, float absent) const { return FloatAttribute(node_, name, absent); }
  StatusOr<std::string> String(const std::string& name, const std::string& absent) const {
    return StringAttribute(node_, name, absent);
  }
  StatusOr<std::vector<int64_t>> Ints(const std::string& name, std::vector<int64_t> absent = {}) const {
    return IntsAttribute(node_, name, std::move(absent));
  }
  bool HasAttribute(const std::string& name) const { return node_.attributes.contains(name); }

  // The graph that is the attribute. INVALID_ARGUMENT where there is none.
  StatusOr<std::shared_ptr<const Body>> BodyAttribute(const std::string& name) const;
  // Its outputs, of `inputs` and what it captures. INVALID_ARGUMENT unless it takes so many.
  StatusOr<std::vector<Array>> Run(const Body& body, std::span<const Array> inputs);

  // An array to be filled.
  StatusOr<Array> New(DType dtype, Shape shape);
  // The same on the host, wherever the call runs, and then where it runs.
  StatusOr<Array> NewTable(DType dtype, Shape shape) { return host_memory().Allocate(dtype, std::move(shape)); }
  Memory& host_memory() { return device_ == nullptr ? memory_ : device_->host(); }
  StatusOr<Array> Placed(const Array& table) { return device_ == nullptr ? table : device_->Upload(table); }
  StatusOr<Array> As(const Array& array, DType dtype) { return Convert(memory_, array, dtype); }
  StatusOr<Array> As(Array&& array, DType dtype) {
    if (array.dtype == dtype) return std::move(array);
    return Convert(memory_, array, dtype);
  }
  // Input i as FP32.
  StatusOr<Array> Floats(size_t i) { return As(inputs_[i], DType::kFloat32); }
  // Input i as elements of a type: itself or, where it has others, `made`, which is then its own.
  StatusOr<const Array*> InAs(size_t i, DType dtype, Array& made) {
    if (inputs_[i].dtype == dtype) return &inputs_[i];
    SWIZZLE_ASSIGN_OR_RETURN(made, As(inputs_[i], dtype));
    return &made;
  }

  // The elements of a list or scalar of integers: axes, shapes, repeats. INVALID_ARGUMENT for other types, rank above
  // 1, or more than kMaxListLength elements.
  StatusOr<std::vector<int64_t>> List(size_t i) const;
  // The one element of input i, `absent` where it is left out.
  StatusOr<int64_t> IntScalar(size_t i, int64_t absent) const;
  StatusOr<double> RealScalar(size_t i, double absent);

  // Axes from input i or, where that is left out, from the attribute: counted from the front, ascending. Nothing if
  // there are neither.
  StatusOr<std::optional<std::vector<int64_t>>> Axes(size_t i, int64_t rank) const;
  // The attribute "axis" counted from the front, below `bound`.
  StatusOr<int64_t> AxisAttribute(int64_t absent, int64_t rank) const;

 private:
  const Node& node_;
  const int64_t opset_;
  const Inputs inputs_;
  Memory& memory_;
  Stream& stream_;
  const RunBody* run_body_;
  Device* const device_;
  StepGate* gate_ = nullptr;
  bool wants_elements_ = true;
};

inline constexpr int64_t kMaxListLength = 1 << 16;

// A list of numbers or of strings, empty where the node has none.
StatusOr<std::vector<float>> FloatsAttribute(const Node& node, const std::string& name);
StatusOr<std::vector<std::string>> StringsAttribute(const Node& node, const std::string& name);

// INVALID_ARGUMENT unless both have the same type.
Status CheckSameType(const Array& a, const Array& b);

// INVALID_ARGUMENT unless the array's rank is at least `rank`.
Status CheckRank(const Array& array, int64_t rank);

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_CALL_H_
