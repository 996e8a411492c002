// Runs any ONNX graph of supported operators, node by node, shapes being found as it goes: what executes models that
// the optimised plan can't take whole. Parts of it may be planned (model_loader/regions).
//
// A Program is immutable and thread-safe; a run is single-owner and frees each value after its last reader. Weights are
// held once, shared by all runs. What no part computes is slower than a plan: nothing is fused, nothing is sparse,
// every value is allocated.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_RUN_EXECUTOR_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_RUN_EXECUTOR_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend/backend.h"
#include "model_loader/graph/graph.h"
#include "model_loader/interpreter/operators/functions.h"
#include "model_loader/interpreter/run/refusal.h"
#include "model_loader/interpreter/run/steady_values.h"
#include "model_loader/interpreter/values/array.h"
#include "model_loader/interpreter/values/call.h"
#include "model_loader/plan/run/step_gate.h"

namespace swizzle::interpreter {

// An input or output as the model declares it. Outputs may be declared with no type or shape, inputs with no shape;
// free dimensions are -1.
struct Port {
  std::string name;
  std::optional<DType> dtype;
  std::optional<Shape> shape;
  std::vector<std::string> axes = {};  // what the model calls an input's dimensions; where it has names, one for each
};

// Sees the inputs of a node before it runs, and may put others of the same type and shape in their place. An error ends
// the run.
using NodeWatch = std::function<Status(const Node& node, std::span<Array> inputs, Memory& memory, Stream& stream)>;

// Several nodes that something else computes than their functions. Immutable and thread-safe.
class Part {
 public:
  virtual ~Part() = default;
  // The values of PartOfProgram::outputs, of its inputs; nothing where it does not take inputs of these shapes. `gate`,
  // which may be null, is asked between steps.
  virtual StatusOr<std::optional<Results>> Run(std::span<const Array> inputs, Memory& memory, Stream& stream,
                                               StepGate* gate) const = 0;
  // The same where inputs and results lie on a device; nothing where it doesn't run there.
  virtual StatusOr<std::optional<Results>> RunOnDevice(std::span<const Array>, Device&) const { return std::nullopt; }
  // Another one once it runs otherwise than before: what was recorded of it then goes on as it was.
  virtual uint64_t version() const { return 0; }
};

struct PartOfProgram {
  std::vector<int> nodes;  // of the graph, in order; nothing that leads from one to another leaves them
  // Values; constants only where the part reads them as inputs. Some inputs may be none of what its nodes read, but
  // what that was made of.
  std::vector<int> inputs, outputs;
  std::shared_ptr<const Part> part;
  bool takes_all = false;  // whatever comes: its nodes need no constants
};

// How long a node took, or a part's nodes together.
struct TurnTime {
  int first_node = 0;
  const Part* part = nullptr;  // null: none
  absl::Duration time;
};

// What runs one after another have in common.
struct RunSupplies {
  std::shared_ptr<BlockStore> blocks = nullptr;  // where they have their memory from; null: each has its own
  StepGate* gate = nullptr;                      // asked before each node, and by parts; null: it never waits
  std::vector<TurnTime>* times = nullptr;        // each run adds its own; null: nobody wants to know
  // Whether what no tensors that requests bring would mend is FAILED_PRECONDITION instead of INVALID_ARGUMENT.
  bool blames = false;
  // By node: whether nobody looks at the elements of its results, which may then be 0 instead; null: of none.
  const std::vector<bool>* without_elements = nullptr;
};

// What is known of a program when it is loaded.
struct Division {
  std::vector<PartOfProgram> parts;  // no node in two
  std::map<int, Array> known;        // values that are the same in each run; their nodes run no more
  std::vector<int> steady = {};  // nodes that make the same of all inputs of the same shapes: they run once for each
};

class Program {
 public:
  // Takes a graph that the reader has read with the options of interpreter/run/load.h. UNIMPLEMENTED, naming the node,
  // if an operator does not exist in the graph's opset.
  static StatusOr<std::shared_ptr<const Program>> Make(Graph graph);

  // A program that does the same, and whose parts run as one each; null where parts wait for each other. It has no
  // constants that only parts need which take all.
  std::shared_ptr<const Program> Divided(Division division) const;
  // The same program with these in place of outputs(), as many and of the same names. REQUIRES: it has no parts.
  std::shared_ptr<const Program> WithOutputs(std::vector<Port> outputs) const;
  // Likewise for inputs(), of the same types; shapes that say more than before are all that it then takes.
  std::shared_ptr<const Program> WithInputs(std::vector<Port> inputs) const;
  // The same program that knows what share of its values, by name, is zero on calibration data.
  std::shared_ptr<const Program> WithZeros(const std::map<std::string, InputZeros>& zeros) const;

  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }
  // Without the constants' elements.
  const Graph& graph() const { return graph_; }
  // Whether requests may be put into one batch; what stands against it (batch_proof.h).
  bool rows_are_independent() const { return !batch_obstacle_; }
  const std::optional<std::string>& batch_obstacle() const { return batch_obstacle_; }
  // Bytes of all constants, those of graphs within nodes included.
  int64_t weight_bytes() const;
  // The constants' elements, by value.
  const std::vector<std::pair<int, Array>>& constants() const { return constants_; }
  // A node, or a part's.
  struct Turn {
    std::vector<int> nodes;
    const PartOfProgram* part = nullptr;  // null: none
    bool is_steady = false;               // a node of Division::steady
  };
  // In the order in which they run.
  std::span<const Turn> turns() const { return turns_; }
  // Values that nothing reads after this turn.
  std::span<const int> released_after(size_t turn) const { return released_[turn]; }

