#include "model_loader/calibration/calibrate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>

#include "kernels/cpu/runtime/cpu_stream.h"
#include "model_loader/calibration/moments.h"
#include "model_loader/calibration/row_batches.h"
#include "model_loader/files/atomic_file.h"

namespace swizzle {
namespace {

using interpreter::Array;

// What files keep of a record beside the weights, as an array of FP64.
constexpr double PruneRecord::*kShares[] = {&PruneRecord::kept, &PruneRecord::kept_by_magnitude,
                                            &PruneRecord::kept_by_vectors, &PruneRecord::kept_by_blocks};
constexpr size_t kNumbers = std::size(kShares) + 2;

std::vector<double> NumbersOf(const PruneRecord& record) {
  std::vector<double> numbers;
  for (const auto share : kShares) numbers.push_back(record.*share);
  const OutputErrors errors = record.errors.value_or(OutputErrors{});
  numbers.insert(numbers.end(), {errors.pruned, errors.compensated});
  return numbers;
}

void SetNumbers(std::span<const double, kNumbers> numbers, PruneRecord& record) {
  for (size_t i = 0; i < std::size(kShares); ++i) record.*kShares[i] = numbers[i];
  record.errors = OutputErrors{numbers[kNumbers - 2], numbers[kNumbers - 1]};
}

// The files of layers that are done.
class KeptLayers {
 public:
  explicit KeptLayers(const std::filesystem::path& folder) : folder_(folder) {}

  Status Keep(size_t index, std::span<const float> elements, const PruneRecord& record) const {
    if (folder_.empty()) return {};
    SWIZZLE_RETURN_IF_ERROR(MakeFolder(folder_));
    const std::vector<double> numbers = NumbersOf(record);
    SWIZZLE_RETURN_IF_ERROR(
        WriteNpy(File(index, "record"),
                 {DType::kFloat64, {static_cast<int64_t>(numbers.size())}, std::as_bytes(std::span(numbers))}));
    return WriteNpy(File(index, "weights"),
                    {DType::kFloat32, {static_cast<int64_t>(elements.size())}, std::as_bytes(elements)});
  }

  // Whether the layer was done: then its elements are set, and the record's numbers. A file that was damaged, as by a
  // loss of power, is of no use: the layer is done again.
  StatusOr<bool> Find(size_t index, std::span<float> elements, PruneRecord& record) const {
    std::error_code error;
    if (folder_.empty() || !std::filesystem::exists(File(index, "weights"), error)) return false;
    const StatusOr<NpyArray> read_weights = ReadNpy(File(index, "weights")),
                             read_record = ReadNpy(File(index, "record"));
    if (!read_weights.ok() || !read_record.ok()) return false;
    const NpyArray &weights = *read_weights, &kept = *read_record;
    double numbers[kNumbers];
    if (weights.dtype != DType::kFloat32 || weights.bytes.size() != elements.size_bytes() ||
        kept.dtype != DType::kFloat64 || kept.bytes.size() != sizeof(numbers)) {
      return InvalidArgument(File(index, "weights").string(), " is of another run; remove its folder");
    }
    std::memcpy(elements.data(), weights.bytes.data(), weights.bytes.size());
    std::memcpy(numbers, kept.bytes.data(), sizeof(numbers));
    SetNumbers(numbers, record);
    return true;
  }

 private:
  std::filesystem::path File(size_t index, const char* what) const {
    return folder_ / Concat(index, "-", what, ".npy");
  }

  const std::filesystem::path& folder_;
};

class CalibratedPruning {
 public:
  CalibratedPruning(const CalibrationRun& run, std::vector<NamedWeight>& weights, Pruner& pruner)
      : run_(run), pruner_(pruner), kept_(run.folder) {
    for (NamedWeight& named : weights) weights_[named.weight.names.back()].named = &named;
    const Graph& graph = run.program.graph();
    for (const Value& value : graph.values) names_.push_back(value.name);
    for (const Node& node : graph.nodes) {
      if (node.op == "Identity" && node.Input(0) != kNoValue) names_[node.outputs[0]] = names_[node.inputs[0]];
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (Tracked* const weight = Find(node, i)) ++weight->readers;
      }
    }
  }

  Status Run() {
    const StatusOr<std::vector<TensorView>> inputs = InputsAmong(run_.program.inputs(), run_.inputs);
    if (!inputs.ok()) return Annotate(inputs.status(), "calibration");
    SWIZZLE_RETURN_IF_ERROR(Annotate(RefuseNan(run_.program.inputs(), *inputs), "calibration"));
    const auto empty = std::ranges::find_if(*inputs, [](const TensorView& input) { return input.bytes.empty(); });
    if (empty != inputs->end()) {
      const std::string& name = run_.program.inputs()[static_cast<size_t>(empty - inputs->begin())].name;
      return InvalidArgument("calibration: input '", name, "' is empty: ", ShapeText(empty->shape));
    }
    bool shared = false;
    for (const auto& [name, weight] : weights_) {
      if (pruner_.Skips(weight.named->weight.names)) continue;
      shared |= weight.readers > 1;
      if (!weight.named->weight.both_ways) continue;
      return Unimplemented("weight '", name, "' is multiplied with from both sides, for which calibration cannot make ",
                           "good what pruning takes; leave it out with --skip='", name, "'");
    }
    if (shared) SWIZZLE_RETURN_IF_ERROR(RunModel(*inputs, &CalibratedPruning::Gather));
    SWIZZLE_RETURN_IF_ERROR(RunModel(*inputs, &CalibratedPruning::Visit));
    for (const auto& [name, weight] : weights_) {
      if (weight.replaced.data == nullptr) return InvalidArgument("weight '", name, "' is read by no node that runs");
    }
    return {};
  }

