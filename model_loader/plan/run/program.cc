#include "model_loader/plan/run/program.h"

#include <algorithm>
#include <array>
#include <optional>

namespace swizzle {
namespace {

// Of a channel in kRows or kBatched.
size_t RowBytes(const Slot& slot, BatchSize size) {
  Extent row = slot.value.WithBatch(size);
  row.channels = 1;
  return StorageBytes(row, slot.storage);
}

// Whether that is the batch that the step's problem has: to copy one takes as long as a small step.
bool IsProblemAt(const Step& step, BatchSize size) {
  return step.problem.input.batch == (step.tokens_in ? size.tokens : size.rows) &&
         step.problem.output.batch == (step.tokens_out ? size.tokens : size.rows);
}

}  // namespace

size_t Program::arena_bytes() const {
  size_t bytes = kBufferAlignment;
  for (const ArenaBucket& bucket : parts_.buckets) bytes = std::max(bytes, bucket.bytes());
  return bytes;
}

int64_t Program::held_bytes() const {
  size_t bytes = sizeof(Program);
  for (const StepList& list : parts_.lists) {
    bytes += list.steps.size() * (sizeof(Step) + 2 * sizeof(int)) + list.slots.size() * sizeof(Slot);
  }
  for (const ArenaBucket& bucket : parts_.buckets) {
    bytes += sizeof(bucket) + bucket.offsets.size() * sizeof(size_t) + bucket.places.size() * sizeof(SlotPlace);
  }
  for (const NetworkValue& value : network().values) bytes += sizeof(value) + value.name.size();
  for (const Layer& layer : network().layers) bytes += sizeof(layer) + layer.name.size() + 2 * sizeof(int);
  return static_cast<int64_t>(bytes);
}

std::vector<int> Program::LayersOf(int list) const {
  std::vector<int> layers;
  for (const Step& step : parts_.lists[list].steps) layers.push_back(step.layer);
  return layers;
}

const ArenaBucket& Program::BucketFor(BatchSize size) const {
  const bool sequences = network().sequences.has_value();
  SWIZZLE_CHECK(size.rows >= 1 && size.rows <= max_size().rows);
  SWIZZLE_CHECK(!sequences || (size.rows <= size.tokens && size.tokens <= max_size().tokens));
  return *std::ranges::lower_bound(
      parts_.buckets, sequences ? size.tokens : size.rows, {},
      [=](const ArenaBucket& bucket) { return sequences ? bucket.size.tokens : bucket.size.rows; });
}

size_t Program::ArenaBytes(BatchSize size) const {
  size_t most = kBufferAlignment;
  for (const ArenaBucket* bucket = parts_.buckets.data(); bucket <= &BucketFor(size); ++bucket) {
    most = std::max(most, bucket->bytes());
  }
  return most;
}

size_t Program::PortBytes(const NetworkPort& port, BatchSize size) const {
  const NetworkValue& value = network().values[port.value];
  return StorageBytes(value.WithBatch(size), port.storage());
}

std::span<std::byte> Program::Input(std::byte* arena, int i, BatchSize size) const {
  const ArenaBucket& bucket = BucketFor(size);
  return {SlotData(bucket, arena, ListOf(bucket).inputs[i]), PortBytes(network().inputs[i], size)};
}

std::span<std::byte> Program::Output(std::byte* arena, int i, BatchSize size) const {
  const ArenaBucket& bucket = BucketFor(size);
  return {SlotData(bucket, arena, ListOf(bucket).outputs[i]), PortBytes(network().outputs[i], size)};
}

std::byte* SlotData(const ArenaBucket& bucket, std::byte* arena, int slot) { return arena + bucket.offsets[slot]; }

void RunStep(const StepList& list, size_t index, const ArenaBucket& bucket, const StepOperands& operands,
             Stream& stream) {
  const Step& step = list.steps[index];
  std::optional<Problem> sized;
  if (!IsProblemAt(step, operands.size)) sized = step.ProblemAt(operands.size);
  const Problem& problem = sized ? *sized : step.problem;
  const auto at = [&](int slot) {
    if (!operands.elsewhere.empty() && operands.elsewhere[slot] != nullptr) return operands.elsewhere[slot];
    std::byte* const data = SlotData(bucket, operands.arena, slot);
    const int64_t row = bucket.places.empty() ? 0 : bucket.places[slot].row;
    return row == 0 ? data : data + static_cast<size_t>(row) * RowBytes(list.slots[slot], operands.size);
  };
  const auto pitch = [&](int slot) -> int64_t {
    const bool alone = bucket.places.empty() || bucket.places[slot].within == slot;
    return alone || list.slots[slot].storage.layout != Layout::kNhwc ? 0 : bucket.places[slot].channels;
  };
  std::array<Operand, kMaxKernelInputs> inputs;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const Quantised& as = problem.inputs_as[i];
    inputs[i] = {at(step.inputs[i]), step.InputStorage(i).dtype, as.scale, as.zero_point, pitch(step.inputs[i])};
  }
  KernelArgs args;
  args.problem = &problem;
  args.weight = step.weight.get();
  args.inputs = std::span(inputs.data(), step.inputs.size());
  const Quantised as = problem.epilogue.requantise.value_or(Quantised());
  args.output = {at(step.output), problem.to.dtype, as.scale, as.zero_point, pitch(step.output)};
  args.workspace = {operands.arena + bucket.workspace_offset, bucket.workspace_bytes};
  args.sequences = operands.sequences;
  step.kernel->run(args, stream);
}

}  // namespace swizzle
