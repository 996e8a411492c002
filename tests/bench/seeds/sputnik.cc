// Sputnik's products (Gale et al., "Sparse GPU Kernels for Deep Learning", SC20) on this GPU, FP32 and FP16: the Deep
// Learning Matrix Collection, rows of uneven lengths, recurrent layers, and the ablation. Its algorithm, written from
// the paper (tests/bench/cuda/sputnik_spmm.h), runs beside this server's kernels, cuSPARSE's best and cuBLAS.
//
//   seeds_sputnik --dlmc=FOLDER [--sample=24] [--most-hidden=2048] [-o sputnik.json]
//
// Its sparse Transformer and SDDMM are measured by cuda_attention_bench, MobileNetV1 by plan_bench.
#include "tests/bench/cuda/spmm_race.h"
#include "tests/bench/dlmc.h"
#include "tests/bench/seeds/claims.h"

namespace swizzle::bench {
namespace {

constexpr char kV100[] = "V100";

struct Options {
  SeedRun run = {.system = "Sputnik", .paper = "Gale et al., SC20"};
  std::string dlmc;
  int sample = 24;
  int64_t most_hidden = 2048;
};

nlohmann::ordered_json FactsOf(const SpmmCase& c) {
  nlohmann::ordered_json facts = {{"name", c.name},
                                  {"m", c.rows},
                                  {"k", c.cols},
                                  {"n", c.columns},
                                  {"nnz", c.nonzeros},
                                  {"cublas_us", c.cublas},
                                  {"cusparse_us", c.cusparse},
                                  {"ours_us", c.ours},
                                  {"plan", c.plan}};
  facts["sparsity"] = 1 - static_cast<double>(c.nonzeros) / static_cast<double>(c.rows * c.cols);
  if (c.sputnik > 0) facts["sputnik_us"] = c.sputnik;
  if (c.unbalanced > 0) {
    facts["no_swizzle_us"] = c.unbalanced;
    facts["scalar_us"] = c.scalar;
    facts["no_prescale_us"] = c.unscaled;
    facts["no_residue_unroll_us"] = c.rolled;
  }
  return facts;
}

void RunCollection(const Options& options, SpmmRace& race, const std::string& workload, SeedReport& report) {
  for (const DlmcCase& found : FindDlmcCases(options.dlmc, {"0.8", "0.9"}, options.sample)) {
    const auto matrix = ReadDlmc(found.path);
    Must(matrix.ok(), "read " + found.path);
    if (matrix->rows > 8192) continue;  // the embedding
    report.AddCase(workload, FactsOf(race.Run(found.name, *matrix, found.columns.back())));
  }
}

// Row lengths that vary more and more.
void RunUneven(SpmmRace& race, SeedReport& report) {
  for (const double variation : {0.0, 0.5, 1.0}) {
    nlohmann::ordered_json facts =
        FactsOf(race.Run(Concat("CoV ", variation), DrawMatrix(8192, 2048, .75, variation), 128));
    facts["variation"] = variation;
    report.AddCase("uneven rows", facts);
  }
}

// Gates of recurrent layers: M is one, three or four times the hidden size, K the hidden size (our reading).
void RunRecurrent(const Options& options, SpmmRace& race, SeedReport& report) {
  for (const int64_t hidden : {1024, 2048, 4096, 8192}) {
    if (hidden > options.most_hidden) continue;
    for (const int64_t gates : {1, 3, 4}) {
      for (const double sparsity : {.7, .8, .9}) {
        const CsrMatrix matrix = DrawMatrix(gates * hidden, hidden, sparsity, 0);
        for (const int64_t columns : {32, 128}) {
          report.AddCase("recurrent", FactsOf(race.Run(Concat(gates, " gates, ", hidden), matrix, columns)));
        }
      }
    }
  }
}

void AddClaims(SeedReport& report) {
  const auto ratio = [&](const char* workload, const char* over, const char* of) {
    return report.Ratio(workload, over, of);
  };
  const auto add = [&](const char* what, double published, double ours, const char* of) {
    report.AddClaim({.what = what, .published = published, .hardware = kV100, .ours = ours, .of = of});
  };
  constexpr char kTheirs[] = "their algorithm, rewritten";
  add("SpMM FP32 over cuSPARSE, DLMC", 3.58, ratio("dlmc f32", "cusparse_us", "sputnik_us"), kTheirs);
  add("SpMM FP32 over cuSPARSE, DLMC", 3.58, ratio("dlmc f32", "cusparse_us", "ours_us"), "");
  add("SpMM FP32 over dense FP32, DLMC", 0, ratio("dlmc f32", "cublas_us", "ours_us"), "");
  add("SpMM FP16 over cuSPARSE, DLMC", 5.97, ratio("dlmc f16", "cusparse_us", "ours_us"), "");
  add("SpMM FP16 over dense FP16, DLMC", 0, ratio("dlmc f16", "cublas_us", "ours_us"), "");
  add("SpMM FP32 over cuSPARSE, recurrent layers", 3.47, ratio("recurrent", "cusparse_us", "sputnik_us"), kTheirs);
  add("SpMM FP32 over cuSPARSE, recurrent layers", 3.47, ratio("recurrent", "cusparse_us", "ours_us"), "");
  const auto uneven = [](const nlohmann::ordered_json& c) { return c.value("variation", 0.0) == 1.0; };
  add("row swizzle over none, rows of CoV 1 (96.5 % to 47.5 % at the worst)", 0.965 / 0.475,
      report.Ratio("uneven rows", "no_swizzle_us", "sputnik_us", uneven), kTheirs);
  add("row swizzle over none, DLMC (88.9 to 96.1 % without, ResNet 78.5)", 1 / 0.889,
      ratio("dlmc f32", "no_swizzle_us", "sputnik_us"), kTheirs);
  add("vector loads over scalar ones, DLMC (64.8 to 100 % without)", 1 / 0.809,
      ratio("dlmc f32", "scalar_us", "sputnik_us"), kTheirs);
  add("residue unrolled over not, DLMC (87.8 to 94.1 % without)", 1 / 0.92,
      ratio("dlmc f32", "no_residue_unroll_us", "sputnik_us"), kTheirs);
}

int Main(const Options& options) {
  SeedReport report(options.run);
  SpmmRace full({.rounds = options.run.kept.rounds, .launches = options.run.kept.launches, .ablation = true});
  SpmmRace halves({.dtype = "f16", .rounds = options.run.kept.rounds, .launches = options.run.kept.launches});
  if (!options.dlmc.empty()) {
    RunCollection(options, full, "dlmc f32", report);
    RunCollection(options, halves, "dlmc f16", report);
  }
  RunUneven(full, report);
  RunRecurrent(options, full, report);
  AddClaims(report);
  for (int i = 0; i < full.wrong() + halves.wrong(); ++i) report.MarkWrong("see above");
  return report.Finish();
}

}  // namespace
}  // namespace swizzle::bench

int main(int argc, char** argv) {
  swizzle::bench::Options options;
  CLI::App app("Sputnik's products on this GPU, beside what its paper says");
  app.add_option("--dlmc", options.dlmc, "folder with .smtx files");
  app.add_option("--sample", options.sample, "take this many matrices, evenly; 0: all");
  app.add_option("--most-hidden", options.most_hidden, "leaves larger recurrent layers out");
  swizzle::bench::AddRunOptions(app, options.run.kept);
  CLI11_PARSE(app, argc, argv);
  return swizzle::bench::Main(options);
}
