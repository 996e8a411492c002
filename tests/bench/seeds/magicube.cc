// Products and attention of whole numbers (Magicube's workload), each beside what libraries take for the same:
//   SpMM       patterns of the Deep Learning Matrix Collection, each entry a vector of 8 rows, against cuSPARSE's best
//              CSR algorithm and cuBLAS in FP16, and cuBLASLt's best in INT8; then other widths, at N 256
//   SDDMM      the same patterns as places of a product of queries and keys, against cuSPARSE's and, of the whole
//              product, cuBLAS, both in FP16
//   attention  drawn patterns, 90 and 95 % sparse, against dense attention in FP16 in parts and fused, by our kernel
//              and, with --fused, by PyTorch's (tests/bench/cuda/dense_attention.py --magicube)
//   ablation   256x2304, drawn, in vectors, N 512, without each part of the kernel that gathers
//
//   seeds_magicube --dlmc=FOLDER [--sample=16] [--rounds=5] [--fused=FILE] [-o results.json]
//
// --only=products leaves attention out, --only=attention all else; a page takes both files (make_page.py).
//
// The collection has 80 and 90 %; other sparsities are drawn with the same lengths of rows beside each other. Ours is
// the fastest of the ways that the library has, as a planner measures them; every sum of some rows is checked.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <set>

#include "tests/bench/cuda/gather_forms.h"
#include "tests/bench/cuda/kept_run.h"
#include "tests/bench/cuda/whole_product.h"
#include "tests/bench/dlmc.h"
#include "tests/bench/seeds/claims.h"
#include "tests/bench/seeds/magicube_attention.h"

namespace swizzle::bench {
namespace {

using Facts = nlohmann::ordered_json;

constexpr int kVectorRows = 8;
constexpr int64_t kColumns[] = {128, 256, 512}, kDepths[] = {128, 256};
constexpr double kSparsities[] = {.5, .7, .8, .9, .95, .98};
constexpr int64_t kMostElements = int64_t{1} << 22;  // of a pattern: the embedding's is left out

struct Options {
  SeedRun run = {.system = "Magicube", .paper = "Li et al., SC22"};
  std::string dlmc, fused, only;
  int sample = 16;

  bool Has(const char* part) const { return only.empty() || only == part; }
};

struct Widths {
  int weights, columns;
  std::string Text() const { return Concat(weights, "-", columns); }
};
constexpr Widths kWidths[] = {{16, 16}, {16, 8}, {16, 4}, {12, 4}, {8, 4}, {4, 4}};
constexpr Widths kAblated[] = {{16, 8}, {8, 8}, {8, 4}, {4, 4}};

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
  Bench(const Options& options, SeedReport& report)
      : timer_(options.run.kept.launches, options.run.kept.rounds), report_(report) {
    Must(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, 0), "ask the device");
    Must(cusparseCreate(&cusparse_) == CUSPARSE_STATUS_SUCCESS, "start cuSPARSE");
    Must(cublasCreate(&cublas_) == CUBLAS_STATUS_SUCCESS, "start cuBLAS");
    Must(cublasSetStream(cublas_, timer_.queue()) == CUBLAS_STATUS_SUCCESS, "use cuBLAS");
    void* workspace = nullptr;
    constexpr size_t kWorkspace = size_t{64} << 20;
    Must(cudaMalloc(&workspace, kWorkspace), "allocate");
    cublasSetWorkspace(cublas_, workspace, kWorkspace);
  }

  void Multiply(const std::string& name, const CsrMatrix& pattern, double sparsity, int64_t columns) {
    Facts facts = {
        {"name", name}, {"sparsity", sparsity}, {"m", pattern.rows * kVectorRows}, {"k", pattern.cols}, {"n", columns}};
    {
      const CsrMatrix dilated = Dilated(pattern, random_);
      Product half(dilated, columns, DType::kFloat16);
      const DeviceCsr csr(dilated, DType::kFloat16);
      facts["cusparse_f16_us"] = TimeCusparse(cusparse_, half, csr, timer_).us;
      facts["cublas_f16_us"] = TimeCublas(cublas_, half, timer_).us;
    }
    WholeProduct product(pattern, columns, 8, 8);
    facts["cublas_s8_us"] = product.TimeDense(timer_);
    facts["operations"] = product.operations();
    AddWays(product, {8, 8}, name, facts, "ours");
    if (columns == 256) {
      for (const Widths& widths : kWidths) {
        WholeProduct wider(pattern, columns, widths.weights, widths.columns);
        AddWays(wider, widths, name, facts, widths.Text());
      }
    }
    report_.AddCase("SpMM", facts);
  }

