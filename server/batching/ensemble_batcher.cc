#include "server/batching/ensemble_batcher.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "server/model/input_default.h"
#include "server/model/prepared_request.h"
#include "server/model/wire_shape.h"
#include "server/telemetry/containment.h"
#include "server/telemetry/no_metrics.h"
#include "server/tracing/sampled_request.h"

namespace swizzle {
namespace {

// One request on its way.
struct Run {
  struct Tensor {
    Shape shape;
    std::span<const std::byte> bytes;
    std::string made;         // holds `bytes`, but of the ensemble's inputs
    size_t readers_left = 0;  // steps that have yet to read it
  };
  struct Step {
    size_t missing = 0;  // tensors
    Ticket ticket = 0;   // 0: it is not queued yet
    bool under_way = false;
    Instant begun;
    std::unique_ptr<SampledRequest> sample = nullptr;  // null: it is not traced, or has not begun
  };

  Run(const EnsembleGraph& graph, Request its_request, Done its_done, Instant now)
      : request(std::move(its_request)), done(std::move(its_done)), arrival(now) {
    tensors.resize(graph.tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) tensors[i].readers_left = graph.tensors[i].readers.size();
    for (size_t i = 0; i < request.inputs.size(); ++i) {
      tensors[i].shape = request.inputs[i].shape;
      tensors[i].bytes = request.inputs[i].bytes;
    }
    steps.resize(graph.steps.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      steps[i].missing = static_cast<size_t>(std::ranges::count_if(
          graph.steps[i].reads, [this](size_t tensor) { return tensor >= request.inputs.size(); }));
    }
  }

  Request request;  // its inputs: until the end
  Done done;
  const Instant arrival;
  Ticket ticket = 0;

  Mutex mutex;
  std::vector<Tensor> tensors ABSL_GUARDED_BY(mutex);  // a tensor does not change once it is made, until it is read
  std::vector<Step> steps ABSL_GUARDED_BY(mutex);
  size_t under_way ABSL_GUARDED_BY(mutex) = 1;  // steps, and whoever is about to begin some
  absl::Duration queued ABSL_GUARDED_BY(mutex);
  Status failed ABSL_GUARDED_BY(mutex);
};
using RunPtr = std::shared_ptr<Run>;

Status ShuttingDown(const ModelSpec& spec) {
  return MakeError(StatusCode::kUnavailable, "model '", spec.name, "' is shutting down");
}

class EnsembleBatcher final : public Batcher {
 public:
  EnsembleBatcher(std::shared_ptr<const Model> model, EnsembleGraph graph, std::vector<EnsembleMember> members,
                  Clock& clock, ModelMetrics& metrics)
      : model_(std::move(model)),
        graph_(std::move(graph)),
        members_(std::move(members)),
        clock_(clock),
        metrics_(metrics) {
    for (size_t i = 0; i < graph_.steps.size(); ++i) {
      const auto from_client = [this](size_t tensor) { return tensor < spec().inputs.size(); };
      if (std::ranges::all_of(graph_.steps[i].reads, from_client)) first_.push_back(i);
    }
  }
  ~EnsembleBatcher() override {
    Drain([] {});
  }

  // What the steps that a request begins with say.
  Status CheckRoom(uint64_t connection, Instant deadline) const override {
    for (const size_t step : first_) {
      SWIZZLE_RETURN_IF_ERROR(Annotate(members_[step].batcher->CheckRoom(connection, deadline), NameOf(step)));
    }
    return absl::OkStatus();
  }

  StatusOr<Ticket> Submit(Request request, Done done) override {
    const auto run = std::make_shared<Run>(graph_, std::move(request), std::move(done), clock_.Now());
    {
      const MutexLock lock(mutex_);
      if (draining_) {
        metrics_.RecordRejected(Rejection::kDraining, absl::ZeroDuration());
        return ShuttingDown(spec());
      }
      run->ticket = ++last_ticket_;
      runs_[run->ticket] = run;
    }
    metrics_.AddInflight(1);
    const Ticket ticket = run->ticket;
    for (const size_t step : first_) Begin(run, step);
    LetGo(run);
    return ticket;
  }

  void Cancel(Ticket ticket) override {
    RunPtr run;
    {
      const MutexLock lock(mutex_);
      const auto found = runs_.find(ticket);
      if (found == runs_.end()) return;
      run = found->second;
    }
    Fail(run, absl::CancelledError("the request was cancelled on its way through the ensemble"));
  }

  void Drain(absl::FunctionRef<void()> progress) override {
    const MutexLock lock(mutex_);
    draining_ = true;
    while (!runs_.empty() || ending_ > 0) {
      ended_.Wait(mutex_);
      progress();
    }
  }

  int64_t queued() const override { return 0; }  // the steps' queues have them
  void HoldUntilQueued(int64_t) override {}      // likewise

 private:
  const ModelSpec& spec() const { return model_->spec(); }
  std::string NameOf(size_t step) const {
    return Concat("step ", step + 1, " of '", spec().name, "', model '", members_[step].model->spec().name, "'");
  }

