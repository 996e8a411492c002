// Times convolution rows of the CUDA backend on ResNet-50's layers, bias and ReLU included, operands warm in the second
// cache: many runs in one recording, the median of several replays.
//
//   cuda_conv_bench [--dtypes=FP32,FP16,BF16] [--batches=1,8] [--vector=64 --sparsity=0.75] [--window=3]
//
// Rows are the dense ones, or, with --vector, those of weights whose rows keep the same columns in groups of as many,
// too; --window leaves out the layers of other windows. Some outputs of each are first held to
// double precision. Prints a line "dtype batch layer row microseconds count", count being how often the network has the
// layer; cuda_conv_bench.py puts PyTorch's times beside them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <numeric>
#include <random>

#include "kernels/base/half.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/format/csr.h"
#include "kernels/reference/layout.h"

namespace swizzle {
namespace {

constexpr int kRuns = 100, kReplays = 7, kSamples = 200;

struct Options {
  std::vector<std::string> dtypes = {"FP32", "FP16", "BF16"};
  std::vector<int64_t> batches = {1, 8};
  int64_t vector_rows = 0;
  double sparsity = 0.75;
  int window = 0;
};

struct Layer {
  int channels, size, out_channels, kernel, stride, count;
};
constexpr Layer kLayers[] = {
    {3, 224, 64, 7, 2, 1},    {64, 56, 64, 1, 1, 1},    {256, 56, 64, 1, 1, 2},    {64, 56, 64, 3, 1, 3},
    {64, 56, 256, 1, 1, 4},   {256, 56, 128, 1, 1, 1},  {128, 56, 128, 3, 2, 1},   {512, 28, 128, 1, 1, 3},
    {128, 28, 128, 3, 1, 3},  {128, 28, 512, 1, 1, 4},  {256, 56, 512, 1, 2, 1},   {512, 28, 256, 1, 1, 1},
    {256, 28, 256, 3, 2, 1},  {1024, 14, 256, 1, 1, 5}, {256, 14, 256, 3, 1, 5},   {256, 14, 1024, 1, 1, 6},
    {512, 28, 1024, 1, 2, 1}, {1024, 14, 512, 1, 1, 1}, {512, 14, 512, 3, 2, 1},   {2048, 7, 512, 1, 1, 2},
    {512, 7, 512, 3, 1, 2},   {512, 7, 2048, 1, 1, 3},  {1024, 14, 2048, 1, 2, 1}, {2048, 1, 1000, 1, 1, 1},
};

Problem ProblemOf(const Layer& layer, int64_t batch) {
  Problem problem;
  problem.input = {batch, layer.channels, layer.size, layer.size};
  const int pad = layer.kernel / 2, out = (layer.size + 2 * pad - layer.kernel) / layer.stride + 1;
  problem.output = {batch, layer.out_channels, out, out};
  problem.attributes = Window{layer.kernel, layer.kernel, layer.stride, layer.stride, pad, pad, pad, pad, 1, 1, false};
  problem.epilogue.low = 0;
  return problem;
}

uint16_t ToHalf(float value, DType dtype) {
  return dtype == DType::kFloat16 ? HalfOfFloat(value) : Bfloat16OfFloat(value);
}
float FromHalf(uint16_t bits, DType dtype) {
  return dtype == DType::kFloat16 ? FloatOfHalf(bits) : FloatOfBfloat16(bits);
}

// Values of the type, as floats and as they lie in memory.
struct Drawn {
  std::vector<float> values;
  std::vector<std::byte> bytes;
};
Drawn Draw(int64_t count, DType dtype, std::mt19937& random) {
  Drawn drawn;
  const size_t size = ElementBytes(dtype);
  drawn.values.resize(count);
  drawn.bytes.resize(count * size);
  for (int64_t i = 0; i < count; ++i) {
    float value = static_cast<float>(random() >> 8) / (1 << 23) - 1;
    if (size == 2) {
      const uint16_t half = ToHalf(value, dtype);
      value = FromHalf(half, dtype);
      std::memcpy(&drawn.bytes[i * size], &half, size);
    } else {
      std::memcpy(&drawn.bytes[i * size], &value, size);
    }
    drawn.values[i] = value;
  }
  return drawn;
}

// Enough of them for any operand; drawing takes longer than all that is timed.
const Drawn& Pool(DType dtype) {
  static std::map<DType, Drawn> pools;
  if (!pools.contains(dtype)) {
    std::mt19937 random(5);
    pools[dtype] = Draw(int64_t{1} << 25, dtype, random);
  }
  return pools[dtype];
}

std::vector<float> SomeValues(int64_t first, int64_t count, DType dtype) {
  const auto begin = Pool(dtype).values.begin() + first;
  return {begin, begin + count};
}

double Expected(const Problem& problem, Layout layout, const std::vector<float>& input, const Weight& weight,
                int64_t channel, int64_t position) {
  const Window& w = problem.window();
  const auto& matrix = *weight.matrix.As<DenseMatrix>();
  const int64_t plane = problem.output.plane(), image = position / plane, y = position % plane / problem.output.width;
  const int64_t x = position % problem.output.width;
  double sum = weight.bias[channel];
  for (int64_t k = 0; k < matrix.cols; ++k) {
    const int64_t tap = k % (w.kernel_h * w.kernel_w), c = k / (w.kernel_h * w.kernel_w);
    const int64_t iy = y * w.stride_h - w.pad_top + tap / w.kernel_w;
    const int64_t ix = x * w.stride_w - w.pad_left + tap % w.kernel_w;
    if (iy < 0 || iy >= problem.input.height || ix < 0 || ix >= problem.input.width) continue;
    const int64_t at = image * problem.input.plane() + iy * problem.input.width + ix;
    sum += double{matrix.values[channel * matrix.cols + k]} *
           input[reference::ElementOffset(problem.input, layout, c, at)];
  }
  return std::max(sum, 0.0);
}

// The largest error of some outputs over the largest of them.
double Error(const Problem& problem, Layout layout, const std::vector<float>& input, const Weight& weight,
             const std::vector<std::byte>& output) {
  std::mt19937 random(7);
  double largest = 1, error = 0;
  for (int i = 0; i < kSamples; ++i) {
    const int64_t channel = random() % problem.output.channels, position = random() % problem.output.positions();
    const int64_t at = reference::ElementOffset(problem.output, layout, channel, position);
    const double expected = Expected(problem, layout, input, weight, channel, position);
    float actual = 0;
    if (ElementBytes(problem.to.dtype) == 2) {
      uint16_t half;
      std::memcpy(&half, &output[at * 2], 2);
      actual = FromHalf(half, problem.to.dtype);
    } else {
      std::memcpy(&actual, &output[at * 4], 4);
    }
    largest = std::max(largest, expected);
    error = std::max(error, std::isnan(actual) ? 1e30 : std::abs(actual - expected));
  }
  return error / largest;
}

double MedianMicroseconds(Stream& stream, Recording& recording) {
  std::vector<double> times;
  for (int i = 0; i < kReplays + 1; ++i) {
    const auto start = std::chrono::steady_clock::now();
    SWIZZLE_CHECK(recording.Replay().ok() && stream.Synchronize().ok());
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    if (i > 0) times.push_back(time.count() / kRuns);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void TimeRow(Backend& backend, Stream& stream, const Kernel& kernel, const Layer& layer, const Problem& problem,
             const Weight& weight) {
  const Layout layout = kernel.key.input.layout;
  const size_t size = ElementBytes(problem.to.dtype);
  const Drawn& drawn = Pool(problem.to.dtype);
  const size_t input_bytes = LayoutElements(problem.input, layout) * size;
  SWIZZLE_CHECK(input_bytes <= drawn.bytes.size());
  std::vector<std::byte> output(LayoutElements(problem.output, layout) * size, std::byte{0xff});
  const auto packed = *backend.Prepare(kernel, weight, problem);
  const auto from = *backend.Allocate(input_bytes), to = *backend.Allocate(output.size());
  const auto workspace = *backend.Allocate(kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(problem));
  stream.Copy(from->data(), drawn.bytes.data(), input_bytes);
  stream.Copy(to->data(), output.data(), output.size());
  const Operand inputs[] = {{from->data(), problem.from.dtype}};
  KernelArgs args;
  args.problem = &problem;
  args.weight = packed.get();
  args.inputs = inputs;
  args.output = {to->data(), problem.to.dtype};
  args.workspace = {workspace->data(), workspace->bytes()};
  stream.Run([&] { kernel.run(args, stream); });
  stream.Copy(output.data(), to->data(), output.size());
  const Status status = stream.Synchronize();
  const double error = Error(problem, layout, drawn.values, weight, output);
  const double most = problem.to.dtype == DType::kFloat32 ? 1e-5 : problem.to.dtype == DType::kFloat16 ? 2e-3 : 1.6e-2;
  if (!status.ok() || error > most) {
    std::printf("WRONG %s error %.3g %s\n", std::string(kernel.name).c_str(), error,
                std::string(status.message()).c_str());
    return;
  }
  const auto recording = static_cast<DeviceStream&>(stream).Record([&] {
    for (int i = 0; i < kRuns; ++i) kernel.run(args, stream);
  });
  std::printf("%s %d %dx%d-%d-%dx%d/%d %s %.2f %d\n", std::string(DTypeName(problem.to.dtype)).c_str(),
              static_cast<int>(problem.input.batch), layer.channels, layer.size, layer.out_channels, layer.kernel,
              layer.kernel, layer.stride, std::string(kernel.name).c_str(), MedianMicroseconds(stream, **recording),
              layer.count);
}

// Zeros in all but some columns of each group of rows, which are drawn as the rows are.
void KeepVectors(DenseMatrix& matrix, const Options& options) {
  std::mt19937 random(11);
  std::vector<int64_t> rows(matrix.rows), columns(matrix.cols);
  std::iota(rows.begin(), rows.end(), 0);
  std::iota(columns.begin(), columns.end(), 0);
  std::shuffle(rows.begin(), rows.end(), random);
  const auto zeros = static_cast<int64_t>(static_cast<double>(matrix.cols) * options.sparsity);
  for (int64_t place = 0; place < matrix.rows; ++place) {
    if (place % options.vector_rows == 0) std::shuffle(columns.begin(), columns.end(), random);
    for (int64_t i = 0; i < zeros; ++i) matrix.values[rows[place] * matrix.cols + columns[i]] = 0;
  }
}

Weight DrawWeight(const Layer& layer, DType dtype, const Options& options) {
  const int64_t depth = int64_t{layer.channels} * layer.kernel * layer.kernel;
  DenseMatrix matrix{layer.out_channels, depth, SomeValues(1001, layer.out_channels * depth, dtype)};
  Weight weight;
  weight.bias = SomeValues(77, layer.out_channels, dtype);
  if (options.vector_rows > 0) KeepVectors(matrix, options);
  weight.matrix = std::move(matrix);
  return weight;
}

void TimeLayer(Backend& backend, Stream& stream, const Layer& layer, int64_t batch, Precision precision,
               const Options& options) {
  const Problem problem = ProblemOf(layer, batch);
  const Weight dense = DrawWeight(layer, TypeOf(precision), options);
  Weight sparse = dense;
  if (options.vector_rows > 0) sparse.matrix = CsrMatrix::FromDense(dense.ToDense());
  for (const Kernel* kernel : Candidates(backend, problem, &sparse, precision)) {
    const Format format = kernel->key.weights;
    if ((format == Format::kDense || format == Format::kShflBw) && kernel->key.input == kernel->key.output) {
      TimeRow(backend, stream, *kernel, layer, AsRowSolves(*kernel, problem), dense);
    }
  }
  std::fflush(stdout);
}

int Main(const Options& options) {
  const auto backend = NewCudaBackend(0);
  if (!backend.ok()) {
    std::printf("%s\n", std::string(backend.status().message()).c_str());
    return 1;
  }
  const auto stream = *(*backend)->NewStream(0);
  for (const std::string& dtype : options.dtypes) {
    const auto precision = PrecisionFromName(dtype);
    if (!precision) {
      std::printf("%s is no precision\n", dtype.c_str());
      return 1;
    }
    for (const int64_t batch : options.batches) {
      for (const Layer& layer : kLayers) {
        if (options.window != 0 && layer.kernel != options.window) continue;
        TimeLayer(**backend, *stream, layer, batch, *precision, options);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace swizzle

int main(int argc, char** argv) {
  swizzle::Options options;
  CLI::App app("Convolutions of ResNet-50 on a GPU, by kernel");
  app.add_option("--dtypes", options.dtypes, "FP32, FP16, BF16")->delimiter(',');
  app.add_option("--batches", options.batches)->delimiter(',');
  app.add_option("--vector", options.vector_rows, "rows that keep the same columns; 0: dense weights");
  app.add_option("--sparsity", options.sparsity, "share of zeros, with --vector");
  app.add_option("--window", options.window, "of the layers to time; 0: all");
  CLI11_PARSE(app, argc, argv);
  return swizzle::Main(options);
}
