// watch: what all models do, look after look, until it is interrupted.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/clock.h"
#include "client/cli/command.h"
#include "client/cli/interrupt.h"
#include "client/cli/watch_table.h"

namespace swizzle::client {
namespace {

// What one look saw.
struct Look {
  absl::Time at;
  Stopwatch since;
  std::vector<ListedModel> models;
  std::vector<ModelStatistics> statistics;
};

absl::StatusOr<Look> LookAt(Client& client) {
  Look look;
  absl::StatusOr<std::vector<ModelStatistics>> statistics = client.GetStatistics();
  look.at = WallNow();
  look.since = Stopwatch();
  if (!statistics.ok()) return statistics.status();
  look.statistics = *std::move(statistics);
  absl::StatusOr<std::vector<ListedModel>> models = client.ListModels();
  if (models.ok()) {
    look.models = *std::move(models);
    return look;
  }
  if (!absl::IsUnimplemented(models.status())) return models.status();
  for (const ModelStatistics& model : look.statistics) look.models.push_back({model.name, model.version, "READY", ""});
  return look;
}

// Whether a server that starts, or is busy, may answer otherwise soon.
bool MayPass(const absl::Status& status) {
  return IsUnreachable(status) || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

// Draws over what it drew before, on a terminal; else prints line after line.
class Display {
 public:
  explicit Display(Terminal& terminal) : terminal_(terminal) {}

  void Show(const std::vector<WatchedModel>& models, const Look& look, double seconds) {
    if (terminal_.json) {
      PrintJson({{"time", absl::ToDoubleSeconds(look.at - absl::UnixEpoch())},
                 {"seconds", seconds},
                 {"models", WatchJson(models, seconds)}},
                terminal_);
    } else if (terminal_.out_is_terminal) {
      Draw(WatchTable(models, seconds, ScreenSize()));
    } else {
      terminal_.out << TimeText(look.at) << "  " << WatchLine(models, seconds) << '\n';
    }
    terminal_.out << std::flush;
  }

  void ShowError(const absl::Status& status) {
    const std::string message(status.message());
    if (terminal_.json) {
      PrintJson({{"time", absl::ToDoubleSeconds(WallNow() - absl::UnixEpoch())}, {"error", message}}, terminal_);
    } else if (terminal_.out_is_terminal) {
      Draw(absl::StrCat(message.substr(0, static_cast<size_t>(ScreenSize().columns)), "\n"));
    } else {
      terminal_.out << TimeText(WallNow()) << "  " << message << '\n';
    }
    terminal_.out << std::flush;
  }

 private:
  static std::string TimeText(absl::Time time) { return absl::FormatTime("%H:%M:%S", time, absl::LocalTimeZone()); }

  void Draw(const std::string& text) {
    if (lines_ > 0) terminal_.out << absl::StrFormat("\033[%dA", lines_);
    terminal_.out << "\r\033[J" << text;
    lines_ = static_cast<int>(std::ranges::count(text, '\n'));
  }

  Terminal& terminal_;
  int lines_ = 0;  // that were drawn last, above the cursor
};

}  // namespace

// The first look is nothing to tell of: rates are between two. A server that is gone is waited for.
absl::Status RunWatch(Client& client, const WatchOptions& options, Terminal& terminal) {
  Interrupt interrupt;
  Display display(terminal);
  std::optional<Look> before;
  absl::Status last;
  for (int64_t shown = 0; options.count == 0 || shown < options.count;) {
    absl::StatusOr<Look> look = LookAt(client);
    if (!look.ok()) {
      // Whoever refuses the first look will refuse the next; only of one that was there before is it a restart's.
      if (!before && !MayPass(look.status())) return look.status();
      display.ShowError(look.status());
      ++shown;
    } else if (before) {
      display.Show(WatchedModels(look->models, before->statistics, look->statistics), *look,
                   absl::ToDoubleSeconds(before->since.Until(look->since)));
      ++shown;
    } else if (terminal.out_is_terminal && !terminal.json) {
      display.Show(WatchedModels(look->models, {}, {}), *look, 0);
    }
    last = look.status();
    if (look.ok()) before = *std::move(look);
    if (options.count > 0 && shown >= options.count) break;
    if (interrupt.Wait(absl::Seconds(options.interval_s))) break;
  }
  return before ? absl::OkStatus() : last;
}

}  // namespace swizzle::client
