#include "server/config/config_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "model_loader/files/printable_name.h"
#include "server/telemetry/metric_families.h"

namespace swizzle {
namespace {

constexpr size_t kMostEdges = 64;

// Triton's only histogram, in milliseconds, stands for ours of the same times.
constexpr std::string_view kTritonFamily = "nv_inference_first_response_histogram_ms";
constexpr std::string_view kItsFamily = "swizzle_request_duration_seconds";
constexpr double kSecondsOfItsUnit = 1e-3;

bool IsHistogram(const MetricFamily& family) { return family.type == MetricType::kHistogram; }

Status CheckFamily(std::string_view name) {
  const auto found = std::ranges::find(kMetricFamilies, name, &MetricFamily::name);
  if (found != kMetricFamilies.end() && IsHistogram(*found)) return absl::OkStatus();
  std::string known = Concat("'", kTritonFamily, "'");
  for (const MetricFamily& family : kMetricFamilies) {
    if (IsHistogram(family)) known += Concat(", '", family.name, "'");
  }
  return InvalidArgument("'model_metrics.metric_control.metric_identifier.family' is ", QuotedName(name),
                         "; histograms are ", known);
}

Status CheckEdges(const std::vector<double>& edges) {
  const bool finite = std::ranges::all_of(edges, [](double edge) { return std::isfinite(edge); });
  const bool ascend = std::ranges::adjacent_find(edges, std::ranges::greater_equal()) == edges.end();
  if (finite && ascend && !edges.empty() && edges.size() <= kMostEdges) return absl::OkStatus();
  return InvalidArgument("'model_metrics.metric_control.histogram_options.buckets' has ", edges.size(),
                         " edges; it must be from 1 to ", kMostEdges, " numbers that ascend");
}

}  // namespace

Status ApplyMetrics(const inference::ModelConfig& config, ModelSpec& spec) {
  for (const auto& control : config.model_metrics().metric_control()) {
    const std::string& family = control.metric_identifier().family();
    const auto& buckets = control.histogram_options().buckets();
    std::vector<double> edges(buckets.begin(), buckets.end());
    const bool is_tritons = family == kTritonFamily;
    if (is_tritons) {
      for (double& edge : edges) edge *= kSecondsOfItsUnit;
    } else {
      SWIZZLE_RETURN_IF_ERROR(CheckFamily(family));
    }
    SWIZZLE_RETURN_IF_ERROR(CheckEdges(edges));
    spec.histogram_buckets[std::string(is_tritons ? kItsFamily : family)] = std::move(edges);
  }
  return absl::OkStatus();
}

}  // namespace swizzle
