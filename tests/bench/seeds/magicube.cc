// Sparse products of whole numbers (Magicube's workload): patterns of the Deep Learning Matrix Collection, each entry a
// vector of 8 rows, against cuSPARSE's best CSR algorithm and cuBLAS in FP16, and cuBLASLt's best in INT8.
//
//   seeds_magicube --dlmc=FOLDER [--sample=16] [--rounds=5] [-o results.json]
//
// The collection has 80 and 90 %; other sparsities are drawn with the same lengths of rows beside each other. Ours is
// the fastest of the kernel table's ways, as a planner measures them; every sum of some rows is checked. Then other
// widths, by the way that has them, and the ablation: 256x2304 in vectors, N 512.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>

#include "tests/bench/cuda/kept_run.h"
#include "tests/bench/cuda/whole_product.h"
#include "tests/bench/dlmc.h"
#include "tests/bench/seeds/claims.h"

namespace swizzle::bench {
namespace {

constexpr int kVectorRows = 8;
constexpr int64_t kColumns[] = {128, 256, 512};
constexpr double kSparsities[] = {.5, .7, .8, .9, .95, .98};
constexpr int64_t kMostElements = int64_t{1} << 22;  // of a pattern: the embedding's is left out

struct Options {
  std::string dlmc;
  int sample = 16;
  KeptRun run = {};
};

struct Widths {
  int weights, columns;
  std::string Text() const { return Concat(weights, "-", columns); }
};
constexpr Widths kWidths[] = {{16, 16}, {16, 8}, {16, 4}, {12, 4}, {8, 4}, {4, 4}};

struct Case {
  std::string name = {};
  double sparsity = 0;
  int64_t rows = 0, cols = 0, columns = 0;
  double cusparse = 0, cublas_f16 = 0, cublas_s8 = 0, ours = 1e30, operations = 0;
  std::string way = {};
  std::map<std::string, double> ways = {}, widths = {};
};

struct Ablation {
  double sparsity, operations, full, no_prefetch, no_conflict_free, no_transpose;
};

// A pattern of another density whose rows are as long beside each other.
CsrMatrix Redrawn(const CsrMatrix& from, double sparsity, std::mt19937& random) {
  const double factor = (1 - sparsity) * static_cast<double>(from.rows * from.cols) / static_cast<double>(from.nnz());
  CsrMatrix drawn;
  drawn.rows = from.rows, drawn.cols = from.cols, drawn.row_offsets = {0};
  std::vector<uint32_t> columns(from.cols);
  for (int64_t i = 0; i < from.cols; ++i) columns[i] = static_cast<uint32_t>(i);
  for (int64_t row = 0; row < from.rows; ++row) {
    const double length = factor * (from.row_offsets[row + 1] - from.row_offsets[row]);
    const int64_t count = std::min<int64_t>(from.cols, std::lround(length));
    for (int64_t i = 0; i < count; ++i) std::swap(columns[i], columns[i + random() % (from.cols - i)]);
    std::vector<uint32_t> kept(columns.begin(), columns.begin() + count);
    std::sort(kept.begin(), kept.end());
    drawn.col_indices.insert(drawn.col_indices.end(), kept.begin(), kept.end());
    drawn.row_offsets.push_back(static_cast<uint32_t>(drawn.col_indices.size()));
  }
  drawn.values.assign(drawn.col_indices.size(), 1.0f);
  return drawn;
}

// Each entry as a vector, values drawn.
CsrMatrix Dilated(const CsrMatrix& pattern, std::mt19937& random) {
  CsrMatrix made;
  made.rows = pattern.rows * kVectorRows, made.cols = pattern.cols, made.row_offsets = {0};
  for (int64_t row = 0; row < made.rows; ++row) {
    const auto begin = pattern.col_indices.begin() + pattern.row_offsets[row / kVectorRows];
    const auto end = pattern.col_indices.begin() + pattern.row_offsets[row / kVectorRows + 1];
    made.col_indices.insert(made.col_indices.end(), begin, end);
    made.row_offsets.push_back(static_cast<uint32_t>(made.col_indices.size()));
  }
  made.values.resize(made.col_indices.size());
  for (float& value : made.values) value = static_cast<float>(random() >> 8) / (1 << 23) - 1;
  return made;
}

class Bench {
 public:
  explicit Bench(const Options& options) : timer_(options.run.launches, options.run.rounds) {
    Must(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, 0), "ask the device");
    Must(cusparseCreate(&cusparse_) == CUSPARSE_STATUS_SUCCESS, "start cuSPARSE");
    Must(cublasCreate(&cublas_) == CUBLAS_STATUS_SUCCESS, "start cuBLAS");
    void* workspace = nullptr;
    constexpr size_t kWorkspace = size_t{32} << 20;
    Must(cudaMalloc(&workspace, kWorkspace), "allocate");
    cublasSetWorkspace(cublas_, workspace, kWorkspace);
  }