  void Begin(const RunPtr& run, size_t step) {
    {
      const MutexLock lock(run->mutex);
      if (!run->failed.ok()) return;
      ++run->under_way;
      run->steps[step].under_way = true;
      run->steps[step].begun = clock_.Now();
    }
    Status status = Contain("run a step", [&] { return SubmitStep(run, step); });
    if (!status.ok()) OnStep(run, step, std::move(status));
  }

  // The step may have ended when it returns.
  Status SubmitStep(const RunPtr& run, size_t step) {
    SWIZZLE_ASSIGN_OR_RETURN(Request request, RequestOf(*run, step));
    if (const SampledRequest* const sample = run->request.sample; sample != nullptr && sample->traced) {
      const MutexLock lock(run->mutex);
      Run::Step& its = run->steps[step];
      its.sample = sample->Step(its.begun);
      its.sample->model = members_[step].model->spec().name;
      its.sample->version = members_[step].model->spec().version;
      its.sample->Attach(request);
    }
    Batcher& batcher = *members_[step].batcher;
    SWIZZLE_ASSIGN_OR_RETURN(const Ticket ticket,
                             batcher.Submit(std::move(request), [this, run, step](StatusOr<Result> result) {
                               OnStep(run, step, std::move(result));
                             }));
    bool unwanted;
    {
      const MutexLock lock(run->mutex);
      run->steps[step].ticket = ticket;
      unwanted = !run->failed.ok() && run->steps[step].under_way;
    }
    if (unwanted) batcher.Cancel(ticket);
    return absl::OkStatus();
  }

  // Shapes are known only now where specifications leave them open.
  StatusOr<Request> RequestOf(Run& run, size_t step) const {
    const Model& model = *members_[step].model;
    const ModelSpec& its = model.spec();
    Request request;
    request.inputs.resize(its.inputs.size());
    bool rows_known = false;
    for (size_t i = 0; i < its.inputs.size(); ++i) {
      const EnsembleGraph::Port& tensor = graph_.steps[step].inputs[i];
      if (!tensor) continue;
      TensorView& view = request.inputs[i];
      view.dtype = its.inputs[i].dtype;
      {
        const MutexLock lock(run.mutex);
        view.shape = run.tensors[*tensor].shape;
        view.bytes = run.tensors[*tensor].bytes;
      }
      const int64_t rows = BatchDims(its) > 0 && !view.shape.empty() ? view.shape[0] : 1;
      const int64_t most = BatchDims(its) > 0 ? its.max_batch_size : 1;
      if (!ShapeFits(its, its.inputs[i], view.shape) || rows < 1 || rows > most) {
        return InvalidArgument("tensor '", graph_.tensors[*tensor].name, "' has shape ", ShapeText(view.shape),
                               "; its input '", its.inputs[i].name, "' takes ", ShapeText(WireDims(its, its.inputs[i])),
                               ", and ", most, " rows at most");
      }
      if (rows_known && rows != request.rows) {
        return InvalidArgument("its input '", its.inputs[i].name, "' has a batch of ", rows, ", and another one of ",
                               request.rows);
      }
      rows_known = true;
      request.rows = rows;
      view.shape = ModelShape(its, its.inputs[i], view.shape);
    }
    for (size_t i = 0; i < its.inputs.size(); ++i) {
      if (!graph_.steps[step].inputs[i]) request.inputs[i] = DefaultView(its, its.inputs[i], request.rows);
    }
    request.level = its.default_priority;
    request.deadline = run.request.deadline;
    request.connection = run.request.connection;
    request.budget = run.request.budget;
    request.text_options = run.request.text_options;
    SWIZZLE_RETURN_IF_ERROR(PrepareRequest(model, request));
    return request;
  }

  // A step has ended, or was refused.
  void OnStep(const RunPtr& run, size_t step, StatusOr<Result> result) {
    const Instant now = clock_.Now();
    Instant begun;
    {
      const MutexLock lock(run->mutex);
      Run::Step& its = run->steps[step];
      its.under_way = false;
      begun = its.begun;
      if (its.sample != nullptr) {
        its.sample->code = result.status().code();
        its.sample->end = now;
      }
    }
    if (ModelMetrics* const metrics = members_[step].metrics; metrics != nullptr) {
      metrics->RecordRequest(result.status().code(), now - begun);
    }
    const Status status = Contain("go on with the ensemble", [&]() -> Status {
      if (!result.ok()) return Annotate(result.status(), NameOf(step));
      SWIZZLE_ASSIGN_OR_RETURN(const std::vector<size_t> ready, Take(*run, step, *std::move(result)));
      for (const size_t next : ready) Begin(run, next);
      return absl::OkStatus();
    });
    if (!status.ok()) Fail(run, status);
    LetGo(run);
  }

