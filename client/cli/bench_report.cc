#include "client/cli/bench_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace swizzle::client {
namespace {

int64_t Microseconds(absl::Duration duration) {
  return std::llround(absl::ToDoubleMicroseconds(std::max(duration, absl::ZeroDuration())));
}

// The usual ones, and the one that was asked for.
std::vector<double> Percentiles(const BenchSettings& settings) {
  std::vector<double> percentiles = {50, 90, 95, 99};
  if (settings.percentile > 0) percentiles.push_back(settings.percentile);
  std::ranges::sort(percentiles);
  percentiles.erase(std::unique(percentiles.begin(), percentiles.end()), percentiles.end());
  return percentiles;
}

absl::Duration Percentile(const LoadReport& report, double percentile) {
  return Quantile(report.latencies, percentile / 100);
}

double RowsPerSecond(const BenchSettings& settings, const LoadReport& report) {
  return RequestsPerSecond(report) * static_cast<double>(settings.rows);
}

// What is wrong with the figures; empty: nothing.
std::string Remarks(const BenchLevel& level) {
  std::vector<std::string> remarks;
  if (level.report.failed > 0) {
    remarks.push_back(absl::StrCat(level.report.failed, " failed: ", std::string(level.report.first_error.message())));
  }
  if (level.report.late > 0)
    remarks.push_back(absl::StrCat(level.report.late, " were sent over 1 ms after they were due"));
  if (!level.stable) remarks.push_back(absl::StrCat("not stable after ", level.windows, " windows"));
  return absl::StrJoin(remarks, "; ");
}

Json ServerJson(const ModelStatistics& server) {
  return {{"requests", server.success.count},
          {"failed", server.fail.count},
          {"batches", server.batches},
          {"rows", server.rows},
          {"queue_ms", Milliseconds(server.queue.Mean())},
          {"compute_input_ms", Milliseconds(server.input.Mean())},
          {"compute_infer_ms", Milliseconds(server.compute.Mean())},
          {"compute_output_ms", Milliseconds(server.output.Mean())}};
}

std::string CsvLine(const BenchSettings& settings, const BenchLevel& level) {
  const LoadReport& report = level.report;
  const ModelStatistics server = level.server.value_or(ModelStatistics());
  const absl::Duration sending = report.sending / std::max<int64_t>(report.succeeded + report.failed, 1);
  const absl::Duration stages[] = {server.queue.Mean(), server.input.Mean(), server.compute.Mean(),
                                   server.output.Mean()};
  absl::Duration network = Mean(report.latencies) - sending;
  for (const absl::Duration stage : stages) network -= stage;
  std::string line = absl::StrFormat("%g,%.6g,%d,%d", level.level, RowsPerSecond(settings, report),
                                     Microseconds(sending), Microseconds(network));
  for (const absl::Duration stage : stages) absl::StrAppend(&line, ",", Microseconds(stage));
  absl::StrAppend(&line, ",0");
  for (const double percentile : Percentiles(settings)) {
    absl::StrAppend(&line, ",", Microseconds(Percentile(report, percentile)));
  }
  return line + "\n";
}

}  // namespace

std::string LevelText(const BenchLevel& level) {
  return level.is_rate ? absl::StrFormat("%g requests a second", level.level)
                       : absl::StrFormat("%g in flight", level.level);
}

std::string BlockText(const BenchSettings& settings, const BenchLevel& level) {
  const LoadReport& report = level.report;
  std::string text = absl::StrFormat("%s: %d requests of batch %d, %s, %.2f s\n", settings.model, report.succeeded,
                                     settings.rows, LevelText(level), absl::ToDoubleSeconds(report.elapsed));
  const std::string inputs = absl::StrJoin(settings.inputs, ", ", [](std::string* out, const Tensor& input) {
    absl::StrAppend(out, input.name, " ", input.datatype, " ", ShapeText(input.shape));
  });
  absl::StrAppendFormat(&text, "  %-15s %s\n", "input", inputs);
  absl::StrAppend(&text, ReportText(report, settings.rows));
  if (settings.percentile > 0) {
    absl::StrAppendFormat(&text, "  %-15s p%g %9.3f ms\n", "latency", settings.percentile,
                          Milliseconds(Percentile(report, settings.percentile)));
  }
  const std::string remarks = Remarks(level);
  return remarks.empty() ? text : absl::StrCat(text, "  ", remarks, "\n");
}

std::string TableHead(const BenchSettings& settings, bool is_rate) {
  std::string head = absl::StrFormat("%s, batch %d\n%12s %12s", settings.model, settings.rows,
                                     is_rate ? "asked for/s" : "in flight", "requests/s");
  for (const double percentile : Percentiles(settings)) {
    absl::StrAppendFormat(&head, " %9s", absl::StrFormat("p%g ms", percentile));
  }
  return absl::StrCat(head, absl::StrFormat(" %9s %11s\n", "queue ms", "compute ms"));
}

std::string TableRow(const BenchSettings& settings, const BenchLevel& level) {
  std::string row = absl::StrFormat("%12g %12.1f", level.level, RequestsPerSecond(level.report));
  for (const double percentile : Percentiles(settings)) {
    absl::StrAppendFormat(&row, " %9.3f", Milliseconds(Percentile(level.report, percentile)));
  }
  absl::StrAppendFormat(&row, " %9.3f %11.3f", Milliseconds(Quantile(level.report.queues, 0.5)),
                        Milliseconds(Quantile(level.report.computes, 0.5)));
  const std::string remarks = Remarks(level);
  return remarks.empty() ? row + "\n" : absl::StrCat(row, "  ", remarks, "\n");
}

Json LevelJson(const BenchSettings& settings, const BenchLevel& level) {
  Json json = {{level.is_rate ? "request_rate" : "concurrency", level.level}};
  if (!level.is_rate) json["concurrency"] = static_cast<int64_t>(level.level);
  json.update(ReportJson(level.report, settings.rows));
  for (const double percentile : Percentiles(settings)) {
    json["latency_ms"][absl::StrFormat("p%g", percentile)] = Milliseconds(Percentile(level.report, percentile));
  }
  json["failed"] = level.report.failed;
  if (level.is_rate) json["late"] = level.report.late;
  if (level.windows > 0) json.update({{"windows", level.windows}, {"stable", level.stable}});
  if (level.server) json["server"] = ServerJson(*level.server);
  return json;
}

std::string BenchCsv(const BenchSettings& settings, std::vector<BenchLevel> levels) {
  const bool is_rate = !levels.empty() && levels.front().is_rate;
  std::string csv = absl::StrCat(is_rate ? "Request Rate" : "Concurrency",
                                 ",Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute "
                                 "Input,Server Compute Infer,Server Compute Output,Client Recv");
  for (const double percentile : Percentiles(settings)) absl::StrAppendFormat(&csv, ",p%g latency", percentile);
  csv += "\n";
  std::ranges::stable_sort(levels, {}, [](const BenchLevel& level) { return RequestsPerSecond(level.report); });
  for (const BenchLevel& level : levels) csv += CsvLine(settings, level);
  return csv;
}

}  // namespace swizzle::client
