// bench: how fast a model answers.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/bench_report.h"
#include "client/cli/command.h"
#include "client/cli/input.h"
#include "client/cli/range.h"
#include "client/load_windows.h"

namespace swizzle::client {
namespace {

constexpr int64_t kDefaultRequests = 1000;
constexpr absl::Duration kDefaultDuration = absl::Seconds(5);  // at a rate
constexpr int kMostInFlight = 1024;
constexpr int64_t kMostBytesInFlight = int64_t{256} << 20;
constexpr double kHighestRate = 1e6;

// What is measured, one after the other.
struct Levels {
  bool are_rates = false;
  std::vector<double> levels;
};

absl::StatusOr<Levels> LevelsOf(const BenchOptions& options) {
  const bool by_rate = !options.request_rate_range.empty();
  if (by_rate && !options.concurrency_range.empty()) {
    return UsageError("--concurrency-range and --request-rate-range exclude each other");
  }
  if ((by_rate || !options.concurrency_range.empty()) && options.concurrency != 1) {
    return UsageError("--concurrency is one level; of a range, it is its start");
  }
  if (options.measurement_interval_ms > 0 && (options.duration_s > 0 || options.requests > 0)) {
    return UsageError("--measurement-interval excludes --requests and --duration");
  }
  if (!by_rate && options.concurrency_range.empty()) return Levels{false, {static_cast<double>(options.concurrency)}};
  absl::StatusOr<std::vector<double>> levels =
      by_rate ? ParseRange("--request-rate-range", options.request_rate_range, 0.001, kHighestRate, /*whole=*/false)
              : ParseRange("--concurrency-range", options.concurrency_range, 1, kMostInFlight, /*whole=*/true);
  if (!levels.ok()) return levels.status();
  return Levels{by_rate, *std::move(levels)};
}

absl::StatusOr<std::vector<Tensor>> BenchInputs(Client& client, const BenchOptions& options) {
  if (!options.inputs.empty()) {
    if (!options.shapes.empty()) return UsageError("--shape and --input exclude each other");
    return ReadInputs(options.inputs);
  }
  absl::StatusOr<std::map<std::string, Shape>> shapes = ParseShapes(options.shapes);
  if (!shapes.ok()) return shapes.status();
  const absl::StatusOr<ModelMetadata> metadata = client.GetModelMetadata(options.model);
  if (!metadata.ok()) return metadata.status();
  const auto plans = PlanInputs(*metadata, {.batch = options.batch, .shapes = *std::move(shapes)});
  return plans.ok() ? DrawInputs(*plans, /*seed=*/1) : plans.status();
}

int64_t RowsOf(const BenchOptions& options, const std::vector<Tensor>& inputs) {
  const bool from_file = !options.inputs.empty() && !inputs.empty() && !inputs[0].shape.empty();
  return from_file ? inputs[0].shape[0] : options.batch;
}

int64_t BytesOf(const InferRequest& request) {
  int64_t bytes = 1;
  for (const Tensor& input : request.inputs) bytes += static_cast<int64_t>(input.data.size());
  return bytes;
}

// Adds up all versions, for the request does not say which it asks.
absl::StatusOr<ModelStatistics> StatisticsOf(Client& client, const std::string& model) {
  const absl::StatusOr<std::vector<ModelStatistics>> versions = client.GetStatistics(model);
  if (!versions.ok()) return versions.status();
  if (versions->size() != 1) return absl::UnimplementedError("several versions serve");
  return versions->front();
}

class Bench {
 public:
  Bench(Client& client, const BenchOptions& options, InferRequest request, Terminal& terminal)
      : client_(client),
        options_(options),
        request_(std::make_shared<InferRequest>(std::move(request))),
        terminal_(terminal) {
    settings_ = {options.model, {}, RowsOf(options, request_->inputs), options.percentile};
    for (const Tensor& input : request_->inputs)
      settings_.inputs.push_back({input.name, input.datatype, input.shape, ""});
  }

  absl::Status WarmUp() {
    if (options_.warmup <= 0) return absl::OkStatus();
    const LoadOptions warmup{.concurrency = options_.concurrency, .requests = options_.warmup};
    return RunLoad(
               client_, warmup, Source(), [](int64_t, const InferResult&) {}, [](int64_t, absl::Duration) {})
        .first_error;
  }

  // Levels until one fails; what it measured of that is kept where it was a rate.
  absl::Status Measure(const Levels& levels) {
    const bool as_table = levels.levels.size() > 1 && !terminal_.json;
    if (as_table) terminal_.out << TableHead(settings_, levels.are_rates) << std::flush;
    for (const double level : levels.levels) {
      BenchLevel measured = MeasureLevel(levels.are_rates, level);
      absl::Status status = measured.report.first_error;
      const bool keep = status.ok() || (levels.are_rates && measured.report.succeeded > 0);
      if (!keep) return status;
      if (as_table) terminal_.out << TableRow(settings_, measured) << std::flush;
      failed_ += measured.report.failed;
      first_error_.Update(status);
      measured_.push_back(std::move(measured));
    }
    return absl::OkStatus();
  }

