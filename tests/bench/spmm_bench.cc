// Sparse times dense: the CSR rows of the kernel table on layers [M,K] x [K,N] with weights drawn at a given sparsity,
// or patterns of the Deep Learning Matrix Collection (--dlmc), beside the dense rows and the machine's FMA peak.
//
// Every round times the peak and each row for three milliseconds, after one run to warm up; each figure is a median
// over the rounds, and the best share of a round stands beside it, for machines with busy neighbours. The rate counts
// nonzeros for CSR rows and all weights for dense ones; the share is of the peak of the row's instructions, measured in
// the same round, times the threads; speed-up is over conv_dense_f32_onednn in the same round. Over the collection,
// geometric means by model and sparsity end the list, and how often the fastest sparse row was faster than the fastest
// dense one.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/format/csr.h"
#include "model_loader/plan/choose/median.h"
#include "tests/bench/dlmc.h"
#include "tests/bench/machine_peaks.h"

namespace swizzle::bench {
namespace {

using Clock = std::chrono::steady_clock;
// A row runs again and again for so long: a single run of half a millisecond is at a busy machine's mercy.
constexpr std::chrono::milliseconds kMinTime(3);
constexpr std::string_view kDenseBaseline = "conv_dense_f32_onednn";

struct Shape {
  int64_t m, k, n;
};

constexpr Shape kShapes[] = {
    {512, 512, 784},  {256, 256, 3136},  {2048, 512, 196}, {512, 2048, 196}, {512, 512, 196},  {1024, 1024, 49},
    {384, 1536, 128}, {768, 3072, 1024}, {64, 64, 12544},  {128, 128, 3136}, {1024, 1024, 16},
};

struct Options {
  int threads = 1;
  double sparsity = 0.9;
  int64_t vector_rows = 1, vector_columns = 1;
  int rounds = 21;
  std::vector<Shape> shapes{std::begin(kShapes), std::end(kShapes)};
  std::string dlmc;
  std::vector<std::string> sparsities = {"0.8", "0.9"};  // of the collection
  int sample = 0;
  std::string row = "conv_";
  bool json = false;
};

// "MxKxN"; throws CLI's error where it is none.
Shape ParseShape(const std::string& text) {
  Shape shape{};
  int end = 0;
  const int count = std::sscanf(text.c_str(), "%ldx%ldx%ld%n", &shape.m, &shape.k, &shape.n, &end);
  const bool whole = count == 3 && static_cast<size_t>(end) == text.size();
  if (!whole || std::min({shape.m, shape.k, shape.n}) < 1) {
    throw CLI::ValidationError("--shape", "'" + text + "' is not like 512x512x784, which is MxKxN");
  }
  return shape;
}

// Rows differ in length as those of magnitude-pruned layers do. Blocks of neighbouring rows and columns are zeros, or
// not, together.
Weight DrawWeight(const Shape& shape, const Options& options) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(0, 1);
  DenseMatrix matrix{.rows = shape.m, .cols = shape.k, .values = std::vector<float>(shape.m * shape.k)};
  for (int64_t first = 0; first < shape.m; first += options.vector_rows) {
    const double density = (1 - options.sparsity) * (options.sparsity > 0 ? 0.8 + 0.4 * uniform(random) : 1);
    const int64_t end = std::min(first + options.vector_rows, shape.m);
    bool kept = false;
    for (int64_t k = 0; k < shape.k; ++k) {
      if (k % options.vector_columns == 0) kept = uniform(random) < density;
      for (int64_t row = first; kept && row < end; ++row) matrix.values[row * shape.k + k] = uniform(random) - 0.5f;
    }
  }
  return {.matrix = CsrMatrix::FromDense(matrix), .bias = std::vector<float>(shape.m, 0.1f)};
}

// One row of the table on one problem, with all that it needs.
class Contender {
 public:
  Contender(Backend& backend, const Kernel& kernel, const Problem& problem, const Weight& weight)
      : kernel_(kernel),
        problem_(problem),
        weight_(*kernel.prepare(weight, problem)),
        input_(*backend.Allocate(StorageBytes(problem.input, kernel.key.input))),
        output_(*backend.Allocate(StorageBytes(problem.output, kernel.key.output))),
        workspace_(*backend.Allocate(kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(problem))) {
    std::vector<float> values(input_->bytes() / sizeof(float));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 251) * 0.01f - 1;
    std::memcpy(input_->data(), values.data(), values.size() * sizeof(float));
    const double weights = kernel.key.weights == Format::kCsr ? weight.nonzeros() : weight.rows() * weight.cols();
    operations_ = 2 * weights * problem.output.positions();
  }

