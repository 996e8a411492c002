// What LSTM, GRU and RNN share: their inputs, checked; the products of all steps' inputs, made at once; the walk over
// directions, steps, rows of the batch and units; their results. The operators themselves are in cells.cc. Products are
// dense, unless something else makes them (RecurrentProducts).
//
// Sequences that are over keep their state and give zeros; the reverse direction runs from the last step back, so that
// a shorter sequence starts at its own end. Single-owner; a run's parts write different elements.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_RECURRENT_RECURRENT_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_RECURRENT_RECURRENT_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "model_loader/interpreter/values/call.h"

namespace swizzle::interpreter {

// A function of a gate. alpha and beta are used where the function has them.
struct Activation {
  enum Kind {
    kRelu,
    kTanh,
    kSigmoid,
    kAffine,
    kLeakyRelu,
    kThresholdedRelu,
    kScaledTanh,
    kHardSigmoid,
    kElu,
    kSoftsign,
    kSoftplus
  } kind = kTanh;
  float alpha = 0.0f;
  float beta = 0.0f;

  // In place.
  void Apply(float* values, int64_t count) const;
};

// The node's, each direction's in turn, `absent` where it names none. INVALID_ARGUMENT for unknown ones or another
// number of them than `absent` has, once for each direction.
StatusOr<std::vector<Activation>> ReadActivations(const Node& node, int64_t directions,
                                                  const std::vector<Activation::Kind>& absent);

// Products of states with weights, of one run.
class StateProducts {
 public:
  virtual ~StateProducts() = default;
  // to [rows, gates of the phase * H] = from [rows, H] times weights. No two calls with one task overlap.
  virtual void Multiply(int64_t task, int phase, int64_t direction, int64_t rows, const float* from, float* to) = 0;
};

// What multiplies in place of the node's own weights (model_loader/regions/recurrence.h), which are then no inputs of
// the call. Immutable, thread-safe.
class RecurrentProducts {
 public:
  virtual ~RecurrentProducts() = default;
  virtual int64_t inputs() const = 0;  // I: weights are [D,G*H,I] and [D,G*H,H]
  virtual int64_t hidden() const = 0;  // H
  // [..,D*G*H], of x [..,I]: the biases that ReadRecurrentNet sums up are in it.
  virtual StatusOr<Array> OfInputs(Call& call, const Array& x) const = 0;
  // Whether all threads of the call's stream make a product of states together, rather than the calling one alone.
  virtual bool by_all_threads() const = 0;
  // For so many tasks of at most `rows` each. What fails then is kept by the call's stream.
  virtual StatusOr<std::unique_ptr<StateProducts>> OfStates(Call& call, int64_t tasks, int64_t rows) const = 0;
};

// A call of LSTM, GRU or RNN, by these products.
StatusOr<std::vector<Array>> RunRecurrent(Call& call, const RecurrentProducts& products);

// The gates whose products of states are made together, phase after phase. Of LSTM, RNN, and GRUs, these by whether
// they reset products (`linear_before_reset`).
std::vector<int64_t> RecurrentPhases(const std::string& op, bool resets_products);

// A part of a step that one task computes.
struct StepPart {
  int64_t task = 0;
  int64_t direction = 0;
  int64_t turn = 0;  // how many steps were before
  int64_t first_row = 0, last_row = 0;
  int64_t first_unit = 0, last_unit = 0;

  int64_t units() const { return last_unit - first_unit; }
};

// T steps of N rows, D directions, G gates of H units. All arrays are FP32.
struct RecurrentNet {
  int64_t steps = 0, batch = 0, hidden = 0, directions = 1, gates = 1;
  bool reverse = false;      // the one direction that there is runs backwards
  bool batch_first = false;  // inputs and results have the batch before all else
  float clip = 0.0f;         // of gates, before their activations
  std::vector<Activation> activations;
  std::vector<int64_t> lengths;                // by row of the batch
  std::vector<int64_t> phases;                 // RecurrentPhases
  Array recurrent;                             // weights [D,G*H,H]; none where others multiply
  Array bias;                                  // [D,2*G*H]: of inputs, then of states
  Array sums;                                  // what gates sum up, rows of G*H as `strides` say
  Array products;                              // [D,N,G*H]: states times weights, phase by phase
  Array states;                                // [D,2,N,H]: before a step and after it, by turns
  Array y;                                     // [T,D,N,H]
  const RecurrentProducts* planned = nullptr;  // null: dense products
  std::unique_ptr<StateProducts> of_states;    // where there are such
  struct Strides {
    int64_t direction = 0, time = 0, row = 0;
  };
  Strides strides;

