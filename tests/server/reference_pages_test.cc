// The reference pages METRICS.md, CONFIG.md and FLAGS.md are what the code's tables say. With SWIZZLE_REWRITE_PAGES set
// in the environment, writes them instead:
//
//   SWIZZLE_REWRITE_PAGES=1 build/dev/bin/server_test --gtest_filter='ReferencePages.*'
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "server/config/config_fields.h"
#include "server/config/config_parameters.h"
#include "server/options.h"
#include "server/telemetry/metric_families.h"
#include "tests/support/reference_page.h"

namespace swizzle {
namespace {

std::string_view TypeName(MetricType type) {
  if (type == MetricType::kCounter) return "counter";
  return type == MetricType::kGauge ? "gauge" : "histogram";
}

std::string LabelsText(const MetricFamily& family) {
  std::string text;
  for (const MetricLabel& label : family.labels()) text += Concat(text.empty() ? "`" : ", `", label.name, "`");
  return text;
}

// The values of labels that have a fixed set of them.
std::string ValuesText() {
  std::string text;
  for (const MetricFamily& family : kMetricFamilies) {
    for (const MetricLabel& label : family.labels()) {
      if (label.values.empty()) continue;
      text += Concat("| `", family.name, "` | `", label.name, "` |");
      for (const std::string_view value : label.values) text += Concat(" `", value, "`");
      text += " |\n";
    }
  }
  return text;
}

std::string BucketsText() {
  std::string text;
  for (const MetricFamily& family : kMetricFamilies) {
    if (family.buckets.empty()) continue;
    std::ostringstream edges;
    for (const double edge : family.buckets) edges << " " << (edge < 1 ? edge : static_cast<int64_t>(edge));
    text += Concat("| `", family.name, "` |", edges.str(), " |\n");
  }
  return text;
}

TEST(ReferencePages, Metrics) {
  std::string text =
      "# Metrics\n\n"
      "`GET /metrics` on the metrics port; `/livez`, `/readyz` and `/startupz` beside it, and `grpc.health.v1` on the\n"
      "gRPC port. This page is the table of the code (`server/telemetry/metric_families.h`); a test holds it.\n\n"
      "| metric | type | labels | what |\n|---|---|---|---|\n";
  for (const MetricFamily& family : kMetricFamilies) {
    text += Concat("| `", family.name, "` | ", TypeName(family.type), " | ", LabelsText(family), " | ", family.help,
                   " |\n");
  }
  text += Concat("\n## Values of labels\n\n| metric | label | values |\n|---|---|---|\n", ValuesText());
  text += Concat("\n## Buckets\n\nUpper edges; above the last there is `+Inf`.\n\n| metric | edges |\n|---|---|\n",
                 BucketsText());
  ExpectPage("server/METRICS.md", text);
}

std::string FieldRows(FieldUse use) {
  std::string rows;
  for (const ConfigField& field : ConfigFields()) {
    if (field.use == use) rows += Concat("| `", field.path, "` | ", field.meaning, " |\n");
  }
  return rows;
}

TEST(ReferencePages, Config) {
  std::string text =
      "# config.pbtxt\n\n"
      "A model's configuration, in Triton's format. All of it is optional: what is missing is derived from the model,\n"
      "as [Serving](SERVING.md#batches-and-executors) says. This page is the tables of the code\n"
      "(`server/config/config_fields.cc`, `server/config/config_parameters.cc`); a test holds it. Nothing in a\n"
      "configuration is ignored in silence: a field is served, or a notice in the log says that it changes nothing, "
      "or\n"
      "the model is refused, with what to do instead. What stands in no table here is refused as unknown.\n\n"
      "## Served\n\n| field | meaning |\n|---|---|\n";
  text += FieldRows(FieldUse::kServed);
  text +=
      "\n## Accepted with a notice\n\nAnswers are the same without them, and without what stands in them.\n\n"
      "| field | why it changes nothing |\n|---|---|\n";
  text += FieldRows(FieldUse::kNoEffect);
  text += "\n## Refused\n\n| field | what is so, and what to do instead |\n|---|---|\n";
  text += FieldRows(FieldUse::kRefused);
  text +=
      "\n## Parameters\n\n"
      "`parameters { key: \"precision\" value { string_value: \"FP16\" } }`. See also\n"
      "[token sequences](SERVING.md#token-sequences) and [precision](SERVING.md#precision).\n\n"
      "| key | models | meaning |\n|---|---|---|\n";
  for (const ConfigParameter& parameter : ConfigParameters()) {
    text += Concat("| `", parameter.key, "` | ", parameter.of, " | ", parameter.meaning, " |\n");
  }
  text +=
      "\nThese tune Triton's backends, and are accepted with a notice. One that ends in a dot stands for all that "
      "begin\n"
      "so.\n\n| key | of the backend |\n|---|---|\n";
  for (const OtherParameter& other : OtherParameters()) {
    text += Concat("| `", other.key, "` | `", other.backend, "` |\n");
  }
  ExpectPage("server/CONFIG.md", text);
}

TEST(ReferencePages, Flags) {
  const char* const arguments[] = {"swizzle-server", "--help"};
  const std::string help = ParseCommandLine(2, arguments).text;
  if (!IsReadable(help)) GTEST_SKIP() << "this CLI11 lays help out otherwise";
  ExpectPage("server/FLAGS.md", FlagsPage("swizzle-server", help));
}

}  // namespace
}  // namespace swizzle
