#include "model_loader/plan/run/host_plan.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model_loader/plan/run/borrowed_slots.h"
#include "model_loader/plan/run/program_plan.h"

namespace swizzle {
namespace {

// Of a layer's weight, in about multiply-adds; what was packed for vectors may be padded, what is sparse is less.
int64_t MultiplyAdds(const Step& step, const Problem& problem) {
  if (step.weight == nullptr || ReadsRowsOfTokens(problem.op)) return 0;
  const int64_t packed = static_cast<int64_t>(step.weight->bytes() / sizeof(float)) * problem.output.positions();
  const int64_t outputs = problem.output.channels * problem.output.positions();
  if (problem.op == Op::kConv) return std::min(packed, outputs * problem.input.channels * problem.window().taps());
  return problem.op == Op::kDepthwiseConv ? outputs * problem.window().taps() : packed;
}

// What steps cost for each row, or, of sequences, for each token.
struct StepWork {
  explicit StepWork(const StepList& list) {
    for (const Step& step : list.steps) {
      const Problem problem = step.ProblemAt(BatchSize(1));
      const int64_t moved =
          LayoutElements(problem.input, problem.from.layout) + LayoutElements(problem.output, problem.to.layout);
      steps.push_back(moved + MultiplyAdds(step, problem));
      all += steps.back();
    }
  }

  // A thread that spins takes a part of a step after about a microsecond, one that sleeps after some tens of them.
  static constexpr int64_t kWorthAThread = 1 << 16, kWorthWaking = 1 << 19;

  std::vector<int64_t> steps;
  int64_t all = 0;
};

class HostPlan final : public ProgramPlan {
 public:
  HostPlan(HostBackend& backend, std::shared_ptr<const Program> of, SerialSteps serial, PlanReport report)
      : ProgramPlan(std::move(of), std::move(report)), backend_(backend), serial_(std::move(serial)) {
    for (const StepList& list : program()->lists()) work_.emplace_back(list);
  }

  StatusOr<std::unique_ptr<Runner>> NewRunner(const RunnerOptions& options) const override {
    return HostRunner::Make(backend_, program(), serial_, options);
  }
  StatusOr<std::unique_ptr<Buffer>> AllocateSource(size_t) const override { return nullptr; }
  Status RunOn(Stream& stream, const BorrowedMemory& memory, BatchSize size) const override;

 private:
  HostBackend& backend_;
  const SerialSteps serial_;
  std::vector<StepWork> work_;  // by list
};

Status HostPlan::RunOn(Stream& stream, const BorrowedMemory& memory, BatchSize size) const {
  SWIZZLE_CHECK(stream.threads() == program()->threads() && memory.arena.size() >= ArenaBytes(size));
  const ArenaBucket& bucket = program()->BucketFor(size);
  const StepList& list = program()->ListOf(bucket);
  const BorrowedSlots slots(list, memory, /*on_host=*/true);
  const StepOperands operands = {memory.arena.data(), size, memory.sequences, slots.elsewhere()};
  const int64_t count = memory.sequences == nullptr ? size.rows : size.tokens;
  const bool small = count <= serial_.most && bucket.list == serial_.list;
  const StepWork& work = work_[static_cast<size_t>(bucket.list)];
  const bool alone = work.all * count < StepWork::kWorthWaking;
  auto& host = static_cast<HostStream&>(stream);
  for (size_t i = 0; i < list.steps.size(); ++i) {
    SWIZZLE_RETURN_IF_ERROR(PassGate(memory.gate, host));
    host.RunSerially(alone || (small && serial_.steps[i]) || work.steps[i] * count < StepWork::kWorthAThread);
    RunStep(list, i, bucket, operands, stream);
  }
  host.RunSerially(false);
  slots.CopyShared(*program(), size, [](void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); });
  return absl::OkStatus();
}

}  // namespace

HostRunner::HostRunner(HostBackend& backend, std::shared_ptr<const Program> program, SerialSteps serial,
                       std::unique_ptr<HostStream> stream, std::unique_ptr<Buffer> arena, StepGate* gate)
    : backend_(backend),
      program_(std::move(program)),
      serial_(std::move(serial)),
      stream_(std::move(stream)),
      arena_(std::move(arena)),
      gate_(gate) {}

StatusOr<std::unique_ptr<HostRunner>> HostRunner::Make(HostBackend& backend, std::shared_ptr<const Program> program,
                                                       SerialSteps serial, const RunnerOptions& options) {
  SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<HostStream> stream, backend.NewHostStream(program->threads()));
  if (options.pinned_executor) stream->PinThreads(*options.pinned_executor);
  SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> arena, backend.Allocate(program->arena_bytes()));
  return std::unique_ptr<HostRunner>(new HostRunner(backend, std::move(program), std::move(serial), std::move(stream),
                                                    std::move(arena), options.gate));
}

