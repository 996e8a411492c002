#include "server/repository/directory_loader.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <system_error>
#include <utility>

#include "kernels/cpu/runtime/available_cpus.h"
#include "kernels/cpu/runtime/start_threads.h"
#include "model_loader/compiled/compile.h"
#include "model_loader/files/printable_name.h"
#include "model_loader/load/loader.h"
#include "model_loader/plan/plan_tuner.h"
#include "server/config/config_parameters.h"
#include "server/config/label_files.h"
#include "server/config/model_config.h"
#include "server/config/served_spec.h"
#include "server/memory/memory_trim.h"
#include "server/model/derived_spec.h"
#include "server/model/identity_model.h"
#include "server/model/served_model.h"
#include "server/model/text_files.h"
#include "server/model/text_model.h"
#include "server/repository/ensemble_loader.h"
#include "server/repository/load_failure.h"
#include "server/repository/model_directory.h"
#include "server/repository/model_memory.h"
#include "server/repository/started_model.h"
#include "server/repository/warm_up.h"
#include "server/telemetry/containment.h"
#include "server/telemetry/logging.h"
#include "server/threading/low_priority.h"

namespace swizzle {

namespace fs = std::filesystem;

namespace {

// The niceness of a load beside serving: it takes a tenth of a processor that requests want. As their equal it had
// their slowest wait 1.7 times as long; where processors are free, it is as fast.
constexpr int kNice = 10;
// And it computes on one thread. By all of 16 processors a reload of 100 MB took 2.8 s instead of 3.2 s, but another
// model's p99 was 1.5 to 1.6 times as long as without reloads, not 1.2 to 1.3 times: a plan waits for its slowest
// thread. At the priority that is taken when nothing else wants the processor it was 1.2 times, and 3.6 s; under full
// load, such a load might not end.
constexpr int kThreadsAside = 1;

// What batches of token sequences are filled to on the CPU, for each thread. With more, kernels are no faster, and
// whoever comes while a batch runs waits longer.
constexpr int64_t kPreferredTokensOfThread = 512;

bool WantsGpu(const inference::ModelConfig& config) {
  return std::ranges::any_of(config.instance_group(), [](const inference::ModelInstanceGroup& group) {
    return group.kind() == inference::ModelInstanceGroup::KIND_GPU || !group.gpus().empty();
  });
}

bool HasTuner(const std::vector<std::unique_ptr<PlanTuner>>& tuners) {
  return std::ranges::any_of(tuners, [](const auto& tuner) { return tuner != nullptr; });
}

class DirectoryLoader {
 public:
  DirectoryLoader(const VersionFolder& folder, const LoadingPlace& place)
      : place_(place),
        options_(place.options),
        devices_(place.devices),
        tuner_(place.tuner),
        claim_(place.rooms, options_.resident_bytes),
        turns_(place.turns),
        threads_(place.threads),
        model_place_(folder.place),
        name_(folder.name),
        version_(folder.version),
        may_lower_batch_(folder.may_lower_batch),
        aside_(folder.aside),
        check_unchanged_(folder.check_unchanged) {}

  StatusOr<std::shared_ptr<ServingModel>> Load(const std::optional<inference::ModelConfig>& config) {
    const Instant start = options_.clock->Now();
    if (config) {
      LogNoticesOf(*config);
      named_gpus_ = NamedGpus(*config);
    }
    StatusOr<std::shared_ptr<Model>> model = config && IsIdentity(*config) ? LoadIdentity(*config) : LoadFile(config);
    SWIZZLE_RETURN_IF_ERROR(check_unchanged_());  // which is why it could not be read, if it could not
    SWIZZLE_RETURN_IF_ERROR(model);
    return Serve(*std::move(model), config.value_or(inference::ModelConfig()), options_.clock->Now() - start);
  }

 private:
  void LogNoticesOf(const inference::ModelConfig& config) const {
    LogConfigNotices(name_, config, options_);
    if (!WantsGpu(config) || !devices_.gpus().empty()) return;
    Log(LogLevel::kWarning, "the model runs on the CPU, for the server has no GPU",
        {{"model", name_}, {"field", "instance_group.kind"}, {"why", devices_.reason()}});
  }

  StatusOr<std::shared_ptr<Model>> LoadIdentity(const inference::ModelConfig& config) {
    SWIZZLE_ASSIGN_OR_RETURN(ModelSpec spec, IdentitySpec(config, name_, version_));
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<ConfigNotice> notices, ReadLabels(model_place_.folder(), config, spec));
    LogNotices(name_, notices);
    return NewIdentityModel(std::move(spec), ExecuteDelay(config), RepeatCount(config));
  }

