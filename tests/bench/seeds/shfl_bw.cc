// Shfl-BW's products (Huang et al., "Shfl-BW", DAC22) on this GPU, FP16: the Transformer's and GNMT's layers at the
// densities that the paper has, vectors of 32 to 128 rows shuffled, beside the same vectors in order, cuBLASLt's
// fastest heuristic, cuSPARSE's best CSR algorithm, Sputnik's way (this server's FP16 CSR kernels), and 2:4.
//
//   seeds_shfl_bw [--vectors=32,64,128] [--density=0.5,0.25,0.2,0.15,0.1,0.05,0.02] [-o shfl_bw.json]
//
// Rows are drawn in groups that keep the same columns: what their search leaves. ResNet-50's convolutions are measured
// by cuda_conv_bench.
#include <numeric>
#include <random>

#include "kernels/cuda/conv/n_m/conv_n_m.h"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw.h"
#include "tests/bench/cuda/dense_product.h"
#include "tests/bench/cuda/spmm_race.h"
#include "tests/bench/seeds/claims.h"

namespace swizzle::bench {
namespace {

struct Options {
  SeedRun run = {.system = "Shfl-BW", .paper = "Huang et al., DAC22"};
  std::vector<int64_t> vectors = {32, 64, 128};
  std::vector<double> densities = {.5, .25, .2, .15, .1, .05, .02};
};

struct Shape {
  const char* model;
  int64_t rows, columns, cols;  // M, N, K
};
// Of the artefact; the vocabulary's product has its own.
constexpr Shape kShapes[] = {{"Transformer", 1024, 960, 1024}, {"Transformer", 4096, 960, 1024},
                             {"Transformer", 1024, 960, 4096}, {"GNMT", 4096, 640, 1024},
                             {"GNMT", 4096, 640, 2048},        {"GNMT", 1024, 640, 1024}};

// Groups of `vector_rows` rows that keep the same columns; neighbours, or shuffled over the matrix.
DenseMatrix DrawGroups(const Shape& shape, double density, int64_t vector_rows, bool shuffled) {
  std::mt19937 random(5);
  std::normal_distribution<float> value(0.0f, 0.1f);
  std::vector<uint32_t> order(shape.rows), columns(shape.cols);
  std::iota(order.begin(), order.end(), 0u);
  std::iota(columns.begin(), columns.end(), 0u);
  if (shuffled) std::shuffle(order.begin(), order.end(), random);
  DenseMatrix dense{shape.rows, shape.cols, std::vector<float>(shape.rows * shape.cols)};
  const auto kept = std::max<int64_t>(1, std::llround(static_cast<double>(shape.cols) * density));
  for (int64_t place = 0; place < shape.rows; ++place) {
    if (place % vector_rows == 0) std::shuffle(columns.begin(), columns.end(), random);
    for (int64_t i = 0; i < kept; ++i) dense.values[order[place] * shape.cols + columns[i]] = value(random);
  }
  return dense;
}

// The rows of the kernel table.
using QueueFunction = void (*)(const cuda::GroupOperands&, int, cudaStream_t);
constexpr QueueFunction kWidths[] = {cuda::QueueGroups<64>, cuda::QueueGroups<128>, cuda::QueueGroups<192>,
                                     cuda::QueueGroups<256>};

class Bench {
 public:
  Bench(const Options& options, SeedReport& report)
      : options_(options),
        report_(report),
        timer_(options.run.kept.launches, options.run.kept.rounds),
        csr_({.dtype = "f16", .rounds = options.run.kept.rounds, .launches = options.run.kept.launches}) {
    Must(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, 0), "ask the device");
  }

  void RunShape(const Shape& shape) {
    double dense_us = 0;
    for (const double density : options_.densities) {
      double csr_us = 0, cusparse_us = 0;
      for (const int64_t vector_rows : options_.vectors) {
        const DenseMatrix matrix = DrawGroups(shape, density, vector_rows, true);
        const CsrMatrix csr = CsrMatrix::FromDense(matrix);
        Product product(csr, shape.columns, DType::kFloat16);
        if (dense_us == 0) dense_us = TimeDense(matrix, product, timer_).warm;
        if (csr_us == 0) {
          const SpmmCase c = csr_.Run(shape.model, csr, shape.columns);
          csr_us = c.ours, cusparse_us = c.cusparse;
        }
        const DenseMatrix in_order = DrawGroups(shape, density, vector_rows, false);
        const CsrMatrix csr_in_order = CsrMatrix::FromDense(in_order);
        Product product_in_order(csr_in_order, shape.columns, DType::kFloat16);
        report_.AddCase(shape.model, {{"m", shape.rows},
                                      {"n", shape.columns},
                                      {"k", shape.cols},
                                      {"density", density},
                                      {"vector", vector_rows},
                                      {"cublas_us", dense_us},
                                      {"cusparse_us", cusparse_us},
                                      {"csr_us", csr_us},
                                      {"ours_us", TimeGroups(matrix, product)},
                                      {"in_order_us", TimeGroups(in_order, product_in_order)}});
      }
    }
    RunTwoOfFour(shape, dense_us);
  }

  int wrong() const { return csr_.wrong(); }

