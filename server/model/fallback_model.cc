#include "server/model/fallback_model.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/hash/hash.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "kernels/base/lru_cache.h"
#include "kernels/base/mutex.h"
#include "model_loader/offload/runner.h"
#include "server/model/batch_rows.h"
#include "server/model/layer_tally.h"
#include "server/model/pinned_pool.h"
#include "server/model/plan_model.h"
#include "server/model/rows_at_once.h"
#include "server/model/tensor_ports.h"

namespace swizzle {
namespace {

using interpreter::Array;
using interpreter::Port;
using interpreter::Program;
using interpreter::TensorPieces;

// A port's dimensions as a specification with this max_batch_size has them.
Shape SpecDims(const Port& port, int64_t max_batch_size) {
  const Shape& shape = *port.shape;
  return max_batch_size > 0 ? Shape(shape.begin() + 1, shape.end()) : shape;
}

StatusOr<TensorSpec> SpecOf(const Port& port, const std::string& kind, int64_t max_batch_size) {
  if (!port.dtype || !port.shape) {
    return Unimplemented(kind, " '", port.name, "' is declared without type or shape, which serving needs: give ",
                         "both in config.pbtxt, or run onnx.shape_inference.infer_shapes on the model");
  }
  return TensorSpec{port.name, *port.dtype, SpecDims(port, max_batch_size)};
}

// REQUIRES: types and shapes are declared.
std::vector<ModelPort> PortsOf(const std::vector<Port>& ports, int64_t max_batch_size) {
  std::vector<ModelPort> made;
  for (const Port& port : ports) made.push_back({port.name, *port.dtype, SpecDims(port, max_batch_size)});
  return made;
}

StatusOr<PortMap> Resolve(ModelSpec& spec, const Program& program) {
  if (spec.max_batch_size > 0 && !program.rows_are_independent()) {
    return InvalidArgument("model '", spec.name,
                           "' runs on the interpreter, and its requests are not known to be independent of "
                           "each other (",
                           *program.batch_obstacle(), "): max_batch_size must be 0, not ", spec.max_batch_size);
  }
  return ResolvePorts(spec, PortsOf(program.inputs(), spec.max_batch_size),
                      PortsOf(program.outputs(), spec.max_batch_size));
}

// An error's text, which says where by the names of a node and of those within it, with their operators instead.
std::string WithoutNames(const std::string& text, const Graph& graph) {
  for (const Node& node : graph.nodes) {
    const std::string described = Describe(node);
    if (!text.starts_with(described)) continue;
    std::string rest = text.substr(described.size());
    for (const auto& [name, attribute] : node.attributes) {
      const auto* const body = std::get_if<std::shared_ptr<const Body>>(&attribute);
      if (body != nullptr && rest.starts_with(": ")) rest = ": " + WithoutNames(rest.substr(2), (*body)->graph);
    }
    return node.op + rest;
  }
  return text;
}

// The hash is the same for requests that may share a batch, whose dimensions agree but for the batch's, and hardly ever
// for others.
uint64_t ClassOf(const ModelSpec& spec, std::span<const TensorView> inputs) {
  size_t hash = 0;
  for (const TensorView& input : inputs) {
    hash = absl::HashOf(hash, absl::MakeConstSpan(input.shape).subspan(spec.max_batch_size > 0 ? 1 : 0));
  }
  return hash;
}

class FallbackSession final : public Session {
 public:
  // Runs a program, on the host in turn with others; the program and the pool outlive it.
  struct Execution {
    const Program& program;
    const PinnedPool* pool;              // where requests' inputs may be; null: nowhere that a device reads
    std::unique_ptr<ExecutorTurn> turn;  // null: it takes none
    std::unique_ptr<interpreter::ProgramRunner> runner;
  };

  FallbackSession(const ModelSpec& spec, const PortMap& ports, Execution execution, Clock& clock)
      : spec_(spec), ports_(ports), execution_(std::move(execution)), clock_(clock) {}

