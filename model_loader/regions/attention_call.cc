#include "model_loader/regions/attention_call.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "kernels/cpu/tokens/view_attention.h"
#include "model_loader/regions/device_attention.h"
#include "model_loader/semantics/strides.h"

namespace swizzle::regions {
namespace {

using interpreter::Array;
using interpreter::Results;

struct Placement {
  cpu::ViewAttention call;         // without data
  std::array<int64_t, 3> offsets;  // in floats, of queries, keys and values
  Shape output;
};

// How far in its tensor a view begins, in floats; nothing where it is none of a tensor of this shape.
std::optional<int64_t> OffsetOf(const View& view, const Shape& shape) {
  const auto is_positive = [](int64_t extent) { return extent > 0; };
  if (shape.size() != view.rank() || !std::ranges::all_of(shape, is_positive)) return std::nullopt;
  const Shape strides = DenseStrides(shape);
  int64_t offset = 0;
  for (const View::Fixed& fixed : view.fixed) {
    const int64_t extent = shape[fixed.dimension], index = fixed.index + (fixed.index < 0 ? extent : 0);
    if (index < 0 || index >= extent) return std::nullopt;
    offset += index * strides[fixed.dimension];
  }
  return offset;
}

// Nothing where the shapes are not such as the call takes.
std::optional<Placement> PlacementOf(const Views& views, const std::vector<Shape>& shapes) {
  const View* const all[] = {&views.queries, &views.keys, &views.values};
  std::array<int64_t, 3> offsets{};
  for (size_t i = kQueries; i <= kValues; ++i) {
    const auto offset = OffsetOf(*all[i], shapes[i]);
    if (!offset) return std::nullopt;
    offsets[i] = *offset;
  }
  const auto shape_of = [&](size_t i) { return Permuted(shapes[i], all[i]->order); };
  const auto strides_of = [&](size_t i) { return Permuted(DenseStrides(shapes[i]), all[i]->order); };
  const size_t rank = views.output.size();
  const Shape queries = shape_of(kQueries), values = shape_of(kValues);
  Shape keys = shape_of(kKeys), key_strides = strides_of(kKeys);
  std::swap(keys[rank - 2], keys[rank - 1]);
  std::swap(key_strides[rank - 2], key_strides[rank - 1]);
  if (!std::equal(queries.begin(), queries.end() - 2, keys.begin()) || queries.back() != keys.back()) return {};
  if (!std::equal(keys.begin(), keys.end() - 1, values.begin())) return std::nullopt;
  Shape made = queries;
  made.back() = values.back();
  Placement placement{{}, offsets, Permuted(made, views.output)};
  Shape made_strides(rank);
  const Shape output_strides = DenseStrides(placement.output);
  for (size_t i = 0; i < rank; ++i) made_strides[views.output[i]] = output_strides[i];
  const auto of_queries = ViewOf<const float>(queries, strides_of(kQueries));
  const auto of_keys = ViewOf<const float>(keys, key_strides);
  const auto of_values = ViewOf<const float>(values, strides_of(kValues));
  const auto of_output = ViewOf<float>(made, made_strides);
  if (!of_queries || !of_keys || !of_values || !of_output) return std::nullopt;
  placement.call = {.sequences = rank > 3 ? queries[rank - 4] : 1,
                    .heads = rank > 2 ? queries[rank - 3] : 1,
                    .query_count = queries[rank - 2],
                    .key_count = keys[rank - 2],
                    .channels = queries.back(),
                    .value_channels = values.back(),
                    .scale = views.scale,
                    .queries = *of_queries,
                    .keys = *of_keys,
                    .values = *of_values,
                    .output = *of_output,
                    .bias = {}};
  if (shapes.size() <= kBias) return placement;
  Shape scores = queries;
  scores.back() = keys[rank - 2];
  const int64_t given = shapes[kBias].size() == 4 ? shapes[kBias][0] : 1;
  if (views.HasTurns() && rank == 4 && given > 1 && given < scores[0] && scores[0] % given == 0) {
    placement.call.bias_turns = scores[0] = given;
  }
  const Shape both[] = {scores, shapes[kBias]};
  const auto broadcast = BroadcastShape(both);
  if (!broadcast.ok() || *broadcast != scores || shapes[kBias].empty()) return std::nullopt;
  if (shapes[kBias].back() != scores.back()) return std::nullopt;
  const auto of_bias = ViewOf<const float>(scores, BroadcastStrides(shapes[kBias], scores));
  if (!of_bias) return std::nullopt;
  placement.call.bias = *of_bias;
  return placement;
}

// Of the products, as they are read: [..., queries, keys]. REQUIRES: the shapes have a placement.
Shape ScoresOf(const Views& views, std::span<const Shape> shapes) {
  Shape scores = Permuted(shapes[kQueries], views.queries.order);
  scores.back() = Permuted(shapes[kKeys], views.keys.order).back();
  return scores;
}

// Nothing where they do not broadcast.
StatusOr<std::optional<Array>> AddOnDevice(const Array& a, const Array& b, interpreter::Device& device) {
  const Shape shapes[] = {a.shape, b.shape};
  const StatusOr<Shape> shape = BroadcastShape(shapes);
  if (!shape.ok() || shape->size() > kMaxStridedRank) return std::nullopt;
  SWIZZLE_ASSIGN_OR_RETURN(Array sum, device.memory().Allocate(DType::kFloat32, *shape));
  Pointwise add{.op = PointOp::kAdd, .rank = static_cast<int>(shape->size()), .output = sum.data.get()};
  std::ranges::copy(*shape, add.dims.begin());
  for (size_t i = 0; i < 2; ++i) {
    const Array& operand = i == 0 ? a : b;
    add.inputs[i].data = operand.data.get();
    std::ranges::copy(BroadcastStrides(operand.shape, *shape), add.inputs[i].strides.begin());
  }
  device.functions().Map(add, device.stream());
  return std::optional(std::move(sum));
}

class Attention final : public interpreter::Part {
 public:
  explicit Attention(Views views) : views_(std::move(views)) {}