  // Threads that serve the model are started later, by one of the usual priority.
  StatusOr<std::shared_ptr<Model>> LoadFile(const std::optional<inference::ModelConfig>& config) {
    StatusOr<std::shared_ptr<Model>> model = absl::UnknownError("");
    const auto load = [&] { model = Contain("load the model", [&] { return LoadHere(config); }); };
    const TrimLater later;  // what reading and planning leave over
    aside_ ? RunAside(kNice, load) : load();
    return model;
  }

  StatusOr<std::shared_ptr<Model>> LoadHere(const std::optional<inference::ModelConfig>& config) {
    SWIZZLE_ASSIGN_OR_RETURN(const fs::path file,
                             ModelFile(model_place_, version_, config ? config->default_model_filename() : ""));
    while (true) {
      SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<Model> model, ReadModel(file, config));
      if (model != nullptr) return model;
    }
  }

  // Null where the model has no room in memory at the largest batch so far; then that is smaller now.
  StatusOr<std::shared_ptr<Model>> ReadModel(const fs::path& file,
                                             const std::optional<inference::ModelConfig>& config) {
    defaults_ = std::make_shared<InputDefaults>();
    LoadLimits limits{.ports = DeclaredPorts(config), .defaults = defaults_};
    if (const auto task = config ? TextTaskIn(*config) : std::nullopt) {
      SWIZZLE_ASSIGN_OR_RETURN(text_, ReadTextFiles(file, *task));
      limits.ports.clear();  // which are those of texts
      limits.revise = RevisionOf(*text_);
    }
    const int64_t bytes = FileBytes(file) + (text_ ? DenseBytes(*text_) : 0);
    SWIZZLE_ASSIGN_OR_RETURN(limits.external_bytes, claim_.LeftBesideFiles(bytes, limits.external_bytes));
    Log(LogLevel::kInfo, "reading model", {{"model", name_}, {"version", version_}});
    const Instant start = options_.clock->Now();
    SWIZZLE_ASSIGN_OR_RETURN(RunnableModel runnable, LoadRunnableModel(file, limits));
    Log(LogLevel::kInfo, "model read", {{"model", name_}, {"version", version_}, {"ms", MillisecondsSince(start)}});
    SWIZZLE_RETURN_IF_ERROR(DeclareOutputs(runnable, devices_.cpu(), options_.plan.threads));
    const ModelInterface interface = InterfaceOf(runnable);
    SWIZZLE_ASSIGN_OR_RETURN(ModelSpec spec, DeriveSpec(interface));
    if (text_) return ReadTextModel(std::move(runnable), interface, std::move(spec), *config);
    SWIZZLE_ASSIGN_OR_RETURN(spec, Configured(std::move(spec), ContainerOf(runnable), config));
    claim_.Limit(spec);
    return CompileModel(std::move(runnable), std::move(spec), config.value_or(inference::ModelConfig()));
  }

