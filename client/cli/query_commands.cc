// health, metadata and infer: one answer each.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/input.h"
#include "client/cli/printable.h"
#include "client/cli/ranking.h"
#include "client/cli/report.h"
#include "client/cli/waiting_line.h"
#include "client/npy.h"

namespace swizzle::client {
namespace {

constexpr size_t kShownElements = 8;

void PrintTensors(const char* title, const std::vector<TensorMetadata>& tensors, Terminal& terminal) {
  for (const TensorMetadata& tensor : tensors) {
    terminal.out << absl::StrFormat("  %-9s %s %s %s\n", title, tensor.name, tensor.datatype, ShapeText(tensor.shape));
  }
}

absl::Status PrintServerMetadata(Client& client, Terminal& terminal) {
  const absl::StatusOr<ServerMetadata> metadata = client.GetServerMetadata();
  if (!metadata.ok()) return metadata.status();
  if (terminal.json) {
    PrintJson({{"name", metadata->name}, {"version", metadata->version}, {"extensions", metadata->extensions}},
              terminal);
  } else {
    terminal.out << metadata->name << ' ' << metadata->version
                 << "\n  extensions: " << absl::StrJoin(metadata->extensions, ", ") << '\n';
  }
  return absl::OkStatus();
}

void PrintModelMetadata(const ModelMetadata& metadata, Terminal& terminal) {
  if (terminal.json) {
    PrintJson({{"name", metadata.name},
               {"versions", metadata.versions},
               {"platform", metadata.platform},
               {"inputs", TensorsJson(metadata.inputs)},
               {"outputs", TensorsJson(metadata.outputs)},
               {"properties", metadata.properties}},
              terminal);
    return;
  }
  terminal.out << metadata.name << "\n  platform  " << metadata.platform << "\n  versions  "
               << absl::StrJoin(metadata.versions, ", ") << '\n';
  PrintTensors("input", metadata.inputs, terminal);
  PrintTensors("output", metadata.outputs, terminal);
  for (const auto& [name, value] : metadata.properties) terminal.out << "  " << name << ": " << value << '\n';
}

std::string RankingText(const std::vector<Ranked>& row) {
  return absl::StrJoin(row, "  ", [](std::string* text, const Ranked& ranked) {
    absl::StrAppendFormat(text, "%d (%.4g)", ranked.index, ranked.value);
  });
}

Json RankingJson(const std::vector<std::vector<Ranked>>& rows) {
  Json json = Json::array();
  for (const auto& row : rows) {
    Json ranking = Json::array();
    for (const Ranked& ranked : row) ranking.push_back({{"index", ranked.index}, {"value", ranked.value}});
    json.push_back(std::move(ranking));
  }
  return json;
}

// The first elements, on one line.
std::string ElementsText(const Tensor& tensor) {
  const Json elements = ElementsJson(tensor);
  std::string text;
  for (size_t i = 0; i < std::min(elements.size(), kShownElements); ++i) {
    absl::StrAppend(&text, " ", elements[i].dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  return elements.size() > kShownElements ? text + " ..." : text;
}

absl::StatusOr<Json> OutputJson(const Tensor& output, int top) {
  Json json = {
      {"name", output.name}, {"datatype", output.datatype}, {"shape", output.shape}, {"data", ElementsJson(output)}};
  if (top > 0) {
    const auto rows = BestOfRows(output, top);
    if (!rows.ok()) return rows.status();
    json["top"] = RankingJson(*rows);
  }
  return json;
}

absl::Status PrintResultJson(const InferResult& result, int top, Terminal& terminal) {
  Json json = {{"model", result.model},
               {"version", result.version},
               {"server_queue_ms", absl::ToDoubleMilliseconds(result.queue)},
               {"server_compute_ms", absl::ToDoubleMilliseconds(result.compute)},
               {"outputs", Json::array()}};
  for (const Tensor& output : result.outputs) {
    absl::StatusOr<Json> output_json = OutputJson(output, top);
    if (!output_json.ok()) return output_json.status();
    json["outputs"].push_back(*std::move(output_json));
  }
  PrintJson(json, terminal);
  return absl::OkStatus();
}

absl::Status PrintResultText(const InferResult& result, int top, Terminal& terminal) {
  for (const Tensor& output : result.outputs) {
    terminal.out << output.name << ' ' << output.datatype << ' ' << ShapeText(output.shape) << ':';
    if (top == 0) {
      terminal.out << ElementsText(output) << '\n';
      continue;
    }
    const auto rows = BestOfRows(output, top);
    if (!rows.ok()) return rows.status();
    terminal.out << '\n';
    for (size_t i = 0; i < rows->size(); ++i) terminal.out << "  row " << i << ": " << RankingText((*rows)[i]) << '\n';
  }
  terminal.out << absl::StrFormat("model %s, version %s, queue %.3f ms, compute %.3f ms\n", result.model,
                                  result.version, absl::ToDoubleMilliseconds(result.queue),
                                  absl::ToDoubleMilliseconds(result.compute));
  return absl::OkStatus();
}

// Each output as DIRECTORY/NAME.npy. A name comes from the server, so it must not lead out of the directory.
absl::Status SaveOutputs(const InferResult& result, const std::string& directory, Terminal& terminal) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return UsageError(absl::StrCat("can't make the directory ", directory, ": ", error.message()));
  for (const Tensor& output : result.outputs) {
    std::string name = output.name;
    std::replace(name.begin(), name.end(), '/', '_');
    const std::filesystem::path file = std::filesystem::path(directory) / (name + ".npy");
    if (const absl::Status status = WriteNpy(file, output); !status.ok()) return AsUsageError(status);
    if (!terminal.json) terminal.out << "wrote " << file.string() << '\n';
  }
  return absl::OkStatus();
}

std::string NameOf(const HealthOptions& options) {
  return options.model.empty() ? "the server" : absl::StrCat("model '", options.model, "'");
}

// Models that don't serve; of all, or of the one that is asked for. None where the server does not tell.
std::vector<ListedModel> Unready(Client& client, const HealthOptions& options) {
  std::vector<ListedModel> models = client.ListModels().value_or(std::vector<ListedModel>());
  std::erase_if(models, [&](const ListedModel& model) {
    return model.state == "READY" || (!options.model.empty() && model.name != options.model);
  });
  return models;
}

// "model 'bert' is LOADING", "model 'bert' is UNAVAILABLE: the file ends early".
std::string StateText(const ListedModel& model) {
  return Printable(
      absl::StrCat("model '", model.name, "' is ", model.state, model.reason.empty() ? "" : ": ", model.reason));
}

// What the server answered, with the models that are to blame.
absl::Status WithReasons(const absl::Status& status, Client& client, const HealthOptions& options) {
  if (status.ok() || IsUnreachable(status) || absl::IsNotFound(status)) return status;
  std::string text(status.message());
  for (const ListedModel& model : Unready(client, options)) absl::StrAppend(&text, "; ", StateText(model));
  return absl::Status(status.code(), text);
}

absl::Status AskReady(Client& client, const HealthOptions& options, Terminal& terminal) {
  if (options.wait_s > 0) {
    const WaitingLine line(terminal, absl::StrCat("waiting for ", NameOf(options)));
    return client.WaitReady(options.model, absl::Seconds(options.wait_s));
  }
  const absl::StatusOr<bool> ready = options.model.empty() ? client.Ready() : client.ModelReady(options.model);
  if (!ready.ok()) return ready.status();
  return *ready ? absl::OkStatus() : absl::UnavailableError(absl::StrCat(NameOf(options), " is not ready"));
}

}  // namespace

absl::Status RunHealth(Client& client, const HealthOptions& options, Terminal& terminal) {
  if (absl::Status status = WithReasons(AskReady(client, options, terminal), client, options); !status.ok())
    return status;
  const std::vector<ListedModel> unready = Unready(client, options);
  if (!terminal.json) {
    terminal.out << NameOf(options) << " is ready\n";
    for (const ListedModel& model : unready) terminal.out << "  " << StateText(model) << '\n';
    return absl::OkStatus();
  }
  Json json = {{"model", options.model}, {"ready", true}, {"unready", Json::array()}};
  for (const ListedModel& model : unready) {
    json["unready"].push_back({{"model", model.name}, {"state", model.state}, {"reason", model.reason}});
  }
  PrintJson(json, terminal);
  return absl::OkStatus();
}

absl::Status RunMetadata(Client& client, const MetadataOptions& options, Terminal& terminal) {
  if (options.model.empty()) return PrintServerMetadata(client, terminal);
  const absl::StatusOr<ModelMetadata> metadata = client.GetModelMetadata(options.model);
  if (!metadata.ok()) return metadata.status();
  PrintModelMetadata(*metadata, terminal);
  return absl::OkStatus();
}

absl::Status RunInfer(Client& client, const InferOptions& options, Terminal& terminal) {
  absl::StatusOr<std::vector<Tensor>> inputs = ReadInputs(options.inputs);
  if (!inputs.ok()) return inputs.status();
  InferRequest request;
  request.model = options.model;
  request.inputs = *std::move(inputs);
  const absl::StatusOr<InferResult> result = client.Infer(request);
  if (!result.ok()) return result.status();
  absl::Status printed =
      terminal.json ? PrintResultJson(*result, options.top, terminal) : PrintResultText(*result, options.top, terminal);
  if (!printed.ok() || options.output_directory.empty()) return printed;
  return SaveOutputs(*result, options.output_directory, terminal);
}

}  // namespace swizzle::client
