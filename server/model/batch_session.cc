#include "server/model/batch_session.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/types/span.h"
#include "kernels/base/integers.h"
#include "kernels/base/lru_cache.h"
#include "server/model/batch_rows.h"
#include "server/model/rows_at_once.h"

namespace swizzle {
namespace {

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

class BatchSession final : public Session {
 public:
  BatchSession(const BatchedModel& model, std::shared_ptr<RunnerSeat> seat, Clock& clock)
      : model_(model), spec_(model.spec), ports_(model.ports), seat_(std::move(seat)), clock_(clock) {}

  Status Run(std::span<BatchItem> batch, BatchTimes& times) override {
    const MutexLock lock(seat_->mutex());
    runner_ = &seat_->runner();
    times = {};
    if (model_.planned_whole) return RunPlanned(batch, times);
    const Instant start = clock_.Now();
    SWIZZLE_RETURN_IF_ERROR(CheckOneShape(batch));
    std::vector<int64_t> rows_of_items;
    for (const BatchItem& item : batch) rows_of_items.push_back(item.rows);
    const BatchRows rows(batch, std::move(rows_of_items));
    const BatchTurn turn = seat_->BeginBatch(rows.total());
    StartOutputs(batch);
    const uint64_t batch_class = ShapeClassOf(spec_, batch[0].inputs);
    times.first_of_shape = IsFirstOfShape(batch_class, rows.total());
    if (spec_.max_batch_size == 0) {
      SWIZZLE_RETURN_IF_ERROR(RunAlone(batch[0], times));
    } else {
      RowsAtOnce& learned = LearnedOf(batch_class);
      const int64_t at_once = HasElements(batch[0]) ? learned.For(rows.total()) : rows.total();
      for (int64_t first = 0; first < rows.total(); first += at_once) {
        SWIZZLE_RETURN_IF_ERROR(RunRows(batch, rows, {first, std::min(first + at_once, rows.total())}, times));
      }
      learned.Note(rows.total(), at_once, clock_.Now() - start);
    }
    last_class_ = batch_class;
    return {};
  }
  // Shapes that are new may have to be planned for, which takes longer than a borrowed thread has.
  bool RunsAtOnce(uint64_t batch_class) const override {
    return seat_->RunsAtOnce() && (model_.planned_whole || batch_class == last_class_);
  }

 private:
  // A large batch in parts of nearly equal size.
  Status RunPlanned(std::span<BatchItem> batch, BatchTimes& times) {
    std::vector<int64_t> rows_of_items;
    for (const BatchItem& item : batch) {
      SWIZZLE_ASSIGN_OR_RETURN(rows_of_items.emplace_back(), PlanRows(item));
    }
    const BatchRows rows(batch, std::move(rows_of_items));
    const BatchTurn turn = seat_->BeginBatch(rows.total());
    StartOutputs(batch);
    const int64_t total = rows.total();
    const int64_t runs = std::max<int64_t>(CeilDiv(total, runner_->rows_at_once()), 1);
    for (int64_t run = 0; run < runs; ++run) {
      SWIZZLE_RETURN_IF_ERROR(RunRows(batch, rows, {total * run / runs, total * (run + 1) / runs}, times));
    }
    return {};
  }

  // Rows of a whole plan that an item takes: its batch dimension where that is free, else all there are.
  StatusOr<int64_t> PlanRows(const BatchItem& item) const {
    if (model_.fixed_batch != 0) return model_.fixed_batch;
    if (spec_.max_batch_size > 0) return item.rows;
    const int64_t rows = item.inputs[0].shape[0];
    for (size_t i = 0; i < item.inputs.size(); ++i) {
      if (item.inputs[i].shape[0] != rows) {
        return InvalidArgument("input '", spec_.inputs[i].name, "' of model '", spec_.name, "' has shape ",
                               ShapeText(item.inputs[i].shape), ", whose batch dimension is not that of input '",
                               spec_.inputs[0].name, "', ", rows);
      }
    }
    return rows;
  }

  void StartOutputs(std::span<const BatchItem> batch) const {
    for (const BatchItem& item : batch) {
      item.outputs->assign(ports_.outputs.size(), std::string());
      item.output_shapes->resize(ports_.outputs.size());
    }
  }

