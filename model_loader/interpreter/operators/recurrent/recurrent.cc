#include "model_loader/interpreter/operators/recurrent/recurrent.h"

#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/cpu/conv/sgemm.h"
#include "model_loader/interpreter/operators/products/products.h"
#include "model_loader/interpreter/values/strided.h"

namespace swizzle::interpreter {
namespace {

Status CheckShape(const Array& array, const Shape& shape, const char* what) {
  if (array.shape == shape) return {};
  return InvalidArgument(what, " has shape ", ShapeText(array.shape), " instead of ", ShapeText(shape));
}

StatusOr<Array> Zeros(Call& call, Shape shape) {
  SWIZZLE_ASSIGN_OR_RETURN(Array zeros, call.New(DType::kFloat32, std::move(shape)));
  std::memset(zeros.data.get(), 0, static_cast<size_t>(zeros.bytes()));
  return zeros;
}

Status ReadDirection(const Call& call, RecurrentNet& net) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string direction, call.String("direction", "forward"));
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return InvalidArgument("direction is '", direction, "'; it may be forward, reverse or bidirectional");
  }
  net.reverse = direction == "reverse";
  net.directions = direction == "bidirectional" ? 2 : 1;
  return {};
}

Status ReadClip(const Call& call, RecurrentNet& net) {
  net.clip = std::numeric_limits<float>::infinity();
  if (!call.HasAttribute("clip")) return {};
  SWIZZLE_ASSIGN_OR_RETURN(net.clip, call.Float("clip", net.clip));
  return net.clip > 0.0f ? Status() : InvalidArgument("clip is ", net.clip, "; it must be positive");
}

// Input 4, all steps where it is left out.
Status ReadLengths(const Call& call, RecurrentNet& net) {
  net.lengths.assign(static_cast<size_t>(net.batch), net.steps);
  if (!call.Has(4)) return {};
  SWIZZLE_ASSIGN_OR_RETURN(net.lengths, call.List(4));
  if (static_cast<int64_t>(net.lengths.size()) != net.batch) {
    return InvalidArgument("there are ", net.lengths.size(), " lengths for ", net.batch, " sequences");
  }
  for (const int64_t length : net.lengths) {
    if (length < 0 || length > net.steps) return InvalidArgument("a sequence has length ", length, " of ", net.steps);
  }
  return {};
}

// sums = x [T,N,I] * weights^T, and biases.
Status SumInputs(Call& call, const Array& x, const Array& weights, int64_t apart, RecurrentNet& net) {
  const int64_t inputs = x.shape[2], width = net.width(), rows = net.steps * net.batch;
  net.strides = {rows * width, net.batch * width, width};
  SWIZZLE_ASSIGN_OR_RETURN(net.sums, call.New(DType::kFloat32, {net.directions, net.steps, net.batch, width}));
  for (int64_t direction = 0; direction < net.directions; ++direction) {
    float* const sums = net.sums.Mutable<float>().data() + direction * rows * width;
    const float* const w = weights.As<float>().data() + direction * width * inputs;
    if (rows == 0 || width == 0) continue;
    ParallelSgemm(call, rows, width, inputs, {x.As<float>().data(), inputs}, {w, inputs, /*transposed=*/true}, sums);
    if (net.bias.data == nullptr) continue;
    const std::vector<float> bias = SummedBias(net.bias, net.gates, net.hidden, direction, apart);
    const auto add = [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t i = 0; i < width; ++i) sums[row * width + i] += bias[static_cast<size_t>(i)];
      }
    };
    cpu::CpuStream::From(call.stream()).ParallelRanges(rows, add, ProductGrain(rows, rows * width));
  }
  return {};
}

// The same by other products, of x as it is: [T,N,I] or, with the batch first, [N,T,I].
Status SumInputsBy(const RecurrentProducts& products, Call& call, const Array& x, RecurrentNet& net) {
  const int64_t all = net.directions * net.width();
  net.strides = {net.width(), net.batch * all, all};
  if (net.batch_first) net.strides = {net.width(), all, net.steps * all};
  if (net.steps * net.batch == 0) {
    SWIZZLE_ASSIGN_OR_RETURN(net.sums, call.New(DType::kFloat32, {0, all}));
    return {};
  }
  SWIZZLE_ASSIGN_OR_RETURN(net.sums, products.OfInputs(call, x));
  return {};
}

