#include "server/engine/engine.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>

#include "kernels/cuda/cuda_module.h"
#include "model_loader/files/printable_name.h"
#include "model_loader/pack/commands.h"
#include "server/engine/opened_model.h"
#include "server/engine/process.h"
#include "server/engine/run_slots.h"
#include "server/model/request_inputs.h"
#include "server/model/row_parts.h"
#include "server/model/wire_shape.h"
#include "server/telemetry/containment.h"

namespace swizzle::engine {
namespace {

// What a model is made of. Whoever tunes it keeps it, too, until what is measured has ended.
struct Core {
  std::unique_ptr<OpenedModel> opened;
  std::unique_ptr<RunSlots> slots;
};

// Notes how far tuning is.
class TuningProgress final : public TuningRecorder {
 public:
  explicit TuningProgress(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  void RecordTuning(const TuningRecord& record) override {
    core_->slots->NoteChanging(record.state == TuningState::kMeasuring);
    if (record.state == TuningState::kDone || record.state == TuningState::kFailed) over_ = true;
  }
  bool over() const { return over_; }

 private:
  const std::shared_ptr<Core> core_;
  std::atomic<bool> over_ = false;
};

// A session, until the end of the block.
class Turn {
 public:
  static StatusOr<Turn> Take(RunSlots& slots) {
    SWIZZLE_ASSIGN_OR_RETURN(Session * session, slots.Take());
    return Turn(slots, *session);
  }
  Turn(Turn&& other) noexcept : slots_(other.slots_), session_(std::exchange(other.session_, nullptr)) {}
  ~Turn() {
    if (session_ != nullptr) slots_.GiveBack(session_);
  }
  Session& session() { return *session_; }

 private:
  Turn(RunSlots& slots, Session& session) : slots_(slots), session_(&session) {}

  RunSlots& slots_;
  Session* session_;
};

// While there is one, nothing is measured.
class Busy {
 public:
  Busy() { Process::Get().activity().Add(1); }
  ~Busy() { Process::Get().activity().Add(-1); }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
};

TensorInfo InfoOf(const ModelSpec& spec, const TensorSpec& tensor) {
  return {tensor.name, std::string(DTypeName(tensor.dtype)), WireDims(spec, tensor), tensor.default_value != nullptr};
}

class OpenModelOfFile final : public Model {
 public:
  // REQUIRES: slots are there.
  explicit OpenModelOfFile(std::shared_ptr<Core> core)
      : core_(std::move(core)), model_(*core_->opened->model), spec_(model_.spec()), slots_(*core_->slots) {
    for (const TensorSpec& tensor : spec_.inputs) inputs_.push_back(InfoOf(spec_, tensor));
    for (const TensorSpec& tensor : spec_.outputs) outputs_.push_back(InfoOf(spec_, tensor));
  }
  ~OpenModelOfFile() override {
    slots_.End();
    if (slots_.inherited()) {  // threads of the parent's are part of it
      static_cast<void>(new auto(std::move(core_)));
      static_cast<void>(new auto(std::move(tuner_)));
      static_cast<void>(new auto(std::move(progress_)));
      return;
    }
    if (tuner_ != nullptr && progress_ != nullptr) tuner_->Drop(*progress_);
  }

  // Has what is not known measured, now or when there is time.
  void Tune() {
    OpenedModel& opened = *core_->opened;
    if (std::ranges::all_of(opened.tuners, [](const auto& tuner) { return tuner == nullptr; })) return;
    progress_ = std::make_shared<TuningProgress>(core_);
    TuningJob job{.model = spec_.name,
                  .served = std::shared_ptr<ServedModel>(core_, opened.served.get()),
                  .tuners = std::move(opened.tuners),
                  .recorder = progress_,
                  .budget = opened.options.asked.tuning_budget,
                  .cache = &opened.cache};
    if (opened.options.asked.tune_now) return BackgroundTuner::TuneNow(std::move(job));
    tuner_ = Process::Get().Tuner();
    tuner_->Add(std::move(job));
  }

  const std::string& name() const override { return spec_.name; }
  const std::vector<TensorInfo>& inputs() const override { return inputs_; }
  const std::vector<TensorInfo>& outputs() const override { return outputs_; }
  int64_t max_batch() const override { return spec_.max_batch_size; }
  std::map<std::string, std::string> properties() const override {
    if (!slots_.Usable().ok()) return {};
    return model_.facts()->properties;
  }
  bool tuned() const override { return progress_ == nullptr || progress_->over(); }

  StatusOr<std::vector<Output>> Run(std::span<const InputView> inputs, std::span<const std::string> outputs,
                                    const TextOptions& texts) override {
    return Contain("run the model", [&] { return RunHere(inputs, outputs, texts); });
  }

  StatusOr<std::string> Inspect(Format format) const override {
    return Contain("inspect the model", [&] { return InspectHere(format); });
  }

 private:
  StatusOr<std::vector<Output>> RunHere(std::span<const InputView> inputs, std::span<const std::string> outputs,
                                        const TextOptions& texts) {
    Request request;
    request.text_options = {.truncate = texts.truncate, .prompt = texts.prompt};
    SWIZZLE_RETURN_IF_ERROR(Read(inputs, request));
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<size_t> asked, IndicesOf(outputs));
    const int64_t rows = RowsOfParts(spec_, request);
    const bool whole = rows >= request.rows;
    SWIZZLE_RETURN_IF_ERROR(whole ? model_.CheckRequest(request.inputs).status() : CheckParts(request, rows));
    const Busy busy;
    SWIZZLE_ASSIGN_OR_RETURN(Turn turn, Turn::Take(slots_));
    RowResults results;
    SWIZZLE_RETURN_IF_ERROR(whole ? RunBatch(request.inputs, request.rows, turn.session(), results)
                                  : RunParts(request, rows, turn.session(), results));
    return Chosen(std::move(results), asked);
  }

