#include "kernels/measure/measure_kernels.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "kernels/base/half.h"
#include "kernels/base/integers.h"

namespace swizzle {
namespace {

// Enough pseudo-randomness to keep every product an ordinary number: uniform in [-1, 1).
class Random {
 public:
  float Next() {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<float>(static_cast<int32_t>(state_)) * 0x1p-31f;
  }

 private:
  uint32_t state_ = 0x9e3779b9u;
};

// Draws `count` elements of this type.
void Draw(int64_t count, DType dtype, std::byte* to) {
  Random random;
  for (int64_t i = 0; i < count; ++i) {
    const float value = random.Next();
    if (dtype == DType::kFloat32) {
      std::memcpy(to + i * sizeof(value), &value, sizeof(value));
    } else if (ElementBytes(dtype) == 1) {
      to[i] = static_cast<std::byte>(static_cast<int>(value * 128));
    } else {
      const uint16_t half = dtype == DType::kFloat16 ? HalfOfFloat(value) : Bfloat16OfFloat(value);
      std::memcpy(to + i * sizeof(half), &half, sizeof(half));
    }
  }
}

// Sequences of a middling length, for ops that ask for some. Of half of it attention on tensor cores (TF32) seemed no
// faster than without, and BERT-base took 1561 us for 8 sequences of 128 tokens instead of 1383.
struct DrawnSequences {
  explicit DrawnSequences(const Problem& problem) {
    const int64_t tokens = problem.input.batch;
    const int64_t length = LengthFor(problem);
    for (int64_t token = 0; token < tokens; ++token) {
      if (token % length == 0) begins.push_back(static_cast<int32_t>(token));
      positions.push_back(0);
      owners.push_back(static_cast<int32_t>(begins.size()) - 1);
    }
    begins.push_back(static_cast<int32_t>(tokens));
  }

  static int64_t LengthFor(const Problem& problem) {
    constexpr int64_t kLength = 128;
    if (problem.op == Op::kSparseAttention) return problem.attention().length;
    return TraitsOf(problem.op).Has(OpTraits::kReducesTokens) ? 1 : kLength;
  }

  std::vector<int32_t> begins, positions, owners;
};

// The operands of runs of some kernels on one problem, in the backend's memory. All share them: each is as large as the
// largest layout needs.
class RunBuffers {
 public:
  static StatusOr<RunBuffers> Make(Backend& backend, Stream& stream, std::span<const Contender> contenders,
                                   const Problem& problem) {
    RunBuffers buffers(backend, stream);
    size_t output_bytes = 0, workspace_bytes = 0;
    for (const Contender& contender : contenders) {
      const KernelKey& key = contender.kernel->key;
      output_bytes = std::max(output_bytes, StorageBytes(problem.output, key.output));
      workspace_bytes = std::max(workspace_bytes, WorkspaceBytes(*contender.kernel, problem));
      buffers.NeedInputs(key, problem);
    }
    SWIZZLE_RETURN_IF_ERROR(buffers.DrawInputs(problem));
    if (IsOfSequences(problem.op)) SWIZZLE_RETURN_IF_ERROR(buffers.DrawSequences(problem));
    SWIZZLE_ASSIGN_OR_RETURN(buffers.output_, buffers.Add(output_bytes));
    if (workspace_bytes > 0) {
      SWIZZLE_ASSIGN_OR_RETURN(buffers.workspace_, buffers.Add(workspace_bytes));
    }
    SWIZZLE_RETURN_IF_ERROR(stream.Synchronize());
    return buffers;
  }

  // Valid until the next call: so is the problem that they are of.
  KernelArgs Args(const Contender& contender, const Problem& problem) {
    const KernelKey& key = contender.kernel->key;
    args_inputs_.clear();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const DType dtype = InputStorage(key, problem, i).dtype;
      args_inputs_.push_back({inputs_[i].at(dtype).data, dtype});
    }
    args_problem_ = AsRowSolves(*contender.kernel, problem);
    return {.problem = &args_problem_,
            .weight = contender.weight,
            .inputs = args_inputs_,
            .output = {output_, key.output.dtype},
            .workspace = {workspace_, WorkspaceBytes(*contender.kernel, problem)},
            .sequences = sequences_.begins.empty() ? nullptr : &sequences_};
  }

  // What a plan's earlier steps would have written: the inputs, residual included. Valid until the next call.
  Stream::Operands Activations(const Contender& contender, const Problem& problem) {
    const KernelKey& key = contender.kernel->key;
    activations_.clear();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const DType dtype = InputStorage(key, problem, i).dtype;
      activations_.emplace_back(inputs_[i].at(dtype).data,
                                static_cast<size_t>(InputElements(key, problem, i)) * ElementBytes(dtype));
    }
    return activations_;
  }