  void Sample(const std::string& name, const CsrMatrix& pattern, double sparsity, int64_t depth) {
    Facts facts = {{"name", name}, {"sparsity", sparsity}};
    facts.update(SampledProducts(timer_, cublas_, cusparse_).Run(pattern, depth));
    if (facts.contains("wrong")) report_.MarkWrong("SDDMM " + facts.dump());
    report_.AddCase("SDDMM", facts);
  }

  // Microseconds of PyTorch's attention by sequences, heads and tokens.
  void Attend(const std::map<std::array<int64_t, 3>, std::map<std::string, double>>& fused) {
    AttentionRace race(timer_, cublas_);
    for (const auto& [heads, sequences] : {std::pair{4, 2}, {4, 8}, {8, 2}, {8, 8}}) {
      for (const int64_t tokens : {4096, 8192}) {
        for (const double sparsity : {.9, .95}) {
          Facts facts = race.Run({sequences, heads, tokens, sparsity});
          if (const auto found = fused.find({sequences, heads, tokens}); found != fused.end()) {
            for (const auto& [by, us] : found->second) facts[by + "_us"] = us;
          }
          if (facts.contains("wrong")) report_.MarkWrong("attention " + facts.dump());
          // Of four layers, without sums and norms.
          for (const char* by : {"ours", "16-8", "8-4", "4-4", "parts", "fused"}) {
            facts[Concat("encoder_", by, "_us")] =
                4 * (facts[Concat(by, "_us")].get<double>() + facts["layers_us"].get<double>());
          }
          report_.AddCase("attention", facts);
        }
      }
    }
  }

  void Ablate(const CsrMatrix& pattern, double sparsity, const Widths& widths) {
    WholeProduct product(pattern, 512, widths.weights, widths.columns);
    Facts facts = {{"widths", widths.Text()}, {"sparsity", sparsity}, {"operations", product.operations()}};
    for (size_t form = 0; form < std::size(kGatherForms); ++form) {
      const std::string name(kGatherForms[form].name);
      facts[name + "_us"] = Time(product, name, [&] { QueueSumsBy(form, product.operands(), timer_.queue()); });
    }
    report_.AddCase("ablation", facts);
  }

 private:
  // The fastest of all ways, as <what>_us, and its name.
  void AddWays(WholeProduct& product, const Widths& widths, const std::string& name, Facts& facts,
               const std::string& what) {
    double least = 1e30;
    Facts ways = Facts::object();
    for (const cuda::ByteWay way : cuda::kByteWays) {
      const bool resident = way == cuda::ByteWay::kResident128 || way == cuda::ByteWay::kResident64;
      if (!cuda::HasSums(widths.weights, widths.columns, way)) continue;
      if (resident && !cuda::FitsResident(way, product.cols())) continue;
      const std::string text(cuda::ByteWayName(way));
      const double us = Time(product, Concat(name, " ", widths.Text(), " ", text),
                             [&] { cuda::QueueSums(product.operands(), way, multiprocessors_, timer_.queue()); });
      ways[text] = us;
      if (us < least) least = us, facts[what + "_way"] = text;
    }
    facts[what + "_us"] = least;
    facts[what + "_ways_us"] = ways;
  }

  double Time(WholeProduct& product, const std::string& what, const std::function<void()>& work) {
    if (!product.IsRight(work, timer_.queue())) {
      report_.MarkWrong(Concat(what, " ", product.rows(), "x", product.cols(), "x", product.columns()));
    }
    return timer_.Time(work);
  }

  Timer timer_;
  SeedReport& report_;
  std::mt19937 random_{3};
  int multiprocessors_ = 0;
  cusparseHandle_t cusparse_;
  cublasHandle_t cublas_;
};

std::string ZerosOf(double sparsity) { return Concat(", ", std::lround(100 * sparsity), " % zeros"); }