  StatusOr<std::optional<Results>> Run(std::span<const Array> inputs, interpreter::Memory& memory, Stream& stream,
                                       StepGate*) const override {
    if (!views_.terms.empty() && !views_.AddsInput()) return RunWithTerms(inputs, memory, stream);
    return Attend(inputs, memory, stream);
  }

  StatusOr<std::optional<Results>> RunOnDevice(std::span<const Array> inputs,
                                               interpreter::Device& device) const override {
    std::vector<Array> of_call(inputs.begin(), inputs.begin() + std::min<size_t>(kBias, inputs.size()));
    if (inputs.size() > kBias) {
      SWIZZLE_ASSIGN_OR_RETURN(const std::optional<Array> sum, SumOnDevice(inputs.subspan(kBias), device));
      if (!sum) return std::nullopt;
      of_call.push_back(*sum);
    }
    SWIZZLE_ASSIGN_OR_RETURN(std::optional<Task> task, TaskOf(of_call, device.memory()));
    if (!task) return std::nullopt;
    SWIZZLE_RETURN_IF_ERROR(AttendOnDevice(task->call, device));
    return std::optional(Results{std::move(task->output)});
  }

 private:
  struct Task {
    cpu::ViewAttention call;
    Array output;
  };

  // Of terms that are numbers: what is by turns without the dimension of images. Nothing where shapes do not fit.
  StatusOr<std::optional<Array>> SumOnDevice(std::span<const Array> numbers, interpreter::Device& device) const {
    std::optional<Array> sum;
    for (size_t i = 0; i < numbers.size(); ++i) {
      Array next = numbers[i];
      if (next.dtype != DType::kFloat32 || (views_.terms[i].by_turns && (next.rank() != 5 || next.shape[0] != 1))) {
        return std::nullopt;
      }
      if (views_.terms[i].by_turns) next = next.WithShape(Shape(next.shape.begin() + 1, next.shape.end()));
      if (!sum) {
        sum = std::move(next);
        continue;
      }
      SWIZZLE_ASSIGN_OR_RETURN(sum, AddOnDevice(*sum, next, device));
      if (!sum) return std::nullopt;
    }
    return sum;
  }

