// The ops of token sequences at the sizes of MiniLM (12 heads of 32) and BERT (12 heads of 64): attention beside the
// machine's FMA peak, layer normalisation in bytes read and written.
//
//   sequence_bench [--threads=N] [--batch=N] [--length=N] [--rounds=N] [--row=PART OF A NAME]
//
// Every round times each row once, after one run to warm up; each time is the least of the rounds beside their median,
// for machines with busy neighbours. A share is of the peak of the row's instructions, measured around the same run,
// times the threads; its median and best are printed. It counts two multiply-adds for each query, key and channel, and
// nothing for the exponentials.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "model_loader/plan/choose/median.h"
#include "tests/bench/machine_peaks.h"

namespace swizzle::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  int threads = 1;
  int64_t batch = 1;
  std::vector<int64_t> lengths = {32, 128, 512};
  int rounds = 21;
  std::string row;
};

Options ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::string value = argument.substr(std::min(argument.find('=') + 1, argument.size()));
    if (argument.starts_with("--threads=")) options.threads = std::atoi(value.c_str());
    if (argument.starts_with("--batch=")) options.batch = std::atoi(value.c_str());
    if (argument.starts_with("--length=")) options.lengths = {std::atoi(value.c_str())};
    if (argument.starts_with("--rounds=")) options.rounds = std::atoi(value.c_str());
    if (argument.starts_with("--row=")) options.row = value;
  }
  return options;
}

// Buffers of one problem, and sequences of one length.
class Workload {
 public:
  Workload(Backend& backend, const Kernel& kernel, const Problem& problem, int64_t length)
      : kernel_(kernel), problem_(problem) {
    for (int i = 0; i < InputCount(problem); ++i) inputs_.push_back(Fill(backend, problem.input));
    output_ = Fill(backend, problem.output);
    workspace_ = *backend.Allocate(kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(problem));
    const int64_t channels = problem.output.channels;
    if (kernel.prepare != nullptr) {
      const std::vector<float> ones(channels, 1.0f);
      weight_ = *kernel.prepare({DenseMatrix{channels, 1, ones}, ones}, problem);
    }
    for (const auto& input : inputs_) operands_.push_back({input->data(), DType::kFloat32});
    for (int64_t token = 0; token <= problem.input.batch; token += length) {
      begins_.push_back(static_cast<int32_t>(token));
    }
    positions_.resize(problem.input.batch);
    sequences_ = {begins_, positions_, {}};
  }
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  void Run(Stream& stream) const {
    kernel_.run({.problem = &problem_,
                 .weight = weight_.get(),
                 .inputs = operands_,
                 .output = {output_->data(), DType::kFloat32},
                 .workspace = {workspace_->data(), workspace_->bytes()},
                 .sequences = &sequences_},
                stream);
  }

 private:
  std::unique_ptr<Buffer> Fill(Backend& backend, const Extent& extent) const {
    std::unique_ptr<Buffer> buffer = *backend.Allocate(StorageBytes(extent, kernel_.key.input));
    std::vector<float> values(buffer->bytes() / sizeof(float));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 251) * 0.01f - 1;
    std::memcpy(buffer->data(), values.data(), values.size() * sizeof(float));
    return buffer;
  }

  const Kernel& kernel_;
  const Problem problem_;
  std::vector<std::unique_ptr<Buffer>> inputs_;
  std::unique_ptr<Buffer> output_;
  std::unique_ptr<Buffer> workspace_;
  std::unique_ptr<PackedWeight> weight_;
  std::vector<Operand> operands_;
  std::vector<int32_t> begins_;
  std::vector<int32_t> positions_;
  Sequences sequences_;
};

struct Times {
  std::vector<double> nanoseconds;
  std::vector<double> peaks;  // GFLOP/s around each
};

void RunRound(const Kernel& kernel, const Workload& workload, Stream& stream, Times& times) {
  workload.Run(stream);
  const double peak = FmaPeakGflops(kernel.required_features);
  const auto start = Clock::now();
  workload.Run(stream);
  times.nanoseconds.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count());
  times.peaks.push_back(std::max(peak, FmaPeakGflops(kernel.required_features)) * stream.threads());
}

void Print(const Kernel& kernel, const Problem& problem, int64_t length, Times& times) {
  const auto least = *std::min_element(times.nanoseconds.begin(), times.nanoseconds.end());
  std::printf("%-34s %5ld x %4ld channels, length %4ld  %9.1f us (median %9.1f)", std::string(kernel.name).c_str(),
              problem.input.batch, problem.input.channels, length, least / 1e3, Median(times.nanoseconds) / 1e3);
  const double elements = static_cast<double>(problem.input.batch) * problem.input.channels;
  if (problem.op == Op::kAttention) {
    std::vector<double> shares;
    for (size_t i = 0; i < times.peaks.size(); ++i) {
      shares.push_back(4 * elements * length / times.nanoseconds[i] / times.peaks[i]);
    }
    std::printf("  %.3f of peak (best %.3f)\n", Median(shares), *std::max_element(shares.begin(), shares.end()));
  } else {
    std::printf("  %.1f GB/s (best %.1f)\n", 2 * sizeof(float) * elements / Median(times.nanoseconds),
                2 * sizeof(float) * elements / least);
  }
  std::fflush(stdout);
}

void RunProblem(Backend& backend, Stream& stream, const Problem& problem, int64_t length, const Options& options) {
  const Weight scales{.matrix = DenseMatrix{problem.input.channels, 1, std::vector<float>(problem.input.channels)},
                      .bias = {}};
  const Weight* const weight = problem.op == Op::kLayerNorm ? &scales : nullptr;
  for (const Kernel* kernel : Candidates(backend, problem, weight, Precision::kFloat32)) {
    if (kernel->name.find(options.row) == std::string_view::npos) continue;
    const Workload workload(backend, *kernel, AsRowSolves(*kernel, problem), length);
    Times times;
    for (int round = 0; round < options.rounds; ++round) RunRound(*kernel, workload, stream, times);
    Print(*kernel, problem, length, times);
  }
}

int Main(int argc, char** argv) {
  const Options options = ParseOptions(argc, argv);
  const std::unique_ptr<Backend> backend = NewCpuBackend();
  const std::unique_ptr<Stream> stream = *backend->NewStream(options.threads);
  std::printf("%s, %s\n", backend->device_name().c_str(), backend->features_text().c_str());
  for (int64_t channels : {384, 768}) {
    for (int64_t length : options.lengths) {
      Problem problem;
      problem.input = problem.output = {options.batch * length, channels};
      problem.threads = options.threads;
      problem.SetOp(Op::kAttention, Attention{12, 0.125f});
      RunProblem(*backend, *stream, problem, length, options);
      problem.SetOp(Op::kLayerNorm, Normalisation{1e-12f});
      RunProblem(*backend, *stream, problem, length, options);
    }
  }
  return 0;
}

}  // namespace
}  // namespace swizzle::bench

int main(int argc, char** argv) { return swizzle::bench::Main(argc, argv); }
