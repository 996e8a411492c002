// Products with 2:4 sparse weights on sparse tensor cores, against dense cuBLASLt: the fastest of up to 16 of its
// heuristics in either layout of X, in the same process. Sums are checked against double precision first.
//
//   cuda_n_m_bench [--dtype=f16] [--rounds=9] [--launches=10] [-o results.json]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>
#include <span>

#include "kernels/cuda/conv/n_m/conv_n_m.h"
#include "kernels/format/csr.h"
#include "tests/bench/cuda/dense_product.h"
#include "tests/bench/cuda/kept_run.h"

namespace swizzle::bench {
namespace {

struct Options {
  std::string dtype = "f16";
  KeptRun run = {.rounds = 9};
};

struct Shape {
  int64_t rows, cols, columns;
};
constexpr Shape kShapes[] = {{4096, 4096, 4096},  {4096, 4096, 2048}, {8192, 8192, 4096}, {11008, 4096, 4096},
                             {4096, 11008, 4096}, {3072, 768, 4096},  {768, 3072, 4096},  {768, 768, 4096}};

struct Line {
  Shape shape = {};
  Times dense = {}, ours = {}, by_warps = {};
  double error = 0;
};

DenseMatrix DrawMatrix(const Shape& shape) {
  std::mt19937 random(5);
  std::normal_distribution<float> value(0.0f, 0.1f);
  DenseMatrix dense{shape.rows, shape.cols, std::vector<float>(shape.rows * shape.cols)};
  for (int64_t i = 0; i < shape.rows * shape.cols; i += 4) {
    const uint32_t first = random() % 4;
    dense.values[i + first] = value(random);
    dense.values[i + (first + 1 + random() % 3) % 4] = value(random);
  }
  return dense;
}

struct Width {
  int width;
  void (*queue)(const cuda::TwoOfFourOperands&, int, cudaStream_t);
};
constexpr Width kWidths[] = {{128, cuda::QueueTwoOfFour<128>}, {256, cuda::QueueTwoOfFour<256>}};
template <int kWidth>
void QueueByWarps(const cuda::TwoOfFourOperands& operands, int, cudaStream_t queue) {
  cuda::QueueTwoOfFourByWarps<kWidth>(operands, queue);
}
constexpr Width kWarpWidths[] = {{64, QueueByWarps<64>}, {128, QueueByWarps<128>}};  // that Ampere has, too

Line RunShape(const Shape& shape, DType dtype, BothTimer& timer) {
  int multiprocessors = 0;
  Must(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0), "ask the device");
  const DenseMatrix matrix = DrawMatrix(shape);
  const CsrMatrix csr = CsrMatrix::FromDense(matrix);
  Product product(csr, shape.columns, dtype);
  Line line{.shape = shape, .dense = TimeDense(matrix, product, timer)};
  const auto held = NOfMMatrix::FromDense(matrix, {.n = 2, .m = 4, .taps = 1});
  Must(held.ok(), "keep to 2:4");
  const auto packed = cuda::TwoOfFour::Make(*held, {}, dtype);
  Must(packed.ok(), "pack");
  const cuda::TwoOfFourOperands operands = {
      packed->get(), dtype, product.x(), nullptr, product.y(), product.stride(), product.columns()};
  const auto fastest = [&](std::span<const Width> widths, const char* name) {
    Times best{.warm = 1e30};
    for (const auto& [width, queue] : widths) {
      const auto work = [=, &timer] { queue(operands, multiprocessors, timer.queue()); };
      line.error = std::max(line.error, product.Error(work, timer.queue()));
      const Times times = timer.Both(work);
      std::printf("  %s, width %d: %.2f us, cold %.2f\n", name, width, times.warm, times.cold);
      if (times.warm < best.warm) best = times;
    }
    return best;
  };
  line.ours = fastest(kWidths, "wgmma");
  line.by_warps = fastest(kWarpWidths, "mma");
  return line;
}

void WriteJson(const Options& options, const std::vector<Line>& lines) {
  if (options.run.output.empty()) return;
  std::ofstream out(options.run.output);
  out.precision(5);
  out << "{\n  " << FactsOf(options.run) << ", \"dtype\": \"" << options.dtype << "\",\n  \"cases\": [\n";
  const char* comma = "";
  for (const Line& line : lines) {
    out << std::exchange(comma, ",\n") << "    {\"m\": " << line.shape.rows << ", \"k\": " << line.shape.cols
        << ", \"n\": " << line.shape.columns << ", \"dense_us\": " << line.dense.warm
        << ", \"dense_cold_us\": " << line.dense.cold << ", \"ours_us\": " << line.ours.warm
        << ", \"ours_cold_us\": " << line.ours.cold << ", \"by_warps_us\": " << line.by_warps.warm
        << ", \"by_warps_cold_us\": " << line.by_warps.cold << ", \"error\": " << line.error << "}";
  }
  out << "\n  ]\n}\n";
}

int Main(const Options& options) {
  const DType dtype = options.dtype == "bf16" ? DType::kBFloat16 : DType::kFloat16;
  BothTimer timer(options.run.launches, options.run.rounds);
  std::vector<Line> lines;
  bool wrong = false;
  for (const Shape& shape : kShapes) {
    const Line line = lines.emplace_back(RunShape(shape, dtype, timer));
    wrong = wrong || !(line.error <= (dtype == DType::kFloat16 ? 2e-3 : 1.6e-2));
    std::printf(
        "%6ld %6ld %6ld | cuBLASLt %7.2f %7.2f | %7.2f %7.2f | %5.2f %5.2f | by warps %5.2f %5.2f | error %.1e\n",
        shape.rows, shape.cols, shape.columns, line.dense.warm, line.dense.cold, line.ours.warm, line.ours.cold,
        line.dense.warm / line.ours.warm, line.dense.cold / line.ours.cold, line.dense.warm / line.by_warps.warm,
        line.dense.cold / line.by_warps.cold, line.error);
    std::fflush(stdout);
  }
  WriteJson(options, lines);
  if (wrong) std::printf("results were WRONG\n");
  return wrong ? 1 : 0;
}

}  // namespace
}  // namespace swizzle::bench

int main(int argc, char** argv) {
  swizzle::bench::Options options;
  CLI::App app("Products with 2:4 sparse weights on a GPU against dense cuBLASLt");
  app.add_option("--dtype", options.dtype, "f16 or bf16");
  swizzle::bench::AddRunOptions(app, options.run);
  CLI11_PARSE(app, argc, argv);
  return swizzle::bench::Main(options);
}
