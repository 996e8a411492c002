#include "model_loader/pack/option_checks.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "kernels/base/precision.h"
#include "kernels/base/status.h"
#include "kernels/cpu/runtime/available_cpus.h"
#include "kernels/format/format_row.h"
#include "model_loader/pruning/pruner.h"

namespace swizzle::pack {
namespace {

constexpr int kMaxThreads = 1024;

}  // namespace

std::string CheckPackedEnding(const std::string& file) {
  return std::filesystem::path(file).extension() == ".swz" ? "" : "'" + file + "' does not end in .swz";
}

std::string CheckModelEnding(const std::string& file) {
  const auto ending = std::filesystem::path(file).extension();
  return ending == ".swz" || ending == ".onnx" ? "" : "'" + file + "' ends in neither .onnx nor .swz";
}

std::string CheckPageEnding(const std::string& file) {
  return std::filesystem::path(file).extension() == ".html" ? "" : "'" + file + "' does not end in .html";
}

std::string IsNotNegative(const std::string& number) {
  double value = 0;
  if (!absl::SimpleAtod(number, &value)) return "";
  return !std::isfinite(value) ? number + " is not finite" : value >= 0 ? "" : number + " is less than 0";
}

std::string AtMostProcessors(std::string& threads) {
  int count = 0;
  if (!absl::SimpleAtoi(threads, &count) || count < 0 || count > kMaxThreads) {
    return threads + " is no number from 0 to " + std::to_string(kMaxThreads);
  }
  threads = std::to_string(std::min(count, AffinityCpus()));
  return "";
}

std::string PrecisionNames() {
  std::string names;
  for (const Precision precision : kPrecisions) names += Concat(names.empty() ? "" : ", ", PrecisionName(precision));
  return names;
}

std::string CheckPrecision(const std::string& text) {
  return PrecisionFromName(text) ? "" : "'" + text + "' is none of " + PrecisionNames();
}

std::string CheckGroupLimit(const std::string& text) {
  if (GroupLimitFromText(text)) return "";
  return "'" + text + "' is not N:M with 1 <= N < M <= " + std::to_string(GroupLimit::kMostM);
}

std::string CheckPart(const std::string& text) {
  double part = 0;
  if (absl::SimpleAtod(text, &part) && part >= 0.0 && part <= 1.0) return "";
  return "'" + text + "' is not from 0 to 1; of 90 % it is 0.9";
}

FormatChoices FormatsOfWeights() {
  FormatChoices choices;
  for (const FormatRow& row : FormatRows()) {
    if (!row.traits.sparse || !row.traits.has_values) continue;
    choices.names.emplace_back(row.traits.name);
    choices.help += Concat(choices.help.empty() ? "" : ", ", row.traits.name, row.traits.suits.empty() ? "" : " ",
                           row.traits.suits);
  }
  choices.names.emplace_back("auto");
  return choices;
}

}  // namespace swizzle::pack