  StatusOr<std::optional<Results>> RunWithTerms(std::span<const Array> inputs, interpreter::Memory& memory,
                                                Stream& stream) const {
    std::vector<DType> types;
    std::vector<Shape> shapes;
    for (const Array& input : inputs) {
      types.push_back(input.dtype);
      shapes.push_back(input.shape);
    }
    if (!Takes(views_, types, shapes)) return std::nullopt;
    SWIZZLE_ASSIGN_OR_RETURN(auto sum,
                             SumTerms(views_.terms, inputs.subspan(kBias), ScoresOf(views_, shapes), memory, stream));
    if (!sum) return std::nullopt;
    const Array of_call[] = {inputs[kQueries], inputs[kKeys], inputs[kValues], *std::move(sum)};
    return Attend(of_call, memory, stream);
  }

  StatusOr<std::optional<Results>> Attend(std::span<const Array> inputs, interpreter::Memory& memory,
                                          Stream& stream) const {
    SWIZZLE_ASSIGN_OR_RETURN(std::optional<Task> task, TaskOf(inputs, memory));
    if (!task) return std::nullopt;
    const size_t bytes = cpu::ViewAttentionWorkspaceBytes(task->call, stream.threads());
    SWIZZLE_ASSIGN_OR_RETURN(Array workspace, memory.Allocate(DType::kUint8, {static_cast<int64_t>(bytes)}));
    // One thread is done with little before it has woken others.
    constexpr int64_t kWorthWaking = 1 << 18;  // multiply-adds
    const cpu::ViewAttention& of = task->call;
    const int64_t scores = of.sequences * of.heads * of.query_count * of.key_count;
    auto& host = static_cast<HostStream&>(stream);
    host.RunSerially(scores * (of.channels + of.value_channels) < kWorthWaking);
    cpu::AttendViews(of, {workspace.data.get(), bytes}, stream);
    host.RunSerially(false);
    return std::optional(Results{std::move(task->output)});
  }

  // Nothing where it does not take inputs of these types and shapes. They lie where `memory` is.
  StatusOr<std::optional<Task>> TaskOf(std::span<const Array> inputs, interpreter::Memory& memory) const {
    std::vector<Shape> shapes;
    for (const Array& input : inputs) {
      if (input.dtype != DType::kFloat32) return std::nullopt;
      shapes.push_back(input.shape);
    }
    const std::optional<Placement> placement = PlacementOf(views_, shapes);
    if (!placement) return std::nullopt;
    Task task{placement->call, {}};
    SWIZZLE_ASSIGN_OR_RETURN(task.output, memory.Allocate(DType::kFloat32, placement->output));
    const auto data = [](const Array& array) { return reinterpret_cast<float*>(array.data.get()); };
    task.call.queries.data = data(inputs[kQueries]) + placement->offsets[kQueries];
    task.call.keys.data = data(inputs[kKeys]) + placement->offsets[kKeys];
    task.call.values.data = data(inputs[kValues]) + placement->offsets[kValues];
    if (inputs.size() > kBias) task.call.bias.data = data(inputs[kBias]);
    task.call.output.data = data(task.output);
    return std::optional(std::move(task));
  }

  const Views views_;
};

}  // namespace

bool Takes(const Views& views, std::span<const DType> types, const std::vector<Shape>& shapes) {
  if (std::ranges::any_of(types.first(kBias), [](DType type) { return type != DType::kFloat32; })) return false;
  if (!PlacementOf(views, {shapes.begin(), shapes.begin() + kBias})) return false;
  if (views.AddsInput()) return types[kBias] == DType::kFloat32 && PlacementOf(views, shapes);
  return TakeTerms(views.terms, types.subspan(kBias), std::span(shapes).subspan(kBias), ScoresOf(views, shapes));
}

std::shared_ptr<const interpreter::Part> MakeAttention(Views views) {
  return std::make_shared<const Attention>(std::move(views));
}

}  // namespace swizzle::regions
