#include "kernels/select.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "kernels/half.h"

namespace swizzle {
namespace {

// "conv_csr_f32" of "conv_csr_f32_avx512": what the variants of one kernel share.
std::string_view Stem(std::string_view name) { return name.substr(0, name.rfind('_')); }

bool AreVariants(const Kernel& a, const Kernel& b) {
  return Stem(a.name) == Stem(b.name) && a.key.input == b.key.input && a.key.output == b.key.output &&
         a.required_features != b.required_features;
}

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
    } else {
      const uint16_t half = dtype == DType::kFloat16 ? HalfOfFloat(value) : Bfloat16OfFloat(value);
      std::memcpy(to + i * sizeof(half), &half, sizeof(half));
    }
  }
}

// Sequences of a middling length, for ops that ask for some.
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
    constexpr int64_t kLength = 64;
    if (problem.op == Op::kSparseAttention) return problem.attention.length;
    return problem.op == Op::kSelectToken || problem.op == Op::kMeanTokens ? 1 : kLength;
  }

  std::vector<int32_t> begins, positions, owners;
};

// The operands of one run of a kernel, in the backend's memory.
class RunBuffers {
 public:
  static StatusOr<RunBuffers> Make(Backend& backend, Stream& stream, const Kernel& kernel, const Problem& problem) {
    RunBuffers buffers(backend, stream);
    SWIZZLE_RETURN_IF_ERROR(buffers.DrawInputs(kernel, problem));
    if (problem.op >= Op::kEmbedding) SWIZZLE_RETURN_IF_ERROR(buffers.DrawSequences(problem));
    const int64_t outputs = LayoutElements(problem.output, kernel.key.output);
    SWIZZLE_ASSIGN_OR_RETURN(buffers.output_, buffers.Add(outputs * ElementBytes(kernel.key.output_dtype)));
    if (kernel.workspace_bytes != nullptr) {
      buffers.workspace_bytes_ = kernel.workspace_bytes(problem);
      SWIZZLE_ASSIGN_OR_RETURN(buffers.workspace_, buffers.Add(buffers.workspace_bytes_));
    }
    SWIZZLE_RETURN_IF_ERROR(stream.Synchronize());
    return buffers;
  }

  KernelArgs Args(const Problem& problem, const PackedWeight* weight) const {
    return {.problem = &problem,
            .weight = weight,
            .inputs = inputs_,
            .output = reinterpret_cast<float*>(output_),
            .workspace = {workspace_, workspace_bytes_},
            .sequences = sequences_.begins.empty() ? nullptr : &sequences_};
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

  Status DrawInput(const Extent& extent, Layout layout, DType dtype) {
    const int64_t count = LayoutElements(extent, layout);
    const size_t bytes = static_cast<size_t>(count) * ElementBytes(dtype);
    if (backend_->shares_host_memory()) {
      SWIZZLE_ASSIGN_OR_RETURN(std::byte* const data, Add(bytes));
      Draw(count, dtype, data);
      inputs_.push_back(reinterpret_cast<const float*>(data));
      return absl::OkStatus();
    }
    std::vector<std::byte> drawn(bytes);
    Draw(count, dtype, drawn.data());
    SWIZZLE_ASSIGN_OR_RETURN(const auto placed, Place(drawn));
    inputs_.push_back(reinterpret_cast<const float*>(placed.data()));
    return absl::OkStatus();
  }

  Status DrawInputs(const Kernel& kernel, const Problem& problem) {
    // Ids that any table has, which buffers are allocated with; numbers drawn would be out of range.
    if (problem.op == Op::kEmbedding && !problem.lookup.by_position) {
      SWIZZLE_ASSIGN_OR_RETURN(std::byte* const ids, Add(LayoutElements(problem.input, kernel.key.input) * sizeof(float)));
      inputs_.push_back(reinterpret_cast<const float*>(ids));
      return absl::OkStatus();
    }
    // kScale reads less of its second operand, and values may have other channels than queries; it costs nothing here.
    const int64_t channels = std::max(problem.input.channels, problem.output.channels);
    const bool attends = IsAttention(problem.op);
    for (int i = 0; i < InputCount(problem); ++i) {
      const Extent extent = attends ? Extent{problem.input.batch, channels} : problem.input;
      SWIZZLE_RETURN_IF_ERROR(DrawInput(extent, kernel.key.input, kernel.key.input_dtype));
    }
    if (!problem.epilogue.residual) return absl::OkStatus();
    return DrawInput(problem.output, kernel.key.output, kernel.key.output_dtype);
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
  std::vector<const float*> inputs_;
  std::byte* output_ = nullptr;
  std::byte* workspace_ = nullptr;
  size_t workspace_bytes_ = 0;
  Sequences sequences_;
};

}  // namespace

std::vector<const Kernel*> WidestCandidates(const Backend& backend, const Problem& problem, Format format) {
  std::vector<const Kernel*> widest;
  for (const Kernel* kernel : Candidates(backend, problem, format)) {
    auto same = std::find_if(widest.begin(), widest.end(), [&](const Kernel* w) { return AreVariants(*w, *kernel); });
    if (same == widest.end()) {
      widest.push_back(kernel);
    } else if (kernel->required_features > (*same)->required_features) {
      *same = kernel;
    }
  }
  return widest;
}

StatusOr<absl::Duration> MeasureKernel(Backend& backend, Stream& stream, const Kernel& kernel, const Problem& problem,
                                       const PackedWeight* weight, const MeasureOptions& options) {
  SWIZZLE_ASSIGN_OR_RETURN(const RunBuffers buffers, RunBuffers::Make(backend, stream, kernel, problem));
  const KernelArgs args = buffers.Args(problem, weight);
  const auto run = [&] { kernel.run(args, stream); };
  stream.Run(run);
  SWIZZLE_RETURN_IF_ERROR(stream.Synchronize());

  std::vector<absl::Duration> times;
  absl::Duration spent;
  while (static_cast<int>(times.size()) < options.max_runs) {
    SWIZZLE_ASSIGN_OR_RETURN(const absl::Duration time, stream.Time(run));
    times.push_back(time);
    spent += time;
    const bool enough_runs = static_cast<int>(times.size()) >= options.min_runs;
    if (spent >= options.budget && enough_runs) break;
  }
  SWIZZLE_RETURN_IF_ERROR(stream.Synchronize());
  return *std::min_element(times.begin(), times.end());
}

}  // namespace swizzle