// Sizes, and the sums of what steps are given.
Status ReadSequences(Call& call, const RecurrentProducts* products, int64_t apart, RecurrentNet& net) {
  SWIZZLE_ASSIGN_OR_RETURN(Array x, call.Floats(0));
  Array weights;
  if (products == nullptr) {
    SWIZZLE_ASSIGN_OR_RETURN(weights, call.Floats(1));
    SWIZZLE_ASSIGN_OR_RETURN(net.recurrent, call.Floats(2));
    if (weights.rank() != 3 || net.recurrent.rank() != 3) {
      return InvalidArgument("inputs 1 and 2 have shapes ", ShapeText(weights.shape), " and ",
                             ShapeText(net.recurrent.shape), "; they must have 3 dimensions");
    }
  }
  if (x.rank() != 3) return InvalidArgument("input 0 has shape ", ShapeText(x.shape), "; it must have 3 dimensions");
  net.steps = x.shape[net.batch_first ? 1 : 0];
  net.batch = x.shape[net.batch_first ? 0 : 1];
  net.hidden = products == nullptr ? net.recurrent.shape[2] : products->hidden();
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t hidden, call.Int("hidden_size", net.hidden));
  if (hidden != net.hidden) return InvalidArgument("hidden_size is ", hidden, ", but weights have ", net.hidden);
  if (call.Has(3)) {
    SWIZZLE_ASSIGN_OR_RETURN(net.bias, call.Floats(3));
    SWIZZLE_RETURN_IF_ERROR(CheckShape(net.bias, {net.directions, 2 * net.width()}, "input 3"));
  }
  if (products != nullptr) {
    if (x.shape[2] != products->inputs()) {
      return InvalidArgument("input 0 has shape ", ShapeText(x.shape), ", but weights have ", products->inputs(),
                             " inputs");
    }
    return SumInputsBy(*products, call, x, net);
  }
  SWIZZLE_RETURN_IF_ERROR(CheckShape(weights, {net.directions, net.width(), x.shape[2]}, "input 1"));
  SWIZZLE_RETURN_IF_ERROR(CheckShape(net.recurrent, {net.directions, net.width(), net.hidden}, "input 2"));
  if (net.batch_first) {
    SWIZZLE_ASSIGN_OR_RETURN(x, Transposed(call, x, {1, 0, 2}));
  }
  return SumInputs(call, x, weights, apart, net);
}

}  // namespace

std::vector<int64_t> RecurrentPhases(const std::string& op, bool resets_products) {
  if (op == "LSTM") return {4};
  if (op == "RNN") return {1};
  return resets_products ? std::vector<int64_t>{3} : std::vector<int64_t>{2, 1};
}

std::vector<float> SummedBias(const Array& bias, int64_t gates, int64_t hidden, int64_t direction, int64_t apart) {
  const int64_t width = gates * hidden;
  std::vector<float> sums(static_cast<size_t>(width), 0.0f);
  if (bias.data == nullptr) return sums;
  const float* from = bias.As<float>().data() + direction * 2 * width;
  for (int64_t i = 0; i < width; ++i) {
    const bool both = i < (gates - apart) * hidden;
    sums[static_cast<size_t>(i)] = from[i] + (both ? from[width + i] : 0.0f);
  }
  return sums;
}

float* RecurrentNet::Sums(const StepPart& part, int64_t row) {
  return sums.Mutable<float>().data() + part.direction * strides.direction + Time(part) * strides.time +
         row * strides.row;
}

float* RecurrentNet::Products(const StepPart& part, int64_t row, int64_t gate) {
  int64_t first = 0;  // gate of the phase
  size_t phase = 0;
  for (; gate >= first + phases[phase]; ++phase) first += phases[phase];
  return products.Mutable<float>().data() + part.direction * batch * width() +
         (batch * first + row * phases[phase] + gate - first) * hidden;
}

const float* RecurrentNet::Before(const StepPart& part, int64_t row) const {
  return states.As<float>().data() + ((part.direction * 2 + part.turn % 2) * batch + row) * hidden;
}

