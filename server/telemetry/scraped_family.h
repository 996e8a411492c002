// Families of the table as they stand at one scrape: for what is asked then, and has no children in the registry.
#ifndef SWIZZLE_SERVER_TELEMETRY_SCRAPED_FAMILY_H_
#define SWIZZLE_SERVER_TELEMETRY_SCRAPED_FAMILY_H_

#include <prometheus/metric_family.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "server/telemetry/metric_registry.h"

namespace swizzle::scrape {

// The family without samples. Thread-compatible, as all of these.
template <FamilyName kName>
prometheus::MetricFamily Empty() {
  constexpr const MetricFamily& kRow = kFamily<kName>;
  static_assert(kRow.type != MetricType::kHistogram);
  const auto type = kRow.type == MetricType::kCounter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
  return {.name = std::string(kRow.name), .help = std::string(kRow.help), .type = type, .metric = {}};
}

// Adds a sample with these values of the family's labels.
template <FamilyName kName, typename... Values>
void Add(prometheus::MetricFamily& family, double sample, const Values&... values) {
  prometheus::ClientMetric metric;
  for (const auto& [name, value] : LabelsOf<kName>(values...)) metric.label.push_back({name, value});
  metric.counter.value = sample;  // the family's type says which of the two is read
  metric.gauge.value = sample;
  family.metric.push_back(std::move(metric));
}

template <FamilyName kName>
prometheus::MetricFamily Single(double sample) {
  prometheus::MetricFamily family = Empty<kName>();
  Add<kName>(family, sample);
  return family;
}

// A sample for each value of the family's label, by the enum.
template <FamilyName kName, typename Label>
prometheus::MetricFamily ByLabel(const std::array<int64_t, kLabelValues<Label>.size()>& samples) {
  prometheus::MetricFamily family = Empty<kName>();
  for (size_t i = 0; i < samples.size(); ++i) {
    Add<kName>(family, static_cast<double>(samples[i]), static_cast<Label>(i));
  }
  return family;
}

}  // namespace swizzle::scrape

#endif  // SWIZZLE_SERVER_TELEMETRY_SCRAPED_FAMILY_H_
