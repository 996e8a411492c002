// Recurrent networks: LSTM, GRU and RNN, by the equations that ONNX gives for each.
#include <algorithm>

#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/operators/recurrent/recurrent.h"

namespace swizzle::interpreter {
namespace {

// sums[gates of the part] += products.
void AddProducts(RecurrentNet& net, const StepPart& part, int64_t row, int64_t first_gate, int64_t last_gate) {
  for (int64_t gate = first_gate; gate < last_gate; ++gate) {
    float* const sums = net.Sums(part, row) + gate * net.hidden;
    const float* const products = net.Products(part, row, gate);
    for (int64_t u = part.first_unit; u < part.last_unit; ++u) sums[u] += products[u];
  }
}

// What an LSTM has besides.
struct LstmCells {
  Array cells;           // [D,N,H], of each row's last step
  Array peepholes;       // [D,3*H], of the gates i, o and f; none: data is null
  bool couples = false;  // f is 1 - i
};

void AddPeephole(const LstmCells& lstm, const RecurrentNet& net, const StepPart& part, int64_t which,
                 const float* cells, float* sums) {
  if (lstm.peepholes.data == nullptr) return;
  const float* weights = lstm.peepholes.As<float>().data() + (part.direction * 3 + which) * net.hidden;
  for (int64_t u = part.first_unit; u < part.last_unit; ++u) sums[u] += weights[u] * cells[u];
}

// The gates are i, o, f and c.
void LstmRow(RecurrentNet& net, LstmCells& lstm, const StepPart& part, int64_t row) {
  float* const i = net.Sums(part, row);
  float* const o = i + net.hidden;
  float* const f = o + net.hidden;
  float* const c = f + net.hidden;
  float* const cells = lstm.cells.Mutable<float>().data() + (part.direction * net.batch + row) * net.hidden;
  float* const after = net.After(part, row);
  const int64_t first = part.first_unit, last = part.last_unit, units = part.units();
  AddProducts(net, part, row, 0, 4);
  AddPeephole(lstm, net, part, 0, cells, i);
  Activate(net, net.ActivationOf(part.direction, 0), i + first, units);
  if (lstm.couples) {
    for (int64_t u = first; u < last; ++u) f[u] = 1.0f - i[u];
  } else {
    AddPeephole(lstm, net, part, 2, cells, f);
    Activate(net, net.ActivationOf(part.direction, 0), f + first, units);
  }
  Activate(net, net.ActivationOf(part.direction, 1), c + first, units);
  for (int64_t u = first; u < last; ++u) after[u] = cells[u] = f[u] * cells[u] + i[u] * c[u];
  AddPeephole(lstm, net, part, 1, cells, o);
  Activate(net, net.ActivationOf(part.direction, 0), o + first, units);
  net.ActivationOf(part.direction, 2).Apply(after + first, units);
  for (int64_t u = first; u < last; ++u) after[u] *= o[u];
}

// The gates z and r of a GRU.
void GruGates(RecurrentNet& net, const StepPart& part, int64_t row) {
  AddProducts(net, part, row, 0, 2);
  for (int64_t gate = 0; gate < 2; ++gate) {
    float* const sums = net.Sums(part, row) + gate * net.hidden;
    Activate(net, net.ActivationOf(part.direction, 0), sums + part.first_unit, part.units());
  }
}

// The state of a GRU after a step, once its gates z and h are summed up.
void GruState(RecurrentNet& net, const StepPart& part, int64_t row) {
  const float* const z = net.Sums(part, row);
  float* const h = net.Sums(part, row) + 2 * net.hidden;
  const float* const before = net.Before(part, row);
  float* const after = net.After(part, row);
  Activate(net, net.ActivationOf(part.direction, 1), h + part.first_unit, part.units());
  for (int64_t u = part.first_unit; u < part.last_unit; ++u) after[u] = (1.0f - z[u]) * h[u] + z[u] * before[u];
}

// Of a GRU that resets the state before its products: `resets` [D,N,H] is what the second phase multiplies.
void GruRow(RecurrentNet& net, Array& resets, int phase, const StepPart& part, int64_t row) {
  if (phase == 1) {
    AddProducts(net, part, row, 2, 3);
    return GruState(net, part, row);
  }
  GruGates(net, part, row);
  const float* const r = net.Sums(part, row) + net.hidden;
  const float* const before = net.Before(part, row);
  float* const reset = resets.Mutable<float>().data() + (part.direction * net.batch + row) * net.hidden;
  for (int64_t u = part.first_unit; u < part.last_unit; ++u) reset[u] = r[u] * before[u];
}

// Of a GRU that resets the products, `linear_before_reset`.
void GruRowResetLast(RecurrentNet& net, const StepPart& part, int64_t row) {
  GruGates(net, part, row);
  const float* const r = net.Sums(part, row) + net.hidden;
  float* const h = net.Sums(part, row) + 2 * net.hidden;
  const float* const products = net.Products(part, row, 2);
  const float* bias = nullptr;
  if (net.bias.data != nullptr) bias = net.bias.As<float>().data() + (part.direction * 2 * 3 + 3 + 2) * net.hidden;
  for (int64_t u = part.first_unit; u < part.last_unit; ++u) {
    h[u] += r[u] * (products[u] + (bias != nullptr ? bias[u] : 0.0f));
  }
  GruState(net, part, row);
}

// Calls compute(row) for the part's rows that are not over, and keeps what they give where the step ends.
template <typename Compute>
void ComputeRows(RecurrentNet& net, const StepPart& part, bool ends, const Compute& compute) {
  for (int64_t row = part.first_row; row < part.last_row; ++row) {
    if (net.IsOver(part, row)) {
      if (ends) PassState(net, part, row);
      continue;
    }
    compute(row);
    if (ends) KeepResult(net, part, row);
  }
}

StatusOr<Results> RunLstm(Call& call, const RecurrentProducts* products) {
  using A = Activation;
  SWIZZLE_ASSIGN_OR_RETURN(RecurrentNet net, ReadRecurrentNet(call, RecurrentPhases("LSTM", false),
                                                              {A::kSigmoid, A::kTanh, A::kTanh}, products));
  LstmCells lstm;
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t couples, call.Int("input_forget", 0));
  lstm.couples = couples != 0;
  SWIZZLE_ASSIGN_OR_RETURN(lstm.cells, StateInput(call, net, 6));
  if (call.Has(7)) {
    SWIZZLE_ASSIGN_OR_RETURN(lstm.peepholes, call.Floats(7));
    if (lstm.peepholes.shape != Shape{net.directions, 3 * net.hidden}) {
      return InvalidArgument("input 7 has shape ", ShapeText(lstm.peepholes.shape), " instead of ",
                             ShapeText({net.directions, 3 * net.hidden}));
    }
  }
  StepWalk(call, net).Run(
      [&](int phase, const StepPart& part) { MultiplyStates(call, net, part, net.Before(part, 0), phase); },
      [&](int, const StepPart& part) {
        ComputeRows(net, part, /*ends=*/true, [&](int64_t row) { LstmRow(net, lstm, part, row); });
      });
  return RecurrentResults(call, net, &lstm.cells);
}

StatusOr<Results> RunGru(Call& call, const RecurrentProducts* products) {
  using A = Activation;
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t reset_last, call.Int("linear_before_reset", 0));
  SWIZZLE_ASSIGN_OR_RETURN(RecurrentNet net, ReadRecurrentNet(call, RecurrentPhases("GRU", reset_last != 0),
                                                              {A::kSigmoid, A::kTanh}, products, reset_last != 0));
  const StepWalk walk(call, net);
  if (reset_last != 0) {
    walk.Run([&](int phase, const StepPart& part) { MultiplyStates(call, net, part, net.Before(part, 0), phase); },
             [&](int, const StepPart& part) {
               ComputeRows(net, part, /*ends=*/true, [&](int64_t row) { GruRowResetLast(net, part, row); });
             });
    return RecurrentResults(call, net, nullptr);
  }
  SWIZZLE_ASSIGN_OR_RETURN(Array resets, call.New(DType::kFloat32, {net.directions, net.batch, net.hidden}));
  std::ranges::fill(resets.Mutable<float>(), 0.0f);
  walk.Run(
      [&](int phase, const StepPart& part) {
        const float* const reset = resets.As<float>().data() + part.direction * net.batch * net.hidden;
        MultiplyStates(call, net, part, phase == 0 ? net.Before(part, 0) : reset, phase);
      },
      [&](int phase, const StepPart& part) {
        ComputeRows(net, part, phase == 1, [&](int64_t row) { GruRow(net, resets, phase, part, row); });
      });
  return RecurrentResults(call, net, nullptr);
}