float* RecurrentNet::After(const StepPart& part, int64_t row) {
  return states.Mutable<float>().data() + ((part.direction * 2 + (part.turn + 1) % 2) * batch + row) * hidden;
}

StatusOr<RecurrentNet> ReadRecurrentNet(Call& call, std::vector<int64_t> phases,
                                        const std::vector<Activation::Kind>& activations,
                                        const RecurrentProducts* products, int64_t apart) {
  RecurrentNet net;
  net.gates = std::accumulate(phases.begin(), phases.end(), int64_t{0});
  net.phases = std::move(phases);
  net.planned = products;
  if (!IsFloating(call.In(0).dtype)) return InvalidArgument("input 0 must be floating");
  SWIZZLE_RETURN_IF_ERROR(ReadDirection(call, net));
  SWIZZLE_RETURN_IF_ERROR(ReadClip(call, net));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t layout, call.Int("layout", 0));
  net.batch_first = layout != 0;
  SWIZZLE_ASSIGN_OR_RETURN(net.activations, ReadActivations(call.node(), net.directions, activations));
  SWIZZLE_RETURN_IF_ERROR(ReadSequences(call, products, apart, net));
  SWIZZLE_RETURN_IF_ERROR(ReadLengths(call, net));
  SWIZZLE_ASSIGN_OR_RETURN(net.products, call.New(DType::kFloat32, {net.directions, net.batch, net.width()}));
  SWIZZLE_ASSIGN_OR_RETURN(net.states, call.New(DType::kFloat32, {net.directions, 2, net.batch, net.hidden}));
  SWIZZLE_ASSIGN_OR_RETURN(net.y, call.New(DType::kFloat32, {net.steps, net.directions, net.batch, net.hidden}));
  SWIZZLE_ASSIGN_OR_RETURN(const Array initial, StateInput(call, net, 5));
  const auto state = static_cast<size_t>(net.batch * net.hidden);
  for (int64_t direction = 0; direction < net.directions && state > 0; ++direction) {
    const auto from = initial.As<float>().subspan(static_cast<size_t>(direction) * state, state);
    std::copy(from.begin(), from.end(), net.After({0, direction, /*turn=*/1}, 0));
  }
  if (products != nullptr) {
    const StepWalk walk(call, net);
    SWIZZLE_ASSIGN_OR_RETURN(net.of_states, products->OfStates(call, walk.tasks(), walk.rows()));
  }
  return net;
}

StepWalk::StepWalk(Call& call, const RecurrentNet& net)
    : net_(net), stream_(cpu::CpuStream::From(call.stream())), gate_(call.gate()) {
  constexpr int64_t kWorthAWait = 1 << 16;   // products a step
  constexpr int64_t kWorthAsking = 1 << 24;  // likewise, of some steps: some hundred microseconds, zeros skipped or not
  constexpr int64_t kWorthWaking = 1 << 19;  // of all steps
  constexpr int64_t kUnits = 16;             // the fewest that a task has
  const int64_t threads = stream_.threads();
  const bool enough = net.directions * net.batch >= threads || net.batch * net.width() * net.hidden < kWorthAWait;
  apart_ = net.planned != nullptr && net.planned->by_all_threads();
  by_units_ = net.planned == nullptr ? !enough : apart_;
  const int64_t a_direction = std::max<int64_t>(threads / net.directions, 1);
  tasks_ = std::clamp<int64_t>(by_units_ ? net.hidden / kUnits : net.batch, 1, a_direction);
  const int64_t a_step = std::max<int64_t>(net.directions * net.batch * net.width() * net.hidden, 1);
  alone_ = a_step * net.steps < kWorthWaking;
  at_once_ = gate_ == nullptr ? std::max<int64_t>(net.steps, 1) : std::max<int64_t>(kWorthAsking / a_step, 1);
}