  Status Run(std::span<BatchItem> batch, BatchTimes& times) override {
    const Instant start = clock_.Now();
    SWIZZLE_RETURN_IF_ERROR(CheckOneShape(batch));
    const BatchTurn turn(execution_.turn.get(), execution_.runner->threads());
    std::vector<int64_t> rows_of_items;
    for (BatchItem& item : batch) {
      rows_of_items.push_back(item.rows);
      item.outputs->assign(ports_.outputs.size(), std::string());
      item.output_shapes->resize(ports_.outputs.size());
    }
    const BatchRows rows(batch, std::move(rows_of_items));
    times = {};
    const uint64_t batch_class = ClassOf(spec_, batch[0].inputs);
    times.first_of_shape = IsFirstOfShape(batch_class, rows.total());
    if (spec_.max_batch_size == 0) {
      SWIZZLE_RETURN_IF_ERROR(RunAlone(batch[0], times));
    } else {
      RowsAtOnce& learned = LearnedOf(batch_class);
      const int64_t at_once = HasElements(batch[0]) ? learned.For(rows.total()) : rows.total();
      SWIZZLE_RETURN_IF_ERROR(RunAll(batch, rows, at_once, times));
      learned.Note(rows.total(), at_once, clock_.Now() - start);
    }
    last_class_ = batch_class;
    return {};
  }
  // Shapes that are new may have to be planned for, which takes longer than a borrowed thread has.
  bool RunsAtOnce(uint64_t batch_class) const override {
    return execution_.turn != nullptr && execution_.turn->idle() && batch_class == last_class_;
  }

 private:
  Status RunAll(std::span<BatchItem> batch, const BatchRows& rows, int64_t at_once, BatchTimes& times) {
    for (int64_t first = 0; first < rows.total(); first += at_once) {
      const RowRange range{first, std::min(first + at_once, rows.total())};
      SWIZZLE_RETURN_IF_ERROR(RunRows(batch, rows, range, times));
    }
    return {};
  }

  // A run's results may be gone with the next one.
  Status RunRows(std::span<BatchItem> batch, const BatchRows& rows, RowRange range, BatchTimes& times) {
    const Instant start = clock_.Now();
    std::vector<TensorPieces> inputs(ports_.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const TensorView& first = batch[0].inputs[i];
      Shape shape = first.shape;
      shape[0] = range.count();
      inputs[PortOf(i)] = PiecesOf(first.dtype, std::move(shape), rows.PiecesOf(i, range));
    }
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<Array> outputs, Compute(inputs, start, times));
    const Instant computed = clock_.Now();
    for (size_t i = 0; i < ports_.outputs.size(); ++i) {
      const Array& output = outputs[static_cast<size_t>(ports_.outputs[i])];
      if (output.shape.empty() || output.shape[0] != range.count()) {
        return MakeError(StatusCode::kInternal, "output '", spec_.outputs[i].name, "' of model '", spec_.name,
                         "' has shape ", ShapeText(output.shape), " for ", range.count(), " rows");
      }
      rows.Append(i, range, output.AsBytes());
      if (range.end < rows.total()) continue;
      for (BatchItem& item : batch) {
        Shape& shape = (*item.output_shapes)[i] = output.shape;
        shape[0] = item.rows;
      }
    }
    times.output += clock_.Now() - computed;
    return {};
  }

  // A request as it is.
  Status RunAlone(const BatchItem& item, BatchTimes& times) {
    const Instant start = clock_.Now();
    std::vector<TensorPieces> inputs(ports_.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const TensorView& input = item.inputs[i];
      inputs[PortOf(i)] = PiecesOf(input.dtype, input.shape, {input.bytes});
    }
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<Array> outputs, Compute(inputs, start, times));
    const Instant computed = clock_.Now();
    for (size_t i = 0; i < ports_.outputs.size(); ++i) {
      const Array& output = outputs[static_cast<size_t>(ports_.outputs[i])];
      (*item.outputs)[i].assign(reinterpret_cast<const char*>(output.data.get()), static_cast<size_t>(output.bytes()));
      (*item.output_shapes)[i] = output.shape;
    }
    times.output += clock_.Now() - computed;
    return {};
  }

