#include "model_loader/plan/run/nested_slots.h"

#include <cstdint>

#include "kernels/base/layout.h"
#include "kernels/base/storage.h"
#include "kernels/operator/problem.h"

namespace swizzle {
namespace {

constexpr int64_t kBlock = 16;  // channels, in kBlocked16

// Where a slot lies: so many units behind the beginning of another one. In kRows and kBatched these are rows, else
// elements, in kNhwc of a position.
struct Place {
  int within = -1;
  int64_t at = 0;
};

bool IsStack(Layout layout) { return layout == Layout::kNchw || layout == Layout::kBlocked16; }

class Nest {
 public:
  Nest(const StepList& list, BatchSize size)
      : list_(list),
        size_(size),
        is_port_(list.slots.size()),
        takes_pitch_(list.slots.size(), true),
        is_renamed_(list.slots.size()) {
    for (size_t i = 0; i < list.slots.size(); ++i) places_.push_back({static_cast<int>(i), 0});
    for (const auto* ports : {&list.inputs, &list.outputs}) {
      for (const int slot : *ports) {
        if (slot != -1) is_port_[slot] = true;
      }
    }
    for (const Step& step : list.steps) {
      if (!ReadsPitched(step)) {
        for (const int slot : step.inputs) takes_pitch_[slot] = false;
      }
      if (!WritesPitched(step)) takes_pitch_[step.output] = false;
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        const int slot = step.inputs[i];
        const int64_t channels = InputExtent(step.problem, static_cast<int>(i)).channels;
        if (channels != list.slots[slot].value.channels) is_renamed_[slot] = true;
      }
    }
  }

  void AddConcat(const Step& step) {
    if (step.problem.parts().of_planes || step.problem.from != step.problem.to) return;
    const std::vector<int64_t> begins = OperandBegins(step);
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const auto [root, at] = PlaceOf(step.inputs[i]);
      const int64_t begin = begins[i] - at;
      if (root == step.inputs[i] || HoldsWhole(step, begins, root, begin)) Put(root, step.output, begin);
    }
  }

  void AddSlice(const Step& step) {
    const Problem& problem = step.problem;
    if (problem.from != problem.to) return;
    Put(step.output, step.inputs[0], problem.channel_range().first * ChannelUnits(problem.input, problem.from));
  }

  // A Rotary's output is where its input was that nothing reads afterwards: what it does not turn stays.
  void AddRotary(const Step& step, int index) {
    const int input = step.inputs[0], output = step.output;
    const Slot &read = list_.slots[input], &made = list_.slots[output];
    const bool alone = places_[output].within == output && places_[input].within == input && HoldsNone(input);
    const bool alike = read.storage == made.storage && BatchOf(input) == BatchOf(output) &&
                       read.value.elements() == made.value.elements();
    if (alone && alike && !is_port_[input] && !is_port_[output] && read.last_step == index)
      places_[output] = {input, 0};
  }

  std::vector<SlotPlace> Finish() const {
    std::vector<SlotPlace> places;
    for (size_t i = 0; i < places_.size(); ++i) {
      const auto [root, at] = PlaceOf(static_cast<int>(i));
      const Slot& whole = list_.slots[root];
      const bool rows = HasRows(whole.storage.layout);
      places.push_back({root, rows ? 0 : static_cast<size_t>(at) * ElementBytes(whole.storage.dtype), rows ? at : 0,
                        whole.value.channels});
    }
    return places;
  }

 private:
  static bool HasRows(Layout layout) { return layout == Layout::kRows || layout == Layout::kBatched; }
  static int64_t ChannelUnits(const Extent& extent, Storage storage) {
    return IsStack(storage.layout) ? extent.plane() : 1;
  }
  int64_t UnitsOf(int slot) const {
    const NetworkValue& value = list_.slots[slot].value;
    return IsStack(list_.slots[slot].storage.layout) ? value.elements() : value.channels;
  }

  static bool ReadsPitched(const Step& step) {
    const Kernel* const kernel = step.kernel;
    return kernel != nullptr && kernel->reads_pitched != nullptr && kernel->reads_pitched(step.problem);
  }
  static bool WritesPitched(const Step& step) {
    const Kernel* const kernel = step.kernel;
    return kernel != nullptr && kernel->writes_pitched != nullptr && kernel->writes_pitched(step.problem);
  }

