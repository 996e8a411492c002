#include "model_loader/plan/run/device_plan.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "model_loader/plan/run/borrowed_slots.h"
#include "model_loader/plan/run/program_plan.h"
#include "model_loader/plan/run/staging.h"

namespace swizzle {
namespace {

class DeviceRunner final : public Runner, public DeviceSteps {
 public:
  static StatusOr<std::unique_ptr<Runner>> Make(DeviceBackend& backend, std::shared_ptr<const Program> program) {
    std::unique_ptr<DeviceRunner> runner(new DeviceRunner(std::move(program)));
    SWIZZLE_RETURN_IF_ERROR(runner->Init(backend));
    return runner;
  }

  std::span<float> Input(int i, BatchSize size) override {
    return program_->InputElements<float>(i, StagedInput(i, size));
  }
  std::span<const float> Output(int i, BatchSize size) override {
    return program_->OutputElements(i, Staged(staging_.output(i), DeviceOutput(i, size).size()));
  }
  std::span<int32_t> Ids(int i, BatchSize size) override {
    return program_->InputElements<int32_t>(i, StagedInput(i, size));
  }
  std::span<std::byte> InputMemory(int i, BatchSize size) override { return StagedInput(i, size); }

  void WriteInput(int i, BatchSize size, size_t offset, std::span<const std::byte> bytes) override {
    const std::span<std::byte> to = StagedInput(i, size);
    SWIZZLE_CHECK(offset <= to.size() && bytes.size() <= to.size() - offset);
    std::memcpy(to.data() + offset, bytes.data(), bytes.size());
  }

  void CopyInput(int i, BatchSize size, size_t offset, std::span<const std::byte> bytes) override {
    SWIZZLE_CHECK(sequences_ == nullptr);
    const std::span<std::byte> to = DeviceInput(i, RoundedSize(size, program_->max_size(), false));
    SWIZZLE_CHECK(offset <= to.size() && bytes.size() <= to.size() - offset);
    stream_->Run([&] { stream_->Copy(to.data() + offset, bytes.data(), bytes.size()); });
    inputs_copied_ = true;
  }

  // Replays what was recorded for the size, rounded up. The first batch of a size runs unrecorded, so that libraries
  // set themselves up, and is then recorded.
  Status Run(BatchSize size, const Sequences* sequences) override {
    SWIZZLE_CHECK((sequences != nullptr) == program_->network().sequences.has_value());
    const BatchSize rounded = RoundedSize(size, program_->max_size(), sequences != nullptr);
    if (sequences != nullptr) sequences_->Set(*sequences, rounded);
    const RecordingKey key{rounded.rows, rounded.tokens, sequences != nullptr && !sequences->key_bias.empty(),
                           !std::exchange(inputs_copied_, false)};
    if (Recording* const recording = recordings_.Find(key)) {
      SWIZZLE_RETURN_IF_ERROR(recording->Replay());
      return stream_->Synchronize();
    }
    const auto work = [&] { Queue(rounded, key.copies_inputs); };
    stream_->Run(work);
    SWIZZLE_RETURN_IF_ERROR(stream_->Synchronize());
    if (recordings_.Contains(key)) return absl::OkStatus();
    // The batch has been computed, so a recording that cannot be made fails nothing: its size goes on unrecorded.
    StatusOr<std::unique_ptr<Recording>> recording = stream_->Record(work);
    recordings_.Add(key, recording.ok() ? *std::move(recording) : nullptr);
    return absl::OkStatus();
  }

  Status RunPart(BatchPart part) override { return Run(part.rows, nullptr); }

  const StepList& ListFor(BatchSize size) const override { return program_->ListOf(program_->BucketFor(size)); }

  StatusOr<std::vector<absl::Duration>> TimeSteps(BatchSize size) override {
    constexpr int kRuns = 5;
    const BatchSize rounded = RoundedSize(size, program_->max_size(), sequences_ != nullptr);
    std::vector<absl::Duration> times(ListFor(rounded).steps.size());
    absl::Duration before;
    for (size_t i = 0; i < times.size(); ++i) {
      SWIZZLE_ASSIGN_OR_RETURN(const auto recording, stream_->Record([&] { QueueSteps(rounded, i + 1); }));
      absl::Duration least = absl::InfiniteDuration();
      for (int run = 0; run < kRuns; ++run) {
        Status replayed;
        SWIZZLE_ASSIGN_OR_RETURN(const absl::Duration time, stream_->Time([&] { replayed = recording->Replay(); }, {}));
        SWIZZLE_RETURN_IF_ERROR(replayed);
        least = std::min(least, time);
      }
      times[i] = least - std::exchange(before, least);
    }
    return times;
  }

