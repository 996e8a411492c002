#include "kernels/measure/run_buffers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/base/half_bits.h"
#include "kernels/base/integers.h"
#include "kernels/operator/count_zeros.h"

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

// Draws elements of this type; what is many is a repetition of fewer.
void Draw(int64_t count, DType dtype, std::byte* to) {
  constexpr int64_t kDrawn = 1 << 16;
  Random random;
  const int64_t drawn = std::min(count, kDrawn);
  for (int64_t i = 0; i < drawn; ++i) {
    const float value = random.Next();
    if (dtype == DType::kFloat32) {
      std::memcpy(to + i * sizeof(value), &value, sizeof(value));
    } else if (ElementBytes(dtype) == 1) {
      to[i] = static_cast<std::byte>(static_cast<int>(value * 128));
    } else {
      const uint16_t half = HalfBits(value, dtype);
      std::memcpy(to + i * sizeof(half), &half, sizeof(half));
    }
  }
  const auto bytes = [&](int64_t elements) { return static_cast<size_t>(elements) * ElementBytes(dtype); };
  for (int64_t done = drawn; done < count; done += drawn) {
    std::memcpy(to + bytes(done), to, bytes(std::min(drawn, count - done)));
  }
}

// Zeros of the first input as its layer has them, in kRows: in other layouts their number alone is right.
void PutZeros(const Problem& problem, DType dtype, std::byte* to) {
  const size_t bytes = ElementBytes(dtype);
  const int64_t stride = RowStride(problem.input.positions());
  DrawZeros(*problem.input_zeros, problem.input, [&](const DrawnRun& run) {
    const int64_t first = run.channel * stride + run.row * problem.input.plane() + run.position;
    for (int i = 0; i < run.count; ++i) {
      if ((run.held >> i & 1) == 0) std::memset(to + static_cast<size_t>(first + i) * bytes, 0, bytes);
    }
  });
}

void DrawOperand(const Problem& problem, size_t index, DType dtype, int64_t elements, std::byte* to) {
  Draw(elements, dtype, to);
  const bool has_rows = elements >= LayoutElements(problem.input, Layout::kRows);
  if (index == 0 && problem.input_zeros && has_rows) PutZeros(problem, dtype, to);
}

// For ops that ask for sequences: where they are reduced as many as there are to be rows, else of a middling length. Of
// half of it attention on tensor cores (TF32) seemed no faster than without, and BERT-base took 1561 us for 8 sequences
// of 128 tokens instead of 1383.
struct DrawnSequences {
  explicit DrawnSequences(const Problem& problem) {
    const int64_t tokens = problem.input.batch;
    const bool reduces = TraitsOf(problem.op).Has(OpTraits::kReducesTokens);
    const int64_t length = LengthFor(problem), count = reduces ? problem.output.batch : CeilDiv(tokens, length);
    for (int64_t i = 0; i <= count; ++i) {
      begins.push_back(static_cast<int32_t>(reduces ? i * tokens / count : std::min(i * length, tokens)));
    }
    positions.resize(tokens);
    for (int64_t i = 0; i < count; ++i) owners.resize(begins[i + 1], static_cast<int32_t>(i));
  }

  static int64_t LengthFor(const Problem& problem) {
    constexpr int64_t kLength = 128;
    return IsAttention(problem.op) && problem.attention().length > 0 ? problem.attention().length : kLength;
  }

  std::vector<int32_t> begins, positions, owners;
};

size_t WorkspaceBytes(const Kernel& kernel, const Problem& problem) {
  return kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(AsRowSolves(kernel, problem));
}

// The operand behind the inputs is the residual.
Storage InputStorage(const KernelKey& key, const Problem& problem, size_t i) {
  return i < static_cast<size_t>(InputCount(problem)) ? key.input : key.output;
}

