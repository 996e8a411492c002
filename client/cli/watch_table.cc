#include "client/cli/watch_table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/printable.h"
#include "client/cli/report.h"

namespace swizzle::client {
namespace {

constexpr size_t kWidestName = 40;
constexpr int kFrame = 3;  // lines of a table besides the models: head, what is left out, where the cursor stands

double RowsOfABatch(const ModelStatistics& between) {
  return between.batches > 0 ? static_cast<double>(between.rows) / static_cast<double>(between.batches) : 0;
}

const ModelStatistics* Find(const std::vector<ModelStatistics>& models, const ListedModel& listed) {
  for (const ModelStatistics& model : models) {
    if (model.name == listed.name && model.version == listed.version) return &model;
  }
  return nullptr;
}

// The text is cut after so many letters, not bytes, of which UTF-8 has more.
std::string Cut(const std::string& text, size_t letters) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) continue;
    if (++count > letters) return text.substr(0, at);
  }
  return text;
}

std::string Label(const ListedModel& listed) {
  return Printable(listed.version.empty() || listed.version == "1" ? listed.name
                                                                   : absl::StrCat(listed.name, ":", listed.version));
}

// A time that nothing was measured of is a dash.
std::string Time(const TimedCount& stage) {
  return stage.count > 0 ? absl::StrFormat("%.3f", Milliseconds(stage.Mean())) : "-";
}

std::string Row(const WatchedModel& model, double seconds, int width) {
  const ModelStatistics& between = model.between;
  const std::string batch = between.batches > 0 ? absl::StrFormat("%.1f", RowsOfABatch(between)) : "-";
  return absl::StrFormat("%-*s %10.1f %10s %9s %10s %7s %8.1f  %s%s", width, Cut(Label(model.listed), kWidestName),
                         PerSecond(between.success.count, seconds), Time(between.success), Time(between.queue),
                         Time(between.compute), batch, PerSecond(between.fail.count, seconds), model.listed.state,
                         model.listed.reason.empty() ? "" : Printable(absl::StrCat(": ", model.listed.reason)));
}

}  // namespace

std::vector<WatchedModel> WatchedModels(const std::vector<ListedModel>& listed,
                                        const std::vector<ModelStatistics>& before,
                                        const std::vector<ModelStatistics>& after) {
  std::vector<WatchedModel> models;
  for (const ListedModel& model : listed) {
    const ModelStatistics *then = Find(before, model), *now = Find(after, model);
    models.push_back({model, now != nullptr && then != nullptr ? Since(*then, *now) : ModelStatistics()});
  }
  return models;
}

Screen ScreenSize() {
  winsize size = {};
  Screen screen;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return screen;
  if (size.ws_row > 0) screen.rows = size.ws_row;
  if (size.ws_col > 0) screen.columns = size.ws_col;
  return screen;
}

std::string WatchTable(const std::vector<WatchedModel>& models, double seconds, Screen screen) {
  size_t width = 5;
  for (const WatchedModel& model : models) width = std::max(width, std::min(Label(model.listed).size(), kWidestName));
  const size_t columns = static_cast<size_t>(std::max(screen.columns, 1));
  std::string table =
      Cut(absl::StrFormat("%-*s %10s %10s %9s %10s %7s %8s  %s", static_cast<int>(width), "model", "requests/s",
                          "latency ms", "queue ms", "compute ms", "batch", "failed/s", "state"),
          columns) +
      "\n";
  const auto most = static_cast<size_t>(std::max(screen.rows - kFrame, 1));
  for (size_t i = 0; i < std::min(models.size(), most); ++i) {
    absl::StrAppend(&table, Cut(Row(models[i], seconds, static_cast<int>(width)), columns), "\n");
  }
  if (models.size() > most) absl::StrAppend(&table, "and ", models.size() - most, " more\n");
  return table;
}

std::string WatchLine(const std::vector<WatchedModel>& models, double seconds) {
  std::vector<std::string> parts;
  for (const WatchedModel& model : models) {
    const ModelStatistics& between = model.between;
    if (model.listed.state != "READY") {
      parts.push_back(absl::StrCat(Label(model.listed), " ", model.listed.state));
    } else if (between.success.count + between.fail.count > 0) {
      parts.push_back(absl::StrFormat("%s %.1f/s %s ms, queue %s ms, batch %.1f, %.1f failed/s", Label(model.listed),
                                      PerSecond(between.success.count, seconds), Time(between.success),
                                      Time(between.queue), RowsOfABatch(between),
                                      PerSecond(between.fail.count, seconds)));
    }
  }
  return parts.empty() ? absl::StrCat(models.size(), " models, no requests") : absl::StrJoin(parts, "; ");
}

Json WatchJson(const std::vector<WatchedModel>& models, double seconds) {
  Json json = Json::array();
  for (const WatchedModel& model : models) {
    const ModelStatistics& between = model.between;
    json.push_back({{"model", model.listed.name},
                    {"version", model.listed.version},
                    {"state", model.listed.state},
                    {"reason", model.listed.reason},
                    {"requests", between.success.count},
                    {"failed", between.fail.count},
                    {"requests_per_second", PerSecond(between.success.count, seconds)},
                    {"failed_per_second", PerSecond(between.fail.count, seconds)},
                    {"rows_per_second", PerSecond(between.rows, seconds)},
                    {"latency_ms", Milliseconds(between.success.Mean())},
                    {"queue_ms", Milliseconds(between.queue.Mean())},
                    {"compute_ms", Milliseconds(between.compute.Mean())},
                    {"rows_per_batch", RowsOfABatch(between)}});
  }
  return json;
}

}  // namespace swizzle::client