  Case Run(const std::string& name, const CsrMatrix& pattern, double sparsity, int64_t columns) {
    Case c{.name = name,
           .sparsity = sparsity,
           .rows = pattern.rows * kVectorRows,
           .cols = pattern.cols,
           .columns = columns};
    {
      const CsrMatrix dilated = Dilated(pattern, random_);
      Product half(dilated, columns, DType::kFloat16);
      const DeviceCsr csr(dilated, DType::kFloat16);
      c.cusparse = TimeCusparse(cusparse_, half, csr, timer_).us;
      c.cublas_f16 = TimeCublas(cublas_, half, timer_).us;
    }
    WholeProduct product(pattern, columns, 8, 8);
    c.operations = product.operations();
    c.cublas_s8 = product.TimeDense(timer_);
    for (const cuda::ByteWay way : cuda::kByteWays) {
      const bool resident = way == cuda::ByteWay::kResident128 || way == cuda::ByteWay::kResident64;
      if (resident && !cuda::FitsResident(way, pattern.cols)) continue;
      const double us = Time(product, Concat(name, " ", cuda::ByteWayName(way)),
                             [&] { cuda::QueueSums(product.operands(), way, multiprocessors_, timer_.queue()); });
      c.ways[std::string(cuda::ByteWayName(way))] = us;
      if (us < c.ours) c.ours = us, c.way = cuda::ByteWayName(way);
    }
    return c;
  }

  double TimeWidths(const CsrMatrix& pattern, int64_t columns, const Widths& widths) {
    WholeProduct product(pattern, columns, widths.weights, widths.columns);
    return Time(product, widths.Text(),
                [&] { cuda::QueueSums(product.operands(), cuda::ByteWay::kGather, multiprocessors_, timer_.queue()); });
  }

  Ablation RunAblation(const CsrMatrix& pattern, double sparsity) {
    WholeProduct product(pattern, 512, 8, 8);
    const auto without = [&](cuda::BytePart part) {
      return Time(product, "ablation", [&] { cuda::QueueSumsWithout(part, product.operands(), timer_.queue()); });
    };
    const double full = Time(product, "ablation", [&] {
      cuda::QueueSums(product.operands(), cuda::ByteWay::kGather, multiprocessors_, timer_.queue());
    });
    return {sparsity,
            product.operations(),
            full,
            without(cuda::BytePart::kPrefetch),
            without(cuda::BytePart::kConflictFree),
            without(cuda::BytePart::kTranspose)};
  }

  int wrong() const { return wrong_; }

 private:
  double Time(WholeProduct& product, const std::string& what, const std::function<void()>& work) {
    if (!product.IsRight(work, timer_.queue())) {
      std::printf("WRONG: %s %ldx%ldx%ld\n", what.c_str(), product.rows(), product.cols(), product.columns());
      ++wrong_;
    }
    return timer_.Time(work);
  }

