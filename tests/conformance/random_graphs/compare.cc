#include "tests/conformance/random_graphs/compare.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <new>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/regions/plan_regions.h"

namespace swizzle::random_graphs {
namespace {

// Roundings of kernels differ from those of the interpreter by this at most, and by what noise may become
// (evaluation.h), some times over.
constexpr double kTolerance = 3e-5, kTimesDrift = 12;

using Arrays = std::vector<interpreter::Array>;
using RunOn = std::function<StatusOr<Arrays>(std::span<const TensorView>)>;
// Requests, by number, that run as one: several make a batch.
using Batch = std::vector<size_t>;

Tensor TensorOf(const interpreter::Array& array) {
  const auto bytes = array.AsBytes();
  return {array.dtype, array.shape, {bytes.begin(), bytes.end()}};
}

class Comparing {
 public:
  Comparing(const DrawnGraph& graph, const Evaluation& known) : graph_(graph), known_(known) {}

  // What differs where `run` runs these, one after another.
  std::optional<std::string> DifferenceIn(const std::vector<Batch>& batches, const RunOn& run) const {
    for (const Batch& batch : batches) {
      std::optional<std::string> difference = DifferenceOf(batch, run);
      if (difference) return difference;
    }
    return std::nullopt;
  }

 private:
  static std::string TextOf(const Batch& batch) {
    std::string text = "request";
    for (const size_t request : batch) text += Concat(" ", request);
    return text;
  }

  // Puts one input of all of the batch's requests together.
  Tensor InputOf(const DrawnInput& input, const Batch& batch) const {
    const KnownValue& value = *known_.Find(input.name);
    Tensor all = *value.exact[batch.front()];
    for (size_t i = 1; i < batch.size(); ++i) {
      const Tensor& other = *value.exact[batch[i]];
      all.shape[0] += other.shape[0];
      all.bytes.insert(all.bytes.end(), other.bytes.begin(), other.bytes.end());
    }
    return all;
  }

  std::optional<std::string> DifferenceOf(const Batch& batch, const RunOn& run) const {
    std::vector<Tensor> inputs;
    std::vector<TensorView> views;
    for (const DrawnInput& input : graph_.inputs) inputs.push_back(InputOf(input, batch));
    for (const Tensor& input : inputs) views.push_back({input.dtype, input.shape, input.bytes});
    const StatusOr<Arrays> outputs = run(views);
    if (!outputs.ok()) return TextOf(batch) + ": " + std::string(outputs.status().message());
    for (size_t o = 0; o < graph_.outputs.size(); ++o) {
      const std::string& name = graph_.outputs[o].name;
      const auto difference = DifferenceOf(name, TensorOf((*outputs)[o]), batch);
      if (difference) return Concat(TextOf(batch), ": output '", name, "' ", *difference);
    }
    return std::nullopt;
  }

  // Each request has its rows, in their order.
  std::optional<std::string> DifferenceOf(const std::string& name, const Tensor& actual, const Batch& batch) const {
    const KnownValue& value = *known_.Find(name);
    if (batch.size() == 1) return DifferenceOf(actual, *value.exact[batch.front()], value.drift);
    int64_t rows = 0;
    for (const size_t request : batch) rows += known_.sizes()[request].rows;
    if (actual.shape.empty() || actual.shape[0] != rows) {
      return Concat("has shape ", ShapeText(actual.shape), " for ", rows, " rows");
    }
    const size_t row = actual.bytes.size() / static_cast<size_t>(rows);
    size_t begin = 0;
    for (const size_t request : batch) {
      Tensor part{actual.dtype, actual.shape, {}};
      part.shape[0] = known_.sizes()[request].rows;
      const size_t end = begin + static_cast<size_t>(part.shape[0]) * row;
      part.bytes.assign(actual.bytes.begin() + static_cast<ptrdiff_t>(begin),
                        actual.bytes.begin() + static_cast<ptrdiff_t>(end));
      begin = end;
      const auto difference = DifferenceOf(part, *value.exact[request], value.drift);
      if (difference) return Concat("of request ", request, " ", *difference);
    }
    return std::nullopt;
  }

  static std::optional<std::string> DifferenceOf(const Tensor& actual, const Tensor& expected, double drift) {
    const double distance = Distance(actual, expected);
    const double allowed = kTolerance + kTimesDrift * drift;
    if (distance <= allowed) return std::nullopt;
    if (actual.dtype != expected.dtype || actual.shape != expected.shape) {
      return Concat("is ", DTypeName(actual.dtype), " ", ShapeText(actual.shape), " instead of ",
                    DTypeName(expected.dtype), " ", ShapeText(expected.shape));
    }
    return Concat("differs by ", distance, " of its scale, where ", allowed, " is allowed");
  }