  // Where each operand belongs in a Concat's output.
  static std::vector<int64_t> OperandBegins(const Step& step) {
    std::vector<int64_t> begins = {0};
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      begins.push_back(begins.back() +
                       step.problem.parts().sizes[i] * ChannelUnits(step.problem.output, step.problem.to));
    }
    return begins;
  }

  Place PlaceOf(int slot) const {
    Place place = {slot, 0};
    while (places_[place.within].within != place.within) {
      place.at += places_[place.within].at;
      place.within = places_[place.within].within;
    }
    return place;
  }

  // Whether no other slot lies within this one.
  bool HoldsNone(int whole) const {
    for (size_t i = 0; i < places_.size(); ++i) {
      const int slot = static_cast<int>(i);
      if (slot != whole && PlaceOf(slot).within == whole) return false;
    }
    return true;
  }

  // Whether `root`, from `begin` of the Concat's output on, would hold what the operands put there.
  bool HoldsWhole(const Step& concat, const std::vector<int64_t>& begins, int root, int64_t begin) const {
    const int64_t end = begin + UnitsOf(root);
    if (begin < 0 || end > begins.back()) return false;
    for (size_t i = 0; i < concat.inputs.size(); ++i) {
      if (begins[i + 1] <= begin || begins[i] >= end) continue;
      const auto [within, at] = PlaceOf(concat.inputs[i]);
      if (within != root || begin + at != begins[i]) return false;
    }
    return true;
  }

  // A slot that lies alone comes to lie in `whole`, where it can.
  void Put(int part, int whole, int64_t at) {
    if (places_[part].within != part || !MayLieIn(part, whole) || !IsAligned(part, whole, at)) return;
    places_[part] = {whole, at};
  }

  bool MayLieIn(int part, int whole) const {
    const Storage storage = list_.slots[part].storage;
    if (is_port_[part] || is_port_[whole] || list_.slots[whole].storage != storage) return false;
    if (BatchOf(part) != BatchOf(whole) || PlaceOf(whole).within == part) return false;
    if (storage.layout == Layout::kNhwc) return takes_pitch_[part] && !is_renamed_[part] && !is_renamed_[whole];
    return HasRows(storage.layout) || (IsStack(storage.layout) && BatchOf(part) == 1);
  }

  bool IsAligned(int part, int whole, int64_t at) const {
    const NetworkValue& value = list_.slots[part].value;
    const auto element = static_cast<int64_t>(ElementBytes(list_.slots[part].storage.dtype));
    const auto starts = [&](int64_t elements, size_t alignment) {
      return elements * element % static_cast<int64_t>(alignment) == 0;
    };
    switch (list_.slots[part].storage.layout) {
      case Layout::kNchw:
        return starts(at, kBufferAlignment);
      case Layout::kBlocked16:
        return value.channels % kBlock == 0 && at % (kBlock * value.height * value.width) == 0;
      case Layout::kNhwc:
        return starts(at, kPitchAlignment) && starts(value.channels, kPitchAlignment) &&
               starts(list_.slots[whole].value.channels, kPitchAlignment);
      case Layout::kPanels:
      case Layout::kRows:
      case Layout::kFullPanels:
      case Layout::kBatched:
        break;
    }
    return starts(at * kPositionUnit, kBufferAlignment);  // whatever the batch
  }

  int64_t BatchOf(int slot) const { return list_.slots[slot].value.WithBatch(size_).batch; }

  const StepList& list_;
  const BatchSize size_;
  std::vector<bool> is_port_;
  std::vector<bool> takes_pitch_;  // whether all steps take the slot with a pitch
  // Whether a step reads the slot as other channels than it was made with, by a Transpose or Reshape that is a name:
  // then no pitch of channels is one of its positions.
  std::vector<bool> is_renamed_;
  std::vector<Place> places_;  // within the next one that holds it
};

}  // namespace

std::vector<SlotPlace> NestSlots(const StepList& list, BatchSize size, const std::vector<bool>& copies) {
  Nest nest(list, size);
  for (size_t i = 0; i < list.steps.size(); ++i) {
    if (!copies.empty() && copies[i]) continue;
    if (list.steps[i].problem.op == Op::kConcat) nest.AddConcat(list.steps[i]);
    if (list.steps[i].problem.op == Op::kSlice) nest.AddSlice(list.steps[i]);
    if (list.steps[i].problem.op == Op::kRotary) nest.AddRotary(list.steps[i], static_cast<int>(i));
  }
  return nest.Finish();
}

}  // namespace swizzle
