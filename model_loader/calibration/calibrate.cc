#include "model_loader/calibration/calibrate.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "kernels/cpu/runtime/cpu_stream.h"
#include "model_loader/calibration/moments.h"
#include "model_loader/calibration/row_batches.h"
#include "model_loader/files/atomic_file.h"

namespace swizzle {
namespace {

using fallback::Array;

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

  // Whether the layer was done: then its elements are set, and the record's numbers.
  StatusOr<bool> Find(size_t index, std::span<float> elements, PruneRecord& record) const {
    std::error_code error;
    if (folder_.empty() || !std::filesystem::exists(File(index, "weights"), error)) return false;
    SWIZZLE_ASSIGN_OR_RETURN(const NpyArray weights, ReadNpy(File(index, "weights")));
    SWIZZLE_ASSIGN_OR_RETURN(const NpyArray kept, ReadNpy(File(index, "record")));
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
    for (NamedWeight& named : weights) weights_[named.weight.names.back()] = {&named, Array()};
    const Graph& graph = run.program.graph();
    for (const Value& value : graph.values) names_.push_back(value.name);
    for (const Node& node : graph.nodes) {
      if (node.op == "Identity" && node.Input(0) != kNoValue) names_[node.outputs[0]] = names_[node.inputs[0]];
    }
  }

  Status Run() {
    const StatusOr<std::vector<TensorView>> inputs = InputsAmong(run_.program, run_.inputs);
    if (!inputs.ok()) return Annotate(inputs.status(), "calibration");
    const fallback::Limits limits{.max_array_bytes = int64_t{1} << 34, .max_live_bytes = int64_t{1} << 36};
    const auto watch = [this](const Node& node, std::span<Array> given, fallback::Memory& memory, Stream& stream) {
      return Visit(node, given, memory, stream);
    };
    const auto outputs = run_.program.Run(*inputs, run_.stream, limits, watch);
    if (!outputs.ok()) return outputs.status();
    for (const auto& [name, weight] : weights_) {
      if (weight.replaced.data == nullptr) return InvalidArgument("weight '", name, "' is read by no node that runs");
    }
    return {};
  }

 private:
  struct Tracked {
    NamedWeight* named = nullptr;
    Array replaced;  // once it is pruned
  };

  Status Visit(const Node& node, std::span<Array> given, fallback::Memory& memory, Stream& stream) {
    if (node.op == "Identity") return {};
    for (size_t i = 0; i < given.size(); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      const auto found = weights_.find(names_[node.inputs[i]]);
      if (found == weights_.end()) continue;
      Tracked& weight = found->second;
      if (weight.replaced.data == nullptr) {
        fallback::Call call(node, run_.program.graph().opset, given, memory, stream);
        SWIZZLE_RETURN_IF_ERROR(Prune(call, i, *weight.named));
        SWIZZLE_ASSIGN_OR_RETURN(weight.replaced, memory.Allocate(given[i].dtype, given[i].shape));
        std::ranges::copy(weight.named->elements, weight.replaced.Mutable<float>().begin());
      }
      given[i] = weight.replaced;
    }
    return {};
  }

  Status Prune(fallback::Call& call, size_t input, NamedWeight& named) {
    const OnnxWeight& weight = named.weight;
    const LayerWeight layer{weight.names, weight.shape, weight.outputs_last, weight.taps()};
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
      pruner_.Add(std::move(record));
      return {};
    }
    if (input != 1) return Unimplemented(Describe(call.node()), ": its first input cannot be calibrated; skip it");
    SWIZZLE_ASSIGN_OR_RETURN(const InputMoments moments, MomentsOf(call));
    const auto parallel = [&](int64_t count, const std::function<void(int64_t)>& body) {
      cpu::CpuStream::From(call.stream()).ParallelRanges(count, [&](int64_t, int64_t begin, int64_t end) {
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
