#include "server/engine/opened_model.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "kernels/cpu/runtime/available_cpus.h"
#include "model_loader/compiled/compile.h"
#include "model_loader/files/printable_name.h"
#include "model_loader/load/loader.h"
#include "model_loader/plan/planner.h"
#include "model_loader/text/text_task.h"
#include "server/model/derived_spec.h"
#include "server/model/text_files.h"

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
    const Devices& devices = opened_.devices;
    LoadLimits limits;
    std::optional<TextFiles> text;
    if (!options_.asked.text.empty()) {
      SWIZZLE_ASSIGN_OR_RETURN(text, ReadTextFiles(opened_.file, *text::TextTaskOf(options_.asked.text)));
      limits.revise = RevisionOf(*text);
    }
    SWIZZLE_ASSIGN_OR_RETURN(RunnableModel runnable, LoadRunnableModel(opened_.file, limits));
    SWIZZLE_RETURN_IF_ERROR(DeclareOutputs(runnable, devices.cpu(), options_.threads));
    const ModelInterface interface = InterfaceOf(runnable);
    SWIZZLE_ASSIGN_OR_RETURN(ModelSpec spec, DeriveSpec(interface));
    spec = Asked(std::move(spec));
    if (text) SWIZZLE_RETURN_IF_ERROR(TextSpec(spec, text->pipeline).status());
    const std::vector<Backend*> backends = {&devices.main()};
    const CompilePlace place{.devices = devices,
                             .backends = backends,
                             .options = [&](const Backend& backend) { return PlanOptionsFor(backend); },
                             .tunable = tunable()};
    SWIZZLE_ASSIGN_OR_RETURN(Compiled compiled, Compile(WithServedInputs(std::move(runnable), spec), place));
    opened_.on_gpu = compiled.models.front().on_device();
    spec.instance_kind = opened_.on_gpu ? InstanceKind::kGpu : InstanceKind::kCpu;
    if (!opened_.on_gpu) SWIZZLE_RETURN_IF_ERROR(CheckComputes(devices.cpu(), options_.precision));
    opened_.tuners = std::move(compiled.tuners);
    SWIZZLE_ASSIGN_OR_RETURN(
        opened_.served, NewServedModel(std::move(spec), std::move(compiled.models), {.threads = options_.threads}));
    opened_.model = opened_.served;
    if (!text) return absl::OkStatus();
    SWIZZLE_ASSIGN_OR_RETURN(ModelSpec of_texts, TextSpec(opened_.served->spec(), text->pipeline));
    const int64_t longest = LongestOf(interface.longest, of_texts.max_batch_tokens);
    opened_.model = NewTextModel(std::move(of_texts), opened_.served, RulesOf(*text, longest));
    return absl::OkStatus();
  }

 private:
  ModelSpec Asked(ModelSpec spec) const {
    spec.name = NameOf(opened_.file);
    spec.precision = options_.precision;
    spec.instance_count = options_.asked.concurrency;
    if (spec.max_batch_size > 0) spec.max_batch_size = options_.asked.max_batch;
    return spec;
  }

  bool tunable() const { return options_.asked.tuning_budget > absl::ZeroDuration(); }

  PlanOptions PlanOptionsFor(const Backend& backend) const {
    // The cache is the main device's.
    const bool main = &backend == &opened_.devices.main();
    return {.max_batch = options_.asked.max_batch,
            .threads = options_.threads,
            .precision = options_.precision,
            .tuning_budget = options_.asked.tuning_budget,  // none where it is not tunable
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
  if (!options.text.empty() && !text::TextTaskOf(options.text)) {
    return InvalidArgument("option 'text' is ", QuotedName(options.text), "; it may be ", text::kTextTaskNames,
                           ", or empty");
  }
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