StatusOr<Array> StateInput(Call& call, const RecurrentNet& net, size_t i) {
  if (!call.Has(i)) return Zeros(call, {net.directions, net.batch, net.hidden});
  SWIZZLE_ASSIGN_OR_RETURN(Array given, call.Floats(i));
  const Shape shape =
      net.batch_first ? Shape{net.batch, net.directions, net.hidden} : Shape{net.directions, net.batch, net.hidden};
  SWIZZLE_RETURN_IF_ERROR(CheckShape(given, shape, i == 5 ? "input 5" : "input 6"));
  if (net.batch_first) {
    SWIZZLE_ASSIGN_OR_RETURN(given, Transposed(call, given, {1, 0, 2}));
  }
  SWIZZLE_ASSIGN_OR_RETURN(Array state, call.New(DType::kFloat32, given.shape));
  if (given.bytes() > 0) std::memcpy(state.data.get(), given.data.get(), static_cast<size_t>(given.bytes()));
  return state;
}

void MultiplyStates(Call& call, RecurrentNet& net, const StepPart& part, const float* from, int phase) {
  const auto begin = net.phases.begin();
  const int64_t first_gate = std::accumulate(begin, begin + phase, int64_t{0}), gates = begin[phase];
  const int64_t rows = part.last_row - part.first_row;
  const float* const states = from + part.first_row * net.hidden;
  if (rows == 0) return;
  if (net.of_states != nullptr) {
    float* const to = net.Products(part, part.first_row, first_gate);
    return net.of_states->Multiply(part.task, phase, part.direction, rows, states, to);
  }
  const float* const weights = net.recurrent.As<float>().data() + part.direction * net.width() * net.hidden;
  const auto multiply = [&](int64_t gate, int64_t unit, int64_t columns) {
    cpu::CpuStream::From(call.stream())
        .Keep(cpu::Sgemm(rows, columns, net.hidden, {states, net.hidden},
                         {weights + (gate * net.hidden + unit) * net.hidden, net.hidden, /*transposed=*/true},
                         net.Products(part, part.first_row, gate) + unit, std::max<int64_t>(gates * net.hidden, 1)));
  };
  if (part.units() == net.hidden) return multiply(first_gate, 0, gates * net.hidden);
  for (int64_t gate = first_gate; gate < first_gate + gates; ++gate) multiply(gate, part.first_unit, part.units());
}

void Activate(const RecurrentNet& net, const Activation& activation, float* values, int64_t count) {
  if (net.clip != std::numeric_limits<float>::infinity()) {
    for (int64_t i = 0; i < count; ++i) values[i] = std::clamp(values[i], -net.clip, net.clip);
  }
  activation.Apply(values, count);
}

void PassState(RecurrentNet& net, const StepPart& part, int64_t row) {
  std::copy_n(net.Before(part, row) + part.first_unit, part.units(), net.After(part, row) + part.first_unit);
  const int64_t at = ((net.Time(part) * net.directions + part.direction) * net.batch + row) * net.hidden;
  std::fill_n(net.y.Mutable<float>().data() + at + part.first_unit, part.units(), 0.0f);
}

void KeepResult(RecurrentNet& net, const StepPart& part, int64_t row) {
  const int64_t at = ((net.Time(part) * net.directions + part.direction) * net.batch + row) * net.hidden;
  std::copy_n(net.After(part, row) + part.first_unit, part.units(),
              net.y.Mutable<float>().data() + at + part.first_unit);
}

StatusOr<std::vector<Array>> RecurrentResults(Call& call, const RecurrentNet& net, const Array* cells) {
  SWIZZLE_ASSIGN_OR_RETURN(Array last, call.New(DType::kFloat32, {net.directions, net.batch, net.hidden}));
  const int64_t state = net.batch * net.hidden;
  for (int64_t direction = 0; direction < net.directions && state > 0; ++direction) {
    std::copy_n(net.Before({0, direction, net.steps}, 0), state, last.Mutable<float>().data() + direction * state);
  }
  std::vector<Array> results = {net.y, last};
  if (cells != nullptr) results.push_back(*cells);
  for (size_t i = 0; i < results.size(); ++i) {
    if (net.batch_first) {
      SWIZZLE_ASSIGN_OR_RETURN(results[i], Transposed(call, results[i], i == 0 ? Shape{2, 0, 1, 3} : Shape{1, 0, 2}));
    }
    SWIZZLE_ASSIGN_OR_RETURN(results[i], call.As(results[i], call.In(0).dtype));
  }
  return results;
}

}  // namespace swizzle::interpreter