  void Print() const {
    if (terminal_.json) return PrintJson(AsJson(), terminal_);
    if (measured_.size() == 1) terminal_.out << BlockText(settings_, measured_[0]);
  }

  std::string Csv() const { return BenchCsv(settings_, measured_); }

  // Requests that a server was too busy for.
  absl::Status Failures() const {
    if (failed_ == 0) return absl::OkStatus();
    return absl::Status(first_error_.code(),
                        absl::StrCat(failed_, " requests failed, the first: ", std::string(first_error_.message())));
  }

 private:
  RequestSource Source() const {
    return [request = request_](int64_t) { return request; };
  }

  LoadOptions LoadOf(bool is_rate, double level) const {
    LoadOptions load;
    if (is_rate) {
      load.rate = level;
      load.poisson = options_.request_distribution == "poisson";
      load.max_in_flight =
          static_cast<int>(std::clamp<int64_t>(kMostBytesInFlight / BytesOf(*request_), 1, kMostInFlight));
    } else {
      load.concurrency = static_cast<int>(level);
    }
    load.requests = options_.requests;
    if (options_.duration_s > 0) load.duration = absl::Seconds(options_.duration_s);
    if (options_.requests > 0 || options_.duration_s > 0) return load;
    if (is_rate) {
      load.duration = kDefaultDuration;
    } else {
      load.requests = kDefaultRequests;
    }
    return load;
  }

  // How many requests a load is for; 0: that is not known.
  static int64_t Expected(const LoadOptions& load) {
    if (load.requests > 0 || load.rate <= 0) return load.requests;
    return static_cast<int64_t>(load.rate * absl::ToDoubleSeconds(load.duration));
  }

  BenchLevel MeasureLevel(bool is_rate, double level) {
    BenchLevel measured;
    measured.is_rate = is_rate;
    measured.level = level;
    const LoadOptions load = LoadOf(is_rate, level);
    const absl::StatusOr<ModelStatistics> before = StatisticsOf(client_, options_.model);
    if (options_.measurement_interval_ms > 0) {
      const WindowOptions windows{absl::Milliseconds(options_.measurement_interval_ms), options_.stability_percent,
                                  options_.max_trials, options_.percentile};
      const ProgressSink progress = ProgressLine(terminal_, 0, settings_.rows, LevelText(measured));
      SettledReport settled = MeasureUntilStable(client_, load, windows, Source(), progress);
      measured.report = std::move(settled.report);
      measured.windows = settled.windows;
      measured.stable = settled.stable;
    } else {
      const ProgressSink progress = ProgressLine(terminal_, Expected(load), settings_.rows, LevelText(measured));
      measured.report = RunLoad(
          client_, load, Source(), [](int64_t, const InferResult&) {}, progress);
    }
    const absl::StatusOr<ModelStatistics> after = StatisticsOf(client_, options_.model);
    if (before.ok() && after.ok()) measured.server = Since(*before, *after);
    ClearProgressLine(terminal_);
    return measured;
  }

  Json AsJson() const {
    Json json = {{"model", options_.model}, {"inputs", Json::array()}};
    for (const Tensor& input : settings_.inputs) {
      json["inputs"].push_back({{"name", input.name}, {"datatype", input.datatype}, {"shape", input.shape}});
    }
    if (measured_.size() == 1) {
      json.update(LevelJson(settings_, measured_[0]));
      return json;
    }
    json["levels"] = Json::array();
    for (const BenchLevel& level : measured_) json["levels"].push_back(LevelJson(settings_, level));
    return json;
  }

  Client& client_;
  const BenchOptions& options_;
  const std::shared_ptr<const InferRequest> request_;
  Terminal& terminal_;
  BenchSettings settings_;
  std::vector<BenchLevel> measured_;
  int64_t failed_ = 0;
  absl::Status first_error_;
};

}  // namespace

absl::Status RunBench(Client& client, const BenchOptions& options, Terminal& terminal) {
  const absl::StatusOr<Levels> levels = LevelsOf(options);
  if (!levels.ok()) return levels.status();
  std::ofstream csv;
  if (!options.csv.empty()) csv.open(options.csv);
  if (!csv) return UsageError(absl::StrCat("cannot write ", options.csv, ": ", std::strerror(errno)));
  absl::StatusOr<std::vector<Tensor>> inputs = BenchInputs(client, options);
  if (!inputs.ok()) return inputs.status();
  InferRequest request;
  request.model = options.model;
  request.inputs = *std::move(inputs);
  Bench bench(client, options, std::move(request), terminal);
  if (absl::Status status = bench.WarmUp(); !status.ok()) return status;
  if (absl::Status status = bench.Measure(*levels); !status.ok()) return status;
  bench.Print();
  if (!options.csv.empty()) {
    csv << bench.Csv() << std::flush;
    if (!csv) return UsageError(absl::StrCat("cannot write ", options.csv, ": ", std::strerror(errno)));
  }
  return bench.Failures();
}

}  // namespace swizzle::client