  // The configuration is that of the model of texts; what it says beside tensors holds for the encoder as well.
  StatusOr<std::shared_ptr<Model>> ReadTextModel(RunnableModel runnable, const ModelInterface& interface,
                                                 ModelSpec encoder, const inference::ModelConfig& config) {
    encoder.name = name_;
    SWIZZLE_ASSIGN_OR_RETURN(ModelSpec spec, TextSpec(encoder, text_->pipeline));
    SWIZZLE_ASSIGN_OR_RETURN(spec, Configured(std::move(spec), ContainerOf(runnable), config));
    claim_.Limit(spec);
    const std::vector<TensorSpec> inputs = spec.inputs, outputs = spec.outputs;
    spec.inputs = std::move(encoder.inputs);
    spec.outputs = std::move(encoder.outputs);
    if (spec.max_batch_size == 0 && encoder.max_batch_size > 0) {
      return InvalidArgument("max_batch_size is 0, but a model of texts has a batch of them: leave it out, or set it");
    }
    const int64_t longest = LongestOf(interface.longest, spec.max_batch_tokens);
    SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<Model> made, CompileModel(std::move(runnable), std::move(spec), {}));
    if (made == nullptr) return made;
    ModelSpec of_texts = made->spec();
    of_texts.inputs = inputs;
    of_texts.outputs = outputs;
    return NewTextModel(std::move(of_texts), std::move(made), RulesOf(*text_, longest));
  }

  static Status CheckOfCpu(Precision precision) {
    if (IsOfCpu(precision)) return absl::OkStatus();
    return Unimplemented(
        "parameter 'precision' is '", PrecisionName(precision),
        "', but the model runs on the CPU, which computes in FP32 or BF16; leave it out, or use a GPU");
  }

  // Null as ReadModel's is. Kernels are chosen by what is known now; tuners that know more later are kept.
  StatusOr<std::shared_ptr<Model>> CompileModel(RunnableModel runnable, ModelSpec spec,
                                                const inference::ModelConfig& config) {
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<Backend*> backends, BackendsFor(spec.instance_kind));
    if (backends[0] == &devices_.cpu()) SWIZZLE_RETURN_IF_ERROR(CheckOfCpu(spec.precision));
    interpreter::Limits limits{.budget = claim_.runs()};
    const Instant start = options_.clock->Now();
    SWIZZLE_ASSIGN_OR_RETURN(Compiled compiled,
                             CompileOn(backends, std::move(runnable), spec, {limits, WarmUp::ShapesOf(config, spec)}));
    const CompiledModel& first = compiled.models.front();
    LogCompiled(first, MillisecondsSince(start));
    SWIZZLE_RETURN_IF_ERROR(Place(compiled, spec));
    SWIZZLE_ASSIGN_OR_RETURN(const bool fits,
                             claim_.FindRoom(spec, compiled.models, backends, HasTuner(compiled.tuners), limits));
    if (!fits) {
      SWIZZLE_RETURN_IF_ERROR(LowerLargestBatch());
      return nullptr;
    }
    const int threads = PlanOptionsFor(spec, first.on_device() ? devices_.main() : devices_.cpu()).threads;
    if (!first.on_device() && spec.preferred_batch_tokens == 0) {
      spec.preferred_batch_tokens = kPreferredTokensOfThread * (threads > 0 ? threads : AvailableCpus());
    }
    SWIZZLE_ASSIGN_OR_RETURN(served_,
                             NewServedModel(std::move(spec), std::move(compiled.models), {threads, limits, turns_}));
    tuners_ = std::move(compiled.tuners);
    return std::shared_ptr<Model>(served_);
  }

  // On the GPUs that the model may have, or on the CPU.
  StatusOr<Compiled> CompileOn(const std::vector<Backend*>& backends, RunnableModel runnable, const ModelSpec& spec,
                               regions::ExpectedRequests requests) {
    const auto* const loaded = std::get_if<LoadedModel>(&runnable);
    if (loaded == nullptr) claim_.LimitRuns();
    for (Backend* const backend : backends) {
      if (loaded != nullptr)
        SWIZZLE_RETURN_IF_ERROR(claim_.CheckWeights(loaded->network.StoredWeightBytes(), *backend));
    }
    const auto options = [&, planned_whole = loaded != nullptr](const Backend& backend) {
      PlanOptions plan = PlanOptionsFor(spec, backend);
      if (planned_whole) plan.progress = LogProgress();
      if (tuner_ == nullptr) plan.tuning_budget = absl::ZeroDuration();
      return plan;
    };
    const bool wants_gpu = spec.instance_kind == InstanceKind::kGpu;
    const CompilePlace place{devices_, backends, options, tuner_ != nullptr, wants_gpu, std::move(requests)};
    SWIZZLE_ASSIGN_OR_RETURN(Compiled compiled, Compile(WithServedInputs(std::move(runnable), spec), place));
    const CompiledModel& first = compiled.models.front();
    if (first.on_device() || !wants_gpu || backends[0] == &devices_.cpu()) return compiled;
    return Unimplemented("'instance_group.kind' is KIND_GPU, but the model runs on the CPU alone: ",
                         first.regional()->not_on_device);
  }

  // Has the specification say where the model runs.
  Status Place(const Compiled& compiled, ModelSpec& spec) const {
    const CompiledModel& first = compiled.models.front();
    if (!first.on_device()) SWIZZLE_RETURN_IF_ERROR(CheckOfCpu(spec.precision));
    PlaceOn(first.on_device() ? InstanceKind::kGpu : InstanceKind::kCpu, static_cast<int>(compiled.models.size()),
            options_.cpu_executors, spec);
    if (first.plan() == nullptr) return absl::OkStatus();
    spec.pin_threads = PinsThreads(options_.pin_threads, PlanOptionsFor(spec, devices_.cpu()).threads,
                                   options_.plan.threads, AffinityCpus(), AvailableCpus());
    return absl::OkStatus();
  }

  Status LowerLargestBatch() const {
    if (!may_lower_batch_) {
      return MakeError(StatusCode::kResourceExhausted,
                       "beside what it is to replace there is too little memory: ", claim_.why(),
                       "; unload the model first, or give the server more memory");
    }
    Log(LogLevel::kWarning, "largest batch lowered",
        {{"model", name_}, {"version", version_}, {"largest", claim_.largest()}, {"reason", claim_.why()}});
    return absl::OkStatus();
  }

  // Of long work a line now and then.
  std::function<void(const PlanProgress&)> LogProgress() const {
    static constexpr absl::Duration kNowAndThen = absl::Seconds(2);
    return [last = options_.clock->Now(), name = name_, version = version_,
            clock = options_.clock](const PlanProgress& progress) mutable {
      if (clock->Now() - last < kNowAndThen) return;
      last = clock->Now();
      const bool measuring = progress.stage == PlanProgress::Stage::kMeasuring;
      Log(LogLevel::kInfo, measuring ? "tuning model" : "preparing model",
          {{"model", name}, {"version", version}, {"layers_done", progress.done}, {"layers", progress.all}});
    };
  }

  int64_t MillisecondsSince(Instant start) const { return absl::ToInt64Milliseconds(options_.clock->Now() - start); }

  // Has the plans tuned, now or when there is time.
  void HaveTuned(const std::shared_ptr<ServingModel>& serving) {
    if (tuner_ == nullptr || served_ == nullptr) return;
    if (!HasTuner(tuners_)) return serving->metrics->RecordTuning({.state = TuningState::kDone});
    TuningJob job{.model = name_,
                  .version = version_,
                  .served = std::move(served_),
                  .tuners = std::move(tuners_),
                  .recorder = std::shared_ptr<ModelMetrics>(serving, serving->metrics.get()),
                  .budget = options_.plan.tuning_budget,
                  .cache = options_.plan.tuning_cache};
    if (options_.tune == Tune::kBeforeReady) {
      tuner_->TuneNow(std::move(job));
    } else {
      tuner_->Add(std::move(job));
    }
  }

  // A model in regions is slower than its owner may expect.
  void LogCompiled(const CompiledModel& model, int64_t milliseconds) const {
    if (model.regional() != nullptr) return LogRegions(model.reason(), *model.regional());
    const PlanReport& report = model.plan()->report();
    Log(LogLevel::kInfo, "model planned",
        {{"model", name_},
         {"version", version_},
         {"ms", milliseconds},
         {"layers", static_cast<int64_t>(report.layers.size())},
         {"untimed", report.untimed}});
  }

  void LogRegions(const std::string& reason, const regions::RegionalProgram& regional) const {
    Log(LogLevel::kWarning, Concat("model runs ", regional.HowItRuns()),
        {{"model", name_},
         {"version", version_},
         {"reason", reason},
         {"regions", static_cast<int64_t>(regional.region_count())},
         {"layers", regional.layers()},
         {"nodes", static_cast<int64_t>(regional.interpreted_nodes())},
         {"operators", regional.OperatorCounts()},
         {"zeros", regional.ZerosText()},
         {"device", std::string(regional.on_device == nullptr ? "cpu" : regional.on_device->device().name())},
         {"device_nodes", regional.device_nodes()},
         {"not_on_device", regional.not_on_device}});
  }

  // Where there is no GPU, what asks for one runs on the CPU, as the log says.
  StatusOr<std::vector<Backend*>> BackendsFor(InstanceKind kind) const {
    if (kind == InstanceKind::kCpu || devices_.gpus().empty()) return std::vector<Backend*>{&devices_.cpu()};
    if (named_gpus_.empty()) return devices_.gpus();
    StatusOr<std::vector<Backend*>> named = devices_.GpusOf(named_gpus_);
    SWIZZLE_RETURN_IF_ERROR(Annotate(named.status(), "'instance_group.gpus'"));
    return named;
  }

  // A derived specification with what the caller knows and what a configuration says.
  StatusOr<ModelSpec> Configured(ModelSpec spec, const std::string& container,
                                 const std::optional<inference::ModelConfig>& config) const {
    spec.name = name_;
    spec.version = version_;
    spec.platform = PlatformOf(container);
    spec.backend = "swizzle";
    if (!config) return spec;
    SWIZZLE_ASSIGN_OR_RETURN(spec, ConfigureSpec(*config, std::move(spec), *defaults_));
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<ConfigNotice> notices, ReadLabels(model_place_.folder(), *config, spec));
    LogNotices(name_, notices);
    return spec;
  }

  // Executors of one model share its threads: two pools that spin on the same processors halve each other. `spec` may
  // not have been placed yet.
  PlanOptions PlanOptionsFor(const ModelSpec& spec, const Backend& backend) const {
    PlanOptions plan = options_.plan;
    // The cache is the main device's.
    if (backend.device_name() != devices_.main().device_name()) plan.tuning_cache = nullptr;
    plan.precision = spec.precision;
    if (spec.max_batch_size > 0) plan.max_batch = spec.max_batch_size;
    if (spec.max_batch_tokens > 0) plan.max_tokens = spec.max_batch_tokens;
    plan.max_batch = std::min(plan.max_batch, claim_.largest());
    const bool counts = spec.instances_given || &backend != &devices_.cpu();
    const int executors = counts ? spec.instance_count : options_.cpu_executors;
    if (plan.threads > 0) plan.threads = std::max(1, plan.threads / executors);
    if (aside_) plan.preparing_threads = kThreadsAside;
    return plan;
  }

  StatusOr<std::shared_ptr<ServingModel>> Serve(std::shared_ptr<Model> model, const inference::ModelConfig& config,
                                                absl::Duration load_time) {
    SWIZZLE_RETURN_IF_ERROR(CheckTensorNames(model->spec()));
    SWIZZLE_ASSIGN_OR_RETURN(Sessions sessions, WarmSessions(*model, config));
    const std::shared_ptr<ServingModel> serving = StartServing(model, config, load_time, place_);
    SWIZZLE_ASSIGN_OR_RETURN(serving->batcher,
                             NewBatcher(model, std::move(sessions), *options_.clock, serving->metrics.get(), threads_));
    KeepAnswers(place_, *serving);
    SWIZZLE_RETURN_IF_ERROR(Annotate(cpu::CheckThreads(kSpareThreads),
                                     "its threads would leave too few to answer calls with (fewer models, or less "
                                     "'--threads', take fewer)"));
    LogLoaded(*model, load_time);
    serving->memory_share = claim_.Take();
    HaveTuned(serving);
    return serving;
  }

  // Each of them has run the samples that the file asks for.
  StatusOr<Sessions> WarmSessions(Model& model, const inference::ModelConfig& config) const {
    SWIZZLE_ASSIGN_OR_RETURN(Sessions sessions, NewSessions(model, *options_.clock));
    if (config.model_warmup_size() == 0) return sessions;
    const Instant start = options_.clock->Now();
    SWIZZLE_ASSIGN_OR_RETURN(const WarmUp warm_up, WarmUp::Of(config, model, model_place_.folder()));
    for (const auto& session : sessions) SWIZZLE_RETURN_IF_ERROR(warm_up.Run(*session));
    Log(LogLevel::kInfo, "model warmed up",
        {{"model", name_},
         {"version", version_},
         {"samples", int64_t{config.model_warmup_size()}},
         {"ms", MillisecondsSince(start)}});
    return sessions;
  }

  const LoadingPlace& place_;
  const RepositoryOptions& options_;
  const Devices& devices_;
  BackgroundTuner* const tuner_;  // null: nothing is tuned
  MemoryClaim claim_;
  const std::shared_ptr<ComputeTurns> turns_;
  const std::shared_ptr<ExecutorThreads> threads_;
  const ModelPlace& model_place_;
  const std::string name_;
  const int64_t version_;
  const bool may_lower_batch_, aside_;
  const std::function<Status()>& check_unchanged_;
  std::vector<int> named_gpus_;                   // by the configuration
  std::shared_ptr<InputDefaults> defaults_;       // of the file that was read last
  std::optional<TextFiles> text_ = std::nullopt;  // what makes a model of texts of it; absent: it is none
  std::shared_ptr<ServedModel> served_;           // what is loaded, if a file is
  std::vector<std::unique_ptr<PlanTuner>> tuners_;
};

}  // namespace

StatusOr<std::shared_ptr<ServingModel>> LoadVersion(const VersionFolder& folder, const LoadingPlace& place) {
  StatusOr<std::shared_ptr<ServingModel>> serving = Contain("load the model", [&] {
    if (folder.config && IsEnsemble(*folder.config)) return LoadEnsemble(folder, place);
    return DirectoryLoader(folder, place).Load(folder.config);
  });
  if (serving.ok()) return serving;
  return ReasonForClients(serving.status(), folder.place.VersionFolder(folder.version));
}

}  // namespace swizzle