int64_t InputElements(const KernelKey& key, const Problem& problem, size_t i) {
  const bool residual = i == static_cast<size_t>(InputCount(problem));
  if (residual) return LayoutElements(problem.output, key.output.layout);
  if (problem.op == Op::kConcat) return LayoutElements(InputExtent(problem, static_cast<int>(i)), key.input.layout);
  // kScale reads less of its second operand, and values may have other channels than queries; it costs nothing here.
  const int64_t channels = std::max(problem.input.channels, problem.output.channels);
  return LayoutElements(IsAttention(problem.op) ? Extent{problem.input.batch, channels} : problem.input,
                        key.input.layout);
}

}  // namespace

StatusOr<std::byte*> RunBuffers::Add(size_t bytes) {
  SWIZZLE_ASSIGN_OR_RETURN(auto buffer, backend_->Allocate(bytes));
  owned_.push_back(std::move(buffer));
  return owned_.back()->data();
}

template <typename T>
StatusOr<std::span<const T>> RunBuffers::Place(const std::vector<T>& values) {
  const size_t bytes = values.size() * sizeof(T);
  SWIZZLE_ASSIGN_OR_RETURN(std::byte* const data, Add(bytes));
  stream_->Copy(data, values.data(), bytes);
  SWIZZLE_RETURN_IF_ERROR(stream_->Synchronize());
  return std::span(reinterpret_cast<const T*>(data), values.size());
}

StatusOr<RunBuffers> RunBuffers::Make(Backend& backend, Stream& stream, std::span<const Contender> contenders,
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

KernelArgs RunBuffers::Args(const Contender& contender, const Problem& problem) {
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

Stream::Operands RunBuffers::Activations(const Contender& contender, const Problem& problem) {
  const KernelKey& key = contender.kernel->key;
  activations_.clear();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const DType dtype = InputStorage(key, problem, i).dtype;
    activations_.emplace_back(inputs_[i].at(dtype).data,
                              static_cast<size_t>(InputElements(key, problem, i)) * ElementBytes(dtype));
  }
  return activations_;
}

void RunBuffers::NeedInputs(const KernelKey& key, const Problem& problem) {
  inputs_.resize(static_cast<size_t>(InputCount(problem)) + (problem.epilogue.residual ? 1 : 0));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    int64_t& elements = inputs_[i][InputStorage(key, problem, i).dtype].elements;
    elements = std::max(elements, InputElements(key, problem, i));
  }
}

Status RunBuffers::DrawInputs(const Problem& problem) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    for (auto& [dtype, operand] : inputs_[i]) SWIZZLE_RETURN_IF_ERROR(DrawInput(problem, i, dtype, operand));
  }
  return absl::OkStatus();
}

Status RunBuffers::DrawInput(const Problem& problem, size_t index, DType dtype, DrawnOperand& operand) {
  const size_t bytes = static_cast<size_t>(operand.elements) * ElementBytes(dtype);
  // Ids that any table has, which buffers are allocated with; numbers drawn would be out of range.
  const bool ids = problem.op == Op::kEmbedding;
  if (ids || HasHostMemory(*backend_)) {
    SWIZZLE_ASSIGN_OR_RETURN(std::byte* const data, Add(bytes));
    if (!ids) DrawOperand(problem, index, dtype, operand.elements, data);
    operand.data = data;
    return absl::OkStatus();
  }
  std::vector<std::byte> drawn(bytes);
  DrawOperand(problem, index, dtype, operand.elements, drawn.data());
  SWIZZLE_ASSIGN_OR_RETURN(const auto placed, Place(drawn));
  operand.data = placed.data();
  return absl::OkStatus();
}

Status RunBuffers::DrawSequences(const Problem& problem) {
  const DrawnSequences drawn(problem);
  SWIZZLE_ASSIGN_OR_RETURN(sequences_.begins, Place(drawn.begins));
  SWIZZLE_ASSIGN_OR_RETURN(sequences_.positions, Place(drawn.positions));
  SWIZZLE_ASSIGN_OR_RETURN(sequences_.owners, Place(drawn.owners));
  return absl::OkStatus();
}

}  // namespace swizzle
