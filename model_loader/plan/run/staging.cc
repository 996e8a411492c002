#include "model_loader/plan/run/staging.h"

#include <algorithm>
#include <bit>

#include "kernels/base/integers.h"

namespace swizzle {
int64_t RoundedCount(int64_t count, int64_t most) {
  constexpr int64_t kExact = 16;
  if (count <= kExact) return std::min(count, most);
  const int64_t step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count - 1))) / 8;
  return std::min(RoundUp(count, step), most);
}

BatchSize RoundedSize(BatchSize size, BatchSize most, bool sequences) {
  if (!sequences) return {RoundedCount(size.rows, most.rows)};
  const int64_t tokens = RoundedCount(size.tokens, most.tokens);
  const auto rows = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size.rows)));
  return {std::min({rows, most.rows, tokens}), tokens};
}

StagingLayout::StagingLayout(const Network& network, BatchSize most) {
  const auto place = [&](const NetworkPort& port) {
    const size_t at = bytes_;
    if (port.value == -1) return at;
    const NetworkValue& value = network.values[port.value];
    bytes_ += RoundUp(StorageBytes(value.WithBatch(most), port.storage()), kBufferAlignment);
    return at;
  };
  for (const NetworkPort& port : network.inputs) inputs_.push_back(place(port));
  for (const NetworkPort& port : network.outputs) outputs_.push_back(place(port));
}

size_t StagedSequences::BytesFor(BatchSize most) {
  const size_t numbers = static_cast<size_t>(most.rows + 1 + 3 * most.tokens) * sizeof(int32_t);
  return numbers + 4 * kBufferAlignment;
}

void StagedSequences::Set(const Sequences& sequences, BatchSize rounded) {
  size_t end = 0;
  const auto place = [&](int64_t count) {
    const Part part{end, static_cast<size_t>(count) * sizeof(int32_t)};
    end += RoundUp(part.bytes, kBufferAlignment);
    return part;
  };
  const Part begins = place(rounded.rows + 1), positions = place(rounded.tokens), owners = place(rounded.tokens);
  const Part bias = place(sequences.key_bias.empty() ? 0 : rounded.tokens);
  used_ = end;

  const auto host_begins = OnHost<int32_t>(begins);
  std::fill(host_begins.begin(), host_begins.end(), static_cast<int32_t>(sequences.tokens()));
  std::copy(sequences.begins.begin(), sequences.begins.end(), host_begins.begin());
  const auto host_positions = OnHost<int32_t>(positions), host_owners = OnHost<int32_t>(owners);
  std::fill(std::copy(sequences.positions.begin(), sequences.positions.end(), host_positions.begin()),
            host_positions.end(), 0);
  std::fill(host_owners.begin(), host_owners.end(), -1);
  for (int64_t i = 0; i < sequences.count(); ++i) {
    std::fill(host_owners.begin() + sequences.begins[i], host_owners.begin() + sequences.begins[i + 1],
              static_cast<int32_t>(i));
  }
  const auto host_bias = OnHost<float>(bias);
  std::fill(host_bias.begin(), host_bias.end(), 0.0f);
  std::copy(sequences.key_bias.begin(), sequences.key_bias.end(), host_bias.begin());
  on_device_ = {OnDevice<int32_t>(begins), OnDevice<int32_t>(positions), OnDevice<float>(bias),
                OnDevice<int32_t>(owners)};
}

void StagedSequences::QueueCopy(Stream& stream) const { stream.Copy(device_->data(), host_->data(), used_); }

Recording* Recordings::Find(const RecordingKey& key) const {
  const auto found = recordings_.find(key);
  return found == recordings_.end() ? nullptr : found->second.get();
}

void Recordings::Add(const RecordingKey& key, std::unique_ptr<Recording> recording) {
  if (order_.size() == kMost) {
    recordings_.erase(order_.front());
    order_.erase(order_.begin());
  }
  order_.push_back(key);
  recordings_[key] = std::move(recording);
}

}  // namespace swizzle
