// Products whose rows of weights share columns (vector-wise and Shfl-BW pruning) in half precision on a GPU, against
// dense cuBLASLt: the fastest of up to 16 of its heuristics in either layout of X, in the same process.
//
//   cuda_shfl_bw_bench [--dtype=f16] [--sparsity=0.5,0.75,0.9] [--vectors=64] [--rounds=9]
//                      [--ordered] [--shapes=large,encoder,tail,few,query] [--ending=gelu] [-o results.json]
//
// Ours may end in GELU or add a residual, which cuBLASLt's does not here.
// Warm: a CUDA graph of launches one after another. Cold: see dense_product.h. Sums are checked against double
// precision first.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <random>

#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw.h"
#include "kernels/format/csr.h"
#include "tests/bench/cuda/dense_product.h"
#include "tests/bench/cuda/kept_run.h"

namespace swizzle::bench {
namespace {

struct Options {
  std::string dtype = "f16";
  std::vector<std::string> shapes = {"large", "encoder", "tail", "few", "query"};
  std::vector<double> sparsities = {0.5, 0.75, 0.9};
  std::vector<int64_t> vectors = {64};
  KeptRun run = {.rounds = 9};
  bool ordered = false;
  std::string ending = "none";
};

struct Shape {
  const char* kind;
  int64_t rows, cols, columns;
};
constexpr Shape kShapes[] = {
    {"large", 4096, 4096, 2048},  {"large", 11008, 4096, 2048}, {"encoder", 3072, 768, 4096},
    {"encoder", 768, 3072, 4096}, {"encoder", 2304, 768, 4096}, {"encoder", 768, 768, 4096},
    {"encoder", 1536, 384, 4096}, {"encoder", 384, 1536, 4096}, {"encoder", 1152, 384, 4096},
    {"tail", 4096, 4096, 2001},   {"tail", 4096, 4096, 2000},   {"tail", 4096, 4096, 1056},
    {"tail", 3072, 768, 1024},    {"tail", 768, 3072, 1024},    {"tail", 512, 4608, 1568},
    {"tail", 2048, 512, 1568},    {"few", 3072, 768, 128},      {"few", 768, 3072, 128},
    {"few", 4096, 4096, 64},      {"few", 4096, 4096, 32},      {"few", 4096, 4096, 16},
    {"few", 4096, 4096, 8},       {"few", 3072, 768, 8},        {"few", 768, 3072, 8},
    {"query", 768, 3072, 64},     {"query", 768, 768, 64},      {"query", 3072, 768, 32},
    {"query", 768, 3072, 32},     {"query", 768, 768, 32},      {"query", 1536, 384, 32},
    {"query", 384, 1536, 32},     {"query", 384, 384, 32},
};

// Groups of `vector_rows` rows, drawn, that keep the same columns, drawn too.
DenseMatrix DrawMatrix(const Shape& shape, double sparsity, int64_t vector_rows, bool ordered) {
  std::mt19937 random(5);
  std::normal_distribution<float> value(0.0f, 0.1f);
  std::vector<uint32_t> order(shape.rows), columns(shape.cols);
  std::iota(order.begin(), order.end(), 0u);
  std::iota(columns.begin(), columns.end(), 0u);
  if (!ordered) std::shuffle(order.begin(), order.end(), random);
  DenseMatrix dense{shape.rows, shape.cols, std::vector<float>(shape.rows * shape.cols)};
  const auto kept = static_cast<int64_t>(static_cast<double>(shape.cols) * (1 - sparsity) + 0.5);
  for (int64_t place = 0; place < shape.rows; ++place) {
    if (place % vector_rows == 0) std::shuffle(columns.begin(), columns.end(), random);
    for (int64_t i = 0; i < kept; ++i) dense.values[order[place] * shape.cols + columns[i]] = value(random);
  }
  return dense;
}

// The rows of the kernel table, 0 being the one for few columns, those of pairs negative; as a plan does, the fastest
// is taken.
struct Width {
  int width;
  void (*queue)(const cuda::GroupOperands&, int, cudaStream_t);
};
constexpr Width kWidths[] = {
    {0, cuda::QueueFewColumns},    {64, cuda::QueueGroups<64>},   {128, cuda::QueueGroups<128>},
    {192, cuda::QueueGroups<192>}, {256, cuda::QueueGroups<256>}, {-64, cuda::QueuePairs<64>},
    {-128, cuda::QueuePairs<128>}, {-192, cuda::QueuePairs<192>}, {-256, cuda::QueuePairs<256>}};

struct Line {
  Shape shape;
  int64_t vector_rows;
  double sparsity, error = 0;
  Times dense = {}, ours = {};
  int width = 0;
  std::vector<double> widths = {};
};

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), timer_(options.run.launches, options.run.rounds) {
    dtype_ = options.dtype == "bf16" ? DType::kBFloat16 : DType::kFloat16;
    bench::Must(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, 0), "ask the device");
  }

  void RunShape(const Shape& shape) {
    Times dense;
    for (const double sparsity : options_.sparsities) {
      for (const int64_t vector_rows : options_.vectors) {
        const DenseMatrix matrix = DrawMatrix(shape, sparsity, vector_rows, options_.ordered);
        const CsrMatrix csr = CsrMatrix::FromDense(matrix);
        Product product(csr, shape.columns, dtype_);
        if (dense.warm == 0) dense = TimeDense(matrix, product, timer_);
        Line line{.shape = shape, .vector_rows = vector_rows, .sparsity = sparsity, .dense = dense};
        TimeOurs(matrix, product, line);
        lines_.push_back(line);
        Print(line);
      }
    }
  }

  void WriteJson() const;
  bool wrong() const { return wrong_; }

 private:
  void TimeOurs(const DenseMatrix& matrix, Product& product, Line& line) {
    const auto held = ShflBwMatrix::FromDense(matrix);
    bench::Must(held.ok(), "find the groups");
    const auto packed = cuda::RowGroups::Make(*held, {}, dtype_);
    bench::Must(packed.ok(), "pack");
    auto residual = cuda::DeviceArray<uint16_t>::Allocate(matrix.rows * product.stride());
    bench::Must(residual.ok(), "allocate a residual");
    bench::Must(cudaMemset(residual->data(), 0, residual->bytes()), "clear it");  // so that sums can be checked
    cuda::GroupOperands operands = {packed->get(), dtype_,           product.x(),      nullptr,
                                    product.y(),   product.stride(), product.columns()};
    const bool gelu = options_.ending == "gelu";
    if (gelu) operands.epilogue.function = Function{FunctionKind::kGelu, 0, 0};
    if (options_.ending == "residual") operands.residual = residual->data();
    double least = 1e30;
    std::function<void()> best;
    for (const auto& [width, queue] : kWidths) {
      if (width < 0 && operands.weight->pair_count() == 0) continue;
      const auto work = [=, this] { queue(operands, multiprocessors_, timer_.queue()); };
      const double error = gelu ? 0 : product.Error(work, timer_.queue());
      line.error = std::max(line.error, error);
      wrong_ = wrong_ || !(error <= (dtype_ == DType::kFloat16 ? 2e-3 : 1.6e-2));
      line.widths.push_back(timer_.Warm(work));
      if (line.widths.back() < least) least = line.widths.back(), best = work, line.width = width;
    }
    line.ours = timer_.Both(best);
  }

  static void Print(const Line& line) {
    std::printf(
        "%6ld %6ld %6ld V%-4ld %4.0f %% | cuBLASLt %7.2f %7.2f | %7.2f %7.2f | %5.2f %5.2f | error %.1e width %d",
        line.shape.rows, line.shape.cols, line.shape.columns, line.vector_rows, line.sparsity * 100, line.dense.warm,
        line.dense.cold, line.ours.warm, line.ours.cold, line.dense.warm / line.ours.warm,
        line.dense.cold / line.ours.cold, line.error, line.width);
    for (const double us : line.widths) std::printf(" %.2f", us);
    std::printf("\n");
    std::fflush(stdout);
  }

  const Options& options_;
  BothTimer timer_;
  DType dtype_;
  int multiprocessors_ = 0;
  std::vector<Line> lines_;
  bool wrong_ = false;
};

