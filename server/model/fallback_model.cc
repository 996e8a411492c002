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
#include "server/model/layer_tally.h"
#include "server/model/plan_model.h"
#include "server/model/rows_at_once.h"

namespace swizzle {
namespace {

using fallback::Array;
using fallback::Port;
using fallback::Program;

// Which of the program's ports each tensor of a specification is, by index.
struct PortMap {
  std::vector<size_t> inputs;
  std::vector<size_t> outputs;
};

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

// Whether a configured tensor says of its dimensions what the model does; -1 says nothing.
bool DimsFit(const Shape& expected, const Shape& configured) {
  if (expected.size() != configured.size()) return false;
  for (size_t d = 0; d < expected.size(); ++d) {
    if (expected[d] != -1 && configured[d] != -1 && expected[d] != configured[d]) return false;
  }
  return true;
}

StatusOr<std::vector<size_t>> ResolveTensors(const std::vector<Port>& ports, const std::string& kind,
                                             const ModelSpec& spec, std::vector<TensorSpec>& tensors) {
  std::vector<size_t> map;
  for (TensorSpec& tensor : tensors) {
    const std::string name = Concat(kind, " '", tensor.name, "' of model '", spec.name, "'");
    const auto port = std::find_if(ports.begin(), ports.end(), [&](const Port& p) { return p.name == tensor.name; });
    if (port == ports.end()) return InvalidArgument(name, " is configured, but the model has none of this name");
    const size_t index = static_cast<size_t>(port - ports.begin());
    if (std::find(map.begin(), map.end(), index) != map.end()) return InvalidArgument(name, " is configured twice");
    if (tensor.dtype != *port->dtype) {
      return InvalidArgument(name, " is configured as ", DTypeName(tensor.dtype), ", but is ", DTypeName(*port->dtype));
    }
    const Shape expected = SpecDims(*port, spec.max_batch_size);
    if (!DimsFit(expected, tensor.dims)) {
      return InvalidArgument(name, " is configured with dims ", ShapeText(tensor.dims), ", but with max_batch_size ",
                             spec.max_batch_size, " it has ", ShapeText(expected));
    }
    for (size_t d = 0; d < expected.size(); ++d) {
      if (tensor.dims[d] == -1) tensor.dims[d] = expected[d];
    }
    map.push_back(index);
  }
  return map;
}

StatusOr<PortMap> Resolve(ModelSpec& spec, const Program& program) {
  if (spec.max_batch_size > 0 && !program.rows_are_independent()) {
    return InvalidArgument("model '", spec.name,
                           "' runs on the fallback executor, and its requests are not known to be independent of "
                           "each other (",
                           *program.batch_obstacle(), "): max_batch_size must be 0, not ", spec.max_batch_size);
  }
  PortMap map;
  SWIZZLE_ASSIGN_OR_RETURN(map.inputs, ResolveTensors(program.inputs(), "input", spec, spec.inputs));
  SWIZZLE_ASSIGN_OR_RETURN(map.outputs, ResolveTensors(program.outputs(), "output", spec, spec.outputs));
  if (map.inputs.size() != program.inputs().size()) {
    return InvalidArgument("model '", spec.name, "' has ", program.inputs().size(), " inputs, but ", map.inputs.size(),
                           " are configured");
  }
  return map;
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

// The same for requests whose dimensions agree, but for the batch's; hardly ever for others.
uint64_t ShapeClass(std::span<const TensorView> inputs) {
  size_t hash = 0;
  for (const TensorView& input : inputs) hash = absl::HashOf(hash, absl::MakeConstSpan(input.shape).subspan(1));
  return hash;
}

class FallbackSession final : public Session {
 public:
  // Runs a program, on the host in turn with others; the program outlives it.
  struct Execution {
    const Program& program;
    std::unique_ptr<ExecutorTurn> turn;  // null: it takes none
    std::unique_ptr<fallback::ProgramRunner> runner;
  };

  FallbackSession(const ModelSpec& spec, const PortMap& ports, Execution execution, Clock& clock)
      : spec_(spec), ports_(ports), execution_(std::move(execution)), clock_(clock), gathered_(ports.inputs.size()) {}

  Status Run(std::span<BatchItem> batch, BatchTimes& times) override {
    const Instant start = clock_.Now();
    SWIZZLE_RETURN_IF_ERROR(CheckOneShape(batch));
    const BatchTurn turn(execution_.turn.get(), execution_.runner->threads());
    int64_t rows = 0;
    for (BatchItem& item : batch) {
      rows += item.rows;
      item.outputs->resize(ports_.outputs.size());
      item.output_shapes->resize(ports_.outputs.size());
    }
    times = {};
    times.first_of_shape = IsFirstOfShape(batch[0].inputs, rows);
    if (spec_.max_batch_size == 0) return RunPart(batch, {0, rows}, times);
    RowsAtOnce& learned = LearnedOf(batch[0].inputs);
    const int64_t at_once = HasElements(batch[0]) ? learned.For(rows) : rows;
    for (int64_t first = 0; first < rows; first += at_once) {
      SWIZZLE_RETURN_IF_ERROR(RunPart(batch, {first, std::min(first + at_once, rows)}, times));
    }
    learned.Note(rows, at_once, clock_.Now() - start);
    return {};
  }

 private:
  // Rows of a batch that are computed at once.
  struct Part {
    int64_t begin, end;

    int64_t rows() const { return end - begin; }
    // Those of a request whose rows begin at `first`, counted from there; none where `rows` is not above 0.
    Part Of(const BatchItem& item, int64_t first) const {
      return {std::max(begin - first, int64_t{0}), std::min(end - first, item.rows)};
    }
  };

  // A run's results may be gone with the next one.
  Status RunPart(std::span<BatchItem> batch, const Part& part, BatchTimes& times) {
    const Instant start = clock_.Now();
    std::vector<TensorView> inputs(ports_.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) inputs[ports_.inputs[i]] = GatherInput(batch, part, i);
    const Instant ready = clock_.Now();
    const StatusOr<std::vector<Array>> computed_outputs = execution_.runner->Run(inputs);
    if (!computed_outputs.ok()) return ForClients(computed_outputs.status());
    const Instant computed = clock_.Now();
    for (size_t i = 0; i < ports_.outputs.size(); ++i) {
      SWIZZLE_RETURN_IF_ERROR(ScatterOutput(batch, part, i, (*computed_outputs)[ports_.outputs[i]]));
    }
    times.input += ready - start;
    times.compute += computed - ready;
    times.output += clock_.Now() - computed;
    return {};
  }

  // Of requests of these shapes.
  RowsAtOnce& LearnedOf(std::span<const TensorView> inputs) {
    const uint64_t shape = ShapeClass(inputs);
    RowsAtOnce* const known = learned_.Find(shape);
    return known != nullptr ? *known : learned_.Keep(shape, {}, sizeof(RowsAtOnce) + kEntryBytes);
  }

  // Of batches of so many rows, the first request of which has these inputs.
  bool IsFirstOfShape(std::span<const TensorView> inputs, int64_t rows) {
    size_t hash = static_cast<size_t>(rows);
    for (const TensorView& input : inputs) {
      const size_t from = spec_.max_batch_size == 0 ? 0 : 1;
      hash = absl::HashOf(hash, absl::MakeConstSpan(input.shape).subspan(from));
    }
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

  // One input of these rows: where a request has it, or, of several requests, one after the other.
  TensorView GatherInput(std::span<BatchItem> batch, const Part& part, size_t i) {
    TensorView view = batch[0].inputs[i];
    if (spec_.max_batch_size == 0) return view;
    view.shape[0] = part.rows();
    std::vector<std::byte>& gathered = gathered_[i];
    gathered.clear();
    int64_t first = 0;
    for (const BatchItem& item : batch) {
      const Part own = part.Of(item, first);
      first += item.rows;
      if (own.rows() <= 0) continue;
      const std::span<const std::byte> all = item.inputs[i].bytes;
      const size_t row = all.size() / static_cast<size_t>(item.rows);
      const auto bytes = all.subspan(row * static_cast<size_t>(own.begin), row * static_cast<size_t>(own.rows()));
      if (own.rows() == part.rows()) {
        view.bytes = bytes;
        return view;
      }
      gathered.reserve(row * static_cast<size_t>(part.rows()));
      gathered.insert(gathered.end(), bytes.begin(), bytes.end());
    }
    view.bytes = gathered;
    return view;
  }

  // Names of nodes are nobody's business; what an operator cannot do with a request is.
  Status ForClients(const Status& status) const {
    const std::string text = WithoutNames(std::string(status.message()), execution_.program.graph());
    return Annotate(Status(status.code(), text), Concat("model '", spec_.name, "'"));
  }

  // What each request has of these rows; all of a model that has none.
  Status ScatterOutput(std::span<BatchItem> batch, const Part& part, size_t i, const Array& output) const {
    const char* const from = reinterpret_cast<const char*>(output.data.get());
    if (spec_.max_batch_size == 0) {
      (*batch[0].outputs)[i].assign(from, static_cast<size_t>(output.bytes()));
      (*batch[0].output_shapes)[i] = output.shape;
      return {};
    }
    if (output.shape.empty() || output.shape[0] != part.rows()) {
      return MakeError(StatusCode::kInternal, "output '", spec_.outputs[i].name, "' of model '", spec_.name,
                       "' has shape ", ShapeText(output.shape), " for ", part.rows(), " rows");
    }
    const int64_t row = output.bytes() / part.rows();
    int64_t first = 0;
    for (BatchItem& item : batch) {
      const Part own = part.Of(item, first);
      if (own.rows() > 0) {
        std::string& bytes = (*item.outputs)[i];
        if (own.begin == 0) bytes.clear();
        bytes.reserve(static_cast<size_t>(row * item.rows));
        bytes.append(from + (first + own.begin - part.begin) * row, static_cast<size_t>(own.rows() * row));
        Shape& shape = (*item.output_shapes)[i];
        shape = output.shape;
        shape[0] = item.rows;
      }
      first += item.rows;
    }
    return {};
  }

  const ModelSpec& spec_;  // the model's, which outlives this
  const PortMap& ports_;
  const Execution execution_;
  Clock& clock_;
  std::vector<std::vector<std::byte>> gathered_;  // by input
  // Bytes of each; of an entry of either, beside its value, about.
  static constexpr int64_t kMostRemembered = int64_t{1} << 20, kEntryBytes = 96;
  LruCache<uint64_t, RowsAtOnce> learned_{kMostRemembered};  // by shape
  LruCache<uint64_t, bool> seen_{kMostRemembered};           // by shape and rows: what has run
};

bool HasFreeDims(const ModelSpec& spec) {
  return spec.max_batch_size > 0 && std::ranges::any_of(spec.inputs, [](const TensorSpec& input) {
           return std::ranges::find(input.dims, -1) != input.dims.end();
         });
}

// Those of the first; of the others the devices alone.
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
                      std::vector<regions::RegionalProgram> regionals, Backend& backend, const FallbackRuns& runs)
      : spec_(std::move(spec)),
        ports_(std::move(ports)),
        reason_(reason),
        regionals_(std::move(regionals)),
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
  // Of shapes, where dimensions other than the batch's are free.
  uint64_t BatchClass(std::span<const TensorView> inputs) const override {
    return shapes_differ_ ? ShapeClass(inputs) : 0;
  }
  StatusOr<std::unique_ptr<Session>> NewSession(Clock& clock) override {
    const regions::RegionalProgram& regional = regionals_[sessions_++ % regionals_.size()];
    // Only what computes on the host takes turns.
    const bool takes_turns = runs_.turns != nullptr && regional.on_device == nullptr;
    auto turn = takes_turns ? std::make_unique<ExecutorTurn>(runs_.turns, share_) : nullptr;
    SWIZZLE_ASSIGN_OR_RETURN(auto runner, regional.NewRunner(backend_, runs_.threads, runs_.limits, turn.get()));
    FallbackSession::Execution execution{*regional.program, std::move(turn), std::move(runner)};
    return std::make_unique<FallbackSession>(spec_, ports_, std::move(execution), clock);
  }

 private:
  const ModelSpec spec_;
  const PortMap ports_;
  const std::string reason_;
  const std::vector<regions::RegionalProgram> regionals_;  // one a device
  Backend& backend_;
  const FallbackRuns runs_;
  const bool shapes_differ_ = HasFreeDims(spec_);  // of requests, which are batched
  const std::shared_ptr<ComputeTurns::Share> share_ = std::make_shared<ComputeTurns::Share>();
  std::atomic<size_t> sessions_ = 0;  // which take the devices in turn
  mutable Mutex mutex_;
  mutable std::vector<std::shared_ptr<const Plan>> plans_ ABSL_GUARDED_BY(mutex_);  // that the facts are of
  mutable std::shared_ptr<const ModelFacts> facts_ ABSL_GUARDED_BY(mutex_);         // null: nobody asked yet
};

}  // namespace

StatusOr<ModelSpec> DeriveFallbackSpec(const Program& program) {
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
  return std::make_shared<ServedFallbackModel>(std::move(spec), std::move(ports), reason, std::move(regionals), backend,
                                               runs);
}

}  // namespace swizzle