  const Kernel& kernel() const { return kernel_; }
  double nanoseconds() const { return Median(times_); }
  double gflops() const { return operations_ / nanoseconds(); }
  double share() const { return Median(shares_); }
  double best_share() const { return *std::max_element(shares_.begin(), shares_.end()); }
  double speedup() const { return speedups_.empty() ? 0 : Median(speedups_); }

  // Returns the time in nanoseconds.
  double RunOnce(Stream& stream) {
    const double peak = FmaPeakGflops(kernel_.required_features) * stream.threads();
    Run(stream);
    const auto start = Clock::now();
    int runs = 0;
    std::chrono::duration<double, std::nano> elapsed{};
    do {
      Run(stream);
      ++runs;
      elapsed = Clock::now() - start;
    } while (elapsed < kMinTime);
    times_.push_back(elapsed.count() / runs);
    const double peak_after = FmaPeakGflops(kernel_.required_features) * stream.threads();
    shares_.push_back(operations_ / times_.back() / std::max(peak, peak_after));
    return times_.back();
  }
  void AddSpeedup(double baseline_nanoseconds) { speedups_.push_back(baseline_nanoseconds / times_.back()); }

 private:
  void Run(Stream& stream) {
    const Operand inputs[] = {{input_->data(), DType::kFloat32}};
    kernel_.run({.problem = &problem_,
                 .weight = weight_.get(),
                 .inputs = inputs,
                 .output = {output_->data(), DType::kFloat32},
                 .workspace = {workspace_->data(), workspace_->bytes()}},
                stream);
  }

  const Kernel& kernel_;
  const Problem problem_;
  const std::unique_ptr<PackedWeight> weight_;
  const std::unique_ptr<Buffer> input_;
  const std::unique_ptr<Buffer> output_;
  const std::unique_ptr<Buffer> workspace_;
  double operations_;
  std::vector<double> times_;
  std::vector<double> shares_;
  std::vector<double> speedups_;
};

void Print(const Shape& shape, const Options& options, const Contender& contender) {
  const char* format =
      options.json ? "{\"m\":%ld,\"k\":%ld,\"n\":%ld,\"sparsity\":%g,\"threads\":%d,\"row\":\"%s\","
                     "\"us\":%.1f,\"gflops\":%.1f,\"share_of_peak\":%.3f,\"best_share\":%.3f,\"speedup\":%.2f}\n"
                   : "%5ld x %4ld x %5ld  %.2f  %d  %-28s %9.1f us %7.1f GFLOP/s  %.3f of peak (best %.3f) %6.2fx\n";
  std::printf(format, shape.m, shape.k, shape.n, options.sparsity, options.threads,
              std::string(contender.kernel().name).c_str(), contender.nanoseconds() / 1e3, contender.gflops(),
              contender.share(), contender.best_share(), contender.speedup());
  std::fflush(stdout);
}

// Prints all rows that take part, and returns them.
std::deque<Contender> RunShape(Backend& backend, Stream& stream, const Shape& shape, const Weight& weight,
                               const Options& options) {
  int64_t height = static_cast<int64_t>(std::sqrt(static_cast<double>(shape.n)));
  while (shape.n % height != 0) --height;
  const Extent input{1, shape.k, height, shape.n / height};
  const Extent output{1, shape.m, height, shape.n / height};
  const Problem problem{{Op::kConv, Window(), {0, 6, false}}, input, output, options.threads};
  std::deque<Contender> contenders;
  for (const Kernel* kernel : Candidates(backend, problem, &weight, Precision::kFloat32)) {
    const bool wanted =
        kernel->name.find(options.row) != std::string_view::npos && kernel->key.input.layout != Layout::kNchw;
    if (wanted || kernel->name == kDenseBaseline)
      contenders.emplace_back(backend, *kernel, AsRowSolves(*kernel, problem), weight);
  }
  for (int round = 0; round < options.rounds; ++round) {
    double baseline = 0;
    for (Contender& contender : contenders) {
      const double time = contender.RunOnce(stream);
      if (contender.kernel().name == kDenseBaseline) baseline = time;
    }
    for (Contender& contender : contenders) contender.AddSpeedup(baseline);
  }
  for (const Contender& contender : contenders) Print(shape, options, contender);
  return contenders;
}

// Of the products of one model and sparsity.
struct Summary {
  int products = 0;
  int wins = 0;           // of the fastest sparse row
  double log_gain = 0.0;  // over the fastest dense row
  double log_share = 0.0;

