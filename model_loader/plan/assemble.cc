#include "model_loader/plan/assemble.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "model_loader/plan/choose/conversion.h"
#include "model_loader/plan/choose/norm_pairs.h"
#include "model_loader/plan/choose/tuning_cache.h"
#include "model_loader/plan/run/arena.h"
#include "model_loader/plan/run/nested_slots.h"
#include "model_loader/plan/run/tail.h"

namespace swizzle {
namespace {

// The batch sizes that have an arena layout of their own: powers of two, and the largest. Where there are sequences
// tokens are what counts: a batch of so many has that many rows at most.
std::vector<BatchSize> ArenaSizes(const AssembledFor& batches, bool sequences) {
  const BatchSize max = batches.largest;
  if (!batches.smaller_arenas) return {max};
  std::vector<BatchSize> sizes;
  const int64_t most = sequences ? max.tokens : max.rows;
  for (int64_t size = 1; size < most; size *= 2) sizes.emplace_back(std::min(size, max.rows), size);
  sizes.push_back(max);
  return sizes;
}

// Adds layers in order, with the conversions between them. Used once.
class ListBuilder {
 public:
  ListBuilder(const Backend& backend, const Network& network, RunSettings settings)
      : backend_(backend), network_(network), settings_(settings) {
    for (const NetworkPort& port : network_.inputs) {
      if (port.value != -1) NewSlot(port.value, port.storage());
    }
  }

  void AddLayer(const Layer& layer, int index, const Candidate& candidate, std::shared_ptr<const PackedWeight> weight) {
    std::vector<int> inputs;
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
      const bool residual = layer.epilogue.residual && i == 1;
      inputs.push_back(SlotIn(layer.inputs[i], residual ? ResidualStorage(candidate) : candidate.input));
    }
    if (candidate.kernel == nullptr) {
      slots_of_value_[layer.output][candidate.output] = inputs[0];
      return;
    }
    Step step;
    step.kernel = candidate.kernel;
    step.weight = std::move(weight);
    step.layer = index;
    const bool pair = candidate.norm >= 0;
    const Layer both =
        pair ? LayerOfPair(network_, {static_cast<size_t>(index), static_cast<size_t>(candidate.norm)}) : Layer();
    step.problem = AsRowSolves(*step.kernel, LayerProblem(network_, pair ? both : layer, 1, settings_.threads));
    step.problem.blocking = candidate.blocking;
    step.tokens_out = network_.values[layer.output].per_token;
    step.tokens_in = layer.inputs.empty() ? step.tokens_out : network_.values[layer.inputs[0]].per_token;
    for (int slot : inputs) list_.slots[slot].last_step = static_cast<int>(list_.steps.size());
    step.inputs = std::move(inputs);
    step.output = NewSlot(layer.output, candidate.output);
    list_.slots.back().storage = step.kernel->key.output;  // what is within a pair has the norm's results
    list_.steps.push_back(std::move(step));
  }

  StepList Finish() {
    for (const NetworkPort& port : network_.inputs) {
      const bool has_slot = port.value != -1;
      list_.inputs.push_back(has_slot ? slots_of_value_.at(port.value).at(port.storage()) : -1);
    }
    for (const NetworkPort& port : network_.outputs) {
      list_.outputs.push_back(SlotIn(port.value, port.storage()));
      list_.slots[list_.outputs.back()].last_step = std::numeric_limits<int>::max();
    }
    return std::move(list_);
  }

 private:
  int NewSlot(int value, Storage storage) {
    const int step = static_cast<int>(list_.steps.size());
    const int slot = static_cast<int>(list_.slots.size());
    list_.slots.push_back({value, network_.values[value], storage, step, step});
    slots_of_value_[value][storage] = slot;
    return slot;
  }

  // The slot that holds `value` stored so, converting it first if need be.
  int SlotIn(int value, Storage storage) {
    const auto& slots = slots_of_value_.at(value);
    if (auto found = slots.find(storage); found != slots.end()) return found->second;
    const auto original =
        std::min_element(slots.begin(), slots.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return ConvertedSlot(value, original->second, original->first, storage);
  }

  // `from`: how the slot stores this value; of what is renamed it is not the slot's own.
  int ConvertedSlot(int value, int from_slot, Storage from, Storage storage) {
    Step step;
    step.kernel = FindConversion(backend_, network_.values[value], from, storage, settings_);
    SWIZZLE_CHECK(step.kernel != nullptr);  // else the choice of layouts had cost infinity
    step.problem = AsRowSolves(*step.kernel, ConversionProblem(network_.values[value], 1, settings_));
    step.tokens_in = step.tokens_out = network_.values[value].per_token;
    step.inputs = {from_slot};
    list_.slots[from_slot].last_step = static_cast<int>(list_.steps.size());
    step.output = NewSlot(value, storage);
    list_.steps.push_back(std::move(step));
    return list_.steps.back().output;
  }

  const Backend& backend_;
  const Network& network_;
  const RunSettings settings_;
  StepList list_;
  std::map<int, std::map<Storage, int>> slots_of_value_;
};

ArenaLayout PlaceSlots(const StepList& list, BatchSize size, ArenaOrder order, const std::vector<SlotPlace>& places) {
  std::vector<Lifetime> lifetimes;
  for (const Slot& slot : list.slots) {
    lifetimes.push_back({StorageBytes(slot.value.WithBatch(size), slot.storage), slot.first_step, slot.last_step});
  }
  const auto is_part = [&](size_t i) { return !places.empty() && places[i].within != static_cast<int>(i); };
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    if (!is_part(i)) continue;
    Lifetime& whole = lifetimes[places[i].within];
    whole.first = std::min(whole.first, lifetimes[i].first);
    whole.last = std::max(whole.last, lifetimes[i].last);
    lifetimes[i].bytes = 0;
  }
  ArenaLayout arena = PlaceBuffers(lifetimes, order);
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    if (is_part(i)) arena.offsets[i] = arena.offsets[places[i].within] + places[i].offset;
  }
  return arena;
}

