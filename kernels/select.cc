#include "kernels/select.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace swizzle {
namespace {

using Clock = std::chrono::steady_clock;

// Enough pseudo-randomness to keep every product an ordinary number: uniform in [-1, 1).
void FillRandom(float* values, int64_t count) {
  uint32_t state = 0x9e3779b9u;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    values[i] = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
  }
}

// The buffers that one run of a kernel reads and writes.
class RunBuffers {
 public:
  static StatusOr<RunBuffers> Make(Backend& backend, const Kernel& kernel, const Problem& problem) {
    RunBuffers buffers;
    const auto add_input = [&](const Extent& extent, Layout layout) -> Status {
      const int64_t count = LayoutElements(extent, layout);
      SWIZZLE_ASSIGN_OR_RETURN(float* values, buffers.Add(backend, count * sizeof(float)));
      FillRandom(values, count);
      buffers.inputs_.push_back(values);
      return absl::OkStatus();
    };
    // kScale reads less of its second operand, and values may have other channels than queries; it costs nothing here.
    const int64_t channels = std::max(problem.input.channels, problem.output.channels);
    const bool attends = problem.op == Op::kAttention;
    for (int i = 0; i < InputCount(problem); ++i) {
      const Extent extent = attends ? Extent{problem.input.batch, channels} : problem.input;
      SWIZZLE_RETURN_IF_ERROR(add_input(extent, kernel.key.input));
    }
    // Ids that any table has; numbers drawn would be out of range.
    if (problem.op == Op::kEmbedding && !problem.lookup.by_position) {
      std::memset(buffers.owned_[0]->data(), 0, buffers.owned_[0]->bytes());
    }
    buffers.DrawSequences(problem);
    if (problem.epilogue.residual) SWIZZLE_RETURN_IF_ERROR(add_input(problem.output, kernel.key.output));
    const int64_t outputs = LayoutElements(problem.output, kernel.key.output);
    SWIZZLE_ASSIGN_OR_RETURN(buffers.output_, buffers.Add(backend, outputs * sizeof(float)));
    if (kernel.workspace_bytes != nullptr) {
      buffers.workspace_bytes_ = kernel.workspace_bytes(problem);
      SWIZZLE_ASSIGN_OR_RETURN(buffers.workspace_, buffers.Add(backend, buffers.workspace_bytes_));
    }
    return buffers;
  }

  KernelArgs Args(const Problem& problem, const PackedWeight* weight) const {
    return {.problem = &problem,
            .weight = weight,
            .inputs = inputs_,
            .output = output_,
            .workspace = {reinterpret_cast<std::byte*>(workspace_), workspace_bytes_},
            .sequences = sequences_.begins.empty() ? nullptr : &sequences_};
  }

 private:
  // Of a middling length, for ops that ask for some.
  void DrawSequences(const Problem& problem) {
    if (problem.op < Op::kEmbedding) return;
    const int64_t tokens = problem.input.batch;
    const int64_t length = problem.op == Op::kSelectToken || problem.op == Op::kMeanTokens ? 1 : kSequenceLength;
    for (int64_t token = 0; token < tokens; ++token) {
      if (token % length == 0) begins_.push_back(static_cast<int32_t>(token));
      positions_.push_back(0);
    }
    begins_.push_back(static_cast<int32_t>(tokens));
    sequences_ = {begins_, positions_, {}};
  }

  static constexpr int64_t kSequenceLength = 64;

  StatusOr<float*> Add(Backend& backend, size_t bytes) {
    SWIZZLE_ASSIGN_OR_RETURN(auto buffer, backend.Allocate(bytes));
    owned_.push_back(std::move(buffer));
    return reinterpret_cast<float*>(owned_.back()->data());
  }

  std::vector<std::unique_ptr<Buffer>> owned_;
  std::vector<const float*> inputs_;
  float* output_ = nullptr;
  float* workspace_ = nullptr;
  size_t workspace_bytes_ = 0;
  std::vector<int32_t> begins_;
  std::vector<int32_t> positions_;
  Sequences sequences_;
};

}  // namespace

StatusOr<absl::Duration> MeasureKernel(Backend& backend, Stream& stream, const Kernel& kernel, const Problem& problem,
                                       const PackedWeight* weight, const MeasureOptions& options) {
  SWIZZLE_ASSIGN_OR_RETURN(const RunBuffers buffers, RunBuffers::Make(backend, kernel, problem));
  const KernelArgs args = buffers.Args(problem, weight);
  kernel.run(args, stream);
  SWIZZLE_RETURN_IF_ERROR(stream.Synchronize());

  std::vector<absl::Duration> times;
  absl::Duration spent;
  while (static_cast<int>(times.size()) < options.max_runs) {
    const auto start = Clock::now();
    kernel.run(args, stream);
    times.push_back(absl::FromChrono(Clock::now() - start));
    spent += times.back();
    const bool enough_runs = static_cast<int>(times.size()) >= options.min_runs;
    if (spent >= options.budget && enough_runs) break;
  }
  SWIZZLE_RETURN_IF_ERROR(stream.Synchronize());
  return *std::min_element(times.begin(), times.end());
}

}  // namespace swizzle