  // Keeps what a step has made, and drops what it was the last to read. Returns the steps that can begin.
  StatusOr<std::vector<size_t>> Take(Run& run, size_t step, Result result) {
    const ModelSpec& its = members_[step].model->spec();
    std::vector<size_t> ready;
    int64_t more = 0;
    {
      const MutexLock lock(run.mutex);
      run.queued += result.queue;
      for (size_t i = 0; i < its.outputs.size(); ++i) {
        const EnsembleGraph::Port& port = graph_.steps[step].outputs[i];
        if (!port) continue;
        Run::Tensor& tensor = run.tensors[*port];
        tensor.shape = WireShape(its, its.outputs[i], result.shapes[i]);
        tensor.made = std::move(result.outputs[i]);
        tensor.bytes = std::as_bytes(std::span(tensor.made));
        if (!graph_.tensors[*port].output)
          more += static_cast<int64_t>(tensor.made.size());  // the answer counts itself
        for (const size_t reader : graph_.tensors[*port].readers) {
          if (--run.steps[reader].missing == 0) ready.push_back(reader);
        }
      }
      for (const size_t read : graph_.steps[step].reads) {
        Run::Tensor& tensor = run.tensors[read];
        if (--tensor.readers_left > 0 || graph_.tensors[read].output) continue;
        more -= static_cast<int64_t>(tensor.made.size());
        tensor.made = std::string();
      }
    }
    if (run.request.budget != nullptr) SWIZZLE_RETURN_IF_ERROR(run.request.budget->Add(more));
    return ready;
  }

  // No further step begins, and those that wait in queues end.
  void Fail(const RunPtr& run, const Status& why) {
    Contain("end the request", [&] {
      std::vector<std::pair<Batcher*, Ticket>> queued;
      {
        const MutexLock lock(run->mutex);
        if (run->failed.ok()) run->failed = why;
        for (size_t i = 0; i < run->steps.size(); ++i) {
          if (run->steps[i].under_way && run->steps[i].ticket != 0) {
            queued.emplace_back(members_[i].batcher, run->steps[i].ticket);
          }
        }
      }
      for (const auto& [batcher, ticket] : queued) batcher->Cancel(ticket);
      return absl::OkStatus();
    }).IgnoreError();
  }

  // Ends the request once nothing of it is under way.
  void LetGo(const RunPtr& run) {
    {
      const MutexLock lock(run->mutex);
      if (--run->under_way > 0) return;
    }
    {
      const MutexLock lock(mutex_);
      runs_.erase(run->ticket);
      ++ending_;
    }
    StatusOr<Result> result = Contain("end the request", [&] {
      ShowSteps(*run);
      return ResultOf(*run);
    });
    metrics_.AddInflight(-1);
    std::move(run->done)(std::move(result));
    const MutexLock lock(mutex_);
    --ending_;
    if (draining_) ended_.SignalAll();
  }

  static void ShowSteps(Run& run) {
    const MutexLock lock(run.mutex);
    for (Run::Step& step : run.steps) {
      if (step.sample != nullptr) run.request.sample->steps.push_back(std::move(step.sample));
    }
  }

  StatusOr<Result> ResultOf(Run& run) {
    const Instant now = clock_.Now();
    const MutexLock lock(run.mutex);
    SWIZZLE_RETURN_IF_ERROR(run.failed);
    Result result;
    result.outputs.resize(spec().outputs.size());
    result.shapes.resize(spec().outputs.size());
    for (size_t i = 0; i < graph_.tensors.size(); ++i) {
      if (const auto& output = graph_.tensors[i].output) {
        result.outputs[*output] = std::move(run.tensors[i].made);
        result.shapes[*output] = std::move(run.tensors[i].shape);
      }
    }
    // Steps side by side may have waited longer together than the request took.
    result.queue = std::min(run.queued, now - run.arrival);
    result.compute = now - run.arrival - result.queue;
    result.batch_rows = run.request.rows;
    metrics_.RecordQueued(result.queue);
    metrics_.RecordBatch({.requests = 1,
                          .rows = run.request.rows,
                          .reason = BatchReason::kSingle,
                          .times = {.input = {}, .compute = result.compute, .output = {}}});
    if (SampledRequest* const sample = run.request.sample) {
      sample->stages = {.queued = run.arrival,
                        .begun = run.arrival + result.queue,
                        .input = {},
                        .compute = result.compute,
                        .output = {},
                        .batch_rows = result.batch_rows};
    }
    return result;
  }

  const std::shared_ptr<const Model> model_;
  const EnsembleGraph graph_;
  const std::vector<EnsembleMember> members_;  // [step]
  std::vector<size_t> first_;                  // steps that read nothing but the ensemble's inputs
  Clock& clock_;
  ModelMetrics& metrics_;

  Mutex mutex_;
  CondVar ended_;
  std::map<Ticket, RunPtr> runs_ ABSL_GUARDED_BY(mutex_);  // that have not ended
  int64_t ending_ ABSL_GUARDED_BY(mutex_) = 0;             // whose `done` runs
  Ticket last_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::unique_ptr<Batcher> NewEnsembleBatcher(std::shared_ptr<const Model> model, EnsembleGraph graph,
                                            std::vector<EnsembleMember> members, Clock& clock, ModelMetrics* metrics) {
  return std::make_unique<EnsembleBatcher>(std::move(model), std::move(graph), std::move(members), clock,
                                           OrNone(metrics));
}

}  // namespace swizzle