  Timer timer_;
  std::mt19937 random_{3};
  int multiprocessors_ = 0, wrong_ = 0;
  cusparseHandle_t cusparse_;
  cublasHandle_t cublas_;
};

void PrintGroup(const std::vector<Case>& cases, double sparsity) {
  std::vector<double> sparse, whole, half;
  std::map<std::string, std::vector<double>> widths;
  double least = 1e30;
  for (const Case& c : cases) {
    if (sparsity != 0 && c.sparsity != sparsity) continue;
    sparse.push_back(c.cusparse / c.ours), whole.push_back(c.cublas_s8 / c.ours), half.push_back(c.cublas_f16 / c.ours);
    least = std::min(least, sparse.back());
    for (const auto& [text, us] : c.widths) widths[text].push_back(c.cublas_f16 / us);
  }
  std::printf("%4.2f  %3zu cases  cuSPARSE f16 / ours %.2f (least %.2f)  cuBLAS s8 %.2f  cuBLAS f16 %.2f ", sparsity,
              sparse.size(), GeometricMean(sparse), least, GeometricMean(whole), GeometricMean(half));
  for (const auto& [text, ratios] : widths) std::printf(" %s %.2f", text.c_str(), GeometricMean(ratios));
  std::printf("\n");
}

// What the paper says, on an A100, as we add up its artefact's logs: vectors of 8 rows, N 256, over cuBLAS in FP16.
std::vector<Claim> Claims(const std::vector<Case>& cases, const std::vector<Ablation>& ablations) {
  struct Published {
    double sparsity, of_16_8, of_8_8, of_4_4;
  };
  constexpr Published kPublished[] = {{.5, .76, .80, 1.08},
                                      {.7, 1.04, 1.05, 1.29},
                                      {.8, 1.20, 1.17, 1.41},
                                      {.9, 1.54, 1.48, 1.59},
                                      {.98, 2.06, 1.95, 1.84}};
  std::vector<Claim> claims;
  const auto add = [&](const std::string& what, double published, double ours) {
    claims.push_back({.what = what, .published = published, .hardware = "A100", .ours = ours});
  };
  std::vector<double> whole_over_half;
  for (const Published& published : kPublished) {
    std::vector<double> of_8_8, of_16_8, of_4_4;
    for (const Case& c : cases) {
      if (c.sparsity != published.sparsity || c.columns != 256) continue;
      whole_over_half.push_back(c.cublas_f16 / c.cublas_s8);
      of_8_8.push_back(c.cublas_f16 / c.ours);
      of_16_8.push_back(c.cublas_f16 / c.widths.at("16-8"));
      of_4_4.push_back(c.cublas_f16 / c.widths.at("4-4"));
    }
    const std::string zeros = Concat(" over dense FP16, ", std::lround(100 * published.sparsity), " % zeros");
    add("SpMM 8-8" + zeros, published.of_8_8, GeometricMean(of_8_8));
    add("SpMM 16-8" + zeros, published.of_16_8, GeometricMean(of_16_8));
    add("SpMM 4-4" + zeros, published.of_4_4, GeometricMean(of_4_4));
  }
  add("dense INT8 over dense FP16", .50, GeometricMean(whole_over_half));
  std::vector<double> sparse, whole;
  for (const Case& c : cases) sparse.push_back(c.cusparse / c.ours), whole.push_back(c.cublas_s8 / c.ours);
  add("SpMM 8-8 over cuSPARSE FP16, all", 0, GeometricMean(sparse));
  add("SpMM 8-8 over dense INT8, all", 0, GeometricMean(whole));
  for (const Ablation& a : ablations) {
    const bool few = a.sparsity == .7;
    const std::string zeros = Concat(", 8-8, ", std::lround(100 * a.sparsity), " % zeros");
    add("prefetch over none" + zeros, few ? 23.0 / 17.8 : 16.5 / 13.3, a.no_prefetch / a.full);
    add("conflict-free layout over none" + zeros, few ? 17.8 / 15.3 : 13.3 / 11.8, a.no_conflict_free / a.full);
  }
  return claims;
}

void WriteJson(const Options& options, const std::vector<Case>& cases, const std::vector<Ablation>& ablations) {
  if (options.run.output.empty()) return;
  std::ofstream out(options.run.output);
  out.precision(5);
  out << "{\n  " << FactsOf(options.run) << ",\n  \"method\": \"" << MethodOf(options.run) << "\",\n  \"cases\": [\n";
  const char* comma = "";
  const auto write_map = [&](const char* name, const std::map<std::string, double>& map) {
    out << ", \"" << name << "\": {";
    const char* between = "";
    for (const auto& [text, us] : map) out << std::exchange(between, ", ") << "\"" << text << "\": " << us;
    out << "}";
  };
  for (const Case& c : cases) {
    out << std::exchange(comma, ",\n") << "    {\"name\": \"" << c.name << "\", \"sparsity\": " << c.sparsity
        << ", \"m\": " << c.rows << ", \"k\": " << c.cols << ", \"n\": " << c.columns
        << ", \"cusparse_f16_us\": " << c.cusparse << ", \"cublas_f16_us\": " << c.cublas_f16
        << ", \"cublas_s8_us\": " << c.cublas_s8 << ", \"ours_us\": " << c.ours << ", \"operations\": " << c.operations
        << ", \"way\": \"" << c.way << "\"";
    write_map("ways_us", c.ways);
    if (!c.widths.empty()) write_map("widths_us", c.widths);
    out << "}";
  }
  out << "\n  ],\n  \"ablation\": [\n";
  comma = "";
  for (const Ablation& a : ablations) {
    out << std::exchange(comma, ",\n") << "    {\"sparsity\": " << a.sparsity << ", \"operations\": " << a.operations
        << ", \"full_us\": " << a.full << ", \"no_prefetch_us\": " << a.no_prefetch
        << ", \"no_conflict_free_us\": " << a.no_conflict_free << ", \"no_transpose_us\": " << a.no_transpose << "}";
  }
  out << "\n  ],\n  \"system\": \"Magicube\", \"paper\": \"Li et al., SC22\",\n  \"claims\": "
      << ClaimsJson(Claims(cases, ablations)).dump(1) << "\n}\n";
}

std::vector<Case> RunPatterns(const Options& options, Bench& bench, CsrMatrix& ablated) {
  std::vector<Case> cases;
  std::mt19937 random(7);
  for (const DlmcCase& found : FindDlmcCases(options.dlmc, {"0.9"}, options.sample)) {
    const auto read = ReadDlmc(found.path);
    Must(read.ok(), "read " + found.path);
    if (read->rows * read->cols > kMostElements) continue;
    if (read->rows == 256 && read->cols == 2304) ablated = *read;
    for (const double sparsity : kSparsities) {
      const CsrMatrix pattern = sparsity == .9 ? *read : Redrawn(*read, sparsity, random);
      for (const int64_t columns : kColumns) {
        Case& c = cases.emplace_back(bench.Run(found.name, pattern, sparsity, columns));
        if (columns == 256) {
          for (const Widths& widths : kWidths) c.widths[widths.Text()] = bench.TimeWidths(pattern, columns, widths);
        }
        std::printf("%-58s %.2f %6ld %5ld %4ld | cuSPARSE %7.2f cuBLAS f16 %6.2f s8 %6.2f | %6.2f %s\n", c.name.c_str(),
                    sparsity, c.rows, c.cols, c.columns, c.cusparse, c.cublas_f16, c.cublas_s8, c.ours, c.way.c_str());
        std::fflush(stdout);
      }
    }
  }
  return cases;
}

int Main(const Options& options) {
  Bench bench(options);
  CsrMatrix ablated;
  const std::vector<Case> cases = RunPatterns(options, bench, ablated);
  std::vector<Ablation> ablations;
  std::mt19937 random(9);
  if (ablated.rows == 0) {  // not in the sample: rows alike
    ablated = {256, 2304, {0}, {}, {}};
    for (uint32_t row = 0; row < 256; ++row) {
      for (uint32_t col = 0; col < 230; ++col) ablated.col_indices.push_back(col * 10);
      ablated.row_offsets.push_back(static_cast<uint32_t>(ablated.col_indices.size()));
    }
    ablated.values.assign(ablated.col_indices.size(), 1.0f);
  }
  for (const double sparsity : {.7, .9}) {
    const Ablation a = ablations.emplace_back(bench.RunAblation(Redrawn(ablated, sparsity, random), sparsity));
    std::printf("ablation %.1f, TOP/s: full %.1f, no prefetch %.1f, no conflict-free %.1f, no transpose %.1f\n",
                sparsity, a.operations / a.full / 1e6, a.operations / a.no_prefetch / 1e6,
                a.operations / a.no_conflict_free / 1e6, a.operations / a.no_transpose / 1e6);
  }
  for (const double sparsity : kSparsities) PrintGroup(cases, sparsity);
  PrintGroup(cases, 0);
  PrintClaims("Magicube (Li et al., SC22)", Claims(cases, ablations));
  WriteJson(options, cases, ablations);
  if (bench.wrong() > 0) std::printf("%d results were WRONG\n", bench.wrong());
  return bench.wrong() > 0 ? 1 : 0;
}

}  // namespace
}  // namespace swizzle::bench

int main(int argc, char** argv) {
  swizzle::bench::Options options;
  CLI::App app("Sparse products of whole numbers on a GPU against cuSPARSE, cuBLAS and cuBLASLt");
  app.add_option("--dlmc", options.dlmc, "folder with .smtx files")->required();
  app.add_option("--sample", options.sample, "take this many patterns, evenly; 0: all");
  swizzle::bench::AddRunOptions(app, options.run);
  CLI11_PARSE(app, argc, argv);
  return swizzle::bench::Main(options);
}
