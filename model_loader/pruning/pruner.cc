#include "model_loader/pruning/pruner.h"

#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "kernels/format/shfl_bw.h"
#include "model_loader/passes/lower.h"
#include "model_loader/pruning/magnitude.h"

namespace swizzle {
namespace {

constexpr std::string_view kMethodNames[] = {"magnitude", "vector-wise", "shfl-bw", "block"};

int64_t CountZeros(std::span<const float> weights) { return std::count(weights.begin(), weights.end(), 0.0f); }

// A row-major matrix's columns as rows.
std::vector<float> Turned(std::span<const float> values, int64_t rows, int64_t cols) {
  std::vector<float> turned(values.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) turned[col * rows + row] = values[row * cols + col];
  }
  return turned;
}

}  // namespace

std::string_view PruneMethodName(PruneMethod method) { return kMethodNames[static_cast<size_t>(method)]; }

std::optional<PruneMethod> PruneMethodFromName(std::string_view name) {
  const auto found = std::ranges::find(kMethodNames, name);
  if (found == std::end(kMethodNames)) return std::nullopt;
  return static_cast<PruneMethod>(found - kMethodNames);
}

Pruner::Pruner(PruneOptions options) : options_(std::move(options)), skip_matched_(options_.skip.size(), false) {
  SWIZZLE_CHECK(options_.sparsity >= 0.0 && options_.sparsity <= 1.0);
}

bool Pruner::Skips(std::span<const std::string> names) {
  bool skips = false;
  for (size_t i = 0; i < options_.skip.size(); ++i) {
    const char* pattern = options_.skip[i].c_str();
    const auto matches = [&](const std::string& name) { return fnmatch(pattern, name.c_str(), 0) == 0; };
    if (std::none_of(names.begin(), names.end(), matches)) continue;
    skip_matched_[i] = true;
    skips = true;
  }
  return skips;
}

void Pruner::PruneMatrix(const WeightView& weights, PruneRecord& record) const {
  const std::vector<float> before(weights.values.begin(), weights.values.end());
  const double all = SumOfMagnitudes(before);
  const auto share = [&](std::span<const float> left) { return all == 0 ? 1.0 : SumOfMagnitudes(left) / all; };
  const auto prune = [&](PruneMethod method, const WeightView& matrix) {
    std::vector<uint32_t> order = method == PruneMethod::kShflBw
                                      ? FindRowOrder(matrix, options_.vector_rows, options_.sparsity)
                                      : RowsInOrder(matrix.rows);
    if (method == PruneMethod::kMagnitude) return PruneSmallest(matrix.values, options_.sparsity);
    if (method == PruneMethod::kBlock) return PruneBlocks(matrix, options_.vector_rows, options_.sparsity);
    PruneVectors(matrix, order, options_.vector_rows, options_.sparsity);
  };
  const auto kept_by = [&](PruneMethod method) {
    std::vector<float> copy = before;
    prune(method, {weights.rows, weights.cols, copy});
    return share(copy);
  };
  prune(options_.method, weights);
  record.kept = share(weights.values);
  if (options_.method == PruneMethod::kMagnitude) return;
  record.kept_by_magnitude = kept_by(PruneMethod::kMagnitude);
  record.kept_by_vectors = kept_by(PruneMethod::kVectorWise);
  record.kept_by_blocks = kept_by(PruneMethod::kBlock);
}

void Pruner::Prune(std::span<const std::string> names, const Shape& shape, std::span<float> weights,
                   bool outputs_last) {
  const auto elements = static_cast<int64_t>(weights.size());
  PruneRecord record{.name = names.front(),
                     .shape = shape,
                     .elements = elements,
                     .zeros_before = CountZeros(weights),
                     .skipped = Skips(names)};
  const int64_t outputs = shape.empty() ? 0 : outputs_last ? shape.back() : shape.front();
  if (!record.skipped && outputs > 0) {
    const int64_t inputs = elements / outputs;
    if (outputs_last) {
      std::vector<float> turned = Turned(weights, inputs, outputs);
      PruneMatrix({outputs, inputs, turned}, record);
      std::ranges::copy(Turned(turned, outputs, inputs), weights.begin());
    } else {
      PruneMatrix({outputs, inputs, weights}, record);
    }
  }
  record.zeros_after = CountZeros(weights);
  records_.push_back(std::move(record));
}

Status Pruner::CheckResult() const {
  if (records_.empty()) return InvalidArgument("the model has no weights of convolutions or linear layers to prune");
  const auto unmatched = std::find(skip_matched_.begin(), skip_matched_.end(), false);
  if (unmatched == skip_matched_.end()) return {};
  return InvalidArgument("the pattern to skip '", options_.skip[unmatched - skip_matched_.begin()],
                         "' matches no layer's name; swizzle-pack inspect lists them");
}

void PruneNetwork(Network& network, Pruner& pruner) {
  for (const Layer& layer : network.layers) {
    if (layer.op != Op::kConv) continue;
    Weight& weight = network.weights[layer.weight];
    DenseMatrix dense = weight.ToDense();
    pruner.Prune(std::span(&layer.name, 1), {dense.rows, dense.cols}, dense.values);
    weight.matrix = ChooseFormat(std::move(dense));
  }
}

}  // namespace swizzle
