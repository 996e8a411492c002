// models, load and unload: what a server serves, and its operators' orders.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/printable.h"
#include "client/cli/report.h"
#include "client/cli/waiting_line.h"

namespace swizzle::client {
namespace {

void PrintDone(const std::string& model, const char* what, Terminal& terminal) {
  if (terminal.json) {
    PrintJson({{"model", model}, {what, true}}, terminal);
  } else {
    terminal.out << "model '" << model << "' is " << what << '\n';
  }
}

// Orders are taken at an address of their own, and the server's answer at another says so.
absl::Status WithAddress(const absl::Status& status) {
  if (!absl::IsPermissionDenied(status)) return status;
  return absl::PermissionDeniedError(absl::StrCat(std::string(status.message()), "; name that with --address"));
}

}  // namespace

absl::Status RunModels(Client& client, const ModelsOptions&, Terminal& terminal) {
  const absl::StatusOr<std::vector<ListedModel>> models = client.ListModels();
  if (!models.ok()) return models.status();
  if (terminal.json) {
    Json json = Json::array();
    for (const ListedModel& model : *models) {
      json.push_back(
          {{"model", model.name}, {"version", model.version}, {"state", model.state}, {"reason", model.reason}});
    }
    PrintJson(json, terminal);
    return absl::OkStatus();
  }
  size_t width = 0;
  for (const ListedModel& model : *models) width = std::max(width, model.name.size());
  for (const ListedModel& model : *models) {
    const std::string version = model.version.empty() ? "-" : model.version;
    const std::string reason = model.reason.empty() ? "" : absl::StrCat("  ", Printable(model.reason));
    terminal.out << absl::StrFormat("%-*s  %s  %s%s\n", static_cast<int>(width), Printable(model.name), version,
                                    model.state, reason);
  }
  return absl::OkStatus();
}

absl::Status RunLoad(Client& client, const LoadModelOptions& options, Terminal& terminal) {
  absl::Status status;
  {
    const WaitingLine line(terminal, absl::StrCat("loading '", options.model, "'"));
    status = client.LoadModel(options.model, absl::Seconds(options.wait_s));
  }
  if (!status.ok()) return WithAddress(status);
  PrintDone(options.model, "loaded", terminal);
  return absl::OkStatus();
}

absl::Status RunUnload(Client& client, const UnloadModelOptions& options, Terminal& terminal) {
  if (absl::Status status = client.UnloadModel(options.model); !status.ok()) return WithAddress(status);
  PrintDone(options.model, "unloaded", terminal);
  return absl::OkStatus();
}

}  // namespace swizzle::client
