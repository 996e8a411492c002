#include "tests/bench/seeds/claims.h"

#include <cmath>
#include <cstdio>
#include <fstream>

#include "kernels/base/status.h"

namespace swizzle::bench {

std::string Verdict(const Claim& claim) {
  if (claim.published == 0) return "new";
  if (claim.published < 1) {
    if (claim.ours > 1.5 * claim.published) return "better here";
    return 1.5 * claim.ours < claim.published ? "worse here" : "reproduced";
  }
  if (claim.ours >= 0.9 * claim.published && claim.ours - 1 >= (claim.published - 1) / 2) return "reproduced";
  return claim.ours >= 1 ? "weaker" : "refuted";
}

void PrintClaims(const std::string& system, const std::vector<Claim>& claims) {
  std::printf("%s\n%-72s %10s %-22s %8s\n", system.c_str(), "claim", "published", "on", "here");
  for (const Claim& claim : claims) {
    if (claim.ours == 0) continue;
    std::printf("%-72s %10.3g %-22s %8.3g  %s%s\n", claim.what.c_str(), claim.published,
                (claim.hardware + (claim.simulated ? ", simulated" : "")).c_str(), claim.ours, Verdict(claim).c_str(),
                claim.of.empty() ? "" : (" (" + claim.of + ")").c_str());
  }
}

nlohmann::ordered_json ClaimsJson(const std::vector<Claim>& claims) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Claim& claim : claims) {
    if (claim.ours == 0) continue;
    list.push_back({{"what", claim.what},
                    {"published", claim.published},
                    {"hardware", claim.hardware},
                    {"simulated", claim.simulated},
                    {"ours", claim.ours},
                    {"of", claim.of},
                    {"verdict", Verdict(claim)}});
  }
  return list;
}

void SeedReport::AddCase(const std::string& workload, nlohmann::ordered_json facts) {
  nlohmann::ordered_json c = {{"workload", workload}};
  c.update(facts);
  std::printf("%s\n", c.dump().c_str());
  std::fflush(stdout);
  cases_.push_back(std::move(c));
}

double SeedReport::Ratio(const std::string& workload, const std::string& over, const std::string& of,
                         const std::function<bool(const nlohmann::ordered_json&)>& wanted) const {
  double sum = 0;
  int count = 0;
  for (const auto& c : cases_) {
    if (c["workload"] != workload || (wanted && !wanted(c))) continue;
    const double above = c.value(over, 0.0), below = c.value(of, 0.0);
    if (above <= 0 || below <= 0) continue;
    sum += std::log(above / below);
    ++count;
  }
  return count == 0 ? 0 : std::exp(sum / count);
}

void SeedReport::MarkWrong(const std::string& what) {
  std::printf("WRONG: %s\n", what.c_str());
  ++wrong_;
}

int SeedReport::Finish() const {
  PrintClaims(Concat(run_.system, " (", run_.paper, ")"), claims_);
  if (!run_.kept.output.empty()) {
    std::ofstream out(run_.kept.output);
    out << "{\n\"system\": " << nlohmann::json(run_.system) << ", \"paper\": " << nlohmann::json(run_.paper) << ", "
        << FactsOf(run_.kept) << ",\n\"method\": \"" << MethodOf(run_.kept)
        << "\",\n\"claims\": " << ClaimsJson(claims_).dump(1) << ",\n\"cases\": [\n";
    const char* comma = "";
    for (const auto& c : cases_) {
      out << comma << c.dump();
      comma = ",\n";
    }
    out << "\n]}\n";
  }
  if (wrong_ > 0) std::printf("%d results were WRONG\n", wrong_);
  return wrong_ > 0 ? 1 : 0;
}

}  // namespace swizzle::bench
