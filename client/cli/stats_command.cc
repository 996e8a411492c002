// stats and config: what the server counted of a model, and what it serves it by.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/clock.h"
#include "client/cli/command.h"
#include "client/cli/interrupt.h"
#include "client/cli/printable.h"
#include "client/cli/report.h"

namespace swizzle::client {
namespace {

Json StageJson(const TimedCount& stage) {
  return {
      {"count", stage.count}, {"seconds", absl::ToDoubleSeconds(stage.total)}, {"mean_ms", Milliseconds(stage.Mean())}};
}

Json StatisticsJson(const ModelStatistics& model) {
  Json json = {{"model", model.name},
               {"version", model.version},
               {"last_inference", model.last_inference == absl::InfinitePast()
                                      ? Json()
                                      : Json(absl::ToDoubleSeconds(model.last_inference - absl::UnixEpoch()))},
               {"rows", model.rows},
               {"batches", model.batches},
               {"success", StageJson(model.success)},
               {"fail", StageJson(model.fail)},
               {"queue", StageJson(model.queue)},
               {"compute_input", StageJson(model.input)},
               {"compute_infer", StageJson(model.compute)},
               {"compute_output", StageJson(model.output)},
               {"cache_hit", StageJson(model.cache_hit)},
               {"cache_miss", StageJson(model.cache_miss)},
               {"batch_sizes", Json::array()},
               {"memory", Json::array()}};
  for (const auto& size : model.batch_sizes) {
    json["batch_sizes"].push_back({{"rows", size.rows},
                                   {"batches", size.compute.count},
                                   {"compute_input_ms", Milliseconds(size.input.Mean())},
                                   {"compute_infer_ms", Milliseconds(size.compute.Mean())},
                                   {"compute_output_ms", Milliseconds(size.output.Mean())}});
  }
  for (const auto& memory : model.memory) {
    json["memory"].push_back({{"type", memory.type}, {"id", memory.id}, {"bytes", memory.bytes}});
  }
  return json;
}

Json RatesJson(const ModelStatistics& between, double seconds) {
  Json json = {{"seconds", seconds},
               {"requests_per_second", PerSecond(between.success.count, seconds)},
               {"failed_per_second", PerSecond(between.fail.count, seconds)},
               {"rows_per_second", PerSecond(between.rows, seconds)},
               {"batches_per_second", PerSecond(between.batches, seconds)}};
  json.update(StatisticsJson(between));
  return json;
}

std::string LastText(const ModelStatistics& model) {
  if (model.last_inference == absl::InfinitePast()) return "";
  const absl::Duration ago = absl::Trunc(WallNow() - model.last_inference, absl::Seconds(1));
  return ago <= absl::ZeroDuration() ? ", the last just now"
                                     : absl::StrCat(", the last ", absl::FormatDuration(ago), " ago");
}

// Requests, rows and stages; of batch sizes a table.
std::string StatisticsText(const ModelStatistics& model) {
  std::string text = absl::StrFormat("  %-10s %d answered, %d failed%s\n", "requests", model.success.count,
                                     model.fail.count, LastText(model));
  const double a_batch = model.batches > 0 ? static_cast<double>(model.rows) / static_cast<double>(model.batches) : 0;
  absl::StrAppendFormat(&text, "  %-10s %d in %d batches, %.2f a batch\n", "rows", model.rows, model.batches, a_batch);
  if (model.cache_hit.count + model.cache_miss.count > 0) {
    absl::StrAppendFormat(&text, "  %-10s %d answers, %d not found\n", "cache", model.cache_hit.count,
                          model.cache_miss.count);
  }
  if (model.success.count > 0) {
    absl::StrAppendFormat(&text, "  %-10s %.3f ms a request: queue %.3f, input %.3f, compute %.3f, output %.3f\n",
                          "mean", Milliseconds(model.success.Mean()), Milliseconds(model.queue.Mean()),
                          Milliseconds(model.input.Mean()), Milliseconds(model.compute.Mean()),
                          Milliseconds(model.output.Mean()));
  }
  for (const auto& size : model.batch_sizes) {
    absl::StrAppendFormat(&text, "  batch of %-4d %d, compute %.3f ms\n", size.rows, size.compute.count,
                          Milliseconds(size.compute.Mean()));
  }
  return text;
}

std::string BytesText(int64_t bytes) {
  const double count = static_cast<double>(bytes);
  return bytes < 1'000'000 ? absl::StrFormat("%.1f kB", count / 1e3) : absl::StrFormat("%.1f MB", count / 1e6);
}

std::string MemoryText(const ModelStatistics& model) {
  std::string text;
  for (const auto& memory : model.memory) {
    if (memory.bytes == 0) continue;
    const std::string place = memory.type == "CPU" ? memory.type : absl::StrCat(memory.type, " ", memory.id);
    absl::StrAppendFormat(&text, "  %-10s %s on %s\n", "weights", BytesText(memory.bytes), place);
  }
  return text;
}

std::string RatesText(const ModelStatistics& between, double seconds) {
  return absl::StrFormat("  in %.1f s: %.1f requests/s, %.1f rows/s, %.1f batches/s\n", seconds,
                         PerSecond(between.success.count, seconds), PerSecond(between.rows, seconds),
                         PerSecond(between.batches, seconds)) +
         StatisticsText(between);
}

// The other look at the model; an empty one where there was none.
ModelStatistics Same(const std::vector<ModelStatistics>& models, const ModelStatistics& model) {
  for (const ModelStatistics& other : models) {
    if (other.name == model.name && other.version == model.version) return other;
  }
  ModelStatistics none;
  none.name = model.name;
  none.version = model.version;
  return none;
}

}  // namespace

absl::Status RunStats(Client& client, const StatsOptions& options, Terminal& terminal) {
  absl::StatusOr<std::vector<ModelStatistics>> models = client.GetStatistics(options.model);
  if (!models.ok()) return models.status();
  std::vector<ModelStatistics> before;
  double seconds = 0;
  if (options.interval_s > 0) {
    const Stopwatch stopwatch;
    Interrupt interrupt;
    if (interrupt.Wait(absl::Seconds(options.interval_s))) return absl::CancelledError("interrupted");
    before = *std::exchange(models, client.GetStatistics(options.model));
    if (!models.ok()) return models.status();
    seconds = absl::ToDoubleSeconds(stopwatch.elapsed());
  }
  Json json = Json::array();
  for (const ModelStatistics& model : *models) {
    Json of_model = StatisticsJson(model);
    if (!terminal.json) {
      terminal.out << Printable(model.name) << ", version " << model.version << '\n'
                   << MemoryText(model) << StatisticsText(model);
    }
    if (seconds > 0) {
      const ModelStatistics between = Since(Same(before, model), model);
      of_model["since"] = RatesJson(between, seconds);
      if (!terminal.json) terminal.out << RatesText(between, seconds);
    }
    json.push_back(std::move(of_model));
  }
  if (terminal.json) PrintJson(json, terminal);
  return absl::OkStatus();
}

absl::Status RunConfig(Client& client, const ConfigOptions& options, Terminal& terminal) {
  const absl::StatusOr<ModelConfig> config = client.GetModelConfig(options.model);
  if (!config.ok()) return config.status();
  terminal.out << (terminal.json ? config->json + "\n" : config->text);
  return absl::OkStatus();
}

}  // namespace swizzle::client