  size_t PortOf(size_t input) const { return static_cast<size_t>(ports_.inputs[input]); }

  TensorPieces PiecesOf(DType dtype, Shape shape, std::vector<std::span<const std::byte>> pieces) const {
    const auto in_pool = [&](std::span<const std::byte> piece) { return execution_.pool->Holds(piece); };
    const bool is_pinned = execution_.pool != nullptr && std::ranges::all_of(pieces, in_pool);
    return {dtype, std::move(shape), std::move(pieces), is_pinned};
  }

  // start: when the inputs began to be gathered.
  StatusOr<std::vector<Array>> Compute(std::span<const TensorPieces> inputs, Instant start, BatchTimes& times) {
    const Instant gathered = clock_.Now();
    StatusOr<std::vector<Array>> outputs = execution_.runner->RunPieces(inputs);
    if (!outputs.ok()) return ForClients(outputs.status());
    times.input += gathered - start;
    times.compute += clock_.Now() - gathered;
    return outputs;
  }

  RowsAtOnce& LearnedOf(uint64_t batch_class) {
    RowsAtOnce* const known = learned_.Find(batch_class);
    return known != nullptr ? *known : learned_.Keep(batch_class, {}, sizeof(RowsAtOnce) + kEntryBytes);
  }

  // Whether no batch of the class had so many rows before.
  bool IsFirstOfShape(uint64_t batch_class, int64_t rows) {
    const uint64_t hash = absl::HashOf(rows, batch_class);
    if (seen_.Find(hash) != nullptr) return false;
    seen_.Keep(hash, true, kEntryBytes);
    return true;
  }

  // What is proven of rows holds for those that have any (batch_proof.h).
  static bool HasElements(const BatchItem& item) {
    return std::ranges::all_of(item.inputs, [](const TensorView& input) { return !input.bytes.empty(); });
  }

  // The batcher goes by BatchClass, which two shapes may share, if only by chance, and batches are for requests with
  // elements alone; each request runs by itself then.
  Status CheckOneShape(std::span<const BatchItem> batch) const {
    if (batch.size() == 1) return {};
    if (!HasElements(batch[0])) {
      return MakeError(StatusCode::kInternal, "a batch of model '", spec_.name, "' has requests without elements");
    }
    for (size_t i = 0; i < batch[0].inputs.size(); ++i) {
      const std::span<const int64_t> first = std::span(batch[0].inputs[i].shape).subspan(1);
      for (const BatchItem& item : batch.subspan(1)) {
        if (std::ranges::equal(first, std::span(item.inputs[i].shape).subspan(1))) continue;
        return MakeError(StatusCode::kInternal, "a batch of model '", spec_.name, "' has requests of several shapes");
      }
    }
    return {};
  }

  // Names of nodes are nobody's business; what an operator cannot do with a request is.
  Status ForClients(const Status& status) const {
    const std::string text = WithoutNames(std::string(status.message()), execution_.program.graph());
    return Annotate(Status(status.code(), text), Concat("model '", spec_.name, "'"));
  }

  const ModelSpec& spec_;  // the model's, which outlives this
  const PortMap& ports_;
  const Execution execution_;
  Clock& clock_;
  std::atomic<uint64_t> last_class_ = ~uint64_t{0};  // of the last batch that was computed
  // Bytes of each; of an entry of either, beside its value, about.
  static constexpr int64_t kMostRemembered = int64_t{1} << 20, kEntryBytes = 96;
  LruCache<uint64_t, RowsAtOnce> learned_{kMostRemembered};  // by class
  LruCache<uint64_t, bool> seen_{kMostRemembered};           // by class and rows: what has run
};