std::span<float> HostRunner::Input(int i, BatchSize size) {
  return program_->InputElements<float>(i, program_->Input(arena_->data(), i, size));
}

std::span<const float> HostRunner::Output(int i, BatchSize size) {
  return program_->OutputElements(i, program_->Output(arena_->data(), i, size));
}

std::span<int32_t> HostRunner::Ids(int i, BatchSize size) {
  return program_->InputElements<int32_t>(i, program_->Input(arena_->data(), i, size));
}

std::span<std::byte> HostRunner::InputMemory(int i, BatchSize size) { return program_->Input(arena_->data(), i, size); }

void HostRunner::WriteInput(int i, BatchSize size, size_t offset, std::span<const std::byte> bytes) {
  const std::span<std::byte> to = program_->Input(arena_->data(), i, size);
  SWIZZLE_CHECK(offset <= to.size() && bytes.size() <= to.size() - offset);
  stream_->Copy(to.data() + offset, bytes.data(), bytes.size());
}

void HostRunner::CopyInput(int i, BatchSize size, size_t offset, std::span<const std::byte> bytes) {
  WriteInput(i, size, offset, bytes);
}

Status HostRunner::Run(BatchSize size, const Sequences* sequences) {
  SWIZZLE_CHECK((sequences != nullptr) == program_->network().sequences.has_value());
  SWIZZLE_RETURN_IF_ERROR(RunSteps(size, sequences, 0, ListFor(size).steps.size()));
  return stream_->Synchronize();
}

Status HostRunner::RunPart(BatchPart part) {
  if (!program_->has_tail()) return Run(part.rows);
  SWIZZLE_CHECK(part.first >= 0 && part.first + part.rows <= part.of && part.of <= program_->max_size().rows);
  const size_t row_bytes = ListFor(part.rows).tail->row_bytes;
  if (held_ == nullptr) {
    const auto most = static_cast<size_t>(program_->max_size().rows);
    SWIZZLE_ASSIGN_OR_RETURN(held_, backend_.Allocate(row_bytes * most));
  }
  SWIZZLE_RETURN_IF_ERROR(RunSteps(part.rows, nullptr, 0, ListFor(part.rows).tail->first_step));
  std::memcpy(held_->data() + row_bytes * part.first, TailData(part.rows), row_bytes * part.rows);
  if (part.first + part.rows < part.of) return absl::OkStatus();
  std::memcpy(TailData(part.of), held_->data(), row_bytes * part.of);
  const StepList& list = ListFor(part.of);
  SWIZZLE_RETURN_IF_ERROR(RunSteps(part.of, nullptr, list.tail->first_step, list.steps.size()));
  return stream_->Synchronize();
}

std::byte* HostRunner::TailData(BatchSize size) {
  const ArenaBucket& bucket = program_->BucketFor(size);
  return SlotData(bucket, arena_->data(), program_->ListOf(bucket).tail->slot);
}

Status HostRunner::RunSteps(BatchSize size, const Sequences* sequences, size_t first, size_t last) {
  const ArenaBucket& bucket = program_->BucketFor(size);
  const StepList& list = program_->ListOf(bucket);
  const StepOperands operands = {arena_->data(), size, sequences};
  const int64_t count = sequences == nullptr ? size.rows : size.tokens;
  const bool small = count <= serial_.most && bucket.list == serial_.list;
  for (size_t i = first; i < last; ++i) {
    SWIZZLE_RETURN_IF_ERROR(PassGate(gate_, *stream_));
    if (small) stream_->RunSerially(serial_.steps[i]);
    RunStep(list, i, bucket, operands, *stream_);
  }
  if (small) stream_->RunSerially(false);
  return absl::OkStatus();
}

StatusOr<std::vector<absl::Duration>> HostRunner::TimeSteps(BatchSize size, const Sequences* sequences,
                                                            const std::vector<bool>& serial) {
  const ArenaBucket& bucket = program_->BucketFor(size);
  const StepList& list = program_->ListOf(bucket);
  SWIZZLE_CHECK(serial.size() == list.steps.size());
  const StepOperands operands = {arena_->data(), size, sequences};
  std::vector<absl::Duration> times;
  for (size_t i = 0; i < list.steps.size(); ++i) {
    stream_->RunSerially(serial[i]);
    const auto run = [&] { RunStep(list, i, bucket, operands, *stream_); };
    SWIZZLE_ASSIGN_OR_RETURN(times.emplace_back(), stream_->Time(run, {}));
  }
  stream_->RunSerially(false);
  SWIZZLE_RETURN_IF_ERROR(stream_->Synchronize());
  return times;
}

std::shared_ptr<const Plan> NewHostPlan(HostBackend& backend, std::shared_ptr<const Program> program,
                                        SerialSteps serial, PlanReport report) {
  return std::make_shared<HostPlan>(backend, std::move(program), std::move(serial), std::move(report));
}

}  // namespace swizzle
