// What LSTM, GRU and RNN share: their inputs, checked; the products of all steps' inputs, made at once; the walk over
// directions, steps, rows of the batch and units; their results. The operators themselves are in cells.cc.
//
// Sequences that are over keep their state and give zeros; the reverse direction runs from the last step back, so that
// a shorter sequence starts at its own end. Single-owner; a run's parts write different elements.
#ifndef SWIZZLE_MODEL_LOADER_FALLBACK_RECURRENT_H_
#define SWIZZLE_MODEL_LOADER_FALLBACK_RECURRENT_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "model_loader/fallback/call.h"

namespace swizzle::fallback {

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

// A part of a step that one task computes.
struct StepPart {
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
  std::vector<int64_t> lengths;  // by row of the batch
  Array recurrent;               // weights [D,G*H,H]
  Array bias;                    // [D,2*G*H]: of inputs, then of states
  Array sums;                    // [D,T,N,G*H]: what gates sum up
  Array products;                // [D,N,G*H]: states times weights
  Array states;                  // [D,2,N,H]: before a step and after it, by turns
  Array y;                       // [T,D,N,H]

  int64_t width() const { return gates * hidden; }
  bool IsReverse(int64_t direction) const { return reverse || direction == 1; }
  int64_t Time(const StepPart& part) const { return IsReverse(part.direction) ? steps - 1 - part.turn : part.turn; }
  const Activation& ActivationOf(int64_t direction, size_t i) const {
    return activations[static_cast<size_t>(direction) * (activations.size() / static_cast<size_t>(directions)) + i];
  }
  // Rows of a gate's sums, and of products, and of states; those are `width()` or `hidden` long.
  float* Sums(const StepPart& part, int64_t row);
  float* Products(const StepPart& part, int64_t row);
  const float* Before(const StepPart& part, int64_t row) const;
  float* After(const StepPart& part, int64_t row);
  bool IsOver(const StepPart& part, int64_t row) const { return Time(part) >= lengths[static_cast<size_t>(row)]; }
};

// Inputs 0 to 5, and the attributes but those of one operator alone. The biases of inputs and, but for those of the
// last `apart` gates, of states are in the sums.
StatusOr<RecurrentNet> ReadRecurrentNet(Call& call, int64_t gates, const std::vector<Activation::Kind>& activations,
                                        int64_t apart = 0);

// Input i, [D,N,H] or, with the batch first, [N,D,H], as [D,N,H]; zeros where it is left out. The caller's own.
StatusOr<Array> StateInput(Call& call, const RecurrentNet& net, size_t i);

// products[gates first to last) of the part = rows of `from`, [N,H], times weights.
void MultiplyStates(Call& call, RecurrentNet& net, const StepPart& part, const float* from, int64_t first_gate,
                    int64_t last_gate);

// Bounds values by the net's clip, then applies the activation.
void Activate(const RecurrentNet& net, const Activation& activation, float* values, int64_t count);

// Where a row's sequence is over: state and result of the part.
void PassState(RecurrentNet& net, const StepPart& part, int64_t row);
// Makes what After holds the step's result.
void KeepResult(RecurrentNet& net, const StepPart& part, int64_t row);

// Y and Y_h, and, where there are cells, [D,N,H], Y_c; of the type of input 0.
StatusOr<std::vector<Array>> RecurrentResults(Call& call, const RecurrentNet& net, const Array* cells);

// Calls run(phase, part) for all parts of all steps, phase after phase: directions and rows by themselves where there
// are enough of them for all threads, which then never wait, else the units of each phase together.
template <typename Run>
void ForEachStep(Call& call, const RecurrentNet& net, int phases, const Run& run) {
  constexpr int64_t kWorthAWait = 1 << 16;  // products a step
  constexpr int64_t kUnits = 16;            // the fewest that a task has
  cpu::CpuStream& stream = cpu::CpuStream::From(call.stream());
  const int64_t a_direction = std::max<int64_t>(stream.threads() / net.directions, 1);
  if (net.directions * net.batch >= stream.threads() || net.batch * net.width() * net.hidden < kWorthAWait) {
    const int64_t tasks = std::clamp<int64_t>(net.batch, 1, a_direction);
    stream.ParallelFor(net.directions * tasks, [&](int64_t i) {
      const int64_t task = i % tasks;
      StepPart part{i / tasks, 0, net.batch * task / tasks, net.batch * (task + 1) / tasks, 0, net.hidden};
      for (; part.turn < net.steps; ++part.turn) {
        for (int phase = 0; phase < phases; ++phase) run(phase, part);
      }
    });
    return;
  }
  const int64_t tasks = std::clamp<int64_t>(net.hidden / kUnits, 1, a_direction);
  for (int64_t turn = 0; turn < net.steps; ++turn) {
    for (int phase = 0; phase < phases; ++phase) {
      stream.ParallelFor(net.directions * tasks, [&](int64_t i) {
        const int64_t task = i % tasks;
        run(phase, StepPart{i / tasks, turn, 0, net.batch, net.hidden * task / tasks, net.hidden * (task + 1) / tasks});
      });
    }
  }
}

}  // namespace swizzle::fallback

#endif  // SWIZZLE_MODEL_LOADER_FALLBACK_RECURRENT_H_