  // Nodes that no part computes, and that run each time.
  size_t interpreted_nodes() const;
  // Operators with their number of such nodes, by name: "Add:3,Conv:12".
  std::string OperatorCounts() const;

  // The outputs in order. inputs[i] is for inputs()[i]; its elements are copied. INVALID_ARGUMENT, naming the input, if
  // one is not as declared, or, naming the node, where an operator refuses (see RunSupplies::blames);
  // RESOURCE_EXHAUSTED beyond a limit.
  // REQUIRES: as many inputs as the program has; a stream of the CPU backend.
  StatusOr<std::vector<Array>> Run(std::span<const TensorView> inputs, Stream& stream, const Limits& limits = {},
                                   const NodeWatch& watch = nullptr, const RunSupplies& supplies = {}) const;

  // For whoever runs the turns itself (model_loader/offload): a node's results, on the host, which of its inputs need
  // not be made, and whether input i is as declared. Errors are those of Run.
  // REQUIRES: inputs that the node takes.
  StatusOr<Results> Compute(size_t node, const Inputs& inputs, Memory& memory, Stream& stream, StepGate* gate = nullptr,
                            bool blames = false, bool wants_elements = true) const;
  bool TakesMoved(size_t node, size_t input) const { return Takes(nodes_[node].function->moved, input); }
  Status CheckInput(size_t i, const TensorView& view) const;

 private:
  Program(const Program&) = default;
  Program() : weights_(Memory::New({.max_array_bytes = int64_t{1} << 31, .max_live_bytes = int64_t{1} << 36})) {}

  Status TakeConstants();
  // Programs of the graphs within nodes, which keep no elements themselves.
  Status TakeBodies();
  // What Compute says of the node, as RunSupplies::blames has it (refusal.h); found out once for each node.
  Status Blamed(size_t node, const Inputs& inputs, Memory& memory, Stream& stream, const Status& said) const;
  struct RunState;

  // Whether the turns of nodes and parts_ can be ordered.
  bool MakeTurns(const std::map<int, Array>& known);
  void FindLastReaders();
  void FindSteady(const std::vector<int>& nodes);
  StatusOr<Array> TakeInput(Memory& memory, size_t i, const TensorView& view) const;
  // REQUIRES: a node makes it.
  const Node& MakerOf(int value) const;
  // Makes those that are not made yet. Errors name the nodes that ask for it.
  Status Settle(std::span<const int> values, RunState& state) const;
  Status RunNode(size_t index, RunState& state) const;
  // Whether the part took its inputs. REQUIRES: they are made.
  StatusOr<bool> RunPart(const PartOfProgram& part, RunState& state) const;
  Status RunTurn(const Turn& turn, RunState& state) const;
  void NoteTimes(const Turn& turn, absl::Duration time, RunState& state) const;
  // Of what was settled since it was last called. How long that took.
  absl::Duration NoteSettled(RunState& state) const;
  // The outputs, once the inputs are there.
  StatusOr<std::vector<Array>> RunTurns(RunState& state) const;
  // What steady nodes made in an earlier run, where there was one; else this run is to collect it.
  void TakeSteady(std::span<const TensorView> inputs, RunState& state) const;

  Graph graph_;
  std::optional<std::string> batch_obstacle_;
  std::vector<Port> inputs_;
  std::vector<Port> outputs_;
  std::shared_ptr<Memory> weights_;
  std::vector<std::pair<int, Array>> constants_;  // value and its elements
  // What runs a node, looked up once.
  struct NodeCode {
    const OperatorFunction* function = nullptr;
    bool takes_any_value = false;  // strings and sequences, too
    bool has_bodies = false;
  };
  std::vector<NodeCode> nodes_;
  std::shared_ptr<Verdicts> verdicts_;  // of nodes that refused their inputs
  std::map<const Body*, std::shared_ptr<const Program>> bodies_;
  std::vector<PartOfProgram> parts_;
  std::vector<Turn> turns_;
  std::vector<std::vector<int>> released_;  // by turn: values that nothing reads after it
  std::vector<std::vector<int>> kept_;      // by turn: of a steady one, values that others read
  std::shared_ptr<SteadyValues> steady_;    // null: none is
};

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_RUN_EXECUTOR_H_