 private:
  double TimeGroups(const DenseMatrix& matrix, Product& product) {
    const auto held = ShflBwMatrix::FromDense(matrix);
    Must(held.ok(), "find the groups");
    const auto packed = cuda::RowGroups::Make(*held, {}, DType::kFloat16);
    Must(packed.ok(), "pack");
    const cuda::GroupOperands operands = {packed->get(), DType::kFloat16,  product.x(),      nullptr,
                                          product.y(),   product.stride(), product.columns()};
    double least = 1e30;
    for (const auto queue : kWidths) {
      const auto work = [&] { queue(operands, multiprocessors_, timer_.queue()); };
      Check(product, work);
      least = std::min(least, timer_.Warm(work));
    }
    return least;
  }

  void RunTwoOfFour(const Shape& shape, double dense_us) {
    std::mt19937 random(5);
    DenseMatrix matrix{shape.rows, shape.cols, std::vector<float>(shape.rows * shape.cols)};
    for (int64_t i = 0; i < shape.rows * shape.cols; i += 4) {
      const uint32_t first = random() % 4;
      matrix.values[i + first] = .1f;
      matrix.values[i + (first + 1 + random() % 3) % 4] = -.2f;
    }
    const CsrMatrix csr = CsrMatrix::FromDense(matrix);
    Product product(csr, shape.columns, DType::kFloat16);
    const auto held = NOfMMatrix::FromDense(matrix, {.n = 2, .m = 4, .taps = 1});
    Must(held.ok(), "keep to 2:4");
    const auto packed = cuda::TwoOfFour::Make(*held, {}, DType::kFloat16);
    Must(packed.ok(), "pack");
    const cuda::TwoOfFourOperands operands = {packed->get(), DType::kFloat16,  product.x(),      nullptr,
                                              product.y(),   product.stride(), product.columns()};
    const auto narrow = [&] { cuda::QueueTwoOfFour<128>(operands, multiprocessors_, timer_.queue()); };
    const auto wide = [&] { cuda::QueueTwoOfFour<256>(operands, multiprocessors_, timer_.queue()); };
    Check(product, narrow);
    Check(product, wide);
    report_.AddCase("2:4", {{"model", shape.model},
                            {"m", shape.rows},
                            {"n", shape.columns},
                            {"k", shape.cols},
                            {"cublas_us", dense_us},
                            {"ours_us", std::min(timer_.Warm(narrow), timer_.Warm(wide))}});
  }

  void Check(Product& product, const std::function<void()>& work) {
    const double error = product.Error(work, timer_.queue());
    if (!(error <= 2e-3)) report_.MarkWrong(Concat("off by ", error));
  }

  const Options& options_;
  SeedReport& report_;
  BothTimer timer_;
  SpmmRace csr_;
  int multiprocessors_ = 0;
};

void AddClaims(SeedReport& report) {
  const auto cases = [](double density, int64_t vector_rows) {
    return [=](const nlohmann::ordered_json& c) {
      return c["density"] == density && (vector_rows == 0 || c["vector"] == vector_rows);
    };
  };
  const auto best = [&](const char* model, double density) {
    double most = 0;
    for (const int64_t vector_rows : {32, 64, 128}) {
      most = std::max(most, report.Ratio(model, "cublas_us", "ours_us", cases(density, vector_rows)));
    }
    return most;
  };
  const auto add = [&](const char* what, double published, const char* hardware, double ours) {
    report.AddClaim({.what = what, .published = published, .hardware = hardware, .ours = ours});
  };
  add("Transformer over dense FP16, 75 % zeros, best V", 1.81, "V100", best("Transformer", .25));
  add("Transformer over dense FP16, 75 % zeros, best V", 4.18, "T4", best("Transformer", .25));
  add("Transformer over dense FP16, 75 % zeros, best V", 1.90, "A100", best("Transformer", .25));
  add("Transformer over dense FP16, 85 % zeros, V 64", 5.04, "T4",
      report.Ratio("Transformer", "cublas_us", "ours_us", cases(.15, 64)));
  add("Transformer over dense FP16, 50 % zeros, best V", 0, "", best("Transformer", .5));
  add("GNMT over dense FP16, 75 % zeros, best V", 0, "", best("GNMT", .25));
  add("shuffled over in order, V 64 (0.97 to 1.02: the shuffle is free)", 0.99, "V100, T4, A100",
      report.Ratio("Transformer", "in_order_us", "ours_us", cases(.25, 64)));
  add("2:4 over dense FP16, Transformer", 1.07, "A100",
      report.Ratio("2:4", "cublas_us", "ours_us", [](const auto& c) { return c["model"] == "Transformer"; }));
  add("2:4 over dense FP16, GNMT", 1.16, "A100",
      report.Ratio("2:4", "cublas_us", "ours_us", [](const auto& c) { return c["model"] == "GNMT"; }));
  add("scattered zeros by CSR over dense FP16, 95 % (they lose)", 0.99, "V100, T4, A100",
      report.Ratio("Transformer", "cublas_us", "csr_us", cases(.05, 0)));
}

int Main(const Options& options) {
  SeedReport report(options.run);
  Bench bench(options, report);
  for (const Shape& shape : kShapes) bench.RunShape(shape);
  AddClaims(report);
  for (int i = 0; i < bench.wrong(); ++i) report.MarkWrong("see above");
  return report.Finish();
}

}  // namespace
}  // namespace swizzle::bench

int main(int argc, char** argv) {
  swizzle::bench::Options options;
  CLI::App app("Shfl-BW's products on this GPU, beside what its paper says");
  app.add_option("--vectors", options.vectors, "rows of a vector")->delimiter(',');
  app.add_option("--density", options.densities, "shares that are kept")->delimiter(',');
  swizzle::bench::AddRunOptions(app, options.run.kept);
  CLI11_PARSE(app, argc, argv);
  return swizzle::bench::Main(options);
}
