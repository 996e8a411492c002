#include "model_loader/plan/run/nested_slots.h"

#include "kernels/base/layout.h"
#include "kernels/base/storage.h"
#include "kernels/operator/problem.h"

namespace swizzle {
namespace {

class Nest {
 public:
  Nest(const StepList& list, BatchSize size) : list_(list), size_(size), is_port_(list.slots.size()) {
    for (size_t i = 0; i < list.slots.size(); ++i) places_.push_back({static_cast<int>(i), 0});
    for (const auto* ports : {&list.inputs, &list.outputs}) {
      for (const int slot : *ports) {
        if (slot != -1) is_port_[slot] = true;
      }
    }
  }

  void AddConcat(const Step& step) {
    if (step.problem.parts().of_planes) return;
    int64_t first = 0;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const int64_t count = step.problem.parts().sizes[i];
      if (step.problem.from == step.problem.to) Put(step.inputs[i], step.output, step.problem.output, first, count);
      first += count;
    }
  }

  void AddSlice(const Step& step) {
    const Problem& problem = step.problem;
    if (problem.from != problem.to) return;
    Put(step.output, step.inputs[0], problem.input, problem.channel_range().first, problem.output.channels);
  }

  std::vector<SlotPlace> Finish() {
    std::vector<SlotPlace> places = places_;
    for (SlotPlace& place : places) {
      while (places_[place.within].within != place.within) {
        place.offset += places_[place.within].offset;
        place.within = places_[place.within].within;
      }
    }
    return places;
  }

 private:
  // Slot `part` becomes channels [first, first + count) of `whole`, an image of `extent`, where it can.
  void Put(int part, int whole, const Extent& extent, int64_t first, int64_t count) {
    const Storage storage = list_.slots[whole].storage;
    if (is_port_[part] || is_port_[whole] || places_[part].within != part) return;
    if (BatchOf(part) != 1 || BatchOf(whole) != 1 || list_.slots[part].storage != storage) return;
    if (storage.layout != Layout::kNchw && storage.layout != Layout::kBlocked16) return;
    const int64_t channel_bytes = extent.plane() * static_cast<int64_t>(ElementBytes(storage.dtype));
    const auto has_padding = [&](int64_t channels) {  // where they are not whole blocks
      const size_t bytes = StorageBytes({1, channels, extent.height, extent.width}, storage);
      return bytes != static_cast<size_t>(channels * channel_bytes);
    };
    const auto offset = static_cast<size_t>(first * channel_bytes), bytes = static_cast<size_t>(count * channel_bytes);
    if (has_padding(first) || has_padding(count)) return;
    if (offset % kBufferAlignment != 0 || BytesOf(part) != bytes) return;
    places_[part] = {whole, offset};
  }

  int64_t BatchOf(int slot) const { return list_.slots[slot].value.WithBatch(size_).batch; }
  size_t BytesOf(int slot) const {
    return StorageBytes(list_.slots[slot].value.WithBatch(size_), list_.slots[slot].storage);
  }

  const StepList& list_;
  const BatchSize size_;
  std::vector<bool> is_port_;
  std::vector<SlotPlace> places_;  // within the next one that holds it
};

}  // namespace

std::vector<SlotPlace> NestSlots(const StepList& list, BatchSize size) {
  Nest nest(list, size);
  for (const Step& step : list.steps) {
    if (step.problem.op == Op::kConcat) nest.AddConcat(step);
    if (step.problem.op == Op::kSlice) nest.AddSlice(step);
  }
  return nest.Finish();
}

}  // namespace swizzle
