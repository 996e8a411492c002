#include "kernels/measure/measure_kernels.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "kernels/base/half_bits.h"
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
    if (problem.op == Op::kConcat) return LayoutElements(InputExtent(problem, static_cast<int>(i)), key.input.layout);
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
// And more of those whose runs were disturbed, while there is budget.
constexpr int kRepeats = 10;
// How many times the least of all a contender's least may be, after two turns.
constexpr int kFarBehind = 2;
// What is judged together as disturbed or not: reading the machine takes a few microseconds.
constexpr int kMostAtOnce = 8;
constexpr absl::Duration kLongAtOnce = absl::Microseconds(500);

// The two least times of some.
struct LeastTimes {
  absl::Duration least = absl::InfiniteDuration(), second = absl::InfiniteDuration();

  void Add(absl::Duration time) {
    second = std::min(second, std::max(time, least));
    least = std::min(least, time);
  }
  bool has_one() const { return least < absl::InfiniteDuration(); }
  bool has_two() const { return second < absl::InfiniteDuration(); }
  bool Agree() const {
    constexpr double kSpread = 0.15;
    constexpr absl::Duration kTick = absl::Microseconds(1);
    return has_two() && second <= least * (1.0 + kSpread) + kTick;
  }
};

// What is known of a contender.
struct Standing {
  bool starts = false;
  int runs = 0;
  absl::Duration of_all = absl::InfiniteDuration();  // the least of all runs
  LeastTimes undisturbed;
  LeastTimes shared;  // SharedTime of disturbed ones
  Disturbances met;

  // Whoever's runs are longer than a time slice has no undisturbed one beside busy neighbours.
  const LeastTimes& best_known() const { return !undisturbed.Agree() && shared.Agree() ? shared : undisturbed; }
  bool IsFarBehind(absl::Duration best) const {
    const LeastTimes& known = undisturbed.has_one() ? undisturbed : shared;
    return known.has_one() && known.least > best * kFarBehind;
  }
};

// Times contenders in turn; see MeasureKernels.
class Race {
 public:
  Race(Backend& backend, Stream& stream, RunBuffers& buffers, const Problem& problem, const MeasureOptions& options)
      : backend_(backend),
        stream_(stream),
        buffers_(buffers),
        problem_(problem),
        options_(options),
        gate_(*options.gate) {}

  StatusOr<std::vector<MeasuredTime>> Run(std::span<const Contender> contenders) {
    contenders_ = contenders;
    standings_.resize(contenders.size());
    end_ = gate_.Spent() + options_.budget * static_cast<int64_t>(contenders.size());
    const std::optional<MachineReading> before = ReadMachine();
    SWIZZLE_RETURN_IF_ERROR(WarmUp());
    for (int turn = 0; turn < kTurns; ++turn) {
      SWIZZLE_RETURN_IF_ERROR(TakeTurns(turn, [&](const Standing& standing) {
        return standing.runs < 2 || turn < 2 || !standing.IsFarBehind(best_);
      }));
    }
    for (int turn = kTurns; turn < kTurns + kRepeats && gate_.Spent() < end_; ++turn) {
      SWIZZLE_RETURN_IF_ERROR(TakeTurns(turn, [&](const Standing& standing) { return !Suspicion(standing).empty(); }));
    }
    SWIZZLE_RETURN_IF_ERROR(stream_.Synchronize());
    return Times(before ? DisturbedMachine(*before, *ReadMachine(), threads_tell_) : Disturbances());
  }

 private:
  std::optional<MachineReading> ReadMachine() const {
    return options_.watch == nullptr ? std::nullopt : std::optional(options_.watch->ReadMachine());
  }

  // Which of them run here. The first one's error if none does; the device's if it is lost.
  Status WarmUp() {
    Status first_error;
    int starting = 0;
    for (size_t i = 0; i < contenders_.size(); ++i) {
      if (gate_.MustWait()) SWIZZLE_RETURN_IF_ERROR(gate_.Await());
      const KernelArgs args = buffers_.Args(contenders_[i], problem_);
      stream_.Run([&] { contenders_[i].kernel->run(args, stream_); });
      const Status status = stream_.Synchronize();
      standings_[i].starts = status.ok();
      starting += status.ok();
      first_error.Update(status);
      SWIZZLE_RETURN_IF_ERROR(backend_.health());
    }
    return starting == 0 ? first_error : absl::OkStatus();
  }

  // One turn of each that is in. What is left of the budget is shared by all turns of the plan that are to come.
  Status TakeTurns(int turn, absl::FunctionRef<bool(const Standing&)> is_in) {
    int64_t in = 0;
    for (const Standing& standing : standings_) in += standing.starts && is_in(standing);
    if (in == 0) return absl::OkStatus();
    const int64_t turns_left = std::max(kTurns - turn, 1);
    const absl::Duration share = std::max(absl::ZeroDuration(), end_ - gate_.Spent()) / (in * turns_left);
    for (size_t i = 0; i < standings_.size(); ++i) {
      if (standings_[i].starts && is_in(standings_[i])) SWIZZLE_RETURN_IF_ERROR(TakeTurn(i, turn, share));
    }
    return absl::OkStatus();
  }