// The facts are the first program's; the others only add their devices.
ModelFacts FactsOfFallback(const std::string& reason, std::span<const regions::RegionalProgram> regionals,
                           const Backend& backend, int threads) {
  const regions::RegionalProgram& regional = regionals.front();
  ModelFacts facts;
  facts.dense_bytes = facts.stored_bytes = regional.program->weight_bytes();
  facts.device_bytes = regional.weight_bytes();
  LayerTally tally;
  for (const auto& region : regional.regions) tally.Add(region->plan()->report());
  if (!regional.regions.empty()) tally.Describe(facts);
  facts.properties.insert({
      {"swizzle_fallback", regional.regions.empty() ? "all" : "parts"},
      {"swizzle_fallback_reason", reason},
      {"swizzle_fallback_nodes", regional.OperatorCounts()},
      {"swizzle_regions", std::to_string(regional.region_count())},
      {"swizzle_stored_bytes", std::to_string(facts.stored_bytes)},
      {"swizzle_device",
       regional.on_device == nullptr ? backend.device_name() : regional.on_device->device().device_name()},
      {"swizzle_threads", std::to_string(threads)},
  });
  if (const std::string zeros = regional.ZerosText(); !zeros.empty()) facts.properties["swizzle_zeros"] = zeros;
  if (regional.on_device != nullptr) {
    facts.devices.clear();
    for (const auto& each : regionals) facts.devices.emplace_back(each.on_device->device().name());
    facts.device = facts.devices.front();
    if (facts.devices.size() > 1) facts.device = facts.device.substr(0, facts.device.find(':'));
    facts.properties["swizzle_device_nodes"] = std::to_string(regional.device_nodes());
  } else if (!regional.not_on_device.empty()) {
    facts.properties["swizzle_not_on_gpu"] = regional.not_on_device;
  }
  return facts;
}

class ServedFallbackModel final : public Model {
 public:
  ServedFallbackModel(ModelSpec spec, PortMap ports, const std::string& reason,
                      std::vector<regions::RegionalProgram> regionals, std::shared_ptr<PinnedPool> pool,
                      Backend& backend, const FallbackRuns& runs)
      : spec_(std::move(spec)),
        ports_(std::move(ports)),
        reason_(reason),
        regionals_(std::move(regionals)),
        pool_(std::move(pool)),
        backend_(backend),
        runs_(runs) {}

  const ModelSpec& spec() const override { return spec_; }
  // Of the plans that the regions have now.
  std::shared_ptr<const ModelFacts> facts() const override {
    std::vector<std::shared_ptr<const Plan>> plans;
    for (const auto& region : regionals_.front().regions) plans.push_back(region->plan());
    const MutexLock lock(mutex_);
    if (facts_ == nullptr || plans != plans_) {
      facts_ = std::make_shared<const ModelFacts>(FactsOfFallback(reason_, regionals_, backend_, runs_.threads));
      plans_ = std::move(plans);
    }
    return facts_;
  }
  uint64_t BatchClass(std::span<const TensorView> inputs) const override { return ClassOf(spec_, inputs); }
  std::shared_ptr<const void> Stage(std::span<TensorView> inputs) const override {
    return pool_ == nullptr ? nullptr : pool_->Stage(inputs);
  }
  StatusOr<std::unique_ptr<Session>> NewSession(Clock& clock) override {
    const regions::RegionalProgram& regional = regionals_[sessions_++ % regionals_.size()];
    // Only what computes on the host takes turns.
    const bool takes_turns = runs_.turns != nullptr && regional.on_device == nullptr;
    auto turn = takes_turns ? std::make_unique<ExecutorTurn>(runs_.turns, share_) : nullptr;
    SWIZZLE_ASSIGN_OR_RETURN(auto runner, regional.NewRunner(backend_, runs_.threads, runs_.limits, turn.get()));
    FallbackSession::Execution execution{*regional.program, pool_.get(), std::move(turn), std::move(runner)};
    return std::make_unique<FallbackSession>(spec_, ports_, std::move(execution), clock);
  }