 private:
  RunBuffers(Backend& backend, Stream& stream) : backend_(&backend), stream_(&stream) {}

  StatusOr<std::byte*> Add(size_t bytes) {
    SWIZZLE_ASSIGN_OR_RETURN(auto buffer, backend_->Allocate(bytes));
    owned_.push_back(std::move(buffer));
    return owned_.back()->data();
  }

  // A copy in the backend's memory.
  template <typename T>
  StatusOr<std::span<const T>> Place(const std::vector<T>& values) {
    const size_t bytes = values.size() * sizeof(T);
    SWIZZLE_ASSIGN_OR_RETURN(std::byte* const data, Add(bytes));
    stream_->Copy(data, values.data(), bytes);
    SWIZZLE_RETURN_IF_ERROR(stream_->Synchronize());
    return std::span(reinterpret_cast<const T*>(data), values.size());
  }

  // One operand, in one type.
  struct DrawnOperand {
    int64_t elements = 0;
    const std::byte* data = nullptr;
  };

  static size_t WorkspaceBytes(const Kernel& kernel, const Problem& problem) {
    return kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(AsRowSolves(kernel, problem));
  }

  // The operand behind the inputs is the residual.
  static Storage InputStorage(const KernelKey& key, const Problem& problem, size_t i) {
    return i < static_cast<size_t>(InputCount(problem)) ? key.input : key.output;
  }

  static int64_t InputElements(const KernelKey& key, const Problem& problem, size_t i) {
    const bool residual = i == static_cast<size_t>(InputCount(problem));
    if (residual) return LayoutElements(problem.output, key.output.layout);
    // kScale reads less of its second operand, and values may have other channels than queries; it costs nothing here.
    const int64_t channels = std::max(problem.input.channels, problem.output.channels);
    return LayoutElements(IsAttention(problem.op) ? Extent{problem.input.batch, channels} : problem.input,
                          key.input.layout);
  }

  void NeedInputs(const KernelKey& key, const Problem& problem) {
    inputs_.resize(static_cast<size_t>(InputCount(problem)) + (problem.epilogue.residual ? 1 : 0));
    for (size_t i = 0; i < inputs_.size(); ++i) {
      int64_t& elements = inputs_[i][InputStorage(key, problem, i).dtype].elements;
      elements = std::max(elements, InputElements(key, problem, i));
    }
  }

  Status DrawInputs(const Problem& problem) {
    for (auto& types : inputs_) {
      for (auto& [dtype, operand] : types) SWIZZLE_RETURN_IF_ERROR(DrawInput(problem, dtype, operand));
    }
    return absl::OkStatus();
  }

  Status DrawInput(const Problem& problem, DType dtype, DrawnOperand& operand) {
    const size_t bytes = static_cast<size_t>(operand.elements) * ElementBytes(dtype);
    // Ids that any table has, which buffers are allocated with; numbers drawn would be out of range.
    const bool ids = problem.op == Op::kEmbedding;
    if (ids || HasHostMemory(*backend_)) {
      SWIZZLE_ASSIGN_OR_RETURN(std::byte* const data, Add(bytes));
      if (!ids) Draw(operand.elements, dtype, data);
      operand.data = data;
      return absl::OkStatus();
    }
    std::vector<std::byte> drawn(bytes);
    Draw(operand.elements, dtype, drawn.data());
    SWIZZLE_ASSIGN_OR_RETURN(const auto placed, Place(drawn));
    operand.data = placed.data();
    return absl::OkStatus();
  }

  Status DrawSequences(const Problem& problem) {
    const DrawnSequences drawn(problem);
    SWIZZLE_ASSIGN_OR_RETURN(sequences_.begins, Place(drawn.begins));
    SWIZZLE_ASSIGN_OR_RETURN(sequences_.positions, Place(drawn.positions));
    SWIZZLE_ASSIGN_OR_RETURN(sequences_.owners, Place(drawn.owners));
    return absl::OkStatus();
  }

  Backend* backend_;
  Stream* stream_;
  std::vector<std::unique_ptr<Buffer>> owned_;
  std::vector<std::map<DType, DrawnOperand>> inputs_;
  std::vector<Operand> args_inputs_;
  Problem args_problem_;
  std::vector<std::span<const std::byte>> activations_;
  std::byte* output_ = nullptr;
  std::byte* workspace_ = nullptr;
  Sequences sequences_;
};

