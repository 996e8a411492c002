// What papers say of their kernels, beside what the same comparison gives here. Each program of this folder makes one
// system's workloads anew, adds a claim for each published figure that it can repeat, prints them, and writes them with
// its cases to a JSON file, of which make_page.py makes the page. Single-threaded.
#ifndef SWIZZLE_TESTS_BENCH_SEEDS_CLAIMS_H_
#define SWIZZLE_TESTS_BENCH_SEEDS_CLAIMS_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/bench/cuda/kept_run.h"

namespace swizzle::bench {

// Figures are ratios: how many times as fast, unless the text says otherwise.
struct Claim {
  std::string what = {};      // "SpMM FP32 over cuSPARSE, DLMC, geometric mean"
  double published = 0;       // 0: nothing was, it is our own question
  std::string hardware = {};  // theirs
  bool simulated = false;
  double ours = 0;
  std::string of = {};  // whose figure `ours` is, where it is not this server's kernel
};

// Of gains: "reproduced" where nine tenths of the ratio and half of what it gains are there, "weaker" where less,
// "refuted" where none. Of losses, which are below 1: "better here" where the ratio is half as large again,
// "worse here" below two thirds of it, else "reproduced". "new": nothing was published.
std::string Verdict(const Claim& claim);
// Of those that were measured; others, of cases that were left out, have 0.
void PrintClaims(const std::string& system, const std::vector<Claim>& claims);
nlohmann::ordered_json ClaimsJson(const std::vector<Claim>& claims);

struct SeedRun {
  std::string system = {}, paper = {};  // "Sputnik", "Gale et al., SC20"
  KeptRun kept = {};
};

class SeedReport {
 public:
  explicit SeedReport(const SeedRun& run) : run_(run) {}
  // Of one workload: sizes and microseconds by name. Prints it.
  void AddCase(const std::string& workload, nlohmann::ordered_json facts);
  void AddClaim(const Claim& claim) { claims_.push_back(claim); }
  // The geometric mean over a workload's cases that are `wanted` of one time over another; 0 where none has both.
  double Ratio(const std::string& workload, const std::string& over, const std::string& of,
               const std::function<bool(const nlohmann::ordered_json&)>& wanted = nullptr) const;
  void MarkWrong(const std::string& what);
  // Prints the claims, writes the file; returns the program's exit code.
  int Finish() const;

 private:
  const SeedRun& run_;
  std::vector<nlohmann::ordered_json> cases_;
  std::vector<Claim> claims_;
  int wrong_ = 0;
};

}  // namespace swizzle::bench

#endif  // SWIZZLE_TESTS_BENCH_SEEDS_CLAIMS_H_