  // A run's results may be gone with the next one.
  Status RunRows(std::span<BatchItem> batch, const BatchRows& rows, RowRange range, BatchTimes& times) {
    const Instant start = clock_.Now();
    inputs_.resize(ports_.inputs.size());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      TensorPieces& input = inputs_[PortOf(i)];
      const TensorView& first = batch[0].inputs[i];
      input.dtype = first.dtype;
      input.shape = first.shape;
      input.shape[0] = range.count();
      rows.PiecesOf(i, range, input.pieces);
      input.is_pinned = InPool(input.pieces);
    }
    const BatchPart part = {range.begin, range.count(), rows.total()};
    SWIZZLE_ASSIGN_OR_RETURN(const PartOutputs outputs, Compute(part, start, times));
    const Instant computed = clock_.Now();
    for (size_t i = 0; i < ports_.outputs.size() && outputs.rows > 0; ++i) {
      const RowRange of = {outputs.first, outputs.first + outputs.rows};
      SWIZZLE_RETURN_IF_ERROR(Scatter(batch, rows, of, i, outputs.views[static_cast<size_t>(ports_.outputs[i])]));
    }
    times.output += clock_.Now() - computed;
    return {};
  }

  // Appends these rows of an output to the requests' own, and says of what shape these are.
  Status Scatter(std::span<BatchItem> batch, const BatchRows& rows, RowRange range, size_t output,
                 const TensorView& from) const {
    if (model_.fixed_batch == 0 && (from.shape.empty() || from.shape[0] != range.count())) {
      return MakeError(StatusCode::kInternal, "output '", spec_.outputs[output].name, "' of model '", spec_.name,
                       "' has shape ", ShapeText(from.shape), " for ", range.count(), " rows");
    }
    rows.Append(output, range, from.bytes);
    if (range.end < rows.total()) return {};
    for (size_t item = 0; item < batch.size(); ++item) {
      Shape& shape = (*batch[item].output_shapes)[output] = from.shape;
      if (!shape.empty()) shape[0] = shape[0] * rows.of_items()[item] / range.count();
    }
    return {};
  }

  // A request as it is.
  Status RunAlone(const BatchItem& item, BatchTimes& times) {
    const Instant start = clock_.Now();
    inputs_.resize(ports_.inputs.size());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const TensorView& input = item.inputs[i];
      inputs_[PortOf(i)] = {input.dtype, input.shape, {input.bytes}, InPool({1, input.bytes})};
    }
    SWIZZLE_ASSIGN_OR_RETURN(const PartOutputs outputs, Compute({0, 1, 1}, start, times));
    const Instant computed = clock_.Now();
    for (size_t i = 0; i < ports_.outputs.size(); ++i) {
      const TensorView& output = outputs.views[static_cast<size_t>(ports_.outputs[i])];
      (*item.outputs)[i].assign(reinterpret_cast<const char*>(output.bytes.data()), output.bytes.size());
      (*item.output_shapes)[i] = output.shape;
    }
    times.output += clock_.Now() - computed;
    return {};
  }

  size_t PortOf(size_t input) const { return static_cast<size_t>(ports_.inputs[input]); }

  bool InPool(const std::vector<std::span<const std::byte>>& pieces) const {
    const auto in_pool = [&](std::span<const std::byte> piece) { return model_.pool->Holds(piece); };
    return model_.pool != nullptr && std::ranges::all_of(pieces, in_pool);
  }

  // start: when the inputs began to be gathered.
  StatusOr<PartOutputs> Compute(const BatchPart& part, Instant start, BatchTimes& times) {
    const Instant gathered = clock_.Now();
    StatusOr<PartOutputs> outputs = runner_->RunPart(inputs_, part);
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
    std::string text(status.message());
    if (model_.graph != nullptr) text = WithoutNames(text, *model_.graph);
    return Annotate(Status(status.code(), text), Concat("model '", spec_.name, "'"));
  }

  const BatchedModel model_;
  const ModelSpec& spec_;
  const PortMap& ports_;
  const std::shared_ptr<RunnerSeat> seat_;
  ModelRunner* runner_ = nullptr;     // of the batch that runs
  std::vector<TensorPieces> inputs_;  // of its part that runs, by port
  Clock& clock_;
  std::atomic<uint64_t> last_class_ = ~uint64_t{0};  // of the last batch that was computed
  // Bytes of each; of an entry of either, beside its value, about.
  static constexpr int64_t kMostRemembered = int64_t{1} << 20, kEntryBytes = 96;
  LruCache<uint64_t, RowsAtOnce> learned_{kMostRemembered};  // by class
  LruCache<uint64_t, bool> seen_{kMostRemembered};           // by class and rows: what has run
};

}  // namespace

uint64_t ShapeClassOf(const ModelSpec& spec, std::span<const TensorView> inputs) {
  size_t hash = 0;
  for (const TensorView& input : inputs) {
    hash = absl::HashOf(hash, absl::MakeConstSpan(input.shape).subspan(spec.max_batch_size > 0 ? 1 : 0));
  }
  return hash;
}

std::unique_ptr<Session> NewBatchSession(const BatchedModel& model, std::shared_ptr<RunnerSeat> seat, Clock& clock) {
  return std::make_unique<BatchSession>(model, std::move(seat), clock);
}

}  // namespace swizzle
