#include "server/telemetry/metric_registry.h"

namespace swizzle {
namespace {

template <typename Builder>
auto* Register(Builder builder, prometheus::Registry& registry, const MetricFamily& family) {
  return &builder.Name(std::string(family.name)).Help(std::string(family.help)).Register(registry);
}

}  // namespace

MetricRegistry::MetricRegistry() {
  for (size_t i = 0; i < kMetricFamilies.size(); ++i) {
    const MetricFamily& family = kMetricFamilies[i];
    switch (family.type) {
      case MetricType::kCounter:
        families_[i] = Register(prometheus::BuildCounter(), registry_, family);
        break;
      case MetricType::kGauge:
        families_[i] = Register(prometheus::BuildGauge(), registry_, family);
        break;
      case MetricType::kHistogram:
        families_[i] = Register(prometheus::BuildHistogram(), registry_, family);
        break;
    }
  }
}

}  // namespace swizzle