 private:
  struct Tracked {
    NamedWeight* named = nullptr;
    int readers = 0;
    Array replaced = {};  // once it is pruned
    bool gathered_first = false;
    std::optional<InputMoments> others = {};  // of its readers but the first
  };
  using Watch = Status (CalibratedPruning::*)(const Node&, std::span<Array>, interpreter::Memory&, Stream&);

  Status RunModel(std::span<const TensorView> inputs, Watch watch) {
    const interpreter::Limits limits{.max_array_bytes = int64_t{1} << 34, .max_live_bytes = int64_t{1} << 36};
    const auto watcher = [&](const Node& node, std::span<Array> given, interpreter::Memory& memory, Stream& stream) {
      return (this->*watch)(node, given, memory, stream);
    };
    return run_.program.Run(inputs, run_.stream, limits, watcher).status();
  }

  // Null for what is none of the weights.
  Tracked* Find(const Node& node, size_t input) {
    if (node.op == "Identity" || node.inputs[input] == kNoValue) return nullptr;
    const auto found = weights_.find(names_[node.inputs[input]]);
    return found == weights_.end() ? nullptr : &found->second;
  }

  StatusOr<InputMoments> MomentsAt(const Node& node, size_t input, std::span<Array> given, interpreter::Memory& memory,
                                   Stream& stream) const {
    interpreter::Call call(node, run_.program.graph().opset, given, memory, stream);
    if (input != 1) return Unimplemented(Describe(node), ": its first input cannot be calibrated; skip it");
    return MomentsOf(call);
  }

  // What the further readers of weights that several share read, before anything is pruned.
  Status Gather(const Node& node, std::span<Array> given, interpreter::Memory& memory, Stream& stream) {
    for (size_t i = 0; i < given.size(); ++i) {
      Tracked* const weight = Find(node, i);
      if (weight == nullptr || weight->readers < 2 || pruner_.Skips(weight->named->weight.names)) continue;
      if (!std::exchange(weight->gathered_first, true)) continue;
      SWIZZLE_ASSIGN_OR_RETURN(InputMoments moments, MomentsAt(node, i, given, memory, stream));
      if (weight->others) {
        weight->others->Add(moments);
      } else {
        weight->others = std::move(moments);
      }
    }
    return {};
  }

  Status Visit(const Node& node, std::span<Array> given, interpreter::Memory& memory, Stream& stream) {
    for (size_t i = 0; i < given.size(); ++i) {
      Tracked* const weight = Find(node, i);
      if (weight == nullptr) continue;
      if (weight->replaced.data == nullptr) {
        const auto moments = [&] { return MomentsAt(node, i, given, memory, stream); };
        SWIZZLE_RETURN_IF_ERROR(Prune(*weight, moments));
        weight->others.reset();
        SWIZZLE_ASSIGN_OR_RETURN(weight->replaced, memory.Allocate(given[i].dtype, given[i].shape));
        std::ranges::copy(weight->named->elements, weight->replaced.Mutable<float>().begin());
      }
      given[i] = weight->replaced;
    }
    return {};
  }

  // `moments_of_first`: of the reader whose turn it is.
  Status Prune(Tracked& tracked, const std::function<StatusOr<InputMoments>()>& moments_of_first) {
    NamedWeight& named = *tracked.named;
    const OnnxWeight& weight = named.weight;
    const LayerWeight layer{weight.names, weight.shape, weight.outputs_last, weight.taps(), named.of_checkpoint};
    if (run_.progress) SWIZZLE_RETURN_IF_ERROR(run_.progress(done_, weight.names.front()));
    const size_t index = done_++;
    if (pruner_.Skips(weight.names)) {
      pruner_.Prune(layer, named.elements);
      return {};
    }
    const auto zeros = [&] { return std::ranges::count(named.elements, 0.0f); };
    PruneRecord record{.name = weight.names.front(),
                       .shape = weight.shape,
                       .elements = static_cast<int64_t>(named.elements.size()),
                       .zeros_before = zeros()};
    SWIZZLE_ASSIGN_OR_RETURN(const bool found, kept_.Find(index, named.elements, record));
    if (found) {
      record.zeros_after = zeros();
      pruner_.Add(weight.names, std::move(record));
      return {};
    }
    SWIZZLE_ASSIGN_OR_RETURN(InputMoments moments, moments_of_first());
    if (tracked.others) moments.Add(*tracked.others);
    if (!std::ranges::all_of(moments.sums, [](double sum) { return std::isfinite(sum); })) {
      return InvalidArgument("calibration: what layer '", weight.names.front(),
                             "' reads is too large for FP32, or infinite; look for such numbers among the inputs");
    }
    const auto parallel = [&](int64_t count, const std::function<void(int64_t)>& body) {
      cpu::CpuStream::From(run_.stream).ParallelRanges(count, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) body(i);
      });
    };
    const Calibration calibration{moments, parallel};
    pruner_.Prune(layer, named.elements, &calibration);
    SWIZZLE_RETURN_IF_ERROR(pruner_.status());
    return kept_.Keep(index, named.elements, pruner_.records().back());
  }

  const CalibrationRun& run_;
  Pruner& pruner_;
  const KeptLayers kept_;
  std::vector<std::string> names_;  // of each value, or of what an Identity gives on
  std::unordered_map<std::string, Tracked> weights_;
  size_t done_ = 0;
};

}  // namespace

Status PruneCalibrated(const CalibrationRun& run, std::vector<NamedWeight>& weights, Pruner& pruner) {
  return CalibratedPruning(run, weights, pruner).Run();
}

}  // namespace swizzle