// Turns of every contender. More would spread them further, and warm the caches more often.
constexpr int kTurns = 5;
// How many times the least of all a contender's least may be, after two turns.
constexpr int kFarBehind = 2;

// Times contenders in turn; see MeasureKernels.
class Race {
 public:
  Race(Backend& backend, Stream& stream, RunBuffers& buffers, const Problem& problem, const MeasureOptions& options)
      : backend_(backend), stream_(stream), buffers_(buffers), problem_(problem), options_(options) {}

  StatusOr<std::vector<absl::Duration>> Run(std::span<const Contender> contenders) {
    std::vector<absl::Duration> least(contenders.size(), absl::InfiniteDuration());
    std::vector<int> runs(contenders.size());
    absl::Duration left = options_.budget * static_cast<int64_t>(contenders.size());
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<bool> starts, WarmUp(contenders));
    for (int turn = 0; turn < kTurns; ++turn) {
      const absl::Duration best = *std::ranges::min_element(least);
      const auto is_in = [&](size_t i) {
        return starts[i] && (runs[i] < 2 || turn < 2 || least[i] <= best * kFarBehind);
      };
      int64_t in = 0;
      for (size_t i = 0; i < contenders.size(); ++i) in += is_in(i);
      const absl::Duration share = std::max(absl::ZeroDuration(), left) / (in * (kTurns - turn));
      for (size_t i = 0; i < contenders.size(); ++i) {
        if (is_in(i)) SWIZZLE_RETURN_IF_ERROR(TakeTurn(contenders[i], turn, share, runs[i], least[i], left));
      }
    }
    SWIZZLE_RETURN_IF_ERROR(stream_.Synchronize());
    return least;
  }

 private:
  // Which of them run here. The first one's error if none does; the device's if it is lost.
  StatusOr<std::vector<bool>> WarmUp(std::span<const Contender> contenders) {
    std::vector<bool> starts;
    Status first_error;
    for (const Contender& contender : contenders) {
      const KernelArgs args = buffers_.Args(contender, problem_);
      stream_.Run([&] { contender.kernel->run(args, stream_); });
      const Status status = stream_.Synchronize();
      starts.push_back(status.ok());
      first_error.Update(status);
      SWIZZLE_RETURN_IF_ERROR(backend_.health());
    }
    if (std::ranges::count(starts, true) == 0) return first_error;
    return starts;
  }

  // Runs until `share` is spent, or as many runs are done as there should be after this turn.
  Status TakeTurn(const Contender& contender, int turn, absl::Duration share, int& runs, absl::Duration& least,
                  absl::Duration& left) {
    const KernelArgs args = buffers_.Args(contender, problem_);
    const Stream::Operands activations = buffers_.Activations(contender, problem_);
    const auto run = [&] { contender.kernel->run(args, stream_); };
    const int least_runs = CeilDiv(options_.min_runs * (turn + 1), kTurns);
    const int most_runs = CeilDiv(options_.max_runs * (turn + 1), kTurns);
    absl::Duration spent;
    while (runs < least_runs || (runs < most_runs && spent < share)) {
      SWIZZLE_ASSIGN_OR_RETURN(const absl::Duration time, stream_.Time(run, activations));
      least = std::min(least, time);
      spent += time;
      left -= time;
      ++runs;
    }
    return absl::OkStatus();
  }

  Backend& backend_;
  Stream& stream_;
  RunBuffers& buffers_;
  const Problem& problem_;
  const MeasureOptions& options_;
};

}  // namespace

StatusOr<std::vector<absl::Duration>> MeasureKernels(Backend& backend, Stream& stream,
                                                     std::span<const Contender> contenders, const Problem& problem,
                                                     const MeasureOptions& options) {
  if (contenders.empty()) return std::vector<absl::Duration>();
  SWIZZLE_ASSIGN_OR_RETURN(RunBuffers buffers, RunBuffers::Make(backend, stream, contenders, problem));
  return Race(backend, stream, buffers, problem, options).Run(contenders);
}

StatusOr<absl::Duration> MeasureKernel(Backend& backend, Stream& stream, const Kernel& kernel, const Problem& problem,
                                       const PackedWeight* weight, const MeasureOptions& options) {
  const Contender contender{&kernel, weight};
  SWIZZLE_ASSIGN_OR_RETURN(const auto least, MeasureKernels(backend, stream, {&contender, 1}, problem, options));
  return least[0];
}

}  // namespace swizzle