  const DrawnGraph& graph_;
  const Evaluation& known_;
};

// Sizes come for the first time, after others, and again; a device records them in between.
const std::vector<Batch> kInTurn = {{0}, {1}, {2}, {0}, {0}, {2}, {1}};
const std::vector<Batch> kTogether = {{0, 1}, {1, 0}, {0, 1}, {1, 0, 1, 0, 1, 1}, {2, 2}};

}  // namespace

const char* NameOf(Way way) {
  switch (way) {
    case Way::kInterpreter:
      return "interpreter";
    case Way::kBatch:
      return "batch";
    case Way::kRegions:
      return "regions";
    case Way::kRegionsBatch:
      return "regions, in a batch";
    case Way::kDevice:
      return "device";
    case Way::kDeviceBatch:
      return "device, in a batch";
  }
  return "";
}

Comparer::Comparer() : host_(NewCpuBackend()), stream_(*host_->NewStream(1)) {}

Comparison Comparer::CompareHere(const Drawing& drawing, uint64_t seed, const std::function<void(Way)>& begins) {
  Comparison result;
  const DrawnGraph& graph = drawing.graph;
  Evaluation known(drawing.sizes, seed, *stream_);
  result.is_valid = !graph.outputs.empty() && known.Add(graph).ok();
  if (!result.is_valid) return result;
  const Comparing comparing(graph, known);
  const auto differs = [&](Way way, const std::vector<Batch>& batches, const RunOn& run) {
    begins(way);
    std::optional<std::string> text = comparing.DifferenceIn(batches, run);
    if (text) result.difference = {way, *std::move(text)};
    return result.difference.has_value();
  };
  const auto program = interpreter::ReadProgram(std::span<const std::byte>(graph.Bytes()));
  if (!program.ok()) {
    result.difference = {Way::kInterpreter, std::string(program.status().message())};
    return result;
  }
  const interpreter::Limits limits = {.max_array_bytes = 1 << 27, .max_live_bytes = 1 << 29};
  const auto interpret = [&](std::span<const TensorView> inputs) { return (*program)->Run(inputs, *stream_, limits); };
  result.has_independent_rows = (*program)->rows_are_independent();
  if (differs(Way::kInterpreter, kInTurn, interpret)) return result;
  if (result.has_independent_rows && differs(Way::kBatch, kTogether, interpret)) return result;

  const PlanOptions options{.threads = 1, .tuning_budget = absl::ZeroDuration()};
  const regions::ExpectedRequests requests{.limits = limits};
  const auto run_regions = [&](const regions::RegionalProgram& regional, Way way, Way batch_way) {
    const auto runner = regional.NewRunner(*host_, 1, limits);
    if (!runner.ok()) result.difference = {way, std::string(runner.status().message())};
    if (!runner.ok()) return;
    const auto run = [&](std::span<const TensorView> inputs) { return (*runner)->Run(inputs); };
    if (!differs(way, kInTurn, run) && result.has_independent_rows) differs(batch_way, kTogether, run);
  };
  begins(Way::kRegions);
  const auto on_host = regions::PlanRegions(*program, *host_, options, requests);
  result.has_regions = !on_host.regions.empty();
  if (result.has_regions) run_regions(on_host, Way::kRegions, Way::kRegionsBatch);
  if (result.difference) return result;
  begins(Way::kDevice);
  const auto on_device = regions::PlanRegions(*program, {*host_, &device_, &device_.functions()}, options, requests);
  result.has_device_regions = on_device.on_device != nullptr;
  if (result.has_device_regions) run_regions(on_device, Way::kDevice, Way::kDeviceBatch);
  return result;
}

namespace {

// What the process has to say, which nothing may end before it has said all.
struct Report {
  Way way = Way::kInterpreter;
  bool is_valid = true, has_independent_rows = false, has_regions = false, has_device_regions = false, differs = false;
  char text[400] = "it ended, or took more than a minute";
};

constexpr unsigned kSeconds = 60;

}  // namespace

Comparison Comparer::Compare(const Drawing& drawing, uint64_t seed) {
  void* const shared = mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  SWIZZLE_CHECK(shared != MAP_FAILED);
  Report& report = *new (shared) Report();
  const pid_t child = fork();
  SWIZZLE_CHECK(child >= 0);
  if (child == 0) {
    alarm(kSeconds);
    const Comparison compared = CompareHere(drawing, seed, [&](Way way) { report.way = way; });
    report = {report.way,
              compared.is_valid,
              compared.has_independent_rows,
              compared.has_regions,
              compared.has_device_regions,
              compared.difference.has_value(),
              ""};
    if (compared.difference) {
      report.way = compared.difference->way;
      std::snprintf(report.text, sizeof(report.text), "%s", compared.difference->text.c_str());
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Comparison result{report.is_valid, report.has_independent_rows, report.has_regions, report.has_device_regions};
  const bool ended = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  if (ended || report.differs) result.difference = {report.way, report.text};
  munmap(shared, sizeof(Report));
  return result;
}

}  // namespace swizzle::random_graphs