// What the paper says, on an A100, as we add up its artefact's logs: vectors of 8 rows, N or K 256, over cuBLAS in
// FP16.
void AddProductClaims(SeedReport& report) {
  struct Published {
    double sparsity, of_16_8, of_8_8, of_4_4, sampled_8_8, sampled_4_4;
  };
  constexpr Published kPublished[] = {{.5, .76, .80, 1.08, .75, 1.03},
                                      {.7, 1.04, 1.05, 1.29, .97, 1.26},
                                      {.8, 1.20, 1.17, 1.41, 1.16, 1.44},
                                      {.9, 1.54, 1.48, 1.59, 1.44, 1.67},
                                      {.98, 2.06, 1.95, 1.84, 1.84, 1.89}};
  const auto add = [&](const std::string& what, double published, double ours) {
    report.AddClaim({.what = what, .published = published, .hardware = "A100", .ours = ours});
  };
  for (const Published& published : kPublished) {
    const std::string zeros = " over dense FP16" + ZerosOf(published.sparsity);
    const auto of = [&](const char* workload, const char* extent, const char* time) {
      return report.Ratio(workload, "cublas_f16_us", time,
                          [&](const Facts& c) { return c["sparsity"] == published.sparsity && c[extent] == 256; });
    };
    add("SpMM 8-8" + zeros, published.of_8_8, of("SpMM", "n", "ours_us"));
    add("SpMM 16-8" + zeros, published.of_16_8, of("SpMM", "n", "16-8_us"));
    add("SpMM 4-4" + zeros, published.of_4_4, of("SpMM", "n", "4-4_us"));
    add("SDDMM 8-8" + zeros, published.sampled_8_8, of("SDDMM", "k", "8-8_us"));
    add("SDDMM 4-4" + zeros, published.sampled_4_4, of("SDDMM", "k", "4-4_us"));
  }
  add("dense INT8 over dense FP16", .50,
      report.Ratio("SpMM", "cublas_f16_us", "cublas_s8_us", [](const Facts& c) { return c["n"] == 256; }));
  add("SpMM 8-8 over cuSPARSE FP16, all", 0, report.Ratio("SpMM", "cusparse_f16_us", "ours_us"));
  add("SpMM 8-8 over dense INT8, all", 0, report.Ratio("SpMM", "cublas_s8_us", "ours_us"));
  for (const char* widths : {"16-16", "8-8", "4-4"}) {
    add(Concat("SDDMM ", widths, " over cuSPARSE FP16, all"), 0,
        report.Ratio("SDDMM", "cusparse_f16_us", Concat(widths, "_us")));
  }
}

// Of the parts that the paper adds one after the other.
void AddAblationClaims(SeedReport& report) {
  struct Published {
    const char* widths;
    double sparsity, basic, banks_apart, prefetch, shuffle;
  };
  constexpr Published kPublished[] = {{"16-8", .7, 15.0, 17.5, 21.5, 0},   {"16-8", .9, 11.6, 13.0, 15.8, 0},
                                      {"8-8", .7, 15.3, 17.8, 23.0, 0},    {"8-8", .9, 11.8, 13.3, 16.5, 0},
                                      {"8-4", .7, 18.5, 18.9, 24.4, 34.8}, {"8-4", .9, 13.1, 13.3, 16.7, 20.5},
                                      {"4-4", .7, 19.1, 19.5, 25.4, 36.9}, {"4-4", .9, 13.4, 13.7, 17.2, 21.1}};
  for (const Published& published_for : kPublished) {
    const auto add = [&](const char* what, double published, const char* without, const char* with,
                         const char* of = "") {
      const double ours = report.Ratio("ablation", without, with, [&](const Facts& c) {
        return c["sparsity"] == published_for.sparsity && c["widths"] == published_for.widths;
      });
      report.AddClaim({.what = Concat(what, " ", published_for.widths, " over none", ZerosOf(published_for.sparsity)),
                       .published = published,
                       .hardware = "A100",
                       .ours = ours,
                       .of = of});
    };
    const Published& of = published_for;
    add("prefetch", of.prefetch / of.banks_apart, "no_prefetch_us", "one_ahead_us");
    add("conflict-free layout", of.banks_apart / of.basic, "no_banks_apart_us", "full_us");
    if (of.shuffle > 0) {
      add("index order", of.shuffle / of.prefetch, "no_index_order_us", "full_us", "ours saves loads, theirs shifts");
    }
  }
}