  int64_t width() const { return gates * hidden; }
  bool IsReverse(int64_t direction) const { return reverse || direction == 1; }
  int64_t Time(const StepPart& part) const { return IsReverse(part.direction) ? steps - 1 - part.turn : part.turn; }
  const Activation& ActivationOf(int64_t direction, size_t i) const {
    return activations[static_cast<size_t>(direction) * (activations.size() / static_cast<size_t>(directions)) + i];
  }
  // Rows of all gates' sums, of a gate's products, and of states; those are `width()` or `hidden` long.
  float* Sums(const StepPart& part, int64_t row);
  float* Products(const StepPart& part, int64_t row, int64_t gate);
  const float* Before(const StepPart& part, int64_t row) const;
  float* After(const StepPart& part, int64_t row);
  bool IsOver(const StepPart& part, int64_t row) const { return Time(part) >= lengths[static_cast<size_t>(row)]; }
};

// Inputs 0 to 5, and the attributes but those of one operator alone. The biases of inputs and, but for those of the
// last `apart` gates, of states are in the sums. `products`: null where they are dense.
StatusOr<RecurrentNet> ReadRecurrentNet(Call& call, std::vector<int64_t> phases,
                                        const std::vector<Activation::Kind>& activations,
                                        const RecurrentProducts* products, int64_t apart = 0);
// The biases that stand in the sums from the start, of one direction, of `bias` [D,2*G*H], which may have no data.
std::vector<float> SummedBias(const Array& bias, int64_t gates, int64_t hidden, int64_t direction, int64_t apart);

// Input i, [D,N,H] or, with the batch first, [N,D,H], as [D,N,H]; zeros where it is left out. The caller's own.
StatusOr<Array> StateInput(Call& call, const RecurrentNet& net, size_t i);

// The products of the phase's gates for the part = rows of `from`, [N,H], times weights.
void MultiplyStates(Call& call, RecurrentNet& net, const StepPart& part, const float* from, int phase);

// Bounds values by the net's clip, then applies the activation.
void Activate(const RecurrentNet& net, const Activation& activation, float* values, int64_t count);

// Where a row's sequence is over: state and result of the part.
void PassState(RecurrentNet& net, const StepPart& part, int64_t row);
// Makes what After holds the step's result.
void KeepResult(RecurrentNet& net, const StepPart& part, int64_t row);

// Y and Y_h, and, where there are cells, [D,N,H], Y_c; of the type of input 0.
StatusOr<std::vector<Array>> RecurrentResults(Call& call, const RecurrentNet& net, const Array* cells);

// Calls multiply(phase, part), then compute(phase, part), for all parts of all steps, phase after phase: directions and
// rows by themselves where there are enough of them for all threads, which then never wait, else the units of each
// phase together. The call's gate is asked between steps, or between some where threads wait for nothing else.
class StepWalk {
 public:
  StepWalk(Call& call, const RecurrentNet& net);

  // Parts that may be computed at the same time: more than their tasks there are never.
  int64_t tasks() const { return net_.directions * tasks_; }
  // Rows of the batch that a part has at most.
  int64_t rows() const { return by_units_ ? net_.batch : CeilDiv(net_.batch, tasks_); }

  template <typename Multiply, typename Compute>
  void Run(const Multiply& multiply, const Compute& compute) const {
    const int phases = static_cast<int>(net_.phases.size());
    for (int64_t turn = 0; !by_units_ && turn < net_.steps; turn += at_once_) {
      stream_.Keep(PassGate(gate_, stream_));
      const auto run = [&, end = std::min(turn + at_once_, net_.steps)](int64_t, int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
          StepPart part = PartOf(i);
          for (part.turn = turn; part.turn < end; ++part.turn) {
            for (int phase = 0; phase < phases; ++phase) {
              multiply(phase, part);
              compute(phase, part);
            }
          }
        }
      };
      stream_.ParallelRanges(tasks(), run, alone_ ? std::max<int64_t>(tasks(), 1) : 1);
    }
    for (int64_t turn = 0; by_units_ && turn < net_.steps; ++turn) {
      stream_.Keep(PassGate(gate_, stream_));
      for (int phase = 0; phase < phases; ++phase) {
        for (int64_t direction = 0; apart_ && direction < net_.directions; ++direction) {
          multiply(phase, StepPart{0, direction, turn, 0, net_.batch, 0, net_.hidden});
        }
        stream_.ParallelFor(tasks(), [&](int64_t i) {
          StepPart part = PartOf(i);
          part.turn = turn;
          if (!apart_) multiply(phase, part);
          compute(phase, part);
        });
      }
    }
  }

 private:
  StepPart PartOf(int64_t i) const {
    const auto [direction, task] = std::pair(i / tasks_, i % tasks_);
    if (by_units_) {
      return {i, direction, 0, 0, net_.batch, net_.hidden * task / tasks_, net_.hidden * (task + 1) / tasks_};
    }
    return {i, direction, 0, net_.batch * task / tasks_, net_.batch * (task + 1) / tasks_, 0, net_.hidden};
  }

  const RecurrentNet& net_;
  cpu::CpuStream& stream_;
  StepGate* const gate_;  // null: none
  bool by_units_ = false;
  bool alone_ = false;   // one thread is done with all steps before it has woken others
  bool apart_ = false;   // all threads make each product, before units are shared among them
  int64_t tasks_ = 1;    // of a direction
  int64_t at_once_ = 1;  // steps, where threads wait for nothing else than the gate
};

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_RECURRENT_RECURRENT_H_