 private:
  explicit DeviceRunner(std::shared_ptr<const Program> program)
      : program_(std::move(program)), staging_(program_->network(), program_->max_size()) {}

  Status Init(DeviceBackend& backend) {
    SWIZZLE_ASSIGN_OR_RETURN(stream_, backend.NewDeviceStream());
    SWIZZLE_ASSIGN_OR_RETURN(arena_, backend.Allocate(program_->arena_bytes()));
    SWIZZLE_ASSIGN_OR_RETURN(staged_, backend.AllocateHost(staging_.bytes()));
    if (!program_->network().sequences) return absl::OkStatus();
    const size_t bytes = StagedSequences::BytesFor(program_->max_size());
    SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> host, backend.AllocateHost(bytes));
    SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> device, backend.Allocate(bytes));
    sequences_ = std::make_unique<StagedSequences>(std::move(host), std::move(device));
    return absl::OkStatus();
  }

  std::span<std::byte> DeviceInput(int i, BatchSize size) { return program_->Input(arena_->data(), i, size); }
  std::span<std::byte> DeviceOutput(int i, BatchSize size) { return program_->Output(arena_->data(), i, size); }
  std::span<std::byte> Staged(size_t offset, size_t bytes) { return {staged_->data() + offset, bytes}; }
  std::span<std::byte> StagedInput(int i, BatchSize size) {
    return Staged(staging_.input(i), DeviceInput(i, size).size());
  }

  // Copies in, the steps, and copies out.
  void Queue(BatchSize size, bool copies_inputs) {
    const Network& network = program_->network();
    for (int i = 0; copies_inputs && i < static_cast<int>(network.inputs.size()); ++i) {
      if (network.inputs[i].value == -1) continue;
      const std::span<std::byte> to = DeviceInput(i, size);
      stream_->Copy(to.data(), Staged(staging_.input(i), to.size()).data(), to.size_bytes());
    }
    if (sequences_ != nullptr) sequences_->QueueCopy(*stream_);
    QueueSteps(size, ListFor(size).steps.size());
    for (int i = 0; i < static_cast<int>(network.outputs.size()); ++i) {
      const std::span<std::byte> from = DeviceOutput(i, size);
      stream_->Copy(Staged(staging_.output(i), from.size()).data(), from.data(), from.size_bytes());
    }
  }

  void QueueSteps(BatchSize size, size_t count) {
    const ArenaBucket& bucket = program_->BucketFor(size);
    const StepOperands operands = {arena_->data(), size, sequences_ == nullptr ? nullptr : &sequences_->on_device()};
    for (size_t i = 0; i < count; ++i) RunStep(ListFor(size), i, bucket, operands, *stream_);
  }

  const std::shared_ptr<const Program> program_;
  const StagingLayout staging_;
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<Buffer> arena_;
  std::unique_ptr<Buffer> staged_;
  std::unique_ptr<StagedSequences> sequences_;  // null where the network has none
  Recordings recordings_;                       // destroyed before the stream
  bool inputs_copied_ = false;                  // by CopyInput, for the next run
};

class DevicePlan final : public ProgramPlan {
 public:
  DevicePlan(DeviceBackend& backend, std::shared_ptr<const Program> program, PlanReport report)
      : ProgramPlan(std::move(program), std::move(report)), backend_(backend) {}

  StatusOr<std::unique_ptr<Runner>> NewRunner(const RunnerOptions&) const override {
    return DeviceRunner::Make(backend_, program());
  }
  Status RunOn(Stream& stream, const BorrowedMemory& memory, BatchSize size) const override {
    SWIZZLE_CHECK(memory.arena.size() >= ArenaBytes(size));
    const ArenaBucket& bucket = program()->BucketFor(size);
    const StepList& list = program()->ListOf(bucket);
    const BorrowedSlots slots(list, memory, /*on_host=*/false);
    const StepOperands operands = {memory.arena.data(), size, memory.sequences, slots.elsewhere()};
    for (size_t i = 0; i < list.steps.size(); ++i) RunStep(list, i, bucket, operands, stream);
    slots.CopyShared(*program(), size, [&](void* to, const void* from, size_t bytes) { stream.Copy(to, from, bytes); });
    return absl::OkStatus();
  }
  StatusOr<std::unique_ptr<Buffer>> AllocateSource(size_t bytes) const override { return backend_.AllocateHost(bytes); }

 private:
  DeviceBackend& backend_;
};

}  // namespace

std::shared_ptr<const Plan> NewDevicePlan(DeviceBackend& backend, std::shared_ptr<const Program> program,
                                          PlanReport report) {
  return std::make_shared<DevicePlan>(backend, std::move(program), std::move(report));
}

}  // namespace swizzle