StatusOr<Results> RunRnn(Call& call, const RecurrentProducts* products) {
  SWIZZLE_ASSIGN_OR_RETURN(RecurrentNet net,
                           ReadRecurrentNet(call, RecurrentPhases("RNN", false), {Activation::kTanh}, products));
  StepWalk(call, net).Run(
      [&](int phase, const StepPart& part) { MultiplyStates(call, net, part, net.Before(part, 0), phase); },
      [&](int, const StepPart& part) {
        ComputeRows(net, part, /*ends=*/true, [&](int64_t row) {
          AddProducts(net, part, row, 0, 1);
          float* const after = net.After(part, row) + part.first_unit;
          std::copy_n(net.Sums(part, row) + part.first_unit, part.units(), after);
          Activate(net, net.ActivationOf(part.direction, 0), after, part.units());
        });
      });
  return RecurrentResults(call, net, nullptr);
}

}  // namespace

StatusOr<Results> Lstm(Call& call) { return RunLstm(call, nullptr); }
StatusOr<Results> Gru(Call& call) { return RunGru(call, nullptr); }
StatusOr<Results> Rnn(Call& call) { return RunRnn(call, nullptr); }

StatusOr<Results> RunRecurrent(Call& call, const RecurrentProducts& products) {
  if (call.node().op == "LSTM") return RunLstm(call, &products);
  return call.node().op == "GRU" ? RunGru(call, &products) : RunRnn(call, &products);
}

}  // namespace swizzle::interpreter
