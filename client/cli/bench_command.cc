// bench: how fast a model answers.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/input.h"
#include "client/cli/report.h"
#include "client/load_generator.h"

namespace swizzle::client {
namespace {

constexpr int64_t kDefaultRequests = 1000;

absl::StatusOr<std::vector<Tensor>> BenchInputs(Client& client, const BenchOptions& options) {
  if (!options.inputs.empty()) return ReadInputs(options.inputs);
  const absl::StatusOr<ModelMetadata> metadata = client.GetModelMetadata(options.model);
  if (!metadata.ok()) return metadata.status();
  return DrawInputs(metadata->inputs, options.batch, /*seed=*/1);
}

int64_t RowsOf(const BenchOptions& options, const std::vector<Tensor>& inputs) {
  const bool from_file = !options.inputs.empty() && !inputs.empty() && !inputs[0].shape.empty();
  return from_file ? inputs[0].shape[0] : options.batch;
}

LoadOptions MeasuredLoad(const BenchOptions& options) {
  LoadOptions load;
  load.concurrency = options.concurrency;
  load.requests = options.requests;
  if (options.duration_s > 0) load.duration = absl::Seconds(options.duration_s);
  if (options.requests == 0 && options.duration_s <= 0) load.requests = kDefaultRequests;
  return load;
}

void PrintReport(const BenchOptions& options, const LoadReport& report, int64_t rows, Terminal& terminal) {
  if (terminal.json) {
    Json json = {{"model", options.model}, {"concurrency", options.concurrency}};
    json.update(ReportJson(report, rows));
    PrintJson(json, terminal);
    return;
  }
  terminal.out << absl::StrFormat("%s: %d requests of batch %d, %d in flight, %.2f s\n", options.model,
                                  report.succeeded, rows, options.concurrency, absl::ToDoubleSeconds(report.elapsed))
               << ReportText(report, rows);
}

}  // namespace

absl::Status RunBench(Client& client, const BenchOptions& options, Terminal& terminal) {
  InferRequest request;
  request.model = options.model;
  absl::StatusOr<std::vector<Tensor>> inputs = BenchInputs(client, options);
  if (!inputs.ok()) return inputs.status();
  request.inputs = *std::move(inputs);
  const int64_t rows = RowsOf(options, request.inputs);
  const auto source = [&request](int64_t) { return request; };
  const auto ignore_result = [](int64_t, const InferResult&) {};
  const auto ignore_progress = [](int64_t, absl::Duration) {};

  if (options.warmup > 0) {
    const LoadOptions warmup{.concurrency = options.concurrency, .requests = options.warmup};
    const LoadReport report = RunLoad(client, warmup, source, ignore_result, ignore_progress);
    if (!report.first_error.ok()) return report.first_error;
  }
  const LoadOptions load = MeasuredLoad(options);
  const LoadReport report = RunLoad(client, load, source, ignore_result, ProgressLine(terminal, load.requests, rows));
  ClearProgressLine(terminal);
  if (!report.first_error.ok()) return report.first_error;
  PrintReport(options, report, rows, terminal);
  return absl::OkStatus();
}

}  // namespace swizzle::client
