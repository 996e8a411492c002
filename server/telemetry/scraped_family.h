// Families of the table whose samples are made at a scrape, rather than kept. Header only; thread-safe.
#ifndef SWIZZLE_SERVER_TELEMETRY_SCRAPED_FAMILY_H_
#define SWIZZLE_SERVER_TELEMETRY_SCRAPED_FAMILY_H_

#include <prometheus/metric_family.h>

#include <string>
#include <utility>

#include "server/telemetry/metric_registry.h"

namespace swizzle {

// A family of the table, without children.
template <FamilyName kName>
prometheus::MetricFamily EmptyFamily() {
  constexpr const MetricFamily& kRow = kFamily<kName>;
  static_assert(kRow.type != MetricType::kHistogram);
  const auto type = kRow.type == MetricType::kCounter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
  return {.name = std::string(kRow.name), .help = std::string(kRow.help), .type = type, .metric = {}};
}

template <FamilyName kName, typename... Values>
void AddSample(prometheus::MetricFamily& family, double sample, const Values&... values) {
  prometheus::ClientMetric metric;
  for (const auto& [name, value] : LabelsOf<kName>(values...)) metric.label.push_back({name, value});
  metric.counter.value = sample;  // the family's type says which of the two is read
  metric.gauge.value = sample;
  family.metric.push_back(std::move(metric));
}

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_SCRAPED_FAMILY_H_