void AddAttentionClaims(SeedReport& report) {
  struct Published {
    int heads, sequences;
    double dense, of_16_8, of_8_8, of_8_4, of_4_4;  // milliseconds
  };
  for (const Published& published :
       {Published{4, 2, 5.95, 3.75, 3.73, 3.37, 3.34}, Published{8, 8, 50.5, 26.5, 26.2, 24.3, 23.7}}) {
    const auto wanted = [&](const Facts& c) {
      return c["heads"] == published.heads && c["sequences"] == published.sequences && c["tokens"] == 4096 &&
             c["sparsity"] == .9;
    };
    const std::string of =
        Concat(ZerosOf(.9), " (", published.heads, " heads, ", published.sequences, " x 4,096 tokens)");
    for (const auto& [widths, by, milliseconds] :
         {std::tuple{"16-8", "16-8", published.of_16_8}, std::tuple{"8-8", "ours", published.of_8_8},
          std::tuple{"8-4", "8-4", published.of_8_4}, std::tuple{"4-4", "4-4", published.of_4_4}}) {
      report.AddClaim({.what = Concat("encoder with attention ", widths, " over one with dense attention in parts", of),
                       .published = published.dense / milliseconds,
                       .hardware = "A100",
                       .ours = report.Ratio("attention", "encoder_parts_us", Concat("encoder_", by, "_us"), wanted)});
    }
    report.AddClaim({.what = "encoder with attention 8-8 over one with dense fused attention" + of,
                     .ours = report.Ratio("attention", "encoder_fused_us", "encoder_ours_us", wanted)});
  }
  for (const double sparsity : {.9, .95}) {
    const auto wanted = [&](const Facts& c) { return c["sparsity"] == sparsity; };
    for (const auto& [what, over] : {std::pair{"dense attention in parts", "parts_us"},
                                     {"dense fused attention, ours", "fused_us"},
                                     {"dense fused attention, cuDNN", "cudnn_us"},
                                     {"dense fused attention, FlashAttention 2", "flash_us"}}) {
      report.AddClaim({.what = Concat("attention 8-8 over ", what, ZerosOf(sparsity)),
                       .ours = report.Ratio("attention", over, "ours_us", wanted)});
    }
  }
}

void RunPatterns(const Options& options, Bench& bench) {
  std::mt19937 random(7);
  for (const DlmcCase& found : FindDlmcCases(options.dlmc, {"0.9"}, options.sample)) {
    const auto read = ReadDlmc(found.path);
    Must(read.ok(), "read " + found.path);
    if (read->rows * read->cols > kMostElements) continue;
    for (const double sparsity : kSparsities) {
      const CsrMatrix pattern = sparsity == .9 ? *read : Redrawn(*read, sparsity, random);
      for (const int64_t columns : kColumns) bench.Multiply(found.name, pattern, sparsity, columns);
      for (const int64_t depth : kDepths) bench.Sample(found.name, pattern, sparsity, depth);
    }
  }
}

// 256x2304, rows of one length.
void RunAblation(Bench& bench) {
  CsrMatrix even = {256, 2304, {0}, {}, {}};
  for (uint32_t row = 0; row < 256; ++row) {
    for (uint32_t col = 0; col < 230; ++col) even.col_indices.push_back(col * 10);
    even.row_offsets.push_back(static_cast<uint32_t>(even.col_indices.size()));
  }
  even.values.assign(even.col_indices.size(), 1.0f);
  std::mt19937 random(9);
  for (const double sparsity : {.7, .9}) {
    const CsrMatrix pattern = Redrawn(even, sparsity, random);
    for (const Widths& widths : kAblated) bench.Ablate(pattern, sparsity, widths);
  }
}

std::map<std::array<int64_t, 3>, std::map<std::string, double>> ReadFused(const std::string& path) {
  std::map<std::array<int64_t, 3>, std::map<std::string, double>> times;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const auto row = nlohmann::json::parse(line, nullptr, false);
    if (!row.is_object()) continue;
    times[{row["sequences"], row["heads"], row["tokens"]}][row["backend"]] = row["us"];
  }
  return times;
}

int Main(const Options& options) {
  SeedReport report(options.run);
  Bench bench(options, report);
  if (options.Has("attention")) bench.Attend(ReadFused(options.fused));
  if (options.Has("products")) {
    Must(!options.dlmc.empty(), "take products without --dlmc");
    RunPatterns(options, bench);
    RunAblation(bench);
  }
  AddProductClaims(report);
  AddAblationClaims(report);
  AddAttentionClaims(report);
  return report.Finish();
}

}  // namespace
}  // namespace swizzle::bench

int main(int argc, char** argv) {
  swizzle::bench::Options options;
  CLI::App app("Products and attention of whole numbers on a GPU, beside what Magicube's paper says");
  app.add_option("--dlmc", options.dlmc, "folder with .smtx files, for products");
  app.add_option("--sample", options.sample, "take this many patterns, evenly; 0: all");
  app.add_option("--only", options.only, "a part of the workload")->check(CLI::IsMember({"products", "attention"}));
  app.add_option("--fused", options.fused, "what dense_attention.py --magicube printed");
  swizzle::bench::AddRunOptions(app, options.run.kept);
  CLI11_PARSE(app, argc, argv);
  return swizzle::bench::Main(options);
}