  Status Read(std::span<const InputView> inputs, Request& request) const {
    RequestInputs read(spec_, std::numeric_limits<int64_t>::max());
    read.Begin(request);
    for (const InputView& input : inputs) {
      SWIZZLE_ASSIGN_OR_RETURN(const size_t index, read.Add(input.name, input.datatype, input.shape));
      TensorView& view = request.inputs[index];
      view.bytes = input.data;
      SWIZZLE_RETURN_IF_ERROR(CheckBytes(spec_, input.name, view));
    }
    SWIZZLE_RETURN_IF_ERROR(read.End());
    SWIZZLE_ASSIGN_OR_RETURN(EncodedInputs encoded, model_.Encode(request.inputs, request.text_options));
    request.owner = std::move(encoded.owner);
    return absl::OkStatus();
  }

  // Empty: all.
  StatusOr<std::vector<size_t>> IndicesOf(std::span<const std::string> names) const {
    std::vector<size_t> indices;
    for (const std::string& name : names) {
      SWIZZLE_ASSIGN_OR_RETURN(const size_t index, IndexOfOutput(spec_, name));
      if (std::ranges::find(indices, index) != indices.end()) {
        return InvalidArgument("output ", QuotedName(name), " of model '", spec_.name, "' is asked for twice");
      }
      indices.push_back(index);
    }
    return indices;
  }

  // All of them, before the first is run.
  Status CheckParts(const Request& request, int64_t rows) const {
    std::vector<TensorView> part;
    for (int64_t first = 0; first < request.rows; first += rows) {
      const int64_t its_rows = std::min(rows, request.rows - first);
      SWIZZLE_RETURN_IF_ERROR(TakeRows(spec_, request.inputs, first, its_rows, part));
      const Status checked = model_.CheckRequest(part).status();
      if (!checked.ok()) return Annotate(checked, Concat("in rows ", first, " to ", first + its_rows - 1));
    }
    return absl::OkStatus();
  }

  static Status RunBatch(std::span<const TensorView> inputs, int64_t rows, Session& session, RowResults& results) {
    BatchItem item{.inputs = inputs, .rows = rows, .outputs = &results.outputs, .output_shapes = &results.shapes};
    BatchTimes times;
    return session.Run(std::span(&item, 1), times);
  }

  Status RunParts(const Request& request, int64_t rows, Session& session, RowResults& results) const {
    std::vector<TensorView> part;
    for (int64_t first = 0; first < request.rows; first += rows) {
      const int64_t its_rows = std::min(rows, request.rows - first);
      SWIZZLE_RETURN_IF_ERROR(TakeRows(spec_, request.inputs, first, its_rows, part));
      RowResults its;
      SWIZZLE_RETURN_IF_ERROR(RunBatch(part, its_rows, session, its));
      SWIZZLE_RETURN_IF_ERROR(AppendRows(spec_, std::move(its), request.rows, results.outputs, results.shapes));
    }
    return absl::OkStatus();
  }

  std::vector<Output> Chosen(RowResults results, std::span<const size_t> asked) const {
    std::vector<Output> chosen;
    const size_t count = asked.empty() ? outputs_.size() : asked.size();
    chosen.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      const size_t index = asked.empty() ? i : asked[i];
      const TensorInfo& info = outputs_[index];
      chosen.push_back({info.name, info.datatype, WireShape(spec_, spec_.outputs[index], results.shapes[index]),
                        std::move(results.outputs[index])});
    }
    return chosen;
  }

  StatusOr<std::string> InspectHere(Format format) const {
    SWIZZLE_RETURN_IF_ERROR(slots_.Usable());
    OpenedModel& opened = *core_->opened;
    pack::InspectCommand command;
    command.model = opened.file;
    command.json = format == Format::kJson;
    command.threads = opened.options.threads;
    command.device = opened.options.asked.device;
    command.precision = opened.options.precision;
    command.max_batch = opened.options.asked.max_batch;
    command.tuning_budget = absl::ZeroDuration();
    std::ostringstream out, err;
    pack::Terminal terminal{out, err};
    const bool page = format == Format::kHtml;
    SWIZZLE_ASSIGN_OR_RETURN(pack::Inspection inspection, pack::Inspect(command, page, &opened.cache, terminal));
    return page ? std::move(inspection.page) : std::move(inspection.text);
  }

  std::shared_ptr<Core> core_;
  swizzle::Model& model_;
  const ModelSpec& spec_;
  RunSlots& slots_;
  std::vector<TensorInfo> inputs_, outputs_;
  std::shared_ptr<TuningProgress> progress_;  // null: nothing is tuned
  std::shared_ptr<BackgroundTuner> tuner_;    // null: likewise, or nothing is any more
};

}  // namespace

std::string Version() { return SWIZZLE_VERSION; }

void UseCudaModule(const std::filesystem::path& file) { cuda::UseModule(file); }

StatusOr<std::unique_ptr<Model>> Model::Open(const std::filesystem::path& file, const Options& options) {
  return Contain("open the model", [&]() -> StatusOr<std::unique_ptr<Model>> {
    auto core = std::make_shared<Core>();
    SWIZZLE_ASSIGN_OR_RETURN(core->opened, OpenModel(file, options));
    SWIZZLE_ASSIGN_OR_RETURN(core->slots,
                             RunSlots::New(*core->opened->model, options.concurrency, !core->opened->on_gpu));
    auto model = std::make_unique<OpenModelOfFile>(std::move(core));
    model->Tune();
    return model;
  });
}

}  // namespace swizzle::engine