// Slots nest unless that takes more memory: a Concat's output is then there as soon as its first operand. Where all
// together would, each Concat and Slice is asked in turn.
ArenaBucket LayOut(const StepList& list, int index, BatchSize size, ArenaOrder order) {
  const ArenaLayout plain = PlaceSlots(list, size, order, {});
  std::vector<SlotPlace> places = NestSlots(list, size);
  ArenaLayout arena = PlaceSlots(list, size, order, places);
  if (arena.bytes > plain.bytes) {
    std::vector<bool> copies(list.steps.size(), true);
    for (size_t i = 0; i < list.steps.size(); ++i) {
      if (list.steps[i].problem.op != Op::kConcat && list.steps[i].problem.op != Op::kSlice) continue;
      copies[i] = false;
      copies[i] = PlaceSlots(list, size, order, NestSlots(list, size, copies)).bytes > plain.bytes;
    }
    places = NestSlots(list, size, copies);
    arena = PlaceSlots(list, size, order, places);
  }
  const bool nested = std::ranges::any_of(
      places, [&](const SlotPlace& place) { return place.within != static_cast<int>(&place - places.data()); });
  if (!nested) places.clear();
  ArenaBucket bucket{size, index, std::move(arena.offsets), std::move(places), arena.bytes, 0};
  for (const Step& step : list.steps) {
    if (step.kernel->workspace_bytes == nullptr) continue;
    bucket.workspace_bytes = std::max(bucket.workspace_bytes, step.kernel->workspace_bytes(step.ProblemAt(size)));
  }
  return bucket;
}

uint64_t HashOf(const StepList& list, const WeightFacts& facts, uint64_t hash) {
  for (const Step& step : list.steps) {
    if (step.layer >= 0) hash = ExtendPlanHash(hash, *step.kernel, step.problem, facts.patterns[step.layer]);
  }
  return hash;
}

int ListFor(BatchSize size, bool sequences, const std::vector<BucketChoice>& choices) {
  const int64_t count = sequences ? size.tokens : size.rows;
  for (size_t i = 0; i + 1 < choices.size(); ++i) {
    if (count <= choices[i].most) return static_cast<int>(i);
  }
  return static_cast<int>(choices.size()) - 1;
}

}  // namespace

Assembly Assemble(Backend& backend, Network network, AssembledFor batches, RunSettings settings,
                  const std::vector<BucketChoice>& choices, const PreparedWeights& weights, const WeightFacts& facts) {
  ProgramParts parts;
  Assembly assembly;
  for (const BucketChoice& choice : choices) {
    ListBuilder builder(backend, network, settings);
    for (size_t i = 0; i < choice.layers.size(); ++i) {
      builder.AddLayer(network.layers[i], static_cast<int>(i), choice.layers[i], weights.Find(i, choice.layers[i]));
    }
    parts.lists.push_back(builder.Finish());
    assembly.hash = HashOf(parts.lists.back(), facts, assembly.hash);
  }
  for (const Step& step : parts.lists.back().steps) assembly.conversions += step.layer < 0;
  const bool sequences = network.sequences.has_value();
  const bool has_threads = HasHostMemory(backend) && settings.threads > 1;
  const ArenaOrder order = has_threads ? ArenaOrder::kHalves : ArenaOrder::kPacked;
  for (BatchSize size : ArenaSizes(batches, sequences)) {
    const int list = ListFor(size, sequences, choices);
    parts.buckets.push_back(LayOut(parts.lists[list], list, size, order));
  }
  // Batches come in parts where the host runs them.
  if (HasHostMemory(backend) && !sequences && batches.largest.rows > 1 && network.batch_size == 0)
    SetTails(parts.lists);
  parts.id_limits = facts.id_limits;
  parts.position_limit = facts.position_limit;
  parts.threads = settings.threads;
  parts.network = std::move(network);
  assembly.program = std::make_shared<const Program>(std::move(parts));
  return assembly;
}

}  // namespace swizzle