  // Runs until `share` is spent, or as many runs are done as there should be after this turn.
  Status TakeTurn(size_t i, int turn, absl::Duration share) {
    const int least_runs = CeilDiv(options_.min_runs * std::min(turn + 1, kTurns), kTurns);
    const int most_runs = CeilDiv(options_.max_runs * (turn + 1), kTurns);
    const absl::Duration end = gate_.Spent() + share;
    Standing& standing = standings_[i];
    while (true) {
      const int wanted = gate_.Spent() < end ? most_runs : least_runs;
      if (standing.runs >= wanted) break;
      SWIZZLE_RETURN_IF_ERROR(RunSome(i, std::min(kMostAtOnce, wanted - standing.runs)));
    }
    best_ = std::min(best_, standing.best_known().least);
    return absl::OkStatus();
  }

  // At most so many runs, which are disturbed or not together.
  Status RunSome(size_t i, int most) {
    const KernelArgs args = buffers_.Args(contenders_[i], problem_);
    const Stream::Operands activations = buffers_.Activations(contenders_[i], problem_);
    const auto run = [&] { contenders_[i].kernel->run(args, stream_); };
    if (gate_.MustWait()) {
      SWIZZLE_RETURN_IF_ERROR(stream_.Synchronize());
      SWIZZLE_RETURN_IF_ERROR(gate_.Await());
      SWIZZLE_RETURN_IF_ERROR(stream_.Time(run, activations));  // caches are others' by now
    }
    std::array<absl::Duration, kMostAtOnce> times;
    absl::Duration spent;
    int runs = 0;
    const int64_t others = gate_.disturbances();
    const ThreadReading before = options_.watch == nullptr ? ThreadReading() : options_.watch->ReadThreads();
    while (runs < most && spent < kLongAtOnce) {
      SWIZZLE_ASSIGN_OR_RETURN(times[runs], stream_.Time(run, activations));
      spent += times[runs++];
    }
    Disturbances met;
    std::optional<absl::Duration> shared;
    if (options_.watch != nullptr) {
      const ThreadReading after = options_.watch->ReadThreads();
      threads_tell_ = after.waited.has_value();
      met = DisturbedThreads(before, after, spent);
      shared = SharedTime(before, after);
    }
    if (gate_.disturbances() != others) met.Add(Disturbance::kRequests);
    Standing& standing = standings_[i];
    standing.met.Add(met);
    standing.runs += runs;
    for (int k = 0; k < runs; ++k) {
      standing.of_all = std::min(standing.of_all, times[k]);
      if (met.empty()) standing.undisturbed.Add(times[k]);
    }
    if (!met.empty() && shared) standing.shared.Add(*shared / runs);
    return absl::OkStatus();
  }

  // Why the time of a contender that starts isn't to be trusted.
  Disturbances Suspicion(const Standing& standing) const {
    const LeastTimes& known = standing.best_known();
    if (standing.IsFarBehind(best_)) return {};
    if (!known.has_one()) return standing.met;
    if (options_.watch == nullptr) return {};
    Disturbances found;
    if (!known.has_two()) {
      found = standing.met;
    } else if (!known.Agree()) {
      found.Add(Disturbance::kSpread);
    }
    if (!threads_tell_ && LooksLikeTimeSlices(known.least)) found.Add(Disturbance::kSlices);
    return found;
  }

  std::vector<MeasuredTime> Times(Disturbances of_machine) const {
    std::vector<MeasuredTime> times(standings_.size());
    for (size_t i = 0; i < standings_.size(); ++i) {
      const Standing& standing = standings_[i];
      if (!standing.starts) continue;
      const LeastTimes& known = standing.best_known();
      times[i].time = known.has_one() ? known.least : standing.of_all;
      times[i].suspect = Suspicion(standing);
      times[i].suspect.Add(of_machine);
    }
    return times;
  }

  Backend& backend_;
  Stream& stream_;
  RunBuffers& buffers_;
  const Problem& problem_;
  const MeasureOptions& options_;
  MeasureGate& gate_;
  std::span<const Contender> contenders_;
  std::vector<Standing> standings_;  // of contenders_
  absl::Duration best_ = absl::InfiniteDuration();
  absl::Duration end_;  // of the budget, by the gate's clock
  bool threads_tell_ = false;
};

}  // namespace

StatusOr<std::vector<MeasuredTime>> MeasureKernels(Backend& backend, Stream& stream,
                                                   std::span<const Contender> contenders, const Problem& problem,
                                                   const MeasureOptions& options) {
  if (contenders.empty()) return std::vector<MeasuredTime>();
  SWIZZLE_ASSIGN_OR_RETURN(RunBuffers buffers, RunBuffers::Make(backend, stream, contenders, problem));
  return Race(backend, stream, buffers, problem, options).Run(contenders);
}

StatusOr<MeasuredTime> MeasureKernel(Backend& backend, Stream& stream, const Kernel& kernel, const Problem& problem,
                                     const PackedWeight* weight, const MeasureOptions& options) {
  const Contender contender{&kernel, weight};
  SWIZZLE_ASSIGN_OR_RETURN(const auto times, MeasureKernels(backend, stream, {&contender, 1}, problem, options));
  return times[0];
}

}  // namespace swizzle
