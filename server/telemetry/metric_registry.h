// The families of the table, registered with prometheus-cpp, and their children by the family's name:
//
//   registry.Child<"swizzle_requests_total">(model, version, StatusCode::kOk).Increment();
//
// A name that the table doesn't have, a type that it isn't, and a wrong number of labels don't compile. Thread-safe;
// children live as long as the registry unless they are removed.
#ifndef SWIZZLE_SERVER_TELEMETRY_METRIC_REGISTRY_H_
#define SWIZZLE_SERVER_TELEMETRY_METRIC_REGISTRY_H_

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "server/telemetry/metric_families.h"

namespace swizzle {

// The text of a label's value: an enum of labels.h, or whatever the label takes.
template <typename Value>
std::string LabelText(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return std::string(LabelValue(value));
  } else if constexpr (std::is_integral_v<Value>) {
    return std::to_string(value);
  } else {
    return std::string(value);
  }
}

template <FamilyName kName, typename... Values>
prometheus::Labels LabelsOf(const Values&... values) {
  constexpr const MetricFamily& kRow = kFamily<kName>;
  static_assert(sizeof...(Values) == kRow.label_count(), "a value for each label of the family, in the table's order");
  prometheus::Labels labels;
  [[maybe_unused]] const MetricLabel* label = kRow.label_slots.data();
  (labels.emplace((label++)->name, LabelText(values)), ...);
  return labels;
}

template <MetricType kType>
using PrometheusType =
    std::conditional_t<kType == MetricType::kCounter, prometheus::Counter,
                       std::conditional_t<kType == MetricType::kGauge, prometheus::Gauge, prometheus::Histogram>>;

// Counter, Gauge or Histogram, as the table says.
template <FamilyName kName>
using MetricOf = PrometheusType<kFamily<kName>.type>;

class MetricRegistry {
 public:
  MetricRegistry();

  // The child with these values of the family's labels; the same one each time.
  template <FamilyName kName, typename... Values>
  MetricOf<kName>& Child(const Values&... values) {
    constexpr std::span<const double> kBuckets = kFamily<kName>.buckets;
    if constexpr (kBuckets.empty()) {
      return Family<kName>().Add(LabelsOf<kName>(values...));
    } else {
      return Family<kName>().Add(LabelsOf<kName>(values...),
                                 prometheus::Histogram::BucketBoundaries(kBuckets.begin(), kBuckets.end()));
    }
  }

  // Likewise, of a histogram, with these edges in place of the table's. A child that is there keeps its own.
  template <FamilyName kName, typename... Values>
  prometheus::Histogram& ChildOf(std::span<const double> edges, const Values&... values) {
    return Family<kName>().Add(LabelsOf<kName>(values...),
                               prometheus::Histogram::BucketBoundaries(edges.begin(), edges.end()));
  }

  template <FamilyName kName>
  prometheus::Family<MetricOf<kName>>& Family() {
    return *std::get<prometheus::Family<MetricOf<kName>>*>(families_[FamilyIndex<kName>()]);
  }

  // Families that have children.
  std::vector<prometheus::MetricFamily> Collect() const { return registry_.Collect(); }

 private:
  using AnyFamily = std::variant<prometheus::Family<prometheus::Counter>*, prometheus::Family<prometheus::Gauge>*,
                                 prometheus::Family<prometheus::Histogram>*>;

  prometheus::Registry registry_;
  std::array<AnyFamily, kMetricFamilies.size()> families_;  // by the table's order
};

// Children that are removed from their families at its end: of what is there only for a while. No child is to be in two
// of these. Thread-compatible.
class ChildScope {
 public:
  explicit ChildScope(MetricRegistry& registry) : registry_(registry) {}
  ~ChildScope() {
    for (const auto& remove : removals_) remove();
  }
  ChildScope(const ChildScope&) = delete;
  ChildScope& operator=(const ChildScope&) = delete;

  // As MetricRegistry's; once for each.
  template <FamilyName kName, typename... Values>
  MetricOf<kName>& Child(const Values&... values) {
    return Removed<kName>(registry_.Child<kName>(values...));
  }
  template <FamilyName kName, typename... Values>
  prometheus::Histogram& ChildOf(std::span<const double> edges, const Values&... values) {
    return Removed<kName>(registry_.ChildOf<kName>(edges, values...));
  }
  template <FamilyName kName, typename... Values>
  void Set(double value, const Values&... labels) {
    Child<kName>(labels...).Set(value);
  }

 private:
  template <FamilyName kName>
  MetricOf<kName>& Removed(MetricOf<kName>& child) {
    removals_.emplace_back([&family = registry_.Family<kName>(), &child] { family.Remove(&child); });
    return child;
  }

  MetricRegistry& registry_;
  std::vector<std::function<void()>> removals_;
};

// A child for each value of the family's last label, an enum.
template <FamilyName kName, typename Value>
class ChildPerValue {
 public:
  // `children`: a registry, or a scope.
  template <typename Children, typename... Others>
  explicit ChildPerValue(Children& children, const Others&... others) {
    for (size_t i = 0; i < children_.size(); ++i) {
      children_[i] = &children.template Child<kName>(others..., static_cast<Value>(i));
    }
  }
  // Histograms with these edges.
  template <typename Children, typename... Others>
  ChildPerValue(std::span<const double> edges, Children& children, const Others&... others) {
    for (size_t i = 0; i < children_.size(); ++i) {
      children_[i] = &children.template ChildOf<kName>(edges, others..., static_cast<Value>(i));
    }
  }
  MetricOf<kName>& operator[](Value value) const { return *children_[static_cast<size_t>(value)]; }

 private:
  std::array<MetricOf<kName>*, kLabelValues<Value>.size()> children_;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_METRIC_REGISTRY_H_