  void Add(const std::deque<Contender>& contenders) {
    const Contender *sparse = nullptr, *dense = nullptr;
    for (const Contender& contender : contenders) {
      const Contender*& best = contender.kernel().key.weights == Format::kCsr ? sparse : dense;
      if (best == nullptr || contender.nanoseconds() < best->nanoseconds()) best = &contender;
    }
    if (sparse == nullptr || dense == nullptr) return;
    ++products;
    if (sparse->nanoseconds() < dense->nanoseconds()) ++wins;
    log_gain += std::log(dense->nanoseconds() / sparse->nanoseconds());
    log_share += std::log(sparse->share());
  }
};

void PrintSummary(const std::string& name, const Summary& summary, const Options& options) {
  const char* format = options.json ? "{\"patterns\":\"%s\",\"products\":%d,\"gain\":%.3f,\"faster\":%d,"
                                      "\"share_of_peak\":%.3f}\n"
                                    : "%-24s %3d products: sparse over dense %6.2fx, faster in %3d; %.3f of peak\n";
  const double count = std::max(summary.products, 1);
  std::printf(format, name.c_str(), summary.products, std::exp(summary.log_gain / count), summary.wins,
              std::exp(summary.log_share / count));
}

Status RunCollection(Backend& backend, Stream& stream, Options options) {
  std::map<std::string, Summary> summaries;  // "transformer/0.9"
  for (const DlmcCase& each : FindDlmcCases(options.dlmc, options.sparsities, options.sample)) {
    SWIZZLE_ASSIGN_OR_RETURN(CsrMatrix matrix, ReadDlmc(each.path));
    options.sparsity = 1 - static_cast<double>(matrix.nnz()) / static_cast<double>(matrix.rows * matrix.cols);
    const int64_t rows = matrix.rows, cols = matrix.cols;
    const Weight weight{.matrix = std::move(matrix), .bias = std::vector<float>(rows, 0.1f)};
    if (!options.json) std::printf("%s\n", each.name.c_str());
    for (int64_t columns : each.columns) {
      const std::string name = each.name.substr(0, each.name.find('/', each.name.find('/') + 1));
      summaries[name].Add(RunShape(backend, stream, {rows, cols, columns}, weight, options));
    }
  }
  if (summaries.empty()) return InvalidArgument("no patterns of these sparsities below ", options.dlmc);
  for (const auto& [name, summary] : summaries) PrintSummary(name, summary, options);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  std::string format = "text";
  CLI::App app("Sparse times dense on the CPU");
  app.add_option("--threads", options.threads)->check(CLI::Range(1, 1024));
  app.add_option("--sparsity", options.sparsity, "of drawn weights")->check(CLI::Range(0.0, 0.999));
  app.add_option("--vector-rows", options.vector_rows, "neighbouring rows that share their zeros")
      ->check(CLI::Range(1, 1024));
  app.add_option("--vector-columns", options.vector_columns, "neighbouring columns that do")
      ->check(CLI::Range(1, 1024));
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 100000));
  app.add_option_function<std::string>(
      "--shape", [&](const std::string& text) { options.shapes = {ParseShape(text)}; }, "MxKxN, instead of all");
  app.add_option("--dlmc", options.dlmc,
                 "the Deep Learning Matrix Collection's folder: its patterns instead of drawn ones");
  app.add_option("--sparsities", options.sparsities, "of the collection")->delimiter(',')->capture_default_str();
  app.add_option("--sample", options.sample, "that many of its matrices, evenly spread; 0: all");
  app.add_option("--row", options.row, "a part of the names of rows to measure");
  app.add_option("-o,--output", format)->check(CLI::IsMember({"text", "json"}));
  CLI11_PARSE(app, argc, argv);
  options.json = format == "json";
  const std::unique_ptr<Backend> backend = NewCpuBackend();
  const std::unique_ptr<Stream> stream = *backend->NewStream(options.threads);
  if (!options.json) std::printf("%s, %s\n", backend->device_name().c_str(), backend->features_text().c_str());
  if (!options.dlmc.empty()) {
    const Status status = RunCollection(*backend, *stream, options);
    if (!status.ok()) std::fprintf(stderr, "spmm_bench: %s\n", std::string(status.message()).c_str());
    return status.ok() ? 0 : 1;
  }
  for (const Shape& shape : options.shapes) {
    RunShape(*backend, *stream, shape, DrawWeight(shape, options), options);
  }
  return 0;
}

}  // namespace
}  // namespace swizzle::bench

int main(int argc, char** argv) { return swizzle::bench::Main(argc, argv); }
