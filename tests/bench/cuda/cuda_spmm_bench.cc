// CSR SpMM on a GPU over the Deep Learning Matrix Collection: ours, cuSPARSE's best, a Sputnik-style kernel, and dense
// products by cuBLAS, of FP32 also in three products of FP16 parts.
//
//   cuda_spmm_bench --dlmc=FOLDER [--sparsity=0.8,0.9] [--sample=60] [--dtype=f32] [--rounds=5] [-o results.json]
//   cuda_spmm_bench --cov     row swizzle on and off over Sputnik's sweep of uneven rows (8192x2048, N 128, s .75)
//   cuda_spmm_bench --shapes  the shapes of which published kernels' times on an H200 are known (random patterns, CoV
//   .2)
//   cuda_spmm_bench --crossover --dtype=f16   from which sparsity and number of positions on sparse beats cuBLAS
//
// spmm_race.h says what ours is. The figure to reach: the better of cuSPARSE and the Sputnik-style kernel over ours,
// geometric mean, 1.8 where that better one takes 10 us or more, else 1.2.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "tests/bench/cuda/kept_run.h"
#include "tests/bench/cuda/spmm_race.h"
#include "tests/bench/dlmc.h"

namespace swizzle::bench {
namespace {

constexpr double kPeakFlops = 67e12;  // fp32 units of an H200
constexpr double kLongUs = 10;

struct Options {
  std::string dlmc, dtype = "f32";
  std::vector<std::string> sparsities = {"0.8", "0.9"};
  int sample = 0;
  KeptRun run = {};
  bool every_plan = false, ablation = false, cov = false, shapes = false, crossover = false;
  std::vector<int64_t> batches = {1};
};

void PrintHeader() {
  std::printf("%-58s %6s %6s %6s | %7s %7s %7s %7s %7s %7s %7s | %5s %5s  %s\n", "matrix", "M", "K", "N", "cuBLAS",
              "parts", "cuSPARS", "Sputnik", "simt", "wgmma", "csr*3", "ratio", "peak%", "plan");
}

void Print(const SpmmCase& c) {
  const std::string shown = c.name.size() > 58 ? c.name.substr(c.name.size() - 58) : c.name;
  std::printf("%-58s %6ld %6ld %6ld | %7.2f %7.2f %7.2f %7.2f %7.2f %7.2f %7.2f | %5.2f %5.1f  %s", shown.c_str(),
              static_cast<long>(c.rows), static_cast<long>(c.cols), static_cast<long>(c.columns), c.cublas, c.parts,
              c.cusparse, c.sputnik, c.simt, c.wgmma, c.sparse_parts, c.better() / c.ours,
              c.flops() / (c.ours * 1e-6) / kPeakFlops * 100, c.plan.c_str());
  if (c.best_plan_text != c.plan) std::printf(" (%s %.2f)", c.best_plan_text.c_str(), c.best_plan);
  std::printf("\n");
}

std::vector<double> Ratios(const std::vector<SpmmCase>& cases, auto&& of) {
  std::vector<double> ratios;
  for (const SpmmCase& c : cases) {
    const double ratio = of(c);
    if (ratio > 0 && std::isfinite(ratio)) ratios.push_back(ratio);
  }
  return ratios;
}

void PrintGroup(const char* title, const std::vector<SpmmCase>& cases) {
  if (cases.empty()) return;
  const auto better = Ratios(cases, [](const SpmmCase& c) { return c.better() / c.ours; });
  std::printf("%-28s %3zu cases: better/ours geomean %.3f (min %.2f p10 %.2f median %.2f p90 %.2f max %.2f)", title,
              cases.size(), GeometricMean(better), Percentile(better, 0), Percentile(better, .1),
              Percentile(better, .5), Percentile(better, .9), Percentile(better, 1));
  std::printf("; best plan %.3f",
              GeometricMean(Ratios(cases, [](const SpmmCase& c) { return c.better() / c.best_plan; })));
  std::printf("; without wgmma %.3f",
              GeometricMean(Ratios(cases, [](const SpmmCase& c) { return c.better() / c.simt; })));
  std::printf("; wgmma alone %.3f",
              GeometricMean(Ratios(cases, [](const SpmmCase& c) { return c.better() / c.wgmma; })));
  std::printf("; cuSPARSE/ours %.2f",
              GeometricMean(Ratios(cases, [](const SpmmCase& c) { return c.cusparse / c.ours; })));
  std::printf(" Sputnik/ours %.2f", GeometricMean(Ratios(cases, [](const SpmmCase& c) { return c.sputnik / c.ours; })));
  std::printf(" cuBLAS/ours %.2f", GeometricMean(Ratios(cases, [](const SpmmCase& c) { return c.cublas / c.ours; })));
  std::printf(" dense in parts/ours %.2f",
              GeometricMean(Ratios(cases, [](const SpmmCase& c) { return c.parts / c.ours; })));
  std::printf("; where parts are allowed %.3f, sparse ones alone %.3f, dense in parts over these %.3f",
              GeometricMean(Ratios(cases, [](const SpmmCase& c) { return c.better() / c.in_parts(); })),
              GeometricMean(Ratios(cases, [](const SpmmCase& c) { return c.better() / c.sparse_parts; })),
              GeometricMean(Ratios(cases, [](const SpmmCase& c) { return c.parts / c.sparse_parts; })));
  const auto peak = Ratios(cases, [](const SpmmCase& c) { return c.flops() / (c.ours * 1e-6) / kPeakFlops * 100; });
  std::printf("; peak%% median %.1f max %.1f\n", Percentile(peak, .5), Percentile(peak, 1));
}

void PrintSummary(const std::vector<SpmmCase>& cases, bool ablation) {
  std::vector<SpmmCase> long_ones, short_ones;
  for (const SpmmCase& c : cases) (c.better() >= kLongUs ? long_ones : short_ones).push_back(c);
  PrintGroup("all", cases);
  PrintGroup("better one >= 10 us", long_ones);
  PrintGroup("better one < 10 us", short_ones);
  double dense_error = 0, parts_error = 0, sparse_parts_error = 0, wgmma_error = 0;
  for (const SpmmCase& c : cases) {
    dense_error = std::max(dense_error, c.dense_error), wgmma_error = std::max(wgmma_error, c.wgmma_error);
    parts_error = std::max(parts_error, c.parts_error);
    sparse_parts_error = std::max(sparse_parts_error, c.sparse_parts_error);
  }
  std::printf(
      "largest error over the largest sum: cuBLAS fp32 %.2e, in parts %.2e, sparse in parts %.2e, wgmma %.2e; "
      "wgmma/cuBLAS geomean %.2f\n",
      dense_error, parts_error, sparse_parts_error, wgmma_error,
      GeometricMean(Ratios(cases, [](const SpmmCase& c) { return c.wgmma_error / c.dense_error; })));
  if (!ablation) return;
  std::printf("Sputnik-style, %% of full speed: ");
  const auto part = [&](const char* what, auto&& of) {
    std::printf("%s %.1f  ", what,
                100 * GeometricMean(Ratios(cases, [&](const SpmmCase& c) { return c.sputnik / of(c); })));
  };
  part("no swizzle", [](const SpmmCase& c) { return c.unbalanced; });
  part("scalar loads", [](const SpmmCase& c) { return c.scalar; });
  part("no pre-scaling", [](const SpmmCase& c) { return c.unscaled; });
  part("no residue unroll", [](const SpmmCase& c) { return c.rolled; });
  std::printf("\n");
}

void WriteCase(std::ofstream& out, const SpmmCase& c) {
  out << "    {\"name\": \"" << c.name << "\", \"m\": " << c.rows << ", \"k\": " << c.cols << ", \"n\": " << c.columns
      << ", \"nnz\": " << c.nonzeros << ", \"cublas_us\": " << c.cublas << ", \"parts_us\": " << c.parts
      << ", \"cusparse_us\": " << c.cusparse << ", \"cusparse_algorithm\": \"" << c.algorithm
      << "\", \"sputnik_us\": " << c.sputnik << ", \"ours_us\": " << c.ours << ", \"simt_us\": " << c.simt
      << ", \"wgmma_us\": " << c.wgmma << ", \"sparse_parts_us\": " << c.sparse_parts
      << ", \"sparse_parts_error\": " << c.sparse_parts_error << ", \"cublas_error\": " << c.dense_error
      << ", \"parts_error\": " << c.parts_error << ", \"wgmma_error\": " << c.wgmma_error << ", \"plan\": \"" << c.plan
      << "\"";
  if (c.unbalanced > 0) {
    out << ", \"sputnik_no_swizzle_us\": " << c.unbalanced << ", \"sputnik_scalar_us\": " << c.scalar
        << ", \"sputnik_no_prescale_us\": " << c.unscaled << ", \"sputnik_no_residue_unroll_us\": " << c.rolled;
  }
  if (!c.plans.empty()) {
    out << ", \"plans\": {";
    const char* comma = "";
    for (const auto& [plan, us] : c.plans) out << std::exchange(comma, ", ") << "\"" << plan << "\": " << us;
    out << "}";
  }
  out << "}";
}

void WriteJson(const Options& options, const std::vector<SpmmCase>& cases) {
  if (options.run.output.empty()) return;
  std::vector<double> long_ones, short_ones;
  for (const SpmmCase& c : cases) (c.better() >= kLongUs ? long_ones : short_ones).push_back(c.better() / c.ours);
  std::ofstream out(options.run.output);
  out.precision(5);
  out << "{\n  " << FactsOf(options.run) << ", \"dtype\": \"" << options.dtype << "\",\n  \"method\": \""
      << MethodOf(options.run) << "\",\n"
      << "  \"baselines\": \"cuSPARSE best of CSR alg 1-3 with preprocessing, Sputnik-style kernel (fp32), cuBLAS "
         "dense\",\n"
      << "  \"geomean_at_least_10us\": " << GeometricMean(long_ones)
      << ", \"cases_at_least_10us\": " << long_ones.size()
      << ",\n  \"geomean_under_10us\": " << GeometricMean(short_ones) << ", \"cases_under_10us\": " << short_ones.size()
      << ",\n  \"cases\": [\n";
  for (size_t i = 0; i < cases.size(); ++i) {
    WriteCase(out, cases[i]);
    out << (i + 1 < cases.size() ? ",\n" : "\n");
  }
  out << "  ]\n}\n";
}

void RunDlmc(const Options& options, SpmmRace& bench, std::vector<SpmmCase>& cases) {
  const auto found = FindDlmcCases(options.dlmc, options.sparsities, options.sample);
  for (size_t i = 0; i < found.size(); ++i) {
    std::fprintf(stderr, "\r%zu of %zu", i + 1, found.size());
    const auto matrix = ReadDlmc(found[i].path);
    Must(matrix.ok(), "read " + found[i].path);
    const bool images = found[i].columns.size() == 1;
    for (int64_t columns : found[i].columns) {
      for (int64_t batch : images ? options.batches : std::vector<int64_t>{1}) {
        cases.push_back(bench.Run(found[i].name, *matrix, columns * batch));
        Print(cases.back());
      }
    }
  }
  std::fprintf(stderr, "\n");
}

void RunShapes(SpmmRace& bench, std::vector<SpmmCase>& cases) {
  struct Shape {
    int64_t m, k, n;
    double sparsity;
  };
  constexpr Shape kShapes[] = {{512, 512, 2048, .9},  {2048, 512, 2048, .9}, {3072, 768, 4096, .8},
                               {3072, 768, 4096, .9}, {3072, 768, 128, .9},  {256, 2304, 12544, .9},
                               {716, 716, 196, .9},   {8192, 2048, 32, .9},  {4096, 4096, 8, .8},
                               {4096, 4096, 2048, .9}};
  for (const Shape& s : kShapes) {
    cases.push_back(bench.Run(Concat("random ", s.sparsity), DrawMatrix(s.m, s.k, s.sparsity, .2), s.n));
    Print(cases.back());
  }
}

// From which sparsity on, for each number of positions, sparse is faster than cuBLAS.
void RunCrossover(SpmmRace& bench, std::vector<SpmmCase>& cases) {
  for (const int64_t size : {512, 2048}) {
    for (const double sparsity : {.7, .8, .9, .95, .98, .99}) {
      const CsrMatrix matrix = DrawMatrix(size, size, sparsity, .2);
      for (const int64_t columns : {8, 32, 128, 512, 2048}) {
        cases.push_back(bench.Run(Concat("random ", sparsity), matrix, columns));
        Print(cases.back());
      }
    }
  }
}

void RunCov(SpmmRace& bench, std::vector<SpmmCase>& cases) {
  for (double cov : {0.0, 0.25, 0.5, 0.75, 1.0, 1.5}) {
    cases.push_back(bench.Run(Concat("CoV ", cov), DrawMatrix(8192, 2048, .75, cov), 128));
    const SpmmCase& c = cases.back();
    Print(c);
    std::printf(
        "  row swizzle off: %.2f us, on: %.2f us, %.1f %%; at CoV 0: %.1f %% of the speed off, %.1f %% on; ours %.1f "
        "%%\n",
        c.unbalanced, c.sputnik, 100 * c.sputnik / c.unbalanced,
        100 * cases[0].sputnik * c.flops() / cases[0].flops() / c.unbalanced,
        100 * cases[0].sputnik * c.flops() / cases[0].flops() / c.sputnik,
        100 * cases[0].ours * c.flops() / cases[0].flops() / c.ours);
  }
}

int Main(Options options) {
  if (options.cov) options.ablation = true;
  SpmmRace bench({options.dtype, options.run.rounds, options.run.launches, options.every_plan, options.ablation});
  std::vector<SpmmCase> cases;
  PrintHeader();
  if (options.shapes) RunShapes(bench, cases);
  if (options.crossover) RunCrossover(bench, cases);
  if (options.cov) RunCov(bench, cases);
  if (!options.dlmc.empty()) RunDlmc(options, bench, cases);
  PrintSummary(cases, options.ablation);
  WriteJson(options, cases);
  if (bench.wrong() > 0) std::printf("%d results were WRONG\n", bench.wrong());
  return bench.wrong() > 0 ? 1 : 0;
}

}  // namespace
}  // namespace swizzle::bench

int main(int argc, char** argv) {
  swizzle::bench::Options options;
  CLI::App app("CSR SpMM on a GPU against cuSPARSE, a Sputnik-style kernel and dense cuBLAS");
  app.add_option("--dlmc", options.dlmc, "folder with .smtx files");
  app.add_option("--sparsity", options.sparsities, "of DLMC matrices")->delimiter(',');
  app.add_option("--sample", options.sample, "take this many matrices, evenly; 0: all");
  app.add_option("--batches", options.batches, "of ResNet-50's images")->delimiter(',');
  app.add_option("--dtype", options.dtype, "f32, f16 or bf16");
  swizzle::bench::AddRunOptions(app, options.run);
  app.add_flag("--every-plan", options.every_plan, "time every way to lay out our kernel");
  app.add_flag("--ablation", options.ablation, "time the Sputnik-style kernel without its parts");
  app.add_flag("--cov", options.cov, "row swizzle over the variation of row lengths");
  app.add_flag("--crossover", options.crossover, "sparsities and numbers of positions, against cuBLAS");
  app.add_flag("--shapes", options.shapes, "shapes with known times");
  CLI11_PARSE(app, argc, argv);
  return swizzle::bench::Main(options);
}
