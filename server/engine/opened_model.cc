#include "server/engine/opened_model.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "kernels/cpu/runtime/available_cpus.h"
#include "model_loader/files/printable_name.h"
#include "model_loader/load/loader.h"
#include "model_loader/plan/planner.h"
#include "model_loader/regions/declared_outputs.h"
#include "server/model/fallback_model.h"
#include "server/model/planned_model.h"

namespace swizzle::engine {
namespace {

constexpr int kMostThreads = 1024, kMostConcurrency = 1024;
constexpr int64_t kMostRows = 65536;

StatusOr<Precision> PrecisionOf(const std::string& text) {
  std::string upper = text;
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (const std::optional<Precision> precision = PrecisionFromName(upper)) return *precision;
  std::string names;
  for (const Precision each : kPrecisions) names += Concat(names.empty() ? "" : ", ", PrecisionName(each));
  return InvalidArgument("option 'precision' is ", QuotedName(text), "; it may be ", names);
}

Status CheckRange(const char* option, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return InvalidArgument("option '", option, "' is ", value, "; it may be ", least, " to ", most);
}

// What messages call it.
std::string NameOf(const std::filesystem::path& file) {
  const std::filesystem::path last = file.has_filename() ? file : file.parent_path();
  const std::string name = last.stem().string();
  return CheckName(name, "the model").ok() && !name.empty() ? name : "model";
}

class Opener {
 public:
  explicit Opener(OpenedModel& opened) : opened_(opened), options_(opened.options) {}

  Status Open() {
    SWIZZLE_RETURN_IF_ERROR(CheckComputes(opened_.devices.main(), options_.precision));
    SWIZZLE_ASSIGN_OR_RETURN(RunnableModel runnable, LoadRunnableModel(opened_.file));
    auto* const unplanned = std::get_if<FallbackModel>(&runnable);
    return unplanned == nullptr ? OpenPlanned(std::move(std::get<LoadedModel>(runnable)))
                                : OpenRegions(std::move(*unplanned));
  }

 private:
  Status OpenPlanned(LoadedModel loaded) {
    Backend& backend = opened_.devices.main();
    ModelSpec spec = Asked(DeriveSpec(loaded.network));
    PlaceOn(!HasHostMemory(backend), spec);
    SWIZZLE_ASSIGN_OR_RETURN(TunablePlan made,
                             PlanOn(backend, std::move(loaded.network), PlanOptionsFor(backend), tunable()));
    opened_.tuners.push_back(std::move(made.tuner));
    SWIZZLE_ASSIGN_OR_RETURN(opened_.plans, NewPlanModel(std::move(spec), {std::move(made.plan)}));
    opened_.model = opened_.plans;
    return absl::OkStatus();
  }

  Status OpenRegions(FallbackModel model) {
    const Devices& devices = opened_.devices;
    SWIZZLE_ASSIGN_OR_RETURN(model.program,
                             regions::WithDeclaredOutputs(std::move(model.program), devices.cpu(), options_.threads));
    SWIZZLE_ASSIGN_OR_RETURN(ModelSpec spec, DeriveInterpretedSpec(*model.program));
    spec = Asked(std::move(spec));
    const std::vector<Backend*> backends = {&devices.main()};
    const RegionsPlace place{devices, backends, [&](const Backend& backend) { return PlanOptionsFor(backend); },
                             tunable()};
    SWIZZLE_ASSIGN_OR_RETURN(
        std::vector<regions::TunableRegions> all,
        RegionsIn(place, WithServedInputs(std::move(model.program), spec), InstanceKind::kAuto, {}));
    regions::TunableRegions& made = all.front();
    const bool on_gpu = made.program.on_device != nullptr;
    if (!on_gpu) SWIZZLE_RETURN_IF_ERROR(CheckComputes(devices.cpu(), options_.precision));
    PlaceOn(on_gpu, spec);
    opened_.tuners.push_back(std::move(made.tuner));
    SWIZZLE_ASSIGN_OR_RETURN(opened_.model, NewFallbackModel(std::move(spec), model.reason, {std::move(made.program)},
                                                             devices.cpu(), {.threads = options_.threads}));
    return absl::OkStatus();
  }

  ModelSpec Asked(ModelSpec spec) const {
    spec.name = NameOf(opened_.file);
    spec.precision = options_.precision;
    spec.instance_count = options_.asked.concurrency;
    if (spec.max_batch_size > 0) spec.max_batch_size = options_.asked.max_batch;
    return spec;
  }

  void PlaceOn(bool gpu, ModelSpec& spec) {
    spec.instance_kind = gpu ? InstanceKind::kGpu : InstanceKind::kCpu;
    opened_.on_gpu = gpu;
  }

  bool tunable() const { return options_.asked.tuning_budget > absl::ZeroDuration(); }

  PlanOptions PlanOptionsFor(const Backend& backend) const {
    // The cache is the main device's.
    const bool main = &backend == &opened_.devices.main();
    return {.max_batch = options_.asked.max_batch,
            .threads = options_.threads,
            .precision = options_.precision,
            .tuning_budget = options_.asked.tuning_budget,
            .tuning_cache = main ? &opened_.cache : nullptr};
  }

  OpenedModel& opened_;
  const CheckedOptions& options_;
};

}  // namespace

StatusOr<CheckedOptions> Check(const Options& options) {
  CheckedOptions checked{.asked = options};
  SWIZZLE_RETURN_IF_ERROR(Annotate(ParseDevice(options.device).status(), "option 'device'"));
  SWIZZLE_ASSIGN_OR_RETURN(checked.precision, PrecisionOf(options.precision));
  SWIZZLE_RETURN_IF_ERROR(CheckRange("threads", options.threads, 0, kMostThreads));
  SWIZZLE_RETURN_IF_ERROR(CheckRange("concurrency", options.concurrency, 1, kMostConcurrency));
  SWIZZLE_RETURN_IF_ERROR(CheckRange("max_batch", options.max_batch, 1, kMostRows));
  if (options.tuning_budget < absl::ZeroDuration() || options.tuning_budget == absl::InfiniteDuration()) {
    return InvalidArgument("option 'tuning_budget' is ", absl::FormatDuration(options.tuning_budget),
                           "; it may be 0 or more, and has an end");
  }
  // Threads wait for each other by spinning: no more of them than processors.
  const int all = options.threads > 0 ? std::min(options.threads, AffinityCpus()) : AvailableCpus();
  const bool shared = options.threads > 0 || options.concurrency > 1;
  checked.threads = shared ? std::max(1, all / options.concurrency) : 0;
  return checked;
}

StatusOr<std::unique_ptr<OpenedModel>> OpenModel(const std::filesystem::path& file, const Options& options) {
  SWIZZLE_ASSIGN_OR_RETURN(CheckedOptions checked, Check(options));
  SWIZZLE_ASSIGN_OR_RETURN(Devices devices, Devices::Open(options.device));
  const Backend& main = devices.main();
  std::unique_ptr<OpenedModel> opened(new OpenedModel{.file = file,
                                                      .options = std::move(checked),
                                                      .devices = std::move(devices),
                                                      .cache = {options.tuning_cache, main}});
  SWIZZLE_RETURN_IF_ERROR(Annotate(opened->cache.status(), "option 'tuning_cache'"));
  SWIZZLE_RETURN_IF_ERROR(Opener(*opened).Open());
  return opened;
}

}  // namespace swizzle::engine