void Bench::WriteJson() const {
  if (options_.run.output.empty()) return;
  std::ofstream out(options_.run.output);
  out.precision(5);
  out << "{\n  " << FactsOf(options_.run) << ", \"dtype\": \"" << options_.dtype << "\",\n  \"cases\": [\n";
  const char* comma = "";
  for (const Line& line : lines_) {
    out << std::exchange(comma, ",\n") << "    {\"kind\": \"" << line.shape.kind << "\", \"m\": " << line.shape.rows
        << ", \"k\": " << line.shape.cols << ", \"n\": " << line.shape.columns << ", \"v\": " << line.vector_rows
        << ", \"sparsity\": " << line.sparsity << ", \"dense_us\": " << line.dense.warm
        << ", \"dense_cold_us\": " << line.dense.cold << ", \"ours_us\": " << line.ours.warm
        << ", \"ours_cold_us\": " << line.ours.cold << ", \"error\": " << line.error << "}";
  }
  out << "\n  ]\n}\n";
}

int Main(const Options& options) {
  Bench bench(options);
  for (const Shape& shape : kShapes) {
    if (std::ranges::find(options.shapes, shape.kind) != options.shapes.end()) bench.RunShape(shape);
  }
  bench.WriteJson();
  if (bench.wrong()) std::printf("results were WRONG\n");
  return bench.wrong() ? 1 : 0;
}

}  // namespace
}  // namespace swizzle::bench

int main(int argc, char** argv) {
  swizzle::bench::Options options;
  CLI::App app("Products of vector-wise and Shfl-BW weights on a GPU against dense cuBLASLt");
  app.add_option("--dtype", options.dtype, "f16 or bf16");
  app.add_option("--sparsity", options.sparsities, "shares of zeros")->delimiter(',');
  app.add_option("--vectors", options.vectors, "rows of a vector")->delimiter(',');
  app.add_option("--shapes", options.shapes, "large, encoder, tail, few, query")->delimiter(',');
  app.add_option("--ending", options.ending, "of ours: none, gelu, residual");
  app.add_flag("--ordered", options.ordered, "rows of a group are neighbours: vector-wise");
  swizzle::bench::AddRunOptions(app, options.run);
  CLI11_PARSE(app, argc, argv);
  return swizzle::bench::Main(options);
}
