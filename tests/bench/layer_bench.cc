// Times every row of the CPU backend's kernel table that this machine runs, on the layers of MobileNetV1 at 224x224
// and at 28x28, on the convolutions of ResNet-50, or on linear layers of given sizes; with --bytes every operand may be
// stored as whole numbers, so that rows of bytes stand beside those of real numbers. The rows take turns; each line has
// the least time of a row and its rate: for convolutions GFLOP/s of the sum, of nonzeros only in rows that skip zeros,
// for the rest GB/s of operands. The share is of what the machine allows (Williams et al., "Roofline", 2009): the time
// of the sums at the best FMA peak seen meanwhile, or the time to read as many bytes as the operands have, from the
// cache or memory that these come from, whichever is longer, over the row's time.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/format/csr.h"
#include "kernels/measure/measure_kernels.h"
#include "kernels/operator/print.h"
#include "tests/bench/machine_peaks.h"

namespace swizzle {
namespace {

struct Options {
  int threads = 0;
  int64_t batch = 1;
  int rounds = 5;
  double sparsity = 0;
  std::string model = "mobilenet_v1";
  std::string row;
  std::string layer;
  std::vector<std::string> linear;
  bool bytes = false;
  int64_t vector_rows = 1;  // neighbouring rows, and input channels, that have zeros in common
  int64_t block_channels = 1;
};

Window Square(int size, int stride, int pad) { return {size, size, stride, stride, pad, pad, pad, pad, 1, 1, false}; }

Problem Layer(Op op, int64_t channels, int64_t size, int64_t output_channels, const Window& window) {
  const int64_t output_size = (size + 2 * window.pad_top - window.kernel_h) / window.stride_h + 1;
  Problem problem{{op, AttributesOf(op)}, {1, channels, size, size}, {1, output_channels, output_size, output_size}};
  if (IsWindowed(op)) problem.window() = window;
  if (op == Op::kConv || op == Op::kDepthwiseConv) problem.epilogue = {0, 6, false};
  return problem;
}

// A depthwise and a pointwise layer for each of MobileNetV1's blocks.
void AddBlocks(int64_t channels, int64_t size, const std::vector<int>& strides, std::vector<Problem>& problems) {
  for (int stride : strides) {
    const int64_t wider = stride == 2 || channels < 64 ? 2 * channels : channels;
    problems.push_back(Layer(Op::kDepthwiseConv, channels, size, channels, Square(3, stride, 1)));
    size = problems.back().output.height;
    problems.push_back(Layer(Op::kConv, channels, size, wider, {}));
    channels = wider;
  }
}

std::vector<Problem> MobileNetLayers() {
  std::vector<Problem> problems;
  problems.push_back(Layer(Op::kConv, 3, 224, 32, Square(3, 2, 1)));
  AddBlocks(32, 112, {1, 2, 1, 2, 1, 2, 1, 2, 1}, problems);
  problems.push_back(Layer(Op::kConv, 1, 28, 32, Square(3, 1, 1)));
  AddBlocks(32, 28, {1, 1, 2, 1, 2, 1}, problems);
  problems.push_back(Layer(Op::kDepthwiseConv, 1024, 4, 1024, Square(3, 1, 1)));
  problems.push_back(Layer(Op::kConv, 1024, 1, 1000, {}));
  problems.push_back(Layer(Op::kConv, 1024, 1, 10, {}));
  for (const auto& [channels, size] : std::vector<std::pair<int64_t, int64_t>>{{64, 112}, {512, 14}, {1024, 7}}) {
    problems.push_back(Layer(Op::kAdd, channels, size, channels, {}));
    problems.push_back(Layer(Op::kActivation, channels, size, channels, {}));
    problems.push_back(Layer(Op::kConvertLayout, channels, size, channels, {}));
  }
  problems.push_back(Layer(Op::kConvertLayout, 1024, 1, 1024, {}));
  problems.push_back(Layer(Op::kMaxPool, 64, 112, 64, Square(3, 2, 1)));
  problems.push_back(Layer(Op::kAveragePool, 1024, 7, 1024, Square(7, 1, 0)));
  problems.push_back(Layer(Op::kAveragePool, 256, 28, 256, Square(28, 1, 0)));
  problems.push_back(Layer(Op::kSoftmax, 1000, 1, 1000, {}));
  return problems;
}

// Each kind of convolution once.
std::vector<Problem> ResnetLayers() {
  std::vector<Problem> problems = {Layer(Op::kConv, 3, 224, 64, Square(7, 2, 3))};
  int64_t channels = 64, size = 56;
  for (int64_t width : {64, 128, 256, 512}) {
    const int stride = width == 64 ? 1 : 2;
    problems.push_back(Layer(Op::kConv, channels, size, width, {}));
    if (stride == 2) problems.push_back(Layer(Op::kConv, width, size, width, Square(3, 2, 1)));
    problems.push_back(Layer(Op::kConv, channels, size, 4 * width, Square(1, stride, 0)));
    size /= stride;
    channels = 4 * width;
    problems.push_back(Layer(Op::kConv, channels, size, width, {}));
    problems.push_back(Layer(Op::kConv, width, size, width, Square(3, 1, 1)));
    problems.push_back(Layer(Op::kConv, width, size, channels, {}));
    problems.back().epilogue.residual = true;
  }
  problems.push_back(Layer(Op::kConv, 2048, 1, 1000, {}));
  for (Problem& problem : problems) problem.epilogue.high = Epilogue().high;
  return problems;
}

// A linear layer of as many tokens, of "output features x input features x tokens".
Problem LinearLayer(const std::string& shape) {
  int64_t rows = 1, cols = 1, tokens = 1;
  char x;
  std::istringstream(shape) >> rows >> x >> cols >> x >> tokens;
  Problem problem{{Op::kConv, AttributesOf(Op::kConv)}, {tokens, cols}, {tokens, rows}};
  return problem;
}

std::vector<Problem> Layers(const Options& options) {
  std::vector<Problem> problems;
  for (const std::string& shape : options.linear) problems.push_back(LinearLayer(shape));
  if (!problems.empty()) return problems;
  problems = options.model == "resnet50" ? ResnetLayers() : MobileNetLayers();
  for (Problem& problem : problems) problem.input.batch = problem.output.batch = options.batch;
  return problems;
}

// Scales for all operands. Those of a maximum and of a conversion are one.
void Quantise(Problem& problem) {
  const Quantised input{DType::kUint8, 1.0f / 64, 3}, other{DType::kUint8, 1.0f / 32, 7};
  problem.inputs_as = {input, other, other};
  const bool keeps_scale = problem.op == Op::kMaxPool || problem.op == Op::kConvertLayout;
  problem.epilogue.requantise = keeps_scale ? input : Quantised{DType::kUint8, 1.0f / 8, 11};
}

// Every value becomes what a signed byte stands for.
void Quantise(DenseMatrix& matrix, Weight& weight) {
  constexpr float kScale = 1.0f / 128;
  for (float& value : matrix.values) {
    if (value != 0) value = std::copysign(std::max(1.0f, std::floor(std::abs(value) / kScale)), value) * kScale;
    value = std::min(value, 127 * kScale);
  }
  weight.quantisation = Quantisation{DType::kInt8, {kScale}, {}};
}

// A share of a convolution's weights is zeros; depthwise ones have none.
Weight DrawWeight(const Problem& problem, const Options& options) {
  const int64_t taps = problem.window().taps();
  DenseMatrix matrix{problem.output.channels, problem.op == Op::kConv ? problem.input.channels * taps : taps, {}};
  uint32_t state = 1;
  for (int64_t i = 0; i < matrix.rows * matrix.cols; ++i) {
    state = state * 1664525u + 1013904223u;
    const int64_t row = i / matrix.cols % options.vector_rows,
                  channel = i % matrix.cols / taps % options.block_channels;
    bool zero = problem.op == Op::kConv && (state >> 8) * 0x1p-24 < options.sparsity;
    if (row > 0 || channel > 0) zero = matrix.values[i - row * matrix.cols - channel * taps] == 0;
    state = state * 1664525u + 1013904223u;
    matrix.values.push_back(zero ? 0.0f : static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f);
  }
  Weight weight;
  weight.bias.assign(problem.output.channels, 0.5f);
  if (options.bytes) Quantise(matrix, weight);
  weight.matrix = std::move(matrix);
  if (problem.op == Op::kConv && options.sparsity > 0) weight.matrix = CsrMatrix::FromDense(weight.ToDense());
  return weight;
}

double Elements(const Extent& extent) { return static_cast<double>(extent.positions()) * extent.channels; }

// Of convolutions; those of the rest are not to speak of.
double Operations(const Problem& problem) {
  if (!HasWeight(problem.op)) return 0;
  const double taps = static_cast<double>(problem.window().taps());
  return 2 * Elements(problem.output) * taps * (problem.op == Op::kConv ? problem.input.channels : 1);
}

// Of all operands, each once.
double OperandBytes(const Kernel& kernel, const Problem& problem, const PackedWeight* weight) {
  const double inputs = Elements(problem.input) * (problem.op == Op::kAdd ? 2 : 1);
  const double outputs = Elements(problem.output) * (problem.epilogue.residual ? 2 : 1);
  const auto bytes = [](Storage storage) { return static_cast<double>(ElementBytes(storage.dtype)); };
  return inputs * bytes(kernel.key.input) + outputs * bytes(kernel.key.output) +
         (weight == nullptr ? 0.0 : static_cast<double>(weight->bytes()));
}

// A row and its weight, if it takes one.
struct Entrant {
  const Kernel* kernel;
  std::unique_ptr<PackedWeight> weight;
  double density;  // of what it computes
};

std::vector<Entrant> Entrants(const Backend& backend, const Problem& problem, const Options& options) {
  const bool has_weight = problem.op == Op::kConv || problem.op == Op::kDepthwiseConv;
  const Weight weight = has_weight ? DrawWeight(problem, options) : Weight{};
  std::vector<Entrant> entrants;
  for (const Kernel* kernel : Candidates(backend, problem, has_weight ? &weight : nullptr, Precision::kFloat32)) {
    if (kernel->name.find(options.row) == std::string_view::npos) continue;
    Entrant entrant{kernel, nullptr, IsSparse(kernel->key.weights) ? 1 - options.sparsity : 1};
    if (kernel->prepare != nullptr) {
      auto packed = kernel->prepare(weight, AsRowSolves(*kernel, problem));
      if (!packed.ok()) continue;
      entrant.weight = std::move(*packed);
    }
    entrants.push_back(std::move(entrant));
  }
  return entrants;
}

std::string LayerText(const Problem& problem) {
  const auto extent_text = [](const Extent& extent) {
    return Concat(extent.batch, "x", extent.channels, "x", extent.height, "x", extent.width);
  };
  return Concat(OpName(problem.op), " ", extent_text(problem.input), " -> ", extent_text(problem.output),
                AttributesText(problem.attributes));
}

void PrintRow(const Entrant& entrant, const Problem& problem, double seconds, double peak_gflops, uint32_t features) {
  const double operations = Operations(problem) * entrant.density,
               bytes = OperandBytes(*entrant.kernel, problem, entrant.weight.get());
  const double read_gbps =
      bench::ReadGigabytesPerSecond(features, problem.threads, static_cast<int64_t>(bytes) / problem.threads);
  // Four bytes are multiplied and added where a float is.
  const double peak = peak_gflops * (entrant.kernel->key.weight_dtype == DType::kInt8 ? 4 : 1);
  const double computing = operations / (peak * problem.threads), reading = bytes / read_gbps;  // nanoseconds
  std::printf("  %-36s %9.1f us %8.1f %-7s %3.0f %% of %s\n", std::string(entrant.kernel->name).c_str(), seconds * 1e6,
              (operations > 0 ? operations : bytes) / seconds / 1e9, operations > 0 ? "GFLOP/s" : "GB/s",
              100 * std::max(computing, reading) / (seconds * 1e9), computing >= reading ? "peak" : "memory");
}

Status MeasureLayer(Backend& backend, Stream& stream, const Problem& problem, const Options& options) {
  const std::vector<Entrant> entrants = Entrants(backend, problem, options);
  std::vector<Contender> contenders;
  for (const Entrant& entrant : entrants) contenders.push_back({entrant.kernel, entrant.weight.get()});
  std::vector<absl::Duration> least(contenders.size(), absl::InfiniteDuration());
  double peak_gflops = 0;
  for (int round = 0; round < options.rounds; ++round) {
    peak_gflops = std::max(peak_gflops, bench::FmaPeakGflops(backend.features()));
    SWIZZLE_ASSIGN_OR_RETURN(const auto times, MeasureKernels(backend, stream, contenders, problem, {}));
    for (size_t i = 0; i < times.size(); ++i) least[i] = std::min(least[i], times[i].time);
  }
  for (size_t i = 0; i < contenders.size(); ++i) {
    PrintRow(entrants[i], problem, absl::ToDoubleSeconds(least[i]), peak_gflops, backend.features());
  }
  return absl::OkStatus();
}

int Run(const Options& options) {
  const auto backend = NewCpuBackend();
  const auto stream = backend->NewStream(options.threads);
  for (Problem problem : Layers(options)) {
    problem.threads = (*stream)->threads();
    if (options.bytes) Quantise(problem);
    const std::string text = LayerText(problem);
    if (text.find(options.layer) == std::string::npos) continue;
    std::printf("%s, %d threads%s\n", text.c_str(), problem.threads, bench::RoundTripText().c_str());
    const Status status = MeasureLayer(*backend, **stream, problem, options);
    if (!status.ok()) std::printf("  %s\n", std::string(status.message()).c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace swizzle

int main(int argc, char** argv) {
  swizzle::Options options;
  CLI::App app("Rows of the CPU's kernel table, layer by layer");
  app.add_option("--threads", options.threads, "0: all")->check(CLI::Range(0, 1024));
  app.add_option("--batch", options.batch)->check(CLI::Range(1, 4096));
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 100000));
  app.add_option("--sparsity", options.sparsity, "of convolutions' weights, drawn")->check(CLI::Range(0.0, 0.999));
  app.add_option("--vector-rows", options.vector_rows, "that are zero together")->check(CLI::Range(1, 64));
  app.add_option("--block-channels", options.block_channels, "that are zero together")->check(CLI::Range(1, 64));
  app.add_option("--model", options.model)->check(CLI::IsMember({"mobilenet_v1", "resnet50"}));
  app.add_option("--linear", options.linear, "linear layers instead, as 768x3072x197: outputs, inputs, tokens");
  app.add_flag("--bytes", options.bytes, "rows of whole numbers, too");
  app.add_option("--row", options.row, "measure rows whose names contain this");
  app.add_option("--layer", options.layer, "measure layers whose lines contain this");
  CLI11_PARSE(app, argc, argv);
  return swizzle::Run(options);
}