 private:
  const ModelSpec spec_;
  const PortMap ports_;
  const std::string reason_;
  const std::vector<regions::RegionalProgram> regionals_;  // one a device
  const std::shared_ptr<PinnedPool> pool_;                 // any device reads it; null: none
  Backend& backend_;
  const FallbackRuns runs_;
  const std::shared_ptr<ComputeTurns::Share> share_ = std::make_shared<ComputeTurns::Share>();
  std::atomic<size_t> sessions_ = 0;  // which take the devices in turn
  mutable Mutex mutex_;
  mutable std::vector<std::shared_ptr<const Plan>> plans_ ABSL_GUARDED_BY(mutex_);  // that the facts are of
  mutable std::shared_ptr<const ModelFacts> facts_ ABSL_GUARDED_BY(mutex_);         // null: nobody asked yet
};

// Null where no device reads it, or inputs are of other sizes than are worth it.
StatusOr<std::shared_ptr<PinnedPool>> NewPool(const ModelSpec& spec, const regions::RegionalProgram& regional) {
  if (regional.on_device == nullptr) return nullptr;
  const std::optional<size_t> bytes = PoolBytes(spec);
  if (!bytes || *bytes < PinnedPool::kMostRows * offload::kLeastCopied) return nullptr;
  SWIZZLE_ASSIGN_OR_RETURN(auto memory, regional.on_device->device().AllocateHost(*bytes));
  return std::make_shared<PinnedPool>(std::move(memory));
}

}  // namespace

StatusOr<ModelSpec> DeriveInterpretedSpec(const Program& program) {
  ModelSpec spec;
  spec.backend = "swizzle";
  spec.max_batch_size = program.rows_are_independent() ? kDerivedMaxBatchSize : 0;
  spec.batch_obstacle = program.batch_obstacle().value_or("");
  for (const Port& port : program.inputs()) {
    SWIZZLE_ASSIGN_OR_RETURN(spec.inputs.emplace_back(), SpecOf(port, "input", spec.max_batch_size));
  }
  for (const Port& port : program.outputs()) {
    SWIZZLE_ASSIGN_OR_RETURN(spec.outputs.emplace_back(), SpecOf(port, "output", spec.max_batch_size));
  }
  return spec;
}

std::shared_ptr<const Program> WithServedInputs(std::shared_ptr<const Program> program, const ModelSpec& spec) {
  std::vector<Port> inputs = program->inputs();
  for (Port& port : inputs) {
    const auto served = std::ranges::find(spec.inputs, port.name, &TensorSpec::name);
    if (served == spec.inputs.end() || !port.shape) return program;
    const size_t first = port.shape->size() - served->dims.size();
    if (!DimsFit(SpecDims(port, spec.max_batch_size), served->dims)) return program;
    for (size_t d = 0; d < served->dims.size(); ++d) {
      if (served->dims[d] != -1) (*port.shape)[first + d] = served->dims[d];
    }
  }
  return program->WithInputs(std::move(inputs));
}

StatusOr<std::shared_ptr<Model>> NewFallbackModel(ModelSpec spec, const std::string& reason,
                                                  std::vector<regions::RegionalProgram> regionals, Backend& backend,
                                                  const FallbackRuns& runs) {
  SWIZZLE_CHECK(!regionals.empty());
  for (const regions::RegionalProgram& regional : regionals) SWIZZLE_RETURN_IF_ERROR(regional.refusal);
  SWIZZLE_ASSIGN_OR_RETURN(PortMap ports, Resolve(spec, *regionals.front().program));
  SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<PinnedPool> pool, NewPool(spec, regionals.front()));
  return std::make_shared<ServedFallbackModel>(std::move(spec), std::move(ports), reason, std::move(regionals),
                                               std::move(pool), backend, runs);
}

}  // namespace swizzle
