#include "model_loader/fallback/recurrent.h"

#include <cstring>
#include <limits>

#include "kernels/cpu/conv/sgemm.h"
#include "model_loader/fallback/products.h"
#include "model_loader/fallback/strided.h"

namespace swizzle::fallback {
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

// The biases that stand in the sums from the start, of one direction.
std::vector<float> SummedBias(const RecurrentNet& net, int64_t direction, int64_t apart) {
  std::vector<float> bias(static_cast<size_t>(net.width()), 0.0f);
  if (net.bias.data == nullptr) return bias;
  const float* from = net.bias.As<float>().data() + direction * 2 * net.width();
  for (int64_t i = 0; i < net.width(); ++i) {
    const bool both = i < (net.gates - apart) * net.hidden;
    bias[static_cast<size_t>(i)] = from[i] + (both ? from[net.width() + i] : 0.0f);
  }
  return bias;
}

// sums = x [T,N,I] * weights^T, and biases.
Status SumInputs(Call& call, const Array& x, const Array& weights, int64_t apart, RecurrentNet& net) {
  const int64_t inputs = x.shape[2], width = net.width(), rows = net.steps * net.batch;
  SWIZZLE_ASSIGN_OR_RETURN(net.sums, call.New(DType::kFloat32, {net.directions, net.steps, net.batch, width}));
  for (int64_t direction = 0; direction < net.directions; ++direction) {
    float* const sums = net.sums.Mutable<float>().data() + direction * rows * width;
    const float* const w = weights.As<float>().data() + direction * width * inputs;
    if (rows == 0 || width == 0) continue;
    ParallelSgemm(call, rows, width, inputs, {x.As<float>().data(), inputs}, {w, inputs, /*transposed=*/true}, sums);
    if (net.bias.data == nullptr) continue;
    const std::vector<float> bias = SummedBias(net, direction, apart);
    cpu::CpuStream::From(call.stream()).ParallelRanges(rows, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t i = 0; i < width; ++i) sums[row * width + i] += bias[static_cast<size_t>(i)];
      }
    });
  }
  return {};
}

}  // namespace

float* RecurrentNet::Sums(const StepPart& part, int64_t row) {
  return sums.Mutable<float>().data() + ((part.direction * steps + Time(part)) * batch + row) * width();
}

float* RecurrentNet::Products(const StepPart& part, int64_t row) {
  return products.Mutable<float>().data() + (part.direction * batch + row) * width();
}

const float* RecurrentNet::Before(const StepPart& part, int64_t row) const {
  return states.As<float>().data() + ((part.direction * 2 + part.turn % 2) * batch + row) * hidden;
}

float* RecurrentNet::After(const StepPart& part, int64_t row) {
  return states.Mutable<float>().data() + ((part.direction * 2 + (part.turn + 1) % 2) * batch + row) * hidden;
}

StatusOr<RecurrentNet> ReadRecurrentNet(Call& call, int64_t gates, const std::vector<Activation::Kind>& activations,
                                        int64_t apart) {
  RecurrentNet net;
  net.gates = gates;
  if (!IsFloating(call.In(0).dtype)) return InvalidArgument("input 0 must be floating");
  SWIZZLE_RETURN_IF_ERROR(ReadDirection(call, net));
  SWIZZLE_RETURN_IF_ERROR(ReadClip(call, net));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t layout, call.Int("layout", 0));
  net.batch_first = layout != 0;
  SWIZZLE_ASSIGN_OR_RETURN(net.activations, ReadActivations(call.node(), net.directions, activations));
  SWIZZLE_ASSIGN_OR_RETURN(Array x, call.Floats(0));
  SWIZZLE_ASSIGN_OR_RETURN(const Array weights, call.Floats(1));
  SWIZZLE_ASSIGN_OR_RETURN(net.recurrent, call.Floats(2));
  if (x.rank() != 3 || weights.rank() != 3 || net.recurrent.rank() != 3) {
    return InvalidArgument("inputs 0, 1 and 2 have shapes ", ShapeText(x.shape), ", ", ShapeText(weights.shape),
                           " and ", ShapeText(net.recurrent.shape), "; they must have 3 dimensions");
  }
  if (net.batch_first) {
    SWIZZLE_ASSIGN_OR_RETURN(x, Transposed(call, x, {1, 0, 2}));
  }
  net.steps = x.shape[0];
  net.batch = x.shape[1];
  net.hidden = net.recurrent.shape[2];
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t hidden, call.Int("hidden_size", net.hidden));
  if (hidden != net.hidden) return InvalidArgument("hidden_size is ", hidden, ", but weights have ", net.hidden);
  SWIZZLE_RETURN_IF_ERROR(CheckShape(weights, {net.directions, net.width(), x.shape[2]}, "input 1"));
  SWIZZLE_RETURN_IF_ERROR(CheckShape(net.recurrent, {net.directions, net.width(), net.hidden}, "input 2"));
  if (call.Has(3)) {
    SWIZZLE_ASSIGN_OR_RETURN(net.bias, call.Floats(3));
    SWIZZLE_RETURN_IF_ERROR(CheckShape(net.bias, {net.directions, 2 * net.width()}, "input 3"));
  }
  SWIZZLE_RETURN_IF_ERROR(ReadLengths(call, net));
  SWIZZLE_RETURN_IF_ERROR(SumInputs(call, x, weights, apart, net));
  SWIZZLE_ASSIGN_OR_RETURN(net.products, call.New(DType::kFloat32, {net.directions, net.batch, net.width()}));
  SWIZZLE_ASSIGN_OR_RETURN(net.states, call.New(DType::kFloat32, {net.directions, 2, net.batch, net.hidden}));
  SWIZZLE_ASSIGN_OR_RETURN(net.y, call.New(DType::kFloat32, {net.steps, net.directions, net.batch, net.hidden}));
  SWIZZLE_ASSIGN_OR_RETURN(const Array initial, StateInput(call, net, 5));
  const auto state = static_cast<size_t>(net.batch * net.hidden);
  for (int64_t direction = 0; direction < net.directions && state > 0; ++direction) {
    const auto from = initial.As<float>().subspan(static_cast<size_t>(direction) * state, state);
    std::copy(from.begin(), from.end(), net.After({direction, /*turn=*/1}, 0));
  }
  return net;
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

void MultiplyStates(Call& call, RecurrentNet& net, const StepPart& part, const float* from, int64_t first_gate,
                    int64_t last_gate) {
  const float* const weights = net.recurrent.As<float>().data() + part.direction * net.width() * net.hidden;
  const int64_t rows = part.last_row - part.first_row;
  const auto multiply = [&](int64_t column, int64_t columns) {
    cpu::CpuStream::From(call.stream())
        .Keep(cpu::Sgemm(rows, columns, net.hidden, {from + part.first_row * net.hidden, net.hidden},
                         {weights + column * net.hidden, net.hidden, /*transposed=*/true},
                         net.Products(part, part.first_row) + column, std::max<int64_t>(net.width(), 1)));
  };
  if (part.units() == net.hidden) {
    multiply(first_gate * net.hidden, (last_gate - first_gate) * net.hidden);
    return;
  }
  for (int64_t gate = first_gate; gate < last_gate; ++gate) {
    multiply(gate * net.hidden + part.first_unit, part.units());
  }
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
    std::copy_n(net.Before({direction, net.steps}, 0), state, last.Mutable<float>().data() + direction * state);
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

}  // namespace swizzle::fallback
